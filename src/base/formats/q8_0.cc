// Q8_0: 32 values in 34 bytes: f16 scale d, then 32 signed bytes. value = d q.
#include "base/formats/blocks.h"

namespace ridge {
namespace {

void decode(const void* blocks, float* values, int64_t n) {
  auto* b = static_cast<const uint8_t*>(blocks);
  for (int64_t i = 0; i < n; i += 32, b += 34) {
    const float d = load_f16(b);
    for (int j = 0; j < 32; ++j) values[i + j] = d * float(int8_t(b[2 + j]));
  }
}

void encode(const float* values, void* blocks, int64_t n) {
  auto* b = static_cast<uint8_t*>(blocks);
  for (int64_t i = 0; i < n; i += 32, b += 34) {
    float top = 0;
    for (int j = 0; j < 32; ++j) top = std::max(top, std::fabs(values[i + j]));
    const float d = top / 127, inverse = reciprocal(d);
    store_f16(b, d);
    for (int j = 0; j < 32; ++j) b[2 + j] = uint8_t(nearest(values[i + j] * inverse, -127, 127));
  }
}

}  // namespace

extern const Format q8_0_format{"Q8_0", 8, 32, 34, decode, encode, 0.005f};

}  // namespace ridge
