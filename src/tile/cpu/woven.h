// Woven weights (base/formats/woven.cc) to registers: kLanes of a group's 16 rows, a dword a row, four consecutive codes in it.
//
//   const auto at = W::open(block, lane0);                   lane0: 0, or 8 for the upper rows where a register holds 8
//   at.codes<p>(s)            registers 2 p and 2 p + 1 of the 8 that hold the codes of 32 values, as unsigned bytes
//   at.scale(s, h)            d of half h of them: W::kHalves is 2 where 16 values share a scale
//   at.minimum(s)             m, where W::kMinimum;  elsewhere value = d (code - 2^kOffsetBits)
//
// The activations they meet are whole numbers too, of 16 bits for every 32 values (see `QuantisedScale`), so a block's sum is exact: what is
// rounded is the activation, once, to 15 bits of the largest of its 32. For levels from AVX2 on.
#pragma once
#include <utility>

#include "tile/cpu/vec.h"

#if defined(__AVX2__)
namespace ridge::RIDGE_ISA {
namespace {

#if defined(__AVX512F__)
using Ints = __m512i;
RIDGE_INLINE Ints load_ints(const void* p) { return _mm512_loadu_si512(p); }
RIDGE_INLINE Ints four_bytes(const void* p) {
  int32_t x;
  __builtin_memcpy(&x, p, 4);
  return _mm512_set1_epi32(x);
}
RIDGE_INLINE Ints no_ints() { return _mm512_setzero_si512(); }
RIDGE_INLINE Ints same_ints(int32_t x) { return _mm512_set1_epi32(x); }
RIDGE_INLINE Ints even_bytes(Ints a) { return _mm512_and_si512(a, _mm512_set1_epi32(0x00ff00ff)); }
RIDGE_INLINE Ints all_bytes(int x) { return _mm512_set1_epi8(char(x)); }
RIDGE_INLINE Ints and_ints(Ints a, Ints b) { return _mm512_and_si512(a, b); }
template <int n>
RIDGE_INLINE Ints right(Ints a) {  // within words
  return _mm512_srli_epi16(a, n);
}
template <int n>
RIDGE_INLINE Ints left(Ints a) {  // dwords
  return _mm512_slli_epi32(a, n);
}
RIDGE_INLINE Ints add(Ints a, Ints b) { return _mm512_add_epi32(a, b); }
RIDGE_INLINE Ints pairs(Ints words, Ints more_words) { return _mm512_madd_epi16(words, more_words); }
RIDGE_INLINE Vec floats(Ints a) { return {_mm512_cvtepi32_ps(a)}; }
// low | high & mask
RIDGE_INLINE Ints with_bits(Ints low, Ints high, Ints mask) { return _mm512_ternarylogic_epi32(low, high, mask, 0xf8); }
RIDGE_INLINE Vec unsigned_bytes(const uint8_t* p) { return load(p); }
RIDGE_INLINE Vec signed_bytes(const uint8_t* p) { return load(reinterpret_cast<const int8_t*>(p)); }
#else
using Ints = __m256i;
RIDGE_INLINE Ints load_ints(const void* p) { return _mm256_loadu_si256(static_cast<const __m256i*>(p)); }
RIDGE_INLINE Ints four_bytes(const void* p) {
  int32_t x;
  __builtin_memcpy(&x, p, 4);
  return _mm256_set1_epi32(x);
}
RIDGE_INLINE Ints no_ints() { return _mm256_setzero_si256(); }
RIDGE_INLINE Ints same_ints(int32_t x) { return _mm256_set1_epi32(x); }
RIDGE_INLINE Ints even_bytes(Ints a) { return _mm256_and_si256(a, _mm256_set1_epi32(0x00ff00ff)); }
RIDGE_INLINE Ints all_bytes(int x) { return _mm256_set1_epi8(char(x)); }
RIDGE_INLINE Ints and_ints(Ints a, Ints b) { return _mm256_and_si256(a, b); }
template <int n>
RIDGE_INLINE Ints right(Ints a) {
  return _mm256_srli_epi16(a, n);
}
template <int n>
RIDGE_INLINE Ints left(Ints a) {
  return _mm256_slli_epi32(a, n);
}
RIDGE_INLINE Ints add(Ints a, Ints b) { return _mm256_add_epi32(a, b); }
RIDGE_INLINE Ints pairs(Ints words, Ints more_words) { return _mm256_madd_epi16(words, more_words); }
RIDGE_INLINE Vec floats(Ints a) { return {_mm256_cvtepi32_ps(a)}; }
RIDGE_INLINE Ints with_bits(Ints low, Ints high, Ints mask) { return _mm256_or_si256(low, _mm256_and_si256(high, mask)); }
RIDGE_INLINE Vec unsigned_bytes(const uint8_t* p) {
  return {_mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(p))))};
}
RIDGE_INLINE Vec signed_bytes(const uint8_t* p) {
  return {_mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(p))))};
}
#endif

