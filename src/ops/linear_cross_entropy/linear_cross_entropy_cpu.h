// How linear_cross_entropy's rows reach the functions compiled per ISA. Plain data.
#pragma once
#include <cstdint>

namespace ridge {

struct LogitGradient {
  float lse, scale, lse_scale;  // dz = (scale (p - [v = target]) + lse_scale p) slope
  int64_t target;               // within this piece of the vocabulary; -1: elsewhere
};

struct LinearCrossEntropyCpu {
  // A further piece of a token's logits: caps them in place (0: no cap) and updates the running maximum and sum of exponentials.
  void (*update)(float* z, int64_t n, float softcap, float* top, float* sum);
  // Logits, not yet capped, become their gradient in place.
  void (*gradient)(float* z, int64_t n, float softcap, const LogitGradient& g);
};

}  // namespace ridge
