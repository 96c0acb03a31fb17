#include "check/check_op.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <iterator>
#include <set>

#include "check/runner.h"

namespace ridge {

namespace {

constexpr Placement kPlacements[] = {Placement::strided, Placement::offset, Placement::guard_after, Placement::guard_before};

Fence fence_of(Placement p) { return p == Placement::guard_after ? Fence::guard_after : Fence::canaries; }

double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

std::string repro_line(const OpInfo& op, const std::string& case_name, const char* row, int threads) {
  return fmt::format("ridgeline op check {} --case {} --row {}{}", op.name, case_name, row,
                     threads == CheckOptions().threads ? "" : fmt::format(" -t {}", threads));
}

// One case against one row.
class RowCheck {
 public:
  RowCheck(const OpInfo& op, const CaseInfo& c, const RowInfo& row, int threads, Judge& judge, Runner& runner,
           CheckReport& report, RowSummary& summary)
      : op_(op),
        case_(c),
        row_(row),
        threads_(threads),
        judge_(judge),
        runner_(runner),
        report_(report),
        summary_(summary),
        base_(judge.made(), {}) {}

  void run() {
    base_.arm();
    ++summary_.cases;
    if (!launch(base_, threads_, Placement::own)) return;
    const Worst worst = compare_outputs(base_, judge_.truth(), judge_.twin(row_.rounds), op_.accuracy);
    if (worst.used > summary_.worst_used || summary_.worst_case.empty()) {
      summary_.worst_used = worst.used;
      summary_.worst_case = case_.name;
    }
    if (!worst.ok()) return fail("inaccurate: " + to_string(worst));
    const bool reference = row_.tier == Tier::reference;
    if (!reference) repeats();
    for (Placement p : kPlacements)
      if (!reference || (p == Placement::strided && case_.suite <= Suite::edge)) place(p);
  }

 private:
  void fail(const std::string& what) {
    report_.failures.push_back({case_.name, row_.name, what, repro_line(op_, case_.name, row_.name, threads_)});
  }

  std::string describe(const char* run) const {
    return fmt::format("{}: case {}, row {}, {}: touched memory outside its operands (a fault).\n  {}", op_.name, case_.name,
                       row_.name, run, repro_line(op_, case_.name, row_.name, threads_));
  }

  bool launch(CaseArgs& args, int threads, Placement p) {
    ++report_.runs;
    const std::string run = fmt::format("{} operands, {} threads", name_of(p), threads);
    const std::string stray = runner_.run(row_, args, threads, fence_of(p), describe(run.c_str()));
    if (!stray.empty()) return fail(run + ": " + stray), false;
    if (const std::string damage = args.damage(); !damage.empty()) return fail(run + ": " + damage), false;
    return true;
  }

  void expect_same(const CaseArgs& args, const std::string& what) {
    if (const auto d = first_difference(args, base_))
      fail(fmt::format("{}: {}[{}, {}, {}, {}] is {:.9g}, first it was {:.9g}", what, d->operand, d->index[0], d->index[1],
                       d->index[2], d->index[3], d->got, d->truth));
  }

  // Again, on one thread, and on one more: that makes the last share of an even split a short one.
  void repeats() {
    CaseArgs again(judge_.made(), {});
    again.arm();
    for (int threads : {threads_, 1, threads_ + 1}) {
      if (!launch(again, threads, Placement::own)) return;
      expect_same(again, threads == threads_ ? "a second run differs"
                                             : fmt::format("{} threads give another result than {}", threads, threads_));
      again.restore();
    }
  }

  bool refused(const CaseArgs& args) { return !op_.check(args.get()).empty() || !row_.supports(args.get()); }

  void place(Placement p) {
    CaseArgs all(judge_.made(), {.placement = p});
    if (!refused(all)) return placed(all, p, "all operands");
    ++summary_.refused_placements;
    if (case_.suite > Suite::edge) return;
    dispatched(all, p);
    for (int o = 0; o < all.operands(); ++o) {
      if (!all.has(o)) continue;
      CaseArgs one(judge_.made(), {.placement = p, .only = o});
      if (!refused(one)) placed(one, p, op_.operands[size_t(o)].name);
    }
  }

  void placed(CaseArgs& args, Placement p, const std::string& which) {
    args.arm();
    if (!launch(args, threads_, p)) return;
    expect_same(args, fmt::format("{} placement of {} changes the result", name_of(p), which));
  }

