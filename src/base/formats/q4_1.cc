// Q4_1: 32 values in 20 bytes: f16 scale d, f16 minimum m, then nibbles as in Q4_0. value = d q + m.
#include "base/formats/blocks.h"

namespace ridge {
namespace {

void decode(const void* blocks, float* values, int64_t n) {
  auto* b = static_cast<const uint8_t*>(blocks);
  for (int64_t i = 0; i < n; i += 32, b += 20) {
    const float d = load_f16(b), m = load_f16(b + 2);
    for (int j = 0; j < 16; ++j) {
      values[i + j] = d * float(b[4 + j] & 15) + m;
      values[i + j + 16] = d * float(b[4 + j] >> 4) + m;
    }
  }
}

void encode(const float* values, void* blocks, int64_t n) {
  auto* b = static_cast<uint8_t*>(blocks);
  for (int64_t i = 0; i < n; i += 32, b += 20) {
    const auto [low, high] = std::minmax_element(values + i, values + i + 32);
    const float m = *low, d = (*high - m) / 15, inverse = reciprocal(d);
    store_f16(b, d);
    store_f16(b + 2, m);
    for (int j = 0; j < 16; ++j)
      b[4 + j] = uint8_t(nearest((values[i + j] - m) * inverse, 0, 15) | nearest((values[i + j + 16] - m) * inverse, 0, 15) << 4);
  }
}

}  // namespace

extern const Format q4_1_format{"Q4_1", 3, 32, 20, decode, encode, 0.075f};

}  // namespace ridge
