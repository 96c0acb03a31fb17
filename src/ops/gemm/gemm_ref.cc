// The truth of gemm: three loops in double. Naive for ever.
#include "ops/gemm/gemm.h"

namespace ridge {

namespace {

void product(const Gemm::Args& g, int64_t depth) {
  auto dot = [&](const View& w, const View& bias, int64_t i, int64_t j) {
    double s = 0;
    for (int64_t k = 0; k < depth; ++k) s += g.a.get(i, k) * w.get(j, k);
    return g.scale * s + (bias ? bias.get(j) : 0);
  };
  for (int64_t i = 0; i < g.c.dims[0]; ++i)
    for (int64_t j = 0; j < g.c.dims[1]; ++j) {
      double y = dot(g.b, g.bias, i, j);
      y = g.gate ? y * activate(g.act, dot(g.gate, g.gate_bias, i, j)) : activate(g.act, y);
      g.c.set(y + (g.residual ? g.residual.get(i, j) : 0), i, j);
    }
}

}  // namespace

void Gemm::reference(Ctx&, const Args& g, char*) { product(g, g.a.dims[1]); }
void Gemm::planted(Ctx&, const Args& g, char*) { product(g, g.a.dims[1] - 1); }

}  // namespace ridge
