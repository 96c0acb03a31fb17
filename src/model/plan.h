// What a step of a model must cost, to the byte and without executing anything: the model's own function under a planning context.
#pragma once
#include <vector>

#include "meter/ledger.h"
#include "meter/machine.h"
#include "model/model.h"

namespace ridge {

struct StepShape {
  std::vector<int32_t> queries, keys;  // a segment each; keys include this step's
  int64_t rows = 0;                    // logits wanted; 0: one a segment
  DType kv_type = DType::f16;
  int64_t page_size = 32;
};

struct StepPlan {
  Ledger ledger;
  int64_t weight_bytes = 0, kv_bytes = 0, batch_bytes = 0, activation_bytes = 0;
  int64_t peak_bytes() const { return weight_bytes + kv_bytes + batch_bytes + activation_bytes; }
};

StepPlan plan_step(const Model& m, Runtime& runtime, const Machine& machine, const StepShape& shape);

}  // namespace ridge
