// The bodies of glu's contracts: checks, costs, cases, gradient.
#include "ops/glu/glu.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>

#include "base/check.h"
#include "ops/call.h"
#include "ops/sampler.h"
#include "ops/shapes.h"

namespace ridge {

namespace {
constexpr Activation kActivations[] = {Activation::none, Activation::silu, Activation::gelu, Activation::gelu_tanh};
// An exponential is about six vector FLOPs on its own; erf about twice that.
double flops_of(Activation act) { return act == Activation::none ? 0 : act == Activation::gelu ? 18 : 9; }
}  // namespace

std::span<const Operand> Glu::operands() {
  static constexpr Operand table[] = {
      operand<&Args::gate>("gate", Role::in),
      operand<&Args::up>("up", Role::in),
      operand<&Args::y>("y", Role::out),
  };
  return table;
}

std::string Glu::check(const Args& a) {
  if (a.gate.rank != 2 || !same_dims(a.y, a.gate) || !fits(a.up, a.gate)) return "gate, up and y are all [rows, n]";
  if (!all_float({a.gate, a.up, a.y})) return "gate, up and y are floating point";
  return {};
}

Cost Glu::cost(const Args& a) { return {.vector_flops = double(a.y.count()) * (flops_of(a.act) + (a.up ? 1 : 0))}; }
std::string Glu::shape(const Args& a) {
  return fmt::format("{}x{} {} {}{}", a.y.dims[0], a.y.dims[1], name_of(a.gate.type), name_of(a.act), a.up ? "" : " ungated");
}

std::vector<Case<Glu>> Glu::cases() {
  auto pair = [](int64_t rows, int64_t n, DType type, Activation act) {
    return [=](Sampler& r) {
      return Args{.gate = r.normal({rows, n}, type, 2), .up = r.normal({rows, n}, type), .y = r.out({rows, n}, type), .act = act};
    };
  };
  std::vector<Case<Glu>> all;
  for (Activation act : kActivations) {
    all.push_back({fmt::format("smoke_{}", name_of(act)), Suite::smoke, pair(3, 37, DType::f32, act)});
    all.push_back({fmt::format("edge_{}_bf16", name_of(act)), Suite::edge, pair(3, 64, DType::bf16, act)});
    all.push_back({fmt::format("edge_{}_f64", name_of(act)), Suite::edge, pair(2, 9, DType::f64, act)});
    if (act == Activation::none) continue;
    all.push_back({fmt::format("smoke_{}_ungated", name_of(act)), Suite::smoke, [act](Sampler& r) {
                     return Args{.gate = r.normal({3, 37}, DType::f32, 2), .y = r.out({3, 37}, DType::f32), .act = act};
                   }});
    // Both tails: exp must neither overflow to NaN on one side nor flush the answer to zero too early on the other.
    // Not of the edge suite: no step suits differences over thirty orders of magnitude.
    all.push_back({fmt::format("edge_{}_tails", name_of(act)), Suite::model, [act](Sampler& r) {
                     return Args{
                         .gate = r.values({3, 7}, DType::f32, {-1e30, -1e4, -200, -104, -88.5, -87,  -40, -10, -5.5, -1,      0,
                                                               1e-30, 1,    5.5,  10,   40,    88.5, 200, 1e4, 1e30, INFINITY}),
                         .y = r.out({3, 7}, DType::f32),
                         .act = act};
                   }});
    // What a wide dynamic range hides: small results beside none that are large.
    all.push_back({fmt::format("edge_{}_left_tail", name_of(act)), Suite::edge, [act](Sampler& r) {
                     return Args{.gate = r.uniform({2, 64}, DType::f32, -6, -3), .y = r.out({2, 64}, DType::f32), .act = act};
                   }});
    all.push_back(
        {fmt::format("edge_{}_near_zero", name_of(act)), Suite::edge, [act](Sampler& r) {
           return Args{.gate = r.uniform({2, 64}, DType::f32, -1e-4, 1e-4), .y = r.out({2, 64}, DType::f32), .act = act};
         }});
  }
  all.push_back({"smoke_halves_of_one_product", Suite::smoke, [](Sampler& r) {
                   View both = r.normal({5, 96}, DType::f32, 2);
                   return Args{.gate = both.cols(0, 48), .up = both.cols(48, 48), .y = r.out({5, 48}, DType::f32)};
                 }});
  all.push_back({"edge_in_place_on_gate", Suite::edge, [](Sampler& r) {
                   View both = r.normal({5, 100}, DType::bf16, 2);
                   return Args{.gate = both.cols(0, 50), .up = both.cols(50, 50), .y = both.cols(0, 50)};
                 }});
  all.push_back({"edge_mixed_types", Suite::edge, [](Sampler& r) {
                   return Args{.gate = r.normal({5, 50}, DType::f32, 2),
                               .up = r.normal({5, 50}, DType::f32),
                               .y = r.out({5, 50}, DType::bf16)};
                 }});
  all.push_back({"edge_column_strides", Suite::edge, [](Sampler& r) {
                   return Args{.gate = r.normal({24, 5}, DType::f32).t(),
                               .up = r.normal({5, 24}, DType::f32),
                               .y = r.out({5, 24}, DType::f32)};
                 }});
  for (int64_t n : {1, 7, 15, 16, 17, 33, 127})
    all.push_back({fmt::format("edge_tail_n{}", n), Suite::edge, pair(3, n, DType::f32, Activation::silu)});
  all.push_back({"model_smollm2_decode", Suite::model, pair(1, 1536, DType::f32, Activation::silu)});
  all.push_back({"model_smollm2_prefill", Suite::model, pair(512, 1536, DType::f32, Activation::silu)});
  all.push_back({"model_llama8b_bf16", Suite::model, pair(16, 14336, DType::bf16, Activation::silu)});
  return all;
}

void Glu::vjp(Ctx& x, const Args& a) {
  RIDGE_CHECK(a.y.data != a.gate.data && (!a.up || a.y.data != a.up.data),
              "glu: y lies on an input that a recorded pass still needs");
  glu_backward(x, {.gate = a.gate, .up = a.up, .dy = x.grad(a.y), .dgate = x.grad(a.gate), .dup = x.grad(a.up), .act = a.act});
}

// ---- backward

std::span<const Operand> GluBackward::operands() {
  static constexpr Operand table[] = {
      operand<&Args::gate>("gate", Role::in),      operand<&Args::up>("up", Role::in),      operand<&Args::dy>("dy", Role::in),
      operand<&Args::dgate>("dgate", Role::inout), operand<&Args::dup>("dup", Role::inout),
  };
  return table;
}

std::string GluBackward::check(const Args& a) {
  if (a.gate.rank != 2 || !same_dims(a.dy, a.gate) || !fits(a.up, a.gate)) return "gate, up and dy are all [rows, n]";
  if (!fits(a.dgate, a.gate) || !fits(a.dup, a.gate)) return "dgate and dup are [rows, n] like gate";
  if (a.dup && !a.up) return "dup belongs to up, and there is none";
  if (!all_float({a.gate, a.up, a.dy, a.dgate, a.dup})) return "every operand is floating point";
  return {};
}

Cost GluBackward::cost(const Args& a) {
  Cost c{.vector_flops = double(a.dy.count()) * (flops_of(a.act) + 8)};
  // The operand table counts dgate and dup as read too: not so when they are overwritten.
  if (!a.accumulate) c.bytes_read = -double((a.dgate ? a.dgate.bytes() : 0) + (a.dup ? a.dup.bytes() : 0));
  return c;
}
std::string GluBackward::shape(const Args& a) {
  return fmt::format("{}x{} {} {}", a.dy.dims[0], a.dy.dims[1], name_of(a.gate.type), name_of(a.act));
}

std::vector<Case<GluBackward>> GluBackward::cases() {
  auto pair = [](int64_t rows, int64_t n, DType type, Activation act) {
    return [=](Sampler& r) {
      const DType grad = type == DType::f64 ? DType::f64 : DType::f32;
      return Args{.gate = r.normal({rows, n}, type, 2),
                  .up = r.normal({rows, n}, type),
                  .dy = r.normal({rows, n}, grad),
                  .dgate = r.normal({rows, n}, grad),
                  .dup = r.normal({rows, n}, grad),
                  .act = act};
    };
  };
  std::vector<Case<GluBackward>> all;
  for (Activation act : kActivations) {
    all.push_back({fmt::format("smoke_{}", name_of(act)), Suite::smoke, pair(3, 37, DType::f32, act)});
    all.push_back({fmt::format("edge_{}_bf16", name_of(act)), Suite::edge, pair(3, 64, DType::bf16, act)});
    all.push_back({fmt::format("edge_{}_f64", name_of(act)), Suite::edge, pair(2, 9, DType::f64, act)});
    all.push_back({fmt::format("edge_{}_ungated", name_of(act)), Suite::edge, [act](Sampler& r) {
                     return Args{.gate = r.normal({3, 37}, DType::f32, 2),
                                 .dy = r.normal({3, 37}, DType::f32),
                                 .dgate = r.normal({3, 37}, DType::f32),
                                 .act = act};
                   }});
    all.push_back({fmt::format("edge_{}_tails", name_of(act)), Suite::edge, [act](Sampler& r) {
                     return Args{
                         .gate = r.values({1, 16}, DType::f32,
                                          {-1e15, -1e4, -200, -104, -88.5, -40, -10, -5.5, 0, 1e-30, 1, 5.5, 40, 88.5, 200, 1e4}),
                         .up = r.normal({1, 16}, DType::f32),
                         .dy = r.constant({1, 16}, DType::f32, 1),
                         .dgate = r.out({1, 16}, DType::f32),
                         .act = act};
                   }});
  }
  // Fresh gradients hold anything, NaN included: overwriting must not read them.
  all.push_back({"edge_overwrites_poison", Suite::edge, [](Sampler& r) {
                   const double nan = std::numeric_limits<double>::quiet_NaN();
                   return Args{.gate = r.normal({3, 37}, DType::f32),
                               .up = r.normal({3, 37}, DType::f32),
                               .dy = r.normal({3, 37}, DType::f32),
                               .dgate = r.constant({3, 37}, DType::f32, nan),
                               .dup = r.constant({3, 37}, DType::f32, nan),
                               .accumulate = false};
                 }});
  all.push_back({"edge_halves_of_one_product", Suite::edge, [](Sampler& r) {
                   View both = r.normal({5, 96}, DType::f32, 2), d = r.normal({5, 96}, DType::f32);
                   return Args{.gate = both.cols(0, 48),
                               .up = both.cols(48, 48),
                               .dy = r.normal({5, 48}, DType::f32),
                               .dgate = d.cols(0, 48),
                               .dup = d.cols(48, 48)};
                 }});
  all.push_back({"model_smollm2", Suite::model, pair(512, 1536, DType::f32, Activation::silu)});
  return all;
}

}  // namespace ridge
