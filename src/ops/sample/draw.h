// The arithmetic that all of sample's kernels share to the bit: how weights are summed, and which token a number draws.
// A token's weight is tile/cpu/exp_f64.h's exp_f64, the same to the bit on every ISA.
#pragma once
#include <cstdint>

namespace ridge {

// Weights are added in groups of kGroup ids: within a group eight lanes by id, then the lanes in pairs, then group after group.
// A zero weight changes no sum, so a list of the kept tokens and an array with zeros give the same bits.
inline constexpr int64_t kGroup = 256;

struct GroupSum {
  double lanes[8] = {};
  void add(int64_t id, double w) { lanes[id & 7] += w; }
  void add_all(const double* w, int64_t n) {  // from a multiple of 8 on: eight additions at once
    int64_t i = 0;
    for (; i + 8 <= n; i += 8)
      for (int j = 0; j < 8; ++j) lanes[j] += w[i + j];
    for (; i < n; ++i) lanes[i & 7] += w[i];
  }
  double fold() const {
    return ((lanes[0] + lanes[1]) + (lanes[2] + lanes[3])) + ((lanes[4] + lanes[5]) + (lanes[6] + lanes[7]));
  }
};

// Kept tokens by ascending id: `ids` null means 0 .. n. Weights are found by id.
struct Kept {
  const int32_t* ids;     // [n]
  const double* weights;  // [vocab]
  int64_t n;
  int64_t id(int64_t i) const { return ids ? ids[i] : i; }
};

// Calls f(first, end, sum) group after group until it returns true.
template <class F>
inline void each_group(const Kept& k, F&& f) {
  for (int64_t i = 0; !k.ids && i < k.n; i += kGroup) {
    const int64_t end = i + kGroup < k.n ? i + kGroup : k.n;
    GroupSum s;
    s.add_all(k.weights + i, end - i);
    if (f(i, end, s.fold())) return;
  }
  if (!k.ids) return;
  for (int64_t i = 0; i < k.n;) {
    const int64_t group = k.id(i) / kGroup;
    GroupSum s;
    int64_t end = i;
    for (; end < k.n && k.id(end) / kGroup == group; ++end) s.add(k.id(end), k.weights[k.id(end)]);
    if (f(i, end, s.fold())) return;
    i = end;
  }
}

inline double total_weight(const Kept& k) {
  double total = 0;
  each_group(k, [&](int64_t, int64_t, double sum) { return total += sum, false; });
  return total;
}

// The token where the running sum passes u times the total; some weight is positive.
inline int64_t draw_token(const Kept& k, double u) {
  const double target = u * total_weight(k);
  double before = 0;
  int64_t drawn = 0;
  each_group(k, [&](int64_t first, int64_t end, double sum) {
    if (!(before + sum > target)) return before += sum, false;
    for (int64_t i = first; i < end; ++i) {  // one after the other; its last token, where rounding hides the target
      const double w = k.weights[k.id(i)];
      before += w;
      if (w > 0) drawn = k.id(i);
      if (before > target) break;
    }
    return true;
  });
  return drawn;
}

}  // namespace ridge
