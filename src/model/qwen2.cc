// Qwen2 and Qwen2.5: the decoder with biases on queries, keys and values, which its config does not mention.
#include "model/decoder.h"

namespace ridge {

namespace {
Result<Model> load(const Source& source, const LoadOptions& options) {
  Result<DecoderConfig> c = read_decoder_config(source, {.qkv_bias = true});
  if (!c) return c.status();
  return make_decoder("qwen2", source, *c, options);
}
}  // namespace

Family qwen2_family() { return {"qwen2", "qwen2", "Qwen2ForCausalLM", load}; }

}  // namespace ridge
