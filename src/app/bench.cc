// ridgeline bench: prefill and decode rates of a model beside their bounds, in the rows that llama-bench made customary:
// ppN is a prompt of N tokens, tgN the generation of N, @dD at a depth of D tokens in the cache. Sampling is left out.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <optional>

#include "app/interrupt.h"
#include "app/loaded.h"
#include "app/verbs.h"
#include "base/rng.h"
#include "check/provenance.h"
#include "device/topology.h"
#include "meter/ledger_file.h"
#include "model/plan.h"

namespace ridge {

namespace {

struct Row {
  std::string test;
  int64_t tokens;
  double median, min, max, bound, predicted;  // tok/s
  std::string bound_by;
  int64_t rss;
  std::vector<LedgerLine> ops;  // what each kind of call cost at best, where that was asked for
};

double seconds(std::chrono::steady_clock::time_point from) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - from).count();
}

class Bench {
 public:
  Bench(Loaded& l, Runner& runner) : l_(l), runner_(runner) {
    for (size_t i = 0; i < size_t(runner.options().context); ++i)
      ids_.push_back(int32_t(uniform({.seed = 1}, i) * double(l.model.vocab)));
    runner_.pool().grow(state_, runner.options().context);
  }

  // Nothing when Ctrl-C came before a single repeat was whole.
  std::optional<Row> run(int64_t prompt, int64_t tokens, int64_t depth, int repeats, bool ops) {
    fill(depth);
    std::vector<double> rates;
    for (int r = -1; r < repeats && !interrupted(); ++r) {  // the first is a warm-up
      cut(depth);
      const auto from = std::chrono::steady_clock::now();
      prompt ? feed(prompt) : decode(tokens);
      if (r >= 0 && !interrupted()) rates.push_back(double(prompt + tokens) / seconds(from));
    }
    if (rates.empty()) return {};
    std::sort(rates.begin(), rates.end());
    const std::string name =
        (prompt ? "pp" + std::to_string(prompt) : "tg" + std::to_string(tokens)) + (depth ? "@d" + std::to_string(depth) : "");
    Row row{name, prompt + tokens, rates[rates.size() / 2], rates.front(), rates.back(), 0, 0, "", peak_rss_bytes(), {}};
    floors(prompt, tokens, depth, row);
    for (int r = 0; ops && r < repeats && !interrupted(); ++r) time_ops(prompt, tokens, depth, row.ops);
    return row;
  }

 private:
  void cut(int64_t depth) {
    runner_.pool().cut(state_, depth);
    runner_.pool().grow(state_, runner_.options().context);
  }
  void fill(int64_t depth) {
    cut(std::min(state_.tokens, depth));
    feed(depth - state_.tokens);
  }
  void feed(int64_t n) {
    for (int64_t chunk; n > 0 && !interrupted(); n -= chunk) {
      chunk = std::min(n, runner_.options().step_tokens);
      const Runner::Input in{&state_, std::span(ids_).subspan(state_.tokens, chunk), chunk == n};
      runner_.step({&in, 1});
    }
  }
  void decode(int64_t n) {
    for (int64_t i = 0; i < n && !interrupted(); ++i) {
      const Runner::Input in{&state_, std::span(ids_).subspan(state_.tokens, 1)};
      runner_.step({&in, 1});
    }
  }
  // The same once more with every call timed; of a kind of call the least time counts.
  void time_ops(int64_t prompt, int64_t tokens, int64_t depth, std::vector<LedgerLine>& best) {
    Ledger ledger;
    cut(depth);
    runner_.ledger = &ledger, runner_.machine = &l_.machine;
    prompt ? feed(prompt) : decode(tokens);
    runner_.ledger = nullptr, runner_.machine = nullptr;
    if (best.empty()) best = ledger.lines();
    for (const LedgerLine& now : ledger.lines())
      for (LedgerLine& b : best)
        if (b.op == now.op && b.row == now.row && b.shape == now.shape) b.time_s = std::min(b.time_s, now.time_s);
  }
  void floors(int64_t prompt, int64_t tokens, int64_t depth, Row& row) {
    double bound = 0, predicted = 0, most = 0;
    auto add = [&](int64_t queries, int64_t keys, int64_t times) {
      const StepPlan p =
          plan_step(l_.model, *l_.runtime, l_.machine,
                    {.queries = {int32_t(queries)}, .keys = {int32_t(keys)}, .kv_type = runner_.options().kv_type});
      bound += p.ledger.bound_s() * double(times);
      predicted += p.ledger.predicted_s() * double(times);
      for (const LedgerLine& line : p.ledger.lines())
        if (line.bound_s > most) most = line.bound_s, row.bound_by = line.bound_by;
    };
    if (tokens) add(1, depth + (tokens + 1) / 2, tokens);
    for (int64_t done = 0; done < prompt; done += runner_.options().step_tokens) {
      const int64_t chunk = std::min(prompt - done, runner_.options().step_tokens);
      add(chunk, depth + done + chunk, 1);
    }
    row.bound = double(row.tokens) / bound, row.predicted = double(row.tokens) / predicted;
  }

  Loaded& l_;
  Runner& runner_;
  SequenceState state_;
  std::vector<int32_t> ids_;
};

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

