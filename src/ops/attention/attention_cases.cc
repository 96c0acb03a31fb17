// The cases of attention and of its backward pass. Most edge cases are a kind of bug that attention kernels elsewhere have had:
// empty rows, garbage past the valid keys, offsets beyond 32 bits, options dropped silently, layouts that differ between paths.
#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <numeric>

#include "base/format.h"
#include "ops/attention/attention.h"
#include "ops/sampler.h"

namespace ridge {

namespace {

struct Shape {
  std::vector<int32_t> queries, keys;               // keys: empty means equal to queries
  int64_t heads = 4, kv_heads = 2, d = 32, dv = 0;  // dv 0: d
  int64_t page = 0;                                 // 0: flat
  DType type = DType::f32, kv = DType::f32;
  bool causal = true, sinks = false, lse = true;
  int64_t window = 0;
  double softcap = 0, spread = 1;  // spread: of q and k, which sharpens the softmax
  double shift = 0;                // added to every score
  int64_t padding = 0;             // tokens past the last segment
  bool token_major = false;        // pages laid out [pages, page, kv_heads, d]
};

// A paged operand whose unused slots are NaN.
View pages_of(Sampler& r, int64_t pages, int64_t heads, int64_t page, int64_t d, DType type, bool token_major) {
  if (is_block(type)) {  // bytes that are NaN as a scale
    View v = r.normal({pages, heads, page, d}, type);
    std::fill(v.data, v.data + v.bytes(), char(0xff));
    return v;
  }
  if (!token_major) return r.constant({pages, heads, page, d}, type, NAN);
  View v = r.constant({pages, page, heads, d}, type, NAN);
  std::swap(v.dims[1], v.dims[2]);
  std::swap(v.strides[1], v.strides[2]);
  return v;
}

// Pages in random order. Table entries past a segment's last page are -1 or absurd: whoever follows them crashes.
View table_of(Sampler& r, const std::vector<int32_t>& keys, int64_t page, int64_t* pages) {
  int64_t most = 1, total = 0;
  for (int64_t n : keys) most = std::max(most, (n + page - 1) / page), total += (n + page - 1) / page;
  std::vector<int32_t> order(total + 1);  // one page nobody owns
  std::iota(order.begin(), order.end(), 0);
  for (int64_t i = total; i > 0; --i) std::swap(order[i], order[r.integer(0, i + 1)]);
  View table = r.integers({int64_t(keys.size()), most + 1}, DType::i32, 0, 1);
  int64_t next = 0;
  for (int64_t s = 0; s < int64_t(keys.size()); ++s)
    for (int64_t p = 0; p <= most; ++p)
      table.set(p < (keys[s] + page - 1) / page ? order[next++] : p % 2 ? -1 : std::numeric_limits<int32_t>::max(), s, p);
  *pages = total + 1;
  return table;
}

void fill_keys(Sampler& r, const Attention::Args& a, double spread, const std::vector<int32_t>& keys) {
  const int64_t page = a.k.dims[2];
  for (int64_t s = 0; s < int64_t(keys.size()); ++s)
    for (int64_t j = 0; j < keys[s]; ++j)
      for (int64_t h = 0; h < a.k.dims[1]; ++h) {
        const int64_t p = int64_t(a.pages.table.get(s, j / page));
        View row = r.normal({a.k.dims[3] + a.v.dims[3]}, DType::f32);
        if (is_block(a.k.type)) {
          for (int64_t c = 0; c < a.k.dims[3]; ++c) row.set(spread * row.get(c), c);
          format_of(a.k.type)->encode(row.as<float>(), a.k.at(p, h, j % page), a.k.dims[3]);
          format_of(a.v.type)->encode(row.as<float>(a.k.dims[3]), a.v.at(p, h, j % page), a.v.dims[3]);
          continue;
        }
        for (int64_t c = 0; c < a.k.dims[3]; ++c) a.k.set(spread * row.get(c), p, h, j % page, c);
        for (int64_t c = 0; c < a.v.dims[3]; ++c) a.v.set(row.get(a.k.dims[3] + c), p, h, j % page, c);
      }
}

// q's last feature becomes constant and k's carries the shift, so every score moves by the same amount. The last, so that what is
// rounded beside the shift is one sum and not all of them.
void shift_scores(const Attention::Args& a, double shift) {
  const int64_t last = a.q.dims[2] - 1;
  for (int64_t t = 0; t < a.q.dims[0]; ++t)
    for (int64_t h = 0; h < a.q.dims[1]; ++h) a.q.set(1 / a.scale, t, h, last);
  for (int64_t p = 0; p < a.k.dims[0]; ++p)
    for (int64_t h = 0; h < a.k.dims[1]; ++h)
      for (int64_t j = 0; j < a.k.dims[2]; ++j)
        if (!std::isnan(a.k.get(p, h, j, last))) a.k.set(shift, p, h, j, last);
}

Attention::Args make(Sampler& r, const Shape& s) {
  const std::vector<int32_t>& keys = s.keys.empty() ? s.queries : s.keys;
  const int64_t tokens = std::accumulate(s.queries.begin(), s.queries.end(), int64_t(0)) + s.padding, dv = s.dv ? s.dv : s.d;
  Attention::Args a{.q = r.normal({tokens, s.heads, s.d}, s.type, s.spread),
                    .k = {},
                    .v = {},
                    .segments = r.segments(s.queries, keys),
                    .o = r.out({tokens, s.heads, dv}, s.type)};
  for (int64_t t = tokens - s.padding; t < tokens; ++t)
    for (int64_t h = 0; h < s.heads; ++h)
      for (int64_t c = 0; c < s.d; ++c) a.q.set(NAN, t, h, c);
  a.scale = 1 / std::sqrt(double(s.d));
  a.softcap = s.softcap;
  a.window = s.window;
  a.causal = s.causal;
  if (s.page > 0) {
    int64_t pages = 0;
    a.pages.table = table_of(r, keys, s.page, &pages);
    a.k = pages_of(r, pages, s.kv_heads, s.page, s.d, s.kv, s.token_major);
    a.v = pages_of(r, pages, s.kv_heads, s.page, dv, s.kv, s.token_major);
    fill_keys(r, a, s.spread, keys);
  } else {
    a.k = r.normal({tokens, s.kv_heads, s.d}, s.kv, s.spread);
    a.v = r.normal({tokens, s.kv_heads, dv}, s.kv);
  }
  if (s.shift != 0) shift_scores(a, s.shift);
  const DType exact = s.type == DType::f64 ? DType::f64 : DType::f32;
  if (s.lse) a.lse = r.out({tokens, s.heads}, exact);
  if (s.sinks) a.sinks = r.normal({s.heads}, exact, 1, 0.5);
  return a;
}

Case<Attention> of(const char* name, Suite suite, Shape s) {
  return {name, suite, [s](Sampler& r) { return make(r, s); }};
}

void add_masks(std::vector<Case<Attention>>& all) {
  const Suite edge = Suite::edge;
  all.push_back(of("edge_not_causal", edge, {.queries = {5, 33}, .keys = {70, 33}, .page = 16, .causal = false}));
  all.push_back(of("edge_window_1", edge, {.queries = {9, 40}, .keys = {30, 100}, .page = 8, .window = 1}));
  all.push_back(of("edge_window_127", edge, {.queries = {200, 3}, .keys = {300, 500}, .page = 32, .window = 127}));
  all.push_back(of("edge_window_larger_than_the_segment", edge, {.queries = {20, 70}, .window = 1000}));
  all.push_back(
      of("edge_window_not_causal", edge, {.queries = {20, 70}, .keys = {90, 70}, .page = 16, .causal = false, .window = 24}));
  all.push_back(of("edge_softcap", edge, {.queries = {40, 1}, .keys = {60, 90}, .page = 16, .softcap = 5, .spread = 2}));
  all.push_back(of("edge_softcap_and_window", edge,
                   {.queries = {1, 5, 129},
                    .keys = {1328, 18, 463},
                    .heads = 8,
                    .kv_heads = 1,
                    .d = 128,
                    .page = 32,
                    .window = 64,
                    .softcap = 30,
                    .spread = 2}));
  all.push_back(of("edge_sinks", edge, {.queries = {1, 5, 130}, .keys = {90, 40, 200}, .page = 16, .sinks = true}));
  all.push_back(of("edge_sinks_window_softcap", edge,
                   {.queries = {1, 5, 130}, .keys = {90, 40, 200}, .page = 16, .sinks = true, .window = 4, .softcap = 8}));
  all.push_back(of("edge_no_lse", edge, {.queries = {3, 40}, .keys = {30, 50}, .page = 16, .lse = false}));
  for (bool far : {false, true}) {  // the same call but for the window: two layers of one model
    all.push_back(of(far ? "edge_full_layer" : "edge_local_layer", edge,
                     {.queries = {1, 64}, .keys = {700, 300}, .page = 64, .window = far ? 0 : 96}));
  }
}

void add_empty(std::vector<Case<Attention>>& all) {
  const Suite edge = Suite::edge;
  all.push_back(
      of("edge_more_queries_than_keys", edge, {.queries = {97}, .keys = {64}, .heads = 8, .kv_heads = 2, .d = 64, .page = 16}));
  all.push_back(of("edge_half_the_rows_empty", edge, {.queries = {64, 3}, .keys = {32, 1}, .page = 16}));
  all.push_back(of("edge_leading_rows_empty_with_sinks", edge,
                   {.queries = {50}, .keys = {18}, .heads = 2, .kv_heads = 1, .d = 256, .page = 16, .sinks = true}));
  all.push_back(of("edge_many_queries_few_keys", edge,
                   {.queries = {76, 34, 146}, .keys = {1, 1, 1}, .heads = 1, .kv_heads = 1, .page = 16, .spread = 3}));
  all.push_back(
      of("edge_segments_without_queries", edge, {.queries = {0, 7, 0, 0, 3, 0}, .keys = {40, 40, 0, 17, 3, 100}, .page = 16}));
  all.push_back(of("edge_segments_without_keys", edge, {.queries = {2, 7, 40}, .keys = {0, 7, 0}, .page = 16}));
  all.push_back(of("edge_no_segments", edge, {.queries = {}, .padding = 3}));
  all.push_back(of("edge_padding_tokens", edge, {.queries = {5, 1}, .keys = {20, 9}, .page = 8, .padding = 10}));
  all.push_back(of("edge_padding_tokens_flat", edge, {.queries = {5, 37}, .padding = 10}));
  // All real scores lie far below zero: a running maximum that starts at 0 gives zero weights.
  all.push_back(of("edge_scores_far_below_zero", edge,
                   {.queries = {88}, .keys = {448}, .heads = 7, .kv_heads = 1, .d = 128, .page = 64, .shift = -120}));
  all.push_back(of("edge_scores_far_below_zero_decode", edge,
                   {.queries = {1}, .keys = {900}, .heads = 7, .kv_heads = 1, .d = 64, .page = 64, .shift = -120}));
  all.push_back(of("edge_scores_far_above_zero", edge, {.queries = {40, 1}, .keys = {448, 448}, .page = 64, .shift = 120}));
}

void add_shapes(std::vector<Case<Attention>>& all) {
  const Suite edge = Suite::edge;
  for (int64_t d : {8, 16, 24, 40, 72, 96, 104, 128, 256})
    all.push_back({fmt::format("edge_d{}", d), edge, [d](Sampler& r) {
                     return make(r, {.queries = {1, 7, 35}, .keys = {65, 7, 70}, .d = d, .page = 16, .spread = 1.7});
                   }});
  all.push_back(of("edge_value_dim_differs", edge,
                   {.queries = {33, 1}, .keys = {70, 130}, .heads = 2, .kv_heads = 1, .d = 192, .dv = 128, .page = 16}));
  all.push_back(of("edge_value_dim_larger", edge, {.queries = {33, 1}, .keys = {70, 130}, .d = 24, .dv = 64, .page = 16}));
  for (int64_t group : {1, 3, 7, 8, 20})
    all.push_back({fmt::format("edge_group_{}", group), edge, [group](Sampler& r) {
                     return make(r, {.queries = {1, 2, 19}, .keys = {300, 9, 50}, .heads = 2 * group, .kv_heads = 2, .page = 32});
                   }});
  // Every small number of queries beside many numbers of keys: tails of every tile.
  all.push_back({"edge_short_everything", edge, [](Sampler& r) {
                   Shape s{.heads = 3, .kv_heads = 1, .d = 64, .page = 16};
                   for (int32_t q : {1, 2, 3, 4, 5, 8, 9})
                     for (int32_t k = 1; k <= 40; k += 3) s.queries.push_back(q), s.keys.push_back(k);
                   return make(r, s);
                 }});
  all.push_back(of("edge_mixed_lengths", edge, {.queries = {1, 129, 0, 300, 64}, .heads = 2, .kv_heads = 1, .d = 64}));
  all.push_back(
      of("edge_mixed_steps", edge,
         {.queries = {1, 64, 1, 1, 17}, .keys = {513, 200, 64, 1025, 17}, .heads = 6, .kv_heads = 2, .d = 64, .page = 64}));
  all.push_back(of("edge_pages_of_1", edge, {.queries = {1, 20}, .keys = {37, 45}, .page = 1}));
  all.push_back(of("edge_pages_of_528", edge, {.queries = {1, 20}, .keys = {1100, 530}, .page = 528}));
  all.push_back(of("edge_pages_token_major", edge, {.queries = {1, 20}, .keys = {100, 45}, .page = 16, .token_major = true}));
  all.push_back(of("edge_keys_end_on_a_page", edge, {.queries = {1, 32, 2}, .keys = {64, 128, 257}, .page = 64}));
  for (int64_t page : {128, 256, 512})  // more keys than 4096 on large pages; the last page counts too
    all.push_back({fmt::format("edge_4500_keys_on_pages_of_{}", page), edge, [page](Sampler& r) {
                     return make(r, {.queries = {1}, .keys = {4500}, .heads = 2, .kv_heads = 1, .page = page, .spread = 2});
                   }});
  all.push_back({"edge_lse_transposed", edge, [](Sampler& r) {
                   Attention::Args a = make(r, {.queries = {1, 34}, .keys = {700, 34}, .heads = 8, .kv_heads = 1, .page = 64});
                   a.lse = r.out({8, 35}, DType::f32).t();
                   return a;
                 }});
  // q, k and v are columns of one projection's output.
  all.push_back({"edge_fused_projection", edge, [](Sampler& r) {
                   Attention::Args a = make(r, {.queries = {30, 9}, .heads = 6, .kv_heads = 2, .d = 16});
                   View qkv = r.normal({39, (6 + 2 + 2) * 16}, DType::f32);
                   a.q = qkv.cols(0, 96).heads(6), a.k = qkv.cols(96, 32).heads(2), a.v = qkv.cols(128, 32).heads(2);
                   return a;
                 }});
  // One value stands out of 20,000: weights and sums kept in few bits lose it.
  all.push_back({"edge_long_context_one_outlier", edge, [](Sampler& r) {
                   Attention::Args a =
                       make(r, {.queries = {1}, .keys = {20000}, .heads = 2, .kv_heads = 1, .d = 32, .page = 64, .spread = 0.3});
                   for (int64_t j = 0; j < 20000; ++j)
                     for (int64_t c = 0; c < 32; ++c)
                       a.v.set(j == 13577 ? 100 : 1, int64_t(a.pages.table.get(0, j / 64)), 0, j % 64, c);
                   return a;
                 }});
}

void add_types(std::vector<Case<Attention>>& all) {
  for (DType kv : {DType::f32, DType::f16, DType::bf16, DType::q8_0})
    for (DType type : {DType::f32, DType::bf16})
      if (kv != DType::f32 || type != DType::f32)
        all.push_back({fmt::format("edge_{}_over_{}", name_of(type), name_of(kv)), Suite::edge, [=](Sampler& r) {
                         return make(r, {.queries = {1, 37, 4},
                                         .keys = {600, 80, 33},
                                         .heads = 6,
                                         .kv_heads = 2,
                                         .d = 64,
                                         .page = 16,
                                         .type = type,
                                         .kv = kv});
                       }});
  all.push_back(of("edge_q8_flat", Suite::edge, {.queries = {37, 4, 1}, .d = 96, .kv = DType::q8_0}));
  all.push_back(of("edge_q8_value_dim_differs", Suite::edge,
                   {.queries = {1, 40, 12}, .keys = {530, 90, 300}, .d = 96, .dv = 160, .page = 16, .kv = DType::q8_0}));
  all.push_back(of("edge_q8_everything", Suite::edge,
                   {.queries = {1, 40, 2, 6},
                    .keys = {75, 60, 300, 700},
                    .page = 16,
                    .kv = DType::q8_0,
                    .sinks = true,
                    .window = 50,
                    .softcap = 20}));
  all.push_back(of("edge_bf16_flat", Suite::edge, {.queries = {37, 4}, .d = 40, .type = DType::bf16, .kv = DType::bf16}));
  all.push_back(of("edge_f64", Suite::edge,
                   {.queries = {5, 3}, .keys = {9, 14}, .d = 8, .page = 4, .type = DType::f64, .kv = DType::f64, .sinks = true}));
  all.push_back(of("smoke_f64_flat", Suite::smoke,
                   {.queries = {4, 0, 3},
                    .heads = 2,
                    .kv_heads = 1,
                    .d = 4,
                    .type = DType::f64,
                    .kv = DType::f64,
                    .sinks = true,
                    .window = 3,
                    .softcap = 3}));
}

void add_models(std::vector<Case<Attention>>& all) {
  const Suite model = Suite::model;
  all.push_back(of("model_smollm2_prefill_512", model, {.queries = {512}, .heads = 9, .kv_heads = 3, .d = 64, .page = 64}));
  all.push_back(
      of("model_smollm2_decode_d4096", model, {.queries = {1}, .keys = {4096}, .heads = 9, .kv_heads = 3, .d = 64, .page = 64}));
  all.push_back(of("model_smollm2_decode_d4096_f16", model,
                   {.queries = {1}, .keys = {4096}, .heads = 9, .kv_heads = 3, .d = 64, .page = 64, .kv = DType::f16}));
  all.push_back(of("model_smollm2_decode_d4096_q8", model,
                   {.queries = {1}, .keys = {4096}, .heads = 9, .kv_heads = 3, .d = 64, .page = 64, .kv = DType::q8_0}));
  all.push_back(of("model_smollm2_prefill_512_f16", model,
                   {.queries = {512}, .heads = 9, .kv_heads = 3, .d = 64, .page = 64, .kv = DType::f16}));
  for (int32_t queries : {8, 16})  // speculation and small batches of one sequence
    all.push_back(
        {fmt::format("model_smollm2_verify_{}_d4096_f16", queries), model, [=](Sampler& r) {
           return make(r,
                       {.queries = {queries}, .keys = {4096}, .heads = 9, .kv_heads = 3, .d = 64, .page = 64, .kv = DType::f16});
         }});
  all.push_back(of("model_llama3_decode_d2048_bf16", model,
                   {.queries = {1}, .keys = {2048}, .heads = 32, .kv_heads = 8, .d = 128, .page = 64, .kv = DType::bf16}));
  all.push_back(
      of("model_qwen3_chunk", model, {.queries = {128}, .keys = {640}, .heads = 16, .kv_heads = 8, .d = 128, .page = 64}));
  all.push_back(of("model_smollm2_mixed_step", model,
                   {.queries = {1, 1, 128, 1}, .keys = {700, 90, 256, 1500}, .heads = 9, .kv_heads = 3, .d = 64, .page = 64}));
}

// ---- backward

AttentionBackward::Args make_backward(Sampler& r, const Shape& s) {
  const Attention::Args a = make(r, s);
  attention_truth(a);
  const int64_t tokens = a.q.dims[0], dv = a.o.dims[2];
  const DType grad = s.type == DType::f64 ? DType::f64 : DType::f32;
  AttentionBackward::Args b{
      .q = a.q, .k = a.k, .v = a.v, .o = a.o, .lse = a.lse, .d_o = r.normal({tokens, s.heads, dv}, grad), .segments = a.segments};
  // Gradients accumulate, so they start from something; small, to leave the tolerance to what is added.
  b.dq = r.normal({tokens, s.heads, s.d}, grad, 0.1);
  b.dk = r.normal({tokens, s.kv_heads, s.d}, grad, 0.1);
  b.dv = r.normal({tokens, s.kv_heads, dv}, grad, 0.1);
  if (s.sinks) b.sinks = a.sinks, b.d_sinks = r.normal({s.heads}, grad, 0.1);
  b.scale = a.scale, b.softcap = a.softcap, b.window = a.window, b.causal = a.causal;
  return b;
}

Case<AttentionBackward> backward_of(const char* name, Suite suite, Shape s) {
  return {name, suite, [s](Sampler& r) { return make_backward(r, s); }};
}

}  // namespace

std::vector<Case<Attention>> Attention::cases() {
  std::vector<Case<Attention>> all = {
      of("smoke_prefill", Suite::smoke, {.queries = {5, 9}}),
      of("smoke_prefill_paged", Suite::smoke, {.queries = {20, 9}, .page = 16}),
      of("smoke_chunk", Suite::smoke, {.queries = {20}, .keys = {75}, .page = 16}),
      of("smoke_decode", Suite::smoke, {.queries = {1, 1, 1}, .keys = {75, 1, 16}, .heads = 6, .page = 16}),
      of("smoke_mixed", Suite::smoke, {.queries = {1, 40, 2}, .keys = {75, 40, 300}, .page = 16}),
      of("smoke_everything", Suite::smoke,
         {.queries = {1, 40, 2},
          .keys = {75, 60, 300},
          .page = 16,
          .kv = DType::f16,
          .sinks = true,
          .window = 50,
          .softcap = 20}),
  };
  add_masks(all);
  add_empty(all);
  add_shapes(all);
  add_types(all);
  add_models(all);
  return all;
}

std::vector<Case<AttentionBackward>> AttentionBackward::cases() {
  const Suite edge = Suite::edge;
  std::vector<Case<AttentionBackward>> all = {
      backward_of("smoke_two_segments", Suite::smoke, {.queries = {5, 9}}),
      backward_of("smoke_f64", Suite::smoke,
                  {.queries = {4, 3}, .d = 4, .type = DType::f64, .kv = DType::f64, .sinks = true, .window = 3, .softcap = 3}),
      backward_of("edge_everything", edge, {.queries = {40, 0, 75, 1}, .sinks = true, .window = 20, .softcap = 6}),
      backward_of("edge_not_causal", edge, {.queries = {40, 33}, .causal = false}),
      backward_of("edge_group_7", edge, {.queries = {3, 65}, .heads = 7, .kv_heads = 1, .d = 24}),
      backward_of("edge_tiny_segments", edge, {.queries = {1, 76, 2, 0, 1, 34}, .heads = 1, .kv_heads = 1, .spread = 3}),
      backward_of("edge_value_dim_differs", edge, {.queries = {33}, .d = 40, .dv = 24}),
      backward_of("edge_d256", edge, {.queries = {34}, .heads = 2, .kv_heads = 1, .d = 256}),
      backward_of("edge_bf16", edge, {.queries = {37, 4}, .d = 64, .type = DType::bf16, .kv = DType::bf16}),
      backward_of("edge_padding_tokens", edge, {.queries = {5, 37}, .padding = 10}),
      backward_of("edge_no_segments", edge, {.queries = {}, .padding = 3}),
      backward_of("model_smollm2_256_tokens", Suite::model, {.queries = {256}, .heads = 9, .kv_heads = 3, .d = 64}),
  };
  all.push_back({"edge_gradient_at_lse", edge, [](Sampler& r) {
                   AttentionBackward::Args b = make_backward(r, {.queries = {20, 40}, .sinks = true});
                   b.d_lse = r.normal({60, 4}, DType::f32);
                   return b;
                 }});
  all.push_back({"edge_only_keys_differentiated", edge, [](Sampler& r) {
                   AttentionBackward::Args b = make_backward(r, {.queries = {20, 40}});
                   b.dq = {};
                   b.dv = {};
                   return b;
                 }});
  return all;
}

}  // namespace ridge
