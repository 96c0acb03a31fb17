// Log-probability of every token of a text given those before it. Uses the runner as generation does: the same chunks, rows and cache.
#pragma once
#include <functional>
#include <span>
#include <vector>

#include "serve/runner.h"

namespace ridge {

struct Score {
  std::vector<double> logprobs;  // [n - 1]: of ids[i + 1] after ids[0 .. i]
  std::vector<int32_t> top1;     // [n]: the arg-max after position i
  double perplexity = 0;         // exp(-mean logprob); NaN for a single token
};

// `each` sees every position's logits [vocab] in order, for those who want more than the score. Longer texts than the context are refused.
Result<Score> score(Runner& runner, std::span<const int32_t> ids,
                    const std::function<void(int64_t position, std::span<const float> logits)>& each = {});

// The same text through two runners, chunk by chunk: what one's rounding does to the other's distributions.
struct Comparison {
  Score ours;
  double reference_perplexity = 0;
  double mean_kl = 0, max_kl = 0;  // of ours from the reference, in nats
  double top1_equal = 0;           // fraction of positions
};
Result<Comparison> compare(Runner& ours, Runner& reference, std::span<const int32_t> ids);

}  // namespace ridge
