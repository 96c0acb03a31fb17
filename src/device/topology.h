// What this process may use of the machine: threads (affinity mask, cgroup quota, physical cores), memory, page size.
// Read from the kernel's text files; where one is missing the answer is the next more general one, never an error.
#pragma once
#include <cstdint>
#include <string>

namespace ridge {

// The least of the affinity mask, the cgroup CPU quota (rounded up) and the physical cores; at least 1. Two hyper-threads of a core
// share its FMA units, so they count once. `--threads` is the only way to ask for another number: OMP_NUM_THREADS is not read.
int default_threads();

int logical_cpus();    // in the affinity mask
int physical_cores();  // behind the CPUs of the affinity mask
int numa_nodes();
// CPUs' worth of time that cgroup v1 or v2 allows, over all enclosing groups; 0 where there is no limit. `root` stands before
// /proc and /sys, for tests.
double cgroup_cpu_limit(const std::string& root = "");

int64_t total_memory();    // bytes: the machine's, or the cgroup's limit where that is less
int64_t peak_rss_bytes();  // the highest resident size so far
int64_t page_bytes();

// "0-3,8" -> 5: how many numbers a kernel CPU list holds; 0 for text that is none.
int count_cpu_list(const std::string& list);

}  // namespace ridge
