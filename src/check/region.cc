#include "check/region.h"

#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <new>

#include "base/check.h"

namespace ridge {

namespace {

constexpr int64_t kCanary = 256;  // bytes on each side
constexpr int64_t kAlign = 64;

int64_t round_up(int64_t n, int64_t to) { return (n + to - 1) / to * to; }

}  // namespace

Region::Region(int64_t bytes, Fence fence, int64_t skew, int64_t align) : bytes_(bytes) {
  if (fence == Fence::canaries) {
    all_bytes_ = round_up(bytes + skew + 2 * kCanary, kAlign);
    all_ = static_cast<char*>(::operator new[](size_t(all_bytes_), std::align_val_t(kAlign)));
    data_ = all_ + kCanary + skew;
    return;
  }
  const int64_t page = sysconf(_SC_PAGESIZE);
  all_bytes_ = round_up(std::max<int64_t>(bytes, 1) + align, page);
  mapped_ = all_bytes_ + 2 * page;
  mapping_ = mmap(nullptr, size_t(mapped_), PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  RIDGE_CHECK(mapping_ != MAP_FAILED, "no address space left for a guarded operand");
  all_ = static_cast<char*>(mapping_) + page;
  RIDGE_CHECK(mprotect(all_, size_t(all_bytes_), PROT_READ | PROT_WRITE) == 0, "no memory left for a guarded operand");
  data_ = fence == Fence::guard_before ? all_ : all_ + (all_bytes_ - bytes) / align * align;
}

Region::~Region() {
  if (mapping_)
    munmap(mapping_, size_t(mapped_));
  else if (all_)
    ::operator delete[](all_, std::align_val_t(kAlign));
}

namespace {

// Plain memory: a signal handler may read nothing else.
char fault_text[1024];
size_t fault_length = 0;
struct sigaction earlier_segv, earlier_bus;

void on_fault(int signal) {
  if (write(2, fault_text, fault_length) < 0) {}
  sigaction(signal, signal == SIGSEGV ? &earlier_segv : &earlier_bus, nullptr);  // the instruction faults again
}

}  // namespace

FaultReport::FaultReport(const std::string& what) {
  fault_length = std::min(what.size(), sizeof fault_text - 1);
  memcpy(fault_text, what.data(), fault_length);
  fault_text[fault_length++] = '\n';
  struct sigaction action {};
  action.sa_handler = on_fault;
  sigemptyset(&action.sa_mask);
  sigaction(SIGSEGV, &action, &earlier_segv);
  sigaction(SIGBUS, &action, &earlier_bus);
}

FaultReport::~FaultReport() {
  sigaction(SIGSEGV, &earlier_segv, nullptr);
  sigaction(SIGBUS, &earlier_bus, nullptr);
}

}  // namespace ridge
