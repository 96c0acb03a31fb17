// tokenizer.json of the `tokenizers` library: model BPE, byte-level pre-tokenizers, NFC, added tokens, BOS and EOS templates.
#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "io/tokenizer_load.h"

namespace ridge {
namespace {

Status refuse(std::string_view what) { return unloadable(fmt::format("tokenizer.json: {}", what)); }

// The members of a Sequence, or the one thing that is not a Sequence; null gives none.
std::vector<const Json*> parts_of(const Json& thing, std::string_view list) {
  std::vector<const Json*> parts;
  if (thing.get_string("type") != "Sequence") {
    if (!thing.is_null()) parts.push_back(&thing);
    return parts;
  }
  for (const Json& part : thing[list].items()) parts.push_back(&part);
  return parts;
}

std::string escaped(std::string_view literal) {
  std::string pattern;
  for (char c : literal) {
    const bool plain = uint8_t(c) >= 0x80 || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
    if (!plain) pattern += '\\';
    pattern += c;
  }
  return pattern;
}

Result<SplitRule> split_rule(const Json& split) {
  const Json& pattern = split["pattern"];
  SplitRule rule;
  if (const std::string* regex = pattern["Regex"].string())
    rule = rule_of_pattern(*regex);
  else if (const std::string* literal = pattern["String"].string(); literal && !literal->empty())
    rule = {SplitRule::Kind::regex, escaped(*literal)};
  else
    return refuse("a Split pre-tokenizer has neither a Regex nor a String pattern");
  const std::string behavior = split.get_string("behavior");
  const bool invert = split.get_bool("invert", false);
  if (behavior == "Removed") {
    rule.keep = invert ? SplitRule::Keep::matches : SplitRule::Keep::gaps;
    if (rule.kind != SplitRule::Kind::regex) rule = {SplitRule::Kind::regex, std::string(pattern_of(rule.kind)), rule.keep};
  } else if (behavior != "Isolated") {
    return refuse(fmt::format("a Split pre-tokenizer behaves as '{:.40}'; Isolated and Removed are supported", behavior));
  }
  return rule;
}

Result<std::vector<SplitRule>> rules_of(const Json& pretokenizer) {
  using Kind = SplitRule::Kind;
  std::vector<SplitRule> rules;
  bool byte_level = false;
  for (const Json* part : parts_of(pretokenizer, "pretokenizers")) {
    const std::string type = part->get_string("type");
    if (byte_level) return refuse("a pre-tokenizer comes after ByteLevel, which is not supported");
    if (type == "ByteLevel") {
      byte_level = true;
      if (part->get_bool("add_prefix_space", true)) rules.push_back({Kind::prefix_space});
      if (part->get_bool("use_regex", true)) rules.push_back({Kind::gpt2});
    } else if (type == "Digits") {
      rules.push_back({part->get_bool("individual_digits", false) ? Kind::digits : Kind::digit_runs});
    } else if (type == "Split") {
      Result<SplitRule> rule = split_rule(*part);
      if (!rule) return rule.status();
      rules.push_back(std::move(*rule));
    } else {
      return refuse(fmt::format("the pre-tokenizer '{:.40}' is not known; ByteLevel, Digits, Split and Sequence are", type));
    }
  }
  if (!byte_level)
    return refuse("there is no ByteLevel pre-tokenizer, so this is no byte-level BPE, which is what Ridgeline reads");
  return rules;
}

Result<bool> wants_nfc(const Json& normalizer) {
  bool nfc = false;
  for (const Json* part : parts_of(normalizer, "normalizers")) {
    const std::string type = part->get_string("type");
    if (type != "NFC") return refuse(fmt::format("the normalizer '{:.40}' is not supported; NFC is", type));
    nfc = true;
  }
  return nfc;
}

// Token texts to ids, and the reverse in data.tokens; what stands behind every name below.
class Vocabulary {
 public:
  explicit Vocabulary(TokenizerData& data) : data_(data) {}

