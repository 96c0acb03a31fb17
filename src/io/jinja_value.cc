// Python's ideas of truth, equality, order and printing, for the values of jinja_value.h.
#include "io/jinja_value.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "io/jinja_eval.h"
#include "io/jinja_text.h"

namespace ridge::jinja {
namespace {

constexpr int64_t kElementCost = 32;  // bytes of a Value with its share of the containers around it

int nesting_of(const std::vector<Value>& items) {
  int deepest = 0;
  for (const Value& v : items) deepest = std::max(deepest, v.depth());
  return deepest + 1;
}

bool hashable(const Value& v) {
  if (v.get<Dict>()) return false;
  const Sequence* s = v.get<Sequence>();
  if (!s || s->kind != Sequence::Kind::tuple)
    return !s || s->kind == Sequence::Kind::range || s->kind == Sequence::Kind::generator;
  return std::all_of(s->elements.begin(), s->elements.end(), hashable);
}

void too_deep(int nesting) {
  if (nesting > kMaxNesting) raise("values are nested more than " + std::to_string(kMaxNesting) + " deep");
}

std::string joined_reprs(const Sequence& s, std::string_view open, std::string_view close, Budget& budget) {
  std::string out(open);
  for (size_t i = 0; i < s.size(); ++i) {
    if (i) out += ", ";
    out += repr(s.at(i), budget);
  }
  if (s.kind == Sequence::Kind::tuple && s.size() == 1) out += ',';
  return out.append(close);
}

std::string sequence_repr(const Sequence& s, Budget& budget) {
  switch (s.kind) {
    case Sequence::Kind::list: return joined_reprs(s, "[", "]", budget);
    case Sequence::Kind::tuple: return joined_reprs(s, "(", ")", budget);
    case Sequence::Kind::items: return joined_reprs(s, "dict_items([", "])", budget);
    case Sequence::Kind::keys: return joined_reprs(s, "dict_keys([", "])", budget);
    case Sequence::Kind::values: return joined_reprs(s, "dict_values([", "])", budget);
    case Sequence::Kind::generator: return "<generator object>";
    case Sequence::Kind::range: break;
  }
  std::string out = "range(" + std::to_string(s.start) + ", " + std::to_string(s.stop);
  if (s.step != 1) out += ", " + std::to_string(s.step);
  return out + ")";
}

bool sequences_equal(const Sequence& a, const Sequence& b, Budget& budget) {
  if (a.kind != b.kind || a.kind == Sequence::Kind::generator || a.kind == Sequence::Kind::values) return &a == &b;
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < a.size(); ++i)
    if (!equal(a.at(i), b.at(i), budget)) return false;
  return true;
}

bool dicts_equal(const Dict& a, const Dict& b, Budget& budget) {
  if (a.entries.size() != b.entries.size()) return false;
  for (const auto& [key, value] : a.entries) {
    const Value* other = lookup(b, key, budget);
    if (!other || !equal(value, *other, budget)) return false;
  }
  return true;
}

}  // namespace

void raise(std::string sentence) { throw Raise{std::move(sentence)}; }

void Budget::exhausted() { raise("rendering takes more work than a template is allowed"); }

Value Value::list(std::vector<Value> items) { return std::make_shared<Sequence>(Sequence::Kind::list, std::move(items)); }
Value Value::tuple(std::vector<Value> items) { return std::make_shared<Sequence>(Sequence::Kind::tuple, std::move(items)); }
Value Value::undefined(std::string why) {
  Value v;
  std::get<Undefined>(v.v_).why = std::make_shared<const std::string>(std::move(why));
  return v;
}

int Value::depth() const {
  if (const Sequence* s = get<Sequence>()) return s->nesting;
  const Dict* d = get<Dict>();
  return d ? d->nesting : 0;
}

Sequence::Sequence(Kind kind_, std::vector<Value> elements_)
    : kind(kind_), elements(std::move(elements_)), nesting(nesting_of(elements)) {}

const Value* Dict::find(std::string_view key) const {
  for (const auto& [k, v] : entries)
    if (const Text* text = k.get<Text>(); text && text->bytes == key) return &v;
  return nullptr;
}

void Dict::set(std::string key, Value value) {
  nesting = std::max(nesting, value.depth() + 1);
  if (const Value* found = find(key))
    *const_cast<Value*>(found) = std::move(value);
  else
    entries.emplace_back(Value(std::move(key)), std::move(value));
}

