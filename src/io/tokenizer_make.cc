// Makes a Tokenizer from TokenizerData and refuses data that no tokenizer could have: everything encode relies on is checked here.
#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <bit>
#include <utility>

#include "io/tokenizer.h"
#include "io/tokenizer_hash.h"
#include "io/unicode.h"

namespace ridge {
namespace {

constexpr size_t kMaxTokens = size_t(1) << 24, kMaxBytes = size_t(1) << 30;

// Byte-level BPE spells each byte as one printable character: itself where it is printable Latin-1, U+0100 and up for the rest.
constexpr uint32_t kAlphabetEnd = 0x144;
const std::array<int16_t, kAlphabetEnd> kByteOfChar = [] {
  std::array<int16_t, kAlphabetEnd> byte_of;
  byte_of.fill(-1);
  uint32_t next = 0x100;
  for (int b = 0; b < 256; ++b) {
    const bool printable = (b >= 0x21 && b <= 0x7E) || (b >= 0xA1 && b <= 0xAC) || b >= 0xAE;
    byte_of[printable ? uint32_t(b) : next++] = int16_t(b);
  }
  return byte_of;
}();

// The bytes that a token is spelled for; false when it holds a character that is not of the alphabet.
bool unspell(std::string_view spelled, std::string& bytes) {
  bytes.clear();
  if (!is_valid_utf8(spelled)) return false;
  for (size_t at = 0; at < spelled.size();) {
    const Char c = char_at(spelled.data() + at);
    if (c.code_point >= kAlphabetEnd || kByteOfChar[c.code_point] < 0) return false;
    bytes += char(kByteOfChar[c.code_point]);
    at += size_t(c.bytes);
  }
  return true;
}

bool is_spelled(TokenType type) { return type == TokenType::normal || type == TokenType::byte; }

// Texts of control tokens that end an answer whatever the file calls its EOS: instruction-tuned models often name only one of them.
constexpr std::string_view kEndTexts[] = {"<|im_end|>",    "<|eot_id|>",      "<|eom_id|>", "<|end|>",        "<|endoftext|>",
                                          "<end_of_turn>", "<|end_of_text|>", "<|eot|>",    "<|end_of_turn|>"};

}  // namespace

Result<Tokenizer> Tokenizer::make(TokenizerData data) {
  Tokenizer made;
  made.source_ = data.source;
  made.ignore_merges_ = data.ignore_merges;
  made.nfc_ = data.nfc;
  made.fuse_missing_ = data.fuse_missing_bytes;
  made.add_bos_ = data.add_bos;
  made.add_eos_ = data.add_eos;
  for (auto step : {&Tokenizer::take_tokens, &Tokenizer::take_merges, &Tokenizer::take_added, &Tokenizer::take_special_ids}) {
    if (Status status = (made.*step)(data); !status) return status;
  }
  Result<Pretokenizer> pretokenizer = Pretokenizer::make(std::move(data.rules));
  if (!pretokenizer) return unloadable(made.source_ + ": " + pretokenizer.status().sentence());
  made.pretokenizer_ = std::move(*pretokenizer);
  return made;
}

Status Tokenizer::take_tokens(const TokenizerData& data) {
  const size_t n = data.tokens.size();
  if (n == 0) return unloadable(source_ + " has an empty vocabulary; the file is damaged or holds no tokenizer");
  if (n > kMaxTokens) return unloadable(fmt::format("{} has {} tokens; at most {} are read", source_, n, kMaxTokens));
  if (!data.types.empty() && data.types.size() != n) {
    return unloadable(fmt::format("{} has {} tokens but {} token types; the file is damaged", source_, n, data.types.size()));
  }
  types_ = data.types.empty() ? std::vector<TokenType>(n, TokenType::normal) : data.types;
  normal_.assign(std::bit_ceil(2 * n + 2), -1);
  byte_ids_.assign(256, -1);
  offsets_.assign(n + 1, 0);
  std::string bytes;
  bool any_byte = false;
  for (size_t id = 0; id < n; ++id) {
    const int32_t type = int32_t(types_[id]);
    if (type < 1 || type > 6) return unloadable(fmt::format("{}: token {} has the unknown type {}", source_, id, type));
    const std::string& spelled = data.tokens[id];
    const bool is_normal = is_spelled(types_[id]) && unspell(spelled, bytes) && !bytes.empty();
    bytes_ += is_normal ? bytes : spelled;
    if (bytes_.size() > kMaxBytes)
      return unloadable(fmt::format("{}: the texts of the tokens exceed {} bytes", source_, kMaxBytes));
    offsets_[id + 1] = uint32_t(bytes_.size());
    if (!is_normal) continue;
    int32_t& slot = normal_[slot_of(bytes)];
    if (slot >= 0)
      return unloadable(fmt::format("{}: tokens {} and {} are both '{}'; the file is damaged", source_, slot, id, spelled));
    slot = int32_t(id);
    if (bytes.size() == 1) byte_ids_[uint8_t(bytes[0])] = int32_t(id);
    any_byte |= bytes.size() == 1;
  }
  if (!any_byte) return unloadable(source_ + " has no token for any single byte, so it is not a byte-level BPE vocabulary");
  return {};
}

Status Tokenizer::take_merges(const TokenizerData& data) {
  if (data.merges.size() > kMaxTokens)
    return unloadable(fmt::format("{} has {} merges; at most {} are read", source_, data.merges.size(), kMaxTokens));
  merges_ = BpeMerges(data.merges.size());
  std::string left, right;
  for (size_t rank = 0; rank < data.merges.size(); ++rank) {
    const std::string_view merge = data.merges[rank];
    const size_t space = merge.find(' ');
    const auto bad = [&](std::string_view why) {
      return unloadable(fmt::format("{}: merge {} ('{:.80}') {}", source_, rank, merge, why));
    };
    if (space == std::string_view::npos || !unspell(merge.substr(0, space), left) || !unspell(merge.substr(space + 1), right)) {
      return bad("is not two byte-level tokens with a space between them");
    }
    const int32_t a = find_normal(left), b = find_normal(right), merged = find_normal(left + right);
    if (a < 0 || b < 0) return bad("joins a text that is not a token");
    if (merged < 0) return bad("makes a text that is not a token");
    merges_.add(a, b, uint32_t(rank), merged);
  }
  return {};
}

Status Tokenizer::take_added(const TokenizerData& data) {
  std::vector<AddedToken> raw, normalized;
  for (const AddedToken& token : data.added) {
    if (token.id < 0 || token.id >= size()) {
      return unloadable(fmt::format("{}: the added token '{:.80}' has id {}, outside of the vocabulary of {}", source_,
                                    token.text, token.id, size()));
    }
    (token.normalized ? normalized : raw).push_back(token);
    if (token.normalized && nfc_ && is_valid_utf8(token.text)) normalized.back().text = nfc(token.text);
  }
  for (int32_t id = 0; data.added.empty() && id < size(); ++id) {
    const TokenType type = types_[size_t(id)];
    const bool special = type == TokenType::control || type == TokenType::unknown;
    if (special || type == TokenType::user_defined) raw.push_back({id, std::string(piece(id)), special});
  }
  for (auto [from, to] : {std::pair(&raw, &raw_added_), std::pair(&normalized, &normalized_added_)}) {
    Result<AddedTokens> made = AddedTokens::make(std::move(*from));
    if (!made) return unloadable(source_ + ": " + made.status().sentence());
    *to = std::move(*made);
  }
  return {};
}

Status Tokenizer::take_special_ids(const TokenizerData& data) {
  const struct {
    const char* name;
    int32_t id;
    int32_t* to;
  } roles[] = {{"BOS", data.bos, &bos_},     {"EOS", data.eos, &eos_},     {"EOT", data.eot, &eot_},
               {"unknown", data.unk, &unk_}, {"padding", data.pad, &pad_}, {"missing-byte", data.missing_byte, &missing_}};
  const auto outside = [&](const char* name, int32_t id) {
    return unloadable(fmt::format("{}: the {} token has id {}, outside of the vocabulary of {}", source_, name, id, size()));
  };
  for (const auto& role : roles) {
    if (role.id < -1 || role.id >= size()) return outside(role.name, role.id);
    *role.to = role.id;
  }
  for (int32_t id : data.more_end_ids) {
    if (id < 0 || id >= size()) return outside("end", id);
  }
  end_ids_ = data.more_end_ids;
  for (int32_t id : {eos_, eot_}) {
    if (id >= 0) end_ids_.push_back(id);
  }
  for (std::string_view text : kEndTexts) {
    const AddedToken* token = raw_added_.find(text);
    if (token && token->special) end_ids_.push_back(token->id);
  }
  std::sort(end_ids_.begin(), end_ids_.end());
  end_ids_.erase(std::unique(end_ids_.begin(), end_ids_.end()), end_ids_.end());
  return {};
}

}  // namespace ridge
