// The bodies of accumulate's contract: checks, cost, cases, gradient.
#include "ops/accumulate/accumulate.h"

#include <fmt/format.h>

#include "base/check.h"
#include "ops/call.h"
#include "ops/sampler.h"
#include "ops/shapes.h"

namespace ridge {

View broadcast_rows(View v, int64_t rows) {
  RIDGE_CHECK(v.rank == 1, "only a vector is repeated as rows: " + to_string(v));
  v.rank = 2;
  v.dims[1] = v.dims[0];
  v.strides[1] = v.strides[0];
  v.dims[0] = rows;
  v.strides[0] = 0;
  return v;
}

namespace {
// Elements that exist: a broadcast view has fewer than its dims say.
double distinct(const View& v) {
  double n = 1;
  for (int d = 0; d < v.rank; ++d) n *= v.strides[d] == 0 ? 1 : double(v.dims[d]);
  return n;
}
}  // namespace

std::span<const Operand> Accumulate::operands() {
  static constexpr Operand table[] = {operand<&Args::x>("x", Role::in, false), operand<&Args::y>("y", Role::inout, false)};
  return table;
}

std::string Accumulate::check(const Args& a) {
  if (a.x.rank == 0 || !same_dims(a.x, a.y)) return "x and y have the same dims; where y repeats, its stride is 0";
  if (!all_float({a.x, a.y})) return "x and y are floating point";
  return {};
}

Cost Accumulate::cost(const Args& a) {
  const double y = distinct(a.y) * double(size_of(a.y.type));
  return {
      .vector_flops = 2 * double(a.x.count()), .bytes_read = distinct(a.x) * double(size_of(a.x.type)) + y, .bytes_written = y};
}

std::string Accumulate::shape(const Args& a) {
  std::string s;
  for (int d = 0; d < a.x.rank; ++d) s += fmt::format("{}{}{}", d ? "x" : "", a.x.dims[d], a.y.strides[d] == 0 ? "~" : "");
  return s + " " + name_of(a.x.type);
}

std::vector<Case<Accumulate>> Accumulate::cases() {
  auto plain = [](int64_t rows, int64_t n, DType x, DType y, double scale) {
    return [=](Sampler& r) { return Args{.x = r.normal({rows, n}, x), .y = r.normal({rows, n}, y), .scale = scale}; };
  };
  auto bias = [](int64_t rows, int64_t n, DType type) {
    return [=](Sampler& r) { return Args{.x = r.normal({rows, n}, type), .y = broadcast_rows(r.normal({n}, type), rows)}; };
  };
  std::vector<Case<Accumulate>> all = {
      {"smoke_f32", Suite::smoke, plain(3, 24, DType::f32, DType::f32, 1)},
      {"smoke_bias", Suite::smoke, bias(5, 24, DType::f32)},
      {"smoke_f64_scaled", Suite::smoke, plain(3, 7, DType::f64, DType::f64, -0.25)},
      {"edge_bf16", Suite::edge, plain(3, 33, DType::bf16, DType::bf16, 0.5)},
      {"edge_bf16_into_f32", Suite::edge, plain(3, 33, DType::bf16, DType::f32, 1)},
      {"edge_bias_f64", Suite::edge, bias(6, 5, DType::f64)},
      {"edge_bias_many_rows", Suite::edge, bias(3000, 40, DType::f32)},
      {"edge_bias_tail", Suite::edge, bias(17, 71, DType::f32)},
      {"model_smollm2_residual", Suite::model, plain(512, 576, DType::f32, DType::f32, 1)},
      {"model_qwen2_bias", Suite::model, bias(512, 1152, DType::f32)},
  };
  all.push_back({"edge_one_dimension", Suite::edge,
                 [](Sampler& r) { return Args{.x = r.normal({77}, DType::f32), .y = r.normal({77}, DType::f32)}; }});
  all.push_back({"edge_sum_of_everything", Suite::edge, [](Sampler& r) {
                   View y = r.normal({4, 5, 6}, DType::f32);
                   for (int d = 0; d < 3; ++d) y.strides[d] = 0;
                   return Args{.x = r.normal({4, 5, 6}, DType::f32), .y = y};
                 }});
  all.push_back({"edge_sum_over_the_last", Suite::edge, [](Sampler& r) {
                   View y = r.normal({6, 40}, DType::f32);
                   y.strides[1] = 0;
                   return Args{.x = r.normal({6, 40}, DType::f32), .y = y, .scale = 2};
                 }});
  all.push_back({"edge_rank_4_middle_repeated", Suite::edge, [](Sampler& r) {
                   View y = r.normal({2, 3, 4, 5}, DType::f32);
                   y.strides[1] = 0;
                   return Args{.x = r.normal({2, 3, 4, 5}, DType::f32), .y = y};
                 }});
  all.push_back({"edge_x_broadcast", Suite::edge, [](Sampler& r) {
                   return Args{.x = broadcast_rows(r.normal({30}, DType::f32), 4), .y = r.normal({4, 30}, DType::f32)};
                 }});
  all.push_back({"edge_columns_of_wider_buffers", Suite::edge, [](Sampler& r) {
                   return Args{.x = r.normal({4, 90}, DType::f32).cols(30, 48), .y = r.normal({4, 64}, DType::f32).cols(8, 48)};
                 }});
  all.push_back({"edge_transposed", Suite::edge, [](Sampler& r) {
                   return Args{.x = r.normal({24, 5}, DType::f32).t(), .y = r.normal({5, 24}, DType::f32)};
                 }});
  return all;
}

void Accumulate::vjp(Ctx& x, const Args& a) {
  View dx = x.grad(a.x), dy = x.grad(a.y);
  if (dx && dy) accumulate(x, {.x = dy, .y = dx, .scale = a.scale});
}

}  // namespace ridge
