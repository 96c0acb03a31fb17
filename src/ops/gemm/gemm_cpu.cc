// gemm's exact rows, one source for every ISA: f32 products, f32 sums, each sum in a fixed order that is a function of k alone.
//
// stream: c = a . b^T for few rows of a, bound by the bytes of b. kRows rows of b at a time are decoded in registers and multiplied
//   with every row of a; b is read once, from the mapped file. Q4_1 on AVX-512 with one row: 7.75 vector instructions a block
//   of 32, two a cycle: 3.9 cycles for 20 bytes, as fast as a core's share of DRAM delivers.
// panel: for many rows. A panel of kPanelCols rows of b is decoded and packed to f32 once for a block of rows of a, which is packed
//   too (once a call); the register kernel is tile/cpu/micro_gemm.h. A block of a stays in the second-level cache while the
//   panels go by.
#include "ops/gemm/gemm_cpu.h"

#include "ops/gemm/gemm_epilogue.h"
#include "tile/cpu/micro_gemm.h"
#include "tile/cpu/pack.h"

namespace ridge::RIDGE_ISA {
namespace {

RIDGE_INLINE int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }
RIDGE_INLINE int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }

// ---- panel
constexpr int64_t kPanelDepth = 1024;     // a panel is 128 kB on AVX-512, on the worker's stack
constexpr int64_t kMostStrips = 32;       // of a block: bounds the sums on the stack
constexpr int64_t kBlockBytes = 1 << 20;  // of packed a: half of the second-level cache

struct Strips {
  int64_t count, rows;  // rows: of all but the last
};
Strips strips_of(int64_t m) {
  const int64_t count = ceil_div(m, kStripRows);
  if (count == 0) return {0, 0};
  const int64_t rows = ceil_div(m, count);  // evenly: 16 rows are two strips of 8, not 14 and 2
  return {ceil_div(m, rows), rows};
}
int64_t strip_floats(int64_t k) { return k * kStripWidth; }
int64_t strips_per_block(int64_t k) {
  const int64_t fit = kBlockBytes / (strip_floats(k) * 4 + 1);
  return fit < 8 ? 8 : smaller(fit, kMostStrips);
}

int64_t panel_scratch(int64_t m, int64_t k) { return strips_of(m).count * strip_floats(k) * 4; }
int64_t panel_pack_items(const GemmTask& t) { return strips_of(t.m).count; }
void panel_pack(const GemmTask& t, int64_t strip) {
  const int64_t rows = strips_of(t.m).rows;
  pack(t.a, strip * rows, int(smaller(rows, t.m - strip * rows)), 0, t.k,
       reinterpret_cast<float*>(t.scratch) + strip * strip_floats(t.k), kStripWidth);
}

int64_t panel_items(const GemmTask& t) {
  return ceil_div(strips_of(t.m).count, strips_per_block(t.k)) * ceil_div(t.n, kPanelCols);
}
void panel(const GemmTask& t, int64_t item) {
  alignas(64) float panel_of_b[kPanelDepth * kPanelCols];
  alignas(64) float sums[2][kMostStrips * kStripRows * kPanelCols];
  const int64_t panels = ceil_div(t.n, kPanelCols), col = item % panels * kPanelCols, cols = smaller(kPanelCols, t.n - col);
  const Strips strips = strips_of(t.m);
  const int64_t from = item / panels * strips_per_block(t.k), to = smaller(from + strips_per_block(t.k), strips.count);
  const float* a = reinterpret_cast<const float*>(t.scratch);
  for (int w = 0; w < (t.gate.data ? 2 : 1); ++w) {
    int64_t k = 0;
    do {
      const int64_t depth = smaller(kPanelDepth, t.k - k);
      pack(w ? t.gate : t.b, col, int(cols), k, depth, panel_of_b, kPanelCols);
      for (int64_t s = from; s < to; ++s)
        micro_gemm_for(int(smaller(strips.rows, t.m - s * strips.rows)))(a + s * strip_floats(t.k) + k * kStripWidth, panel_of_b,
                                                                         depth, sums[w] + (s - from) * strips.rows * kPanelCols,
                                                                         k == 0);
      k += depth;
    } while (k < t.k);
  }
  const int64_t row = from * strips.rows;
  finish(t, row, smaller(to * strips.rows, t.m) - row, col, cols, sums[0], t.gate.data ? sums[1] : nullptr, kPanelCols);
}

// ---- stream
constexpr int kStreamCols = 32;                    // rows of b an item
constexpr int kStreamRows = kLanes == 16 ? 8 : 4;  // rows of a at a time: with fewer registers an item's b is read twice, from L1

// Rows of b at a time: as many sums as registers allow beside the decoded values.
constexpr int stream_rows(int m) {
  constexpr int most = kLanes == 16 ? 16 : 8;
  return 4 * m <= most ? 4 : 2 * m <= most ? 2 : 1;
}

