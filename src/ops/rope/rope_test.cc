// Rope where the answer is known by other means: published frequencies, the invariants of a rotation, refusals.
#include "ops/rope/rope.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "base/arena.h"
#include "ops/ctx.h"
#include "ops/sampler.h"

namespace ridge {
namespace {

using testing::HasSubstr;

struct Bench {
  Runtime runtime{1};
  Arena acts{1 << 20};
  Ctx ctx{Mode::run, runtime, acts};
};

struct Known {
  int64_t index;
  double frequency;
};

// Values that transformers 5.24 computes in f32 for head dimension 128 (tools/goldens/rope_frequencies.py).
void expect_frequencies(const RopeFrequencies& f, const std::vector<Known>& known, double m) {
  double table[64];
  rope_frequencies(f, view_of(table, DType::f64, {64}));
  for (const Known& k : known) EXPECT_NEAR(table[k.index] / k.frequency, 1, 1e-6) << k.index;
  EXPECT_NEAR(rope_attention_factor(f), m, 1e-12);
}

TEST(RopeFrequencies, Llama31) {
  expect_frequencies({.theta = 500000, .scaling = RopeScaling::llama3, .factor = 8, .original_context = 8192},
                     {{0, 1},
                      {1, 8.14617217e-01},
                      {15, 4.61640507e-02},
                      {28, 3.21144611e-03},
                      {31, 8.56751460e-04},
                      {36, 7.78465546e-05},
                      {63, 3.06892588e-07}},
                     1);
}

TEST(RopeFrequencies, Yarn) {
  expect_frequencies({.theta = 1e6, .scaling = RopeScaling::yarn, .factor = 4, .original_context = 32768},
                     {{0, 1},
                      {1, 8.05842221e-01},
                      {15, 3.92418988e-02},
                      {25, 4.13173810e-03},
                      {28, 1.84827659e-03},
                      {31, 8.02959781e-04},
                      {36, 1.79841154e-04},
                      {40, 4.44569851e-05},
                      {63, 3.10234441e-07}},
                     1.138629436111989);
  expect_frequencies({.theta = 10000,
                      .scaling = RopeScaling::yarn,
                      .factor = 40,
                      .original_context = 4096,
                      .mscale = 0.707,
                      .mscale_all_dim = 1},
                     {{20, 5.62341288e-02},
                      {25, 2.22496595e-02},
                      {28, 1.24479560e-02},
                      {31, 6.78434409e-03},
                      {45, 9.62454505e-05},
                      {63, 2.88695469e-06}},
                     0.9210423553163399);
  expect_frequencies({.theta = 10000, .scaling = RopeScaling::yarn, .factor = 16, .original_context = 4096, .truncate = false},
                     {{20, 5.62341288e-02},
                      {25, 2.30608694e-02},
                      {28, 1.28985140e-02},
                      {36, 2.32756464e-03},
                      {45, 9.78567841e-05},
                      {63, 7.21738706e-06}},
                     1.2772588722239782);
}

TEST(RopeFrequencies, Linear) {
  expect_frequencies({.scaling = RopeScaling::linear, .factor = 4}, {{0, 0.25}, {32, 0.0025}}, 1);
  expect_frequencies({}, {{0, 1}, {16, 0.1}, {32, 0.01}}, 1);
}

// q at p + s times k at r + s does not depend on s, however large; a head's norm stays.
TEST(Rope, OnlyDistancesMatter) {
  Bench b;
  for (RopePairs pairs : {RopePairs::half_split, RopePairs::interleaved}) {
    auto product = [&](double shift) {
      Sampler r("distance");
      Rope::Args a{.q = r.normal({1, 1, 64}, DType::f32),
                   .k = r.normal({1, 1, 64}, DType::f32),
                   .positions = {r.values({1}, DType::i32, {shift})},
                   .q_out = r.out({1, 1, 64}, DType::f32),
                   .k_out = r.out({1, 1, 64}, DType::f32),
                   .pairs = pairs};
      rope(b.ctx, a);
      Rope::Args later = a;
      later.positions = {r.values({1}, DType::i32, {shift + 37})};
      later.k_out = r.out({1, 1, 64}, DType::f32);
      rope(b.ctx, later);
      double s = 0, before = 0, after = 0;
      for (int64_t c = 0; c < 64; ++c) {
        s += a.q_out.get(0, 0, c) * later.k_out.get(0, 0, c);
        before += a.q.get(0, 0, c) * a.q.get(0, 0, c);
        after += a.q_out.get(0, 0, c) * a.q_out.get(0, 0, c);
      }
      EXPECT_NEAR(before, after, 1e-5 * before);
      return s;
    };
    const double s = product(0);
    for (double shift : {1.0, 1000.0, 131072.0, 1000000.0}) EXPECT_NEAR(product(shift), s, 2e-5);
  }
}

TEST(Rope, PairsAreHalvesOrNeighbours) {  // position 1, frequency 1: the first pair turns by one radian
  Bench b;
  auto turned = [&](RopePairs pairs) {
    Sampler r("pairs");
    Rope::Args a{.q = r.values({1, 1, 4}, DType::f64, {1, 0, 0, 0}),
                 .k = r.constant({1, 1, 4}, DType::f64, 0),
                 .positions = {r.values({1}, DType::i32, {1})},
                 .q_out = r.out({1, 1, 4}, DType::f64),
                 .k_out = r.out({1, 1, 4}, DType::f64),
                 .pairs = pairs};
    rope(b.ctx, a);
    return std::vector<double>{a.q_out.get(0, 0, 0), a.q_out.get(0, 0, 1), a.q_out.get(0, 0, 2), a.q_out.get(0, 0, 3)};
  };
  EXPECT_THAT(turned(RopePairs::half_split), testing::ElementsAre(std::cos(1.0), 0, std::sin(1.0), 0));
  EXPECT_THAT(turned(RopePairs::interleaved), testing::ElementsAre(std::cos(1.0), std::sin(1.0), 0, 0));
}

TEST(Rope, RefusesWhatDoesNotFit) {
  Sampler r("refusals");
  const Rope::Args good{.q = r.normal({3, 2, 8}, DType::f32),
                        .k = r.normal({3, 1, 8}, DType::f32),
                        .positions = {r.integers({3}, DType::i32, 0, 9)},
                        .q_out = r.out({3, 2, 8}, DType::f32),
                        .k_out = r.out({3, 1, 8}, DType::f32)};
  auto sentence = [&](auto&& change) {
    Rope::Args a = good;
    change(a);
    return Rope::check(a);
  };
  EXPECT_EQ(Rope::check(good), "");
  EXPECT_THAT(sentence([&](Rope::Args& a) { a.positions.of = r.integers({2}, DType::i32, 0, 9); }),
              HasSubstr("positions are i32 [tokens]"));
  EXPECT_THAT(sentence([&](Rope::Args& a) { a.rotary_dim = 5; }), HasSubstr("rotary_dim 5"));
  EXPECT_THAT(sentence([&](Rope::Args& a) { a.rotary_dim = 10; }), HasSubstr("rotary_dim 10"));
  EXPECT_THAT(sentence([&](Rope::Args& a) { a.q_norm = r.normal({8}, DType::f32); }), HasSubstr("come together"));
  EXPECT_THAT(sentence([&](Rope::Args& a) { a.k_out = {}; }), HasSubstr("k_out"));
  EXPECT_THAT(sentence([&](Rope::Args& a) { a.frequencies = {.scaling = RopeScaling::llama3, .factor = 8}; }),
              HasSubstr("original_max_position_embeddings"));
  EXPECT_THAT(sentence([&](Rope::Args& a) {
                a.k_pages = r.out({2, 1, 4, 8}, DType::f32);
                a.v_pages = r.out({2, 1, 4, 8}, DType::f32);
                a.v = r.normal({3, 1, 8}, DType::f32);
              }),
              HasSubstr("slots"));
  Rope::Args in_place = good;
  in_place.q_out = in_place.q;
  EXPECT_EQ(Rope::check(in_place), "");
  EXPECT_THAT(Rope::no_gradient(in_place), HasSubstr("beside its inputs"));
}

}  // namespace
}  // namespace ridge
