// The parts of serving without a model: pages, schedules, and what a request may not ask for.
#include <gtest/gtest.h>

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

}  // namespace
}  // namespace ridge
