// Checks an op's vjp against central differences in double.
//
// All floating operands become doubles in arenas of their own, tracked by a context; loss = sum of random weights x outputs. The
// gradients start at a constant, because vjps accumulate. For a random subset of every operand's elements the loss is differenced
// with four points (error h^4). Then every operand in turn is left untracked, as frozen weights are: the other gradients must not
// change. Neither operands nor the gradients of the outputs may change.
// An operand of role inout shares its gradient's memory with its result: the vjp may turn the gradient of the new content into that
// of the old one (which is then checked), or leave it (then the old content is taken for a constant). Operands declared not
// differentiable are left untracked.
// Cases whose outputs are not finite or show a NaN of the inputs, or that cost too much to repeat, are passed over.
#pragma once
#include <string>
#include <vector>

#include "check/check_op.h"

namespace ridge {

struct GradOptions {
  Suite suite = Suite::edge;
  std::string case_filter;
  int elements = 60;        // of each operand
  double tolerance = 1e-6;  // of the largest gradient of the operand
  double case_flops = 1e8;  // what the differences of one case may cost
  int threads = 1;          // of the backward pass
  Isa isa = active_isa();
};

struct GradLine {
  std::string case_name, operand;
  int elements = 0;
  double worst = 0;  // error / largest gradient
};

struct GradReport {
  std::string op;
  bool differentiable = true;
  std::vector<GradLine> lines;
  std::vector<std::string> passed_over;  // "edge_x: too large"
  std::vector<Failure> failures;
  bool ok() const { return failures.empty(); }
};

GradReport grad_op(const OpInfo& op, const GradOptions& options);
std::string to_text(const GradReport& r);

}  // namespace ridge
