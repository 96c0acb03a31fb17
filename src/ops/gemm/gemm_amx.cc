// gemm on AMX tiles, with f32 operands as sums of two bf16 parts (tile/cpu/amx.h): three tile products where one would round the
// activations and the weights to 8 bits. Weights that are bf16 already have no low part, and need two.
//
// The weights are the left operand: a decoded row of 32 values is a tile's row, nothing is turned over. The activations are the right
// one, turned into pairs once a call. Sums come out as [weights][activations] and are turned over on their way to c.
// An item decodes `super` panels of 32 rows of b into its stack, then walks a block of rows of a, 32 at a time: 2 x 2 sums, 2 tiles of
// each operand, all eight tiles. A block of a's parts stays in the second-level cache while the items go by.
// A row of a with infinities, NaN or values above 2^126 is left out: inf - inf in the parts would turn an infinity into a NaN.
#include "ops/gemm/gemm_epilogue.h"
#include "tile/cpu/amx.h"
#include "tile/cpu/decode.h"

namespace ridge::RIDGE_ISA {
namespace {

constexpr int kPanel = 2 * kTileRows;                 // rows of b, and rows of a, that share a set of sums
constexpr int64_t kMostDepth = 2048;                  // of k at once: two parts of a panel are then 256 kB
constexpr int64_t kWeightBytes = 512 << 10;           // of b and its gate
constexpr int64_t kMostPanels = 4, kMostBlock = 256;  // bound the sums on the stack
constexpr int64_t kBlockBytes = 768 << 10;            // of a's parts: with the weights half of the second-level cache

RIDGE_INLINE int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }
RIDGE_INLINE int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }
RIDGE_INLINE int64_t within(int64_t x, int64_t low, int64_t high) { return x < low ? low : smaller(x, high); }

// How a call is cut: functions of its sizes alone.
struct Cut {
  int64_t depth_tiles;  // of k
  int64_t block;        // rows of a an item
  int64_t panels;       // of b an item
  int64_t supers;       // items a block
};
Cut cut_of(const GemmTask& t) {
  const int64_t depth_tiles = ceil_div(t.k, kTileDepth), depth = depth_tiles * kTileDepth;
  const int64_t all = ceil_div(t.n, kPanel);
  const int64_t fit = kWeightBytes / (kPanel * smaller(depth, kMostDepth) * 4 * (t.gate.data ? 2 : 1) + 1);
  const int64_t panels = within(smaller(fit, all / 4), 1, kMostPanels);  // at least 4 items: threads share them
  const int64_t most = within(kBlockBytes / (depth * 4 + 1), 64, kMostBlock);
  const int64_t even = t.m == 0 ? 0 : ceil_div(t.m, ceil_div(t.m, most));
  return {depth_tiles, ceil_div(even, kPanel) * kPanel, panels, ceil_div(all, panels)};
}

// ---- a: [row tile][depth tile][hi, lo][16 pairs of k][16 rows][2], then a byte a row: left out
int64_t parts_bytes(int64_t m, int64_t k) { return ceil_div(m, kTileRows) * ceil_div(k, kTileDepth) * 2 * kTileBytes; }
int64_t scratch(int64_t m, int64_t k) { return parts_bytes(m, k) + m; }
uint8_t* flags(const GemmTask& t) { return reinterpret_cast<uint8_t*>(t.scratch) + parts_bytes(t.m, t.k); }
bool left_out(const GemmTask& t, int64_t row) { return flags(t)[row]; }
int64_t pack_items(const GemmTask& t) { return ceil_div(t.m, kTileRows); }

template <class W>
void pack_row_tile(const GemmTask& t, int64_t tile, char* out) {
  const int rows = int(smaller(kTileRows, t.m - tile * kTileRows));
  MostBits most[kTileRows] = {};
  for (int64_t d = 0; d < ceil_div(t.k, kTileDepth); ++d, out += 2 * kTileBytes) {
    Vec hi[kTileRows], lo[kTileRows];
    const int64_t here = smaller(kTileDepth, t.k - d * kTileDepth);
    for (int r = 0; r < kTileRows; ++r) {
      GroupVecs x = {zero(), zero()};
      if (r < rows) {
        const uint8_t* at = W::span(t.a.data + (tile * kTileRows + r) * t.a.row, d);
        if (here == kTileDepth)
          W::template group<0>(at, 0, {}, x);
        else
          W::tail(at, int(here), x);
      }
      const Parts p = split(x[0], x[1]);
      hi[r] = p.hi;
      lo[r] = p.lo;
      most[r].see(x[0]);
      most[r].see(x[1]);
    }
    transpose(hi);
    transpose(lo);
    for (int r = 0; r < kTileRows; ++r) {
      store(reinterpret_cast<float*>(out + r * 64), hi[r]);
      store(reinterpret_cast<float*>(out + kTileBytes + r * 64), lo[r]);
    }
  }
  for (int r = 0; r < rows; ++r) flags(t)[tile * kTileRows + r] = !most[r].below(0x1p126f);
}

