// A whole file as read-only memory. Pages come in when touched and are shared between processes, so opening a model costs
// nothing and two engines hold its weights once. Not for files that someone truncates meanwhile: touching a page that is gone
// ends the process with SIGBUS; our own writers replace files by rename for that reason.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "base/status.h"

namespace ridge {

class Mapping {
 public:
  static Result<Mapping> open(const std::string& path);  // a regular, readable, non-empty file, else a sentence

  Mapping() = default;
  Mapping(Mapping&& other) noexcept { swap(other); }
  Mapping& operator=(Mapping&& other) noexcept {
    swap(other);
    return *this;
  }
  ~Mapping();

  const char* data() const { return data_; }
  int64_t size() const { return size_; }
  std::string_view bytes() const { return {data_, size_t(size_)}; }
  const std::string& path() const { return path_; }

 private:
  void swap(Mapping& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    std::swap(path_, other.path_);
  }
  const char* data_ = nullptr;
  int64_t size_ = 0;
  std::string path_;
};

// Gives back the resident pages that a range of a mapping touches; who needs one again reads the file again.
void forget_pages(const void* from, int64_t bytes);

}  // namespace ridge
