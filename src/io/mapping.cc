#include "io/mapping.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace ridge {

namespace {

Status cannot_open(const std::string& path, int error) {
  if (error == ENOENT || error == ENOTDIR) return unloadable(path + ": there is no such file; check the path");
  if (error == EACCES || error == EPERM)
    return unloadable(path + ": the file cannot be read; give yourself read permission on it");
  return unloadable(path + ": the file cannot be opened (" + strerror(error) + ")");
}

struct Descriptor {
  int fd;
  ~Descriptor() {
    if (fd >= 0) ::close(fd);
  }
};

}  // namespace

Result<Mapping> Mapping::open(const std::string& path) {
  // NOTE: without O_NONBLOCK the open of a named pipe waits for a writer that may never come.
  const Descriptor file{::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)};
  if (file.fd < 0) return cannot_open(path, errno);
  struct stat info;
  if (fstat(file.fd, &info) != 0) return cannot_open(path, errno);
  if (S_ISDIR(info.st_mode)) return unloadable(path + ": this is a folder; name a file");
  if (!S_ISREG(info.st_mode)) return unloadable(path + ": this is not a regular file; name a file on disk");
  if (info.st_size == 0) return unloadable(path + ": the file is empty; fetch it again");
  void* memory = mmap(nullptr, size_t(info.st_size), PROT_READ, MAP_PRIVATE, file.fd, 0);
  if (memory == MAP_FAILED)
    return unloadable(path + ": the file cannot be mapped into memory (" + strerror(errno) + "); copy it to a local disk");
  Mapping mapping;
  mapping.data_ = static_cast<const char*>(memory);
  mapping.size_ = info.st_size;
  mapping.path_ = path;
  return mapping;
}

Mapping::~Mapping() {
  if (data_) munmap(const_cast<char*>(data_), size_t(size_));
}

void forget_pages(const void* from, int64_t bytes) {
  const uintptr_t page = uintptr_t(sysconf(_SC_PAGESIZE)), at = uintptr_t(from);
  const uintptr_t first = at / page * page, last = (at + uintptr_t(bytes) + page - 1) / page * page;
  madvise(reinterpret_cast<void*>(first), last - first, MADV_DONTNEED);
}

}  // namespace ridge
