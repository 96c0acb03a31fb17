// A fast hash of short byte strings, for the tokenizer's own tables. Not stable between machines of different endianness.
#pragma once
#include <cstdint>
#include <cstring>
#include <string_view>

namespace ridge {

inline uint64_t hash_bytes(std::string_view bytes) {
  uint64_t h = bytes.size() * 0x9E3779B97F4A7C15u;
  const char* p = bytes.data();
  size_t n = bytes.size();
  for (; n >= 8; n -= 8, p += 8) {
    uint64_t word;
    std::memcpy(&word, p, 8);
    h = (h ^ word) * 0xBF58476D1CE4E5B9u;
    h ^= h >> 31;
  }
  uint64_t word = 0;
  std::memcpy(&word, p, n);
  h = (h ^ word) * 0x94D049BB133111EBu;
  return h ^ h >> 32;
}

}  // namespace ridge
