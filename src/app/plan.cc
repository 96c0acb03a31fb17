// ridgeline plan: what a step must cost, per operator, on this CPU or on a machine described by a file. Executes nothing and needs
// no weights: the model's own function runs under a planning context.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>

#include "app/loaded.h"
#include "app/verbs.h"
#include "base/format.h"
#include "device/isa.h"
#include "meter/measure.h"
#include "model/plan.h"
#include "serve/runner.h"

namespace ridge {

namespace {

Result<DType> type_named(const std::string& name) {
  for (DType t : {DType::f32, DType::f16, DType::bf16})
    if (name == name_of(t)) return t;
  for (DType t : block_types())
    if (format_of(t) == format_named(name.c_str())) return t;
  std::string known = "f32, f16, bf16";
  for (DType t : block_types()) known += std::string(", ") + name_of(t);
  return usage_error("--type " + name + " is no type of weights; this build knows " + known + ".");
}

Result<Machine> machine_of(const PlanVerb& o, int threads) {
  if (!o.machine.empty()) return read_machine(o.machine);
  return load_machine(active_isa(), threads);
}

Json to_json(const LedgerLine& l) {
  Json refused = Json::array();
  for (const Refusal& r : l.refused) refused.push(Json::object({{"row", r.row}, {"reason", r.reason}}));
  return Json::object({{"op", l.op},
                       {"shape", l.shape},
                       {"row", l.row},
                       {"count", l.count},
                       {"flops", l.cost.flops()},
                       {"bytes_read", l.cost.bytes_read},
                       {"bytes_written", l.cost.bytes_written},
                       {"bound_s", l.bound_s},
                       {"predicted_s", l.predicted_s},
                       {"bound_by", l.bound_by},
                       {"refused", std::move(refused)}});
}

void print_table(const StepPlan& p, const Machine& machine, const std::string& title) {
  const Ledger& g = p.ledger;
  const double bound = g.bound_s(), predicted = g.predicted_s();
  std::vector<const LedgerLine*> lines;  // the dearest first, equal ones as they come
  for (const LedgerLine& l : g.lines()) lines.push_back(&l);
  std::sort(lines.begin(), lines.end(),
            [](auto* a, auto* b) { return a->bound_s != b->bound_s ? a->bound_s > b->bound_s : a < b; });
  fmt::print("{}\non {}{}\n\n", title, machine.name,
             machine.measured ? "" : " (nominal ceilings: run `ridgeline doctor` once to measure this machine's)");
  fmt::print("{:<22} {:<26} {:<16} {:>5} {:>9} {:>9} {:>9} {:>10} {:>6} {:<12} {:>10}\n", "op", "shape", "row", "calls", "GFLOP",
             "MB read", "MB write", "bound us", "share", "bound by", "predicted");
  for (const LedgerLine* l : lines)
    fmt::print("{:<22} {:<26} {:<16} {:>5} {:>9.3f} {:>9.2f} {:>9.2f} {:>10.1f} {:>5.1f}% {:<12} {:>10.1f}\n", l->op, l->shape,
               l->row, l->count, l->cost.flops() / 1e9, l->cost.bytes_read / 1e6, l->cost.bytes_written / 1e6, l->bound_s * 1e6,
               100 * l->bound_s / bound, l->bound_by, l->predicted_s * 1e6);
  const Cost c = g.cost();
  fmt::print(
      "\nbound {:.3f} ms, predicted {:.3f} ms ({:.0f} % of the bound); {:.2f} GFLOP, {:.1f} MB read of which {:.1f} MB weights, "
      "{:.1f} MB written\n",
      bound * 1e3, predicted * 1e3, 100 * bound / predicted, c.flops() / 1e9, c.bytes_read / 1e6, c.weight_bytes / 1e6,
      c.bytes_written / 1e6);
  fmt::print("peak memory {} bytes: weights {}, keys and values {}, activations {}, batch {}\n", p.peak_bytes(), p.weight_bytes,
             p.kv_bytes, p.activation_bytes, p.batch_bytes);
  for (const LedgerLine* l : lines)
    for (const Refusal& r : l->refused) fmt::print("  {} {} runs {}: {} refused, {}\n", l->op, l->shape, l->row, r.row, r.reason);
}

}  // namespace

int plan_verb(const PlanVerb& o) {
  Result<Source> source = open_source(o.model);
  if (!source) return report(source.status());
  const int threads = threads_of(o.threads);
  Result<Machine> machine = machine_of(o, threads);
  if (!machine) return report(machine.status());
  CommonOptions alone = o;  // nothing runs: no threads
  alone.threads = 1;
  const std::unique_ptr<Runtime> runtime = make_runtime(alone);
  runtime->place = machine->isa.empty() ? Place::cuda : Place::cpu;
  LoadOptions options{.weights = LoadOptions::Weights::measured,
                      .woven = runtime->place == Place::cpu && weaves(o, runtime->isa)};
  if (!o.type.empty()) {
    Result<DType> type = type_named(o.type);
    if (!type) return report(type.status());
    if (source->kind == Source::Kind::gguf)
      return report(usage_error("--type is for a config.json; a GGUF file says itself how its weights are stored."));
    options.stored_type = *type;
  }
  Result<Model> model = load_model(*source, options);
  if (!model) return report(model.status());
  if (Status s = cache_fits(*model, kv_dtype(o.kv_type)); !s.ok()) return report(s);
  const int64_t queries = o.prompt ? o.prompt : 1;
  if (o.depth + queries > model->context)
    return report(
        usage_error(fmt::format("{} tokens at depth {} exceed the model's context of {}.", queries, o.depth, model->context)));

  const StepShape shape{.queries = std::vector<int32_t>(o.batch, int32_t(queries)),
                        .keys = std::vector<int32_t>(o.batch, int32_t(o.depth + queries)),
                        .kv_type = kv_dtype(o.kv_type)};
  const StepPlan p = plan_step(*model, *runtime, *machine, shape);
  if (o.strict && !runtime->fallbacks.empty())
    return report(failed("--strict: this step would fall back.\n" + list_fallbacks(*runtime)));
  if (!o.json) {
    print_table(p, *machine,
                fmt::format("{}: {} of {} sequence{}, {} token{} each at depth {}", model->label,
                            o.prompt ? "prefill" : "one decode step", o.batch, o.batch > 1 ? "s" : "", queries,
                            queries > 1 ? "s" : "", o.depth));
    return 0;
  }
  Json j = Json::object({{"model", model->label},
                         {"machine", machine->name},
                         {"measured", machine->measured},
                         {"tokens", queries * o.batch},
                         {"depth", o.depth},
                         {"bound_s", p.ledger.bound_s()},
                         {"predicted_s", p.ledger.predicted_s()},
                         {"weight_bytes_read", int64_t(p.ledger.cost().weight_bytes)},
                         {"peak_bytes", p.peak_bytes()},
                         {"weight_bytes", p.weight_bytes},
                         {"kv_bytes", p.kv_bytes},
                         {"activation_bytes", p.activation_bytes},
                         {"batch_bytes", p.batch_bytes}});
  Json& ops = j.set("ops", Json::array());
  for (const LedgerLine& l : p.ledger.lines()) ops.push(to_json(l));
  print_json(j);
  return 0;
}

}  // namespace ridge
