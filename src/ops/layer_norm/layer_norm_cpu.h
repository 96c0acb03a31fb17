// How layer_norm's rows reach the functions compiled per ISA. Plain data.
#pragma once
#include <cstdint>

namespace ridge {

struct LayerNormTask {
  const void *x, *add;    // T [rows, n]; add may be null
  void *sum, *y;          // T and U [rows, n]; sum may be null
  const float *w, *bias;  // [n]; bias may be null
  int64_t rows, n;
  int64_t x_step, add_step, sum_step, y_step;  // elements from row to row
  double eps;
};

struct LayerNormBackwardTask {
  const float *dy, *dsum;  // [rows, n]; dsum may be null
  const void *x, *add;     // T [rows, n]; add may be null
  const float* w;          // [n]
  float *dx, *dadd;        // [rows, n], may be null
  float *dw, *dbias;       // [n], added to; may be null
  int64_t rows, n;
  int64_t dy_step, dsum_step, x_step, add_step, dx_step, dadd_step;
  double eps;
};

struct LayerNormCpu {
  void (*forward[3][3])(const LayerNormTask&);        // [T][U]: f32, bf16, f16
  void (*backward[3])(const LayerNormBackwardTask&);  // [T]
};

}  // namespace ridge
