// Where numbers are. A View never owns. Strides and offsets are 64-bit and count elements; rank is at most 4.
//
// get() converts to double and set() rounds to the view's type: a reference kernel written with them is exact on f64 views and
// the faithful low-precision twin on bf16 ones. Block formats are read (a block is decoded for the element), never written.
// A matrix of a woven format (base/format.h) is cut at multiples of 16 rows and of its blocks only.
#pragma once
#include <cstdint>
#include <initializer_list>
#include <string>
#include <utility>

#include "base/dtype.h"

namespace ridge {

struct View {
  char* data = nullptr;
  DType type = DType::f32;
  uint8_t rank = 0;  // 0: no view; converts to false
  int64_t dims[4] = {1, 1, 1, 1};
  int64_t strides[4] = {0, 0, 0, 0};

  explicit operator bool() const { return rank > 0; }
  bool operator==(const View&) const = default;

  int64_t count() const { return dims[0] * dims[1] * dims[2] * dims[3]; }
  int64_t bytes() const { return bytes_of(type, count()); }  // of the elements, gaps between rows not counted
  char* at(int64_t i, int64_t j = 0, int64_t k = 0, int64_t l = 0) const {
    if (is_woven(type)) return at_woven(i, j);
    const int64_t element = i * strides[0] + j * strides[1] + k * strides[2] + l * strides[3];
    return is_block(type) ? data + bytes_of(type, element) : data + element * size_of(type);
  }
  template <class T>
  T* as(int64_t i = 0, int64_t j = 0, int64_t k = 0, int64_t l = 0) const {
    return reinterpret_cast<T*>(at(i, j, k, l));
  }

  double get(int64_t i = 0, int64_t j = 0, int64_t k = 0, int64_t l = 0) const;
  void set(double x, int64_t i = 0, int64_t j = 0, int64_t k = 0, int64_t l = 0) const;
  void add(double x, int64_t i = 0, int64_t j = 0, int64_t k = 0, int64_t l = 0) const { set(get(i, j, k, l) + x, i, j, k, l); }

  bool dense() const;         // row-major without gaps
  bool whole_blocks() const;  // a block format: rows and strides are whole blocks
  bool rows_dense() const { return rank > 0 && (strides[rank - 1] == 1 || dims[rank - 1] == 1); }

  View t() const;                            // rank 2: [i, j] -> [j, i]; of a block format: for get() alone
  View rows(int64_t from, int64_t n) const;  // [from : from + n, ...]
  View cols(int64_t from, int64_t n) const;  // rank 2: [:, from : from + n]
  View heads(int64_t n) const;               // [rows, n * d] -> [rows, n, d]
  View flat() const;                         // dense: -> [count]

 private:
  char* at_woven(int64_t i, int64_t j) const;
};

View view_of(void* data, DType type, std::initializer_list<int64_t> dims);  // row-major without gaps
std::string to_string(const View& v);  // "bf16 [512, 9, 64]", with strides where there are gaps

}  // namespace ridge
