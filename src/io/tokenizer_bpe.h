// The merge half of byte-level BPE: a table from pairs of tokens to (rank, merged token), and its repeated application to a word.
//
// The rule: among all adjacent pairs that the table knows, merge the one of lowest rank, the leftmost of equals, until none is left.
// Words of up to 32 symbols scan an array of ranks (no allocation, about 0.1 us); longer ones use a heap over a linked list, so that a
// megabyte without a space costs n log n.
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

namespace ridge {

class BpeMerges {
 public:
  static constexpr uint32_t kNone = UINT32_MAX;
  explicit BpeMerges(size_t count = 0);  // room for `count` merges
  // A pair given twice keeps its later rank.
  void add(int32_t left, int32_t right, uint32_t rank, int32_t merged);
  // Merges symbols[from..] in place and shrinks the vector.
  void apply(std::vector<int32_t>& symbols, size_t from) const;

 private:
  struct Slot {
    int32_t left = -1, right = -1;
    uint32_t rank = kNone;
    int32_t merged = -1;
  };
  const Slot& find(int32_t left, int32_t right) const;  // a slot of rank kNone when there is no such pair
  size_t slot_of(int32_t left, int32_t right) const;
  void apply_short(std::vector<int32_t>& symbols, size_t from) const;
  void apply_long(std::vector<int32_t>& symbols, size_t from) const;
  std::vector<Slot> slots_;  // open addressing, at most half full; always a power of two
};

}  // namespace ridge
