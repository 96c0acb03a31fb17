// ridgeline info: what a model file says of itself.
#include <fmt/format.h>

#include "app/loaded.h"
#include "app/verbs.h"

namespace ridge {

namespace {

// The file's own tensors under its own names; a shape has only those that its config implies.
std::vector<NamedTensor> tensors_of(const Source& source, const Model& m) {
  if (source.kind != Source::Kind::shape) return source.tensors.all();
  std::vector<NamedTensor> all;
  for (const NamedWeight& w : m.weights) all.push_back({w.name, w.view});
  return all;
}

}  // namespace

int info_verb(const InfoVerb& o) {
  Result<Source> source = open_source(o.model);
  if (!source) return report(source.status());
  Result<Model> model = load_model(*source, {.weights = LoadOptions::Weights::measured});
  if (!model) return report(model.status());
  const Model& m = *model;
  const Result<std::string> chat_template = load_chat_template(*source);
  if (!chat_template) report(chat_template.status());  // it hinders chat alone
  const bool has_template = chat_template && !chat_template->empty();
  if (o.json) {
    Json j = Json::object({{"path", o.model},
                           {"family", m.family},
                           {"label", m.label},
                           {"parameters", m.parameters},
                           {"weight_bytes", m.weight_bytes},
                           {"vocab", m.vocab},
                           {"context", m.context},
                           {"kv_bytes_per_token", m.kv.bytes_per_token(DType::f16)},
                           {"chat_template", has_template},
                           {"config", source->config}});
    if (o.tensors) {
      Json& list = j.set("tensors", Json::array());
      for (const auto& [name, view] : tensors_of(*source, m)) {
        std::vector<int64_t> dims(view.dims, view.dims + view.rank);
        list.push(Json::object({{"name", name}, {"type", name_of(view.type)}, {"dims", Json(dims)}, {"bytes", view.bytes()}}));
      }
    }
    print_json(j);
    return 0;
  }
  fmt::print(
      "{}\n  parameters      {}\n  weights         {} bytes\n  vocabulary      {}\n  context         {}\n  state a token   {} "
      "bytes (f16)\n  chat template   {}\n",
      m.label, m.parameters, m.weight_bytes, m.vocab, m.context, m.kv.bytes_per_token(DType::f16), has_template ? "yes" : "none");
  if (o.tensors)
    for (const auto& [name, view] : tensors_of(*source, m)) fmt::print("  {:<50} {}\n", name, to_string(view));
  return 0;
}

}  // namespace ridge
