// The bodies of adamw's contract: checks, cost, cases.
#include "ops/adamw/adamw.h"

#include <fmt/format.h>

#include "ops/sampler.h"
#include "ops/shapes.h"

namespace ridge {

std::span<const Operand> AdamW::operands() {
  static constexpr Operand table[] = {
      operand<&Args::p>("p", Role::inout),
      operand<&Args::m>("m", Role::inout),
      operand<&Args::v>("v", Role::inout),
      operand<&Args::g>("g", Role::in),
      operand<&Args::lr>("lr", Role::in),
      operand<&Args::step>("step", Role::in),
      operand<&Args::grad_scale>("grad_scale", Role::in),
  };
  return table;
}

std::string AdamW::check(const Args& a) {
  auto wide = [](const View& v) { return v.type == DType::f32 || v.type == DType::f64; };
  if (a.p.rank == 0 || !same_dims(a.m, a.p) || !same_dims(a.v, a.p) || !same_dims(a.g, a.p))
    return "p, m, v and g have the same dims";
  if (!fits_row(a.lr, 1) || !a.lr || !fits_row(a.step, 1) || !a.step || !fits_row(a.grad_scale, 1))
    return "lr, step and grad_scale are [1]";
  if (!is_float(a.p.type) || !wide(a.m) || !wide(a.v) || !wide(a.g)) return "p is floating point; m, v and g are f32 or f64";
  if (!all_float({a.lr, a.grad_scale}) || is_block(a.step.type)) return "lr and grad_scale are floating point, step is a number";
  return {};
}

Cost AdamW::cost(const Args& a) { return {.vector_flops = 14 * double(a.p.count())}; }
std::string AdamW::shape(const Args& a) { return fmt::format("{} {}", a.p.count(), name_of(a.p.type)); }

std::vector<Case<AdamW>> AdamW::cases() {
  // v is a mean of squares: never negative.
  auto at = [](std::initializer_list<int64_t> dims, DType p, double step, double weight_decay, bool clipped) {
    const std::vector<int64_t> d = dims;
    return [=](Sampler& r) {
      const std::initializer_list<int64_t> flat = {d[0]}, matrix = {d[0], d.size() > 1 ? d[1] : 1};
      const std::initializer_list<int64_t> n = d.size() > 1 ? matrix : flat;
      const DType state = p == DType::f64 ? DType::f64 : DType::f32;
      Args a{.p = r.normal(n, p),
             .m = r.normal(n, state, 0.1),
             .v = r.uniform(n, state, 1e-4, 1e-2),
             .g = r.normal(n, state, 0.1),
             .lr = r.constant({1}, state, 1e-3),
             .step = r.constant({1}, DType::i64, step),
             .weight_decay = weight_decay};
      if (clipped) a.grad_scale = r.constant({1}, state, 0.37);
      return a;
    };
  };
  std::vector<Case<AdamW>> all = {
      {"smoke_f32_first_step", Suite::smoke, at({70}, DType::f32, 1, 0.1, false)},
      {"smoke_matrix_clipped", Suite::smoke, at({5, 24}, DType::f32, 10, 0.1, true)},
      {"smoke_bf16", Suite::smoke, at({70}, DType::bf16, 7, 0.1, false)},
      {"smoke_f64", Suite::smoke, at({13}, DType::f64, 3, 0.1, true)},
      {"edge_f16", Suite::edge, at({33}, DType::f16, 7, 0.1, false)},
      {"edge_late_step", Suite::edge, at({33}, DType::f32, 1e6, 0.1, false)},  // beta^step underflows: the corrections are 1
      {"edge_no_decay", Suite::edge, at({33}, DType::f32, 2, 0, false)},
      {"edge_one_element", Suite::edge, at({1}, DType::f32, 2, 0.1, false)},
      {"model_smollm2_ffn", Suite::model, at({1536, 576}, DType::f32, 100, 0.1, true)},
  };
  // Nothing was ever seen: 0 / (0 + eps) is 0, and decay still works.
  all.push_back({"edge_zero_gradient_zero_state", Suite::edge, [](Sampler& r) {
                   return Args{.p = r.normal({20}, DType::f32),
                               .m = r.constant({20}, DType::f32, 0),
                               .v = r.constant({20}, DType::f32, 0),
                               .g = r.constant({20}, DType::f32, 0),
                               .lr = r.constant({1}, DType::f32, 0.1),
                               .step = r.constant({1}, DType::i32, 1)};
                 }});
  // First step from nothing: the update is lr sign(g), whatever the size of g, down to where squares leave f32's normal range.
  all.push_back({"edge_tiny_gradients", Suite::edge, [](Sampler& r) {
                   return Args{.p = r.normal({20}, DType::f32),
                               .m = r.constant({20}, DType::f32, 0),
                               .v = r.constant({20}, DType::f32, 0),
                               .g = r.normal({20}, DType::f32, 1e-12),
                               .lr = r.constant({1}, DType::f32, 0.1),
                               .step = r.constant({1}, DType::i32, 1),
                               .eps = 1e-15};
                 }});
  all.push_back({"edge_part_of_a_larger_matrix", Suite::edge, [](Sampler& r) {
                   auto part = [](View v) { return v.cols(5, 20); };
                   return Args{.p = part(r.normal({4, 32}, DType::f32)),
                               .m = part(r.normal({4, 32}, DType::f32)),
                               .v = part(r.uniform({4, 32}, DType::f32, 0.1, 1)),
                               .g = part(r.normal({4, 32}, DType::f32)),
                               .lr = r.constant({1}, DType::f32, 0.01),
                               .step = r.constant({1}, DType::f32, 4)};
                 }});
  return all;
}

}  // namespace ridge
