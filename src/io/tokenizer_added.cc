#include "io/tokenizer_added.h"

#include <fmt/core.h>

#include <algorithm>

#include "io/unicode.h"

namespace ridge {
namespace {

// Longer ones would let a text of their prefixes cost length x length.
constexpr size_t kMaxText = 512;

// The character that ends where `text` ends.
Char char_before(std::string_view text) {
  size_t at = text.size() - 1;
  while (at > 0 && (uint8_t(text[at]) & 0xC0) == 0x80) --at;
  return char_at(text.data() + at);
}

size_t spaces_at_end(std::string_view text) {
  size_t n = 0;
  while (n < text.size()) {
    const Char c = char_before(text.substr(0, text.size() - n));
    if (!is_space(c.code_point)) break;
    n += size_t(c.bytes);
  }
  return n;
}

size_t spaces_at_start(std::string_view text) {
  size_t n = 0;
  while (n < text.size()) {
    const Char c = char_at(text.data() + n);
    if (!is_space(c.code_point)) break;
    n += size_t(c.bytes);
  }
  return n;
}

bool alone(std::string_view text, size_t begin, size_t end) {
  return (begin == 0 || !is_word_char(char_before(text.substr(0, begin)).code_point)) &&
         (end == text.size() || !is_word_char(char_at(text.data() + end).code_point));
}

}  // namespace

Result<AddedTokens> AddedTokens::make(std::vector<AddedToken> tokens) {
  std::erase_if(tokens, [](const AddedToken& t) { return t.text.empty(); });
  std::sort(tokens.begin(), tokens.end(), [](const AddedToken& a, const AddedToken& b) { return a.text < b.text; });
  AddedTokens made;
  for (size_t i = 0; i < tokens.size(); ++i) {
    const AddedToken& t = tokens[i];
    if (t.text.size() > kMaxText) {
      return unloadable(fmt::format("the added token {} is {} bytes long; at most {} are read", t.id, t.text.size(), kMaxText));
    }
    if (!is_valid_utf8(t.text)) return unloadable(fmt::format("the text of the added token {} is not valid UTF-8", t.id));
    if (i > 0 && tokens[i - 1].text == t.text) {
      return unloadable(fmt::format("the added token '{}' has two ids, {} and {}", t.text, tokens[i - 1].id, t.id));
    }
    made.starts_[uint8_t(t.text[0])] = true;
  }
  made.tokens_ = std::move(tokens);
  return made;
}

const AddedToken* AddedTokens::find(std::string_view text) const {
  const auto at =
      std::lower_bound(tokens_.begin(), tokens_.end(), text, [](const AddedToken& t, std::string_view s) { return t.text < s; });
  return at != tokens_.end() && at->text == text ? &*at : nullptr;
}

const AddedToken* AddedTokens::longest_at(std::string_view text) const {
  const AddedToken* found = nullptr;
  auto low = tokens_.begin(), high = tokens_.end();
  // Invariant: [low, high) are the tokens that share their first `depth` bytes with the text.
  for (size_t depth = 0; low < high; ++depth) {
    if (low->text.size() == depth && depth > 0) found = &*low++;
    if (depth == text.size()) break;
    const auto byte_of = [depth](const AddedToken& t) { return uint8_t(t.text[depth]); };
    const uint8_t byte = uint8_t(text[depth]);
    low = std::partition_point(low, high, [&](const AddedToken& t) { return byte_of(t) < byte; });
    high = std::partition_point(low, high, [&](const AddedToken& t) { return byte_of(t) == byte; });
  }
  return found;
}

void AddedTokens::split(std::string_view text, Accept accept, const std::function<void(std::string_view)>& on_text,
                        const std::function<void(int32_t)>& on_token) const {
  size_t done = 0;
  for (size_t at = 0; at < text.size() && !tokens_.empty();) {
    const AddedToken* token = starts_[uint8_t(text[at])] ? longest_at(text.substr(at)) : nullptr;
    if (!token) {
      ++at;
      continue;
    }
    size_t begin = at, end = at + token->text.size();
    at = end;
    if (!(token->special ? accept.special : accept.user_defined)) continue;
    if (token->single_word && !alone(text, begin, end)) continue;
    if (token->lstrip && begin > done) begin -= std::min(spaces_at_end(text.substr(done, begin - done)), begin - done);
    if (token->rstrip) end += spaces_at_start(text.substr(end));
    if (done < begin) on_text(text.substr(done, begin - done));
    on_token(token->id);
    done = end;
  }
  if (done < text.size()) on_text(text.substr(done));
}

}  // namespace ridge
