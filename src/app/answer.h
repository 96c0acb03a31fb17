// Renders conversations and streams answers: what `run` and `chat` have in common.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "app/loaded.h"
#include "io/chat_template.h"
#include "serve/generator.h"

namespace ridge {

SamplingParams params_of(const SamplingOptions& o, int64_t seed);
int64_t seed_of(const SamplingOptions& o);  // the clock's where none was asked for

// The prompt's tokens: the conversation through the model's chat template, or the text of its last message where there is none.
Result<std::vector<int32_t>> prompt_ids(const Loaded& l, const std::vector<Message>& messages);

// A system message where no template has a place for it is refused, not dropped.
Status refuse_system(const Loaded& l, const std::string& system);

struct Answer {
  std::string text;
  std::vector<int32_t> ids;
  std::vector<double> logprobs;
  int64_t prompt_tokens = 0;
  Finish finish = Finish::none;
};

struct AnswerTimes {
  double prompt_s = 0, decode_s = 0;  // until the first token of the last prompt; after it
  int64_t prompt_tokens = 0, decode_tokens = 0;
};

// Answers all prompts in one batch. `piece` receives text as it becomes certain; Ctrl-C ends the answers early (finish: cancelled).
Result<std::vector<Answer>> answer(const Loaded& l, Runner& runner, const std::vector<Request>& requests, AnswerTimes& times,
                                   const std::function<void(size_t prompt, const std::string& text)>& piece);

// "prompt 12 tokens 410.2 tok/s, decode 64 tokens 93.1 tok/s, 61 % of the bound, peak memory 260 MB"
std::string summary(const Loaded& l, Runner& runner, const AnswerTimes& t);
double decode_bound(const Loaded& l, Runner& runner, const AnswerTimes& t);  // tok/s that this machine's ceilings allow

}  // namespace ridge
