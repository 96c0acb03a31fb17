// See jinja_lexer.h. Outside tags the lexer looks for the next "{{", "{%" or "{#"; inside it reads Python-like tokens until the
// closing bracket, which only counts while no parenthesis is open.
#include "io/jinja_lexer.h"

#include <algorithm>
#include <string_view>

#include "io/jinja_text.h"

namespace ridge::jinja {
namespace {

using Type = Token::Type;
constexpr size_t npos = string_view::npos;

bool name_start(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || (c & 0x80); }
bool digit(char c) { return c >= '0' && c <= '9'; }
bool name_part(char c) { return name_start(c) || digit(c); }

class Lexer {
 public:
  explicit Lexer(const std::string& source) : s_(source) {}

  std::vector<Token> run() {
    while (at_ < s_.size()) text();
    add(Type::end, s_.size(), "");
    return std::move(tokens_);
  }

 private:
  void add(Type type, size_t offset, std::string text) { tokens_.push_back({type, uint32_t(offset), std::move(text)}); }
  bool at(string_view what, size_t offset) const { return s_.compare(offset, what.size(), what) == 0; }
  size_t after_spaces(size_t offset) const {
    const string_view rest = string_view(s_).substr(std::min(offset, s_.size()));
    return offset + (rest.size() - strip(rest, kLeft).size());
  }
  // Ends the current match; whether it ended a line decides if lstrip_blocks may act on the text that follows.
  void advance(size_t to) {
    line_starting_ = s_[to - 1] == '\n';
    at_ = to;
  }

  void add_data(string_view text, size_t offset, char sign, bool lstrip) {
    if (sign == '-') {
      text = strip(text, kRight);
    } else if (sign != '+' && lstrip) {
      const size_t line = text.rfind('\n') + 1;  // 0 where there is no newline
      if ((line > 0 || line_starting_) && strip(text.substr(line), kLeft).empty()) text = text.substr(0, line);
    }
    if (!text.empty()) add(Type::data, offset, std::string(text));
  }

  void text() {
    size_t tag = at_;
    for (;; ++tag) {
      tag = s_.find('{', tag);
      if (tag == npos || tag + 1 >= s_.size()) {
        add(Type::data, at_, s_.substr(at_));
        at_ = s_.size();
        return;
      }
      if (s_[tag + 1] == '{' || s_[tag + 1] == '%' || s_[tag + 1] == '#') break;
    }
    const char kind = s_[tag + 1], sign = tag + 2 < s_.size() && (s_[tag + 2] == '-' || s_[tag + 2] == '+') ? s_[tag + 2] : 0;
    add_data(string_view(s_).substr(at_, tag - at_), at_, sign, kind != '{');
    const size_t inside = tag + 2 + (sign ? 1 : 0);
    if (kind == '#') return comment(tag, inside);
    if (kind == '%' && raw(inside)) return;
    add(kind == '{' ? Type::variable_begin : Type::block_begin, tag, "");
    advance(inside);
    for (at_ = after_spaces(at_); !tag_end(kind == '{'); at_ = after_spaces(at_)) token(tag);
  }

  // The closing "%}" or "#}" at `offset`, with its sign: where the text after it begins. npos where it is not there.
  size_t closing(size_t offset, char bracket) const {
    const char plain[] = {bracket, '}', 0}, minus[] = {'-', bracket, '}', 0}, plus[] = {'+', bracket, '}', 0};
    if (at(minus, offset)) return after_spaces(offset + 3);
    if (at(plus, offset)) return offset + 3;
    if (at(plain, offset)) return offset + 2 + (offset + 2 < s_.size() && s_[offset + 2] == '\n' ? 1 : 0);
    return npos;
  }

  void comment(size_t tag, size_t inside) {
    for (size_t end = inside; end < s_.size(); ++end)
      if (const size_t next = closing(end, '#'); next != npos) return advance(next);
    throw SyntaxError{"this comment is never closed with '#}'", tag};
  }

