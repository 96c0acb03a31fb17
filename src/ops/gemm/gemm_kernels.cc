// gemm's rows, best first: what each takes, what it needs, how it is launched.
#include "ops/call.h"
#include "ops/gemm/gemm.h"
#include "ops/gemm/gemm_cpu.h"

#include "base/format.h"

namespace ridge {

namespace {

using Args = Gemm::Args;

// ---- views to plain data
CpuMatrix matrix(const View& v) {
  if (!v) return {};
  const int64_t row = v.rank == 1 ? 0 : v.strides[0];
  if (is_woven(v.type)) {
    const Format& f = *format_of(v.type);
    return {reinterpret_cast<uint8_t*>(v.data), v.type, row / f.block * f.bytes, 0, &f};
  }
  if (is_block(v.type) && v.strides[1] != 1)
    return {reinterpret_cast<uint8_t*>(v.data), v.type, 0, bytes_of(v.type, v.strides[1]), format_of(v.type)};
  if (is_block(v.type)) return {reinterpret_cast<uint8_t*>(v.data), v.type, bytes_of(v.type, row), 0, format_of(v.type)};
  return {reinterpret_cast<uint8_t*>(v.data), v.type, row * size_of(v.type), v.strides[v.rank - 1] * size_of(v.type)};
}

GemmTask task(const Args& g, char* scratch) {
  return {.m = g.a.dims[0],
          .n = g.b.dims[0],
          .k = g.a.dims[1],
          .a = matrix(g.a),
          .b = matrix(g.b),
          .gate = matrix(g.gate),
          .bias = matrix(g.bias),
          .gate_bias = matrix(g.gate_bias),
          .residual = matrix(g.residual),
          .c = matrix(g.c),
          .scale = float(g.scale),
          .act = g.act,
          .scratch = scratch};
}

// ---- what rows ask of operands
bool f32_or_less(const View& v) { return !v || (is_float(v.type) && v.type != DType::f64); }
bool inner_dense(const View& v) { return !v || v.rows_dense(); }
// Along rows, or along columns (a transposed view).
bool whole_blocks(const View& w) {
  if (!w || !is_block(w.type)) return true;
  const int64_t block = format_of(w.type)->block;
  if (is_woven(w.type)) return w.strides[1] == 1;
  auto lies = [&](int along, int across) {
    return w.strides[along] == 1 && w.dims[along] % block == 0 && w.strides[across] % block == 0;
  };
  return lies(1, 0) || lies(0, 1);
}
bool in_registers(const View& w) { return !w || !is_block(w.type) || gemm_cpu(Isa::portable).reads(w.type); }
bool readable(const View& w) { return !w || is_block(w.type) || f32_or_less(w); }

Verdict common(const Args& g) {
  if (!f32_or_less(g.a) || !readable(g.b) || !readable(g.gate) || !f32_or_less(g.c) || !f32_or_less(g.residual) ||
      !f32_or_less(g.bias) || !f32_or_less(g.gate_bias))
    return {"it sums in f32: double precision is the reference's"};
  if (!inner_dense(g.c) || !inner_dense(g.residual))
    return {"c and residual are written and read in runs: their rows must be dense"};
  if (!inner_dense(g.bias) || !inner_dense(g.gate_bias)) return {"biases are read in runs: they must be dense"};
  if (!whole_blocks(g.b) || !whole_blocks(g.gate)) return {"block formats are read in whole blocks: no cut rows"};
  return {};
}

Verdict takes_panel(const Args& g) { return common(g); }

bool along_rows(const View& w) { return !w || w.strides[1] == 1 || (w.dims[1] == 1 && !is_block(w.type)); }

Verdict takes_tiles(const Args& g) {
  if (Verdict v = common(g); !v) return v;
  if (g.a.dims[0] <= kMostStreamRows)
    return {"m <= 8: half of a tile's rows would be empty, and the weights are read once either way"};
  if (!along_rows(g.a) || !along_rows(g.b) || !along_rows(g.gate))
    return {"tiles are filled along rows of a and of the weights: they must be dense"};
  if (!in_registers(g.b) || !in_registers(g.gate))
    return {"tiles are filled from registers, and this weight format has no reader there"};
  return {};
}

Verdict takes_stream(const Args& g) {
  if (Verdict v = common(g); !v) return v;
  if (g.a.dims[0] > kMostStreamRows) return {"m > 8: streaming would decode the weights again for every 8 rows of a"};
  if (!in_registers(g.b) || !in_registers(g.gate))
    return {"streams decode in registers, and this weight format has no reader there"};
  if (!along_rows(g.b) || !along_rows(g.gate)) return {"weights are streamed along their rows: the rows must be dense"};
  return {};
}

Verdict takes_woven(const Args& g) {
  if (!is_woven(g.b.type) || (g.gate && !is_woven(g.gate.type))) return {"the weights are not woven: 16 rows in a block"};
  if (Verdict v = common(g); !v) return v;
  if (!along_rows(g.a)) return {"whole numbers are made along rows of a: they must be dense"};
  return {};
}
Verdict takes_woven_tiles(const Args& g) {
  if (g.a.dims[0] <= kMostStreamRows)
    return {"m <= 8: half of a tile's rows would be empty, and the weights are read once either way"};
  return takes_woven(g);
}

// ---- launches
template <Isa isa>
int64_t panel_workspace(const Args& g) {
  return gemm_cpu(isa).panel_scratch(g.a.dims[0], g.a.dims[1]);
}

template <Isa isa>
void launch_panel(Ctx& x, const Args& g, char* scratch) {
  const GemmCpu& cpu = gemm_cpu(isa);
  const GemmTask t = task(g, scratch);
  x.pool().parallel(cpu.panel_pack_items(t), [&](int64_t i, int) { cpu.panel_pack(t, i); });
  x.pool().parallel(cpu.panel_items(t), [&](int64_t i, int) { cpu.panel(t, i); });
}

// The call for one row of a.
Args row_of(Args g, int64_t i) {
  if (g.a.dims[0] == 0) return g;
  for (View* v : {&g.a, &g.c, &g.residual})
    if (*v) *v = v->rows(i, 1);
  return g;
}

bool streams_directly(const View& a) { return a.type == DType::f32 && a.rows_dense(); }
int64_t stream_workspace(const Args& g) { return streams_directly(g.a) ? 0 : g.a.count() * 4; }

template <Isa isa>
void launch_stream(Ctx& x, const Args& g, char* scratch) {
  const GemmCpu& cpu = gemm_cpu(isa);
  GemmTask t = task(g, scratch);
  if (!streams_directly(g.a)) {
    cpu.widen(t);
    t.a = {reinterpret_cast<uint8_t*>(scratch), DType::f32, t.k * 4, 4};
  }
  x.pool().parallel(cpu.stream_items(t), [&](int64_t i, int) { cpu.stream(t, i); });
}

// Rows of a that whole numbers cannot express go through a panel, after the others; its scratch follows theirs.
int64_t aligned(int64_t bytes) { return (bytes + 63) / 64 * 64; }
constexpr Isa panels_of(Isa isa) { return isa > Isa::avx512 ? Isa::avx512 : isa; }
template <Isa isa>
void finish_left_out(Ctx& x, const Args& g, const GemmTask& t, bool (*left_out)(const GemmTask&, int64_t), char* scratch) {
  for (int64_t i = 0; i < t.m; ++i)
    if (left_out(t, i)) launch_panel<panels_of(isa)>(x, row_of(g, i), scratch);
}

template <Isa isa>
int64_t woven_bytes(const Args& g) {
  return aligned(gemm_woven(isa).scratch(g.a.dims[0], g.a.dims[1]));
}
template <Isa isa>
int64_t woven_workspace(const Args& g) {
  return woven_bytes<isa>(g) + panel_workspace<panels_of(isa)>(row_of(g, 0));
}
constexpr int64_t kQuantisedAlone = 8192;  // numbers that a fork and join would cost more than to make them here
template <Isa isa, bool fast>
void launch_woven(Ctx& x, const Args& g, char* scratch) {
  const GemmWoven& cpu = fast ? gemm_woven_fast(isa) : gemm_woven(isa);
  const GemmTask t = task(g, scratch);
  if (t.m * t.k <= kQuantisedAlone)
    for (int64_t i = 0; i < t.m; ++i) cpu.quantise(t, i);
  else
    x.pool().parallel(t.m, [&](int64_t i, int) { cpu.quantise(t, i); });
  x.pool().parallel(cpu.items(t), [&](int64_t i, int) { cpu.multiply(t, i); });
  finish_left_out<isa>(x, g, t, cpu.left_out, scratch + woven_bytes<isa>(g));
}

int64_t woven_tiles_bytes(const Args& g) { return aligned(amx::gemm_woven_tiles.scratch(g.a.dims[0], g.a.dims[1])); }
int64_t woven_tiles_workspace(const Args& g) { return woven_tiles_bytes(g) + panel_workspace<Isa::avx512>(row_of(g, 0)); }
void launch_woven_tiles(Ctx& x, const Args& g, char* scratch) {
  const GemmTiles& cpu = amx::gemm_woven_tiles;
  const GemmTask t = task(g, scratch);
  x.pool().parallel(cpu.pack_items(t), [&](int64_t i, int) { cpu.pack(t, i); });
  x.pool().parallel(cpu.items(t), [&](int64_t i, int) { cpu.multiply(t, i); });
  finish_left_out<Isa::avx512>(x, g, t, cpu.left_out, scratch + woven_tiles_bytes(g));
}

int64_t tiles_bytes(const Args& g) { return aligned(amx::gemm_tiles.scratch(g.a.dims[0], g.a.dims[1])); }
int64_t tiles_workspace(const Args& g) { return tiles_bytes(g) + stream_workspace(row_of(g, 0)); }
void launch_tiles(Ctx& x, const Args& g, char* scratch) {
  const GemmTiles& cpu = amx::gemm_tiles;
  const GemmTask t = task(g, scratch);
  x.pool().parallel(cpu.pack_items(t), [&](int64_t i, int) { cpu.pack(t, i); });
  x.pool().parallel(cpu.items(t), [&](int64_t i, int) { cpu.multiply(t, i); });
  for (int64_t i = 0; i < t.m; ++i)
    if (cpu.left_out(t, i)) launch_stream<Isa::avx512>(x, row_of(g, i), scratch + tiles_bytes(g));
}

template <Isa isa, bool fast = false>
constexpr Kernel<Gemm> woven_row(const char* name, Speed speed) {
  return {.name = name,
          .place = Place::cpu,
          .isa = isa,
          .tier = Tier::fast,
          .supports = takes_woven,
          .launch = launch_woven<isa, fast>,
          .workspace = woven_workspace<isa>,
          .speed = speed,
          .rounds = fast ? DType::q8_0 : DType::bf16};
}

template <Isa isa>
constexpr Kernel<Gemm> stream_row(const char* name, Tier tier, Speed speed) {
  return {.name = name,
          .place = Place::cpu,
          .isa = isa,
          .tier = tier,
          .supports = takes_stream,
          .launch = launch_stream<isa>,
          .workspace = stream_workspace,
          .speed = speed};
}
template <Isa isa>
constexpr Kernel<Gemm> panel_row(const char* name, Tier tier, Speed speed) {
  return {.name = name,
          .place = Place::cpu,
          .isa = isa,
          .tier = tier,
          .supports = takes_panel,
          .launch = launch_panel<isa>,
          .workspace = panel_workspace<isa>,
          .speed = speed};
}

}  // namespace

std::span<const Kernel<Gemm>> Gemm::kernels() {
  static const Kernel<Gemm> rows[] = {
      {.name = "panel_amx",
       .place = Place::cpu,
       .isa = Isa::amx,
       .tier = Tier::fast,
       .supports = takes_tiles,
       .launch = launch_tiles,
       .workspace = tiles_workspace,
       .speed = {Unit::matrix_bf16, 0.12, 0.6},
       .rounds = DType::bf16},
      {.name = "woven_tiles_amx",
       .place = Place::cpu,
       .isa = Isa::amx,
       .tier = Tier::fast,
       .supports = takes_woven_tiles,
       .launch = launch_woven_tiles,
       .workspace = woven_tiles_workspace,
       .speed = {Unit::matrix_bf16, 0.14, 0.6},
       .rounds = DType::bf16},
      woven_row<Isa::vnni, true>("woven_vnni_fast", {Unit::vector_i8, 0.28, 0.65}),
      woven_row<Isa::vnni>("woven_vnni", {Unit::vector_i8, 0.17, 0.65}),
      woven_row<Isa::avx512>("woven_avx512", {Unit::fma_f32, 0.45, 0.65}),
      woven_row<Isa::avx2>("woven_avx2", {Unit::fma_f32, 0.2, 0.3}),
      stream_row<Isa::avx512>("stream_avx512", Tier::fast, {Unit::fma_f32, 0.4, 0.6}),
      panel_row<Isa::avx512>("panel_avx512", Tier::fast, {Unit::fma_f32, 0.6, 0.6}),
      stream_row<Isa::avx2>("stream_avx2", Tier::fast, {Unit::fma_f32, 0.25, 0.4}),
      panel_row<Isa::avx2>("panel_avx2", Tier::fast, {Unit::fma_f32, 0.32, 0.4}),
      stream_row<Isa::portable>("stream_portable", Tier::general, {Unit::fma_f32, 0.07, 0.1}),
      panel_row<Isa::portable>("panel_portable", Tier::general, {Unit::fma_f32, 0.12, 0.1}),
      {.name = "reference",
       .place = Place::cpu,
       .isa = Isa::portable,
       .tier = Tier::reference,
       .supports = always<Gemm>,
       .launch = Gemm::reference},
  };
  return rows;
}

void gemm(Ctx& x, const Gemm::Args& a) { call<Gemm>(x, a); }
OpInfo gemm_op() { return erase<Gemm>(); }

}  // namespace ridge
