// Every block-quantised format. A line here and a file beside it (see docs/adding_a_format.md) make a format known to the loader,
// to gemm and embed, to `plan`'s bytes and to the round-trip tests.
#pragma once

// An entry a line, whatever clang-format thinks.
// clang-format off
#define RIDGE_FORMATS(format) \
  format(q4_0) \
  format(q4_1) \
  format(q8_0) \
  format(q4_k) \
  format(q6_k) \
  /* end of list */

// Those that gemm reads woven (formats/woven.cc): each of these has a type more, q4_0_woven.
#define RIDGE_WOVEN_FORMATS(format) \
  format(q4_0) \
  format(q4_1) \
  format(q8_0) \
  format(q4_k) \
  format(q6_k) \
  /* end of list */
// clang-format on
