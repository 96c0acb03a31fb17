// adamw's inner loop. p (1 - decay) is computed as p - decay p: 1 - lr weight_decay has few digits of the decay left in f32.
#include "ops/adamw/adamw_cpu.h"

#include "tile/cpu/rows.h"

namespace ridge::RIDGE_ISA {
namespace {

template <class T>
void update(void* to, float* m, float* v, const float* g, int64_t n, const AdamWFactors& f) {
  T* p = static_cast<T*>(to);
  each(n, [&](int64_t i, auto... l) {
    const Vec grad = load(g + i, l...) * broadcast(f.grad_scale);
    const Vec mean = fma(load(m + i, l...), broadcast(f.beta1), grad * broadcast(f.rest1));
    const Vec square = fma(load(v + i, l...), broadcast(f.beta2), grad * grad * broadcast(f.rest2));
    store(m + i, mean, l...);
    store(v + i, square, l...);
    const Vec old = load(p + i, l...), root = fma(sqrt(square), broadcast(f.unbias2), broadcast(f.eps));
    const Vec decayed = fma(old, broadcast(-f.decay), old);
    store(p + i, fma(broadcast(-f.step_size), mean / root, decayed), l...);
  });
}

}  // namespace

extern const AdamWCpu adamw_cpu{{update<float>, update<Bf16>, update<F16>}};

}  // namespace ridge::RIDGE_ISA
