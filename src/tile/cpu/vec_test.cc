// The vector vocabulary of every ISA that this machine has, against double precision and against base/dtype.h's conversions.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <numbers>
#include <vector>

#include "base/dtype.h"
#include "tile/cpu/vec_probe.h"

namespace ridge {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

class VecTest : public testing::TestWithParam<Isa> {
 protected:
  void SetUp() override {
    if (GetParam() > detect_isa()) GTEST_SKIP() << "this machine has no " << isa_name(GetParam());
  }
  const VecProbe& probe() const { return vec_probe(GetParam()); }
};

using Map = void (*)(const float*, float*, int64_t);

// The largest error of `f` on a grid over [low, high], in units of max(|truth|, floor) * 2^-24.
double worst(Map f, double (*truth)(double), float low, float high, double floor, int n = 200003) {
  std::vector<float> x(n), y(n);
  for (int i = 0; i < n; ++i) x[i] = low + (high - low) * float(i) / float(n - 1);
  f(x.data(), y.data(), n);
  double most = 0;
  for (int i = 0; i < n; ++i) {
    const double t = truth(x[i]);
    most = std::max(most, std::fabs(y[i] - t) / std::max(std::fabs(t), floor) * 0x1p24);
  }
  return most;
}

double exp_truth(double x) { return std::exp(x); }
double exp2_truth(double x) { return std::exp2(x); }
double sigmoid_truth(double x) { return 1 / (1 + std::exp(-x)); }
double silu_truth(double x) { return x / (1 + std::exp(-x)); }
double tanh_truth(double x) { return std::tanh(x); }
double gelu_truth(double x) { return 0.5 * x * std::erfc(-x / std::numbers::sqrt2); }
double gelu_tanh_truth(double x) { return x / (1 + std::exp(-2 * std::sqrt(2 / std::numbers::pi) * (x + 0.044715 * x * x * x))); }

TEST_P(VecTest, ElementaryFunctionsKeepTheirStatedErrors) {
  const VecProbe& p = probe();
  EXPECT_LT(worst(p.exp, exp_truth, -87.3f, 88.7f, 0), 3);  // half units of the last place
  EXPECT_LT(worst(p.exp, exp_truth, -1, 1, 0), 3);
  EXPECT_LT(worst(p.exp2, exp2_truth, -125, 100, 0), 3);
  EXPECT_LT(worst(p.exp2, exp2_truth, -1, 1, 0), 3);
  EXPECT_LT(worst(p.exp2_short, exp2_truth, -125, 100, 0), 52);
  EXPECT_LT(worst(p.sigmoid, sigmoid_truth, -87, 40, 0), 6);
  EXPECT_LT(worst(p.silu, silu_truth, -87, 40, 1e-37), 6);
  EXPECT_LT(worst(p.tanh, tanh_truth, -12, 12, 1e-30), 6);
  EXPECT_LT(worst(p.tanh, tanh_truth, -0.7f, 0.7f, 1e-30), 6);
  EXPECT_LT(worst(p.gelu, gelu_truth, -1, 12, 1e-30), 8);
  EXPECT_LT(worst(p.gelu, gelu_truth, -5, -1, 0), 24);
  EXPECT_LT(worst(p.gelu_tanh, gelu_tanh_truth, -1, 12, 1e-30), 8);
  EXPECT_LT(worst(p.gelu_tanh, gelu_tanh_truth, -5, -1, 0), 48);
  EXPECT_LT(worst(p.gelu, gelu_truth, -40, 40, 1), 40);  // absolute in the far tail, relative elsewhere
}

TEST_P(VecTest, ExpOfSubnormalResultsAndSpecialValues) {
  const std::vector<float> x = {-kInf, -1e30f, -200, -104, -103.9f, -100, -90, 0, -0.0f, 88.72f, 88.73f, 100, 1e30f, kInf, kNan};
  std::vector<float> y(x.size());
  probe().exp(x.data(), y.data(), int64_t(x.size()));
  for (size_t i = 0; i + 1 < x.size(); ++i) {
    const float truth = float(std::exp(double(x[i])));
    if (truth < 1e-37f)
      EXPECT_LE(std::fabs(y[i] - truth), 1.5e-45f) << x[i];
    else if (std::isinf(truth))
      EXPECT_EQ(y[i], truth) << x[i];
    else
      EXPECT_NEAR(y[i], truth, 3e-7f * truth) << x[i];
  }
  EXPECT_TRUE(std::isnan(y.back()));
}

TEST_P(VecTest, Exp2OfSmallResultsAndSpecialValues) {
  const std::vector<float> x = {-kInf, -1e30f, -200, -150, -148.9f, -140, -127, -1e-10f, 0, -0.0f, 1, 8, 127, kNan};
  std::vector<float> y(x.size()), less(x.size());
  probe().exp2(x.data(), y.data(), int64_t(x.size()));
  probe().exp2_short(x.data(), less.data(), int64_t(x.size()));
  for (size_t i = 0; i + 1 < x.size(); ++i) {
    const float truth = float(std::exp2(double(x[i])));
    EXPECT_NEAR(y[i], truth, 2e-7f * truth + 1.5e-45f) << x[i];
    EXPECT_NEAR(less[i], truth, 4e-6f * truth + 1.5e-45f) << x[i];
    if (x[i] < -151 || x[i] == std::round(x[i])) { EXPECT_EQ(y[i], truth) << x[i]; }
  }
  EXPECT_TRUE(std::isnan(y.back()) && std::isnan(less.back()));
}

TEST_P(VecTest, ActivationsAtTheEnds) {
  const std::vector<float> x = {-1e30f, -200, -0.0f, 0, 200, 1e30f, kInf, kNan};
  for (Map f : {probe().silu, probe().gelu, probe().gelu_tanh, probe().tanh}) {
    std::vector<float> y(x.size());
    f(x.data(), y.data(), int64_t(x.size()));
    const bool tanh = f == probe().tanh;
    for (int i : {0, 1}) EXPECT_EQ(y[i], tanh ? -1.0f : 0.0f);
    for (int i : {2, 3}) EXPECT_EQ(y[i], 0);
    for (int i : {4, 5, 6}) EXPECT_EQ(y[i], tanh ? 1.0f : x[i]);
    EXPECT_TRUE(std::isnan(y[7]));
  }
}

// Every bf16 and f16 value, the values just around and half way between neighbours, and NaN payloads.
TEST_P(VecTest, SixteenBitFloatsRoundToNearestEven) {
  std::vector<float> x;
  for (uint32_t h = 0; h < 0x10000; ++h)
    for (uint32_t low : {0u, 1u, 0x7fffu, 0x8000u, 0x8001u, 0xffffu}) x.push_back(std::bit_cast<float>(h << 16 | low));
  for (uint32_t h = 0; h < 0x7c00; ++h) {
    const float a = f32_from_f16(uint16_t(h)), b = f32_from_f16(uint16_t(h + 1));
    for (float y : {a, (a + b) / 2, std::nextafter((a + b) / 2, a), std::nextafter((a + b) / 2, b)})
      x.push_back(y), x.push_back(-y);
  }
  const int64_t n = int64_t(x.size());
  std::vector<uint16_t> bits(n);
  std::vector<float> back(n);
  probe().bf16(x.data(), bits.data(), back.data(), n);
  for (int64_t i = 0; i < n; ++i) {
    ASSERT_EQ(bits[i], bf16_from_f32(x[i])) << x[i];
    ASSERT_EQ(std::bit_cast<uint32_t>(back[i]), uint32_t(bits[i]) << 16);
  }
  probe().f16(x.data(), bits.data(), back.data(), n);
  for (int64_t i = 0; i < n; ++i) {
    if (std::isnan(x[i])) {
      ASSERT_TRUE(std::isnan(back[i])) << i;
    } else {
      ASSERT_EQ(bits[i], f16_from_f32(x[i])) << x[i];
      ASSERT_EQ(back[i], f32_from_f16(bits[i])) << x[i];
    }
  }
}

TEST_P(VecTest, TailsTouchNothingBeyond) {
  const VecProbe& p = probe();
  for (int n = 0; n <= 3 * p.lanes; ++n) {
    std::vector<float> x(n + p.lanes, kNan), y(n + p.lanes, 7), back(n + p.lanes, 7);
    std::vector<uint16_t> bits(n + p.lanes, 0x7777);
    std::vector<int8_t> codes(n + p.lanes, 77);
    for (int i = 0; i < n; ++i) x[i] = float(i) - 9, codes[i] = int8_t(i - 9);
    double sum = 0;
    for (int i = 0; i < n; ++i) sum += x[i];
    p.exp(x.data(), y.data(), n);
    p.bf16(x.data(), bits.data(), back.data(), n);
    for (int i = n; i < n + p.lanes; ++i) ASSERT_TRUE(y[i] == 7 && back[i] == 7 && bits[i] == 0x7777) << n;
    p.f16(x.data(), bits.data(), back.data(), n);
    for (int i = n; i < n + p.lanes; ++i) ASSERT_TRUE(back[i] == 7 && bits[i] == 0x7777) << n;
    for (int i = 0; i < n; ++i) ASSERT_EQ(back[i], x[i]);
    p.bytes(codes.data(), y.data(), back.data(), n);
    for (int i = 0; i < n; ++i) ASSERT_TRUE(y[i] == float(codes[i]) && back[i] == float(uint8_t(codes[i])));
    for (int i = n; i < n + p.lanes; ++i) ASSERT_TRUE(y[i] == 7 && back[i] == 7) << n;
    ASSERT_EQ(p.sum(x.data(), n), float(sum));
    ASSERT_EQ(p.largest(x.data(), n), n ? x[n - 1] : -kInf);
  }
}

TEST_P(VecTest, SumsTogetherAreSumsApartToTheBit) {
  const VecProbe& p = probe();
  std::vector<float> x(4 * p.lanes);
  for (int i = 0; i < 4 * p.lanes; ++i) x[i] = 1.0f / float(3 + 7 * i % 31) - float(i % 5) * 1e3f;
  float together[4], apart[4];
  p.sums(x.data(), together, apart);
  for (int i = 0; i < 4; ++i) EXPECT_EQ(together[i], apart[i]) << i;
  EXPECT_NE(apart[0], apart[1]);
}

TEST_P(VecTest, ComparisonsAndSelect) {
  const std::vector<float> a = {1, 2, kNan, -kInf, 0.0f, 5, -1, 3}, b = {2, 1, 3, kInf, -0.0f, kNan, -1, -3};
  std::vector<float> small(8), large(8);
  probe().choose(a.data(), b.data(), small.data(), large.data(), 8);
  for (int i = 0; i < 8; ++i) {
    if (std::isnan(a[i]) || std::isnan(b[i])) {
      EXPECT_TRUE(std::isnan(b[i]) ? std::isnan(small[i]) && large[i] == a[i] : small[i] == b[i] && std::isnan(large[i]));
    } else {
      EXPECT_EQ(small[i], std::min(a[i], b[i]));
      EXPECT_EQ(large[i], std::max(a[i], b[i]));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Isas, VecTest, testing::Values(Isa::portable, Isa::avx2, Isa::avx512, Isa::vnni, Isa::amx),
                         [](const auto& isa) { return std::string(isa_name(isa.param)); });

}  // namespace
}  // namespace ridge