void Dict::append(Value key, Value value) {
  nesting = std::max({nesting, key.depth() + 1, value.depth() + 1});
  entries.emplace_back(std::move(key), std::move(value));
}

Value make_list(std::vector<Value> items, Sequence::Kind kind, Budget& budget) {
  budget.spend(kElementCost * int64_t(items.size() + 2));
  auto s = std::make_shared<Sequence>(kind, std::move(items));
  too_deep(s->nesting);
  return s;
}

void put(Dict& dict, Value key, Value value, Budget& budget) {
  budget.spend(2 * kElementCost);
  if (const Value* found = lookup(dict, key, budget)) {
    dict.nesting = std::max(dict.nesting, value.depth() + 1);
    *const_cast<Value*>(found) = std::move(value);
  } else {
    dict.append(std::move(key), std::move(value));
  }
  too_deep(dict.nesting);
}

const Value* lookup(const Dict& dict, const Value& key, Budget& budget) {
  if (!hashable(key)) raise("unhashable type: '" + type_name(key) + "'");
  budget.spend(int64_t(dict.entries.size()));
  if (const Text* text = key.get<Text>()) return dict.find(text->bytes);
  for (const auto& [k, v] : dict.entries)
    if (equal(k, key, budget)) return &v;
  return nullptr;
}

bool truthy(const Value& v) {
  if (v.is_undefined() || v.is_none()) return false;
  if (const bool* b = v.get<bool>()) return *b;
  if (const int64_t* i = v.get<int64_t>()) return *i != 0;
  if (const double* d = v.get<double>()) return *d != 0;
  if (const Text* t = v.get<Text>()) return !t->bytes.empty();
  if (const Sequence* s = v.get<Sequence>()) return s->kind == Sequence::Kind::generator || s->size() > 0;
  if (const Dict* d = v.get<Dict>()) return !d->entries.empty();
  return true;
}

bool as_integer(const Value& v, int64_t& out) {
  if (const int64_t* i = v.get<int64_t>()) return out = *i, true;
  if (const bool* b = v.get<bool>()) return out = *b, true;
  return false;
}

bool as_number(const Value& v, double& out) {
  int64_t i;
  if (as_integer(v, i)) return out = double(i), true;
  if (const double* d = v.get<double>()) return out = *d, true;
  return false;
}

bool equal(const Value& a, const Value& b, Budget& budget) {
  budget.spend(1);
  int64_t i, j;
  double x, y;
  if (as_integer(a, i) && as_integer(b, j)) return i == j;
  if (as_number(a, x) && as_number(b, y)) return x == y;
  if (const Text* s = a.get<Text>(), *t = b.get<Text>(); s && t) {
    budget.spend(int64_t(std::min(s->bytes.size(), t->bytes.size())));
    return s->bytes == t->bytes;
  }
  if (const Sequence* s = a.get<Sequence>(), *t = b.get<Sequence>(); s && t) return sequences_equal(*s, *t, budget);
  if (const Dict* s = a.get<Dict>(), *t = b.get<Dict>(); s && t) return dicts_equal(*s, *t, budget);
  if (a.get<Object>()) return a.get<Object>() == b.get<Object>();
  return (a.is_undefined() && b.is_undefined()) || (a.is_none() && b.is_none());
}

bool less(const Value& a, const Value& b, Budget& budget) {
  budget.spend(1);
  for (const Value* v : {&a, &b})
    if (v->is_undefined()) touch_undefined(*v);
  int64_t i, j;
  double x, y;
  if (as_integer(a, i) && as_integer(b, j)) return i < j;
  if (as_number(a, x) && as_number(b, y)) return x < y;
  if (const Text* s = a.get<Text>(), *t = b.get<Text>(); s && t) {
    budget.spend(int64_t(std::min(s->bytes.size(), t->bytes.size())));
    return s->bytes < t->bytes;  // UTF-8 sorts as its code points do
  }
  const Sequence *s = a.get<Sequence>(), *t = b.get<Sequence>();
  const bool ordered = s && t && s->kind == t->kind && (s->kind == Sequence::Kind::list || s->kind == Sequence::Kind::tuple);
  if (!ordered) raise("'<' not supported between instances of '" + type_name(a) + "' and '" + type_name(b) + "'");
  for (size_t k = 0; k < std::min(s->size(), t->size()); ++k)
    if (!equal(s->at(k), t->at(k), budget)) return less(s->at(k), t->at(k), budget);
  return s->size() < t->size();
}

