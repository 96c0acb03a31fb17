// The truth of softmax and its backward: a row at a time in double. Naive for ever.
#include <cmath>
#include <limits>
#include <vector>

#include "ops/softmax/softmax.h"

namespace ridge {

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

int64_t three_quarters(int64_t n) { return n - (n + 3) / 4; }

void forward(const Softmax::Args& a, int64_t counted) {
  const int64_t n = a.x.dims[1];
  std::vector<double> s(n);
  for (int64_t r = 0; r < a.x.dims[0]; ++r) {
    double top = -kInfinity, sum = 0;
    bool wrong = false;
    for (int64_t j = 0; j < n; ++j) {
      s[j] = a.scale * a.x.get(r, j);
      wrong = wrong || std::isnan(s[j]) || s[j] == kInfinity;
      if (s[j] > top) top = s[j];
    }
    for (int64_t j = 0; j < counted; ++j) sum += std::exp(s[j] - top);
    for (int64_t j = 0; j < n; ++j) {
      double y = a.log ? s[j] - top - std::log(sum) : std::exp(s[j] - top) / sum;
      if (top == -kInfinity) y = a.log ? -kInfinity : 0;
      a.y.set(wrong ? kNaN : y, r, j);
    }
  }
}

void backward(const SoftmaxBackward::Args& a, int64_t counted) {
  const int64_t n = a.y.dims[1];
  for (int64_t r = 0; r < a.y.dims[0]; ++r) {
    double sum = 0;
    bool masked = true;
    for (int64_t j = 0; j < n; ++j) {
      const double y = a.y.get(r, j);
      if (j < counted) sum += a.dy.get(r, j) * (a.log ? 1 : y);
      masked = masked && y == (a.log ? -kInfinity : 0);
    }
    if (masked) continue;
    for (int64_t j = 0; j < n; ++j) {
      const double y = a.y.get(r, j), dy = a.dy.get(r, j);
      a.dx.add(a.scale * (a.log ? dy - std::exp(y) * sum : y * (dy - sum)), r, j);
    }
  }
}

}  // namespace

void Softmax::reference(Ctx&, const Args& a, char*) { forward(a, a.x.dims[1]); }
void Softmax::planted(Ctx&, const Args& a, char*) { forward(a, three_quarters(a.x.dims[1])); }
void SoftmaxBackward::reference(Ctx&, const Args& a, char*) { backward(a, a.y.dims[1]); }
void SoftmaxBackward::planted(Ctx&, const Args& a, char*) { backward(a, three_quarters(a.y.dims[1])); }

}  // namespace ridge
