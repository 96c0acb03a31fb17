// GGUF, the one-file container of llama.cpp: typed metadata, then tensor descriptions, then aligned tensor data. Versions 2 and
// 3, little-endian, also split into parts named "x-00001-of-00003.gguf". The file is mapped: opening it reads the header only.
// Every count, length and offset is checked before use, so a damaged or hostile file yields a sentence and nothing else.
//
// GGUF writes dims fastest first; the views here are row-major like everywhere: [ne1, ne0].
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "io/json.h"
#include "io/mapping.h"
#include "io/tensors.h"

namespace ridge {

enum class GgufType : uint32_t {
  u8,
  i8,
  u16,
  i16,
  u32,
  i32,
  f32,
  boolean,
  string,
  array,
  u64,
  i64,
  f64
};  // numbers as in the file

// One value, or an array of them, where it lies in the file. Asking an element for what it is not yields nothing.
struct GgufValue {
  GgufType type = GgufType::u8;  // of the elements when `array`
  bool array = false;
  int64_t count = 1;
  std::string_view raw;                   // numbers and booleans: little-endian, not aligned
  std::vector<std::string_view> strings;  // strings: [count]

  std::optional<int64_t> integer(int64_t i = 0) const;  // of an integer type; nothing beyond int64
  std::optional<double> number(int64_t i = 0) const;    // of an integer or floating type
  std::optional<bool> boolean(int64_t i = 0) const;
  std::optional<std::string_view> text(int64_t i = 0) const;
};

class GgufMetadata {
 public:
  struct Entry {
    std::string_view key;
    GgufValue value;
  };
  GgufMetadata() = default;
  GgufMetadata(std::vector<Entry> entries, std::shared_ptr<const Mapping> file);
  const GgufValue* find(std::string_view key) const;              // null when absent
  const std::vector<Entry>& entries() const { return entries_; }  // in the file's order

  // A single value, or `otherwise` when it is absent or of another kind. Readers that must complain about the latter take
  // JsonFields over to_json().
  bool get_bool(std::string_view key, bool otherwise) const;
  int64_t get_int(std::string_view key, int64_t otherwise) const;
  double get_number(std::string_view key, double otherwise) const;
  std::string get_string(std::string_view key, std::string_view otherwise = {}) const;
  const std::vector<std::string_view>& get_strings(std::string_view key) const;  // an array of strings; empty when there is none

  // All entries as one object, to be read with the same words as a config.json. Longer arrays (a vocabulary) are left out.
  Json to_json(int64_t longest_array = 1024) const;

 private:
  std::vector<Entry> entries_;
  std::shared_ptr<const Mapping> file_;  // what keys and values point into
};

struct Gguf {
  uint32_t version = 0;
  GgufMetadata metadata;  // of the first part
  Tensors tensors;        // of all parts

  const View* find(std::string_view name) const { return tensors.find(name); }
};

Result<Gguf> open_gguf(const std::string& path);  // of a split file any part may be named; all are opened
Result<Gguf> parse_gguf(std::string_view bytes, const std::string& name);  // one file in memory that outlives the result

std::optional<DType> dtype_of_gguf(uint32_t type);  // nothing when Ridgeline does not read it
std::optional<uint32_t> gguf_of_dtype(DType type);  // nothing when GGUF has no such type
std::string gguf_type_name(uint32_t type);          // "IQ4_XS", also of types that are not read; "type 77"
int64_t gguf_value_bytes(GgufType type);            // of one metadata value; 0 for strings and arrays

}  // namespace ridge
