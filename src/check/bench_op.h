// Times an op's rows from its contract alone, beside the bound that the machine's ceilings give.
//
// Cold: every run takes the next of several copies of the operands, together larger than the last-level cache (kColdBytes at most, 256
// copies at most), so weights come from memory as they do in a model. Hot: the same copy again at once, small calls many times over.
// The rows of a case take turns, so that what else the machine does hits them alike. Times are of a whole launch, fork and join included.
// A ledger row carries the best cold time: other programs only ever add.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "check/check_op.h"
#include "meter/ledger_file.h"
#include "meter/machine.h"
#include "ops/ctx.h"

namespace ridge {

struct BenchOptions {
  std::optional<Suite> suite = Suite::model;  // exactly this one; none: any
  std::string case_filter, row_filter;
  double seconds = 0.5;  // of timing for each row of a case
  int min_repeats = 5, max_repeats = 200;
  bool reference = false;  // also where other rows take the case
};

struct Times {
  double best = 0, median = 0, p10 = 0, p90 = 0;  // seconds
};

struct BenchLine {
  std::string case_name, row, shape, dtype;
  bool picked = false;  // the dispatcher would run it
  int repeats = 0, copies = 0;
  Times cold, hot;
  double bound_s = 0, predicted_s = 0;
  const char* bound_by = "";
  double fraction() const { return bound_s / cold.best; }
  double prediction_error() const { return predicted_s / cold.best - 1; }
};

struct BenchReport {
  std::string op;
  std::vector<BenchLine> lines;
};

constexpr int64_t kColdBytes = int64_t(256) << 20;

BenchReport bench_op(const OpInfo& op, const BenchOptions& options, Runtime& runtime, const Machine& machine);
std::string to_text(const BenchReport& r);
std::vector<LedgerRow> ledger_rows(const BenchReport& r, const Machine& machine);
std::string dtype_of(const OpInfo& op, const void* args);  // of the first weight, or of the first floating input

}  // namespace ridge
