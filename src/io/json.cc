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

namespace {
struct ParserMemory : rapidjson::CrtAllocator {};
}  // namespace

// RapidJSON 1.1 looks for room by stepping past a null pointer while its stack is empty, which is undefined; ours compares sizes.
template <>
template <class T>
inline void rapidjson::internal::Stack<ParserMemory>::Reserve(size_t count) {
  if (RAPIDJSON_UNLIKELY(size_t(stackEnd_ - stackTop_) < sizeof(T) * count)) Expand<T>(count);
}

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

// Whether a number outside the doubles' range is too close to zero, and not too far: by the power of ten of its first digit.
bool is_tiny(std::string_view number) {
  const size_t e = std::min(number.find_first_of("eE"), number.size()), first = number.find_first_of("123456789");
  if (first >= e) return true;
  int64_t exponent = 0;
  if (e < number.size()) {
    const char* const digits = number.data() + e + (number[e + 1] == '+' ? 2 : 1);
    if (std::from_chars(digits, number.data() + number.size(), exponent).ec != std::errc()) return number[e + 1] == '-';
  }
  return int64_t(std::min(number.find('.'), e)) - int64_t(first) + exponent < 0;
}

// Receives the parser's events and keeps finished values on a stack: the members of an object as key, value, key, value.
class Builder {
 public:
  explicit Builder(const JsonRules& rules) : rules_(rules) {}

  bool Null() { return put(nullptr); }
  bool Bool(bool b) { return put(b); }
  bool Int(int) { return false; }  // numbers come as text
  bool Uint(unsigned) { return false; }
  bool Int64(int64_t) { return false; }
  bool Uint64(uint64_t) { return false; }
  bool Double(double) { return false; }

  // The parser has checked the shape; its own conversion in version 1.1 overflows on long exponents and is off by one in places.
  bool RawNumber(const char* s, rapidjson::SizeType n, bool) {
    const char* const end = s + n;
    int64_t i = 0;
    if (const auto [at, error] = std::from_chars(s, end, i); at == end && error == std::errc()) return put(i);
    double d = 0;
    if (const auto [at, error] = std::from_chars(s, end, d); at == end && error == std::errc()) return put(d);
    if (is_tiny({s, n})) return put(*s == '-' ? -0.0 : 0.0);
    complaint_ = sentence_of(rapidjson::kParseErrorNumberTooBig);
    return false;
  }
  bool Key(const char* s, rapidjson::SizeType n, bool) { return String(s, n, true); }

  // NOTE: the parser takes the escape of a low surrogate without its high one; as UTF-8 that is ED A0 80 to ED BF BF, invalid.
  bool String(const char* s, rapidjson::SizeType n, bool) {
    const std::string_view text(s, n);
    for (size_t i = text.find('\xed'); i != text.npos; i = text.find('\xed', i + 1)) {
      if (uint8_t(text[i + 1]) < 0xa0) continue;
      complaint_ = sentence_of(rapidjson::kParseErrorStringUnicodeSurrogateInvalid);
      return false;
    }
    return put(text);
  }
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
    if (++values_ > rules_.max_values) {
      complaint_ = "there are more than " + std::to_string(rules_.max_values) + " values";
      return false;
    }
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
    const auto same = [&](const Entry& a, const Entry& b) {
      return a.hash == b.hash && members[a.index].key == members[b.index].key;
    };
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
  int64_t values_ = 0;
  std::string complaint_;
};

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
  rapidjson::GenericReader<rapidjson::UTF8<>, rapidjson::UTF8<>, ParserMemory> reader;
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
  constexpr size_t longest = size_t(1) << 30;  // the parser counts characters in 32 bits
  if (text.size() > longest) return Status{rules.code, std::string(name) + ": a JSON text of more than 1 GiB is not read"};
  if (text.starts_with("\xef\xbb\xbf")) text.remove_prefix(3);  // a byte order mark, from Windows editors
  // The parser takes NUL for the end of the text and would not see what is behind it.
  if (const size_t nul = text.find('\0'); nul != text.npos)
    return refuse(name, text, nul, "a NUL byte stands in the text", rules.code);
  using namespace rapidjson;
  constexpr unsigned strict = kParseIterativeFlag | kParseNumbersAsStringsFlag | kParseValidateEncodingFlag;
  return rules.lenient ? parse<strict | kParseNanAndInfFlag>(text, name, rules) : parse<strict>(text, name, rules);
}

Result<Json> read_json(const std::string& path, const JsonRules& rules) {
  const Result<Mapping> file = Mapping::open(path);
  if (!file) return file.status();
  return parse_json(file->bytes(), path, rules);
}

}  // namespace ridge
