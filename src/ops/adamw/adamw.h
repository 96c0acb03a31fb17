// adamw: one step of Adam with decoupled weight decay and bias correction (Loshchilov and Hutter, "Decoupled weight decay
// regularization", ICLR 2019), in the order of operations that PyTorch's AdamW uses.
//
//   g = grad_scale g;  m = beta1 m + (1 - beta1) g;  v = beta2 v + (1 - beta2) g^2
//   p = p (1 - lr weight_decay) - lr / (1 - beta1^step) m / (sqrt(v / (1 - beta2^step)) + eps)
//
// lr, step and grad_scale change from step to step, so they are views that a captured step reads. p may be of 16 bits beside f32
// moments: it is rounded to nearest, so an update below half a unit in its last place is lost. Train 16-bit models on f32 p.
// Cost: p, m and v read and written, g read; 14 vector FLOPs an element.
#pragma once
#include "ops/op.h"

namespace ridge {

struct AdamW {
  static constexpr const char* name = "adamw";
  struct Args {
    View p, m, v;       // of one shape; p any float, m and v f32 or f64
    View g;             // p's shape, f32 or f64
    View lr;            // [1]
    View step;          // [1], any number type: 1 at the first update
    View grad_scale{};  // [1]: a clip factor; absent: 1
    double beta1 = 0.9, beta2 = 0.999, eps = 1e-8, weight_decay = 0.01;
    bool operator==(const Args&) const = default;
  };
  static std::span<const Operand> operands();
  static std::string check(const Args&);
  static Cost cost(const Args&);
  static std::string shape(const Args&);
  static void reference(Ctx&, const Args&, char*);
  static void planted(Ctx&, const Args&, char*);  // decay goes into the gradient: L2, which Adam then rescales
  static Accuracy accuracy() { return {.relative = 2, .floor = 8}; }
  static std::vector<Case<AdamW>> cases();
  static std::span<const Kernel<AdamW>> kernels();
};

void adamw(Ctx& x, const AdamW::Args& a);

}  // namespace ridge
