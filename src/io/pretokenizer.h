// Cuts text into the pieces inside which BPE may merge. A pre-tokenizer is a list of rules, each applied to the pieces of the one before.
//
// The patterns that most byte-level models use (GPT-2, Llama-3, Qwen2) are hand-written matchers of one pass and no backtracking; any
// other regular expression of a tokenizer.json runs in PCRE2 (pretokenizer_regex.h). All input is well-formed UTF-8.
// Not for: added tokens such as <|im_end|>, which the tokenizer cuts out before.
#pragma once
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace ridge {

class PretokenizerRegex;

struct SplitRule {
  enum class Kind {
    gpt2,          // 's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
    llama3,        // (?i:'s|'t|...)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+
    qwen2,         // the same with \p{N} for \p{N}{1,3}
    digits,        // every number character alone
    digit_runs,    // runs of number characters
    regex,         // matches of `pattern`, and the text between them
    prefix_space,  // a space before each piece that does not start with one; `keep` is ignored
  };
  enum class Keep { all, matches, gaps };
  Kind kind = Kind::gpt2;
  std::string pattern;    // regex only
  Keep keep = Keep::all;  // which part of the text a regex rule passes on
};

// What a GGUF file's `tokenizer.ggml.pre` name stands for.
struct NamedPretokenizer {
  std::vector<SplitRule> rules;
  bool ignore_merges = false;  // a piece that is a token is that token
  bool add_bos = false;        // when the file does not say
  bool nfc = false;            // the text is normalised first
};
Result<NamedPretokenizer> named_pretokenizer(std::string_view name);

// The rule for a regular expression: a hand-written matcher when the text of the pattern is one we know.
SplitRule rule_of_pattern(std::string pattern);
std::string_view pattern_of(SplitRule::Kind kind);  // of the three hand-written matchers

class Pretokenizer {
 public:
  using Emit = std::function<void(std::string_view piece)>;
  static Result<Pretokenizer> make(std::vector<SplitRule> rules);
  // Calls `emit` for each piece, in order; pieces are never empty.
  void split(std::string_view text, const Emit& emit) const;
  // True when pieces are parts of the text given to split, not of a temporary.
  bool pieces_outlive_split() const { return !prefixes_; }

 private:
  struct Stage {
    SplitRule rule;
    std::shared_ptr<const PretokenizerRegex> regex;
  };
  void run(size_t stage, std::string_view text, const Emit& emit) const;
  std::vector<Stage> stages_;
  bool prefixes_ = false;
};

}  // namespace ridge
