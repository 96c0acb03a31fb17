// The activations on vectors, by name, for ISA files; errors are stated in tile/cpu/vec.h. The branch is uniform: hoisting is free.
#pragma once
#include "ops/activation.h"
#include "tile/cpu/vec.h"

namespace ridge::RIDGE_ISA {
namespace {

RIDGE_INLINE Vec activate(Activation act, Vec x) {
  switch (act) {
    case Activation::none: return x;
    case Activation::silu: return silu(x);
    case Activation::gelu: return gelu(x);
    case Activation::gelu_tanh: return gelu_tanh(x);
  }
  return x;
}

}  // namespace
}  // namespace ridge::RIDGE_ISA
