// Any bytes as a GGUF file: the reader accepts or refuses them, and what it accepts can be touched everywhere. A vocabulary that its
// metadata make up keeps the promises of every tokenizer.
#include <cstddef>
#include <cstdint>

#include "base/check.h"
#include "io/gguf.h"
#include "io/tokenizer_load.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace ridge;
  const Result<Gguf> gguf = parse_gguf({reinterpret_cast<const char*>(data), size}, "fuzz");
  if (!gguf) {
    RIDGE_CHECK(!gguf.status().sentence().empty(), "a refusal has a sentence");
    return 0;
  }
  for (const NamedTensor& t : gguf->tensors.all()) {
    const View& v = t.view;
    RIDGE_CHECK(gguf->find(t.name) == &v, "a tensor is found under its name");
    (void)v.get(0);
    (void)v.get(v.dims[0] - 1, v.dims[1] - 1, v.dims[2] - 1, v.dims[3] - 1);
  }
  for (const GgufMetadata::Entry& e : gguf->metadata.entries())
    RIDGE_CHECK(gguf->metadata.find(e.key) == &e.value, "an entry is found under its key");
  const std::string text = to_text(gguf->metadata.to_json());
  // Lenient: two keys may differ in broken UTF-8 only, which the text replaces.
  RIDGE_CHECK(parse_json(text, "fuzz", kModelFileJson).ok(), "metadata as text is JSON");
  const Result<Tokenizer> tokenizer = tokenizer_from_gguf(*gguf);
  if (!tokenizer) {
    RIDGE_CHECK(!tokenizer.status().sentence().empty(), "a refusal has a sentence");
    return 0;
  }
  for (int32_t id : tokenizer->encode("ab <s> A1\n", {.add_bos = true, .add_eos = true, .parse_special = true}))
    RIDGE_CHECK(id >= 0 && id < tokenizer->size(), "ids are inside the vocabulary");
  return 0;
}
