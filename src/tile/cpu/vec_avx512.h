// vec.h's words in AVX-512 (F, BW, DQ, VL): 16 lanes, tails by mask registers. Included by vec.h alone.
#pragma once
// GCC 12 initialises the don't-care operand of its own intrinsics with itself, then warns about it once they are inlined.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wuninitialized"
#ifndef __clang__
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif
#include <immintrin.h>
#pragma GCC diagnostic pop

namespace ridge::RIDGE_ISA {
namespace {

constexpr int kLanes = 16;
struct Vec {
  __m512 v;
};
struct Mask {
  __mmask16 m;
};

RIDGE_INLINE Vec broadcast(float x) { return {_mm512_set1_ps(x)}; }
RIDGE_INLINE Vec zero() { return {_mm512_setzero_ps()}; }
RIDGE_INLINE Vec iota() { return {_mm512_setr_ps(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15)}; }
RIDGE_INLINE Mask first(int n) { return {__mmask16((1u << n) - 1)}; }

// ---- memory
RIDGE_INLINE Vec load(const float* p) { return {_mm512_loadu_ps(p)}; }
RIDGE_INLINE Vec load(const float* p, int n) { return {_mm512_maskz_loadu_ps(first(n).m, p)}; }
RIDGE_INLINE void store(float* p, Vec a) { _mm512_storeu_ps(p, a.v); }
RIDGE_INLINE void store(float* p, Vec a, int n) { _mm512_mask_storeu_ps(p, first(n).m, a.v); }

RIDGE_INLINE Vec widen_bf16(__m256i h) { return {_mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(h), 16))}; }
RIDGE_INLINE __m256i narrow_bf16(Vec a) {
  const __m512i u = _mm512_castps_si512(a.v);
  const __m512i odd = _mm512_and_si512(_mm512_srli_epi32(u, 16), _mm512_set1_epi32(1));
  const __m512i rounded = _mm512_add_epi32(u, _mm512_add_epi32(odd, _mm512_set1_epi32(0x7fff)));
  const __mmask16 nan = _mm512_cmp_ps_mask(a.v, a.v, _CMP_UNORD_Q);
  const __m512i kept = _mm512_mask_or_epi32(rounded, nan, u, _mm512_set1_epi32(0x400000));
  return _mm512_cvtepi32_epi16(_mm512_srli_epi32(kept, 16));
}
RIDGE_INLINE Vec load(const Bf16* p) { return widen_bf16(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p))); }
RIDGE_INLINE Vec load(const Bf16* p, int n) { return widen_bf16(_mm256_maskz_loadu_epi16(first(n).m, p)); }
RIDGE_INLINE void store(Bf16* p, Vec a) { _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), narrow_bf16(a)); }
RIDGE_INLINE void store(Bf16* p, Vec a, int n) { _mm256_mask_storeu_epi16(p, first(n).m, narrow_bf16(a)); }

RIDGE_INLINE Vec load(const F16* p) { return {_mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)))}; }
RIDGE_INLINE Vec load(const F16* p, int n) { return {_mm512_cvtph_ps(_mm256_maskz_loadu_epi16(first(n).m, p))}; }
RIDGE_INLINE __m256i narrow_f16(Vec a) { return _mm512_cvtps_ph(a.v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC); }
RIDGE_INLINE void store(F16* p, Vec a) { _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), narrow_f16(a)); }
RIDGE_INLINE void store(F16* p, Vec a, int n) { _mm256_mask_storeu_epi16(p, first(n).m, narrow_f16(a)); }

RIDGE_INLINE Vec load(const int8_t* p) {
  return {_mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p))))};
}
RIDGE_INLINE Vec load(const int8_t* p, int n) {
  return {_mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(_mm_maskz_loadu_epi8(first(n).m, p)))};
}
RIDGE_INLINE Vec load(const uint8_t* p) {
  return {_mm512_cvtepi32_ps(_mm512_cvtepu8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p))))};
}
RIDGE_INLINE Vec load(const uint8_t* p, int n) {
  return {_mm512_cvtepi32_ps(_mm512_cvtepu8_epi32(_mm_maskz_loadu_epi8(first(n).m, p)))};
}

