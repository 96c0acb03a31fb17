// The element types of a View: plain numbers, and tags for the block-quantised formats of formats/list.h.
#pragma once
#include <bit>
#include <cstdint>
#include <cstring>

#include "base/formats/list.h"

namespace ridge {

enum class DType : uint8_t {
  f64,
  f32,
  f16,
  bf16,
  i32,
  i64,
  u8,
#define RIDGE_TAG(name) name,
  RIDGE_FORMATS(RIDGE_TAG)
#undef RIDGE_TAG
#define RIDGE_TAG(name) name##_woven,
      RIDGE_WOVEN_FORMATS(RIDGE_TAG)
#undef RIDGE_TAG
          count
};

const char* name_of(DType type);  // "f32", "Q4_0"
#define RIDGE_ONE(name) +1
constexpr int kStoredTypes = int(DType::u8) + 1 RIDGE_FORMATS(RIDGE_ONE);  // types that files have; woven ones follow
#undef RIDGE_ONE
constexpr bool is_block(DType type) { return type > DType::u8; }
constexpr bool is_woven(DType type) { return int(type) >= kStoredTypes; }
constexpr bool is_float(DType type) { return type <= DType::bf16; }
constexpr int64_t size_of(DType type) {  // bytes of one element; plain types only
  constexpr int64_t sizes[] = {8, 4, 2, 2, 4, 8, 1};
  return sizes[int(type)];
}
int64_t bytes_of(DType type, int64_t n);  // bytes of n consecutive elements, block formats included; woven: of n / 16 of 16 rows
DType woven_of(DType type);               // the type itself where it has no woven form
DType stored_of(DType type);              // and back

// ---- 16-bit floats; rounding is to nearest even, NaN stays NaN
inline float f32_from_bf16(uint16_t h) { return std::bit_cast<float>(uint32_t(h) << 16); }
inline uint16_t bf16_from_f32(float x) {
  const uint32_t u = std::bit_cast<uint32_t>(x);
  if ((u & 0x7fffffff) > 0x7f800000) return uint16_t(u >> 16 | 0x40);
  return uint16_t((u + 0x7fff + (u >> 16 & 1)) >> 16);
}
inline float f32_from_f16(uint16_t h) { return float(std::bit_cast<_Float16>(h)); }
inline uint16_t f16_from_f32(float x) { return std::bit_cast<uint16_t>(_Float16(x)); }

}  // namespace ridge
