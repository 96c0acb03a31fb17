// The rows of rms_norm and rms_norm_backward, best first.
#include "ops/call.h"
#include "ops/rms_norm/rms_norm.h"

namespace ridge {

std::span<const Kernel<RmsNorm>> RmsNorm::kernels() {
  static const Kernel<RmsNorm> rows[] = {
      {.name = "reference", .place = Place::cpu, .isa = Isa::portable, .tier = Tier::reference, .supports = always<RmsNorm>,
       .launch = RmsNorm::reference},
  };
  return rows;
}

std::span<const Kernel<RmsNormBackward>> RmsNormBackward::kernels() {
  static const Kernel<RmsNormBackward> rows[] = {
      {.name = "reference", .place = Place::cpu, .isa = Isa::portable, .tier = Tier::reference, .supports = always<RmsNormBackward>,
       .launch = RmsNormBackward::reference},
  };
  return rows;
}

void rms_norm(Ctx& x, const RmsNorm::Args& a) { call<RmsNorm>(x, a); }
void rms_norm_backward(Ctx& x, const RmsNormBackward::Args& a) { call<RmsNormBackward>(x, a); }
OpInfo rms_norm_op() { return erase<RmsNorm>(); }
OpInfo rms_norm_backward_op() { return erase<RmsNormBackward>(); }

}  // namespace ridge
