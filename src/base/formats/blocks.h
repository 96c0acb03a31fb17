// What the block formats share: reading and writing the half-precision scale inside a block.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/format.h"

namespace ridge {

inline float load_f16(const uint8_t* p) {
  uint16_t h;
  memcpy(&h, p, 2);
  return f32_from_f16(h);
}
inline void store_f16(uint8_t* p, float x) {
  const uint16_t h = f16_from_f32(x);
  memcpy(p, &h, 2);
}
inline int nearest(float x, int low, int high) { return std::clamp(int(std::lrintf(x)), low, high); }
inline float reciprocal(float x) { return x == 0 ? 0 : 1 / x; }

}  // namespace ridge
