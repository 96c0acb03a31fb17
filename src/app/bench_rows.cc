#include "app/bench_rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>

#include "check/provenance.h"
#include "device/isa.h"

namespace ridge {

Rates rates_of(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return {values[values.size() / 2], values.front(), values.back()};
}

std::string BenchTest::name() const {
  return (prompt ? fmt::format("pp{}", prompt) : fmt::format("tg{}", tokens)) + (depth ? fmt::format("@d{}", depth) : "");
}

namespace {

Json to_json(const LedgerLine& l) {
  return Json::object({{"op", l.op},
                       {"shape", l.shape},
                       {"row", l.row},
                       {"count", l.count},
                       {"bound_s", l.bound_s},
                       {"bound_by", l.bound_by},
                       {"predicted_s", l.predicted_s},
                       {"time_s", l.time_s}});
}

Json to_json(const RivalRow& r) {
  return Json::object({{"name", r.name},
                       {"version", r.version},
                       {"tok_s", r.tok_s.median},
                       {"ratio", r.ratio.median},
                       {"setting", r.setting},
                       {"tok_s_range", Json(Json::Array{r.tok_s.min, r.tok_s.max})},
                       {"ratio_range", Json(Json::Array{r.ratio.min, r.ratio.max})}});
}

}  // namespace

Json to_json(const BenchRow& r, const Loaded& l) {
  Json ops = Json::array(), rivals = Json::array();
  for (const LedgerLine& line : r.ops) ops.push(to_json(line));
  for (const RivalRow& rival : r.rivals) rivals.push(to_json(rival));
  Json json = Json::object({{"model", l.model.label},
                            {"test", r.test.name()},
                            {"threads", l.runtime->pool.threads()},
                            {"tok_s", Json::object({{"median", r.tok_s.median}, {"min", r.tok_s.min}, {"max", r.tok_s.max}})},
                            {"bound_tok_s", r.bound},
                            {"predicted_tok_s", r.predicted},
                            {"fraction", r.tok_s.median / r.bound},
                            {"peak_rss_bytes", r.rss},
                            {"rivals", std::move(rivals)}});
  if (!r.ops.empty()) json.set("ops", std::move(ops));
  return json;
}

// A test of a whole model runs many rows: what decides which stands in their place, and the rival, as each has a line of its own.
void to_ledger(const BenchRow& r, const Loaded& l, const CommonOptions& o, std::vector<LedgerRow>& kept) {
  const Provenance from = provenance("");
  LedgerRow row{.test = r.test.name(),
                .case_name = l.model.label,
                .row = fmt::format("{}, {} threads{}{}", isa_name(l.runtime->isa), l.runtime->pool.threads(),
                                   o.activations == "exact" ? "" : ", " + o.activations + " activations",
                                   o.kv_type == "f16" ? "" : ", " + o.kv_type + " cache"),
                .device = "cpu",
                .dtype = l.model.label.substr(l.model.label.rfind(' ') + 1),
                .time_s = double(r.test.count()) / r.tok_s.median,
                .bound_s = double(r.test.count()) / r.bound,
                .bound_by = r.bound_by,
                .fraction = r.tok_s.median / r.bound,
                .machine = l.machine.name,
                .date = from.date,
                .commit = from.commit,
                .sources = from.sources};
  if (r.rivals.empty()) kept.push_back(row);
  const std::string ours = row.row;
  for (const RivalRow& rival : r.rivals) {
    row.row = fmt::format("{}, beside {}", ours, rival.name);
    row.rival = fmt::format("{}, {}", rival.version, rival.setting);
    row.rival_time_s = double(r.test.count()) / rival.tok_s.median;
    row.ratio = rival.ratio.median;
    kept.push_back(row);
  }
}

void print_head(const Loaded& l, const std::vector<RivalName>& rivals, const std::string& output) {
  std::string head, rule = "|---|---|---|---|---|---|---|---|";
  if (output == "csv") {
    head = "model,bytes,threads,test,tok_s,min,max,bound_tok_s,fraction,peak_rss_bytes";
    for (const RivalName& r : rivals)
      for (const char* column : {"setting", "tok_s", "min", "max", "ratio", "ratio_min", "ratio_max"})
        head += fmt::format(",{} {}", r.name, column);
  } else {
    head = fmt::format("{}{}\n\n| model | size | threads | test | tok/s | min - max | bound | of it |", l.machine.name,
                       l.machine.measured ? "" : " (nominal ceilings)");
    for (const RivalName& r : rivals) {
      head += fmt::format(" {} tok/s | min - max | its setting | ours / {} |", r.version, r.name);
      rule += "---|---|---|---|";
    }
    head += "\n" + rule;
  }
  fmt::print("{}\n", head);
  fflush(stdout);
}

void print_row(const BenchRow& r, const Loaded& l, const std::string& output) {
  const int threads = l.runtime->pool.threads();
  const std::string test = r.test.name();
  const Rates& t = r.tok_s;
  if (output == "csv") {
    fmt::print("{},{},{},{},{:.3f},{:.3f},{:.3f},{:.3f},{:.4f},{}", l.model.label, l.model.weight_bytes, threads, test, t.median,
               t.min, t.max, r.bound, t.median / r.bound, r.rss);
    for (const RivalRow& v : r.rivals)
      fmt::print(",{},{:.3f},{:.3f},{:.3f},{:.4f},{:.4f},{:.4f}", v.setting, v.tok_s.median, v.tok_s.min, v.tok_s.max,
                 v.ratio.median, v.ratio.min, v.ratio.max);
  } else {
    fmt::print("| {:<24} | {:>8.1f} MB | {:>7} | {:>12} | {:>9.2f} | {:>8.2f} - {:>8.2f} | {:>9.1f} | {:>6.1f} % |",
               l.model.label, double(l.model.weight_bytes) / 1e6, threads, test, t.median, t.min, t.max, r.bound,
               100 * t.median / r.bound);
    for (const RivalRow& v : r.rivals)
      fmt::print(" {:>9.2f} | {:>8.2f} - {:>8.2f} | {} | {:.2f} ({:.2f} - {:.2f}) |", v.tok_s.median, v.tok_s.min, v.tok_s.max,
                 v.setting, v.ratio.median, v.ratio.min, v.ratio.max);
  }
  fmt::print("\n");
  fflush(stdout);
}

void print_ops(const BenchRow& r) {
  double all = 0;
  for (const LedgerLine& l : r.ops) all += l.time_s;
  fmt::print("\n{:<22} {:<26} {:<18} {:>6} {:>10} {:>10} {:>10} {:>6} {:<12}\n", r.test.name(), "shape", "row", "calls",
             "bound us", "predicted", "took us", "share", "bound by");
  std::vector<LedgerLine> lines = r.ops;
  std::sort(lines.begin(), lines.end(), [](const LedgerLine& a, const LedgerLine& b) { return a.time_s > b.time_s; });
  constexpr size_t kMostLines = 20;  // a generation has a shape of attention for every length
  double others = 0;
  for (size_t i = 0; i < lines.size(); ++i) {
    const LedgerLine& l = lines[i];
    if (i >= kMostLines)
      others += l.time_s;
    else
      fmt::print("{:<22} {:<26} {:<18} {:>6} {:>10.1f} {:>10.1f} {:>10.1f} {:>5.1f}% {:<12}\n", l.op, l.shape, l.row, l.count,
                 l.bound_s * 1e6, l.predicted_s * 1e6, l.time_s * 1e6, 100 * l.time_s / all, l.bound_by);
  }
  if (others > 0) fmt::print("{} other kinds of call took {:.1f} us\n", lines.size() - kMostLines, others * 1e6);
  fmt::print("calls together {:.3f} ms, least times of each kind; the whole at the median rate {:.3f} ms\n", all * 1e3,
             1e3 * double(r.test.count()) / r.tok_s.median);
}

}  // namespace ridge
