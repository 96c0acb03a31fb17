// The filters of text and numbers: {{ value|name(arguments) }}. As in Jinja they take any value and work on what it prints as.
#include <algorithm>
#include <cmath>

#include "io/jinja_builtins.h"
#include "io/jinja_eval.h"
#include "io/jinja_text.h"

namespace ridge::jinja {
namespace {

bool flag(const Value* v) { return v && truthy(*v); }
int64_t integer(const Value* v, int64_t otherwise, const char* who) {
  return v && !v->is_none() ? integer_argument(*v, who) : otherwise;
}
std::string plain(Interp& x, const Value& v) { return x.text(v); }

// ---- text

Value f_upper(Interp& x, const Value& v, Args& a) { return no_arguments(a, "upper"), upper(plain(x, v)); }
Value f_lower(Interp& x, const Value& v, Args& a) { return no_arguments(a, "lower"), lower(plain(x, v)); }
Value f_title(Interp& x, const Value& v, Args& a) { return no_arguments(a, "title"), title_words(plain(x, v)); }
Value f_capitalize(Interp& x, const Value& v, Args& a) { return no_arguments(a, "capitalize"), capitalize(plain(x, v)); }
Value f_string(Interp& x, const Value& v, Args& a) {
  no_arguments(a, "string");
  return v.get<Text>() ? v : Value(plain(x, v));
}
Value f_safe(Interp& x, const Value& v, Args& a) { return no_arguments(a, "safe"), Text{plain(x, v), true}; }
Value f_escape(Interp& x, const Value& v, Args& a) {
  no_arguments(a, "escape");
  if (v.get<Text>() && v.get<Text>()->safe) return v;
  x.budget.spend(6 * int64_t(v.get<Text>() ? v.get<Text>()->bytes.size() : 0));
  return Text{escape_html(plain(x, v)), true};
}
Value f_forceescape(Interp& x, const Value& v, Args& a) {
  return no_arguments(a, "forceescape"), Text{escape_html(plain(x, v)), true};
}

Value f_trim(Interp& x, const Value& v, Args& a) {
  const auto [characters] = unpack(a, "trim", {"chars"});
  const std::string s = plain(x, v);
  if (!characters || characters->is_none()) return strip(s, kBoth);
  const std::string& set = text_argument(*characters, "trim");
  spend_search(x, s, set);
  return strip(s, kBoth, set);
}

Value f_replace(Interp& x, const Value& v, Args& a) {
  const auto [from, to, most] = unpack(a, "replace", {"old", "new", "count"}, 2);
  const std::string s = plain(x, v), old = plain(x, *from), fresh = plain(x, *to);
  const int64_t limit = integer(most, -1, "replace");
  spend_search(x, s, old);
  x.budget.spend(replaced_size(s, old, fresh, limit));
  return replace(s, old, fresh, limit);
}

Value f_indent(Interp& x, const Value& v, Args& a) {
  const auto [width, first, blank] = unpack(a, "indent", {"width", "first", "blank"});
  if (!v.get<Text>()) raise("indent needs text, not '" + type_name(v) + "'");
  const Text* given = width ? width->get<Text>() : nullptr;
  const std::string by =
      given ? given->bytes : std::string(size_t(std::clamp<int64_t>(integer(width, 4, "indent"), 0, 1 << 16)), ' ');
  const std::string s = plain(x, v) + "\n";
  std::string out = flag(first) ? by : "";
  bool start = true;
  for (const string_view line : splitlines(s, false)) {
    x.budget.spend(int64_t(by.size() + line.size()) + 2);
    if (!start) out += '\n';
    if (!start && (flag(blank) || !line.empty())) out += by;
    out += line;
    start = false;
  }
  return out;
}

Value f_center(Interp& x, const Value& v, Args& a) {
  const auto [width] = unpack(a, "center", {"width"});
  Args method;
  method.positional.push_back(width ? *width : Value(80));
  const Value text = plain(x, v);
  return find_method(text, "center")->run(x, text, method);
}

Value f_truncate(Interp& x, const Value& v, Args& a) {
  const auto [length_, kill, end_, leeway_] = unpack(a, "truncate", {"length", "killwords", "end", "leeway"});
  const std::string& s = text_argument(v, "truncate");
  const std::string end = end_ ? text_argument(*end_, "truncate") : "...";
  const int64_t length = integer(length_, 255, "truncate"), leeway = integer(leeway_, 5, "truncate"),
                tail = int64_t(count_points(end));
  x.budget.spend(2 * int64_t(s.size()));
  if (length < tail || leeway < 0) raise("truncate needs a length of at least its ending's");
  if (int64_t(count_points(s)) - leeway <= length) return v;
  string_view kept = string_view(s).substr(0, byte_of(s, size_t(length - tail)));
  if (!flag(kill)) kept = kept.substr(0, std::min(kept.rfind(' '), kept.size()));
  return std::string(kept) + end;
}

Value f_wordcount(Interp& x, const Value& v, Args& a) {
  no_arguments(a, "wordcount");
  const std::string s = plain(x, v);
  int64_t words = 0;
  bool inside = false;
  for (size_t at = 0; at < s.size();) {
    const uint32_t p = next_point(s, at);
    const bool word = is_alnum(p) || p == '_';
    words += word && !inside;
    inside = word;
  }
  return words;
}

Value f_format(Interp& x, const Value& v, Args& a) {
  if (!a.positional.empty() && !a.named.empty()) raise("format takes positional or keyword arguments, not both");
  if (a.named.empty()) return percent_format(x, plain(x, v), make_list(a.positional, Sequence::Kind::tuple, x.budget));
  auto named = std::make_shared<Dict>();
  for (auto& [key, value] : a.named) put(*named, key, value, x.budget);
  return percent_format(x, plain(x, v), named);
}

Value f_urlencode(Interp& x, const Value& v, Args& a) {
  no_arguments(a, "urlencode");
  static const char digits[] = "0123456789ABCDEF";
  std::string out;
  const auto quote = [&](const std::string& s, string_view keep) {
    x.budget.spend(3 * int64_t(s.size()));
    for (const char c : s) {
      const bool word = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
      if (word || string_view("_.-~").find(c) != string_view::npos || keep.find(c) != string_view::npos)
        out += c;
      else if (c == ' ' && keep.empty())
        out += '+';  // in a query
      else
        out += {'%', digits[uint8_t(c) >> 4], digits[uint8_t(c) & 15]};
    }
  };
  if (!v.get<Dict>() && (v.get<Text>() || !v.get<Sequence>())) return quote(plain(x, v), "/"), out;
  const auto pair = [&](const Value& key, const Value& value) {
    if (!out.empty()) out += '&';
    quote(plain(x, key), "");
    out += '=';
    quote(plain(x, value), "");
  };
  if (const Dict* d = v.get<Dict>()) {
    for (const auto& [key, value] : d->entries) pair(key, value);
    return out;
  }
  for (const Value& item : items_of(x, v)) {
    const std::vector<Value> both = items_of(x, item);
    if (both.size() != 2) raise("urlencode needs pairs of key and value");
    pair(both[0], both[1]);
  }
  return out;
}

Value f_tojson(Interp& x, const Value& v, Args& a) { return to_json(x, v, a); }

// ---- numbers

Value f_abs(Interp& x, const Value& v, Args& a) {
  no_arguments(a, "abs");
  double d;
  if (v.is_undefined() || !as_number(v, d)) raise("abs needs a number, not '" + type_name(v) + "'");
  return d < 0 ? unary(x, "-", v) : unary(x, "+", v);
}

// Text as Python's int() reads it: blanks around, a sign, single underscores between digits.
bool parse_integer(string_view s, int64_t base, int64_t& out) {
  s = strip(s, kBoth);
  const bool negative = !s.empty() && s[0] == '-';
  if (!s.empty() && (s[0] == '-' || s[0] == '+')) s.remove_prefix(1);
  const char mark = s.size() > 2 && s[0] == '0' ? char(s[1] | 0x20) : 0;
  const int64_t marked = mark == 'x' ? 16 : mark == 'o' ? 8 : mark == 'b' ? 2 : 0;
  if (marked && (base == 0 || base == marked)) {
    s.remove_prefix(2);
    base = marked;
    if (s[0] == '_') s.remove_prefix(1);
  }
  if (base == 0) {
    base = 10;
    if (s.size() > 1 && s[0] == '0' && s.find_first_not_of("0_") != string_view::npos) return false;
  }
  if (base < 2 || base > 36 || s.empty() || s.front() == '_' || s.back() == '_') return false;
  out = 0;
  for (size_t i = 0; i < s.size(); ++i) {
    if (s[i] == '_' && s[i - 1] != '_') continue;
    const char c = char(s[i] | 0x20);
    const int64_t digit = s[i] >= '0' && s[i] <= '9' ? s[i] - '0' : c >= 'a' && c <= 'z' ? c - 'a' + 10 : 99;
    if (digit >= base) return false;
    if (__builtin_mul_overflow(out, base, &out) || __builtin_add_overflow(out, digit, &out))
      raise("an integer grew beyond 64 bits");
  }
  if (negative) out = -out;
  return true;
}

bool parse_real(string_view s, double& out) {
  std::string t(strip(s, kBoth));
  for (size_t i = 0; i < t.size(); ++i) {
    const bool between = i > 0 && i + 1 < t.size() && t[i - 1] >= '0' && t[i - 1] <= '9' && t[i + 1] >= '0' && t[i + 1] <= '9';
    if (t[i] == '_' && !between) return false;
  }
  t.erase(std::remove(t.begin(), t.end(), '_'), t.end());
  const string_view body = string_view(t).substr(!t.empty() && (t[0] == '-' || t[0] == '+') ? 1 : 0);
  const std::string word = lower(body);
  if (word == "inf" || word == "infinity" || word == "nan") {
    out = word == "nan" ? NAN : t[0] == '-' ? -HUGE_VAL : HUGE_VAL;
    return true;
  }
  if (body.empty() || body.find_first_not_of("0123456789.eE+-") != string_view::npos ||
      !(body[0] == '.' || (body[0] >= '0' && body[0] <= '9')))
    return false;
  char* end = nullptr;
  out = std::strtod(t.c_str(), &end);
  return end == t.c_str() + t.size();
}

int64_t truncated(double d) {
  if (!(std::abs(d) < 9.2e18)) raise("a number does not fit a 64-bit integer");
  return int64_t(d);
}

Value f_int(Interp& x, const Value& v, Args& a) {
  const auto [otherwise, base] = unpack(a, "int", {"default", "base"});
  if (v.is_undefined()) touch_undefined(v);
  int64_t i;
  double d;
  if (as_integer(v, i)) return i;
  if (const double* real = v.get<double>(); real && !std::isnan(*real)) return truncated(*real);
  if (const Text* t = v.get<Text>()) {
    x.budget.spend(int64_t(t->bytes.size()));
    if (parse_integer(t->bytes, integer(base, 10, "int"), i)) return i;
    if (parse_real(t->bytes, d) && !std::isnan(d)) return truncated(d);
  }
  return otherwise ? *otherwise : Value(0);
}

Value f_float(Interp& x, const Value& v, Args& a) {
  const auto [otherwise] = unpack(a, "float", {"default"});
  if (v.is_undefined()) touch_undefined(v);
  double d;
  if (as_number(v, d)) return d;
  if (const Text* t = v.get<Text>()) {
    x.budget.spend(int64_t(t->bytes.size()));
    if (parse_real(t->bytes, d)) return d;
  }
  return otherwise ? *otherwise : Value(0.0);
}

// Half to even on the exact binary value, as Python rounds: the C library prints correctly rounded decimals.
double rounded(double d, int64_t digits) {
  if (!std::isfinite(d) || digits > 320) return d;
  if (digits < 0) {
    const double scale = std::pow(10.0, double(-std::max<int64_t>(digits, -320)));
    return std::isinf(scale) ? std::copysign(0.0, d) : std::nearbyint(d / scale) * scale;
  }
  char buffer[700];
  snprintf(buffer, sizeof buffer, "%.*f", int(digits), d);
  return std::strtod(buffer, nullptr);
}

Value f_round(Interp&, const Value& v, Args& a) {
  const auto [precision, how] = unpack(a, "round", {"precision", "method"});
  if (v.is_undefined()) touch_undefined(v);
  const int64_t digits = integer(precision, 0, "round");
  const std::string method = how ? text_argument(*how, "round") : "common";
  if (method != "common" && method != "ceil" && method != "floor") raise("round's method is one of common, ceil and floor");
  double d;
  int64_t i;
  if (!as_number(v, d)) raise("round needs a number, not '" + type_name(v) + "'");
  if (method == "common")
    return as_integer(v, i) ? (digits >= 0 ? Value(i) : Value(truncated(rounded(d, digits)))) : Value(rounded(d, digits));
  const double scale = std::pow(10.0, double(std::clamp<int64_t>(digits, -300, 300)));
  return (method == "ceil" ? std::ceil(d * scale) : std::floor(d * scale)) / scale;
}

constexpr Filter kFilters[] = {
    {"abs", f_abs},
    {"capitalize", f_capitalize},
    {"center", f_center},
    {"e", f_escape},
    {"escape", f_escape},
    {"float", f_float},
    {"forceescape", f_forceescape},
    {"format", f_format},
    {"indent", f_indent},
    {"int", f_int},
    {"lower", f_lower},
    {"replace", f_replace},
    {"round", f_round},
    {"safe", f_safe},
    {"string", f_string},
    {"title", f_title},
    {"tojson", f_tojson},
    {"trim", f_trim},
    {"truncate", f_truncate},
    {"upper", f_upper},
    {"urlencode", f_urlencode},
    {"wordcount", f_wordcount},
};

}  // namespace

const Filter* find_text_filter(std::string_view name) {
  for (const Filter& f : kFilters)
    if (name == f.name) return &f;
  return nullptr;
}

int64_t integer_argument(const Value& v, const char* who) {
  if (v.is_undefined()) touch_undefined(v);
  int64_t i;
  if (!as_integer(v, i)) raise(std::string(who) + " needs an integer, not '" + type_name(v) + "'");
  return i;
}

const std::string& text_argument(const Value& v, const char* who) {
  if (v.is_undefined()) touch_undefined(v);
  if (!v.get<Text>()) raise(std::string(who) + " needs text, not '" + type_name(v) + "'");
  return v.get<Text>()->bytes;
}

}  // namespace ridge::jinja
