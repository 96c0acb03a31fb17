#include "check/provenance.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <vector>

namespace ridge {

namespace fs = std::filesystem;

namespace {

fs::path find_tree(const std::string& from) {
  std::error_code e;  // a folder that is not there is an error to it, and none to us
  for (fs::path p = fs::absolute(from, e);; p = p.parent_path()) {
    if (fs::is_directory(p / "src/ops", e)) return p;
    if (p == p.parent_path()) return {};
  }
}

std::string contents(const fs::path& p) {
  std::ifstream f(p, std::ios::binary);
  return {std::istreambuf_iterator<char>(f), {}};
}

// The folder whose list of rows defines `op`: a folder holds an op and its backward, under the first one's name.
fs::path folder_of(const fs::path& tree, const std::string& op) {
  std::error_code e;
  for (const auto& folder : fs::directory_iterator(tree / "src/ops", e))
    for (const auto& file : fs::directory_iterator(folder.path(), e))
      if (file.path().filename().string().ends_with("_kernels.cc") &&
          contents(file.path()).find("OpInfo " + op + "_op()") != std::string::npos)
        return folder.path();
  return {};
}

std::string hash(const fs::path& tree, const std::vector<fs::path>& folders) {
  std::vector<fs::path> files;
  std::error_code e;
  for (const fs::path& folder : folders)
    for (const auto& file : fs::recursive_directory_iterator(folder, e))
      if (file.is_regular_file(e)) files.push_back(file.path());
  std::sort(files.begin(), files.end());
  uint64_t h = 14695981039346656037u;  // FNV-1a
  for (const fs::path& file : files)
    for (const std::string& part : {fs::relative(file, tree, e).string(), contents(file)})
      for (char c : part) h = (h ^ uint8_t(c)) * 1099511628211u;
  return fmt::format("{:016x}", h).substr(0, 12);
}

std::string output_of(const std::string& command) {
  FILE* p = popen(command.c_str(), "r");
  if (!p) return {};
  char line[256] = {};
  const bool any = fgets(line, sizeof line, p);
  const int rc = pclose(p);
  std::string s = any && rc == 0 ? line : "";
  while (!s.empty() && s.back() == '\n') s.pop_back();
  return s;
}

std::string commit_of(const fs::path& tree) {
  const std::string git = "git -C '" + tree.string() + "' ";
  if (tree.string().find('\'') != std::string::npos) return {};  // the shell must see one word
  const std::string commit = output_of(git + "rev-parse --short HEAD 2>/dev/null");
  return commit.empty() || output_of(git + "status --porcelain -uno 2>/dev/null").empty() ? commit : commit + "+";
}

}  // namespace

Provenance provenance(const std::string& op, const std::string& from) {
  Provenance p;
  char date[32];
  const time_t t = time(nullptr);
  tm utc{};
  gmtime_r(&t, &utc);
  strftime(date, sizeof date, "%Y-%m-%dT%H:%M:%SZ", &utc);
  p.date = date;
  const fs::path tree = find_tree(from);
  if (tree.empty()) return p;
  p.commit = commit_of(tree);
  if (op.empty()) p.sources = hash(tree, {tree / "src"});  // a whole model runs through all of it
  const fs::path folder = op.empty() ? fs::path() : folder_of(tree, op);
  if (!folder.empty()) p.sources = hash(tree, {folder, tree / "src/tile", tree / "src/device"});
  return p;
}

}  // namespace ridge
