// A model ready to be used by a verb: its source, weights, tokenizer, chat template and runtime.
#pragma once
#include <memory>
#include <string>

#include "app/verbs.h"
#include "io/tokenizer.h"
#include "meter/machine.h"
#include "model/model.h"
#include "serve/runner.h"

namespace ridge {

struct Loaded {
  Source source;
  Model model;
  std::unique_ptr<Tokenizer> tokenizer;
  Result<std::string> chat_template =
      std::string();  // empty when the model has none; what is wrong with it matters to run and chat
  std::unique_ptr<Runtime> runtime;
  Machine machine;
};

Result<std::unique_ptr<Loaded>> load(const CommonOptions& o);
// --strict: a sentence when a prompt's or an answer's step would fall back from a fast row.
Status refuse_fallbacks(const CommonOptions& o, const Loaded& l);
std::string list_fallbacks(const Runtime& r);  // a line each; empty when there were none
Result<std::unique_ptr<Tokenizer>> load_tokenizer(const Source& source);
Result<std::string> load_chat_template(const Source& source);
DType kv_dtype(const std::string& name);
bool weaves(const CommonOptions& o, Isa isa);  // whether weights are woven at load: some levels have no rows that read them so
std::unique_ptr<Runtime> make_runtime(const CommonOptions& o);
int threads_of(int wanted);  // the default where nothing is wanted

}  // namespace ridge
