// Attention where the answer is known by other means: masks by averages, sinks by their formula, and the promises that no single
// case can show (a result does not depend on the other segments, on how keys are stored, on 32 bits).
#include "ops/attention/attention.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <cmath>

#include "base/arena.h"
#include "ops/call.h"
#include "ops/ctx.h"
#include "ops/sampler.h"

namespace ridge {
namespace {

using Args = Attention::Args;
using testing::HasSubstr;

constexpr double kInf = std::numeric_limits<double>::infinity();

struct Bench {
  explicit Bench(int threads = 1, Isa isa = active_isa())
      : runtime(threads, isa), acts(int64_t(16) << 20), ctx(Mode::run, runtime, acts) {}
  Runtime runtime;
  Arena acts;
  Ctx ctx;
};

// One segment, one head, q = 0, v_j = j: every visible key weighs the same, so o is their mean and lse the log of their number.
Args uniform_segment(Sampler& r, int32_t queries, int32_t keys, bool causal, int64_t window) {
  Args a{.q = r.constant({queries, 1, 8}, DType::f32, 0),
         .k = r.normal({(keys + 15) / 16 + 1, 1, 16, 8}, DType::f32),
         .v = r.constant({(keys + 15) / 16 + 1, 1, 16, 8}, DType::f32, NAN),
         .segments = r.segments({queries}, {keys}),
         .o = r.out({queries, 1, 8}, DType::f32)};
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
            const int64_t p = keys - queries + i, to = causal ? p : keys - 1,
                          from = std::max<int64_t>(0, window ? p - window + 1 : 0);
            const double n = double(std::max<int64_t>(0, to - from + 1));
            pairs += n;
            const std::string at = "queries " + std::to_string(queries) + ", keys " + std::to_string(keys) + ", window " +
                                   std::to_string(window) + (causal ? ", causal" : "") + ", query " + std::to_string(i);
            ASSERT_NEAR(a.o.get(i, 0, 7), n ? double(from + to) / 2 : 0, 1e-4) << at;
            if (n)
              ASSERT_NEAR(a.lse.get(i, 0), std::log(n), 1e-5) << at;
            else
              ASSERT_EQ(a.lse.get(i, 0), -kInf) << at;
          }
          EXPECT_EQ(visible_pairs(queries, keys, causal, window), pairs)
              << queries << " " << keys << " " << causal << " " << window;
          EXPECT_EQ(Attention::cost(a).matmul_flops, 2 * pairs * 16);
        }
}

