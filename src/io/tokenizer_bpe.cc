#include "io/tokenizer_bpe.h"

#include <algorithm>
#include <array>
#include <bit>
#include <functional>
#include <queue>

namespace ridge {
namespace {

constexpr size_t kShort = 32;

struct Candidate {
  uint32_t rank;
  int64_t at;
  bool operator>(const Candidate& other) const { return rank != other.rank ? rank > other.rank : at > other.at; }
};

}  // namespace

BpeMerges::BpeMerges(size_t count) : slots_(std::bit_ceil(2 * count + 2)) {}

size_t BpeMerges::slot_of(int32_t left, int32_t right) const {
  uint64_t h = (uint64_t(uint32_t(left)) << 32 | uint32_t(right)) * 0x9E3779B97F4A7C15u;
  h = (h ^ h >> 29) * 0xBF58476D1CE4E5B9u;
  const size_t mask = slots_.size() - 1;
  size_t i = size_t(h >> 32) & mask;
  while (slots_[i].rank != kNone && (slots_[i].left != left || slots_[i].right != right)) i = (i + 1) & mask;
  return i;
}

const BpeMerges::Slot& BpeMerges::find(int32_t left, int32_t right) const { return slots_[slot_of(left, right)]; }

void BpeMerges::add(int32_t left, int32_t right, uint32_t rank, int32_t merged) {
  slots_[slot_of(left, right)] = {left, right, rank, merged};
}

void BpeMerges::apply(std::vector<int32_t>& symbols, size_t from) const {
  const size_t n = symbols.size() - from;
  if (n >= 2) n <= kShort ? apply_short(symbols, from) : apply_long(symbols, from);
}

void BpeMerges::apply_short(std::vector<int32_t>& symbols, size_t from) const {
  int32_t* s = symbols.data() + from;
  size_t n = symbols.size() - from;
  std::array<uint32_t, kShort> rank;   // of the pair (i, i + 1)
  std::array<int32_t, kShort> merged;  // what it becomes
  const auto look = [&](size_t i) {
    const Slot& slot = find(s[i], s[i + 1]);
    rank[i] = slot.rank;
    merged[i] = slot.merged;
  };
  for (size_t i = 0; i + 1 < n; ++i) look(i);
  while (n >= 2) {
    const size_t best = size_t(std::min_element(rank.begin(), rank.begin() + ptrdiff_t(n - 1)) - rank.begin());
    if (rank[best] == kNone) break;
    s[best] = merged[best];
    std::copy(s + best + 2, s + n, s + best + 1);
    std::copy(rank.begin() + ptrdiff_t(best) + 1, rank.begin() + ptrdiff_t(n) - 1, rank.begin() + ptrdiff_t(best));
    std::copy(merged.begin() + ptrdiff_t(best) + 1, merged.begin() + ptrdiff_t(n) - 1, merged.begin() + ptrdiff_t(best));
    --n;
    if (best > 0) look(best - 1);
    if (best + 1 < n) look(best);
  }
  symbols.resize(from + n);
}

void BpeMerges::apply_long(std::vector<int32_t>& symbols, size_t from) const {
  constexpr int64_t kEnd = -1, kGone = -2;
  const int64_t n = int64_t(symbols.size() - from);
  int32_t* s = symbols.data() + from;
  std::vector<int64_t> previous(static_cast<size_t>(n)), next(static_cast<size_t>(n));
  std::priority_queue<Candidate, std::vector<Candidate>, std::greater<>> queue;
  const auto offer = [&](int64_t at) {
    if (at < 0 || next[size_t(at)] < 0) return;
    const Slot& slot = find(s[at], s[next[size_t(at)]]);
    if (slot.rank != kNone) queue.push({slot.rank, at});
  };
  for (int64_t i = 0; i < n; ++i) {
    previous[size_t(i)] = i - 1;
    next[size_t(i)] = i + 1 < n ? i + 1 : kEnd;
  }
  for (int64_t i = 0; i < n; ++i) offer(i);
  while (!queue.empty()) {
    const Candidate top = queue.top();
    queue.pop();
    const int64_t right = next[size_t(top.at)];
    if (right < 0) continue;  // absorbed by its neighbour, or last
    const Slot& slot = find(s[top.at], s[right]);
    if (slot.rank != top.rank) continue;  // the pair has changed since it was offered
    s[top.at] = slot.merged;
    const int64_t after = next[size_t(right)];
    next[size_t(top.at)] = after;
    if (after >= 0) previous[size_t(after)] = top.at;
    next[size_t(right)] = kGone;
    offer(previous[size_t(top.at)]);
    offer(top.at);
  }
  size_t kept = 0;
  for (int64_t i = 0; i >= 0; i = next[size_t(i)]) s[kept++] = s[i];
  symbols.resize(from + kept);
}

}  // namespace ridge
