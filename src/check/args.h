// The operands of one call, owned, with the types erased: what the drivers copy, move about, poison and inspect.
//
// A case makes its Args in a Sampler; every run works on a copy. A copy may turn floating values into doubles (the truth), round
// the inputs as a row does (the twin), or lie differently in memory (strided rows, unaligned bases, guard pages). Operands that
// share a pointer share it in the copy too. Everything that belongs to no element (canaries, gaps between rows) is filled with a
// pattern that reads as NaN, or as an index far out of range, and must still be there afterwards.
// Views that overlap without starting at the same element are copied apart: a case must not depend on such an overlap.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "check/region.h"
#include "ops/op.h"
#include "ops/sampler.h"

namespace ridge {

// strided: every row is followed by a gap. offset: bases are unaligned (1, 3 or 5 elements; 2, 18 or 34 bytes of a block format).
// guarded: the memory after (before) the operand's last (first) byte faults.
enum class Placement : uint8_t { own, strided, offset, guard_after, guard_before };
const char* name_of(Placement p);

struct CopyAs {
  Placement placement = Placement::own;
  bool f64 = false;           // floating operands become doubles, block formats included
  bool decoded = false;       // block formats become the f32 values they hold
  DType rounds = DType::f64;  // what floating inputs are rounded to; their type stays
  bool unalias = false;       // every operand its own memory
  int only = -1;              // place just this operand (and those that share its memory)
};

class CaseArgs {
 public:
  CaseArgs(const OpInfo& op, const CaseInfo& c);
  CaseArgs(const CaseArgs& from, const CopyAs& how);

  const OpInfo& op() const { return *op_; }
  void* get() const { return args_.get(); }
  View& view(int operand) const { return op_->operands[size_t(operand)].of(get()); }
  int operands() const { return int(op_->operands.size()); }
  bool has(int operand) const { return bool(view(operand)); }
  bool output(int operand) const { return is_output(op_->operands[size_t(operand)].role); }
  bool shares(int a, int b) const;  // the same memory

  // In a copy, what is only written holds poison. arm() remembers every byte of it, canaries included.
  void arm();
  void restore();  // as armed
  // A sentence about the first byte that changed though it belongs to no output; empty when there is none.
  std::string damage() const;

 private:
  struct Group {  // operands that share memory
    std::vector<int> members;
    Region region;
    std::vector<char> armed;  // region.all() as it was
    bool read = false, written = false;
  };
  void copy_group(const CaseArgs& from, std::vector<int> members, const CopyAs& how);
  void mark_elements(const Group& g, std::vector<char>& mask) const;  // one byte for each of region.all()
  std::string describe_change(const Group& g, int64_t at) const;

  const OpInfo* op_;
  std::shared_ptr<Sampler> sampler_;  // owns what views of no operand and host lengths point to
  std::unique_ptr<char[]> args_;
  std::vector<Group> groups_;
};

// The greatest element index that v reaches, plus one; 0 when v is empty. Strides are never negative.
int64_t span_of(const View& v);
// dst[i] = src[i] whatever the types and strides; a block format is copied to itself or decoded.
void copy_elements(const View& src, const View& dst);
void for_each_index(const View& v, const std::function<void(int64_t, int64_t, int64_t, int64_t)>& f);

}  // namespace ridge
