// rope's rows, best first.
#include "ops/call.h"
#include "ops/rope/rope.h"

namespace ridge {

std::span<const Kernel<Rope>> Rope::kernels() {
  static const Kernel<Rope> rows[] = {
      {.name = "reference", .place = Place::cpu, .isa = Isa::portable, .tier = Tier::reference, .supports = always<Rope>, .launch = Rope::reference},
  };
  return rows;
}

std::span<const Kernel<RopeBackward>> RopeBackward::kernels() {
  static const Kernel<RopeBackward> rows[] = {
      {.name = "reference", .place = Place::cpu, .isa = Isa::portable, .tier = Tier::reference, .supports = always<RopeBackward>,
       .launch = RopeBackward::reference},
  };
  return rows;
}

void rope(Ctx& x, const Rope::Args& a) { call<Rope>(x, a); }
void rope_backward(Ctx& x, const RopeBackward::Args& a) { call<RopeBackward>(x, a); }
OpInfo rope_op() { return erase<Rope>(); }
OpInfo rope_backward_op() { return erase<RopeBackward>(); }

}  // namespace ridge