void pack(const GemmTask& t, int64_t tile) {
  with_reader(t.a.type, [&]<class W>(W) {
    if constexpr (requires(GroupVecs & w) { W::tail(nullptr, 0, w); })
      pack_row_tile<W>(t, tile, t.scratch + tile * ceil_div(t.k, kTileDepth) * 2 * kTileBytes);
  });
}

// ---- b: [depth tile][part][2 tiles][16 rows][32]
// Some spans of all rows at a time: a whole row at once would store at strides of 4 kB, which share one set of the first-level cache.
template <class W, int parts>
void decode_panel(const CpuMatrix& b, int64_t row0, int64_t rows, int64_t k0, int64_t depth, char* out) {
  constexpr int64_t kTogether = (W::kSpan < 4 ? 4 : W::kSpan) * kGroup, kStep = parts * 2 * kTileBytes;
  for (int64_t k = 0; k < depth; k += kTogether, out += kTogether / kTileDepth * kStep) {
    const int64_t here = smaller(kTogether, depth - k);
    for (int r = 0; r < kPanel; ++r) {
      char* row = out + r / kTileRows * kTileBytes + r % kTileRows * 64;
      const auto put = [&](int64_t d, Parts p) __attribute__((always_inline)) {
        store(reinterpret_cast<float*>(row + d * kStep), p.hi);
        if (parts == 2) store(reinterpret_cast<float*>(row + d * kStep + 2 * kTileBytes), p.lo);
      };
      if (r < rows)
        each_group<W>(
            W::span(b.data + (row0 + r) * b.row, (k0 + k) / kGroup),
            here, [&](int64_t g, GroupVecs & w) __attribute__((always_inline)) { put(g, split(w[0], w[1])); });
      else
        for (int64_t d = 0; d < ceil_div(here, kTileDepth); ++d) put(d, {zero(), zero()});
    }
  }
}

// sums[32 rows of b][32 rows of a] += over `depth` tiles. x0, x1: a's row tiles; with one of them x1's half of the sums is left alone.
template <int parts, bool two>
void multiply_panel(const char* w, const char* x0, const char* x1, int64_t depth, float* sums, bool first) {
  constexpr int64_t kRow = kPanel * 4, kHalf = kTileRows * kPanel;  // bytes; floats
  if (first) {
    tile_zero<0>(), tile_zero<2>();
    if (two) tile_zero<1>(), tile_zero<3>();
  } else {
    tile_load<0>(sums, kRow), tile_load<2>(sums + kHalf, kRow);
    if (two) tile_load<1>(sums + kTileRows, kRow), tile_load<3>(sums + kHalf + kTileRows, kRow);
  }
  const auto products = []() __attribute__((always_inline)) {
    tile_multiply<0, 4, 6>(), tile_multiply<2, 5, 6>();
    if (two) tile_multiply<1, 4, 7>(), tile_multiply<3, 5, 7>();
  };
  for (int64_t d = 0; d < depth; ++d, x0 += 2 * kTileBytes, x1 += 2 * kTileBytes, w += parts * 2 * kTileBytes) {
    tile_load<4>(w), tile_load<5>(w + kTileBytes);
    tile_load<6>(x0 + kTileBytes);
    if (two) tile_load<7>(x1 + kTileBytes);
    products();  // hi . lo
    tile_load<6>(x0);
    if (two) tile_load<7>(x1);
    products();  // hi . hi
    if (parts == 2) {
      tile_load<4>(w + 2 * kTileBytes), tile_load<5>(w + 3 * kTileBytes);
      products();  // lo . hi
    }
  }
  tile_store<0>(sums, kRow), tile_store<2>(sums + kHalf, kRow);
  if (two) tile_store<1>(sums + kTileRows, kRow), tile_store<3>(sums + kHalf + kTileRows, kRow);
}

// ---- an item: a block of rows of a times some panels of b
struct Block {
  int64_t row0, rows;      // of a
  int64_t panel0, panels;  // of b
};

// Decodes the block's panels and returns the bytes that each takes.
template <int parts, class W>
int64_t decode_panels(const GemmTask& t, const Block& block, const CpuMatrix& b, int64_t k, int64_t depth, char* out) {
  const int64_t panel_bytes = ceil_div(depth, kTileDepth) * parts * 2 * kTileBytes;
  for (int64_t p = 0; p < block.panels; ++p) {
    const int64_t row = (block.panel0 + p) * kPanel;
    decode_panel<W, parts>(b, row, t.n - row, k, depth, out + p * panel_bytes);
  }
  return panel_bytes;
}

