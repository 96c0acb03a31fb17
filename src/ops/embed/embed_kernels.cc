// The rows of embed and its backward, best first.
#include "ops/call.h"
#include "ops/embed/embed.h"

namespace ridge {

std::span<const Kernel<Embed>> Embed::kernels() {
  static const Kernel<Embed> rows[] = {
      {.name = "reference", .place = Place::cpu, .isa = Isa::portable, .tier = Tier::reference, .supports = always<Embed>,
       .launch = Embed::reference},
  };
  return rows;
}

std::span<const Kernel<EmbedBackward>> EmbedBackward::kernels() {
  static const Kernel<EmbedBackward> rows[] = {
      {.name = "reference", .place = Place::cpu, .isa = Isa::portable, .tier = Tier::reference, .supports = always<EmbedBackward>,
       .launch = EmbedBackward::reference},
  };
  return rows;
}

void embed(Ctx& x, const Embed::Args& a) { call<Embed>(x, a); }
void embed_backward(Ctx& x, const EmbedBackward::Args& a) { call<EmbedBackward>(x, a); }
OpInfo embed_op() { return erase<Embed>(); }
OpInfo embed_backward_op() { return erase<EmbedBackward>(); }

}  // namespace ridge
