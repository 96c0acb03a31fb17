// gemm as its CPU rows see it: plain data, and the table of what each ISA file offers.
#pragma once
#include "ops/activation.h"
#include "tile/cpu/isa_table.h"
#include "tile/cpu/matrix.h"

namespace ridge {

struct GemmTask {
  int64_t m, n, k;
  CpuMatrix a, b, gate, bias, gate_bias, residual, c;  // biases: one row
  float scale;
  Activation act;
  char* scratch;
};

// Work is a list of items that a pool runs in any order: an item writes its own part of c and nothing else.
struct GemmCpu {
  // ---- panel: a is packed once, then each item decodes a panel of b and multiplies a block of rows with it
  int64_t (*panel_scratch)(int64_t m, int64_t k);  // bytes
  int64_t (*panel_pack_items)(const GemmTask&);
  void (*panel_pack)(const GemmTask&, int64_t item);
  int64_t (*panel_items)(const GemmTask&);
  void (*panel)(const GemmTask&, int64_t item);
  // ---- stream: up to kMostStreamRows rows; each item decodes some rows of b in registers, straight from where they lie
  void (*widen)(const GemmTask&);  // a to dense f32 rows in scratch; for an a that is not f32 and dense
  int64_t (*stream_items)(const GemmTask&);
  void (*stream)(const GemmTask&, int64_t item);
  bool (*reads)(DType);  // in registers (tile/cpu/decode.h); panels take any format
};

constexpr int kMostStreamRows = 8;

// Tiles, on AMX alone. Same scheme as panel.
struct GemmTiles {
  int64_t (*scratch)(int64_t m, int64_t k);
  int64_t (*pack_items)(const GemmTask&);
  void (*pack)(const GemmTask&, int64_t item);
  int64_t (*items)(const GemmTask&);
  void (*multiply)(const GemmTask&, int64_t item);
  bool (*left_out)(const GemmTask&, int64_t row);  // a row that parts cannot express: the caller computes it otherwise
};

// Woven weights (tile/cpu/woven.h): a's rows become whole numbers, then each item takes 16 rows of b. Null where a level has none.
struct GemmWoven {
  int64_t (*scratch)(int64_t m, int64_t k);
  void (*quantise)(const GemmTask&, int64_t row);
  int64_t (*items)(const GemmTask&);
  void (*multiply)(const GemmTask&, int64_t item);
  bool (*left_out)(const GemmTask&, int64_t row);  // not finite: the caller computes it otherwise
};

RIDGE_ISA_TABLES(GemmCpu, gemm_cpu)
RIDGE_ISA_TABLES(GemmWoven, gemm_woven)
RIDGE_ISA_TABLES(GemmWoven, gemm_woven_fast)
namespace amx {
extern const GemmTiles gemm_tiles;        // any weights with a reader, bf16 parts
extern const GemmTiles gemm_woven_tiles;  // woven weights, 8-bit parts
}  // namespace amx

}  // namespace ridge
