// layer_norm a row at a time, three passes over a row that stays in the first-level cache: the mean, the squares around it, the result.
//
// The mean of the first pass is off by a rounding, which matters where it is much larger than the deviation. So the second pass also
// sums what is left, and the third takes that correction off too.
#include "ops/layer_norm/layer_norm_cpu.h"

#include "tile/cpu/rows.h"

namespace ridge::RIDGE_ISA {
namespace {

struct Moments {
  float mean, rest, inv;  // (s - mean) - rest is centred; inv = 1 / sqrt(variance + eps)
};

template <class S>
RIDGE_INLINE Moments moments_of(int64_t n, double eps, float total, S&& s) {
  const float mean = float(double(total) / double(n));
  const float left = sum_of(n, [&](Vec acc, int64_t i, auto... l) { return acc + past(0, s(i, l...) - broadcast(mean), l...); });
  const float squares = sum_of(n, [&](Vec acc, int64_t i, auto... l) {
    const Vec e = past(0, s(i, l...) - broadcast(mean), l...);
    return fma(e, e, acc);
  });
  const double rest = double(left) / double(n), variance = double(squares) / double(n) - rest * rest;
  return {mean, float(rest), float(1 / __builtin_sqrt((variance > 0 ? variance : 0) + eps))};
}

template <class T, class U>
void forward(const LayerNormTask& t) {
  for (int64_t r = 0; r < t.rows; ++r) {
    const T* x = static_cast<const T*>(t.x) + r * t.x_step;
    const T* add = static_cast<const T*>(t.add) + r * t.add_step;
    T* sum = static_cast<T*>(t.sum) + r * t.sum_step;
    U* y = static_cast<U*>(t.y) + r * t.y_step;
    auto finish = [&](float total, auto&& s) {
      const Moments m = moments_of(t.n, t.eps, total, s);
      each(t.n, [&](int64_t i, auto... l) {
        const Vec e = ((s(i, l...) - broadcast(m.mean)) - broadcast(m.rest)) * broadcast(m.inv);
        store(y + i, t.bias ? fma(e, load(t.w + i, l...), load(t.bias + i, l...)) : e * load(t.w + i, l...), l...);
      });
    };
    if (!t.add) {
      const float total = sum_of(t.n, [&](Vec acc, int64_t i, auto... l) { return acc + load(x + i, l...); });
      finish(total, [&](int64_t i, auto... l) { return load(x + i, l...); });
    } else if (!t.sum) {
      const float total =
          sum_of(t.n, [&](Vec acc, int64_t i, auto... l) { return acc + (load(x + i, l...) + load(add + i, l...)); });
      finish(total, [&](int64_t i, auto... l) { return load(x + i, l...) + load(add + i, l...); });
    } else {
      const float total = sum_of(t.n, [&](Vec acc, int64_t i, auto... l) {
        store(sum + i, load(x + i, l...) + load(add + i, l...), l...);
        return acc + load(sum + i, l...);  // as stored, that is rounded
      });
      finish(total, [&](int64_t i, auto... l) { return load(sum + i, l...); });
    }
  }
}

template <class T>
void backward(const LayerNormBackwardTask& t) {
  for (int64_t r = 0; r < t.rows; ++r) {
    const T* x = static_cast<const T*>(t.x) + r * t.x_step;
    const T* add = static_cast<const T*>(t.add) + r * t.add_step;
    const float *dy = t.dy + r * t.dy_step, *dsum = t.dsum + r * t.dsum_step;
    float *dx = t.dx + r * t.dx_step, *dadd = t.dadd + r * t.dadd_step;
    auto s = [&](int64_t i, auto... l) { return t.add ? load(x + i, l...) + load(add + i, l...) : load(x + i, l...); };
    const float total = sum_of(t.n, [&](Vec acc, int64_t i, auto... l) { return acc + s(i, l...); });
    const Moments m = moments_of(t.n, t.eps, total, s);
    auto e = [&](int64_t i, auto... l) { return ((s(i, l...) - broadcast(m.mean)) - broadcast(m.rest)) * broadcast(m.inv); };
    auto g = [&](int64_t i, auto... l) { return load(dy + i, l...) * load(t.w + i, l...); };  // 0 past the row
    const float sum_g = sum_of(t.n, [&](Vec acc, int64_t i, auto... l) { return acc + g(i, l...); });
    const float sum_ge = sum_of(t.n, [&](Vec acc, int64_t i, auto... l) { return fma(g(i, l...), e(i, l...), acc); });
    const Vec mean_g = broadcast(float(double(sum_g) / double(t.n))), mean_ge = broadcast(float(double(sum_ge) / double(t.n)));
    if (t.dx || t.dadd)
      each(t.n, [&](int64_t i, auto... l) {
        Vec ds = broadcast(m.inv) * ((g(i, l...) - mean_g) - e(i, l...) * mean_ge);
        if (t.dsum) ds = ds + load(dsum + i, l...);
        if (t.dadd) store(dadd + i, load(dadd + i, l...) + ds, l...);
        if (t.dx) store(dx + i, t.dx == t.dsum ? ds : load(dx + i, l...) + ds, l...);
      });
    if (t.dw)
      each(t.n, [&](int64_t i, auto... l) { store(t.dw + i, fma(load(dy + i, l...), e(i, l...), load(t.dw + i, l...)), l...); });
    if (t.dbias) each(t.n, [&](int64_t i, auto... l) { store(t.dbias + i, load(t.dbias + i, l...) + load(dy + i, l...), l...); });
  }
}

}  // namespace

extern const LayerNormCpu layer_norm_cpu{{{forward<float, float>, forward<float, Bf16>, forward<float, F16>},
                                          {forward<Bf16, float>, forward<Bf16, Bf16>, forward<Bf16, F16>},
                                          {forward<F16, float>, forward<F16, Bf16>, forward<F16, F16>}},
                                         {backward<float>, backward<Bf16>, backward<F16>}};

}  // namespace ridge::RIDGE_ISA
