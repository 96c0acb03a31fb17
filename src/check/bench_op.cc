#include "check/bench_op.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <memory>

#include "check/provenance.h"
#include "check/runner.h"
#include "meter/bound.h"

namespace ridge {

namespace {

constexpr int kCopies = 256;
constexpr double kHotBatch_s = 20e-6;  // a clock reading costs 30 ns

double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

int64_t cold_bytes() {
  const int64_t l3 = sysconf(_SC_LEVEL3_CACHE_SIZE);
  return std::clamp<int64_t>(2 * l3, int64_t(32) << 20, kColdBytes);
}

Times times_of(std::vector<double> s) {
  std::sort(s.begin(), s.end());
  auto at = [&](double q) { return s[size_t(q * double(s.size() - 1) + 0.5)]; };
  return {s.front(), at(0.5), at(0.1), at(0.9)};
}

// One case: the copies of its operands, and the rows that take turns on them.
class CaseBench {
 public:
  CaseBench(const OpInfo& op, const CaseInfo& c, const BenchOptions& options, Runtime& runtime, const Machine& machine)
      : op_(op), case_(c), options_(options), runtime_(runtime), machine_(machine), acts_(int64_t(16) << 20), made_(op, c) {}

  void run(std::vector<RowInfo>& rows, BenchReport& report) {
    std::vector<Entry> entries;
    const RowInfo* picked = Runner(runtime_.isa).pick(rows, made_.get());
    for (RowInfo& r : rows) {
      const bool runnable = r.tier == Tier::reference || (r.place == runtime_.place && r.isa <= runtime_.isa);
      if (!runnable || !matches(r.name, options_.row_filter) || !r.supports(made_.get())) continue;
      if (r.tier == Tier::reference && &r != picked && !options_.reference) continue;
      entries.push_back({&r, Region(r.workspace(made_.get()), Fence::canaries)});
    }
    if (entries.empty()) return;
    make_copies();
    const double start = now(), limit = options_.seconds * double(entries.size());
    for (int repeat = 0; repeat < options_.max_repeats && (repeat < options_.min_repeats || now() - start < limit); ++repeat)
      for (Entry& e : entries) once(e);
    for (Entry& e : entries) report.lines.push_back(line(e, e.row == picked));
  }

 private:
  struct Entry {
    RowInfo* row;
    Region scratch;
    int batch = 0;  // calls in one hot timing
    std::vector<double> cold, hot;
  };

  void make_copies() {
    int64_t bytes = 64;
    for (int o = 0; o < made_.operands(); ++o)
      if (made_.has(o)) bytes += made_.view(o).bytes();
    const int64_t n = std::clamp<int64_t>(cold_bytes() / bytes + 1, 2, kCopies);
    for (int64_t i = 0; i < n; ++i) copies_.push_back(std::make_unique<CaseArgs>(made_, CopyAs{}));
  }

  double launch(Entry& e, CaseArgs& args, int times) {
    acts_.release(0);
    Ctx x(Mode::run, runtime_, acts_);
    const double from = now();
    for (int i = 0; i < times; ++i) e.row->launch(x, args.get(), e.scratch.data());
    return (now() - from) / times;
  }

  void once(Entry& e) {
    CaseArgs& args = *copies_[next_++ % copies_.size()];
    e.cold.push_back(launch(e, args, 1));
    if (!e.batch) e.batch = std::clamp(int(kHotBatch_s / launch(e, args, 1)), 1, 1000);
    e.hot.push_back(launch(e, args, e.batch));
  }

  BenchLine line(Entry& e, bool picked) const {
    const Cost cost = op_.cost(made_.get());
    const Bound b = bound(cost, machine_);
    const Speed& s = e.row->speed;
    return {.case_name = case_.name,
            .row = e.row->name,
            .shape = op_.shape(made_.get()),
            .dtype = dtype_of(op_, made_.get()),
            .picked = picked,
            .repeats = int(e.cold.size()),
            .copies = int(copies_.size()),
            .cold = times_of(e.cold),
            .hot = times_of(e.hot),
            .bound_s = b.seconds,
            .predicted_s = predict(cost, s.unit, s.compute, s.memory, machine_),
            .bound_by = b.by};
  }

  const OpInfo& op_;
  const CaseInfo& case_;
  const BenchOptions& options_;
  Runtime& runtime_;
  const Machine& machine_;
  Arena acts_;
  CaseArgs made_;
  std::vector<std::unique_ptr<CaseArgs>> copies_;
  size_t next_ = 0;
};

}  // namespace

std::string dtype_of(const OpInfo& op, const void* args) {
  for (bool weights : {true, false})
    for (const Operand& o : op.operands) {
      const View& v = o.of(const_cast<void*>(args));
      if (v && is_input(o.role) && (is_float(v.type) || is_block(v.type)) && (!weights || o.role == Role::weight))
        return name_of(v.type);
    }
  return "";
}

BenchReport bench_op(const OpInfo& op, const BenchOptions& options, Runtime& runtime, const Machine& machine) {
  BenchReport report{.op = op.name};
  std::vector<RowInfo> rows = op.rows();
  for (const CaseInfo& c : cases_named(op, options.case_filter))
    if (!options.suite || c.suite == *options.suite) CaseBench(op, c, options, runtime, machine).run(rows, report);
  return report;
}

std::string to_text(const BenchReport& r) {
  std::string s = fmt::format("{}\n  {:<36} {:<16} {:>9} {:>9} {:>9} {:>9} {:>9} {:>6} {:<12} {:>9}\n", r.op, "case", "row",
                              "best us", "median", "p90", "hot us", "bound us", "%", "by", "predicted");
  for (const BenchLine& l : r.lines)
    s += fmt::format("{} {:<36} {:<16} {:>9.1f} {:>9.1f} {:>9.1f} {:>9.1f} {:>9.1f} {:>6.1f} {:<12} {:>+8.0f}%\n",
                     l.picked ? " *" : "  ", l.case_name, l.row, l.cold.best * 1e6, l.cold.median * 1e6, l.cold.p90 * 1e6,
                     l.hot.best * 1e6, l.bound_s * 1e6, 100 * l.fraction(), l.bound_by, 100 * l.prediction_error());
  return s;
}

std::vector<LedgerRow> ledger_rows(const BenchReport& r, const Machine& machine) {
  const Provenance from = provenance(r.op);
  std::vector<LedgerRow> rows;
  for (const BenchLine& l : r.lines)
    rows.push_back({.op = r.op,
                    .case_name = l.case_name,
                    .row = l.row,
                    .device = "cpu",
                    .dtype = l.dtype,
                    .time_s = l.cold.best,
                    .bound_s = l.bound_s,
                    .bound_by = l.bound_by,
                    .fraction = l.fraction(),
                    .machine = machine.name,
                    .date = from.date,
                    .commit = from.commit,
                    .sources = from.sources});
  return rows;
}

}  // namespace ridge
