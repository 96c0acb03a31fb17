// Attention where the answer is known by other means: masks by averages, sinks by their formula, and the promises that no single case
// can show (a result does not depend on the other segments, on how keys are stored, on 32 bits).
#include "ops/attention/attention.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "base/arena.h"
#include "ops/ctx.h"
#include "ops/sampler.h"

namespace ridge {
namespace {

using Args = Attention::Args;
using testing::HasSubstr;

constexpr double kInf = std::numeric_limits<double>::infinity();

struct Bench {
  explicit Bench(int threads = 1, Isa isa = active_isa()) : runtime(threads, isa), acts(int64_t(16) << 20), ctx(Mode::run, runtime, acts) {}
  Runtime runtime;
  Arena acts;
  Ctx ctx;
};

// One segment, one head, q = 0, v_j = j: every visible key weighs the same, so o is their mean and lse the log of their number.
Args uniform_segment(Sampler& r, int32_t queries, int32_t keys, bool causal, int64_t window) {
  Args a{.q = r.constant({queries, 1, 8}, DType::f32, 0), .k = r.normal({(keys + 15) / 16 + 1, 1, 16, 8}, DType::f32),
         .v = r.constant({(keys + 15) / 16 + 1, 1, 16, 8}, DType::f32, NAN), .segments = r.segments({queries}, {keys}), .o = r.out({queries, 1, 8}, DType::f32)};
  a.pages.table = r.integers({1, (keys + 15) / 16 + 1}, DType::i32, -1, 0);
  for (int64_t p = 0; p < (keys + 15) / 16; ++p) a.pages.table.set(double((keys + 15) / 16 - 1 - p), 0, p);
  for (int64_t j = 0; j < keys; ++j)
    for (int64_t c = 0; c < 8; ++c) a.v.set(double(j), int64_t(a.pages.table.get(0, j / 16)), 0, j % 16, c);
  a.lse = r.out({queries, 1}, DType::f32);
  a.causal = causal;
  a.window = window;
  return a;
}

TEST(Attention, MasksAreAlignedToTheLastKeyAndWindowsIncludeTheQuery) {
  Bench b;
  for (int32_t queries : {1, 3, 40})
    for (int32_t keys : {1, 3, 17, 90})
      for (bool causal : {true, false})
        for (int64_t window : {0, 1, 5, 64, 1000}) {
          Sampler r("masks");
          const Args a = uniform_segment(r, queries, keys, causal, window);
          attention(b.ctx, a);
          double pairs = 0;
          for (int64_t i = 0; i < queries; ++i) {
            const int64_t p = keys - queries + i, to = causal ? p : keys - 1, from = std::max<int64_t>(0, window ? p - window + 1 : 0);
            const double n = double(std::max<int64_t>(0, to - from + 1));
            pairs += n;
            const std::string at = "queries " + std::to_string(queries) + ", keys " + std::to_string(keys) + ", window " + std::to_string(window) +
                                   (causal ? ", causal" : "") + ", query " + std::to_string(i);
            ASSERT_NEAR(a.o.get(i, 0, 7), n ? double(from + to) / 2 : 0, 1e-4) << at;
            if (n) ASSERT_NEAR(a.lse.get(i, 0), std::log(n), 1e-5) << at;
            else ASSERT_EQ(a.lse.get(i, 0), -kInf) << at;
          }
          EXPECT_EQ(visible_pairs(queries, keys, causal, window), pairs) << queries << " " << keys << " " << causal << " " << window;
          EXPECT_EQ(Attention::cost(a).matmul_flops, 2 * pairs * 16);
        }
}

TEST(Attention, SinksEnterTheDenominatorOnce) {                // scores 0, values 1: o = n / (n + e^sink)
  Bench b;
  for (int32_t queries : {1, 5, 130})
    for (int32_t keys : {1, 9, 130, 3000})
      for (double sink : {-30.0, 0.5, 7.0, 95.0}) {
        Sampler r("sinks");
        Args a = uniform_segment(r, queries, keys, true, 4);
        for (int64_t j = 0; j < keys; ++j) a.v.set(1, int64_t(a.pages.table.get(0, j / 16)), 0, j % 16, 0);
        a.sinks = r.constant({1}, DType::f32, sink);
        attention(b.ctx, a);
        for (int64_t i = 0; i < queries; ++i) {
          const double n = double(std::clamp<int64_t>(keys - queries + i + 1, 0, 4));
          if (n == 0) {
            ASSERT_EQ(a.lse.get(i, 0), -kInf);
            continue;
          }
          ASSERT_NEAR(a.o.get(i, 0, 0), n / (n + std::exp(sink)), 1e-6);
          ASSERT_NEAR(a.lse.get(i, 0), std::log(n + std::exp(sink)), 1e-5);
        }
      }
}

// Every option changes the result: none is parsed and dropped.
TEST(Attention, OptionsAreNeverDropped) {
  Bench b;
  auto run = [&](auto&& change) {
    Sampler r("options");
    Args a{.q = r.normal({41, 2, 16}, DType::f32), .k = r.normal({41, 1, 16}, DType::f32), .v = r.normal({41, 1, 16}, DType::f32),
           .segments = r.segments({40, 1}), .o = r.out({41, 2, 16}, DType::f32), .scale = 0.2};
    a.sinks = change(a) ? r.constant({2}, DType::f32, 1) : View{};
    attention(b.ctx, a);
    return a.o.get(30, 1, 3);
  };
  const double plain = run([](Args&) { return false; });
  EXPECT_GT(std::abs(plain - run([](Args& a) { return a.scale = 0.5, false; })), 1e-3);
  EXPECT_GT(std::abs(plain - run([](Args& a) { return a.softcap = 2, false; })), 1e-3);
  EXPECT_GT(std::abs(plain - run([](Args& a) { return a.window = 7, false; })), 1e-3);
  EXPECT_GT(std::abs(plain - run([](Args& a) { return a.causal = false, false; })), 1e-3);
  EXPECT_GT(std::abs(plain - run([](Args&) { return true; })), 1e-3);
}

TEST(Attention, RefusesWhatDoesNotFit) {
  Sampler r("refusals");
  const Args good = uniform_segment(r, 3, 40, true, 0);
  auto sentence = [&](auto&& change) {
    Args a = good;
    change(a);
    return Attention::check(a);
  };
  EXPECT_EQ(Attention::check(good), "");
  EXPECT_THAT(sentence([&](Args& a) { a.segments = r.segments({3}, {65}); }), HasSubstr("segment 0 has 65 keys, but only 64 have a place"));
  EXPECT_THAT(sentence([&](Args& a) { a.segments = r.segments({4}, {40}); }), HasSubstr("the segments hold 4 tokens, q has 3"));
  EXPECT_THAT(sentence([&](Args& a) { a.segments = r.segments({-1}, {40}); }), HasSubstr("negative length"));
  EXPECT_THAT(sentence([&](Args& a) { a.segments.lengths = nullptr; }), HasSubstr("lengths is missing"));
  EXPECT_THAT(sentence([&](Args& a) { a.segments = r.segments({3, 0}, {40, 0}); }), HasSubstr("[segments, max_pages]"));
  EXPECT_THAT(sentence([&](Args& a) { a.pages = {}; }), HasSubstr("page table"));
  EXPECT_THAT(sentence([&](Args& a) { a.q = r.normal({3, 1, 9}, DType::f32); }), HasSubstr("head dimension"));
  EXPECT_THAT(sentence([&](Args& a) { a.k = r.normal({4, 2, 16, 8}, DType::f32); }), HasSubstr("1 query heads do not share 2 key heads"));
  EXPECT_THAT(sentence([&](Args& a) { a.window = -1; }), HasSubstr("window"));
  EXPECT_THAT(sentence([&](Args& a) { a.softcap = NAN; }), HasSubstr("softcap"));
  EXPECT_THAT(sentence([&](Args& a) { a.lse = r.out({1, 3}, DType::f32); }), HasSubstr("lse"));
  EXPECT_THAT(Attention::no_gradient(good), HasSubstr("no gradient"));
}

// The gradients are the same whether the forward pass kept lse or not.
TEST(Attention, VjpComputesTheLseItWasNotGiven) {
  Runtime runtime(1);
  auto gradient = [&](bool keep) {
    Arena acts(1 << 20), grads(1 << 20);
    Ctx x(Mode::record, runtime, acts, &grads);
    Sampler r("vjp");
    auto copy = [&](View v) {
      View to = x.act(v);
      memcpy(to.data, v.data, size_t(v.bytes()));
      return to;
    };
    const View q = copy(r.normal({9, 2, 8}, DType::f64)), k = copy(r.normal({9, 1, 8}, DType::f64)), v = copy(r.normal({9, 1, 8}, DType::f64));
    Args a{.q = q, .k = k, .v = v, .segments = r.segments({5, 4}), .o = x.act(q)};
    if (keep) a.lse = x.act({9, 2}, DType::f64);
    attention(x, a);
    x.backward(a.o.rows(8, 1));
    std::vector<double> all;
    for (const View& of : {q, k, v})
      for (int64_t e = 0; e < of.count(); ++e) all.push_back(x.grad(of).flat().get(e));
    return all;
  };
  const std::vector<double> kept = gradient(true);
  EXPECT_EQ(kept, gradient(false));
  EXPECT_GT(*std::max_element(kept.begin(), kept.end()), 0.01);
}

}  // namespace
}  // namespace ridge
