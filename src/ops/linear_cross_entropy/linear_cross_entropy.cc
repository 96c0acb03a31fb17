// The bodies of linear_cross_entropy's contracts: checks, costs, cases, gradient.
#include "ops/linear_cross_entropy/linear_cross_entropy.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "ops/call.h"
#include "ops/sampler.h"
#include "ops/shapes.h"

namespace ridge {

std::span<const Operand> LinearCrossEntropy::operands() {
  static constexpr Operand table[] = {
      operand<&Args::h>("h", Role::in),           operand<&Args::w>("w", Role::weight),
      operand<&Args::target>("target", Role::in), operand<&Args::weight>("weight", Role::in, true, false),
      operand<&Args::loss>("loss", Role::out),    operand<&Args::lse>("lse", Role::out),
  };
  return table;
}

std::string LinearCrossEntropy::check(const Args& a) {
  if (a.h.rank != 2 || a.w.rank != 2 || a.h.dims[1] != a.w.dims[1]) return "h is [tokens, k] and w is [vocab, k]";
  const int64_t tokens = a.h.dims[0];
  if (!a.target || !fits_row(a.target, tokens) || a.target.type != DType::i32) return "target is i32 [tokens]";
  if (!a.weight || !fits_row(a.weight, tokens) || !fits_row(a.lse, tokens)) return "weight and lse are [tokens]";
  if (!a.loss || !fits_row(a.loss, 1)) return "loss is [1]";
  if (!all_float({a.h, a.weight, a.loss, a.lse})) return "h, weight, loss and lse are floating point";
  if (!is_float(a.w.type) && (!is_block(a.w.type) || is_woven(a.w.type)))
    return "w is floating point or of a file's block format";
  if (!(a.softcap >= 0)) return "softcap is positive, or 0 for none";
  return {};
}

Cost LinearCrossEntropy::cost(const Args& a) {
  const double logits = double(a.h.dims[0]) * double(a.w.dims[0]);
  return {.matmul_flops = 2 * logits * double(a.h.dims[1]), .vector_flops = logits * (a.softcap > 0 ? 18 : 9)};
}
std::string LinearCrossEntropy::shape(const Args& a) {
  return fmt::format("{}x{}x{} {}", a.h.dims[0], a.w.dims[0], a.h.dims[1], name_of(a.w.type));
}

namespace {

struct Shape {
  int64_t tokens, vocab, k;
};

// Operands of a case: random weights of the tokens, a few tokens ignored.
LinearCrossEntropy::Args sample(Sampler& r, Shape s, DType weight, DType type, double softcap = 0) {
  const DType wide = type == DType::f64 ? DType::f64 : DType::f32;
  return {.h = r.normal({s.tokens, s.k}, type),
          .w = r.normal({s.vocab, s.k}, weight, 2 / std::sqrt(double(s.k))),
          .target = r.integers({s.tokens}, DType::i32, -1, s.vocab),
          .weight = r.uniform({s.tokens}, wide, 0.1 / double(s.tokens), 1.0 / double(s.tokens)),
          .loss = r.out({1}, wide),
          .lse = r.out({s.tokens}, wide),
          .softcap = softcap};
}

void ignore_token(const LinearCrossEntropy::Args& a, int64_t t) {
  a.target.set(-100, t);
  for (int64_t j = 0; j < a.h.dims[1]; ++j) a.h.set(std::numeric_limits<double>::quiet_NaN(), t, j);
}

}  // namespace

std::vector<Case<LinearCrossEntropy>> LinearCrossEntropy::cases() {
  auto plain = [](Shape s, DType weight, DType type, double softcap) {
    return [=](Sampler& r) { return sample(r, s, weight, type, softcap); };
  };
  std::vector<Case<LinearCrossEntropy>> all = {
      {"smoke_f32", Suite::smoke, plain({7, 37, 24}, DType::f32, DType::f32, 0)},
      {"smoke_f64", Suite::smoke, plain({5, 9, 6}, DType::f64, DType::f64, 0)},
      {"smoke_softcap", Suite::smoke, plain({7, 37, 24}, DType::f32, DType::f32, 3)},
      {"smoke_bf16", Suite::smoke, plain({7, 37, 32}, DType::bf16, DType::bf16, 0)},
      {"edge_softcap_f64", Suite::edge, plain({5, 9, 6}, DType::f64, DType::f64, 1.5)},
      {"edge_one_token", Suite::edge,
       [](Sampler& r) {
         Args a = sample(r, {1, 70, 16}, DType::f32, DType::f32);
         a.target.set(69, 0);
         return a;
       }},
      {"edge_one_word", Suite::edge, plain({3, 1, 16}, DType::f32, DType::f32, 0)},  // certainty: loss 0
      {"edge_several_chunks", Suite::model, plain({260, 2060, 4}, DType::f32, DType::f32, 0)},
      {"edge_q8_0", Suite::edge, plain({9, 67, 64}, DType::q8_0, DType::f32, 0)},
      {"edge_q6_k", Suite::edge, plain({2, 12, 256}, DType::q6_k, DType::f32, 0)},
      {"model_smollm2", Suite::model, plain({2, 49152, 576}, DType::f32, DType::f32, 0)},
      {"model_smollm2_training", Suite::fuzz, plain({512, 49152, 576}, DType::f32, DType::f32, 0)},
  };
  all.push_back({"edge_without_lse", Suite::edge, [](Sampler& r) {
                   Args a = sample(r, {6, 40, 16}, DType::f32, DType::f32);
                   a.lse = {};
                   return a;
                 }});
  all.push_back({"edge_everything_ignored", Suite::edge, [](Sampler& r) {
                   Args a = sample(r, {4, 40, 16}, DType::f32, DType::f32);
                   for (int64_t t = 0; t < 4; ++t) ignore_token(a, t);
                   return a;
                 }});
  all.push_back({"edge_padding_holds_nan", Suite::edge, [](Sampler& r) {
                   Args a = sample(r, {6, 40, 16}, DType::f32, DType::f32);
                   ignore_token(a, 0);
                   ignore_token(a, 4);
                   return a;
                 }});
  all.push_back({"edge_first_weight_zero", Suite::edge, [](Sampler& r) {
                   Args a = sample(r, {6, 40, 16}, DType::f32, DType::f32);
                   a.target.set(3, 0);
                   a.weight.set(0, 0);
                   return a;
                 }});
  // Logits of several hundred: exp without the running maximum is infinite.
  all.push_back({"edge_large_logits", Suite::edge, [](Sampler& r) {
                   Args a = sample(r, {6, 200, 16}, DType::f32, DType::f32);
                   a.h = r.normal({6, 16}, DType::f32, 40);
                   return a;
                 }});
  // The maximum comes last, in another chunk than the target: what was summed before must be scaled down.
  all.push_back({"edge_maximum_in_the_last_column", Suite::edge, [](Sampler& r) {
                   Args a = sample(r, {3, 2100, 4}, DType::f32, DType::f32);
                   for (int64_t j = 0; j < 4; ++j) a.w.set(a.h.get(1, j) * 5, 2099, j);
                   a.target.set(0, 1);
                   return a;
                 }});
  all.push_back({"edge_h_in_a_wider_buffer", Suite::edge, [](Sampler& r) {
                   Args a = sample(r, {6, 40, 16}, DType::f32, DType::f32);
                   a.h = r.normal({6, 40}, DType::f32).cols(8, 16);
                   return a;
                 }});
  return all;
}

void LinearCrossEntropy::vjp(Ctx& x, const Args& a) {
  View lse = a.lse;
  if (!lse) {  // the price of not keeping it: one more forward pass
    lse = x.act({a.h.dims[0]}, a.loss.type);
    linear_cross_entropy(x, {.h = a.h,
                             .w = a.w,
                             .target = a.target,
                             .weight = a.weight,
                             .loss = x.act({1}, a.loss.type),
                             .lse = lse,
                             .softcap = a.softcap});
  }
  linear_cross_entropy_backward(x, {.h = a.h,
                                    .w = a.w,
                                    .target = a.target,
                                    .weight = a.weight,
                                    .lse = lse,
                                    .dloss = x.grad(a.loss),
                                    .dlse = x.grad(a.lse),
                                    .dh = x.grad(a.h),
                                    .dw = x.grad(a.w),
                                    .softcap = a.softcap});
}

// ---- backward

std::span<const Operand> LinearCrossEntropyBackward::operands() {
  static constexpr Operand table[] = {
      operand<&Args::h>("h", Role::in),           operand<&Args::w>("w", Role::weight),
      operand<&Args::target>("target", Role::in), operand<&Args::weight>("weight", Role::in),
      operand<&Args::lse>("lse", Role::in),       operand<&Args::dloss>("dloss", Role::in),
      operand<&Args::dlse>("dlse", Role::in),     operand<&Args::dh>("dh", Role::inout),
      operand<&Args::dw>("dw", Role::inout),
  };
  return table;
}

std::string LinearCrossEntropyBackward::check(const Args& a) {
  const std::string wrong = LinearCrossEntropy::check(
      {.h = a.h, .w = a.w, .target = a.target, .weight = a.weight, .loss = a.dloss, .lse = a.lse, .softcap = a.softcap});
  if (!wrong.empty()) return wrong;
  if (!a.lse) return "lse is that of the forward pass";
  if (!fits_row(a.dlse, a.h.dims[0])) return "dlse is [tokens]";
  if (!fits(a.dh, a.h) || !fits(a.dw, a.w)) return "dh is [tokens, k] like h and dw [vocab, k] like w";
  if (!all_float({a.dlse, a.dh, a.dw})) return "dlse, dh and dw are floating point";
  return {};
}

Cost LinearCrossEntropyBackward::cost(const Args& a) {
  const double logits = double(a.h.dims[0]) * double(a.w.dims[0]), products = 1 + (a.dh ? 1 : 0) + (a.dw ? 1 : 0);
  return {.matmul_flops = 2 * products * logits * double(a.h.dims[1]), .vector_flops = logits * (a.softcap > 0 ? 22 : 10)};
}
std::string LinearCrossEntropyBackward::shape(const Args& a) {
  return fmt::format("{}x{}x{} {}", a.h.dims[0], a.w.dims[0], a.h.dims[1], name_of(a.w.type));
}

namespace {

// lse as a forward pass would have left it, so that exp(z - lse) are probabilities.
LinearCrossEntropyBackward::Args sample_backward(Sampler& r, Shape s, DType weight, DType type, double softcap = 0,
                                                 int ignored = -1) {
  LinearCrossEntropy::Args a = sample(r, s, weight, type, softcap);
  if (ignored >= 0) ignore_token(a, ignored);
  for (int64_t t = 0; t < s.tokens; ++t) {
    double top = -INFINITY, sum = 0;
    std::vector<double> z(s.vocab);
    for (int64_t v = 0; v < s.vocab; ++v) {
      for (int64_t j = 0; j < s.k; ++j) z[v] += a.h.get(t, j) * a.w.get(v, j);
      if (softcap > 0) z[v] = softcap * std::tanh(z[v] / softcap);
      top = std::max(top, z[v]);
    }
    for (double x : z) sum += std::exp(x - top);
    a.lse.set(a.target.get(t) < 0 ? 0 : top + std::log(sum), t);
  }
  const DType wide = a.loss.type;
  return {.h = a.h,
          .w = a.w,
          .target = a.target,
          .weight = a.weight,
          .lse = a.lse,
          .dloss = r.constant({1}, wide, 0.75),
          .dh = r.normal({s.tokens, s.k}, wide, 0.05),
          .dw = r.normal({s.vocab, s.k}, wide, 0.05),
          .softcap = softcap};
}

}  // namespace

std::vector<Case<LinearCrossEntropyBackward>> LinearCrossEntropyBackward::cases() {
  auto plain = [](Shape s, DType weight, DType type, double softcap) {
    return [=](Sampler& r) {
      Args a = sample_backward(r, s, weight, type, softcap);
      if (is_block(weight)) a.dw = {};  // a quantised head is frozen
      return a;
    };
  };
  return {
      {"smoke_f32", Suite::smoke, plain({7, 37, 24}, DType::f32, DType::f32, 0)},
      {"smoke_f64", Suite::smoke, plain({5, 9, 6}, DType::f64, DType::f64, 0)},
      {"smoke_softcap", Suite::smoke, plain({7, 37, 24}, DType::f32, DType::f32, 3)},
      {"edge_bf16", Suite::edge, plain({7, 37, 32}, DType::bf16, DType::bf16, 0)},
      {"edge_one_word", Suite::edge, plain({3, 1, 16}, DType::f32, DType::f32, 0)},
      {"edge_several_chunks", Suite::model, plain({260, 2060, 4}, DType::f32, DType::f32, 0)},
      {"edge_q8_0_frozen_head", Suite::edge, plain({9, 67, 64}, DType::q8_0, DType::f32, 0)},
      {"edge_padding_holds_nan", Suite::edge,
       [](Sampler& r) {
         return sample_backward(r, {6, 40, 16}, DType::f32, DType::f32, 0, 2);
       }},
      {"edge_only_dw", Suite::edge,
       [](Sampler& r) {
         Args a = sample_backward(r, {6, 40, 16}, DType::f32, DType::f32);
         a.dh = {};
         return a;
       }},
      {"edge_gradient_of_lse", Suite::edge,
       [](Sampler& r) {
         Args a = sample_backward(r, {6, 40, 16}, DType::f32, DType::f32, 3, 1);
         a.dlse = r.normal({6}, DType::f32);
         return a;
       }},
      {"edge_everything_ignored", Suite::edge,
       [](Sampler& r) {
         Args a = sample_backward(r, {4, 40, 16}, DType::f32, DType::f32);
         for (int64_t t = 0; t < 4; ++t) a.target.set(-1, t);
         return a;
       }},
      {"model_smollm2_narrow", Suite::model, plain({16, 4096, 576}, DType::f32, DType::f32, 0)},
  };
}

}  // namespace ridge
