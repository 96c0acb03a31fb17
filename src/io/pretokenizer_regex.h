// A tokenizer.json regular expression in PCRE2 with its JIT, for patterns without a hand-written matcher.
//
// tokenizer.json patterns are written for Oniguruma. Where the two dialects mean different things by the same text the pattern is
// translated (\s, \d, \w) or refused with a sentence (class intersection, \h, \W in a class): a pattern is never silently misread.
// PCRE2 10.42 knows Unicode 14, so characters of later versions are neither \p{L} nor \p{N} here; the hand-written matchers know 16.
#pragma once
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "base/status.h"

struct pcre2_real_code_8;

namespace ridge {

class PretokenizerRegex {
 public:
  static Result<PretokenizerRegex> compile(std::string_view pattern);
  // Calls each(piece, is_match) for matches and the gaps between them, in order, never empty. When matching exceeds PCRE2's limits
  // (a pattern with catastrophic backtracking) the rest of the text is one gap and a warning is logged.
  void split(std::string_view text, const std::function<void(std::string_view, bool)>& each) const;

 private:
  std::shared_ptr<pcre2_real_code_8> code_;
  std::string pattern_;
};

}  // namespace ridge
