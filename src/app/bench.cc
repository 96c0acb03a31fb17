// ridgeline bench: prefill and decode rates of a model beside their bounds, in the rows that llama-bench made customary:
// ppN is a prompt of N tokens, tgN the generation of N, @dD at a depth of D tokens in the cache. Sampling is left out.
// Rivals are measured round by round between our own repeats, so that what disturbs the machine disturbs all of them.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <map>
#include <optional>

#include "app/bench_rows.h"
#include "app/interrupt.h"
#include "app/rival.h"
#include "app/verbs.h"
#include "base/rng.h"
#include "device/topology.h"
#include "model/plan.h"

namespace ridge {

namespace {

double seconds(std::chrono::steady_clock::time_point from) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - from).count();
}

// What the rounds of one test showed of a rival.
struct Beside {
  std::map<std::string, std::vector<double>> settings;  // tok/s of every round
  double busy_s = 0;                                    // processor time that it took while ours ran

  // Its best setting; `ours` has the rates of the same rounds.
  Result<RivalRow> best(const Rival& rival, const std::vector<double>& ours) const {
    std::optional<RivalRow> best;
    for (const auto& [setting, rates] : settings) {
      if (rates.size() != ours.size()) return failed(rival.name() + ": its settings change from round to round.");
      const Rates tok_s = rates_of(rates);
      if (best && best->tok_s.median >= tok_s.median) continue;
      std::vector<double> ratios;
      for (size_t i = 0; i < ours.size(); ++i) ratios.push_back(ours[i] / rates[i]);
      Rates ratio = rates_of(ratios);
      ratio.median = rates_of(ours).median / tok_s.median;  // of the two rates that are shown
      best = {rival.name(), rival.version(), setting, tok_s, ratio};
    }
    return *best;
  }
};

class Bench {
 public:
  using Rivals = std::vector<std::unique_ptr<Rival>>;
  Bench(Loaded& l, Runner& runner, const Rivals& rivals) : l_(l), runner_(runner), rivals_(rivals) {
    for (size_t i = 0; i < size_t(runner.options().context); ++i)
      ids_.push_back(int32_t(uniform({.seed = 1}, i) * double(l.model.vocab)));
    runner_.pool().grow(state_, runner.options().context);
  }

  // Interrupted only where Ctrl-C came before a single round was whole.
  Result<BenchRow> run(const BenchTest& t, int repeats, bool ops) {
    fill(t.depth);
    std::vector<double> ours;
    std::vector<Beside> beside(rivals_.size());
    for (int r = -1; r < repeats && !interrupted(); ++r) {  // the first is a warm-up
      const Result<double> rate = round(t, r >= 0, beside);
      if (!rate && rate.status().code() != Code::interrupted) return rate.status();
      if (rate && r >= 0) ours.push_back(*rate);
    }
    if (ours.empty()) return interrupted("interrupted before a repeat was whole.");
    BenchRow row{t, rates_of(ours), 0, 0, "", peak_rss_bytes(), {}, {}};
    for (size_t i = 0; i < rivals_.size(); ++i) {
      Result<RivalRow> best = beside[i].best(*rivals_[i], ours);
      if (!best) return best.status();
      row.rivals.push_back(std::move(*best));
      warn_if_busy(t, ours, beside[i].busy_s, *rivals_[i]);
    }
    floors(t, row);
    for (int r = 0; ops && r < repeats && !interrupted(); ++r) time_ops(t, row.ops);
    return row;
  }

