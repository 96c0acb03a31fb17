// The truth of rms_norm and its backward: a row at a time in double. Naive for ever.
#include <cmath>
#include <vector>

#include "ops/rms_norm/rms_norm.h"

namespace ridge {

namespace {

double weight(const View& w, bool offset_one, int64_t j) { return w ? w.get(j) + offset_one : 1; }

double inverse_rms(const std::vector<double>& s, double eps, int64_t counted) {
  double squares = 0;
  for (int64_t j = 0; j < counted; ++j) squares += s[j] * s[j];
  return 1 / std::sqrt(squares / double(s.size()) + eps);
}

int64_t three_quarters(int64_t n) { return n - (n + 3) / 4; }

void norm(const RmsNorm::Args& a, int64_t counted) {
  const int64_t n = a.x.dims[1];
  std::vector<double> s(n);
  for (int64_t r = 0; r < a.x.dims[0]; ++r) {
    for (int64_t j = 0; j < n; ++j) {
      s[j] = a.x.get(r, j) + (a.add ? a.add.get(r, j) : 0);
      if (!a.sum) continue;
      a.sum.set(s[j], r, j);
      s[j] = a.sum.get(r, j);
    }
    const double inv = inverse_rms(s, a.eps, counted);
    for (int64_t j = 0; j < n; ++j) a.y.set(s[j] * inv * weight(a.w, a.offset_one, j), r, j);
  }
}

void backward(const RmsNormBackward::Args& a, int64_t counted) {
  const int64_t rows = a.x.dims[0], n = a.x.dims[1];
  std::vector<double> s(n), dw(n);
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t j = 0; j < n; ++j) s[j] = a.x.get(r, j) + (a.add ? a.add.get(r, j) : 0);
    const double inv = inverse_rms(s, a.eps, n);
    double dot = 0;
    for (int64_t j = 0; j < counted; ++j) dot += a.dy.get(r, j) * weight(a.w, a.offset_one, j) * s[j];
    for (int64_t j = 0; j < n; ++j) {
      const double g = a.dy.get(r, j) * weight(a.w, a.offset_one, j);
      const double ds = (a.dsum ? a.dsum.get(r, j) : 0) + inv * (g - s[j] * inv * inv * dot / double(n));
      if (a.dadd) a.dadd.add(ds, r, j);
      if (a.dx) a.dx.set(a.dx == a.dsum ? ds : a.dx.get(r, j) + ds, r, j);
      dw[j] += a.dy.get(r, j) * s[j] * inv;
    }
  }
  if (a.dw)
    for (int64_t j = 0; j < n; ++j) a.dw.add(dw[j], j);
}

}  // namespace

void RmsNorm::reference(Ctx&, const Args& a, char*) { norm(a, a.x.dims[1]); }
void RmsNorm::planted(Ctx&, const Args& a, char*) { norm(a, three_quarters(a.x.dims[1])); }
void RmsNormBackward::reference(Ctx&, const Args& a, char*) { backward(a, a.x.dims[1]); }
void RmsNormBackward::planted(Ctx&, const Args& a, char*) { backward(a, three_quarters(a.x.dims[1])); }

}  // namespace ridge
