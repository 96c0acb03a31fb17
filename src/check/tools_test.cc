// The bench, why and the dispatcher's own cost, on the ops of the list.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <new>

#include "check/bench_op.h"
#include "check/provenance.h"
#include "check/why_op.h"
#include "ops/call.h"
#include "ops/list.h"
#include "ops/sampler.h"

namespace {
int64_t allocations = 0;
}  // namespace
// Counts what this program allocates with new, which is all that C++ code of ours allocates with.
[[gnu::noinline]] void* operator new(size_t n) {  // inlined, GCC takes the pair for a mismatch
  __atomic_add_fetch(&allocations, 1, __ATOMIC_RELAXED);
  if (void* p = malloc(n)) return p;
  throw std::bad_alloc();
}
[[gnu::noinline]] void operator delete(void* p) noexcept { free(p); }
[[gnu::noinline]] void operator delete(void* p, size_t) noexcept { free(p); }

namespace ridge {
namespace {

using testing::HasSubstr;

// An op that does nothing behind a check and six rows, of which the fifth takes the call.
struct Idle {
  static constexpr const char* name = "idle";
  struct Args {
    View x, y, w, bias;  // [m, n], [m, n], [n], [n]
    bool operator==(const Args&) const = default;
  };
  static std::span<const Operand> operands() {
    static constexpr Operand table[] = {operand<&Args::x>("x", Role::in), operand<&Args::y>("y", Role::out)};
    return table;
  }
  static std::string check(const Args& a) {
    if (a.x.rank != 2 || a.y.rank != 2 || a.x.dims[0] != a.y.dims[0] || a.x.dims[1] != a.y.dims[1]) return "x and y are [m, n]";
    if (a.w.dims[0] != a.x.dims[1] || a.bias.dims[0] != a.x.dims[1]) return "w and bias are [n]";
    return {};
  }
  static Cost cost(const Args&) { return {}; }
  static std::string shape(const Args& a) { return to_string(a.x); }
  static void reference(Ctx&, const Args&, char*) { ++launches; }
  static void planted(Ctx&, const Args&, char*) {}
  static Accuracy accuracy() { return {}; }
  static std::vector<Case<Idle>> cases() { return {}; }
  static std::span<const Kernel<Idle>> kernels() {
    static constexpr auto no = [](const Args& a) -> Verdict {
      return a.x.type == DType::bf16 && a.x.rows_dense() ? Verdict{} : Verdict{"bf16 rows"};
    };
    static constexpr auto yes = [](const Args& a) -> Verdict {
      return a.x.type == DType::f32 && a.x.rows_dense() ? Verdict{} : Verdict{"f32 rows"};
    };
    static const Kernel<Idle> rows[] = {
        {.name = "a", .place = Place::cuda, .isa = Isa::portable, .tier = Tier::fast, .supports = no, .launch = reference},
        {.name = "b", .place = Place::cpu, .isa = Isa::portable, .tier = Tier::fast, .supports = no, .launch = reference},
        {.name = "c", .place = Place::cpu, .isa = Isa::portable, .tier = Tier::fast, .supports = no, .launch = reference},
        {.name = "d", .place = Place::cpu, .isa = Isa::portable, .tier = Tier::fast, .supports = no, .launch = reference},
        {.name = "e",
         .place = Place::cpu,
         .isa = Isa::portable,
         .tier = Tier::fast,
         .supports = yes,
         .launch = reference,
         .workspace = [](const Args& a) -> int64_t { return a.x.dims[0] * 64; }},
        {.name = "reference",
         .place = Place::cpu,
         .isa = Isa::portable,
         .tier = Tier::reference,
         .supports = always<Idle>,
         .launch = reference}};
    return rows;
  }
  static inline int64_t launches = 0;
};

struct Dispatch : testing::Test {
  Sampler r{"dispatch"};
  Runtime runtime{1};
  Arena acts{1 << 20};
  Ctx x{Mode::run, runtime, acts};
  Idle::Args args{r.normal({8, 64}, DType::f32), r.out({8, 64}, DType::f32), r.normal({64}, DType::f32),
                  r.normal({64}, DType::f32)};
};

TEST_F(Dispatch, ACallCostsTensOfNanoseconds) {
  double best = 1;
  for (int repeat = 0; repeat < 100; ++repeat) {  // the best of many: other programs only ever add
    const auto from = std::chrono::steady_clock::now();
    for (int i = 0; i < 1000; ++i) call<Idle>(x, args);
    best = std::min(best, std::chrono::duration<double>(std::chrono::steady_clock::now() - from).count() / 1000);
  }
  printf("a call through the dispatcher, five rows asked: %.1f ns\n", best * 1e9);
  RecordProperty("ns_per_call", std::to_string(best * 1e9));
  EXPECT_EQ(Idle::launches, 100000);
#if defined(NDEBUG) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  EXPECT_LT(best, 250e-9) << "the aim is 50 ns; this is the limit even on a machine that is busy with other things";
#endif
}

TEST_F(Dispatch, ACallAllocatesNothing) {
  call<Idle>(x, args);
  const int64_t before = allocations;
  for (int i = 0; i < 100; ++i) call<Idle>(x, args);
  EXPECT_EQ(allocations, before);
  std::string counted(100, 'x');  // the counter counts
  EXPECT_EQ(allocations, before + 1);
}

Machine plain_machine() { return {.name = "test", .rate = {1e11}, .dram_read = 1e10, .dram_copy = 1e10, .launch_s = 1e-6}; }

TEST(Bench, TimesTheRowsOfACase) {
  Runtime runtime(1);
  const Machine machine = plain_machine();
  const BenchReport r =
      bench_op(*find_op("gemm"), {.suite = {}, .case_filter = "smoke_one_row_f32", .seconds = 0.02}, runtime, machine);
  ASSERT_FALSE(r.lines.empty());
  const BenchLine& l = r.lines[0];
  EXPECT_EQ(l.dtype, "f32");
  EXPECT_GE(l.repeats, 5);
  EXPECT_GT(l.copies, 1);
  EXPECT_GT(l.cold.best, 0);
  EXPECT_LE(l.cold.best, l.cold.p10);
  EXPECT_LE(l.cold.p10, l.cold.median);
  EXPECT_LE(l.cold.median, l.cold.p90);
  EXPECT_NEAR(l.bound_s, 1e-6 + (512 * 4 + 48 * 512 * 4 + 48 * 4) / 1e10, 1e-9);
  EXPECT_STREQ(l.bound_by, "memory");
  int picked = 0;
  for (const BenchLine& line : r.lines) picked += line.picked;
  EXPECT_EQ(picked, 1);
  const std::vector<LedgerRow> rows = ledger_rows(r, machine);
  ASSERT_EQ(rows.size(), r.lines.size());
  EXPECT_EQ(rows[0].op, "gemm");
  EXPECT_EQ(rows[0].time_s, l.cold.best);
  EXPECT_EQ(rows[0].machine, "test");
}

TEST(Why, ListsRowsWithVerdicts) {
  Runtime runtime(1, Isa::portable);
  const std::vector<WhyCase> cases =
      why_op(*find_op("gemm"), {.suite = {}, .case_filter = "smoke_one_row_bf16"}, runtime, plain_machine());
  ASSERT_EQ(cases.size(), 1u);
  EXPECT_EQ(cases[0].rows.size(), find_op("gemm")->rows().size());
  int picked = 0;
  for (const WhyRow& r : cases[0].rows) {
    picked += r.picked;
    EXPECT_TRUE(!r.picked || r.refusal.empty());
  }
  EXPECT_EQ(picked, 1);
  EXPECT_EQ(cases[0].rows.back().row, "reference");
  EXPECT_THAT(to_text("gemm", cases), HasSubstr("gemm smoke_one_row_bf16: 1x48x512 bf16"));
}

TEST(Provenance, HashesTheFolderThatDefinesTheOp) {
  const Provenance a = provenance("rms_norm_backward", RIDGE_SOURCE_DIR),
                   b = provenance("rms_norm", RIDGE_SOURCE_DIR + std::string("/src/check")),
                   c = provenance("gemm", RIDGE_SOURCE_DIR);
  EXPECT_EQ(a.sources.size(), 12u);
  EXPECT_EQ(a.sources, b.sources);
  EXPECT_NE(a.sources, c.sources);
  EXPECT_EQ(provenance("no_such_op", RIDGE_SOURCE_DIR).sources, "");
  EXPECT_EQ(provenance("", RIDGE_SOURCE_DIR).sources.size(), 12u);
  EXPECT_NE(provenance("", RIDGE_SOURCE_DIR).sources, c.sources);
  EXPECT_EQ(provenance("gemm", "/").sources, "");
  EXPECT_EQ(a.date.size(), 20u);
}

}  // namespace
}  // namespace ridge
