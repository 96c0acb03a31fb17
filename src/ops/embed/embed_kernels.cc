// The rows of embed and embed_backward, best first.
#include <cstring>

#include "base/check.h"
#include "base/format.h"
#include "ops/accumulate/accumulate_cpu.h"
#include "ops/call.h"
#include "ops/embed/embed.h"
#include "ops/embed/embed_cpu.h"
#include "ops/rows.h"
#include "tile/cpu/isa_table.h"

namespace ridge {

RIDGE_ISA_TABLES(EmbedCpu, embed_cpu)
RIDGE_ISA_TABLES(AccumulateCpu, accumulate_cpu)

namespace {

int64_t id_at(const View& ids, int64_t t, int64_t vocab) {
  const int64_t id = *ids.as<int32_t>(t);
  RIDGE_CHECK(id < vocab, "embed: token " + std::to_string(t) + " has id " + std::to_string(id) + ", the table has " +
                              std::to_string(vocab) + " rows");
  return id;
}

Verdict supports(const Embed::Args& a) {
  if (!fast_rows(a.y)) return {"y is not in rows of f32, bf16 or f16"};
  if (is_block(a.table.type) ? a.table.strides[1] != 1 : !fast_rows(a.table))
    return {"the table is not in rows of f32, bf16, f16 or blocks"};
  return {};
}

// Decodes a row of blocks piece by piece.
template <class Convert>
void decode_row(const View& table, int64_t row, char* y, int64_t element, float scale, const Convert& convert) {
  constexpr int64_t piece = 256;  // a multiple of every block size
  const Format& f = *format_of(table.type);
  float values[piece];
  for (int64_t j = 0; j < table.dims[1]; j += piece) {
    const int64_t part = std::min(piece, table.dims[1] - j);
    decode_values(f, table.data, table.strides[0] / f.block, row, j, values, part);
    convert(values, y + j * element, part, scale);
  }
}

template <Isa isa>
void launch(Ctx& x, const Embed::Args& a, char*) {
  const int64_t n = a.y.dims[1], element = size_of(a.y.type);
  const bool blocks = is_block(a.table.type);
  const auto convert = embed_cpu(isa).convert[blocks ? 0 : table_index(a.table.type)][table_index(a.y.type)];
  parallel_rows(x.pool(), a.ids.dims[0], n * 2 * element, [&](int64_t from, int64_t rows) {
    for (int64_t t = from; t < from + rows; ++t) {
      const int64_t id = id_at(a.ids, t, a.table.dims[0]);
      if (id < 0)
        memset(a.y.at(t), 0, size_t(n * element));
      else if (blocks)
        decode_row(a.table, id, a.y.at(t), element, float(a.scale), convert);
      else
        convert(a.table.at(id), a.y.at(t), n, float(a.scale));
    }
  });
}

constexpr Speed kSpeed{.unit = Unit::fma_f32, .compute = 0.13, .memory = 0.9};

}  // namespace

std::span<const Kernel<Embed>> Embed::kernels() {
  static const Kernel<Embed> rows[] = {
      {"rows_avx512", Place::cpu, Isa::avx512, Tier::fast, supports, launch<Isa::avx512>, nullptr, kSpeed},
      {"rows_avx2", Place::cpu, Isa::avx2, Tier::fast, supports, launch<Isa::avx2>, nullptr, kSpeed},
      {"rows_portable", Place::cpu, Isa::portable, Tier::fast, supports, launch<Isa::portable>, nullptr, kSpeed},
      {"reference", Place::cpu, Isa::portable, Tier::reference, always<Embed>, reference},
  };
  return rows;
}

namespace {

Verdict supports_backward(const EmbedBackward::Args& a) {
  if (!fast_f32(a.dy) || !fast_f32(a.dtable)) return {"gradients are not f32 rows"};
  return {};
}

// Tokens in order, columns in parallel: two tokens of one id never meet, and always add up in the same order.
template <Isa isa>
void launch_backward(Ctx& x, const EmbedBackward::Args& a, char*) {
  constexpr int64_t columns = 128;
  const int64_t n = a.dy.dims[1];
  const auto add = accumulate_cpu(isa).add[0][0];
  x.pool().parallel((n + columns - 1) / columns, [&](int64_t block, int) {
    const int64_t from = block * columns, width = std::min(columns, n - from);
    for (int64_t t = 0; t < a.ids.dims[0]; ++t)
      if (const int64_t id = id_at(a.ids, t, a.dtable.dims[0]); id >= 0)
        add(a.dy.at(t, from), a.dtable.at(id, from), width, float(a.scale));
  });
}

constexpr Speed kSpeedBackward{.unit = Unit::fma_f32, .compute = 0.13, .memory = 0.9};

}  // namespace

std::span<const Kernel<EmbedBackward>> EmbedBackward::kernels() {
  static const Kernel<EmbedBackward> rows[] = {
      {"columns_avx512", Place::cpu, Isa::avx512, Tier::fast, supports_backward, launch_backward<Isa::avx512>, nullptr,
       kSpeedBackward},
      {"columns_avx2", Place::cpu, Isa::avx2, Tier::fast, supports_backward, launch_backward<Isa::avx2>, nullptr, kSpeedBackward},
      {"columns_portable", Place::cpu, Isa::portable, Tier::fast, supports_backward, launch_backward<Isa::portable>, nullptr,
       kSpeedBackward},
      {"reference", Place::cpu, Isa::portable, Tier::reference, always<EmbedBackward>, reference},
  };
  return rows;
}

void embed(Ctx& x, const Embed::Args& a) { call<Embed>(x, a); }
void embed_backward(Ctx& x, const EmbedBackward::Args& a) { call<EmbedBackward>(x, a); }
OpInfo embed_op() { return erase<Embed>(); }
OpInfo embed_backward_op() { return erase<EmbedBackward>(); }

}  // namespace ridge
