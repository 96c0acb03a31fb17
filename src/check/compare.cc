#include "check/compare.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace ridge {

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

bool same_special(double a, double b) { return std::isnan(a) ? std::isnan(b) : a == b; }

struct Scale {
  double twin_error = 0, truth = 0;  // maxima over the finite elements
};

Scale scale_of(const View& truth, const View& twin) {
  Scale s;
  for_each_index(truth, [&](int64_t i, int64_t j, int64_t k, int64_t l) {
    const double t = truth.get(i, j, k, l), w = twin.get(i, j, k, l);
    if (!std::isfinite(t) || !std::isfinite(w)) return;
    s.twin_error = std::max(s.twin_error, std::fabs(w - t));
    s.truth = std::max(s.truth, std::fabs(t));
  });
  return s;
}

void visit(Worst& worst, const char* operand, const int64_t (&at)[4], double got, double truth, double twin, double tolerance) {
  double used;
  if (!std::isfinite(truth))
    used = same_special(got, truth) ? 0 : kInfinity;
  else if (!std::isfinite(twin) && same_special(got, twin))
    used = 0;
  else if (!std::isfinite(got))
    used = kInfinity;
  else if (got == truth)
    used = 0;
  else
    used = tolerance > 0 ? std::fabs(got - truth) / tolerance : kInfinity;
  if (used <= worst.used && !worst.operand.empty()) return;
  worst = {operand, {at[0], at[1], at[2], at[3]}, got, truth, tolerance, used};
}

void compare_operand(Worst& worst, const char* name, const View& got, const View& truth, const View& twin,
                     const Accuracy& accuracy) {
  const bool floating = is_float(got.type) || is_block(got.type);
  const Scale s = floating ? scale_of(truth, twin) : Scale{};
  const double tolerance = accuracy.relative * s.twin_error + accuracy.floor * 0x1p-24 * s.truth;
  for_each_index(got, [&](int64_t i, int64_t j, int64_t k, int64_t l) {
    const int64_t at[4] = {i, j, k, l};
    visit(worst, name, at, got.get(i, j, k, l), truth.get(i, j, k, l), twin.get(i, j, k, l), tolerance);
  });
}

}  // namespace

std::string to_string(const Worst& w) {
  return fmt::format("{}[{}, {}, {}, {}]: got {:.9g}, truth {:.9g}, tolerance {:.3g}", w.operand, w.index[0], w.index[1],
                     w.index[2], w.index[3], w.got, w.truth, w.tolerance);
}

Worst compare_outputs(const CaseArgs& got, const CaseArgs& truth, const CaseArgs& twin, const Accuracy& accuracy) {
  Worst worst;
  for (int o = 0; o < got.operands(); ++o)
    if (got.output(o) && got.has(o))
      compare_operand(worst, got.op().operands[size_t(o)].name, got.view(o), truth.view(o), twin.view(o), accuracy);
  return worst;
}

std::optional<Worst> first_difference(const CaseArgs& a, const CaseArgs& b) {
  std::optional<Worst> found;
  for (int o = 0; o < a.operands() && !found; ++o) {
    if (!a.output(o) || !a.has(o)) continue;
    const View &u = a.view(o), &v = b.view(o);
    for_each_index(u, [&](int64_t i, int64_t j, int64_t k, int64_t l) {
      const double x = u.get(i, j, k, l), y = v.get(i, j, k, l);
      const bool same = std::isnan(x) ? std::isnan(y) : x == y && std::signbit(x) == std::signbit(y);
      if (!same && !found) found = Worst{a.op().operands[size_t(o)].name, {i, j, k, l}, x, y, 0, kInfinity};
    });
  }
  return found;
}

}  // namespace ridge
