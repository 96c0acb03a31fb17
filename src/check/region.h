// Memory that tells when it was touched where nobody should: filled with canaries, or ending exactly at a page that faults.
// For the drivers of check/ only.
#pragma once
#include <cstdint>
#include <string>
#include <utility>

namespace ridge {

enum class Fence : uint8_t { canaries, guard_after, guard_before };

class Region {
 public:
  Region() = default;
  // `bytes` usable at data(), `skew` bytes past a 64-byte boundary (canaries) or touching the guard page (guards, moved away
  // from it by at most `align` - 1 bytes so that data() stays aligned).
  Region(int64_t bytes, Fence fence, int64_t skew = 0, int64_t align = 1);
  Region(Region&& other) noexcept { swap(other); }
  Region& operator=(Region&& other) noexcept {
    swap(other);
    return *this;
  }
  ~Region();

  char* data() const { return data_; }
  int64_t bytes() const { return bytes_; }
  char* all() const { return all_; }  // everything that may be read and written, canaries included
  int64_t all_bytes() const { return all_bytes_; }

 private:
  void swap(Region& other) {
    std::swap(data_, other.data_);
    std::swap(bytes_, other.bytes_);
    std::swap(all_, other.all_);
    std::swap(all_bytes_, other.all_bytes_);
    std::swap(mapping_, other.mapping_);
    std::swap(mapped_, other.mapped_);
  }
  char *data_ = nullptr, *all_ = nullptr;
  int64_t bytes_ = 0, all_bytes_ = 0;
  void* mapping_ = nullptr;  // of the guards, else null
  int64_t mapped_ = 0;
};

// While it lives, a fault prints `what` (a sentence and a repro line) before the process ends as it would have.
class FaultReport {
 public:
  explicit FaultReport(const std::string& what);
  ~FaultReport();
  FaultReport(const FaultReport&) = delete;
};

}  // namespace ridge
