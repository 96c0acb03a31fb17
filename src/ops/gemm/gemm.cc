// The bodies of gemm's contract: checks, cost, cases, gradient.
#include "ops/gemm/gemm.h"

#include <fmt/format.h>

#include <limits>

#include "base/format.h"
#include "ops/accumulate/accumulate.h"
#include "ops/call.h"
#include "ops/glu/glu.h"
#include "ops/sampler.h"

namespace ridge {

std::span<const Operand> Gemm::operands() {
  static constexpr Operand table[] = {
      operand<&Args::a>("a", Role::in),
      operand<&Args::b>("b", Role::weight),
      operand<&Args::gate>("gate", Role::weight),
      operand<&Args::bias>("bias", Role::weight),
      operand<&Args::gate_bias>("gate_bias", Role::weight),
      operand<&Args::residual>("residual", Role::in),
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

// With z the pre-activations and dz their gradient: da += scale dz . b, db += scale dz^T . a, dbias += column sums of dz.
// z is not kept: one more product makes it again where an activation was fused.
void Gemm::vjp(Ctx& x, const Args& g) {
  const View dc = x.grad(g.c);
  if (!dc) return;
  // Where c replaced the residual, their gradients are one storage and the value passes through.
  if (const View dr = x.grad(g.residual); dr && dr.data != dc.data) accumulate(x, {.x = dc, .y = dr});

  View dz = dc, dgate{};  // [m, n]
  if (g.gate || g.act != Activation::none) {
    auto again = [&](const View& w, const View& bias) {
      const View z = x.act(dc);
      gemm(x, {.a = g.a, .b = w, .c = z, .bias = bias, .scale = g.scale});
      return z;
    };
    const View z = again(g.b, g.bias);
    if (g.gate) {
      const View gate = again(g.gate, g.gate_bias);
      dz = x.act(dc);
      dgate = x.act(dc);
      glu_backward(x, {.gate = gate, .up = z, .dy = dc, .dgate = dgate, .dup = dz, .act = g.act, .accumulate = false});
    } else {
      dz = x.act(dc);
      glu_backward(x, {.gate = z, .dy = dc, .dgate = dz, .act = g.act, .accumulate = false});
    }
  }

  auto products = [&](const View& d, const View& w, const View& bias) {
    if (const View da = x.grad(g.a)) gemm(x, {.a = d, .b = w.t(), .c = da, .residual = da, .scale = g.scale});
    if (const View dw = x.grad(w)) gemm(x, {.a = d.t(), .b = g.a.t(), .c = dw, .residual = dw, .scale = g.scale});
    if (const View db = x.grad(bias)) accumulate(x, {.x = d, .y = broadcast_rows(db, d.dims[0])});
  };
  products(dz, g.b, g.bias);
  if (g.gate) products(dgate, g.gate, g.gate_bias);
}

namespace {

struct Shape {
  int64_t m, n, k;
};

auto plain(Shape s, DType weight, DType type) {
  return [=](Sampler& r) {
    return Gemm::Args{.a = r.normal({s.m, s.k}, type), .b = r.normal({s.n, s.k}, weight, 0.05), .c = r.out({s.m, s.n}, type)};
  };
}

// Kinds of faults that other libraries' users reported, and the corners of our own kernels.
std::vector<Case<Gemm>> fault_cases() {
  using Args = Gemm::Args;
  std::vector<Case<Gemm>> all;
  auto edge = [&](const std::string& name, std::function<Args(Sampler&)> make) {
    all.push_back({"edge_" + name, Suite::edge, std::move(make)});
  };
  // Depths that are whole blocks and nothing rounder; a last group that is not full.
  edge("k192_Q4_0", plain({3, 40, 192}, DType::q4_0, DType::f32));
  edge("k1344_Q8_0", plain({12, 24, 1344}, DType::q8_0, DType::f32));
  edge("k96_Q4_1", plain({1, 9, 96}, DType::q4_1, DType::f32));
  edge("k1000_bf16", plain({10, 33, 1000}, DType::bf16, DType::f32));
  edge("k61_f16", plain({2, 21, 61}, DType::f16, DType::f32));
  edge("k2049_f32", plain({9, 18, 2049}, DType::f32, DType::f32));  // a cut of k with one value behind it
  for (int64_t n : {1, 7, 15, 17}) edge(fmt::format("n{}_Q4_1", n), plain({n + 3, n, 256}, DType::q4_1, DType::f32));
  edge("n1032_Q4_0", plain({2, 1032, 64}, DType::q4_0, DType::f32));
  for (int64_t m : {15, 257, 333}) edge(fmt::format("m{}_Q8_0", m), plain({m, 20, 64}, DType::q8_0, DType::f32));
  for (Shape s : {Shape{0, 8, 32}, Shape{4, 0, 32}, Shape{4, 8, 0}, Shape{20, 8, 0}})
    edge(fmt::format("empty_{}x{}x{}", s.m, s.n, s.k), [=](Sampler& r) {
      Args g = plain(s, DType::f32, DType::f32)(r);
      g.bias = r.normal({s.n}, DType::f32);  // k = 0 leaves the bias
      return g;
    });
  // Sums of equal values are exact whatever their length, unless the sum is kept in too few bits.
  edge("constant_8192", [](Sampler& r) {
    return Args{.a = r.constant({3, 8192}, DType::f32, 1.0 / 32),
                .b = r.constant({5, 8192}, DType::f32, 3),
                .c = r.out({3, 5}, DType::f32)};
  });
  edge("constant_8192_many_rows", [](Sampler& r) {
    return Args{.a = r.constant({19, 8192}, DType::bf16, 1.0 / 32),
                .b = r.constant({5, 8192}, DType::bf16, 3),
                .c = r.out({19, 5}, DType::f32)};
  });
  for (int64_t m : {2, 24}) {
    // Activations that f16 cannot hold.
    edge(fmt::format("large_activations_m{}", m), [=](Sampler& r) {
      return Args{
          .a = r.normal({m, 512}, DType::f32, 1e5), .b = r.normal({12, 512}, DType::q4_0), .c = r.out({m, 12}, DType::bf16)};
    });
    // Scales that are subnormal numbers of f16.
    edge(fmt::format("tiny_weights_m{}", m), [=](Sampler& r) {
      return Args{
          .a = r.normal({m, 96}, DType::f32), .b = r.normal({12, 96}, DType::q8_0, 1e-4), .c = r.out({m, 12}, DType::f32)};
    });
    // Scales of zero.
    edge(fmt::format("zero_weights_m{}", m), [=](Sampler& r) {
      return Args{.a = r.normal({m, 256}, DType::f32),
                  .b = r.constant({12, 256}, DType::q6_k, 0),
                  .c = r.out({m, 12}, DType::f32),
                  .gate = r.constant({12, 256}, DType::q4_1, 0),
                  .act = Activation::silu};
    });
    // One row overflows, one is not a number: the others must not notice.
    edge(fmt::format("infinite_and_nan_rows_m{}", m), [=](Sampler& r) {
      Args g = plain({m + 2, 12, 64}, DType::q8_0, DType::f32)(r);
      g.a.set(std::numeric_limits<double>::infinity(), 1, 5);
      g.a.set(std::numeric_limits<double>::quiet_NaN(), 3, 0);
      return g;
    });
    edge(fmt::format("every_operand_m{}", m), [=](Sampler& r) {
      return Args{.a = r.normal({m, 256}, DType::f16),
                  .b = r.normal({37, 256}, DType::q4_k, 0.05),
                  .c = r.out({m, 37}, DType::f16),
                  .gate = r.normal({37, 256}, DType::bf16, 0.05),
                  .bias = r.normal({37}, DType::bf16),
                  .gate_bias = r.normal({37}, DType::f16),
                  .residual = r.normal({m, 37}, DType::bf16),
                  .scale = -1.5,
                  .act = Activation::gelu_tanh};
    });
    // What vjps ask for: products along the other dimension, added to what is there.
    for (DType w : {DType::bf16, DType::q8_0, DType::q6_k})
      edge(fmt::format("gradient_of_a_{}_m{}", name_of(w), m), [=](Sampler& r) {
        View c = r.normal({m, 256}, DType::f32);
        return Args{.a = r.normal({m, 11}, DType::f32), .b = r.normal({11, 256}, w).t(), .c = c, .residual = c, .scale = 0.25};
      });
    edge(fmt::format("gradient_of_b_m{}", m), [=](Sampler& r) {
      View c = r.normal({m, 40}, DType::f32);
      return Args{.a = r.normal({50, m}, DType::f32).t(), .b = r.normal({50, 40}, DType::bf16).t(), .c = c, .residual = c};
    });
  }
  for (Activation act : {Activation::none, Activation::silu, Activation::gelu, Activation::gelu_tanh})
    edge(std::string("activation_") + name_of(act), [=](Sampler& r) {
      Args g = plain({11, 35, 64}, DType::f32, DType::f32)(r);
      g.gate = r.normal({35, 64}, DType::f32, 0.5);
      g.act = act;
      return g;
    });
  return all;
}

}  // namespace

std::vector<Case<Gemm>> Gemm::cases() {
  std::vector<Case<Gemm>> all = {
      {"smoke_3x5x7_f32", Suite::smoke, plain({3, 5, 7}, DType::f32, DType::f32)},
      {"smoke_bf16", Suite::smoke, plain({4, 16, 32}, DType::bf16, DType::bf16)},
      {"smoke_epilogue", Suite::smoke,
       [](Sampler& r) {
         View c = r.normal({5, 24}, DType::f32);
         return Args{.a = r.normal({5, 64}, DType::f32),
                     .b = r.normal({24, 64}, DType::f32),
                     .c = c,
                     .bias = r.normal({24}, DType::f32),
                     .residual = c,
                     .scale = 0.5,
                     .act = Activation::gelu};
       }},
      {"smoke_gated_pair", Suite::smoke,
       [](Sampler& r) {
         return Args{.a = r.normal({5, 64}, DType::f32),
                     .b = r.normal({24, 64}, DType::q8_0),
                     .c = r.out({5, 24}, DType::f32),
                     .gate = r.normal({24, 64}, DType::q8_0),
                     .bias = r.normal({24}, DType::f32),
                     .gate_bias = r.normal({24}, DType::f32),
                     .act = Activation::silu};
       }},
  };
  std::vector<DType> weights = {DType::f32, DType::f16, DType::bf16};
  weights.insert(weights.end(), block_types().begin(), block_types().end());
  for (DType w : weights) {
    const std::string name = name_of(w);
    all.push_back({"smoke_one_row_" + name, Suite::smoke, plain({1, 48, 512}, w, DType::f32)});
    all.push_back({"edge_tails_" + name, Suite::edge, plain({37, 39, 512}, w, DType::f32)});
    all.push_back({"edge_few_rows_" + name, Suite::edge, plain({7, 33, 256}, w, DType::f32)});
    all.push_back({"model_smollm2_ffn_down_" + name, Suite::model, plain({64, 576, 1536}, w, DType::f32)});
    all.push_back({"model_smollm2_decode_" + name, Suite::model, plain({1, 1536, 768}, w, DType::f32)});
  }
  for (DType w : woven_types()) {
    const std::string name = name_of(w);
    const int64_t block = format_of(w)->block;
    all.push_back({"smoke_one_row_" + name, Suite::smoke, plain({1, 48, 2 * block}, w, DType::f32)});
    for (int64_t m : {2, 7, 9, 37, 75})
      all.push_back({fmt::format("edge_m{}_{}", m, name), Suite::edge, plain({m, 80, 3 * block}, w, DType::f32)});
    all.push_back({"edge_deep_" + name, Suite::edge, plain({18, 32, 9 * 256}, w, DType::f32)});  // k is cut
    all.push_back({"edge_every_operand_" + name, Suite::edge, [=](Sampler& r) {
                     return Args{.a = r.normal({19, block}, DType::bf16),
                                 .b = r.normal({48, block}, w, 0.05),
                                 .c = r.out({19, 48}, DType::f16),
                                 .gate = r.normal({48, block}, DType::q4_1_woven, 0.05),
                                 .bias = r.normal({48}, DType::bf16),
                                 .gate_bias = r.normal({48}, DType::f16),
                                 .residual = r.normal({19, 48}, DType::bf16),
                                 .scale = -1.5,
                                 .act = Activation::silu};
                   }});
    for (int64_t m : {3, 21}) {
      all.push_back({fmt::format("edge_zero_weights_m{}_{}", m, name), Suite::edge, [=](Sampler& r) {
                       return Args{.a = r.normal({m, block}, DType::f32),
                                   .b = r.constant({16, block}, w, 0),
                                   .c = r.out({m, 16}, DType::f32)};
                     }});
      all.push_back({fmt::format("edge_infinite_and_nan_rows_m{}_{}", m, name), Suite::edge, [=](Sampler& r) {
                       Args g = plain({m, 16, block}, w, DType::f32)(r);
                       g.a.set(std::numeric_limits<double>::infinity(), 1, 5);
                       g.a.set(std::numeric_limits<double>::quiet_NaN(), m - 1, 0);
                       for (int64_t k = 0; k < block; ++k) g.a.set(0, 0, k);
                       return g;
                     }});
    }
    all.push_back({"model_smollm2_ffn_down_" + name, Suite::model, plain({64, 576, 1536}, w, DType::f32)});
    all.push_back({"model_smollm2_decode_" + name, Suite::model, plain({1, 1536, 768}, w, DType::f32)});
  }
  for (int64_t m : {2, 3, 8, 16, 17, 31, 32, 33})
    all.push_back({fmt::format("edge_m{}", m), Suite::edge, plain({m, 80, 320}, DType::q8_0, DType::f32)});
  // The halves of k cancel but for small whole numbers, every partial sum fits f32 exactly, and not 16 bits: partial sums kept in
  // fewer bits would lose the answer.
  all.push_back({"edge_cancelling_halves", Suite::edge, [](Sampler& r) {
                   View a = r.integers({6, 4096}, DType::f32, -8, 9), b = r.integers({9, 4096}, DType::f32, -8, 9);
                   for (int64_t k = 0; k < 2048; ++k) {
                     for (int64_t i = 0; i < 6; ++i) a.set(a.get(i, k), i, k + 2048);
                     for (int64_t j = 0; j < 9; ++j) b.set(-b.get(j, k) + double(k % 64 == 0), j, k + 2048);
                   }
                   return Args{.a = a, .b = b, .c = r.out({6, 9}, DType::f32)};
                 }});
  all.push_back({"edge_transposed_a_and_b", Suite::edge, [](Sampler& r) {
                   return Args{.a = r.normal({40, 19}, DType::f32).t(),
                               .b = r.normal({40, 23}, DType::f32).t(),
                               .c = r.out({19, 23}, DType::f32)};
                 }});
  all.push_back({"edge_f64", Suite::edge, plain({3, 4, 9}, DType::f64, DType::f64)});
  for (Case<Gemm>& c : fault_cases()) all.push_back(std::move(c));
  return all;
}

}  // namespace ridge
