// The rows of glu and its backward, best first.
#include "ops/call.h"
#include "ops/glu/glu.h"

namespace ridge {

std::span<const Kernel<Glu>> Glu::kernels() {
  static const Kernel<Glu> rows[] = {
      {.name = "reference", .place = Place::cpu, .isa = Isa::portable, .tier = Tier::reference, .supports = always<Glu>,
       .launch = Glu::reference},
  };
  return rows;
}

std::span<const Kernel<GluBackward>> GluBackward::kernels() {
  static const Kernel<GluBackward> rows[] = {
      {.name = "reference", .place = Place::cpu, .isa = Isa::portable, .tier = Tier::reference, .supports = always<GluBackward>,
       .launch = GluBackward::reference},
  };
  return rows;
}

void glu(Ctx& x, const Glu::Args& a) { call<Glu>(x, a); }
void glu_backward(Ctx& x, const GluBackward::Args& a) { call<GluBackward>(x, a); }
OpInfo glu_op() { return erase<Glu>(); }
OpInfo glu_backward_op() { return erase<GluBackward>(); }

}  // namespace ridge
