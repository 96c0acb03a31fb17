// The loops behind the measured ceilings. Enough independent chains to hide each instruction's latency, operands in registers (tiles: in
// L1), nothing else: a row can come near these rates and never pass them. Compiled once per ISA, so the instructions are written out.
#include "meter/probe_cpu.h"

#if !defined(RIDGE_ISA_portable)
#include <immintrin.h>
#endif
#define PROBE_INLINE [[gnu::always_inline]] inline

namespace ridge::RIDGE_ISA {
namespace {

#if defined(RIDGE_ISA_portable)
using Floats = float __attribute__((vector_size(16)));
using Bytes = int64_t __attribute__((vector_size(16)));
PROBE_INLINE Floats broadcast(float x) { return Floats{x, x, x, x}; }
PROBE_INLINE Floats fma(Floats a, Floats b, Floats c) { return a * b + c; }
PROBE_INLINE Bytes load(const char* p) { return *reinterpret_cast<const Bytes*>(p); }
PROBE_INLINE void store(char* p, Bytes v) { *reinterpret_cast<Bytes*>(p) = v; }
PROBE_INLINE Bytes mix(Bytes a, Bytes b) { return a ^ b; }
#elif defined(RIDGE_ISA_avx2)
using Floats = __m256;
using Bytes = __m256i;
PROBE_INLINE Floats broadcast(float x) { return _mm256_set1_ps(x); }
PROBE_INLINE Floats fma(Floats a, Floats b, Floats c) { return _mm256_fmadd_ps(a, b, c); }
PROBE_INLINE Bytes load(const char* p) { return _mm256_load_si256(reinterpret_cast<const Bytes*>(p)); }
PROBE_INLINE void store(char* p, Bytes v) { _mm256_stream_si256(reinterpret_cast<Bytes*>(p), v); }
PROBE_INLINE Bytes mix(Bytes a, Bytes b) { return _mm256_xor_si256(a, b); }
PROBE_INLINE Bytes twos() { return _mm256_set1_epi8(2); }
PROBE_INLINE Bytes dot_i8(Bytes sum, Bytes a, Bytes b) {
  return _mm256_add_epi32(sum, _mm256_madd_epi16(_mm256_maddubs_epi16(a, b), _mm256_set1_epi16(1)));
}
#else
using Floats = __m512;
using Bytes = __m512i;
PROBE_INLINE Floats broadcast(float x) { return _mm512_set1_ps(x); }
PROBE_INLINE Floats fma(Floats a, Floats b, Floats c) { return _mm512_fmadd_ps(a, b, c); }
PROBE_INLINE Bytes load(const char* p) { return _mm512_load_si512(p); }
PROBE_INLINE void store(char* p, Bytes v) { _mm512_stream_si512(reinterpret_cast<Bytes*>(p), v); }
PROBE_INLINE Bytes mix(Bytes a, Bytes b) { return _mm512_xor_si512(a, b); }
PROBE_INLINE Bytes twos() { return _mm512_set1_epi8(2); }
#if defined(RIDGE_ISA_avx512)
PROBE_INLINE Bytes dot_i8(Bytes sum, Bytes a, Bytes b) {
  return _mm512_add_epi32(sum, _mm512_madd_epi16(_mm512_maddubs_epi16(a, b), _mm512_set1_epi16(1)));
}
#else
PROBE_INLINE Bytes dot_i8(Bytes sum, Bytes a, Bytes b) { return _mm512_dpbusd_epi32(sum, a, b); }
#endif
#endif

// The compiler must believe that v is read and changed here: keeps results alive and loop-invariant work in the loop.
template <class V>
PROBE_INLINE void touch(V& v) {
#if defined(RIDGE_ISA_portable) || defined(RIDGE_ISA_avx2)
  asm volatile("" : "+x"(v));
#else
  asm volatile("" : "+v"(v));
#endif
}

constexpr int kChains = 12;  // latency 4 to 5, two ports: 8 to 10 are needed

double fma_f32(int64_t rounds) {
  Floats sums[kChains], scale = broadcast(0.5f), add = broadcast(0.5f);
  for (Floats& s : sums) s = broadcast(1.0f);
  for (int64_t r = 0; r < rounds; ++r) {
    touch(scale);
#pragma GCC unroll 12
    for (Floats& s : sums) s = fma(s, scale, add);
  }
  for (Floats& s : sums) touch(s);
  return double(rounds) * kChains * 2 * (sizeof(Floats) / sizeof(float));
}

#if !defined(RIDGE_ISA_portable)
double vector_i8(int64_t rounds) {
  Bytes sums[kChains], a = twos(), b = twos();
  for (Bytes& s : sums) s = mix(a, a);
  for (int64_t r = 0; r < rounds; ++r) {
#pragma GCC unroll 12
    for (Bytes& s : sums) {
      touch(a);
      s = dot_i8(s, a, b);
    }
  }
  for (Bytes& s : sums) touch(s);
  return double(rounds) * kChains * 2 * sizeof(Bytes);
}
#endif

#if defined(RIDGE_ISA_amx)
struct alignas(64) TileConfig {
  uint8_t palette, start_row, reserved[14];
  uint16_t row_bytes[16];
  uint8_t rows[16];
};

// Two by two accumulators, each operand tile loaded once a step: the shape rows use.
// NOTE: GCC 12's intrinsic names 8 of the configuration's 64 bytes as its input; at -O3 the rest is dropped and the first tile
// instruction dies with SIGILL. The whole struct as an asm operand keeps it.
template <bool kInt8>
double matrix(int64_t rounds) {
  TileConfig before = {}, config = {.palette = 1};
  for (int tile = 0; tile < 8; ++tile) {
    config.row_bytes[tile] = 64;
    config.rows[tile] = 16;
  }
  alignas(64) uint16_t operands[4][512];  // [tile, 16 rows x 32]; ones in bf16, and as bytes no worse than any
  for (auto& tile : operands)
    for (uint16_t& x : tile) x = 0x3f80;
  asm volatile("" : : "r"(operands) : "memory");
  asm volatile("sttilecfg %0" : "=m"(before));
  asm volatile("ldtilecfg %0" : : "m"(config));
  _tile_zero(0);
  _tile_zero(1);
  _tile_zero(2);
  _tile_zero(3);
  for (int64_t r = 0; r < rounds; ++r) {
    _tile_loadd(4, operands[0], 64);
    _tile_loadd(5, operands[1], 64);
    _tile_loadd(6, operands[2], 64);
    _tile_loadd(7, operands[3], 64);
    if constexpr (kInt8) {
      _tile_dpbusd(0, 4, 6);
      _tile_dpbusd(1, 4, 7);
      _tile_dpbusd(2, 5, 6);
      _tile_dpbusd(3, 5, 7);
    } else {
      _tile_dpbf16ps(0, 4, 6);
      _tile_dpbf16ps(1, 4, 7);
      _tile_dpbf16ps(2, 5, 6);
      _tile_dpbf16ps(3, 5, 7);
    }
  }
  asm volatile("ldtilecfg %0" : : "m"(before));  // a thread's own configuration stays as it was
  return double(rounds) * 4 * 16 * 16 * (kInt8 ? 64 : 32) * 2;
}
#endif

constexpr int64_t kPage = 4096, kStreams = 4;

// Four pages at a time: one stream of a core does not fill its line buffers.
void read(const char* from, int64_t bytes) {
  Bytes sums[kStreams] = {};
  int64_t page = 0;
  for (; page + kStreams * kPage <= bytes; page += kStreams * kPage)
    for (int64_t at = 0; at < kPage; at += 64)
      for (int64_t s = 0; s < kStreams; ++s)
        for (int64_t i = 0; i < 64; i += int64_t(sizeof(Bytes))) sums[s] = mix(sums[s], load(from + page + s * kPage + at + i));
  for (; page < bytes; page += int64_t(sizeof(Bytes))) sums[0] = mix(sums[0], load(from + page));
  for (Bytes& s : sums) touch(s);
}

void copy(char* to, const char* from, int64_t bytes) {
  for (int64_t at = 0; at < bytes; at += 64)
    for (int64_t i = 0; i < 64; i += int64_t(sizeof(Bytes))) store(to + at + i, load(from + at + i));
#if !defined(RIDGE_ISA_portable)
  _mm_sfence();
#endif
}

}  // namespace

#if defined(RIDGE_ISA_portable)
extern const ProbeCpu probe_cpu{fma_f32, nullptr, nullptr, nullptr, read, copy};
#elif defined(RIDGE_ISA_amx)
extern const ProbeCpu probe_cpu{fma_f32, vector_i8, matrix<false>, matrix<true>, read, copy};
#else
extern const ProbeCpu probe_cpu{fma_f32, vector_i8, nullptr, nullptr, read, copy};
#endif

}  // namespace ridge::RIDGE_ISA
