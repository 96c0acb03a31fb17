// softmax a row at a time: the maximum, the exponentials and their sum, the division. A float result holds the exponentials meanwhile;
// a 16-bit one computes them again, since they would be rounded twice.
#include "ops/softmax/softmax_cpu.h"

#include "tile/cpu/rows.h"

namespace ridge::RIDGE_ISA {
namespace {

constexpr float kInfinity = __builtin_inff();

template <class T, class U>
constexpr bool same = false;
template <class T>
constexpr bool same<T, T> = true;

template <class T>
RIDGE_INLINE float maximum(const T* x, int64_t n) {  // NaN is passed over, or wins: the sum tells
  auto larger = [](Vec a, Vec b) { return max(a, b); };
  return reduce_max(fold(
      n, broadcast(-kInfinity),
      [&](Vec acc, int64_t i, auto... l) { return max(past(-kInfinity, load(x + i, l...), l...), acc); }, larger));
}

template <class T, class U>
void row(const T* x, U* y, int64_t n, float scale, bool log) {
  const float top = maximum(x, n);
  if (top == -kInfinity) {  // masked throughout, or -inf and NaN
    const float all = sum_of(n, [&](Vec acc, int64_t i, auto... l) { return acc + load(x + i, l...); });
    const float value = all != all ? all : log ? -kInfinity : 0;
    return each(n, [&](int64_t i, auto... l) { store(y + i, broadcast(value), l...); });
  }
  auto shifted = [&](int64_t i, auto... l) { return (load(x + i, l...) - broadcast(top)) * broadcast(scale); };
  constexpr bool keep = same<U, float>;
  const float sum = sum_of(n, [&](Vec acc, int64_t i, auto... l) {
    const Vec e = exp(shifted(i, l...));
    if constexpr (keep)
      if (!log) store(y + i, e, l...);
    return acc + past(0, e, l...);
  });
  if (log) {
    const Vec less = broadcast(float(__builtin_log(double(sum))));
    return each(n, [&](int64_t i, auto... l) { store(y + i, shifted(i, l...) - less, l...); });
  }
  const Vec share = broadcast(1 / sum);
  each(n, [&](int64_t i, auto... l) {
    if constexpr (keep)
      store(y + i, load(y + i, l...) * share, l...);
    else
      store(y + i, exp(shifted(i, l...)) * share, l...);
  });
}

template <class T, class U>
void forward(const SoftmaxTask& t) {
  for (int64_t r = 0; r < t.rows; ++r)
    row(static_cast<const T*>(t.x) + r * t.x_step, static_cast<U*>(t.y) + r * t.y_step, t.n, t.scale, t.log);
}

template <class T>
void backward(const SoftmaxBackwardTask& t) {
  for (int64_t r = 0; r < t.rows; ++r) {
    const T* y = static_cast<const T*>(t.y) + r * t.y_step;
    const float* dy = t.dy + r * t.dy_step;
    float* dx = t.dx + r * t.dx_step;
    if (maximum(y, t.n) == (t.log ? -kInfinity : 0)) continue;  // masked throughout
    const Vec scale = broadcast(t.scale);
    if (t.log) {
      const Vec sum = broadcast(sum_of(t.n, [&](Vec acc, int64_t i, auto... l) { return acc + load(dy + i, l...); }));
      each(t.n, [&](int64_t i, auto... l) {
        store(dx + i, fma(scale, load(dy + i, l...) - exp(load(y + i, l...)) * sum, load(dx + i, l...)), l...);
      });
    } else {
      const Vec sum =
          broadcast(sum_of(t.n, [&](Vec acc, int64_t i, auto... l) { return fma(load(dy + i, l...), load(y + i, l...), acc); }));
      each(t.n, [&](int64_t i, auto... l) {
        store(dx + i, fma(scale * load(y + i, l...), load(dy + i, l...) - sum, load(dx + i, l...)), l...);
      });
    }
  }
}

}  // namespace

extern const SoftmaxCpu softmax_cpu{{{forward<float, float>, forward<float, Bf16>, forward<float, F16>},
                                     {forward<Bf16, float>, forward<Bf16, Bf16>, forward<Bf16, F16>},
                                     {forward<F16, float>, forward<F16, Bf16>, forward<F16, F16>}},
                                    {backward<float>, backward<Bf16>, backward<F16>}};

}  // namespace ridge::RIDGE_ISA
