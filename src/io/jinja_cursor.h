// The token stream as a recursive-descent parser wants it: look, skip if it matches, expect or fail with a sentence.
#pragma once
#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "io/jinja_lexer.h"

namespace ridge::jinja {

// Where the parser stands among its tokens, and what it may ask about the next ones.
class Cursor {
 public:
  explicit Cursor(const std::string& source) : tokens_(tokenize(source)) {}

  const Token& now() const { return tokens_[at_]; }
  const Token& ahead() const { return tokens_[std::min(at_ + 1, tokens_.size() - 1)]; }
  static bool is_name(const Token& t, std::string_view text) { return t.type == Type::name && t.text == text; }
  static bool is_op(const Token& t, std::string_view text) { return t.type == Type::op && t.text == text; }
  bool skip_name(std::string_view text) { return is_name(now(), text) ? (++at_, true) : false; }
  bool skip_op(std::string_view text) { return is_op(now(), text) ? (++at_, true) : false; }
  [[noreturn]] void fail(std::string sentence) const { fail(std::move(sentence), now().offset); }
  [[noreturn]] static void fail(std::string sentence, size_t offset) { throw SyntaxError{std::move(sentence), offset}; }

  using Type = Token::Type;
  static std::string described(const Token& t) {
    switch (t.type) {
      case Type::end: return "the end of the template";
      case Type::variable_end: return "'}}'";
      case Type::block_end: return "'%}'";
      default: return "'" + t.text + "'";
    }
  }
  void expect_op(std::string_view op) {
    if (!skip_op(op)) fail("expected '" + std::string(op) + "', got " + described(now()));
  }
  void expect_name(std::string_view name) {
    if (!skip_name(name)) fail("expected '" + std::string(name) + "', got " + described(now()));
  }
  void expect(Type type, std::string_view what) {
    if (now().type != type) fail("expected " + std::string(what) + ", got " + described(now()));
    ++at_;
  }
  std::string any_name() {
    if (now().type != Type::name) fail("expected a name, got " + described(now()));
    return take().text;
  }

  const Token& take() { return tokens_[at_++]; }

 protected:
  std::vector<Token> tokens_;
  size_t at_ = 0;
};

}  // namespace ridge::jinja
