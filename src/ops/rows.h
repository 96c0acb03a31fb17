// What rows of row-wise ops share outside their ISA files: which float types they are compiled for, blocks of rows for the pool,
// small vectors as f32, partial sums of weight gradients.
#pragma once
#include <algorithm>
#include <cstdint>

#include "base/view.h"
#include "device/pool.h"

namespace ridge {

// Index of a type in a table of ISA functions: [f32, bf16, f16]. Only for types that `vectored` says yes to.
constexpr int kVectored = 3;
inline bool vectored(DType t) { return t == DType::f32 || t == DType::bf16 || t == DType::f16; }
inline int table_index(DType t) { return t == DType::f32 ? 0 : t == DType::bf16 ? 1 : 2; }

// Absent, or of a compiled type with its elements side by side.
inline bool fast_rows(const View& v) { return !v || (vectored(v.type) && v.rows_dense()); }
inline bool fast_f32(const View& v) { return !v || (v.type == DType::f32 && v.rows_dense()); }

// f(from, n) over blocks of rows that move about 64 KB each, so that a claim of the pool costs little beside its work.
template <class F>
void parallel_rows(const Pool& pool, int64_t rows, int64_t bytes_per_row, const F& f) {
  const int64_t block =
      std::clamp<int64_t>((int64_t(64) << 10) / std::max<int64_t>(bytes_per_row, 1), 1, std::max<int64_t>(rows, 1));
  pool.parallel((rows + block - 1) / block, [&](int64_t i, int) { f(i * block, std::min(block, rows - i * block)); });
}

// A weight vector as f32: itself when it is that already, else converted (plus `offset`) into scratch, ones when there is none.
inline int64_t f32_vector_bytes(int64_t n) { return (n * 4 + 63) / 64 * 64; }
const float* f32_vector(const View& w, double offset, int64_t n, char* scratch);

// Gradients summed over rows: a fixed split of the rows, whatever the threads, each share into its own partial sum [shares, n].
struct RowShares {
  int64_t rows, per_share, count;
  explicit RowShares(int64_t rows)
      : rows(rows), per_share(std::max<int64_t>(16, (rows + 31) / 32)), count((rows + per_share - 1) / per_share) {}
  int64_t from(int64_t share) const { return share * per_share; }
  int64_t size(int64_t share) const { return std::min(per_share, rows - from(share)); }
};
// into[j] += sum over shares of partial[share, j], in order. `into` is f32 [n].
void add_partials(const Pool& pool, const float* partial, int64_t shares, int64_t n, const View& into);

}  // namespace ridge
