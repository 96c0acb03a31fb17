// `ridgeline op list | check | grad | bench | why`: what the drivers of check/ find, as text or JSON. Parsing is main.cc's.
#pragma once
#include <string>

#include "base/status.h"
#include "meter/machine.h"
#include "ops/ctx.h"

namespace ridge {

struct OpVerb {
  std::string action;            // "list", "check", "grad", "bench", "why"
  std::string op;                // a name; empty: all ops
  std::string case_filter, row;  // a name or a part of it; empty: all
  std::string suite;   // "smoke", "edge", "model", "fuzz"; empty: of a named case any, else edge to check and model to bench
  std::string ledger;  // bench: the file that keeps the rows; empty: none
  double seconds = 0;  // of timing for each row (bench), of large cases in all (check); 0: the driver's
  int threads = 0;     // 0: what this machine offers; 2 to check and 1 for gradients
  bool json = false;
};

int run_op_verb(const OpVerb& verb);  // the process's exit code; the sentence of an error goes to stderr

// The same on a given runtime. Prints to stdout. A check that fails is Code::failed; an unknown name or action, or an option that the
// action has no use for, is Code::usage. Only bench and why read the machine.
Status run_op_verb(const OpVerb& verb, Runtime& runtime, const Machine& machine);

}  // namespace ridge
