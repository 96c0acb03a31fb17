// Makes the operands of a contract's case: allocates them, fills them reproducibly from a seed, owns them.
// Values are drawn in double and rounded to the type; a block format is encoded, so what a kernel reads is what the reference reads.
#pragma once
#include <initializer_list>
#include <memory>
#include <string>
#include <vector>

#include "base/rng.h"
#include "base/view.h"
#include "ops/segments.h"

namespace ridge {

class Sampler {
 public:
  explicit Sampler(const std::string& seed);  // a case's name

  View normal(std::initializer_list<int64_t> dims, DType type, double scale = 1, double mean = 0);
  View uniform(std::initializer_list<int64_t> dims, DType type, double low, double high);
  View integers(std::initializer_list<int64_t> dims, DType type, int64_t low, int64_t high);  // in [low, high)
  View values(std::initializer_list<int64_t> dims, DType type, const std::vector<double>& values);
  View constant(std::initializer_list<int64_t> dims, DType type, double value);  // NaN poisons memory a kernel must not read
  View out(std::initializer_list<int64_t> dims, DType type) { return constant(dims, type, 0); }
  double uniform(double low, double high);
  int64_t integer(int64_t low, int64_t high);  // in [low, high)

  // Segments with these lengths; keys defaults to queries. The host lengths live as long as the Sampler.
  Segments segments(const std::vector<int32_t>& queries, const std::vector<int32_t>& keys = {});

 private:
  View alloc(std::initializer_list<int64_t> dims, DType type);
  void encode(const float* values, const View& v);
  double next_uniform() { return ridge::uniform({.seed = seed_}, element_++); }
  double next_normal();
  template <class F>
  View fill(std::initializer_list<int64_t> dims, DType type, F&& next);

  uint64_t seed_, element_ = 0;
  std::vector<std::unique_ptr<char[]>> memory_;
  std::vector<std::unique_ptr<SegmentLengths>> lengths_;
};

}  // namespace ridge
