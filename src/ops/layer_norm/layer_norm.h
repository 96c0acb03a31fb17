// layer_norm: the norm of GPT-2's kin, encoders and vision towers, with the residual add that feeds it.
//
//   s = x + add                          add is optional; where `sum` is given, s is stored there (rounded) and that is normalised
//   y = (s - mean) w / sqrt(variance + eps) + bias   over each row, variance being the biased one; w and bias are optional
//
// Cost: 7 vector FLOPs an element; x, add, y, sum once each. sum may be x or add itself, y may be x where there is no sum.
// x, add, y, sum, w and bias are f64, f32, f16 or bf16, each its own type; rows may have gaps between them.
//
// layer_norm_backward, with inv = 1 / sqrt(variance + eps), e = (s - mean) inv, g = dy w:
//   ds = dsum + inv (g - mean(g) - e mean(g e));   dx += ds;   dadd += ds;   dw += sum over rows of dy e;   dbias += sum of dy
#pragma once
#include "ops/op.h"

namespace ridge {

struct LayerNorm {
  static constexpr const char* name = "layer_norm";
  struct Args {
    View x;            // [rows, n]
    View y;            // [rows, n]
    View w{}, bias{};  // [n]
    View add{};        // [rows, n]
    View sum{};        // [rows, n]
    double eps = 1e-5;
    bool operator==(const Args&) const = default;
  };
  static std::span<const Operand> operands();
  static std::string check(const Args&);
  static Cost cost(const Args&);
  static std::string shape(const Args&);
  static void reference(Ctx&, const Args&, char*);
  static void planted(Ctx&, const Args&, char*);  // loses one of four partial sums of the variance
  static Accuracy accuracy() { return {.relative = 2, .floor = 16}; }
  static std::vector<Case<LayerNorm>> cases();
  static void vjp(Ctx&, const Args&);
  static std::span<const Kernel<LayerNorm>> kernels();
};

struct LayerNormBackward {
  static constexpr const char* name = "layer_norm_backward";
  struct Args {
    View dy;             // [rows, n]
    View x;              // [rows, n]: what was normalised, or its part beside add
    View add{};          // [rows, n]: where x + add was normalised and not stored
    View w{};            // [n]
    View dsum{};         // [rows, n]: of the stored sum; may be dx itself, where sum lay on x
    View dx{}, dadd{};   // [rows, n], added to
    View dw{}, dbias{};  // [n], added to
    double eps = 1e-5;
    bool operator==(const Args&) const = default;
  };
  static std::span<const Operand> operands();
  static std::string check(const Args&);
  static Cost cost(const Args&);
  static std::string shape(const Args&);
  static void reference(Ctx&, const Args&, char*);
  static void planted(Ctx&, const Args&, char*);                       // loses a quarter of mean(g e)
  static Accuracy accuracy() { return {.relative = 2, .floor = 32}; }  // dw and dbias sum over rows in f32
  static std::vector<Case<LayerNormBackward>> cases();
  static std::span<const Kernel<LayerNormBackward>> kernels();
};

void layer_norm(Ctx& x, const LayerNorm::Args& a);
void layer_norm_backward(Ctx& x, const LayerNormBackward::Args& a);

}  // namespace ridge
