// The bodies of embed's contracts: checks, costs, cases, gradient.
#include "ops/embed/embed.h"

#include <fmt/format.h>

#include "base/format.h"
#include "ops/call.h"
#include "ops/sampler.h"
#include "ops/shapes.h"

namespace ridge {

std::span<const Operand> Embed::operands() {
  static constexpr Operand table[] = {
      operand<&Args::ids>("ids", Role::in),
      operand<&Args::table>("table", Role::weight, false),
      operand<&Args::y>("y", Role::out),
  };
  return table;
}

std::string Embed::check(const Args& a) {
  if (a.ids.rank != 1 || a.ids.type != DType::i32) return "ids is i32 [tokens]";
  if (a.table.rank != 2 || a.y.rank != 2) return "table is [vocab, n] and y is [tokens, n]";
  if (a.y.dims[0] != a.ids.dims[0]) return "y does not have a row for every id";
  if (a.y.dims[1] != a.table.dims[1]) return "table and y differ in width";
  if (!all_float({a.y}) || (!is_block(a.table.type) && !is_float(a.table.type)))
    return "y is floating point, table is that or a block format";
  return {};
}

Cost Embed::cost(const Args& a) {
  // Rows used, not the table; a block format's rows are whole blocks, so any number of columns of one row is counted as the row.
  const double rows = double(a.ids.dims[0]) * double(bytes_of(stored_of(a.table.type), a.table.dims[1]));
  return {.vector_flops = a.scale == 1 ? 0 : double(a.y.count()), .bytes_read = rows};
}
std::string Embed::shape(const Args& a) { return fmt::format("{}x{} {}", a.y.dims[0], a.y.dims[1], name_of(a.table.type)); }

std::vector<Case<Embed>> Embed::cases() {
  auto plain = [](int64_t tokens, int64_t vocab, int64_t n, DType table, DType type) {
    return [=](Sampler& r) {
      return Args{
          .ids = r.integers({tokens}, DType::i32, 0, vocab), .table = r.normal({vocab, n}, table), .y = r.out({tokens, n}, type)};
    };
  };
  std::vector<Case<Embed>> all = {
      {"smoke_f32", Suite::smoke, plain(5, 11, 24, DType::f32, DType::f32)},
      {"smoke_bf16", Suite::smoke, plain(5, 11, 24, DType::bf16, DType::bf16)},
      {"edge_f64", Suite::edge, plain(3, 7, 5, DType::f64, DType::f64)},
      {"edge_f16_to_bf16", Suite::edge, plain(3, 7, 35, DType::f16, DType::bf16)},
      {"edge_one_column", Suite::edge, plain(9, 7, 1, DType::f32, DType::f32)},
      {"model_smollm2_decode", Suite::model, plain(1, 1000, 576, DType::f32, DType::f32)},
      {"model_smollm2_prefill", Suite::model, plain(512, 4000, 576, DType::f32, DType::f32)},
  };
  for (DType t : block_types()) {
    all.push_back({fmt::format("smoke_{}", name_of(t)), Suite::smoke, plain(6, 13, 512, t, DType::f32)});
    all.push_back({fmt::format("edge_{}_bf16", name_of(t)), Suite::edge, plain(6, 13, 768, t, DType::bf16)});
  }
  for (DType t : woven_types())
    all.push_back({fmt::format("smoke_{}", name_of(t)), Suite::smoke, plain(6, 32, 768, t, DType::f16)});
  all.push_back({"smoke_padding_and_scale", Suite::smoke, [](Sampler& r) {
                   return Args{.ids = r.values({5}, DType::i32, {3, -1, 0, 6, -100}),
                               .table = r.normal({7, 33}, DType::f32),
                               .y = r.out({5, 33}, DType::f32),
                               .scale = 5.7445626465380286};
                 }});
  // The table's first and last row, and one token twice.
  all.push_back({"edge_ends_of_table", Suite::edge, [](Sampler& r) {
                   return Args{.ids = r.values({4}, DType::i32, {0, 6, 6, 0}),
                               .table = r.normal({7, 32}, DType::q8_0),
                               .y = r.out({4, 32}, DType::f16)};
                 }});
  all.push_back({"edge_y_in_a_wider_buffer", Suite::edge, [](Sampler& r) {
                   return Args{.ids = r.integers({4}, DType::i32, 0, 9),
                               .table = r.normal({9, 40}, DType::f32),
                               .y = r.out({4, 64}, DType::f32).cols(8, 40)};
                 }});
  return all;
}

void Embed::vjp(Ctx& x, const Args& a) {
  if (View dtable = x.grad(a.table)) embed_backward(x, {.ids = a.ids, .dy = x.grad(a.y), .dtable = dtable, .scale = a.scale});
}

// ---- backward

std::span<const Operand> EmbedBackward::operands() {
  static constexpr Operand table[] = {
      operand<&Args::ids>("ids", Role::in),
      operand<&Args::dy>("dy", Role::in),
      operand<&Args::dtable>("dtable", Role::inout, false),
  };
  return table;
}

std::string EmbedBackward::check(const Args& a) {
  if (a.ids.rank != 1 || a.ids.type != DType::i32) return "ids is i32 [tokens]";
  if (a.dtable.rank != 2 || a.dy.rank != 2) return "dtable is [vocab, n] and dy is [tokens, n]";
  if (a.dy.dims[0] != a.ids.dims[0]) return "dy does not have a row for every id";
  if (a.dy.dims[1] != a.dtable.dims[1]) return "dtable and dy differ in width";
  if (!all_float({a.dy, a.dtable})) return "dy and dtable are floating point";
  return {};
}

Cost EmbedBackward::cost(const Args& a) {
  const double touched = double(a.dy.count()) * double(size_of(a.dtable.type));
  return {.vector_flops = double(a.dy.count()) * 2, .bytes_read = touched, .bytes_written = touched};
}
std::string EmbedBackward::shape(const Args& a) {
  return fmt::format("{}x{} {}", a.dy.dims[0], a.dy.dims[1], name_of(a.dtable.type));
}

std::vector<Case<EmbedBackward>> EmbedBackward::cases() {
  auto plain = [](int64_t tokens, int64_t vocab, int64_t n, DType type, double scale) {
    return [=](Sampler& r) {
      return Args{.ids = r.integers({tokens}, DType::i32, -1, vocab),
                  .dy = r.normal({tokens, n}, type),
                  .dtable = r.normal({vocab, n}, type),
                  .scale = scale};
    };
  };
  return {
      {"smoke_repeated_tokens", Suite::smoke, plain(20, 5, 24, DType::f32, 1)},
      {"smoke_f64", Suite::smoke, plain(6, 4, 7, DType::f64, 2)},
      {"edge_tail", Suite::edge, plain(9, 4, 77, DType::f32, 1)},
      {"edge_one_column", Suite::edge, plain(9, 4, 1, DType::f32, 1)},
      {"edge_one_token_a_thousand_times", Suite::edge,
       [](Sampler& r) {
         return Args{.ids = r.constant({1000}, DType::i32, 2),
                     .dy = r.normal({1000, 40}, DType::f32),
                     .dtable = r.normal({3, 40}, DType::f32)};
       }},
      {"edge_only_padding", Suite::edge,
       [](Sampler& r) {
         return Args{.ids = r.constant({4}, DType::i32, -1),
                     .dy = r.normal({4, 16}, DType::f32),
                     .dtable = r.normal({3, 16}, DType::f32)};
       }},
      {"edge_table_in_a_wider_buffer", Suite::edge,
       [](Sampler& r) {
         return Args{.ids = r.integers({8}, DType::i32, 0, 5),
                     .dy = r.normal({8, 50}, DType::f32).cols(2, 40),
                     .dtable = r.normal({5, 64}, DType::f32).cols(8, 40)};
       }},
      {"model_smollm2", Suite::model, plain(512, 4000, 576, DType::f32, 1)},
  };
}

}  // namespace ridge
