// What the CPU rows of attention hand to their ISA code: plain data, no functions (see tile/cpu/isa_table.h).
//
// A row is one (query, head of the group) of a segment and a key head: row r is query r / group and head kv_head * group + r %
// group. A task is a tile of rows against a range of keys. Strides count elements; the innermost stride is 1 everywhere.
#pragma once
#include <cstdint>

namespace ridge {

enum class CpuFloat : uint8_t { f32, f16, bf16, q8 };  // q8: Q8_0 blocks, keys and values alone

// A task's rows: their queries and results are on the stack, padded to whole tiles, and meant for half of the second-level cache.
constexpr int64_t kTaskStateBytes = 512 << 10, kDimPad = 32;
constexpr int64_t kMostTaskRows = 512;

struct HeadView {  // [tokens, heads, n]
  void* data;
  CpuFloat type;
  int64_t token, head;
};
struct KeyView {  // [pages, kv_heads, page, n]; flat: page 0, tokens in its rows
  const void* data;
  CpuFloat type;
  int64_t page, head, row;
};

struct AttentionCall {
  HeadView q, o;
  KeyView k, v;
  float* lse;  // null: not asked for
  int64_t lse_token, lse_head;
  const float* sinks;  // null: none
  int64_t sink_stride;
  int64_t d, dv, group, page;  // page: keys of a page
  float scale, softcap;
  int64_t window;
  bool causal;
};

struct AttentionTask {
  int64_t first_token, queries, keys;  // the segment
  const int32_t* table;                // its pages, table_stride apart; null: flat
  int64_t table_stride;
  int64_t key_from, key_to;  // the keys of this task, of those that its rows see
  int32_t kv_head, first_row, rows;
  int32_t partials;  // of how many tasks the rows' results are made
  float* partial;    // [rows, dv + 2]: o before the division, maximum, sum. Null: finish here
};

struct AttentionCpu {
  int few_rows, block_keys;                                   // rows `few` takes, keys of a block
  void (*flash)(const AttentionCall&, const AttentionTask&);  // as many rows as kTaskStateBytes holds, a lane each
  void (*few)(const AttentionCall&, const AttentionTask&);    // up to few_rows rows, features in the lanes
  void (*merge)(const AttentionCall&, const AttentionTask&);  // the partials that start at task.partial
};
struct AttentionTiles {  // what a level with matrix tiles does instead
  void (*flash)(const AttentionCall&, const AttentionTask&);
};

// The backward pass. Gradients are f32 and accumulated into.
struct AttentionGrad {
  HeadView q, k, v, o, d_o;
  const float *lse, *d_lse;  // d_lse null: none arrives
  int64_t lse_token, lse_head, d_lse_token, d_lse_head;
  float* delta;  // [tokens, heads]: D of attention.h
  int64_t heads, group, d, dv;
  HeadView dq, dk, d_v;  // f32; data null: not wanted
  float scale, softcap;
  int64_t window;
  bool causal;
};

struct AttentionGradTask {
  int64_t first_token, tokens;  // the segment
  int32_t kv_head;
  int32_t first, count;  // rows of the segment, or keys
  bool keys;
};

struct AttentionGradCpu {
  int tile;                                                         // rows or keys of a task
  void (*deltas)(const AttentionGrad&, int64_t from, int64_t to);   // tokens
  void (*queries)(const AttentionGrad&, const AttentionGradTask&);  // dq of a tile of rows
  void (*keys)(const AttentionGrad&, const AttentionGradTask&);     // dk and d_v of a tile of keys
};

}  // namespace ridge
