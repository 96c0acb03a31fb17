// The expression half of the parser, from the loosest binding (a if b else c) to the tightest (a.b[c](d)), with what it shares
// with the statements: making nodes, the depth limits, and the names that a macro's body mentions.
#pragma once
#include "io/jinja_ast.h"
#include "io/jinja_cursor.h"

namespace ridge::jinja {

class Expressions : protected Cursor {
 protected:
  explicit Expressions(const std::string& source) : Cursor(source) {}

  // ---- nodes
  struct Nested {
    explicit Nested(Expressions& p) : parser(p) {
      if (++parser.depth_ > 2 * kMaxTreeDepth) parser.fail("the template is nested too deep");
    }
    ~Nested() { --parser.depth_; }
    Expressions& parser;
  };
  NodePtr make(Kind kind, size_t offset, Nodes kids = {}) { return make(kind, offset, {}, std::move(kids)); }
  NodePtr make(Kind kind, size_t offset, std::string text, Nodes kids = {}) {
    auto n = std::make_unique<Node>(kind, uint32_t(offset));
    n->text = std::move(text);
    n->kids = std::move(kids);
    return settle(std::move(n));
  }
  // Chains like a + b + c + ... grow deep without recursion here, but the evaluator and the destructor would recurse.
  static NodePtr settle(NodePtr n) {
    const auto under = [&](const Nodes& nodes) {
      for (const NodePtr& kid : nodes)
        if (kid) n->depth = std::max(n->depth, kid->depth + 1);
    };
    under(n->kids), under(n->body), under(n->otherwise);
    if (n->arguments) {
      under(n->arguments->positional);
      for (const auto& [name, value] : n->arguments->named) n->depth = std::max(n->depth, value->depth + 1);
      for (const NodePtr* p : {&n->arguments->star, &n->arguments->double_star})
        if (*p) n->depth = std::max(n->depth, (*p)->depth + 1);
    }
    if (n->depth > kMaxTreeDepth) fail("this is nested more than " + std::to_string(kMaxTreeDepth) + " deep", n->offset);
    return n;
  }
  static Nodes nodes(NodePtr a, NodePtr b = nullptr, NodePtr c = nullptr, NodePtr d = nullptr, size_t n = 4) {
    Nodes out;
    for (NodePtr* p : {&a, &b, &c, &d})
      if (out.size() < n) out.push_back(std::move(*p));
    return out;
  }
  static Nodes one(NodePtr a) { return nodes(std::move(a), nullptr, nullptr, nullptr, 1); }
  static Nodes two(NodePtr a, NodePtr b) { return nodes(std::move(a), std::move(b), nullptr, nullptr, 2); }
  static Nodes three(NodePtr a, NodePtr b, NodePtr c) { return nodes(std::move(a), std::move(b), std::move(c), nullptr, 3); }

  // Jinja refuses unknown filters and tests at compile time, except in branches that may never run.
  void check_known(bool known, std::string_view what, const std::string& name, size_t offset) {
    if (!known && soft_ == 0) unknown_.push_back({"there is no " + std::string(what) + " named '" + name + "'", offset});
  }

  // ---- assignment targets
  std::string assignable(std::string name) const;
  NodePtr target(std::string_view end);

  // ---- expressions
  NodePtr expression(bool conditionals = true);
  bool tuple_end(std::string_view end) const;
  // One expression, or several with commas: a tuple. `end` is a word that closes it as well.
  NodePtr tuple(bool conditionals = true, std::string_view end = "", bool parentheses = false);
  NodePtr logic_or();
  NodePtr logic_and();
  NodePtr logic_not();
  NodePtr compare();
  NodePtr sum();
  NodePtr concat();
  NodePtr product();
  NodePtr power();
  NodePtr unary(bool with_filters);
  NodePtr constant(size_t offset, Value value);
  NodePtr primary();
  static Value number(const Token& t);
  NodePtr list();
  NodePtr dict();
  NodePtr postfix(NodePtr n);
  NodePtr call(NodePtr callee);
  NodePtr subscript(NodePtr n);
  std::unique_ptr<Arguments> arguments();
  std::string dotted_name();
  // n | f | g(...); with `started` the first '|' was already implied.
  NodePtr filters(NodePtr n, bool started = false);
  NodePtr filters_and_tests(NodePtr n);
  NodePtr test(NodePtr n);

  int depth_ = 0, soft_ = 0;          // soft: inside a branch that may never run
  std::vector<Mentions> mentions_;    // one a macro body around
  std::vector<SyntaxError> unknown_;  // filters and tests that do not exist
};

}  // namespace ridge::jinja