RIDGE_INLINE Vec halves(const uint8_t* p) { return load(reinterpret_cast<const F16*>(p)); }

// ---- codes
constexpr int kWovenRows = 16, kWovenGroup = 32, kWovenRegisters = 8, kWovenPairs = kWovenRegisters / 2;

struct CodePair {
  Ints first, second;
};
RIDGE_INLINE CodePair nibble_codes(const uint8_t* line) {
  const Ints both = load_ints(line);
  return {and_ints(both, all_bytes(15)), and_ints(right<4>(both), all_bytes(15))};
}
// Adds bits 4 and 5: four registers a line.
template <int pair>
RIDGE_INLINE CodePair with_high(CodePair q, const uint8_t* line) {
  const Ints mask = all_bytes(0x30), h = load_ints(line);
  return {with_bits(q.first, pair % 2 ? h : left<4>(h), mask), with_bits(q.second, pair % 2 ? right<2>(h) : left<2>(h), mask)};
}

// ---- formats
struct WovenQ4_0 {
  static constexpr int kBlock = 64, kBytes = 576, kHalves = 1, kOffsetBits = 3, kCodeBits = 4;
  static constexpr bool kMinimum = false;
  const uint8_t *block, *scales;
  RIDGE_INLINE static WovenQ4_0 open(const uint8_t* b, int lane0) { return {b + 4 * lane0, b + 512 + 2 * lane0}; }
  template <int pair>
  RIDGE_INLINE CodePair codes(int s) const {
    return nibble_codes(block + 256 * s + 64 * pair);
  }
  RIDGE_INLINE Vec scale(int s, int) const { return halves(scales + 32 * s); }
  RIDGE_INLINE Vec minimum(int) const { return zero(); }
};

struct WovenQ4_1 {
  static constexpr int kBlock = 32, kBytes = 320, kHalves = 1, kOffsetBits = 0, kCodeBits = 4;
  static constexpr bool kMinimum = true;
  const uint8_t *block, *scales;
  RIDGE_INLINE static WovenQ4_1 open(const uint8_t* b, int lane0) { return {b + 4 * lane0, b + 256 + 2 * lane0}; }
  template <int pair>
  RIDGE_INLINE CodePair codes(int) const {
    return nibble_codes(block + 64 * pair);
  }
  RIDGE_INLINE Vec scale(int, int) const { return halves(scales); }
  RIDGE_INLINE Vec minimum(int) const { return halves(scales + 32); }
};

struct WovenQ8_0 {
  static constexpr int kBlock = 64, kBytes = 1088, kHalves = 1, kOffsetBits = 7, kCodeBits = 8;
  static constexpr bool kMinimum = false;
  const uint8_t *block, *scales;
  RIDGE_INLINE static WovenQ8_0 open(const uint8_t* b, int lane0) { return {b + 4 * lane0, b + 1024 + 2 * lane0}; }
  template <int pair>
  RIDGE_INLINE CodePair codes(int s) const {
    return {load_ints(block + 512 * s + 128 * pair), load_ints(block + 512 * s + 128 * pair + 64)};
  }
  RIDGE_INLINE Vec scale(int s, int) const { return halves(scales + 32 * s); }
  RIDGE_INLINE Vec minimum(int) const { return zero(); }
};

