// gemm on woven weights (tile/cpu/woven.h): sums of whole numbers, one float multiplication for 32 of them.
//
// A call first turns a's rows into whole numbers of 16 bits, a scale for every 32. Then each item takes a group of 16 rows of the weights and
// all rows of a: codes go to registers once for up to kMostTokens rows of a, a row of the weights in each lane, so nothing is summed across
// lanes. With byte products (VNNI) a number is two signed bytes, and a block costs 16 instructions for 16 x 32 weights and a row of a,
// beside 12 to spread the codes and 5 to scale. Q4_1 and one row: 35 instructions, two a cycle, for 320 bytes: 18 bytes a cycle, more
// than memory gives. Without them numbers stay words, and a block is 32 multiply-adds of pairs and as many additions.
//
// `fast` rounds a to 8 bits for every 32 values instead: half the products.
// A row of a that holds an infinity or NaN is left out: no scale brings it to whole numbers.
#include "ops/gemm/gemm_cpu.h"
#include "ops/gemm/gemm_epilogue.h"
#include "tile/cpu/woven.h"

namespace ridge::RIDGE_ISA {
namespace {

#if defined(__AVX2__) && !defined(RIDGE_ISA_amx)  // the amx level has its own (gemm_woven_amx.cc), and vnni's

RIDGE_INLINE int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }

constexpr int kMostTokens = kLanes == 16 ? 8 : 4;  // rows of a at a time
constexpr int kAhead = 4096;    // bytes that memory is asked for early: the weights are one stream, across groups too
constexpr int kSumsRows = 64;   // of a that an item finishes at once: bounds the sums on its stack
constexpr int kSumsGroups = 4;  // likewise of b: c is written in runs of 4 cache lines
constexpr int kSumsCols = kSumsGroups * kWovenRows;
constexpr int64_t kPieceBytes = 24 << 10;  // of weights between two passes over rows of a: half of the first-level cache
constexpr int64_t kItemBytes = 64 << 10;  // of weights an item reads: long enough a stream, and enough items for threads to share

// ---- scratch: [block of kMostTokens rows][k / 32][row][64] numbers, so that a block is one stream; scales likewise; a byte a row: left out
int64_t groups_of(int64_t k) { return k / kWovenGroup; }
int64_t scratch(int64_t m, int64_t k) { return m * groups_of(k) * int64_t(kQuantisedBytes + sizeof(QuantisedScale)) + m; }
RIDGE_INLINE int64_t tokens_beside(const GemmTask& t, int64_t row) {
  return smaller(kMostTokens, t.m - row / kMostTokens * kMostTokens);
}
int64_t place_of(const GemmTask& t, int64_t row) {  // of a row's first group, counted in groups of rows
  return row / kMostTokens * kMostTokens * groups_of(t.k) + row % kMostTokens;
}
int8_t* numbers(const GemmTask& t, int64_t row) {
  return reinterpret_cast<int8_t*>(t.scratch) + place_of(t, row) * kQuantisedBytes;
}
QuantisedScale* all_scales(const GemmTask& t) {
  return reinterpret_cast<QuantisedScale*>(t.scratch + t.m * groups_of(t.k) * kQuantisedBytes);
}
QuantisedScale* scales(const GemmTask& t, int64_t row) { return all_scales(t) + place_of(t, row); }
uint8_t* flags(const GemmTask& t) { return reinterpret_cast<uint8_t*>(all_scales(t) + t.m * groups_of(t.k)); }
bool left_out(const GemmTask& t, int64_t row) { return flags(t)[row]; }

// ---- a to whole numbers
#if defined(__AVX512F__)
RIDGE_INLINE __m512i whole(Vec x) { return _mm512_cvtps_epi32(x.v); }
RIDGE_INLINE int32_t sum_of(__m512i v) { return _mm512_reduce_add_epi32(v); }
#else
RIDGE_INLINE __m256i whole(Vec x) { return _mm256_cvtps_epi32(x.v); }
RIDGE_INLINE int32_t sum_of(__m256i v) {
  __m128i x = _mm_add_epi32(_mm256_castsi256_si128(v), _mm256_extracti128_si256(v, 1));
  x = _mm_add_epi32(x, _mm_shuffle_epi32(x, 0x4e));
  return _mm_cvtsi128_si32(_mm_add_epi32(x, _mm_shuffle_epi32(x, 0xb1)));
}
#endif

RIDGE_INLINE void put_numbers(const Ints (&v)[kWovenGroup / kLanes], bool fast, int8_t* to) {
#if defined(__AVX512VNNI__)
  for (int i = 0; i < 2; ++i) {
    auto* bytes = reinterpret_cast<__m128i*>(to + 16 * i);
    if (fast) {
      _mm_storeu_si128(bytes, _mm512_cvtepi32_epi8(v[i]));
    } else {
      const Ints high = _mm512_srai_epi32(_mm512_add_epi32(v[i], _mm512_set1_epi32(128)), 8);
      _mm_storeu_si128(bytes, _mm512_cvtepi32_epi8(high));
      _mm_storeu_si128(bytes + 2, _mm512_cvtepi32_epi8(v[i]));  // the low byte of v - 256 high is that of v
    }
  }
#else
  (void)fast;
  alignas(64) int32_t x[kWovenGroup];
  for (int i = 0; i < kWovenGroup / kLanes; ++i) __builtin_memcpy(x + i * kLanes, &v[i], sizeof v[i]);
  auto* words = reinterpret_cast<int16_t*>(to);
  for (int k = 0; k < kWovenGroup; k += 4) {
    words[k] = int16_t(x[k]), words[k + 1] = int16_t(x[k + 2]);
    words[k + 2] = int16_t(x[k + 1]), words[k + 3] = int16_t(x[k + 3]);
  }
#endif
}

void quantise_row(const GemmTask& t, int64_t row, bool fast) {
  constexpr int n = kWovenGroup / kLanes;
  const float most_code = fast ? 127 : kMostCode;
  const int64_t beside = tokens_beside(t, row);
  int8_t* to = numbers(t, row);
  QuantisedScale* scale = scales(t, row);
  const uint8_t* a = t.a.data + row * t.a.row;
  bool finite = true;
  for (int64_t g = 0; g < groups_of(t.k); ++g, to += beside * kQuantisedBytes, scale += beside) {
    Vec x[n], most = zero();
    for (int i = 0; i < n; ++i) {
      x[i] = load_as(t.a.type, a, g * kWovenGroup + i * kLanes, kLanes);
      most = max(abs(x[i]), most);
    }
    float largest = reduce_max(most);
    Vec odd = zero();  // x - x: 0, or NaN for what is not finite (max lets NaN by)
    for (int i = 0; i < n; ++i) odd = odd + (x[i] - x[i]);
    finite = finite && reduce_add(odd) == 0 && largest < 0x1p120f;
    if (largest < 0x1p-100f) largest = 0;  // its scale would be no normal number
    const float by = largest > 0 ? most_code / largest : 0;
    Ints v[n];
    for (int i = 0; i < n; ++i) v[i] = whole(x[i] * broadcast(by));
    scale->scale = largest / most_code;
    for (int h = 0; h < 2; ++h) scale->half[h] = kLanes == 16 ? sum_of(v[h]) : sum_of(v[2 * h % n]) + sum_of(v[(2 * h + 1) % n]);
    scale->sum = scale->scale * float(scale->half[0] + scale->half[1]);
    put_numbers(v, fast, to);
  }
  flags(t)[row] = !finite;
}

// ---- products
// Sums of codes times numbers for some rows of a; `x` is where the first row's numbers lie, the others' follow.
template <int tokens, bool fast>
struct BlockSums {
#if defined(__AVX512VNNI__)
  Ints high[tokens], low[tokens];
  RIDGE_INLINE void begin(int i, Ints start) { fast ? high[i] = start : (high[i] = no_ints(), low[i] = start); }
  RIDGE_INLINE void add_products(CodePair q, int pair, const int8_t* x) {
    const auto one = [&](Ints codes, int at) __attribute__((always_inline)) {
#pragma GCC unroll 8
      for (int i = 0; i < tokens; ++i) {
        high[i] = byte_products(high[i], codes, four_bytes(x + i * kQuantisedBytes + at));
        if (!fast) low[i] = byte_products(low[i], codes, four_bytes(x + i * kQuantisedBytes + kWovenGroup + at));
      }
    };
    one(q.first, 8 * pair);
    one(q.second, 8 * pair + 4);
  }
  RIDGE_INLINE Ints sum(int i) const { return fast ? high[i] : add(left<8>(high[i]), low[i]); }
#else
  Ints all[tokens];
  RIDGE_INLINE void begin(int i, Ints start) { all[i] = start; }
  RIDGE_INLINE void add_products(CodePair q, int pair, const int8_t* x) {
    const auto one = [&](Ints words, int at) __attribute__((always_inline)) {
#pragma GCC unroll 8
      for (int i = 0; i < tokens; ++i) all[i] = add(all[i], pairs(words, four_bytes(x + i * kQuantisedBytes + at)));
    };
    one(even_bytes(q.first), 16 * pair);
    one(right<8>(q.first), 16 * pair + 4);
    one(even_bytes(q.second), 16 * pair + 8);
    one(right<8>(q.second), 16 * pair + 12);
  }
  RIDGE_INLINE Ints sum(int i) const { return all[i]; }
#endif
};

// sums[tokens][16 of kSumsCols] of one group of weights, `lane0` on.
template <class W, int tokens, bool fast>
RIDGE_INLINE void group_products(const uint8_t* block, int64_t blocks, int lane0, const int8_t* x, const QuantisedScale* scale,
                                 float* sums, bool first, bool ahead) {
  constexpr int kPairs = kWovenPairs / W::kHalves;
  Vec y[tokens];
#pragma GCC unroll 8
  for (int i = 0; i < tokens; ++i) y[i] = first ? zero() : load(sums + i * kSumsCols + lane0);
  for (int64_t b = 0; b < blocks; ++b, block += W::kBytes) {
    const W at = W::open(block, lane0);
    if (ahead)
      for (int line = 0; line < W::kBytes; line += 64) __builtin_prefetch(block + kAhead + line);
    for (int s = 0; s < W::kBlock / kWovenGroup; ++s, x += tokens * kQuantisedBytes, scale += tokens) {
      each_pair<W::kHalves>([&](auto h) __attribute__((always_inline)) {
        BlockSums<tokens, fast> block_sums;
#pragma GCC unroll 8
        for (int i = 0; i < tokens; ++i) {
          Ints start = no_ints();
          if constexpr (!W::kMinimum) {  // sum of (code - offset) v: minus offset times the sum of v, which is whole too
            const QuantisedScale& r = scale[i];
            const int32_t all = W::kHalves == 2 ? r.half[h] : r.half[0] + r.half[1];
            start = same_ints(-(all << W::kOffsetBits));
          }
          block_sums.begin(i, start);
        }
        each_pair<kPairs>([&](auto p) __attribute__((always_inline)) {
          constexpr int pair = h() * kPairs + p();
          block_sums.add_products(at.template codes<pair>(s), pair, x);
        });
        const Vec d = at.scale(s, h());
#pragma GCC unroll 8
        for (int i = 0; i < tokens; ++i) y[i] = fma(floats(block_sums.sum(i)), d * broadcast(scale[i].scale), y[i]);
      });
      if constexpr (W::kMinimum) {
        const Vec m = at.minimum(s);
#pragma GCC unroll 8
        for (int i = 0; i < tokens; ++i) y[i] = fma(m, broadcast(scale[i].sum), y[i]);
      }
    }
  }
#pragma GCC unroll 8
  for (int i = 0; i < tokens; ++i) store(sums + i * kSumsCols + lane0, y[i]);
}

// Blocks [from, to) of a group, for rows of a from `row` on; added to what is in sums unless they are the first.
template <class W, int tokens, bool fast>
void products(const GemmTask& t, const uint8_t* group, int64_t from, int64_t to, int64_t row, float* sums, bool ahead) {
  const int64_t at = from * (W::kBlock / kWovenGroup) * tokens;
#pragma GCC unroll 2
  for (int lane0 = 0; lane0 < kWovenRows; lane0 += kLanes)
    group_products<W, tokens, fast>(group + from * W::kBytes, to - from, lane0, numbers(t, row) + at * kQuantisedBytes,
                                    scales(t, row) + at, sums, from == 0, ahead && lane0 == 0);
}

template <class W, bool fast, int... n>
auto products_table(std::integer_sequence<int, n...>) {
  static constexpr decltype(&products<W, 1, fast>) table[] = {products<W, n + 1, fast>...};
  return table;
}

// sums[rows][groups of 16]. With many rows k is cut, so that a piece of the groups and of some rows share the first-level cache; the order of
// additions stays that of k.
template <bool fast>
void group_sums(const GemmTask& t, const CpuMatrix& b, int64_t group, int64_t groups, int64_t row, int64_t rows, float* sums) {
  with_woven(b.type, [&]<class W>(W) {
    const auto table = products_table<W, fast>(std::make_integer_sequence<int, kMostTokens>{});
    const int64_t blocks = t.k / W::kBlock, fit = kPieceBytes / (kSumsGroups * W::kBytes);
    const int64_t piece = rows <= kMostTokens ? blocks : fit < 1 ? 1 : fit;
    for (int64_t from = 0; from < blocks; from += piece)
      for (int64_t i = 0; i < rows; i += kMostTokens)
        for (int64_t g = 0; g < groups; ++g)
          table[smaller(kMostTokens, rows - i) - 1](t, b.data + (group + g) * b.row, from, smaller(from + piece, blocks), row + i,
                                                    sums + i * kSumsCols + g * kWovenRows, row + i == 0);
  });
}

int64_t groups_per_item(const GemmTask& t) {
  const int64_t groups = t.n / kWovenRows, fit = kItemBytes / (t.b.row + t.gate.row), fair = groups / 8;
  return smaller(fit, fair) < 1 ? 1 : smaller(fit, fair);
}
int64_t items_beside(const GemmTask& t) {  // that share a block of rows of a
  const int64_t per = groups_per_item(t);
  return (t.n / kWovenRows + per - 1) / per;
}
// Block of rows by block of rows: its numbers stay in the second-level cache while all weights go by.
int64_t items(const GemmTask& t) { return (t.m + kSumsRows - 1) / kSumsRows * items_beside(t); }

template <bool fast>
void multiply(const GemmTask& t, int64_t item) {
  alignas(64) float sums[2][kSumsRows * kSumsCols];
  const int64_t row = item / items_beside(t) * kSumsRows, rows = smaller(kSumsRows, t.m - row);
  const int64_t per = groups_per_item(t), begin = item % items_beside(t) * per, last = smaller(begin + per, t.n / kWovenRows);
  for (int64_t group = begin; group < last; group += kSumsGroups) {
    const int64_t groups = smaller(kSumsGroups, last - group);
    group_sums<fast>(t, t.b, group, groups, row, rows, sums[0]);
    if (t.gate.data) group_sums<fast>(t, t.gate, group, groups, row, rows, sums[1]);
    for (int64_t from = 0, to; from < rows; from = to + 1) {
      for (to = from; to < rows && !left_out(t, row + to);) ++to;
      finish(t, row + from, to - from, group * kWovenRows, groups * kWovenRows, sums[0] + from * kSumsCols,
             t.gate.data ? sums[1] + from * kSumsCols : nullptr, kSumsCols);
    }
  }
}

void quantise(const GemmTask& t, int64_t row) { quantise_row(t, row, false); }
void quantise_fast(const GemmTask& t, int64_t row) { quantise_row(t, row, true); }

#endif

}  // namespace

#if defined(__AVX2__) && !defined(RIDGE_ISA_amx)
extern const GemmWoven gemm_woven{scratch, quantise, items, multiply<false>, left_out};
extern const GemmWoven gemm_woven_fast =
    kByteProducts ? GemmWoven{scratch, quantise_fast, items, multiply<true>, left_out} : GemmWoven{};
#else
extern const GemmWoven gemm_woven{};
extern const GemmWoven gemm_woven_fast{};
#endif

}  // namespace ridge::RIDGE_ISA
