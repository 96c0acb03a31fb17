#include "io/pretokenizer.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <span>
#include <utility>

#include "base/check.h"
#include "io/pretokenizer_regex.h"
#include "io/unicode.h"

namespace ridge {
namespace {

using Kind = SplitRule::Kind;

constexpr std::string_view kGpt2 = R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";
constexpr std::string_view kLlama3 =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr std::string_view kQwen2 =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";

constexpr size_t kMaxRules = 16;

const std::array<CharClass, 128> kAscii = [] {
  std::array<CharClass, 128> classes;
  for (uint32_t c = 0; c < 128; ++c) classes[c] = class_of(c);
  return classes;
}();

struct Classified {
  CharClass kind;
  int bytes;
};
inline Classified classify(const char* p) {
  if (uint8_t(*p) < 0x80) return {kAscii[uint8_t(*p)], 1};
  const Char c = char_at(p);
  return {class_of(c.code_point), c.bytes};
}

bool blank(CharClass c) { return c == CharClass::space || c == CharClass::newline; }

const char* run_of(CharClass kind, const char* p, const char* end) {
  while (p < end) {
    const Classified c = classify(p);
    if (c.kind != kind) break;
    p += c.bytes;
  }
  return p;
}

// 's 't 'm 'd 're 've 'll at p, which holds the apostrophe. With `fold` in any case, and U+017F (long s) is an s as well.
const char* contraction_end(const char* p, const char* end, bool fold) {
  const auto letter = [&](int i) -> char {
    if (p + i >= end) return 0;
    return fold && p[i] >= 'A' && p[i] <= 'Z' ? char(p[i] | 0x20) : p[i];
  };
  const char a = letter(1), b = letter(2);
  if (a == 's' || a == 't' || a == 'm' || a == 'd') return p + 2;
  if ((a == 'r' && b == 'e') || (a == 'v' && b == 'e') || (a == 'l' && b == 'l')) return p + 3;
  if (fold && uint8_t(a) == 0xC5 && uint8_t(b) == 0xBF) return p + 3;
  return nullptr;
}

// \s+(?!\S)|\s+ at a white-space character: the run, less its last character when something follows that could start with it.
// With `lines`, \s*[\r\n]+ goes first: the run up to its last line break.
const char* blank_end(const char* p, const char* end, bool lines) {
  const char* last = p;
  const char* after_line = nullptr;
  const char* q = p;
  while (q < end) {
    const Classified c = classify(q);
    if (!blank(c.kind)) break;
    last = q;
    q += c.bytes;
    if (c.kind == CharClass::newline) after_line = q;
  }
  if (lines && after_line) return after_line;
  return q == end || last == p ? q : last;
}

const char* gpt2_end(const char* p, const char* end) {
  if (*p == '\'') {
    if (const char* q = contraction_end(p, end, false)) return q;
  }
  const char* word = *p == ' ' && p + 1 < end ? p + 1 : p;
  const Classified c = classify(word);
  return blank(c.kind) ? blank_end(p, end, false) : run_of(c.kind, word + c.bytes, end);
}

// Llama-3 and Qwen2, which differ in how many digits stay together.
template <int digits>
const char* llama3_end(const char* p, const char* end) {
  if (*p == '\'') {
    if (const char* q = contraction_end(p, end, true)) return q;
  }
  const Classified first = classify(p);
  const char* second = p + first.bytes;
  if (first.kind == CharClass::letter) return run_of(CharClass::letter, second, end);
  if (first.kind == CharClass::number) {
    for (int i = 1; i < digits && second < end; ++i) {
      const Classified c = classify(second);
      if (c.kind != CharClass::number) break;
      second += c.bytes;
    }
    return second;
  }
  if (first.kind != CharClass::newline && second < end && classify(second).kind == CharClass::letter) {
    return run_of(CharClass::letter, second, end);
  }
  const char* mark = *p == ' ' && second < end ? second : p;
  if (classify(mark).kind != CharClass::other) return blank_end(p, end, true);
  return run_of(CharClass::newline, run_of(CharClass::other, mark, end), end);
}

const char* digits_end(const char* p, const char* end, bool alone) {
  const Classified c = classify(p);
  const char* q = p + c.bytes;
  if (c.kind == CharClass::number) return alone ? q : run_of(CharClass::number, q, end);
  while (q < end) {
    const Classified next = classify(q);
    if (next.kind == CharClass::number) break;
    q += next.bytes;
  }
  return q;
}

// Calls next(p, end), which gives where the piece at p ends, until the text is used up.
template <class Next, class Each>
void cut(std::string_view text, const Next& next, const Each& each) {
  const char* p = text.data();
  const char* end = p + text.size();
  while (p < end) {
    const char* q = next(p, end);
    each(std::string_view(p, size_t(q - p)));
    p = q;
  }
}

struct Alias {
  std::string_view name;
  std::string_view family;
};
// Names that GGUF converters write for models whose pre-tokenizers are one of the four families.
constexpr Alias kAliases[] = {
    {"gpt-2", "gpt-2"},      {"phi-2", "gpt-2"},   {"llama-bpe", "llama3"},    {"llama3", "llama3"},
    {"llama-v3", "llama3"},  {"qwen2", "qwen2"},   {"deepseek-r1-qwen", "r1"}, {"smollm", "smollm"},
    {"starcoder", "smollm"}, {"refact", "smollm"}, {"codeshell", "smollm"},
};

}  // namespace

Result<NamedPretokenizer> named_pretokenizer(std::string_view name) {
  const auto* alias = std::find_if(std::begin(kAliases), std::end(kAliases), [&](const Alias& a) { return a.name == name; });
  if (name.empty()) {
    return unloadable(
        "the model file does not name its pre-tokenizer (tokenizer.ggml.pre); convert the model again with a current converter");
  }
  if (alias == std::end(kAliases)) {
    return unloadable(
        fmt::format("the pre-tokenizer '{}' is not known; known are gpt-2, llama-bpe, qwen2, smollm and their kin", name));
  }
  if (alias->family == "llama3") return NamedPretokenizer{{{Kind::llama3}}, true, true, false};
  if (alias->family == "qwen2") return NamedPretokenizer{{{Kind::qwen2}}, false, false, true};
  if (alias->family == "r1") return NamedPretokenizer{{{Kind::qwen2}}, false, true, false};
  if (alias->family == "smollm") return NamedPretokenizer{{{Kind::digits}, {Kind::gpt2}}, false, false, false};
  return NamedPretokenizer{{{Kind::gpt2}}, false, false, false};
}

std::string_view pattern_of(Kind kind) {
  RIDGE_CHECK(kind == Kind::gpt2 || kind == Kind::llama3 || kind == Kind::qwen2, "only hand-written matchers have a pattern");
  return kind == Kind::gpt2 ? kGpt2 : kind == Kind::llama3 ? kLlama3 : kQwen2;
}

SplitRule rule_of_pattern(std::string pattern) {
  for (Kind kind : {Kind::gpt2, Kind::llama3, Kind::qwen2}) {
    if (pattern == pattern_of(kind)) return {kind};
  }
  return {Kind::regex, std::move(pattern)};
}

Result<Pretokenizer> Pretokenizer::make(std::vector<SplitRule> rules) {
  if (rules.size() > kMaxRules)
    return unloadable(fmt::format("the pre-tokenizer has {} rules; at most {} are read", rules.size(), kMaxRules));
  Pretokenizer made;
  for (SplitRule& rule : rules) {
    Stage stage{std::move(rule), nullptr};
    made.prefixes_ |= stage.rule.kind == Kind::prefix_space;
    if (stage.rule.kind == Kind::regex) {
      Result<PretokenizerRegex> regex = PretokenizerRegex::compile(stage.rule.pattern);
      if (!regex) return regex.status();
      stage.regex = std::make_shared<const PretokenizerRegex>(std::move(*regex));
    }
    made.stages_.push_back(std::move(stage));
  }
  return made;
}

void Pretokenizer::split(std::string_view text, const Emit& emit) const {
  if (!text.empty()) run(0, text, emit);
}

void Pretokenizer::run(size_t stage, std::string_view text, const Emit& emit) const {
  if (stage == stages_.size()) return emit(text);
  const auto pass = [&](std::string_view piece) { stage + 1 == stages_.size() ? emit(piece) : run(stage + 1, piece, emit); };
  const SplitRule& rule = stages_[stage].rule;
  switch (rule.kind) {
    case Kind::gpt2: return cut(text, gpt2_end, pass);
    case Kind::llama3: return cut(text, llama3_end<3>, pass);
    case Kind::qwen2: return cut(text, llama3_end<1>, pass);
    case Kind::digits:
      return cut(
          text, [](const char* p, const char* end) { return digits_end(p, end, true); }, pass);
    case Kind::digit_runs:
      return cut(
          text, [](const char* p, const char* end) { return digits_end(p, end, false); }, pass);
    case Kind::prefix_space: return text.front() == ' ' ? pass(text) : pass(std::string(" ").append(text));
    case Kind::regex:
      return stages_[stage].regex->split(text, [&](std::string_view piece, bool match) {
        if (rule.keep == SplitRule::Keep::all || match == (rule.keep == SplitRule::Keep::matches)) pass(piece);
      });
  }
}

}  // namespace ridge
