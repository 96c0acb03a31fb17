// The ceilings of a machine: what its units, its memory and its launch can do at best. Measured by `ridgeline doctor`, or read from
// a file that describes another machine (machines/h200.json).
#pragma once
#include <cstdint>
#include <string>

namespace ridge {

enum class Unit : uint8_t { fma_f32, vector_i8, matrix_bf16, matrix_i8, matrix_fp8 };
constexpr int kUnits = 5;
const char* unit_name(Unit unit);                              // "fma_f32": the key in a machine file

struct Machine {
  std::string name;                                            // "Intel(R) Xeon(R) Processor, amx, 2 threads"
  std::string isa;                                             // a CPU's level; empty for a GPU
  int threads = 0;
  double rate[kUnits] = {};                                    // FLOP/s (or integer OP/s) of all threads; 0: the unit is not there
  double dram_read = 0, dram_copy = 0;                         // B/s; copy counts bytes read and bytes written
  double l2_read = 0;                                          // B/s, all threads
  double launch_s = 0;                                         // fork and join, or a graph node
  bool measured = false;                                       // false: nominal values, said so wherever they are shown
  double ceiling(Unit u) const { return rate[int(u)]; }
};

}  // namespace ridge
