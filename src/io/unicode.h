// UTF-8 and the few Unicode facts that tokenizers need: decoding, repair of broken text, letter/number/space classes, NFC.
//
// Broken UTF-8 is repaired once at the door, by the rule of Python's bytes.decode("utf-8", errors="replace") and of Unicode's
// "maximal subparts": each longest prefix of a well-formed sequence that does not complete becomes one U+FFFD. Everything behind the
// door relies on well-formed text and decodes without checks.
//
// Classes follow Unicode 16 (utf8proc's Unicode 15.0 tables plus the letters and numbers added by 15.1 and 16.0, listed in unicode.cc).
// Not for: grapheme clusters, case mapping, collation, column widths.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

namespace ridge {

enum class CharClass : uint8_t { other, letter, number, space, newline };  // newline: \r and \n only; the rest of \s is space

// Appends the repaired form of `bytes` to `out` and returns how many bytes were consumed: all of them when `last`, otherwise all but
// an incomplete character at the end (at most 3 bytes) that more input could still complete.
size_t append_repaired(std::string_view bytes, bool last, std::string& out);
bool is_valid_utf8(std::string_view bytes);

void append_utf8(uint32_t code_point, std::string& out);

// One character of well-formed text, and the bytes it takes.
struct Char {
  uint32_t code_point;
  int bytes;
};
inline Char char_at(const char* p) {
  const auto byte = [p](int i) { return uint32_t(uint8_t(p[i])); };
  if (byte(0) < 0x80) return {byte(0), 1};
  if (byte(0) < 0xE0) return {(byte(0) & 0x1F) << 6 | (byte(1) & 0x3F), 2};
  if (byte(0) < 0xF0) return {(byte(0) & 0x0F) << 12 | (byte(1) & 0x3F) << 6 | (byte(2) & 0x3F), 3};
  return {(byte(0) & 0x07) << 18 | (byte(1) & 0x3F) << 12 | (byte(2) & 0x3F) << 6 | (byte(3) & 0x3F), 4};
}

CharClass class_of(uint32_t code_point);
bool is_space(uint32_t code_point);      // White_Space
bool is_word_char(uint32_t code_point);  // \w: alphabetic, mark, decimal number, connector, joiner

// `text` in Normalization Form C. Well-formed input; linear but for the sort of each run of combining marks.
std::string nfc(std::string_view text);

}  // namespace ridge
