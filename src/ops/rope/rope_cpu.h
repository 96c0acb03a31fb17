// What the CPU rows of rope hand to their ISA code: plain data, no functions (see tile/cpu/isa_table.h).
// Strides count elements; the innermost stride is 1 everywhere.
#pragma once
#include <cstdint>

namespace ridge {

enum class RopeFloat : uint8_t { f32, f16, bf16, q8 };  // q8: Q8_0 blocks, pages alone

struct RopeView {  // [tokens, heads, n], or [pages, kv_heads, page, n] with `row` in use
  void* data;      // null: absent
  RopeFloat type;
  int64_t outer, head, row;
};

// steps[i]: frequency i in turns a position, as a 64-bit fraction of a turn. position * step wraps round by itself, exactly.
struct RopeTurn {
  const uint64_t* steps;  // [half]
  int64_t half, d;
  bool interleaved;
  float m;
  const int32_t* positions;
  int64_t position_stride;
};

struct RopeCall {
  RopeTurn turn;
  RopeView q, k, v, q_out, k_out, k_pages, v_pages;
  int64_t heads, kv_heads, dv, page;
  const int64_t* slots;
  int64_t slot_stride;
  const float *q_norm, *k_norm;  // [d]; null: none
  float eps;
};

struct RopeGradCall {  // q's half of the backward pass, or k's
  RopeTurn turn;
  RopeView d_out, x, dx;  // d_out, dx: f32; dx is added to
  int64_t heads;
  const float* norm;
  float* d_norm;  // [d] of this task alone, overwritten; null: not wanted
  float eps;
};

struct RopeCpu {
  void (*forward)(const RopeCall&, int64_t from, int64_t to);  // tokens [from, to)
  void (*backward)(const RopeGradCall&, int64_t from, int64_t to);
};

}  // namespace ridge
