// Why a call runs the row it runs: the op's list in order, each row with its verdict and the time it is predicted to take.
#pragma once
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

// The cases that match the filter; without one those of the model suite, or all where there are none.
std::vector<WhyCase> why_op(const OpInfo& op, const std::string& case_filter, const Runtime& runtime, const Machine& machine);
std::string to_text(const std::string& op, const std::vector<WhyCase>& cases);

}  // namespace ridge
