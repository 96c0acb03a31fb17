// AMX tiles in bf16, and f32 numbers as sums of two bf16 parts.
//
// x = hi + lo + rest, hi = bf16(x), lo = bf16(x - hi), |rest| < 2^-15 |x| and usually 2^-17. Of the product of two such numbers
// hi hi + lo hi + hi lo is kept: three tile products give what one f32 product gives but for its last 7 bits.
// A tile is 16 rows of 64 bytes: 16 x 32 bf16 of the left operand; of the right one 16 pairs of k x 16 columns, pairs side by side. Of bytes
// twice as many: 16 x 64, and 16 fours of k x 16 columns.
// For `*_amx.cc` files, which are compiled for the amx level alone.
//
// NOTE: the compiler's own tile intrinsics do not say which memory they read, and its configuration intrinsic (GCC 12) names 8 of 64
// bytes: the rest was optimised away and the program died of SIGILL. Hence the assembly with whole operands and memory clobbers.
#pragma once
#include "tile/cpu/transpose.h"

namespace ridge::RIDGE_ISA {
namespace {

constexpr int kTileRows = 16, kTileDepth = 32, kTileBytes = 1024;

static_assert(kLanes == kTileRows);

struct alignas(64) TileConfig {
  uint8_t palette = 1, start_row = 0, reserved[14] = {};
  uint16_t row_bytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
  uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
};

// All eight tiles full-sized: once a thread before its first tile word, and again in each item, since another kernel may have
// configured otherwise. Never released: the next call pays for it.
RIDGE_INLINE void configure_tiles() {
  static constexpr TileConfig config;
  asm volatile("ldtilecfg %0" : : "m"(config));
}
template <int t>
RIDGE_INLINE void tile_zero() {
  asm volatile("tilezero %%tmm%c0" : : "i"(t));
}
template <int t>
RIDGE_INLINE void tile_load(const void* p, int64_t row_bytes = 64) {
  asm volatile("tileloadd (%0,%1,1), %%tmm%c2" : : "r"(p), "r"(row_bytes), "i"(t) : "memory");
}
template <int t>
RIDGE_INLINE void tile_store(void* p, int64_t row_bytes) {
  asm volatile("tilestored %%tmm%c2, (%0,%1,1)" : : "r"(p), "r"(row_bytes), "i"(t) : "memory");
}
template <int sum, int left, int right>
RIDGE_INLINE void tile_multiply() {
  asm volatile("tdpbf16ps %%tmm%c2, %%tmm%c1, %%tmm%c0" : : "i"(sum), "i"(left), "i"(right));
}

template <int sum, int left, int right>
RIDGE_INLINE void tile_multiply_bytes() {  // signed bytes, 64 of k
  asm volatile("tdpbssd %%tmm%c2, %%tmm%c1, %%tmm%c0" : : "i"(sum), "i"(left), "i"(right));
}

// 32 values as bf16 parts, value j beside value j + 16: the order of k within a tile is free as long as both operands share it, and
// this one packs with a shift and an or. hi is rounded half up; lo is cut, which costs a bit and lets NaN through.
struct Parts {
  Vec hi, lo;
};
RIDGE_INLINE Vec interleaved(__m512i first, __m512i second) {
  constexpr int kTakeBHighOrA = 0xf8;  // a | (b & c)
  return {_mm512_castsi512_ps(
      _mm512_ternarylogic_epi32(_mm512_srli_epi32(first, 16), second, _mm512_set1_epi32(int(0xffff0000)), kTakeBHighOrA))};
}
RIDGE_INLINE Parts split(Vec first, Vec second) {
  const __m512i half = _mm512_set1_epi32(0x8000), high = _mm512_set1_epi32(int(0xffff0000));
  const __m512i a = _mm512_add_epi32(_mm512_castps_si512(first.v), half),
                b = _mm512_add_epi32(_mm512_castps_si512(second.v), half);
  const Vec rest_a = first - Vec{_mm512_castsi512_ps(_mm512_and_si512(a, high))};
  const Vec rest_b = second - Vec{_mm512_castsi512_ps(_mm512_and_si512(b, high))};
  return {interleaved(a, b), interleaved(_mm512_castps_si512(rest_a.v), _mm512_castps_si512(rest_b.v))};
}

// The largest magnitude seen, as bits: infinities and NaN are larger than any number.
struct MostBits {
  __m512i bits = _mm512_setzero_si512();
  RIDGE_INLINE void see(Vec x) {
    bits = _mm512_max_epu32(bits, _mm512_and_si512(_mm512_castps_si512(x.v), _mm512_set1_epi32(0x7fffffff)));
  }
  RIDGE_INLINE float value() const {  // as a number; infinities and NaN stay what they are
    const uint32_t all = _mm512_reduce_max_epu32(bits);
    float x;
    __builtin_memcpy(&x, &all, 4);
    return x;
  }
  RIDGE_INLINE bool below(float limit) const {
    return !_mm512_cmpge_epu32_mask(bits, _mm512_castps_si512(_mm512_set1_ps(limit)));
  }
};

}  // namespace
}  // namespace ridge::RIDGE_ISA
