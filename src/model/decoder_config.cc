// Reads what a Llama-class checkpoint says of itself, in HF's words or GGUF's.
#include <algorithm>

#include "model/decoder.h"

namespace ridge {

namespace {

constexpr int64_t kMostLayers = 4096, kMostDim = 1 << 20, kMostVocab = 1 << 24;

void sane(JsonFields& f, const DecoderConfig& c, const char* heads_key) {
  if (!f.status().ok()) return;
  if (c.heads % c.kv_heads) f.complain(heads_key, "is not a multiple of the number of key/value heads");
  if (const std::string wrong = check_frequencies(c.rope); !wrong.empty()) f.complain("rope", wrong);
  if (c.head_dim % 2) f.complain(heads_key, "leaves an odd head size, which rotary positions cannot turn");
  if (!(c.norm_eps > 0 && c.norm_eps < 1)) f.complain("the epsilon of the norms", "is no number between 0 and 1");
}

void read_hf_scaling(JsonFields& f, const Json& json, const std::string& where, DecoderConfig& c, int64_t context) {
  // transformers 5 gathers theta and scaling in rope_parameters; earlier ones have rope_theta and rope_scaling.
  const bool gathered = json["rope_parameters"].is_object();
  const char* key = gathered ? "rope_parameters" : "rope_scaling";
  const Json& scaling = json[key];
  if (!gathered) c.rope.theta = f.get_number("rope_theta", 10000);
  if (scaling.is_null()) return;
  if (!scaling.is_object()) return f.complain(key, "is no object");
  JsonFields s(scaling, where + ": " + key);
  if (gathered) c.rope.theta = s.get_number("rope_theta", 10000);
  const std::string type = s.get_string("rope_type", scaling.get_string("type", "default"));
  if (type == "default") {
  } else if (type == "linear") {
    c.rope.scaling = RopeScaling::linear;
    c.rope.factor = s.need_number("factor");
  } else if (type == "llama3") {
    c.rope.scaling = RopeScaling::llama3;
    c.rope.factor = s.need_number("factor");
    c.rope.low_freq_factor = s.need_number("low_freq_factor");
    c.rope.high_freq_factor = s.need_number("high_freq_factor");
    c.rope.original_context = double(s.need_int("original_max_position_embeddings", 1));
  } else if (type == "yarn") {
    c.rope.scaling = RopeScaling::yarn;
    c.rope.factor = s.need_number("factor");
    c.rope.original_context = double(s.get_int("original_max_position_embeddings", context, 1));
    c.rope.beta_fast = s.get_number("beta_fast", 32);
    c.rope.beta_slow = s.get_number("beta_slow", 1);
    c.rope.attention_factor = s.get_number("attention_factor", 0);
    c.rope.truncate = s.get_bool("truncate", true);
    c.rope.mscale = s.get_number("mscale", 0);
    c.rope.mscale_all_dim = s.get_number("mscale_all_dim", 0);
  } else {
    f.complain(key, "is of type " + quoted(type) + ", and this build knows linear, llama3 and yarn");
  }
  if (!s.status().ok()) f.complain(key, s.status().sentence());
}

// headed: the checkpoint has a head of its own, or none that could say (a shape); then silence means untied.
void read_hf(JsonFields& f, const Json& json, const std::string& where, bool headed, DecoderConfig& c) {
  c.vocab = f.need_int("vocab_size", 1, kMostVocab);
  c.dim = f.need_int("hidden_size", 1, kMostDim);
  c.layers = f.need_int("num_hidden_layers", 1, kMostLayers);
  c.heads = f.need_int("num_attention_heads", 1, 65536);
  c.kv_heads = f.get_int("num_key_value_heads", c.heads, 1, 65536);
  c.ffn = f.need_int("intermediate_size", 1, kMostDim);
  c.context = f.get_int("max_position_embeddings", 2048, 1);
  if (!f.status().ok()) return;
  if (!f.has("head_dim") && c.dim % c.heads)
    f.complain("num_attention_heads", "does not divide hidden_size, and there is no head_dim");
  c.head_dim = f.get_int("head_dim", c.dim / c.heads, 2, 1024);
  c.norm_eps = f.get_number("rms_norm_eps", 1e-6);
  c.tied = f.get_bool("tie_word_embeddings", !headed);
  const bool attention_bias = f.get_bool("attention_bias", false);
  c.qkv_bias = c.qkv_bias || attention_bias;
  c.o_bias = attention_bias;
  c.mlp_bias = f.get_bool("mlp_bias", false);
  if (const std::string act = f.get_string("hidden_act", "silu"); act != "silu")
    f.complain("hidden_act", "is " + quoted(act) + ", and this family is built on silu");
  if (f.has("quantization_config"))
    f.complain("quantization_config",
               "describes a quantised checkpoint (" + quoted(json["quantization_config"].get_string("quant_method", "unknown")) +
                   "), which this build does not read; use the f32, f16 or bf16 checkpoint, or a GGUF file");
  const std::string stored = f.get_string("torch_dtype", f.get_string("dtype", "bfloat16"));
  c.stored = stored == "float32" ? DType::f32 : stored == "float16" ? DType::f16 : stored == "float64" ? DType::f64 : DType::bf16;
  read_hf_scaling(f, json, where, c, c.context);
  // Mistral's window is on by its presence; Qwen's only by its switch, from layer max_window_layers on.
  const bool windowed = f.get_bool("use_sliding_window", !f.has("max_window_layers"));
  const int64_t window = windowed ? f.get_int("sliding_window", 0) : 0;
  if (window > 0 && window < c.context) {
    c.window.assign(c.layers, window);
    std::fill_n(c.window.begin(), std::min(c.layers, f.get_int("max_window_layers", 0)), 0);
  }
}

void read_gguf(JsonFields& f, const std::string& a, DecoderConfig& c) {
  c.dim = f.need_int(a + ".embedding_length", 1, kMostDim);
  c.layers = f.need_int(a + ".block_count", 1, kMostLayers);
  c.heads = f.need_int(a + ".attention.head_count", 1, 65536);
  c.kv_heads = f.get_int(a + ".attention.head_count_kv", c.heads, 1, 65536);
  c.ffn = f.need_int(a + ".feed_forward_length", 1, kMostDim);
  c.context = f.get_int(a + ".context_length", 2048, 1);
  if (!f.status().ok()) return;
  if (!f.has(a + ".attention.key_length") && c.dim % c.heads)
    f.complain(a + ".attention.head_count", "does not divide the embedding length, and there is no attention.key_length");
  c.head_dim = f.get_int(a + ".attention.key_length", c.dim / c.heads, 2, 1024);
  if (f.get_int(a + ".attention.value_length", c.head_dim) != c.head_dim)
    f.complain(a + ".attention.value_length", "differs from the key length, which this family does not know");
  c.norm_eps = f.get_number(a + ".attention.layer_norm_rms_epsilon", 1e-5);
  c.rope.theta = f.get_number(a + ".rope.freq_base", 10000);
  c.rotary_dim = f.get_int(a + ".rope.dimension_count", c.head_dim, 2, c.head_dim);
  const std::string type = f.get_string(a + ".rope.scaling.type", "none");
  c.rope.factor = f.get_number(a + ".rope.scaling.factor", 1);
  c.rope.original_context = double(f.get_int(a + ".rope.scaling.original_context_length", c.context, 1));
  if (type == "linear") {
    c.rope.scaling = RopeScaling::linear;
  } else if (type == "yarn") {
    c.rope.scaling = RopeScaling::yarn;
  } else if (type != "none") {
    f.complain(a + ".rope.scaling.type", "is " + quoted(type) + ", and this build knows none, linear and yarn");
  }
  if (const int64_t window = f.get_int(a + ".attention.sliding_window", 0); window > 0 && window < c.context)
    c.window.assign(c.layers, window);
}

// What GGUF leaves to the tensors: sizes and presence.
void read_gguf_tensors(const Gguf& file, JsonFields& f, DecoderConfig& c) {
  const View* embed = file.find("token_embd.weight");
  if (!embed || embed->rank != 2)
    return f.complain("token_embd.weight", "is missing among the tensors: this is no complete model");
  c.vocab = embed->dims[0];
  c.tied = !file.find("output.weight");
  c.qkv_bias = file.find("blk.0.attn_q.bias");
  c.o_bias = file.find("blk.0.attn_output.bias");
  c.mlp_bias = file.find("blk.0.ffn_up.bias");
  c.stored = embed->type;
}

}  // namespace

Result<DecoderConfig> read_decoder_config(const Source& source, DecoderConfig c) {
  JsonFields f(source.config, source.config_name);
  c.rope.scaling = RopeScaling::none;
  if (source.kind == Source::Kind::gguf) {
    const std::string a = source.config.get_string("general.architecture");
    read_gguf(f, a, c);
    read_gguf_tensors(*source.gguf, f, c);
    if (f.status().ok()) sane(f, c, (a + ".attention.head_count").c_str());
  } else {
    read_hf(f, source.config, source.config_name, source.kind == Source::Kind::shape || source.tensors.find("lm_head.weight"), c);
    const double part = f.get_number("partial_rotary_factor", 1);
    if (!(part > 0 && part <= 1)) f.complain("partial_rotary_factor", "is no number above 0 and at most 1");
    if (f.status().ok()) c.rotary_dim = std::max<int64_t>(2, int64_t(double(c.head_dim) * part) / 2 * 2);
    if (f.status().ok()) sane(f, c, "num_attention_heads");
  }
  if (!f.status().ok()) return Status(Code::unloadable, f.status().sentence());
  return c;
}

}  // namespace ridge
