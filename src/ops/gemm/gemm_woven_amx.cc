// gemm on woven weights with AMX tiles of bytes: both operands are whole numbers of 16 bits, v = 256 high + low, signed bytes.
//
//   256 (256 high.high + (high.low + low.high))      low.low, 2^-16 of the whole, is dropped
//
// Three tile products of bytes for one of floats, at twice the rate of bf16 ones: 1.5 times the cost of a product that keeps 8 bits of
// each operand, for 15. A row of a and a row of the weights have one scale each, since a tile sums over k: rounding is 2^-16 of a row's
// largest value, and sums are exact.
//
// The weights are the right operand, and woven codes lie as it wants them: to decode a register is a shift, a rounded high multiplication
// (vpmulhrsw) by the block's scale in fixed point, an addition, and the split into bytes. 14 instructions for 64 weights.
// An item decodes 32 rows of b (and of the gate) into its stack, then walks a block of rows of a, 32 at a time: 2 x 2 sums, first of the
// cross products, then of the high ones. a's numbers stay in the second-level cache while the items go by.
#include "ops/gemm/gemm_cpu.h"
#include "ops/gemm/gemm_epilogue.h"
#include "tile/cpu/amx.h"
#include "tile/cpu/woven.h"

namespace ridge::RIDGE_ISA {
namespace {

constexpr int kDepth = 64;                  // of k a tile
constexpr int kPanel = 2 * kTileRows;       // rows of b, and rows of a, that share a set of sums
constexpr int64_t kMostDepth = 2048;        // of k at once: a panel is then 128 kB, and so is its gate
constexpr int64_t kBlockBytes = 1 << 20;    // of a's numbers: half of the second-level cache
constexpr int64_t kMostBlock = 512;         // rows of a block: bounds the sums where k is cut
constexpr int kSums = 2 * kPanel * kPanel;  // of 32 x 32: cross products, high products

RIDGE_INLINE int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }
RIDGE_INLINE int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }
RIDGE_INLINE int64_t within(int64_t x, int64_t low, int64_t high) { return x < low ? low : smaller(x, high); }

// Rows of a an item takes: as many as fit, in even blocks.
int64_t block_of(const GemmTask& t) {
  const int64_t most = within(kBlockBytes / (2 * t.k + 1) / kPanel * kPanel, 2 * kPanel, kMostBlock);
  const int64_t blocks = ceil_div(t.m, most);
  return blocks ? ceil_div(ceil_div(t.m, blocks), kPanel) * kPanel : kPanel;
}

// ---- scratch: [row tile][depth tile][high, low][16 rows][64], then a scale a row, then a byte a row: left out
int64_t row_tile_bytes(int64_t k) { return ceil_div(k, kDepth) * 2 * kTileBytes; }
int64_t scratch(int64_t m, int64_t k) {
  return ceil_div(m, kTileRows) * (row_tile_bytes(k) + kTileRows * int64_t(sizeof(float) + 1));
}
float* scales(const GemmTask& t) { return reinterpret_cast<float*>(t.scratch + ceil_div(t.m, kTileRows) * row_tile_bytes(t.k)); }
uint8_t* flags(const GemmTask& t) { return reinterpret_cast<uint8_t*>(scales(t) + ceil_div(t.m, kTileRows) * kTileRows); }
bool left_out(const GemmTask& t, int64_t row) { return flags(t)[row]; }
int64_t pack_items(const GemmTask& t) { return ceil_div(t.m, kTileRows); }

// 64 whole numbers below 2^15 to their high and low bytes. Packing works within quarters of a register; one permutation puts them in order.
RIDGE_INLINE void split_bytes(const __m512i (&v)[4], char* high, char* low) {
  const __m512i order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15), byte = _mm512_set1_epi16(0xff);
  const __m512i a = _mm512_packs_epi32(v[0], v[1]), b = _mm512_packs_epi32(v[2], v[3]), half = _mm512_set1_epi16(128);
  const __m512i highs =
      _mm512_packs_epi16(_mm512_srai_epi16(_mm512_add_epi16(a, half), 8), _mm512_srai_epi16(_mm512_add_epi16(b, half), 8));
  const __m512i lows = _mm512_packus_epi16(_mm512_and_si512(a, byte), _mm512_and_si512(b, byte));
  _mm512_storeu_si512(high, _mm512_permutexvar_epi32(order, highs));
  _mm512_storeu_si512(low, _mm512_permutexvar_epi32(order, lows));
}

