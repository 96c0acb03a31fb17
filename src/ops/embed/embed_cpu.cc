// embed's inner loop: a row of the table, converted and scaled.
#include "ops/embed/embed_cpu.h"

#include "tile/cpu/rows.h"

namespace ridge::RIDGE_ISA {
namespace {

template <class T, class U>
void convert(const void* from, void* to, int64_t n, float scale) {
  const T* x = static_cast<const T*>(from);
  U* y = static_cast<U*>(to);
  each(n, [&](int64_t i, auto... l) { store(y + i, load(x + i, l...) * broadcast(scale), l...); });
}

}  // namespace

extern const EmbedCpu embed_cpu{{{convert<float, float>, convert<float, Bf16>, convert<float, F16>},
                                 {convert<Bf16, float>, convert<Bf16, Bf16>, convert<Bf16, F16>},
                                 {convert<F16, float>, convert<F16, Bf16>, convert<F16, F16>}}};

}  // namespace ridge::RIDGE_ISA
