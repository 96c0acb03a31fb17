// Any bytes as a safetensors file: the reader accepts or refuses them, and what it accepts can be touched everywhere. Input that
// starts like a header is also tried behind its right length, or mutation would spend its time on the length field.
#include <cstddef>
#include <cstdint>

#include "base/check.h"
#include "io/safetensors.h"

namespace {

void try_file(std::string_view bytes) {
  using namespace ridge;
  const Result<Safetensors> file = parse_safetensors(bytes, "fuzz");
  if (!file) {
    RIDGE_CHECK(!file.status().sentence().empty(), "a refusal has a sentence");
    return;
  }
  for (const NamedTensor& t : file->tensors.all()) {
    const View& v = t.view;
    RIDGE_CHECK(file->find(t.name) == &v, "a tensor is found under its name");
    RIDGE_CHECK(reinterpret_cast<uintptr_t>(v.data) % uint64_t(size_of(v.type)) == 0, "a tensor is aligned for its dtype");
    if (v.count() == 0) continue;
    (void)v.get(0);
    (void)v.get(v.dims[0] - 1, v.dims[1] - 1, v.dims[2] - 1, v.dims[3] - 1);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  try_file(bytes);
  const size_t brace = bytes.rfind('}');  // header up to the last brace, data behind it
  if (brace == bytes.npos || !bytes.starts_with("{")) return 0;
  const uint64_t length = brace + 1;
  try_file(std::string(reinterpret_cast<const char*>(&length), sizeof length) + std::string(bytes));
  return 0;
}
