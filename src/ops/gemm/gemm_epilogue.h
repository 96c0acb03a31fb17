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

// What stands between sums and c: nothing but a scale; parts that are f32 and no bias; or anything.
enum class Epilogue : uint8_t { plain, f32, any };
RIDGE_INLINE Epilogue epilogue_of(const GemmTask& t) {
  if (t.bias.data || t.gate_bias.data || t.c.type != DType::f32) return Epilogue::any;
  if (t.residual.data && t.residual.type != DType::f32) return Epilogue::any;
  return !t.gate.data && !t.residual.data && t.act == Activation::none ? Epilogue::plain : Epilogue::f32;
}

// c[row .. row + rows)[col .. col + cols) from sums(i, j, lanes), where i and j count from row and col, and gates(i, j, lanes) where there is
// a gate. Row by row: what one row's columns lie in is one stretch of memory.
template <Epilogue kind, class Sums, class Gates>
RIDGE_INLINE void finish_as(const GemmTask& t, int64_t row, int64_t rows, int64_t col, int64_t cols, Sums&& sums, Gates&& gates) {
  const Vec scale = broadcast(t.scale);
  for (int64_t i = 0; i < rows; ++i) {
    uint8_t* c = t.c.data + (row + i) * t.c.row;
    const uint8_t* residual = t.residual.data + (row + i) * t.residual.row;
    each_vec(
        cols, [&](int64_t j, int lanes) __attribute__((always_inline)) {
          if constexpr (kind == Epilogue::plain) {
            store(reinterpret_cast<float*>(c) + col + j, scale * sums(i, j, lanes), lanes);
          } else {
            const auto biased = [&](Vec x, const CpuMatrix& bias) __attribute__((always_inline)) {
              if constexpr (kind == Epilogue::any)
                if (bias.data) return fma(scale, x, load_as(bias.type, bias.data, col + j, lanes));
              return scale * x;
            };
            Vec y = biased(sums(i, j, lanes), t.bias);
            y = t.gate.data ? y * activate(t.act, biased(gates(i, j, lanes), t.gate_bias)) : activate(t.act, y);
            if (t.residual.data)
              y = y + (kind == Epilogue::any ? load_as(t.residual.type, residual, col + j, lanes)
                                             : load(reinterpret_cast<const float*>(residual) + col + j, lanes));
            if constexpr (kind == Epilogue::any)
              store_as(t.c.type, c, col + j, y, lanes);
            else
              store(reinterpret_cast<float*>(c) + col + j, y, lanes);
          }
        });
  }
}
template <class Sums, class Gates>
RIDGE_INLINE void finish(const GemmTask& t, int64_t row, int64_t rows, int64_t col, int64_t cols, Sums&& sums, Gates&& gates) {
  switch (epilogue_of(t)) {
    case Epilogue::plain: return finish_as<Epilogue::plain>(t, row, rows, col, cols, sums, gates);
    case Epilogue::f32: return finish_as<Epilogue::f32>(t, row, rows, col, cols, sums, gates);
    case Epilogue::any: return finish_as<Epilogue::any>(t, row, rows, col, cols, sums, gates);
  }
}

// From sums[rows][cols] in memory, whose rows are `ld` apart, and from the gate's.
inline void finish(const GemmTask& t, int64_t row, int64_t rows, int64_t col, int64_t cols, const float* sums, const float* gates,
                   int64_t ld) {
  const auto from = [ld](const float* p) {
    return [=](int64_t i, int64_t j, int lanes) __attribute__((always_inline)) { return load(p + i * ld + j, lanes); };
  };
  finish(t, row, rows, col, cols, from(sums), from(gates));
}

}  // namespace
}  // namespace ridge::RIDGE_ISA
