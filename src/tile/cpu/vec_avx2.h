// vec.h's words in AVX2, FMA and F16C: 8 lanes, tails by lane masks or a small buffer. Included by vec.h alone.
#pragma once
#include <immintrin.h>

namespace ridge::RIDGE_ISA {
namespace {

constexpr int kLanes = 8;
struct Vec {
  __m256 v;
};
struct Mask {
  __m256 m;
};

RIDGE_INLINE Vec broadcast(float x) { return {_mm256_set1_ps(x)}; }
RIDGE_INLINE Vec zero() { return {_mm256_setzero_ps()}; }
RIDGE_INLINE Vec iota() { return {_mm256_setr_ps(0, 1, 2, 3, 4, 5, 6, 7)}; }
RIDGE_INLINE __m256i lanes_below(int n) {
  return _mm256_cmpgt_epi32(_mm256_set1_epi32(n), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}
RIDGE_INLINE Mask first(int n) { return {_mm256_castsi256_ps(lanes_below(n))}; }

// ---- memory; there are no masked moves of 16 and 8 bits: tails go through a buffer
RIDGE_INLINE Vec load(const float* p) { return {_mm256_loadu_ps(p)}; }
RIDGE_INLINE Vec load(const float* p, int n) { return {_mm256_maskload_ps(p, lanes_below(n))}; }
RIDGE_INLINE void store(float* p, Vec a) { _mm256_storeu_ps(p, a.v); }
RIDGE_INLINE void store(float* p, Vec a, int n) { _mm256_maskstore_ps(p, lanes_below(n), a.v); }

RIDGE_INLINE __m128i tail(const uint16_t* p, int n) {
  alignas(16) uint16_t lanes[8] = {};
  for (int i = 0; i < n; ++i) lanes[i] = p[i];
  return _mm_load_si128(reinterpret_cast<const __m128i*>(lanes));
}
RIDGE_INLINE __m128i tail(const uint8_t* p, int n) {
  alignas(16) uint8_t lanes[16] = {};
  for (int i = 0; i < n; ++i) lanes[i] = p[i];
  return _mm_load_si128(reinterpret_cast<const __m128i*>(lanes));
}
RIDGE_INLINE void store_tail(uint16_t* p, __m128i a, int n) {
  alignas(16) uint16_t lanes[8];
  _mm_store_si128(reinterpret_cast<__m128i*>(lanes), a);
  for (int i = 0; i < n; ++i) p[i] = lanes[i];
}

RIDGE_INLINE Vec widen_bf16(__m128i h) { return {_mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(h), 16))}; }
RIDGE_INLINE __m128i narrow_bf16(Vec a) {
  const __m256i u = _mm256_castps_si256(a.v);
  const __m256i odd = _mm256_and_si256(_mm256_srli_epi32(u, 16), _mm256_set1_epi32(1));
  const __m256i rounded = _mm256_add_epi32(u, _mm256_add_epi32(odd, _mm256_set1_epi32(0x7fff)));
  const __m256i quiet = _mm256_or_si256(u, _mm256_set1_epi32(0x400000));
  const __m256i nan = _mm256_castps_si256(_mm256_cmp_ps(a.v, a.v, _CMP_UNORD_Q));
  const __m256i kept = _mm256_srli_epi32(_mm256_blendv_epi8(rounded, quiet, nan), 16);
  return _mm_packus_epi32(_mm256_castsi256_si128(kept), _mm256_extracti128_si256(kept, 1));
}
RIDGE_INLINE Vec load(const Bf16* p) { return widen_bf16(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p))); }
RIDGE_INLINE Vec load(const Bf16* p, int n) { return widen_bf16(tail(&p->bits, n)); }
RIDGE_INLINE void store(Bf16* p, Vec a) { _mm_storeu_si128(reinterpret_cast<__m128i*>(p), narrow_bf16(a)); }
RIDGE_INLINE void store(Bf16* p, Vec a, int n) { store_tail(&p->bits, narrow_bf16(a), n); }

RIDGE_INLINE Vec load(const F16* p) { return {_mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)))}; }
RIDGE_INLINE Vec load(const F16* p, int n) { return {_mm256_cvtph_ps(tail(&p->bits, n))}; }
RIDGE_INLINE __m128i narrow_f16(Vec a) { return _mm256_cvtps_ph(a.v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC); }
RIDGE_INLINE void store(F16* p, Vec a) { _mm_storeu_si128(reinterpret_cast<__m128i*>(p), narrow_f16(a)); }
RIDGE_INLINE void store(F16* p, Vec a, int n) { store_tail(&p->bits, narrow_f16(a), n); }

RIDGE_INLINE Vec load(const int8_t* p) {
  return {_mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(p))))};
}
RIDGE_INLINE Vec load(const int8_t* p, int n) {
  return {_mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(tail(reinterpret_cast<const uint8_t*>(p), n)))};
}
RIDGE_INLINE Vec load(const uint8_t* p) {
  return {_mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(p))))};
}
RIDGE_INLINE Vec load(const uint8_t* p, int n) { return {_mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(tail(p, n)))}; }

