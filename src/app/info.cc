// ridgeline info: what a model file says of itself.
#include <fmt/format.h>

#include "app/loaded.h"
#include "app/verbs.h"

namespace ridge {

int info_verb(const InfoVerb& o) {
  Result<Source> source = open_source(o.model);
  if (!source) return report(source.status());
  Result<Model> model = load_model(*source, {.weights = LoadOptions::Weights::measured});
  if (!model) return report(model.status());
  const Model& m = *model;
  const std::string tmpl = source->kind == Source::Kind::shape ? "" : load_chat_template(*source);
  if (o.json) {
    Json j = Json::object({{"path", o.model}, {"family", m.family}, {"label", m.label}, {"parameters", m.parameters}, {"weight_bytes", m.weight_bytes},
                           {"vocab", m.vocab}, {"context", m.context}, {"kv_bytes_per_token", m.kv.bytes_per_token(DType::f16)},
                           {"chat_template", !tmpl.empty()}, {"config", source->config}});
    if (o.tensors) {
      Json& list = j.set("tensors", Json::array());
      for (const NamedWeight& w : m.weights) {
        std::vector<int64_t> dims(w.view.dims, w.view.dims + w.view.rank);
        list.push(Json::object({{"name", w.name}, {"type", name_of(w.view.type)}, {"dims", Json(dims)}, {"bytes", w.view.bytes()}}));
      }
    }
    print_json(j);
    return 0;
  }
  fmt::print("{}\n  parameters      {}\n  weights         {} bytes\n  vocabulary      {}\n  context         {}\n  state a token   {} bytes (f16)\n  chat template   {}\n",
             m.label, m.parameters, m.weight_bytes, m.vocab, m.context, m.kv.bytes_per_token(DType::f16), tmpl.empty() ? "none" : "yes");
  if (o.tensors)
    for (const NamedWeight& w : m.weights) fmt::print("  {:<50} {}\n", w.name, to_string(w.view));
  return 0;
}

}  // namespace ridge
