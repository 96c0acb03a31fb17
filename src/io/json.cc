#include "io/json.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <functional>
#include <iterator>

#include "base/check.h"
#include "io/mapping.h"

// A broken invariant of the parser must be seen in release builds and by the fuzzer too.
#define RAPIDJSON_ASSERT(condition) RIDGE_CHECK(condition, "RapidJSON lost its way in a JSON text")
#include <rapidjson/memorystream.h>
#include <rapidjson/reader.h>

namespace ridge {

// ---- the value

Json Json::object(std::initializer_list<Member> members) { return Json(Object(members)); }

const char* Json::kind_name() const {
  constexpr const char* names[] = {"null", "a boolean", "an integer", "a number", "a string", "an array", "an object"};
  return names[value_.index()];
}

std::optional<bool> Json::boolean() const {
  const bool* b = std::get_if<bool>(&value_);
  return b ? std::optional(*b) : std::nullopt;
}

std::optional<int64_t> Json::integer() const {
  if (const int64_t* i = std::get_if<int64_t>(&value_)) return *i;
  const double* d = std::get_if<double>(&value_);
  if (!d || !(*d >= -0x1p63 && *d < 0x1p63) || *d != std::trunc(*d)) return std::nullopt;
  return int64_t(*d);
}

std::optional<double> Json::number() const {
  if (const int64_t* i = std::get_if<int64_t>(&value_)) return double(*i);
  const double* d = std::get_if<double>(&value_);
  return d ? std::optional(*d) : std::nullopt;
}

const Json::Array& Json::items() const {
  static const Array none;
  const Array* a = std::get_if<Array>(&value_);
  return a ? *a : none;
}

const Json::Object& Json::members() const {
  static const Object none;
  const Object* o = std::get_if<Object>(&value_);
  return o ? *o : none;
}

const Json* Json::find(std::string_view key) const {
  for (const Member& m : members())
    if (m.key == key) return &m.value;
  return nullptr;
}

namespace {
const Json& null_value() {
  static const Json null;
  return null;
}
}  // namespace

const Json& Json::operator[](std::string_view key) const {
  const Json* value = find(key);
  return value ? *value : null_value();
}

const Json& Json::operator[](size_t i) const { return i < items().size() ? items()[i] : null_value(); }

std::string Json::get_string(std::string_view key, std::string_view otherwise) const {
  const std::string* text = (*this)[key].string();
  return text ? *text : std::string(otherwise);
}

Json& Json::push(Json item) {
  if (is_null()) value_ = Array();
  RIDGE_CHECK(is_array(), std::string("push() needs an array and not ") + kind_name());
  return std::get<Array>(value_).emplace_back(std::move(item));
}

void Json::append(std::string key, Json value) {
  if (is_null()) value_ = Object();
  RIDGE_CHECK(is_object(), std::string("a member needs an object and not ") + kind_name());
  std::get<Object>(value_).push_back({std::move(key), std::move(value)});
}

Json& Json::set(std::string_view key, Json value) {
  if (const Json* old = find(key)) return const_cast<Json&>(*old) = std::move(value);
  append(std::string(key), std::move(value));
  return std::get<Object>(value_).back().value;
}

// ---- parsing

namespace {

// Receives the parser's events and keeps finished values on a stack: the members of an object as key, value, key, value.
class Builder {
 public:
  explicit Builder(const JsonRules& rules) : rules_(rules) {}

  bool Null() { return put(nullptr); }
  bool Bool(bool b) { return put(b); }
  bool Int(int i) { return put(i); }
  bool Uint(unsigned i) { return put(i); }
  bool Int64(int64_t i) { return put(i); }
  bool Uint64(uint64_t i) { return put(i); }
  bool Double(double d) { return put(d); }
  bool RawNumber(const char*, rapidjson::SizeType, bool) { return false; }
  bool String(const char* s, rapidjson::SizeType n, bool) { return put(std::string(s, n)); }
  bool Key(const char* s, rapidjson::SizeType n, bool) { return put(std::string(s, n)); }
  bool StartObject() { return open(); }
  bool StartArray() { return open(); }