  bool raw(size_t inside) {
    const size_t word = after_spaces(inside);
    if (!at("raw", word)) return false;
    const size_t bracket = after_spaces(word + 3);
    if (!at("%}", bracket) && !at("-%}", bracket)) return false;
    const size_t body = at("-%}", bracket) ? after_spaces(bracket + 3) : bracket + 2;
    advance(body);
    for (size_t tag = s_.find("{%", body); tag != npos; tag = s_.find("{%", tag + 1)) {
      const char sign = tag + 2 < s_.size() && (s_[tag + 2] == '-' || s_[tag + 2] == '+') ? s_[tag + 2] : 0;
      const size_t end = after_spaces(tag + 2 + (sign ? 1 : 0));
      if (!at("endraw", end)) continue;
      const size_t next = closing(after_spaces(end + 6), '%');
      if (next == npos) continue;
      add_data(string_view(s_).substr(body, tag - body), body, sign, true);
      advance(next);
      return true;
    }
    throw SyntaxError{"this raw block is never closed with '{% endraw %}'", inside};
  }

  bool tag_end(bool variable) {
    if (!open_.empty()) return false;
    size_t next = npos;
    if (!variable)
      next = closing(at_, '%');
    else if (at("-}}", at_))
      next = after_spaces(at_ + 3);
    else if (at("}}", at_))
      next = at_ + 2;
    if (next == npos) return false;
    add(variable ? Type::variable_end : Type::block_end, at_, "");
    advance(next);
    return true;
  }

  void token(size_t tag) {
    if (at_ >= s_.size()) throw SyntaxError{"this tag is never closed", tag};
    const char c = s_[at_];
    if (digit(c)) return number();
    if (c == '\'' || c == '"') return string();
    if (name_start(c)) {
      const size_t from = at_;
      while (at_ < s_.size() && name_part(s_[at_])) ++at_;
      return add(Type::name, from, s_.substr(from, at_ - from));
    }
    operation();
  }

  void operation() {
    static constexpr string_view operators[] = {"//", "**", "==", "!=", ">=", "<="};
    size_t length = 1;
    for (const string_view op : operators)
      if (at(op, at_)) length = 2;
    const char c = s_[at_];
    if (length == 1 && string_view("+-/*%~[](){}><=.:|,;").find(c) == npos)
      throw SyntaxError{"unexpected character " + quoted(string_view(&s_[at_], 1)), at_};
    if (c == '(' || c == '[' || c == '{') open_ += c == '(' ? ')' : c == '[' ? ']' : '}';
    if (c == ')' || c == ']' || c == '}') {
      if (open_.empty()) throw SyntaxError{std::string("unexpected '") + c + "'", at_};
      if (open_.back() != c) throw SyntaxError{std::string("unexpected '") + c + "', expected '" + open_.back() + "'", at_};
      open_.pop_back();
    }
    add(Type::op, at_, s_.substr(at_, length));
    at_ += length;
  }

  // Digits with single underscores between them, from `at`; where they end.
  size_t digits(size_t at) const {
    while (at < s_.size() && (digit(s_[at]) || (s_[at] == '_' && at + 1 < s_.size() && digit(s_[at + 1])))) ++at;
    return at;
  }

  void number() {
    const size_t from = at_;
    size_t end = digits(from);
    bool real = false;
    if (from == 0 || s_[from - 1] != '.') {  // "x.0.1" is two subscripts, not a fraction
      if (end + 1 < s_.size() && s_[end] == '.' && digit(s_[end + 1])) end = digits(end + 1), real = true;
      size_t exponent = end + 1;
      if (end < s_.size() && (s_[end] == 'e' || s_[end] == 'E')) {
        if (exponent < s_.size() && (s_[exponent] == '+' || s_[exponent] == '-')) ++exponent;
        if (exponent < s_.size() && digit(s_[exponent])) end = digits(exponent), real = true;
      }
    }
    if (!real) end = integer_end(from);
    std::string text = s_.substr(from, end - from);
    text.erase(std::remove(text.begin(), text.end(), '_'), text.end());
    add(real ? Type::real : Type::integer, from, std::move(text));
    at_ = end;
  }

