// Q6_K: 256 values in 210 bytes: 128 bytes of low nibbles, 64 bytes of high bit pairs, 16 signed scales, f16 d last.
// Each half of 128 values: value l + 32 s has its low nibble in ql[l + 32 (s & 1)] (s < 2 low, else high nibble) and its high
// bits in qh[l] >> 2 s; one scale for 16 values. value = d scale (q - 32).
#include "base/formats/blocks.h"

namespace ridge {
namespace {

void decode(const void* blocks, float* values, int64_t n) {
  auto* b = static_cast<const uint8_t*>(blocks);
  for (int64_t i = 0; i < n; i += 256, b += 210) {
    const float d = load_f16(b + 208);
    for (int j = 0; j < 256; ++j) {
      const int half = j / 128, s = j % 128 / 32, l = j % 32;
      const int low = b[half * 64 + (s & 1) * 32 + l] >> (s / 2 * 4) & 15;
      const int high = b[128 + half * 32 + l] >> (2 * s) & 3;
      values[i + j] = d * float(int8_t(b[192 + j / 16])) * float((low | high << 4) - 32);
    }
  }
}

void encode(const float* values, void* blocks, int64_t n) {
  auto* b = static_cast<uint8_t*>(blocks);
  for (int64_t i = 0; i < n; i += 256, b += 210) {
    memset(b, 0, 210);
    float scale[16], top = 0;
    for (int j = 0; j < 16; ++j) {
      float extreme = 0;  // the value of largest magnitude becomes -32
      for (int l = 0; l < 16; ++l)
        if (std::fabs(values[i + j * 16 + l]) > std::fabs(extreme)) extreme = values[i + j * 16 + l];
      scale[j] = extreme / -32;
      top = std::max(top, std::fabs(scale[j]));
    }
    store_f16(b + 208, top / 127);
    const float d = load_f16(b + 208);
    for (int j = 0; j < 256; ++j) {
      const int code = nearest(scale[j / 16] * reciprocal(d), -127, 127);
      b[192 + j / 16] = uint8_t(code);
      const int q = nearest(values[i + j] * reciprocal(d * float(code)) + 32, 0, 63);
      const int half = j / 128, s = j % 128 / 32, l = j % 32;
      b[half * 64 + (s & 1) * 32 + l] = uint8_t(b[half * 64 + (s & 1) * 32 + l] | (q & 15) << (s / 2 * 4));
      b[128 + half * 32 + l] = uint8_t(b[128 + half * 32 + l] | (q >> 4) << (2 * s));
    }
  }
}

}  // namespace

extern const Format q6_k_format{"Q6_K", 14, 256, 210, decode, encode, 0.04f};

}  // namespace ridge
