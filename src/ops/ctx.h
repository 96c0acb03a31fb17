// The context decides what a model function means: run it, plan it, record it, capture it.
//
//   run      picks a row for every call and launches it
//   plan     adds every call to the ledger with its cost, bound and refusals; touches no memory, needs no weights
//   record   runs, and keeps a tape of vjps; backward() plays it
//   capture  keeps the stream of (row, arguments) for replay; on a GPU that stream is a graph
//
// A context borrows everything: the runtime (threads, ISA, machine) and its arenas outlive it. Not thread-safe: one per step loop.
#pragma once
#include <any>
#include <functional>
#include <initializer_list>
#include <string>
#include <vector>

#include "base/arena.h"
#include "device/isa.h"
#include "device/pool.h"
#include "meter/ledger.h"
#include "meter/machine.h"
#include "ops/op.h"

namespace ridge {

// A pick that is not of the best tier the place offers.
struct Fallback {
  const char *op, *from, *to, *reason;
  int64_t count;
};

// What calls run on. Shared by the contexts of a process.
struct Runtime {
  explicit Runtime(int threads, Isa isa = active_isa()) : pool(threads), isa(isa) {}
  Pool pool;
  Isa isa;
  Place place = Place::cpu;
  bool fast_activations = false;  // rows that round activations to 8 bits may be picked (Kernel::rounds)
  std::vector<Fallback> fallbacks;
  void count_fallback(const char* op, const char* from, const char* to, const char* reason);
};

// The stream of calls of one step. Two streams are equal when op, row and every argument are.
class Capture {
 public:
  struct Call {
    const char *op, *row;
    std::any args;
    char* scratch;
    bool (*same)(const std::any&, const std::any&);
    void (*launch)(Ctx&, const std::any& args, char* scratch, const void* row);
    const void* row_address;
  };
  void add(Call call) { calls_.push_back(std::move(call)); }
  void replay(Ctx& x) const;
  const std::vector<Call>& calls() const { return calls_; }
  bool operator==(const Capture& other) const;

 private:
  std::vector<Call> calls_;
};

enum class Mode : uint8_t { run, plan, record, capture };

class Ctx {
 public:
  // acts holds activations and scratch; act_grads, its twin, makes a plan a plan of the training step and is needed to record.
  Ctx(Mode mode, Runtime& runtime, Arena& acts, Arena* act_grads = nullptr);

  Mode mode() const { return mode_; }
  bool taping() const { return mode_ == Mode::record || (mode_ == Mode::plan && act_grads_); }
  Runtime& runtime() const { return runtime_; }
  const Pool& pool() const { return runtime_.pool; }

  // ---- memory
  View act(std::initializer_list<int64_t> dims, DType type) { return acts_.alloc(dims, type); }
  View act(const View& like);  // same dims and type, no gaps
  // The successor of v: v's own storage when nothing will be differentiated, fresh storage when taping. Models update the
  // residual stream through this and nothing else, so no value that a vjp needs is overwritten, and inference works in place.
  View next(const View& v) { return taping() ? act(v) : v; }
  Arena& acts() { return acts_; }

  // ---- gradients mirror their arena: same offset in a twin, so slices and transposes of a view have theirs for free
  // scale 2: the arena holds 16-bit floats, whose gradients are f32.
  void track(const Arena& of, Arena& grads, int64_t scale = 1) { mirrors_.push_back({&of, &grads, scale}); }
  View grad(const View& v) const;  // absent when v is not differentiated (ids, positions, inputs)
  void tape(std::function<void(Ctx&)> vjp) { tape_.push_back(std::move(vjp)); }
  void backward(const View& loss);  // seeds d loss = 1 and plays the tape

  // ---- what a call reports to
  Ledger* ledger = nullptr;
  const Machine* machine = nullptr;  // needed with a ledger: bounds come from it
  Capture* captured = nullptr;       // needed to capture

 private:
  friend struct Scope;
  friend void recompute(Ctx&, const std::function<void(Ctx&)>&);
  struct Mirror {
    const Arena* of;
    Arena* in;
    int64_t scale;
  };
  void play();
  Ctx child(Mode mode) const;

  Mode mode_;
  Runtime& runtime_;
  Arena& acts_;
  Arena* act_grads_;
  std::vector<Mirror> mirrors_;
  std::vector<std::function<void(Ctx&)>> tape_;
};

// The activations of one part of a model, given back at its end; kept when taping.
struct Scope {
  explicit Scope(Ctx& x) : ctx(x), mark(x.acts_.mark()) {}
  ~Scope() {
    if (!ctx.taping()) ctx.acts_.release(mark);
  }
  Scope(const Scope&) = delete;
  Ctx& ctx;
  int64_t mark;
};

// Runs part of a model and keeps only what it was given to write; its activations are computed again, recorded and
// differentiated when the backward pass comes to it. A layer wrapped in this costs its output in memory and one more forward.
void recompute(Ctx& x, const std::function<void(Ctx&)>& part);

}  // namespace ridge
