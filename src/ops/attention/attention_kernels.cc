// attention's rows, best first. split_kv and flash of a level run the same tasks and give the same bits: a segment's arithmetic
// follows from its own shape. They are two rows because their limits differ: memory, and arithmetic.
#include "device/isa.h"
#include "ops/attention/attention.h"
#include "ops/attention/attention_work.h"
#include "ops/call.h"
#include "tile/cpu/isa_table.h"

namespace ridge {

RIDGE_ISA_TABLES(AttentionCpu, attention_cpu)
namespace amx {
extern const AttentionTiles attention_tiles;
}

namespace {

Verdict takes(const Attention::Args& a) {
  const int64_t d = a.q.dims[2], dv = a.o.dims[2];
  if (d % 8 != 0 || dv % 8 != 0 || d > kMaxHeadDim || dv > kMaxHeadDim) return {"head dimensions are multiples of 8 up to 256"};
  if (a.k.type != a.v.type) return {"k and v are of one type"};
  if (!dense_float(a.q) || !dense_float(a.o)) return {"q and o are f32, f16 or bf16 with dense head rows"};
  if (!dense_keys(a.k) || !dense_keys(a.v)) return {"k and v are f32, f16, bf16 or Q8_0 with dense head rows"};
  if (a.lse && a.lse.type != DType::f32) return {"lse is f32"};
  if (a.sinks && a.sinks.type != DType::f32) return {"sinks are f32"};
  return {};
}

// By shapes alone: a captured bucket replays with other lengths.
Verdict takes_few(const Attention::Args& a) {
  const int64_t group = a.q.dims[1] / a.k.dims[1];
  if (a.q.dims[0] * group > a.segments.count() * kFewRows) return {"the average segment has more than 8 rows a key head"};
  return takes(a);
}

int64_t workspace(const Attention::Args& a) {
  return 2 * most_tasks(a) * int64_t(sizeof(AttentionTask)) + most_partials(a) * int64_t(sizeof(float));
}

template <Isa isa>
void launch(Ctx& x, const Attention::Args& a, char* scratch) {
  const AttentionCpu& cpu = attention_cpu(isa);
  const auto flash = isa == Isa::amx ? amx::attention_tiles.flash : cpu.flash;
  const AttentionCall c = cpu_call(a);
  const Work work = plan_work(a, cpu, scratch);
  x.pool().parallel(int64_t(work.tasks.size()), [&](int64_t i, int) {
    const AttentionTask& t = work.tasks[size_t(i)];
    (t.rows <= cpu.few_rows ? cpu.few : flash)(c, t);
  });
  x.pool().parallel(int64_t(work.merges.size()), [&](int64_t i, int) { cpu.merge(c, work.merges[size_t(i)]); });
}

template <Isa isa>
constexpr Kernel<Attention> row(const char* name, Tier tier, Verdict (*supports)(const Attention::Args&), Speed speed,
                                DType rounds = DType::f64) {
  return {name, Place::cpu, isa, tier, supports, launch<isa>, workspace, speed, rounds};
}

}  // namespace

std::span<const Kernel<Attention>> Attention::kernels() {
  // Fractions of the ceilings as measured: the README's ladder. A decode in f16 is as much held by its products as by memory.
  constexpr Speed decode{.unit = Unit::fma_f32, .compute = 0.2, .memory = 0.55},
      decode_avx2{.unit = Unit::fma_f32, .compute = 0.28, .memory = 0.48};
  constexpr Speed tiles{.unit = Unit::matrix_bf16, .compute = 0.08, .memory = 0.3},
      prefill{.unit = Unit::fma_f32, .compute = 0.65, .memory = 0.5},
      prefill_avx2{.unit = Unit::fma_f32, .compute = 0.63, .memory = 0.5};
  static const Kernel<Attention> rows[] = {
      row<Isa::amx>("split_kv_amx", Tier::fast, takes_few, decode, DType::bf16),
      row<Isa::amx>("flash_amx", Tier::fast, takes, tiles, DType::bf16),
      row<Isa::avx512>("split_kv_avx512", Tier::fast, takes_few, decode),
      row<Isa::avx512>("flash_avx512", Tier::fast, takes, prefill),
      row<Isa::avx2>("split_kv_avx2", Tier::fast, takes_few, decode_avx2),
      row<Isa::avx2>("flash_avx2", Tier::fast, takes, prefill_avx2),
      row<Isa::portable>("split_kv_portable", Tier::general, takes_few, decode),
      row<Isa::portable>("flash_portable", Tier::general, takes, prefill),
      {.name = "reference",
       .place = Place::cpu,
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
