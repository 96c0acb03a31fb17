// glu and its backward, vector by vector; a call's activation is a template argument of the inner loop.
#include "ops/glu/glu_cpu.h"

#include "tile/cpu/rows.h"

namespace ridge::RIDGE_ISA {
namespace {

template <Activation act>
RIDGE_INLINE Vec activated(Vec x) {
  if constexpr (act == Activation::silu)
    return silu(x);
  else if constexpr (act == Activation::gelu)
    return gelu(x);
  else if constexpr (act == Activation::gelu_tanh)
    return gelu_tanh(x);
  else
    return x;
}

// sigmoid(u) and its slope s (1 - s), from e^-|u|: 1 - s would cancel where s is near 1, and is multiplied by x.
struct Sigmoid {
  Vec s, rise;
};
RIDGE_INLINE Sigmoid sigmoid_and_slope(Vec u) {
  const Vec t = exp(-abs(u)), d = broadcast(1) / (broadcast(1) + t), small = t * d;
  return {select(u < zero(), small, d), small * d};
}

template <Activation act>
RIDGE_INLINE Vec slope(Vec x) {
  if constexpr (act == Activation::silu) {
    const Sigmoid g = sigmoid_and_slope(x);
    return fma(x, g.rise, g.s);
  } else if constexpr (act == Activation::gelu) {
    const Vec density = exp(x * x * broadcast(-0.5f)) * broadcast(0.398942280f);
    return fma(x, density, normal_cdf(x));
  } else if constexpr (act == Activation::gelu_tanh) {  // x sigmoid(u): s + x s (1 - s) u'
    const Vec square = x * x;
    const Sigmoid g = sigmoid_and_slope(x * fma(square, broadcast(0.0713548162f), broadcast(1.59576912f)));
    return fma(x * g.rise, fma(square, broadcast(3 * 0.0713548162f), broadcast(1.59576912f)), g.s);
  } else {
    return broadcast(1);
  }
}

template <class F>
RIDGE_INLINE void with(Activation act, F&& f) {
  switch (act) {
    case Activation::none: return f.template operator()<Activation::none>();
    case Activation::silu: return f.template operator()<Activation::silu>();
    case Activation::gelu: return f.template operator()<Activation::gelu>();
    case Activation::gelu_tanh: return f.template operator()<Activation::gelu_tanh>();
  }
}

template <class T, class U>
void forward(const GluTask& t) {
  with(t.act, [&]<Activation act>() {
    for (int64_t r = 0; r < t.rows; ++r) {
      const T* gate = static_cast<const T*>(t.gate) + r * t.gate_step;
      const T* up = static_cast<const T*>(t.up) + r * t.up_step;
      U* y = static_cast<U*>(t.y) + r * t.y_step;
      if (t.up)
        each(t.n, [&](int64_t i, auto... n) { store(y + i, activated<act>(load(gate + i, n...)) * load(up + i, n...), n...); });
      else
        each(t.n, [&](int64_t i, auto... n) { store(y + i, activated<act>(load(gate + i, n...)), n...); });
    }
  });
}

template <class T>
void backward(const GluBackwardTask& t) {
  with(t.act, [&]<Activation act>() {
    for (int64_t r = 0; r < t.rows; ++r) {
      const T* gate = static_cast<const T*>(t.gate) + r * t.gate_step;
      const T* up = static_cast<const T*>(t.up) + r * t.up_step;
      const float* dy = t.dy + r * t.dy_step;
      float *dgate = t.dgate + r * t.dgate_step, *dup = t.dup + r * t.dup_step;
      each(t.n, [&](int64_t i, auto... n) {
        const Vec g = load(gate + i, n...), d = load(dy + i, n...);
        Vec dg = (t.up ? d * load(up + i, n...) : d) * slope<act>(g);
        if (t.dup) store(dup + i, t.accumulate ? fma(d, activated<act>(g), load(dup + i, n...)) : d * activated<act>(g), n...);
        if (t.dgate) store(dgate + i, t.accumulate ? dg + load(dgate + i, n...) : dg, n...);
      });
    }
  });
}

}  // namespace

extern const GluCpu glu_cpu{{{forward<float, float>, forward<float, Bf16>, forward<float, F16>},
                             {forward<Bf16, float>, forward<Bf16, Bf16>, forward<Bf16, F16>},
                             {forward<F16, float>, forward<F16, Bf16>, forward<F16, F16>}},
                            {backward<float>, backward<Bf16>, backward<F16>}};

}  // namespace ridge::RIDGE_ISA
