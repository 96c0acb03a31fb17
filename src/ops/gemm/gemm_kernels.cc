// gemm's rows, best first.
#include "ops/call.h"
#include "ops/gemm/gemm.h"

namespace ridge {

std::span<const Kernel<Gemm>> Gemm::kernels() {
  static const Kernel<Gemm> rows[] = {
      {.name = "reference", .place = Place::cpu, .isa = Isa::portable, .tier = Tier::reference, .supports = always<Gemm>, .launch = Gemm::reference},
  };
  return rows;
}

void gemm(Ctx& x, const Gemm::Args& a) { call<Gemm>(x, a); }
OpInfo gemm_op() { return erase<Gemm>(); }

}  // namespace ridge
