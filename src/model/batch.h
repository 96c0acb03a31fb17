// The ragged batch: the one layout of tokens for serving and training. Flat tokens, segments by type, positions, pages, sample
// rows, targets and loss weights. No padded [batch, time] form exists.
//
// A BatchBuffers owns the memory of one capacity. Filled as a bucket, its views keep addresses and dims from step to step and only
// contents change, so a captured step can be replayed; filled exactly, dims are the step's own. Without memory it serves plans.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/arena.h"
#include "ops/segments.h"

namespace ridge {

// Keys and values of one layer, in pages.
struct LayerKv {
  View k, v;  // [pages, kv_heads, page_size, head_dim]
};

// The paged sequence state of a model: one entry a layer.
struct KvCache {
  std::vector<LayerKv> layers;
  int64_t pages = 0, page_size = 0;
  int64_t bytes = 0;
};

struct KvShape {
  int64_t layers = 0, kv_heads = 0, head_dim = 0;
  int64_t bytes_per_token(DType type) const { return bytes_of(type, 2 * layers * kv_heads * head_dim); }
};

KvCache alloc_kv_cache(Arena& a, const KvShape& shape, int64_t pages, int64_t page_size, DType type);

struct Batch {
  View ids;             // i32 [tokens]
  Positions positions;  // i32 [tokens]
  Segments segments;
  Pages pages;  // absent without a cache: every key is of this step
  const KvCache* cache = nullptr;
  View sample_rows;   // i32 [rows]: the tokens whose logits are wanted; -1: padding
  View targets;       // i32 [tokens]; -1: no loss
  View loss_weights;  // f32 (f64 in an f64 model) [tokens]; they sum to 1 over the global batch
  int64_t tokens() const { return ids.dims[0]; }
};

struct BatchCapacity {
  int64_t tokens = 0, segments = 0;
  int64_t rows = 0;   // sample rows
  int64_t pages = 0;  // pages a segment; 0: no cache
  bool targets = false;
  DType weight_type = DType::f32;
};

// A segment's share of a step.
struct SegmentInput {
  std::span<const int32_t> ids;    // this step's tokens
  int32_t past = 0;                // tokens already in the cache
  std::span<const int32_t> pages;  // page numbers, enough for past + ids; empty without a cache
  bool sampled = true;             // its last token's logits are wanted
};

class BatchBuffers {
 public:
  // memory false: views for plans only.
  explicit BatchBuffers(const BatchCapacity& capacity, bool memory = true);
  BatchBuffers(const BatchBuffers&) = delete;

  Batch& batch() { return batch_; }
  int64_t rows() const { return rows_; }  // sample rows of the last fill
  SegmentLengths& lengths() { return lengths_; }
  const BatchCapacity& capacity() const { return capacity_; }
  int64_t bytes() const { return arena_.peak(); }

  // Writes a step's contents; positions count from `past`. page_size is the cache's. sample_rows: every token, or the last one of
  // each segment that asks.
  enum class Fit : uint8_t { exact, bucket };
  enum class Rows : uint8_t { last, all };
  void fill(std::span<const SegmentInput> segments, int64_t page_size, Fit fit, Rows rows = Rows::last);
  void plan(std::span<const int32_t> queries, std::span<const int32_t> keys);  // lengths alone

 private:
  void write_segment(const SegmentInput& in, int64_t s, int64_t t, int64_t page_size);
  void write_padding(int64_t s, int64_t t);
  void narrow(int64_t tokens, int64_t segments);
  static int64_t bytes_needed(const BatchCapacity& c);
  BatchCapacity capacity_;
  Arena arena_;
  SegmentLengths lengths_;
  int64_t rows_ = 0;
  Batch full_, batch_;  // of the whole capacity; as last filled
};

}  // namespace ridge
