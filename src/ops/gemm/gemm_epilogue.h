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

// c[row][col .. col + cols) from sums[0 .. cols) and, for a gated pair, the gate's.
inline void finish_row(const GemmTask& t, int64_t row, int64_t col, int64_t cols, const float* sums, const float* gates) {
  const Vec scale = broadcast(t.scale);
  each_vec(cols, [&](int64_t i, int lanes) __attribute__((always_inline)) {
    const auto linear = [&](const float* s, const CpuMatrix& bias) {
      const Vec x = load(s + i, lanes);
      return bias.data ? fma(scale, x, load_as(bias.type, bias.data, col + i, lanes)) : scale * x;
    };
    Vec y = linear(sums, t.bias);
    y = gates ? y * activate(t.act, linear(gates, t.gate_bias)) : activate(t.act, y);
    if (t.residual.data) y = y + load_as(t.residual.type, t.residual.data + row * t.residual.row, col + i, lanes);
    store_as(t.c.type, t.c.data + row * t.c.row, col + i, y, lanes);
  });
}

}  // namespace
}  // namespace ridge::RIDGE_ISA
