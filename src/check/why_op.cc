#include "check/why_op.h"

#include <fmt/format.h>

#include "check/args.h"
#include "meter/bound.h"

namespace ridge {

namespace {

std::string refusal_of(const RowInfo& r, const void* args, const Runtime& runtime) {
  if (r.tier != Tier::reference && r.place != runtime.place) return r.place == Place::cuda ? "runs on a GPU" : "runs on a CPU";
  if (r.tier != Tier::reference && r.isa > runtime.isa) return std::string("needs ") + isa_name(r.isa);
  const Verdict v = r.supports(args);
  return v ? "" : v.refusal;
}

WhyCase why_case(const OpInfo& op, const CaseInfo& c, const std::string& row_filter, const Runtime& runtime,
                 const Machine& machine) {
  const CaseArgs args(op, c);
  WhyCase w{.case_name = c.name, .shape = op.shape(args.get()), .cost = op.cost(args.get())};
  const Bound b = bound(w.cost, machine);
  w.bound_s = b.seconds;
  w.bound_by = b.by;
  bool found = false;
  for (const RowInfo& r : op.rows()) {
    WhyRow row{r.name, refusal_of(r, args.get(), runtime), false,
               predict(w.cost, r.speed.unit, r.speed.compute, r.speed.memory, machine)};
    row.picked = !found && row.refusal.empty();
    found = found || row.picked;
    if (matches(row.row, row_filter)) w.rows.push_back(std::move(row));
  }
  return w;
}

}  // namespace

std::vector<WhyCase> why_op(const OpInfo& op, const WhyOptions& options, const Runtime& runtime, const Machine& machine) {
  std::vector<WhyCase> all;
  for (const CaseInfo& c : cases_named(op, options.case_filter))
    if (!options.suite || c.suite == *options.suite) all.push_back(why_case(op, c, options.row_filter, runtime, machine));
  return all;
}

std::string to_text(const std::string& op, const std::vector<WhyCase>& cases) {
  std::string s;
  for (const WhyCase& c : cases) {
    s += fmt::format("{} {}: {}, {:.3g} GFLOP, {:.3g} MB, bound {:.1f} us by {}\n", op, c.case_name, c.shape,
                     c.cost.flops() / 1e9, c.cost.bytes() / 1e6, c.bound_s * 1e6, c.bound_by);
    for (const WhyRow& r : c.rows)
      s += fmt::format("  {} {:<20} {:>10.1f} us  {}\n", r.picked ? "*" : " ", r.row, r.predicted_s * 1e6,
                       r.refusal.empty() ? "takes it" : r.refusal);
  }
  return s;
}

}  // namespace ridge
