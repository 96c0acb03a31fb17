// sample's rows, best first.
#include "ops/call.h"
#include "ops/sample/sample.h"

namespace ridge {

std::span<const Kernel<Sample>> Sample::kernels() {
  static const Kernel<Sample> rows[] = {
      {.name = "reference", .place = Place::cpu, .isa = Isa::portable, .tier = Tier::reference, .supports = always<Sample>,
       .launch = Sample::reference},
  };
  return rows;
}

void sample(Ctx& x, const Sample::Args& a) { call<Sample>(x, a); }
OpInfo sample_op() { return erase<Sample>(); }

}  // namespace ridge
