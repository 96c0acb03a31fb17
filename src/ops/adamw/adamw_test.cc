// adamw against PyTorch in double, and the properties that a training run relies on.
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "ops/adamw/adamw.h"
#include "ops/adamw/adamw_golden.h"
#include "ops/ctx.h"

namespace ridge {
namespace {

// The generator of tools/goldens/adamw.py.
struct Draw {
  uint64_t x = 1;
  double operator()() {
    x = x * 6364136223846793005u + 1442695040888963407u;
    return double(x >> 11) * 0x1p-52 - 1;
  }
};

class AdamWTest : public testing::Test {
 protected:
  View make(std::initializer_list<double> values, DType type) {
    View v = acts_.alloc({int64_t(values.size())}, type);
    int64_t i = 0;
    for (double x : values) v.set(x, i++);
    return v;
  }
  Runtime runtime_{1};
  Arena acts_{1 << 20};
  Ctx x_{Mode::run, runtime_, acts_};
};

TEST_F(AdamWTest, EqualsTorchInDouble) {
  constexpr int n = kAdamWElements;
  Draw draw;
  AdamW::Args a{.p = acts_.alloc({n}, DType::f64),
                .m = acts_.alloc({n}, DType::f64),
                .v = acts_.alloc({n}, DType::f64),
                .g = acts_.alloc({n}, DType::f64),
                .lr = make({0}, DType::f64),
                .step = make({0}, DType::i64),
                .beta1 = 0.9,
                .beta2 = 0.95,
                .eps = 1e-8,
                .weight_decay = 0.1};
  for (int i = 0; i < n; ++i) a.p.set(draw(), i);
  for (int step = 0; step < kAdamWSteps; ++step) {
    a.lr.set(0.01 * (step + 1));
    a.step.set(step + 1);
    for (int i = 0; i < n; ++i) a.g.set(draw() * std::pow(10.0, 2 - step % 5), i);
    adamw(x_, a);
    for (int i = 0; i < n; ++i) EXPECT_NEAR(a.p.get(i), kAdamWP[step][i], 1e-12) << "step " << step << ", element " << i;
  }
  for (int i = 0; i < n; ++i) {
    EXPECT_NEAR(a.m.get(i), kAdamWM[i], 1e-12 * std::fabs(kAdamWM[i]));
    EXPECT_NEAR(a.v.get(i), kAdamWV[i], 1e-12 * std::fabs(kAdamWV[i]));
  }
}

// A learning rate so small that one step moves p by less than its rounding in 16 bits: f32 parameters take it (17 units in the last
// place where 16.8 are meant), bf16 ones cannot.
TEST_F(AdamWTest, TinyUpdatesNeedWideParameters) {
  for (DType type : {DType::f32, DType::bf16}) {
    View p = make({1.0}, type);
    AdamW::Args a{.p = p,
                  .m = make({0}, DType::f32),
                  .v = make({0}, DType::f32),
                  .g = make({1}, DType::f32),
                  .lr = make({1e-6}, DType::f32),
                  .step = make({0}, DType::i32),
                  .weight_decay = 0};
    for (int step = 1; step <= 1000; ++step) {
      a.step.set(step);
      adamw(x_, a);
    }
    if (type == DType::f32)
      EXPECT_NEAR(p.get(), 1 - 1e-3, 2e-5);
    else
      EXPECT_EQ(p.get(), 1);
  }
}

// A clip factor is a multiplication of the gradient, before the moments see it.
TEST_F(AdamWTest, GradScaleActsOnTheGradient) {
  double p[2], m[2];
  for (int scaled : {0, 1}) {
    AdamW::Args a{.p = make({0.5}, DType::f64),
                  .m = make({0.1}, DType::f64),
                  .v = make({0.2}, DType::f64),
                  .g = make({scaled ? 4.0 : 1.0}, DType::f64),
                  .lr = make({0.1}, DType::f64),
                  .step = make({3}, DType::f64)};
    if (scaled) a.grad_scale = make({0.25}, DType::f64);
    adamw(x_, a);
    p[scaled] = a.p.get();
    m[scaled] = a.m.get();
  }
  EXPECT_EQ(p[0], p[1]);
  EXPECT_EQ(m[0], m[1]);
}

}  // namespace
}  // namespace ridge