  Status take(const Json& vocab, const Json& added) {
    int64_t largest = -1;
    const auto grow = [&](const Json& id) { largest = std::max(largest, id.integer().value_or(-1)); };
    for (const Json::Member& member : vocab.members()) grow(member.value);
    for (const Json& token : added.items()) grow(token["id"]);
    const int64_t count = int64_t(vocab.size() + added.size());
    if (largest >= 2 * count + 65536)
      return refuse(fmt::format("the id {} is far beyond its {} tokens; the file is damaged", largest, count));
    data_.tokens.resize(size_t(largest + 1));
    data_.types.resize(size_t(largest + 1), TokenType::unused);
    for (const Json::Member& member : vocab.members()) {
      if (Status status = put(member.key, member.value, TokenType::normal); !status) return status;
    }
    for (const Json& token : added.items()) {
      if (Status status = take_added(token); !status) return status;
    }
    return {};
  }

  int32_t find(const std::string& text) const {
    const auto at = ids_.find(text);
    return at == ids_.end() ? -1 : at->second;
  }

 private:
  Status put(const std::string& text, const Json& value, TokenType type) {
    const int64_t id = value.integer().value_or(-1);
    if (id < 0) return refuse(fmt::format("the token '{:.80}' has no id", text));
    if (data_.types[size_t(id)] != TokenType::unused && data_.tokens[size_t(id)] != text) {
      return refuse(fmt::format("the tokens '{:.80}' and '{:.80}' share the id {}", data_.tokens[size_t(id)], text, id));
    }
    const auto [at, is_new] = ids_.emplace(text, int32_t(id));
    if (!is_new && at->second != id)
      return refuse(fmt::format("the token '{:.80}' has two ids, {} and {}", text, at->second, id));
    data_.tokens[size_t(id)] = text;
    data_.types[size_t(id)] = type;
    return {};
  }

  Status take_added(const Json& token) {
    const std::string* text = token["content"].string();
    if (!text) return refuse("an added token has no content");
    AddedToken added{-1,
                     *text,
                     token.get_bool("special", false),
                     token.get_bool("normalized", false),
                     token.get_bool("lstrip", false),
                     token.get_bool("rstrip", false),
                     token.get_bool("single_word", false)};
    if (Status status = put(*text, token["id"], added.special ? TokenType::control : TokenType::user_defined); !status)
      return status;
    added.id = find(*text);
    data_.added.push_back(std::move(added));
    return {};
  }

