// A square block of kLanes x kLanes 32-bit elements turned over in registers: log2(kLanes) rounds of perfect shuffles.
#pragma once
#include "tile/cpu/vec.h"

namespace ridge::RIDGE_ISA {
namespace {

using Lanes = float __attribute__((vector_size(4 * kLanes)));

// Lane pairs of (a, b) from their lower halves: a0 b0 a1 b1 ...; from the upper halves for `upper`.
template <bool upper, class V>
RIDGE_INLINE V interleave(V a, V b) {  // V is Lanes: a parameter, so that the other widths are not compiled
  constexpr int n = sizeof(V) / 4, o = upper ? n / 2 : 0;
  if constexpr (n == 4) return __builtin_shufflevector(a, b, o, n + o, o + 1, n + o + 1);
  if constexpr (n == 8) return __builtin_shufflevector(a, b, o, n + o, o + 1, n + o + 1, o + 2, n + o + 2, o + 3, n + o + 3);
  if constexpr (n == 16)
    return __builtin_shufflevector(a, b, o, n + o, o + 1, n + o + 1, o + 2, n + o + 2, o + 3, n + o + 3, o + 4, n + o + 4, o + 5,
                                   n + o + 5, o + 6, n + o + 6, o + 7, n + o + 7);
}

template <int rounds>
RIDGE_INLINE void shuffle_rounds(Lanes (&x)[kLanes]) {
  if constexpr (rounds > 0) {
    Lanes y[kLanes];
#pragma GCC unroll 8
    for (int i = 0; i < kLanes / 2; ++i) {
      y[2 * i] = interleave<false>(x[i], x[i + kLanes / 2]);
      y[2 * i + 1] = interleave<true>(x[i], x[i + kLanes / 2]);
    }
    shuffle_rounds<rounds - 1>(y);
#pragma GCC unroll 16
    for (int i = 0; i < kLanes; ++i) x[i] = y[i];
  }
}

RIDGE_INLINE void transpose(Vec (&v)[kLanes]) {
  Lanes x[kLanes];
#pragma GCC unroll 16
  for (int i = 0; i < kLanes; ++i) x[i] = Lanes(v[i].v);
  shuffle_rounds<kLanes == 16 ? 4 : kLanes == 8 ? 3 : 2>(x);
#pragma GCC unroll 16
  for (int i = 0; i < kLanes; ++i) v[i].v = x[i];
}

}  // namespace
}  // namespace ridge::RIDGE_ISA
