// Pages of sequence state (keys and values) and who owns them. One object whatever the architecture: a sequence is a list of
// pages and a count of tokens, and everything done to it (grow, cut back, give back) is done here.
#pragma once
#include <cstdint>
#include <vector>

#include "base/arena.h"
#include "model/batch.h"

namespace ridge {

struct SequenceState {
  std::vector<int32_t> pages;
  int64_t tokens = 0;  // held by the cache
};

class StatePool {
 public:
  StatePool(const KvShape& shape, int64_t pages, int64_t page_size, DType type);
  StatePool(const StatePool&) = delete;

  const KvCache& cache() const { return cache_; }
  int64_t page_size() const { return cache_.page_size; }
  int64_t pages_for(int64_t tokens) const { return (tokens + cache_.page_size - 1) / cache_.page_size; }
  int64_t free_pages() const { return int64_t(free_.size()); }
  int64_t bytes() const { return cache_.bytes; }

  bool grow(SequenceState& s, int64_t tokens);  // pages for `tokens` in all; false and unchanged when too few are free
  void cut(SequenceState& s, int64_t tokens);   // keeps the first `tokens`
  void release(SequenceState& s) { cut(s, 0); }

 private:
  static int64_t bytes_needed(const KvShape& shape, int64_t pages, int64_t page_size, DType type);
  Arena arena_;
  KvCache cache_;
  std::vector<int32_t> free_;
};

}  // namespace ridge