  size_t integer_end(size_t from) const {
    const char base = s_[from] == '0' && from + 1 < s_.size() ? char(s_[from + 1] | 0x20) : 0;
    const string_view allowed = base == 'b' ? "01" : base == 'o' ? "01234567" : base == 'x' ? "0123456789abcdefABCDEF" : "";
    size_t end = from + 2;
    const auto good = [&](size_t i) { return i < s_.size() && allowed.find(s_[i]) != npos; };
    if (!allowed.empty() && (good(end) || (end < s_.size() && s_[end] == '_' && good(end + 1)))) {
      while (good(end) || (end < s_.size() && s_[end] == '_' && good(end + 1))) ++end;
      return end;
    }
    if (s_[from] != '0') return digits(from);
    end = from + 1;  // zeros only: "012" is not a number
    while (end < s_.size() && (s_[end] == '0' || (s_[end] == '_' && end + 1 < s_.size() && s_[end + 1] == '0'))) ++end;
    return end;
  }

  void string() {
    const size_t from = at_;
    const char quote = s_[at_++];
    std::string value;
    while (at_ < s_.size() && s_[at_] != quote) {
      if (s_[at_] == '\\')
        escape(value);
      else
        value += s_[at_++];
    }
    if (at_ >= s_.size()) throw SyntaxError{"this string is never closed", from};
    ++at_;
    add(Type::string, from, std::move(value));
  }

  void escape(std::string& value) {
    const size_t from = at_++;
    if (at_ >= s_.size()) return;
    const char c = s_[at_++];
    static constexpr string_view letters = "nrtabfv\\'\"", meanings = "\n\r\t\a\b\f\v\\'\"";
    if (c == '\n') return;  // a continued line
    if (const size_t i = letters.find(c); i != npos) {
      value += meanings[i];
    } else if (c >= '0' && c <= '7') {
      uint32_t code = uint32_t(c - '0');
      for (int i = 0; i < 2 && at_ < s_.size() && s_[at_] >= '0' && s_[at_] <= '7'; ++i)
        code = code * 8 + uint32_t(s_[at_++] - '0');
      append_point(value, code);
    } else if (c == 'x' || c == 'u' || c == 'U') {
      append_point(value, hex(c == 'x' ? 2 : c == 'u' ? 4 : 8, from));
    } else if (c == 'N') {
      throw SyntaxError{"named characters (\\N{...}) are not supported: write the character itself", from};
    } else {
      value += {'\\', c};  // Python keeps what it does not know
    }
  }

  uint32_t hex(int width, size_t from) {
    uint32_t code = 0;
    for (int i = 0; i < width; ++i, ++at_) {
      const char c = at_ < s_.size() ? s_[at_] : 0;
      const int value = digit(c) ? c - '0' : (c | 0x20) >= 'a' && (c | 0x20) <= 'f' ? (c | 0x20) - 'a' + 10 : -1;
      if (value < 0) throw SyntaxError{"this escape needs " + std::to_string(width) + " hexadecimal digits", from};
      code = code << 4 | uint32_t(value);
    }
    if (code > 0x10ffff || (code >= 0xd800 && code < 0xe000)) throw SyntaxError{"this escape is not a Unicode character", from};
    return code;
  }

  const std::string& s_;
  size_t at_ = 0;
  bool line_starting_ = true;
  std::string open_;  // the closing brackets still awaited
  std::vector<Token> tokens_;
};

}  // namespace

std::string normalised(std::string_view source) {
  std::string out;
  out.reserve(source.size());
  for (size_t i = 0; i < source.size(); ++i) {
    if (source[i] == '\r') {
      out += '\n';
      if (i + 1 < source.size() && source[i + 1] == '\n') ++i;
    } else {
      out += source[i];
    }
  }
  if (!out.empty() && out.back() == '\n') out.pop_back();
  return out;
}

std::vector<Token> tokenize(const std::string& source) { return Lexer(source).run(); }

}  // namespace ridge::jinja
