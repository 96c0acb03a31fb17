// The drivers against a scratch op whose rows are wrong on purpose, each in one way: every driver must see its kind of wrong.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <set>
#include <vector>

#include "check/check_op.h"
#include "check/grad_op.h"
#include "ops/call.h"
#include "ops/list.h"
#include "ops/sampler.h"

namespace ridge {
namespace {

using testing::HasSubstr;

// y[m, n] = x[m, n] * w[n]
struct Scratch {
  static constexpr const char* name = "scratch";
  struct Args {
    View x;  // [m, n]
    View w;  // [n]
    View y;  // [m, n], may be x
    bool operator==(const Args&) const = default;
  };
  static std::span<const Operand> operands() {
    static constexpr Operand table[] = {operand<&Args::x>("x", Role::in), operand<&Args::w>("w", Role::weight),
                                        operand<&Args::y>("y", Role::out)};
    return table;
  }
  static std::string check(const Args& a) { return a.x.dims[1] == a.w.dims[0] ? "" : "w is not [n]"; }
  static Cost cost(const Args& a) { return {.vector_flops = double(a.y.count())}; }
  static std::string shape(const Args& a) { return to_string(a.x); }
  static void reference(Ctx&, const Args& a, char*) {
    for (int64_t i = 0; i < a.y.dims[0]; ++i)
      for (int64_t j = 0; j < a.y.dims[1]; ++j) a.y.set(a.x.get(i, j) * a.w.get(j), i, j);
  }
  static void planted(Ctx& x, const Args& a, char*) {
    reference(x, a, nullptr);
    a.y.set(a.x.get(0, 0), 0, 0);
  }
  static Accuracy accuracy() { return tolerance; }
  static std::vector<Case<Scratch>> cases() {
    return {{"smoke", Suite::smoke, [](Sampler& r) { return make(r, 5, 13, DType::f32); }},
            {"smoke_q8", Suite::smoke,
             [](Sampler& r) {
               return Args{r.normal({3, 64}, DType::q8_0), r.normal({64}, DType::f32), r.out({3, 64}, DType::f32)};
             }},
            {"edge_in_place", Suite::edge,
             [](Sampler& r) {
               Args a = make(r, 4, 7, DType::f32);
               a.y = a.x;
               return a;
             }},
            {"edge_transposed", Suite::edge, [](Sampler& r) {
               return Args{r.normal({6, 9}, DType::f32).t(), r.normal({6}, DType::f32), r.out({9, 6}, DType::f32)};
             }}};
  }
  static Args make(Sampler& r, int64_t m, int64_t n, DType t) {
    return {r.normal({m, n}, t), r.normal({n}, t), r.out({m, n}, t)};
  }
  static void vjp(Ctx& x, const Args& a) { backward(x, a); }
  static std::span<const Kernel<Scratch>> kernels() { return rows; }