template <class T>
void pack_row(const GemmTask& t, int64_t row, char* out) {
  const T* a = reinterpret_cast<const T*>(t.a.data + row * t.a.row);
  MostBits most;
  for (int64_t k = 0; k < t.k; k += 2 * kLanes) most.see(load(a + k)), most.see(load(a + k + kLanes));  // k is a multiple of 32
  float largest = most.value();
  flags(t)[row] = !(largest < 0x1p120f);
  if (largest < 0x1p-100f) largest = 0;
  const Vec by = broadcast(largest > 0 ? kMostCode / largest : 0);
  scales(t)[row] = largest / kMostCode;
  for (int64_t k = 0; k < t.k; k += kDepth, out += 2 * kTileBytes) {
    __m512i v[4];
    for (int i = 0; i < 4; ++i)
      v[i] = k + i * kLanes < t.k ? _mm512_cvtps_epi32((load(a + k + i * kLanes) * by).v) : _mm512_setzero_si512();
    split_bytes(v, out, out + kTileBytes);
  }
}
void pack_row(const GemmTask& t, int64_t row, char* out) {
  switch (t.a.type) {
    case DType::f16: return pack_row<F16>(t, row, out);
    case DType::bf16: return pack_row<Bf16>(t, row, out);
    default: return pack_row<float>(t, row, out);
  }
}

void pack(const GemmTask& t, int64_t tile) {
  char* out = t.scratch + tile * row_tile_bytes(t.k);
  for (int r = 0; r < kTileRows; ++r) {
    const int64_t row = tile * kTileRows + r;
    if (row < t.m) {
      pack_row(t, row, out + r * 64);
    } else {
      scales(t)[row] = 0;
      for (int64_t d = 0; d < 2 * ceil_div(t.k, kDepth); ++d)
        _mm512_storeu_si512(out + d * kTileBytes + r * 64, _mm512_setzero_si512());
    }
  }
}

// ---- weights
// value = d (code - offset) + m becomes v = round(code D / 2^kFixed) + M, D and M whole: D = 2^kFixed d / scale. The scale of a row is the
// least that keeps D and v in 16 bits.
template <class W>
constexpr int kFixed = W::kCodeBits;  // code << (15 - kFixed) is a positive word, and vpmulhrsw takes 15 bits away again

template <class W>
Vec row_scales(const uint8_t* group, int64_t k) {
  constexpr float codes = (1 << W::kCodeBits) - 1, fixed = 1 << kFixed<W>;
  Vec most = zero();
  for (int64_t b = 0; b < k / W::kBlock; ++b) {
    const W at = W::open(group + b * W::kBytes, 0);
    for (int s = 0; s < W::kBlock / kWovenGroup; ++s)
      for (int h = 0; h < W::kHalves; ++h) {
        const Vec d = at.scale(s, h);
        const Vec m = W::kMinimum ? at.minimum(s) : d * broadcast(-float(1 << W::kOffsetBits));
        most = max(most, abs(d) * broadcast(fixed / 32767));
        most = max(most, max(abs(m), abs(fma(d, broadcast(codes), m))) * broadcast(1.0f / kMostCode));
      }
  }
  return most;
}

struct FixedPoint {
  __m512i d, m;  // in both words of a row's dword; m is 128 too large, for the split into bytes
};
template <class W>
RIDGE_INLINE FixedPoint fixed_point(const W& at, int s, int half, Vec inverse) {
  const Vec d = at.scale(s, half) * inverse;
  const Vec m = W::kMinimum ? at.minimum(s) * inverse : d * broadcast(-float(1 << W::kOffsetBits));
  const __m512i mask = _mm512_set1_epi32(0xffff);
  const auto words = [&](Vec x) __attribute__((always_inline)) {
    const __m512i v = _mm512_cvtps_epi32(x.v);
    return _mm512_or_si512(_mm512_and_si512(v, mask), _mm512_slli_epi32(v, 16));
  };
  return {words(d * broadcast(float(1 << kFixed<W>))), words(m + broadcast(128))};
}

