#include "meter/machine.h"

namespace ridge {

const char* unit_name(Unit unit) {
  constexpr const char* names[kUnits] = {"fma_f32", "vector_i8", "matrix_bf16", "matrix_i8", "matrix_fp8"};
  return names[int(unit)];
}

}  // namespace ridge
