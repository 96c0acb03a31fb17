// JSON as a plain value: parsed from files and requests, built for every `--json` output. The parser behind it is RapidJSON, seen
// by json.cc only; it keeps its own stack, so a million brackets meet the depth limit and not the end of ours.
//
// Reading never fails by accident: asking a value for what it is not yields nothing, an empty list or the given default. A reader
// that must complain about a missing or mistyped field uses JsonFields, which remembers the first complaint.
// Objects keep the order of their members and find() walks them; a 100,000-entry vocabulary is iterated once, not searched.
#pragma once
#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/status.h"

namespace ridge {

template <class Value>  // a template only because Json is not complete yet
struct JsonMember {
  std::string key;
  Value value;
  bool operator==(const JsonMember&) const = default;
};

class Json {
 public:
  enum class Kind { null, boolean, integer, real, string, array, object };  // in the order of the variant below
  using Member = JsonMember<Json>;
  using Array = std::vector<Json>;
  using Object = std::vector<Member>;

  Json() = default;
  Json(std::nullptr_t) {}
  template <class T>
  requires std::same_as<T, bool>  // a template, or every pointer would become a boolean
  Json(T value) : value_(value) {}
  template <std::integral T>
  requires(!std::same_as<T, bool> && !std::same_as<T, char>) Json(T value) {  // beyond int64: the nearest double
    if (std::in_range<int64_t>(value))
      value_ = int64_t(value);
    else
      value_ = double(value);
  }
  template <std::floating_point T>
  Json(T value) : value_(double(value)) {}
  Json(const char* text) : value_(std::string(text)) {}
  Json(std::string_view text) : value_(std::string(text)) {}
  Json(std::string text) : value_(std::move(text)) {}
  Json(Array items) : value_(std::move(items)) {}
  Json(Object members) : value_(std::move(members)) {}
  template <class T>
  requires(!std::same_as<T, Json> && !std::same_as<T, Member>) Json(const std::vector<T>& items)
      : value_(Array(items.begin(), items.end())) {}

  static Json array() { return Json(Array()); }
  static Json object(std::initializer_list<Member> members = {});
  bool operator==(const Json&) const = default;  // 1 and 1.0 differ, as their texts do

  Kind kind() const { return Kind(value_.index()); }
  const char* kind_name() const;  // "an object", for sentences
  bool is_null() const { return kind() == Kind::null; }
  bool is_bool() const { return kind() == Kind::boolean; }
  bool is_integer() const { return kind() == Kind::integer; }
  bool is_number() const { return kind() == Kind::integer || kind() == Kind::real; }
  bool is_string() const { return kind() == Kind::string; }
  bool is_array() const { return kind() == Kind::array; }
  bool is_object() const { return kind() == Kind::object; }

  std::optional<bool> boolean() const;
  std::optional<int64_t> integer() const;  // also 4.0, as Python's writers leave it
  std::optional<double> number() const;
  const std::string* string() const { return std::get_if<std::string>(&value_); }
  const Array& items() const;     // empty when this is no array
  const Object& members() const;  // empty when this is no object
  size_t size() const { return items().size() + members().size(); }

  const Json* find(std::string_view key) const;        // null when absent or this is no object
  const Json& operator[](std::string_view key) const;  // a null value then: config["rope_scaling"]["factor"] is safe
  const Json& operator[](size_t i) const;
  bool get_bool(std::string_view key, bool otherwise) const { return (*this)[key].boolean().value_or(otherwise); }
  int64_t get_int(std::string_view key, int64_t otherwise) const { return (*this)[key].integer().value_or(otherwise); }
  double get_number(std::string_view key, double otherwise) const { return (*this)[key].number().value_or(otherwise); }
  std::string get_string(std::string_view key, std::string_view otherwise = {}) const;

  // Building: a null value becomes what the call needs; another kind is our own mistake.
  Json& push(Json item);                        // returns the item
  Json& set(std::string_view key, Json value);  // replaces or appends; returns the value
  void append(std::string key, Json value);     // without looking for the key: the caller knows it is new

 private:
  std::variant<std::nullptr_t, bool, int64_t, double, std::string, Array, Object> value_ = nullptr;
};

// What a text may look like. Model files come from Python's json module, whose dialect has NaN and Infinity and repeats keys
// silently (the last one counts). Integers beyond 64 bits are read as doubles in both: "model_max_length" carries 31 digits.
struct JsonRules {
  bool lenient = false;  // NaN, Infinity and repeated keys are let through
  int max_depth = 64;
  int64_t max_values = 1'000'000;  // keys included; 40 bytes each: "[0,0,..." grows twentyfold in memory
  Code code = Code::failed;        // of the Status when the text is refused
};
inline constexpr JsonRules kModelFileJson{.lenient = true, .max_depth = 512, .max_values = 50'000'000, .code = Code::unloadable};
inline constexpr JsonRules kHeaderJson{.lenient = false, .max_depth = 64, .max_values = 10'000'000, .code = Code::unloadable};
inline constexpr JsonRules kRequestJson{.lenient = false, .max_depth = 64, .code = Code::failed};

// `name` opens the sentence of an error: "config.json: line 3, column 9: a comma or '}' is missing after a member".
Result<Json> parse_json(std::string_view text, std::string_view name, const JsonRules& rules);
Result<Json> read_json(const std::string& path, const JsonRules& rules = kModelFileJson);

// Always valid JSON in valid UTF-8: bytes that are none become U+FFFD, NaN and infinities become null. Doubles are the shortest
// text that reads back equal, with ".0" where it would look like an integer. indent 0: one line; else a line for each member.
std::string to_text(const Json& value, int indent = 0);
void append_text(const Json& value, std::string& out, int indent = 0);

// Reads the fields of one object and remembers the first complaint, so that a config reader is a list of its fields:
//   JsonFields f(config, "config.json");  // config outlives f
//   c.layers = f.need_int("num_hidden_layers"); c.bias = f.get_bool("attention_bias", false); return f.status();
// A missing or null field is its default; a field of another kind, or out of range, is a complaint and never a silent default.
class JsonFields {
 public:
  JsonFields(const Json& object, std::string where);
  int64_t need_int(std::string_view key, int64_t low = 0, int64_t high = std::numeric_limits<int32_t>::max());
  int64_t get_int(std::string_view key, int64_t otherwise, int64_t low = 0, int64_t high = std::numeric_limits<int32_t>::max());
  double need_number(std::string_view key);
  double get_number(std::string_view key, double otherwise);
  bool get_bool(std::string_view key, bool otherwise);
  std::string need_string(std::string_view key);
  std::string get_string(std::string_view key, std::string_view otherwise);

  bool has(std::string_view key) const;  // there and not null
  const Json& operator[](std::string_view key) const { return object_[key]; }
  void complain(std::string_view key, std::string_view what);  // kept if it is the first
  const Status& status() const { return status_; }

 private:
  const Json& needed(std::string_view key);
  const Json& object_;
  std::string where_;
  Status status_;
};

}  // namespace ridge
