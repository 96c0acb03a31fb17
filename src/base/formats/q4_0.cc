// Q4_0: 32 values in 18 bytes: f16 scale d, then 16 bytes whose low nibbles are values 0-15 and high nibbles 16-31. value = d (q - 8).
#include "base/formats/blocks.h"

namespace ridge {
namespace {

void decode(const void* blocks, float* values, int64_t n) {
  auto* b = static_cast<const uint8_t*>(blocks);
  for (int64_t i = 0; i < n; i += 32, b += 18) {
    const float d = load_f16(b);
    for (int j = 0; j < 16; ++j) {
      values[i + j] = d * float((b[2 + j] & 15) - 8);
      values[i + j + 16] = d * float((b[2 + j] >> 4) - 8);
    }
  }
}

void encode(const float* values, void* blocks, int64_t n) {
  auto* b = static_cast<uint8_t*>(blocks);
  for (int64_t i = 0; i < n; i += 32, b += 18) {
    float extreme = 0;  // the value of largest magnitude becomes -8
    for (int j = 0; j < 32; ++j)
      if (std::fabs(values[i + j]) > std::fabs(extreme)) extreme = values[i + j];
    const float d = extreme / -8, inverse = reciprocal(d);
    store_f16(b, d);
    for (int j = 0; j < 16; ++j)
      b[2 + j] = uint8_t(nearest(values[i + j] * inverse + 8, 0, 15) | nearest(values[i + j + 16] * inverse + 8, 0, 15) << 4);
  }
}

}  // namespace

extern const Format q4_0_format{"Q4_0", 2, 32, 18, decode, encode, 0.13f};

}  // namespace ridge
