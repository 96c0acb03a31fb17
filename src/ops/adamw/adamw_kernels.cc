// The rows of adamw, best first.
#include <cmath>

#include "ops/adamw/adamw.h"
#include "ops/adamw/adamw_cpu.h"
#include "ops/call.h"
#include "ops/rows.h"
#include "tile/cpu/isa_table.h"

namespace ridge {

RIDGE_ISA_TABLES(AdamWCpu, adamw_cpu)

namespace {

Verdict supports(const AdamW::Args& a) {
  if (!vectored(a.p.type) || !fast_f32(a.m) || !fast_f32(a.v) || !fast_f32(a.g))
    return {"p is not f32, bf16 or f16 with f32 moments and gradient"};
  if (!a.p.dense() || !a.m.dense() || !a.v.dense() || !a.g.dense()) return {"there are gaps between rows"};
  return {};
}

AdamWFactors factors(const AdamW::Args& a) {
  const double lr = a.lr.get(), step = a.step.get();
  return {.grad_scale = float(a.grad_scale ? a.grad_scale.get() : 1),
          .beta1 = float(a.beta1),
          .rest1 = float(1 - a.beta1),
          .beta2 = float(a.beta2),
          .rest2 = float(1 - a.beta2),
          .unbias2 = float(1 / std::sqrt(1 - std::pow(a.beta2, step))),
          .eps = float(a.eps),
          .step_size = float(lr / (1 - std::pow(a.beta1, step))),
          .decay = float(lr * a.weight_decay)};
}

template <Isa isa>
void launch(Ctx& x, const AdamW::Args& a, char*) {
  const AdamWFactors f = factors(a);
  const auto update = adamw_cpu(isa).update[table_index(a.p.type)];
  constexpr int64_t block = 8192;  // 7 streams of 32 KB a task
  const int64_t n = a.p.count();
  x.pool().parallel((n + block - 1) / block, [&](int64_t i, int) {
    const int64_t from = i * block;
    update(a.p.data + from * size_of(a.p.type), reinterpret_cast<float*>(a.m.data) + from,
           reinterpret_cast<float*>(a.v.data) + from, reinterpret_cast<const float*>(a.g.data) + from, std::min(block, n - from),
           f);
  });
}

constexpr Speed kSpeed{.unit = Unit::fma_f32, .compute = 0.13, .memory = 0.9};

}  // namespace

std::span<const Kernel<AdamW>> AdamW::kernels() {
  static const Kernel<AdamW> rows[] = {
      {"stream_avx512", Place::cpu, Isa::avx512, Tier::fast, supports, launch<Isa::avx512>, nullptr, kSpeed},
      {"stream_avx2", Place::cpu, Isa::avx2, Tier::fast, supports, launch<Isa::avx2>, nullptr, kSpeed},
      {"stream_portable", Place::cpu, Isa::portable, Tier::fast, supports, launch<Isa::portable>, nullptr, kSpeed},
      {"reference", Place::cpu, Isa::portable, Tier::reference, always<AdamW>, reference},
  };
  return rows;
}

void adamw(Ctx& x, const AdamW::Args& a) { call<AdamW>(x, a); }
OpInfo adamw_op() { return erase<AdamW>(); }

}  // namespace ridge
