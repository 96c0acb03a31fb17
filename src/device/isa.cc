// CPUID says what the CPU has, XGETBV which registers the system saves, arch_prctl whether this process may use AMX tiles.
// A level needs all three: a virtual machine may show any mixture.
#include "device/isa.h"

#include <cstdlib>
#include <cstring>

#include "base/log.h"
#if defined(__x86_64__)
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

namespace ridge {
namespace {

constexpr const char* kNames[] = {"portable", "avx2", "avx512", "vnni", "amx"};

#if defined(__x86_64__)
struct Leaf {
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
};
Leaf leaf(unsigned number, unsigned sub = 0) {
  Leaf l;
  if (!__get_cpuid_count(number, sub, &l.eax, &l.ebx, &l.ecx, &l.edx)) return {};
  return l;
}
bool all(uint64_t word, std::initializer_list<int> bits) {
  for (int bit : bits)
    if (!(word >> bit & 1)) return false;
  return true;
}

uint64_t saved_registers() {  // XCR0
  unsigned low = 0, high = 0;
  asm volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return uint64_t(high) << 32 | low;
}

bool tiles_permitted() {
  constexpr long kRequestPermission = 0x1023, kTileData = 18;  // ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA
  return syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
}

Isa detect() {
  const Leaf basic = leaf(1), extended = leaf(7), more = leaf(7, 1);
  if (!all(basic.ecx, {27, 28, 12, 29}) || !all(extended.ebx, {5})) return Isa::portable;  // OSXSAVE, AVX, FMA, F16C; AVX2
  const uint64_t saved = saved_registers();
  if (!all(saved, {1, 2})) return Isa::portable;                                         // xmm, ymm
  if (!all(extended.ebx, {16, 17, 30, 31}) || !all(saved, {5, 6, 7})) return Isa::avx2;  // F, DQ, BW, VL; opmask, zmm
  if (!all(extended.ecx, {11})) return Isa::avx512;                                      // AVX512_VNNI
  if (!all(extended.edx, {22, 24, 25}) || !all(more.eax, {5}) || !all(saved, {17, 18}))
    return Isa::vnni;  // AMX; AVX512_BF16; tiles
  return tiles_permitted() ? Isa::amx : Isa::vnni;
}
#else
Isa detect() { return Isa::portable; }
#endif

std::string list_names(Isa highest) {
  std::string names;
  for (int i = 0; i <= int(highest); ++i) names += (i ? ", " : "") + std::string(kNames[i]);
  return names;
}

}  // namespace

const char* isa_name(Isa isa) { return kNames[int(isa)]; }

Isa detect_isa() {
  static const Isa isa = detect();
  return isa;
}

Result<Isa> choose_isa(const char* env) {
  const Isa highest = detect_isa();
  if (!env || !*env) return highest;
  for (int i = 0; i <= int(Isa::amx); ++i) {
    if (strcmp(env, kNames[i]) != 0) continue;
    if (Isa(i) <= highest) return Isa(i);
    return usage_error(fmt::format("RIDGE_ISA={} is more than this CPU can do: choose one of {}.", env, list_names(highest)));
  }
  return usage_error(fmt::format("RIDGE_ISA={:.40} is no instruction set: choose one of {}.", env, list_names(highest)));
}

Isa active_isa() {
  static const Isa isa = [] {
    const Result<Isa> chosen = choose_isa(getenv("RIDGE_ISA"));
    if (chosen) return *chosen;
    log_warn("{}", chosen.status().sentence());
    return detect_isa();
  }();
  return isa;
}

std::string cpu_model() {
#if defined(__x86_64__)
  if (leaf(0x80000000u).eax >= 0x80000004u) {
    char name[49] = {};
    for (unsigned i = 0; i < 3; ++i) {
      const Leaf part = leaf(0x80000002u + i);
      memcpy(name + 16 * i, &part, 16);
    }
    std::string tidy;  // the vendors pad with blanks
    for (const char* c = name; *c; ++c)
      if (*c != ' ' || (!tidy.empty() && tidy.back() != ' ')) tidy += *c;
    while (!tidy.empty() && tidy.back() == ' ') tidy.pop_back();
    if (!tidy.empty()) return tidy;
  }
#endif
  return "unknown CPU";
}

std::string describe_isa() {
  const Isa has = detect_isa(), used = active_isa();
  return fmt::format("{}, {}{}", cpu_model(), isa_name(used),
                     used == has ? "" : fmt::format(" (RIDGE_ISA; the CPU has {})", isa_name(has)));
}

}  // namespace ridge