TEST(Attention, SinksEnterTheDenominatorOnce) {  // scores 0, values 1: o = n / (n + e^sink)
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
    Args a{.q = r.normal({41, 2, 16}, DType::f32),
           .k = r.normal({41, 1, 16}, DType::f32),
           .v = r.normal({41, 1, 16}, DType::f32),
           .segments = r.segments({40, 1}),
           .o = r.out({41, 2, 16}, DType::f32),
           .scale = 0.2};
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
  EXPECT_THAT(sentence([&](Args& a) { a.segments = r.segments({3}, {65}); }),
              HasSubstr("segment 0 has 65 keys, but only 64 have a place"));
  EXPECT_THAT(sentence([&](Args& a) { a.segments = r.segments({4}, {40}); }), HasSubstr("the segments hold 4 tokens, q has 3"));
  EXPECT_THAT(sentence([&](Args& a) { a.segments = r.segments({-1}, {40}); }), HasSubstr("negative length"));
  EXPECT_THAT(sentence([&](Args& a) { a.segments.lengths = nullptr; }), HasSubstr("lengths is missing"));
  EXPECT_THAT(sentence([&](Args& a) { a.segments = r.segments({3, 0}, {40, 0}); }), HasSubstr("[segments, max_pages]"));
  EXPECT_THAT(sentence([&](Args& a) { a.pages = {}; }), HasSubstr("page table"));
  EXPECT_THAT(sentence([&](Args& a) { a.q = r.normal({3, 1, 9}, DType::f32); }), HasSubstr("head dimension"));
  EXPECT_THAT(sentence([&](Args& a) {
                a.k = r.normal({4, 2, 16, 8}, DType::f32);
              }),
              HasSubstr("1 query heads do not share 2 key heads"));
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
    const View q = copy(r.normal({9, 2, 8}, DType::f64)), k = copy(r.normal({9, 1, 8}, DType::f64)),
               v = copy(r.normal({9, 1, 8}, DType::f64));
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

// ---- promises about more than one call, at every instruction set

class AttentionPromises : public testing::TestWithParam<Isa> {
 protected:
  void SetUp() override {
    if (GetParam() > active_isa()) GTEST_SKIP() << "this machine has no " << isa_name(GetParam());
  }
};
INSTANTIATE_TEST_SUITE_P(Isas, AttentionPromises, testing::Values(Isa::portable, Isa::avx2, Isa::avx512, Isa::amx),
                         [](const auto& info) { return isa_name(info.param); });

// A ragged batch over one pool of pages, so that the same segment can be asked for alone.
struct Batch {
  std::vector<int32_t> queries, keys;
  View q, k, v, table;
};

Batch ragged(Sampler& r, std::vector<int32_t> queries, std::vector<int32_t> keys) {
  int64_t tokens = 0, next = 0;
  for (int32_t n : queries) tokens += n;
  Batch b{queries,
          keys,
          r.normal({tokens, 6, 64}, DType::f32),
          r.normal({200, 2, 16, 64}, DType::f32),
          r.normal({200, 2, 16, 64}, DType::f32),
          r.integers({int64_t(keys.size()), 70}, DType::i32, -1, 0)};
  for (size_t s = 0; s < keys.size(); ++s)
    for (int64_t p = 0; p < (keys[s] + 15) / 16; ++p) b.table.set(double(next++ * 37 % 200), int64_t(s), p);
  return b;
}

Args call_of(Sampler& r, const Batch& b) {
  Args a{.q = b.q,
         .k = b.k,
         .v = b.v,
         .segments = r.segments(b.queries, b.keys),
         .o = r.out({b.q.dims[0], 6, 64}, DType::f32),
         .pages = {b.table, {}},
         .lse = r.out({b.q.dims[0], 6}, DType::f32)};
  a.scale = 0.125;
  return a;
}

TEST_P(AttentionPromises, ASegmentDoesNotDependOnTheOthersNorOnThreads) {
  Sampler r("independence");
  const Batch all = ragged(r, {1, 70, 3, 1, 9}, {1000, 90, 300, 1, 530});
  const Args together = call_of(r, all);
  Bench two(2, GetParam());
  attention(two.ctx, together);
  Bench one(1, GetParam());
  int64_t first = 0;
  for (size_t s = 0; s < all.queries.size(); ++s) {
    Batch b{{all.queries[s]}, {all.keys[s]}, all.q.rows(first, all.queries[s]), all.k, all.v, all.table.rows(int64_t(s), 1)};
    const Args alone = call_of(r, b);
    attention(one.ctx, alone);
    for (int64_t i = 0; i < all.queries[s]; ++i)
      for (int64_t h = 0; h < 6; ++h) {
        ASSERT_EQ(alone.lse.get(i, h), together.lse.get(first + i, h)) << "segment " << s;
        for (int64_t c = 0; c < 64; ++c) ASSERT_EQ(alone.o.get(i, h, c), together.o.get(first + i, h, c)) << "segment " << s;
      }
    first += all.queries[s];
  }
}

TEST_P(AttentionPromises, WhereAPageLiesDoesNotMatter) {
  Sampler r("pages");
  const Batch b = ragged(r, {1, 40}, {700, 90});
  Batch moved = b;
  moved.k = r.out({200, 2, 16, 64}, DType::f32), moved.v = r.out({200, 2, 16, 64}, DType::f32),
  moved.table = r.integers({2, 70}, DType::i32, -1, 0);
  for (int64_t p = 0; p < 200; ++p)
    for (int64_t h = 0; h < 2; ++h)
      for (int64_t e = 0; e < 16 * 64; ++e) {
        moved.k.set(b.k.get(p, h, e / 64, e % 64), 199 - p, h, e / 64, e % 64);
        moved.v.set(b.v.get(p, h, e / 64, e % 64), 199 - p, h, e / 64, e % 64);
      }
  for (int64_t s = 0; s < 2; ++s)
    for (int64_t p = 0; p < 70; ++p)
      if (b.table.get(s, p) >= 0) moved.table.set(199 - b.table.get(s, p), s, p);
  Bench bench(1, GetParam());
  const Args here = call_of(r, b), there = call_of(r, moved);
  attention(bench.ctx, here);
  attention(bench.ctx, there);
  EXPECT_EQ(memcmp(here.o.data, there.o.data, size_t(here.o.bytes())), 0);
}

// Two halves of the keys, put together by their lse, are the whole: what cascades and rings of ranks rely on.
TEST_P(AttentionPromises, HalvesMergeByTheirLse) {
  Sampler r("halves");
  const Batch b = ragged(r, {1}, {512});
  Bench bench(1, GetParam());
  const Args whole = call_of(r, b);
  attention(bench.ctx, whole);
  Batch left = b, right = b;
  left.keys = {240}, right.keys = {272};
  right.table.data = b.table.at(0, 15);
  const Args l = call_of(r, left), g = call_of(r, right);
  attention(bench.ctx, l);
  attention(bench.ctx, g);
  for (int64_t h = 0; h < 6; ++h) {
    const double a = std::exp(l.lse.get(0, h) - whole.lse.get(0, h)), c = std::exp(g.lse.get(0, h) - whole.lse.get(0, h));
    EXPECT_NEAR(a + c, 1, 1e-5);
    for (int64_t e = 0; e < 64; ++e) ASSERT_NEAR(a * l.o.get(0, h, e) + c * g.o.get(0, h, e), whole.o.get(0, h, e), 1e-5);
  }
}

TEST_P(AttentionPromises, PrefillInChunksIsPrefill) {
  Sampler r("chunks");
  const Batch b = ragged(r, {100}, {100});
  Bench bench(1, GetParam());
  const Args whole = call_of(r, b);
  attention(bench.ctx, whole);
  for (int32_t chunk : {1, 7, 33}) {
    double worst = 0;
    for (int32_t from = 0; from < 100; from += chunk) {
      const int32_t n = std::min(chunk, 100 - from);
      const Args part = call_of(r, {{n}, {from + n}, b.q.rows(from, n), b.k, b.v, b.table});
      attention(bench.ctx, part);
      for (int64_t i = 0; i < n; ++i)
        for (int64_t h = 0; h < 6; ++h)
          for (int64_t c = 0; c < 64; ++c) worst = std::max(worst, std::abs(part.o.get(i, h, c) - whole.o.get(from + i, h, c)));
    }
    EXPECT_LT(worst, GetParam() == Isa::amx ? 1e-2 : 2e-6) << chunk;  // tiles round v and the weights to 8 bits
  }
}

// Pages 2^33 elements apart: any offset kept in 32 bits lands elsewhere.
TEST_P(AttentionPromises, OffsetsAre64Bit) {
  constexpr int64_t kApart = int64_t(1) << 33, kBytes = 2 * kApart * 4 + 4096 * 16;
  void* memory = mmap(nullptr, size_t(kBytes), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) GTEST_SKIP() << "no address space of 64 GB";
  Bench bench(1, GetParam());
  for (int32_t queries : {1, 40}) {
    Sampler r("offsets");
    Args a{.q = r.normal({queries, 2, 8}, DType::f32),
           .k = view_of(memory, DType::f32, {3, 1, 16, 8}),
           .v = {},
           .segments = r.segments({queries}, {48}),
           .o = r.out({queries, 2, 8}, DType::f32),
           .pages = {r.values({1, 3}, DType::i32, {2, 0, 1}), {}}};
    a.k.strides[0] = kApart;
    a.v = a.k;
    a.v.data = a.k.at(0, 0, 16);
    View near_k = r.normal({3, 1, 16, 8}, DType::f32), near_v = r.normal({3, 1, 16, 8}, DType::f32);
    for (int64_t e = 0; e < 3 * 128; ++e) {
      a.k.set(near_k.flat().get(e), e / 128, 0, e % 128 / 8, e % 8);
      a.v.set(near_v.flat().get(e), e / 128, 0, e % 128 / 8, e % 8);
    }
    Args compact = a;
    compact.k = near_k, compact.v = near_v, compact.o = r.out({queries, 2, 8}, DType::f32);
    attention(bench.ctx, a);
    attention(bench.ctx, compact);
    EXPECT_EQ(memcmp(a.o.data, compact.o.data, size_t(a.o.bytes())), 0);
  }
  munmap(memory, size_t(kBytes));
}

// A captured bucket keeps its scratch while lengths change: it may depend on shapes alone, and is never too small.
TEST_P(AttentionPromises, ScratchIsAFunctionOfShapes) {
  Sampler r("scratch");
  for (const Kernel<Attention>& k : Attention::kernels()) {
    if (!k.workspace || k.isa != GetParam()) continue;
    const Args a = call_of(r, ragged(r, {1, 1, 1}, {1000, 90, 300})), b = call_of(r, ragged(r, {1, 1, 1}, {1, 1, 1}));
    EXPECT_EQ(k.workspace(a), k.workspace(b)) << k.name;
  }
}

}  // namespace
}  // namespace ridge
