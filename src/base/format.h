// A block-quantised layout as data: how many values share a block, how many bytes it takes, how it is read and written.
// Blocks run along a row; a row is a whole number of blocks.
//
// A woven format is what a file's format becomes in memory for gemm: the same numbers, with 16 rows in a block, so that a vector register
// holds four consecutive values of each of them (formats/woven.cc has the layout). Values and bytes are the file's, but for padding.
#pragma once
#include <cstdint>
#include <span>

#include "base/view.h"

namespace ridge {

struct Format {
  const char* name;                                              // as users write it: "Q4_0"
  int gguf_type;                                                 // tensor type number in a GGUF file; -1: never in a file
  int32_t block;                                                 // values in a block; divides 256, which are decoded at a time
  int32_t bytes;                                                 // bytes of a block
  void (*decode)(const void* blocks, float* values, int64_t n);  // n values, a multiple of `block`
  void (*encode)(const float* values, void* blocks, int64_t n);  // nearest codes by the format's plain rule (no search)
  float max_error;                                               // |decode(encode(x)) - x| <= max_error * max |x| over the block

  // ---- woven formats, which have no decode and no encode of their own
  int32_t rows = 1;        // that share a block of `bytes` bytes, `block` values of each
  const Format* stored{};  // the file's format that is woven into this one
  void (*weave)(const uint8_t* const* rows, uint8_t* block) = nullptr;  // rows[r]: the file's blocks of row r
  void (*decode_row)(const void* blocks, int row, int64_t from, float* values,
                     int64_t n) = nullptr;  // values from .. from + n of a row
};

const Format* format_of(DType type);           // null for plain types
const Format* format_named(const char* name);  // a file's format; case does not matter; null when unknown
std::span<const DType> block_types();          // every type that a file's format has, in the order of formats/list.h
std::span<const DType> woven_types();

// n values of a row from value `from` on, whole blocks; `data` is where the matrix begins, `row_blocks` how many blocks a row has.
void decode_values(const Format& f, const char* data, int64_t row_blocks, int64_t row, int64_t from, float* values, int64_t n);

// ---- weaving a file's matrix [n, k], 16 rows (a group) at a time
bool can_weave(const View& v);  // a whole matrix of a format that has a woven one, of whole groups and blocks
void weave(const View& from, const View& to, int64_t group);

}  // namespace ridge