  static inline std::vector<Kernel<Scratch>> rows;
  static inline Accuracy tolerance;
  static inline void (*backward)(Ctx&, const Args&);
};
using Args = Scratch::Args;
using Launch = void (*)(Ctx&, const Args&, char*);

bool plain_rows(const Args& a) {
  return a.x.type == DType::f32 && a.x.strides[1] == 1 && a.y.strides[1] == 1 && a.w.strides[0] == 1;
}
Verdict takes_plain_rows(const Args& a) { return plain_rows(a) ? Verdict{} : Verdict{"f32 rows without gaps between elements"}; }

void right(Ctx& x, const Args& a, char*) {
  x.pool().parallel(a.y.dims[0], [&](int64_t i, int) {
    for (int64_t j = 0; j < a.y.dims[1]; ++j) *a.y.as<float>(i, j) = *a.x.as<float>(i, j) * *a.w.as<float>(j);
  });
}

void right_backward(Ctx& x, const Args& a) {
  const View dy = x.grad(a.y), dx = x.grad(a.x), dw = x.grad(a.w);
  for (int64_t i = 0; i < a.y.dims[0]; ++i)
    for (int64_t j = 0; j < a.y.dims[1]; ++j) {
      if (dx) dx.add(dy.get(i, j) * a.w.get(j), i, j);
      if (dw) dw.add(dy.get(i, j) * a.x.get(i, j), j);
    }
}

OpInfo scratch_op(Launch launch, int64_t (*workspace)(const Args&) = nullptr) {
  Scratch::tolerance = {.relative = 2, .floor = 8};
  Scratch::backward = right_backward;
  Scratch::rows = {{.name = "row",
                    .place = Place::cpu,
                    .isa = Isa::portable,
                    .tier = Tier::fast,
                    .supports = takes_plain_rows,
                    .launch = launch,
                    .workspace = workspace},
                   {.name = "reference",
                    .place = Place::cpu,
                    .isa = Isa::portable,
                    .tier = Tier::reference,
                    .supports = always<Scratch>,
                    .launch = Scratch::reference}};
  return erase<Scratch>();
}

// The first complaint about a row; the runs are those of `ridgeline op check`.
std::string complaint(Launch launch, int64_t (*workspace)(const Args&) = nullptr) {
  const OpInfo op = scratch_op(launch, workspace);
  const CheckReport r = check_op(op, {});
  return r.failures.empty() ? "" : r.failures[0].what;
}

TEST(Check, PassesARightRow) {
  const OpInfo op = scratch_op(right);
  const CheckReport r = check_op(op, {});
  EXPECT_TRUE(r.ok()) << to_text(r);
  EXPECT_EQ(r.rows[0].cases, 2);  // not the block format, not the transposed case
  EXPECT_EQ(r.rows[1].cases, 4);
  EXPECT_TRUE(check_rejections(op, {}).empty());
}

TEST(Check, SeesAnInaccurateRow) {
  EXPECT_THAT(complaint([](Ctx& x, const Args& a, char*) {
                right(x, a, nullptr);
                a.y.set(a.y.get(0, 0) * (1 + 1e-5), 0, 0);
              }),
              HasSubstr("inaccurate: y["));
}

TEST(Check, SeesWritesPastTheEnd) {
  EXPECT_THAT(complaint([](Ctx& x, const Args& a, char*) {
                right(x, a, nullptr);
                *a.y.as<float>(a.y.dims[0] - 1, a.y.dims[1]) = 0;
              }),
              HasSubstr("past its end were overwritten"));
  EXPECT_THAT(complaint([](Ctx& x, const Args& a, char*) {
                right(x, a, nullptr);
                *(a.y.as<float>() - 1) = 0;
              }),
              HasSubstr("before its first element"));
}

TEST(Check, SeesWritesIntoTheGapBetweenRows) {
  EXPECT_THAT(complaint([](Ctx& x, const Args& a, char*) {
                right(x, a, nullptr);
                if (a.y.strides[0] > a.y.dims[1]) *a.y.as<float>(0, a.y.dims[1]) = 0;
              }),
              HasSubstr("gap between its rows"));
}

TEST(Check, SeesReadsOfTheGapBetweenRows) {  // a vector tail multiplied by zeros: 0 * NaN
  EXPECT_THAT(complaint([](Ctx& x, const Args& a, char*) {
                right(x, a, nullptr);
                a.y.add(0 * *a.x.as<float>(1, a.x.dims[1]) * int(a.x.strides[0] > a.x.dims[1]), 1, 0);
              }),
              HasSubstr("strided placement of all operands changes the result"));
}

TEST(Check, SeesStridesThatAreIgnored) {
  EXPECT_THAT(complaint([](Ctx&, const Args& a, char*) {
                for (int64_t e = 0; e < a.y.count(); ++e)
                  a.y.as<float>()[e] = a.x.as<float>()[e] * a.w.as<float>()[e % a.w.dims[0]];
              }),
              HasSubstr("gap between its rows was overwritten"));
}

TEST(Check, SeesAlignmentThatIsAssumed) {
  EXPECT_THAT(complaint([](Ctx& x, const Args& a, char*) {
                right(x, a, nullptr);
                const auto base = reinterpret_cast<uintptr_t>(a.x.data) & ~uintptr_t(63);
                a.y.set(double(*reinterpret_cast<const float*>(base)) * a.w.get(0), 0, 0);
              }),
              HasSubstr("placement of all operands changes the result"));
}

TEST(CheckDeathTest, NamesTheCaseOfAFault) {  // a read that nothing but a guard page can see
  EXPECT_DEATH(complaint([](Ctx& x, const Args& a, char*) {
                 right(x, a, nullptr);
                 volatile float read = *(a.x.as<float>(a.x.dims[0] - 1, a.x.dims[1]) + 8);
                 (void)read;
               }),
               "guard_after operands, 2 threads: touched memory outside its operands.*\n.*ridgeline op check scratch --case "
               "smoke --row row");
}

TEST(Check, SeesAnotherResultOnTheSecondRun) {
  static int runs;
  EXPECT_THAT(complaint([](Ctx& x, const Args& a, char*) {
                right(x, a, nullptr);
                if (runs++ % 2) a.y.set(std::nextafterf(float(a.y.get(1, 1)), 9), 1, 1);
              }),
              HasSubstr("a second run differs: y[1, 1"));
}

TEST(Check, SeesAResultThatDependsOnThreads) {
  EXPECT_THAT(complaint([](Ctx& x, const Args& a, char*) {
                right(x, a, nullptr);
                if (x.pool().threads() == 1) a.y.set(std::nextafterf(float(a.y.get(1, 1)), 9), 1, 1);
              }),
              HasSubstr("1 threads give another result than 2"));
}

TEST(Check, RunsOnAsManyThreadsAsAskedFor) {
  static std::set<int> seen;
  const OpInfo op = scratch_op([](Ctx& x, const Args& a, char*) {
    right(x, a, nullptr);
    seen.insert(x.pool().threads());
    if (x.pool().threads() == 5) a.y.set(std::nextafterf(float(a.y.get(1, 1)), 9), 1, 1);
  });
  EXPECT_TRUE(check_op(op, {}).ok());
  EXPECT_EQ(seen, (std::set<int>{1, 2, 3}));
  seen.clear();
  const CheckReport r = check_op(op, {.threads = 4});
  EXPECT_EQ(seen, (std::set<int>{1, 4, 5}));
  ASSERT_FALSE(r.ok());
  EXPECT_THAT(r.failures[0].what, HasSubstr("5 threads give another result than 4"));
  EXPECT_THAT(r.failures[0].repro, testing::EndsWith("--row row -t 4"));
}

TEST(Check, SeesADirtiedInput) {
  EXPECT_THAT(complaint([](Ctx& x, const Args& a, char*) {
                right(x, a, nullptr);
                a.w.set(1, 0);
              }),
              HasSubstr("w: an input changed"));
}

TEST(Check, SeesAnElementThatIsNeverWritten) {
  EXPECT_THAT(complaint([](Ctx&, const Args& a, char*) {
                for (int64_t i = 0; i < a.y.dims[0]; ++i)
                  for (int64_t j = 0; j + 1 < a.y.dims[1]; ++j) a.y.set(a.x.get(i, j) * a.w.get(j), i, j);
              }),
              HasSubstr("nan, truth"));
}

TEST(Check, SeesScratchThatIsTooSmallOrReadBeforeItIsWritten) {
  auto sixty = [](const Args&) -> int64_t { return 60; };
  EXPECT_THAT(complaint(
                  [](Ctx& x, const Args& a, char* scratch) {
                    right(x, a, nullptr);
                    scratch[60] = 0;
                  },
                  sixty),
              HasSubstr("outside its 60 bytes of scratch"));
  EXPECT_THAT(complaint(
                  [](Ctx& x, const Args& a, char* scratch) {
                    right(x, a, nullptr);
                    a.y.add(*reinterpret_cast<float*>(scratch), 0, 0);
                  },
                  sixty),
              HasSubstr("inaccurate"));
}

TEST(Check, SeesAStepArenaThatIsNotGivenBack) {
  EXPECT_THAT(complaint([](Ctx& x, const Args& a, char*) {
                right(x, a, nullptr);
                x.act({3}, DType::f32);
              }),
              HasSubstr("left 64 bytes of the step arena taken"));
}

TEST(Check, SeesARowThatNoCaseReaches) {
  OpInfo op = scratch_op(right);
  Scratch::rows[0].supports = [](const Args&) -> Verdict { return {"never"}; };
  const CheckReport r = check_op(op, {});
  ASSERT_EQ(r.failures.size(), 1u);
  EXPECT_EQ(r.failures[0].what, "no case reaches this row");
}

TEST(Check, ARowOfAnotherMachineIsNotAFailure) {
  OpInfo op = scratch_op(right);
  Scratch::rows[0].place = Place::cuda;
  const CheckReport r = check_op(op, {});
  EXPECT_TRUE(r.ok()) << to_text(r);
  EXPECT_FALSE(r.rows[0].runnable);
}

TEST(Check, WhatTheDispatcherTakesInsteadIsChecked) {  // the row refuses gaps; the reference that follows is right
  OpInfo op = scratch_op(right);
  Scratch::rows[0].supports = [](const Args& a) -> Verdict {
    return plain_rows(a) && a.x.dense() ? Verdict{} : Verdict{"dense rows"};
  };
  const CheckReport good = check_op(op, {});
  EXPECT_TRUE(good.ok()) << to_text(good);
  EXPECT_EQ(good.rows[0].refused_placements, 2);
  Scratch::rows[1].launch = [](Ctx& x, const Args& a, char*) {
    Scratch::reference(x, a, nullptr);
    if (!a.x.dense() && a.x.strides[0] > a.x.strides[1]) a.y.set(0, 0, 0);
  };
  const CheckReport bad = check_op(op, {});
  ASSERT_FALSE(bad.ok());
  EXPECT_THAT(bad.failures[0].what, HasSubstr("strided operands, dispatched to reference: inaccurate"));
}

TEST(Check,
     RoundedInputsMakeTheTwinsErrorTheTolerance) {  // right for a row that says it rounds to bf16, wrong for one that does not
  auto rounding = [](Ctx&, const Args& a, char*) {
    for (int64_t i = 0; i < a.y.dims[0]; ++i)
      for (int64_t j = 0; j < a.y.dims[1]; ++j)
        a.y.set(f32_from_bf16(bf16_from_f32(float(a.x.get(i, j)))) * f32_from_bf16(bf16_from_f32(float(a.w.get(j)))), i, j);
  };
  OpInfo op = scratch_op(rounding);
  EXPECT_FALSE(check_op(op, {}).ok());
  Scratch::rows[0].rounds = DType::bf16;
  EXPECT_TRUE(check_op(op, {}).ok());
  EXPECT_TRUE(check_rejections(op, {}).empty());
}

TEST(Rejections, SeeAToleranceThatAcceptsABug) {
  scratch_op(right);
  Scratch::tolerance = {.relative = 2, .floor = 0x1p24};  // as large as the largest value
  const OpInfo loose = erase<Scratch>();
  const std::vector<Failure> f = check_rejections(loose, {});
  std::string all;
  for (const Failure& one : f) all += one.what + "\n";
  for (const char* bug : {"the planted bug", "one element off in y", "everything scaled in y"}) EXPECT_THAT(all, HasSubstr(bug));
}

// ---- gradients
std::string grad_complaint(void (*backward)(Ctx&, const Args&)) {
  const OpInfo op = scratch_op(right);
  Scratch::backward = backward;
  const GradReport r = grad_op(op, {});
  return r.failures.empty() ? "" : r.failures[0].row + ": " + r.failures[0].what;
}

TEST(Grad, PassesARightVjp) {
  const OpInfo op = scratch_op(right);
  const GradReport r = grad_op(op, {});
  EXPECT_TRUE(r.ok()) << to_text(r);
  EXPECT_EQ(r.lines.size(), 8u);
  for (const GradLine& l : r.lines) EXPECT_LT(l.worst, 1e-9) << l.case_name;
}

TEST(Grad, RunsTheVjpOnAsManyThreadsAsAskedFor) {
  static int threads;
  const OpInfo op = scratch_op(right);
  Scratch::backward = [](Ctx& x, const Args& a) {
    threads = x.pool().threads();
    right_backward(x, a);
  };
  EXPECT_TRUE(grad_op(op, {.threads = 3}).ok());
  EXPECT_EQ(threads, 3);
}

TEST(Cases, AWholeNameIsOneCaseAndAPartIsAllThatHoldIt) {
  const OpInfo& op = *find_op("gemm");
  const std::vector<CaseInfo> all = op.cases();
  EXPECT_EQ(cases_named(op, "").size(), all.size());
  EXPECT_GT(cases_named(op, "smoke").size(), 1u);
  EXPECT_EQ(cases_named(op, "no such case").size(), 0u);
  for (const CaseInfo& c : all) EXPECT_EQ(cases_named(op, c.name).size(), 1u) << c.name << " may be a part of other names";
}

TEST(Grad, SeesAWrongDerivative) {
  EXPECT_THAT(grad_complaint([](Ctx& x, const Args& a) {
                right_backward(x, a);
                if (View dw = x.grad(a.w)) dw.set(dw.get(3) * (1 + 1e-4), 3);
              }),
              HasSubstr("w: d loss / d w[3, 0, 0, 0] is"));
}

TEST(Grad, SeesGradientsThatAreSetInsteadOfAdded) {
  EXPECT_THAT(grad_complaint([](Ctx& x, const Args& a) {
                const View dy = x.grad(a.y), dx = x.grad(a.x);
                for (int64_t i = 0; i < a.y.dims[0]; ++i)
                  for (int64_t j = 0; j < a.y.dims[1]; ++j)
                    if (dx) dx.set(dy.get(i, j) * a.w.get(j), i, j);
              }),
              HasSubstr("x: d loss / d x["));
}

TEST(Grad, SeesAGradientThatNeedsAnother) {  // dw only when x is differentiated
  EXPECT_THAT(grad_complaint([](Ctx& x, const Args& a) {
                if (x.grad(a.x)) right_backward(x, a);
              }),
              HasSubstr("w: its gradient changes"));
}

TEST(Grad, SeesAChangedOperandOrOutputGradient) {
  EXPECT_EQ(grad_complaint([](Ctx& x, const Args& a) {
              right_backward(x, a);
              a.w.set(2, 0);
            }),
            "w: the vjp changed an operand");
  EXPECT_EQ(grad_complaint([](Ctx& x, const Args& a) {
              right_backward(x, a);
              x.grad(a.y).set(0, 0, 0);
            }),
            "y: the vjp changed the gradient of an output");
}

}  // namespace
}  // namespace ridge
