// What the verbs share: reporting a Status, printing JSON, reading the text a user names.
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "app/interrupt.h"
#include "app/verbs.h"

namespace ridge {

int report(const Status& s) {
  if (!s.ok()) fprintf(stderr, "ridgeline: %s\n", s.sentence().c_str());
  return int(s.code());
}

void print_json(const Json& j) { puts(to_text(j, 2).c_str()); }

namespace {

Result<std::string> read_all(int fd, const std::string& name) {
  std::string text;
  char buffer[1 << 16];
  ssize_t n;
  while ((n = read_or_interrupt(fd, buffer, sizeof buffer)) > 0) text.append(buffer, size_t(n));
  if (interrupted()) return interrupted("interrupted before the text was read.");
  if (n < 0) return failed(fmt::format("{} could not be read: {}.", name, strerror(errno)));
  return text;
}

Result<std::string> read_file(const std::string& path) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return failed(fmt::format("{} cannot be opened: {}; check the path and its permissions.", path, strerror(errno)));
  Result<std::string> text = read_all(fd, path);
  close(fd);
  return text;
}

}  // namespace

Result<std::string> read_input(const TextInput& o) {
  if (o.has_text) return o.text;
  if (!o.file.empty()) return o.file == "-" ? read_all(STDIN_FILENO, "standard input") : read_file(o.file);
  if (!o.has_any && isatty(STDIN_FILENO)) return usage_error("name a file, or give the text with -p.");
  if (!o.has_any || o.any == "-") return read_all(STDIN_FILENO, "standard input");
  return access(o.any.c_str(), F_OK) == 0 ? read_file(o.any) : Result<std::string>(o.any);
}

}  // namespace ridge
