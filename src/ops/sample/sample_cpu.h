// The passes over a whole vocabulary, compiled once per ISA (sample_cpu.cc). Plain data: ISA files include this.
#pragma once
#include <cstdint>

namespace ridge {

constexpr int64_t kSampleBlock = 64;  // ids that share a maximum when the largest are looked for

struct SampleCpu {
  float (*max_of)(const float* z, int64_t n);                  // NaN passed over; -inf when there is nothing
  int64_t (*first_equal)(const float* z, int64_t n, float x);  // n when there is none
  // Sum of e^(z - top) over z < top, and how many equal it.
  double (*sum_below)(const float* z, int64_t n, float top, double* equal);
  void (*widen)(const float* z, int64_t n, double* out);                                         // NaN becomes -inf
  void (*block_max)(const double* z, int64_t n, double* out);                                    // [blocks]
  void (*weigh)(const double* z, int64_t n, double top, double inverse_temperature, double* w);  // top is finite
};

}  // namespace ridge
