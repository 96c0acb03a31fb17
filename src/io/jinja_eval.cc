// Walks the tree. Scopes live on the C++ stack in step with the blocks they belong to, except those that a macro captured.
#include "io/jinja_eval.h"

#include <ctime>
#include <new>

#include "base/check.h"
#include "io/jinja_builtins.h"
#include "io/jinja_lexer.h"
#include "io/jinja_parser.h"

namespace ridge::jinja {
namespace {

constexpr int64_t kNodeCost = 10;

}  // namespace

void touch_undefined(const Value& v) {
  const auto* u = v.get<Undefined>();
  raise(u && u->why ? *u->why : "a value that is not defined was used");
}

// ---- the interpreter

Interp::Interp(const Program& program, const Dict& globals, const Options& options)
    : budget{options.work}, program_(program), globals_(globals), options_(options) {}

Interp::~Interp() {
  for (auto& n : namespaces_) n->values->entries.clear();  // they can hold each other and themselves
}

std::string Interp::run() {
  std::string out;
  Entered top(*this, nullptr);
  exec(program_.body, out);
  return out;
}

int64_t Interp::now() const { return options_.now ? *options_.now : int64_t(std::time(nullptr)); }

Value Interp::make_namespace() {
  budget.spend(kScopeCost);
  namespaces_.push_back(std::make_shared<Namespace>());
  return std::shared_ptr<Object>(namespaces_.back());
}

Value Interp::attribute(const Value& v, const std::string& name) {
  if (v.is_undefined()) touch_undefined(v);
  Value out;
  if (auto object = v.shared<Object>(); object && object->attribute(name, out)) return out;
  if (const Method* method = find_method(v, name))
    return std::shared_ptr<Object>(
        std::make_shared<Native>(name, [v, method](Interp& x, Args& args) { return method->run(x, v, args); }));
  if (modifies(v, name)) return Value::undefined("the template may not call '" + name + "': it would change the conversation");
  if (const Dict* dict = v.get<Dict>()) {
    budget.spend(int64_t(dict->entries.size()));
    if (const Value* found = dict->find(name)) return *found;
  }
  return Value::undefined("'" + type_name(v) + " object' has no attribute '" + name + "'");
}

Value Interp::item(const Value& v, const Value& key) {
  if (v.is_undefined()) touch_undefined(v);
  bool found = false;
  Value out = subscript(*this, v, key, found);
  if (found) return out;
  if (const Text* name = key.get<Text>()) return attribute(v, name->bytes);
  return Value::undefined("'" + type_name(v) + " object' has no element " + repr(key, budget));
}

Value Interp::call(const Value& callee, Args& args) {
  if (callee.is_undefined()) touch_undefined(callee);
  auto object = callee.shared<Object>();
  if (!object) raise("'" + type_name(callee) + "' object is not callable");
  return object->call(*this, args);
}

// ---- expressions

Value Interp::eval(const Node& n) {
  Nested nested(*this);
  budget.spend(kNodeCost);
  at(n);
  switch (n.kind) {
    case Kind::constant: return n.value;
    case Kind::name: return eval_name(n);
    case Kind::list:
    case Kind::tuple: return eval_items(n);
    case Kind::dict: return eval_dict(n);
    case Kind::call: return eval_call(n);
    case Kind::filter: return eval_filter(n, nullptr);
    case Kind::test: return eval_test(n);
    case Kind::concat: return eval_concat(n);
    case Kind::compare: return eval_compare(n);
    case Kind::slice: return eval_slice(n);
    case Kind::attribute: {
      const Value v = eval(*n.kids[0]);
      at(n);
      return attribute(v, n.text);
    }
    case Kind::item: {
      const Value v = eval(*n.kids[0]), key = eval(*n.kids[1]);
      at(n);
      return item(v, key);
    }
    case Kind::unary: {
      const Value v = eval(*n.kids[0]);
      at(n);
      return unary(*this, n.text, v);
    }
    case Kind::binary: {
      const Value a = eval(*n.kids[0]), b = eval(*n.kids[1]);
      at(n);
      return binary(*this, n.text, a, b);
    }
    case Kind::logic: {
      Value v = eval(*n.kids[0]);
      return truthy(v) == (n.text == "and") ? eval(*n.kids[1]) : v;
    }
    case Kind::conditional:
      if (truthy(eval(*n.kids[0]))) return eval(*n.kids[1]);
      if (n.kids[2]) return eval(*n.kids[2]);
      return Value::undefined("the inline if-expression was false and has no else");
    default: RIDGE_CHECK(false, "a statement where an expression belongs"); return {};
  }
}

Value Interp::eval_name(const Node& n) {
  for (Scope* s = scope_; s; s = s->parent)
    if (const Value* found = s->find(n.text)) return *found;
  if (const Value* found = globals_.find(n.text)) return *found;
  if (const Function* f = find_function(n.text)) return std::shared_ptr<Object>(std::make_shared<Native>(n.text, f->run));
  return Value::undefined("'" + n.text + "' is undefined");
}

Value Interp::eval_items(const Node& n) {
  std::vector<Value> items;
  items.reserve(n.kids.size());
  for (const NodePtr& kid : n.kids) items.push_back(eval(*kid));
  return make_list(std::move(items), n.kind == Kind::list ? Sequence::Kind::list : Sequence::Kind::tuple, budget);
}

Value Interp::eval_dict(const Node& n) {
  auto dict = std::make_shared<Dict>();
  for (size_t i = 0; i < n.kids.size(); i += 2) {
    Value key = eval(*n.kids[i]);
    put(*dict, std::move(key), eval(*n.kids[i + 1]), budget);
  }
  return dict;
}

Args Interp::eval_arguments(const Arguments& a) {
  Args args;
  for (const NodePtr& n : a.positional) args.positional.push_back(eval(*n));
  for (const auto& [name, n] : a.named) args.named.emplace_back(name, eval(*n));
  if (a.star) {
    Iterator more(eval(*a.star));
    for (Value v; more.next(v, budget);) args.positional.push_back(v);
  }
  if (a.double_star) {
    const Value more = eval(*a.double_star);
    if (!more.get<Dict>()) raise("the argument after ** must be a mapping, not " + type_name(more));
    for (const auto& [key, value] : more.get<Dict>()->entries) {
      const std::string& name = text_argument(key, "a keyword");
      for (const auto& named : args.named)
        if (named.first == name) raise("the keyword argument '" + name + "' is given twice");
      args.named.emplace_back(name, value);
    }
  }
  return args;
}

Value Interp::eval_call(const Node& n, const std::pair<std::string, Value>* extra) {
  const Node& callee = *n.kids[0];
  Value self, function;
  const Method* method = nullptr;
  if (callee.kind == Kind::attribute) {  // a method call needs no bound method in between
    self = eval(*callee.kids[0]);
    at(callee);
    method = find_method(self, callee.text);
    if (!method) function = attribute(self, callee.text);
  } else {
    function = eval(callee);
  }
  Args args = eval_arguments(*n.arguments);
  if (extra) args.named.push_back(*extra);
  at(n);
  return method ? method->run(*this, self, args) : call(function, args);
}

Value Interp::eval_filter(const Node& n, const Value* input) {
  // Filters without an operand stand in filter and set blocks, whose text is the input.
  const Node* operand = n.kids[0].get();
  const Value v = !operand ? *input : operand->kind == Kind::filter ? eval_filter(*operand, input) : eval(*operand);
  Args args = eval_arguments(*n.arguments);
  at(n);
  const Filter* filter = find_filter(n.text);
  if (!filter) raise("there is no filter named '" + n.text + "'");
  return filter->run(*this, v, args);
}

bool Interp::eval_test(const Node& n) {
  const Value v = eval(*n.kids[0]);
  Args args = eval_arguments(*n.arguments);
  at(n);
  const Test* test = find_test(n.text);
  if (!test) raise("there is no test named '" + n.text + "'");
  return test->run(*this, v, args);
}

Value Interp::eval_concat(const Node& n) {
  std::string out;
  for (const NodePtr& kid : n.kids) out += text(eval(*kid));
  budget.spend(int64_t(out.size()));
  return out;
}

Value Interp::eval_compare(const Node& n) {
  Value left = eval(*n.kids[0]);
  for (size_t i = 0; i < n.names.size(); ++i) {
    Value right = eval(*n.kids[i + 1]);
    at(n);
    if (!compare(*this, n.names[i], left, right)) return false;
    left = std::move(right);
  }
  return true;
}

Value Interp::eval_slice(const Node& n) {
  const Value v = eval(*n.kids[0]);
  std::array<Value, 3> bounds;
  std::array<const Value*, 3> given{};
  for (size_t i = 0; i < 3; ++i)
    if (n.kids[i + 1]) bounds[i] = eval(*n.kids[i + 1]), given[i] = &bounds[i];
  at(n);
  return slice(*this, v, given[0], given[1], given[2]);
}

// ---- statements

void Interp::emit(std::string& out, std::string_view text) {
  budget.spend(int64_t(text.size()));
  if (out.size() + text.size() > size_t(options_.output))
    raise("the rendered text is larger than " + std::to_string(options_.output) + " bytes");
  out += text;
}

Interp::Flow Interp::exec(const Nodes& body, std::string& out) {
  Nested nested(*this);
  for (const NodePtr& n : body)
    if (const Flow flow = exec_statement(*n, out); flow != Flow::next) return flow;
  return Flow::next;
}

Interp::Flow Interp::exec_inside(const Nodes& body, std::string& out) {
  Entered scope(*this, scope_);
  return exec(body, out);
}

std::string Interp::captured(const Nodes& body) {
  std::string out;
  exec(body, out);
  return out;
}

Interp::Flow Interp::exec_statement(const Node& n, std::string& out) {
  budget.spend(kNodeCost);
  at(n);
  switch (n.kind) {
    case Kind::data: emit(out, n.text); break;
    case Kind::output: {
      const Value v = eval(*n.kids[0]);
      if (const Text* t = v.get<Text>())
        emit(out, t->bytes);
      else
        emit(out, text(v));
      break;
    }
    case Kind::branch: return exec(truthy(eval(*n.kids[0])) ? n.body : n.otherwise, out);
    case Kind::loop: return run_loop(n, eval(*n.kids[1]), scope_, 0, out);
    case Kind::set: assign(*n.kids[0], eval(*n.kids[1])); break;
    case Kind::set_block:
    case Kind::filter_block: {
      Value v;
      {
        Entered scope(*this, scope_);
        v = captured(n.body);
        const Node* filter = n.kids.back().get();
        if (filter) v = eval_filter(*filter, &v);
      }
      if (n.kind == Kind::set_block)
        assign(*n.kids[0], v);
      else
        emit(out, text(v));
      break;
    }
    case Kind::macro: scope_->set(n.text, make_macro(n, n.text, 0)); break;
    case Kind::call_block: exec_call_block(n, out); break;
    case Kind::with: return exec_with(n, out);
    case Kind::scope: return exec_inside(n.body, out);
    case Kind::break_loop: return Flow::leave;
    case Kind::continue_loop: return Flow::repeat;
    default: RIDGE_CHECK(false, "an expression where a statement belongs");
  }
  return Flow::next;
}

void Interp::exec_call_block(const Node& n, std::string& out) {
  const std::pair<std::string, Value> caller{"caller", make_macro(n, "", 1)};
  emit(out, text(eval_call(*n.kids[0], &caller)));
}

Interp::Flow Interp::exec_with(const Node& n, std::string& out) {
  std::vector<Value> values;
  for (size_t i = 0; i < n.kids.size(); i += 2) values.push_back(eval(*n.kids[i + 1]));
  Entered scope(*this, scope_);
  for (size_t i = 0; i < values.size(); ++i) assign(*n.kids[2 * i], values[i]);
  return exec(n.body, out);
}

void Interp::assign(const Node& target, const Value& value) {
  budget.spend(kNodeCost);
  if (target.kind == Kind::name) return scope_->set(target.text, value);
  if (target.kind == Kind::member) {
    Value* holder = nullptr;
    for (Scope* s = scope_; s && !holder; s = s->parent) holder = s->find(target.text);
    auto space = holder ? std::dynamic_pointer_cast<Namespace>(holder->shared<Object>()) : nullptr;
    if (!space) raise("'" + target.text + "' is not a namespace: its attributes cannot be set");
    return put(*space->values, target.names[0], value, budget);
  }
  Iterator parts(value);
  Value part;
  for (const NodePtr& kid : target.kids) {
    if (!parts.next(part, budget)) raise("not enough values to unpack (expected " + std::to_string(target.kids.size()) + ")");
    assign(*kid, part);
  }
  if (parts.next(part, budget)) raise("too many values to unpack (expected " + std::to_string(target.kids.size()) + ")");
}

// ---- the public face

namespace {

// "...: the reason." whether or not the template's own words end a sentence already.
std::string sentence(std::string start, const std::string& source, size_t offset, const std::string& reason) {
  start += located(source, offset) + ": " + reason;
  return start.ends_with('.') || start.ends_with('!') || start.ends_with('?') ? start : start + ".";
}

}  // namespace

Result<Template> compile(std::string_view source) {
  try {
    return Template(std::make_shared<const Program>(parse(source)));
  } catch (const SyntaxError& e) {
    return unloadable(sentence("The chat template has an error at ", normalised(source), e.offset, e.sentence));
  } catch (const std::bad_alloc&) { return unloadable("There is not enough memory to compile the chat template."); }
}

Result<std::string> render(const Template& t, const Value& globals, const Options& options) {
  const Dict* dict = globals.get<Dict>();
  RIDGE_CHECK(dict, "the globals of a template are a dict, not a " + type_name(globals));
  if (globals.depth() > kMaxNesting)
    return failed("The conversation holds values nested more than " + std::to_string(kMaxNesting) + " deep.");
  Interp x(t.program(), *dict, options);
  try {
    return x.run();
  } catch (const Raise& e) {
    return failed(sentence("The chat template failed at ", t.program().source, x.offset(), e.sentence));
  } catch (const std::bad_alloc&) { return failed("There is not enough memory to render the chat template."); }
}

}  // namespace ridge::jinja