// ---- arithmetic
RIDGE_INLINE Vec operator+(Vec a, Vec b) { return {_mm256_add_ps(a.v, b.v)}; }
RIDGE_INLINE Vec operator-(Vec a, Vec b) { return {_mm256_sub_ps(a.v, b.v)}; }
RIDGE_INLINE Vec operator*(Vec a, Vec b) { return {_mm256_mul_ps(a.v, b.v)}; }
RIDGE_INLINE Vec operator/(Vec a, Vec b) { return {_mm256_div_ps(a.v, b.v)}; }
RIDGE_INLINE Vec operator-(Vec a) { return {_mm256_xor_ps(a.v, _mm256_set1_ps(-0.0f))}; }
RIDGE_INLINE Vec fma(Vec a, Vec b, Vec c) { return {_mm256_fmadd_ps(a.v, b.v, c.v)}; }
RIDGE_INLINE Vec min(Vec a, Vec b) { return {_mm256_min_ps(a.v, b.v)}; }
RIDGE_INLINE Vec max(Vec a, Vec b) { return {_mm256_max_ps(a.v, b.v)}; }
RIDGE_INLINE Vec abs(Vec a) { return {_mm256_andnot_ps(_mm256_set1_ps(-0.0f), a.v)}; }
RIDGE_INLINE Vec sqrt(Vec a) { return {_mm256_sqrt_ps(a.v)}; }
RIDGE_INLINE Vec round(Vec a) { return {_mm256_round_ps(a.v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC)}; }

// Two steps of half the exponent, so that each factor is a normal number and a subnormal result is rounded once.
RIDGE_INLINE Vec times_power_of_2(Vec a, Vec n) {  // n whole, |n| <= 252
  const __m256i whole = _mm256_cvtps_epi32(n.v), half = _mm256_srai_epi32(whole, 1), bias = _mm256_set1_epi32(127);
  const __m256i low = _mm256_slli_epi32(_mm256_add_epi32(half, bias), 23);
  const __m256i high = _mm256_slli_epi32(_mm256_add_epi32(_mm256_sub_epi32(whole, half), bias), 23);
  return {_mm256_mul_ps(_mm256_mul_ps(a.v, _mm256_castsi256_ps(low)), _mm256_castsi256_ps(high))};
}

// ---- lanes
RIDGE_INLINE Mask operator<(Vec a, Vec b) { return {_mm256_cmp_ps(a.v, b.v, _CMP_LT_OQ)}; }
RIDGE_INLINE Mask operator<=(Vec a, Vec b) { return {_mm256_cmp_ps(a.v, b.v, _CMP_LE_OQ)}; }
RIDGE_INLINE Mask operator==(Vec a, Vec b) { return {_mm256_cmp_ps(a.v, b.v, _CMP_EQ_OQ)}; }
RIDGE_INLINE Mask both(Mask a, Mask b) { return {_mm256_and_ps(a.m, b.m)}; }
RIDGE_INLINE Vec select(Mask m, Vec a, Vec b) { return {_mm256_blendv_ps(b.v, a.v, m.m)}; }

// Halves, halves, ...: 8 -> 4 -> 2 -> 1.
RIDGE_INLINE float reduce_add(Vec a) {
  __m128 y = _mm_add_ps(_mm256_castps256_ps128(a.v), _mm256_extractf128_ps(a.v, 1));
  y = _mm_add_ps(y, _mm_movehl_ps(y, y));
  return _mm_cvtss_f32(_mm_add_ss(y, _mm_movehdup_ps(y)));
}
RIDGE_INLINE float reduce_max(Vec a) {
  __m128 y = _mm_max_ps(_mm256_castps256_ps128(a.v), _mm256_extractf128_ps(a.v, 1));
  y = _mm_max_ps(y, _mm_movehl_ps(y, y));
  return _mm_cvtss_f32(_mm_max_ss(y, _mm_movehdup_ps(y)));
}

// The same halves as reduce_add, four vectors folded into one as they shrink.
RIDGE_INLINE void store_sums(float* p, Vec a, Vec b, Vec c, Vec d) {
  auto fold = [](__m256 x, __m256 y) {
    return _mm256_add_ps(_mm256_permute2f128_ps(x, y, 0x20), _mm256_permute2f128_ps(x, y, 0x31));
  };
  const __m256 ab = fold(a.v, b.v), cd = fold(c.v, d.v);                                             // 4 lanes of a, 4 of b
  const __m256 x = _mm256_add_ps(_mm256_shuffle_ps(ab, cd, 0x44), _mm256_shuffle_ps(ab, cd, 0xee));  // a a c c | b b d d
  const __m256 y = _mm256_add_ps(_mm256_shuffle_ps(x, x, 0x88), _mm256_shuffle_ps(x, x, 0xdd));      // a c a c | b d b d
  _mm_storeu_ps(p, _mm_unpacklo_ps(_mm256_castps256_ps128(y), _mm256_extractf128_ps(y, 1)));
}

}  // namespace
}  // namespace ridge::RIDGE_ISA
