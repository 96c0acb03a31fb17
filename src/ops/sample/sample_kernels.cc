// sample's rows, best first.
#include "ops/call.h"
#include "ops/sample/sample.h"
#include "ops/sample/sample_rows.h"
#include "tile/cpu/isa_table.h"

namespace ridge {

RIDGE_ISA_TABLES(SampleCpu, sample_cpu)

namespace {

Verdict f32_rows(const Sample::Args& a) {
  if (a.logits.type != DType::f32) return {"logits are f32"};
  if (!a.logits.rows_dense()) return {"a row of logits lies without gaps"};
  return {};
}

template <Isa isa>
constexpr Kernel<Sample> block_select(const char* name, Tier tier) {
  return {.name = name,
          .place = Place::cpu,
          .isa = isa,
          .tier = tier,
          .supports = f32_rows,
          .launch = [](Ctx& x, const Sample::Args& a, char* scratch) { sample_rows(sample_cpu(isa), x.pool(), a, scratch); },
          .workspace = sample_workspace,
          .speed = {.unit = Unit::fma_f32, .compute = 0.02, .memory = 0.1}};
}

}  // namespace

std::span<const Kernel<Sample>> Sample::kernels() {
  static const Kernel<Sample> rows[] = {
      block_select<Isa::avx512>("block_select_avx512", Tier::fast),
      block_select<Isa::avx2>("block_select_avx2", Tier::fast),
      block_select<Isa::portable>("block_select", Tier::general),
      {.name = "reference",
       .place = Place::cpu,
       .isa = Isa::portable,
       .tier = Tier::reference,
       .supports = always<Sample>,
       .launch = Sample::reference},
  };
  return rows;
}

void sample(Ctx& x, const Sample::Args& a) { call<Sample>(x, a); }
OpInfo sample_op() { return erase<Sample>(); }

}  // namespace ridge
