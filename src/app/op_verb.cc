#include "app/op_verb.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <optional>
#include <vector>

#include "check/bench_op.h"
#include "check/check_op.h"
#include "check/grad_op.h"
#include "check/why_op.h"
#include "device/topology.h"
#include "io/json.h"
#include "meter/measure.h"
#include "ops/list.h"

namespace ridge {

namespace {

const char* place_name(Place p) { return p == Place::cpu ? "cpu" : "cuda"; }
const char* tier_name(Tier t) {
  constexpr const char* names[] = {"fast", "general", "reference"};
  return names[int(t)];
}

constexpr const char* kSuites[] = {"smoke", "edge", "model", "fuzz"};

struct Output {  // one of the two is filled
  std::string text;
  Json json = Json::array();
  int failures = 0;
};

Json failures_json(const std::vector<Failure>& failures) {
  Json all = Json::array();
  for (const Failure& f : failures) {
    Json& j = all.push(Json::object());
    j.set("case", f.case_name);
    j.set("row", f.row);
    j.set("what", f.what);
    j.set("repro", f.repro);
  }
  return all;
}

void list_op(const OpInfo& op, const OpVerb& v, Output& out) {
  const std::vector<RowInfo> rows = op.rows();
  if (!v.json) {
    out.text += fmt::format("{:<24} {} operands, {} cases, {}\n", op.name, op.operands.size(), op.cases().size(),
                            op.vjp ? "differentiable" : "no backward pass");
    for (const RowInfo& r : rows)
      out.text += fmt::format("  {:<24} {:<5} {:<9} {}\n", r.name, place_name(r.place), isa_name(r.isa), tier_name(r.tier));
    if (!v.op.empty())
      for (const CaseInfo& c : op.cases()) out.text += fmt::format("  case {:<5}  {}\n", kSuites[int(c.suite)], c.name);
    return;
  }
  Json& j = out.json.push(Json::object());
  j.set("op", op.name);
  Json& named = j.set("cases", Json::array());
  for (const CaseInfo& c : op.cases()) named.push(Json::object({{"case", c.name}, {"suite", kSuites[int(c.suite)]}}));
  j.set("differentiable", op.vjp != nullptr);
  Json& list = j.set("rows", Json::array());
  for (const RowInfo& r : rows) {
    Json& row = list.push(Json::object());
    row.set("row", r.name);
    row.set("device", place_name(r.place));
    row.set("isa", isa_name(r.isa));
    row.set("tier", tier_name(r.tier));
  }
}

Json json_of(const CheckReport& r, int threads) {
  Json j = Json::object();
  j.set("op", r.op);
  j.set("ok", r.ok());
  j.set("threads", threads);
  j.set("cases", r.cases);
  j.set("skipped", r.skipped);
  j.set("runs", r.runs);
  Json& rows = j.set("rows", Json::array());
  for (const RowSummary& s : r.rows) {
    Json& row = rows.push(Json::object());
    row.set("row", s.row);
    row.set("runnable", s.runnable);
    row.set("cases", s.cases);
    row.set("refused_placements", s.refused_placements);
    row.set("worst_of_tolerance", s.worst_used);
    row.set("worst_case", s.worst_case);
  }
  j.set("failures", failures_json(r.failures));
  return j;
}

// With a filter only what it names is run; without one the tolerances are tried too.
void check(const OpInfo& op, const OpVerb& v, std::optional<Suite> suite, const Runtime& runtime, Output& out) {
  CheckOptions options{.suite = suite.value_or(Suite::fuzz),
                       .case_filter = v.case_filter,
                       .row_filter = v.row,
                       .budget_s = v.seconds,
                       .isa = runtime.isa};
  if (v.threads > 0) options.threads = v.threads;
  CheckReport r = check_op(op, options);
  if (v.case_filter.empty() && v.row.empty())
    for (Failure& f : check_rejections(op, options)) r.failures.push_back(std::move(f));
  out.failures += int(r.failures.size());
  if (v.json)
    out.json.push(json_of(r, options.threads));
  else
    out.text += to_text(r);
}

void grad(const OpInfo& op, const OpVerb& v, std::optional<Suite> suite, const Runtime& runtime, Output& out) {
  GradOptions options{.suite = suite.value_or(Suite::fuzz), .case_filter = v.case_filter, .isa = runtime.isa};
  if (v.threads > 0) options.threads = v.threads;
  const GradReport r = grad_op(op, options);
  out.failures += int(r.failures.size());
  if (!v.json) return void(out.text += to_text(r));
  Json& j = out.json.push(Json::object());
  j.set("op", r.op);
  j.set("differentiable", r.differentiable);
  j.set("ok", r.ok());
  j.set("threads", options.threads);
  Json& lines = j.set("gradients", Json::array());
  for (const GradLine& l : r.lines) {
    Json& line = lines.push(Json::object());
    line.set("case", l.case_name);
    line.set("operand", l.operand);
    line.set("elements", l.elements);
    line.set("worst", l.worst);
  }
  j.set("passed_over", r.passed_over);
  j.set("failures", failures_json(r.failures));
}

Json times_json(const Times& t) {
  Json j = Json::object();
  j.set("best", t.best);
  j.set("median", t.median);
  j.set("p10", t.p10);
  j.set("p90", t.p90);
  return j;
}

Status bench(const OpInfo& op, const OpVerb& v, std::optional<Suite> suite, Runtime& runtime, const Machine& machine,
             Output& out) {
  BenchOptions options{.suite = suite, .case_filter = v.case_filter, .row_filter = v.row, .reference = !v.row.empty()};
  if (v.seconds > 0) options.seconds = v.seconds;
  const BenchReport r = bench_op(op, options, runtime, machine);
  const std::vector<LedgerRow> rows = ledger_rows(r, machine);
  if (!v.json)
    out.text += to_text(r);
  else
    for (size_t i = 0; i < rows.size(); ++i) {
      const BenchLine& l = r.lines[i];
      Json& j = out.json.push(to_json(rows[i]));
      j.set("shape", l.shape);
      j.set("picked", l.picked);
      j.set("repeats", l.repeats);
      j.set("cold_s", times_json(l.cold));
      j.set("hot_s", times_json(l.hot));
      j.set("predicted_s", l.predicted_s);
    }
  return v.ledger.empty() ? Status() : update_ledger(v.ledger, rows);
}

void why(const OpInfo& op, const OpVerb& v, std::optional<Suite> suite, const Runtime& runtime, const Machine& machine,
         Output& out) {
  const std::vector<WhyCase> cases =
      why_op(op, {.suite = suite, .case_filter = v.case_filter, .row_filter = v.row}, runtime, machine);
  if (!v.json) return void(out.text += to_text(op.name, cases));
  for (const WhyCase& c : cases) {
    Json& j = out.json.push(Json::object());
    j.set("op", op.name);
    j.set("case", c.case_name);
    j.set("shape", c.shape);
    j.set("flops", c.cost.flops());
    j.set("bytes_read", c.cost.bytes_read);
    j.set("bytes_written", c.cost.bytes_written);
    j.set("bound_s", c.bound_s);
    j.set("bound_by", c.bound_by);
    Json& rows = j.set("rows", Json::array());
    for (const WhyRow& r : c.rows) {
      Json& row = rows.push(Json::object());
      row.set("row", r.row);
      row.set("picked", r.picked);
      row.set("predicted_s", r.predicted_s);
      row.set("refusal", r.refusal.empty() ? Json() : Json(r.refusal));
    }
  }
}

// The suite asked for, else what suits the action; none where a case is named: it may be of any.
Result<std::optional<Suite>> suite_of(const OpVerb& v) {
  for (int i = 0; i < 4; ++i)
    if (v.suite == kSuites[i]) return {Suite(i)};
  if (!v.suite.empty()) return usage_error("there is no suite \"" + v.suite + "\": choose smoke, edge, model or fuzz.");
  if (!v.case_filter.empty()) return std::optional<Suite>();
  return {v.action == "bench" || v.action == "why" ? Suite::model : Suite::edge};
}

// What is not given to an action has no effect on it, so it is refused there.
struct OptionUse {
  const char* name;
  bool given;
  const char* actions;
};
Status refuse_useless(const OpVerb& v) {
  const OptionUse uses[] = {{"--case", !v.case_filter.empty(), "check, grad, bench, why"},
                            {"--row", !v.row.empty(), "check, bench, why"},
                            {"--suite", !v.suite.empty(), "check, grad, bench, why"},
                            {"--threads", v.threads > 0, "check, grad, bench, why"},
                            {"--seconds", v.seconds > 0, "check, bench"},
                            {"--ledger", !v.ledger.empty(), "bench"}};
  for (const OptionUse& u : uses)
    if (u.given && std::string(u.actions).find(v.action) == std::string::npos)
      return usage_error(fmt::format("`ridgeline op {}` has no use for {}; it is for {}.", v.action, u.name, u.actions));
  return {};
}

Result<std::vector<const OpInfo*>> ops_named(const std::string& name) {
  std::vector<const OpInfo*> chosen;
  std::string known;
  for (const OpInfo& op : all_ops()) {
    if (name.empty() || name == op.name) chosen.push_back(&op);
    known += (known.empty() ? "" : ", ") + std::string(op.name);
  }
  if (chosen.empty()) return usage_error("there is no op \"" + name + "\": choose one of " + known + ".");
  return chosen;
}

bool in_suite(const CaseInfo& c, const OpVerb& v, std::optional<Suite> suite) {
  const bool up_to = v.action == "check" || v.action == "grad";
  return !suite || (up_to ? c.suite <= *suite : c.suite == *suite);
}

// A filter that matches nothing is a typing error, not a success.
Status expect_matches(const std::vector<const OpInfo*>& ops, const OpVerb& v, std::optional<Suite> suite) {
  bool a_case = v.case_filter.empty(), a_row = v.row.empty();
  for (const OpInfo* op : ops) {
    for (const CaseInfo& c : cases_named(*op, v.case_filter)) a_case = a_case || in_suite(c, v, suite);
    for (const RowInfo& r : op->rows()) a_row = a_row || matches(r.name, v.row);
  }
  if (!a_case)
    return usage_error(fmt::format("no case{} is named like \"{}\"; `ridgeline op list OP` names them.",
                                   v.suite.empty() ? "" : " of suite " + v.suite, v.case_filter));
  if (!a_row) return usage_error("no row is named like \"" + v.row + "\"; `ridgeline op list` names them.");
  return {};
}

Status run_one(const OpInfo& op, const OpVerb& v, std::optional<Suite> suite, Runtime& runtime, const Machine& machine,
               Output& out) {
  const std::vector<CaseInfo> cases = op.cases();
  if (v.suite.empty() && std::none_of(cases.begin(), cases.end(), [&](const CaseInfo& c) { return in_suite(c, v, suite); }))
    suite.reset();  // an op without cases of the usual suite is not passed over
  if (v.action == "list")
    list_op(op, v, out);
  else if (v.action == "check")
    check(op, v, suite, runtime, out);
  else if (v.action == "grad")
    grad(op, v, suite, runtime, out);
  else if (v.action == "bench")
    return bench(op, v, suite, runtime, machine, out);
  else
    why(op, v, suite, runtime, machine, out);
  return {};
}

}  // namespace

Status run_op_verb(const OpVerb& v, Runtime& runtime, const Machine& machine) {
  constexpr const char* actions[] = {"list", "check", "grad", "bench", "why"};
  if (std::none_of(std::begin(actions), std::end(actions), [&](const char* a) { return v.action == a; }))
    return usage_error("`ridgeline op " + v.action + "` is not known: choose list, check, grad, bench or why.");
  const auto ops = ops_named(v.op);
  if (!ops) return ops.status();
  if (const Status s = refuse_useless(v); !s.ok()) return s;
  const auto suite = suite_of(v);
  if (!suite) return suite.status();
  if (const Status s = expect_matches(*ops, v, *suite); !s.ok()) return s;
  Output out;
  for (const OpInfo* op : *ops) {
    const Status s = run_one(*op, v, *suite, runtime, machine, out);
    if (!v.json) fputs(out.text.c_str(), stdout), fflush(stdout), out.text.clear();
    if (!s.ok()) return s;
  }
  if (v.json) printf("%s\n", to_text(out.json, 2).c_str());
  if (out.failures > 0) return failed(fmt::format("{} checks failed; each has its line above.", out.failures));
  return {};
}

int run_op_verb(const OpVerb& v) {
  Runtime runtime(v.threads > 0 ? v.threads : default_threads());
  const bool timed = v.action == "bench" || v.action == "why";
  const Status s = run_op_verb(v, runtime, timed ? load_or_measure(runtime.pool, runtime.isa) : Machine());
  if (!s.ok()) fprintf(stderr, "ridgeline: %s\n", s.sentence().c_str());
  return int(s.code());
}

}  // namespace ridge
