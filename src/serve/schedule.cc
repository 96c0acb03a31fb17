#include "serve/schedule.h"

#include <algorithm>

namespace ridge {

std::vector<Share> schedule(std::span<const Waiting> sequences, int64_t budget) {
  std::vector<Share> shares;
  for (bool decoding : {true, false})
    for (size_t i = 0; i < sequences.size() && budget > 0; ++i) {
      const int64_t pending = sequences[i].pending;
      if (pending == 0 || (pending == 1) != decoding) continue;
      const int64_t n = std::min(pending, budget);
      shares.push_back({int64_t(i), n});
      budget -= n;
    }
  std::sort(shares.begin(), shares.end(), [](const Share& a, const Share& b) { return a.sequence < b.sequence; });
  return shares;
}

}  // namespace ridge
