// The nonlinearities between linear layers, by name. Plain data: ISA files include this; the double-precision truth behind the names
// is in activation.cc and serves the references.
#pragma once
#include <cstdint>

namespace ridge {

//   silu: x sigmoid(x)    gelu: x Phi(x), by erf    gelu_tanh: its tanh approximation (GPT-2, Gemma)
enum class Activation : uint8_t { none, silu, gelu, gelu_tanh };

const char* name_of(Activation act);  // "silu"
double activate(Activation act, double x);
double activation_slope(Activation act, double x);  // d activate / d x

}  // namespace ridge
