// accumulate: y += scale * x. A dimension along which y has stride 0 is summed over: that is how a bias or any other broadcast operand
// gets its gradient (x [rows, n] into y [n] seen as [rows, n]). x may be broadcast too. Serves gradients of residual connections.
//
// Cost: x read once, y's own elements read and written once, 2 FLOPs an element of x. Sums run in a fixed order in at least f32.
#pragma once
#include "ops/op.h"

namespace ridge {

struct Accumulate {
  static constexpr const char* name = "accumulate";
  struct Args {
    View x;  // any rank
    View y;  // x's dims; a stride may be 0
    double scale = 1;
    bool operator==(const Args&) const = default;
  };
  static std::span<const Operand> operands();
  static std::string check(const Args&);
  static Cost cost(const Args&);
  static std::string shape(const Args&);
  static void reference(Ctx&, const Args&, char*);
  static void planted(Ctx&, const Args&, char*);  // overwrites
  static Accuracy accuracy() { return {.relative = 2, .floor = 16}; }
  static std::vector<Case<Accumulate>> cases();
  static void vjp(Ctx&, const Args&);  // dx += scale dy; y's own gradient passes through untouched
  static std::span<const Kernel<Accumulate>> kernels();
};

// v [n] seen as [rows, n], every row the same storage.
View broadcast_rows(View v, int64_t rows);

void accumulate(Ctx& x, const Accumulate::Args& a);

}  // namespace ridge
