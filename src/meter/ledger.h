// What ran, what it should cost and what it did cost. A Ledger is attached to a context by whoever wants to know; without one a
// call pays nothing. Calls of one (op, row, shape) share a line.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "meter/cost.h"

namespace ridge {

struct Refusal {
  std::string row, reason;
  bool operator==(const Refusal&) const = default;
};

struct LedgerLine {
  std::string op, row, shape;
  int64_t count = 0;
  Cost cost;                                        // of all calls together
  double bound_s = 0, predicted_s = 0, time_s = 0;  // sums
  const char* bound_by = "";                        // "memory", "matrix_bf16", "fma_f32", "launch"
  std::vector<Refusal> refused;                     // better rows, and why they did not run
};

class Ledger {
 public:
  // Finds the line of a kind of call, making it on first sight.
  LedgerLine& line(const char* op, const char* row, const std::string& shape);
  const std::vector<LedgerLine>& lines() const { return lines_; }
  double bound_s() const;
  double predicted_s() const;
  double time_s() const;
  Cost cost() const;
  void clear() { lines_.clear(); }

 private:
  std::vector<LedgerLine> lines_;
};

}  // namespace ridge
