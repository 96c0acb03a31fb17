#include "ops/ctx.h"

#include "base/check.h"
#include "base/log.h"

namespace ridge {

void Runtime::count_fallback(const char* op, const char* from, const char* to, const char* reason) {
  for (Fallback& f : fallbacks)
    if (f.op == op && f.from == from && f.to == to && f.reason == reason) return void(++f.count);
  log_info("{} fell back from {} to {}: {}", op, from, to, reason);
  fallbacks.push_back({op, from, to, reason, 1});
}

void Capture::replay(Ctx& x) const {
  for (const Call& c : calls_) c.launch(x, c.args, c.scratch, c.row_address);
}

bool Capture::operator==(const Capture& other) const {
  if (calls_.size() != other.calls_.size()) return false;
  for (size_t i = 0; i < calls_.size(); ++i) {
    const Call &a = calls_[i], &b = other.calls_[i];
    if (a.op != b.op || a.row != b.row || a.scratch != b.scratch || !a.same(a.args, b.args)) return false;
  }
  return true;
}

Ctx::Ctx(Mode mode, Runtime& runtime, Arena& acts, Arena* act_grads)
    : mode_(mode), runtime_(runtime), acts_(acts), act_grads_(act_grads) {
  RIDGE_CHECK(mode != Mode::record || act_grads, "recording needs a twin arena for the gradients of activations");
  if (act_grads) track(acts, *act_grads);
}

View Ctx::act(const View& like) {
  switch (like.rank) {
    case 1: return act({like.dims[0]}, like.type);
    case 2: return act({like.dims[0], like.dims[1]}, like.type);
    case 3: return act({like.dims[0], like.dims[1], like.dims[2]}, like.type);
    default: return act({like.dims[0], like.dims[1], like.dims[2], like.dims[3]}, like.type);
  }
}

View Ctx::grad(const View& v) const {
  if (!v || !is_float(v.type)) return {};
  for (const Mirror& m : mirrors_)
    if (m.of->owns(v)) return m.of->mirrored_in(*m.in, v, v.type == DType::f64 ? DType::f64 : DType::f32, m.scale);
  return {};
}

Ctx Ctx::child(Mode mode) const {
  Ctx x(mode, runtime_, acts_, act_grads_);
  x.mirrors_ = mirrors_;
  x.ledger = ledger;
  x.machine = machine;
  return x;
}

void Ctx::backward(const View& loss) {
  RIDGE_CHECK(taping(), "backward() follows a recorded pass");
  act_grads_->clear(0, acts_.mark());
  if (mode_ == Mode::record) grad(loss).set(1);
  play();
}

void Ctx::play() {
  // The vjps run; what they call is not taped again. A plan of the backward pass stays a plan.
  Ctx x(mode_ == Mode::plan ? Mode::plan : Mode::run, runtime_, acts_);
  x.mirrors_ = mirrors_;
  x.ledger = ledger;
  x.machine = machine;
  for (auto vjp = tape_.rbegin(); vjp != tape_.rend(); ++vjp) {
    const int64_t mark = acts_.mark();
    (*vjp)(x);
    acts_.release(mark);
  }
  tape_.clear();
}

void recompute(Ctx& x, const std::function<void(Ctx&)>& part) {
  if (!x.taping()) return part(x);
  const int64_t mark = x.acts_.mark();
  Ctx once = x.child(x.mode_);  // taping, so that the part's inputs survive
  part(once);
  x.acts_.release(mark);
  x.tape([part, mode = x.mode_, act_grads = x.act_grads_, mirrors = x.mirrors_](Ctx& back) {
    const int64_t from = back.acts_.mark();
    Ctx again(mode, back.runtime_, back.acts_, act_grads);
    again.mirrors_ = mirrors;
    again.ledger = back.ledger;
    again.machine = back.machine;
    part(again);
    act_grads->clear(from, back.acts_.mark());
    again.play();
    back.acts_.release(from);
  });
}

}  // namespace ridge
