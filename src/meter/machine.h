// The ceilings of a machine: what its units, its memory and its launch can do at best. Measured by `ridgeline doctor` (measure.h) and
// kept per machine, or read from a file that describes another machine (machines/h200.json). One form for CPUs and GPUs.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"

namespace ridge {

class Json;

enum class Unit : uint8_t { fma_f32, vector_i8, matrix_bf16, matrix_i8, matrix_fp8 };
constexpr int kUnits = 5;
const char* unit_name(Unit unit);  // "fma_f32": the key in a machine file

// A rate of reading memory over and over that is `bytes` large in all threads together: caches show as a curve.
struct ReadRate {
  double bytes, rate;  // rate in B/s
  bool operator==(const ReadRate&) const = default;
};

struct Machine {
  std::string name;                     // "Intel(R) Xeon(R) Processor, amx, 2 threads"
  std::string isa;                      // a CPU's level; empty for a GPU
  int threads = 0;                      // 0 for a GPU
  double rate[kUnits] = {};             // FLOP/s (or integer OP/s) of all threads; 0: the unit is not there
  double dram_read = 0, dram_copy = 0;  // B/s; copy counts bytes read and bytes written
  double l2_read = 0;                   // B/s, all threads
  std::vector<ReadRate> reads;          // between l2_read and dram_read, ascending in bytes; may be empty
  double launch_s = 0;                  // fork and join, or a graph node
  bool measured = false;                // false: nominal values, said so wherever they are shown
  std::string note;                     // where numbers come from, for people
  double ceiling(Unit u) const { return rate[int(u)]; }
  // What reading can reach when a step comes round to the same `bytes` each time: a 98 MB model on a CPU with a large last-level cache
  // is read faster than DRAM gives. dram_read without a curve.
  double read_rate(double bytes) const;
  bool operator==(const Machine&) const = default;
};

// Plain guesses for a CPU of that level, on the low side: what `plan` says on a machine that `doctor` has not seen.
Machine nominal_machine(const std::string& cpu, const std::string& isa, int threads);

// {"name", "isa", "threads", one key a unit, "dram_read", "dram_copy", "l2_read", "reads": [[bytes, rate]], "launch_s", "measured", "note"}.
// Reading needs name, dram_read and launch_s; other keys may be missing and unknown ones are refused, so that a typing error is not a 0.
Json machine_json(const Machine& m);
Result<Machine> machine_from_json(const Json& json, const std::string& where);
Result<Machine> read_machine(const std::string& path);
Status write_machine(const Machine& m, const std::string& path);  // makes the folders; appears whole or not at all

}  // namespace ridge
