// What the contract's own checks cannot see: that draws follow the stated distribution, by a second, independent account of it; that
// rows do not see each other; and small examples by hand.
#include "ops/sample/sample.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "base/arena.h"
#include "ops/ctx.h"
#include "ops/sampler.h"
#include "tile/cpu/exp_f64.h"

namespace ridge {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();

void run(const Sample::Args& a, int threads = 2) {
  Runtime runtime(threads);
  Arena acts(int64_t(4) << 20);
  Ctx x(Mode::run, runtime, acts);
  sample(x, a);
}

struct Setting {
  double temperature = 1;
  int top_k = 0;
  double top_p = 1, min_p = 0;
};

// Probabilities by definition, in long double, from sorted copies: nothing shared with the op.
std::vector<double> distribution(const std::vector<double>& z, const Setting& s) {
  std::vector<size_t> order(z.size());
  for (size_t i = 0; i < z.size(); ++i) order[i] = i;
  std::sort(order.begin(), order.end(), [&](size_t i, size_t j) { return z[i] != z[j] ? z[i] > z[j] : i < j; });
  std::vector<long double> p(z.size(), 0);
  long double sum = 0, run = 0;
  const size_t k = s.top_k > 0 ? std::min(size_t(s.top_k), z.size()) : z.size();
  for (size_t n = 0; n < k; ++n) sum += p[order[n]] = expl((long double)(z[order[n]] - z[order[0]]) / s.temperature);
  for (size_t n = 0; n < k; ++n) {
    const long double share = p[order[n]] / sum;
    if (n > 0 && s.top_p < 1 && run >= s.top_p) p[order[n]] = 0;
    run += share;
  }
  for (size_t i = 0; i < z.size(); ++i)
    if (p[i] < s.min_p * p[order[0]]) p[i] = 0;
  sum = 0;
  for (long double x : p) sum += x;
  std::vector<double> result;
  for (long double x : p) result.push_back(double(x / sum));
  return result;
}

// 20,000 rows that share one row of logits (stride 0) and differ in their step, or in their seed.
std::vector<int64_t> draw(Sampler& r, const std::vector<double>& z, const Setting& s, bool by_seed) {
  constexpr int64_t n = 20000;
  View logits = r.values({1, int64_t(z.size())}, DType::f32, z);
  logits.dims[0] = n;
  logits.strides[0] = 0;
  Sample::Args a{.logits = logits, .ids = r.out({n}, DType::i32)};
  a.temperature = r.constant({n}, DType::f64, s.temperature);
  a.top_k = r.constant({n}, DType::i32, s.top_k);
  a.top_p = r.constant({n}, DType::f64, s.top_p);
  a.min_p = r.constant({n}, DType::f64, s.min_p);
  a.seed = r.constant({n}, DType::i64, 1234567);
  a.step = r.constant({n}, DType::i32, 3);
  for (int64_t i = 0; i < n; ++i) by_seed ? a.seed.set(double(i), i) : a.step.set(double(i), i);
  run(a, 1);
  std::vector<int64_t> counts(z.size(), 0);
  for (int64_t i = 0; i < n; ++i) ++counts.at(size_t(a.ids.get(i)));
  return counts;
}

// Chi square over bins of at least five expected draws, in standard deviations above its mean; infinite for a draw of probability 0.
double surprise(const std::vector<int64_t>& counts, const std::vector<double>& p) {
  double n = 0, chi = 0, bins = 0, rare_expected = 0, rare_seen = 0;
  for (int64_t c : counts) n += double(c);
  auto bin = [&](double seen, double expected) {
    chi += (seen - expected) * (seen - expected) / expected;
    ++bins;
  };
  for (size_t i = 0; i < p.size(); ++i) {
    if (p[i] == 0 && counts[i] > 0) return kInf;
    if (n * p[i] >= 5)
      bin(double(counts[i]), n * p[i]);
    else
      rare_expected += n * p[i], rare_seen += double(counts[i]);
  }
  if (rare_expected > 5) bin(rare_seen, rare_expected);
  const double freedom = std::max(bins - 1, 1.0);
  return (chi - freedom) / std::sqrt(2 * freedom);
}

TEST(Sample, DrawsFollowTheStatedDistribution) {
  Sampler r("distribution");
  std::vector<double> z;
  for (int i = 0; i < 600; ++i) z.push_back(float(r.uniform(-4, 4)));
  for (int i = 0; i < 40; ++i) z[size_t(i * 13)] = 3.5;  // ties, some of them across cuts
  bool by_seed = false;
  for (const Setting& s : {Setting{1}, Setting{0.3}, Setting{2.5}, Setting{.temperature = 0.8, .top_k = 20}, Setting{.top_k = 55},
                           Setting{.top_p = 0.8}, Setting{.top_p = 0.05}, Setting{.min_p = 0.3},
                           Setting{.temperature = 1.3, .top_k = 100, .top_p = 0.7, .min_p = 0.2},
                           Setting{.temperature = 1.3, .top_k = 100, .top_p = 0.99, .min_p = 0.5}}) {
    const double sigma = surprise(draw(r, z, s, by_seed), distribution(z, s));
    EXPECT_LT(sigma, 4) << "T " << s.temperature << " k " << s.top_k << " p " << s.top_p << " m " << s.min_p << " by_seed "
                        << by_seed;
    EXPECT_GT(sigma, -4) << "too even to be random";
    by_seed = !by_seed;
  }
}

TEST(Sample, TheTestSeesAWrongDistribution) {  // a temperature off by 15 %
  Sampler r("wrong");
  std::vector<double> z;
  for (int i = 0; i < 200; ++i) z.push_back(float(r.uniform(-3, 3)));
  EXPECT_GT(surprise(draw(r, z, {1.15}, false), distribution(z, {1})), 8);
}

// Rows of everything at once: alone, in another order, on other thread counts.
TEST(Sample, ARowDoesNotSeeItsBatch) {
  for (const Case<Sample>& c : Sample::cases()) {
    if (c.name != "edge_full_width" && c.name != "edge_hostile_rows_vocab257") continue;
    Sampler r(c.name);
    Sample::Args a = c.make(r);
    run(a, 2);
    const int64_t rows = a.logits.dims[0];
    for (int64_t i = 0; i < rows; ++i) {
      Sample::Args one = a;
      for (const Operand& o : Sample::operands()) {
        View& v = o.of(&one);
        if (v) v = v.rows(i, 1);
      }
      one.ids = r.out({1}, DType::i32);
      one.logprobs = r.out({1}, DType::f32);
      one.top_ids = one.top_logprobs = {};
      run(one, 1);
      EXPECT_EQ(one.ids.get(0), a.ids.get(i)) << c.name << " row " << i;
      EXPECT_EQ(std::isnan(one.logprobs.get(0)), std::isnan(a.logprobs.get(i)));
      EXPECT_EQ(one.logprobs.get(0), a.logprobs.get(i)) << c.name << " row " << i;
    }
  }
}

TEST(Sample, IdsStayInRangeWhateverTheLogits) {
  for (const Case<Sample>& c : Sample::cases()) {
    if (c.suite > Suite::edge) continue;
    Sampler r(c.name);
    Sample::Args a = c.make(r);
    run(a);
    for (int64_t i = 0; i < a.ids.dims[0]; ++i) {
      EXPECT_GE(a.ids.get(i), 0) << c.name;
      EXPECT_LT(a.ids.get(i), double(a.logits.dims[1])) << c.name;
    }
  }
}

TEST(Sample, NothingLeftIsIdZeroWithNoProbability) {
  Sampler r("nothing");
  for (double temperature : {0.0, 1.0}) {
    Sample::Args a{.logits = r.constant({1, 40}, DType::f32, std::nan("")),
                   .ids = r.out({1}, DType::i32),
                   .logprobs = r.out({1}, DType::f32),
                   .temperature = r.constant({1}, DType::f32, temperature),
                   .seed = r.constant({1}, DType::i64, 5),
                   .step = r.constant({1}, DType::i32, 1)};
    run(a);
    EXPECT_EQ(a.ids.get(0), 0);
    EXPECT_EQ(a.logprobs.get(0), -kInf);
  }
}

TEST(Sample, LogprobsAreOfTheRawLogits) {  // ln(e^2 / (e^2 + e^1 + e^0)) whatever bias and temperature do
  Sampler r("raw");
  Sample::Args a{.logits = r.values({1, 3}, DType::f32, {2, 1, 0}),
                 .ids = r.out({1}, DType::i32),
                 .logprobs = r.out({1}, DType::f64),
                 .top_ids = r.out({1, 2}, DType::i32),
                 .top_logprobs = r.out({1, 2}, DType::f64)};
  a.bias_ids = r.values({1, 2}, DType::i32, {2, -1});
  a.bias_values = r.values({1, 2}, DType::f32, {100, 100});
  run(a);
  const double sum = std::log(std::exp(2) + std::exp(1) + 1);
  EXPECT_EQ(a.ids.get(0), 2);
  EXPECT_NEAR(a.logprobs.get(0), -sum, 1e-6);
  EXPECT_EQ(a.top_ids.get(0, 0), 0);
  EXPECT_EQ(a.top_ids.get(0, 1), 1);
  EXPECT_NEAR(a.top_logprobs.get(0, 1), 1 - sum, 1e-6);
}

// The prompt holds 0 0 1, the answer 2 2 3.
int64_t greedy_with(const std::vector<double>& z, double repetition, double presence, double frequency) {
  Sampler r("penalties");
  Sample::Args a{.logits = r.values({1, int64_t(z.size())}, DType::f32, z), .ids = r.out({1}, DType::i32)};
  a.history = r.values({1, 8}, DType::i32, {0, 0, 1, 2, 2, 3, 4, 4});  // what follows history_len is no history
  a.history_len = r.constant({1}, DType::i32, 6);
  a.generated_from = r.constant({1}, DType::i32, 3);
  a.repetition = r.constant({1}, DType::f64, repetition);
  a.presence = r.constant({1}, DType::f64, presence);
  a.frequency = r.constant({1}, DType::f64, frequency);
  run(a);
  return int64_t(a.ids.get(0));
}

TEST(Sample, PenaltiesByHand) {
  EXPECT_EQ(greedy_with({5, 0, 0, 0, 4.9}, 1, 0, 0), 0);
  EXPECT_EQ(greedy_with({5, 0, 0, 0, 4.9}, 1.1, 0, 0), 4);  // 5 / 1.1 once, though 0 came twice
  EXPECT_EQ(greedy_with({5, 0, 0, 0, 4.5}, 1.1, 0, 0), 0);
  EXPECT_EQ(greedy_with({-9, -9, -1, -9, -1.05}, 1.1, 0, 0), 4);  // below zero it multiplies
  EXPECT_EQ(greedy_with({5, 0, 4.9, 0, 0}, 1, 100, 100), 0);      // the prompt is not penalised
  EXPECT_EQ(greedy_with({0, 0, 5, 0, 3.9}, 1, 1, 0), 2);          // presence once: 4
  EXPECT_EQ(greedy_with({0, 0, 5, 0, 3.9}, 1, 0, 0.6), 4);        // frequency twice: 3.8
  EXPECT_EQ(greedy_with({0, 0, 5, 0, 1}, 1, -1, 0), 2);
}

TEST(Sample, WeightsAreExponentials) {
  double worst = 0;
  for (int i = 0; i <= 400000; ++i) {
    const double x = -i * 1e-4;
    worst = std::max(worst, double(fabsl((long double)exp_f64(x) / expl((long double)x) - 1)));
  }
  EXPECT_LT(worst, 4e-16);
  EXPECT_EQ(exp_f64(0), 1);
  EXPECT_EQ(exp_f64(-40.001), 0);
  EXPECT_EQ(exp_f64(-kInf), 0);
  EXPECT_EQ(exp_f64(std::nan("")), 0);
}

TEST(Sample, SeedAndStepDecideTheDraw) {
  Sampler r("seeds");
  auto draw_one = [&](int64_t seed, int32_t step) {
    Sample::Args a{.logits = r.constant({1, 50000}, DType::f32, 0),
                   .ids = r.out({1}, DType::i32),
                   .temperature = r.constant({1}, DType::f32, 1),
                   .seed = r.out({1}, DType::i64),
                   .step = r.out({1}, DType::i32)};
    *a.seed.as<int64_t>() = seed;
    *a.step.as<int32_t>() = step;
    run(a);
    return a.ids.get(0);
  };
  EXPECT_EQ(draw_one(7, 7), draw_one(7, 7));
  EXPECT_NE(draw_one(7, 7), draw_one(7, 8));
  EXPECT_NE(draw_one((int64_t(1) << 60) + 1, 0), draw_one(int64_t(1) << 60, 0));  // all 64 bits count
  EXPECT_NE(draw_one(-1, 0), draw_one(1, 0));
}

}  // namespace
}  // namespace ridge
