// What row r of a batch asks for, read from its views; shared by the reference and the rows.
#pragma once
#include <algorithm>
#include <cmath>

#include "base/rng.h"
#include "ops/sample/sample.h"

namespace ridge {

constexpr uint32_t kSampleStream = 0x73616d70;  // RngKey.op

struct SampleSettings {
  double inverse_temperature = 0;  // 0: greedy
  int64_t top_k;                   // in [1, vocab]; vocab: off
  double top_p, min_p;
  double u = 0;

  SampleSettings(const Sample::Args& a, int64_t r) {
    auto or_else = [r](const View& v, double off) { return v ? v.get(r) : off; };
    const int64_t vocab = a.logits.dims[1], k = int64_t(or_else(a.top_k, 0));
    const double t = or_else(a.temperature, 0);
    if (t > 0 && std::isfinite(1 / t)) inverse_temperature = 1 / t;
    top_k = k <= 0 || k > vocab ? vocab : k;
    top_p = or_else(a.top_p, 1);
    min_p = std::min(or_else(a.min_p, 0), 1.0);
    if (inverse_temperature > 0)
      u = uniform({.seed = uint64_t(*a.seed.as<int64_t>(r)), .step = uint32_t(*a.step.as<int32_t>(r)), .op = kSampleStream}, 0);
  }
  bool greedy() const { return inverse_temperature == 0; }
  bool nucleus() const { return top_p < 1; }
};

// history[from, to) of row r for the two kinds of penalties.
struct SampleHistory {
  int64_t generated = 0, length = 0;
  SampleHistory(const Sample::Args& a, int64_t r) {
    if (!a.history) return;
    length = std::clamp<int64_t>(*a.history_len.as<int32_t>(r), 0, a.history.dims[1]);
    generated = a.generated_from ? std::clamp<int64_t>(*a.generated_from.as<int32_t>(r), 0, length) : 0;
  }
};

}  // namespace ridge
