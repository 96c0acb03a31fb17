// How glu's rows reach the functions compiled per ISA. Plain data.
#pragma once
#include <cstdint>

#include "ops/activation.h"

namespace ridge {

struct GluTask {
  const void *gate, *up;  // T [rows, n]; up may be null
  void* y;                // U [rows, n]
  int64_t rows, n;
  int64_t gate_step, up_step, y_step;  // elements from row to row
  Activation act;
};

struct GluBackwardTask {
  const void *gate, *up;  // T [rows, n]; up may be null
  const float* dy;        // [rows, n]
  float *dgate, *dup;     // [rows, n], may be null
  int64_t rows, n;
  int64_t gate_step, up_step, dy_step, dgate_step, dup_step;
  Activation act;
  bool accumulate;
};

struct GluCpu {
  void (*forward[3][3])(const GluTask&);        // [T][U]: f32, bf16, f16
  void (*backward[3])(const GluBackwardTask&);  // [T]
};

}  // namespace ridge
