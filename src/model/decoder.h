// The Llama-class decoder: pre-norm, grouped-query attention with rotary positions, a gated MLP; tied or untied head, optional
// biases and QK-norm. Llama 2 and 3.x, SmolLM2, Mistral, Qwen2, Qwen2.5 and Qwen3 are settings of it.
//
// A layer over n tokens costs 2 n (parameters of the layer) FLOPs plus 4 n keys heads head_dim for attention.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "model/model.h"
#include "ops/rope/rope.h"

namespace ridge {

struct DecoderConfig {
  int64_t vocab = 0, dim = 0, layers = 0, heads = 0, kv_heads = 0, head_dim = 0, ffn = 0, context = 0;
  double norm_eps = 1e-5;
  RopeFrequencies rope;
  RopePairs pairs = RopePairs::half_split;
  int64_t rotary_dim = 0;
  bool tied = false;  // the head is the embedding
  bool qkv_bias = false, o_bias = false, mlp_bias = false, qk_norm = false;
  std::vector<int64_t> window;  // a layer each: keys a query sees, 0 for all; empty: all, everywhere
  DType stored = DType::bf16;   // what the checkpoint's weights are, for plans without weights
};

struct DecoderLayer {
  View attn_norm;   // [dim]
  View q, k, v, o;  // [heads * d, dim], [kv_heads * d, dim] twice, [dim, heads * d]
  View q_bias, k_bias, v_bias, o_bias;
  View qkv, qkv_bias;   // q, k and v in one piece, for one product; absent where they are of different types or trained
  View q_norm, k_norm;  // [d]
  View ffn_norm;        // [dim]
  View gate, up, down;  // [ffn, dim] twice, [dim, ffn]
  View gate_bias, up_bias, down_bias;
};

struct DecoderWeights {
  View embed;     // [vocab, dim]
  View norm;      // [dim]
  View head;      // [vocab, dim]; the embedding itself where tied
  View inv_freq;  // [rotary_dim / 2] f64, computed from the config
  std::vector<DecoderLayer> layers;
};

// Reads an HF config.json or a GGUF's metadata. Families set what their config leaves unsaid before or after.
Result<DecoderConfig> read_decoder_config(const Source& source, DecoderConfig defaults = {});

Result<Model> make_decoder(const char* family, const Source& source, const DecoderConfig& config, const LoadOptions& options);

View decoder_hidden(Ctx& x, const DecoderConfig& c, const DecoderWeights& w, const Batch& b, DType type, bool recomputed);

}  // namespace ridge
