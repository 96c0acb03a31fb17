// rms_norm: the norm in front of every block, with the residual add that feeds it.
//
//   s = x + add                      add is optional; where `sum` is given, s is stored there (rounded) and that is what is normalised
//   y = s w / sqrt(mean(s^2) + eps)  over each row; (1 + w) in w's place where offset_one (Gemma); w is optional
//
// Cost: 4 vector FLOPs an element; x, add, y, sum once each, w once. sum may be x or add itself, y may be x where there is no sum.
// x, add, y, sum and w are f64, f32, f16 or bf16, each its own type; rows may have gaps between them.
//
// rms_norm_backward, with inv = 1 / sqrt(mean(s^2) + eps), g = dy w:
//   ds = dsum + inv (g - s inv^2 mean(g s));   dx += ds;   dadd += ds;   dw += sum over rows of dy s inv
#pragma once
#include "ops/op.h"

namespace ridge {

struct RmsNorm {
  static constexpr const char* name = "rms_norm";
  struct Args {
    View x;      // [rows, n]
    View y;      // [rows, n]
    View w{};    // [n]
    View add{};  // [rows, n]
    View sum{};  // [rows, n]
    double eps = 1e-5;
    bool offset_one = false;
    bool operator==(const Args&) const = default;
  };
  static std::span<const Operand> operands();
  static std::string check(const Args&);
  static Cost cost(const Args&);
  static std::string shape(const Args&);
  static void reference(Ctx&, const Args&, char*);
  static void planted(Ctx&, const Args&, char*);  // loses one of four partial sums of squares
  static Accuracy accuracy() { return {.relative = 2, .floor = 16}; }
  static std::vector<Case<RmsNorm>> cases();
  static void vjp(Ctx&, const Args&);
  static std::span<const Kernel<RmsNorm>> kernels();
};

struct RmsNormBackward {
  static constexpr const char* name = "rms_norm_backward";
  struct Args {
    View dy;            // [rows, n]
    View x;             // [rows, n]: what was normalised, or its part beside add
    View add{};         // [rows, n]: where x + add was normalised and not stored
    View w{};           // [n]
    View dsum{};        // [rows, n]: of the stored sum; may be dx itself, where sum lay on x
    View dx{}, dadd{};  // [rows, n], added to
    View dw{};          // [n], added to
    double eps = 1e-5;
    bool offset_one = false;
    bool operator==(const Args&) const = default;
  };
  static std::span<const Operand> operands();
  static std::string check(const Args&);
  static Cost cost(const Args&);
  static std::string shape(const Args&);
  static void reference(Ctx&, const Args&, char*);
  static void planted(Ctx&, const Args&, char*);                       // loses a quarter of mean(g s)
  static Accuracy accuracy() { return {.relative = 2, .floor = 32}; }  // dw sums over rows in f32
  static std::vector<Case<RmsNormBackward>> cases();
  static std::span<const Kernel<RmsNormBackward>> kernels();
};

void rms_norm(Ctx& x, const RmsNorm::Args& a);
void rms_norm_backward(Ctx& x, const RmsNormBackward::Args& a);

}  // namespace ridge
