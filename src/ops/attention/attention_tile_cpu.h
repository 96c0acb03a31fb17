// The two products that attention is made of, forward and backward, with one operand in the lanes.
//
//   scores:      out[i][lane] = sum_c rows[i][c] * panel[c][lane]        rows: keys, lanes: queries (or the other way round)
//   accumulate:  acc[c][lane] = alpha[lane] * acc[c][lane] + sum_i rows[i][c] * weights[i][lane]
//
// Rows lie as they are stored, each behind a pointer; their elements are broadcast, so neither keys nor values are ever packed,
// and maxima, sums and rescaling over keys go lane by lane. A tile of 8 rows x 2 vectors keeps 16 sums in flight for 10 loads
// (AVX-512). Included by attention's ISA files alone.
#pragma once
#include "ops/attention/attention_cpu.h"
#include "tile/cpu/decode.h"

namespace ridge::RIDGE_ISA {
namespace {

constexpr int kTile = kLanes == 16 ? 8 : 4;  // rows of a register tile: 16 sums of 32 registers, 8 of 16
constexpr int kMaxDim = 256;
constexpr int kBlock = 64;  // keys between two updates of the running maximum

template <int N, int V>
RIDGE_INLINE void scores_tile(const float* const* rows, const float* panel, int64_t d, float* out) {
  constexpr int L = V * kLanes;
  Vec sum[N][V];
#pragma GCC unroll 8
  for (int i = 0; i < N; ++i)
#pragma GCC unroll 2
    for (int v = 0; v < V; ++v) sum[i][v] = zero();
  for (int64_t c = 0; c < d; ++c) {
    Vec p[V];
#pragma GCC unroll 2
    for (int v = 0; v < V; ++v) p[v] = load(panel + c * L + v * kLanes);
#pragma GCC unroll 8
    for (int i = 0; i < N; ++i) {
      const Vec x = broadcast(rows[i][c]);
#pragma GCC unroll 2
      for (int v = 0; v < V; ++v) sum[i][v] = fma(x, p[v], sum[i][v]);
    }
  }
#pragma GCC unroll 8
  for (int i = 0; i < N; ++i)
#pragma GCC unroll 2
    for (int v = 0; v < V; ++v) store(out + i * L + v * kLanes, sum[i][v]);
}

// rows [n][d], panel [d][V * kLanes], out [n][V * kLanes]
template <int V>
RIDGE_INLINE void scores(const float* const* rows, int n, const float* panel, int64_t d, float* out) {
  int i = 0;
  for (; i + kTile <= n; i += kTile) scores_tile<kTile, V>(rows + i, panel, d, out + i * V * kLanes);
  for (; i < n; ++i) scores_tile<1, V>(rows + i, panel, d, out + i * V * kLanes);
}

template <int N, int V>
RIDGE_INLINE void accumulate_tile(float* acc, const Vec* alpha, const float* const* rows, int n, int64_t c,
                                  const float* weights) {
  constexpr int L = V * kLanes;
  Vec sum[N][V];
#pragma GCC unroll 8
  for (int i = 0; i < N; ++i)
#pragma GCC unroll 2
    for (int v = 0; v < V; ++v) sum[i][v] = load(acc + (c + i) * L + v * kLanes) * alpha[v];
  for (int j = 0; j < n; ++j) {
    const float* row = rows[j] + c;
    Vec w[V];
#pragma GCC unroll 2
    for (int v = 0; v < V; ++v) w[v] = load(weights + j * L + v * kLanes);
#pragma GCC unroll 8
    for (int i = 0; i < N; ++i) {
      const Vec x = broadcast(row[i]);
#pragma GCC unroll 2
      for (int v = 0; v < V; ++v) sum[i][v] = fma(x, w[v], sum[i][v]);
    }
  }
#pragma GCC unroll 8
  for (int i = 0; i < N; ++i)
#pragma GCC unroll 2
    for (int v = 0; v < V; ++v) store(acc + (c + i) * L + v * kLanes, sum[i][v]);
}

// acc [d][V * kLanes], alpha [V], rows [n][d], weights [n][V * kLanes]; d is a multiple of 8
template <int V>
RIDGE_INLINE void accumulate(float* acc, const Vec* alpha, const float* const* rows, int n, int64_t d, const float* weights) {
  for (int64_t c = 0; c < d; c += kTile) accumulate_tile<kTile, V>(acc, alpha, rows, n, c, weights);
}

// [n][lanes] from rows that lie apart, and back: panel[c][lane] = scale * row(lane)[c].
template <int L>
RIDGE_INLINE void to_lane(float* panel, int lane, const float* row, int64_t n, float scale) {
  for (int64_t c = 0; c < n; ++c) panel[c * L + lane] = row[c] * scale;
}
template <int L>
RIDGE_INLINE void from_lane(const float* panel, int lane, float* row, int64_t n) {
  for (int64_t c = 0; c < n; ++c) row[c] = panel[c * L + lane];
}
RIDGE_INLINE void clear(float* p, int64_t n) {  // n is a multiple of kLanes
  for (int64_t i = 0; i < n; i += kLanes) store(p + i, zero());
}

RIDGE_INLINE int64_t larger(int64_t a, int64_t b) { return a > b ? a : b; }
RIDGE_INLINE int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }

// Features as tasks keep them: whole tiles of matrix units.
RIDGE_INLINE int64_t padded_dim(int64_t d) { return (d + kDimPad - 1) / kDimPad * kDimPad; }

// ---- rows of any type

struct Q8 {  // a block of Q8_0
  uint8_t scale[2];
  int8_t values[32];
};
RIDGE_INLINE float scale_of(const Q8& b) { return read_f16(b.scale); }

// The place of element i, and the values from column c on.
template <class T>
RIDGE_INLINE const T* row_at(const void* data, int64_t i) {
  return static_cast<const T*>(data) + i;
}
template <>
RIDGE_INLINE const Q8* row_at<Q8>(const void* data, int64_t i) {
  return static_cast<const Q8*>(data) + i / 32;
}
template <class T>
RIDGE_INLINE Vec values(const T* row, int64_t c) {
  return load(row + c);
}
RIDGE_INLINE Vec values(const Q8* row, int64_t c) { return load(row[c / 32].values + c % 32) * broadcast(scale_of(row[c / 32])); }

RIDGE_INLINE void widen_row(const Q8* from, float* to, int64_t n) {  // whole blocks
  for (int64_t c = 0; c < n; c += kLanes) store(to + c, values(from, c));
}
template <class T>
RIDGE_INLINE void widen_row(const T* from, float* to, int64_t n) {
  each_vec(n, [&](int64_t c, int lanes) {
    if (lanes == kLanes)
      store(to + c, load(from + c));
    else
      store(to + c, load(from + c, lanes), lanes);
  });
}

RIDGE_INLINE void widen_row(const void* data, CpuFloat type, int64_t offset, float* to, int64_t n) {
  switch (type) {
    case CpuFloat::f32: return widen_row(static_cast<const float*>(data) + offset, to, n);
    case CpuFloat::f16: return widen_row(static_cast<const F16*>(data) + offset, to, n);
    case CpuFloat::bf16: return widen_row(static_cast<const Bf16*>(data) + offset, to, n);
    case CpuFloat::q8: return widen_row(row_at<Q8>(data, offset), to, n);
  }
}

RIDGE_INLINE void store_row(const HeadView& o, int64_t offset, const float* from, int64_t n, float factor) {
  each_vec(n, [&](int64_t c, int lanes) {
    const Vec x = load(from + c, lanes) * broadcast(factor);
    switch (o.type) {
      case CpuFloat::f32: return store(static_cast<float*>(o.data) + offset + c, x, lanes);
      case CpuFloat::f16: return store(static_cast<F16*>(o.data) + offset + c, x, lanes);
      case CpuFloat::bf16: return store(static_cast<Bf16*>(o.data) + offset + c, x, lanes);
      case CpuFloat::q8: return;  // q and o are never in blocks
    }
  });
}

}  // namespace
}  // namespace ridge::RIDGE_ISA
