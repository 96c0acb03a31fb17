// softmax over rows: y = exp(scale x - max) / sum, or its logarithm; scale is 1 / temperature. For routers, classifiers and tests:
// attention, sampling and the loss have theirs inside.
//
// -inf entries (masked) get 0, or -inf from the logarithm. A row that is masked throughout is not a distribution: it gets zeros (-inf
// throughout from the logarithm), not NaN. A row with a NaN or +inf is NaN throughout. y may be x.
// Cost: about 10 vector FLOPs an element (an exponential), x and y once each.
//
// softmax_backward, from y alone: dx += scale y (dy - sum(dy y)); log: dx += scale (dy - exp(y) sum(dy)); nothing for masked rows.
#pragma once
#include "ops/op.h"

namespace ridge {

struct Softmax {
  static constexpr const char* name = "softmax";
  struct Args {
    View x;            // [rows, n]
    View y;            // [rows, n]
    double scale = 1;  // positive
    bool log = false;
    bool operator==(const Args&) const = default;
  };
  static std::span<const Operand> operands();
  static std::string check(const Args&);
  static Cost cost(const Args&);
  static std::string shape(const Args&);
  static void reference(Ctx&, const Args&, char*);
  static void planted(Ctx&, const Args&, char*);  // the sum misses the last quarter of the row
  static Accuracy accuracy() { return {.relative = 2, .floor = 16}; }
  static std::vector<Case<Softmax>> cases();
  static void vjp(Ctx&, const Args&);
  static std::span<const Kernel<Softmax>> kernels();
};

struct SoftmaxBackward {
  static constexpr const char* name = "softmax_backward";
  struct Args {
    View y;   // [rows, n]: softmax's result
    View dy;  // [rows, n]
    View dx;  // [rows, n], added to
    double scale = 1;
    bool log = false;
    bool operator==(const Args&) const = default;
  };
  static std::span<const Operand> operands();
  static std::string check(const Args&);
  static Cost cost(const Args&);
  static std::string shape(const Args&);
  static void reference(Ctx&, const Args&, char*);
  static void planted(Ctx&, const Args&, char*);  // the sum misses the last quarter of the row
  static Accuracy accuracy() { return {.relative = 2, .floor = 16}; }
  static std::vector<Case<SoftmaxBackward>> cases();
  static std::span<const Kernel<SoftmaxBackward>> kernels();
};

void softmax(Ctx& x, const Softmax::Args& a);
void softmax_backward(Ctx& x, const SoftmaxBackward::Args& a);

}  // namespace ridge
