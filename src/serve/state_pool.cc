#include "serve/state_pool.h"

#include "base/check.h"

namespace ridge {

int64_t StatePool::bytes_needed(const KvShape& shape, int64_t pages, int64_t page_size, DType type) {
  Arena measure;
  alloc_kv_cache(measure, shape, pages, page_size, type);
  return measure.peak();
}

StatePool::StatePool(const KvShape& shape, int64_t pages, int64_t page_size, DType type)
    : arena_(bytes_needed(shape, pages, page_size, type)), cache_(alloc_kv_cache(arena_, shape, pages, page_size, type)) {
  for (int64_t p = pages; p-- > 0;) free_.push_back(int32_t(p));  // page 0 is given first
}

bool StatePool::grow(SequenceState& s, int64_t tokens) {
  const int64_t more = pages_for(tokens) - int64_t(s.pages.size());
  if (more > free_pages()) return false;
  for (int64_t i = 0; i < more; ++i) {
    s.pages.push_back(free_.back());
    free_.pop_back();
  }
  return true;
}

void StatePool::cut(SequenceState& s, int64_t tokens) {
  RIDGE_CHECK(tokens <= s.tokens, "a sequence is cut back, not forward");
  while (int64_t(s.pages.size()) > pages_for(tokens)) {
    free_.push_back(s.pages.back());
    s.pages.pop_back();
  }
  s.tokens = tokens;
}

}  // namespace ridge
