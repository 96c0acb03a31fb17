// The template as a tree: what the parser builds and the evaluator walks. One node type; the table says which fields a kind uses.
#pragma once
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "io/jinja_value.h"

namespace ridge::jinja {

struct Node;
using NodePtr = std::unique_ptr<Node>;
using Nodes = std::vector<NodePtr>;

enum class Kind : uint8_t {
  // Expressions     fields used
  constant,  // value
  name,      // text
  list,
  tuple,        // kids
  dict,         // kids: key, value, key, value, ...
  attribute,    // kids[0].text
  item,         // kids[0] [ kids[1] ]
  slice,        // kids[0] [ kids[1] : kids[2] : kids[3] ], null where absent
  call,         // kids[0] (arguments)
  filter,       // kids[0] | text(arguments); kids[0] is null in a filter block
  test,         // kids[0] is text(arguments)
  unary,        // text kids[0], text one of "not", "-", "+"
  binary,       // kids[0] text kids[1]
  concat,       // kids[0] ~ kids[1] ~ ...
  compare,      // kids[0] names[0] kids[1] names[1] kids[2] ...
  logic,        // kids[0] text kids[1], text "and" or "or"
  conditional,  // kids[1] if kids[0] else kids[2]; kids[2] may be null
  // Statements
  data,          // text
  output,        // kids[0] printed
  branch,        // if kids[0]: body, else: otherwise
  loop,          // for kids[0] in kids[1] if kids[2] (may be null): body, else: otherwise; flag: recursive
  set,           // kids[0] = kids[1]
  set_block,     // kids[0] = body through the filters kids[1] (may be null)
  macro,         // text(names, kids are the last defaults): body
  call_block,    // kids[0] is the call, its caller a macro(names, kids[1...] are the last defaults): body
  filter_block,  // body through kids[0]
  with,          // names[i] of targets kids[2 i] = kids[2 i + 1]: body
  scope,         // body in a scope of its own
  break_loop,
  continue_loop,
  // Assignment targets other than name and tuple
  member,  // text.names[0]
};

struct Arguments {
  Nodes positional;
  std::vector<std::pair<std::string, NodePtr>> named;
  NodePtr star, double_star;
};

// What a macro's body mentions decides what it accepts beyond its parameters.
struct Mentions {
  bool caller = false, kwargs = false, varargs = false;
};

struct Node {
  Kind kind;
  bool flag = false;
  Mentions mentions;
  uint32_t offset;  // into the source, for messages
  int depth = 1;
  std::string text;
  Value value;
  Nodes kids, body, otherwise;
  std::vector<std::string> names;
  std::unique_ptr<Arguments> arguments;

  Node(Kind kind_, uint32_t offset_) : kind(kind_), offset(offset_) {}
};

// A compiled template: the text with its newlines normalised, and its statements.
struct Program {
  std::string source;
  Nodes body;
};

constexpr int kMaxTreeDepth = 200;  // nodes above each other; the walkers recurse

std::string located(const std::string& source, size_t offset);  // "line 3, column 7"

}  // namespace ridge::jinja
