// Weights to f32 lanes: one reader a type, the same words for all. A reader hands out groups of 32 consecutive values of a row:
//
//   for each span of up to kSpan groups:   at = W::span(row, first group);  s.read(at, groups);   s: W::Scales
//     for each group g of the span:        W::template group<g % kPeriod>(at, g, s, w);         w: Vec[32 / kLanes]
//
// A span is what shares one reading of scales: the fixed cost of a block is a few instructions only when several blocks' scales are
// converted together and then broadcast from memory (a broadcast load is free; a shuffle takes the port that decoding needs).
// The values are bitwise those of base/formats: every product below is exact in f32, so fused and unfused agree.
// Plain types (Plain<float>, Plain<Bf16>, Plain<F16>) also serve rows that end inside a group: see tail().
#pragma once
#include <type_traits>
#include <utility>

#include "base/dtype.h"
#include "tile/cpu/vec.h"

namespace ridge::RIDGE_ISA {
namespace {

constexpr int kGroup = 32, kGroupVecs = kGroup / kLanes;
using GroupVecs = Vec[kGroupVecs];

// The compiler would otherwise take stored scales back into registers and shuffle them apart.
template <class T>
RIDGE_INLINE void keep_in_memory(T& x) {
  asm volatile("" : "+m"(x));
}

RIDGE_INLINE float read_f16(const uint8_t* p) {
#if defined(__F16C__)
  uint16_t h;
  __builtin_memcpy(&h, p, 2);
  return _cvtsh_ss(h);
#else
  F16 h;
  __builtin_memcpy(&h, p, 2);
  return widen(h);
#endif
}

// ---- small integers to floats
// Affine holds d and m; low(f, c) and high(f, c) are d q + m of the low and high nibbles of kLanes bytes.
// On AVX-512 it is the table of its 16 values, and the nibble the index of a permutation that ignores higher bits: no mask, no conversion.
#if defined(__AVX512F__)
struct Codes {
  __m512i v;
};
struct Affine {
  __m512 table;
};
RIDGE_INLINE Codes codes(const uint8_t* p) {
  return {_mm512_cvtepu8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)))};
}
RIDGE_INLINE Affine affine(float d, float m) { return {fma(iota(), broadcast(d), broadcast(m)).v}; }
RIDGE_INLINE Vec low(Affine f, Codes c) { return {_mm512_permutexvar_ps(c.v, f.table)}; }
RIDGE_INLINE Vec high(Affine f, Codes c) { return {_mm512_permutexvar_ps(_mm512_srli_epi32(c.v, 4), f.table)}; }
#elif defined(__AVX2__)
struct Codes {
  __m256i v;
};
struct Affine {
  Vec d, m;
};
RIDGE_INLINE Codes codes(const uint8_t* p) {
  return {_mm256_cvtepu8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(p)))};
}
RIDGE_INLINE Affine affine(float d, float m) { return {broadcast(d), broadcast(m)}; }
RIDGE_INLINE Vec low(Affine f, Codes c) {
  return fma({_mm256_cvtepi32_ps(_mm256_and_si256(c.v, _mm256_set1_epi32(15)))}, f.d, f.m);
}
RIDGE_INLINE Vec high(Affine f, Codes c) { return fma({_mm256_cvtepi32_ps(_mm256_srli_epi32(c.v, 4))}, f.d, f.m); }
#else
struct Codes {
  Words v;
};
struct Affine {
  Vec d, m;
};
RIDGE_INLINE Codes codes(const uint8_t* p) { return {Words{p[0], p[1], p[2], p[3]}}; }
RIDGE_INLINE Affine affine(float d, float m) { return {broadcast(d), broadcast(m)}; }
RIDGE_INLINE Vec low(Affine f, Codes c) { return fma({__builtin_convertvector(c.v & 15, Floats)}, f.d, f.m); }
RIDGE_INLINE Vec high(Affine f, Codes c) { return fma({__builtin_convertvector(c.v >> 4, Floats)}, f.d, f.m); }
#endif

