// The contract vocabulary: what an op says about itself, and what a kernel row is. One op folder = one struct in these words.
//
//   struct Gemm {
//     static constexpr const char* name = "gemm";
//     struct Args {...};                                 // views and plain numbers; trivially copyable, comparable
//     static std::span<const Operand> operands();        // the views of Args: name, role, where
//     static std::string check(const Args&);             // a sentence, or nothing
//     static Cost cost(const Args&);                     // what the operand table cannot know (see cost_of)
//     static std::string shape(const Args&);             // "512x1536x576 Q4_1": how plan and ledger name a call
//     static void reference(Ctx&, const Args&, char*);   // naive for ever: get, compute in double, set
//     static void planted(Ctx&, const Args&, char*);     // the reference with a realistic bug: the tolerance must reject it
//     static Accuracy accuracy();
//     static std::vector<Case<Gemm>> cases();
//     static void vjp(Ctx&, const Args&);                // optional: backward as op calls
//     static std::string no_gradient(const Args&);       // optional, beside vjp: why these arguments cannot be recorded, or nothing
//     static std::span<const Kernel<Gemm>> kernels();    // best first, reference last
//   };
//
// OpInfo is the same contract with the types erased; every driver in check/ is written once against it.
#pragma once
#include <any>
#include <functional>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "base/view.h"
#include "device/isa.h"
#include "meter/cost.h"
#include "meter/machine.h"

namespace ridge {

class Ctx;

// ---- operands
// weight: an input that belongs to the model (its bytes are counted apart; it may be block-quantised).
enum class Role : uint8_t { in, weight, out, inout };
inline bool is_input(Role r) { return r != Role::out; }
inline bool is_output(Role r) { return r == Role::out || r == Role::inout; }

struct Operand {
  const char* name;
  Role role;
  View& (*of)(void* args);  // the view inside an Args; may be absent (rank 0)
  // false: the call reads or writes only a part that depends on values (a table's rows, pages); `cost` counts those bytes.
  bool counted = true;
  bool differentiable = true;  // false: an input that the vjp has no gradient for
};

// operand<&Args::q>("q", Role::in), operand<&Args::segments, &Segments::cu_seqlens>("cu_seqlens", Role::in)
template <auto... Path>
constexpr Operand operand(const char* name, Role role, bool counted = true, bool differentiable = true);

// ---- kernels
enum class Place : uint8_t { cpu, cuda };
// A pick of a lower tier than the place offers is a fallback: counted and shown; the verbs refuse it under --strict.
enum class Tier : uint8_t { fast, general, reference };

struct Verdict {
  const char* refusal = nullptr;  // nothing: supported
  explicit operator bool() const { return !refusal; }
};

// How fast a row goes when nothing but its limit counts: fractions of the machine's ceilings, as measured (see the op's README).
struct Speed {
  Unit unit = Unit::fma_f32;  // where its matmul flops run
  double compute = 0.5, memory = 0.5;
};

template <class Op>
struct Kernel {
  using Args = typename Op::Args;
  const char* name;  // the idea: "stream", "amx_panel"
  Place place;
  Isa isa;  // the least that runs it (CPU)
  Tier tier;
  Verdict (*supports)(const Args&);
  void (*launch)(Ctx&, const Args&, char* scratch);
  int64_t (*workspace)(const Args&) = nullptr;  // bytes of scratch, 64-byte aligned
  Speed speed{};
  DType rounds =
      DType::f64;  // what it rounds floating inputs to inside; f64: nothing. A block type: only where the runtime allows it
};

template <class Op>
Verdict always(const typename Op::Args&) {
  return {};
}

// ---- cases
enum class Suite : uint8_t { smoke, edge, model, fuzz };  // smoke is the quickest; a suite includes those before it

// Makes operands for a case: allocates, fills reproducibly from the case's name, and hands out views.
class Sampler;

template <class Op>
struct Case {
  std::string name;  // "edge_k_tail", "smollm2_ffn_down"
  Suite suite;
  std::function<typename Op::Args(Sampler&)> make;
};

// A row's output passes when |row - truth| <= relative * max |twin - truth| + floor * 2^-24 * max |truth|, where truth is the
// reference on f64 copies of the case's operands and twin the reference on the case's own types, with the inputs rounded as the row
// says it does. Integers, infinities and NaN must be equal.
struct Accuracy {
  double relative = 2;
  double floor = 8;
};

// ---- the contract with its types erased
struct RowInfo {
  const char* name;
  Place place;
  Isa isa;
  Tier tier;
  Speed speed;
  DType rounds;
  std::function<Verdict(const void* args)> supports;
  std::function<int64_t(const void* args)> workspace;
  std::function<void(Ctx&, const void* args, char* scratch)> launch;
};

struct CaseInfo {
  std::string name;
  Suite suite;
  std::function<void(Sampler&, void* args)> make;
};

struct OpInfo {
  const char* name;
  size_t args_size;
  std::span<const Operand> operands;
  Accuracy accuracy;
  std::string (*check)(const void* args);
  Cost (*cost)(const void* args);  // operand table included
  std::string (*shape)(const void* args);
  void (*init)(void* args);  // default-constructs
  void (*reference)(Ctx&, const void* args, char* scratch);
  void (*planted)(Ctx&, const void* args, char* scratch);
  void (*vjp)(Ctx&, const void* args);           // null: not differentiable
  std::string (*no_gradient)(const void* args);  // a sentence where these arguments have no vjp, or nothing
  void (*call)(Ctx&, const void* args);          // through the dispatcher
  std::vector<CaseInfo> (*cases)();
  std::vector<RowInfo> (*rows)();
};

// Bytes by the operand table plus what the op itself adds.
Cost cost_of(std::span<const Operand> operands, const void* args, Cost own);

template <class Op>
Cost cost_of(const typename Op::Args& a) {
  return cost_of(Op::operands(), &a, Op::cost(a));
}

// ---- details
namespace detail {
template <auto Member, auto... Rest, class T>
View& walk(T& object) {
  if constexpr (sizeof...(Rest) == 0)
    return object.*Member;
  else
    return walk<Rest...>(object.*Member);
}
template <class T>
struct MemberOf;
template <class C, class M>
struct MemberOf<M C::*> {
  using Class = C;
};
template <auto First, auto...>
struct FirstOf {
  using Class = typename MemberOf<decltype(First)>::Class;
};
}  // namespace detail

template <auto... Path>
constexpr Operand operand(const char* name, Role role, bool counted, bool differentiable) {
  return {
      name, role,
      [](void* args) -> View& { return detail::walk<Path...>(*static_cast<typename detail::FirstOf<Path...>::Class*>(args)); },
      counted, differentiable};
}

}  // namespace ridge
