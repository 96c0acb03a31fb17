// Counter-based random numbers: Philox4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011).
// A number is a pure function of (seed, step, op, element), so it does not depend on threads, batch or order.
#pragma once
#include <array>
#include <cstdint>

namespace ridge {

struct RngKey {
  uint64_t seed = 0;
  uint32_t step = 0, op = 0;
};

inline std::array<uint32_t, 4> philox(std::array<uint32_t, 4> counter, uint64_t key) {
  uint32_t k0 = uint32_t(key), k1 = uint32_t(key >> 32);
  for (int round = 0; round < 10; ++round) {
    const uint64_t a = uint64_t(0xD2511F53) * counter[0], b = uint64_t(0xCD9E8D57) * counter[2];
    counter = {uint32_t(b >> 32) ^ counter[1] ^ k0, uint32_t(b), uint32_t(a >> 32) ^ counter[3] ^ k1, uint32_t(a)};
    k0 += 0x9E3779B9;
    k1 += 0xBB67AE85;
  }
  return counter;
}

// Uniform in (0, 1), 32 bits of resolution: neither end is ever returned, so log() of it is finite.
inline double uniform(const RngKey& key, uint64_t element) {
  const auto r = philox({uint32_t(element), uint32_t(element >> 32), key.step, key.op}, key.seed);
  return (r[0] + 0.5) * 0x1p-32;
}

}  // namespace ridge
