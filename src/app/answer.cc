#include "app/answer.h"

#include <fmt/format.h>

#include <chrono>

#include "app/interrupt.h"
#include "device/topology.h"
#include "model/plan.h"

namespace ridge {

SamplingParams params_of(const SamplingOptions& o, int64_t seed) {
  return {.temperature = o.temperature,
          .top_k = o.top_k,
          .top_p = o.top_p,
          .min_p = o.min_p,
          .repetition = o.repetition_penalty,
          .presence = o.presence_penalty,
          .frequency = o.frequency_penalty,
          .seed = seed};
}

int64_t seed_of(const SamplingOptions& o) {
  if (o.seed >= 0) return o.seed;
  return std::chrono::system_clock::now().time_since_epoch().count() & 0x7fffffff;
}

Result<std::vector<int32_t>> prompt_ids(const Loaded& l, const std::vector<Message>& messages) {
  const Tokenizer& t = *l.tokenizer;
  if (!l.chat_template) return l.chat_template.status();
  if (l.chat_template->empty()) return t.encode(messages.back().content, {.add_bos = t.add_bos()});
  auto token = [&](int32_t id) { return id < 0 ? std::string() : std::string(t.piece(id)); };
  Result<std::string> text = render_chat(*l.chat_template, messages, {.bos_token = token(t.bos()), .eos_token = token(t.eos())});
  if (!text) return text.status();
  return t.encode(*text, {.add_bos = t.add_bos(), .parse_special = true});
}

Status refuse_system(const Loaded& l, const std::string& system) {
  if (system.empty() || !l.chat_template || !l.chat_template->empty()) return {};
  return usage_error(l.source.path + " has no chat template, so --system has no place; write it into the prompt.");
}

Result<std::vector<Answer>> answer(const Loaded& l, Runner& runner, const std::vector<Request>& requests, AnswerTimes& times,
                                   const std::function<void(size_t, const std::string&)>& piece) {
  Generator generator(runner, l.tokenizer->end_ids());
  std::vector<Answer> answers(requests.size());
  std::vector<Detokenizer> text(requests.size(), Detokenizer(*l.tokenizer));
  for (size_t i = 0; i < requests.size(); ++i) {
    Result<int64_t> number = generator.submit(requests[i]);  // numbers count from 0 in this order
    if (!number) return number.status();
    answers[i].prompt_tokens = int64_t(requests[i].ids.size());
    times.prompt_tokens += answers[i].prompt_tokens;
  }
  auto say = [&](size_t i, const std::string& s) {
    answers[i].text += s;
    if (!s.empty()) piece(i, s);
  };
  using Clock = std::chrono::steady_clock;
  size_t begun = 0;
  while (!generator.idle() && !interrupted()) {
    const bool prompts = begun < requests.size();
    const auto from = Clock::now();
    const std::vector<Generated>& step = generator.step();
    (prompts ? times.prompt_s : times.decode_s) += std::chrono::duration<double>(Clock::now() - from).count();
    for (const Generated& g : step) {
      Answer& a = answers[g.request];
      if (a.ids.empty()) ++begun;
      if (!prompts) ++times.decode_tokens;
      a.ids.push_back(g.id);
      a.logprobs.push_back(g.logprob);
      a.finish = g.finish;
      if (g.finish != Finish::end) say(g.request, text[g.request].push(g.id));
      if (g.finish != Finish::none) say(g.request, text[g.request].flush());
    }
  }
  for (size_t i = 0; i < requests.size(); ++i)
    if (answers[i].finish == Finish::none) {
      say(i, text[i].flush());
      answers[i].finish = interrupted() ? Finish::cancelled : Finish::length;
    }
  return answers;
}

double decode_bound(const Loaded& l, Runner& runner, const AnswerTimes& t) {
  const int64_t depth = std::min(t.prompt_tokens + t.decode_tokens / 2 + 1, runner.options().context);
  const StepPlan p =
      plan_step(l.model, *l.runtime, l.machine, {.queries = {1}, .keys = {int32_t(depth)}, .kv_type = runner.options().kv_type});
  return 1 / p.ledger.bound_s();
}

std::string summary(const Loaded& l, Runner& runner, const AnswerTimes& t) {
  std::string s = fmt::format("prompt {} tokens {:.1f} tok/s", t.prompt_tokens, double(t.prompt_tokens) / t.prompt_s);
  if (t.decode_tokens > 0) {
    const double rate = double(t.decode_tokens) / t.decode_s;
    s += fmt::format(", decode {} tokens {:.1f} tok/s", t.decode_tokens, rate);
    if (runner.options().sequences == 1)
      s += fmt::format(", {:.0f} % of the bound{}", 100 * rate / decode_bound(l, runner, t),
                       l.machine.measured ? "" : " (nominal)");
  }
  return s + fmt::format(", peak memory {:.0f} MB", double(peak_rss_bytes()) / 1e6);
}

}  // namespace ridge