// Writes 32 values of 16 rows to half a tile: 8 lines of high bytes and, a part of a panel later, of low ones.
template <class W>
RIDGE_INLINE void decode_block(const W& at, int s, Vec inverse, char* high, char* low) {
  constexpr int shift = 15 - kFixed<W>;
  const __m512i odd_mask = _mm512_set1_epi16(int16_t(0xff00)), even_mask = _mm512_set1_epi16(0xff), flip = _mm512_set1_epi8(-128);
  FixedPoint f[W::kHalves];
#pragma GCC unroll 2
  for (int h = 0; h < W::kHalves; ++h) f[h] = fixed_point(at, s, h, inverse);
  const auto put = [&](__m512i q, const FixedPoint& by, int j) __attribute__((always_inline)) {
    const __m512i even = _mm512_slli_epi16(shift < 8 ? _mm512_and_si512(q, even_mask) : q, shift);
    const __m512i odd = _mm512_slli_epi16(_mm512_srli_epi16(q, 8), shift);
    const __m512i v0 = _mm512_add_epi16(_mm512_mulhrs_epi16(even, by.d), by.m),
                  v1 = _mm512_add_epi16(_mm512_mulhrs_epi16(odd, by.d), by.m);
    constexpr int kTakeBWhereC = 0xd8;  // c ? b : a
    _mm512_storeu_si512(high + 64 * j, _mm512_ternarylogic_epi32(_mm512_srli_epi16(v0, 8), v1, odd_mask, kTakeBWhereC));
    const __m512i lows = _mm512_ternarylogic_epi32(v0, _mm512_slli_epi16(v1, 8), odd_mask, kTakeBWhereC);
    _mm512_storeu_si512(low + 64 * j, _mm512_xor_si512(lows, flip));  // v + 128 was split
  };
  each_pair<kWovenPairs>([&](auto p) __attribute__((always_inline)) {
    const CodePair q = at.template codes<p()>(s);
    const FixedPoint& by = f[p() * W::kHalves / kWovenPairs];
    put(q.first, by, 2 * p());
    put(q.second, by, 2 * p() + 1);
  });
}

// [depth tile][high 0, high 1, low 0, low 1] of 2 groups, k from k0 on. Groups past the last are zeros.
template <class W>
void decode_panel(const CpuMatrix& b, int64_t group0, int64_t groups, int64_t k0, int64_t depth, const float* row_scale,
                  char* out) {
  for (int g = 0; g < 2; ++g) {
    char* to = out + g * kTileBytes;
    const Vec scale = load(row_scale + g * kTileRows);
    const Vec inverse = select(scale == zero(), zero(), broadcast(1) / scale);
    for (int64_t k = 0; k < ceil_div(depth, kDepth) * kDepth; k += kWovenGroup) {
      char* high = to + k / kDepth * 4 * kTileBytes + k % kDepth / kWovenGroup * 8 * 64;
      char* low = high + 2 * kTileBytes;
      if (g < groups && k < depth) {
        const int64_t block = (k0 + k) / W::kBlock;
        decode_block(W::open(b.data + (group0 + g) * b.row + block * W::kBytes, 0), int((k0 + k) % W::kBlock / kWovenGroup),
                     inverse, high, low);
      } else {
        for (int i = 0; i < 8; ++i) {
          _mm512_storeu_si512(high + 64 * i, _mm512_setzero_si512());
          _mm512_storeu_si512(low + 64 * i, _mm512_setzero_si512());
        }
      }
    }
  }
}

struct Panel {
  alignas(64) char tiles[kMostDepth / kDepth * 4 * kTileBytes];
  alignas(64) float row_scale[kPanel];
};

void scale_panel(const CpuMatrix& b, int64_t group0, int64_t groups, int64_t k, Panel& p) {
  with_woven(b.type, [&]<class W>(W) {
    for (int g = 0; g < 2; ++g)
      store(p.row_scale + g * kTileRows, g < groups ? row_scales<W>(b.data + (group0 + g) * b.row, k) : zero());
  });
}
void decode_panel(const CpuMatrix& b, int64_t group0, int64_t groups, int64_t k0, int64_t depth, Panel& p) {
  with_woven(b.type, [&]<class W>(W) { decode_panel<W>(b, group0, groups, k0, depth, p.row_scale, p.tiles); });
}

// ---- products
// sums: 4 tiles of cross products, 4 of high ones; [row tile of a][group of b]. With one row tile of a the other half is left alone.
template <bool two>
RIDGE_INLINE void begin_sums(const int32_t* sums, bool first) {
  if (first) {
    tile_zero<0>(), tile_zero<1>();
    if (two) tile_zero<2>(), tile_zero<3>();
  } else {
    tile_load<0>(sums), tile_load<1>(sums + 256);
    if (two) tile_load<2>(sums + 512), tile_load<3>(sums + 768);
  }
}
template <bool two>
RIDGE_INLINE void end_sums(int32_t* sums) {
  tile_store<0>(sums, 64), tile_store<1>(sums + 256, 64);
  if (two) tile_store<2>(sums + 512, 64), tile_store<3>(sums + 768, 64);
}
template <bool two>
RIDGE_INLINE void product(const char* x0, const char* x1, const char* w) {
  tile_load<4>(x0), tile_load<6>(w);
  tile_multiply_bytes<0, 4, 6>();
  tile_load<7>(w + kTileBytes);
  tile_multiply_bytes<1, 4, 7>();
  if (two) {
    tile_load<5>(x1);
    tile_multiply_bytes<2, 5, 6>(), tile_multiply_bytes<3, 5, 7>();
  }
}

