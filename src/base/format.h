// A block-quantised layout as data: how many values share a block, how many bytes it takes, how it is read and written.
// Blocks run along a row; a row is a whole number of blocks.
#pragma once
#include <cstdint>
#include <span>

#include "base/dtype.h"

namespace ridge {

struct Format {
  const char* name;                                              // as users write it: "Q4_0"
  int gguf_type;                                                 // tensor type number in a GGUF file
  int32_t block;                                                 // values in a block; divides 256, which are decoded at a time
  int32_t bytes;                                                 // bytes of a block
  void (*decode)(const void* blocks, float* values, int64_t n);  // n values, a multiple of `block`
  void (*encode)(const float* values, void* blocks, int64_t n);  // nearest codes by the format's plain rule (no search)
  float max_error;                                               // |decode(encode(x)) - x| <= max_error * max |x| over the block
};

const Format* format_of(DType type);           // null for plain types
const Format* format_named(const char* name);  // case does not matter; null when unknown
std::span<const DType> block_types();          // every type that has a format, in the order of formats/list.h

}  // namespace ridge
