#include "serve/score.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace ridge {

namespace {

double log_sum_exp(std::span<const float> logits, float top) {
  double sum = 0;
  for (float l : logits) sum += std::exp(double(l) - top);
  return top + std::log(sum);
}

}  // namespace

Result<Score> score(Runner& runner, std::span<const int32_t> ids,
                    const std::function<void(int64_t, std::span<const float>)>& each) {
  const int64_t n = int64_t(ids.size()), context = runner.options().context, vocab = runner.model().vocab;
  if (n == 0) return failed("There is no token to score; the text is empty.");
  if (n > context)
    return failed(
        fmt::format("The text has {} tokens and the context holds {}; give a shorter text or a larger --context.", n, context));
  SequenceState state;
  runner.pool().grow(state, n);
  Score s;
  s.top1.resize(n);
  s.logprobs.resize(n - 1);
  const int64_t chunk = std::min(runner.options().step_tokens, runner.options().step_rows);
  for (int64_t from = 0; from < n; from += chunk) {
    const auto part = ids.subspan(from, std::min(chunk, n - from));
    const Runner::Input input{&state, part};
    const View logits = runner.step({&input, 1}, BatchBuffers::Rows::all);
    runner.runtime().pool.parallel(int64_t(part.size()), [&](int64_t i, int) {
      const std::span<const float> row(logits.as<float>(i), vocab);
      const auto top = std::max_element(row.begin(), row.end());
      s.top1[from + i] = int32_t(top - row.begin());
      if (from + i + 1 < n) s.logprobs[from + i] = row[ids[from + i + 1]] - log_sum_exp(row, *top);
    });
    if (each)
      for (int64_t i = 0; i < int64_t(part.size()); ++i) each(from + i, {logits.as<float>(i), size_t(vocab)});
  }
  runner.pool().release(state);
  double sum = 0;
  for (double l : s.logprobs) sum += l;
  s.perplexity = std::exp(-sum / double(n - 1));
  return s;
}

Result<Comparison> compare(Runner& ours, Runner& reference, std::span<const int32_t> ids) {
  Comparison c;
  SequenceState state;
  View expected;
  const int64_t n = int64_t(ids.size());
  int64_t first = 0, equal = 0;
  double sum_kl = 0, sum_logprob = 0;
  Result<Score> s = score(ours, ids, [&](int64_t position, std::span<const float> logits) {
    if (position == state.tokens) {  // the next chunk, beside ours: the logits of a whole text would not fit
      reference.pool().grow(state, n);
      const int64_t chunk = std::min(reference.options().step_tokens, reference.options().step_rows);
      const Runner::Input input{&state, ids.subspan(position, std::min(chunk, n - position))};
      first = position;
      expected = reference.step({&input, 1}, BatchBuffers::Rows::all);
    }
    const std::span<const float> truth(expected.as<float>(position - first), logits.size());
    const auto top = std::max_element(truth.begin(), truth.end()), our_top = std::max_element(logits.begin(), logits.end());
    const double a = log_sum_exp(truth, *top), b = log_sum_exp(logits, *our_top);
    double kl = 0;
    for (size_t i = 0; i < logits.size(); ++i) {
      const double log_p = truth[i] - a;
      if (log_p > -40) kl += std::exp(log_p) * (log_p - (logits[i] - b));
    }
    sum_kl += kl;
    c.max_kl = std::max(c.max_kl, kl);
    equal += top - truth.begin() == our_top - logits.begin();
    if (position + 1 < n) sum_logprob += truth[ids[position + 1]] - a;
  });
  if (!s) return s.status();
  reference.pool().release(state);
  c.ours = std::move(*s);
  c.reference_perplexity = std::exp(-sum_logprob / double(n - 1));
  c.mean_kl = sum_kl / double(n);
  c.top1_equal = double(equal) / double(n);
  return c;
}

}  // namespace ridge
