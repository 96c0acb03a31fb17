// The truth of layer_norm and its backward: a row at a time in double, the variance in two passes. Naive for ever.
#include <cmath>
#include <vector>

#include "ops/layer_norm/layer_norm.h"

namespace ridge {

namespace {

int64_t three_quarters(int64_t n) { return n - (n + 3) / 4; }

// Turns s into (s - mean) / sqrt(variance + eps); returns the factor. `counted`: terms of the variance.
double standardise(std::vector<double>& s, double eps, int64_t counted) {
  double mean = 0, squares = 0;
  for (double v : s) mean += v / double(s.size());
  for (double& v : s) v -= mean;
  for (int64_t j = 0; j < counted; ++j) squares += s[j] * s[j];
  const double inv = 1 / std::sqrt(squares / double(s.size()) + eps);
  for (double& v : s) v *= inv;
  return inv;
}

void norm(const LayerNorm::Args& a, int64_t counted) {
  const int64_t n = a.x.dims[1];
  std::vector<double> s(n);
  for (int64_t r = 0; r < a.x.dims[0]; ++r) {
    for (int64_t j = 0; j < n; ++j) {
      s[j] = a.x.get(r, j) + (a.add ? a.add.get(r, j) : 0);
      if (!a.sum) continue;
      a.sum.set(s[j], r, j);
      s[j] = a.sum.get(r, j);
    }
    standardise(s, a.eps, counted);
    for (int64_t j = 0; j < n; ++j) a.y.set(s[j] * (a.w ? a.w.get(j) : 1) + (a.bias ? a.bias.get(j) : 0), r, j);
  }
}

void backward(const LayerNormBackward::Args& a, int64_t counted) {
  const int64_t rows = a.x.dims[0], n = a.x.dims[1];
  std::vector<double> e(n), dw(n), dbias(n);
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t j = 0; j < n; ++j) e[j] = a.x.get(r, j) + (a.add ? a.add.get(r, j) : 0);
    const double inv = standardise(e, a.eps, n);
    double mean_g = 0, mean_ge = 0;
    for (int64_t j = 0; j < n; ++j) {
      const double g = a.dy.get(r, j) * (a.w ? a.w.get(j) : 1);
      mean_g += g / double(n);
      if (j < counted) mean_ge += g * e[j] / double(n);
    }
    for (int64_t j = 0; j < n; ++j) {
      const double dy = a.dy.get(r, j);
      const double ds = (a.dsum ? a.dsum.get(r, j) : 0) + inv * (dy * (a.w ? a.w.get(j) : 1) - mean_g - e[j] * mean_ge);
      if (a.dadd) a.dadd.add(ds, r, j);
      if (a.dx) a.dx.set(a.dx == a.dsum ? ds : a.dx.get(r, j) + ds, r, j);
      dw[j] += dy * e[j];
      dbias[j] += dy;
    }
  }
  for (int64_t j = 0; j < n; ++j) {
    if (a.dw) a.dw.add(dw[j], j);
    if (a.dbias) a.dbias.add(dbias[j], j);
  }
}

}  // namespace

void LayerNorm::reference(Ctx&, const Args& a, char*) { norm(a, a.x.dims[1]); }
void LayerNorm::planted(Ctx&, const Args& a, char*) { norm(a, three_quarters(a.x.dims[1])); }
void LayerNormBackward::reference(Ctx&, const Args& a, char*) { backward(a, a.x.dims[1]); }
void LayerNormBackward::planted(Ctx&, const Args& a, char*) { backward(a, three_quarters(a.x.dims[1])); }

}  // namespace ridge