std::string str(const Value& v, Budget& budget) {
  if (v.is_undefined()) return {};
  if (const Text* t = v.get<Text>()) {
    budget.spend(int64_t(t->bytes.size()));
    return t->bytes;
  }
  return repr(v, budget);
}

std::string repr(const Value& v, Budget& budget) {
  budget.spend(8);
  if (v.is_undefined()) return "Undefined";
  if (v.is_none()) return "None";
  if (const bool* b = v.get<bool>()) return *b ? "True" : "False";
  if (const int64_t* i = v.get<int64_t>()) return std::to_string(*i);
  if (const double* d = v.get<double>()) return float_repr(*d);
  if (const Text* t = v.get<Text>()) {
    budget.spend(2 * int64_t(t->bytes.size()));
    return t->safe ? "Markup(" + quoted(t->bytes) + ")" : quoted(t->bytes);
  }
  if (const Sequence* s = v.get<Sequence>()) return sequence_repr(*s, budget);
  if (const Object* o = v.get<Object>()) return o->repr(budget);
  std::string out = "{";
  for (const auto& [key, value] : v.get<Dict>()->entries) {
    if (out.size() > 1) out += ", ";
    out += repr(key, budget) + ": " + repr(value, budget);
  }
  return out + "}";
}

std::string float_repr(double v) {
  if (std::isnan(v)) return "nan";
  if (std::isinf(v)) return v < 0 ? "-inf" : "inf";
  char buffer[40];
  // Python prints the shortest digits that read back, plainly from 1e-4 up to 1e16.
  const double size = std::abs(v);
  const bool plain = v == 0 || (size >= 1e-4 && size < 1e16);
  const auto end =
      std::to_chars(buffer, buffer + sizeof buffer, v, plain ? std::chars_format::fixed : std::chars_format::scientific);
  std::string out(buffer, end.ptr);
  if (plain && out.find('.') == std::string::npos) out += ".0";
  return out;
}

std::string type_name(const Value& v) {
  if (v.is_undefined()) return "Undefined";
  if (v.is_none()) return "NoneType";
  if (v.get<bool>()) return "bool";
  if (v.get<int64_t>()) return "int";
  if (v.get<double>()) return "float";
  if (v.get<Text>()) return "str";
  if (v.get<Dict>()) return "dict";
  if (const Object* o = v.get<Object>()) return o->type_name();
  static const char* const names[] = {"list", "tuple", "generator", "dict_items", "dict_keys", "dict_values", "range"};
  return names[int(v.get<Sequence>()->kind)];
}

Iterator::Iterator(const Value& source) : source_(source) {
  if (const Sequence* s = source.get<Sequence>()) {
    if (s->kind == Sequence::Kind::generator) at_ = s->consumed;
  } else if (!source.is_undefined() && !source.get<Text>() && !source.get<Dict>()) {
    raise("'" + type_name(source) + "' object is not iterable");
  }
}

bool Iterator::next(Value& item, Budget& budget) {
  budget.spend(2);
  if (const Sequence* s = source_.get<Sequence>()) {
    const bool shared = s->kind == Sequence::Kind::generator;
    size_t& at = shared ? s->consumed : at_;
    if (at >= s->size()) return false;
    item = s->at(at++);
    return true;
  }
  if (const Text* t = source_.get<Text>()) {
    if (at_ >= t->bytes.size()) return false;
    const size_t from = at_;
    next_point(t->bytes, at_);
    item = Value(std::string_view(t->bytes).substr(from, at_ - from));
    return true;
  }
  const Dict* d = source_.get<Dict>();
  if (!d || at_ >= d->entries.size()) return false;
  item = d->entries[at_++].first;
  return true;
}

int64_t Iterator::remaining(Budget& budget) const {
  if (const Sequence* s = source_.get<Sequence>())
    return int64_t(s->size() - (s->kind == Sequence::Kind::generator ? s->consumed : at_));
  if (const Text* t = source_.get<Text>()) {
    budget.spend(int64_t(t->bytes.size()));
    return int64_t(count_points(std::string_view(t->bytes).substr(at_)));
  }
  const Dict* d = source_.get<Dict>();
  return d ? int64_t(d->entries.size() - at_) : 0;
}

}  // namespace ridge::jinja
