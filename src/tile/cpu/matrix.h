// What ISA files know of a View: plain data, no functions.
#pragma once
#include <cstdint>

#include "base/format.h"

namespace ridge {

struct CpuMatrix {
  uint8_t* data = nullptr;  // null: absent
  DType type = DType::f32;
  int64_t row = 0;                 // bytes from row to row, woven: from 16 rows to the next; 0 for a transposed block format
  int64_t step = 0;                // bytes from element to element within a row; 0 for a block format, unless it is transposed
  const Format* format = nullptr;  // of a block type: how pack reads it where decode.h has no reader for it
};

}  // namespace ridge
