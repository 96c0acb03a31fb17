// The questions that contracts ask about views again and again. An absent view passes.
#pragma once
#include <initializer_list>

#include "base/view.h"

namespace ridge {

inline bool same_dims(const View& v, const View& like) {
  bool same = v.rank == like.rank;
  for (int i = 0; i < 4; ++i) same = same && v.dims[i] == like.dims[i];
  return same;
}
inline bool fits(const View& v, const View& like) { return !v || same_dims(v, like); }
inline bool fits_row(const View& v, int64_t n) { return !v || (v.rank == 1 && v.dims[0] == n); }
inline bool all_float(std::initializer_list<View> views) {
  for (const View& v : views)
    if (v && !is_float(v.type)) return false;
  return true;
}

}  // namespace ridge
