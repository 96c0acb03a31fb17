// attention's rows, best first.
#include "ops/attention/attention.h"
#include "ops/call.h"

namespace ridge {

std::span<const Kernel<Attention>> Attention::kernels() {
  static const Kernel<Attention> rows[] = {
      {.name = "reference", .place = Place::cpu, .isa = Isa::portable, .tier = Tier::reference, .supports = always<Attention>, .launch = Attention::reference},
  };
  return rows;
}

std::span<const Kernel<AttentionBackward>> AttentionBackward::kernels() {
  static const Kernel<AttentionBackward> rows[] = {
      {.name = "reference", .place = Place::cpu, .isa = Isa::portable, .tier = Tier::reference, .supports = always<AttentionBackward>,
       .launch = AttentionBackward::reference},
  };
  return rows;
}

void attention(Ctx& x, const Attention::Args& a) { call<Attention>(x, a); }
void attention_backward(Ctx& x, const AttentionBackward::Args& a) { call<AttentionBackward>(x, a); }
OpInfo attention_op() { return erase<Attention>(); }
OpInfo attention_backward_op() { return erase<AttentionBackward>(); }

}  // namespace ridge
