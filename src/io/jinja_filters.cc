// The filters of sequences and mappings: {{ value|name(arguments) }}; those of text and numbers are in jinja_text_filters.cc.
// Those that walk a sequence lazily in Jinja (map, select, unique, ...) are computed at once here and yield a generator value, so
// that truth, printing and single use stay as templates know them.
#include <algorithm>
#include <cmath>

#include "io/jinja_builtins.h"
#include "io/jinja_eval.h"
#include "io/jinja_text.h"

namespace ridge::jinja {

std::vector<Value> items_of(Interp& x, const Value& v) {
  std::vector<Value> items;
  Iterator it(v);
  for (Value item; it.next(item, x.budget);) {
    x.budget.spend(32);
    items.push_back(item);
  }
  return items;
}

namespace {

using Kind = Sequence::Kind;
using Items = std::vector<Value>;

Value list_of(Interp& x, Items items, Kind kind = Kind::list) { return make_list(std::move(items), kind, x.budget); }
bool flag(const Value* v) { return v && truthy(*v); }

// "a.b.0" walks attributes and indices; an integer or nothing is taken as it is.
Value walk_path(Interp& x, Value v, const Value* path, const Value* otherwise = nullptr) {
  if (!path || path->is_none()) return v;
  const auto step = [&](const Value& key) {
    v = x.item(v, key);
    if (v.is_undefined() && otherwise && !otherwise->is_none()) v = *otherwise;
  };
  const Text* text = path->get<Text>();
  if (!text) return step(*path), v;
  for (const string_view part : split(text->bytes, ".", -1)) {
    const bool number = part.size() < 10 && all_of_kind(part, [](uint32_t c) { return c >= '0' && c <= '9'; });
    step(number ? Value(int64_t(std::stoll(std::string(part)))) : Value(part));
  }
  return v;
}

Value folded(const Value& v, bool case_sensitive) {
  const Text* t = v.get<Text>();
  return t && !case_sensitive ? Value(lower(t->bytes)) : v;
}

// Stable, as Python's sort; `reverse` keeps equal elements in their order too.
void sort_by(Interp& x, std::vector<std::pair<Value, Value>>& keyed, bool reverse) {
  merge_sort(keyed, [&](const auto& a, const auto& b) {
    return reverse ? less(b.first, a.first, x.budget) : less(a.first, b.first, x.budget);
  });
}

// ---- sequences

Value f_length(Interp& x, const Value& v, Args& a) {
  no_arguments(a, "length");
  const Sequence* s = v.get<Sequence>();
  const bool sized = v.is_undefined() || v.get<Text>() || v.get<Dict>() || (s && s->kind != Kind::generator);
  if (!sized) raise("a value of type '" + type_name(v) + "' has no length");
  return Iterator(v).remaining(x.budget);
}

Value f_list(Interp& x, const Value& v, Args& a) { return no_arguments(a, "list"), list_of(x, items_of(x, v)); }

Value f_first(Interp& x, const Value& v, Args& a) {
  no_arguments(a, "first");
  Value item;
  return Iterator(v).next(item, x.budget) ? item : Value::undefined("there is no first item: the sequence is empty");
}

Value f_last(Interp& x, const Value& v, Args& a) {
  no_arguments(a, "last");
  if (v.get<Sequence>() && v.get<Sequence>()->kind == Kind::generator)
    raise("last needs a sequence, not a generator: add '|list' before it");
  Items items = items_of(x, v);
  return items.empty() ? Value::undefined("there is no last item: the sequence is empty") : items.back();
}

Value f_join(Interp& x, const Value& v, Args& a) {
  const auto [separator, path] = unpack(a, "join", {"d", "attribute"});
  const std::string between = separator ? x.text(*separator) : "";
  std::string out;
  bool first = true;
  Iterator it(v);
  for (Value item; it.next(item, x.budget); first = false) {
    x.budget.spend(int64_t(between.size()));
    if (!first) out += between;
    out += x.text(walk_path(x, item, path));
  }
  return out;
}

Value f_reverse(Interp& x, const Value& v, Args& a) {
  no_arguments(a, "reverse");
  if (const Text* t = v.get<Text>()) {
    x.budget.spend(int64_t(t->bytes.size()));
    return reversed(t->bytes);
  }
  Items items = items_of(x, v);
  std::reverse(items.begin(), items.end());
  const bool generator = v.get<Sequence>() && v.get<Sequence>()->kind == Kind::generator;
  return list_of(x, std::move(items), generator ? Kind::list : Kind::generator);
}

Value f_sort(Interp& x, const Value& v, Args& a) {
  const auto [reverse, case_sensitive, path] = unpack(a, "sort", {"reverse", "case_sensitive", "attribute"});
  std::vector<std::pair<Value, Value>> keyed;
  for (const Value& item : items_of(x, v)) {
    Items keys;
    if (const Text* several = path ? path->get<Text>() : nullptr) {
      for (const string_view part : split(several->bytes, ",", -1)) {
        const Value one(part);
        keys.push_back(folded(walk_path(x, item, &one), flag(case_sensitive)));
      }
    } else {
      keys.push_back(folded(walk_path(x, item, path), flag(case_sensitive)));
    }
    keyed.emplace_back(list_of(x, std::move(keys)), item);
  }
  sort_by(x, keyed, flag(reverse));
  Items out;
  for (auto& [key, item] : keyed) out.push_back(std::move(item));
  return list_of(x, std::move(out));
}

Value f_dictsort(Interp& x, const Value& v, Args& a) {
  const auto [case_sensitive, by, reverse] = unpack(a, "dictsort", {"case_sensitive", "by", "reverse"});
  if (v.is_undefined()) touch_undefined(v);
  const Dict* d = v.get<Dict>();
  if (!d) raise("dictsort needs a mapping, not '" + type_name(v) + "'");
  const std::string what = by ? text_argument(*by, "dictsort") : "key";
  if (what != "key" && what != "value") raise("dictsort sorts by 'key' or by 'value'");
  std::vector<std::pair<Value, Value>> keyed;
  for (const auto& [key, value] : d->entries)
    keyed.emplace_back(folded(what == "key" ? key : value, flag(case_sensitive)), list_of(x, {key, value}, Kind::tuple));
  sort_by(x, keyed, flag(reverse));
  Items out;
  for (auto& [key, pair] : keyed) out.push_back(std::move(pair));
  return list_of(x, std::move(out));
}

Value f_items(Interp& x, const Value& v, Args& a) {
  no_arguments(a, "items");
  Items out;
  if (!v.is_undefined()) {
    const Dict* d = v.get<Dict>();
    if (!d) raise("items needs a mapping, not '" + type_name(v) + "'");
    for (const auto& [key, value] : d->entries) out.push_back(list_of(x, {key, value}, Kind::tuple));
  }
  return list_of(x, std::move(out), Kind::generator);
}

Value f_unique(Interp& x, const Value& v, Args& a) {
  const auto [case_sensitive, path] = unpack(a, "unique", {"case_sensitive", "attribute"});
  Dict seen;
  Items out;
  for (const Value& item : items_of(x, v)) {
    const Value key = folded(walk_path(x, item, path), flag(case_sensitive));
    if (lookup(seen, key, x.budget)) continue;
    put(seen, key, true, x.budget);
    out.push_back(item);
  }
  return list_of(x, std::move(out), Kind::generator);
}

Value extreme(Interp& x, const Value& v, Args& a, bool most) {
  const auto [case_sensitive, path] = unpack(a, most ? "max" : "min", {"case_sensitive", "attribute"});
  Value best = Value::undefined("there is no item to choose from: the sequence is empty"), best_key;
  bool first = true;
  for (const Value& item : items_of(x, v)) {
    const Value key = folded(walk_path(x, item, path), flag(case_sensitive));
    if (first || (most ? less(best_key, key, x.budget) : less(key, best_key, x.budget))) best = item, best_key = key;
    first = false;
  }
  return best;
}
Value f_min(Interp& x, const Value& v, Args& a) { return extreme(x, v, a, false); }
Value f_max(Interp& x, const Value& v, Args& a) { return extreme(x, v, a, true); }

Value f_sum(Interp& x, const Value& v, Args& a) {
  const auto [path, start] = unpack(a, "sum", {"attribute", "start"});
  Value total = start ? *start : Value(0);
  if (total.get<Text>()) raise("sum cannot add text: use join");
  for (const Value& item : items_of(x, v)) total = binary(x, "+", total, walk_path(x, item, path));
  return total;
}

Value f_batch(Interp& x, const Value& v, Args& a) {
  const auto [size_, fill] = unpack(a, "batch", {"linecount", "fill_with"}, 1);
  const int64_t size = integer_argument(*size_, "batch");
  Items out, row;
  for (const Value& item : items_of(x, v)) {
    if (int64_t(row.size()) == size) out.push_back(list_of(x, std::exchange(row, {})));
    row.push_back(item);
  }
  if (!row.empty()) {
    for (; fill && !fill->is_none() && int64_t(row.size()) < size; x.budget.spend(32)) row.push_back(*fill);
    out.push_back(list_of(x, std::move(row)));
  }
  return list_of(x, std::move(out), Kind::generator);
}

Value f_slice(Interp& x, const Value& v, Args& a) {
  const auto [slices_, fill] = unpack(a, "slice", {"slices", "fill_with"}, 1);
  const int64_t slices = integer_argument(*slices_, "slice");
  if (slices == 0) raise("slice needs a number other than zero");
  const Items items = items_of(x, v);
  Items out;
  size_t at = 0;
  for (int64_t i = 0; i < slices; ++i) {
    const bool longer = i < int64_t(items.size()) % slices;
    const size_t n = items.size() / size_t(slices) + (longer ? 1 : 0);
    Items row(items.begin() + int64_t(at), items.begin() + int64_t(at + n));
    at += n;
    if (fill && !fill->is_none() && !longer) row.push_back(*fill);
    out.push_back(list_of(x, std::move(row)));
  }
  return list_of(x, std::move(out), Kind::generator);
}

Value f_groupby(Interp& x, const Value& v, Args& a) {
  const auto [path, otherwise, case_sensitive] = unpack(a, "groupby", {"attribute", "default", "case_sensitive"}, 1);
  std::vector<std::pair<Value, Value>> keyed;
  for (const Value& item : items_of(x, v))
    keyed.emplace_back(folded(walk_path(x, item, path, otherwise), flag(case_sensitive)), item);
  sort_by(x, keyed, false);
  Items out;
  for (size_t i = 0; i < keyed.size();) {
    const Value key = walk_path(x, keyed[i].second, path, otherwise);
    Items group;
    const Value& folded_key = keyed[i].first;
    for (; i < keyed.size() && equal(keyed[i].first, folded_key, x.budget); ++i) group.push_back(keyed[i].second);
    out.push_back(list_of(x, {key, list_of(x, std::move(group))}, Kind::tuple));
  }
  return list_of(x, std::move(out));
}

// ---- filters that apply filters and tests

Value f_map(Interp& x, const Value& v, Args& a) {
  Items out;
  if (!truthy(v)) return list_of(x, {}, Kind::generator);
  if (a.positional.empty() && !a.named.empty()) {
    const auto [path, otherwise] = unpack(a, "map", {"attribute", "default"}, 1);
    for (const Value& item : items_of(x, v)) out.push_back(walk_path(x, item, path, otherwise));
    return list_of(x, std::move(out), Kind::generator);
  }
  if (a.positional.empty()) raise("map needs the name of a filter or an attribute");
  const std::string& name = text_argument(a.positional[0], "map");
  const Filter* filter = find_filter(name);
  if (!filter) raise("there is no filter named '" + name + "'");
  Args rest{{a.positional.begin() + 1, a.positional.end()}, a.named};
  for (const Value& item : items_of(x, v)) out.push_back(filter->run(x, item, rest));
  return list_of(x, std::move(out), Kind::generator);
}

Value chosen(Interp& x, const Value& v, Args& a, bool keep, bool by_attribute) {
  if (!truthy(v)) return list_of(x, {}, Kind::generator);
  const size_t skipped = by_attribute ? 1 : 0;
  if (a.positional.size() < skipped) raise("selectattr and rejectattr need the name of an attribute");
  const Value* path = by_attribute ? &a.positional[0] : nullptr;
  const Test* test = nullptr;
  Args rest{{}, a.named};
  if (a.positional.size() > skipped) {
    const std::string& name = text_argument(a.positional[skipped], "select");
    test = find_test(name);
    if (!test) raise("there is no test named '" + name + "'");
    rest.positional.assign(a.positional.begin() + int64_t(skipped) + 1, a.positional.end());
  }
  Items out;
  for (const Value& item : items_of(x, v)) {
    const Value subject = walk_path(x, item, path);
    if ((test ? test->run(x, subject, rest) : truthy(subject)) == keep) out.push_back(item);
  }
  return list_of(x, std::move(out), Kind::generator);
}
Value f_select(Interp& x, const Value& v, Args& a) { return chosen(x, v, a, true, false); }
Value f_reject(Interp& x, const Value& v, Args& a) { return chosen(x, v, a, false, false); }
Value f_selectattr(Interp& x, const Value& v, Args& a) { return chosen(x, v, a, true, true); }
Value f_rejectattr(Interp& x, const Value& v, Args& a) { return chosen(x, v, a, false, true); }

// ---- the rest

Value f_default(Interp&, const Value& v, Args& a) {
  const auto [otherwise, boolean] = unpack(a, "default", {"default_value", "boolean"});
  if (v.is_undefined() || (flag(boolean) && !truthy(v))) return otherwise ? *otherwise : Value("");
  return v;
}

Value f_attr(Interp& x, const Value& v, Args& a) {
  const auto [name] = unpack(a, "attr", {"name"}, 1);
  // Unlike a dot it never falls back to the items of a mapping.
  const std::string& key = text_argument(*name, "attr");
  if (v.get<Dict>() && !find_method(v, key)) return Value::undefined("'dict object' has no attribute '" + key + "'");
  return x.attribute(v, key);
}

constexpr Filter kFilters[] = {
    {"attr", f_attr},       {"batch", f_batch},     {"count", f_length},
    {"d", f_default},       {"default", f_default}, {"dictsort", f_dictsort},
    {"first", f_first},     {"groupby", f_groupby}, {"items", f_items},
    {"join", f_join},       {"last", f_last},       {"length", f_length},
    {"list", f_list},       {"map", f_map},         {"max", f_max},
    {"min", f_min},         {"reject", f_reject},   {"rejectattr", f_rejectattr},
    {"reverse", f_reverse}, {"select", f_select},   {"selectattr", f_selectattr},
    {"slice", f_slice},     {"sort", f_sort},       {"sum", f_sum},
    {"unique", f_unique},
};

}  // namespace

const Filter* find_filter(std::string_view name) {
  for (const Filter& f : kFilters)
    if (name == f.name) return &f;
  return find_text_filter(name);
}

}  // namespace ridge::jinja
