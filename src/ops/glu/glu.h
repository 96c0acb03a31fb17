// glu: y = act(gate) * up, the middle of a gated MLP (SwiGLU, GeGLU); without `up` it is the plain activation.
//
// gate and up are usually column slices of one [rows, 2n] product, so rows have gaps; y may be gate or up itself.
// Cost: about 10 vector FLOPs an element (an exponential); gate, up and y once each. Where the product is one gemm with a gate operand,
// gemm's epilogue does this without the trip through memory: glu is for the other cases and for training.
//
// glu_backward: dgate (+)= dy up act'(gate);  dup (+)= dy act(gate). `accumulate` false overwrites: what was there is not read.
#pragma once
#include "ops/activation.h"
#include "ops/op.h"

namespace ridge {

struct Glu {
  static constexpr const char* name = "glu";
  struct Args {
    View gate;  // [rows, n]
    View up{};  // [rows, n]
    View y;     // [rows, n]
    Activation act = Activation::silu;
    bool operator==(const Args&) const = default;
  };
  static std::span<const Operand> operands();
  static std::string check(const Args&);
  static Cost cost(const Args&);
  static std::string shape(const Args&);
  static void reference(Ctx&, const Args&, char*);
  static void planted(Ctx&, const Args&, char*);  // takes up for gate; without up it activates twice
  static Accuracy accuracy() { return {.relative = 2, .floor = 16}; }
  static std::vector<Case<Glu>> cases();
  static void vjp(Ctx&, const Args&);
  static std::span<const Kernel<Glu>> kernels();
};

struct GluBackward {
  static constexpr const char* name = "glu_backward";
  struct Args {
    View gate;            // [rows, n]
    View up{};            // [rows, n]
    View dy;              // [rows, n]
    View dgate{}, dup{};  // [rows, n]
    Activation act = Activation::silu;
    bool accumulate = true;
    bool operator==(const Args&) const = default;
  };
  static std::span<const Operand> operands();
  static std::string check(const Args&);
  static Cost cost(const Args&);
  static std::string shape(const Args&);
  static void reference(Ctx&, const Args&, char*);
  static void planted(Ctx&, const Args&, char*);  // halves dgate: the sum of two products lost one
  static Accuracy accuracy() { return {.relative = 2, .floor = 16}; }
  static std::vector<Case<GluBackward>> cases();
  static std::span<const Kernel<GluBackward>> kernels();
};

void glu(Ctx& x, const Glu::Args& a);
void glu_backward(Ctx& x, const GluBackward::Args& a);

}  // namespace ridge
