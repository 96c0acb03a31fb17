// The bodies of gemm's contract: checks, cost, cases, gradient.
#include "ops/gemm/gemm.h"

#include <fmt/format.h>

#include "ops/call.h"
#include "ops/sampler.h"

namespace ridge {

std::span<const Operand> Gemm::operands() {
  static constexpr Operand table[] = {
      operand<&Args::a>("a", Role::in),           operand<&Args::b>("b", Role::weight),
      operand<&Args::gate>("gate", Role::weight), operand<&Args::bias>("bias", Role::weight),
      operand<&Args::gate_bias>("gate_bias", Role::weight), operand<&Args::residual>("residual", Role::in),
      operand<&Args::c>("c", Role::out),
  };
  return table;
}

std::string Gemm::check(const Args& g) {
  const int64_t m = g.a.dims[0], k = g.a.dims[1], n = g.b.dims[0];
  if (g.a.rank != 2 || g.b.rank != 2 || g.c.rank != 2) return "a is [m, k], b [n, k] and c [m, n]: all of rank 2";
  if (g.b.dims[1] != k) return "a is [m, k] and b is [n, k]: k differs";
  if (g.c.dims[0] != m || g.c.dims[1] != n) return "c is not [m, n]";
  if (g.gate && (g.gate.dims[0] != n || g.gate.dims[1] != k)) return "gate is not [n, k] like b";
  if (g.bias && g.bias.dims[0] != n) return "bias is not [n]";
  if (g.gate_bias && (!g.gate || g.gate_bias.dims[0] != n)) return "gate_bias is [n] and belongs to a gate";
  if (g.residual && (g.residual.dims[0] != m || g.residual.dims[1] != n)) return "residual is not [m, n]";
  if (!is_float(g.a.type) || !is_float(g.c.type)) return "a and c are floating point";
  return {};
}

Cost Gemm::cost(const Args& g) {
  const double products = double(g.c.count()) * double(g.a.dims[1]) * (g.gate ? 2 : 1);
  return {.matmul_flops = 2 * products};
}

std::string Gemm::shape(const Args& g) {
  return fmt::format("{}x{}{}x{} {}", g.a.dims[0], g.gate ? "2*" : "", g.b.dims[0], g.a.dims[1], name_of(g.b.type));
}

std::vector<Case<Gemm>> Gemm::cases() {
  struct Shape { int64_t m, n, k; };
  auto plain = [](Shape s, DType weight, DType type) {
    return [=](Sampler& r) {
      return Args{.a = r.normal({s.m, s.k}, type), .b = r.normal({s.n, s.k}, weight, 0.05), .c = r.out({s.m, s.n}, type)};
    };
  };
  std::vector<Case<Gemm>> all = {
      {"smoke_3x5x7_f32", Suite::smoke, plain({3, 5, 7}, DType::f32, DType::f32)},
      {"smoke_bf16", Suite::smoke, plain({4, 16, 32}, DType::bf16, DType::bf16)},
      {"smoke_epilogue", Suite::smoke,
       [](Sampler& r) {
         View c = r.normal({5, 24}, DType::f32);
         return Args{.a = r.normal({5, 64}, DType::f32), .b = r.normal({24, 64}, DType::f32), .c = c, .bias = r.normal({24}, DType::f32),
                     .residual = c, .scale = 0.5, .act = Activation::gelu};
       }},
      {"smoke_gated_pair", Suite::smoke,
       [](Sampler& r) {
         return Args{.a = r.normal({5, 64}, DType::f32), .b = r.normal({24, 64}, DType::q8_0), .c = r.out({5, 24}, DType::f32),
                     .gate = r.normal({24, 64}, DType::q8_0), .bias = r.normal({24}, DType::f32), .gate_bias = r.normal({24}, DType::f32),
                     .act = Activation::silu};
       }},
  };
  for (DType w : {DType::f32, DType::f16, DType::bf16, DType::q8_0, DType::q4_0, DType::q4_1, DType::q4_k, DType::q6_k}) {
    const std::string name = name_of(w);
    all.push_back({"smoke_one_row_" + name, Suite::smoke, plain({1, 48, 512}, w, DType::f32)});
    all.push_back({"edge_tails_" + name, Suite::edge, plain({37, 71, 768}, w, DType::f32)});
    all.push_back({"edge_few_rows_" + name, Suite::edge, plain({7, 33, 256}, w, DType::f32)});
    all.push_back({"model_smollm2_ffn_down_" + name, Suite::model, plain({64, 576, 1536}, w, DType::f32)});
    all.push_back({"model_smollm2_decode_" + name, Suite::model, plain({1, 1536, 768}, w, DType::f32)});
  }
  for (int64_t m : {2, 3, 8, 16, 17, 31, 32, 33})
    all.push_back({fmt::format("edge_m{}", m), Suite::edge, plain({m, 80, 320}, DType::q8_0, DType::f32)});
  // Halves of k cancel: partial sums kept in 16 bits would lose the answer.
  all.push_back({"edge_cancelling_halves", Suite::edge, [](Sampler& r) {
                   View a = r.normal({6, 4096}, DType::f32), b = r.normal({9, 4096}, DType::f32);
                   for (int64_t k = 0; k < 2048; ++k) {
                     for (int64_t i = 0; i < 6; ++i) a.set(a.get(i, k), i, k + 2048);
                     for (int64_t j = 0; j < 9; ++j) b.set(-b.get(j, k) + 1e-3 * r.uniform(-1, 1), j, k + 2048);
                   }
                   return Args{.a = a, .b = b, .c = r.out({6, 9}, DType::f32)};
                 }});
  all.push_back({"edge_transposed_a_and_b", Suite::edge, [](Sampler& r) {
                   return Args{.a = r.normal({40, 19}, DType::f32).t(), .b = r.normal({40, 23}, DType::f32).t(), .c = r.out({19, 23}, DType::f32)};
                 }});
  all.push_back({"edge_f64", Suite::edge, plain({3, 4, 9}, DType::f64, DType::f64)});
  return all;
}

}  // namespace ridge
