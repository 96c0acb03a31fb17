// Writes GGUF version 3: metadata and tensors in the order they were given. For exports and for the small models of tests.
//   GgufWriter w;
//   w.set("general.architecture", "llama");
//   w.set("llama.block_count", uint32_t(2));
//   w.tensor("token_embd.weight", view);
//   Status s = w.write("tiny.gguf");
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "base/check.h"
#include "base/status.h"
#include "base/view.h"
#include "io/gguf.h"

namespace ridge {

class GgufWriter {
 public:
  explicit GgufWriter(uint32_t alignment = 32);  // other than 32: also written as "general.alignment"

  // The C++ type decides the type in the file: uint32_t(1) and int64_t(1) are different entries, as readers of GGUF expect.
  template <class T>
  void set(std::string_view key, const T& value) {
    begin(key);
    if constexpr (is_text<T>) {
      put(metadata_, uint32_t(GgufType::string));
      put_text(metadata_, value);
    } else {
      put(metadata_, uint32_t(type_of<T>()));
      put(metadata_, value);
    }
  }
  template <class T>
  void set(std::string_view key, const std::vector<T>& values) {
    begin(key);
    put(metadata_, uint32_t(GgufType::array));
    if constexpr (is_text<T>) {
      put(metadata_, uint32_t(GgufType::string));
      put(metadata_, uint64_t(values.size()));
      for (const T& v : values) put_text(metadata_, v);
    } else {
      put(metadata_, uint32_t(type_of<T>()));
      put(metadata_, uint64_t(values.size()));
      for (T v : values) put(metadata_, v);
    }
  }

  void tensor(std::string name, const View& view);  // dense, of a type GGUF has; its memory is read by bytes() and write()
  std::string bytes() const;                        // the whole file
  Status write(const std::string& path) const;      // temporary file, flush, rename

 private:
  template <class T>
  static constexpr bool is_text = std::is_convertible_v<T, std::string_view>;
  template <class T>
  static constexpr GgufType type_of() {
    if constexpr (std::is_same_v<T, bool>)
      return GgufType::boolean;
    else if constexpr (std::is_same_v<T, float>)
      return GgufType::f32;
    else if constexpr (std::is_same_v<T, double>)
      return GgufType::f64;
    else {
      static_assert(std::is_integral_v<T>, "GGUF metadata is numbers, booleans, text, and arrays of them");
      constexpr GgufType types[2][4] = {{GgufType::u8, GgufType::u16, GgufType::u32, GgufType::u64},
                                        {GgufType::i8, GgufType::i16, GgufType::i32, GgufType::i64}};
      return types[std::is_signed_v<T>][sizeof(T) == 1 ? 0 : sizeof(T) == 2 ? 1 : sizeof(T) == 4 ? 2 : 3];
    }
  }
  template <class T>
  static void put(std::string& out, T x) {
    out.append(reinterpret_cast<const char*>(&x), sizeof x);
  }
  static void put_text(std::string& out, std::string_view text) {
    put(out, uint64_t(text.size()));
    out += text;
  }
  void begin(std::string_view key);
  void pad(std::string& out) const { out.resize((out.size() + alignment_ - 1) / alignment_ * alignment_); }
  std::string header() const;  // everything before the tensor data, padded

  uint32_t alignment_;
  uint64_t entries_ = 0;
  std::string metadata_;
  std::vector<NamedTensor> tensors_;
};

}  // namespace ridge
