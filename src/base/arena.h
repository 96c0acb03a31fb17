// Bump allocation with marks. Without memory it measures: the same function then yields its exact peak.
// Memory is 64-byte aligned and zero at first; pages that nobody touches cost nothing. A step allocates nothing but from here.
#pragma once
#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <memory>

#include "base/check.h"
#include "base/view.h"

namespace ridge {

class Arena {
 public:
  static constexpr int64_t kAlign = 64;

  // Large pages: for memory that is filled once and then streamed, such as weights.
  enum class Pages : uint8_t { small, large };
  explicit Arena(int64_t bytes = 0, Pages pages = Pages::small) : memory_(map(bytes, pages), Unmap{bytes}), size_(bytes) {}

  View alloc(std::initializer_list<int64_t> dims, DType type) {
    View v = view_of(nullptr, type, dims);
    v.data = raw(v.bytes());
    return v;
  }
  char* raw(int64_t bytes) {
    if (memory_ && used_ + bytes > size_)
      check_failed(__FILE__, __LINE__, "used + bytes <= size",
                   "an arena of " + std::to_string(size_) + " bytes has " + std::to_string(size_ - used_) + " left, " +
                       std::to_string(bytes) + " asked: its plan was for other arguments");
    char* p = base() + used_;
    used_ += (bytes + kAlign - 1) / kAlign * kAlign;
    peak_ = std::max(peak_, used_);
    return p;
  }

  int64_t mark() const { return used_; }
  void release(int64_t mark) { used_ = mark; }
  int64_t peak() const { return peak_; }  // exact, also without memory
  int64_t size() const { return size_; }
  bool measures() const { return !memory_; }

  bool owns(const View& v) const { return v.data >= base() && v.data < base() + (memory_ ? size_ : peak_); }
  // The same place in a twin arena whose elements are of type `type`; offsets are scaled by `scale` (a twin of f32 gradients
  // beside 16-bit values is twice as large).
  View mirrored_in(const Arena& twin, View v, DType type, int64_t scale) const {
    v.data = twin.base() + (v.data - base()) * scale;
    v.type = type;
    return v;
  }
  void clear(int64_t from, int64_t to) {
    if (memory_) memset(memory_.get() + from, 0, size_t(to - from));
  }
  char* base() const { return memory_ ? memory_.get() : reinterpret_cast<char*>(fake_); }

 private:
  struct Unmap {
    int64_t bytes;
    void operator()(char* p) const { unmap(p, bytes); }
  };
  static char* map(int64_t bytes, Pages pages);  // null for 0 bytes; memory that is refused is fatal here: plan first
  static void unmap(char* p, int64_t bytes);
  // Arenas that measure hand out addresses nobody may touch, each arena its own range, so that `owns` still tells them apart.
  static uint64_t next_fake() {
    static std::atomic<uint64_t> next{uint64_t(1) << 60};
    return next.fetch_add(uint64_t(1) << 46);
  }
  std::unique_ptr<char[], Unmap> memory_;
  int64_t size_, used_ = 0, peak_ = 0;
  uint64_t fake_ = memory_ ? 0 : next_fake();
};

}  // namespace ridge
