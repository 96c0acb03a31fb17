// rms_norm a row at a time: one pass for the squares (and the sum), one that writes. The row stays in the first-level cache between
// the two, so memory sees each element once.
#include "ops/rms_norm/rms_norm_cpu.h"

#include "tile/cpu/rows.h"

namespace ridge::RIDGE_ISA {
namespace {

float inverse_rms(float squares, int64_t n, double eps) { return float(1 / __builtin_sqrt(double(squares) / double(n) + eps)); }

template <class T, class U>
void forward(const RmsNormTask& t) {
  for (int64_t r = 0; r < t.rows; ++r) {
    const T* x = static_cast<const T*>(t.x) + r * t.x_step;
    const T* add = static_cast<const T*>(t.add) + r * t.add_step;
    T* sum = static_cast<T*>(t.sum) + r * t.sum_step;
    U* y = static_cast<U*>(t.y) + r * t.y_step;
    auto write = [&](float inv, auto&& s) {
      each(t.n, [&](int64_t i, auto... n) { store(y + i, s(i, n...) * broadcast(inv) * load(t.w + i, n...), n...); });
    };
    if (!t.add) {
      const float squares = sum_of(t.n, [&](Vec acc, int64_t i, auto... n) {
        const Vec s = load(x + i, n...);
        return fma(s, s, acc);
      });
      write(inverse_rms(squares, t.n, t.eps), [&](int64_t i, auto... n) { return load(x + i, n...); });
    } else if (!t.sum) {
      const float squares = sum_of(t.n, [&](Vec acc, int64_t i, auto... n) {
        const Vec s = load(x + i, n...) + load(add + i, n...);
        return fma(s, s, acc);
      });
      write(inverse_rms(squares, t.n, t.eps), [&](int64_t i, auto... n) { return load(x + i, n...) + load(add + i, n...); });
    } else {
      const float squares = sum_of(t.n, [&](Vec acc, int64_t i, auto... n) {
        store(sum + i, load(x + i, n...) + load(add + i, n...), n...);
        const Vec s = load(sum + i, n...);  // as stored, that is rounded
        return fma(s, s, acc);
      });
      write(inverse_rms(squares, t.n, t.eps), [&](int64_t i, auto... n) { return load(sum + i, n...); });
    }
  }
}

template <class T>
void backward(const RmsNormBackwardTask& t) {
  for (int64_t r = 0; r < t.rows; ++r) {
    const T* x = static_cast<const T*>(t.x) + r * t.x_step;
    const T* add = static_cast<const T*>(t.add) + r * t.add_step;
    const float *dy = t.dy + r * t.dy_step, *dsum = t.dsum + r * t.dsum_step;
    float *dx = t.dx + r * t.dx_step, *dadd = t.dadd + r * t.dadd_step;
    auto s_at = [&](int64_t i, auto... n) { return t.add ? load(x + i, n...) + load(add + i, n...) : load(x + i, n...); };
    const float squares = sum_of(t.n, [&](Vec acc, int64_t i, auto... n) {
      const Vec s = s_at(i, n...);
      return fma(s, s, acc);
    });
    const float dot = sum_of(
        t.n, [&](Vec acc, int64_t i, auto... n) { return fma(load(dy + i, n...) * load(t.w + i, n...), s_at(i, n...), acc); });
    const float inv = inverse_rms(squares, t.n, t.eps);
    const Vec factor = broadcast(inv), back = broadcast(float(-double(inv) * inv * inv * dot / double(t.n)));
    if (t.dx || t.dadd)
      each(t.n, [&](int64_t i, auto... n) {
        Vec ds = fma(s_at(i, n...), back, factor * (load(dy + i, n...) * load(t.w + i, n...)));
        if (t.dsum) ds = ds + load(dsum + i, n...);
        if (t.dadd) store(dadd + i, load(dadd + i, n...) + ds, n...);
        if (t.dx) store(dx + i, t.dx == t.dsum ? ds : load(dx + i, n...) + ds, n...);
      });
    if (t.dw)
      each(t.n, [&](int64_t i, auto... n) {
        store(t.dw + i, fma(load(dy + i, n...) * factor, s_at(i, n...), load(t.dw + i, n...)), n...);
      });
  }
}

}  // namespace

extern const RmsNormCpu rms_norm_cpu{{{forward<float, float>, forward<float, Bf16>, forward<float, F16>},
                                      {forward<Bf16, float>, forward<Bf16, Bf16>, forward<Bf16, F16>},
                                      {forward<F16, float>, forward<F16, Bf16>, forward<F16, F16>}},
                                     {backward<float>, backward<Bf16>, backward<F16>}};

}  // namespace ridge::RIDGE_ISA
