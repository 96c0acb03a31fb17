// The parts of serving: pages, schedules; and generation with a tiny random model, where smollm2_test needs a real one.
#include <gtest/gtest.h>

#include <limits>

#include "serve/generator.h"
#include "serve/schedule.h"
#include "serve/state_pool.h"

namespace ridge {
namespace {

constexpr KvShape kShape{.layers = 2, .kv_heads = 1, .head_dim = 8};

TEST(StatePool, GivesAndTakesPages) {
  StatePool pool(kShape, 4, 16, DType::f16);
  SequenceState a, b;
  EXPECT_TRUE(pool.grow(a, 17));
  EXPECT_EQ(a.pages.size(), 2u);
  EXPECT_FALSE(pool.grow(b, 33));  // three pages; two are free
  EXPECT_TRUE(b.pages.empty());
  EXPECT_TRUE(pool.grow(b, 32));
  EXPECT_EQ(pool.free_pages(), 0);
  a.tokens = 17;
  pool.cut(a, 16);
  EXPECT_EQ(pool.free_pages(), 1);
  pool.release(a);
  pool.release(b);
  EXPECT_EQ(pool.free_pages(), 4);
}

TEST(StatePool, GrowingTwiceForTheSameTokensTakesNothing) {
  StatePool pool(kShape, 4, 16, DType::f32);
  SequenceState a;
  EXPECT_TRUE(pool.grow(a, 16));
  EXPECT_TRUE(pool.grow(a, 16));
  EXPECT_EQ(a.pages.size(), 1u);
}

std::vector<Share> plan(std::vector<int64_t> pending, int64_t budget) {
  std::vector<Waiting> waiting;
  for (int64_t n : pending) waiting.push_back({n});
  return schedule(waiting, budget);
}

TEST(Schedule, DecodesGoFirstAndPromptsAreCutIntoChunks) {
  EXPECT_EQ(plan({100, 1, 1}, 16), (std::vector<Share>{{0, 14}, {1, 1}, {2, 1}}));
  EXPECT_EQ(plan({5, 7}, 16), (std::vector<Share>{{0, 5}, {1, 7}}));
  EXPECT_EQ(plan({20, 7}, 16), (std::vector<Share>{{0, 16}}));
}

TEST(Schedule, NothingToDoIsAnEmptyStep) {
  EXPECT_TRUE(plan({}, 16).empty());
  EXPECT_TRUE(plan({0, 0}, 16).empty());
  EXPECT_EQ(plan({1, 1, 1}, 2), (std::vector<Share>{{0, 1}, {1, 1}}));
}

std::vector<std::vector<int32_t>> answers(const std::vector<Request>& requests, int threads) {
  static const Source source = *open_source(std::string(RIDGE_SOURCE_DIR) + "/src/model/goldens/tiny_llama3");
  static const Model model = *load_model(source, {.weights = LoadOptions::Weights::copied});
  Runtime runtime(threads);
  auto runner = *Runner::make(model, runtime, {.context = 64, .sequences = 3, .step_tokens = 16, .page_size = 8});
  Generator g(*runner, {});
  for (const Request& r : requests) EXPECT_TRUE(g.submit(r).ok());
  std::vector<std::vector<int32_t>> all(requests.size());
  while (!g.idle())
    for (const Generated& s : g.step()) all[size_t(s.request)].push_back(s.id);
  EXPECT_EQ(runner->pool().free_pages(), 3 * 8);
  return all;
}

// Five requests for three places: prompts in chunks beside decodes, places that change hands, every setting of the sampler.
TEST(Generation, TheThreadsDoNotMatter) {
  std::vector<Request> requests;
  for (int32_t r = 0; r < 5; ++r) {
    requests.push_back({.ids = {}, .max_tokens = 5 + r, .sampling = {.temperature = 0.4 * r, .top_p = 0.95, .seed = r}});
    for (int32_t i = 0; i < 1 + 11 * r; ++i) requests[size_t(r)].ids.push_back((7 * i + r) % 61);
  }
  requests[3].sampling.top_k = 20, requests[3].sampling.repetition = 1.3, requests[3].sampling.frequency = 0.2;
  const auto alone = answers(requests, 1);
  for (size_t r = 0; r < 5; ++r) EXPECT_EQ(alone[r].size(), 5 + r);
  EXPECT_EQ(answers(requests, 2), alone);
  EXPECT_EQ(answers(requests, 4), alone);
}

TEST(Generation, MoreTokensThanAnyNumberCanCountFillTheContext) {
  const auto answer = answers({{.ids = {1, 2, 3}, .max_tokens = std::numeric_limits<int64_t>::max()}}, 2);
  EXPECT_EQ(answer[0].size(), 61u);
}

}  // namespace
}  // namespace ridge
