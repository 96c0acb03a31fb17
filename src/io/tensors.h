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

namespace ridge {

struct NamedTensor {
  std::string name;
  View view;  // row-major, dense, read-only: the pages are write-protected
};

class Tensors {
 public:
  Tensors() = default;
  // Refuses a name that stands twice and tensors that share bytes. `where` opens the sentence; `owners` keep the memory.
  static Result<Tensors> of(std::vector<NamedTensor> list, std::vector<std::shared_ptr<const void>> owners,
                            const std::string& where);

  const View* find(std::string_view name) const;                 // null when there is none
  const std::vector<NamedTensor>& all() const { return list_; }  // in the file's order
  int64_t bytes() const;                                         // of all tensors together

 private:
  std::vector<NamedTensor> list_;
  std::vector<uint32_t> by_name_;  // places in list_, by name
  std::vector<std::shared_ptr<const void>> owners_;
};

// A dense view, its data still unset; nothing when its bytes or its number of elements do not fit 62 bits, or when a row is no
// whole number of blocks. rank is 1 to 4.
std::optional<View> checked_view(DType type, const int64_t* dims, int rank);

// What people hand over instead of a weights file, by its first bytes: "this is a web page; ...". Empty when it is none of these.
std::string foreign_file(std::string_view bytes);

// A name out of a file, quoted for a sentence: control characters and broken UTF-8 replaced, cut after 80 bytes.
std::string quoted(std::string_view name);

}  // namespace ridge
