// The tables of what a template can name: filters, tests, global functions, and the methods of str, dict, list and tuple.
#pragma once
#include <algorithm>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

#include "io/jinja_value.h"

namespace ridge::jinja {

class Interp;
struct Args;

struct Filter {
  const char* name;
  Value (*run)(Interp& x, const Value& v, Args& args);
};
struct Test {
  const char* name;
  bool (*run)(Interp& x, const Value& v, Args& args);
};
struct Function {
  const char* name;
  Value (*run)(Interp& x, Args& args);
};
using Method = Filter;  // v is the object before the dot

const Filter* find_filter(std::string_view name);
const Filter* find_text_filter(std::string_view name);  // the part of find_filter in jinja_text_filters.cc
const Test* find_test(std::string_view name);
const Function* find_function(std::string_view name);
const Method* find_method(const Value& v, std::string_view name);
bool modifies(const Value& v, std::string_view name);  // a method that the sandbox forbids

// Text of values.
std::string to_json(Interp& x, const Value& v, Args& args);
std::string percent_format(Interp& x, const std::string& format, const Value& values);  // "%s" % values
std::string brace_format(Interp& x, const std::string& format, const Args& args);       // "{}".format(...)

std::vector<Value> items_of(Interp& x, const Value& v);  // what iterating it yields

// A stable sort that survives any comparison: NaN keys have no order, and std::sort may then leave the array.
template <class T, class Less>
void merge_sort(std::vector<T>& v, Less less) {
  std::vector<T> merged(v.size());
  for (size_t width = 1; width < v.size(); width *= 2, v.swap(merged)) {
    for (size_t from = 0; from < v.size(); from += 2 * width) {
      const auto at = [&](size_t i) { return std::make_move_iterator(v.begin() + int64_t(std::min(i, v.size()))); };
      std::merge(at(from), at(from + width), at(from + width), at(from + 2 * width), merged.begin() + int64_t(from), less);
    }
  }
}

// Arguments as what a builtin needs; they raise a sentence that names `who`.
int64_t integer_argument(const Value& v, const char* who);
const std::string& text_argument(const Value& v, const char* who);
// A search of `needle` in `text` may compare every byte of one with every byte of the other.
void spend_search(Interp& x, std::string_view text, std::string_view needle);
// The text that positions [start, stop) of a str cut out.
std::string_view cut(std::string_view s, const Value* start, const Value* stop, int64_t& begin);

}  // namespace ridge::jinja
