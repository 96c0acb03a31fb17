// Whether the tolerances mean something: a planted bug and generic corruptions must be rejected somewhere.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "base/dtype.h"
#include "check/check_op.h"
#include "check/runner.h"

namespace ridge {

namespace {

// How far a corruption moves a value: a row that quantises its inputs to a few bits cannot tell 1 %.
double shift_of(DType rounds) { return is_block(rounds) ? 0.1 : 0.01; }

void scale_element(const View& v, double by, int64_t i, int64_t j, int64_t k, int64_t l) {
  const double x = v.get(i, j, k, l);
  if (std::isfinite(x)) v.set(is_float(v.type) ? x * by : x + 1, i, j, k, l);
}

// Each returns whether it changed anything. `v` holds a right result.
bool one_element_off(const View& v, double shift) {
  double top = is_float(v.type) ? 0 : -1;
  int64_t at[4] = {};
  for_each_index(v, [&](int64_t i, int64_t j, int64_t k, int64_t l) {
    const double x = std::fabs(v.get(i, j, k, l));
    if (!std::isfinite(x) || x <= top) return;
    top = x;
    at[0] = i, at[1] = j, at[2] = k, at[3] = l;
  });
  if (top < 0 || (top == 0 && is_float(v.type))) return false;
  scale_element(v, 1 + shift, at[0], at[1], at[2], at[3]);
  return true;
}

bool all_scaled(const View& v, double shift) {
  for_each_index(v, [&](int64_t i, int64_t j, int64_t k, int64_t l) { scale_element(v, 1 + shift, i, j, k, l); });
  return v.count() > 0;
}

double largest_finite(const View& v) {
  double top = 0;
  for_each_index(v, [&](int64_t i, int64_t j, int64_t k, int64_t l) {
    const double x = std::fabs(v.get(i, j, k, l));
    if (std::isfinite(x)) top = std::max(top, x);
  });
  return top;
}

// Whether two rows differ by more than a corruption has to: rows that are alike (padding, pages nobody wrote) prove nothing.
bool rows_differ(const View& v, int64_t one, int64_t other, double shift) {
  const View a = v.rows(one, 1), b = v.rows(other, 1);
  const double least = shift * largest_finite(v);
  bool differ = false;
  for_each_index(a, [&](int64_t i, int64_t j, int64_t k, int64_t l) {
    const double x = a.get(i, j, k, l), y = b.get(i, j, k, l);
    differ = differ || (std::isfinite(x) && std::isfinite(y) ? std::fabs(x - y) > least : std::isnan(x) != std::isnan(y));
  });
  return differ;
}

bool last_row_stale(const View& v, double shift) {  // what an earlier row left there
  const int64_t last = v.dims[0] - 1;
  if (last < 1 || !rows_differ(v, 0, last, shift)) return false;
  copy_elements(v.rows(0, 1), v.rows(last, 1));
  return true;
}

bool two_rows_swapped(const View& v, double shift) {
  int64_t first = 0;
  while (first + 1 < v.dims[0] && !rows_differ(v, first, first + 1, shift)) ++first;
  if (first + 1 >= v.dims[0]) return false;
  const View a = v.rows(first, 1), b = v.rows(first + 1, 1);
  for_each_index(a, [&](int64_t i, int64_t j, int64_t k, int64_t l) {
    const double x = a.get(i, j, k, l), y = b.get(i, j, k, l);
    a.set(y, i, j, k, l);
    b.set(x, i, j, k, l);
  });
  return true;
}

struct Corruption {
  const char* name;
  bool (*apply)(const View&, double shift);
};
constexpr Corruption kCorruptions[] = {{"one element off", one_element_off},
                                       {"everything scaled", all_scaled},
                                       {"last row stale", last_row_stale},
                                       {"two rows swapped", two_rows_swapped}};

struct Verdicts {
  std::map<std::string, bool> rejected;  // by name; present once it was tried
  void note(const std::string& name, bool was_rejected) {
    bool& r = rejected[name];
    r = r || was_rejected;
  }
};

void corrupt_case(const OpInfo& op, Judge& judge, Runner& runner, DType rounds, Verdicts& verdicts) {
  const CaseArgs &truth = judge.truth(), &twin = judge.twin(rounds);
  CaseArgs bad(judge.made(), {.decoded = true});
  runner.planted(bad);
  verdicts.note("the planted bug", !compare_outputs(bad, truth, twin, op.accuracy).ok());
  CaseArgs good(judge.made(), {.decoded = true});
  runner.reference(good);
  good.arm();
  for (int o = 0; o < good.operands(); ++o) {
    if (!good.output(o) || !good.has(o) || good.view(o).count() == 0) continue;
    if (is_block(good.view(o).type)) continue;  // no single element can be moved; other cases have the operand in plain types
    for (const Corruption& c : kCorruptions) {
      if (c.apply(good.view(o), shift_of(rounds)))
        verdicts.note(fmt::format("{} in {}", c.name, op.operands[size_t(o)].name),
                      !compare_outputs(good, truth, twin, op.accuracy).ok());
      good.restore();
    }
  }
}

}  // namespace

std::vector<Failure> check_rejections(const OpInfo& op, const CheckOptions& options) {
  Runner runner(options.isa);
  std::map<DType, Verdicts> by_rounding;
  for (const RowInfo& r : op.rows()) by_rounding[r.rounds];
  for (const CaseInfo& c : cases_named(op, options.case_filter)) {
    if (c.suite > Suite::edge) continue;
    Judge judge(op, c, runner);
    if (!op.check(judge.made().get()).empty()) continue;  // check_op complains
    for (auto& [rounds, verdicts] : by_rounding) corrupt_case(op, judge, runner, rounds, verdicts);
  }
  std::vector<Failure> failures;
  for (const auto& [rounds, verdicts] : by_rounding)
    for (const auto& [name, rejected] : verdicts.rejected)
      if (!rejected)
        failures.push_back(
            {"", "", fmt::format("no smoke or edge case rejects {} (inputs rounded to {})", name, name_of(rounds)), ""});
  return failures;
}

}  // namespace ridge
