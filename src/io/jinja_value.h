// The dynamic values of the template engine: what Python's None, bool, int, float, str, list, tuple, dict and friends are to Jinja.
// Values are immutable once shared (the sandbox forbids append and update), so copies share storage; only namespaces change.
// Not a general JSON type: a Value may be undefined, a macro or a half-consumed generator.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace ridge::jinja {

class Value;
struct Sequence;
struct Dict;
struct Object;  // namespaces, loops, macros, functions: jinja_eval.h

struct Undefined {
  std::shared_ptr<const std::string> why;
};  // the sentence to raise when it is touched
struct None {};
struct Text {
  std::string bytes;  // UTF-8
  bool safe = false;  // already escaped for HTML
};

class Value {
 public:
  Value() = default;  // undefined
  Value(None) : v_(None()) {}
  Value(bool v) : v_(v) {}
  Value(int v) : v_(int64_t(v)) {}
  Value(int64_t v) : v_(v) {}
  Value(double v) : v_(v) {}
  Value(std::string v) : v_(std::make_shared<const Text>(Text{std::move(v)})) {}
  Value(std::string_view v) : Value(std::string(v)) {}
  Value(const char* v) : Value(std::string(v)) {}
  Value(Text v) : v_(std::make_shared<const Text>(std::move(v))) {}
  Value(std::shared_ptr<Sequence> v) : v_(std::move(v)) {}
  Value(std::shared_ptr<Dict> v) : v_(std::move(v)) {}
  Value(std::shared_ptr<Object> v) : v_(std::move(v)) {}
  static Value list(std::vector<Value> items);
  static Value tuple(std::vector<Value> items);
  static Value undefined(std::string why);

  // The value as one of None, bool, int64_t, double, Text, Sequence, Dict, Object; null where it is something else.
  template <class T>
  const T* get() const {
    if constexpr (std::is_same_v<T, Text>)
      return pointee<const Text>();
    else if constexpr (std::is_same_v<T, Sequence> || std::is_same_v<T, Dict> || std::is_same_v<T, Object>)
      return pointee<T>();
    else
      return std::get_if<T>(&v_);
  }
  template <class T>
  std::shared_ptr<T> shared() const {
    auto* p = std::get_if<std::shared_ptr<T>>(&v_);
    return p ? *p : nullptr;
  }
  bool is_undefined() const { return v_.index() == 0; }
  bool is_none() const { return v_.index() == 1; }
  int depth() const;  // nesting of lists and dicts; 0 for everything else

 private:
  template <class T>
  const T* pointee() const {
    auto* p = std::get_if<std::shared_ptr<T>>(&v_);
    return p ? p->get() : nullptr;
  }
  std::variant<Undefined, None, bool, int64_t, double, std::shared_ptr<const Text>, std::shared_ptr<Sequence>,
               std::shared_ptr<Dict>, std::shared_ptr<Object>>
      v_;
};

// Everything that Python would iterate by position. A range keeps no items; a generator remembers how far it was read.
struct Sequence {
  enum class Kind : uint8_t { list, tuple, generator, items, keys, values, range };
  Kind kind = Kind::list;
  std::vector<Value> elements;
  int64_t start = 0, stop = 0, step = 1, count = 0;  // range only
  int nesting = 1;
  mutable size_t consumed = 0;  // generator only

  Sequence(Kind kind_, std::vector<Value> elements_);
  Sequence(int64_t start_, int64_t stop_, int64_t step_, int64_t count_)
      : kind(Kind::range), start(start_), stop(stop_), step(step_), count(count_) {}
  size_t size() const { return kind == Kind::range ? size_t(count) : elements.size(); }
  Value at(size_t i) const { return kind == Kind::range ? Value(start + int64_t(i) * step) : elements[i]; }
  bool indexable() const { return kind == Kind::list || kind == Kind::tuple || kind == Kind::range; }
};

// Keeps insertion order. Look-ups walk the entries: a message has a handful, and the work budget bounds hostile ones.
struct Dict {
  std::vector<std::pair<Value, Value>> entries;
  int nesting = 1;

  const Value* find(std::string_view key) const;
  void set(std::string key, Value value);  // replaces where the key exists
  void append(Value key, Value value);     // the caller knows that the key is new
};

// What a render may still spend: one unit is about one byte touched or a tenth of an AST node. Throws Raise at zero.
struct Budget {
  int64_t left;
  void spend(int64_t units) {
    if ((left -= units) < 0) exhausted();
  }
  [[noreturn]] static void exhausted();
};

// A template's own error, thrown inside the engine and turned into a Status by compile() and render().
struct Raise {
  std::string sentence;
};
[[noreturn]] void raise(std::string sentence);

constexpr int kMaxNesting = 200;  // of values: comparison, printing and destruction recurse

Value make_list(std::vector<Value> items, Sequence::Kind kind, Budget& budget);  // raises beyond kMaxNesting
void put(Dict& dict, Value key, Value value, Budget& budget);                    // the same; raises on an unhashable key
const Value* lookup(const Dict& dict, const Value& key, Budget& budget);

bool truthy(const Value& v);
bool equal(const Value& a, const Value& b, Budget& budget);
bool less(const Value& a, const Value& b, Budget& budget);  // raises where Python cannot order the two
std::string str(const Value& v, Budget& budget);            // what {{ v }} prints
std::string repr(const Value& v, Budget& budget);           // how v looks inside a printed list
std::string float_repr(double v);
std::string type_name(const Value& v);  // "str", "list", ...
// A bool, int or float as such; false for everything else.
bool as_integer(const Value& v, int64_t& out);
bool as_number(const Value& v, double& out);

// Walks what Python would iterate: sequences, the characters of strings, the keys of dicts, nothing for undefined.
class Iterator {
 public:
  explicit Iterator(const Value& source);  // raises where the value cannot be iterated
  bool next(Value& item, Budget& budget);
  int64_t remaining(Budget& budget) const;

 private:
  Value source_;
  size_t at_ = 0;
};

}  // namespace ridge::jinja
