// One function a row; a file that is missing (containers, virtual machines) is said as such and never guessed.
#include "meter/doctor.h"

#include <fmt/format.h>

#include <cstdlib>
#include <fstream>
#include <sstream>

#include "device/topology.h"

namespace ridge {
namespace {

std::string read_text(const std::string& path) {
  std::ifstream file(path);
  std::stringstream text;
  if (file) text << file.rdbuf();
  std::string s = text.str();
  while (!s.empty() && (s.back() == '\n' || s.back() == ' ')) s.pop_back();
  return s;
}

DoctorRow instructions(Isa isa) {
  DoctorRow row{"instructions", describe_isa(), ""};
  if (isa < detect_isa())
    row.advice = "RIDGE_ISA holds the rows below what the CPU can do: unset it for speed.";
  else if (isa == Isa::portable)
    row.advice = "Only plain code runs: expect a tenth of an AVX2 machine's speed.";
  return row;
}

DoctorRow tiles(const std::string& root) {
  const bool shown = read_text(root + "/proc/cpuinfo").find(" amx_tile") != std::string::npos;
  if (detect_isa() == Isa::amx) return {"AMX tiles", "permitted", ""};
  if (!shown) return {"AMX tiles", "not on this CPU, or hidden by its virtual machine", ""};
  return {"AMX tiles", "on the CPU, but refused by the system",
          "The kernel refuses the tile permission (a seccomp filter, or a kernel before 5.16): long prompts run several times "
          "slower."};
}

DoctorRow thread_count(int threads) {
  DoctorRow row{"threads", fmt::format("{} of {} physical cores, {} CPUs", threads, physical_cores(), logical_cpus()), ""};
  if (threads > physical_cores())
    row.advice = fmt::format("More threads than cores slow each other down: use --threads {}.", default_threads());
  else if (threads < default_threads())
    row.advice = fmt::format("{} threads would use the whole machine.", default_threads());
  return row;
}

DoctorRow hyperthreads(const std::string& root) {
  const std::string active = read_text(root + "/sys/devices/system/cpu/smt/active");
  if (active.empty()) return {"hyper-threads", "not shown", ""};
  if (active == "0") return {"hyper-threads", "off", ""};
  return {"hyper-threads", "on",
          "Two CPUs of one core share its units: another program on the sibling costs up to half the speed."};
}

DoctorRow quota(const std::string& root, int threads) {
  const double limit = cgroup_cpu_limit(root);
  if (limit <= 0) return {"CPU quota", "none", ""};
  DoctorRow row{"CPU quota", fmt::format("{:.2f} CPUs", limit), ""};
  if (limit < threads)
    row.advice = fmt::format("{} threads are stopped for part of every period: use --threads {}, or raise the container's limit.",
                             threads, std::max(1, int(limit)));
  return row;
}

DoctorRow load(const std::string& root, int threads) {
  const std::string text = read_text(root + "/proc/loadavg");
  if (text.empty()) return {"other load", "not shown", ""};
  const double average = atof(text.c_str());
  DoctorRow row{"other load", fmt::format("{:.2f} runnable over the last minute, {} CPUs", average, logical_cpus()), ""};
  if (average + threads > logical_cpus() + 0.5)
    row.advice = "Other programs want the same cores: numbers taken now are low and jump.";
  return row;
}

DoctorRow governor(const std::string& root) {
  const std::string name = read_text(root + "/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor");
  if (name.empty()) return {"frequency governor", "not shown (virtual machine)", ""};
  if (name == "performance") return {"frequency governor", name, ""};
  return {"frequency governor", name,
          "The clock follows the load and short runs see a slow one: `cpupower frequency-set -g performance`."};
}

DoctorRow large_pages(const std::string& root) {
  const std::string text = read_text(root + "/sys/kernel/mm/transparent_hugepage/enabled");  // "always [madvise] never"
  const size_t open = text.find('['), close = text.find(']');
  if (open == std::string::npos || close == std::string::npos || close < open) return {"large pages", "not shown", ""};
  const std::string mode = text.substr(open + 1, close - open - 1);
  if (mode != "never") return {"large pages", mode, ""};
  return {"large pages", mode,
          "Weights in 4 KiB pages are read up to twice as slowly: echo madvise > /sys/kernel/mm/transparent_hugepage/enabled."};
}

DoctorRow nodes(const std::string& root) {
  const int count = count_cpu_list(read_text(root + "/sys/devices/system/node/online"));
  if (count <= 1) return {"NUMA nodes", "1", ""};
  return {
      "NUMA nodes", fmt::format("{}", count),
      "Threads that read another node's memory get a fraction of its rate: run one process a node under `numactl -N 0 -m 0`."};
}

DoctorRow memory(const std::string& root) {
  DoctorRow row{"memory", fmt::format("{:.1f} GB for this process", double(total_memory()) / 1e9), ""};
  std::ifstream file(root + "/proc/swaps");
  std::string line;
  int64_t used = 0;  // KiB
  std::getline(file, line);
  while (std::getline(file, line)) {
    std::istringstream fields(line);
    std::string name, type;
    int64_t size = 0, in_use = 0;
    if (fields >> name >> type >> size >> in_use) used += in_use;
  }
  if (used > 0) {
    row.value += fmt::format(", {:.1f} GB swapped out", double(used) * 1024 / 1e9);
    row.advice = "Weights that were swapped out come back at disk speed: free memory, or `swapoff -a`.";
  }
  return row;
}

}  // namespace

std::vector<DoctorRow> doctor_rows(Isa isa, int threads, const std::string& root) {
  return {instructions(isa),   tiles(root),    thread_count(threads), hyperthreads(root), quota(root, threads),
          load(root, threads), governor(root), large_pages(root),     nodes(root),        memory(root)};
}

}  // namespace ridge
