#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "base/arena.h"
#include "base/format.h"
#include "base/rng.h"
#include "base/view.h"

namespace ridge {
namespace {

TEST(DType, SixteenBitFloatsRoundToNearestEven) {
  for (uint32_t code = 0; code < 65536; ++code) {
    const float b = f32_from_bf16(uint16_t(code)), h = f32_from_f16(uint16_t(code));
    if (std::isnan(b)) { EXPECT_TRUE(std::isnan(f32_from_bf16(bf16_from_f32(b)))); }
    if (!std::isnan(b)) { EXPECT_EQ(bf16_from_f32(b), code); }
    if (!std::isnan(h)) { EXPECT_EQ(f16_from_f32(h), code); }
  }
  EXPECT_EQ(bf16_from_f32(1.00390625f), 0x3f80);  // half way: to even
  EXPECT_EQ(bf16_from_f32(1.01171875f), 0x3f82);
  EXPECT_TRUE(std::isinf(f32_from_bf16(bf16_from_f32(std::numeric_limits<float>::max()))));
}

TEST(Format, RoundTripStaysWithinTheStatedError) {
  for (DType type : block_types()) {
    const Format& f = *format_of(type);
    EXPECT_EQ(format_named(f.name), &f);
    EXPECT_EQ(256 % f.block, 0) << f.name << ": embed and gemm decode 256 values at a time";
    std::vector<float> x(f.block * 64), y(x.size());
    std::vector<uint8_t> coded(size_t(f.bytes) * 64);
    for (size_t i = 0; i < x.size(); ++i) x[i] = float(std::ldexp(uniform({.seed = 7}, i) - 0.5, int(i / f.block % 12) - 6));
    f.encode(x.data(), coded.data(), int64_t(x.size()));
    f.decode(coded.data(), y.data(), int64_t(x.size()));
    for (size_t b = 0; b < x.size(); b += f.block) {
      float top = 0;
      for (int i = 0; i < f.block; ++i) top = std::max(top, std::fabs(x[b + i]));
      for (int i = 0; i < f.block; ++i)
        EXPECT_LE(std::fabs(x[b + i] - y[b + i]), f.max_error * top) << f.name << " block " << b / f.block << " value " << i;
    }
  }
}

TEST(Format, ZerosStayZeros) {
  for (DType type : block_types()) {
    const Format& f = *format_of(type);
    std::vector<float> x(f.block, 0.0f), y(f.block, 1.0f);
    std::vector<uint8_t> coded(f.bytes);
    f.encode(x.data(), coded.data(), f.block);
    f.decode(coded.data(), y.data(), f.block);
    for (float v : y) EXPECT_EQ(v, 0.0f) << f.name;
  }
}

TEST(View, SlicesTransposesAndHeadsShareStorage) {
  Arena a(1 << 12);
  View v = a.alloc({4, 6}, DType::f32);
  for (int i = 0; i < 4; ++i)
    for (int j = 0; j < 6; ++j) v.set(10 * i + j, i, j);
  EXPECT_EQ(v.t().get(5, 3), 35);
  EXPECT_EQ(v.cols(2, 3).get(1, 1), 13);
  EXPECT_EQ(v.rows(2, 2).get(1, 5), 35);
  EXPECT_EQ(v.heads(3).get(2, 1, 1), 23);
  EXPECT_FALSE(v.cols(2, 3).dense());
  EXPECT_EQ(to_string(v.cols(2, 3)), "f32 [4, 3] strides [6, 1]");
}

// Weaving moves bytes and changes no number: every value, each way it is read.
TEST(Format, WovenMatricesHoldTheFilesNumbers) {
  ASSERT_EQ(woven_types().size(), 5u);
  for (DType type : woven_types()) {
    const Format &w = *format_of(type), &f = *w.stored;
    SCOPED_TRACE(w.name);
    const int64_t n = 48, k = 3 * w.block;
    std::vector<char> file(size_t(bytes_of(stored_of(type), n * k))), memory(size_t(bytes_of(type, n * k)));
    std::vector<float> x(size_t(n * k)), row(static_cast<size_t>(k));
    for (int64_t i = 0; i < n * k; ++i) x[size_t(i)] = float(std::sin(double(i * i % 7919)) * (1 + double(i % 13)));
    f.encode(x.data(), file.data(), n * k);
    const View from = view_of(file.data(), stored_of(type), {n, k}), to = view_of(memory.data(), type, {n, k});
    ASSERT_TRUE(can_weave(from));
    EXPECT_EQ(woven_of(stored_of(type)), type);
    EXPECT_EQ(to.bytes(), int64_t(memory.size()));
    for (int64_t g = 0; g < n / w.rows; ++g) weave(from, to, g);
    for (int64_t i = 0; i < n; ++i) {
      decode_values(w, memory.data(), k / w.block, i, w.block, row.data(), 2 * w.block);
      for (int64_t j = 0; j < k; ++j) {
        const double truth = from.get(i, j);
        ASSERT_EQ(to.get(i, j), truth) << i << ", " << j;
        ASSERT_EQ(to.t().get(j, i), truth);
        if (j >= w.block) { ASSERT_EQ(double(row[size_t(j - w.block)]), truth); }
      }
    }
    EXPECT_EQ(to.rows(16, 32).get(17, w.block + 1), from.get(33, w.block + 1));
    EXPECT_FALSE(can_weave(from.rows(0, 20)));       // no whole group
    EXPECT_FALSE(can_weave(from.cols(0, w.block)));  // rows with gaps
    EXPECT_FALSE(can_weave(to));                     // woven already
  }
}

TEST(View, BlockFormatsAreReadElementByElement) {
  for (DType type : block_types()) {
    const Format& f = *format_of(type);
    Arena a(1 << 16);
    View v = a.alloc({3, 2 * f.block}, type);
    std::vector<float> x(v.count()), y(v.count());
    for (size_t i = 0; i < x.size(); ++i) x[i] = float(std::sin(double(i)));
    f.encode(x.data(), v.data, v.count());
    f.decode(v.data, y.data(), v.count());
    for (int i = 0; i < 3; ++i)
      for (int j = 0; j < 2 * f.block; ++j) ASSERT_EQ(v.get(i, j), y[i * 2 * f.block + j]);
    EXPECT_EQ(v.bytes(), 6 * f.bytes);
  }
}

TEST(Arena, MeasuresWhatItWouldUse) {
  Arena real(4096), measured;
  for (Arena* a : {&real, &measured}) {
    a->alloc({3, 5}, DType::f32);
    const int64_t mark = a->mark();
    a->alloc({100}, DType::f64);
    a->release(mark);
    a->alloc({7}, DType::bf16);
  }
  EXPECT_EQ(real.peak(), measured.peak());
  EXPECT_EQ(real.peak(), 64 + 832);
}

TEST(Rng, PhiloxKnownAnswers) {  // from the authors' distribution: kat_vectors, philox4x32 10
  EXPECT_EQ(philox({0, 0, 0, 0}, 0), (std::array<uint32_t, 4>{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(philox({0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}, ~uint64_t(0)),
            (std::array<uint32_t, 4>{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
}

TEST(Rng, UniformIsOpenAndFlat) {
  double sum = 0;
  for (uint64_t i = 0; i < 100000; ++i) {
    const double u = uniform({.seed = 3, .step = 1, .op = 2}, i);
    ASSERT_GT(u, 0);
    ASSERT_LT(u, 1);
    sum += u;
  }
  EXPECT_NEAR(sum / 100000, 0.5, 0.005);
}

}  // namespace
}  // namespace ridge
