// vec.h's words over arrays, one table an ISA: how the tests reach them from outside.
#pragma once
#include <cstdint>

#include "tile/cpu/isa_table.h"

namespace ridge {

struct VecProbe {
  int lanes;
  void (*exp)(const float* x, float* y, int64_t n);
  void (*exp2)(const float* x, float* y, int64_t n);
  void (*exp2_short)(const float* x, float* y, int64_t n);
  void (*sigmoid)(const float* x, float* y, int64_t n);
  void (*silu)(const float* x, float* y, int64_t n);
  void (*tanh)(const float* x, float* y, int64_t n);
  void (*gelu)(const float* x, float* y, int64_t n);
  void (*gelu_tanh)(const float* x, float* y, int64_t n);
  void (*bf16)(const float* x, uint16_t* bits, float* back, int64_t n);  // rounds, and widens again
  void (*f16)(const float* x, uint16_t* bits, float* back, int64_t n);
  void (*bytes)(const int8_t* x, float* as_signed, float* as_unsigned, int64_t n);
  float (*sum)(const float* x, int64_t n);
  float (*largest)(const float* x, int64_t n);
  void (*sums)(const float* x, float* together, float* apart);  // four vectors, by store_sums and by reduce_add
  void (*choose)(const float* a, const float* b, float* smaller, float* larger, int64_t n);  // by comparison and select
};

RIDGE_ISA_TABLES(VecProbe, vec_probe)

}  // namespace ridge
