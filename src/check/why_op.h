// Why a call runs the row it runs: the op's list in order, each row with its verdict and the time it is predicted to take.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "check/check_op.h"
#include "meter/machine.h"
#include "ops/ctx.h"

namespace ridge {

struct WhyRow {
  std::string row;
  std::string refusal;  // empty: it takes the call here
  bool picked = false;
  double predicted_s = 0;
};

struct WhyCase {
  std::string case_name, shape;
  Cost cost;
  double bound_s = 0;
  const char* bound_by = "";
  std::vector<WhyRow> rows;
};

struct WhyOptions {  // chooses as BenchOptions does
  std::optional<Suite> suite = Suite::model;
  std::string case_filter, row_filter;
};

std::vector<WhyCase> why_op(const OpInfo& op, const WhyOptions& options, const Runtime& runtime, const Machine& machine);
std::string to_text(const std::string& op, const std::vector<WhyCase>& cases);

}  // namespace ridge