struct WovenQ4_K {
  static constexpr int kBlock = 256, kBytes = 2368, kHalves = 1, kOffsetBits = 0, kCodeBits = 4;
  static constexpr bool kMinimum = true;
  const uint8_t *block, *scales;
  Vec d, minus_dmin;
  RIDGE_INLINE static WovenQ4_K open(const uint8_t* b, int lane0) {
    return {b + 4 * lane0, b + 2112 + lane0, halves(b + 2048 + 2 * lane0), -halves(b + 2080 + 2 * lane0)};
  }
  template <int pair>
  RIDGE_INLINE CodePair codes(int s) const {
    return nibble_codes(block + 256 * s + 64 * pair);
  }
  RIDGE_INLINE Vec scale(int s, int) const { return d * unsigned_bytes(scales + 32 * s); }
  RIDGE_INLINE Vec minimum(int s) const { return minus_dmin * unsigned_bytes(scales + 32 * s + 16); }
};

struct WovenQ6_K {
  static constexpr int kBlock = 256, kBytes = 3360, kHalves = 2, kOffsetBits = 5, kCodeBits = 6;
  static constexpr bool kMinimum = false;
  const uint8_t *block, *scales;
  Vec d;
  RIDGE_INLINE static WovenQ6_K open(const uint8_t* b, int lane0) {
    return {b + 4 * lane0, b + 3104 + lane0, halves(b + 3072 + 2 * lane0)};
  }
  template <int pair>
  RIDGE_INLINE CodePair codes(int s) const {
    return with_high<pair>(nibble_codes(block + 256 * s + 64 * pair), block + 2048 + 128 * s + pair / 2 * 64);
  }
  RIDGE_INLINE Vec scale(int s, int half) const { return d * signed_bytes(scales + 32 * s + 16 * half); }
  RIDGE_INLINE Vec minimum(int) const { return zero(); }
};

// f(integral constant) for 0 .. n - 1, unrolled.
template <int n, class F>
RIDGE_INLINE void each_pair(F&& f) {
  [&]<int... i>(std::integer_sequence<int, i...>) __attribute__((always_inline)) { (f(std::integral_constant<int, i>{}), ...); }
  (std::make_integer_sequence<int, n>{});
}

// f(WovenQ4_0{}), ...: the one switch over woven types in ISA files.
template <class F>
RIDGE_INLINE void with_woven(DType type, F&& f) {
  switch (type) {
    case DType::q4_0_woven: return f(WovenQ4_0{});
    case DType::q4_1_woven: return f(WovenQ4_1{});
    case DType::q8_0_woven: return f(WovenQ8_0{});
    case DType::q4_k_woven: return f(WovenQ4_K{});
    case DType::q6_k_woven: return f(WovenQ6_K{});
    default: return;
  }
}

// ---- activations as whole numbers
// x = scale v for each 32 values, |v| <= 127 * 256. For the byte products v = 256 high + low, both signed bytes; without them words, the even
// ones of each four, then the odd ones, to meet codes that were spread to words.
struct QuantisedScale {
  float scale, sum;  // sum = scale (half[0] + half[1])
  int32_t half[2];   // sums of v over 16 values each
};
constexpr int kMostCode = 127 * 256, kQuantisedBytes = 64;  // of 32 values

#if defined(__AVX512VNNI__)
constexpr bool kByteProducts = true;
RIDGE_INLINE Ints byte_products(Ints sums, Ints codes, Ints x) { return _mm512_dpbusd_epi32(sums, codes, x); }
#else
constexpr bool kByteProducts = false;
#endif

}  // namespace
}  // namespace ridge::RIDGE_ISA
#endif
