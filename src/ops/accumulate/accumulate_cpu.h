// How accumulate's rows (and embed_backward's) reach the functions compiled per ISA. Plain data.
#pragma once
#include <cstdint>

namespace ridge {

struct AccumulateCpu {
  // y[j] += scale x[j]; x is T, y is U.
  void (*add[3][3])(const void* x, void* y, int64_t n, float scale);
  // sum[j] += the sum of x[r, j] over the rows; x is T, `step` elements from row to row.
  void (*sum_rows[3])(const void* x, int64_t step, int64_t rows, int64_t n, float* sum);
};

}  // namespace ridge
