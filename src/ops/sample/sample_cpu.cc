// sample's passes over the vocabulary. The double ones are plain loops: the compiler makes vectors of them, and their results must
// equal the reference's to the bit, which leaves nothing to choose.
#include "ops/sample/sample_cpu.h"

#include "tile/cpu/exp_f64.h"
#include "tile/cpu/vec.h"

namespace ridge::RIDGE_ISA {
namespace {

constexpr float kNothing = -__builtin_inff();

float max_of(const float* z, int64_t n) {
  Vec top = broadcast(kNothing);
  each_vec(n, [&](int64_t i, int64_t lanes) {
    const Vec v = lanes == kLanes ? load(z + i) : select(first(lanes), load(z + i, lanes), broadcast(kNothing));
    top = max(v, top);  // the second operand where the first is NaN
  });
  return reduce_max(top);
}

int64_t first_equal(const float* z, int64_t n, float x) {
  constexpr int64_t block = 256;
  for (int64_t from = 0; from < n; from += block) {
    const int64_t length = n - from < block ? n - from : block;
    Vec found = zero();
    each_vec(length, [&](int64_t i, int64_t lanes) {
      const Mask hit = both(load(z + from + i, lanes) == broadcast(x), first(lanes));
      found = found + select(hit, broadcast(1), zero());
    });
    if (reduce_add(found) == 0) continue;
    for (int64_t i = from;; ++i)
      if (z[i] == x) return i;
  }
  return n;
}

double sum_below(const float* z, int64_t n, float top, double* equal) {
  constexpr int64_t block = 1024;  // f32 sums stay short
  const Vec t = broadcast(top);
  double sum = 0;
  *equal = 0;
  for (int64_t from = 0; from < n; from += block) {
    const int64_t length = n - from < block ? n - from : block;
    Vec below = zero(), same = zero();
    each_vec(length, [&](int64_t i, int64_t lanes) {
      const Vec v = load(z + from + i, lanes);
      const Mask inside = first(lanes);
      below = below + select(both(v < t, inside), exp(v - t), zero());  // false for NaN
      same = same + select(both(v == t, inside), broadcast(1), zero());
    });
    sum += double(reduce_add(below));
    *equal += double(reduce_add(same));
  }
  return sum;
}

void widen(const float* z, int64_t n, double* out) {
  for (int64_t i = 0; i < n; ++i) out[i] = z[i] == z[i] ? double(z[i]) : double(kNothing);
}

typedef double Lanes __attribute__((vector_size(64)));  // eight doubles on every ISA

void block_max(const double* z, int64_t n, double* out) {
  for (int64_t from = 0; from < n; from += kSampleBlock) {
    const int64_t end = n - from < kSampleBlock ? n : from + kSampleBlock;
    Lanes top = Lanes{} + double(kNothing);
    int64_t i = from;
    for (; i + 8 <= end; i += 8) {
      Lanes v;
      __builtin_memcpy(&v, z + i, sizeof v);
      top = v > top ? v : top;
    }
    double most = double(kNothing);
    for (; i < end; ++i) most = z[i] > most ? z[i] : most;
    for (int j = 0; j < 8; ++j) most = top[j] > most ? top[j] : most;
    out[from / kSampleBlock] = most;
  }
}

void weigh(const double* z, int64_t n, double top, double inverse_temperature, double* w) {
  for (int64_t i = 0; i < n; ++i) w[i] = exp_f64((z[i] - top) * inverse_temperature);
}

}  // namespace

extern const SampleCpu sample_cpu;
const SampleCpu sample_cpu{max_of, first_equal, sum_below, widen, block_max, weigh};

}  // namespace ridge::RIDGE_ISA
