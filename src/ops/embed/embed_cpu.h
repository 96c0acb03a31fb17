// How embed's rows reach the functions compiled per ISA. Plain data.
#pragma once
#include <cstdint>

namespace ridge {

struct EmbedCpu {
  void (*convert[3][3])(const void* x, void* y, int64_t n, float scale);  // y[j] = scale x[j]; [T][U]: f32, bf16, f16
};

}  // namespace ridge
