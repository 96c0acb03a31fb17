#include "io/new_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>

namespace ridge {

Status NewFile::refuse(const char* doing) const {
  const int error = errno;
  const std::string start = path_ + ": the file cannot be " + doing + ": ";
  if (error == ENOSPC || error == EDQUOT) return failed(start + "the disk is full; free some space");
  if (error == ENOENT || error == ENOTDIR) return failed(start + "its folder does not exist; create it first");
  if (error == EACCES || error == EPERM || error == EROFS)
    return failed(start + "its folder is not writable; choose another one");
  return failed(start + strerror(error));
}

Result<NewFile> NewFile::create(const std::string& path) {
  NewFile file;
  file.path_ = path;
  file.part_ = path + "." + std::to_string(getpid()) + ".part";
  file.fd_ = ::open(file.part_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0644);
  if (file.fd_ < 0) return file.refuse("created");
  return file;
}

Status NewFile::write(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t n = ::write(fd_, bytes.data(), std::min(bytes.size(), size_t(1) << 30));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return refuse("written");
    bytes.remove_prefix(size_t(n));
  }
  return {};
}

Status NewFile::commit() {
  if (fsync(fd_) != 0) return refuse("flushed to the disk");
  if (::rename(part_.c_str(), path_.c_str()) != 0) return refuse("put in its place");
  ::close(std::exchange(fd_, -1));
  // The rename itself must survive a power cut too; a file system that cannot flush a folder has no better offer.
  const size_t slash = path_.rfind('/');
  const int folder = ::open(slash == path_.npos ? "." : path_.substr(0, slash + 1).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder >= 0) {
    (void)fsync(folder);
    ::close(folder);
  }
  return {};
}

NewFile::~NewFile() {
  if (fd_ < 0) return;
  ::close(fd_);
  ::unlink(part_.c_str());
}

}  // namespace ridge
