// linear_cross_entropy: the head and the loss in one, so that the logits [tokens, vocab] never exist whole.
//
//   z[t] = h[t] . w^T;  z = softcap tanh(z / softcap) where softcap > 0
//   lse[t] = log(sum over v of exp(z[t, v]))                  natural log; 0 for ignored tokens
//   loss = sum over t of weight[t] (lse[t] - z[t, target[t]])
//
// The normaliser is in the weights, known before the forward pass: gradients of micro-batches and ranks then simply add up. A token with a
// negative target is ignored: it contributes exactly nothing, and its h may hold anything, NaN included. A target past the vocabulary is
// the caller's mistake and aborts.
// Cost: 2 tokens vocab k matmul FLOPs and an exponential a logit; h and w once each.
//
// linear_cross_entropy_backward, with p = exp(z - lse):
//   dz = (dloss weight (p - [v = target]) + dlse p) (1 - (z / softcap)^2);  dh += dz w;  dw += dz^T h
// z is computed again: 6 tokens vocab k FLOPs. A tied head's dw is the embedding's gradient too: both add to it.
#pragma once
#include "ops/op.h"

namespace ridge {

struct LinearCrossEntropy {
  static constexpr const char* name = "linear_cross_entropy";
  struct Args {
    View h;              // [tokens, k]
    View w;              // [vocab, k], any type
    View target;         // i32 [tokens]
    View weight;         // [tokens]
    View loss;           // [1]
    View lse{};          // [tokens]; give it when training, the backward pass wants it
    double softcap = 0;  // 0: none
    bool operator==(const Args&) const = default;
  };
  static std::span<const Operand> operands();
  static std::string check(const Args&);
  static Cost cost(const Args&);
  static std::string shape(const Args&);
  static void reference(Ctx&, const Args&, char*);
  static void planted(Ctx&, const Args&, char*);                       // every token gets the first one's weight
  static Accuracy accuracy() { return {.relative = 2, .floor = 16}; }  // f32 products of k terms
  static std::vector<Case<LinearCrossEntropy>> cases();
  static void vjp(Ctx&, const Args&);
  static std::span<const Kernel<LinearCrossEntropy>> kernels();
};

struct LinearCrossEntropyBackward {
  static constexpr const char* name = "linear_cross_entropy_backward";
  struct Args {
    View h;       // [tokens, k]
    View w;       // [vocab, k], any type
    View target;  // i32 [tokens]
    View weight;  // [tokens]
    View lse;     // [tokens], of the forward pass
    View dloss;   // [1]
    View dlse{};  // [tokens]: of a loss that uses lse too, as a z-loss does
    View dh{};    // [tokens, k], added to
    View dw{};    // [vocab, k], added to
    double softcap = 0;
    bool operator==(const Args&) const = default;
  };
  static std::span<const Operand> operands();
  static std::string check(const Args&);
  static Cost cost(const Args&);
  static std::string shape(const Args&);
  static void reference(Ctx&, const Args&, char*);
  static void planted(Ctx&, const Args&, char*);  // every token gets the first one's weight
  // exp(z - lse) turns an absolute error of z, up to 64 roundings of its largest value, into a relative one of dz.
  static Accuracy accuracy() { return {.relative = 2, .floor = 64}; }
  static std::vector<Case<LinearCrossEntropyBackward>> cases();
  static std::span<const Kernel<LinearCrossEntropyBackward>> kernels();
};

void linear_cross_entropy(Ctx& x, const LinearCrossEntropy::Args& a);
void linear_cross_entropy_backward(Ctx& x, const LinearCrossEntropyBackward::Args& a);

}  // namespace ridge
