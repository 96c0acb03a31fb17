// Operators, comparison, membership, indexing and slicing with Python's meaning. Integers are 64 bits wide: where Python would
// grow beyond, an operation raises instead of wrapping.
#include <algorithm>
#include <cmath>

#include "io/jinja_builtins.h"
#include "io/jinja_eval.h"
#include "io/jinja_text.h"

namespace ridge::jinja {
namespace {

[[noreturn]] void no_operator(std::string_view op, const Value& a, const Value& b) {
  raise("unsupported operand types for " + std::string(op) + ": '" + type_name(a) + "' and '" + type_name(b) + "'");
}

void check_size(bool overflow) {
  if (overflow) raise("an integer grew beyond 64 bits");
}

int64_t integer_power(int64_t base, int64_t exponent) {
  int64_t result = 1;
  for (; exponent > 0; exponent >>= 1) {
    if (exponent & 1) check_size(__builtin_mul_overflow(result, base, &result));
    if (exponent > 1) check_size(__builtin_mul_overflow(base, base, &base));
  }
  return result;
}

int64_t negated(int64_t a) {
  check_size(a == INT64_MIN);
  return -a;
}

// Rounds towards minus infinity, and the remainder has the divisor's sign.
int64_t floor_div(int64_t a, int64_t b) {
  if (b == -1) return negated(a);
  return a / b - (a % b != 0 && (a < 0) != (b < 0));
}
double floor_mod(double a, double b) {
  const double r = std::fmod(a, b);
  return r != 0 && (r < 0) != (b < 0) ? r + b : r == 0 ? std::copysign(0.0, b) : r;
}

Value integers(std::string_view op, int64_t a, int64_t b) {
  int64_t r = 0;
  if (op == "+") return check_size(__builtin_add_overflow(a, b, &r)), r;
  if (op == "-") return check_size(__builtin_sub_overflow(a, b, &r)), r;
  if (op == "*") return check_size(__builtin_mul_overflow(a, b, &r)), r;
  if (op == "**" && b >= 0) return integer_power(a, b);
  if (op == "**")
    return a == 0 ? (raise("0 cannot be raised to a negative power"), Value()) : Value(std::pow(double(a), double(b)));
  if (b == 0) raise("division by zero");
  if (op == "/") return double(a) / double(b);
  if (op == "//") return floor_div(a, b);
  const int64_t rest = b == -1 ? 0 : a % b;  // INT64_MIN % -1 traps
  return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}

Value reals(std::string_view op, double a, double b) {
  if (op == "+") return a + b;
  if (op == "-") return a - b;
  if (op == "*") return a * b;
  if (op == "**") {
    if (a == 0 && b < 0) raise("0.0 cannot be raised to a negative power");
    const double r = std::pow(a, b);
    if (std::isnan(r) && !std::isnan(a) && !std::isnan(b)) raise("a negative number cannot be raised to a fractional power");
    if (std::isinf(r) && std::isfinite(a) && std::isfinite(b)) raise("a number grew too large");
    return r;
  }
  if (b == 0) raise("division by zero");
  if (op == "/") return a / b;
  return op == "//" ? Value((a - floor_mod(a, b)) / b) : Value(floor_mod(a, b));
}

Value joined_text(Interp& x, const Text& a, const Text& b) {
  x.budget.spend(int64_t(a.bytes.size() + b.bytes.size()));
  if (a.safe == b.safe) return Text{a.bytes + b.bytes, a.safe};
  return Text{a.safe ? a.bytes + escape_html(b.bytes) : escape_html(a.bytes) + b.bytes, true};
}

Value repeated(Interp& x, const Value& v, int64_t times) {
  times = std::max<int64_t>(times, 0);
  const Sequence* s = v.get<Sequence>();
  const Text* t = v.get<Text>();
  const int64_t size = int64_t(t ? t->bytes.size() : s->size());
  int64_t total = 0;
  if (__builtin_mul_overflow(size, times, &total) || total > x.budget.left) Budget::exhausted();
  if (t) {
    x.budget.spend(total);
    std::string out;
    out.reserve(size_t(total));
    for (int64_t i = 0; i < times && size; ++i) out += t->bytes;
    return Text{std::move(out), t->safe};
  }
  x.budget.spend(total * 32);  // before the memory is taken
  std::vector<Value> out;
  out.reserve(size_t(total));
  for (int64_t i = 0; i < times && size; ++i) out.insert(out.end(), s->elements.begin(), s->elements.end());
  return make_list(std::move(out), s->kind, x.budget);
}

bool repeatable(const Value& v) {
  const Sequence* s = v.get<Sequence>();
  return v.get<Text>() || (s && (s->kind == Sequence::Kind::list || s->kind == Sequence::Kind::tuple));
}

// Python's slice.indices: where the walk starts and how many steps it takes.
struct Walk {
  int64_t start, step, count;
};
Walk walk(int64_t size, const Value* start, const Value* stop, const Value* step) {
  const auto number = [](const Value* v, int64_t otherwise) {
    return !v || v->is_none() ? otherwise : integer_argument(*v, "a slice");
  };
  const int64_t by = number(step, 1);
  if (by == 0) raise("the step of a slice cannot be zero");
  const int64_t low = by > 0 ? 0 : -1, high = by > 0 ? size : size - 1;
  const auto bound = [&](const Value* v, int64_t otherwise) {
    const int64_t i = number(v, otherwise);
    if (!v || v->is_none()) return i;
    return i < 0 ? std::max(i + size, low) : std::min(i, high);
  };
  const int64_t from = bound(start, by > 0 ? low : high), to = bound(stop, by > 0 ? high : low);
  const int64_t distance = by > 0 ? to - from : from - to;
  // |step| without overflow: INT64_MIN takes one step at most anyway.
  const int64_t stride = by == INT64_MIN ? INT64_MAX : std::abs(by);
  return {from, by, distance > 0 ? (distance - 1) / stride + 1 : 0};
}

Value slice_text(Interp& x, const Text& t, const Value* start, const Value* stop, const Value* step) {
  x.budget.spend(2 * int64_t(t.bytes.size()));
  const Walk w = walk(int64_t(count_points(t.bytes)), start, stop, step);
  if (w.count == 0) return "";
  if (w.step == 1) {
    const size_t from = byte_of(t.bytes, size_t(w.start));
    const string_view rest = string_view(t.bytes).substr(from);
    return rest.substr(0, byte_of(rest, size_t(w.count)));
  }
  x.budget.spend(8 * int64_t(t.bytes.size()));
  std::vector<size_t> offsets;
  for (size_t at = 0; at < t.bytes.size(); next_point(t.bytes, at)) offsets.push_back(at);
  offsets.push_back(t.bytes.size());
  std::string out;
  for (int64_t i = 0, at = w.start; i < w.count; ++i, at += i < w.count ? w.step : 0)
    out.append(t.bytes, offsets[size_t(at)], offsets[size_t(at) + 1] - offsets[size_t(at)]);
  return out;
}

}  // namespace

Value binary(Interp& x, std::string_view op, const Value& a, const Value& b) {
  if (a.is_undefined()) touch_undefined(a);
  if (op == "%" && a.get<Text>()) return percent_format(x, a.get<Text>()->bytes, b);
  if (b.is_undefined()) touch_undefined(b);
  int64_t i, j;
  double p, q;
  const bool integer_a = as_integer(a, i), integer_b = as_integer(b, j);
  if (integer_a && integer_b) return integers(op, i, j);
  if (as_number(a, p) && as_number(b, q)) return reals(op, p, q);
  if (op == "*" && integer_b && repeatable(a)) return repeated(x, a, j);
  if (op == "*" && integer_a && repeatable(b)) return repeated(x, b, i);
  if (op != "+") no_operator(op, a, b);
  const Text *t = a.get<Text>(), *u = b.get<Text>();
  if (t && u) return joined_text(x, *t, *u);
  const Sequence *l = a.get<Sequence>(), *r = b.get<Sequence>();
  if (!l || !r || l->kind != r->kind || !repeatable(a)) no_operator(op, a, b);
  x.budget.spend(32 * int64_t(l->size() + r->size()));
  std::vector<Value> both = l->elements;
  both.insert(both.end(), r->elements.begin(), r->elements.end());
  return make_list(std::move(both), l->kind, x.budget);
}

Value unary(Interp&, std::string_view op, const Value& v) {
  if (op == "not") return !truthy(v);
  if (v.is_undefined()) touch_undefined(v);
  int64_t i;
  if (as_integer(v, i)) return op == "+" ? i : negated(i);
  if (const double* d = v.get<double>()) return op == "+" ? *d : -*d;
  raise("bad operand type for unary " + std::string(op) + ": '" + type_name(v) + "'");
}

bool compare(Interp& x, std::string_view op, const Value& a, const Value& b) {
  if (op == "==") return equal(a, b, x.budget);
  if (op == "!=") return !equal(a, b, x.budget);
  if (op == "in") return contains(x, b, a);
  if (op == "not in") return !contains(x, b, a);
  double p, q;
  if (as_number(a, p) && as_number(b, q) && (std::isnan(p) || std::isnan(q))) return false;
  if (op == "<") return less(a, b, x.budget);
  if (op == ">") return less(b, a, x.budget);
  return op == "<=" ? !less(b, a, x.budget) : !less(a, b, x.budget);
}

void spend_search(Interp& x, std::string_view text, std::string_view needle) {
  const int64_t n = int64_t(text.size()), m = int64_t(needle.size());
  // Memory compares a kilobyte in the time of one unit; n and m are below 2^29 as the budget paid for both.
  x.budget.spend(n + m + n * m / 1024);
}

bool contains(Interp& x, const Value& container, const Value& item) {
  if (const Text* t = container.get<Text>()) {
    const Text* part = item.get<Text>();
    if (!part) raise("'in' on a string needs a string on its left, not '" + type_name(item) + "'");
    spend_search(x, t->bytes, part->bytes);
    return t->bytes.find(part->bytes) != std::string::npos;
  }
  if (const Dict* d = container.get<Dict>()) return lookup(*d, item, x.budget);
  Iterator items(container);
  for (Value v; items.next(v, x.budget);)
    if (equal(v, item, x.budget)) return true;
  return false;
}

// v[key] where v is indexed or keyed by it; `found` tells.
Value subscript(Interp& x, const Value& v, const Value& key, bool& found) {
  if (const Dict* d = v.get<Dict>()) {
    const Sequence* s = key.get<Sequence>();
    const bool hashable = !key.get<Dict>() && (!s || s->kind != Sequence::Kind::list);
    const Value* value = hashable ? lookup(*d, key, x.budget) : nullptr;
    found = value;
    return found ? *value : Value();
  }
  int64_t i;
  if (!as_integer(key, i)) return {};
  if (const Text* t = v.get<Text>()) {
    x.budget.spend(int64_t(t->bytes.size()));
    const int64_t size = i < 0 ? int64_t(count_points(t->bytes)) : 0;
    if (i + size < 0) return {};
    const size_t from = byte_of(t->bytes, size_t(i + size));
    if (from >= t->bytes.size()) return {};
    size_t end = from;
    next_point(t->bytes, end);
    found = true;
    return t->bytes.substr(from, end - from);
  }
  const Sequence* s = v.get<Sequence>();
  if (!s || !s->indexable()) return {};
  if (i < 0) i += int64_t(s->size());
  if (i < 0 || i >= int64_t(s->size())) return {};
  found = true;
  return s->at(size_t(i));
}

Value slice(Interp& x, const Value& v, const Value* start, const Value* stop, const Value* step) {
  if (v.is_undefined()) touch_undefined(v);
  if (const Text* t = v.get<Text>()) return slice_text(x, *t, start, stop, step);
  const Sequence* s = v.get<Sequence>();
  if (!s || !s->indexable()) raise("'" + type_name(v) + "' object cannot be sliced");
  const Walk w = walk(int64_t(s->size()), start, stop, step);
  x.budget.spend(32 * w.count);
  std::vector<Value> out;
  out.reserve(size_t(w.count));
  for (int64_t i = 0, at = w.start; i < w.count; ++i, at += i < w.count ? w.step : 0) out.push_back(s->at(size_t(at)));
  return make_list(std::move(out), s->kind == Sequence::Kind::tuple ? Sequence::Kind::tuple : Sequence::Kind::list, x.budget);
}

}  // namespace ridge::jinja
