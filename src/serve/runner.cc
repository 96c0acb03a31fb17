#include "serve/runner.h"

#include <fmt/format.h>

#include "base/check.h"
#include "base/format.h"
#include "device/topology.h"

namespace ridge {

Status cache_fits(const Model& model, DType kv_type) {
  const Format* f = format_of(kv_type);
  if (!f || model.kv.head_dim % f->block == 0) return {};
  return usage_error(
      fmt::format("a {} cache needs head dimensions in multiples of {}, and this model's is {}; ask for an f16 cache.", f->name,
                  f->block, model.kv.head_dim));
}

Result<std::unique_ptr<Runner>> Runner::make(const Model& model, Runtime& runtime, const RunnerOptions& options) {
  RunnerOptions o = options;
  if (o.context <= 0) o.context = std::min<int64_t>(model.context, 8192);
  if (o.context > model.context)
    return usage_error(fmt::format("a context of {} tokens was asked for, and the model was made for {}; ask for less.",
                                   o.context, model.context));
  if (Status s = cache_fits(model, o.kv_type); !s.ok()) return s;
  o.step_tokens = std::min(o.step_tokens, o.context * o.sequences);
  if (o.step_rows == 0) o.step_rows = o.sequences;
  const double kv = double(o.sequences) * double(o.context + o.page_size) * double(model.kv.bytes_per_token(o.kv_type));
  if (const double memory = double(total_memory()); kv > 0.9 * memory)
    return failed(fmt::format(
        "{} sequences of {} tokens need {:.1f} GB of keys and values, and this machine has {:.1f} GB; ask for a smaller context.",
        o.sequences, o.context, kv / 1e9, memory / 1e9));
  return std::unique_ptr<Runner>(new Runner(model, runtime, o));
}

Runner::Runner(const Model& model, Runtime& runtime, const RunnerOptions& o)
    : model_(model),
      runtime_(runtime),
      options_(o),
      pool_(model.kv, o.sequences * ((o.context + o.page_size - 1) / o.page_size), o.page_size, o.kv_type),
      buffers_({.tokens = o.step_tokens,
                .segments = o.sequences,
                .rows = o.step_rows,
                .pages = (o.context + o.page_size - 1) / o.page_size}),
      acts_(std::make_unique<Arena>(1)),
      after_(std::make_unique<Arena>(1)) {
  segments_.reserve(o.sequences);
  buffers_.batch().cache = &pool_.cache();
}

int64_t Runner::needed() const {
  Arena measure;
  Ctx x(Mode::plan, runtime_, measure);
  model_.logits(x, const_cast<BatchBuffers&>(buffers_).batch());
  return measure.peak();
}

void Runner::grow(std::unique_ptr<Arena>& a, int64_t bytes) {
  if (bytes > a->size()) a = std::make_unique<Arena>(bytes);
  a->release(0);
}

View Runner::step(std::span<const Input> inputs, BatchBuffers::Rows rows) {
  segments_.clear();
  for (const Input& in : inputs) {
    RIDGE_CHECK(pool_.pages_for(in.state->tokens + int64_t(in.ids.size())) <= int64_t(in.state->pages.size()),
                "a step's pages are reserved before it");
    segments_.push_back({in.ids, int32_t(in.state->tokens), in.state->pages, in.sampled});
  }
  buffers_.fill(segments_, pool_.page_size(), BatchBuffers::Fit::exact, rows);
  grow(acts_, needed());
  Ctx x(Mode::run, runtime_, *acts_);
  x.ledger = ledger, x.machine = machine;
  View logits = model_.logits(x, buffers_.batch());
  for (const Input& in : inputs) in.state->tokens += int64_t(in.ids.size());
  return logits;
}

}  // namespace ridge
