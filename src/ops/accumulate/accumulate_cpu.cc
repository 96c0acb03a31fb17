// accumulate's inner loops: a row into a row, and rows summed column by column.
#include "ops/accumulate/accumulate_cpu.h"

#include "tile/cpu/rows.h"

namespace ridge::RIDGE_ISA {
namespace {

template <class T, class U>
void add(const void* from, void* to, int64_t n, float scale) {
  const T* x = static_cast<const T*>(from);
  U* y = static_cast<U*>(to);
  each(n, [&](int64_t i, auto... l) { store(y + i, fma(broadcast(scale), load(x + i, l...), load(y + i, l...)), l...); });
}

// A vector of columns at a time over 64 rows, so that no sum of many rows runs through one accumulator.
template <class T>
void sum_rows(const void* from, int64_t step, int64_t rows, int64_t n, float* sum) {
  const T* x = static_cast<const T*>(from);
  for (int64_t r = 0; r < rows; r += 64) {
    const int64_t end = r + 64 < rows ? r + 64 : rows;
    each(n, [&](int64_t i, auto... l) {
      Vec part = zero();
      for (int64_t k = r; k < end; ++k) part = part + load(x + k * step + i, l...);
      store(sum + i, load(sum + i, l...) + part, l...);
    });
  }
}

}  // namespace

extern const AccumulateCpu accumulate_cpu{{{add<float, float>, add<float, Bf16>, add<float, F16>},
                                           {add<Bf16, float>, add<Bf16, Bf16>, add<Bf16, F16>},
                                           {add<F16, float>, add<F16, Bf16>, add<F16, F16>}},
                                          {sum_rows<float>, sum_rows<Bf16>, sum_rows<F16>}};

}  // namespace ridge::RIDGE_ISA
