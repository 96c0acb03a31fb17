#include "model/decoder.h"

#include <cmath>

#include "ops/attention/attention.h"
#include "ops/embed/embed.h"
#include "ops/gemm/gemm.h"
#include "ops/linear_cross_entropy/linear_cross_entropy.h"
#include "ops/rms_norm/rms_norm.h"

namespace ridge {

namespace {

// h_out may be h_in's own storage, and is unless the pass is recorded.
void decoder_layer(Ctx& x, const DecoderConfig& c, const DecoderLayer& l, const View& inv_freq, const Batch& b,
                   const LayerKv* cache, int64_t window, View h_in, View h_out) {
  const int64_t n = h_in.dims[0], q_dim = c.heads * c.head_dim, kv_dim = c.kv_heads * c.head_dim;
  const DType t = h_in.type;
  Scope scratch(x);

  View u = x.act(h_in), qkv = x.act({n, q_dim + 2 * kv_dim}, t), o = x.act({n, q_dim}, t);
  View q = qkv.cols(0, q_dim), k = qkv.cols(q_dim, kv_dim), v = qkv.cols(q_dim + kv_dim, kv_dim);
  rms_norm(x, {.x = h_in, .y = u, .w = l.attn_norm, .eps = c.norm_eps});
  if (l.qkv) {
    gemm(x, {.a = u, .b = l.qkv, .c = qkv, .bias = l.qkv_bias});
  } else {
    gemm(x, {.a = u, .b = l.q, .c = q, .bias = l.q_bias});
    gemm(x, {.a = u, .b = l.k, .c = k, .bias = l.k_bias});
    gemm(x, {.a = u, .b = l.v, .c = v, .bias = l.v_bias});
  }
  // The three share one buffer; rotated queries and keys have one of their own only when the pass is recorded.
  View turned = x.next(qkv);
  View k_flat = k.heads(c.kv_heads), v_flat = v.heads(c.kv_heads);
  View q_out = turned.cols(0, q_dim).heads(c.heads), k_out = turned.cols(q_dim, kv_dim).heads(c.kv_heads);
  Rope::Args turn{.q = q.heads(c.heads),
                  .k = k_flat,
                  .positions = b.positions,
                  .q_out = q_out,
                  .k_out = k_out,
                  .frequencies = c.rope,
                  .inv_freq = inv_freq,
                  .rotary_dim = c.rotary_dim,
                  .pairs = c.pairs,
                  .q_norm = l.q_norm,
                  .k_norm = l.k_norm,
                  .eps = c.norm_eps};
  Attention::Args attend{.q = q_out,
                         .k = k_out,
                         .v = v_flat,
                         .segments = b.segments,
                         .o = o.heads(c.heads),
                         .scale = 1 / std::sqrt(double(c.head_dim)),
                         .window = window};
  if (cache) {  // keys and values go to their pages, and attention reads them there
    turn.k_out = {}, turn.v = v_flat, turn.k_pages = cache->k, turn.v_pages = cache->v, turn.pages = b.pages;
    attend.k = cache->k, attend.v = cache->v, attend.pages = b.pages;
  }
  rope(x, turn);
  attention(x, attend);
  View mid = x.next(h_in);
  gemm(x, {.a = o, .b = l.o, .c = mid, .bias = l.o_bias, .residual = h_in});

  View u2 = x.act(h_in), f = x.act({n, c.ffn}, t);
  rms_norm(x, {.x = mid, .y = u2, .w = l.ffn_norm, .eps = c.norm_eps});
  gemm(x, {.a = u2, .b = l.up, .c = f, .gate = l.gate, .bias = l.up_bias, .gate_bias = l.gate_bias, .act = Activation::silu});
  gemm(x, {.a = f, .b = l.down, .c = h_out, .bias = l.down_bias, .residual = mid});
}

}  // namespace

View decoder_hidden(Ctx& x, const DecoderConfig& c, const DecoderWeights& w, const Batch& b, DType type, bool recomputed) {
  View h = x.act({b.tokens(), c.dim}, type);  // the residual stream
  embed(x, {.ids = b.ids, .table = w.embed, .y = h});
  for (int64_t i = 0; i < c.layers; ++i) {
    const View h_in = h;
    h = x.next(h);
    auto layer = [&c, &l = w.layers[i], &w, &b, h_in, h, kv = b.cache ? &b.cache->layers[i] : nullptr,
                  window = c.window.empty() ? 0 : c.window[i]](Ctx& y) {
      decoder_layer(y, c, l, w.inv_freq, b, kv, window, h_in, h);
    };
    recomputed ? recompute(x, layer) : layer(x);
  }
  return h;
}

}  // namespace ridge
