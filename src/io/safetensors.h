// safetensors, the container of Hugging Face: a length, a JSON header that names each tensor's dtype, shape and byte range, then
// the data. One file, or shards beside an index. Mapped like GGUF, and as hostile: every length and range is checked before use.
// Data is used in place; tensors that an old writer left unaligned for their dtype are copied once.
#pragma once
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/status.h"
#include "io/json.h"
#include "io/tensors.h"

namespace ridge {

struct Safetensors {
  Json metadata = Json::object();  // "__metadata__" of the file (of the first shard), strings by name
  Tensors tensors;

  const View* find(std::string_view name) const { return tensors.find(name); }
};

// A .safetensors file, a .safetensors.index.json, or a folder with model.safetensors or model.safetensors.index.json.
Result<Safetensors> open_safetensors(const std::string& path);
Result<Safetensors> parse_safetensors(std::string_view bytes,
                                      const std::string& name);  // one file in memory that outlives the result

// Writes one file. Tensors are put in the order of their element sizes, largest first, so that all are aligned without gaps.
class SafetensorsWriter {
 public:
  void metadata(std::string_view key, std::string_view value);
  void tensor(std::string name, const View& view);  // dense, of a plain type; its memory is read by bytes() and write()
  std::string bytes() const;                        // the whole file
  Status write(const std::string& path) const;      // temporary file, flush, rename

 private:
  std::string header(const std::vector<const NamedTensor*>& order) const;
  std::vector<const NamedTensor*> by_size() const;
  Json metadata_;
  std::vector<NamedTensor> tensors_;
};

}  // namespace ridge
