#include "io/pretokenizer_regex.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <fmt/core.h>
#include <pcre2.h>

#include <algorithm>
#include <cstdint>
#include <optional>

#include "base/check.h"
#include "base/log.h"
#include "io/unicode.h"

namespace ridge {
namespace {

constexpr size_t kMaxPattern = 16 << 10;
constexpr uint32_t kDepthLimit = 10'000, kHeapLimitKiB = 32 << 10;

// Steps of one match: enough to backtrack over all of the text several times (\s*[\r\n]+ does it once on a megabyte of spaces), far too
// few for a pattern that is exponential.
uint32_t match_limit(size_t text_bytes) { return uint32_t(std::min<size_t>(100'000 + 16 * text_bytes, UINT32_MAX)); }

Status refuse(std::string_view pattern, std::string_view why) {
  return unloadable(fmt::format("the pre-tokenizer's regular expression '{:.80}' {}", pattern, why));
}

// What an escaped letter of Oniguruma's is called in PCRE2; nothing when the two agree.
std::optional<std::string_view> translate(char letter, bool in_class) {
  switch (letter) {
    case 's': return R"(\p{White_Space})";  // PCRE2's own \s also takes U+180E
    case 'S': return R"(\P{White_Space})";
    case 'd': return R"(\p{Nd})";
    case 'D': return R"(\P{Nd})";
    case 'w': return in_class ? R"(\p{Alphabetic}\p{M}\p{Nd}\p{Pc})" : R"([\p{Alphabetic}\p{M}\p{Nd}\p{Pc}])";
    case 'W': return R"([^\p{Alphabetic}\p{M}\p{Nd}\p{Pc}])";
    default: return std::nullopt;
  }
}

Result<std::string> to_pcre2(std::string_view pattern) {
  std::string out;
  bool in_class = false;
  size_t class_start = 0;
  for (size_t i = 0; i < pattern.size(); ++i) {
    const char c = pattern[i];
    if (c == '\\') {
      if (++i == pattern.size()) return refuse(pattern, "ends with a backslash");
      const char letter = pattern[i];
      if (letter == 'h' || letter == 'H') return refuse(pattern, "uses \\h, which means different things to different engines");
      if (letter == 'W' && in_class) return refuse(pattern, "uses \\W inside a class, which is not supported");
      if (const auto translated = translate(letter, in_class))
        out += *translated;
      else
        out += {'\\', letter};
      continue;
    }
    if (in_class) {
      if (c == '&' && pattern.substr(i, 2) == "&&") return refuse(pattern, "intersects classes with &&, which is not supported");
      if (c == '[') return refuse(pattern, "nests a class in a class, which is not supported");
      if (c == ']' && i > class_start) in_class = false;
    } else if (c == '[') {
      in_class = true;
      const bool negated = pattern.substr(i + 1, 1) == "^";
      class_start = i + (negated ? 2 : 1);
    }
    out += c;
  }
  return out;
}

// What matching needs besides the pattern; one per thread, shared by all patterns.
struct Scratch {
  Scratch() : match(pcre2_match_data_create(1, nullptr)), context(pcre2_match_context_create(nullptr)) {
    stack = pcre2_jit_stack_create(32 << 10, 4 << 20, nullptr);
    RIDGE_CHECK(match && context && stack, "out of memory for PCRE2's match data");
    pcre2_set_depth_limit(context, kDepthLimit);
    pcre2_set_heap_limit(context, kHeapLimitKiB);
    pcre2_jit_stack_assign(context, nullptr, stack);
  }
  ~Scratch() {
    pcre2_jit_stack_free(stack);
    pcre2_match_context_free(context);
    pcre2_match_data_free(match);
  }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  pcre2_match_data* match;
  pcre2_match_context* context;
  pcre2_jit_stack* stack;
};

Scratch& scratch() {
  thread_local Scratch one;
  return one;
}

}  // namespace

Result<PretokenizerRegex> PretokenizerRegex::compile(std::string_view pattern) {
  if (pattern.size() > kMaxPattern)
    return refuse(pattern, fmt::format("is {} bytes long; at most {} are read", pattern.size(), kMaxPattern));
  if (!is_valid_utf8(pattern)) return unloadable("the pre-tokenizer's regular expression is not valid UTF-8");
  Result<std::string> translated = to_pcre2(pattern);
  if (!translated) return translated.status();
  int error = 0;
  size_t where = 0;
  // \C would split characters; ^ and $ are per line in Oniguruma's Ruby dialect.
  const uint32_t options = PCRE2_UTF | PCRE2_UCP | PCRE2_NEVER_BACKSLASH_C | PCRE2_MULTILINE;
  std::unique_ptr<pcre2_compile_context, void (*)(pcre2_compile_context*)> context(pcre2_compile_context_create(nullptr),
                                                                                   pcre2_compile_context_free);
  RIDGE_CHECK(context != nullptr, "out of memory for PCRE2's compile context");
  pcre2_set_parens_nest_limit(context.get(), 64);
  pcre2_code* code =
      pcre2_compile(reinterpret_cast<PCRE2_SPTR>(translated->data()), translated->size(), options, &error, &where, context.get());
  if (!code) {
    PCRE2_UCHAR message[160];
    pcre2_get_error_message(error, message, sizeof(message));
    return refuse(pattern, fmt::format("does not compile: {}", reinterpret_cast<const char*>(message)));
  }
  PretokenizerRegex made;
  made.code_.reset(code, pcre2_code_free);
  made.pattern_ = pattern;
  pcre2_jit_compile(code, PCRE2_JIT_COMPLETE);  // where there is no JIT the interpreter runs, with the same limits
  return made;
}

void PretokenizerRegex::split(std::string_view text, const std::function<void(std::string_view, bool)>& each) const {
  Scratch& use = scratch();
  pcre2_set_match_limit(use.context, match_limit(text.size()));
  const auto* subject = reinterpret_cast<PCRE2_SPTR>(text.data());
  const auto gap = [&](size_t begin, size_t end) {
    if (begin < end) each(text.substr(begin, end - begin), false);
  };
  size_t done = 0;  // everything before is emitted
  for (size_t at = 0; at < text.size();) {
    const int rc = pcre2_match(code_.get(), subject, text.size(), at, PCRE2_NO_UTF_CHECK, use.match, use.context);
    if (rc == PCRE2_ERROR_NOMATCH) break;
    if (rc < 0) {
      log_warn(
          "the pre-tokenizer's regular expression '{:.80}' exceeds its limits on this text (PCRE2 error {}): the rest is one "
          "piece",
          pattern_, rc);
      break;
    }
    const size_t* span = pcre2_get_ovector_pointer(use.match);
    const size_t begin = span[0], end = span[1];
    // \K can move a match's start before where the search began, or beyond its end.
    if (begin < done || end < begin) {
      at += size_t(char_at(text.data() + at).bytes);
      continue;
    }
    gap(done, begin);
    if (begin < end) each(text.substr(begin, end - begin), true);
    done = end;
    // An empty match cuts the text; the search goes on one character later.
    at = end > begin ? end : end < text.size() ? end + size_t(char_at(text.data() + end).bytes) : end;
  }
  gap(done, text.size());
}

}  // namespace ridge
