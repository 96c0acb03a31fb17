// What a weights file is once it is open, GGUF or safetensors, one file or many: names and the views they stand for. A model's
// loader takes this and does not care where it came from. The views point into the mapped files, which live as long as any copy.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "base/view.h"
#include "io/mapping.h"

namespace ridge {

struct NamedTensor {
  std::string name;
  View view;                                                   // row-major, dense, read-only: the pages are write-protected
};

class Tensors {
 public:
  Tensors() = default;
  // Refuses a name that stands twice and tensors that share bytes. `where` opens the sentence.
  static Result<Tensors> of(std::vector<NamedTensor> list, std::vector<std::shared_ptr<const Mapping>> files, const std::string& where);

  const View* find(std::string_view name) const;               // null when there is none
  const std::vector<NamedTensor>& all() const { return list_; }  // in the file's order
  const std::vector<std::shared_ptr<const Mapping>>& files() const { return files_; }
  int64_t bytes() const;                                       // of all tensors together

 private:
  std::vector<NamedTensor> list_;
  std::vector<uint32_t> by_name_;                              // places in list_, by name
  std::vector<std::shared_ptr<const Mapping>> files_;
};

// Bytes of a dense tensor, or nothing when they (or the number of elements) do not fit 62 bits or a row is no whole number of blocks.
std::optional<int64_t> checked_bytes(DType type, const int64_t* dims, int rank);

// A name out of a file, quoted for a sentence: control characters and broken UTF-8 replaced, cut after 80 bytes.
std::string quoted(std::string_view name);

}  // namespace ridge