  // The contract takes the operands but this row does not: what runs instead must be right.
  void dispatched(CaseArgs& args, Placement p) {
    if (!op_.check(args.get()).empty()) return;
    const std::vector<RowInfo> rows = op_.rows();
    const RowInfo* other = runner_.pick(rows, args.get());
    if (!other) return fail(fmt::format("{} operands: refused, and no other row takes them", name_of(p)));
    args.arm();
    ++report_.runs;
    runner_.call(args, threads_, describe(name_of(p)));
    if (const std::string damage = args.damage(); !damage.empty())
      return fail(fmt::format("{} operands, dispatched to {}: {}", name_of(p), other->name, damage));
    const Worst worst = compare_outputs(args, judge_.truth(), judge_.twin(other->rounds), op_.accuracy);
    if (!worst.ok())
      fail(fmt::format("{} operands, dispatched to {}: inaccurate: {}", name_of(p), other->name, to_string(worst)));
  }

  const OpInfo& op_;
  const CaseInfo& case_;
  const RowInfo& row_;
  const int threads_;
  Judge& judge_;
  Runner& runner_;
  CheckReport& report_;
  RowSummary& summary_;
  CaseArgs base_;
};

void check_case(const OpInfo& op, const CaseInfo& c, const std::vector<RowInfo>& rows, const CheckOptions& options,
                Runner& runner, CheckReport& report) {
  Judge judge(op, c, runner);
  ++report.cases;
  if (const std::string wrong = op.check(judge.made().get()); !wrong.empty())
    return report.failures.push_back(
        {c.name, "", "the contract refuses its own case: " + wrong, repro_line(op, c.name, "", options.threads)});
  for (size_t r = 0; r < rows.size(); ++r) {
    const RowInfo& row = rows[r];
    if (!report.rows[r].runnable || !matches(row.name, options.row_filter)) continue;
    if (row.tier == Tier::reference && c.suite > Suite::edge) continue;
    if (!row.supports(judge.made().get())) continue;
    RowCheck(op, c, row, options.threads, judge, runner, report, report.rows[r]).run();
  }
}

std::vector<CaseInfo> by_suite(const std::vector<CaseInfo>& cases) {
  std::vector<CaseInfo> sorted;
  for (Suite s : {Suite::smoke, Suite::edge, Suite::model, Suite::fuzz})
    std::copy_if(cases.begin(), cases.end(), std::back_inserter(sorted), [s](const CaseInfo& c) { return c.suite == s; });
  return sorted;
}

}  // namespace

bool matches(const std::string& name, const std::string& filter) {
  return filter.empty() || name.find(filter) != std::string::npos;
}

std::vector<CaseInfo> cases_named(const OpInfo& op, const std::string& filter) {
  std::vector<CaseInfo> cases = op.cases();
  const bool exact = std::any_of(cases.begin(), cases.end(), [&](const CaseInfo& c) { return c.name == filter; });
  std::erase_if(cases, [&](const CaseInfo& c) { return exact ? c.name != filter : !matches(c.name, filter); });
  return cases;
}

CheckReport check_op(const OpInfo& op, const CheckOptions& options) {
  CheckReport report{.op = op.name};
  Runner runner(options.isa);
  const std::vector<RowInfo> rows = op.rows();
  for (const RowInfo& r : rows)
    report.rows.push_back({.row = r.name, .runnable = r.tier == Tier::reference || runner.eligible(r)});
  const std::vector<CaseInfo> cases = cases_named(op, options.case_filter);
  const double start = now();
  std::set<std::string> names;
  for (const CaseInfo& c : cases)
    if (!names.insert(c.name).second) report.failures.push_back({c.name, "", "two cases have this name", ""});
  for (const CaseInfo& c : by_suite(cases)) {  // the quick ones first, so that a budget cuts the large ones
    if (c.suite > options.suite) continue;
    if (options.budget_s > 0 && c.suite > Suite::edge && now() - start > options.budget_s) {
      ++report.skipped;
      continue;
    }
    check_case(op, c, rows, options, runner, report);
  }
  if (options.case_filter.empty() && options.row_filter.empty() && options.suite >= Suite::edge)
    for (const RowSummary& r : report.rows)
      if (r.runnable && r.cases == 0) report.failures.push_back({"", r.row, "no case reaches this row", ""});
  return report;
}

std::string to_text(const CheckReport& r) {
  std::string s =
      fmt::format("{}: {} cases, {} runs{}, {}\n", r.op, r.cases, r.runs,
                  r.skipped ? fmt::format(", {} cases skipped for time", r.skipped) : "", r.ok() ? "all passed" : "FAILED");
  for (const RowSummary& row : r.rows) {
    if (!row.runnable)
      s += fmt::format("  {:<20} not on this machine\n", row.row);
    else
      s += fmt::format("  {:<20} {:>4} cases  {:>3} placements refused  worst {:.2f} of tolerance ({})\n", row.row, row.cases,
                       row.refused_placements, row.worst_used, row.worst_case);
  }
  for (const Failure& f : r.failures) s += fmt::format("  FAILED {} {}: {}\n    {}\n", f.case_name, f.row, f.what, f.repro);
  return s;
}

}  // namespace ridge
