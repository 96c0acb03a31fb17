// Checks an op from its contract alone: every case x every row that this machine can run.
//
// A run passes when the outputs keep the accuracy rule (compare.h), nothing but outputs changed (canaries, gaps, inputs), a second
// run and runs on other thread counts give the same bits, and so do strided, offset and guarded operands (or the row's `supports`
// refuses them, and then what the dispatcher picks instead is right). Scratch is exactly as large as the row asked for, filled with NaN.
// The reference row, being the truth itself, is run as the case lies and on strided operands; model-sized cases spare it.
//
// A row may do as it likes with its scratch, and must not read an output before writing it.
#pragma once
#include <string>
#include <vector>

#include "check/compare.h"
#include "ops/op.h"

namespace ridge {

struct CheckOptions {
  Suite suite = Suite::edge;
  std::string case_filter, row_filter;  // a name, or a part of it; empty takes all
  double budget_s = 0;                  // model and fuzz cases stop when it is used up; 0: no limit
  int threads = 2;                      // of every run but those that compare with another number of them
  Isa isa = active_isa();
};

struct Failure {
  std::string case_name, row, what;
  std::string repro;  // a command line
};

struct RowSummary {
  std::string row;
  bool runnable = true;  // this machine has its place and ISA
  int cases = 0;         // it took and ran
  int refused_placements = 0;
  double worst_used = 0;  // of its tolerance
  std::string worst_case;
};

struct CheckReport {
  std::string op;
  int cases = 0, skipped = 0;  // skipped: by the budget
  int64_t runs = 0;
  std::vector<RowSummary> rows;
  std::vector<Failure> failures;
  bool ok() const { return failures.empty(); }
};

CheckReport check_op(const OpInfo& op, const CheckOptions& options);

// Does the tolerance reject what is wrong? Runs the op's planted bug and generic corruptions of a right output (one element off, the
// last row stale, two rows swapped, everything scaled) over the smoke and edge cases, for every rounding that some row declares.
// Each must be rejected somewhere. Returns the failures; empty is good.
std::vector<Failure> check_rejections(const OpInfo& op, const CheckOptions& options);

std::string to_text(const CheckReport& r);  // a table of rows, then the failures
bool matches(const std::string& name, const std::string& filter);
// The cases that a filter names, for every driver alike: the one of exactly this name, else all whose name contains it.
std::vector<CaseInfo> cases_named(const OpInfo& op, const std::string& filter);

}  // namespace ridge