template <bool two>
void multiply_panel(const char* x0, const char* x1, const char* w, int64_t depth, int32_t* sums, bool first) {
  begin_sums<two>(sums, first);
  for (int64_t d = 0; d < depth; ++d) {
    const char *x = x0 + d * 2 * kTileBytes, *y = x1 + d * 2 * kTileBytes, *v = w + d * 4 * kTileBytes;
    product<two>(x, y, v + 2 * kTileBytes);           // high . low
    product<two>(x + kTileBytes, y + kTileBytes, v);  // low . high
  }
  end_sums<two>(sums);
  begin_sums<two>(sums + kSums / 2, first);
  for (int64_t d = 0; d < depth; ++d) product<two>(x0 + d * 2 * kTileBytes, x1 + d * 2 * kTileBytes, w + d * 4 * kTileBytes);
  end_sums<two>(sums + kSums / 2);
}

// Runs of rows of 32 x 32 whole sums that are not left out: to floats on their way to c.
void finish_panel(const GemmTask& t, int64_t row0, int64_t rows, int64_t col, const int32_t* sums, const Panel (&panels)[2]) {
  for (int64_t from = 0, to; from < rows; from = to + 1) {
    for (to = from; to < rows && !left_out(t, row0 + to);) ++to;
    const float* a_scale = scales(t) + row0 + from;
    const auto floats_of = [&](int weights) {
      return [ =, &panels ](int64_t i, int64_t j, int) __attribute__((always_inline)) {
        const int64_t r = from + i;
        const int32_t* at = sums + weights * kSums + (r / kTileRows * 2 + j / kTileRows) * 256 + r % kTileRows * kTileRows;
        const Vec cross{_mm512_cvtepi32_ps(_mm512_load_si512(at))}, high{_mm512_cvtepi32_ps(_mm512_load_si512(at + kSums / 2))};
        return fma(high, broadcast(256), cross) * (load(panels[weights].row_scale + j) * broadcast(256 * a_scale[i]));
      };
    };
    finish(t, row0 + from, to - from, col, smaller(kPanel, t.n - col), floats_of(0), floats_of(1));
  }
}

int64_t panels_of(const GemmTask& t) { return ceil_div(t.n, kPanel); }
int64_t items(const GemmTask& t) { return t.m == 0 ? 0 : ceil_div(t.m, block_of(t)) * panels_of(t); }

void multiply(const GemmTask& t, int64_t item) {
  alignas(64) Panel panels[2];                                // b's, the gate's
  alignas(64) int32_t sums[kMostBlock / kPanel * 2 * kSums];  // [pair of row tiles][b, gate]; one place when k is not cut
  const int64_t block = block_of(t), row0 = item / panels_of(t) * block, rows = smaller(block, t.m - row0);
  const int64_t col = item % panels_of(t) * kPanel, group0 = col / kTileRows, groups = smaller(2, t.n / kTileRows - group0);
  const int weights = t.gate.data ? 2 : 1;
  const bool whole = t.k <= kMostDepth;
  configure_tiles();
  for (int w = 0; w < weights; ++w) scale_panel(w ? t.gate : t.b, group0, groups, t.k, panels[w]);
  int64_t k = 0;
  do {
    const int64_t depth = smaller(kMostDepth, t.k - k);
    for (int w = 0; w < weights; ++w) decode_panel(w ? t.gate : t.b, group0, groups, k, depth, panels[w]);
    for (int64_t i = 0; i < rows; i += kPanel) {
      const char* x0 = t.scratch + (row0 + i) / kTileRows * row_tile_bytes(t.k) + k / kDepth * 2 * kTileBytes;
      const int64_t here = smaller(kPanel, rows - i);
      int32_t* s = sums + (whole ? 0 : i / kPanel * 2) * kSums;
      for (int w = 0; w < weights; ++w)
        here > kTileRows
            ? multiply_panel<true>(x0, x0 + row_tile_bytes(t.k), panels[w].tiles, ceil_div(depth, kDepth), s + w * kSums, k == 0)
            : multiply_panel<false>(x0, x0, panels[w].tiles, ceil_div(depth, kDepth), s + w * kSums, k == 0);
      if (k + depth >= t.k) finish_panel(t, row0 + i, here, col, s, panels);
    }
    k += depth;
  } while (k < t.k);
}

}  // namespace

extern const GemmTiles gemm_woven_tiles{scratch, pack_items, pack, items, multiply, left_out};

}  // namespace ridge::RIDGE_ISA
