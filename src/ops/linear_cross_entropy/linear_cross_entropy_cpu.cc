// linear_cross_entropy's inner loops over a piece of one token's logits.
#include "ops/linear_cross_entropy/linear_cross_entropy_cpu.h"

#include "tile/cpu/rows.h"

namespace ridge::RIDGE_ISA {
namespace {

constexpr float kInfinity = __builtin_inff();

struct Cap {
  float at;
  RIDGE_INLINE Vec operator()(Vec z) const { return at > 0 ? broadcast(at) * tanh(z / broadcast(at)) : z; }
  RIDGE_INLINE Vec slope(Vec capped) const {
    const Vec share = capped / broadcast(at);
    return at > 0 ? broadcast(1) - share * share : broadcast(1);
  }
};

void update(float* z, int64_t n, float softcap, float* top, float* sum) {
  const Cap cap{softcap};
  const Vec largest = fold(
      n, broadcast(-kInfinity),
      [&](Vec acc, int64_t i, auto... l) {
        const Vec capped = cap(load(z + i, l...));
        if (cap.at > 0) store(z + i, capped, l...);
        return max(past(-kInfinity, capped, l...), acc);
      },
      [](Vec a, Vec b) { return max(a, b); });
  if (const float m = reduce_max(largest); m > *top) {
    *sum *= __builtin_expf(*top - m);
    *top = m;
  }
  *sum += sum_of(n, [&](Vec acc, int64_t i, auto... l) { return acc + past(0, exp(load(z + i, l...) - broadcast(*top)), l...); });
}

void gradient(float* z, int64_t n, float softcap, const LogitGradient& g) {
  const Cap cap{softcap};
  float at_target = 0;
  if (g.target >= 0) at_target = reduce_add(broadcast(g.scale) * cap.slope(cap(broadcast(z[g.target])))) / kLanes;
  each(n, [&](int64_t i, auto... l) {
    const Vec capped = cap(load(z + i, l...)), p = exp(capped - broadcast(g.lse));
    store(z + i, p * broadcast(g.scale + g.lse_scale) * cap.slope(capped), l...);
  });
  if (g.target >= 0) z[g.target] -= at_target;
}

}  // namespace

extern const LinearCrossEntropyCpu linear_cross_entropy_cpu{update, gradient};

}  // namespace ridge::RIDGE_ISA
