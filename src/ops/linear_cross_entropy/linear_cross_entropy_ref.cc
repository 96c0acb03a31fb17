// The truth of linear_cross_entropy and its backward: whole rows of logits in double. Naive for ever.
#include <algorithm>
#include <cmath>
#include <vector>

#include "base/check.h"
#include "ops/linear_cross_entropy/linear_cross_entropy.h"

namespace ridge {

namespace {

// -1 where the token is ignored.
int64_t target_of(const View& target, int64_t t, int64_t vocab) {
  const int64_t id = int64_t(target.get(t));
  RIDGE_CHECK(id < vocab, "linear_cross_entropy: token " + std::to_string(t) + " has target " + std::to_string(id) +
                              ", the vocabulary has " + std::to_string(vocab));
  return std::max<int64_t>(id, -1);
}

std::vector<double> logits_of(const View& h, const View& w, double softcap, int64_t t) {  // [vocab]
  std::vector<double> z(w.dims[0]);
  for (int64_t v = 0; v < w.dims[0]; ++v) {
    double s = 0;
    for (int64_t k = 0; k < w.dims[1]; ++k) s += h.get(t, k) * w.get(v, k);
    z[v] = softcap > 0 ? softcap * std::tanh(s / softcap) : s;
  }
  return z;
}

double log_sum_exp(const std::vector<double>& z) {
  const double top = *std::max_element(z.begin(), z.end());
  double sum = 0;
  for (double x : z) sum += std::exp(x - top);
  return top + std::log(sum);
}

void forward(const LinearCrossEntropy::Args& a, bool first_weight) {
  double loss = 0;
  for (int64_t t = 0; t < a.h.dims[0]; ++t) {
    const int64_t target = target_of(a.target, t, a.w.dims[0]);
    if (target < 0) {
      if (a.lse) a.lse.set(0, t);
      continue;
    }
    const std::vector<double> z = logits_of(a.h, a.w, a.softcap, t);
    const double lse = log_sum_exp(z);
    if (a.lse) a.lse.set(lse, t);
    loss += a.weight.get(first_weight ? 0 : t) * (lse - z[target]);
  }
  a.loss.set(loss);
}

void backward(const LinearCrossEntropyBackward::Args& a, bool first_weight) {
  const int64_t tokens = a.h.dims[0], k = a.h.dims[1], vocab = a.w.dims[0];
  std::vector<std::vector<double>> dz(tokens);  // [tokens][vocab], empty for ignored tokens
  for (int64_t t = 0; t < tokens; ++t) {
    const int64_t target = target_of(a.target, t, vocab);
    if (target < 0) continue;
    dz[t] = logits_of(a.h, a.w, a.softcap, t);
    for (int64_t v = 0; v < vocab; ++v) {
      const double z = dz[t][v], slope = a.softcap > 0 ? 1 - z / a.softcap * (z / a.softcap) : 1;
      const double p = std::exp(z - a.lse.get(t));
      dz[t][v] =
          (a.dloss.get() * a.weight.get(first_weight ? 0 : t) * (p - (v == target)) + (a.dlse ? a.dlse.get(t) * p : 0)) * slope;
    }
  }
  for (int64_t j = 0; j < k; ++j) {
    for (int64_t t = 0; a.dh && t < tokens; ++t) {
      double s = 0;
      for (size_t v = 0; v < dz[t].size(); ++v) s += dz[t][v] * a.w.get(int64_t(v), j);
      if (!dz[t].empty()) a.dh.add(s, t, j);
    }
    for (int64_t v = 0; a.dw && v < vocab; ++v) {
      double s = 0;
      for (int64_t t = 0; t < tokens; ++t)
        if (!dz[t].empty()) s += dz[t][v] * a.h.get(t, j);
      a.dw.add(s, v, j);
    }
  }
}

}  // namespace

void LinearCrossEntropy::reference(Ctx&, const Args& a, char*) { forward(a, false); }
void LinearCrossEntropy::planted(Ctx&, const Args& a, char*) { forward(a, true); }
void LinearCrossEntropyBackward::reference(Ctx&, const Args& a, char*) { backward(a, false); }
void LinearCrossEntropyBackward::planted(Ctx&, const Args& a, char*) { backward(a, true); }

}  // namespace ridge
