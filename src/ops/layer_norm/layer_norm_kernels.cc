// The rows of layer_norm and layer_norm_backward, best first.
#include "ops/call.h"
#include "ops/layer_norm/layer_norm.h"
#include "ops/layer_norm/layer_norm_cpu.h"
#include "ops/rows.h"
#include "tile/cpu/isa_table.h"

namespace ridge {

RIDGE_ISA_TABLES(LayerNormCpu, layer_norm_cpu)

namespace {

Verdict supports(const LayerNorm::Args& a) {
  if (!vectored(a.x.type) || !vectored(a.y.type)) return {"x and y are not both f32, bf16 or f16"};
  if ((a.add && a.add.type != a.x.type) || (a.sum && a.sum.type != a.x.type)) return {"add and sum are not of x's type"};
  if (!fast_rows(a.x) || !fast_rows(a.y) || !fast_rows(a.add) || !fast_rows(a.sum)) return {"columns are not side by side"};
  return {};
}

int64_t workspace(const LayerNorm::Args& a) { return 2 * f32_vector_bytes(a.x.dims[1]); }  // w and bias

template <Isa isa>
void launch(Ctx& x, const LayerNorm::Args& a, char* scratch) {
  const int64_t n = a.x.dims[1];
  const float* w = f32_vector(a.w, 0, n, scratch);
  const float* bias = a.bias ? f32_vector(a.bias, 0, n, scratch + f32_vector_bytes(n)) : nullptr;
  const auto forward = layer_norm_cpu(isa).forward[table_index(a.x.type)][table_index(a.y.type)];
  parallel_rows(x.pool(), a.x.dims[0], n * (size_of(a.x.type) * (a.add ? 3 : 1) + size_of(a.y.type)),
                [&](int64_t from, int64_t rows) {
                  forward({.x = a.x.at(from),
                           .add = a.add ? a.add.at(from) : nullptr,
                           .sum = a.sum ? a.sum.at(from) : nullptr,
                           .y = a.y.at(from),
                           .w = w,
                           .bias = bias,
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

std::span<const Kernel<LayerNorm>> LayerNorm::kernels() {
  static const Kernel<LayerNorm> rows[] = {
      {"rows_avx512", Place::cpu, Isa::avx512, Tier::fast, supports, launch<Isa::avx512>, workspace, kSpeed},
      {"rows_avx2", Place::cpu, Isa::avx2, Tier::fast, supports, launch<Isa::avx2>, workspace, kSpeed},
      {"rows_portable", Place::cpu, Isa::portable, Tier::fast, supports, launch<Isa::portable>, workspace, kSpeed},
      {"reference", Place::cpu, Isa::portable, Tier::reference, always<LayerNorm>, reference},
  };
  return rows;
}

namespace {

Verdict supports_backward(const LayerNormBackward::Args& a) {
  if (!fast_f32(a.dy) || !fast_f32(a.dsum) || !fast_f32(a.dx) || !fast_f32(a.dadd) || !fast_f32(a.dw) || !fast_f32(a.dbias))
    return {"gradients are not f32 rows"};
  if (!fast_rows(a.x) || !fast_rows(a.add)) return {"x or add is not in rows of f32, bf16 or f16"};
  if (a.add && a.add.type != a.x.type) return {"add is not of x's type"};
  return {};
}

int64_t workspace_backward(const LayerNormBackward::Args& a) {
  const int64_t vector = f32_vector_bytes(a.x.dims[1]);
  return vector + ((a.dw ? 1 : 0) + (a.dbias ? 1 : 0)) * RowShares(a.x.dims[0]).count * a.x.dims[1] * 4;
}

template <Isa isa>
void launch_backward(Ctx& x, const LayerNormBackward::Args& a, char* scratch) {
  const int64_t n = a.x.dims[1];
  const float* w = f32_vector(a.w, 0, n, scratch);
  const auto backward = layer_norm_cpu(isa).backward[table_index(a.x.type)];
  const RowShares shares(a.x.dims[0]);
  float* partial_w = reinterpret_cast<float*>(scratch + f32_vector_bytes(n));  // [shares, n]
  float* partial_bias = partial_w + (a.dw ? shares.count * n : 0);             // [shares, n]
  x.pool().parallel(shares.count, [&](int64_t share, int) {
    const int64_t from = shares.from(share);
    float* dw = a.dw ? partial_w + share * n : nullptr;
    float* dbias = a.dbias ? partial_bias + share * n : nullptr;
    if (dw) std::fill_n(dw, n, 0.0f);
    if (dbias) std::fill_n(dbias, n, 0.0f);
    backward({.dy = a.dy.as<float>(from),
              .dsum = a.dsum ? a.dsum.as<float>(from) : nullptr,
              .x = a.x.at(from),
              .add = a.add ? a.add.at(from) : nullptr,
              .w = w,
              .dx = a.dx ? a.dx.as<float>(from) : nullptr,
              .dadd = a.dadd ? a.dadd.as<float>(from) : nullptr,
              .dw = dw,
              .dbias = dbias,
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
  if (a.dw) add_partials(x.pool(), partial_w, shares.count, n, a.dw);
  if (a.dbias) add_partials(x.pool(), partial_bias, shares.count, n, a.dbias);
}

constexpr Speed kSpeedBackward{.unit = Unit::fma_f32, .compute = 0.13, .memory = 0.9};

}  // namespace

std::span<const Kernel<LayerNormBackward>> LayerNormBackward::kernels() {
  static const Kernel<LayerNormBackward> rows[] = {
      {"rows_avx512", Place::cpu, Isa::avx512, Tier::fast, supports_backward, launch_backward<Isa::avx512>, workspace_backward,
       kSpeedBackward},
      {"rows_avx2", Place::cpu, Isa::avx2, Tier::fast, supports_backward, launch_backward<Isa::avx2>, workspace_backward,
       kSpeedBackward},
      {"rows_portable", Place::cpu, Isa::portable, Tier::fast, supports_backward, launch_backward<Isa::portable>,
       workspace_backward, kSpeedBackward},
      {"reference", Place::cpu, Isa::portable, Tier::reference, always<LayerNormBackward>, reference},
  };
  return rows;
}

void layer_norm(Ctx& x, const LayerNorm::Args& a) { call<LayerNorm>(x, a); }
void layer_norm_backward(Ctx& x, const LayerNormBackward::Args& a) { call<LayerNormBackward>(x, a); }
OpInfo layer_norm_op() { return erase<LayerNorm>(); }
OpInfo layer_norm_backward_op() { return erase<LayerNormBackward>(); }

}  // namespace ridge
