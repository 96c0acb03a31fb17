// The tojson filter as Hugging Face defines it: json.dumps(value, ensure_ascii=False, indent, separators, sort_keys).
#include <algorithm>
#include <cmath>

#include "io/jinja_builtins.h"
#include "io/jinja_eval.h"
#include "io/jinja_text.h"

namespace ridge::jinja {
namespace {

struct Style {
  bool ascii = false, sort = false, pretty = false;
  std::string indent, item_separator = ", ", key_separator = ": ";
};

class Writer {
 public:
  Writer(Interp& x, const Style& style) : x_(x), style_(style) {}

  void value(const Value& v) {
    x_.budget.spend(8);
    if (v.is_none())
      out += "null";
    else if (const bool* b = v.get<bool>())
      out += *b ? "true" : "false";
    else if (const int64_t* i = v.get<int64_t>())
      out += std::to_string(*i);
    else if (const double* d = v.get<double>())
      out += number(*d);
    else if (const Text* t = v.get<Text>())
      string(t->bytes);
    else if (const Dict* dict = v.get<Dict>())
      object(*dict);
    else if (const Sequence* s = v.get<Sequence>(); s && s->kind <= Sequence::Kind::tuple)
      array(*s);
    else if (v.is_undefined())
      raise("tojson cannot write an undefined value" + (v.get<Undefined>()->why ? ": " + *v.get<Undefined>()->why : ""));
    else
      raise("tojson cannot write a value of type '" + type_name(v) + "'");
  }

  std::string out;

 private:
  static std::string number(double v) {
    return std::isnan(v) ? "NaN" : std::isinf(v) ? (v < 0 ? "-Infinity" : "Infinity") : float_repr(v);
  }

  void escaped(uint32_t unit) {
    static const char digits[] = "0123456789abcdef";
    out += "\\u";
    for (int shift = 12; shift >= 0; shift -= 4) out += digits[unit >> shift & 15];
  }

  void string(const std::string& s) {
    x_.budget.spend(2 * int64_t(s.size()));
    static constexpr string_view special = "\"\\\n\r\t\b\f", letters = "\"\\nrtbf";
    out += '"';
    for (size_t at = 0; at < s.size();) {
      const uint32_t p = next_point(s, at);
      const size_t known = p < 128 ? special.find(char(p)) : string_view::npos;
      if (known != string_view::npos) {
        out += {'\\', letters[known]};
      } else if (p < 32 || (style_.ascii && p > 126 && p < 0x10000)) {
        escaped(p);
      } else if (style_.ascii && p >= 0x10000) {
        escaped(0xd7c0 + (p >> 10 & 0x7ff));
        escaped(0xdc00 + (p & 0x3ff));
      } else {
        append_point(out, p);
      }
    }
    out += '"';
  }

  void newline(size_t level) {
    if (!style_.pretty) return;
    x_.budget.spend(int64_t(level * style_.indent.size()));
    out += '\n';
    for (size_t i = 0; i < level; ++i) out += style_.indent;
  }

  void array(const Sequence& s) {
    if (s.size() == 0) return void(out += "[]");
    out += '[';
    ++level_;
    for (size_t i = 0; i < s.size(); ++i) {
      if (i) out += style_.item_separator;
      newline(level_);
      value(s.at(i));
    }
    newline(--level_);
    out += ']';
  }

  static std::string key(const Value& k) {
    if (const Text* t = k.get<Text>()) return t->bytes;
    if (const bool* b = k.get<bool>()) return *b ? "true" : "false";
    if (const int64_t* i = k.get<int64_t>()) return std::to_string(*i);
    if (const double* d = k.get<double>()) return number(*d);
    if (k.is_none()) return "null";
    raise("tojson needs keys that are text or numbers, not '" + type_name(k) + "'");
  }

  void object(const Dict& dict) {
    if (dict.entries.empty()) return void(out += "{}");
    std::vector<const std::pair<Value, Value>*> entries;
    for (const auto& entry : dict.entries) entries.push_back(&entry);
    if (style_.sort) merge_sort(entries, [&](auto* a, auto* b) { return less(a->first, b->first, x_.budget); });
    out += '{';
    ++level_;
    for (size_t i = 0; i < entries.size(); ++i) {
      if (i) out += style_.item_separator;
      newline(level_);
      string(key(entries[i]->first));
      out += style_.key_separator;
      value(entries[i]->second);
    }
    newline(--level_);
    out += '}';
  }

  Interp& x_;
  const Style& style_;
  size_t level_ = 0;
};

}  // namespace

std::string to_json(Interp& x, const Value& v, Args& args) {
  const auto [ascii, indent, separators, sort] = unpack(args, "tojson", {"ensure_ascii", "indent", "separators", "sort_keys"});
  Style style;
  style.ascii = ascii && truthy(*ascii);
  style.sort = sort && truthy(*sort);
  if (indent && !indent->is_none()) {
    style.pretty = true;
    style.item_separator = ",";
    if (const Text* t = indent->get<Text>())
      style.indent = t->bytes;
    else
      style.indent = std::string(size_t(std::clamp<int64_t>(integer_argument(*indent, "tojson"), 0, 1024)), ' ');
  }
  if (separators && !separators->is_none()) {
    Iterator parts(*separators);
    Value part;
    for (std::string* s : {&style.item_separator, &style.key_separator}) {
      if (!parts.next(part, x.budget)) raise("tojson needs two separators");
      *s = text_argument(part, "tojson");
    }
  }
  Writer writer(x, style);
  writer.value(v);
  return std::move(writer.out);
}

}  // namespace ridge::jinja
