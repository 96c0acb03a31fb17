// ridgeline run: answers a prompt, or several in one batch, and ends with one line of what it cost.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "app/answer.h"
#include "app/interrupt.h"
#include "app/verbs.h"
#include "device/isa.h"
#include "device/topology.h"

namespace ridge {

namespace {

Result<std::vector<std::string>> prompts_of(const RunVerb& o) {
  std::vector<std::string> prompts = o.prompts;
  if (prompts.empty()) {
    TextInput input;
    input.file = o.prompt_file.empty() ? "-" : o.prompt_file;
    if (input.file == "-" && isatty(STDIN_FILENO)) fputs("The prompt, then Ctrl-D on a line of its own:\n", stderr);
    Result<std::string> text = read_input(input);
    if (!text) return text.status();
    prompts.push_back(*text);
  }
  if (!o.raw && std::count(prompts.begin(), prompts.end(), ""))
    return usage_error("the prompt is empty; give one with -p, with -f, or on standard input.");
  return prompts;
}

Json to_json(const RunVerb& o, const Loaded& l, Runner& runner, const std::vector<Answer>& answers, const AnswerTimes& t,
             int64_t seed) {
  Json list = Json::array();
  for (const Answer& a : answers)
    list.push(Json::object({{"text", a.text},
                            {"ids", Json(a.ids)},
                            {"logprobs", Json(a.logprobs)},
                            {"finish", name_of(a.finish)},
                            {"prompt_tokens", a.prompt_tokens}}));
  // Without a token after the first there is no decode rate, and the bound is that of one sequence.
  const double nothing = NAN, rate = t.decode_tokens > 0 ? double(t.decode_tokens) / t.decode_s : nothing;
  const double bound = answers.size() == 1 ? decode_bound(l, runner, t) : nothing;
  return Json::object({{"model", l.model.label},
                       {"isa", isa_name(l.runtime->isa)},
                       {"threads", l.runtime->pool.threads()},
                       {"seed", seed},
                       {"raw", o.raw},
                       {"answers", std::move(list)},
                       {"prompt_tok_s", t.prompt_s > 0 ? double(t.prompt_tokens) / t.prompt_s : nothing},
                       {"decode_tok_s", rate},
                       {"bound_tok_s", bound},
                       {"fraction", rate / bound},
                       {"peak_rss_bytes", peak_rss_bytes()}});
}

}  // namespace

int run_verb(const RunVerb& o) {
  catch_interrupts();
  Result<std::vector<std::string>> prompts = prompts_of(o);
  if (!prompts) return report(prompts.status());
  Result<std::unique_ptr<Loaded>> loaded = load(o);
  if (!loaded) return report(loaded.status());
  Loaded& l = **loaded;
  if (Status s = refuse_system(l, o.system); !s.ok()) return report(s);
  const Tokenizer& t = *l.tokenizer;
  const int64_t seed = seed_of(o.sampling);
  std::vector<Request> requests;
  for (const std::string& p : *prompts) {
    std::vector<Message> messages;
    if (!o.system.empty()) messages.push_back({"system", o.system});
    messages.push_back({"user", p});
    Result<std::vector<int32_t>> ids =
        o.raw ? t.encode(p, {.add_bos = t.add_bos(), .parse_special = true}) : prompt_ids(l, messages);
    if (!ids) return report(ids.status());
    requests.push_back({.ids = std::move(*ids), .max_tokens = o.tokens, .sampling = params_of(o.sampling, seed)});
  }
  Result<std::unique_ptr<Runner>> made = Runner::make(
      l.model, *l.runtime, {.context = o.context, .sequences = int64_t(requests.size()), .kv_type = kv_dtype(o.kv_type)});
  if (!made) return report(made.status());
  Runner& runner = **made;
  if (interrupted()) return report(Status(Code::interrupted, "interrupted before the first token."));

  AnswerTimes times;
  const bool stream = !o.json && requests.size() == 1;
  Result<std::vector<Answer>> answers = answer(l, runner, requests, times, [&](size_t, const std::string& text) {
    if (!stream) return;
    fwrite(text.data(), 1, text.size(), stdout);
    fflush(stdout);
  });
  if (!answers) return report(answers.status());
  if (o.json) {
    print_json(to_json(o, l, runner, *answers, times, seed));
  } else {
    if (stream)
      fputs("\n", stdout);
    else
      for (size_t i = 0; i < answers->size(); ++i) fmt::print("[{}] {}\n", i, (*answers)[i].text);
    fflush(stdout);
    fmt::print(stderr, "\n{}\n{}, {} threads: {}\n", l.model.label, describe_isa(), l.runtime->pool.threads(),
               summary(l, runner, times));
    fputs(list_fallbacks(*l.runtime).c_str(), stderr);
  }
  return interrupted() ? int(Code::interrupted) : 0;
}

}  // namespace ridge
