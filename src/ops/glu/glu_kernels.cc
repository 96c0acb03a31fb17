// The rows of glu and glu_backward, best first.
#include "ops/call.h"
#include "ops/glu/glu.h"
#include "ops/glu/glu_cpu.h"
#include "ops/rows.h"
#include "tile/cpu/isa_table.h"

namespace ridge {

RIDGE_ISA_TABLES(GluCpu, glu_cpu)

namespace {

Verdict supports(const Glu::Args& a) {
  if (a.up && a.up.type != a.gate.type) return {"gate and up are of different types"};
  if (!fast_rows(a.gate) || !fast_rows(a.up) || !fast_rows(a.y)) return {"not in rows of f32, bf16 or f16"};
  return {};
}

template <Isa isa>
void launch(Ctx& x, const Glu::Args& a, char*) {
  const int64_t n = a.y.dims[1];
  const auto forward = glu_cpu(isa).forward[table_index(a.gate.type)][table_index(a.y.type)];
  parallel_rows(x.pool(), a.y.dims[0], n * (2 * size_of(a.gate.type) + size_of(a.y.type)), [&](int64_t from, int64_t rows) {
    forward({.gate = a.gate.at(from),
             .up = a.up ? a.up.at(from) : nullptr,
             .y = a.y.at(from),
             .rows = rows,
             .n = n,
             .gate_step = a.gate.strides[0],
             .up_step = a.up.strides[0],
             .y_step = a.y.strides[0],
             .act = a.act});
  });
}

constexpr Speed kSpeed{.unit = Unit::fma_f32, .compute = 0.13, .memory = 0.9};

}  // namespace

std::span<const Kernel<Glu>> Glu::kernels() {
  static const Kernel<Glu> rows[] = {
      {"rows_avx512", Place::cpu, Isa::avx512, Tier::fast, supports, launch<Isa::avx512>, nullptr, kSpeed},
      {"rows_avx2", Place::cpu, Isa::avx2, Tier::fast, supports, launch<Isa::avx2>, nullptr, kSpeed},
      {"rows_portable", Place::cpu, Isa::portable, Tier::fast, supports, launch<Isa::portable>, nullptr, kSpeed},
      {"reference", Place::cpu, Isa::portable, Tier::reference, always<Glu>, reference},
  };
  return rows;
}

namespace {

Verdict supports_backward(const GluBackward::Args& a) {
  if (!fast_f32(a.dy) || !fast_f32(a.dgate) || !fast_f32(a.dup)) return {"gradients are not f32 rows"};
  if (a.up && a.up.type != a.gate.type) return {"gate and up are of different types"};
  if (!fast_rows(a.gate) || !fast_rows(a.up)) return {"gate or up is not in rows of f32, bf16 or f16"};
  return {};
}

template <Isa isa>
void launch_backward(Ctx& x, const GluBackward::Args& a, char*) {
  const int64_t n = a.dy.dims[1];
  const auto backward = glu_cpu(isa).backward[table_index(a.gate.type)];
  parallel_rows(x.pool(), a.dy.dims[0], n * 20, [&](int64_t from, int64_t rows) {
    backward({.gate = a.gate.at(from),
              .up = a.up ? a.up.at(from) : nullptr,
              .dy = a.dy.as<float>(from),
              .dgate = a.dgate ? a.dgate.as<float>(from) : nullptr,
              .dup = a.dup ? a.dup.as<float>(from) : nullptr,
              .rows = rows,
              .n = n,
              .gate_step = a.gate.strides[0],
              .up_step = a.up.strides[0],
              .dy_step = a.dy.strides[0],
              .dgate_step = a.dgate.strides[0],
              .dup_step = a.dup.strides[0],
              .act = a.act,
              .accumulate = a.accumulate});
  });
}

constexpr Speed kSpeedBackward{.unit = Unit::fma_f32, .compute = 0.13, .memory = 0.9};

}  // namespace

std::span<const Kernel<GluBackward>> GluBackward::kernels() {
  static const Kernel<GluBackward> rows[] = {
      {"rows_avx512", Place::cpu, Isa::avx512, Tier::fast, supports_backward, launch_backward<Isa::avx512>, nullptr,
       kSpeedBackward},
      {"rows_avx2", Place::cpu, Isa::avx2, Tier::fast, supports_backward, launch_backward<Isa::avx2>, nullptr, kSpeedBackward},
      {"rows_portable", Place::cpu, Isa::portable, Tier::fast, supports_backward, launch_backward<Isa::portable>, nullptr,
       kSpeedBackward},
      {"reference", Place::cpu, Isa::portable, Tier::reference, always<GluBackward>, reference},
  };
  return rows;
}

void glu(Ctx& x, const Glu::Args& a) { call<Glu>(x, a); }
void glu_backward(Ctx& x, const GluBackward::Args& a) { call<GluBackward>(x, a); }
OpInfo glu_op() { return erase<Glu>(); }
OpInfo glu_backward_op() { return erase<GluBackward>(); }

}  // namespace ridge