  bool EndArray(rapidjson::SizeType n) {
    --depth_;
    Json::Array items(std::make_move_iterator(stack_.end() - n), std::make_move_iterator(stack_.end()));
    stack_.resize(stack_.size() - n);
    return put(std::move(items));
  }

  bool EndObject(rapidjson::SizeType n) {
    --depth_;
    Json::Object members;
    members.reserve(n);
    const size_t first = stack_.size() - 2 * size_t(n);
    for (size_t i = first; i < stack_.size(); i += 2)
      members.push_back({std::move(const_cast<std::string&>(*stack_[i].string())), std::move(stack_[i + 1])});
    stack_.resize(first);
    return settle_repeats(members) && put(std::move(members));
  }

  const std::string& complaint() const { return complaint_; }
  Json take() { return std::move(stack_.front()); }

 private:
  bool put(Json value) {
    stack_.push_back(std::move(value));
    return true;
  }

  bool open() {
    if (++depth_ <= rules_.max_depth) return true;
    complaint_ = "arrays and objects are nested more than " + std::to_string(rules_.max_depth) + " deep";
    return false;
  }

  // A repeated key is refused, or its last value takes the place of the first. Found by sorting on hashes: numbers sort fast, and
  // keys crafted to collide cost a comparison each where they would make a hash table quadratic.
  bool settle_repeats(Json::Object& members) {
    if (members.size() < 2) return true;
    struct Entry {
      size_t hash, index;
    };
    std::vector<Entry> order(members.size());
    for (size_t i = 0; i < members.size(); ++i) order[i] = {std::hash<std::string_view>()(members[i].key), i};
    const auto same = [&](const Entry& a, const Entry& b) { return a.hash == b.hash && members[a.index].key == members[b.index].key; };
    std::sort(order.begin(), order.end(), [&](const Entry& a, const Entry& b) {
      if (a.hash != b.hash) return a.hash < b.hash;
      const int c = members[a.index].key.compare(members[b.index].key);
      return c < 0 || (c == 0 && a.index < b.index);
    });
    if (std::adjacent_find(order.begin(), order.end(), same) == order.end()) return true;
    std::vector<bool> gone(members.size());
    for (size_t i = 1, first = 0; i < order.size(); ++i) {
      if (!same(order[first], order[i])) {
        first = i;
        continue;
      }
      Json::Member &kept = members[order[first].index], &repeat = members[order[i].index];
      if (!rules_.lenient) {
        complaint_ = "the key \"" + repeat.key + "\" stands twice in one object";
        return false;
      }
      kept.value = std::move(repeat.value);
      gone[order[i].index] = true;
    }
    size_t kept = 0;
    for (size_t i = 0; i < members.size(); ++i)
      if (!gone[i] && kept++ != i) members[kept - 1] = std::move(members[i]);
    members.resize(kept);
    return true;
  }

