// Runs steps of a model over sequences: owns the batch's buffers, the state pool and the step's arena.
// A step is planned before it runs (tens of microseconds), so its arena is always large enough, and once it has seen its largest
// step it allocates nothing.
#pragma once
#include <memory>
#include <span>

#include "model/model.h"
#include "serve/state_pool.h"

namespace ridge {

struct RunnerOptions {
  int64_t context = 0;  // tokens a sequence may hold
  int64_t sequences = 1;
  int64_t step_tokens =
      256;                // tokens of a step at most: prompts are cut into such chunks, whose activations stay in a 2 MB cache
  int64_t step_rows = 0;  // rows of logits at most; 0: one a sequence
  int64_t page_size = 32;
  DType kv_type = DType::f16;
};

// Whether a model's heads are whole blocks of the cache's type.
Status cache_fits(const Model& model, DType kv_type);

class Runner {
 public:
  // A context that does not fit memory is a Status.
  static Result<std::unique_ptr<Runner>> make(const Model& model, Runtime& runtime, const RunnerOptions& options);

  // One step: tokens of each sequence go in, logits [rows, vocab] come out, valid until the next step. The states grow; their pages
  // must have been reserved (pool().grow).
  struct Input {
    SequenceState* state;
    std::span<const int32_t> ids;
    bool sampled = true;
  };
  View step(std::span<const Input> inputs, BatchBuffers::Rows rows = BatchBuffers::Rows::last);
  // Runs `then` after a step, such as sampling from its logits; its activations and scratch have an arena of their own.
  template <class F>
  void after(const F& then) {
    Arena measure;
    Ctx plan(Mode::plan, runtime_, measure);
    then(plan);
    grow(after_, measure.peak());
    Ctx x(Mode::run, runtime_, *after_);
    x.ledger = ledger, x.machine = machine;
    then(x);
  }

  StatePool& pool() { return pool_; }
  const RunnerOptions& options() const { return options_; }
  const Model& model() const { return model_; }
  Runtime& runtime() { return runtime_; }
  Ledger* ledger = nullptr;  // attached: every call is timed
  const Machine* machine = nullptr;

 private:
  Runner(const Model& model, Runtime& runtime, const RunnerOptions& options);
  int64_t needed() const;
  static void grow(std::unique_ptr<Arena>& a, int64_t bytes);

  const Model& model_;
  Runtime& runtime_;
  RunnerOptions options_;
  StatePool pool_;
  BatchBuffers buffers_;
  std::unique_ptr<Arena> acts_, after_;
  std::vector<SegmentInput> segments_;
};

}  // namespace ridge
