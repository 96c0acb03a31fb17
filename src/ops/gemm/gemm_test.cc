// gemm beyond what its contract's cases say; those are check/'s, for every op.
#include <gtest/gtest.h>

#include <cmath>

#include "base/arena.h"
#include "base/format.h"
#include "ops/call.h"
#include "ops/gemm/gemm.h"
#include "ops/gemm/gemm_cpu.h"
#include "ops/sampler.h"

namespace ridge {
namespace {

class GemmTest : public testing::TestWithParam<Isa> {
 protected:
  void SetUp() override {
    if (GetParam() > active_isa()) GTEST_SKIP() << "this machine has no " << isa_name(GetParam());
  }
};

// What a format is on its first day: no type that decode.h knows. Panels then decode it through its own functions, to the same bits.
TEST_P(GemmTest, FormatsWithoutAReaderGoThroughTheirDecoder) {
  const GemmCpu& cpu = gemm_cpu(GetParam());
  EXPECT_FALSE(cpu.reads(DType::count));
  Sampler r("unread");
  for (DType type : block_types()) {
    const Format& f = *format_of(type);
    for (bool transposed : {false, true}) {
      const int64_t m = 5, n = transposed ? 2 * f.block : 39, k = transposed ? 37 : 5 * f.block;
      const View a = r.normal({m, k}, DType::f32), b = transposed ? r.normal({k, n}, type) : r.normal({n, k}, type);
      Arena scratch(cpu.panel_scratch(m, k));
      char* const packed = scratch.raw(scratch.size());
      auto product = [&](DType read_as) {
        const int64_t row = bytes_of(type, b.strides[0]);
        const View c = r.out({m, n}, DType::f32);
        GemmTask t{.m = m,
                   .n = n,
                   .k = k,
                   .a = {reinterpret_cast<uint8_t*>(a.data), DType::f32, k * 4, 4},
                   .b = {reinterpret_cast<uint8_t*>(b.data), read_as, transposed ? 0 : row, transposed ? row : 0, &f},
                   .c = {reinterpret_cast<uint8_t*>(c.data), DType::f32, n * 4, 4},
                   .scale = 1,
                   .act = Activation::none,
                   .scratch = packed};
        for (int64_t i = 0; i < cpu.panel_pack_items(t); ++i) cpu.panel_pack(t, i);
        for (int64_t i = 0; i < cpu.panel_items(t); ++i) cpu.panel(t, i);
        return std::vector<float>(c.as<float>(), c.as<float>() + m * n);
      };
      EXPECT_EQ(product(DType::count), product(type)) << f.name << (transposed ? " transposed" : "");
    }
  }
}

// The tolerance of a row that declares bf16 would pass one product of rounded operands; the parts promise 2^-15 of every term.
TEST(Gemm, TilesKeepTheLowParts) {
  if (active_isa() < Isa::amx) GTEST_SKIP() << "this machine has no amx";
  Sampler r("low parts");
  Runtime runtime(1);
  Arena acts(1 << 20);
  Ctx x(Mode::run, runtime, acts);
  for (DType type : {DType::f32, DType::f16, DType::bf16, DType::q8_0, DType::q4_1}) {
    const Gemm::Args g{
        .a = r.normal({33, 576}, DType::f32), .b = r.normal({40, 576}, type, 0.05), .c = r.out({33, 40}, DType::f32)};
    ASSERT_STREQ(pick<Gemm>(runtime, g).name, "panel_amx");
    gemm(x, g);
    for (int64_t i = 0; i < 33; ++i)
      for (int64_t j = 0; j < 40; ++j) {
        double truth = 0, sizes = 0;
        for (int64_t k = 0; k < 576; ++k) {
          truth += g.a.get(i, k) * g.b.get(j, k);
          sizes += std::fabs(g.a.get(i, k) * g.b.get(j, k));
        }
        ASSERT_LE(std::fabs(g.c.get(i, j) - truth), 0x1p-16 * sizes) << name_of(type) << " " << i << " " << j;
      }
  }
}

// Likewise for woven weights: whole numbers of 16 bits of both operands, where the declared rounding would let 8 pass.
TEST(Gemm, WovenRowsKeepSixteenBits) {
  Sampler r("sixteen bits");
  Arena acts(1 << 20);
  for (Isa isa : {Isa::avx2, Isa::avx512, Isa::vnni, Isa::amx})
    for (DType type : woven_types())
      for (int64_t m : {3, 33}) {
        if (isa > active_isa()) continue;
        Runtime runtime(1, isa);
        Ctx x(Mode::run, runtime, acts);
        const Gemm::Args g{
            .a = r.normal({m, 512}, DType::f32), .b = r.normal({48, 512}, type, 0.05), .c = r.out({m, 48}, DType::f32)};
        ASSERT_EQ(std::string(pick<Gemm>(runtime, g).name).substr(0, 5), "woven");
        gemm(x, g);
        for (int64_t i = 0; i < m; ++i)
          for (int64_t j = 0; j < 48; ++j) {
            double truth = 0, sum_a = 0, sum_b = 0, most_a = 0, most_b = 0;
            for (int64_t k = 0; k < 512; ++k) {
              const double a = g.a.get(i, k), b = g.b.get(j, k);
              truth += a * b, sum_a += std::fabs(a), sum_b += std::fabs(b);
              most_a = std::max(most_a, std::fabs(a)), most_b = std::max(most_b, std::fabs(b));
            }
            ASSERT_LE(std::fabs(g.c.get(i, j) - truth), 0x1p-16 * (most_a * sum_b + 2 * most_b * sum_a))
                << pick<Gemm>(runtime, g).name << " " << name_of(type) << " " << i << " " << j;
          }
      }
}

// Rows that round activations to 8 bits are for those who ask.
TEST(Gemm, FastActivationsAreAChoice) {
  if (active_isa() < Isa::vnni) GTEST_SKIP() << "this machine has no vnni";
  Sampler r("fast");
  Runtime exact(1, Isa::vnni), fast(1, Isa::vnni);
  fast.fast_activations = true;
  const Gemm::Args g{
      .a = r.normal({3, 64}, DType::f32), .b = r.normal({16, 64}, DType::q4_0_woven), .c = r.out({3, 16}, DType::f32)};
  EXPECT_STREQ(pick<Gemm>(exact, g).name, "woven_vnni");
  EXPECT_STREQ(pick<Gemm>(fast, g).name, "woven_vnni_fast");
}

INSTANTIATE_TEST_SUITE_P(Isas, GemmTest, testing::Values(Isa::portable, Isa::avx2, Isa::avx512),
                         [](const auto& isa) { return std::string(isa_name(isa.param)); });

}  // namespace
}  // namespace ridge
