// Generates tokens for several sequences at once: schedules them into steps, runs the steps, samples, and notices ends.
// A sequence is admitted when the pages for its prompt and its longest answer are free, so none is ever cut off by another.
#pragma once
#include <deque>
#include <string>
#include <vector>

#include "ops/sample/sample.h"
#include "serve/runner.h"

namespace ridge {

struct SamplingParams {    // the contract is ops/sample/sample.h's
  double temperature = 0;  // 0: greedy
  int32_t top_k = 0;       // 0: off
  double top_p = 1, min_p = 0;
  double repetition = 1, presence = 0, frequency = 0;
  int64_t seed = 0;
};

struct Request {
  std::vector<int32_t> ids;  // the prompt
  int64_t max_tokens = 256;
  SamplingParams sampling;
};

enum class Finish : uint8_t { none, end, length, cancelled };
const char* name_of(Finish f);  // "end": the model's own end; "length": max_tokens or the context

struct Generated {
  int64_t request;
  int32_t id;      // -1: the request was cancelled
  double logprob;  // of the raw distribution
  Finish finish;
};

class Generator {
 public:
  Generator(Runner& runner, std::vector<int32_t> end_ids);

  // The request's number, or a sentence: an empty prompt, an id outside the vocabulary, a prompt that leaves the context no room.
  Result<int64_t> submit(Request request);
  void cancel(int64_t request);
  bool idle() const { return running_.empty() && waiting_.empty(); }
  // One step of the model. What was sampled, in order of admission; valid until the next step.
  const std::vector<Generated>& step();

 private:
  struct Sequence {
    int64_t number;
    Request request;
    SequenceState state;
    std::vector<int32_t> tokens;  // prompt and answer
    int64_t most = 0;             // tokens it may hold
    int64_t generated() const { return int64_t(tokens.size() - request.ids.size()); }
  };
  void admit();
  void sample_rows(const View& logits, const std::vector<Sequence*>& rows);
  Finish finish_of(const Sequence& s, int32_t id) const;

  Runner& runner_;
  std::vector<int32_t> end_ids_;
  int64_t next_ = 0;
  std::deque<Sequence> waiting_, running_;
  std::vector<Generated> out_;
  Arena settings_memory_;
  struct Settings {
    View ids, logprobs, temperature, top_k, top_p, min_p, repetition, presence, frequency, history, history_len, generated_from,
        seed, step;
  } settings_;
  static Settings alloc_settings(Arena& a, int64_t rows, int64_t context);
  static int64_t settings_bytes(int64_t rows, int64_t context);
};

}  // namespace ridge
