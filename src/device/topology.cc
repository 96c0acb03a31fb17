// Small readers of /proc and /sys. Every file may be missing (containers, other kernels) and is then no limit.
#include "device/topology.h"

#include <fmt/format.h>
#include <sched.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <functional>
#include <set>
#include <sstream>
#include <vector>

namespace ridge {
namespace {

// The file's text without its last line break; empty where it cannot be read.
std::string read_text(const std::string& path) {
  std::ifstream file(path);
  std::stringstream text;
  if (file) text << file.rdbuf();
  std::string s = text.str();
  while (!s.empty() && s.back() == '\n') s.pop_back();
  return s;
}

// The CPUs of the affinity mask; empty where the kernel does not say.
std::vector<int> allowed_cpus() {
  std::vector<int> cpus;
  for (int most = 1024; most <= 1 << 18; most *= 4) {  // the kernel refuses a mask smaller than its own
    cpu_set_t* set = CPU_ALLOC(most);
    const size_t bytes = CPU_ALLOC_SIZE(most);
    if (!set) break;
    const bool read = sched_getaffinity(0, bytes, set) == 0;
    for (int cpu = 0; read && cpu < most; ++cpu)
      if (CPU_ISSET_S(cpu, bytes, set)) cpus.push_back(cpu);
    CPU_FREE(set);
    if (read) break;
  }
  return cpus;
}

// The value of "Name:  123 kB" in bytes, or 0.
int64_t kilobytes_after(const std::string& path, const char* name) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);)
    if (line.rfind(name, 0) == 0) return int64_t(strtoull(line.c_str() + strlen(name), nullptr, 10)) * 1024;
  return 0;
}

// Calls `visit` with every folder from the process's group in one hierarchy up to that hierarchy's root.
void for_each_group(const std::string& mount, std::string group, const std::function<void(const std::string&)>& visit) {
  while (true) {
    visit(mount + (group == "/" ? "" : group));
    const size_t slash = group.find_last_of('/');
    if (group == "/" || slash == std::string::npos) return;
    group.erase(slash);
  }
}

// Calls `visit(folder, is_v2)` for each group of this process that `controller` may have a file in. /proc/self/cgroup has lines
// "number:controllers:path"; v2's controllers are empty.
void for_each_cgroup(const std::string& root, const std::string& controller,
                     const std::function<void(const std::string&, bool)>& visit) {
  std::ifstream file(root + "/proc/self/cgroup");
  for (std::string line; std::getline(file, line);) {
    const size_t first = line.find(':'), second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::string controllers = "," + line.substr(first + 1, second - first - 1) + ",", group = line.substr(second + 1);
    const std::string mounts = root + "/sys/fs/cgroup";
    if (controllers == ",,") {
      for (const char* mount : {"", "/unified"})
        for_each_group(mounts + mount, group, [&](const std::string& folder) { visit(folder, true); });
    } else if (controllers.find("," + controller + ",") != std::string::npos) {
      for_each_group(mounts + "/" + controller, group, [&](const std::string& folder) { visit(folder, false); });
    }
  }
}

}  // namespace

int count_cpu_list(const std::string& list) {
  int count = 0;
  const char* at = list.c_str();
  while (*at >= '0' && *at <= '9') {
    char* end = nullptr;
    const long first = strtol(at, &end, 10);
    const long last = *end == '-' ? strtol(end + 1, &end, 10) : first;
    if (last < first || last - first >= 1 << 20) return 0;
    count += int(last - first + 1);
    at = *end == ',' ? end + 1 : end;
  }
  return count;
}

int logical_cpus() { return std::max<int>(1, int(allowed_cpus().size())); }

int physical_cores() {
  std::set<std::string> cores;
  for (int cpu : allowed_cpus()) {
    const std::string folder = fmt::format("/sys/devices/system/cpu/cpu{}/topology/", cpu);
    std::string siblings = read_text(folder + "core_cpus_list");
    if (siblings.empty()) siblings = read_text(folder + "thread_siblings_list");
    cores.insert(siblings.empty() ? fmt::format("{}", cpu) : siblings);
  }
  return std::max<int>(1, int(cores.size()));
}

int numa_nodes() { return std::max(1, count_cpu_list(read_text("/sys/devices/system/node/online"))); }

double cgroup_cpu_limit(const std::string& root) {
  double limit = 0;
  const auto take = [&](double quota, double period) {
    if (quota > 0 && period > 0) limit = limit > 0 ? std::min(limit, quota / period) : quota / period;
  };
  for_each_cgroup(root, "cpu", [&](const std::string& folder, bool v2) {
    if (v2) {
      const std::string text = read_text(folder + "/cpu.max");  // "200000 100000" or "max 100000"
      char* end = nullptr;
      const double quota = strtod(text.c_str(), &end);
      if (end != text.c_str()) take(quota, strtod(end, nullptr));
    } else {
      take(atof(read_text(folder + "/cpu.cfs_quota_us").c_str()),
           atof(read_text(folder + "/cpu.cfs_period_us").c_str()));  // -1: none
    }
  });
  return limit;
}

int default_threads() {
  int threads = physical_cores();  // of the affinity mask
  const double quota = cgroup_cpu_limit();
  if (quota > 0 && quota < threads) threads = int(std::ceil(quota));
  return std::max(1, threads);
}

int64_t total_memory() {
  int64_t bytes = kilobytes_after("/proc/meminfo", "MemTotal:");
  if (bytes == 0) bytes = int64_t(sysconf(_SC_PHYS_PAGES)) * page_bytes();
  for_each_cgroup("", "memory", [&](const std::string& folder, bool v2) {
    const std::string text = read_text(folder + (v2 ? "/memory.max" : "/memory.limit_in_bytes"));
    const int64_t limit = strtoll(text.c_str(), nullptr, 10);  // "max" reads as 0
    if (limit > 0) bytes = std::min(bytes, limit);
  });
  return bytes;
}

int64_t peak_rss_bytes() {
  // VmHWM is of this program alone; ru_maxrss also remembers what ran in the process before exec.
  if (const int64_t bytes = kilobytes_after("/proc/self/status", "VmHWM:")) return bytes;
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return int64_t(usage.ru_maxrss) * 1024;
}

int64_t page_bytes() { return sysconf(_SC_PAGESIZE); }

}  // namespace ridge
