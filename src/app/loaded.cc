#include "app/loaded.h"

#include <fmt/format.h>
#include <unistd.h>

#include <chrono>

#include "app/interrupt.h"
#include "device/topology.h"
#include "io/chat_template.h"
#include "io/tokenizer_load.h"
#include "meter/measure.h"
#include "model/plan.h"

namespace ridge {

bool weaves(const CommonOptions& o, Isa isa) { return isa >= Isa::avx2 && o.activations != "f32"; }

std::unique_ptr<Runtime> make_runtime(const CommonOptions& o) {
  const Isa isa = active_isa();
  auto r = std::make_unique<Runtime>(threads_of(o.threads), o.activations == "f32" ? std::min(isa, Isa::avx512) : isa);
  r->fast_activations = o.activations == "fast";
  return r;
}

int threads_of(int wanted) { return wanted > 0 ? wanted : default_threads(); }

DType kv_dtype(const std::string& name) {
  return name == "f32" ? DType::f32 : name == "bf16" ? DType::bf16 : name == "q8_0" ? DType::q8_0 : DType::f16;
}

namespace {

// On a terminal, once loading has taken a third of a second.
std::function<void(int64_t, int64_t)> show_progress() {
  if (!isatty(STDERR_FILENO)) return {};
  const auto from = std::chrono::steady_clock::now();
  return [from, shown = false](int64_t done, int64_t all) mutable {
    if (!shown && std::chrono::steady_clock::now() - from < std::chrono::milliseconds(300)) return;
    shown = true;
    const int64_t tenths = all > 0 ? 10 * done / all : 10;
    fmt::print(stderr, "\rloading [{:<10}] {:3} %{}", std::string(size_t(tenths), '#'), all > 0 ? 100 * done / all : 100,
               done >= all ? "\r\033[K" : "");
    fflush(stderr);
  };
}

}  // namespace

Result<std::unique_ptr<Tokenizer>> load_tokenizer(const Source& source) {
  if (source.kind == Source::Kind::shape)
    return unloadable(source.path + ": a config.json alone has no tokenizer; name the model's folder or a GGUF file.");
  Result<Tokenizer> t = source.gguf ? tokenizer_from_gguf(*source.gguf) : tokenizer_from_hf(source.path);
  if (!t) return unloadable(source.path + ": " + t.status().sentence());
  return std::make_unique<Tokenizer>(std::move(*t));
}

Result<std::string> load_chat_template(const Source& source) {
  if (source.gguf) return source.gguf->metadata.get_string("tokenizer.chat_template");
  return source.kind == Source::Kind::hf ? read_chat_template(source.path) : std::string();
}

Result<std::unique_ptr<Loaded>> load(const CommonOptions& o) {
  Result<Source> source = open_source(o.model);
  if (!source) return source.status();
  auto l = std::make_unique<Loaded>();
  l->source = std::move(*source);
  Result<std::unique_ptr<Tokenizer>> tokenizer = load_tokenizer(l->source);
  if (!tokenizer) return tokenizer.status();
  l->tokenizer = std::move(*tokenizer);
  l->runtime = make_runtime(o);
  Result<Model> model =
      load_model(l->source, {.woven = weaves(o, l->runtime->isa), .pool = &l->runtime->pool, .progress = show_progress()});
  if (!model) return model.status();
  l->model = std::move(*model);
  if (l->tokenizer->size() > l->model.vocab)
    return unloadable(o.model + ": the tokenizer knows " + std::to_string(l->tokenizer->size()) + " tokens and the model only " +
                      std::to_string(l->model.vocab) + "; they are not of one model.");
  l->chat_template = load_chat_template(l->source);
  if (interrupted()) return interrupted("interrupted while the model was loaded.");
  l->machine = load_or_measure(l->runtime->pool, l->runtime->isa);
  if (Status s = refuse_fallbacks(o, *l); !s.ok()) return s;
  return l;
}

Status refuse_fallbacks(const CommonOptions& o, const Loaded& l) {
  if (Status s = cache_fits(l.model, kv_dtype(o.kv_type)); !s.ok()) return s;
  if (!o.strict) return {};
  Runtime trial(1, l.runtime->isa);
  trial.fast_activations = l.runtime->fast_activations;
  for (int32_t queries : {1, 128})
    plan_step(l.model, trial, l.machine, {.queries = {queries}, .keys = {queries}, .kv_type = kv_dtype(o.kv_type)});
  if (trial.fallbacks.empty()) return {};
  const Fallback& f = trial.fallbacks.front();
  return failed(fmt::format("--strict: {} would run {} instead of {}, because {}; leave --strict out to run it all the same.",
                            f.op, f.to, f.from, f.reason));
}

std::string list_fallbacks(const Runtime& r) {
  std::string text;
  for (const Fallback& f : r.fallbacks)
    text += fmt::format("fallback: {} ran {} instead of {} {} times: {}\n", f.op, f.to, f.from, f.count, f.reason);
  return text;
}

}  // namespace ridge
