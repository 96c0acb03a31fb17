// The rows of rms_norm and rms_norm_backward, best first.
#include "ops/call.h"
#include "ops/rms_norm/rms_norm.h"
#include "ops/rms_norm/rms_norm_cpu.h"
#include "ops/rows.h"
#include "tile/cpu/isa_table.h"

namespace ridge {

RIDGE_ISA_TABLES(RmsNormCpu, rms_norm_cpu)

namespace {

Verdict supports(const RmsNorm::Args& a) {
  if (!vectored(a.x.type) || !vectored(a.y.type)) return {"x and y are not both f32, bf16 or f16"};
  if ((a.add && a.add.type != a.x.type) || (a.sum && a.sum.type != a.x.type)) return {"add and sum are not of x's type"};
  if (!fast_rows(a.x) || !fast_rows(a.y) || !fast_rows(a.add) || !fast_rows(a.sum)) return {"columns are not side by side"};
  return {};
}

int64_t workspace(const RmsNorm::Args& a) { return f32_vector_bytes(a.x.dims[1]); }

template <Isa isa>
void launch(Ctx& x, const RmsNorm::Args& a, char* scratch) {
  const int64_t n = a.x.dims[1];
  const float* w = f32_vector(a.w, a.offset_one, n, scratch);
  const auto forward = rms_norm_cpu(isa).forward[table_index(a.x.type)][table_index(a.y.type)];
  parallel_rows(x.pool(), a.x.dims[0], n * (size_of(a.x.type) * (a.add ? 3 : 1) + size_of(a.y.type)),
                [&](int64_t from, int64_t rows) {
                  forward({.x = a.x.at(from),
                           .add = a.add ? a.add.at(from) : nullptr,
                           .sum = a.sum ? a.sum.at(from) : nullptr,
                           .y = a.y.at(from),
                           .w = w,
                           .rows = rows,
                           .n = n,
                           .x_step = a.x.strides[0],
                           .add_step = a.add.strides[0],
                           .sum_step = a.sum.strides[0],
                           .y_step = a.y.strides[0],
                           .eps = a.eps});
                });
}

constexpr Speed kSpeed{.unit = Unit::fma_f32, .compute = 0.13, .memory = 0.9};

}  // namespace

std::span<const Kernel<RmsNorm>> RmsNorm::kernels() {
  static const Kernel<RmsNorm> rows[] = {
      {"rows_avx512", Place::cpu, Isa::avx512, Tier::fast, supports, launch<Isa::avx512>, workspace, kSpeed},
      {"rows_avx2", Place::cpu, Isa::avx2, Tier::fast, supports, launch<Isa::avx2>, workspace, kSpeed},
      {"rows_portable", Place::cpu, Isa::portable, Tier::fast, supports, launch<Isa::portable>, workspace, kSpeed},
      {"reference", Place::cpu, Isa::portable, Tier::reference, always<RmsNorm>, reference},
  };
  return rows;
}

namespace {

Verdict supports_backward(const RmsNormBackward::Args& a) {
  if (!fast_f32(a.dy) || !fast_f32(a.dsum) || !fast_f32(a.dx) || !fast_f32(a.dadd) || !fast_f32(a.dw))
    return {"gradients are not f32 rows"};
  if (!fast_rows(a.x) || !fast_rows(a.add)) return {"x or add is not in rows of f32, bf16 or f16"};
  if (a.add && a.add.type != a.x.type) return {"add is not of x's type"};
  return {};
}

int64_t workspace_backward(const RmsNormBackward::Args& a) {
  const int64_t vector = f32_vector_bytes(a.x.dims[1]);
  return vector + (a.dw ? RowShares(a.x.dims[0]).count * a.x.dims[1] * 4 : 0);
}

template <Isa isa>
void launch_backward(Ctx& x, const RmsNormBackward::Args& a, char* scratch) {
  const int64_t n = a.x.dims[1];
  const float* w = f32_vector(a.w, a.offset_one, n, scratch);
  float* partial = reinterpret_cast<float*>(scratch + f32_vector_bytes(n));  // [shares, n]
  const auto backward = rms_norm_cpu(isa).backward[table_index(a.x.type)];
  const RowShares shares(a.x.dims[0]);
  x.pool().parallel(shares.count, [&](int64_t share, int) {
    const int64_t from = shares.from(share);
    float* dw = a.dw ? partial + share * n : nullptr;
    if (dw) std::fill_n(dw, n, 0.0f);
    backward({.dy = a.dy.as<float>(from),
              .dsum = a.dsum ? a.dsum.as<float>(from) : nullptr,
              .x = a.x.at(from),
              .add = a.add ? a.add.at(from) : nullptr,
              .w = w,
              .dx = a.dx ? a.dx.as<float>(from) : nullptr,
              .dadd = a.dadd ? a.dadd.as<float>(from) : nullptr,
              .dw = dw,
              .rows = shares.size(share),
              .n = n,
              .dy_step = a.dy.strides[0],
              .dsum_step = a.dsum.strides[0],
              .x_step = a.x.strides[0],
              .add_step = a.add.strides[0],
              .dx_step = a.dx.strides[0],
              .dadd_step = a.dadd.strides[0],
              .eps = a.eps});
  });
  if (a.dw) add_partials(x.pool(), partial, shares.count, n, a.dw);
}

constexpr Speed kSpeedBackward{.unit = Unit::fma_f32, .compute = 0.13, .memory = 0.9};

}  // namespace

std::span<const Kernel<RmsNormBackward>> RmsNormBackward::kernels() {
  static const Kernel<RmsNormBackward> rows[] = {
      {"rows_avx512", Place::cpu, Isa::avx512, Tier::fast, supports_backward, launch_backward<Isa::avx512>, workspace_backward,
       kSpeedBackward},
      {"rows_avx2", Place::cpu, Isa::avx2, Tier::fast, supports_backward, launch_backward<Isa::avx2>, workspace_backward,
       kSpeedBackward},
      {"rows_portable", Place::cpu, Isa::portable, Tier::fast, supports_backward, launch_backward<Isa::portable>,
       workspace_backward, kSpeedBackward},
      {"reference", Place::cpu, Isa::portable, Tier::reference, always<RmsNormBackward>, reference},
  };
  return rows;
}

void rms_norm(Ctx& x, const RmsNorm::Args& a) { call<RmsNorm>(x, a); }
void rms_norm_backward(Ctx& x, const RmsNormBackward::Args& a) { call<RmsNormBackward>(x, a); }
OpInfo rms_norm_op() { return erase<RmsNorm>(); }
OpInfo rms_norm_backward_op() { return erase<RmsNormBackward>(); }

}  // namespace ridge
