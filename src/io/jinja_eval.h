// The evaluator's inside, shared by its parts: objects with behaviour, call arguments, and the interpreter that walks the tree.
#pragma once
#include <array>
#include <functional>
#include <span>

#include "io/jinja.h"
#include "io/jinja_ast.h"

namespace ridge::jinja {

class Interp;

struct Args {
  std::vector<Value> positional;
  std::vector<std::pair<std::string, Value>> named;
};

// Pairs the arguments of builtin `who` with its parameters; null where the caller gave none. Raises on what does not fit.
void unpack_into(const Args& args, const char* who, std::span<const char* const> names, size_t required,
                 std::span<const Value*> out);
template <size_t N>
std::array<const Value*, N> unpack(const Args& args, const char* who, const char* const (&names)[N], size_t required = 0) {
  std::array<const Value*, N> out{};
  unpack_into(args, who, names, required, out);  // not an overload: ADL would find a std function that fits better
  return out;
}
void no_arguments(const Args& args, const char* who);

struct Object : std::enable_shared_from_this<Object> {
  virtual ~Object() = default;
  virtual std::string type_name() const = 0;
  virtual std::string repr(Budget&) const { return "<" + type_name() + ">"; }
  virtual bool attribute(const std::string&, Value&) { return false; }
  virtual bool callable() const { return false; }
  virtual Value call(Interp&, Args&) { raise("'" + type_name() + "' object is not callable"); }
};

struct Namespace : Object {
  std::shared_ptr<Dict> values = std::make_shared<Dict>();
  mutable bool printing = false;  // a namespace may hold itself
  std::string type_name() const override { return "Namespace"; }
  std::string repr(Budget& budget) const override;
  bool attribute(const std::string& name, Value& out) override;
};

struct Native : Object {
  std::string name;
  std::function<Value(Interp&, Args&)> run;
  Native(std::string name_, std::function<Value(Interp&, Args&)> run_) : name(std::move(name_)), run(std::move(run_)) {}
  std::string type_name() const override { return "function"; }
  bool callable() const override { return true; }
  Value call(Interp& x, Args& args) override { return run(x, args); }
};

// The variables of a block, loop iteration or macro call. A macro keeps the scopes it was defined in until the render ends.
struct Scope {
  Scope* parent;
  std::vector<std::pair<std::string_view, Value>> variables;  // names live in the tree
  bool captured = false;

  Value* find(std::string_view name);
  void set(std::string_view name, Value value);
};

class Interp {
 public:
  Interp(const Program& program, const Dict& globals, const Options& options);
  ~Interp();
  std::string run();
  size_t offset() const { return offset_; }  // of the node at work: where an error happened

  Value attribute(const Value& v, const std::string& name);  // v.name
  Value item(const Value& v, const Value& key);              // v[key]
  Value call(const Value& callee, Args& args);
  Value make_namespace();  // registered: its cycles are broken when the render ends
  std::string text(const Value& v) { return str(v, budget); }
  int64_t now() const;

  Budget budget;

 private:
  friend class Loop;
  friend struct Macro;
  friend struct Nested;
  friend class Entered;
  enum class Flow { next, leave, repeat };  // leave and repeat: {% break %} and {% continue %}

  Value eval(const Node& n);
  Value eval_name(const Node& n);
  Value eval_call(const Node& n, const std::pair<std::string, Value>* extra = nullptr);
  Value eval_items(const Node& n);
  Value eval_dict(const Node& n);
  Value eval_compare(const Node& n);
  Value eval_concat(const Node& n);
  Value eval_slice(const Node& n);
  Value eval_filter(const Node& n, const Value* input);
  bool eval_test(const Node& n);
  Args eval_arguments(const Arguments& a);
  void at(const Node& n) { offset_ = n.offset; }

  Flow exec(const Nodes& body, std::string& out);
  Flow exec_statement(const Node& n, std::string& out);
  Flow exec_inside(const Nodes& body, std::string& out);  // in a scope of its own
  Flow exec_with(const Node& n, std::string& out);
  Flow run_loop(const Node& n, const Value& iterable, Scope* outer, int depth0, std::string& out);
  void exec_call_block(const Node& n, std::string& out);
  std::string captured(const Nodes& body);
  void emit(std::string& out, std::string_view text);
  void assign(const Node& target, const Value& value);
  Value make_macro(const Node& n, const std::string& name, size_t first_default);

  const Program& program_;
  const Dict& globals_;
  const Options& options_;
  size_t offset_ = 0;
  int depth_ = 0;
  Scope* scope_ = nullptr;
  std::vector<std::unique_ptr<Scope>> kept_;
  std::vector<std::shared_ptr<Namespace>> namespaces_;
};

// Counted at every level of the tree that is being walked, macro calls included; sized for a stack of 8 MiB with sanitizers on.
constexpr int kMaxDepth = 800;
constexpr int64_t kScopeCost = 64;  // work units

struct Nested {
  explicit Nested(Interp& x_) : x(x_) {
    if (++x.depth_ > kMaxDepth) raise("the template calls itself too deep");
  }
  ~Nested() { --x.depth_; }
  Interp& x;
};

// A scope that is entered for the lifetime of this object.
class Entered {
 public:
  Entered(Interp& x, Scope* parent) : x_(x), before_(x.scope_), scope_(new Scope{parent, {}, false}) {
    x.budget.spend(kScopeCost);
    x.scope_ = scope_.get();
  }
  ~Entered() {
    if (scope_->captured) x_.kept_.push_back(std::move(scope_));
    x_.scope_ = before_;
  }
  Scope& operator*() { return *scope_; }

 private:
  Interp& x_;
  Scope* before_;
  std::unique_ptr<Scope> scope_;
};

// Operators, jinja_ops.cc.
Value binary(Interp& x, std::string_view op, const Value& a, const Value& b);
Value unary(Interp& x, std::string_view op, const Value& v);
bool compare(Interp& x, std::string_view op, const Value& a, const Value& b);
bool contains(Interp& x, const Value& container, const Value& item);
Value subscript(Interp& x, const Value& v, const Value& key, bool& found);
Value slice(Interp& x, const Value& v, const Value* start, const Value* stop, const Value* step);
[[noreturn]] void touch_undefined(const Value& v);

}  // namespace ridge::jinja
