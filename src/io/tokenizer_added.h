// Added tokens: texts such as <|im_start|> that are found in the input before anything else happens to it.
//
// Matches are leftmost, then longest, and do not overlap. Tokens are kept sorted, so a position narrows a range of them byte by byte:
// no trie, cost per position = length of the match x log(tokens), and positions whose first byte starts no token cost one table look-up.
#pragma once
#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace ridge {

struct AddedToken {
  int32_t id = -1;
  std::string text;
  bool special = false;
  bool normalized = false;   // looked for in normalised text
  bool lstrip = false;       // takes white space on its left
  bool rstrip = false;       // and on its right
  bool single_word = false;  // only between characters that are not part of words
};

class AddedTokens {
 public:
  AddedTokens() = default;
  static Result<AddedTokens> make(std::vector<AddedToken> tokens);
  struct Accept {
    bool special, user_defined;
  };
  // Calls on_text for what lies between accepted tokens (never empty) and on_token for them, in order. A match that is not accepted is
  // text as a whole: shorter tokens inside it are not looked for.
  void split(std::string_view text, Accept accept, const std::function<void(std::string_view)>& on_text,
             const std::function<void(int32_t)>& on_token) const;
  const std::vector<AddedToken>& list() const { return tokens_; }  // sorted by text
  const AddedToken* find(std::string_view text) const;

 private:
  const AddedToken* longest_at(std::string_view text) const;  // that text begins with
  std::vector<AddedToken> tokens_;
  std::array<bool, 256> starts_{};
};

}  // namespace ridge
