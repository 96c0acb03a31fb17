#include "io/unicode.h"

#include <utf8proc.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <vector>

#include "base/check.h"

namespace ridge {
namespace {

struct Range {
  uint32_t first, last;
};

// Letters and numbers of Unicode 15.1 and 16.0 that utf8proc 2.8 (15.0) calls unassigned. The `tokenizers` library (0.23) knows them.
constexpr Range kNewLetters[] = {
    {0x1C89, 0x1C8A},   {0xA7CB, 0xA7CD},   {0xA7DA, 0xA7DC},   {0x105C0, 0x105F3}, {0x10D4A, 0x10D65}, {0x10D6F, 0x10D85},
    {0x10EC2, 0x10EC4}, {0x11380, 0x11389}, {0x1138B, 0x1138B}, {0x1138E, 0x1138E}, {0x11390, 0x113B5}, {0x113B7, 0x113B7},
    {0x113D1, 0x113D1}, {0x113D3, 0x113D3}, {0x11BC0, 0x11BE0}, {0x13460, 0x143FA}, {0x16100, 0x1611D}, {0x16D40, 0x16D6C},
    {0x18CFF, 0x18CFF}, {0x1E5D0, 0x1E5ED}, {0x1E5F0, 0x1E5F0}, {0x2EBF0, 0x2EE5D}};
constexpr Range kNewNumbers[] = {{0x10D40, 0x10D49}, {0x116D0, 0x116E3}, {0x11BF0, 0x11BF9}, {0x16130, 0x16139},
                                 {0x16D70, 0x16D79}, {0x1CCF0, 0x1CCF9}, {0x1E5F1, 0x1E5FA}};
// Symbols that are Alphabetic without being letters: circled and squared Latin.
constexpr Range kAlphabeticSymbols[] = {{0x24B6, 0x24E9}, {0x1F130, 0x1F149}, {0x1F150, 0x1F169}, {0x1F170, 0x1F189}};

template <size_t n>
bool contains(const Range (&ranges)[n], uint32_t c) {
  const Range* after = std::upper_bound(ranges, ranges + n, c, [](uint32_t c, const Range& r) { return c < r.first; });
  return after != ranges && c <= after[-1].last;
}

// Length of the well-formed character at p, or minus the length of its maximal subpart; 0 when the bytes end inside it.
int measure(const uint8_t* p, size_t n) {
  const uint8_t lead = p[0];
  if (lead < 0x80) return 1;
  if (lead < 0xC2 || lead > 0xF4) return -1;
  const int length = lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
  // The second byte's range excludes overlong forms, surrogates and what lies beyond U+10FFFF.
  const uint8_t low = lead == 0xE0 ? 0xA0 : lead == 0xF0 ? 0x90 : 0x80;
  const uint8_t high = lead == 0xED ? 0x9F : lead == 0xF4 ? 0x8F : 0xBF;
  for (int i = 1; i < length; ++i) {
    if (size_t(i) >= n) return 0;
    if (p[i] < (i == 1 ? low : 0x80) || p[i] > (i == 1 ? high : 0xBF)) return -i;
  }
  return length;
}

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";

}  // namespace

size_t append_repaired(std::string_view bytes, bool last, std::string& out) {
  const auto* p = reinterpret_cast<const uint8_t*>(bytes.data());
  size_t at = 0, copied = 0;
  const auto copy_until = [&](size_t end) { out.append(bytes.substr(copied, end - copied)); };
  while (at < bytes.size()) {
    const int length = measure(p + at, bytes.size() - at);
    if (length > 0) {
      at += size_t(length);
      continue;
    }
    copy_until(at);
    if (length == 0) {
      if (!last) return at;
      out.append(kReplacement);
      return bytes.size();
    }
    out.append(kReplacement);
    at += size_t(-length);
    copied = at;
  }
  copy_until(at);
  return at;
}

bool is_valid_utf8(std::string_view bytes) {
  const auto* p = reinterpret_cast<const uint8_t*>(bytes.data());
  for (size_t at = 0; at < bytes.size();) {
    const int length = measure(p + at, bytes.size() - at);
    if (length <= 0) return false;
    at += size_t(length);
  }
  return true;
}

void append_utf8(uint32_t c, std::string& out) {
  const auto tail = [c](int shift) { return char(0x80 | (c >> shift & 0x3F)); };
  if (c < 0x80)
    out += char(c);
  else if (c < 0x800)
    out += {char(0xC0 | c >> 6), tail(0)};
  else if (c < 0x10000)
    out += {char(0xE0 | c >> 12), tail(6), tail(0)};
  else
    out += {char(0xF0 | c >> 18), tail(12), tail(6), tail(0)};
}

bool is_space(uint32_t c) {
  if (c < 0x1680) return c == ' ' || (c >= 0x09 && c <= 0x0D) || c == 0x85 || c == 0xA0;
  return c == 0x1680 || (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 || c == 0x202F || c == 0x205F || c == 0x3000;
}

CharClass class_of(uint32_t c) {
  if (is_space(c)) return c == '\n' || c == '\r' ? CharClass::newline : CharClass::space;
  switch (utf8proc_category(utf8proc_int32_t(c))) {
    case UTF8PROC_CATEGORY_LU:
    case UTF8PROC_CATEGORY_LL:
    case UTF8PROC_CATEGORY_LT:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_LO: return CharClass::letter;
    case UTF8PROC_CATEGORY_ND:
    case UTF8PROC_CATEGORY_NL:
    case UTF8PROC_CATEGORY_NO: return CharClass::number;
    case UTF8PROC_CATEGORY_CN:
      return contains(kNewLetters, c) ? CharClass::letter : contains(kNewNumbers, c) ? CharClass::number : CharClass::other;
    default: return CharClass::other;
  }
}

bool is_word_char(uint32_t c) {
  switch (utf8proc_category(utf8proc_int32_t(c))) {
    case UTF8PROC_CATEGORY_MN:
    case UTF8PROC_CATEGORY_MC:
    case UTF8PROC_CATEGORY_ME:
    case UTF8PROC_CATEGORY_PC: return true;
    case UTF8PROC_CATEGORY_NO: return false;
    case UTF8PROC_CATEGORY_SO: return contains(kAlphabeticSymbols, c);
    case UTF8PROC_CATEGORY_CF: return c == 0x200C || c == 0x200D;
    default: return class_of(c) == CharClass::letter || class_of(c) == CharClass::number;
  }
}

std::string nfc(std::string_view text) {
  // Below U+0300 nothing composes and nothing reorders.
  const bool inert = std::none_of(text.begin(), text.end(), [](char c) { return uint8_t(c) >= 0xCC; });
  if (inert) return std::string(text);
  constexpr auto options = utf8proc_option_t(UTF8PROC_STABLE | UTF8PROC_COMPOSE);
  std::vector<utf8proc_int32_t> points;
  points.reserve(text.size());
  for (size_t at = 0; at < text.size();) {
    const Char c = char_at(text.data() + at);
    at += size_t(c.bytes);
    std::array<utf8proc_int32_t, 8> parts;  // the longest canonical decomposition has 4
    int boundary = 0;
    const auto n = utf8proc_decompose_char(utf8proc_int32_t(c.code_point), parts.data(), parts.size(), options, &boundary);
    RIDGE_CHECK(n >= 0 && size_t(n) <= parts.size(), "canonical decomposition longer than its buffer");
    points.insert(points.end(), parts.begin(), parts.begin() + n);
  }
  // Canonical order. utf8proc_decompose's own ordering is quadratic in the run of marks, which a prompt can make a megabyte long.
  const auto rank = [](utf8proc_int32_t c) { return utf8proc_get_property(c)->combining_class; };
  std::vector<uint64_t> keys;
  for (size_t i = 0; i < points.size();) {
    if (rank(points[i]) == 0) {
      ++i;
      continue;
    }
    size_t end = i;
    while (end < points.size() && rank(points[end]) != 0) ++end;
    // Equal classes keep their order: the key is class, place, character. (std::stable_sort of this libstdc++ is deprecated code to clang.)
    keys.clear();
    for (size_t k = i; k < end; ++k)
      keys.push_back(uint64_t(rank(points[k])) << 53 | uint64_t(k - i) << 21 | uint64_t(points[k]));
    std::sort(keys.begin(), keys.end());
    for (size_t k = i; k < end; ++k) points[k] = utf8proc_int32_t(keys[k - i] & 0x1FFFFF);
    i = end;
  }
  const auto n = utf8proc_normalize_utf32(points.data(), utf8proc_ssize_t(points.size()), options);
  RIDGE_CHECK(n >= 0, "utf8proc refused to compose well-formed text");
  std::string out;
  out.reserve(text.size());
  for (utf8proc_ssize_t i = 0; i < n; ++i) append_utf8(uint32_t(points[size_t(i)]), out);
  return out;
}

}  // namespace ridge
