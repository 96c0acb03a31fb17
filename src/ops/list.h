// Every op. A line here and a folder beside it (docs/adding_an_op.md) give it tests, gradient checks, benches and tables.
#pragma once
#include <span>

#include "ops/op.h"

// An entry a line, whatever clang-format thinks.
// clang-format off
#define RIDGE_OPS(op) \
  op(gemm) \
  op(rms_norm) \
  op(rms_norm_backward) \
  op(layer_norm) \
  op(layer_norm_backward) \
  op(glu) \
  op(glu_backward) \
  op(softmax) \
  op(softmax_backward) \
  op(embed) \
  op(embed_backward) \
  op(accumulate) \
  op(linear_cross_entropy) \
  op(linear_cross_entropy_backward) \
  op(adamw) \
  op(attention) \
  op(attention_backward) \
  op(rope) \
  op(rope_backward) \
  op(sample) \
  /* end of list */
// clang-format on

namespace ridge {

std::span<const OpInfo> all_ops();
const OpInfo* find_op(const char* name);  // null when unknown

}  // namespace ridge