// 8 bytes times a factor.
template <class Byte>
RIDGE_INLINE void scale_bytes(uint64_t bytes, float by, float* out) {
#if defined(__AVX2__)
  const __m128i b = _mm_cvtsi64_si128(int64_t(bytes));
  const __m256i whole = std::is_signed_v<Byte> ? _mm256_cvtepi8_epi32(b) : _mm256_cvtepu8_epi32(b);
  _mm256_storeu_ps(out, _mm256_mul_ps(_mm256_cvtepi32_ps(whole), _mm256_set1_ps(by)));
#else
  for (int i = 0; i < 8; ++i) out[i] = float(Byte(bytes >> 8 * i)) * by;
#endif
}

// ---- plain types
template <class T>
struct Plain {
  static constexpr int kSpan = 1, kPeriod = 1;
  struct Scales {
    RIDGE_INLINE void read(const uint8_t*, int) {}
  };
  RIDGE_INLINE static const uint8_t* span(const uint8_t* row, int64_t group) { return row + group * kGroup * int64_t(sizeof(T)); }
  template <int>
  RIDGE_INLINE static void group(const uint8_t* at, int, const Scales&, GroupVecs& w) {
#pragma GCC unroll 8
    for (int v = 0; v < kGroupVecs; ++v) w[v] = load(reinterpret_cast<const T*>(at) + v * kLanes);
  }
  // The first n < 32 values of a group, then zeros.
  RIDGE_INLINE static void tail(const uint8_t* at, int n, GroupVecs& w) {
    for (int v = 0; v < kGroupVecs; ++v) {
      const int lanes = n - v * kLanes;
      const T* p = reinterpret_cast<const T*>(at) + v * kLanes;
      w[v] = lanes >= kLanes ? load(p) : lanes > 0 ? load(p, lanes) : zero();
    }
  }
};

// ---- blocks of 32
template <int block_bytes>
struct Blocks32 {
  static constexpr int kSpan = 4, kPeriod = 1;
  RIDGE_INLINE static const uint8_t* span(const uint8_t* row, int64_t group) { return row + group * block_bytes; }
};

RIDGE_INLINE void nibble_group(const uint8_t* bytes, float d, float m, GroupVecs& w) {
  const Affine f = affine(d, m);
#pragma GCC unroll 4
  for (int v = 0; v < kGroupVecs / 2; ++v) {
    const Codes c = codes(bytes + v * kLanes);
    w[v] = low(f, c);
    w[v + kGroupVecs / 2] = high(f, c);
  }
}

struct ReadQ4_0 : Blocks32<18> {
  struct Scales {
    alignas(32) float d[4], minus_8d[4];
    RIDGE_INLINE void read(const uint8_t* at, int groups) {
#if defined(__AVX512F__)
      const __m512i words =
          _mm512_maskz_loadu_epi16(__mmask32((uint64_t(1) << 9 * groups) - 1), at);  // 4 groups: 64 bytes hold the scales
      const __m512i picked = _mm512_permutexvar_epi16(_mm512_set1_epi64(27LL << 48 | 18LL << 32 | 9LL << 16), words);
      const __m128 all = _mm_cvtph_ps(_mm512_castsi512_si128(picked));
      _mm_store_ps(d, all);
      _mm_store_ps(minus_8d, _mm_mul_ps(all, _mm_set1_ps(-8)));
#else
      for (int g = 0; g < groups; ++g) {
        d[g] = read_f16(at + 18 * g);
        minus_8d[g] = -8 * d[g];
      }
#endif
      keep_in_memory(d);
      keep_in_memory(minus_8d);
    }
  };
  template <int>
  RIDGE_INLINE static void group(const uint8_t* at, int g, const Scales& s, GroupVecs& w) {
    nibble_group(at + 18 * g + 2, s.d[g], s.minus_8d[g], w);
  }
};

struct ReadQ4_1 : Blocks32<20> {
  struct Scales {
    alignas(32) float dm[8];  // d, m of each block
    RIDGE_INLINE void read(const uint8_t* at, int groups) {
#if defined(__AVX512F__)
      const __m512i words = _mm512_maskz_loadu_epi32(__mmask16((1u << 5 * groups) - 1), at);  // 4 groups: the first 64 bytes
      const __m512i picked =
          _mm512_permutexvar_epi32(_mm512_setr_epi32(0, 5, 10, 15, 0, 5, 10, 15, 0, 5, 10, 15, 0, 5, 10, 15), words);
      _mm256_store_ps(dm, _mm256_cvtph_ps(_mm512_castsi512_si128(picked)));
#else
      for (int g = 0; g < groups; ++g) {
        dm[2 * g] = read_f16(at + 20 * g);
        dm[2 * g + 1] = read_f16(at + 20 * g + 2);
      }
#endif
      keep_in_memory(dm);
    }
  };
  template <int>
  RIDGE_INLINE static void group(const uint8_t* at, int g, const Scales& s, GroupVecs& w) {
    nibble_group(at + 20 * g + 4, s.dm[2 * g], s.dm[2 * g + 1], w);
  }
};

