// gemm: c[m, n] = epilogue(a[m, k] . b[n, k]^T). Every linear layer, with what follows it fused.
//
//   y = scale (a . b^T) + bias
//   y = y * act(scale (a . gate^T) + gate_bias)   where gate is given (SwiGLU and its kin: two weights, one pass over a)
//   y = act(y)                                     where it is not
//   c = y + residual                               residual may be c itself
//
// Cost: 2 m n k FLOPs a weight matrix; a, b, c once each. Weights (b, gate) may be of any type, block formats included; a, c,
// residual and biases are f64, f32, f16 or bf16. All views may be strided; fast rows ask for dense rows.
// Products are accumulated in at least f32. Not for attention's products (attention) nor grouped experts.
#pragma once
#include "ops/activation.h"
#include "ops/op.h"

namespace ridge {

struct Gemm {
  static constexpr const char* name = "gemm";
  struct Args {
    View a;                    // [m, k]
    View b;                    // [n, k]
    View c;                    // [m, n]
    View gate{};               // [n, k], b's partner in a gated pair
    View bias{}, gate_bias{};  // [n]
    View residual{};           // [m, n]
    double scale = 1;
    Activation act = Activation::none;
    bool operator==(const Args&) const = default;
  };
  static std::span<const Operand> operands();
  static std::string check(const Args&);
  static Cost cost(const Args&);
  static std::string shape(const Args&);
  static void reference(Ctx&, const Args&, char*);
  static void planted(Ctx&, const Args&, char*);                       // stops one short of k
  static Accuracy accuracy() { return {.relative = 2, .floor = 64}; }  // f32 sums of k random terms stay within 64 roundings
  static std::vector<Case<Gemm>> cases();
  static void vjp(Ctx&, const Args&);  // recomputes the pre-activations of a fused epilogue
  static std::span<const Kernel<Gemm>> kernels();
};

void gemm(Ctx& x, const Gemm::Args& a);

}  // namespace ridge
