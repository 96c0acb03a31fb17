// The text of a Json value, and the readers of its fields. See json.h.
#include <charconv>
#include <cmath>

#include "io/json.h"

namespace ridge {

// ---- writing

namespace {

// Length of the well-formed UTF-8 sequence at s, or 0: for overlong forms, surrogates and code points above U+10FFFF too.
size_t utf8_length(std::string_view s) {
  const auto byte = [&](size_t i) { return i < s.size() ? uint8_t(s[i]) : uint8_t(0); };
  const auto tail = [&](size_t i) { return (byte(i) & 0xc0) == 0x80; };
  const uint8_t lead = byte(0), next = byte(1);
  if (lead < 0x80) return 1;
  if (lead < 0xc2 || lead > 0xf4 || !tail(1)) return 0;
  if (lead < 0xe0) return 2;
  if ((lead == 0xe0 && next < 0xa0) || (lead == 0xed && next > 0x9f) || (lead == 0xf0 && next < 0x90) ||
      (lead == 0xf4 && next > 0x8f))
    return 0;
  if (!tail(2)) return 0;
  if (lead < 0xf0) return 3;
  return tail(3) ? 4 : 0;
}

void append_quoted(std::string_view s, std::string& out) {
  out += '"';
  for (size_t i = 0; i < s.size();) {
    const char c = s[i];
    if (uint8_t(c) >= 0x80) {
      const size_t n = utf8_length(s.substr(i, 4));
      out += n ? s.substr(i, n) : std::string_view("\xef\xbf\xbd");
      i += n ? n : 1;
      continue;
    }
    ++i;
    if (c == '"' || c == '\\')
      (out += '\\') += c;
    else if (c == '\n')
      out += "\\n";
    else if (c == '\t')
      out += "\\t";
    else if (c == '\r')
      out += "\\r";
    else if (uint8_t(c) < 0x20 || c == 0x7f)
      ((out += "\\u00") += "0123456789abcdef"[c >> 4]) += "0123456789abcdef"[c & 15];
    else
      out += c;
  }
  out += '"';
}

void append_double(double d, std::string& out) {
  if (!std::isfinite(d)) {
    out += "null";
    return;
  }
  char digits[32];
  const auto end = std::to_chars(digits, digits + sizeof digits, d).ptr;
  out.append(digits, end);
  if (std::string_view(digits, end).find_first_of(".e") == std::string_view::npos) out += ".0";
}

struct Writer {
  std::string& out;
  int indent;

  void new_line(int level) {
    if (indent == 0) return;
    out += '\n';
    out.append(size_t(indent) * size_t(level), ' ');
  }

  // Level counts open brackets. An array of scalars stays on one line: a list of 2,000 log-probabilities is not 2,000 lines.
  void value(const Json& v, int level) {
    switch (v.kind()) {
      case Json::Kind::null: out += "null"; break;
      case Json::Kind::boolean: out += *v.boolean() ? "true" : "false"; break;
      case Json::Kind::integer: out += std::to_string(*v.integer()); break;
      case Json::Kind::real: append_double(*v.number(), out); break;
      case Json::Kind::string: append_quoted(*v.string(), out); break;
      case Json::Kind::array: array(v.items(), level); break;
      case Json::Kind::object: object(v.members(), level); break;
    }
  }

  void array(const Json::Array& items, int level) {
    bool nested = false;
    for (const Json& item : items) nested = nested || item.is_array() || item.is_object();
    out += '[';
    for (size_t i = 0; i < items.size(); ++i) {
      if (i) out += indent && !nested ? ", " : ",";
      if (nested) new_line(level + 1);
      value(items[i], level + 1);
    }
    if (nested) new_line(level);
    out += ']';
  }

  void object(const Json::Object& members, int level) {
    out += '{';
    for (size_t i = 0; i < members.size(); ++i) {
      if (i) out += ',';
      new_line(level + 1);
      append_quoted(members[i].key, out);
      out += indent ? ": " : ":";
      value(members[i].value, level + 1);
    }
    if (!members.empty()) new_line(level);
    out += '}';
  }
};

}  // namespace

void append_text(const Json& value, std::string& out, int indent) { Writer{out, indent}.value(value, 0); }

std::string to_text(const Json& value, int indent) {
  std::string out;
  append_text(value, out, indent);
  return out;
}

// ---- fields

JsonFields::JsonFields(const Json& object, std::string where) : object_(object), where_(std::move(where)) {
  if (!object.is_object()) status_ = unloadable(where_ + ": an object is needed here and not " + object.kind_name());
}

void JsonFields::complain(std::string_view key, std::string_view what) {
  if (status_.ok()) status_ = unloadable(where_ + ": \"" + std::string(key) + "\" " + std::string(what));
}

bool JsonFields::has(std::string_view key) const { return !object_[key].is_null(); }

const Json& JsonFields::needed(std::string_view key) {
  if (!has(key)) complain(key, "is missing");
  return object_[key];
}

int64_t JsonFields::need_int(std::string_view key, int64_t low, int64_t high) {
  needed(key);
  return get_int(key, low, low, high);
}

int64_t JsonFields::get_int(std::string_view key, int64_t otherwise, int64_t low, int64_t high) {
  if (!has(key)) return otherwise;
  const Json& value = object_[key];
  const std::optional<int64_t> n = value.integer();
  if (n && *n >= low && *n <= high) return *n;
  complain(key, "must be an integer from " + std::to_string(low) + " to " + std::to_string(high) + " and not " +
                    (value.is_number() ? to_text(value) : value.kind_name()));
  return otherwise;
}

double JsonFields::need_number(std::string_view key) {
  needed(key);
  return get_number(key, 0);
}

double JsonFields::get_number(std::string_view key, double otherwise) {
  if (!has(key)) return otherwise;
  if (const std::optional<double> d = object_[key].number()) return *d;
  complain(key, std::string("must be a number and not ") + object_[key].kind_name());
  return otherwise;
}

bool JsonFields::get_bool(std::string_view key, bool otherwise) {
  if (!has(key)) return otherwise;
  if (const std::optional<bool> b = object_[key].boolean()) return *b;
  complain(key, std::string("must be true or false and not ") + object_[key].kind_name());
  return otherwise;
}

std::string JsonFields::need_string(std::string_view key) {
  needed(key);
  return get_string(key, {});
}

std::string JsonFields::get_string(std::string_view key, std::string_view otherwise) {
  if (!has(key)) return std::string(otherwise);
  if (const std::string* s = object_[key].string()) return *s;
  complain(key, std::string("must be a string and not ") + object_[key].kind_name());
  return std::string(otherwise);
}

}  // namespace ridge
