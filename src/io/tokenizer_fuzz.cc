// Hostile tokenizer.json files, patterns and texts. The first byte picks what the rest is; the text follows the first 0xFF byte.
//   j  a tokenizer.json and a text        r  a regular expression and a text        t  a text for a fixed tokenizer with all bytes
// Whatever loads must keep its promises: ids inside the vocabulary, streaming equal to decoding at once, nothing lost.
#include <array>
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "io/tokenizer_load.h"
#include "io/unicode.h"

namespace {

using namespace ridge;

std::string repaired(std::string_view bytes) {
  std::string text;
  append_repaired(bytes, true, text);
  return text;
}

std::vector<int32_t> check(const Tokenizer& tokenizer, std::string_view text, EncodeOptions options) {
  const std::vector<int32_t> ids = tokenizer.encode(text, options);
  Detokenizer stream(tokenizer, true);
  std::string streamed;
  for (int32_t id : ids) {
    RIDGE_CHECK(id >= 0 && id < tokenizer.size(), "ids are inside the vocabulary");
    const std::string part = stream.push(id);
    RIDGE_CHECK(is_valid_utf8(part), "the stream emits whole characters");
    streamed += part;
  }
  RIDGE_CHECK(streamed + stream.flush() == tokenizer.decode(ids), "streaming equals decoding at once");
  return ids;
}

Tokenizer all_bytes(SplitRule::Kind kind) {
  TokenizerData data;
  uint32_t next = 0x100;
  for (uint32_t b = 0; b < 256; ++b) {
    const bool printable = (b >= 0x21 && b <= 0x7E) || (b >= 0xA1 && b <= 0xAC) || b >= 0xAE;
    append_utf8(printable ? b : next++, data.tokens.emplace_back());
  }
  for (const auto& [left, right] :
       {std::pair("a", "b"), {"ab", "ab"}, {"b", "a"}, {"Ġ", "a"}, {"Ã", "©"}, {"a", "a"}, {"aa", "aa"}, {"1", "1"}}) {
    data.tokens.push_back(std::string(left) + right);
    data.merges.push_back(std::string(left) + " " + right);
  }
  data.types.assign(data.tokens.size(), TokenType::normal);
  data.tokens.insert(data.tokens.end(), {"<|a|>", "<|a", "<b>"});
  data.types.insert(data.types.end(), {TokenType::control, TokenType::user_defined, TokenType::control});
  data.rules = {{kind}};
  Result<Tokenizer> made = Tokenizer::make(std::move(data));
  RIDGE_CHECK(made.ok(), "the fixed vocabulary is sound");
  return std::move(*made);
}

void fuzz_text(std::string_view text) {
  using Kind = SplitRule::Kind;
  static const std::array<Tokenizer, 4> tokenizers = {all_bytes(Kind::gpt2), all_bytes(Kind::llama3), all_bytes(Kind::qwen2),
                                                      all_bytes(Kind::digits)};
  const std::string expected = repaired(text);
  for (const Tokenizer& tokenizer : tokenizers) {
    for (bool special : {false, true}) {
      const std::vector<int32_t> ids = check(tokenizer, text, {.parse_special = special, .parse_user_defined = special});
      RIDGE_CHECK(tokenizer.decode(ids) == expected, "with a token for each byte nothing is lost");
    }
  }
}

void fuzz_pattern(std::string_view pattern, std::string_view text) {
  const std::string clean = repaired(text);
  const Result<Pretokenizer> made = Pretokenizer::make({{SplitRule::Kind::regex, std::string(pattern)}});
  if (!made) return;
  std::string joined;
  made->split(clean, [&](std::string_view piece) {
    RIDGE_CHECK(!piece.empty() && is_valid_utf8(piece), "pieces are whole characters");
    joined += piece;
  });
  RIDGE_CHECK(joined == clean, "matches and gaps are the text");
}

void fuzz_json(std::string_view json, std::string_view text) {
  const Result<Json> tokenizer = parse_json(json, "tokenizer.json", kModelFileJson);
  if (!tokenizer) return;
  Result<TokenizerData> data = tokenizer_data_from_hf(*tokenizer, Json(), Json());
  if (!data) return;
  const Result<Tokenizer> made = Tokenizer::make(std::move(*data));
  if (!made) return;
  for (bool special : {false, true}) check(*made, text, {.add_bos = true, .add_eos = true, .parse_special = special});
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::string_view rest(reinterpret_cast<const char*>(data) + 1, size - 1);
  const size_t at = rest.find('\xFF');
  const std::string_view head = rest.substr(0, at),
                         text = at == std::string_view::npos ? std::string_view() : rest.substr(at + 1);
  if (data[0] == 'j') fuzz_json(head, text);
  if (data[0] == 'r') fuzz_pattern(head, text);
  if (data[0] == 't') fuzz_text(rest);
  return 0;
}
