// Q4_K: 256 values in 144 bytes: f16 d, f16 dmin, 12 bytes holding 8 scales and 8 minima of 6 bits, 128 bytes of nibbles.
// 32 consecutive nibble bytes serve two sub-blocks of 32 values, low nibbles first. value = d scale q - dmin minimum.
#include "base/formats/blocks.h"

namespace ridge {
namespace {

struct ScaleMin {
  int scale, min;
};

ScaleMin unpack(const uint8_t* packed, int j) {
  if (j < 4) return {packed[j] & 63, packed[j + 4] & 63};
  return {(packed[j + 4] & 15) | (packed[j - 4] >> 6) << 4, (packed[j + 4] >> 4) | (packed[j] >> 6) << 4};
}

void pack(uint8_t* packed, int j, ScaleMin s) {
  if (j < 4) {
    packed[j] = uint8_t((packed[j] & 0xc0) | s.scale);
    packed[j + 4] = uint8_t((packed[j + 4] & 0xc0) | s.min);
  } else {
    packed[j + 4] = uint8_t((s.scale & 15) | (s.min & 15) << 4);
    packed[j - 4] = uint8_t((packed[j - 4] & 63) | (s.scale >> 4) << 6);
    packed[j] = uint8_t((packed[j] & 63) | (s.min >> 4) << 6);
  }
}

void decode(const void* blocks, float* values, int64_t n) {
  auto* b = static_cast<const uint8_t*>(blocks);
  for (int64_t i = 0; i < n; i += 256, b += 144) {
    const float d = load_f16(b), dmin = load_f16(b + 2);
    for (int j = 0; j < 8; ++j) {
      const ScaleMin s = unpack(b + 4, j);
      const float scale = d * float(s.scale), min = dmin * float(s.min);
      const uint8_t* q = b + 16 + j / 2 * 32;
      for (int l = 0; l < 32; ++l) values[i + j * 32 + l] = scale * float(j % 2 ? q[l] >> 4 : q[l] & 15) - min;
    }
  }
}

void encode(const float* values, void* blocks, int64_t n) {
  auto* b = static_cast<uint8_t*>(blocks);
  for (int64_t i = 0; i < n; i += 256, b += 144) {
    memset(b, 0, 144);
    float scale[8], min[8], top_scale = 0, top_min = 0;
    for (int j = 0; j < 8; ++j) {
      const auto [low, high] = std::minmax_element(values + i + j * 32, values + i + j * 32 + 32);
      min[j] = std::max(0.0f, -*low);  // minima are stored negated and cannot be negative
      scale[j] = std::max(0.0f, *high + min[j]) / 15;
      top_scale = std::max(top_scale, scale[j]);
      top_min = std::max(top_min, min[j]);
    }
    store_f16(b, top_scale / 63);
    store_f16(b + 2, top_min / 63);
    const float d = load_f16(b), dmin = load_f16(b + 2);
    for (int j = 0; j < 8; ++j) {
      // The scale is rounded up, so that a scale of 6 bits never clips the largest value.
      const ScaleMin s{nearest(std::ceil(scale[j] * reciprocal(d)), 0, 63), nearest(min[j] * reciprocal(dmin), 0, 63)};
      pack(b + 4, j, s);
      const float step = d * float(s.scale), from = dmin * float(s.min), inverse = reciprocal(step);
      uint8_t* q = b + 16 + j / 2 * 32;
      for (int l = 0; l < 32; ++l)
        q[l] = uint8_t(q[l] | nearest((values[i + j * 32 + l] + from) * inverse, 0, 15) << (j % 2 * 4));
    }
  }
}

}  // namespace

extern const Format q4_k_format{"Q4_K", 12, 256, 144, decode, encode, 0.09f};

}  // namespace ridge
