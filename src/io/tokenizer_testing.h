// What the tokenizer's tests share: the goldens, the corpus and its deterministic megabyte. For tests only.
#pragma once
#include <gtest/gtest.h>

#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "io/json.h"
#include "io/mapping.h"
#include "io/unicode.h"

namespace ridge {

inline std::string golden_path(const std::string& name) { return std::string(RIDGE_SOURCE_DIR) + "/src/io/goldens/" + name; }

inline const Json& goldens() {
  static const Json all = [] {
    Result<Json> read = read_json(golden_path("tokenizer_goldens.json"));
    EXPECT_TRUE(read) << read.status().sentence();
    return read ? std::move(*read) : Json();
  }();
  return all;
}

inline std::string unhex(const std::string& hex) {
  std::string bytes;
  for (size_t i = 0; i + 1 < hex.size(); i += 2) bytes += char(std::stoi(hex.substr(i, 2), nullptr, 16));
  return bytes;
}

template <class Numbers>
inline std::string fnv(const Numbers& numbers) {
  uint64_t h = 0xCBF29CE484222325u;
  for (const auto number : numbers) {
    for (int shift = 0; shift < 32; shift += 8) h = (h ^ (uint32_t(number) >> shift & 0xFF)) * 0x100000001B3u;
  }
  char text[17];
  snprintf(text, sizeof(text), "%016llx", static_cast<unsigned long long>(h));
  return text;
}
inline std::string fnv_of_bytes(std::string_view bytes) {
  std::vector<uint8_t> list(bytes.begin(), bytes.end());
  return fnv(list);
}

struct SplitMix {
  uint64_t state;
  uint64_t operator()(uint64_t below) {
    uint64_t z = state += 0x9E3779B97F4A7C15u;
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
    z = (z ^ z >> 27) * 0x94D049BB133111EBu;
    return (z ^ z >> 31) % below;
  }
};

// The same lines as in tools/goldens/tokenizer.py: cuts of the corpus at any byte, runs, noise, random code points, white space.
inline std::string expand(std::string_view corpus, size_t size, uint64_t seed) {
  constexpr std::string_view spaces[] = {" ", "\n", "\t", "\r\n", "\u00a0", "\u3000", "\u0085"};
  SplitMix below{seed};
  std::string out;
  while (out.size() < size) {
    const uint64_t kind = below(16);
    if (kind < 12) {
      const uint64_t start = below(corpus.size());
      out += corpus.substr(start, 1 + below(400));
    } else if (kind == 12) {
      const char byte = char(below(256));
      out.append(1 + below(20), byte);
    } else if (kind == 13) {
      for (uint64_t n = 1 + below(12); n > 0; --n) out += char(below(256));
    } else if (kind == 14) {
      for (uint64_t n = 1 + below(6); n > 0; --n) append_utf8(uint32_t(below(0x110000)), out);
    } else {
      for (uint64_t n = 1 + below(40); n > 0; --n) out += spaces[below(7)];
    }
  }
  out.resize(size);
  return out;
}

inline const std::string& corpus() {
  static const std::string bytes = [] {
    Result<Mapping> file = Mapping::open(golden_path("tokenizer_corpus.bin"));
    EXPECT_TRUE(file) << file.status().sentence();
    return std::string(file ? file->bytes() : std::string_view("?"));
  }();
  return bytes;
}
inline const std::string& megabyte() {
  static const std::string bytes = expand(corpus(), size_t(1) << 20, 1);
  return bytes;
}
inline const std::string& clean_megabyte() {
  static const std::string text = [] {
    std::string out;
    append_repaired(megabyte(), true, out);
    return out;
  }();
  return text;
}

inline Json golden_tokenizer_json(const std::string& name) {
  Result<Json> read = read_json(golden_path("tokenizer_" + name + ".json"));
  EXPECT_TRUE(read) << read.status().sentence();
  return read ? std::move(*read) : Json();
}

}  // namespace ridge
