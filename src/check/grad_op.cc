#include "check/grad_op.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <memory>
#include <optional>

#include "base/arena.h"
#include "base/rng.h"
#include "check/runner.h"

namespace ridge {

namespace {

constexpr double kPrefill = 0.375;            // what the gradients hold before the vjp adds to them
constexpr int64_t kActs = int64_t(16) << 20;  // for what a vjp makes in between

// The median magnitude of what is neither zero nor infinite: a step that suits most elements, whatever the largest one is.
double typical_size(const View& v) {
  std::vector<double> sizes;
  for_each_index(v, [&](int64_t i, int64_t j, int64_t k, int64_t l) {
    const double x = std::fabs(v.get(i, j, k, l));
    if (std::isfinite(x) && x > 0) sizes.push_back(x);
  });
  if (sizes.empty()) return 1;
  std::nth_element(sizes.begin(), sizes.begin() + int64_t(sizes.size() / 2), sizes.end());
  return sizes[sizes.size() / 2];
}

// One floating operand in an arena of its own, with its gradient's.
struct Tracked {
  int operand;
  bool output, inout;
  Arena values, grads;
  View value, grad;                      // each cell once
  std::vector<double> initial, weights;  // as the case made it; of the loss, outputs only
  double scale = 1;                      // typical size of an element
  Tracked(int operand, Role role, int64_t bytes)
      : operand(operand), output(is_output(role)), inout(role == Role::inout), values(bytes), grads(bytes) {}
  // Where the value is that a forward pass starts from: results are written over.
  double* start_of(int64_t i, int64_t j, int64_t k, int64_t l) {
    double* at = value.as<double>(i, j, k, l);
    return output ? initial.data() + (at - value.as<double>()) : at;
  }
};

// The elements of v that have memory of their own: a broadcast dimension (stride 0) counts once.
View cells_of(View v) {
  for (int d = 0; d < v.rank; ++d)
    if (v.strides[d] == 0) v.dims[d] = std::min<int64_t>(v.dims[d], 1);
  return v;
}

class GradCase {
 public:
  GradCase(const OpInfo& op, const CaseInfo& c, const GradOptions& options, Runtime& runtime, Arena& acts, GradReport& report)
      : op_(op),
        case_(c),
        options_(options),
        report_(report),
        runtime_(runtime),
        acts_(acts),
        args_(CaseArgs(op, c), {.f64 = true, .unalias = true}),
        key_{.seed = 0x6772616469656e74u} {
    for (int o = 0; o < args_.operands(); ++o) track(o);
  }

  void run() {
    if (const std::string wrong = op_.check(args_.get()); !wrong.empty())
      return fail("", "the contract refuses the case's operands in double: " + wrong);
    if (const std::string why = op_.no_gradient(args_.get()); !why.empty()) return pass_over(why);
    if (per_element() <= 0) return pass_over("too large");
    forward();
    if (!weigh_outputs()) return pass_over("its outputs are not finite");
    if (shows_nan()) return pass_over("an input that is not a number reaches its outputs");
    const std::map<int, std::vector<double>> analytic = gradients(-1);
    if (damaged_) return;
    for (auto& t : tracked_)
      if (t->value.count() > 0 && (t->inout ? turned(*t, analytic.at(t->operand)) : !t->output))
        compare(*t, analytic.at(t->operand));
    for (auto& t : tracked_)
      if (!t->output) freeze(t->operand, analytic);
  }

 private:
  void track(int o) {
    const Operand& operand = op_.operands[size_t(o)];
    if (!args_.has(o) || args_.view(o).type != DType::f64) return;
    if (!is_output(operand.role) && !operand.differentiable) return;
    View& v = args_.view(o);
    const int64_t bytes = std::max<int64_t>(span_of(v) * 8, 8);
    auto t = std::make_unique<Tracked>(o, operand.role, bytes);
    char* memory = t->values.raw(bytes);
    memcpy(memory, v.data, size_t(span_of(v) * 8));
    v.data = memory;
    t->value = cells_of(v);
    t->grad = t->value;
    t->grad.data = t->grads.base();
    t->initial.assign(t->value.as<double>(), t->value.as<double>() + span_of(v));
    t->scale = typical_size(t->value);
    tracked_.push_back(std::move(t));
  }

  bool output(int operand) const { return is_output(op_.operands[size_t(operand)].role); }
  double draw() { return uniform(key_, element_++); }
  void fail(const std::string& operand, const std::string& what) {
    report_.failures.push_back(
        {case_.name, operand, what, fmt::format("ridgeline op grad {} --case {} -t {}", op_.name, case_.name, options_.threads)});
  }
  void pass_over(const std::string& why) { report_.passed_over.push_back(case_.name + ": " + why); }

