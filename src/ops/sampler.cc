#include "ops/sampler.h"

#include <cmath>
#include <cstring>
#include <numbers>

#include "base/check.h"
#include "base/format.h"

namespace ridge {

Sampler::Sampler(const std::string& seed) : seed_(1469598103934665603u) {
  for (char c : seed) seed_ = (seed_ ^ uint8_t(c)) * 1099511628211u;  // FNV-1a
}

View Sampler::alloc(std::initializer_list<int64_t> dims, DType type) {
  View v = view_of(nullptr, type, dims);
  constexpr size_t align = 64;
  memory_.push_back(std::make_unique<char[]>(size_t(v.bytes()) + align));
  v.data = memory_.back().get();
  v.data += (align - reinterpret_cast<uintptr_t>(v.data) % align) % align;
  return v;
}

// A woven view is made as one makes it: by weaving a file's.
void Sampler::encode(const float* values, const View& v) {
  if (!is_woven(v.type)) return format_of(v.type)->encode(values, v.data, v.count());
  const View stored = alloc({v.dims[0], v.dims[1]}, stored_of(v.type));
  encode(values, stored);
  for (int64_t g = 0; g < v.dims[0] / format_of(v.type)->rows; ++g) weave(stored, v, g);
}

double Sampler::next_normal() {  // Box-Muller
  const double radius = std::sqrt(-2 * std::log(next_uniform()));
  return radius * std::cos(2 * std::numbers::pi * next_uniform());
}

template <class F>
View Sampler::fill(std::initializer_list<int64_t> dims, DType type, F&& next) {
  View v = alloc(dims, type);
  const int64_t n = v.count();
  if (is_block(type)) {
    std::vector<float> values(n);
    for (float& x : values) x = float(next());
    encode(values.data(), v);
    return v;
  }
  View flat = v.flat();
  for (int64_t i = 0; i < n; ++i) flat.set(next(), i);
  return v;
}

View Sampler::normal(std::initializer_list<int64_t> dims, DType type, double scale, double mean) {
  return fill(dims, type, [&] { return mean + scale * next_normal(); });
}

View Sampler::uniform(std::initializer_list<int64_t> dims, DType type, double low, double high) {
  return fill(dims, type, [&] { return uniform(low, high); });
}

View Sampler::integers(std::initializer_list<int64_t> dims, DType type, int64_t low, int64_t high) {
  return fill(dims, type, [&] { return double(integer(low, high)); });
}

View Sampler::values(std::initializer_list<int64_t> dims, DType type, const std::vector<double>& values) {
  size_t i = 0;
  View v = fill(dims, type, [&] { return values.at(i++); });
  RIDGE_CHECK(i == values.size(), "a case gives as many values as its view holds");
  return v;
}

View Sampler::constant(std::initializer_list<int64_t> dims, DType type, double value) {
  return fill(dims, type, [&] { return value; });
}

double Sampler::uniform(double low, double high) { return low + (high - low) * next_uniform(); }
int64_t Sampler::integer(int64_t low, int64_t high) { return low + int64_t(next_uniform() * double(high - low)); }

Segments Sampler::segments(const std::vector<int32_t>& queries, const std::vector<int32_t>& keys) {
  lengths_.push_back(std::make_unique<SegmentLengths>(SegmentLengths{queries, keys.empty() ? queries : keys}));
  const SegmentLengths& l = *lengths_.back();
  const int64_t n = int64_t(queries.size());
  Segments s{alloc({n + 1}, DType::i32), alloc({n}, DType::i32), &l};
  int64_t from = 0;
  for (int64_t i = 0; i < n; ++i) {
    s.cu_seqlens.set(double(from), i);
    s.kv_lens.set(l.keys[i], i);
    from += l.queries[i];
  }
  s.cu_seqlens.set(double(from), n);
  return s;
}

}  // namespace ridge