// sums[m][kStreamCols] of m dense rows of a and `cols` rows of b, from row `col` on.
template <class W, int m>
void stream_block(const uint8_t* a, int64_t a_row, int64_t depth, const CpuMatrix& b, int64_t col, int64_t cols, float* sums) {
  constexpr int kRows = stream_rows(m);
  const int64_t groups = depth / kGroup;
  for (int64_t j = 0; j < cols; j += kRows) {
    const uint8_t* row[kRows];
    Vec s[kRows][m];
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) {
      row[r] = b.data + (col + smaller(j + r, cols - 1)) * b.row;  // beyond the last: the last again, and its sum is dropped
      for (int i = 0; i < m; ++i) s[r][i] = zero();
    }
    const auto multiply = [&](const GroupVecs(&w)[kRows], int64_t k, int n) __attribute__((always_inline)) {
#pragma GCC unroll 8
      for (int v = 0; v < kGroupVecs; ++v) {
        if (v * kLanes >= n) break;
#pragma GCC unroll 8
        for (int i = 0; i < m; ++i) {
          const float* x = reinterpret_cast<const float*>(a + i * a_row) + k + v * kLanes;
          const Vec xs = n - v * kLanes >= kLanes ? load(x) : load(x, n - v * kLanes);
#pragma GCC unroll 8
          for (int r = 0; r < kRows; ++r) s[r][i] = fma(w[r][v], xs, s[r][i]);
        }
      }
    };
    for (int64_t from = 0; from < groups; from += W::kSpan) {
      const int here = int(smaller(W::kSpan, groups - from));
      const uint8_t* at[kRows];
      typename W::Scales scales[kRows];
#pragma GCC unroll 8
      for (int r = 0; r < kRows; ++r) {
        at[r] = W::span(row[r], from);
        scales[r].read(at[r], here);
        // The same place of the rows after these: the hardware's own prefetch stops at each short row, and decoding then waits.
        for (int64_t line = 0; line < W::span(nullptr, W::kSpan) - W::span(nullptr, 0); line += 64)
          __builtin_prefetch(at[r] + kRows * b.row + line);
      }
      for (int g = 0; g < here; g += W::kPeriod)
        unrolled<W::kPeriod>([&](auto i) __attribute__((always_inline)) {
          GroupVecs w[kRows];
#pragma GCC unroll 8
          for (int r = 0; r < kRows; ++r) W::template group<i()>(at[r], g + i(), scales[r], w[r]);
          multiply(w, (from + g + i()) * kGroup, kGroup);
        });
    }
    if constexpr (requires(GroupVecs & w) { W::tail(row[0], 0, w); })
      if (const int rest = int(depth % kGroup)) {
        GroupVecs w[kRows];
        for (int r = 0; r < kRows; ++r) W::tail(W::span(row[r], groups), rest, w[r]);
        multiply(w, groups * kGroup, rest);
      }
    for (int r = 0; r < kRows && j + r < cols; ++r)
      for (int i = 0; i < m; ++i) sums[i * kStreamCols + j + r] = reduce_add(s[r][i]);
  }
}

template <class W, int... m>
auto stream_table(std::integer_sequence<int, m...>) {
  static constexpr decltype(&stream_block<W, 1>) table[] = {stream_block<W, m + 1>...};
  return table;
}
void stream_products(const GemmTask& t, const CpuMatrix& b, int64_t col, int64_t cols, float* sums) {
  with_reader(b.type, [&]<class W>(W) {
    const auto table = stream_table<W>(std::make_integer_sequence<int, kStreamRows>{});
    for (int64_t i = 0; i < t.m; i += kStreamRows)
      table[smaller(kStreamRows, t.m - i) - 1](t.a.data + i * t.a.row, t.a.row, t.k, b, col, cols, sums + i * kStreamCols);
  });
}

void widen(const GemmTask& t) {
  float* rows = reinterpret_cast<float*>(t.scratch);
  with_reader(t.a.type, [&]<class W>(W) {
    using T = typename ElementOf<W>::T;
    if constexpr (!std::is_void_v<T>)
      for (int64_t i = 0; i < t.m; ++i) {
        const T* row = reinterpret_cast<const T*>(t.a.data + i * t.a.row);
        if (t.a.step == int64_t(sizeof(T)))
          each_vec(t.k, [&](int64_t k, int lanes) { store(rows + i * t.k + k, load(row + k, lanes), lanes); });
        else
          pack_elements<T>(t.a, i, 1, 0, t.k, rows + i * t.k, 1);
      }
  });
}

int64_t stream_items(const GemmTask& t) { return t.m ? ceil_div(t.n, kStreamCols) : 0; }
void stream(const GemmTask& t, int64_t item) {
  alignas(64) float sums[2][kMostStreamRows * kStreamCols];
  const int64_t col = item * kStreamCols, cols = smaller(kStreamCols, t.n - col);
  stream_products(t, t.b, col, cols, sums[0]);
  if (t.gate.data) stream_products(t, t.gate, col, cols, sums[1]);
  finish(t, 0, t.m, col, cols, sums[0], t.gate.data ? sums[1] : nullptr, kStreamCols);
}

bool reads(DType type) {
  return with_reader(type, [](auto) {});
}

}  // namespace

extern const GemmCpu gemm_cpu =
    kOwnWidth ? GemmCpu{panel_scratch, panel_pack_items, panel_pack, panel_items, panel, widen, stream_items, stream, reads}
              : GemmCpu{};

}  // namespace ridge::RIDGE_ISA
