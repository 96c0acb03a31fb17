// What the verbs share: reporting a Status, printing JSON, reading the text a user names.
#include <unistd.h>

#include <cstdio>

#include "app/interrupt.h"
#include "app/verbs.h"

namespace ridge {

int report(const Status& s) {
  if (!s.ok()) fprintf(stderr, "ridgeline: %s\n", s.sentence().c_str());
  return int(s.code());
}

void print_json(const Json& j) { puts(to_text(j, 2).c_str()); }

namespace {

Result<std::string> read_all(FILE* f, const std::string& name) {
  std::string text;
  char buffer[1 << 16];
  for (size_t n; (n = fread(buffer, 1, sizeof buffer, f)) > 0;) text.append(buffer, n);
  if (interrupted()) return interrupted("interrupted before the text was read.");
  if (ferror(f)) return failed(name + " could not be read to its end.");
  return text;
}

Result<std::string> read_file(const std::string& path) {
  FILE* f = fopen(path.c_str(), "rb");
  if (!f) return failed(path + " cannot be opened; check the path and its permissions.");
  Result<std::string> text = read_all(f, path);
  fclose(f);
  return text;
}

}  // namespace

Result<std::string> read_input(const TextInput& o) {
  if (o.has_text) return o.text;
  if (!o.file.empty()) return o.file == "-" ? read_all(stdin, "standard input") : read_file(o.file);
  if (o.any == "-" || (o.any.empty() && !isatty(STDIN_FILENO))) return read_all(stdin, "standard input");
  if (o.any.empty()) return usage_error("name a file, or give the text with -p.");
  return access(o.any.c_str(), F_OK) == 0 ? read_file(o.any) : Result<std::string>(o.any);
}

}  // namespace ridge
