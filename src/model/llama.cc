// Llama 2 and 3.x, SmolLM2 and what else calls itself llama: the decoder as it is.
// NOTE: GGUF files of this family carry query and key rows permuted so that a rotated pair is adjacent: rope is interleaved there,
// and half-split in HF checkpoints. Reading one as the other gives fluent nonsense.
#include "model/decoder.h"

namespace ridge {

namespace {
Result<Model> load(const Source& source, const LoadOptions& options) {
  Result<DecoderConfig> c = read_decoder_config(source);
  if (!c) return c.status();
  if (source.kind == Source::Kind::gguf) c->pairs = RopePairs::interleaved;
  return make_decoder("llama", source, *c, options);
}
}  // namespace

Family llama_family() { return {"llama", "llama", "LlamaForCausalLM", load}; }

}  // namespace ridge