  // How many elements of each operand the budget allows.
  int per_element() const {
    const double flops = std::max(op_.cost(args_.get()).flops(), 1e3);
    int operands = 0;
    for (const auto& t : tracked_) operands += !t->output;
    return int(std::min<double>(options_.elements, options_.case_flops / (4 * flops * std::max(operands, 1))));
  }

  void forward() {
    for (auto& t : tracked_)
      if (t->output) std::copy(t->initial.begin(), t->initial.end(), t->value.as<double>());
    acts_.release(0);
    Ctx x(Mode::run, runtime_, acts_);
    op_.reference(x, args_.get(), nullptr);
  }

  // Random weights for the outputs of the loss. What is not finite (a masked row, padding that nobody writes) has none.
  bool weigh_outputs() {
    bool any = false;
    for (auto& t : tracked_) {
      if (!t->output) continue;
      for_each_index(t->value, [&](int64_t i, int64_t j, int64_t k, int64_t l) {
        const bool finite = std::isfinite(t->value.get(i, j, k, l));
        t->weights.push_back(finite ? 2 * draw() - 1 : 0);
        any = any || finite;
      });
    }
    return any;
  }

  bool shows_nan() const {
    bool any = false;
    for (const auto& t : tracked_)
      if (t->output)
        for_each_index(t->value,
                       [&](int64_t i, int64_t j, int64_t k, int64_t l) { any = any || std::isnan(t->value.get(i, j, k, l)); });
    return any;
  }

  // The outputs, one after the other.
  std::vector<double> outputs() {
    forward();
    std::vector<double> all;
    for (const auto& t : tracked_)
      if (t->output)
        for_each_index(t->value, [&](int64_t i, int64_t j, int64_t k, int64_t l) { all.push_back(t->value.get(i, j, k, l)); });
    return all;
  }

  // Runs the vjp with everything tracked but `untracked` (-1: all), and returns what it added. The forward pass has run.
  std::map<int, std::vector<double>> gradients(int untracked) {
    forward();
    acts_.release(0);
    Ctx x(Mode::run, runtime_, acts_);
    for (auto& t : tracked_) {
      for (int64_t i = 0; i < span_of(t->value); ++i) t->grad.as<double>()[i] = kPrefill;
      size_t w = 0;
      if (t->output) {  // an element that several indices reach (stride 0) weighs their sum
        for (int64_t i = 0; i < span_of(t->value); ++i) t->grad.as<double>()[i] = 0;
        for_each_index(t->grad, [&](int64_t i, int64_t j, int64_t k, int64_t l) { t->grad.add(t->weights[w++], i, j, k, l); });
      }
      if (t->operand != untracked) x.track(t->values, t->grads);
    }
    const std::vector<std::vector<double>> before = contents();
    op_.vjp(x, args_.get());
    check_untouched(before);
    std::map<int, std::vector<double>> added;
    for (auto& t : tracked_)
      if (!t->output || t->inout)
        for_each_index(t->grad, [&](int64_t i, int64_t j, int64_t k, int64_t l) {
          added[t->operand].push_back(t->grad.get(i, j, k, l) - (t->output ? 0 : kPrefill));
        });
    return added;
  }

  static bool turned(const Tracked& t, const std::vector<double>& gradient) { return gradient != t.weights; }

  // Every operand, and the gradients of what is only written.
  std::vector<std::vector<double>> contents() const {
    std::vector<std::vector<double>> all;
    for (const auto& t : tracked_) {
      const View& v = t->output ? t->grad : t->value;
      all.emplace_back(v.as<double>(), v.as<double>() + span_of(v));
    }
    return all;
  }
  void check_untouched(const std::vector<std::vector<double>>& before) {
    const std::vector<std::vector<double>> after = contents();
    for (size_t i = 0; i < before.size() && !damaged_; ++i) {
      if (memcmp(before[i].data(), after[i].data(), before[i].size() * 8) == 0) continue;
      const Tracked& t = *tracked_[i];
      if (t.inout) continue;
      damaged_ = true;
      fail(name(t), t.output ? "the vjp changed the gradient of an output" : "the vjp changed an operand");
    }
  }

  const char* name(const Tracked& t) const { return op_.operands[size_t(t.operand)].name; }

  // (8 (L(h) - L(-h)) - (L(2h) - L(-2h))) / 12 h, the differences taken output by output before they are summed.
  struct Slope {
    double value, noise;
  };
  Slope slope(const Tracked& t, double* cell, double step) {
    const double x = *cell, h = step * std::max(t.scale, std::fabs(x));
    std::vector<double> at[4];
    const double steps[] = {h, -h, 2 * h, -2 * h};
    for (int s = 0; s < 4; ++s) {
      *cell = x + steps[s];
      at[s] = outputs();
    }
    *cell = x;
    double sum = 0, magnitude = 0;
    size_t i = 0;
    for (const auto& out : tracked_)
      for (double w : out->weights) {
        const double near = at[0][i] - at[1][i], far = at[2][i] - at[3][i];
        if (w != 0) sum += w * (8 * near - far);
        if (w != 0 && (near != 0 || far != 0)) magnitude += std::fabs(w * at[0][i]);
        ++i;
      }
    return {sum / (12 * h), 16 * 0x1p-52 * magnitude / h};
  }

