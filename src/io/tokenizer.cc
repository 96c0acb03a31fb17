#include "io/tokenizer.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <deque>

#include "base/check.h"
#include "io/tokenizer_hash.h"
#include "io/unicode.h"

namespace ridge {
namespace {

constexpr size_t kMaxCachedWord = 32;

}  // namespace

// One call of encode. Words repeat, so a direct-mapped table remembers where in this very output a word was encoded before: bounded,
// without locks, and nothing is copied into it.
struct Tokenizer::Encoding {
  struct Seen {
    const char* word = nullptr;
    uint32_t bytes = 0, count = 0;
    size_t begin = 0;  // ids[begin, begin + count)
  };

  Encoding(const Tokenizer& tokenizer, size_t text_bytes) : tokenizer(tokenizer) {
    ids.reserve(text_bytes / 4 + 8);
    if (tokenizer.pretokenizer_.pieces_outlive_split()) seen.resize(std::bit_ceil(std::clamp<size_t>(text_bytes / 32, 1, 4096)));
  }

  void word(std::string_view w) {
    if (seen.size() < 2 || w.size() > kMaxCachedWord) return tokenizer.encode_word(w, ids);
    Seen& slot = seen[hash_bytes(w) & (seen.size() - 1)];
    const size_t begin = ids.size();
    if (slot.bytes == w.size() && std::memcmp(slot.word, w.data(), w.size()) == 0) {
      ids.resize(begin + slot.count);
      std::copy_n(ids.begin() + ptrdiff_t(slot.begin), slot.count, ids.begin() + ptrdiff_t(begin));
      return;
    }
    tokenizer.encode_word(w, ids);
    slot = {w.data(), uint32_t(w.size()), uint32_t(ids.size() - begin), begin};
  }

  // Text without added tokens, already normalised.
  void plain(std::string_view text) {
    tokenizer.pretokenizer_.split(text, [this](std::string_view piece) { word(piece); });
  }

  void normalized(std::string_view text, AddedTokens::Accept accept) {
    if (tokenizer.nfc_) text = normalized_texts.emplace_back(nfc(text));
    tokenizer.normalized_added_.split(
        text, accept, [this](std::string_view part) { plain(part); }, [this](int32_t id) { ids.push_back(id); });
  }

  const Tokenizer& tokenizer;
  std::vector<int32_t> ids;
  std::vector<Seen> seen;
  std::deque<std::string> normalized_texts;  // `seen` points into them
};

std::vector<int32_t> Tokenizer::encode(std::string_view text, EncodeOptions options) const {
  std::string repaired;
  if (!is_valid_utf8(text)) {
    append_repaired(text, true, repaired);
    text = repaired;
  }
  const AddedTokens::Accept accept{options.parse_special, options.parse_user_defined};
  Encoding encoding(*this, text.size());
  std::vector<int32_t>& ids = encoding.ids;
  const bool bos = options.add_bos && bos_ >= 0;
  if (bos) ids.push_back(bos_);
  raw_added_.split(
      text, accept, [&](std::string_view part) { encoding.normalized(part, accept); }, [&](int32_t id) { ids.push_back(id); });
  if (bos && ids.size() > 1 && ids[1] == bos_) ids.erase(ids.begin());  // a chat template has already put it there
  if (options.add_eos && eos_ >= 0) ids.push_back(eos_);
  return std::move(ids);
}

void Tokenizer::encode_word(std::string_view word, std::vector<int32_t>& ids) const {
  if (ignore_merges_) {
    if (const int32_t whole = find_normal(word); whole >= 0) return ids.push_back(whole);
  }
  const size_t from = ids.size();
  bool fuse = false;
  for (char c : word) {
    const int32_t id = byte_ids_[uint8_t(c)];
    if (id >= 0)
      ids.push_back(id);
    else if (missing_ >= 0 && !fuse)
      ids.push_back(missing_);
    fuse = id < 0 && fuse_missing_;
  }
  merges_.apply(ids, from);
}

std::string_view Tokenizer::piece(int32_t id) const {
  if (id < 0 || id >= size()) return {};
  return std::string_view(bytes_).substr(offsets_[size_t(id)], offsets_[size_t(id) + 1] - offsets_[size_t(id)]);
}

std::string Tokenizer::decode(std::span<const int32_t> ids, bool show_control) const {
  std::string raw, text;
  for (int32_t id : ids) {
    if (show_control || !is_control(id)) raw += piece(id);
  }
  append_repaired(raw, true, text);
  return text;
}

size_t Tokenizer::slot_of(std::string_view bytes) const {
  const size_t mask = normal_.size() - 1;
  size_t i = size_t(hash_bytes(bytes)) & mask;
  while (normal_[i] >= 0 && piece(normal_[i]) != bytes) i = (i + 1) & mask;
  return i;
}

int32_t Tokenizer::find_normal(std::string_view bytes) const { return normal_[slot_of(bytes)]; }

std::optional<int32_t> Tokenizer::find(std::string_view bytes) const {
  if (const AddedToken* token = raw_added_.find(bytes)) return token->id;
  if (const AddedToken* token = normalized_added_.find(bytes)) return token->id;
  const int32_t id = find_normal(bytes);
  return id >= 0 ? std::optional(id) : std::nullopt;
}

bool Tokenizer::is_control(int32_t id) const {
  if (id < 0 || id >= size()) return false;
  return types_[size_t(id)] == TokenType::control || types_[size_t(id)] == TokenType::unknown;
}

bool Tokenizer::is_end(int32_t id) const { return std::binary_search(end_ids_.begin(), end_ids_.end(), id); }

std::string Detokenizer::push(int32_t id) {
  std::string text;
  if (!show_control_ && tokenizer_->is_control(id)) return text;
  pending_ += tokenizer_->piece(id);
  pending_.erase(0, append_repaired(pending_, false, text));
  return text;
}

std::string Detokenizer::flush() {
  std::string text;
  append_repaired(pending_, true, text);
  pending_.clear();
  return text;
}

}  // namespace ridge