  const JsonRules& rules_;
  std::vector<Json> stack_;
  int depth_ = 0;
  std::string complaint_;
};

const char* sentence_of(rapidjson::ParseErrorCode code) {
  switch (code) {
    case rapidjson::kParseErrorDocumentEmpty: return "there is no JSON value";
    case rapidjson::kParseErrorDocumentRootNotSingular: return "something follows the end of the value";
    case rapidjson::kParseErrorValueInvalid: return "this is no JSON value";
    case rapidjson::kParseErrorObjectMissName: return "a quoted member name is missing";
    case rapidjson::kParseErrorObjectMissColon: return "a colon is missing after a member name";
    case rapidjson::kParseErrorObjectMissCommaOrCurlyBracket: return "a comma or '}' is missing after a member";
    case rapidjson::kParseErrorArrayMissCommaOrSquareBracket: return "a comma or ']' is missing after an array element";
    case rapidjson::kParseErrorStringUnicodeEscapeInvalidHex: return "a \\u escape needs four hexadecimal digits";
    case rapidjson::kParseErrorStringUnicodeSurrogateInvalid: return "a \\u surrogate has no partner";
    case rapidjson::kParseErrorStringEscapeInvalid: return "a control character or an unknown escape stands in a string";
    case rapidjson::kParseErrorStringMissQuotationMark: return "a string is not closed";
    case rapidjson::kParseErrorStringInvalidEncoding: return "a string is not valid UTF-8";
    case rapidjson::kParseErrorNumberTooBig: return "a number is too large for a double";
    case rapidjson::kParseErrorNumberMissFraction: return "digits are missing after a decimal point";
    case rapidjson::kParseErrorNumberMissExponent: return "digits are missing after an exponent";
    default: return "this is not JSON";
  }
}

Status refuse(std::string_view name, std::string_view text, size_t offset, std::string_view what, Code code) {
  const std::string_view before = text.substr(0, offset);
  int64_t line = 1;
  size_t start = 0;
  for (size_t i = before.find('\n'); i != before.npos; i = before.find('\n', start)) {
    ++line;
    start = i + 1;
  }
  return {code, std::string(name) + ": line " + std::to_string(line) + ", column " + std::to_string(before.size() - start + 1) +
                    ": " + std::string(what)};
}

template <unsigned flags>
Result<Json> parse(std::string_view text, std::string_view name, const JsonRules& rules) {
  Builder builder(rules);
  rapidjson::Reader reader;
  rapidjson::MemoryStream stream(text.data(), text.size());
  const rapidjson::ParseResult result = reader.Parse<flags>(stream, builder);
  if (result.IsError()) {
    const std::string what = builder.complaint().empty() ? sentence_of(result.Code()) : builder.complaint();
    return refuse(name, text, std::min(result.Offset(), text.size()), what, rules.code);
  }
  return builder.take();
}

}  // namespace

Result<Json> parse_json(std::string_view text, std::string_view name, const JsonRules& rules) {
  if (text.starts_with("\xef\xbb\xbf")) text.remove_prefix(3);  // a byte order mark, from Windows editors
  // The parser takes NUL for the end of the text and would not see what is behind it.
  if (const size_t nul = text.find('\0'); nul != text.npos) return refuse(name, text, nul, "a NUL byte stands in the text", rules.code);
  using namespace rapidjson;
  constexpr unsigned strict = kParseIterativeFlag | kParseFullPrecisionFlag | kParseValidateEncodingFlag;
  return rules.lenient ? parse<strict | kParseNanAndInfFlag>(text, name, rules) : parse<strict>(text, name, rules);
}

Result<Json> read_json(const std::string& path, const JsonRules& rules) {
  const Result<Mapping> file = Mapping::open(path);
  if (!file) return file.status();
  return parse_json(file->bytes(), path, rules);
}

// ---- writing

namespace {

// Length of the well-formed UTF-8 sequence at s, or 0. Overlong forms, surrogates and code points above U+10FFFF are not well formed.
size_t utf8_length(std::string_view s) {
  const auto byte = [&](size_t i) { return i < s.size() ? uint8_t(s[i]) : uint8_t(0); };
  const auto tail = [&](size_t i) { return (byte(i) & 0xc0) == 0x80; };
  const uint8_t lead = byte(0), next = byte(1);
  if (lead < 0x80) return 1;
  if (lead < 0xc2 || lead > 0xf4 || !tail(1)) return 0;
  if (lead < 0xe0) return 2;
  if ((lead == 0xe0 && next < 0xa0) || (lead == 0xed && next > 0x9f) || (lead == 0xf0 && next < 0x90) || (lead == 0xf4 && next > 0x8f))
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
    if (c == '"' || c == '\\') (out += '\\') += c;
    else if (c == '\n') out += "\\n";
    else if (c == '\t') out += "\\t";
    else if (c == '\r') out += "\\r";
    else if (uint8_t(c) < 0x20 || c == 0x7f) ((out += "\\u00") += "0123456789abcdef"[c >> 4]) += "0123456789abcdef"[c & 15];
    else out += c;
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
