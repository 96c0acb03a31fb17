// The rows of accumulate, best first.
#include "ops/call.h"
#include "ops/accumulate/accumulate.h"

namespace ridge {

std::span<const Kernel<Accumulate>> Accumulate::kernels() {
  static const Kernel<Accumulate> rows[] = {
      {.name = "reference", .place = Place::cpu, .isa = Isa::portable, .tier = Tier::reference, .supports = always<Accumulate>,
       .launch = Accumulate::reference},
  };
  return rows;
}

void accumulate(Ctx& x, const Accumulate::Args& a) { call<Accumulate>(x, a); }
OpInfo accumulate_op() { return erase<Accumulate>(); }

}  // namespace ridge