// ---- arithmetic
RIDGE_INLINE Vec operator+(Vec a, Vec b) { return {_mm512_add_ps(a.v, b.v)}; }
RIDGE_INLINE Vec operator-(Vec a, Vec b) { return {_mm512_sub_ps(a.v, b.v)}; }
RIDGE_INLINE Vec operator*(Vec a, Vec b) { return {_mm512_mul_ps(a.v, b.v)}; }
RIDGE_INLINE Vec operator/(Vec a, Vec b) { return {_mm512_div_ps(a.v, b.v)}; }
RIDGE_INLINE Vec operator-(Vec a) { return {_mm512_xor_ps(a.v, _mm512_set1_ps(-0.0f))}; }
RIDGE_INLINE Vec fma(Vec a, Vec b, Vec c) { return {_mm512_fmadd_ps(a.v, b.v, c.v)}; }
RIDGE_INLINE Vec min(Vec a, Vec b) { return {_mm512_min_ps(a.v, b.v)}; }
RIDGE_INLINE Vec max(Vec a, Vec b) { return {_mm512_max_ps(a.v, b.v)}; }
RIDGE_INLINE Vec abs(Vec a) { return {_mm512_abs_ps(a.v)}; }
RIDGE_INLINE Vec sqrt(Vec a) { return {_mm512_sqrt_ps(a.v)}; }
RIDGE_INLINE Vec round(Vec a) { return {_mm512_roundscale_ps(a.v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC)}; }
RIDGE_INLINE Vec times_power_of_2(Vec a, Vec n) { return {_mm512_scalef_ps(a.v, n.v)}; }  // n whole, |n| <= 252

// ---- lanes
RIDGE_INLINE Mask operator<(Vec a, Vec b) { return {_mm512_cmp_ps_mask(a.v, b.v, _CMP_LT_OQ)}; }
RIDGE_INLINE Mask operator<=(Vec a, Vec b) { return {_mm512_cmp_ps_mask(a.v, b.v, _CMP_LE_OQ)}; }
RIDGE_INLINE Mask operator==(Vec a, Vec b) { return {_mm512_cmp_ps_mask(a.v, b.v, _CMP_EQ_OQ)}; }
RIDGE_INLINE Mask both(Mask a, Mask b) { return {__mmask16(a.m & b.m)}; }
RIDGE_INLINE Vec select(Mask m, Vec a, Vec b) { return {_mm512_mask_blend_ps(m.m, b.v, a.v)}; }

// Halves, halves, ...: 16 -> 8 -> 4 -> 2 -> 1.
RIDGE_INLINE float reduce_add(Vec a) {
  const __m256 x = _mm256_add_ps(_mm512_castps512_ps256(a.v), _mm512_extractf32x8_ps(a.v, 1));
  __m128 y = _mm_add_ps(_mm256_castps256_ps128(x), _mm256_extractf128_ps(x, 1));
  y = _mm_add_ps(y, _mm_movehl_ps(y, y));
  return _mm_cvtss_f32(_mm_add_ss(y, _mm_movehdup_ps(y)));
}
RIDGE_INLINE float reduce_max(Vec a) {
  const __m256 x = _mm256_max_ps(_mm512_castps512_ps256(a.v), _mm512_extractf32x8_ps(a.v, 1));
  __m128 y = _mm_max_ps(_mm256_castps256_ps128(x), _mm256_extractf128_ps(x, 1));
  y = _mm_max_ps(y, _mm_movehl_ps(y, y));
  return _mm_cvtss_f32(_mm_max_ss(y, _mm_movehdup_ps(y)));
}

// The same halves as reduce_add, four vectors folded into one as they shrink.
RIDGE_INLINE void store_sums(float* p, Vec a, Vec b, Vec c, Vec d) {
  const __m512 ab = _mm512_add_ps(_mm512_shuffle_f32x4(a.v, b.v, 0x44), _mm512_shuffle_f32x4(a.v, b.v, 0xee));
  const __m512 cd = _mm512_add_ps(_mm512_shuffle_f32x4(c.v, d.v, 0x44), _mm512_shuffle_f32x4(c.v, d.v, 0xee));
  __m512 x = _mm512_add_ps(_mm512_shuffle_f32x4(ab, cd, 0x88), _mm512_shuffle_f32x4(ab, cd, 0xdd));
  x = _mm512_add_ps(x, _mm512_permute_ps(x, 0x4e));
  x = _mm512_add_ps(x, _mm512_permute_ps(x, 0xb1));
  const __m512i firsts = _mm512_castsi128_si512(_mm_setr_epi32(0, 4, 8, 12));
  _mm_storeu_ps(p, _mm512_castps512_ps128(_mm512_permutexvar_ps(firsts, x)));
}

}  // namespace
}  // namespace ridge::RIDGE_ISA
