// The truth of glu and its backward, element by element in double. Naive for ever.
#include "ops/glu/glu.h"

namespace ridge {

void Glu::reference(Ctx&, const Args& a, char*) {
  for (int64_t r = 0; r < a.y.dims[0]; ++r)
    for (int64_t j = 0; j < a.y.dims[1]; ++j) a.y.set(activate(a.act, a.gate.get(r, j)) * (a.up ? a.up.get(r, j) : 1), r, j);
}

void Glu::planted(Ctx&, const Args& a, char*) {
  for (int64_t r = 0; r < a.y.dims[0]; ++r)
    for (int64_t j = 0; j < a.y.dims[1]; ++j) {
      const double g = a.gate.get(r, j);
      a.y.set(a.up ? activate(a.act, a.up.get(r, j)) * g : activate(a.act, activate(a.act, g)), r, j);
    }
}

namespace {

void backward(const GluBackward::Args& a, double gate_factor) {
  auto put = [&](const View& v, double d, int64_t r, int64_t j) { v.set(d + (a.accumulate ? v.get(r, j) : 0), r, j); };
  for (int64_t r = 0; r < a.dy.dims[0]; ++r)
    for (int64_t j = 0; j < a.dy.dims[1]; ++j) {
      const double g = a.gate.get(r, j), up = a.up ? a.up.get(r, j) : 1, dy = a.dy.get(r, j);
      if (a.dgate) put(a.dgate, dy * up * activation_slope(a.act, g) * gate_factor, r, j);
      if (a.dup) put(a.dup, dy * activate(a.act, g), r, j);
    }
}

}  // namespace

void GluBackward::reference(Ctx&, const Args& a, char*) { backward(a, 1); }
void GluBackward::planted(Ctx&, const Args& a, char*) { backward(a, 0.5); }

}  // namespace ridge
