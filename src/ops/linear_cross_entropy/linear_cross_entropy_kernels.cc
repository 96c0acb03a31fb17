// The rows of linear_cross_entropy and its backward, best first.
#include "ops/call.h"
#include "ops/linear_cross_entropy/linear_cross_entropy.h"

namespace ridge {

std::span<const Kernel<LinearCrossEntropy>> LinearCrossEntropy::kernels() {
  static const Kernel<LinearCrossEntropy> rows[] = {
      {.name = "reference", .place = Place::cpu, .isa = Isa::portable, .tier = Tier::reference, .supports = always<LinearCrossEntropy>,
       .launch = LinearCrossEntropy::reference},
  };
  return rows;
}

std::span<const Kernel<LinearCrossEntropyBackward>> LinearCrossEntropyBackward::kernels() {
  static const Kernel<LinearCrossEntropyBackward> rows[] = {
      {.name = "reference", .place = Place::cpu, .isa = Isa::portable, .tier = Tier::reference, .supports = always<LinearCrossEntropyBackward>,
       .launch = LinearCrossEntropyBackward::reference},
  };
  return rows;
}

void linear_cross_entropy(Ctx& x, const LinearCrossEntropy::Args& a) { call<LinearCrossEntropy>(x, a); }
void linear_cross_entropy_backward(Ctx& x, const LinearCrossEntropyBackward::Args& a) { call<LinearCrossEntropyBackward>(x, a); }
OpInfo linear_cross_entropy_op() { return erase<LinearCrossEntropy>(); }
OpInfo linear_cross_entropy_backward_op() { return erase<LinearCrossEntropyBackward>(); }

}  // namespace ridge
