// The truth of adamw: the formula, element by element in double. Naive for ever.
#include <cmath>

#include "ops/adamw/adamw.h"

namespace ridge {

namespace {

void update(const AdamW::Args& a, bool decay_in_gradient) {
  const double lr = a.lr.get(), step = a.step.get(), scale = a.grad_scale ? a.grad_scale.get() : 1;
  const double step_size = lr / (1 - std::pow(a.beta1, step)), root2 = std::sqrt(1 - std::pow(a.beta2, step));
  const double keep = decay_in_gradient ? 1 : 1 - lr * a.weight_decay;
  for (int64_t i = 0; i < a.p.dims[0]; ++i)
    for (int64_t j = 0; j < a.p.dims[1]; ++j)
      for (int64_t k = 0; k < a.p.dims[2]; ++k)
        for (int64_t l = 0; l < a.p.dims[3]; ++l) {
          const double p = a.p.get(i, j, k, l);
          const double g = scale * a.g.get(i, j, k, l) + (decay_in_gradient ? a.weight_decay * p : 0);
          const double m = a.beta1 * a.m.get(i, j, k, l) + (1 - a.beta1) * g;
          const double v = a.beta2 * a.v.get(i, j, k, l) + (1 - a.beta2) * g * g;
          a.m.set(m, i, j, k, l);
          a.v.set(v, i, j, k, l);
          a.p.set(p * keep - step_size * m / (std::sqrt(v) / root2 + a.eps), i, j, k, l);
        }
}

}  // namespace

void AdamW::reference(Ctx&, const Args& a, char*) { update(a, false); }
void AdamW::planted(Ctx&, const Args& a, char*) { update(a, true); }

}  // namespace ridge
