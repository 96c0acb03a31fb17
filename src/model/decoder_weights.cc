// Binds a decoder's weights: one visitor names every weight, and loading, planning and random weights all go through it.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>

#include "base/check.h"
#include "base/format.h"
#include "base/rng.h"
#include "device/pool.h"
#include "io/mapping.h"
#include "model/decoder.h"
#include "ops/embed/embed.h"
#include "ops/gemm/gemm.h"
#include "ops/linear_cross_entropy/linear_cross_entropy.h"
#include "ops/rms_norm/rms_norm.h"

namespace ridge {

namespace {

struct Slot {
  std::string hf, gguf;
  int64_t rows, cols;  // cols 0: a vector of `rows`
};

// f(slot, view) for every weight this config has, in the checkpoint's order.
template <class F>
void visit_weights(const DecoderConfig& c, DecoderWeights& w, F&& f) {
  const int64_t q = c.heads * c.head_dim, kv = c.kv_heads * c.head_dim;
  f(Slot{"model.embed_tokens.weight", "token_embd.weight", c.vocab, c.dim}, w.embed);
  w.layers.resize(c.layers);
  for (int64_t i = 0; i < c.layers; ++i) {
    DecoderLayer& l = w.layers[i];
    auto name = [i](const char* hf, const char* gguf, int64_t rows, int64_t cols = 0) {
      return Slot{fmt::format("model.layers.{}.{}", i, hf), fmt::format("blk.{}.{}", i, gguf), rows, cols};
    };
    f(name("input_layernorm.weight", "attn_norm.weight", c.dim), l.attn_norm);
    f(name("self_attn.q_proj.weight", "attn_q.weight", q, c.dim), l.q);
    f(name("self_attn.k_proj.weight", "attn_k.weight", kv, c.dim), l.k);
    f(name("self_attn.v_proj.weight", "attn_v.weight", kv, c.dim), l.v);
    f(name("self_attn.o_proj.weight", "attn_output.weight", c.dim, q), l.o);
    if (c.qkv_bias) {
      f(name("self_attn.q_proj.bias", "attn_q.bias", q), l.q_bias);
      f(name("self_attn.k_proj.bias", "attn_k.bias", kv), l.k_bias);
      f(name("self_attn.v_proj.bias", "attn_v.bias", kv), l.v_bias);
    }
    if (c.o_bias) f(name("self_attn.o_proj.bias", "attn_output.bias", c.dim), l.o_bias);
    if (c.qk_norm) {
      f(name("self_attn.q_norm.weight", "attn_q_norm.weight", c.head_dim), l.q_norm);
      f(name("self_attn.k_norm.weight", "attn_k_norm.weight", c.head_dim), l.k_norm);
    }
    f(name("post_attention_layernorm.weight", "ffn_norm.weight", c.dim), l.ffn_norm);
    f(name("mlp.gate_proj.weight", "ffn_gate.weight", c.ffn, c.dim), l.gate);
    f(name("mlp.up_proj.weight", "ffn_up.weight", c.ffn, c.dim), l.up);
    f(name("mlp.down_proj.weight", "ffn_down.weight", c.dim, c.ffn), l.down);
    if (c.mlp_bias) {
      f(name("mlp.gate_proj.bias", "ffn_gate.bias", c.ffn), l.gate_bias);
      f(name("mlp.up_proj.bias", "ffn_up.bias", c.ffn), l.up_bias);
      f(name("mlp.down_proj.bias", "ffn_down.bias", c.dim), l.down_bias);
    }
  }
  f(Slot{"model.norm.weight", "output_norm.weight", c.dim, 0}, w.norm);
  if (!c.tied)
    f(Slot{"lm_head.weight", "output.weight", c.vocab, c.dim}, w.head);
  else
    w.head = w.embed;
}

Status bind_stored(const Source& source, const DecoderConfig& c, DecoderWeights& w) {
  Status wrong;
  visit_weights(c, w, [&](const Slot& s, View& v) {
    if (!wrong.ok()) return;
    const std::string& name = source.kind == Source::Kind::gguf ? s.gguf : s.hf;
    const View* found = source.tensors.find(name);
    const bool vector = s.cols == 0;
    if (!found)
      wrong = unloadable(
          fmt::format("{}: the tensor {} is missing, which the config asks for; the file is incomplete or of another model.",
                      source.path, name));
    else if (found->dims[0] != s.rows || (found->rank == 2) == vector || (!vector && found->dims[1] != s.cols))
      wrong = unloadable(fmt::format("{}: the tensor {} is {}, and the config asks for [{}{}].", source.path, name,
                                     to_string(*found), s.rows, vector ? "" : fmt::format(", {}", s.cols)));
    else if (!is_float(found->type) && (vector || !is_block(found->type)))
      wrong = unloadable(
          fmt::format("{}: the tensor {} is of type {}, which is no type for it.", source.path, name, name_of(found->type)));
    else
      v = *found;
  });
  return wrong;
}

void alloc_weights(Arena& a, const DecoderConfig& c, DType type, DecoderWeights& w) {
  const DType vectors = is_block(type) ? DType::f32 : type;  // norms and biases are never block-quantised
  visit_weights(c, w, [&](const Slot& s, View& v) { v = s.cols ? a.alloc({s.rows, s.cols}, type) : a.alloc({s.rows}, vectors); });
}

// Small enough to keep activations near 1: matrices ~ N(0, 1 / cols), norms near 1, biases small.
void randomise(DecoderWeights& w, const DecoderConfig& c, uint64_t seed) {
  uint32_t op = 0;
  visit_weights(c, w, [&](const Slot& s, View& v) {
    const RngKey key{.seed = seed, .op = op++};
    const double width = s.cols ? std::sqrt(3.0 / double(s.cols)) : 0.2, centre = s.hf.ends_with("norm.weight") ? 1 : 0;
    View flat = v.flat();
    for (int64_t i = 0; i < v.count(); ++i) flat.set(centre + width * (2 * uniform(key, uint64_t(i)) - 1), i);
  });
}

void copy(DecoderWeights from, const DecoderConfig& c, DecoderWeights& to) {
  std::vector<View> sources;
  visit_weights(c, from, [&](const Slot&, View& v) { sources.push_back(v); });
  size_t next = 0;
  visit_weights(c, to, [&](const Slot&, View& v) {
    const View& s = sources[next++];
    for (int64_t i = 0; i < v.dims[0]; ++i)
      for (int64_t j = 0; j < v.dims[1]; ++j) v.set(s.get(i, j), i, j);
  });
}

// ---- weaving
// Matrices that become one woven one: a single one, or a layer's q, k and v.
struct Weave {
  std::vector<View*> parts;
  View* whole = nullptr;  // of several parts
  std::vector<View*> biases;
  View* whole_bias = nullptr;
  DType type() const { return woven_of(parts[0]->type); }
  int64_t rows() const {
    int64_t n = 0;
    for (const View* v : parts) n += v->dims[0];
    return n;
  }
};

// What gemm reads. An embedding that is not the head too stays in the file: a prompt touches a few of its rows.
std::vector<Weave> weaves_of(const DecoderConfig& c, DecoderWeights& w) {
  std::vector<Weave> all;
  std::vector<const View*> fused;
  for (DecoderLayer& l : w.layers) {
    if (!can_weave(l.q) || !can_weave(l.k) || !can_weave(l.v) || l.q.type != l.k.type || l.q.type != l.v.type) continue;
    all.push_back({{&l.q, &l.k, &l.v}, &l.qkv, {&l.q_bias, &l.k_bias, &l.v_bias}, c.qkv_bias ? &l.qkv_bias : nullptr});
    fused.insert(fused.end(), {&l.q, &l.k, &l.v});
  }
  visit_weights(c, w, [&](const Slot&, View& v) {
    if (can_weave(v) && (c.tied || &v != &w.embed) && std::find(fused.begin(), fused.end(), &v) == fused.end())
      all.push_back({{&v}});
  });
  // In the file's order: what is read next lies beside what was given back.
  std::sort(all.begin(), all.end(), [](const Weave& a, const Weave& b) { return a.parts[0]->data < b.parts[0]->data; });
  return all;
}

// Lays out the woven matrices in an arena, which may only measure, and calls f(from, to) for each part before its view changes.
template <class F>
void lay_out_woven(const DecoderConfig& c, DecoderWeights& w, Arena& arena, F&& f) {
  for (const Weave& m : weaves_of(c, w)) {
    const View whole = arena.alloc({m.rows(), m.parts[0]->dims[1]}, m.type());
    int64_t row = 0;
    for (View* part : m.parts) {
      const View to = whole.rows(row, part->dims[0]);
      row += part->dims[0];
      f(*part, to);
      *part = to;
    }
    if (m.whole) *m.whole = whole;
    if (!m.whole_bias) continue;
    const View bias = arena.alloc({m.rows()}, DType::f32);
    int64_t at = 0;
    for (const View* part : m.biases)
      for (int64_t i = 0; i < part->dims[0]; ++i, ++at)
        if (!arena.measures()) bias.set(part->get(i), at);
    *m.whole_bias = bias;
  }
  // Vectors too: each touch of one would bring its neighbourhood in the file back, up to 2 MB of it.
  visit_weights(c, w, [&](const Slot& s, View& v) {
    if (s.cols) return;
    const View copy = arena.alloc({s.rows}, v.type);
    if (!arena.measures()) {
      memcpy(copy.data, v.data, size_t(v.bytes()));
      forget_pages(v.data, v.bytes());
    }
    v = copy;
  });
  if (c.tied) w.head = w.embed;
}

void weave_stored(const DecoderConfig& c, DecoderWeights& w, Arena& arena, const LoadOptions& o) {
  Arena measure;
  DecoderWeights trial = w;
  int64_t all = 0, done = 0;
  lay_out_woven(c, trial, measure, [&](const View& from, const View&) { all += from.bytes(); });
  arena = Arena(measure.peak(), Arena::Pages::large);
  const Pool alone(1);
  const Pool& pool = o.pool ? *o.pool : alone;
  // A fault brings neighbours in too, which may be of a matrix that was given back before: all are given back again now and then.
  std::vector<View> read;
  const auto forget = [&] {
    for (const View& from : read) forget_pages(from.data, from.bytes());
  };
  lay_out_woven(c, w, arena, [&](const View& from, const View& to) {
    pool.parallel(from.dims[0] / format_of(to.type)->rows, [&](int64_t group, int) { weave(from, to, group); });
    read.push_back(from);
    if (read.size() % 16 == 0) forget();
    done += from.bytes();
    if (o.progress) o.progress(done, all);
  });
  forget();
}

std::string label_of(const char* family, const Model& m) {
  std::map<DType, int64_t> parameters;
  for (const NamedWeight& w : m.weights) parameters[stored_of(w.view.type)] += w.view.count();
  auto most = std::max_element(parameters.begin(), parameters.end(), [](auto& a, auto& b) { return a.second < b.second; });
  const double n = double(m.parameters);
  return fmt::format("{} {} {}", family, n >= 1e9 ? fmt::format("{:.2f}B", n / 1e9) : fmt::format("{:.1f}M", n / 1e6),
                     name_of(most->first));
}

struct Decoder {
  DecoderConfig config;
  DecoderWeights weights;
  Arena arena;  // random or measured weights, and computed constants
  Tensors files;
  Arena woven;  // what took the place of matrices in the files
};

View logits(Ctx& x, const Decoder& d, const Batch& b, DType type) {
  const DecoderConfig& c = d.config;
  View h = decoder_hidden(x, c, d.weights, b, type, false);
  if (b.sample_rows) {                                                 // embed takes rows of any table
    if (b.sample_rows.dims[0] == 0) return x.act({0, c.vocab}, type);  // a chunk of a prompt: nobody asks for logits yet
    View rows = x.act({b.sample_rows.dims[0], c.dim}, type);
    embed(x, {.ids = b.sample_rows, .table = h, .y = rows});
    h = rows;
  }
  View u = x.act(h), out = x.act({h.dims[0], c.vocab}, type);
  rms_norm(x, {.x = h, .y = u, .w = d.weights.norm, .eps = c.norm_eps});
  gemm(x, {.a = u, .b = d.weights.head, .c = out});
  return out;
}

View loss(Ctx& x, const Decoder& d, const Batch& b, DType type, bool recomputed) {
  View h = decoder_hidden(x, d.config, d.weights, b, type, recomputed);
  View u = x.act(h), out = x.act({1}, type), lse = x.act({b.tokens()}, type);
  rms_norm(x, {.x = h, .y = u, .w = d.weights.norm, .eps = d.config.norm_eps});
  linear_cross_entropy(x, {.h = u, .w = d.weights.head, .target = b.targets, .weight = b.loss_weights, .loss = out, .lse = lse});
  return out;
}

// GGUF files of Llama 3 state their scaling as a divisor for each frequency.
Status compute_frequencies(const Source& source, const DecoderConfig& c, const View& inv_freq) {
  rope_frequencies(c.rope, inv_freq);
  const View* divisors = source.kind == Source::Kind::gguf ? source.tensors.find("rope_freqs.weight") : nullptr;
  if (!divisors) return {};
  if (divisors->rank != 1 || divisors->dims[0] != inv_freq.dims[0] || !is_float(divisors->type))
    return unloadable(fmt::format("{}: the tensor rope_freqs.weight is {}, and {} frequencies are to be divided by it.",
                                  source.path, to_string(*divisors), inv_freq.dims[0]));
  for (int64_t i = 0; i < inv_freq.dims[0]; ++i) inv_freq.set(inv_freq.get(i) / divisors->get(i), i);
  return {};
}

int64_t arena_bytes(const DecoderConfig& c, DType type) {
  Arena measure;
  DecoderWeights w;
  alloc_weights(measure, c, type, w);
  return measure.peak();
}

}  // namespace

Result<Model> make_decoder(const char* family, const Source& source, const DecoderConfig& config, const LoadOptions& options) {
  using Weights = LoadOptions::Weights;
  const bool owned = options.weights == Weights::copied || options.weights == Weights::random;
  const bool shape = options.weights == Weights::measured && source.kind == Source::Kind::shape;
  const int64_t constants = 64 * 1024;  // the computed ones, beside the weights
  auto d = std::make_shared<Decoder>(Decoder{config,
                                             {},
                                             Arena(shape   ? 0
                                                   : owned ? arena_bytes(config, options.type) + constants
                                                           : constants),
                                             source.tensors,
                                             Arena()});
  if (!shape && options.weights != Weights::random)  // a plan binds views of the mapped file and touches none of it
    if (Status s = bind_stored(source, config, d->weights); !s.ok()) return s;
  if (shape) alloc_weights(d->arena, config, options.stored_type.value_or(config.stored), d->weights);
  if (options.woven && options.weights == Weights::stored) weave_stored(config, d->weights, d->woven, options);
  if (options.woven && options.weights == Weights::measured)
    lay_out_woven(config, d->weights, d->woven, [](const View&, const View&) {});
  if (owned) {
    const DecoderWeights from = d->weights;
    alloc_weights(d->arena, config, options.type, d->weights);
    options.weights == Weights::random ? randomise(d->weights, config, options.seed) : copy(from, config, d->weights);
  }
  const DType type = owned ? options.type : DType::f32;
  d->weights.inv_freq = d->arena.alloc({config.rotary_dim / 2}, DType::f64);
  if (!d->arena.measures())
    if (Status s = compute_frequencies(source, config, d->weights.inv_freq); !s.ok()) return s;

  Model m{.family = family,
          .vocab = config.vocab,
          .context = config.context,
          .kv = {config.layers, config.kv_heads, config.head_dim},
          .activations = type};
  visit_weights(config, d->weights, [&](const Slot& s, View& v) {
    m.weights.push_back({s.hf, v});
    m.parameters += v.count();
    m.weight_bytes += v.bytes();
  });
  m.label = label_of(family, m);
  m.logits = [d = d.get(), type](Ctx& x, const Batch& b) { return logits(x, *d, b, type); };
  m.loss = [d = d.get(), type, recomputed = options.recompute](Ctx& x, const Batch& b) {
    return loss(x, *d, b, type, recomputed);
  };
  if (owned) m.arena = &d->arena;
  m.storage = d;
  return m;
}

}  // namespace ridge
