// What the ceilings of a CPU are measured with: short loops of nothing but one kind of instruction, compiled once per ISA.
// Plain data, for ISA files.
#pragma once
#include <cstdint>

namespace ridge {

struct ProbeCpu {
  // Each runs on the calling thread and returns the operations done (a multiply-add is two). Null: the level has no such unit.
  double (*fma_f32)(int64_t rounds);
  double (*vector_i8)(int64_t rounds);
  double (*matrix_bf16)(int64_t rounds);
  double (*matrix_i8)(int64_t rounds);
  // Reads every byte of [from, from + bytes); bytes is a multiple of 4096.
  void (*read)(const char* from, int64_t bytes);
  // Copies with stores that do not fetch the line first, where the level has them; same sizes, no overlap.
  void (*copy)(char* to, const char* from, int64_t bytes);
};

}  // namespace ridge
