// attention's rows, best first. split_kv and flash of a level run the same tasks and give the same bits: a segment's arithmetic
// follows from its own shape. They are two rows because their limits differ: memory, and arithmetic.
#include "device/isa.h"
#include "ops/attention/attention.h"
#include "ops/attention/attention_work.h"
#include "ops/call.h"
#include "tile/cpu/isa_table.h"

namespace ridge {

RIDGE_ISA_TABLES(AttentionCpu, attention_cpu)

namespace {

Verdict takes(const Attention::Args& a) {
  const int64_t d = a.q.dims[2], dv = a.o.dims[2];
  if (d % 8 != 0 || dv % 8 != 0 || d > kMaxHeadDim || dv > kMaxHeadDim) return {"head dimensions are multiples of 8 up to 256"};
  if (a.k.type != a.v.type) return {"k and v are of one type"};
  for (const View& v : {a.q, a.k, a.v, a.o})
    if (!dense_float(v)) return {"q, k, v and o are f32, f16 or bf16 with dense head rows"};
  if (a.lse && a.lse.type != DType::f32) return {"lse is f32"};
  if (a.sinks && a.sinks.type != DType::f32) return {"sinks are f32"};
  return {};
}

template <Isa isa>
Verdict takes_few(const Attention::Args& a) {
  const int64_t group = a.q.dims[1] / a.k.dims[1];
  for (int32_t n : a.segments.lengths->queries)
    if (n * group > attention_cpu(isa).tile_rows) return {"a segment has more queries than one tile: its keys are not split"};
  return takes(a);
}

template <Isa isa>
int64_t workspace(const Attention::Args& a) {
  const int rows = attention_cpu(isa).tile_rows;
  return 2 * most_tasks(a, rows) * int64_t(sizeof(AttentionTask)) + most_partials(a, rows) * int64_t(sizeof(float));
}

template <Isa isa>
void launch(Ctx& x, const Attention::Args& a, char* scratch) {
  const AttentionCpu& cpu = attention_cpu(isa);
  const AttentionCall c = cpu_call(a);
  const Work work = plan_work(a, cpu, scratch);
  x.pool().parallel(int64_t(work.tasks.size()), [&](int64_t i, int) {
    const AttentionTask& t = work.tasks[size_t(i)];
    (t.rows <= cpu.few_rows ? cpu.few : cpu.tile)(c, t);
  });
  x.pool().parallel(int64_t(work.merges.size()), [&](int64_t i, int) { cpu.merge(c, work.merges[size_t(i)]); });
}

}  // namespace

std::span<const Kernel<Attention>> Attention::kernels() {
  constexpr auto cpu = Place::cpu;
  constexpr Speed decode{.unit = Unit::fma_f32, .compute = 0.3, .memory = 0.8},
      prefill{.unit = Unit::fma_f32, .compute = 0.5, .memory = 0.8};
  static const Kernel<Attention> rows[] = {
      {"split_kv_avx512", cpu, Isa::avx512, Tier::fast, takes_few<Isa::avx512>, launch<Isa::avx512>, workspace<Isa::avx512>,
       decode},
      {"flash_avx512", cpu, Isa::avx512, Tier::fast, takes, launch<Isa::avx512>, workspace<Isa::avx512>, prefill},
      {"split_kv_avx2", cpu, Isa::avx2, Tier::fast, takes_few<Isa::avx2>, launch<Isa::avx2>, workspace<Isa::avx2>, decode},
      {"flash_avx2", cpu, Isa::avx2, Tier::fast, takes, launch<Isa::avx2>, workspace<Isa::avx2>, prefill},
      {"split_kv_portable", cpu, Isa::portable, Tier::general, takes_few<Isa::portable>, launch<Isa::portable>,
       workspace<Isa::portable>, decode},
      {"flash_portable", cpu, Isa::portable, Tier::general, takes, launch<Isa::portable>, workspace<Isa::portable>, prefill},
      {.name = "reference",
       .place = cpu,
       .isa = Isa::portable,
       .tier = Tier::reference,
       .supports = always<Attention>,
       .launch = Attention::reference},
  };
  return rows;
}

void attention(Ctx& x, const Attention::Args& a) { call<Attention>(x, a); }
OpInfo attention_op() { return erase<Attention>(); }

}  // namespace ridge
