// How code outside reaches functions that were compiled once per ISA. An ISA file (`*_cpu.cc`) fills a plain table of function
// pointers in its own namespace; RIDGE_ISA_TABLES declares the five and makes `name(Isa)` find the one for a level.
//
//   ops/gemm/gemm_cpu.h:   struct GemmCpu { void (*panel)(const GemmPanel&); };      plain data, no inline functions
//   ops/gemm/gemm_cpu.cc:  namespace ridge::RIDGE_ISA { extern const GemmCpu gemm_cpu{panel}; }
//   ops/gemm/gemm_kernels.cc:  RIDGE_ISA_TABLES(GemmCpu, gemm_cpu)  ...  gemm_cpu(Isa::avx512).panel(task)
//
// NOTE: ISA files include only tile/cpu and such plain headers. An inline function of any other header would become a weak symbol
// in each object, and the linker may keep the AVX-512 copy for every machine (tools/check_symbols.py refuses the build).
#pragma once
#include "device/isa.h"

#define RIDGE_ISA_TABLES(Type, name)                                                                            \
  namespace portable {                                                                                          \
  extern const Type name;                                                                                       \
  }                                                                                                             \
  namespace avx2 {                                                                                              \
  extern const Type name;                                                                                       \
  }                                                                                                             \
  namespace avx512 {                                                                                            \
  extern const Type name;                                                                                       \
  }                                                                                                             \
  namespace vnni {                                                                                              \
  extern const Type name;                                                                                       \
  }                                                                                                             \
  namespace amx {                                                                                               \
  extern const Type name;                                                                                       \
  }                                                                                                             \
  namespace {                                                                                                   \
  [[maybe_unused]] const Type& name(Isa isa) {                                                                  \
    static const Type* const levels[] = {&portable::name, &avx2::name, &avx512::name, &vnni::name, &amx::name}; \
    return *levels[int(isa)];                                                                                   \
  }                                                                                                             \
  }
