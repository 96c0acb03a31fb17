// The bodies of softmax's contracts: checks, costs, cases, gradient.
#include "ops/softmax/softmax.h"

#include <fmt/format.h>

#include <cmath>
#include <vector>

#include "base/check.h"
#include "ops/call.h"
#include "ops/sampler.h"
#include "ops/shapes.h"

namespace ridge {

std::span<const Operand> Softmax::operands() {
  static constexpr Operand table[] = {operand<&Args::x>("x", Role::in), operand<&Args::y>("y", Role::out)};
  return table;
}

std::string Softmax::check(const Args& a) {
  if (a.x.rank != 2 || !same_dims(a.y, a.x)) return "x and y are both [rows, n]";
  if (!all_float({a.x, a.y})) return "x and y are floating point";
  if (!(a.scale > 0)) return "scale is positive";
  return {};
}

Cost Softmax::cost(const Args& a) { return {.vector_flops = 10 * double(a.x.count())}; }
std::string Softmax::shape(const Args& a) {
  return fmt::format("{}x{} {}{}", a.x.dims[0], a.x.dims[1], name_of(a.x.type), a.log ? " log" : "");
}

std::vector<Case<Softmax>> Softmax::cases() {
  auto plain = [](int64_t rows, int64_t n, DType type, bool log, double scale = 1) {
    return [=](Sampler& r) {
      return Args{.x = r.normal({rows, n}, type, 3), .y = r.out({rows, n}, type), .scale = scale, .log = log};
    };
  };
  std::vector<Case<Softmax>> all = {
      {"smoke_f32", Suite::smoke, plain(3, 24, DType::f32, false)},
      {"smoke_log", Suite::smoke, plain(3, 24, DType::f32, true)},
      {"smoke_bf16", Suite::smoke, plain(3, 40, DType::bf16, false)},
      {"smoke_f64", Suite::smoke, plain(2, 7, DType::f64, false, 0.7)},
      {"smoke_temperature", Suite::smoke, plain(3, 33, DType::f32, false, 1 / 0.6)},
      {"edge_log_f64", Suite::edge, plain(2, 7, DType::f64, true, 0.7)},
      {"edge_log_f16", Suite::edge, plain(3, 33, DType::f16, true)},
      {"model_router", Suite::model, plain(256, 128, DType::f32, false)},
      {"model_smollm2_vocabulary", Suite::model, plain(2, 49152, DType::f32, true)},
  };
  for (bool log : {false, true}) {
    const char* suffix = log ? "_log" : "";
    for (int64_t n : {1, 2, 7, 15, 16, 17, 31, 33, 65, 1000})
      all.push_back({fmt::format("edge_tail_n{}{}", n, suffix), Suite::edge, plain(3, n, DType::f32, log)});
    // The next three are not of the edge suite: there is nothing to difference at an infinity, nor beside a NaN, nor at steps of 30.
    // Row 0: some masked, row 1: all, row 2: all but the last.
    all.push_back({fmt::format("edge_masked{}", suffix), Suite::model, [log](Sampler& r) {
                     View x = r.normal({4, 35}, DType::f32);
                     for (int64_t j = 0; j < 35; ++j) {
                       if (j % 3 == 0) x.set(-INFINITY, 0, j);
                       x.set(-INFINITY, 1, j);
                       if (j < 34) x.set(-INFINITY, 2, j);
                     }
                     return Args{.x = x, .y = r.out({4, 35}, DType::f32), .log = log};
                   }});
    all.push_back({fmt::format("edge_nan_and_infinity_stay_in_their_row{}", suffix), Suite::model, [log](Sampler& r) {
                     View x = r.normal({4, 35}, DType::f32);
                     x.set(NAN, 0, 3);
                     x.set(INFINITY, 1, 34);
                     for (int64_t j = 0; j < 35; ++j) x.set(j == 20 ? NAN : -INFINITY, 2, j);
                     return Args{.x = x, .y = r.out({4, 35}, DType::f32), .log = log};
                   }});
    // exp without the maximum overflows at 89; bf16 keeps no digits behind the point up here.
    all.push_back({fmt::format("edge_logits_far_from_zero{}", suffix), Suite::model, [log](Sampler& r) {
                     return Args{.x = r.normal({3, 50}, DType::f32, 5, 3e4), .y = r.out({3, 50}, DType::f32), .log = log};
                   }});
    all.push_back({fmt::format("edge_all_equal{}", suffix), Suite::edge, [log](Sampler& r) {
                     return Args{.x = r.constant({2, 37}, DType::f32, -7.5), .y = r.out({2, 37}, DType::f32), .log = log};
                   }});
    all.push_back({fmt::format("edge_in_place{}", suffix), Suite::edge, [log](Sampler& r) {
                     View x = r.normal({5, 48}, DType::f32);
                     return Args{.x = x, .y = x, .scale = 0.5, .log = log};
                   }});
  }
  all.push_back({"edge_columns_of_a_wider_buffer", Suite::edge, [](Sampler& r) {
                   return Args{.x = r.normal({4, 90}, DType::f32).cols(30, 48), .y = r.out({4, 64}, DType::f32).cols(8, 48)};
                 }});
  all.push_back({"edge_column_strides", Suite::edge, [](Sampler& r) {
                   return Args{.x = r.normal({24, 5}, DType::f32).t(), .y = r.out({5, 24}, DType::f32)};
                 }});
  return all;
}

void Softmax::vjp(Ctx& x, const Args& a) {
  RIDGE_CHECK(a.y.data != a.x.data, "softmax: y lies on an input that a recorded pass still needs");
  if (View dx = x.grad(a.x)) softmax_backward(x, {.y = a.y, .dy = x.grad(a.y), .dx = dx, .scale = a.scale, .log = a.log});
}

// ---- backward

std::span<const Operand> SoftmaxBackward::operands() {
  static constexpr Operand table[] = {
      operand<&Args::y>("y", Role::in),
      operand<&Args::dy>("dy", Role::in),
      operand<&Args::dx>("dx", Role::inout),
  };
  return table;
}

std::string SoftmaxBackward::check(const Args& a) {
  if (a.y.rank != 2 || !same_dims(a.dy, a.y) || !same_dims(a.dx, a.y)) return "y, dy and dx are all [rows, n]";
  if (!all_float({a.y, a.dy, a.dx})) return "y, dy and dx are floating point";
  return {};
}

Cost SoftmaxBackward::cost(const Args& a) { return {.vector_flops = (a.log ? 11 : 5) * double(a.y.count())}; }
std::string SoftmaxBackward::shape(const Args& a) {
  return fmt::format("{}x{} {}{}", a.y.dims[0], a.y.dims[1], name_of(a.y.type), a.log ? " log" : "");
}

std::vector<Case<SoftmaxBackward>> SoftmaxBackward::cases() {
  // y is a distribution, or the logarithm of one.
  auto plain = [](int64_t rows, int64_t n, DType type, bool log, int64_t masked_row = -1) {
    return [=](Sampler& r) {
      View y = r.out({rows, n}, type);
      for (int64_t i = 0; i < rows; ++i) {
        std::vector<double> p(n);
        double sum = 0;
        for (double& e : p) sum += e = std::exp(r.uniform(-3, 3));
        for (int64_t j = 0; j < n; ++j) {
          const double share = i == masked_row || (masked_row >= 0 && n > 2 && j == 1) ? 0 : p[j] / sum;
          y.set(log ? std::log(share) : share, i, j);
        }
      }
      const DType grad = type == DType::f64 ? DType::f64 : DType::f32;
      return Args{.y = y, .dy = r.normal({rows, n}, grad), .dx = r.normal({rows, n}, grad), .scale = 0.8, .log = log};
    };
  };
  std::vector<Case<SoftmaxBackward>> all = {
      {"smoke_f32", Suite::smoke, plain(3, 24, DType::f32, false)},
      {"smoke_log", Suite::smoke, plain(3, 24, DType::f32, true)},
      {"smoke_f64", Suite::smoke, plain(2, 7, DType::f64, false)},
      {"edge_log_f64", Suite::edge, plain(2, 7, DType::f64, true)},
      {"edge_bf16", Suite::edge, plain(3, 40, DType::bf16, false)},
      {"edge_log_bf16", Suite::edge, plain(3, 40, DType::bf16, true)},
      {"edge_masked", Suite::edge, plain(3, 40, DType::f32, false, 1)},
      {"edge_masked_log", Suite::edge, plain(3, 40, DType::f32, true, 1)},
      {"model_router", Suite::model, plain(256, 128, DType::f32, false)},
  };
  for (int64_t n : {1, 7, 16, 17, 31, 65, 1000})
    all.push_back({fmt::format("edge_tail_n{}", n), Suite::edge, plain(3, n, DType::f32, n % 2 == 0)});
  return all;
}

}  // namespace ridge
