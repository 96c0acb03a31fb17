#include "base/arena.h"

#include <sys/mman.h>

namespace ridge {

char* Arena::map(int64_t bytes, Pages pages) {
  if (bytes == 0) return nullptr;
  void* p = mmap(nullptr, size_t(bytes), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  RIDGE_CHECK(p != MAP_FAILED, "the system refuses " + std::to_string(bytes) + " bytes of memory");
  if (pages == Pages::large) madvise(p, size_t(bytes), MADV_HUGEPAGE);  // a wish: small pages are slower and as right
  return static_cast<char*>(p);
}

void Arena::unmap(char* p, int64_t bytes) { munmap(p, size_t(bytes)); }

}  // namespace ridge
