#include "ops/activation.h"

#include <cmath>
#include <numbers>

namespace ridge {

namespace {
constexpr double kCubic = 0.044715;  // of the tanh approximation
double tanh_argument(double x) { return std::sqrt(2 / std::numbers::pi) * (x + kCubic * x * x * x); }
}  // namespace

const char* name_of(Activation act) {
  constexpr const char* names[] = {"none", "silu", "gelu", "gelu_tanh"};
  return names[int(act)];
}

double activate(Activation act, double x) {
  switch (act) {
    case Activation::none: return x;
    case Activation::silu: return x / (1 + std::exp(-x));
    case Activation::gelu: return 0.5 * x * std::erfc(-x / std::numbers::sqrt2);   // 1 + erf would cancel in the left tail
    case Activation::gelu_tanh: return x / (1 + std::exp(-2 * tanh_argument(x)));  // (1 + tanh u) / 2 = sigmoid(2 u)
  }
  return x;
}

double activation_slope(Activation act, double x) {
  switch (act) {
    case Activation::none: return 1;
    case Activation::silu: {
      const double s = 1 / (1 + std::exp(-x));
      return s * (1 + x * (1 - s));
    }
    case Activation::gelu:
      return 0.5 * std::erfc(-x / std::numbers::sqrt2) + x * std::exp(-0.5 * x * x) / std::sqrt(2 * std::numbers::pi);
    case Activation::gelu_tanh: {
      const double s = 1 / (1 + std::exp(-2 * tanh_argument(x)));
      return s + x * s * (1 - s) * 2 * std::sqrt(2 / std::numbers::pi) * (1 + 3 * kCubic * x * x);
    }
  }
  return 1;
}

}  // namespace ridge
