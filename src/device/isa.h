// Which instruction set the CPU rows run on: what this CPU and its system allow, or less where RIDGE_ISA asks for it.
// An Isa is a level: each includes the ones before it. The rows of level L are compiled with exactly L's flags (CMakeLists.txt).
#pragma once
#include <cstdint>
#include <string>

#include "base/status.h"

namespace ridge {

//   avx2: AVX2, FMA, F16C    avx512: F, BW, DQ, VL    vnni: AVX512_VNNI    amx: AMX-TILE, -BF16, -INT8 and AVX512_BF16
enum class Isa : uint8_t { portable, avx2, avx512, vnni, amx };

const char* isa_name(Isa isa);
// The highest level of this machine. Asks Linux once for the permission to use AMX tiles; where it refuses, the answer is vnni.
Isa detect_isa();
// `env` is the value of RIDGE_ISA, or null: then the detected level. An unknown name, or a level that this machine lacks, is a Status.
Result<Isa> choose_isa(const char* env);
// choose_isa of the environment, decided once a process. The binary reports a wrong RIDGE_ISA before anything else; elsewhere it is
// logged and the detected level is taken.
Isa active_isa();

// "Intel(R) Xeon(R) Processor" as the CPU calls itself, or "unknown CPU".
std::string cpu_model();
// One line for people: "Intel(R) Xeon(R) Processor, amx" or "..., avx2 (RIDGE_ISA; the CPU has amx)".
std::string describe_isa();

}  // namespace ridge
