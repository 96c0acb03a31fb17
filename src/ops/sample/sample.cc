// The bodies of sample's contract: checks, cost, cases.
#include "ops/sample/sample.h"

#include <fmt/format.h>

#include <limits>

#include "ops/call.h"
#include "ops/sampler.h"
#include "ops/shapes.h"

namespace ridge {

std::span<const Operand> Sample::operands() {
  static constexpr Operand table[] = {
      operand<&Args::logits>("logits", Role::in),
      operand<&Args::ids>("ids", Role::out),
      operand<&Args::logprobs>("logprobs", Role::out),
      operand<&Args::top_ids>("top_ids", Role::out),
      operand<&Args::top_logprobs>("top_logprobs", Role::out),
      operand<&Args::temperature>("temperature", Role::in),
      operand<&Args::top_k>("top_k", Role::in),
      operand<&Args::top_p>("top_p", Role::in),
      operand<&Args::min_p>("min_p", Role::in),
      operand<&Args::repetition>("repetition", Role::in),
      operand<&Args::presence>("presence", Role::in),
      operand<&Args::frequency>("frequency", Role::in),
      operand<&Args::history>("history", Role::in, false),
      operand<&Args::history_len>("history_len", Role::in),
      operand<&Args::generated_from>("generated_from", Role::in),
      operand<&Args::bias_ids>("bias_ids", Role::in),
      operand<&Args::bias_values>("bias_values", Role::in),
      operand<&Args::seed>("seed", Role::in),
      operand<&Args::step>("step", Role::in),
  };
  return table;
}

namespace {

bool is_row(const View& v, int64_t rows, DType type) { return !v || (fits_row(v, rows) && v.type == type); }
bool is_float_row(const View& v, int64_t rows) { return !v || (fits_row(v, rows) && is_float(v.type)); }
bool is_table(const View& v, int64_t rows) { return !v || (v.rank == 2 && v.dims[0] == rows); }

}  // namespace

std::string Sample::check(const Args& a) {
  const int64_t rows = a.logits.dims[0];
  if (a.logits.rank != 2 || a.logits.dims[1] < 1 || !is_float(a.logits.type)) return "logits are floating point [rows, vocab]";
  if (a.logits.dims[1] > std::numeric_limits<int32_t>::max()) return "ids are 32-bit: the vocabulary is too large";
  if (!a.ids || !is_row(a.ids, rows, DType::i32)) return "ids are i32 [rows]";
  for (const View& v : {a.logprobs, a.temperature, a.top_p, a.min_p, a.repetition, a.presence, a.frequency})
    if (!is_float_row(v, rows)) return "logprobs, temperature, top_p, min_p and the penalties are floating point [rows]";
  for (const View& v : {a.top_k, a.history_len, a.generated_from, a.step})
    if (!is_row(v, rows, DType::i32)) return "top_k, history_len, generated_from and step are i32 [rows]";
  if (!is_row(a.seed, rows, DType::i64)) return "seed is i64 [rows]";
  if (a.temperature && (!a.seed || !a.step)) return "a temperature needs seed and step: draws are reproducible";
  if (a.top_logprobs && !a.top_ids) return "top_logprobs belong to top_ids";
  if (!is_table(a.top_ids, rows) || (a.top_ids && (a.top_ids.type != DType::i32 || a.top_ids.dims[1] > a.logits.dims[1])))
    return "top_ids are i32 [rows, n] with n <= vocab";
  if (a.top_logprobs && (!same_dims(a.top_logprobs, a.top_ids) || !is_float(a.top_logprobs.type)))
    return "top_logprobs are [rows, n] like top_ids";
  if ((a.repetition || a.presence || a.frequency) && !a.history) return "penalties need the history";
  if (!is_table(a.history, rows) || (a.history && (a.history.type != DType::i32 || !a.history_len)))
    return "history is i32 [rows, max] and comes with history_len";
  if (!is_table(a.bias_ids, rows) || (a.bias_ids && a.bias_ids.type != DType::i32)) return "bias_ids are i32 [rows, n]";
  if (bool(a.bias_ids) != bool(a.bias_values)) return "bias_ids and bias_values come together";
  if (a.bias_values && (!same_dims(a.bias_values, a.bias_ids) || !is_float(a.bias_values.type)))
    return "bias_values are [rows, n] like bias_ids";
  return {};
}

Cost Sample::cost(const Args& a) { return {.vector_flops = 4 * double(a.logits.count())}; }
std::string Sample::shape(const Args& a) {
  return fmt::format("{}x{} {}{}", a.logits.dims[0], a.logits.dims[1], name_of(a.logits.type), a.temperature ? "" : " greedy");
}

namespace {

constexpr double kInf = std::numeric_limits<double>::infinity(), kNan = std::numeric_limits<double>::quiet_NaN();

Sample::Args greedy(Sampler& r, View logits) {
  const int64_t rows = logits.dims[0];
  return {.logits = logits, .ids = r.out({rows}, DType::i32), .logprobs = r.out({rows}, DType::f32)};
}

// Every row at this temperature, with seeds of its own.
Sample::Args warm(Sampler& r, View logits, double temperature) {
  Sample::Args a = greedy(r, logits);
  const int64_t rows = logits.dims[0];
  a.temperature = r.constant({rows}, DType::f32, temperature);
  a.seed = r.integers({rows}, DType::i64, 0, int64_t(1) << 40);
  a.step = r.integers({rows}, DType::i32, 0, 4096);
  return a;
}

void with_top(Sampler& r, Sample::Args& a, int64_t n) {
  a.top_ids = r.out({a.logits.dims[0], n}, DType::i32);
  a.top_logprobs = r.out({a.logits.dims[0], n}, DType::f32);
}

void with_history(Sampler& r, Sample::Args& a, int64_t max, int64_t below) {
  const int64_t rows = a.logits.dims[0];
  a.history = r.integers({rows, max}, DType::i32, -1, below);
  a.history_len = r.integers({rows}, DType::i32, 0, max + 3);  // also too long a length: cut
  a.generated_from = r.integers({rows}, DType::i32, -1, max);
  a.repetition = r.uniform({rows}, DType::f32, 0.8, 1.5);
  a.presence = r.uniform({rows}, DType::f32, -0.5, 1.5);
  a.frequency = r.uniform({rows}, DType::f32, -0.2, 0.6);
}

// All settings at once, different in every row.
Sample::Args everything(Sampler& r, int64_t rows, int64_t vocab) {
  Sample::Args a = warm(r, r.normal({rows, vocab}, DType::f32, 3), 1);
  a.temperature = r.uniform({rows}, DType::f32, 0.05, 2);
  a.top_k = r.integers({rows}, DType::i32, -1, vocab + 2);
  a.top_p = r.uniform({rows}, DType::f32, 0.2, 1.1);
  a.min_p = r.uniform({rows}, DType::f32, -0.02, 0.2);
  with_history(r, a, 40, vocab + 1);
  a.bias_ids = r.integers({rows, 6}, DType::i32, -1, vocab + 1);
  a.bias_values = r.normal({rows, 6}, DType::f32, 5);
  with_top(r, a, std::min<int64_t>(5, vocab));
  return a;
}

// Rows that broke samplers, each beside good ones: nothing may leak from one into another.
Sample::Args hostile_rows(Sampler& r, int64_t vocab, double temperature) {
  View z = r.normal({9, vocab}, DType::f32);
  for (int64_t i = 0; i < vocab; ++i) {
    z.set(kNan, 1, i);                                // all NaN
    z.set(-kInf, 2, i);                               // all banned
    z.set(i == vocab / 2 ? 0 : -kInf, 3, i);          // one-hot
    z.set(1.25, 4, i);                                // all equal
    z.set(i % 3 ? kNan : double(z.get(5, i)), 5, i);  // NaN among numbers
    z.set(i == 3 % vocab ? 3e38 : -3e38, 7, i);       // the difference overflows f32
  }
  z.set(kInf, 6, vocab - 1);
  z.set(kInf, 6, vocab / 3);
  Sample::Args a = warm(r, z, temperature);
  a.top_k = r.constant({9}, DType::i32, 1 << 30);
  a.top_p = r.values({9}, DType::f32, {0.9, 0.9, 0.9, 0.9, 0.9, 1, 0.9, 0.9, 0});
  with_top(r, a, std::min<int64_t>(4, vocab));
  return a;
}

Sample::Args plateau(Sampler& r, int64_t k, double p) {  // ties across every cut: lower ids stay
  std::vector<double> z;
  for (int i = 0; i < 700; ++i) z.push_back(i % 7 == 0 ? 2 : i % 5 == 0 ? 1 : 0);
  for (int i = 0; i < 700; ++i) z.push_back(i >= 350 ? 2 : 1);
  Sample::Args a = warm(r, r.values({2, 700}, DType::f32, z), 0.7);
  a.top_k = r.constant({2}, DType::i32, double(k));
  a.top_p = r.constant({2}, DType::f32, p);
  with_top(r, a, 12);
  return a;
}

}  // namespace

std::vector<Case<Sample>> Sample::cases() {
  std::vector<Case<Sample>> all = {
      {"smoke_greedy", Suite::smoke,
       [](Sampler& r) {
         return greedy(r, r.normal({3, 300}, DType::f32, 2));
       }},
      {"smoke_warm", Suite::smoke,
       [](Sampler& r) {
         return warm(r, r.normal({4, 300}, DType::f32, 2), 0.8);
       }},
      {"smoke_everything", Suite::smoke, [](Sampler& r) { return everything(r, 12, 700); }},
      {"edge_bf16_logits", Suite::edge,
       [](Sampler& r) {
         return warm(r, r.normal({3, 100}, DType::bf16, 3), 1);
       }},
      {"edge_logprobs_in_bf16", Suite::edge,
       [](Sampler& r) {
         Args a = greedy(r, r.normal({5, 90}, DType::f16, 2));
         a.logprobs = r.out({5}, DType::bf16);
         return a;
       }},
      {"edge_vocab_of_one", Suite::edge,
       [](Sampler& r) {
         Args a = warm(r, r.normal({3, 1}, DType::f32), 1);
         with_top(r, a, 1);
         return a;
       }},
      {"edge_temperature_below_zero_nan_and_tiny", Suite::edge,
       [](Sampler& r) {
         Args a = warm(r, r.normal({5, 400}, DType::f32), 1);
         a.temperature = r.values({5}, DType::f64, {-1, kNan, 1e-320, 1e-30, 1e30});
         return a;
       }},
      {"edge_nothing_in_temperature_but_greedy_ties", Suite::edge,
       [](Sampler& r) {
         return greedy(r, r.values({2, 5}, DType::f32, {1, 7, 7, 7, 0, -0.0, 0.0, -1, 0.0, -0.0}));
       }},
      {"edge_near_certainty", Suite::edge,
       [](Sampler& r) {  // the log-probability is -1e-9 and keeps its digits
         View z = r.normal({3, 500}, DType::f32);
         for (int64_t i = 0; i < 3; ++i) z.set(30 + double(i), i, 17 * i);
         return greedy(r, z);
       }},
      {"edge_bans_everything", Suite::edge,
       [](Sampler& r) {
         Args a = warm(r, r.normal({2, 3}, DType::f32), 1);
         a.bias_ids = r.values({2, 3}, DType::i32, {0, 1, 2, 0, 1, -1});
         a.bias_values = r.constant({2, 3}, DType::f32, -kInf);
         return a;
       }},
      {"edge_bias_meets_ban", Suite::edge,
       [](Sampler& r) {  // -inf + inf
         View z = r.normal({2, 40}, DType::f32);
         z.set(-kInf, 0, 5);
         Args a = warm(r, z, 1);
         a.bias_ids = r.values({2, 4}, DType::i32, {5, 5, 7, 7, -1, 40, 1 << 30, -2147483648.0});
         a.bias_values = r.values({2, 4}, DType::f32, {kInf, 1, 2, 3, kNan, kNan, kNan, kNan});
         return a;
       }},
      {"edge_repetition_of_zero_and_of_banned", Suite::edge,
       [](Sampler& r) {
         View z = r.normal({2, 50}, DType::f32);
         z.set(-kInf, 0, 3);
         Args a = warm(r, z, 1);
         a.history = r.integers({2, 9}, DType::i32, 0, 6);
         a.history_len = r.constant({2}, DType::i32, 9);
         a.repetition = r.constant({2}, DType::f32, 0);
         return a;
       }},
      {"edge_empty_history", Suite::edge,
       [](Sampler& r) {
         Args a = warm(r, r.normal({2, 50}, DType::f32), 1);
         with_history(r, a, 4, 50);
         a.history_len = r.constant({2}, DType::i32, 0);
         return a;
       }},
      {"edge_min_p_alone", Suite::edge,
       [](Sampler& r) {
         Args a = warm(r, r.normal({8, 600}, DType::f32, 2), 1.5);
         a.min_p = r.uniform({8}, DType::f32, 0, 1.2);
         return a;
       }},
      {"edge_nucleus_of_a_flat_tail", Suite::edge,
       [](Sampler& r) {  // the run is thousands of tokens long
         Args a = warm(r, r.normal({6, 9000}, DType::f32, 0.01), 1);
         a.top_p = r.uniform({6}, DType::f32, 0.1, 0.999);
         return a;
       }},
      {"edge_full_width", Suite::edge, [](Sampler& r) { return everything(r, 33, 2049); }},
      {"model_smollm2_greedy", Suite::model,
       [](Sampler& r) {
         return greedy(r, r.normal({1, 49152}, DType::f32, 3));
       }},
      {"model_smollm2_warm", Suite::model,
       [](Sampler& r) {
         return warm(r, r.normal({1, 49152}, DType::f32, 3), 0.8);
       }},
      {"model_smollm2_usual", Suite::model,
       [](Sampler& r) {
         Args a = warm(r, r.normal({4, 49152}, DType::f32, 3), 0.8);
         a.top_k = r.constant({4}, DType::i32, 40);
         a.top_p = r.constant({4}, DType::f32, 0.95);
         a.min_p = r.constant({4}, DType::f32, 0.05);
         return a;
       }},
      {"model_llama3_nucleus", Suite::model,
       [](Sampler& r) {
         Args a = warm(r, r.normal({2, 128256}, DType::f32, 3), 0.6);
         a.top_p = r.constant({2}, DType::f32, 0.9);
         return a;
       }},
      {"model_llama3_everything", Suite::model, [](Sampler& r) { return everything(r, 3, 128256); }},
  };
  for (int64_t vocab : {4, 15, 16, 17, 63, 64, 65, 255, 256, 257, 1025}) {
    all.push_back(
        {fmt::format("edge_everything_vocab{}", vocab), Suite::edge, [=](Sampler& r) { return everything(r, 7, vocab); }});
    all.push_back(
        {fmt::format("edge_hostile_rows_vocab{}", vocab), Suite::edge, [=](Sampler& r) { return hostile_rows(r, vocab, 0.9); }});
  }
  all.push_back({"edge_hostile_rows_greedy", Suite::edge, [](Sampler& r) { return hostile_rows(r, 333, 0); }});
  for (int64_t k : {1, 2, 99, 100, 101, 140, 699, 700})
    for (double p : {1.0, 0.5})
      all.push_back({fmt::format("edge_plateau_k{}_p{}", k, p), Suite::edge, [=](Sampler& r) { return plateau(r, k, p); }});
  return all;
}

}  // namespace ridge
