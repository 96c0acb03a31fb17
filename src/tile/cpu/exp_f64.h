// e^x in double for x from -40 to 0, the same to the bit on every ISA: additions and multiplications that no compiler may contract or
// reorder, so a loop of it may run eight at once and a single call elsewhere still gives the same number. For what must not depend on
// the machine (which token is drawn); vec.h's exp is many times faster where 1.5 ulp of f32 do.
// Internal linkage, always inlined: for ISA files and for those that must agree with them.
#pragma once
#include <cstdint>
#include <cstring>

namespace ridge {
namespace {

// exp(x) for x <= 0 to 4e-16 relative; 0 below -40 and for NaN. Masks instead of choices: GCC makes no vectors for AVX2
// of a loop that branches.
[[gnu::always_inline]] inline double exp_f64(double x) {
  constexpr double least = -40;
  const uint64_t inside = -uint64_t(x >= least);
  uint64_t bits, power, least_bits;
  memcpy(&bits, &x, 8);
  memcpy(&least_bits, &least, 8);
  bits = (bits & inside) | (least_bits & ~inside);
  double clamped;
  memcpy(&clamped, &bits, 8);
  constexpr double to_integer = 0x1.8p52;  // adding it leaves the nearest integer in the low bits
  const double shifted = clamped * 1.4426950408889634 + to_integer;
  const double n = shifted - to_integer;
  const double r = (clamped - n * 0x1.62e42fee00000p-1) - n * 0x1.a39ef35793c76p-33;  // ln 2 in two parts, the first of 32 bits
  double p = 1.0 / 6227020800.0;                                                      // Taylor to r^13: |r| <= 0.35
  p = p * r + 1.0 / 479001600.0;
  p = p * r + 1.0 / 39916800.0;
  p = p * r + 1.0 / 3628800.0;
  p = p * r + 1.0 / 362880.0;
  p = p * r + 1.0 / 40320.0;
  p = p * r + 1.0 / 5040.0;
  p = p * r + 1.0 / 720.0;
  p = p * r + 1.0 / 120.0;
  p = p * r + 1.0 / 24.0;
  p = p * r + 1.0 / 6.0;
  p = p * r + 0.5;
  p = p * r + 1.0;
  p = p * r + 1.0;
  memcpy(&power, &shifted, 8);
  memcpy(&bits, &p, 8);
  bits = (bits + (power << 52)) & inside;  // times 2^n
  memcpy(&p, &bits, 8);
  return p;
}

}  // namespace
}  // namespace ridge