  TokenizerData& data_;
  std::unordered_map<std::string, int32_t> ids_;
};

Status take_model(const Json& model, TokenizerData& data, const Vocabulary& vocabulary) {
  for (const char* affix : {"continuing_subword_prefix", "end_of_word_suffix"}) {
    if (!model.get_string(affix).empty())
      return refuse(fmt::format("the model uses {}, which byte-level BPE does not have", affix));
  }
  if (model.get_bool("byte_fallback", false)) return refuse("the model uses byte_fallback, which byte-level BPE does not need");
  if (model.get_number("dropout", 0) != 0) return refuse("the model uses dropout, which makes tokens random");
  data.ignore_merges = model.get_bool("ignore_merges", false);
  data.fuse_missing_bytes = model.get_bool("fuse_unk", false);
  data.missing_byte = vocabulary.find(model.get_string("unk_token"));
  const Json::Array& merges = model["merges"].items();
  data.merges.reserve(merges.size());
  for (const Json& merge : merges) {
    if (const std::string* text = merge.string()) {
      data.merges.push_back(*text);
      continue;
    }
    const std::string *left = merge[size_t(0)].string(), *right = merge[1].string();
    if (!left || !right || merge.size() != 2)
      return refuse(fmt::format("merge {} is neither a string nor a pair of strings", data.merges.size()));
    data.merges.push_back(*left + " " + *right);
  }
  return {};
}

// BOS before and EOS after the text, one token each at most.
Status take_template(const Json& processor, TokenizerData& data) {
  bool seen_text = false;
  for (const Json& item : processor["single"].items()) {
    if (!item["Sequence"].is_null()) {
      seen_text = true;
      continue;
    }
    const Json& ids = processor["special_tokens"][item["SpecialToken"].get_string("id")]["ids"];
    const int64_t id = ids[size_t(0)].integer().value_or(-1);
    bool& add = seen_text ? data.add_eos : data.add_bos;
    if (ids.size() != 1 || id < 0 || id >= int64_t(data.tokens.size()) || add) {
      return refuse("the post-processor's template is not at most one token before and one after the text");
    }
    add = true;
    (seen_text ? data.eos : data.bos) = int32_t(id);
  }
  return {};
}

Status take_post_processor(const Json& processor, TokenizerData& data) {
  for (const Json* part : parts_of(processor, "processors")) {
    const std::string type = part->get_string("type");
    if (type == "ByteLevel") continue;  // only trims offsets
    if (type != "TemplateProcessing")
      return refuse(fmt::format("the post-processor '{:.40}' is not supported; TemplateProcessing is", type));
    if (Status status = take_template(*part, data); !status) return status;
  }
  return {};
}

// "<s>" or {"content": "<s>", ...}; -1 when there is none. A name that is no token is as good as none: configs list many.
int32_t named_token(const Json& config, std::string_view key, const Vocabulary& vocabulary) {
  const Json& name = config[key];
  return vocabulary.find(name.string() ? *name.string() : name.get_string("content"));
}

void take_config(const Json& config, TokenizerData& data, const Vocabulary& vocabulary) {
  const std::pair<const char*, int32_t*> roles[] = {
      {"bos_token", &data.bos}, {"eos_token", &data.eos}, {"unk_token", &data.unk}, {"pad_token", &data.pad}};
  for (const auto& [key, to] : roles) {
    if (*to < 0) *to = named_token(config, key, vocabulary);
  }
  // transformers lets these two overrule tokenizer.json for the Llama classes only.
  if (!config.get_string("tokenizer_class").starts_with("Llama")) return;
  data.add_bos = config.get_bool("add_bos_token", data.add_bos);
  data.add_eos = config.get_bool("add_eos_token", data.add_eos);
}

void take_end_ids(const Json& generation, TokenizerData& data) {
  const auto take = [&](const Json& id) {
    if (const auto n = id.integer(); n && *n >= 0 && *n < int64_t(data.tokens.size())) data.more_end_ids.push_back(int32_t(*n));
  };
  const Json& eos = generation["eos_token_id"];
  take(eos);
  for (const Json& id : eos.items()) take(id);
}

bool file_exists(const std::string& path) { return access(path.c_str(), F_OK) == 0; }

// A file that may be absent; a null value then.
Result<Json> read_optional(const std::string& path) {
  if (!file_exists(path)) return Json();
  return read_json(path);
}

}  // namespace

Result<TokenizerData> tokenizer_data_from_hf(const Json& tokenizer, const Json& tokenizer_config, const Json& generation_config) {
  const Json& model = tokenizer["model"];
  if (!model.is_object()) return refuse("there is no model in it; the file is damaged or is no tokenizer");
  const std::string type = model.get_string("type", model["merges"].is_array() ? "BPE" : "nothing known");
  if (type != "BPE") return refuse(fmt::format("the model is '{:.40}'; Ridgeline reads byte-level BPE", type));

  TokenizerData data;
  data.source = "tokenizer.json";
  Result<std::vector<SplitRule>> rules = rules_of(tokenizer["pre_tokenizer"]);
  if (!rules) return rules.status();
  data.rules = std::move(*rules);
  const Result<bool> nfc = wants_nfc(tokenizer["normalizer"]);
  if (!nfc) return nfc.status();
  data.nfc = *nfc;
  Vocabulary vocabulary(data);
  if (Status status = vocabulary.take(model["vocab"], tokenizer["added_tokens"]); !status) return status;
  if (Status status = take_model(model, data, vocabulary); !status) return status;
  if (Status status = take_post_processor(tokenizer["post_processor"], data); !status) return status;
  take_config(tokenizer_config, data, vocabulary);
  take_end_ids(generation_config, data);
  return data;
}

Result<Tokenizer> tokenizer_from_hf(const std::string& folder) {
  if (!file_exists(folder + "/tokenizer.json")) {
    return unloadable(fmt::format("{} holds no tokenizer.json; fetch the model's tokenizer into the folder", folder));
  }
  const Result<Json> tokenizer = read_json(folder + "/tokenizer.json");
  if (!tokenizer) return tokenizer.status();
  const Result<Json> config = read_optional(folder + "/tokenizer_config.json");
  if (!config) return config.status();
  const Result<Json> generation = read_optional(folder + "/generation_config.json");
  if (!generation) return generation.status();
  Result<TokenizerData> data = tokenizer_data_from_hf(*tokenizer, *config, *generation);
  if (!data) return data.status();
  return Tokenizer::make(std::move(*data));
}

}  // namespace ridge
