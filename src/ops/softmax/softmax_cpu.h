// How softmax's rows reach the functions compiled per ISA. Plain data.
#pragma once
#include <cstdint>

namespace ridge {

struct SoftmaxTask {
  const void* x;  // T [rows, n]
  void* y;        // U [rows, n]
  int64_t rows, n;
  int64_t x_step, y_step;  // elements from row to row
  float scale;
  bool log;
};

struct SoftmaxBackwardTask {
  const void* y;    // T [rows, n]
  const float* dy;  // [rows, n]
  float* dx;        // [rows, n]
  int64_t rows, n;
  int64_t y_step, dy_step, dx_step;
  float scale;
  bool log;
};

struct SoftmaxCpu {
  void (*forward[3][3])(const SoftmaxTask&);        // [T][U]: f32, bf16, f16
  void (*backward[3])(const SoftmaxBackwardTask&);  // [T]
};

}  // namespace ridge
