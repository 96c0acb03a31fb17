// From tokens to the tree of jinja_ast.h: Jinja's grammar, one function a precedence level.
#pragma once
#include <string_view>

#include "io/jinja_ast.h"
#include "io/jinja_lexer.h"

namespace ridge::jinja {

Program parse(std::string_view source);  // throws SyntaxError

}  // namespace ridge::jinja