void print_ops(const Row& r) {
  double all = 0;
  for (const LedgerLine& l : r.ops) all += l.time_s;
  fmt::print("\n{:<22} {:<26} {:<18} {:>6} {:>10} {:>10} {:>10} {:>6} {:<12}\n", r.test, "shape", "row", "calls", "bound us",
             "predicted", "took us", "share", "bound by");
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
             1e3 * double(r.tokens) / r.median);
}

Json to_json(const Row& r, const Loaded& l) {
  Json ops = Json::array();
  for (const LedgerLine& line : r.ops) ops.push(to_json(line));
  Json json = Json::object({{"model", l.model.label},
                            {"test", r.test},
                            {"threads", l.runtime->pool.threads()},
                            {"tok_s", Json::object({{"median", r.median}, {"min", r.min}, {"max", r.max}})},
                            {"bound_tok_s", r.bound},
                            {"predicted_tok_s", r.predicted},
                            {"fraction", r.median / r.bound},
                            {"peak_rss_bytes", r.rss},
                            {"rivals", Json::array()}});
  if (!r.ops.empty()) json.set("ops", std::move(ops));
  return json;
}

// A test of a whole model runs many rows: the level and the threads stand in their place.
LedgerRow to_ledger(const Row& r, const Loaded& l) {
  const Provenance from = provenance("");
  return {.test = r.test,
          .case_name = l.model.label,
          .row = fmt::format("{}, {} threads", isa_name(l.runtime->isa), l.runtime->pool.threads()),
          .device = "cpu",
          .dtype = l.model.label.substr(l.model.label.rfind(' ') + 1),
          .time_s = double(r.tokens) / r.median,
          .bound_s = double(r.tokens) / r.bound,
          .bound_by = r.bound_by,
          .fraction = r.median / r.bound,
          .machine = l.machine.name,
          .date = from.date,
          .commit = from.commit,
          .sources = from.sources};
}

void print_row(const Row& r, const Loaded& l, const std::string& output) {
  const int threads = l.runtime->pool.threads();
  if (output == "csv")
    fmt::print("{},{},{},{},{:.3f},{:.3f},{:.3f},{:.3f},{:.4f},{}\n", l.model.label, l.model.weight_bytes, threads, r.test,
               r.median, r.min, r.max, r.bound, r.median / r.bound, r.rss);
  else
    fmt::print("| {:<24} | {:>8.1f} MB | {:>7} | {:>12} | {:>9.2f} | {:>8.2f} - {:>8.2f} | {:>9.1f} | {:>6.1f} % |\n",
               l.model.label, double(l.model.weight_bytes) / 1e6, threads, r.test, r.median, r.min, r.max, r.bound,
               100 * r.median / r.bound);
  fflush(stdout);
}

}  // namespace

int bench_verb(const BenchVerb& o) {
  catch_interrupts();
  const std::string output = o.json ? "json" : o.output;
  const auto most = [](const std::vector<int64_t>& list) { return *std::max_element(list.begin(), list.end()); };
  if (most(o.prompts) == 0 && most(o.tokens) == 0)
    return report(usage_error("-p 0 and -n 0 leave nothing to measure; give one of them a length."));
  Result<std::unique_ptr<Loaded>> loaded = load(o);
  if (!loaded) return report(loaded.status());
  Loaded& l = **loaded;
  const int64_t longest = std::max(most(o.prompts), most(o.tokens)) + most(o.depths);
  Result<std::unique_ptr<Runner>> runner =
      Runner::make(l.model, *l.runtime, {.context = std::max<int64_t>(longest, 8), .kv_type = kv_dtype(o.kv_type)});
  if (!runner) return report(runner.status());
  Bench bench(l, **runner);
  if (output == "csv") fmt::print("model,bytes,threads,test,tok_s,min,max,bound_tok_s,fraction,peak_rss_bytes\n");
  if (output == "md")
    fmt::print(
        "{}{}\n\n| model | size | threads | test | tok/s | min - max | bound | of it |\n|---|---|---|---|---|---|---|---|\n",
        l.machine.name, l.machine.measured ? "" : " (nominal ceilings)");
  fflush(stdout);
  Json rows = Json::array();
  std::vector<LedgerRow> kept;
  auto test = [&](int64_t prompt, int64_t tokens, int64_t depth) {
    if (prompt + tokens == 0 || interrupted()) return;
    const std::optional<Row> r = bench.run(prompt, tokens, depth, o.repeats, o.ops);
    if (!r) return;
    if (output != "json") print_row(*r, l, output);
    if (output == "md" && o.ops) print_ops(*r);
    rows.push(to_json(*r, l));
    if (!o.ledger.empty()) kept.push_back(to_ledger(*r, l));
  };
  for (int64_t depth : o.depths) {
    for (int64_t n : o.prompts) test(n, 0, depth);
    for (int64_t n : o.tokens) test(0, n, depth);
  }
  fputs(list_fallbacks(*l.runtime).c_str(), stderr);
  if (output == "json") print_json(Json::object({{"machine", l.machine.name}, {"rows", std::move(rows)}}));
  if (!o.ledger.empty())
    if (Status s = update_ledger(o.ledger, kept); !s.ok()) return report(s);
  return interrupted() ? int(Code::interrupted) : 0;
}

}  // namespace ridge
