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
    : capacity_(capacity), arena_(memory ? bytes_needed(capacity) : 0), full_(carve(arena_, capacity, &lengths_)), batch_(full_) {
  lengths_.queries.reserve(capacity.segments);
  lengths_.keys.reserve(capacity.segments);
}

void BatchBuffers::plan(std::span<const int32_t> queries, std::span<const int32_t> keys) {
  lengths_.queries.assign(queries.begin(), queries.end());
  lengths_.keys.assign(keys.begin(), keys.end());
}

void BatchBuffers::fill(std::span<const SegmentInput> segments, int64_t page_size, Fit fit, Rows rows) {
  RIDGE_CHECK(int64_t(segments.size()) <= capacity_.segments, "more segments than the batch's capacity");
  lengths_.queries.clear();
  lengths_.keys.clear();
  rows_ = 0;
  int64_t t = 0, s = 0;
  for (const SegmentInput& in : segments) {
    write_segment(in, s++, t, page_size);
    const int64_t n = int64_t(in.ids.size());
    for (int64_t i = rows == Rows::all ? 0 : n - 1; i < n && in.sampled; ++i) {
      RIDGE_CHECK(rows_ < capacity_.rows, "more sample rows than the batch's capacity");
      full_.sample_rows.as<int32_t>()[rows_++] = int32_t(t + i);
    }
    t += n;
  }
  write_padding(s, t);
  KvCache const* cache = batch_.cache;
  batch_ = full_;
  batch_.cache = cache;
  if (fit == Fit::exact) return narrow(t, s);
  lengths_.queries.resize(capacity_.segments, 0);  // a bucket's empty segments
  lengths_.keys.resize(capacity_.segments, 0);
}

void BatchBuffers::write_segment(const SegmentInput& in, int64_t s, int64_t t, int64_t page_size) {
  const int64_t n = int64_t(in.ids.size());
  RIDGE_CHECK(t + n <= capacity_.tokens, "more tokens than the batch's capacity");
  full_.segments.cu_seqlens.as<int32_t>()[s] = int32_t(t);
  full_.segments.kv_lens.as<int32_t>()[s] = int32_t(in.past + n);
  for (int64_t i = 0; i < n; ++i) {
    full_.ids.as<int32_t>()[t + i] = in.ids[i];
    full_.positions.of.as<int32_t>()[t + i] = int32_t(in.past + i);
  }
  lengths_.queries.push_back(int32_t(n));
  lengths_.keys.push_back(int32_t(in.past + n));
  if (!full_.pages) return;
  RIDGE_CHECK(int64_t(in.pages.size()) <= capacity_.pages && int64_t(in.pages.size()) * page_size >= in.past + n,
              "a segment's pages do not hold its tokens");
  std::copy(in.pages.begin(), in.pages.end(), full_.pages.table.as<int32_t>(s));
  int64_t* slots = full_.pages.slots.as<int64_t>(t);
  for (int64_t i = 0; i < n; ++i) slots[i] = in.pages[(in.past + i) / page_size] * page_size + (in.past + i) % page_size;
}

// Empty segments at the end, tokens that belong to none and are written nowhere, rows nobody wants.
void BatchBuffers::write_padding(int64_t s, int64_t t) {
  for (int64_t i = s; i <= capacity_.segments; ++i) full_.segments.cu_seqlens.as<int32_t>()[i] = int32_t(t);
  std::fill(full_.segments.kv_lens.as<int32_t>(s), full_.segments.kv_lens.as<int32_t>(capacity_.segments), 0);
  std::fill(full_.ids.as<int32_t>(t), full_.ids.as<int32_t>(capacity_.tokens), -1);
  std::fill(full_.positions.of.as<int32_t>(t), full_.positions.of.as<int32_t>(capacity_.tokens), 0);
  if (full_.pages) std::fill(full_.pages.slots.as<int64_t>(t), full_.pages.slots.as<int64_t>(capacity_.tokens), -1);
  if (full_.sample_rows) std::fill(full_.sample_rows.as<int32_t>(rows_), full_.sample_rows.as<int32_t>(capacity_.rows), -1);
}

void BatchBuffers::narrow(int64_t tokens, int64_t segments) {
  batch_.ids = full_.ids.rows(0, tokens);
  batch_.positions.of = full_.positions.of.rows(0, tokens);
  batch_.segments.cu_seqlens = full_.segments.cu_seqlens.rows(0, segments + 1);
  batch_.segments.kv_lens = full_.segments.kv_lens.rows(0, segments);
  if (full_.pages) batch_.pages = {full_.pages.table.rows(0, segments), full_.pages.slots.rows(0, tokens)};
  if (full_.sample_rows) batch_.sample_rows = full_.sample_rows.rows(0, rows_);
  if (full_.targets) batch_.targets = full_.targets.rows(0, tokens), batch_.loss_weights = full_.loss_weights.rows(0, tokens);
}

}  // namespace ridge
