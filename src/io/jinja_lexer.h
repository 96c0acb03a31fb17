// Cuts a template into tokens: text between tags (with the whitespace control of trim_blocks, lstrip_blocks, - and + applied),
// tag brackets, and what stands inside the tags. Comments and raw blocks are resolved here.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace ridge::jinja {

struct Token {
  enum class Type : uint8_t { data, variable_begin, variable_end, block_begin, block_end, name, string, integer, real, op, end };
  Type type;
  uint32_t offset;
  std::string text;  // a string literal's value, an operator's characters
};

// CRLF and CR become LF, and one trailing newline goes away, as Jinja does before it lexes.
std::string normalised(std::string_view source);

struct SyntaxError {  // thrown by the lexer and the parser, caught in compile()
  std::string sentence;
  size_t offset;
};

std::vector<Token> tokenize(const std::string& source);  // throws SyntaxError

}  // namespace ridge::jinja