struct Decoded {
  char* data;
  int parts;
  int64_t panel_bytes;
};
Decoded decode_panels(const GemmTask& t, const Block& block, const CpuMatrix& b, int64_t k, int64_t depth, char* out) {
  Decoded d{out, b.type == DType::bf16 ? 1 : 2, 0};
  with_reader(b.type, [&]<class W>(W) {
    d.panel_bytes = decode_panels < std::is_same_v<W, Plain<Bf16>> ? 1 : 2, W > (t, block, b, k, depth, out);
  });
  return d;
}

void multiply_panel(const Decoded& b, int64_t panel, const char* x0, const char* x1, bool two, int64_t depth, float* sums,
                    bool first) {
  const char* w = b.data + panel * b.panel_bytes;
  if (b.parts == 1)
    two ? multiply_panel<1, true>(w, x0, x1, depth, sums, first) : multiply_panel<1, false>(w, x0, x1, depth, sums, first);
  else
    two ? multiply_panel<2, true>(w, x0, x1, depth, sums, first) : multiply_panel<2, false>(w, x0, x1, depth, sums, first);
}

// out[rows of a][32 rows of b] from 16 columns of sums[32 rows of b][32 rows of a].
void turn_over(const float* sums, float* out) {
  for (int half = 0; half < 2; ++half) {
    Vec x[kTileRows];
    for (int r = 0; r < kTileRows; ++r) x[r] = load(sums + (half * kTileRows + r) * kPanel);
    transpose(x);
    for (int r = 0; r < kTileRows; ++r) store(out + r * kPanel + half * kTileRows, x[r]);
  }
}

// 32 rows of a and of b: from sums to c, run by run of rows that are not left out.
void finish_panel(const GemmTask& t, int64_t row0, int64_t rows, int64_t col, const float* sums, const float* gates) {
  alignas(64) float turned[2][kPanel * kPanel];
  for (int half = 0; half * kTileRows < rows; ++half) {
    turn_over(sums + half * kTileRows, turned[0] + half * kTileRows * kPanel);
    if (gates) turn_over(gates + half * kTileRows, turned[1] + half * kTileRows * kPanel);
  }
  for (int64_t from = 0, to; from < rows; from = to + 1) {
    for (to = from; to < rows && !left_out(t, row0 + to);) ++to;
    finish(t, row0 + from, to - from, col, smaller(kPanel, t.n - col), turned[0] + from * kPanel,
           gates ? turned[1] + from * kPanel : nullptr, kPanel);
  }
}

int64_t items(const GemmTask& t) {
  const Cut cut = cut_of(t);
  return t.m == 0 ? 0 : ceil_div(t.m, cut.block) * cut.supers;
}

void multiply(const GemmTask& t, int64_t item) {
  constexpr int64_t kPairFloats = kPanel * kPanel;
  alignas(64) char weights[kWeightBytes];
  alignas(64) float
      sums[2 * kMostPanels * kMostBlock * kPanel];  // [b, gate][panel][pair of row tiles][32][32]; one place when k is not cut
  const Cut cut = cut_of(t);
  const Block block{item / cut.supers * cut.block, smaller(cut.block, t.m - item / cut.supers * cut.block),
                    item % cut.supers * cut.panels, smaller(cut.panels, ceil_div(t.n, kPanel) - item % cut.supers * cut.panels)};
  const bool whole = t.k <= kMostDepth;
  configure_tiles();
  int64_t k = 0;
  do {
    const int64_t depth = smaller(kMostDepth, t.k - k), tiles = ceil_div(depth, kTileDepth);
    const Decoded b = decode_panels(t, block, t.b, k, depth, weights);
    const Decoded gate =
        t.gate.data ? decode_panels(t, block, t.gate, k, depth, weights + block.panels * b.panel_bytes) : Decoded{};
    for (int64_t i = 0; i < block.rows; i += kPanel) {
      const char* x0 = t.scratch + ((block.row0 + i) / kTileRows * cut.depth_tiles + k / kTileDepth) * 2 * kTileBytes;
      const bool two = block.rows - i > kTileRows;
      const char* x1 = two ? x0 + cut.depth_tiles * 2 * kTileBytes : x0;
      for (int64_t p = 0; p < block.panels; ++p) {
        float* s = sums + (whole ? 0 : (p * kMostBlock / kPanel + i / kPanel) * 2 * kPairFloats);
        multiply_panel(b, p, x0, x1, two, tiles, s, k == 0);
        if (gate.data) multiply_panel(gate, p, x0, x1, two, tiles, s + kPairFloats, k == 0);
        if (k + depth >= t.k)
          finish_panel(t, block.row0 + i, smaller(kPanel, block.rows - i), (block.panel0 + p) * kPanel, s,
                       gate.data ? s + kPairFloats : nullptr);
      }
    }
    k += depth;
  } while (k < t.k);
}

}  // namespace

extern const GemmTiles gemm_tiles{scratch, pack_items, pack, items, multiply, left_out};

}  // namespace ridge::RIDGE_ISA
