#include "model/batch.h"

#include <algorithm>

#include "base/check.h"

namespace ridge {

KvCache alloc_kv_cache(Arena& a, const KvShape& shape, int64_t pages, int64_t page_size, DType type) {
  KvCache c{{}, pages, page_size, 0};
  const int64_t from = a.mark();
  for (int64_t i = 0; i < shape.layers; ++i)
    c.layers.push_back({a.alloc({pages, shape.kv_heads, page_size, shape.head_dim}, type),
                        a.alloc({pages, shape.kv_heads, page_size, shape.head_dim}, type)});
  c.bytes = a.mark() - from;
  return c;
}

namespace {

Batch carve(Arena& a, const BatchCapacity& c, const SegmentLengths* lengths) {
  Batch b;
  b.ids = a.alloc({c.tokens}, DType::i32);
  b.positions = {a.alloc({c.tokens}, DType::i32)};
  b.segments = {a.alloc({c.segments + 1}, DType::i32), a.alloc({c.segments}, DType::i32), lengths};
  if (c.pages > 0) b.pages = {a.alloc({c.segments, c.pages}, DType::i32), a.alloc({c.tokens}, DType::i64)};
  if (c.rows > 0) b.sample_rows = a.alloc({c.rows}, DType::i32);
  if (c.targets) {
    b.targets = a.alloc({c.tokens}, DType::i32);
    b.loss_weights = a.alloc({c.tokens}, c.weight_type);
  }
  return b;
}

}  // namespace

int64_t BatchBuffers::bytes_needed(const BatchCapacity& c) {
  Arena measure;
  carve(measure, c, nullptr);
  return measure.peak();
}

BatchBuffers::BatchBuffers(const BatchCapacity& capacity, bool memory)
    : capacity_(capacity), arena_(memory ? bytes_needed(capacity) : 0), batch_(carve(arena_, capacity, &lengths_)) {
  lengths_.queries.reserve(capacity.segments);
  lengths_.keys.reserve(capacity.segments);
}

void BatchBuffers::plan(std::span<const int32_t> queries, std::span<const int32_t> keys) {
  lengths_.queries.assign(queries.begin(), queries.end());
  lengths_.keys.assign(keys.begin(), keys.end());
}

void BatchBuffers::fill(std::span<const SegmentInput> segments, int64_t page_size) {
  RIDGE_CHECK(int64_t(segments.size()) <= capacity_.segments, "more segments than the batch's capacity");
  lengths_.queries.clear();
  lengths_.keys.clear();
  int32_t* ids = batch_.ids.as<int32_t>();
  int32_t* positions = batch_.positions.of.as<int32_t>();
  int32_t* cu = batch_.segments.cu_seqlens.as<int32_t>();
  int32_t* kv = batch_.segments.kv_lens.as<int32_t>();
  int64_t t = 0, s = 0;
  for (const SegmentInput& in : segments) {
    const int64_t n = int64_t(in.ids.size());
    RIDGE_CHECK(t + n <= capacity_.tokens, "more tokens than the batch's capacity");
    cu[s] = int32_t(t);
    kv[s] = int32_t(in.past + n);
    for (int64_t i = 0; i < n; ++i) {
      ids[t + i] = in.ids[i];
      positions[t + i] = int32_t(in.past + i);
    }
    if (batch_.pages) {
      RIDGE_CHECK(int64_t(in.pages.size()) <= capacity_.pages && int64_t(in.pages.size()) * page_size >= in.past + n,
                  "a segment's pages do not hold its tokens");
      int32_t* table = batch_.pages.table.as<int32_t>(s);
      std::copy(in.pages.begin(), in.pages.end(), table);
      int64_t* slots = batch_.pages.slots.as<int64_t>(t);
      for (int64_t i = 0; i < n; ++i) slots[i] = in.pages[(in.past + i) / page_size] * page_size + (in.past + i) % page_size;
    }
    lengths_.queries.push_back(int32_t(n));
    lengths_.keys.push_back(kv[s]);
    t += n;
    ++s;
  }
  // Padding: empty segments at the end, tokens that belong to none and are written nowhere.
  for (int64_t i = s; i <= capacity_.segments; ++i) cu[i] = int32_t(t);
  for (int64_t i = s; i < capacity_.segments; ++i) kv[i] = 0;
  for (int64_t i = t; i < capacity_.tokens; ++i) {
    ids[i] = -1;
    positions[i] = 0;
    if (batch_.pages) batch_.pages.slots.as<int64_t>()[i] = -1;
  }
  if (batch_.sample_rows) std::fill_n(batch_.sample_rows.as<int32_t>(), capacity_.rows, -1);
}

void BatchBuffers::sample_last_rows() {
  RIDGE_CHECK(capacity_.rows >= int64_t(lengths_.queries.size()), "fewer sample rows than segments");
  int32_t* rows = batch_.sample_rows.as<int32_t>();
  const int32_t* cu = batch_.segments.cu_seqlens.as<int32_t>();
  for (size_t s = 0; s < lengths_.queries.size(); ++s) rows[s] = lengths_.queries[s] ? cu[s + 1] - 1 : -1;
}

}  // namespace ridge
