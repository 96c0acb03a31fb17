// The rows of adamw, best first.
#include "ops/call.h"
#include "ops/adamw/adamw.h"

namespace ridge {

std::span<const Kernel<AdamW>> AdamW::kernels() {
  static const Kernel<AdamW> rows[] = {
      {.name = "reference", .place = Place::cpu, .isa = Isa::portable, .tier = Tier::reference, .supports = always<AdamW>,
       .launch = AdamW::reference},
  };
  return rows;
}

void adamw(Ctx& x, const AdamW::Args& a) { call<AdamW>(x, a); }
OpInfo adamw_op() { return erase<AdamW>(); }

}  // namespace ridge
