// The bodies of rope's contract: frequencies and their scalings, operands, checks, cost, cases, gradient.
#include "ops/rope/rope.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include "ops/call.h"
#include "ops/sampler.h"
#include "ops/shapes.h"

namespace ridge {

// ---- frequencies

namespace {

// Long waves are divided by the factor, short ones kept; between them a blend linear in the number of turns over the trained
// length.
double llama3(const RopeFrequencies& f, double frequency) {
  const double turns = f.original_context * frequency / (2 * std::numbers::pi);
  const double keep = std::clamp((turns - f.low_freq_factor) / (f.high_freq_factor - f.low_freq_factor), 0.0, 1.0);
  return frequency * (keep + (1 - keep) / f.factor);
}

// YaRN blends linearly in the index i, between the indices whose waves make beta_fast and beta_slow turns over the trained
// length.
struct YarnRamp {
  double low, high;
  YarnRamp(const RopeFrequencies& f, int64_t half) {
    auto index_of = [&](double turns) {
      return double(half) * std::log(f.original_context / (turns * 2 * std::numbers::pi)) / std::log(f.theta);
    };
    low = index_of(f.beta_fast), high = index_of(f.beta_slow);
    if (f.truncate) low = std::floor(low), high = std::ceil(high);
    low = std::max(low, 0.0), high = std::min(high, double(2 * half - 1));
    if (low == high) high += 0.001;
  }
  double divided(int64_t i) const { return std::clamp((double(i) - low) / (high - low), 0.0, 1.0); }
};

double yarn_mscale(double factor, double mscale) { return factor <= 1 ? 1 : 0.1 * mscale * std::log(factor) + 1; }

}  // namespace

void rope_frequencies(const RopeFrequencies& f, const View& inv_freq) {
  const int64_t half = inv_freq.dims[0];
  const YarnRamp ramp = f.scaling == RopeScaling::yarn ? YarnRamp(f, half) : YarnRamp({.original_context = 1}, half);
  for (int64_t i = 0; i < half; ++i) {
    double frequency = std::pow(f.theta, -double(i) / double(half));
    switch (f.scaling) {
      case RopeScaling::none: break;
      case RopeScaling::linear: frequency /= f.factor; break;
      case RopeScaling::llama3: frequency = llama3(f, frequency); break;
      case RopeScaling::yarn: frequency *= 1 - ramp.divided(i) + ramp.divided(i) / f.factor; break;
    }
    inv_freq.set(frequency, i);
  }
}

double rope_attention_factor(const RopeFrequencies& f) {
  if (f.attention_factor > 0) return f.attention_factor;
  if (f.scaling != RopeScaling::yarn) return 1;
  if (f.mscale > 0 && f.mscale_all_dim > 0) return yarn_mscale(f.factor, f.mscale) / yarn_mscale(f.factor, f.mscale_all_dim);
  return yarn_mscale(f.factor, 1);
}

std::string check_frequencies(const RopeFrequencies& f) {
  if (!(f.theta > 1)) return "rope theta is a number above 1";
  if (f.scaling != RopeScaling::none && !(f.factor > 0)) return "the rope scaling factor is positive";
  if ((f.scaling == RopeScaling::llama3 || f.scaling == RopeScaling::yarn) && !(f.original_context > 0))
    return "this rope scaling needs the trained context length (original_max_position_embeddings)";
  if (f.scaling == RopeScaling::llama3 && !(f.high_freq_factor > f.low_freq_factor))
    return "high_freq_factor is larger than low_freq_factor";
  if (f.scaling == RopeScaling::yarn && !(f.beta_slow > 0 && f.beta_fast > f.beta_slow))
    return "beta_fast is larger than beta_slow, which is positive";
  if (!(f.attention_factor >= 0)) return "the rope attention factor is positive";
  return {};
}

namespace {

// What rope and its backward pass have in common.
template <class Args>
std::string check_turn(const Args& a, int64_t tokens, int64_t d) {
  const int64_t rotary = a.rotary_dim ? a.rotary_dim : d;
  if (a.positions.of.rank != 1 || a.positions.of.dims[0] != tokens || a.positions.of.type != DType::i32)
    return "positions are i32 [tokens]";
  if (rotary < 2 || rotary % 2 != 0 || rotary > d)
    return fmt::format("rotary_dim {} is not even and at most the head dimension {}", rotary, d);
  if (a.inv_freq && (a.inv_freq.rank != 1 || a.inv_freq.dims[0] != rotary / 2 || !is_float(a.inv_freq.type)))
    return "inv_freq is not [rotary_dim / 2]";
  return check_frequencies(a.frequencies);
}

bool is_vector(const View& v, int64_t n) { return v.rank == 1 && v.dims[0] == n; }

}  // namespace

// ---- rope

std::span<const Operand> Rope::operands() {
  static constexpr Operand table[] = {
      operand<&Args::q>("q", Role::in),
      operand<&Args::k>("k", Role::in),
      operand<&Args::positions, &Positions::of>("positions", Role::in),
      operand<&Args::inv_freq>("inv_freq", Role::in, true, false),
      operand<&Args::q_norm>("q_norm", Role::weight),
      operand<&Args::k_norm>("k_norm", Role::weight),
      operand<&Args::v>("v", Role::in),
      operand<&Args::pages, &Pages::slots>("slots", Role::in),
      operand<&Args::q_out>("q_out", Role::out),
      operand<&Args::k_out>("k_out", Role::out),
      operand<&Args::k_pages>("k_pages", Role::inout, false),
      operand<&Args::v_pages>("v_pages", Role::inout, false),
  };
  return table;
}

std::string Rope::check(const Args& a) {
  const int64_t tokens = a.q.dims[0], d = a.q.dims[2], kv_heads = a.k.dims[1];
  if (a.q.rank != 3 || a.k.rank != 3 || a.k.dims[0] != tokens || a.k.dims[2] != d)
    return "q and k are [tokens, heads, d] and [tokens, kv_heads, d]";
  if (!same_dims(a.q_out, a.q)) return "q_out is not like q";
  if (a.k_out ? !same_dims(a.k_out, a.k) : !a.k_pages)
    return "k_out is not like k (it may be absent only where k_pages is written)";
  if (bool(a.q_norm) != bool(a.k_norm)) return "q_norm and k_norm come together";
  if (a.q_norm && (!is_vector(a.q_norm, d) || !is_vector(a.k_norm, d))) return "q_norm and k_norm are [d]";
  if (bool(a.k_pages) != bool(a.v_pages)) return "k_pages and v_pages come together";
  if (a.k_pages) {
    if (a.v.rank != 3 || a.v.dims[0] != tokens || a.v.dims[1] != kv_heads) return "v_pages needs v [tokens, kv_heads, dv]";
    if (a.k_pages.rank != 4 || a.k_pages.dims[1] != kv_heads || a.k_pages.dims[3] != d)
      return "k_pages is not [pages, kv_heads, page, d]";
    if (a.v_pages.rank != 4 || a.v_pages.dims[0] != a.k_pages.dims[0] || a.v_pages.dims[1] != kv_heads ||
        a.v_pages.dims[2] != a.k_pages.dims[2] || a.v_pages.dims[3] != a.v.dims[2])
      return "v_pages is not [pages, kv_heads, page, dv] like k_pages";
    if (!is_vector(a.pages.slots, tokens) || a.pages.slots.type != DType::i64) return "k_pages needs i64 slots [tokens]";
  }
  for (const View& v : {a.q, a.k, a.q_out, a.k_out, a.v})
    if (v && !is_float(v.type)) return "q, k, v and what is written are floating point";
  for (const View& v : {a.k_pages, a.v_pages})
    if (v && !is_float(v.type) && !(v.type == DType::q8_0 && v.whole_blocks()))
      return "pages are floating point, or Q8_0 with head dimensions and strides of whole blocks of 32";
  return check_turn(a, tokens, d);
}

Cost Rope::cost(const Args& a) {
  Cost c{.vector_flops = 3.0 * double(a.q.count() + a.k.count())};
  if (a.q_norm) c.vector_flops += 4.0 * double(a.q.count() + a.k.count());
  if (a.k_pages) c.bytes_written = double(bytes_of(a.k_pages.type, a.k.count()) + bytes_of(a.v_pages.type, a.v.count()));
  return c;
}

std::string Rope::shape(const Args& a) {
  return fmt::format("{} tokens, {}/{}x{} {}{}{}", a.q.dims[0], a.q.dims[1], a.k.dims[1], a.q.dims[2], name_of(a.q.type),
                     a.q_norm ? " norm" : "", a.k_pages ? std::string(" to ") + name_of(a.k_pages.type) : "");
}

std::string Rope::no_gradient(const Args& a) {
  if (a.k_pages) return "a recorded rope does not write the cache: what is read from there would have no gradient";
  if (a.q_out.data == a.q.data || a.k_out.data == a.k.data) return "a recorded rope writes beside its inputs, not over them";
  return {};
}

void Rope::vjp(Ctx& x, const Args& a) {
  View dq = x.grad(a.q), dk = x.grad(a.k), d_q_out = x.grad(a.q_out), d_k_out = x.grad(a.k_out);
  const bool turns_q = d_q_out && (dq || x.grad(a.q_norm)), turns_k = d_k_out && (dk || x.grad(a.k_norm));
  if (!turns_q && !turns_k) return;
  rope_backward(x, {.d_q_out = turns_q ? d_q_out : View{},
                    .d_k_out = turns_k ? d_k_out : View{},
                    .positions = a.positions,
                    .dq = dq,
                    .dk = dk,
                    .frequencies = a.frequencies,
                    .inv_freq = a.inv_freq,
                    .rotary_dim = a.rotary_dim,
                    .pairs = a.pairs,
                    .q = a.q,
                    .k = a.k,
                    .q_norm = a.q_norm,
                    .k_norm = a.k_norm,
                    .dq_norm = x.grad(a.q_norm),
                    .dk_norm = x.grad(a.k_norm),
                    .eps = a.eps});
}

// ---- rope_backward

std::span<const Operand> RopeBackward::operands() {
  static constexpr Operand table[] = {
      operand<&Args::d_q_out>("d_q_out", Role::in),
      operand<&Args::d_k_out>("d_k_out", Role::in),
      operand<&Args::positions, &Positions::of>("positions", Role::in),
      operand<&Args::inv_freq>("inv_freq", Role::in, true, false),
      operand<&Args::q>("q", Role::in),
      operand<&Args::k>("k", Role::in),
      operand<&Args::q_norm>("q_norm", Role::weight),
      operand<&Args::k_norm>("k_norm", Role::weight),
      operand<&Args::dq>("dq", Role::inout),
      operand<&Args::dk>("dk", Role::inout),
      operand<&Args::dq_norm>("dq_norm", Role::inout),
      operand<&Args::dk_norm>("dk_norm", Role::inout),
  };
  return table;
}

std::string RopeBackward::check(const Args& a) {
  if (!a.d_q_out && !a.d_k_out) return "d_q_out or d_k_out is given";
  const View& any = a.d_q_out ? a.d_q_out : a.d_k_out;
  if (any.rank != 3) return "gradients are [tokens, heads, d]";
  const int64_t tokens = any.dims[0], d = any.dims[2];
  if (a.d_q_out && a.d_k_out && (a.d_k_out.rank != 3 || a.d_k_out.dims[0] != tokens || a.d_k_out.dims[2] != d))
    return "d_q_out and d_k_out differ in tokens or d";
  auto half = [&](const View& d_out, const View& x, const View& norm, const View& dx, const View& d_norm) {
    if (!d_out) return true;
    if (dx && !same_dims(dx, d_out)) return false;
    if (norm && (!is_vector(norm, d) || !same_dims(x, d_out))) return false;
    return !d_norm || (norm && is_vector(d_norm, d));
  };
  if (!half(a.d_q_out, a.q, a.q_norm, a.dq, a.dq_norm)) return "dq, q are not like d_q_out, or q_norm, dq_norm not [d]";
  if (!half(a.d_k_out, a.k, a.k_norm, a.dk, a.dk_norm)) return "dk, k are not like d_k_out, or k_norm, dk_norm not [d]";
  return check_turn(a, tokens, d);
}

Cost RopeBackward::cost(const Args& a) {
  const double n = double((a.d_q_out ? a.d_q_out.count() : 0) + (a.d_k_out ? a.d_k_out.count() : 0));
  return {.vector_flops = (a.q_norm || a.k_norm ? 13.0 : 4.0) * n};
}

std::string RopeBackward::shape(const Args& a) {
  const View& any = a.d_q_out ? a.d_q_out : a.d_k_out;
  return fmt::format("{} tokens, {}/{}x{}{}", any.dims[0], a.d_q_out ? a.d_q_out.dims[1] : 0, a.d_k_out ? a.d_k_out.dims[1] : 0,
                     any.dims[2], a.q_norm || a.k_norm ? " norm" : "");
}

// ---- cases

namespace {

struct Shape {
  int64_t tokens = 7, heads = 4, kv_heads = 2, d = 32, rotary = 0;
  DType type = DType::f32, cache = DType::f32;
  RopePairs pairs = RopePairs::half_split;
  RopeFrequencies frequencies{};
  std::vector<double> positions{};  // empty: restarts twice within the batch
  bool norm = false, write = false, table = false;
  int64_t page = 4;
};

std::vector<double> positions_of(const Shape& s) {
  if (!s.positions.empty()) return s.positions;
  std::vector<double> p;
  for (int64_t t = 0; t < s.tokens; ++t)
    p.push_back(double(t < s.tokens / 3 ? t : t < s.tokens / 2 ? 3 * t + 1000 : t - s.tokens / 2));
  return p;
}

Rope::Args make(Sampler& r, const Shape& s) {
  const DType exact = s.type == DType::f64 ? DType::f64 : DType::f32;
  Rope::Args a{.q = r.normal({s.tokens, s.heads, s.d}, s.type),
               .k = r.normal({s.tokens, s.kv_heads, s.d}, s.type),
               .positions = {r.values({s.tokens}, DType::i32, positions_of(s))},
               .q_out = r.out({s.tokens, s.heads, s.d}, s.type),
               .k_out = r.out({s.tokens, s.kv_heads, s.d}, s.type),
               .frequencies = s.frequencies,
               .rotary_dim = s.rotary,
               .pairs = s.pairs};
  if (s.norm) a.q_norm = r.normal({s.d}, exact, 0.2, 1), a.k_norm = r.normal({s.d}, exact, 0.2, 1);
  if (s.table) {
    a.inv_freq = r.out({(s.rotary ? s.rotary : s.d) / 2}, DType::f64);
    rope_frequencies(s.frequencies, a.inv_freq);
  }
  if (s.write) {
    const int64_t pages = (s.tokens + s.page - 1) / s.page + 2;
    const int64_t dv = is_block(s.cache) ? s.d + 32 : s.d + 8;
    a.v = r.normal({s.tokens, s.kv_heads, dv}, s.type);
    a.k_pages = r.normal({pages, s.kv_heads, s.page, s.d}, s.cache);  // what is not written stays
    a.v_pages = r.normal({pages, s.kv_heads, s.page, dv}, s.cache);
    a.pages.slots = r.integers({s.tokens}, DType::i64, 0, 1);
    // Backwards from the last slot; every fifth token, as padding does, goes nowhere.
    for (int64_t t = 0; t < s.tokens; ++t) a.pages.slots.set(t % 5 == 4 ? -1 : double(pages * s.page - 1 - t), t);
  }
  return a;
}

const RopeFrequencies kLlama31{.theta = 500000, .scaling = RopeScaling::llama3, .factor = 8, .original_context = 8192};
const RopeFrequencies kYarn{.theta = 1e6, .scaling = RopeScaling::yarn, .factor = 4, .original_context = 32768};

RopeBackward::Args make_backward(Sampler& r, const Shape& s) {
  const Rope::Args a = make(r, s);
  const DType exact = s.type == DType::f64 ? DType::f64 : DType::f32;
  RopeBackward::Args b{.d_q_out = r.normal({s.tokens, s.heads, s.d}, exact),
                       .d_k_out = r.normal({s.tokens, s.kv_heads, s.d}, exact),
                       .positions = a.positions,
                       .dq = r.normal({s.tokens, s.heads, s.d}, exact, 0.1),
                       .dk = r.normal({s.tokens, s.kv_heads, s.d}, exact, 0.1),
                       .frequencies = a.frequencies,
                       .inv_freq = a.inv_freq,
                       .rotary_dim = a.rotary_dim,
                       .pairs = a.pairs,
                       .q = a.q,
                       .k = a.k,
                       .q_norm = a.q_norm,
                       .k_norm = a.k_norm};
  if (s.norm) b.dq_norm = r.normal({s.d}, exact, 0.1), b.dk_norm = r.normal({s.d}, exact, 0.1);
  return b;
}

}  // namespace

std::vector<Case<Rope>> Rope::cases() {
  std::vector<Case<Rope>> all;
  auto add = [&](const char* name, Suite suite, Shape s) {
    all.push_back({name, suite, [s](Sampler& r) { return make(r, s); }});
  };
  const Suite edge = Suite::edge;
  add("smoke_half_split", Suite::smoke, {});
  add("smoke_interleaved", Suite::smoke, {.pairs = RopePairs::interleaved});
  add("smoke_norm", Suite::smoke, {.norm = true});
  add("smoke_cache", Suite::smoke, {.write = true});
  add("smoke_f64", Suite::smoke, {.tokens = 3, .heads = 2, .kv_heads = 1, .d = 6, .type = DType::f64, .norm = true});
  add("edge_f64_interleaved", edge,
      {.tokens = 3, .d = 8, .rotary = 6, .type = DType::f64, .pairs = RopePairs::interleaved, .frequencies = kYarn});
  add("edge_bf16", edge, {.tokens = 20, .d = 64, .type = DType::bf16, .cache = DType::bf16, .norm = true, .write = true});
  add("edge_cache_f16", edge, {.tokens = 20, .d = 64, .cache = DType::f16, .write = true});
  add("edge_cache_q8", edge, {.tokens = 20, .d = 64, .cache = DType::q8_0, .write = true});
  add("edge_cache_q8_norm", edge, {.tokens = 20, .d = 96, .cache = DType::q8_0, .norm = true, .write = true});
  add("edge_cache_bf16_norm", edge,
      {.tokens = 20, .d = 40, .cache = DType::bf16, .pairs = RopePairs::interleaved, .norm = true, .write = true});
  add("edge_frequencies_given", edge, {.frequencies = kLlama31, .table = true});
  for (RopePairs pairs : {RopePairs::half_split, RopePairs::interleaved}) {
    const char* style = pairs == RopePairs::half_split ? "half_split" : "interleaved";
    for (int64_t rotary : {2, 8, 20, 24, 38})
      all.push_back({fmt::format("edge_partial_{}_of_40_{}", rotary, style), edge,
                     [=](Sampler& r) { return make(r, {.d = 40, .rotary = rotary, .pairs = pairs}); }});
    for (int64_t d : {8, 16, 24, 72, 80, 96, 128, 256})
      all.push_back({fmt::format("edge_d{}_{}", d, style), edge,
                     [=](Sampler& r) { return make(r, {.d = d, .pairs = pairs, .norm = true, .write = true}); }});
    // Angles of 10^6 radians: computed in f32 they are off by 0.03.
    all.push_back({fmt::format("edge_positions_to_a_million_{}", style), edge, [=](Sampler& r) {
                     return make(r, {.d = 64, .pairs = pairs, .positions = {0, 1, 4095, 131071, 524287, 1000000, 999999}});
                   }});
  }
  add("edge_positions_absurd", edge, {.tokens = 4, .positions = {-1, -131072, 2147483647, -2147483648.0}});
  add("edge_linear", edge,
      {.d = 64, .frequencies = {.scaling = RopeScaling::linear, .factor = 4}, .positions = {0, 7, 20000, 40001, 8, 8, 3}});
  add("edge_llama3", edge, {.d = 128, .frequencies = kLlama31, .positions = {0, 7, 20000, 131071, 8, 8, 3}});
  add("edge_yarn", edge, {.d = 128, .frequencies = kYarn, .positions = {0, 7, 20000, 131071, 8, 8, 3}});
  add("edge_one_token", edge, {.tokens = 1, .heads = 1, .kv_heads = 1, .positions = {5}, .norm = true, .write = true});
  add("edge_no_tokens", edge, {.tokens = 0, .write = true});
  all.push_back({"edge_in_place", edge, [](Sampler& r) {
                   Rope::Args a = make(r, {.tokens = 11, .norm = true, .write = true});
                   a.q_out = a.q;
                   a.k_out = a.k;
                   return a;
                 }});
  all.push_back({"edge_keys_to_the_cache_only", edge, [](Sampler& r) {
                   Rope::Args a = make(r, {.tokens = 11, .cache = DType::f16, .write = true});
                   a.k_out = {};
                   return a;
                 }});
  all.push_back({"edge_fused_projection_and_token_major_pages", edge, [](Sampler& r) {
                   Rope::Args a = make(r, {.tokens = 11, .heads = 4, .kv_heads = 2, .d = 16, .write = true});
                   View qkv = r.normal({11, (4 + 2) * 16 + 2 * 24}, DType::f32);
                   a.q = a.q_out = qkv.cols(0, 64).heads(4), a.k = a.k_out = qkv.cols(64, 32).heads(2),
                   a.v = qkv.cols(96, 48).heads(2);
                   View pages = r.normal({6, 4, 2, 16}, DType::f32);
                   std::swap(pages.dims[1], pages.dims[2]);
                   std::swap(pages.strides[1], pages.strides[2]);
                   a.k_pages = pages;
                   a.v_pages = r.normal({6, 2, 4, 24}, DType::f32);
                   for (int64_t t = 0; t < 11; ++t) a.pages.slots.set(double(23 - t), t);
                   return a;
                 }});
  add("model_smollm2_prefill_512", Suite::model,
      {.tokens = 512, .heads = 9, .kv_heads = 3, .d = 64, .write = true, .table = true, .page = 64});
  add("model_smollm2_decode", Suite::model,
      {.tokens = 1, .heads = 9, .kv_heads = 3, .d = 64, .positions = {4095}, .write = true, .table = true, .page = 64});
  add("model_qwen3_prefill_64", Suite::model,
      {.tokens = 64,
       .heads = 16,
       .kv_heads = 8,
       .d = 128,
       .cache = DType::bf16,
       .frequencies = {.theta = 1e6},
       .norm = true,
       .write = true,
       .page = 64});
  return all;
}

std::vector<Case<RopeBackward>> RopeBackward::cases() {
  std::vector<Case<RopeBackward>> all;
  auto add = [&](const char* name, Suite suite, Shape s) {
    all.push_back({name, suite, [s](Sampler& r) { return make_backward(r, s); }});
  };
  add("smoke_half_split", Suite::smoke, {});
  add("smoke_norm", Suite::smoke, {.norm = true});
  add("smoke_f64", Suite::smoke, {.tokens = 3, .d = 6, .type = DType::f64, .norm = true});
  add("edge_interleaved_partial", Suite::edge,
      {.d = 40, .rotary = 24, .pairs = RopePairs::interleaved, .frequencies = kYarn, .norm = true});
  add("edge_bf16_inputs", Suite::edge, {.tokens = 20, .d = 64, .type = DType::bf16, .norm = true});
  add("edge_many_tokens", Suite::edge, {.tokens = 300, .d = 24, .norm = true});
  add("edge_no_tokens", Suite::edge, {.tokens = 0, .norm = true});
  for (int64_t d : {8, 72, 128, 256})
    all.push_back({fmt::format("edge_d{}", d), Suite::edge,
                   [d](Sampler& r) { return make_backward(r, {.d = d, .norm = true, .table = true}); }});
  all.push_back({"edge_keys_only", Suite::edge, [](Sampler& r) {
                   RopeBackward::Args b = make_backward(r, {.norm = true});
                   b.d_q_out = b.dq = b.q = b.q_norm = b.dq_norm = {};
                   return b;
                 }});
  all.push_back({"edge_norm_weights_only", Suite::edge, [](Sampler& r) {
                   RopeBackward::Args b = make_backward(r, {.norm = true});
                   b.dq = b.dk = {};
                   return b;
                 }});
  add("model_qwen3_128_tokens", Suite::model,
      {.tokens = 128, .heads = 16, .kv_heads = 8, .d = 128, .frequencies = {.theta = 1e6}, .norm = true, .table = true});
  return all;
}

}  // namespace ridge
