// Objects with behaviour: scopes, namespaces, the variable `loop`, macros, and how builtins take their arguments.
#include <algorithm>
#include <deque>

#include "io/jinja_eval.h"

namespace ridge::jinja {

// The variable `loop`. Reads its items one by one, so that a condition sees what the body did before.
class Loop : public Object {
 public:
  Loop(Interp& x, const Node& node, const Value& iterable, Scope* outer, int depth0)
      : x_(x), node_(&node), source_(iterable), outer_(outer), depth0_(depth0) {}

  bool advance(Value& item) {
    if (has_after_)
      item = std::move(after_), has_after_ = false;
    else if (!fetch(item))
      return false;
    ++index0_;
    before_ = std::exchange(current_, item);
    return true;
  }
  void finish() {  // the scopes it refers to are about to go
    node_ = nullptr;
    changed_ = Value();
  }

  std::string type_name() const override { return "LoopContext"; }
  bool callable() const override { return true; }
  Value call(Interp& x, Args& args) override {
    if (!node_ || !node_->flag) raise("the loop must have the 'recursive' marker to be called recursively");
    const auto [iterable] = unpack(args, "loop", {"iterable"}, 1);
    std::string out;
    x.run_loop(*node_, *iterable, outer_, depth0_ + 1, out);
    return out;
  }
  bool attribute(const std::string& name, Value& out) override {
    if (name == "index0")
      out = index0_;
    else if (name == "index")
      out = index0_ + 1;
    else if (name == "first")
      out = index0_ == 0;
    else if (name == "last")
      out = !peek();
    else if (name == "length")
      out = length();
    else if (name == "revindex")
      out = length() - index0_;
    else if (name == "revindex0")
      out = length() - index0_ - 1;
    else if (name == "depth")
      out = depth0_ + 1;
    else if (name == "depth0")
      out = depth0_;
    else if (name == "previtem")
      out = index0_ > 0 ? before_ : Value::undefined("there is no previous item");
    else if (name == "nextitem")
      out = peek() ? after_ : Value::undefined("there is no next item");
    else if (name == "cycle" || name == "changed")
      out = method(name);
    else
      return false;
    return true;
  }

 private:
  bool fetch(Value& item) {
    if (!drained_.empty()) {
      item = std::move(drained_.front());
      drained_.pop_front();
      return true;
    }
    while (node_ && source_.next(item, x_.budget))
      if (accepted(item)) return true;
    return false;
  }
  bool accepted(const Value& item) {
    if (!node_->kids[2]) return true;
    Entered scope(x_, outer_);
    x_.assign(*node_->kids[0], item);
    return truthy(x_.eval(*node_->kids[2]));
  }
  bool peek() {
    if (!has_after_) has_after_ = fetch(after_);
    return has_after_;
  }
  int64_t length() {
    if (length_ >= 0) return length_;
    const int64_t seen = index0_ + 1 + (has_after_ ? 1 : 0);
    if (!node_ || !node_->kids[2]) return length_ = seen + source_.remaining(x_.budget);
    std::deque<Value> rest;
    for (Value item; fetch(item);) rest.push_back(item);
    drained_ = std::move(rest);
    return length_ = seen + int64_t(drained_.size());
  }
  Value method(const std::string& name) {
    auto self = std::static_pointer_cast<Loop>(shared_from_this());
    return std::shared_ptr<Object>(
        std::make_shared<Native>(name, [self, cycle = name == "cycle"](Interp& x, Args& args) -> Value {
          if (cycle) {
            if (args.positional.empty()) raise("loop.cycle needs something to cycle through");
            return args.positional[size_t(self->index0_) % args.positional.size()];
          }
          Value now = make_list(args.positional, Sequence::Kind::tuple, x.budget);
          if (equal(now, self->changed_, x.budget)) return false;
          if (self->node_) self->changed_ = std::move(now);
          return true;
        }));
  }

  Interp& x_;
  const Node* node_;
  Iterator source_;
  Scope* outer_;
  int depth0_;
  int64_t index0_ = -1, length_ = -1;
  bool has_after_ = false;
  Value after_, current_, before_, changed_;
  std::deque<Value> drained_;
};

// A macro, or the anonymous one that a call block passes as `caller`.
struct Macro : Object {
  const Node& node;
  std::string name;
  Scope* scope;          // where it was defined
  size_t first_default;  // index of the first default among node.kids

  Macro(const Node& node_, std::string name_, Scope* scope_, size_t first_default_)
      : node(node_), name(std::move(name_)), scope(scope_), first_default(first_default_) {}
  std::string type_name() const override { return "Macro"; }
  std::string repr(Budget&) const override { return name.empty() ? "<Macro anonymous>" : "<Macro '" + name + "'>"; }
  bool callable() const override { return true; }
  bool attribute(const std::string& key, Value& out) override {
    if (key == "name") return out = name.empty() ? Value(None()) : Value(name), true;
    return false;
  }

