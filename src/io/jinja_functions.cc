// The tests ({{ x is name }}) and the global functions of a template.
#include <algorithm>
#include <cmath>
#include <ctime>

#include "io/jinja_builtins.h"
#include "io/jinja_eval.h"
#include "io/jinja_text.h"

namespace ridge::jinja {
namespace {

using Kind = Sequence::Kind;

const Value& operand(Args& a, const char* who) { return *unpack(a, who, {"other"}, 1)[0]; }

template <class T>
bool is_a(Interp&, const Value& v, Args& a) {
  no_arguments(a, "this test");
  return v.get<T>();
}

bool t_defined(Interp&, const Value& v, Args& a) { return no_arguments(a, "defined"), !v.is_undefined(); }
bool t_undefined(Interp&, const Value& v, Args& a) { return no_arguments(a, "undefined"), v.is_undefined(); }
bool t_none(Interp&, const Value& v, Args& a) { return no_arguments(a, "none"), v.is_none(); }
bool t_true(Interp&, const Value& v, Args& a) { return no_arguments(a, "true"), v.get<bool>() && *v.get<bool>(); }
bool t_false(Interp&, const Value& v, Args& a) { return no_arguments(a, "false"), v.get<bool>() && !*v.get<bool>(); }
bool t_number(Interp&, const Value& v, Args& a) {
  double d;
  return no_arguments(a, "number"), as_number(v, d);
}
bool t_sequence(Interp&, const Value& v, Args& a) {
  no_arguments(a, "sequence");
  const Sequence* s = v.get<Sequence>();
  return v.is_undefined() || v.get<Text>() || v.get<Dict>() || (s && s->indexable());
}
bool t_iterable(Interp&, const Value& v, Args& a) {
  no_arguments(a, "iterable");
  return v.is_undefined() || v.get<Text>() || v.get<Dict>() || v.get<Sequence>();
}
bool t_callable(Interp&, const Value& v, Args& a) {
  no_arguments(a, "callable");
  return v.is_undefined() || (v.get<Object>() && v.get<Object>()->callable());
}
bool t_lower(Interp& x, const Value& v, Args& a) { return no_arguments(a, "lower"), is_cased(x.text(v), false); }
bool t_upper(Interp& x, const Value& v, Args& a) { return no_arguments(a, "upper"), is_cased(x.text(v), true); }
bool t_escaped(Interp&, const Value& v, Args& a) { return no_arguments(a, "escaped"), v.get<Text>() && v.get<Text>()->safe; }
bool t_filter(Interp&, const Value& v, Args& a) {
  return no_arguments(a, "filter"), v.get<Text>() && find_filter(v.get<Text>()->bytes);
}
bool t_test(Interp&, const Value& v, Args& a) {
  return no_arguments(a, "test"), v.get<Text>() && find_test(v.get<Text>()->bytes);
}

bool remainder_is(Interp& x, const Value& v, const Value& by, int64_t rest) {
  return equal(binary(x, "%", v, by), rest, x.budget);
}
bool t_odd(Interp& x, const Value& v, Args& a) { return no_arguments(a, "odd"), remainder_is(x, v, 2, 1); }
bool t_even(Interp& x, const Value& v, Args& a) { return no_arguments(a, "even"), remainder_is(x, v, 2, 0); }
bool t_divisibleby(Interp& x, const Value& v, Args& a) { return remainder_is(x, v, operand(a, "divisibleby"), 0); }

bool t_in(Interp& x, const Value& v, Args& a) { return contains(x, operand(a, "in"), v); }
bool t_eq(Interp& x, const Value& v, Args& a) { return compare(x, "==", v, operand(a, "eq")); }
bool t_ne(Interp& x, const Value& v, Args& a) { return compare(x, "!=", v, operand(a, "ne")); }
bool t_gt(Interp& x, const Value& v, Args& a) { return compare(x, ">", v, operand(a, "gt")); }
bool t_ge(Interp& x, const Value& v, Args& a) { return compare(x, ">=", v, operand(a, "ge")); }
bool t_lt(Interp& x, const Value& v, Args& a) { return compare(x, "<", v, operand(a, "lt")); }
bool t_le(Interp& x, const Value& v, Args& a) { return compare(x, "<=", v, operand(a, "le")); }

// Identity: the singletons are themselves, containers are the same storage, and scalars count as the same when type and value are.
bool t_sameas(Interp& x, const Value& v, Args& a) {
  const Value& other = operand(a, "sameas");
  if (type_name(v) != type_name(other)) return false;
  if (v.get<Sequence>()) return v.get<Sequence>() == other.get<Sequence>();
  if (v.get<Dict>()) return v.get<Dict>() == other.get<Dict>();
  return !v.is_undefined() && equal(v, other, x.budget);
}

constexpr Test kTests[] = {
    {"!=", t_ne},
    {"<", t_lt},
    {"<=", t_le},
    {"==", t_eq},
    {">", t_gt},
    {">=", t_ge},
    {"boolean", is_a<bool>},
    {"callable", t_callable},
    {"defined", t_defined},
    {"divisibleby", t_divisibleby},
    {"eq", t_eq},
    {"equalto", t_eq},
    {"escaped", t_escaped},
    {"even", t_even},
    {"false", t_false},
    {"filter", t_filter},
    {"float", is_a<double>},
    {"ge", t_ge},
    {"greaterthan", t_gt},
    {"gt", t_gt},
    {"in", t_in},
    {"integer", is_a<int64_t>},
    {"iterable", t_iterable},
    {"le", t_le},
    {"lessthan", t_lt},
    {"lower", t_lower},
    {"lt", t_lt},
    {"mapping", is_a<Dict>},
    {"ne", t_ne},
    {"none", t_none},
    {"number", t_number},
    {"odd", t_odd},
    {"sameas", t_sameas},
    {"sequence", t_sequence},
    {"string", is_a<Text>},
    {"test", t_test},
    {"true", t_true},
    {"undefined", t_undefined},
    {"upper", t_upper},
};

// ---- global functions

constexpr int64_t kMaxRange = 100000;  // the sandbox's own limit

Value g_range(Interp&, Args& a) {
  if (!a.named.empty() || a.positional.empty() || a.positional.size() > 3) raise("range takes one to three numbers");
  int64_t n[3] = {0, 0, 1};
  for (size_t i = 0; i < a.positional.size(); ++i) n[i] = integer_argument(a.positional[i], "range");
  if (a.positional.size() == 1) std::swap(n[0], n[1]);
  const auto [start, stop, step] = n;
  if (step == 0) raise("range needs a step other than zero");
  const bool up = step > 0;
  if (up ? start >= stop : start <= stop) return std::make_shared<Sequence>(start, stop, step, 0);
  const uint64_t distance = up ? uint64_t(stop) - uint64_t(start) : uint64_t(start) - uint64_t(stop);
  const uint64_t stride = up ? uint64_t(step) : 0 - uint64_t(step);
  const uint64_t count = (distance - 1) / stride + 1;
  if (count > uint64_t(kMaxRange)) raise("range is limited to " + std::to_string(kMaxRange) + " numbers");
  return std::make_shared<Sequence>(start, stop, step, int64_t(count));
}

// What dict(...) and namespace(...) share: a mapping or pairs, then keywords.
void fill(Interp& x, Dict& d, Args& a, const char* who) {
  if (a.positional.size() > 1) raise(std::string(who) + " takes at most one positional argument");
  if (!a.positional.empty()) {
    const Value& source = a.positional[0];
    if (const Dict* other = source.get<Dict>()) {
      for (const auto& [key, value] : other->entries) put(d, key, value, x.budget);
    } else {
      Iterator pairs(source);
      for (Value pair; pairs.next(pair, x.budget);) {
        Iterator both(pair);
        Value key, value, more;
        if (!both.next(key, x.budget) || !both.next(value, x.budget) || both.next(more, x.budget))
          raise(std::string(who) + " needs pairs of key and value");
        put(d, key, value, x.budget);
      }
    }
  }
  for (auto& [key, value] : a.named) put(d, key, value, x.budget);
}

Value g_dict(Interp& x, Args& a) {
  auto d = std::make_shared<Dict>();
  fill(x, *d, a, "dict");
  return d;
}

Value g_namespace(Interp& x, Args& a) {
  Value space = x.make_namespace();
  fill(x, *std::static_pointer_cast<Namespace>(space.shared<Object>())->values, a, "namespace");
  return space;
}

Value g_raise_exception(Interp& x, Args& a) {
  const auto [message] = unpack(a, "raise_exception", {"message"}, 1);
  raise(x.text(*message));
}

Value g_strftime_now(Interp& x, Args& a) {
  const auto [format] = unpack(a, "strftime_now", {"format"}, 1);
  const std::string& f = text_argument(*format, "strftime_now");
  if (f.size() > 256) raise("strftime_now's format is longer than 256 bytes");
  const time_t now = time_t(x.now());
  tm local{};
  if (f.empty() || !localtime_r(&now, &local)) return "";
  char buffer[8192];
  // NUL ends the format for the C library; an empty result and one that does not fit look alike, both yield nothing.
  return std::string(buffer, strftime(buffer, sizeof buffer, f.c_str(), &local));
}

struct Cycler : Object {
  std::vector<Value> items;
  size_t at = 0;
  std::string type_name() const override { return "Cycler"; }
  bool attribute(const std::string& name, Value& out) override {
    if (name == "current") return out = items[at], true;
    if (name != "next" && name != "reset") return false;
    auto self = std::static_pointer_cast<Cycler>(shared_from_this());
    out = std::shared_ptr<Object>(std::make_shared<Native>(name, [self, reset = name == "reset"](Interp&, Args& a) -> Value {
      no_arguments(a, "a cycler's method");
      const Value now = self->items[self->at];
      self->at = reset ? 0 : (self->at + 1) % self->items.size();
      return reset ? Value(None()) : now;
    }));
    return true;
  }
};

Value g_cycler(Interp& x, Args& a) {
  if (a.positional.empty() || !a.named.empty()) raise("cycler needs something to cycle through");
  x.budget.spend(32 * int64_t(a.positional.size()) + 64);
  auto cycler = std::make_shared<Cycler>();
  cycler->items = a.positional;
  return std::shared_ptr<Object>(cycler);
}

Value g_joiner(Interp& x, Args& a) {
  const auto [separator] = unpack(a, "joiner", {"sep"});
  x.budget.spend(64);
  return std::shared_ptr<Object>(std::make_shared<Native>(
      "joiner", [used = false, between = separator ? *separator : Value(", ")](Interp&, Args& args) mutable {
        no_arguments(args, "joiner");
        return std::exchange(used, true) ? between : Value("");
      }));
}

constexpr Function kFunctions[] = {
    {"range", g_range},
    {"dict", g_dict},
    {"namespace", g_namespace},
    {"cycler", g_cycler},
    {"joiner", g_joiner},
    {"raise_exception", g_raise_exception},
    {"strftime_now", g_strftime_now},
};

}  // namespace

const Test* find_test(std::string_view name) {
  for (const Test& t : kTests)
    if (name == t.name) return &t;
  return nullptr;
}

const Function* find_function(std::string_view name) {
  for (const Function& f : kFunctions)
    if (name == f.name) return &f;
  return nullptr;
}

}  // namespace ridge::jinja