 private:
  // Ours, then each rival's; what counts is kept only when all of them are through. Our tok/s.
  Result<double> round(const BenchTest& t, bool counts, std::vector<Beside>& beside) {
    std::vector<double> busy;
    for (const auto& rival : rivals_) busy.push_back(rival->cpu_seconds());
    cut(t.depth);
    const auto from = std::chrono::steady_clock::now();
    step_through(t);
    const double took = seconds(from);
    for (size_t i = 0; i < rivals_.size(); ++i) busy[i] = rivals_[i]->cpu_seconds() - busy[i];
    std::vector<std::vector<Rival::Timing>> timings;
    for (const auto& rival : rivals_) {
      Result<std::vector<Rival::Timing>> timing = rival->time(t.prompt, t.tokens, t.depth);
      if (!timing) return timing.status();
      timings.push_back(std::move(*timing));
    }
    if (interrupted()) return interrupted("interrupted in a round.");
    for (size_t i = 0; counts && i < rivals_.size(); ++i) {
      beside[i].busy_s += busy[i];
      for (const Rival::Timing& s : timings[i]) beside[i].settings[s.setting].push_back(double(t.count()) / s.seconds);
    }
    return double(t.count()) / took;
  }
  // A rival that spins while it waits takes the cores from us, and the ratio means nothing. Ten milliseconds of falling asleep are usual.
  static void warn_if_busy(const BenchTest& t, const std::vector<double>& ours, double busy, const Rival& rival) {
    double took = 0;
    for (double rate : ours) took += double(t.count()) / rate;
    if (busy > 0.03 * took + 0.01 * double(ours.size()))
      fprintf(stderr, "%s took %.0f %% of a core while ours ran %s: the ratio is in our disfavour.\n", rival.name().c_str(),
              100 * busy / took, t.name().c_str());
  }
  void step_through(const BenchTest& t) { t.prompt ? feed(t.prompt) : decode(t.tokens); }
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
  void time_ops(const BenchTest& t, std::vector<LedgerLine>& best) {
    Ledger ledger;
    cut(t.depth);
    runner_.ledger = &ledger, runner_.machine = &l_.machine;
    step_through(t);
    runner_.ledger = nullptr, runner_.machine = nullptr;
    if (best.empty()) best = ledger.lines();
    for (const LedgerLine& now : ledger.lines())
      for (LedgerLine& b : best)
        if (b.op == now.op && b.row == now.row && b.shape == now.shape) b.time_s = std::min(b.time_s, now.time_s);
  }
  void floors(const BenchTest& t, BenchRow& row) {
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
    if (t.tokens) add(1, t.depth + (t.tokens + 1) / 2, t.tokens);
    for (int64_t done = 0; done < t.prompt; done += runner_.options().step_tokens) {
      const int64_t chunk = std::min(t.prompt - done, runner_.options().step_tokens);
      add(chunk, t.depth + done + chunk, 1);
    }
    row.bound = double(t.count()) / bound, row.predicted = double(t.count()) / predicted;
  }

  Loaded& l_;
  Runner& runner_;
  const Rivals& rivals_;
  SequenceState state_;
  std::vector<int32_t> ids_;
};

Result<Bench::Rivals> start_rivals(const BenchVerb& o, const Loaded& l, int64_t context) {
  Bench::Rivals rivals;
  for (const std::string& name : o.rivals) {
    Result<std::unique_ptr<Rival>> r =
        Rival::start(name, {o.rival_python, o.model, l.runtime->pool.threads(), context, l.model.vocab});
    if (!r) return r.status();
    rivals.push_back(std::move(*r));
  }
  return rivals;
}

}  // namespace

int bench_verb(const BenchVerb& o) {
  catch_interrupts();
  const std::string output = o.json ? "json" : o.output;
  const auto most = [](const std::vector<int64_t>& list) { return *std::max_element(list.begin(), list.end()); };
  if (most(o.prompts) == 0 && most(o.tokens) == 0)
    return report(usage_error("-p 0 and -n 0 leave nothing to measure; give one of them a length."));
  for (const std::string& name : o.rivals)  // before minutes are spent
    if (const Result<std::string> script = Rival::find_script(name); !script) return report(script.status());
  Result<std::unique_ptr<Loaded>> loaded = load(o);
  if (!loaded) return report(loaded.status());
  Loaded& l = **loaded;
  const int64_t longest = std::max<int64_t>(8, std::max(most(o.prompts), most(o.tokens)) + most(o.depths));
  Result<std::unique_ptr<Runner>> runner =
      Runner::make(l.model, *l.runtime, {.context = longest, .kv_type = kv_dtype(o.kv_type)});
  if (!runner) return report(runner.status());
  const Result<Bench::Rivals> rivals = start_rivals(o, l, longest);
  if (!rivals) return report(rivals.status());
  Bench bench(l, **runner, *rivals);
  std::vector<RivalName> names;
  for (const auto& r : *rivals) names.push_back({r->name(), r->version()});
  if (output != "json") print_head(l, names, output);
  Json rows = Json::array();
  std::vector<LedgerRow> kept;
  auto test = [&](const BenchTest& t) -> Status {
    if (t.count() == 0 || interrupted()) return {};
    const Result<BenchRow> r = bench.run(t, o.repeats, o.ops);
    if (!r) return r.status().code() == Code::interrupted ? Status() : r.status();
    if (output != "json") print_row(*r, l, output);
    if (output == "md" && o.ops) print_ops(*r);
    rows.push(to_json(*r, l));
    if (!o.ledger.empty()) to_ledger(*r, l, o, kept);
    return {};
  };
  for (int64_t depth : o.depths) {
    for (int64_t n : o.prompts)
      if (const Status s = test({n, 0, depth}); !s.ok()) return report(s);
    for (int64_t n : o.tokens)
      if (const Status s = test({0, n, depth}); !s.ok()) return report(s);
  }
  fputs(list_fallbacks(*l.runtime).c_str(), stderr);
  if (output == "json") print_json(Json::object({{"machine", l.machine.name}, {"rows", std::move(rows)}}));
  if (!o.ledger.empty())
    if (Status s = update_ledger(o.ledger, kept); !s.ok()) return report(s);
  return interrupted() ? int(Code::interrupted) : 0;
}

}  // namespace ridge
