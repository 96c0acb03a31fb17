// The bodies of rms_norm's contracts: checks, costs, cases, gradient.
#include "ops/rms_norm/rms_norm.h"

#include <fmt/format.h>

#include "base/check.h"
#include "ops/call.h"
#include "ops/sampler.h"
#include "ops/shapes.h"

namespace ridge {

std::span<const Operand> RmsNorm::operands() {
  static constexpr Operand table[] = {
      operand<&Args::x>("x", Role::in),      operand<&Args::add>("add", Role::in), operand<&Args::w>("w", Role::weight),
      operand<&Args::sum>("sum", Role::out), operand<&Args::y>("y", Role::out),
  };
  return table;
}

std::string RmsNorm::check(const Args& a) {
  if (a.x.rank != 2 || !same_dims(a.y, a.x)) return "x and y are both [rows, n]";
  if (!fits(a.add, a.x) || !fits(a.sum, a.x)) return "add and sum are [rows, n] like x";
  if (a.sum && !a.add) return "sum is x + add: without add it would be a copy of x";
  if (!fits_row(a.w, a.x.dims[1])) return "w is [n]: one weight a column of x";
  if (a.offset_one && !a.w) return "offset_one is about w, and there is none";
  if (!all_float({a.x, a.y, a.add, a.sum, a.w})) return "x, add, w, sum and y are floating point";
  return {};
}

Cost RmsNorm::cost(const Args& a) { return {.vector_flops = double(a.x.count()) * (a.add ? 5 : 4)}; }
std::string RmsNorm::shape(const Args& a) {
  return fmt::format("{}x{} {}{}", a.x.dims[0], a.x.dims[1], name_of(a.x.type), a.add ? " +add" : "");
}

std::vector<Case<RmsNorm>> RmsNorm::cases() {
  auto plain = [](int64_t rows, int64_t n, DType type, DType weight) {
    return [=](Sampler& r) {
      return Args{.x = r.normal({rows, n}, type), .y = r.out({rows, n}, type), .w = r.normal({n}, weight, 0.5, 1)};
    };
  };
  auto added = [](int64_t rows, int64_t n, DType type, bool sum_on_x) {
    return [=](Sampler& r) {
      View x = r.normal({rows, n}, type);
      return Args{.x = x,
                  .y = r.out({rows, n}, type),
                  .w = r.normal({n}, type, 0.5, 1),
                  .add = r.normal({rows, n}, type),
                  .sum = sum_on_x ? x : r.out({rows, n}, type)};
    };
  };
  std::vector<Case<RmsNorm>> all = {
      {"smoke_f32", Suite::smoke, plain(3, 24, DType::f32, DType::f32)},
      {"smoke_bf16", Suite::smoke, plain(3, 24, DType::bf16, DType::bf16)},
      {"smoke_f64", Suite::smoke, plain(2, 7, DType::f64, DType::f64)},
      {"smoke_add", Suite::smoke, added(4, 40, DType::f32, false)},
      {"edge_add_sum_on_x", Suite::edge, added(4, 40, DType::f32, true)},
      {"edge_add_sum_on_x_bf16", Suite::edge,
       added(5, 72, DType::bf16, true)},  // the rounded sum is normalised, not the exact one
      {"edge_add_f16", Suite::edge, added(3, 33, DType::f16, false)},
      {"model_smollm2_decode", Suite::model, plain(1, 576, DType::f32, DType::f32)},
      {"model_smollm2_prefill", Suite::model, plain(512, 576, DType::f32, DType::f32)},
      {"model_llama8b_bf16", Suite::model, added(64, 4096, DType::bf16, true)},
  };
  for (int64_t n : {1, 2, 7, 15, 16, 17, 31, 33, 63, 65, 127, 129, 1000})
    all.push_back({fmt::format("edge_tail_n{}", n), Suite::edge, plain(3, n, DType::f32, DType::f32)});
  all.push_back({"edge_add_without_sum", Suite::edge, [](Sampler& r) {
                   return Args{.x = r.normal({3, 19}, DType::f32),
                               .y = r.out({3, 19}, DType::f32),
                               .w = r.normal({19}, DType::f32),
                               .add = r.normal({3, 19}, DType::f32)};
                 }});
  all.push_back({"edge_no_weight", Suite::edge, [](Sampler& r) {
                   return Args{.x = r.normal({3, 50}, DType::bf16), .y = r.out({3, 50}, DType::f32)};
                 }});
  all.push_back({"edge_gemma_offset_one", Suite::edge, [](Sampler& r) {
                   return Args{.x = r.normal({5, 48}, DType::bf16),
                               .y = r.out({5, 48}, DType::bf16),
                               .w = r.normal({48}, DType::f32, 0.1),
                               .offset_one = true};
                 }});
  all.push_back({"edge_in_place", Suite::edge, [](Sampler& r) {
                   View x = r.normal({5, 48}, DType::f32);
                   return Args{.x = x, .y = x, .w = r.normal({48}, DType::f32)};
                 }});
  // A padded token's row: the answer is zero, not 0/0. Not of the edge suite: no difference is small beside this eps.
  all.push_back({"edge_padding_row_of_zeros", Suite::model, [](Sampler& r) {
                   View x = r.normal({3, 32}, DType::f32);
                   for (int64_t j = 0; j < 32; ++j) x.set(0, 1, j);
                   return Args{.x = x, .y = r.out({3, 32}, DType::f32), .w = r.normal({32}, DType::f32), .eps = 1e-12};
                 }});
  // Massive activations (one channel thousands of times the others), as real residual streams have: f16 squares would overflow.
  all.push_back({"edge_massive_channel_f16", Suite::edge, [](Sampler& r) {
                   View x = r.normal({3, 64}, DType::f16);
                   for (int64_t i = 0; i < 3; ++i) x.set(20000, i, 11);
                   return Args{.x = x, .y = r.out({3, 64}, DType::f16), .w = r.normal({64}, DType::f16)};
                 }});
  // eps is inside the root and beside the mean: with values of its size a misplaced eps is seen.
  all.push_back({"edge_eps_counts", Suite::edge, [](Sampler& r) {
                   return Args{.x = r.normal({3, 40}, DType::f32, 1e-3),
                               .y = r.out({3, 40}, DType::f32),
                               .w = r.normal({40}, DType::f32),
                               .eps = 1e-6};
                 }});
  all.push_back({"edge_columns_of_a_wider_buffer", Suite::edge, [](Sampler& r) {
                   return Args{.x = r.normal({4, 90}, DType::f32).cols(30, 48),
                               .y = r.out({4, 64}, DType::f32).cols(8, 48),
                               .w = r.normal({48}, DType::bf16)};
                 }});
  all.push_back(
      {"edge_column_strides", Suite::edge, [](Sampler& r) {
         return Args{.x = r.normal({24, 5}, DType::f32).t(), .y = r.out({5, 24}, DType::f32), .w = r.normal({24}, DType::f32)};
       }});
  return all;
}

void RmsNorm::vjp(Ctx& x, const Args& a) {
  RIDGE_CHECK(a.y.data != a.x.data, "rms_norm: y lies on an input that a recorded pass still needs");
  const bool stored = bool(a.sum);
  rms_norm_backward(x, {.dy = x.grad(a.y),
                        .x = stored ? a.sum : a.x,
                        .add = stored ? View{} : a.add,
                        .w = a.w,
                        .dsum = stored ? x.grad(a.sum) : View{},
                        .dx = x.grad(a.x),
                        .dadd = x.grad(a.add),
                        .dw = x.grad(a.w),
                        .eps = a.eps,
                        .offset_one = a.offset_one});
}

// ---- backward

std::span<const Operand> RmsNormBackward::operands() {
  static constexpr Operand table[] = {
      operand<&Args::dy>("dy", Role::in),        operand<&Args::x>("x", Role::in),       operand<&Args::add>("add", Role::in),
      operand<&Args::w>("w", Role::weight),      operand<&Args::dsum>("dsum", Role::in), operand<&Args::dx>("dx", Role::inout),
      operand<&Args::dadd>("dadd", Role::inout), operand<&Args::dw>("dw", Role::inout),
  };
  return table;
}

std::string RmsNormBackward::check(const Args& a) {
  if (a.x.rank != 2 || !same_dims(a.dy, a.x)) return "x and dy are both [rows, n]";
  if (!fits(a.add, a.x) || !fits(a.dsum, a.x) || !fits(a.dx, a.x) || !fits(a.dadd, a.x))
    return "add, dsum, dx and dadd are [rows, n] like x";
  if (!fits_row(a.w, a.x.dims[1]) || !fits_row(a.dw, a.x.dims[1])) return "w and dw are [n]";
  if (a.dw && !a.w) return "dw belongs to w, and there is none";
  if (!all_float({a.dy, a.x, a.add, a.w, a.dsum, a.dx, a.dadd, a.dw})) return "every operand is floating point";
  return {};
}

Cost RmsNormBackward::cost(const Args& a) { return {.vector_flops = double(a.x.count()) * (a.dw ? 12 : 9)}; }
std::string RmsNormBackward::shape(const Args& a) { return fmt::format("{}x{} {}", a.x.dims[0], a.x.dims[1], name_of(a.x.type)); }

std::vector<Case<RmsNormBackward>> RmsNormBackward::cases() {
  auto plain = [](int64_t rows, int64_t n, DType type) {
    return [=](Sampler& r) {
      const DType grad = type == DType::f64 ? DType::f64 : DType::f32;
      return Args{.dy = r.normal({rows, n}, grad),
                  .x = r.normal({rows, n}, type),
                  .w = r.normal({n}, type, 0.5, 1),
                  .dx = r.normal({rows, n}, grad),
                  .dw = r.normal({n}, grad)};
    };
  };
  std::vector<Case<RmsNormBackward>> all = {
      {"smoke_f32", Suite::smoke, plain(3, 24, DType::f32)},
      {"smoke_bf16", Suite::smoke, plain(5, 33, DType::bf16)},
      {"smoke_f64", Suite::smoke, plain(2, 7, DType::f64)},
      {"smoke_add_and_sum", Suite::smoke,
       [](Sampler& r) {
         return Args{.dy = r.normal({4, 40}, DType::f32),
                     .x = r.normal({4, 40}, DType::f32),
                     .w = r.normal({40}, DType::f32),
                     .dsum = r.normal({4, 40}, DType::f32),
                     .dx = r.normal({4, 40}, DType::f32),
                     .dadd = r.normal({4, 40}, DType::f32),
                     .dw = r.normal({40}, DType::f32)};
       }},
      {"edge_sum_lay_on_x", Suite::edge,
       [](Sampler& r) {
         View dx = r.normal({4, 40}, DType::f32);
         return Args{.dy = r.normal({4, 40}, DType::f32),
                     .x = r.normal({4, 40}, DType::f32),
                     .w = r.normal({40}, DType::f32),
                     .dsum = dx,
                     .dx = dx,
                     .dadd = r.normal({4, 40}, DType::f32),
                     .dw = r.normal({40}, DType::f32)};
       }},
      {"edge_gemma_offset_one_frozen_weight", Suite::edge,
       [](Sampler& r) {
         return Args{.dy = r.normal({4, 40}, DType::f32),
                     .x = r.normal({4, 40}, DType::bf16),
                     .add = r.normal({4, 40}, DType::bf16),
                     .w = r.normal({40}, DType::bf16, 0.1),
                     .dx = r.normal({4, 40}, DType::f32),
                     .dadd = r.normal({4, 40}, DType::f32),
                     .offset_one = true};
       }},
      {"edge_only_dw", Suite::edge,  // the input is not trained
       [](Sampler& r) {
         return Args{.dy = r.normal({9, 40}, DType::f32),
                     .x = r.normal({9, 40}, DType::f32),
                     .w = r.normal({40}, DType::f32),
                     .dw = r.normal({40}, DType::f32)};
       }},
      {"edge_columns_of_wider_buffers", Suite::edge,
       [](Sampler& r) {
         return Args{.dy = r.normal({4, 90}, DType::f32).cols(30, 48),
                     .x = r.normal({4, 64}, DType::f32).cols(8, 48),
                     .w = r.normal({48}, DType::f32),
                     .dx = r.normal({4, 70}, DType::f32).cols(3, 48),
                     .dw = r.normal({48}, DType::f32)};
       }},
      {"edge_many_rows", Suite::edge, plain(1500, 24, DType::f32)},  // dw meets several partial sums
      {"model_smollm2", Suite::model, plain(512, 576, DType::f32)},
      {"model_llama8b_bf16", Suite::model, plain(64, 4096, DType::bf16)},
  };
  for (int64_t n : {1, 7, 16, 17, 31, 65, 1000})
    all.push_back({fmt::format("edge_tail_n{}", n), Suite::edge, plain(3, n, DType::f32)});
  return all;
}

}  // namespace ridge