  Value call(Interp& x, Args& args) override {
    Nested nested(x);
    Entered inside(x, scope);
    Scope& s = *inside;
    const auto& names = node.names;
    const size_t optional = node.kids.size() - first_default;
    for (size_t i = 0; i < names.size(); ++i) {
      if (i < args.positional.size())
        s.set(names[i], args.positional[i]);
      else if (const Value* given = take(args, names[i]))
        s.set(names[i], *given);
      else if (i + optional >= names.size())
        s.set(names[i], x.eval(*node.kids[first_default + i + optional - names.size()]));
      else
        s.set(names[i], Value::undefined("parameter '" + names[i] + "' was not provided"));
    }
    extras(x, args, s);
    return x.captured(node.body);
  }

 private:
  static const Value* take(Args& args, std::string_view key) {
    for (auto& [given, value] : args.named) {
      if (given != key) continue;
      given.clear();  // no keyword is empty: this one is used up
      return &value;
    }
    return nullptr;
  }
  bool has_parameter(std::string_view key) const {
    return std::find(node.names.begin(), node.names.end(), key) != node.names.end();
  }

  void extras(Interp& x, Args& args, Scope& s) const {
    if (node.mentions.caller && !has_parameter("caller")) {
      const Value* given = take(args, "caller");
      s.set("caller", given ? *given : Value::undefined("no caller is defined"));
    }
    if (node.mentions.kwargs && !has_parameter("kwargs")) {
      auto kwargs = std::make_shared<Dict>();
      for (auto& [key, value] : args.named)
        if (!key.empty()) put(*kwargs, key, value, x.budget);
      s.set("kwargs", kwargs);
    } else {
      for (const auto& [key, value] : args.named)
        if (!key.empty()) raise("macro '" + name + "' takes no keyword argument '" + key + "'");
    }
    const size_t taken = std::min(args.positional.size(), node.names.size());
    std::vector<Value> more(args.positional.begin() + int64_t(taken), args.positional.end());
    if (node.mentions.varargs && !has_parameter("varargs"))
      s.set("varargs", make_list(std::move(more), Sequence::Kind::tuple, x.budget));
    else if (!more.empty())
      raise("macro '" + name + "' takes not more than " + std::to_string(node.names.size()) + " arguments");
  }
};

// ---- scopes and objects

Value* Scope::find(std::string_view name) {
  for (auto& [key, value] : variables)
    if (key == name) return &value;
  return nullptr;
}

void Scope::set(std::string_view name, Value value) {
  if (Value* found = find(name))
    *found = std::move(value);
  else
    variables.emplace_back(name, std::move(value));
}

std::string Namespace::repr(Budget& budget) const {
  if (printing) return "<Namespace {...}>";
  struct Mark {
    explicit Mark(bool& flag_) : flag(flag_) { flag = true; }
    ~Mark() { flag = false; }
    bool& flag;
  } mark(printing);
  return "<Namespace " + jinja::repr(values, budget) + ">";
}

bool Namespace::attribute(const std::string& name, Value& out) {
  const Value* found = values->find(name);
  if (found) out = *found;
  return found;
}

void unpack_into(const Args& args, const char* who, std::span<const char* const> names, size_t required,
                 std::span<const Value*> out) {
  if (args.positional.size() > names.size())
    raise(std::string(who) + " takes at most " + std::to_string(names.size()) + " arguments, got " +
          std::to_string(args.positional.size()));
  for (size_t i = 0; i < args.positional.size(); ++i) out[i] = &args.positional[i];
  for (const auto& [key, value] : args.named) {
    const auto at = size_t(std::find(names.begin(), names.end(), key) - names.begin());
    if (at == names.size()) raise(std::string(who) + " has no argument named '" + key + "'");
    if (out[at]) raise(std::string(who) + " got its argument '" + key + "' twice");
    out[at] = &value;
  }
  for (size_t i = 0; i < required; ++i)
    if (!out[i]) raise(std::string(who) + " needs its argument '" + names[i] + "'");
}

void no_arguments(const Args& args, const char* who) {
  if (!args.positional.empty() || !args.named.empty()) raise(std::string(who) + " takes no arguments");
}

// ---- what the interpreter does with them

Value Interp::make_macro(const Node& n, const std::string& name, size_t first_default) {
  budget.spend(kScopeCost);
  for (Scope* s = scope_; s && !s->captured; s = s->parent) s->captured = true;
  return std::shared_ptr<Object>(std::make_shared<Macro>(n, name, scope_, first_default));
}

Interp::Flow Interp::run_loop(const Node& n, const Value& iterable, Scope* outer, int depth0, std::string& out) {
  Nested nested(*this);
  auto loop = std::make_shared<Loop>(*this, n, iterable, outer, depth0);
  struct Finish {
    ~Finish() { loop.finish(); }
    Loop& loop;
  } finish{*loop};
  bool completed = false;  // as in Python-Jinja, a round that was cut short does not count
  for (Value item; loop->advance(item);) {
    Entered scope(*this, outer);
    (*scope).set("loop", std::shared_ptr<Object>(loop));
    assign(*n.kids[0], item);
    const Flow flow = exec(n.body, out);
    if (flow == Flow::leave) break;
    completed = completed || flow == Flow::next;
  }
  if (completed || n.otherwise.empty()) return Flow::next;
  Entered scope(*this, outer);
  return exec(n.otherwise, out);
}

}  // namespace ridge::jinja
