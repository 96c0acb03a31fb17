// The rows of softmax and softmax_backward, best first.
#include "ops/call.h"
#include "ops/rows.h"
#include "ops/softmax/softmax.h"
#include "ops/softmax/softmax_cpu.h"
#include "tile/cpu/isa_table.h"

namespace ridge {

RIDGE_ISA_TABLES(SoftmaxCpu, softmax_cpu)

namespace {

Verdict supports(const Softmax::Args& a) {
  if (!fast_rows(a.x) || !fast_rows(a.y)) return {"not in rows of f32, bf16 or f16"};
  return {};
}

template <Isa isa>
void launch(Ctx& x, const Softmax::Args& a, char*) {
  const int64_t n = a.x.dims[1];
  const auto forward = softmax_cpu(isa).forward[table_index(a.x.type)][table_index(a.y.type)];
  parallel_rows(x.pool(), a.x.dims[0], n * (size_of(a.x.type) + size_of(a.y.type)), [&](int64_t from, int64_t rows) {
    forward({.x = a.x.at(from),
             .y = a.y.at(from),
             .rows = rows,
             .n = n,
             .x_step = a.x.strides[0],
             .y_step = a.y.strides[0],
             .scale = float(a.scale),
             .log = a.log});
  });
}

constexpr Speed kSpeed{.unit = Unit::fma_f32, .compute = 0.12, .memory = 0.9};

}  // namespace

std::span<const Kernel<Softmax>> Softmax::kernels() {
  static const Kernel<Softmax> rows[] = {
      {"rows_avx512", Place::cpu, Isa::avx512, Tier::fast, supports, launch<Isa::avx512>, nullptr, kSpeed},
      {"rows_avx2", Place::cpu, Isa::avx2, Tier::fast, supports, launch<Isa::avx2>, nullptr, kSpeed},
      {"rows_portable", Place::cpu, Isa::portable, Tier::fast, supports, launch<Isa::portable>, nullptr, kSpeed},
      {"reference", Place::cpu, Isa::portable, Tier::reference, always<Softmax>, reference},
  };
  return rows;
}

namespace {

Verdict supports_backward(const SoftmaxBackward::Args& a) {
  if (!fast_f32(a.dy) || !fast_f32(a.dx)) return {"gradients are not f32 rows"};
  if (!fast_rows(a.y)) return {"y is not in rows of f32, bf16 or f16"};
  return {};
}

template <Isa isa>
void launch_backward(Ctx& x, const SoftmaxBackward::Args& a, char*) {
  const int64_t n = a.y.dims[1];
  const auto backward = softmax_cpu(isa).backward[table_index(a.y.type)];
  parallel_rows(x.pool(), a.y.dims[0], n * (size_of(a.y.type) + 8), [&](int64_t from, int64_t rows) {
    backward({.y = a.y.at(from),
              .dy = a.dy.as<float>(from),
              .dx = a.dx.as<float>(from),
              .rows = rows,
              .n = n,
              .y_step = a.y.strides[0],
              .dy_step = a.dy.strides[0],
              .dx_step = a.dx.strides[0],
              .scale = float(a.scale),
              .log = a.log});
  });
}

constexpr Speed kSpeedBackward{.unit = Unit::fma_f32, .compute = 0.12, .memory = 0.9};

}  // namespace

std::span<const Kernel<SoftmaxBackward>> SoftmaxBackward::kernels() {
  static const Kernel<SoftmaxBackward> rows[] = {
      {"rows_avx512", Place::cpu, Isa::avx512, Tier::fast, supports_backward, launch_backward<Isa::avx512>, nullptr,
       kSpeedBackward},
      {"rows_avx2", Place::cpu, Isa::avx2, Tier::fast, supports_backward, launch_backward<Isa::avx2>, nullptr, kSpeedBackward},
      {"rows_portable", Place::cpu, Isa::portable, Tier::fast, supports_backward, launch_backward<Isa::portable>, nullptr,
       kSpeedBackward},
      {"reference", Place::cpu, Isa::portable, Tier::reference, always<SoftmaxBackward>, reference},
  };
  return rows;
}

void softmax(Ctx& x, const Softmax::Args& a) { call<Softmax>(x, a); }
void softmax_backward(Ctx& x, const SoftmaxBackward::Args& a) { call<SoftmaxBackward>(x, a); }
OpInfo softmax_op() { return erase<Softmax>(); }
OpInfo softmax_backward_op() { return erase<SoftmaxBackward>(); }

}  // namespace ridge
