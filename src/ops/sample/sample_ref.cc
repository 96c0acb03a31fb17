// The truth of sample: the contract's steps one by one. Naive for ever.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <set>
#include <vector>

#include "ops/sample/draw.h"
#include "ops/sample/sample.h"
#include "ops/sample/settings.h"
#include "tile/cpu/exp_f64.h"

namespace ridge {

namespace {

constexpr double kNothing = -std::numeric_limits<double>::infinity();
double clean(double z) { return std::isnan(z) ? kNothing : z; }

std::vector<double> raw_logits(const Sample::Args& a, int64_t r) {
  std::vector<double> z(size_t(a.logits.dims[1]));
  for (size_t i = 0; i < z.size(); ++i) z[i] = clean(a.logits.get(r, int64_t(i)));
  return z;
}

// log softmax at `id`; the sum leaves out the largest, so that a probability near 1 keeps its digits.
double log_probability(const std::vector<double>& z, size_t id) {
  const double top = *std::max_element(z.begin(), z.end());
  if (z[id] == kNothing) return kNothing;
  double equal = 0, rest = 0;
  for (double x : z) {
    if (x == top)
      ++equal;
    else
      rest += std::exp(x - top);
  }
  return (z[id] == top ? 0 : z[id] - top) - std::log(equal) - std::log1p(rest / equal);
}

void add_bias(const Sample::Args& a, int64_t r, std::vector<double>& z) {
  if (!a.bias_ids) return;
  for (int64_t n = 0; n < a.bias_ids.dims[1]; ++n) {
    const int64_t id = *a.bias_ids.as<int32_t>(r, n);
    if (id >= 0 && id < int64_t(z.size())) z[size_t(id)] = clean(z[size_t(id)] + a.bias_values.get(r, n));
  }
}

void penalise(const Sample::Args& a, int64_t r, std::vector<double>& z) {
  const SampleHistory h(a, r);
  auto token = [&](int64_t n) { return int64_t(*a.history.as<int32_t>(r, n)); };
  auto is_token = [&](int64_t id) { return id >= 0 && id < int64_t(z.size()); };
  std::set<int64_t> seen, present;
  const double repetition = a.repetition ? a.repetition.get(r) : 1;
  for (int64_t n = 0; n < h.length; ++n) {
    const int64_t id = token(n);
    if (!is_token(id) || !seen.insert(id).second) continue;
    double& x = z[size_t(id)];
    x = clean(x > 0 ? x / repetition : x * repetition);
  }
  for (int64_t n = h.generated; n < h.length; ++n) {
    const int64_t id = token(n);
    if (!is_token(id)) continue;
    double& x = z[size_t(id)];
    if (a.presence && present.insert(id).second) x = clean(x - a.presence.get(r));
    if (a.frequency) x = clean(x - a.frequency.get(r));
  }
}

std::vector<int32_t> by_value(const std::vector<double>& z) {
  std::vector<int32_t> order(z.size());
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(),
            [&](int32_t i, int32_t j) { return z[size_t(i)] != z[size_t(j)] ? z[size_t(i)] > z[size_t(j)] : i < j; });
  return order;
}

// Steps 3 to 7. `crossing`: whether top_p keeps the token that crosses p.
int64_t choose(const SampleSettings& s, const std::vector<double>& z, bool crossing) {
  const std::vector<int32_t> order = by_value(z);
  const double top = z[size_t(order[0])];
  if (s.greedy() || top == kNothing) return top == kNothing ? 0 : order[0];
  std::vector<double> w(z.size());
  for (size_t i = 0; i < z.size(); ++i) w[i] = z[i] == top ? 1 : exp_f64((z[i] - top) * s.inverse_temperature);
  for (size_t rank = size_t(s.top_k); rank < w.size(); ++rank) w[size_t(order[rank])] = 0;
  if (s.nucleus()) {
    const double enough = s.top_p * total_weight({nullptr, w.data(), int64_t(w.size())});
    double sum = 0;
    for (int32_t id : order) {
      const double before = sum;
      sum += w[size_t(id)];
      if (id != order[0] && (crossing ? before : sum) >= enough) w[size_t(id)] = 0;
    }
  }
  for (double& x : w)
    if (x < s.min_p) x = 0;
  return draw_token({nullptr, w.data(), int64_t(w.size())}, s.u);
}

void sample_rows(const Sample::Args& a, bool planted) {
  for (int64_t r = 0; r < a.logits.dims[0]; ++r) {
    const std::vector<double> raw = raw_logits(a, r);
    std::vector<double> z = raw;
    add_bias(a, r, z);
    penalise(a, r, z);
    const SampleSettings s(a, r);
    const int64_t id = choose(s, z, !planted);
    a.ids.set(double(id), r);
    const bool nothing_left = *std::max_element(z.begin(), z.end()) == kNothing;
    if (a.logprobs) a.logprobs.set(nothing_left ? kNothing : log_probability(planted ? z : raw, size_t(id)), r);
    if (!a.top_ids) continue;
    const std::vector<int32_t> order = by_value(raw);
    for (int64_t n = 0; n < a.top_ids.dims[1]; ++n) {
      a.top_ids.set(order[size_t(n)], r, n);
      if (a.top_logprobs) a.top_logprobs.set(log_probability(raw, size_t(order[size_t(n)])), r, n);
    }
  }
}

}  // namespace

void Sample::reference(Ctx&, const Args& a, char*) { sample_rows(a, false); }
void Sample::planted(Ctx&, const Args& a, char*) { sample_rows(a, true); }

}  // namespace ridge
