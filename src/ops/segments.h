// The ragged batch's types. Every token-mixing op takes the segments by type, so a leak between packed sequences does not
// compile; a position (what rope turns by) is not an index (where a key lies), so the two are different types.
#pragma once
#include <cstdint>
#include <vector>

#include "base/view.h"

namespace ridge {

// Host copy of a batch's lengths, for costs and work splits: outlives the step, its address is stable across captures.
struct SegmentLengths {
  std::vector<int32_t> queries;  // tokens of this step, a segment each
  std::vector<int32_t> keys;     // keys its last token sees, itself included
};

// Tokens of segment s are rows cu_seqlens[s] .. cu_seqlens[s + 1] of every [tokens, ...] view. Rows past the last segment are
// padding of a captured bucket: nothing is computed for them.
struct Segments {
  View cu_seqlens;  // i32 [segments + 1]
  View kv_lens;     // i32 [segments]
  const SegmentLengths* lengths = nullptr;
  int64_t count() const { return kv_lens.dims[0]; }
  bool operator==(const Segments&) const = default;
};

struct Positions {
  View of;  // i32 [tokens]
  bool operator==(const Positions&) const = default;
};

// Where this step's keys and values go and where a segment's earlier ones are.
struct Pages {
  View table;  // i32 [segments, max_pages]; entries past kv_len are never read
  View slots;  // i64 [tokens]: page * page_size + offset to write at; -1: not written
  explicit operator bool() const { return bool(table); }
  bool operator==(const Pages&) const = default;
};

}  // namespace ridge
