// The register kernel of exact f32 products: sums[rows][kPanelCols] += a strip . b strip over k, each sum one chain of fma in order
// of k, so a row's result depends neither on how many rows its tile has nor on how k was cut.
// 14 x 2 vectors on AVX-512 (28 of 32 registers are sums), 6 x 2 elsewhere (12 of 16).
#pragma once
#include "tile/cpu/decode.h"

namespace ridge::RIDGE_ISA {
namespace {

constexpr int kStripRows = kLanes == 16 ? 14 : 6;                         // rows of a that share a load of b
constexpr int kStripWidth = (kStripRows + kLanes - 1) / kLanes * kLanes;  // a's strips are [k][kStripWidth]
constexpr int kPanelCols = 2 * kLanes;                                    // b's strips are [k][kPanelCols]

template <int rows>
void micro_gemm(const float* a, const float* b, int64_t depth, float* sums, bool first) {
  Vec s[rows][2];
#pragma GCC unroll 16
  for (int r = 0; r < rows; ++r)
    for (int v = 0; v < 2; ++v) s[r][v] = first ? zero() : load(sums + r * kPanelCols + v * kLanes);
  for (int64_t k = 0; k < depth; ++k, a += kStripWidth, b += kPanelCols) {
    const Vec b0 = load(b), b1 = load(b + kLanes);
#pragma GCC unroll 16
    for (int r = 0; r < rows; ++r) {
      const Vec x = broadcast(a[r]);
      s[r][0] = fma(x, b0, s[r][0]);
      s[r][1] = fma(x, b1, s[r][1]);
    }
  }
#pragma GCC unroll 16
  for (int r = 0; r < rows; ++r)
    for (int v = 0; v < 2; ++v) store(sums + r * kPanelCols + v * kLanes, s[r][v]);
}

using MicroGemm = void (*)(const float* a, const float* b, int64_t depth, float* sums, bool first);

template <int... rows>
inline MicroGemm micro_gemm_for(int n, std::integer_sequence<int, rows...>) {
  static constexpr MicroGemm table[] = {micro_gemm<rows + 1>...};
  return table[n - 1];
}
inline MicroGemm micro_gemm_for(int rows) { return micro_gemm_for(rows, std::make_integer_sequence<int, kStripRows>{}); }

}  // namespace
}  // namespace ridge::RIDGE_ISA
