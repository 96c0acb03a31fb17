// The CPU vector vocabulary of ISA files (`*_cpu.cc`): f32 lanes, as wide as the level's registers. Write a kernel once in these
// words; it is compiled for each ISA (16 lanes on avx512, vnni and amx; 8 on avx2; 4 on portable).
//
//   kLanes                        lanes of a Vec
//   broadcast(x), zero(), iota()  iota: 0, 1, 2, ...
//   load(p), load(p, n)           p: const float*, Bf16*, F16*, int8_t*, uint8_t*; always widened to f32. With n <= kLanes only n
//   store(p, v), store(p, v, n)   elements are touched and the other lanes are 0. p: float*, Bf16*, F16*, nearest even, NaN stays NaN
//   a + b, a - b, a * b, a / b, -a, sqrt, abs
//   fma(a, b, c)                  a b + c; rounded once on avx2 and up, twice on portable
//   min, max                      the second operand where either is NaN
//   a < b, a <= b, a == b -> Mask; both(m, n); select(mask, a, b); first(n): lanes below n
//   reduce_add, reduce_max        over the lanes, always in the same order
//   store_sums(p, a, b, c, d)     p[0..3] = reduce_add of each, to the bit, in less than half the instructions
//   each_vec(n, f)                f(i, lanes) for i = 0, kLanes, ...: full vectors, then the tail
//   exp                           1.5 ulp; 0 below -103.98, +inf above 88.73, exp(-inf) = 0, subnormal results right, NaN stays NaN
//   sigmoid, silu                 3 ulp
//   tanh                          3 ulp
//   normal_cdf                    Phi(x), as accurate as gelu
//   gelu, gelu_tanh               5e-7 relative from -1 up; 3e-6 down to -5, where the rounding of the exponent shows; absolute beyond
// For logarithms of single numbers use __builtin_logf: the std:: functions are inline functions of a shared header.
//
// NOTE: everything here has internal linkage and is always inlined, so no copy for one ISA can serve another. Do not call functions
// of other headers from an ISA file (not even std::min): see isa_table.h.
#pragma once
#include <cstdint>

#include "tile/cpu/isa_table.h"

#define RIDGE_INLINE [[gnu::always_inline]] inline  // a plain `inline` may be outlined, and then registers spill at each call

namespace ridge::RIDGE_ISA {
namespace {

// False where a level adds instructions to its predecessor's lanes: rows made of Vecs alone need no copy there.
#if defined(RIDGE_ISA_vnni) || defined(RIDGE_ISA_amx)
constexpr bool kOwnWidth = false;
#else
constexpr bool kOwnWidth = true;
#endif

struct Bf16 {
  uint16_t bits;
};
struct F16 {
  uint16_t bits;
};

}  // namespace
}  // namespace ridge::RIDGE_ISA

#if defined(RIDGE_ISA_avx512) || defined(RIDGE_ISA_vnni) || defined(RIDGE_ISA_amx)
#include "tile/cpu/vec_avx512.h"
#elif defined(RIDGE_ISA_avx2)
#include "tile/cpu/vec_avx2.h"
#else
#include "tile/cpu/vec_portable.h"
#endif

#include "tile/cpu/vec_math.h"