struct ReadQ8_0 : Blocks32<34> {
  struct Scales {
    alignas(16) float d[4];
    RIDGE_INLINE void read(const uint8_t* at, int groups) {
#if defined(__AVX512F__)
      const __m512i pair = _mm512_set1_epi64(17LL << 48 | 17LL << 16);  // words 0, 17, 0, 17
      const auto load_words = [&](int blocks, const uint8_t* p) {
        return _mm512_maskz_loadu_epi16(__mmask32(blocks <= 0 ? 0 : blocks == 1 ? (1u << 17) - 1 : ~0u), p);
      };
      const __m512i front = _mm512_permutexvar_epi16(pair, load_words(groups, at));
      const __m512i all = _mm512_mask_permutexvar_epi16(front, 0xc, pair, load_words(groups - 2, at + 68));
      _mm_store_ps(d, _mm_cvtph_ps(_mm512_castsi512_si128(all)));
#else
      for (int g = 0; g < groups; ++g) d[g] = read_f16(at + 34 * g);
#endif
      keep_in_memory(d);
    }
  };
  template <int>
  RIDGE_INLINE static void group(const uint8_t* at, int g, const Scales& s, GroupVecs& w) {
    const int8_t* q = reinterpret_cast<const int8_t*>(at + 34 * g + 2);
#pragma GCC unroll 8
    for (int v = 0; v < kGroupVecs; ++v) w[v] = load(q + v * kLanes) * broadcast(s.d[g]);
  }
};

// ---- blocks of 256, 8 groups each; a row's spans are its blocks
template <int block_bytes>
struct Blocks256 {
  static constexpr int kSpan = 8;
  RIDGE_INLINE static const uint8_t* span(const uint8_t* row, int64_t group) { return row + group / 8 * block_bytes; }
};

struct ReadQ4_K : Blocks256<144> {
  static constexpr int kPeriod = 2;  // low nibbles, then high ones of the same bytes
  struct Scales {
    alignas(32) float scale[8], minus_min[8];
    RIDGE_INLINE void read(const uint8_t* at, int) {
      uint32_t a, b, c;
      __builtin_memcpy(&a, at + 4, 4);
      __builtin_memcpy(&b, at + 8, 4);
      __builtin_memcpy(&c, at + 12, 4);
      const uint64_t scales = (a & 0x3f3f3f3f) | uint64_t((c & 0x0f0f0f0f) | (a >> 6 & 0x03030303) << 4) << 32;
      const uint64_t mins = (b & 0x3f3f3f3f) | uint64_t((c >> 4 & 0x0f0f0f0f) | (b >> 6 & 0x03030303) << 4) << 32;
      scale_bytes<uint8_t>(scales, read_f16(at), scale);
      scale_bytes<uint8_t>(mins, -read_f16(at + 2), minus_min);
      keep_in_memory(scale);
      keep_in_memory(minus_min);
    }
  };
  template <int odd>
  RIDGE_INLINE static void group(const uint8_t* at, int g, const Scales& s, GroupVecs& w) {
    const Affine f = affine(s.scale[g], s.minus_min[g]);
#pragma GCC unroll 8
    for (int v = 0; v < kGroupVecs; ++v) {
      const Codes c = codes(at + 16 + g / 2 * 32 + v * kLanes);
      w[v] = odd ? high(f, c) : low(f, c);
    }
  }
};

