#include "model/list.h"

namespace ridge {

#define RIDGE_DECLARE(name) Family name##_family();
RIDGE_MODELS(RIDGE_DECLARE)
#undef RIDGE_DECLARE

std::span<const Family> all_families() {
#define RIDGE_ENTRY(name) name##_family(),
  static const Family families[] = {RIDGE_MODELS(RIDGE_ENTRY)};
#undef RIDGE_ENTRY
  return families;
}

namespace {

std::string architecture_of(const Source& s) {
  if (s.kind == Source::Kind::gguf) return s.config.get_string("general.architecture");
  const std::string* first = s.config["architectures"][size_t(0)].string();
  return first ? *first : s.config.get_string("model_type");
}

bool claims(const Family& f, const Source& s, const std::string& architecture) {
  if (s.kind == Source::Kind::gguf) return architecture == f.gguf_architecture;
  return architecture == f.hf_architecture || (!s.config["architectures"].size() && architecture == f.name);
}

}  // namespace

Result<Model> load_model(const Source& source, LoadOptions options) {
  const std::string architecture = architecture_of(source);
  if (architecture.empty())
    return unloadable(source.config_name + ": no architecture is named (" +
                      (source.kind == Source::Kind::gguf ? "general.architecture" : "architectures or model_type") +
                      "), so nobody can say what the weights mean.");
  if (source.kind == Source::Kind::shape &&
      (options.weights == LoadOptions::Weights::stored || options.weights == LoadOptions::Weights::copied))
    return unloadable(source.path +
                      ": a config.json alone has no weights; name its folder or a GGUF file to run it, or `plan` it.");
  std::string known;
  for (const Family& f : all_families()) {
    if (claims(f, source, architecture)) return f.load(source, options);
    known += std::string(known.empty() ? "" : ", ") + f.name;
  }
  return unloadable(source.config_name + ": the architecture " + quoted(architecture) + " is unknown; this build reads " + known +
                    ".");
}

}  // namespace ridge
