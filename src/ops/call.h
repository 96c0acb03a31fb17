// How a call travels: check, pick, then what the context's mode says.
//
// pick walks the op's list and asks each row; `supports` is a handful of compares, so the walk costs a few nanoseconds a row and
// is not memoised: a memo keyed on part of what `supports` may read is how a wrong row gets picked.
#pragma once
#include <chrono>

#include "base/check.h"
#include "ops/ctx.h"
#include "ops/op.h"

namespace ridge {

namespace detail {

[[noreturn, gnu::cold]] void refuse_call(const char* op, const std::string& sentence, std::span<const Operand> operands,
                                         void* args);
[[noreturn, gnu::cold]] void no_row(const char* op);
// Adds a call to the ledger; `time_s` is 0 for a plan.
void enter(Ctx& x, const char* op, const char* row, const std::string& shape, const Cost& cost, const Speed& speed, double time_s,
           std::vector<Refusal> refused);

template <class Op>
bool eligible(const Kernel<Op>& k, const Runtime& r) {
  return k.tier == Tier::reference || (k.place == r.place && k.isa <= r.isa && (r.fast_activations || !is_block(k.rounds)));
}

template <class Op>
[[gnu::cold]] void note_fallback(Ctx& x, const Kernel<Op>& picked, const typename Op::Args& a) {
  for (const Kernel<Op>& k : Op::kernels())
    if (eligible(k, x.runtime()) && k.tier < picked.tier)
      return x.runtime().count_fallback(Op::name, k.name, picked.name, k.supports(a).refusal);
}

template <class Op>
std::vector<Refusal> refusals(const Ctx& x, const Kernel<Op>& picked, const typename Op::Args& a) {
  std::vector<Refusal> all;
  for (const Kernel<Op>& k : Op::kernels()) {
    if (&k == &picked) break;
    if (k.place != x.runtime().place) continue;  // rows of another place are not "better", they are elsewhere
    if (k.isa > x.runtime().isa)
      all.push_back({k.name, std::string("needs ") + isa_name(k.isa)});
    else if (!eligible(k, x.runtime()))
      all.push_back({k.name, "it rounds activations to 8 bits: --activations fast allows that"});
    else if (Verdict v = k.supports(a); !v)
      all.push_back({k.name, v.refusal});
  }
  return all;
}

// A plan for a place that this build has no row for shows the bound and says so.
template <class Op>
void enter_plan(Ctx& x, const Kernel<Op>& row, const typename Op::Args& a) {
  if (row.place == x.runtime().place)
    return enter(x, Op::name, row.name, Op::shape(a), cost_of<Op>(a), row.speed, 0, refusals<Op>(x, row, a));
  enter(x, Op::name, "none", Op::shape(a), cost_of<Op>(a), {.compute = 1, .memory = 1}, 0,
        {{"none", "this build has no row for that device"}});
}

template <class Op>
bool same_args(const std::any& a, const std::any& b) {
  return std::any_cast<const typename Op::Args&>(a) == std::any_cast<const typename Op::Args&>(b);
}

}  // namespace detail

// The row that would run: the first that is eligible on this runtime and takes the arguments.
template <class Op>
const Kernel<Op>& pick(const Runtime& r, const typename Op::Args& a) {
  for (const Kernel<Op>& k : Op::kernels())
    if (detail::eligible(k, r) && k.supports(a)) return k;
  detail::no_row(Op::name);
}

template <class Op>
void call(Ctx& x, const typename Op::Args& a) {
  using Args = typename Op::Args;
  static_assert(std::is_trivially_copyable_v<Args>, "Args are plain data: they are copied onto tapes and into captures");
  if (const std::string wrong = Op::check(a); !wrong.empty()) [[unlikely]] {
    Args copy = a;
    detail::refuse_call(Op::name, wrong, Op::operands(), &copy);
  }
  const Kernel<Op>& row = pick<Op>(x.runtime(), a);
  if (row.tier != Tier::fast) [[unlikely]]
    detail::note_fallback<Op>(x, row, a);

  const int64_t mark = x.acts().mark();
  char* scratch = row.workspace ? x.acts().raw(row.workspace(a)) : nullptr;
  switch (x.mode()) {
    case Mode::plan:
      if (x.ledger) detail::enter_plan<Op>(x, row, a);
      break;
    case Mode::capture:
      x.captured->add({Op::name, row.name, a, scratch, detail::same_args<Op>,
                       [](Ctx& y, const std::any& args, char* s, const void* r) {
                         static_cast<const Kernel<Op>*>(r)->launch(y, std::any_cast<const Args&>(args), s);
                       },
                       &row});
      break;
    case Mode::run:
    case Mode::record:
      if (!x.ledger) [[likely]] {
        row.launch(x, a, scratch);
      } else {
        const auto from = std::chrono::steady_clock::now();
        row.launch(x, a, scratch);
        const double s = std::chrono::duration<double>(std::chrono::steady_clock::now() - from).count();
        detail::enter(x, Op::name, row.name, Op::shape(a), cost_of<Op>(a), row.speed, s, detail::refusals<Op>(x, row, a));
      }
  }
  if (x.mode() != Mode::capture) x.acts().release(mark);  // a capture keeps its scratch: replays use the same addresses
  if (x.taping())
    if constexpr (requires { Op::vjp(x, a); }) {
      if constexpr (requires { Op::no_gradient(a); })
        if (const std::string why = Op::no_gradient(a); !why.empty())
          detail::refuse_call(Op::name, why, Op::operands(), const_cast<Args*>(&a));
      x.tape([a](Ctx& back) { Op::vjp(back, a); });
    }
}

// Erases the contract's types. Each op's *_kernels.cc does this once: `OpInfo gemm_op() { return erase<Gemm>(); }`.
template <class Op>
OpInfo erase() {
  using Args = typename Op::Args;
  OpInfo info{};
  info.name = Op::name;
  info.args_size = sizeof(Args);
  info.operands = Op::operands();
  info.accuracy = Op::accuracy();
  info.check = [](const void* p) { return Op::check(*static_cast<const Args*>(p)); };
  info.cost = [](const void* p) { return cost_of<Op>(*static_cast<const Args*>(p)); };
  info.shape = [](const void* p) { return Op::shape(*static_cast<const Args*>(p)); };
  info.init = [](void* p) { new (p) Args{}; };
  info.reference = [](Ctx& x, const void* p, char* s) { Op::reference(x, *static_cast<const Args*>(p), s); };
  info.planted = [](Ctx& x, const void* p, char* s) { Op::planted(x, *static_cast<const Args*>(p), s); };
  if constexpr (requires(Ctx & x, const Args& a) { Op::vjp(x, a); })
    info.vjp = [](Ctx& x, const void* p) { Op::vjp(x, *static_cast<const Args*>(p)); };
  info.no_gradient = [](const void* p) -> std::string {
    if constexpr (requires(const Args& a) { Op::no_gradient(a); })
      return Op::no_gradient(*static_cast<const Args*>(p));
    else
      return (void)p, std::string();
  };
  info.call = [](Ctx& x, const void* p) { call<Op>(x, *static_cast<const Args*>(p)); };
  info.cases = [] {
    std::vector<CaseInfo> all;
    for (Case<Op>& c : Op::cases())
      all.push_back({c.name, c.suite, [make = c.make](Sampler& s, void* p) { *static_cast<Args*>(p) = make(s); }});
    return all;
  };
  info.rows = [] {
    std::vector<RowInfo> all;
    for (const Kernel<Op>& k : Op::kernels())
      all.push_back({k.name, k.place, k.isa, k.tier, k.speed, k.rounds,
                     [&k](const void* p) { return k.supports(*static_cast<const Args*>(p)); },
                     [&k](const void* p) { return k.workspace ? k.workspace(*static_cast<const Args*>(p)) : int64_t(0); },
                     [&k](Ctx& x, const void* p, char* s) { k.launch(x, *static_cast<const Args*>(p), s); }});
    return all;
  };
  return info;
}

}  // namespace ridge
