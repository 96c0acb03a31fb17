// tokenizer.ggml.* of a GGUF file. The file keeps no regular expression, only the name of a pre-tokenizer: pretokenizer.cc knows them.
#include <fmt/core.h>

#include <cstdint>
#include <utility>

#include "io/tokenizer_load.h"

namespace ridge {
namespace {

// An id as the file has it, -1 when it has none: writers also spell "none" as all bits set.
Result<int32_t> id_of(const GgufMetadata& metadata, const char* role) {
  const std::string key = fmt::format("tokenizer.ggml.{}_token_id", role);
  const GgufValue* value = metadata.find(key);
  if (!value) return -1;
  const std::optional<int64_t> id = value->array ? std::nullopt : value->integer();
  if (id == -1 || id == int64_t(UINT32_MAX)) return -1;
  if (!id || *id < 0 || *id > INT32_MAX) return unloadable(fmt::format("{} of the model file is not a token id", key));
  return int32_t(*id);
}

}  // namespace

Result<TokenizerData> tokenizer_data_from_gguf(const GgufMetadata& metadata) {
  const std::string model = metadata.get_string("tokenizer.ggml.model");
  if (model.empty())
    return unloadable(
        "the model file holds no tokenizer (tokenizer.ggml.model is missing); convert the model again with its tokenizer");
  if (model != "gpt2") {
    return unloadable(
        fmt::format("the model file's tokenizer is of kind '{:.40}'; Ridgeline reads byte-level BPE ('gpt2')", model));
  }
  Result<NamedPretokenizer> named = named_pretokenizer(metadata.get_string("tokenizer.ggml.pre"));
  if (!named) return named.status();

  TokenizerData data;
  data.source = "the model file's tokenizer";
  data.rules = std::move(named->rules);
  data.ignore_merges = named->ignore_merges;
  data.nfc = named->nfc;
  const auto& tokens = metadata.get_strings("tokenizer.ggml.tokens");
  const auto& merges = metadata.get_strings("tokenizer.ggml.merges");
  data.tokens.assign(tokens.begin(), tokens.end());
  data.merges.assign(merges.begin(), merges.end());
  if (!data.tokens.empty() && data.merges.empty())
    return unloadable("the model file's tokenizer has no merges (tokenizer.ggml.merges)");
  if (const GgufValue* types = metadata.find("tokenizer.ggml.token_type")) {
    for (int64_t i = 0; i < types->count; ++i) data.types.push_back(TokenType(int32_t(types->integer(i).value_or(0))));
  }
  int32_t eom = -1;
  const std::pair<const char*, int32_t*> roles[] = {{"bos", &data.bos}, {"eos", &data.eos},     {"eot", &data.eot},
                                                    {"eom", &eom},      {"unknown", &data.unk}, {"padding", &data.pad}};
  for (const auto& [role, to] : roles) {
    const Result<int32_t> id = id_of(metadata, role);
    if (!id) return id.status();
    *to = *id;
  }
  if (eom >= 0) data.more_end_ids.push_back(eom);
  data.add_bos = metadata.get_bool("tokenizer.ggml.add_bos_token", named->add_bos);
  data.add_eos = metadata.get_bool("tokenizer.ggml.add_eos_token", false);
  return data;
}

Result<Tokenizer> tokenizer_from_gguf(const Gguf& file) {
  Result<TokenizerData> data = tokenizer_data_from_gguf(file.metadata);
  if (!data) return data.status();
  return Tokenizer::make(std::move(*data));
}

}  // namespace ridge
