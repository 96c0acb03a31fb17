// ridgeline tokenize: the tokens of a text, ids and pieces.
#include <cstdio>

#include "app/loaded.h"
#include "app/verbs.h"

namespace ridge {

int tokenize_verb(const TextVerb& o) {
  Result<Source> source = open_source(o.model);
  if (!source) return report(source.status());
  Result<std::unique_ptr<Tokenizer>> loaded = load_tokenizer(*source);
  if (!loaded) return report(loaded.status());
  const Tokenizer& t = **loaded;
  Result<std::string> text = read_input(o.input);
  if (!text) return report(text.status());
  const std::vector<int32_t> ids = t.encode(*text, {.add_bos = t.add_bos() && !o.no_bos, .parse_special = o.parse_special});
  if (o.json) {
    Json j = Json::object({{"ids", Json(ids)}});
    Json& pieces = j.set("pieces", Json::array());
    for (int32_t id : ids) pieces.push(std::string(t.piece(id)));
    print_json(j);
    return 0;
  }
  for (int32_t id : ids) {
    Json piece{std::string(t.piece(id))};  // quoted and escaped
    printf("%7d  %s\n", id, to_text(piece).c_str());
  }
  return 0;
}

}  // namespace ridge
