// Qwen3: the decoder with RMS norms on every query and key head before they are rotated.
#include "model/decoder.h"

namespace ridge {

namespace {
Result<Model> load(const Source& source, const LoadOptions& options) {
  Result<DecoderConfig> c = read_decoder_config(source, {.qk_norm = true});
  if (!c) return c.status();
  return make_decoder("qwen3", source, *c, options);
}
}  // namespace

Family qwen3_family() { return {"qwen3", "qwen3", "Qwen3ForCausalLM", load}; }

}  // namespace ridge
