// A file that appears whole or not at all: written beside its final place, flushed to the disk, then renamed onto it. What was
// there before stays until then; a writer that fails leaves the old file and nothing else.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "base/status.h"

namespace ridge {

class NewFile {
 public:
  static Result<NewFile> create(const std::string& path);  // the temporary file is "PATH.PID.part"
  NewFile(NewFile&& other) noexcept
      : path_(std::move(other.path_)), part_(std::move(other.part_)), fd_(std::exchange(other.fd_, -1)) {}
  NewFile& operator=(NewFile&&) = delete;
  ~NewFile();  // without commit() the temporary file goes away

  Status write(std::string_view bytes);
  Status commit();

 private:
  NewFile() = default;
  Status refuse(const char* doing) const;
  std::string path_, part_;
  int fd_ = -1;
};

}  // namespace ridge
