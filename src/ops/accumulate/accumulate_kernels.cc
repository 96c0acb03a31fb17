// The rows of accumulate, best first.
#include "ops/accumulate/accumulate.h"
#include "ops/accumulate/accumulate_cpu.h"
#include "ops/call.h"
#include "ops/rows.h"
#include "tile/cpu/isa_table.h"

namespace ridge {

RIDGE_ISA_TABLES(AccumulateCpu, accumulate_cpu)

namespace {

bool repeats(const View& v) {
  for (int d = 0; d < v.rank; ++d)
    if (v.strides[d] == 0 && v.dims[d] > 1) return true;
  return false;
}

// ---- element by element
Verdict supports_add(const Accumulate::Args& a) {
  if (!fast_rows(a.x) || !fast_rows(a.y)) return {"not in rows of f32, bf16 or f16"};
  if (repeats(a.y)) return {"y repeats: a sum"};
  return {};
}

// Row `i` of the rows that all but the last dimension count.
char* row_of(const View& v, int64_t i) {
  char* p = v.data;
  for (int d = v.rank - 2; d >= 0; --d) {
    p += i % v.dims[d] * v.strides[d] * size_of(v.type);
    i /= v.dims[d];
  }
  return p;
}

template <Isa isa>
void launch_add(Ctx& x, const Accumulate::Args& a, char*) {
  const auto add = accumulate_cpu(isa).add[table_index(a.x.type)][table_index(a.y.type)];
  const bool flat = a.x.dense() && a.y.dense();
  constexpr int64_t piece = 8192;  // of a flat view, which is cut at will
  const int64_t n = flat ? std::min(piece, a.x.count()) : a.x.dims[a.x.rank - 1], count = a.x.count();
  if (count == 0) return;
  parallel_rows(x.pool(), (count + n - 1) / n, n * (size_of(a.x.type) + 2 * size_of(a.y.type)), [&](int64_t from, int64_t rows) {
    for (int64_t r = from; r < from + rows; ++r) {
      if (flat)
        add(a.x.data + r * n * size_of(a.x.type), a.y.data + r * n * size_of(a.y.type), std::min(n, count - r * n),
            float(a.scale));
      else
        add(row_of(a.x, r), row_of(a.y, r), n, float(a.scale));
    }
  });
}

// ---- rows into one: the gradient of a bias
Verdict supports_sum(const Accumulate::Args& a) {
  if (!fast_rows(a.x) || !fast_rows(a.y)) return {"not in rows of f32, bf16 or f16"};
  if (a.y.rank != 2 || a.y.strides[0] != 0 || (a.y.strides[1] != 1 && a.y.dims[1] != 1))
    return {"y is not one row for all of x's"};
  return {};
}

constexpr int64_t kColumns = 64;  // a task's columns: four cache lines a row, its sums stay in registers' reach

template <Isa isa>
void launch_sum(Ctx& x, const Accumulate::Args& a, char*) {
  const auto sum_rows = accumulate_cpu(isa).sum_rows[table_index(a.x.type)];
  const auto add = accumulate_cpu(isa).add[0][table_index(a.y.type)];
  const int64_t rows = a.x.dims[0], n = a.x.dims[1];
  x.pool().parallel((n + kColumns - 1) / kColumns, [&](int64_t task, int) {
    const int64_t from = task * kColumns, columns = std::min(kColumns, n - from);
    float sum[kColumns] = {};
    sum_rows(a.x.at(0, from), a.x.strides[0], rows, columns, sum);
    add(sum, a.y.at(0, from), columns, float(a.scale));
  });
}

constexpr Speed kAdd{.unit = Unit::fma_f32, .compute = 0.13, .memory = 0.9};
constexpr Speed kSum{.unit = Unit::fma_f32, .compute = 0.13, .memory = 0.9};

}  // namespace

std::span<const Kernel<Accumulate>> Accumulate::kernels() {
  static const Kernel<Accumulate> rows[] = {
      {"add_avx512", Place::cpu, Isa::avx512, Tier::fast, supports_add, launch_add<Isa::avx512>, nullptr, kAdd},
      {"sum_avx512", Place::cpu, Isa::avx512, Tier::fast, supports_sum, launch_sum<Isa::avx512>, nullptr, kSum},
      {"add_avx2", Place::cpu, Isa::avx2, Tier::fast, supports_add, launch_add<Isa::avx2>, nullptr, kAdd},
      {"sum_avx2", Place::cpu, Isa::avx2, Tier::fast, supports_sum, launch_sum<Isa::avx2>, nullptr, kSum},
      {"add_portable", Place::cpu, Isa::portable, Tier::fast, supports_add, launch_add<Isa::portable>, nullptr, kAdd},
      {"sum_portable", Place::cpu, Isa::portable, Tier::fast, supports_sum, launch_sum<Isa::portable>, nullptr, kSum},
      {"reference", Place::cpu, Isa::portable, Tier::reference, always<Accumulate>, reference},
  };
  return rows;
}

void accumulate(Ctx& x, const Accumulate::Args& a) { call<Accumulate>(x, a); }
OpInfo accumulate_op() { return erase<Accumulate>(); }

}  // namespace ridge
