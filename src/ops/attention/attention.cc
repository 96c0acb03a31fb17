// The bodies of attention's contract: operands, checks, cost, gradient. Its cases are in attention_cases.cc.
#include "ops/attention/attention.h"

#include <fmt/format.h>

#include <algorithm>

#include "ops/call.h"

namespace ridge {

namespace {

bool is(const View& v, std::initializer_list<int64_t> dims) {
  if (v.rank != dims.size()) return false;
  int i = 0;
  for (int64_t n : dims)
    if (v.dims[i++] != n) return false;
  return true;
}

// keys_limit: how many keys a segment can have by the shape of what holds them.
std::string check_segments(const Segments& g, int64_t tokens, int64_t keys_limit, bool flat) {
  if (g.kv_lens.rank != 1 || !is(g.cu_seqlens, {g.count() + 1})) return "cu_seqlens is [segments + 1] and kv_lens [segments]";
  if (g.cu_seqlens.type != DType::i32 || g.kv_lens.type != DType::i32) return "cu_seqlens and kv_lens are i32";
  if (!g.lengths) return "segments.lengths is missing: costs and work splits come from it";
  const SegmentLengths& l = *g.lengths;
  if (int64_t(l.queries.size()) != g.count() || int64_t(l.keys.size()) != g.count())
    return "segments.lengths has not one entry a segment";
  int64_t total = 0;
  for (int64_t s = 0; s < g.count(); ++s) {
    if (l.queries[s] < 0 || l.keys[s] < 0) return fmt::format("segment {} has a negative length", s);
    if (l.keys[s] > keys_limit) return fmt::format("segment {} has {} keys, but only {} have a place", s, l.keys[s], keys_limit);
    if (flat && l.keys[s] != l.queries[s])
      return fmt::format("segment {} has {} tokens and {} keys: flat keys are its tokens", s, l.queries[s], l.keys[s]);
    total += l.queries[s];
  }
  if (total > tokens) return fmt::format("the segments hold {} tokens, q has {}", total, tokens);
  return {};
}

std::string check_numbers(double softcap, int64_t window) {
  if (!(softcap >= 0)) return "softcap is 0 (none) or positive";
  if (window < 0) return "window is 0 (all keys) or positive";
  return {};
}

// A first, then b: the first sentence there is.
std::string first_of(std::string a, std::string b) { return a.empty() ? std::move(b) : a; }

// sum over i in (a, b] of max(0, i + 1)
double ramp(double a, double b) {
  auto below = [](double n) { return n < 0 ? 0.0 : (n + 1) * (n + 2) / 2; };
  return below(b) - below(a);
}

// Keys of a segment that at least one of its queries sees.
int64_t needed_keys(int64_t queries, int64_t keys, int64_t window) {
  if (queries == 0) return 0;
  return keys - std::max<int64_t>(0, window > 0 ? keys - queries - window + 1 : 0);
}

double pairs_of(const Segments& g, bool causal, int64_t window) {
  double pairs = 0;
  for (int64_t s = 0; s < g.count(); ++s) pairs += visible_pairs(g.lengths->queries[s], g.lengths->keys[s], causal, window);
  return pairs;
}

constexpr double kVectorFlopsPerPair = 4;  // scale, maximum, exponential, sum

}  // namespace

double visible_pairs(int64_t queries, int64_t keys, bool causal, int64_t window) {
  const double last = double(keys - 1), before = double(keys - queries - 1);
  const double seen = causal ? ramp(before, last) : double(queries) * double(keys);
  return seen - (window > 0 ? ramp(before - double(window), last - double(window)) : 0);
}

// ---- attention

std::span<const Operand> Attention::operands() {
  static constexpr Operand table[] = {
      operand<&Args::q>("q", Role::in),
      operand<&Args::k>("k", Role::in, false),
      operand<&Args::v>("v", Role::in, false),
      operand<&Args::segments, &Segments::cu_seqlens>("cu_seqlens", Role::in),
      operand<&Args::segments, &Segments::kv_lens>("kv_lens", Role::in),
      operand<&Args::pages, &Pages::table>("page_table", Role::in, false),
      operand<&Args::sinks>("sinks", Role::weight),
      operand<&Args::o>("o", Role::out),
      operand<&Args::lse>("lse", Role::out),
  };
  return table;
}

std::string Attention::check(const Args& a) {
  const bool paged = a.k.rank == 4;
  const int64_t tokens = a.q.dims[0], heads = a.q.dims[1], d = a.q.dims[2];
  if (a.q.rank != 3 || a.o.rank != 3 || (a.k.rank != 3 && a.k.rank != 4) || a.v.rank != a.k.rank)
    return "q and o are [tokens, heads, d]; k and v are both [tokens, kv_heads, d] or both [pages, kv_heads, page, d]";
  const int64_t kv_heads = a.k.dims[1], dv = a.v.dims[a.v.rank - 1];
  if (kv_heads < 1 || heads % kv_heads != 0)
    return fmt::format("{} query heads do not share {} key heads evenly", heads, kv_heads);
  if (a.k.dims[a.k.rank - 1] != d) return "q and k differ in head dimension";
  if (!is(a.o, {tokens, heads, dv})) return "o is not [tokens, heads, dv]";
  if (paged && (a.v.dims[0] != a.k.dims[0] || a.v.dims[1] != kv_heads || a.v.dims[2] != a.k.dims[2]))
    return "k and v differ in pages, heads or page size";
  if (!paged && (a.k.dims[0] != tokens || a.v.dims[0] != tokens || a.v.dims[1] != kv_heads))
    return "flat k and v have the tokens of q and one count of heads";
  if (paged && (a.pages.table.rank != 2 || a.pages.table.type != DType::i32 || a.pages.table.dims[0] != a.segments.count()))
    return "paged keys need an i32 page table [segments, max_pages]";
  for (const View& v : {a.q, a.o})
    if (!is_float(v.type)) return "q and o are floating point";
  for (const View& v : {a.k, a.v})
    if (!is_float(v.type) && !(v.type == DType::q8_0 && v.whole_blocks()))
      return "k and v are floating point, or Q8_0 with head dimensions and strides of whole blocks of 32";
  if (a.lse && (!is(a.lse, {tokens, heads}) || (a.lse.type != DType::f32 && a.lse.type != DType::f64)))
    return "lse is not f32 [tokens, heads]";
  if (a.sinks && !is(a.sinks, {heads})) return "sinks is not [heads]";
  const int64_t limit = paged ? a.pages.table.dims[1] * a.k.dims[2] : tokens;
  return first_of(check_numbers(a.softcap, a.window), check_segments(a.segments, tokens, limit, !paged));
}

Cost Attention::cost(const Args& a) {
  const bool paged = a.k.rank == 4;
  const int64_t heads = a.q.dims[1], kv_heads = a.k.dims[1], d = a.q.dims[2], dv = a.o.dims[2];
  const double pairs = pairs_of(a.segments, a.causal, a.window) * double(heads);
  double keys = 0, pages = 0;
  for (int64_t s = 0; s < a.segments.count(); ++s) {
    const int64_t n = needed_keys(a.segments.lengths->queries[s], a.segments.lengths->keys[s], a.window);
    keys += double(n);
    if (paged) pages += double((n + a.k.dims[2] - 1) / a.k.dims[2]);
  }
  const double key_bytes = double(kv_heads * (bytes_of(a.k.type, d) + bytes_of(a.v.type, dv)));
  return {.matmul_flops = 2 * pairs * double(d + dv),
          .vector_flops = kVectorFlopsPerPair * pairs,
          .bytes_read = keys * key_bytes + 4 * pages};
}

std::string Attention::shape(const Args& a) {
  int64_t queries = 0, keys = 0;
  for (int64_t s = 0; s < a.segments.count(); ++s) {
    queries += a.segments.lengths->queries[s];
    keys += a.segments.lengths->keys[s];
  }
  return fmt::format("{} q, {} kv, {}/{}x{} {}", queries, keys, a.q.dims[1], a.k.dims[1], a.q.dims[2], name_of(a.k.type));
}

std::string Attention::no_gradient(const Args& a) {
  return a.k.rank == 4 ? "attention over pages has no gradient: record the flat form" : "";
}

void Attention::vjp(Ctx& x, const Args& a) {
  View d_o = x.grad(a.o);
  if (!d_o) return;
  View dq = x.grad(a.q), dk = x.grad(a.k), dv = x.grad(a.v), d_sinks = x.grad(a.sinks);
  if (!dq && !dk && !dv && !d_sinks) return;
  View lse = a.lse;
  if (!lse) {
    Args again = a;
    again.o = x.act(a.o);
    again.lse = lse = x.act({a.q.dims[0], a.q.dims[1]}, a.q.type == DType::f64 ? DType::f64 : DType::f32);
    attention(x, again);
  }
  attention_backward(x, {.q = a.q,
                         .k = a.k,
                         .v = a.v,
                         .o = a.o,
                         .lse = lse,
                         .d_o = d_o,
                         .segments = a.segments,
                         .dq = dq,
                         .dk = dk,
                         .dv = dv,
                         .sinks = a.sinks,
                         .d_sinks = d_sinks,
                         .d_lse = x.grad(a.lse),
                         .scale = a.scale,
                         .softcap = a.softcap,
                         .window = a.window,
                         .causal = a.causal});
}

// ---- attention_backward

std::span<const Operand> AttentionBackward::operands() {
  static constexpr Operand table[] = {
      operand<&Args::q>("q", Role::in),
      operand<&Args::k>("k", Role::in),
      operand<&Args::v>("v", Role::in),
      operand<&Args::o>("o", Role::in),
      operand<&Args::lse>("lse", Role::in),
      operand<&Args::d_o>("d_o", Role::in),
      operand<&Args::segments, &Segments::cu_seqlens>("cu_seqlens", Role::in),
      operand<&Args::segments, &Segments::kv_lens>("kv_lens", Role::in, false),
      operand<&Args::sinks>("sinks", Role::weight),
      operand<&Args::d_lse>("d_lse", Role::in),
      operand<&Args::dq>("dq", Role::inout),
      operand<&Args::dk>("dk", Role::inout),
      operand<&Args::dv>("dv", Role::inout),
      operand<&Args::d_sinks>("d_sinks", Role::inout),
  };
  return table;
}

std::string AttentionBackward::check(const Args& a) {
  const int64_t tokens = a.q.dims[0], heads = a.q.dims[1], d = a.q.dims[2], kv_heads = a.k.dims[1], dv = a.v.dims[2];
  if (a.q.rank != 3 || a.k.rank != 3 || a.v.rank != 3)
    return "q, k and v are [tokens, heads, d]: only the flat form has a gradient";
  if (kv_heads < 1 || heads % kv_heads != 0)
    return fmt::format("{} query heads do not share {} key heads evenly", heads, kv_heads);
  if (!is(a.k, {tokens, kv_heads, d}) || !is(a.v, {tokens, kv_heads, dv}))
    return "k is not [tokens, kv_heads, d] or v not [tokens, kv_heads, dv]";
  if (!is(a.o, {tokens, heads, dv}) || !is(a.d_o, {tokens, heads, dv})) return "o and d_o are not [tokens, heads, dv]";
  if (!is(a.lse, {tokens, heads})) return "lse is not [tokens, heads]";
  if (a.d_lse && !is(a.d_lse, {tokens, heads})) return "d_lse is not [tokens, heads]";
  if (a.dq && !is(a.dq, {tokens, heads, d})) return "dq is not like q";
  if (a.dk && !is(a.dk, {tokens, kv_heads, d})) return "dk is not like k";
  if (a.dv && !is(a.dv, {tokens, kv_heads, dv})) return "dv is not like v";
  if (a.sinks && !is(a.sinks, {heads})) return "sinks is not [heads]";
  if (a.d_sinks && (!a.sinks || !is(a.d_sinks, {heads}))) return "d_sinks is [heads] and belongs to sinks";
  for (const View& v : {a.q, a.k, a.v, a.o, a.lse, a.d_o})
    if (!is_float(v.type)) return "q, k, v, o, lse and d_o are floating point";
  return first_of(check_numbers(a.softcap, a.window), check_segments(a.segments, tokens, tokens, true));
}

Cost AttentionBackward::cost(const Args& a) {
  const double pairs = pairs_of(a.segments, a.causal, a.window) * double(a.q.dims[1]);
  const double d = double(a.q.dims[2]), dv = double(a.v.dims[2]);
  return {.matmul_flops = 2 * pairs * (3 * d + 2 * dv), .vector_flops = 2 * kVectorFlopsPerPair * pairs};
}

std::string AttentionBackward::shape(const Args& a) {
  int64_t queries = 0;
  for (int32_t n : a.segments.lengths->queries) queries += n;
  return fmt::format("{} tokens in {}, {}/{}x{} {}", queries, a.segments.count(), a.q.dims[1], a.k.dims[1], a.q.dims[2],
                     name_of(a.k.type));
}

}  // namespace ridge
