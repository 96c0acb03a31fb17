// The methods of str, dict, list and tuple that the sandbox allows: those that do not change the object.
#include <algorithm>

#include "io/jinja_builtins.h"
#include "io/jinja_eval.h"
#include "io/jinja_text.h"

namespace ridge::jinja {

std::string_view cut(std::string_view s, const Value* start, const Value* stop, int64_t& begin) {
  begin = 0;
  if (!start && !stop) return s;
  const int64_t size = int64_t(count_points(s));
  const auto bound = [&](const Value* v, int64_t otherwise) {
    const int64_t i = v && !v->is_none() ? integer_argument(*v, "a position") : otherwise;
    return std::clamp<int64_t>(i < 0 ? (i < -size ? 0 : i + size) : i, 0, size);
  };
  begin = bound(start, 0);
  const int64_t end = std::max(begin, bound(stop, size));
  const size_t from = byte_of(s, size_t(begin));
  return s.substr(from, byte_of(s.substr(from), size_t(end - begin)));
}

namespace {

using Kind = Sequence::Kind;
using Items = std::vector<Value>;

const std::string& self(Interp& x, const Value& v) {
  const std::string& s = v.get<Text>()->bytes;
  x.budget.spend(2 * int64_t(s.size()));
  return s;
}

template <std::string (*map)(string_view)>
Value mapped(Interp& x, const Value& v, Args& a) {
  no_arguments(a, "this method");
  return map(self(x, v));
}

template <bool (*is)(uint32_t)>
Value all_are(Interp& x, const Value& v, Args& a) {
  no_arguments(a, "this method");
  return all_of_kind(self(x, v), is);
}

template <bool upper>
Value cased(Interp& x, const Value& v, Args& a) {
  no_arguments(a, upper ? "isupper" : "islower");
  return is_cased(self(x, v), upper);
}

template <Sides sides>
Value stripped(Interp& x, const Value& v, Args& a) {
  const auto [characters] = unpack(a, "strip", {"chars"});
  const std::string& s = self(x, v);
  if (!characters || characters->is_none()) return strip(s, sides);
  const std::string& set = text_argument(*characters, "strip");
  spend_search(x, s, set);
  return strip(s, sides, set);
}

template <bool from_right>
Value splitted(Interp& x, const Value& v, Args& a) {
  const auto [separator, most_] = unpack(a, "split", {"sep", "maxsplit"});
  const std::string& s = self(x, v);
  const int64_t most = most_ ? integer_argument(*most_, "split") : -1;
  std::vector<string_view> parts;
  if (!separator || separator->is_none()) {
    parts = from_right ? rsplit(s, most) : split(s, most);
  } else {
    const std::string& by = text_argument(*separator, "split");
    if (by.empty()) raise("split needs a separator that is not empty");
    spend_search(x, s, by);
    x.budget.spend(16 * count(s, by));
    parts = from_right ? rsplit(s, by, most) : split(s, by, most);
  }
  Items out;
  for (const string_view part : parts) {
    x.budget.spend(32);
    out.emplace_back(part);
  }
  return make_list(std::move(out), Kind::list, x.budget);
}

Value s_splitlines(Interp& x, const Value& v, Args& a) {
  const auto [keep] = unpack(a, "splitlines", {"keepends"});
  Items out;
  for (const string_view line : splitlines(self(x, v), keep && truthy(*keep))) {
    x.budget.spend(32);
    out.emplace_back(line);
  }
  return make_list(std::move(out), Kind::list, x.budget);
}

Value s_join(Interp& x, const Value& v, Args& a) {
  const auto [items] = unpack(a, "join", {"iterable"}, 1);
  if (items->is_undefined()) return "";
  const std::string& between = v.get<Text>()->bytes;
  std::string out;
  bool first = true;
  Iterator it(*items);
  for (Value item; it.next(item, x.budget); first = false) {
    const std::string& part = text_argument(item, "join");
    x.budget.spend(int64_t(between.size() + part.size()));
    if (!first) out += between;
    out += part;
  }
  return out;
}

template <bool at_end>
Value has_affix(Interp& x, const Value& v, Args& a) {
  const auto [affix, start, stop] = unpack(a, at_end ? "endswith" : "startswith", {"affix", "start", "end"}, 1);
  int64_t begin;
  const string_view s = cut(self(x, v), start, stop, begin);
  const auto fits = [&](const Value& one) {
    const std::string& part = text_argument(one, at_end ? "endswith" : "startswith");
    x.budget.spend(int64_t(part.size()));
    return at_end ? s.ends_with(part) : s.starts_with(part);
  };
  const Sequence* several = affix->get<Sequence>();
  if (!several || several->kind != Kind::tuple) return fits(*affix);
  return std::any_of(several->elements.begin(), several->elements.end(), fits);
}

// find, rfind, index, rindex: the position in code points.
template <bool last, bool must>
Value found_at(Interp& x, const Value& v, Args& a) {
  const auto [part, start, stop] = unpack(a, "find", {"sub", "start", "end"}, 1);
  int64_t begin;
  const string_view s = cut(self(x, v), start, stop, begin);
  const std::string& needle = text_argument(*part, "find");
  spend_search(x, s, needle);
  const size_t at = last ? s.rfind(needle) : s.find(needle);
  if (at != string_view::npos) return begin + int64_t(count_points(s.substr(0, at)));
  if (must) raise("the text does not contain the one that index looks for");
  return -1;
}

Value s_count(Interp& x, const Value& v, Args& a) {
  const auto [part, start, stop] = unpack(a, "count", {"sub", "start", "end"}, 1);
  int64_t begin;
  const string_view s = cut(self(x, v), start, stop, begin);
  const std::string& needle = text_argument(*part, "count");
  spend_search(x, s, needle);
  return count(s, needle);
}

Value s_replace(Interp& x, const Value& v, Args& a) {
  const auto [from_, to_, most] = unpack(a, "replace", {"old", "new", "count"}, 2);
  const std::string &s = self(x, v), &from = text_argument(*from_, "replace"), &to = text_argument(*to_, "replace");
  const int64_t limit = most ? integer_argument(*most, "replace") : -1;
  spend_search(x, s, from);
  x.budget.spend(replaced_size(s, from, to, limit));
  return replace(s, from, to, limit);
}

Value s_format(Interp& x, const Value& v, Args& a) { return brace_format(x, self(x, v), a); }

Value padded(Interp& x, const Value& v, Args& a, const char* who, int side) {
  const auto [width, fill_] = unpack(a, who, {"width", "fillchar"}, 1);
  const std::string& s = self(x, v);
  const std::string fill = fill_ ? text_argument(*fill_, who) : " ";
  if (count_points(fill) != 1) raise(std::string(who) + " pads with exactly one character");
  const int64_t missing = integer_argument(*width, who) - int64_t(count_points(s));
  if (missing <= 0) return s;
  int64_t bytes = 0;
  if (__builtin_mul_overflow(missing, int64_t(fill.size()), &bytes)) Budget::exhausted();
  x.budget.spend(bytes);
  // CPython's centre leans left when both the gap and the width are odd.
  const int64_t before = side < 0 ? 0 : side > 0 ? missing : missing / 2 + (missing & (missing + int64_t(count_points(s))) & 1);
  std::string out;
  for (int64_t i = 0; i < before; ++i) out += fill;
  out += s;
  for (int64_t i = before; i < missing; ++i) out += fill;
  return out;
}
Value s_ljust(Interp& x, const Value& v, Args& a) { return padded(x, v, a, "ljust", -1); }
Value s_rjust(Interp& x, const Value& v, Args& a) { return padded(x, v, a, "rjust", 1); }
Value s_center(Interp& x, const Value& v, Args& a) { return padded(x, v, a, "center", 0); }

Value s_zfill(Interp& x, const Value& v, Args& a) {
  const auto [width] = unpack(a, "zfill", {"width"}, 1);
  const std::string& s = self(x, v);
  const int64_t missing = integer_argument(*width, "zfill") - int64_t(count_points(s));
  if (missing <= 0) return s;
  x.budget.spend(missing);
  const size_t sign = !s.empty() && (s[0] == '-' || s[0] == '+') ? 1 : 0;
  return s.substr(0, sign) + std::string(size_t(missing), '0') + s.substr(sign);
}

template <bool at_end>
Value without(Interp& x, const Value& v, Args& a) {
  const auto [affix] = unpack(a, at_end ? "removesuffix" : "removeprefix", {"affix"}, 1);
  const std::string &s = self(x, v), &part = text_argument(*affix, "removeprefix");
  if (part.empty() || !(at_end ? s.ends_with(part) : s.starts_with(part))) return s;
  return at_end ? s.substr(0, s.size() - part.size()) : s.substr(part.size());
}

template <bool last>
Value partitioned(Interp& x, const Value& v, Args& a) {
  const auto [separator] = unpack(a, "partition", {"sep"}, 1);
  const std::string &s = self(x, v), &by = text_argument(*separator, "partition");
  if (by.empty()) raise("partition needs a separator that is not empty");
  spend_search(x, s, by);
  const size_t at = last ? s.rfind(by) : s.find(by);
  if (at == std::string::npos) return make_list(last ? Items{"", "", s} : Items{s, "", ""}, Kind::tuple, x.budget);
  return make_list({s.substr(0, at), by, s.substr(at + by.size())}, Kind::tuple, x.budget);
}

Value s_expandtabs(Interp& x, const Value& v, Args& a) {
  const auto [size] = unpack(a, "expandtabs", {"tabsize"});
  const int64_t width = size ? std::clamp<int64_t>(integer_argument(*size, "expandtabs"), 0, 1024) : 8;
  const std::string& s = self(x, v);
  std::string out;
  int64_t column = 0;
  for (size_t at = 0; at < s.size();) {
    const uint32_t p = next_point(s, at);
    if (p == '\t') {
      const int64_t n = width ? width - column % width : 0;
      x.budget.spend(n);
      out.append(size_t(n), ' ');
      column += n;
    } else {
      append_point(out, p);
      column = p == '\n' || p == '\r' ? 0 : column + 1;
    }
  }
  return out;
}

// ---- dict, list, tuple

Value view(Interp& x, const Value& v, Args& a, Kind kind) {
  no_arguments(a, "this method");
  Items out;
  for (const auto& [key, value] : v.get<Dict>()->entries) {
    if (kind == Kind::items)
      out.push_back(make_list({key, value}, Kind::tuple, x.budget));
    else
      out.push_back(kind == Kind::keys ? key : value);
  }
  return make_list(std::move(out), kind, x.budget);
}
Value d_items(Interp& x, const Value& v, Args& a) { return view(x, v, a, Kind::items); }
Value d_keys(Interp& x, const Value& v, Args& a) { return view(x, v, a, Kind::keys); }
Value d_values(Interp& x, const Value& v, Args& a) { return view(x, v, a, Kind::values); }
Value d_get(Interp& x, const Value& v, Args& a) {
  if (!a.named.empty()) raise("get takes no keyword arguments");
  const auto [key, otherwise] = unpack(a, "get", {"key", "default"}, 1);
  const Value* found = lookup(*v.get<Dict>(), *key, x.budget);
  return found ? *found : otherwise ? *otherwise : Value(None());
}
Value copied(Interp&, const Value& v, Args& a) {
  return no_arguments(a, "copy"), v;
}  // values are immutable: the same one will do

Value l_index(Interp& x, const Value& v, Args& a) {
  const auto [item] = unpack(a, "index", {"value"}, 1);
  const Sequence& s = *v.get<Sequence>();
  for (size_t i = 0; i < s.size(); ++i)
    if (equal(s.at(i), *item, x.budget)) return int64_t(i);
  raise("the list does not contain what index looks for");
}
Value l_count(Interp& x, const Value& v, Args& a) {
  const auto [item] = unpack(a, "count", {"value"}, 1);
  const Sequence& s = *v.get<Sequence>();
  int64_t n = 0;
  for (size_t i = 0; i < s.size(); ++i) n += equal(s.at(i), *item, x.budget);
  return n;
}

bool blank(uint32_t p) { return is_space(p); }

constexpr Method kText[] = {
    {"upper", mapped<upper>},
    {"lower", mapped<lower>},
    {"casefold", mapped<casefold>},
    {"title", mapped<title>},
    {"capitalize", mapped<capitalize>},
    {"swapcase", mapped<swapcase>},
    {"strip", stripped<kBoth>},
    {"lstrip", stripped<kLeft>},
    {"rstrip", stripped<kRight>},
    {"split", splitted<false>},
    {"rsplit", splitted<true>},
    {"splitlines", s_splitlines},
    {"join", s_join},
    {"startswith", has_affix<false>},
    {"endswith", has_affix<true>},
    {"find", found_at<false, false>},
    {"rfind", found_at<true, false>},
    {"index", found_at<false, true>},
    {"rindex", found_at<true, true>},
    {"count", s_count},
    {"replace", s_replace},
    {"format", s_format},
    {"ljust", s_ljust},
    {"rjust", s_rjust},
    {"center", s_center},
    {"zfill", s_zfill},
    {"removeprefix", without<false>},
    {"removesuffix", without<true>},
    {"partition", partitioned<false>},
    {"rpartition", partitioned<true>},
    {"expandtabs", s_expandtabs},
    {"isupper", cased<true>},
    {"islower", cased<false>},
    {"isalpha", all_are<is_alpha>},
    {"isalnum", all_are<is_alnum>},
    {"isdigit", all_are<is_digit>},
    {"isdecimal", all_are<is_digit>},
    {"isnumeric", all_are<is_digit>},
    {"isspace", all_are<blank>},
};
constexpr Method kDict[] = {{"items", d_items}, {"keys", d_keys}, {"values", d_values}, {"get", d_get}, {"copy", copied}};
constexpr Method kList[] = {{"index", l_index}, {"count", l_count}, {"copy", copied}};

template <size_t N>
const Method* among(const Method (&methods)[N], std::string_view name) {
  for (const Method& m : methods)
    if (name == m.name) return &m;
  return nullptr;
}

}  // namespace

const Method* find_method(const Value& v, std::string_view name) {
  if (v.get<Text>()) return among(kText, name);
  if (v.get<Dict>()) return among(kDict, name);
  const Sequence* s = v.get<Sequence>();
  if (!s || !s->indexable() || (s->kind != Sequence::Kind::list && name == "copy")) return nullptr;
  return among(kList, name);
}

bool modifies(const Value& v, std::string_view name) {
  static constexpr string_view dict[] = {"clear", "pop", "popitem", "setdefault", "update"};
  static constexpr string_view list[] = {"append", "reverse", "insert", "sort", "extend", "remove", "pop", "clear"};
  if (v.get<Dict>()) return std::find(std::begin(dict), std::end(dict), name) != std::end(dict);
  const Sequence* s = v.get<Sequence>();
  return s && s->kind == Sequence::Kind::list && std::find(std::begin(list), std::end(list), name) != std::end(list);
}

}  // namespace ridge::jinja
