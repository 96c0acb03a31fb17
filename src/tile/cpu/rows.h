// Loops over a row in vec.h's words, for the ISA files of row-wise ops. A step is called as f(i) for full vectors and as f(i, lanes)
// for the tail, so that full loads carry no mask: write it as [&](int64_t i, auto... n) { ... load(p + i, n...) ... }.
#pragma once
#include "tile/cpu/vec.h"

namespace ridge::RIDGE_ISA {
namespace {

template <class F>
RIDGE_INLINE void each(int64_t n, F&& f) {
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) f(i);
  if (i < n) f(i, int(n - i));
}

// Folds a row into lanes: acc = f(acc, i, lanes...), in four strands that hide the latency of an add. In the tail, the lanes past
// the row see zeros, as load(p, n) gives.
template <class F, class Join>
RIDGE_INLINE Vec fold(int64_t n, Vec start, F&& f, Join&& join) {
  Vec a = start, b = start, c = start, d = start;
  int64_t i = 0;
  for (; i + 4 * kLanes <= n; i += 4 * kLanes) {
    a = f(a, i);
    b = f(b, i + kLanes);
    c = f(c, i + 2 * kLanes);
    d = f(d, i + 3 * kLanes);
  }
  for (; i + kLanes <= n; i += kLanes) a = f(a, i);
  if (i < n) b = f(b, i, int(n - i));
  return join(join(a, b), join(c, d));
}

template <class F>
RIDGE_INLINE float sum_of(int64_t n, F&& f) {
  return reduce_add(fold(n, zero(), f, [](Vec a, Vec b) { return a + b; }));
}

// Lanes of a tail: those past the row are set to x. A full vector has none.
RIDGE_INLINE Vec past(float, Vec v) { return v; }
RIDGE_INLINE Vec past(float x, Vec v, int n) { return select(first(n), v, broadcast(x)); }

}  // namespace
}  // namespace ridge::RIDGE_ISA
