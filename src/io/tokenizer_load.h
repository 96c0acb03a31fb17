// Where tokenizers come from: a GGUF file's metadata, or the tokenizer.json of a Hugging Face folder with the files beside it.
// Both only fill a TokenizerData. What a file asks for and Ridgeline does not do is refused with a sentence, never ignored.
#pragma once
#include <string>

#include "base/status.h"
#include "io/gguf.h"
#include "io/json.h"
#include "io/tokenizer.h"

namespace ridge {

Result<Tokenizer> tokenizer_from_gguf(const Gguf& file);
// Reads tokenizer.json, and when they are there tokenizer_config.json (BOS, EOS and the like) and generation_config.json (end tokens).
Result<Tokenizer> tokenizer_from_hf(const std::string& folder);

Result<TokenizerData> tokenizer_data_from_gguf(const GgufMetadata& metadata);
// The last two may be null values.
Result<TokenizerData> tokenizer_data_from_hf(const Json& tokenizer, const Json& tokenizer_config, const Json& generation_config);

}  // namespace ridge