struct ReadQ6_K : Blocks256<210> {
  static constexpr int kPeriod = 4;  // a half block's four quarters share its bytes
  struct Scales {
    alignas(32) float scale[16];
    RIDGE_INLINE void read(const uint8_t* at, int) {
      uint64_t a, b;
      __builtin_memcpy(&a, at + 192, 8);
      __builtin_memcpy(&b, at + 200, 8);
      const float d = read_f16(at + 208);
      scale_bytes<int8_t>(a, d, scale);
      scale_bytes<int8_t>(b, d, scale + 8);
      keep_in_memory(scale);
    }
  };
  template <int s>
  RIDGE_INLINE static void group(const uint8_t* at, int g, const Scales& scales, GroupVecs& w) {
    const uint8_t *lows = at + g / 4 * 64 + (s & 1) * 32, *highs = at + 128 + g / 4 * 32;
#if defined(__AVX2__)
    const __m256i l = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(lows)),
                  h = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(highs));
    const __m256i nibble = _mm256_and_si256(s < 2 ? l : _mm256_srli_epi16(l, 4), _mm256_set1_epi8(15));
    const __m256i top = s == 0   ? _mm256_slli_epi16(h, 4)
                        : s == 1 ? _mm256_slli_epi16(h, 2)
                        : s == 2 ? h
                                 : _mm256_srli_epi16(h, 2);
    const __m256i q =
        _mm256_sub_epi8(_mm256_or_si256(nibble, _mm256_and_si256(top, _mm256_set1_epi8(0x30))), _mm256_set1_epi8(32));
    const __m128i half[2] = {_mm256_castsi256_si128(q), _mm256_extracti128_si256(q, 1)};
#endif
#pragma GCC unroll 8
    for (int v = 0; v < kGroupVecs; ++v) {
#if defined(__AVX512F__)
      const Vec q_v{_mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(half[v]))};
#elif defined(__AVX2__)
      const Vec q_v{_mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(v % 2 ? _mm_srli_si128(half[v / 2], 8) : half[v / 2]))};
#else
      const Words low_v = codes(lows + v * kLanes).v >> (s / 2 * 4) & 15, high_v = codes(highs + v * kLanes).v >> (2 * s) & 3;
      const Vec q_v{__builtin_convertvector((low_v | high_v << 4) - 32, Floats)};
#endif
      w[v] = q_v * broadcast(scales.scale[2 * g + v * kLanes / 16]);
    }
  }
};

// f(Plain<float>{}), f(ReadQ4_0{}), ...: the one switch over weight types in ISA files. False for a type without a reader.
template <class F>
RIDGE_INLINE bool with_reader(DType type, F&& f) {
  switch (type) {
    case DType::f32: f(Plain<float>{}); return true;
    case DType::bf16: f(Plain<Bf16>{}); return true;
    case DType::f16: f(Plain<F16>{}); return true;
    case DType::q4_0: f(ReadQ4_0{}); return true;
    case DType::q4_1: f(ReadQ4_1{}); return true;
    case DType::q8_0: f(ReadQ8_0{}); return true;
    case DType::q4_k: f(ReadQ4_K{}); return true;
    case DType::q6_k: f(ReadQ6_K{}); return true;
    default: return false;
  }
}

// f(integral constant) for 0 .. n - 1, unrolled.
template <int n, class F>
RIDGE_INLINE void unrolled(F&& f) {
  [&]<int... i>(std::integer_sequence<int, i...>) __attribute__((always_inline)) { (f(std::integral_constant<int, i>{}), ...); }
  (std::make_integer_sequence<int, n>{});
}

// f(group, w) for the whole groups of one row; for plain types also the tail, with zeros after the row's end.
template <class W, class F>
RIDGE_INLINE void each_group(const uint8_t* row, int64_t k, F&& f) {
  const int64_t groups = k / kGroup;
  for (int64_t from = 0; from < groups; from += W::kSpan) {
    const int here = groups - from < W::kSpan ? int(groups - from) : W::kSpan;
    const uint8_t* at = W::span(row, from);
    typename W::Scales scales;
    scales.read(at, here);
    for (int g = 0; g < here; g += W::kPeriod)
      unrolled<W::kPeriod>([&](auto i) __attribute__((always_inline)) {
        GroupVecs w;
        W::template group<i()>(at, g + i(), scales, w);
        f(from + g + i(), w);
      });
  }
  if constexpr (requires(GroupVecs & w) { W::tail(row, 0, w); })
    if (k % kGroup) {
      GroupVecs w;
      W::tail(W::span(row, groups), int(k % kGroup), w);
      f(groups, w);
    }
}

}  // namespace
}  // namespace ridge::RIDGE_ISA
