#include "model/plan.h"

#include <algorithm>
#include <numeric>

namespace ridge {

StepPlan plan_step(const Model& m, Runtime& runtime, const Machine& machine, const StepShape& shape) {
  const int64_t tokens = std::accumulate(shape.queries.begin(), shape.queries.end(), int64_t(0));
  int64_t pages = 0, most_pages = 1;
  for (int32_t n : shape.keys) {
    const int64_t p = (n + shape.page_size - 1) / shape.page_size;
    pages += p;
    most_pages = std::max(most_pages, p);
  }
  const int64_t segments = int64_t(shape.queries.size());
  Arena kv;
  const KvCache cache = alloc_kv_cache(kv, m.kv, pages, shape.page_size, shape.kv_type);
  BatchBuffers buffers({.tokens = tokens, .segments = segments, .rows = shape.rows ? shape.rows : segments, .pages = most_pages},
                       false);
  buffers.plan(shape.queries, shape.keys);
  buffers.batch().cache = &cache;

  StepPlan plan;
  Arena acts;
  auto under = [&](const Machine* ceilings) {
    plan.ledger.clear();
    acts.release(0);
    Ctx x(Mode::plan, runtime, acts);
    x.ledger = &plan.ledger;
    x.machine = ceilings;
    m.logits(x, buffers.batch());
  };
  // Steps come round to the same weights and keys: what they read in all decides which memory they are read from.
  under(nullptr);
  Machine here = machine;
  here.dram_read = machine.read_rate(plan.ledger.cost().bytes_read);
  under(&here);
  plan.weight_bytes = m.weight_bytes;
  plan.kv_bytes = cache.bytes;
  plan.batch_bytes = buffers.bytes();
  plan.activation_bytes = acts.peak();
  return plan;
}

}  // namespace ridge
