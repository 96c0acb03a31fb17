// From sums to c: scale, bias, gate, activation, residual, rounding. One source behind every CPU row.
#pragma once
#include "ops/activation_vec.h"
#include "ops/gemm/gemm_cpu.h"
#include "tile/cpu/vec.h"

namespace ridge::RIDGE_ISA {
namespace {

RIDGE_INLINE Vec load_as(DType type, const uint8_t* p, int64_t i, int lanes) {
  switch (type) {
    case DType::f16: return load(reinterpret_cast<const F16*>(p) + i, lanes);
    case DType::bf16: return load(reinterpret_cast<const Bf16*>(p) + i, lanes);
    default: return load(reinterpret_cast<const float*>(p) + i, lanes);
  }
}
RIDGE_INLINE void store_as(DType type, uint8_t* p, int64_t i, Vec x, int lanes) {
  switch (type) {
    case DType::f16: return store(reinterpret_cast<F16*>(p) + i, x, lanes);
    case DType::bf16: return store(reinterpret_cast<Bf16*>(p) + i, x, lanes);
    default: return store(reinterpret_cast<float*>(p) + i, x, lanes);
  }
}

// c[row .. row + rows)[col .. col + cols) from sums[rows][cols], whose rows are `ld` apart, and from the gate's where there is one.
// A vector of columns at a time, so that a bias is read once. `plain`: nothing but a scale, f32 in and out.
template <bool plain>
inline void finish(const GemmTask& t, int64_t row, int64_t rows, int64_t col, int64_t cols, const float* sums, const float* gates,
                   int64_t ld) {
  const Vec scale = broadcast(t.scale);
  each_vec(
      cols, [&](int64_t j, int lanes) __attribute__((always_inline)) {
        const Vec bias = !plain && t.bias.data ? load_as(t.bias.type, t.bias.data, col + j, lanes) : zero();
        const Vec gate_bias = !plain && t.gate_bias.data ? load_as(t.gate_bias.type, t.gate_bias.data, col + j, lanes) : zero();
        for (int64_t i = 0; i < rows; ++i) {
          uint8_t* c = t.c.data + (row + i) * t.c.row;
          Vec y = fma(scale, load(sums + i * ld + j, lanes), bias);
          if constexpr (plain) {
            store(reinterpret_cast<float*>(c) + col + j, y, lanes);
          } else {
            y = gates ? y * activate(t.act, fma(scale, load(gates + i * ld + j, lanes), gate_bias)) : activate(t.act, y);
            if (t.residual.data) y = y + load_as(t.residual.type, t.residual.data + (row + i) * t.residual.row, col + j, lanes);
            store_as(t.c.type, c, col + j, y, lanes);
          }
        }
      });
}

inline void finish(const GemmTask& t, int64_t row, int64_t rows, int64_t col, int64_t cols, const float* sums, const float* gates,
                   int64_t ld) {
  const bool plain = !t.bias.data && !gates && t.act == Activation::none && !t.residual.data && t.c.type == DType::f32;
  plain ? finish<true>(t, row, rows, col, cols, sums, gates, ld) : finish<false>(t, row, rows, col, cols, sums, gates, ld);
}

}  // namespace
}  // namespace ridge::RIDGE_ISA
