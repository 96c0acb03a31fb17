#include "ops/rows.h"

namespace ridge {

const float* f32_vector(const View& w, double offset, int64_t n, char* scratch) {
  if (w && w.type == DType::f32 && w.rows_dense() && offset == 0) return w.as<float>();
  float* to = reinterpret_cast<float*>(scratch);
  for (int64_t j = 0; j < n; ++j) to[j] = w ? float(w.get(j) + offset) : 1.0f;
  return to;
}

void add_partials(const Pool& pool, const float* partial, int64_t shares, int64_t n, const View& into) {
  constexpr int64_t block = 512;
  pool.parallel((n + block - 1) / block, [&](int64_t b, int) {
    float sum[block] = {};
    const int64_t from = b * block, columns = std::min(block, n - from);
    for (int64_t s = 0; s < shares; ++s)
      for (int64_t j = 0; j < columns; ++j) sum[j] += partial[s * n + from + j];
    for (int64_t j = 0; j < columns; ++j) *into.as<float>(from + j) += sum[j];
  });
}

}  // namespace ridge