  void compare(Tracked& t, const std::vector<double>& analytic) {
    const int64_t n = t.value.count();
    const int64_t tries = std::min<int64_t>(per_element(), n);
    double largest = 0;
    for (double g : analytic) largest = std::max(largest, std::fabs(g));
    GradLine line{case_.name, name(t), int(tries), 0};
    for (int64_t s = 0; s < tries; ++s) {
      const int64_t e = tries == n ? s : int64_t(draw() * double(n));
      const View& v = t.value;
      const int64_t l = e % v.dims[3], k = e / v.dims[3] % v.dims[2], j = e / (v.dims[3] * v.dims[2]) % v.dims[1],
                    i = e / (v.dims[3] * v.dims[2] * v.dims[1]);
      if (!std::isfinite(*t.start_of(i, j, k, l))) continue;
      const double got = analytic[size_t(e)];
      double error = 0, scale = 0, noise = 0;
      Slope numeric{};
      // Where the function bends sharply (a norm near zero) smaller steps are needed, as far as rounding leaves something to see.
      for (double step = 1e-3; step == 1e-3 || (noise <= options_.tolerance * scale && step > 1e-13); step /= 16) {
        numeric = slope(t, t.start_of(i, j, k, l), step);
        error = std::fabs(got - numeric.value);
        scale = std::max(largest, std::fabs(numeric.value));
        noise = numeric.noise;
        if (error <= options_.tolerance * scale + noise) break;
      }
      if (scale > 0) line.worst = std::max(line.worst, error / scale);
      if (error <= options_.tolerance * scale + noise) continue;
      fail(name(t), fmt::format("d loss / d {}[{}, {}, {}, {}] is {:.9g}, differences give {:.9g}", name(t), i, j, k, l, got,
                                numeric.value));
      break;
    }
    report_.lines.push_back(std::move(line));
  }

  void freeze(int untracked, const std::map<int, std::vector<double>>& all) {
    std::map<int, std::vector<double>> rest = gradients(untracked);
    if (damaged_) return;
    for (auto& [operand, g] : rest) {
      if (output(operand)) continue;
      const std::vector<double>& expected = operand == untracked ? std::vector<double>(g.size(), 0.0) : all.at(operand);
      double largest = 0, error = 0;
      for (size_t i = 0; i < g.size(); ++i) {
        largest = std::max(largest, std::fabs(expected[i]));
        error = std::max(error, std::fabs(g[i] - expected[i]));
      }
      if (!(error <= 1e-12 * largest))
        fail(op_.operands[size_t(operand)].name,
             fmt::format("its gradient changes by {:.3g} when {} has none", error, op_.operands[size_t(untracked)].name));
    }
  }

  const OpInfo& op_;
  const CaseInfo& case_;
  const GradOptions& options_;
  GradReport& report_;
  Runtime& runtime_;
  Arena& acts_;
  CaseArgs args_;
  RngKey key_;
  uint64_t element_ = 0;
  bool damaged_ = false;
  std::vector<std::unique_ptr<Tracked>> tracked_;
};

}  // namespace

GradReport grad_op(const OpInfo& op, const GradOptions& options) {
  GradReport report{.op = op.name, .differentiable = op.vjp != nullptr};
  if (!op.vjp) return report;
  Runtime runtime(options.threads, options.isa);
  Arena acts(kActs);
  for (const CaseInfo& c : cases_named(op, options.case_filter))
    if (c.suite <= options.suite) GradCase(op, c, options, runtime, acts, report).run();
  if (report.lines.empty() && options.case_filter.empty())
    report.failures.push_back({"", "", "has a vjp, but no smoke or edge case to check it on", ""});
  return report;
}

std::string to_text(const GradReport& r) {
  if (!r.differentiable) return fmt::format("{}: has no backward pass\n", r.op);
  std::string s = fmt::format("{}: {} gradients checked, {}\n", r.op, r.lines.size(), r.ok() ? "all passed" : "FAILED");
  for (const GradLine& l : r.lines)
    s += fmt::format("  {:<32} {:<14} {:>4} elements  worst {:.1e}\n", l.case_name, l.operand, l.elements, l.worst);
  for (const std::string& p : r.passed_over) s += "  passed over " + p + "\n";
  for (const Failure& f : r.failures) s += fmt::format("  FAILED {} {}: {}\n    {}\n", f.case_name, f.row, f.what, f.repro);
  return s;
}

}  // namespace ridge
