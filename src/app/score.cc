// ridgeline score: log-probability of every token of a text, and its perplexity.
#include <cstdio>

#include "app/loaded.h"
#include "app/verbs.h"
#include "serve/score.h"

namespace ridge {

int score_verb(const TextVerb& o) {
  Result<std::string> text = read_input(o.input);
  if (!text) return report(text.status());
  Result<std::unique_ptr<Loaded>> loaded = load(o);
  if (!loaded) return report(loaded.status());
  Loaded& l = **loaded;
  const Tokenizer& t = *l.tokenizer;
  const std::vector<int32_t> ids = t.encode(*text, {.add_bos = t.add_bos() && !o.no_bos, .parse_special = o.parse_special});
  // A score asks for every logit of a chunk: 256 rows of a vocabulary of 49,152 are 50 MB.
  Result<std::unique_ptr<Runner>> runner = Runner::make(
      l.model, *l.runtime, {.context = o.context, .step_tokens = 256, .step_rows = 256, .kv_type = kv_dtype(o.kv_type)});
  if (!runner) return report(runner.status());
  Result<Score> s = score(**runner, ids);
  if (!s) return report(s.status());
  if (o.json) {
    print_json(Json::object(
        {{"ids", Json(ids)}, {"logprobs", Json(s->logprobs)}, {"top1", Json(s->top1)}, {"perplexity", s->perplexity}}));
    return 0;
  }
  printf("position      id  log-probability  arg-max  piece\n");
  for (size_t i = 0; i < ids.size(); ++i) {
    const std::string piece = to_text(Json(std::string(t.piece(ids[i]))));
    if (i == 0)
      printf("%8zu %7d %16s %8s  %s\n", i, ids[i], "", "", piece.c_str());
    else
      printf("%8zu %7d %16.6f %8d  %s\n", i, ids[i], s->logprobs[i - 1], s->top1[i - 1], piece.c_str());
  }
  printf("\n%zu tokens, perplexity %.4f\n", ids.size(), s->perplexity);
  return 0;
}

}  // namespace ridge
