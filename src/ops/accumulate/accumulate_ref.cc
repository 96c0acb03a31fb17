// The truth of accumulate: y's elements one by one, each a sum in double over the dimensions that y repeats. Naive for ever.
#include "ops/accumulate/accumulate.h"

namespace ridge {

namespace {

void add(const Accumulate::Args& a, bool overwrite) {
  int64_t own[4], over[4];  // y's own elements; how many of x's fall on each
  for (int d = 0; d < 4; ++d) {
    const bool repeated = d >= a.y.rank || a.y.strides[d] == 0;
    own[d] = repeated ? 1 : a.y.dims[d];
    over[d] = repeated ? a.x.dims[d] : 1;
  }
  for (int64_t i = 0; i < own[0]; ++i)
    for (int64_t j = 0; j < own[1]; ++j)
      for (int64_t k = 0; k < own[2]; ++k)
        for (int64_t l = 0; l < own[3]; ++l) {
          double sum = 0;
          for (int64_t p = 0; p < over[0]; ++p)
            for (int64_t q = 0; q < over[1]; ++q)
              for (int64_t r = 0; r < over[2]; ++r)
                for (int64_t s = 0; s < over[3]; ++s) sum += a.x.get(i + p, j + q, k + r, l + s);
          a.y.set(a.scale * sum + (overwrite ? 0 : a.y.get(i, j, k, l)), i, j, k, l);
        }
}

}  // namespace

void Accumulate::reference(Ctx&, const Args& a, char*) { add(a, false); }
void Accumulate::planted(Ctx&, const Args& a, char*) { add(a, true); }

}  // namespace ridge
