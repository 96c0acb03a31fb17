// How adamw's rows reach the functions compiled per ISA. Plain data.
#pragma once
#include <cstdint>

namespace ridge {

// What a step's numbers come to: computed once a call, in double.
struct AdamWFactors {
  float grad_scale, beta1, rest1, beta2, rest2;  // rest = 1 - beta
  float unbias2, eps;                            // 1 / sqrt(1 - beta2^step)
  float step_size, decay;                        // lr / (1 - beta1^step), lr weight_decay
};

struct AdamWCpu {
  void (*update[3])(void* p, float* m, float* v, const float* g, int64_t n, const AdamWFactors& f);  // p: f32, bf16, f16
};

}  // namespace ridge
