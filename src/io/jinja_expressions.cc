// See jinja_expressions.h.
#include "io/jinja_expressions.h"

#include <charconv>
#include <cmath>

#include "io/jinja_builtins.h"

namespace ridge::jinja {

// ---- assignment targets

std::string Expressions::assignable(std::string name) const {
  for (const char* fixed : {"true", "false", "none", "True", "False", "None"})
    if (name == fixed) fail("'" + name + "' cannot be assigned to");
  return name;
}

NodePtr Expressions::target(std::string_view end) {
  Nested nested(*this);
  const size_t offset = now().offset;
  Nodes parts;
  bool several = false;
  do {
    if (several &&
        (is_op(now(), ")") || is_op(now(), "=") || now().type == Type::block_end || (!end.empty() && is_name(now(), end))))
      break;
    if (skip_op("(")) {
      parts.push_back(target(""));
      expect_op(")");
    } else {
      parts.push_back(make(Kind::name, now().offset, assignable(any_name())));
    }
  } while (skip_op(",") && (several = true));
  return several ? make(Kind::tuple, offset, std::move(parts)) : std::move(parts[0]);
}

// ---- expressions

NodePtr Expressions::expression(bool conditionals) {
  Nested nested(*this);
  const size_t offset = now().offset, unknown = unknown_.size();
  NodePtr e = logic_or();
  while (conditionals && skip_name("if")) {
    ++soft_;
    NodePtr condition = logic_or();
    NodePtr otherwise = skip_name("else") ? expression() : nullptr;
    --soft_;
    unknown_.resize(std::min(unknown_.size(), unknown), SyntaxError{});  // `e` turned out to be conditional
    e = make(Kind::conditional, offset, three(std::move(condition), std::move(e), std::move(otherwise)));
  }
  return e;
}

bool Expressions::tuple_end(std::string_view end) const {
  return now().type == Type::variable_end || now().type == Type::block_end || is_op(now(), ")") ||
         (!end.empty() && is_name(now(), end));
}

NodePtr Expressions::tuple(bool conditionals, std::string_view end, bool parentheses) {
  const size_t offset = now().offset;
  Nodes parts;
  bool several = false;
  while (!tuple_end(end)) {
    parts.push_back(expression(conditionals));
    if (!skip_op(",")) break;
    several = true;
  }
  if (!several && !parts.empty()) return std::move(parts[0]);
  if (parts.empty() && !parentheses) fail("expected an expression, got " + described(now()));
  return make(Kind::tuple, offset, std::move(parts));
}

NodePtr Expressions::logic_or() {
  NodePtr left = logic_and();
  for (size_t offset = now().offset; skip_name("or"); offset = now().offset)
    left = make(Kind::logic, offset, "or", two(std::move(left), logic_and()));
  return left;
}

NodePtr Expressions::logic_and() {
  NodePtr left = logic_not();
  for (size_t offset = now().offset; skip_name("and"); offset = now().offset)
    left = make(Kind::logic, offset, "and", two(std::move(left), logic_not()));
  return left;
}

NodePtr Expressions::logic_not() {
  Nested nested(*this);
  const size_t offset = now().offset;
  if (skip_name("not")) return make(Kind::unary, offset, "not", one(logic_not()));
  return compare();
}

NodePtr Expressions::compare() {
  const size_t offset = now().offset;
  Nodes parts = one(sum());
  std::vector<std::string> operators;
  for (;;) {
    const Token& t = now();
    const bool in = is_name(t, "in"), not_in = is_name(t, "not") && is_name(ahead(), "in");
    if (!in && !not_in && !is_op(t, "==") && !is_op(t, "!=") && !is_op(t, "<") && !is_op(t, "<=") && !is_op(t, ">") &&
        !is_op(t, ">="))
      break;
    operators.push_back(not_in ? "not in" : t.text);
    at_ += not_in ? 2 : 1;
    parts.push_back(sum());
  }
  if (operators.empty()) return std::move(parts[0]);
  auto n = make(Kind::compare, offset, std::move(parts));
  n->names = std::move(operators);
  return n;
}

NodePtr Expressions::sum() {
  NodePtr left = concat();
  while (is_op(now(), "+") || is_op(now(), "-")) {
    const Token& op = tokens_[at_++];
    left = make(Kind::binary, op.offset, op.text, two(std::move(left), concat()));
  }
  return left;
}

NodePtr Expressions::concat() {
  const size_t offset = now().offset;
  Nodes parts = one(product());
  while (skip_op("~")) parts.push_back(product());
  return parts.size() == 1 ? std::move(parts[0]) : make(Kind::concat, offset, std::move(parts));
}

NodePtr Expressions::product() {
  NodePtr left = power();
  while (is_op(now(), "*") || is_op(now(), "/") || is_op(now(), "//") || is_op(now(), "%")) {
    const Token& op = tokens_[at_++];
    left = make(Kind::binary, op.offset, op.text, two(std::move(left), power()));
  }
  return left;
}

NodePtr Expressions::power() {
  NodePtr left = unary(true);
  for (size_t offset = now().offset; skip_op("**"); offset = now().offset)
    left = make(Kind::binary, offset, "**", two(std::move(left), unary(true)));
  return left;
}

NodePtr Expressions::unary(bool with_filters) {
  Nested nested(*this);
  const size_t offset = now().offset;
  NodePtr n;
  if (is_op(now(), "-") || is_op(now(), "+")) {
    std::string op = tokens_[at_++].text;
    n = make(Kind::unary, offset, std::move(op), one(unary(false)));
  } else {
    n = primary();
  }
  n = postfix(std::move(n));
  return with_filters ? filters_and_tests(std::move(n)) : std::move(n);
}

NodePtr Expressions::constant(size_t offset, Value value) {
  auto n = make(Kind::constant, offset);
  n->value = std::move(value);
  return n;
}

NodePtr Expressions::primary() {
  const Token& t = now();
  if (t.type == Type::op) {
    if (t.text == "(") {
      ++at_;
      NodePtr n = tuple(true, "", true);
      expect_op(")");
      return n;
    }
    if (t.text == "[") return list();
    if (t.text == "{") return dict();
  }
  if (t.type == Type::string) {
    std::string text;
    while (now().type == Type::string) text += tokens_[at_++].text;
    return constant(t.offset, std::move(text));
  }
  if (t.type == Type::integer || t.type == Type::real) return ++at_, constant(t.offset, number(t));
  if (t.type != Type::name) fail("unexpected " + described(t));
  ++at_;
  if (t.text == "true" || t.text == "True") return constant(t.offset, true);
  if (t.text == "false" || t.text == "False") return constant(t.offset, false);
  if (t.text == "none" || t.text == "None") return constant(t.offset, None());
  for (Mentions& m : mentions_) {
    m.caller |= t.text == "caller";
    m.kwargs |= t.text == "kwargs";
    m.varargs |= t.text == "varargs";
  }
  return make(Kind::name, t.offset, t.text);
}

Value Expressions::number(const Token& t) {
  if (t.type == Type::real) {
    double value = 0;
    const auto result = std::from_chars(t.text.data(), t.text.data() + t.text.size(), value);
    if (result.ec == std::errc::result_out_of_range)
      value = t.text.find("e-") == std::string::npos && t.text.find("E-") == std::string::npos ? HUGE_VAL : 0;
    return value;
  }
  const char base = t.text.size() > 2 ? char(t.text[1] | 0x20) : 0;
  const int radix = base == 'x' ? 16 : base == 'o' ? 8 : base == 'b' ? 2 : 10;
  int64_t value = 0;
  const char* begin = t.text.data() + (radix == 10 ? 0 : 2);
  if (std::from_chars(begin, t.text.data() + t.text.size(), value, radix).ec != std::errc())
    fail("this integer does not fit 64 bits", t.offset);
  return value;
}

NodePtr Expressions::list() {
  const size_t offset = now().offset;
  Nodes items;
  expect_op("[");
  while (!is_op(now(), "]")) {
    items.push_back(expression());
    if (!skip_op(",")) break;
  }
  expect_op("]");
  return make(Kind::list, offset, std::move(items));
}

NodePtr Expressions::dict() {
  const size_t offset = now().offset;
  Nodes items;
  expect_op("{");
  while (!is_op(now(), "}")) {
    items.push_back(expression());
    expect_op(":");
    items.push_back(expression());
    if (!skip_op(",")) break;
  }
  expect_op("}");
  return make(Kind::dict, offset, std::move(items));
}

NodePtr Expressions::postfix(NodePtr n) {
  for (;;) {
    if (is_op(now(), ".") || is_op(now(), "["))
      n = subscript(std::move(n));
    else if (is_op(now(), "("))
      n = call(std::move(n));
    else
      return n;
  }
}

NodePtr Expressions::call(NodePtr callee) {
  auto n = make(Kind::call, now().offset, one(std::move(callee)));
  n->arguments = arguments();
  return settle(std::move(n));
}

NodePtr Expressions::subscript(NodePtr n) {
  const size_t offset = now().offset;
  if (skip_op(".")) {
    const Token& t = tokens_[at_++];
    if (t.type == Type::name) return make(Kind::attribute, offset, t.text, one(std::move(n)));
    if (t.type != Type::integer) fail("expected a name or a number after '.'", t.offset);
    return make(Kind::item, offset, two(std::move(n), constant(t.offset, number(t))));
  }
  expect_op("[");
  if (is_op(now(), "]")) fail("expected an index");
  Nodes bounds(3);
  bool slice = false;
  for (size_t i = 0;; ++i) {
    if (!is_op(now(), ":") && !is_op(now(), "]")) bounds[i] = expression();
    if (i == 2 || !skip_op(":")) break;
    slice = true;
  }
  if (slice) {
    expect_op("]");
    return make(Kind::slice, offset, nodes(std::move(n), std::move(bounds[0]), std::move(bounds[1]), std::move(bounds[2])));
  }
  if (is_op(now(), ",")) {
    Nodes keys = one(std::move(bounds[0]));
    while (skip_op(",")) keys.push_back(expression());
    bounds[0] = make(Kind::tuple, offset, std::move(keys));
  }
  expect_op("]");
  return make(Kind::item, offset, two(std::move(n), std::move(bounds[0])));
}

std::unique_ptr<Arguments> Expressions::arguments() {
  auto a = std::make_unique<Arguments>();
  expect_op("(");
  while (!is_op(now(), ")")) {
    if (skip_op("*")) {
      if (a->star || a->double_star) fail("only one *argument is allowed, before **keywords");
      a->star = expression();
    } else if (skip_op("**")) {
      if (a->double_star) fail("only one **argument is allowed");
      a->double_star = expression();
    } else if (now().type == Type::name && is_op(ahead(), "=")) {
      if (a->double_star) fail("a keyword argument follows **keywords");
      std::string name = any_name();
      ++at_;
      for (const auto& named : a->named)
        if (named.first == name) fail("the keyword argument '" + name + "' is given twice");
      a->named.emplace_back(std::move(name), expression());
    } else {
      if (a->star || a->double_star || !a->named.empty()) fail("a positional argument follows a keyword argument");
      a->positional.push_back(expression());
    }
    if (!skip_op(",")) break;
  }
  expect_op(")");
  return a;
}

std::string Expressions::dotted_name() {
  std::string name = any_name();
  while (skip_op(".")) name += "." + any_name();
  return name;
}

NodePtr Expressions::filters(NodePtr n, bool started) {
  for (; started || is_op(now(), "|"); started = false) {
    ++at_;
    const size_t offset = now().offset;
    std::string name = dotted_name();
    check_known(find_filter(name) != nullptr, "filter", name, offset);
    auto f = make(Kind::filter, offset, std::move(name), one(std::move(n)));
    f->arguments = is_op(now(), "(") ? arguments() : std::make_unique<Arguments>();
    n = settle(std::move(f));
  }
  return n;
}

NodePtr Expressions::filters_and_tests(NodePtr n) {
  for (;;) {
    if (is_op(now(), "|"))
      n = filters(std::move(n));
    else if (is_name(now(), "is"))
      n = test(std::move(n));
    else if (is_op(now(), "("))
      n = call(std::move(n));
    else
      return n;
  }
}

NodePtr Expressions::test(NodePtr n) {
  ++at_;
  const bool negated = skip_name("not");
  const size_t offset = now().offset;
  std::string name = dotted_name();
  check_known(find_test(name) != nullptr, "test", name, offset);
  auto t = make(Kind::test, offset, std::move(name), one(std::move(n)));
  const Token& next = now();
  const bool operand = next.type == Type::name || next.type == Type::string || next.type == Type::integer ||
                       next.type == Type::real || is_op(next, "[") || is_op(next, "{");
  if (is_op(next, "(")) {
    t->arguments = arguments();
  } else {
    t->arguments = std::make_unique<Arguments>();
    if (operand && !is_name(next, "else") && !is_name(next, "or") && !is_name(next, "and")) {
      if (is_name(next, "is")) fail("tests cannot be chained with 'is'");
      t->arguments->positional.push_back(postfix(primary()));
    }
  }
  t = settle(std::move(t));
  return negated ? make(Kind::unary, offset, "not", one(std::move(t))) : std::move(t);
}

}  // namespace ridge::jinja
