// ridgeline score: log-probability of every token of a text, and its perplexity.
#include <cstdio>
#include <optional>

#include "app/loaded.h"
#include "app/verbs.h"
#include "serve/score.h"

namespace ridge {

namespace {

// A score asks for every logit of a chunk: 256 rows of a vocabulary of 49,152 are 50 MB.
Result<std::unique_ptr<Runner>> make_runner(const CommonOptions& o, const Model& model, Runtime& runtime) {
  return Runner::make(model, runtime,
                      {.context = o.context, .step_tokens = 256, .step_rows = 256, .kv_type = kv_dtype(o.kv_type)});
}

// The same text through rows of f32 alone, and an f32 cache.
Result<Comparison> beside_reference(const TextVerb& o, const Source& source, Runner& ours, const std::vector<int32_t>& ids) {
  CommonOptions f32 = o;
  f32.activations = f32.kv_type = "f32";
  const Result<Model> model = load_model(source);
  if (!model) return model.status();
  const std::unique_ptr<Runtime> runtime = make_runtime(f32);
  Result<std::unique_ptr<Runner>> reference = make_runner(f32, *model, *runtime);
  if (!reference) return reference.status();
  return compare(ours, **reference, ids);
}

}  // namespace

int score_verb(const TextVerb& o) {
  Result<std::string> text = read_input(o.input);
  if (!text) return report(text.status());
  Result<std::unique_ptr<Loaded>> loaded = load(o);
  if (!loaded) return report(loaded.status());
  Loaded& l = **loaded;
  const Tokenizer& t = *l.tokenizer;
  const std::vector<int32_t> ids = t.encode(*text, {.add_bos = t.add_bos() && !o.no_bos, .parse_special = o.parse_special});
  Result<std::unique_ptr<Runner>> runner = make_runner(o, l.model, *l.runtime);
  if (!runner) return report(runner.status());
  std::optional<Comparison> beside;
  if (o.reference) {
    Result<Comparison> c = beside_reference(o, l.source, **runner, ids);
    if (!c) return report(c.status());
    beside = std::move(*c);
  }
  Result<Score> s = beside ? Result<Score>(beside->ours) : score(**runner, ids);
  if (!s) return report(s.status());
  if (o.json) {
    Json json = Json::object(
        {{"ids", Json(ids)}, {"logprobs", Json(s->logprobs)}, {"top1", Json(s->top1)}, {"perplexity", s->perplexity}});
    if (beside)
      json.set("reference", Json::object({{"perplexity", beside->reference_perplexity},
                                          {"mean_kl", beside->mean_kl},
                                          {"max_kl", beside->max_kl},
                                          {"top1_equal", beside->top1_equal}}));
    print_json(json);
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
  if (beside)
    printf("f32 path: perplexity %.4f; mean KL %.2e, largest %.2e, the same arg-max at %.2f %% of positions\n",
           beside->reference_perplexity, beside->mean_kl, beside->max_kl, 100 * beside->top1_equal);
  return 0;
}

}  // namespace ridge
