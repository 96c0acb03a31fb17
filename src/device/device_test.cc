#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <thread>
#include <vector>

#include "device/isa.h"
#include "device/pool.h"
#include "device/topology.h"

namespace ridge {
namespace {

// ---- pool

TEST(Pool, RunsEveryItemOnceWithAWorkerNumberInRange) {
  for (int threads : {1, 2, 3, 7}) {
    const Pool pool(threads);
    EXPECT_EQ(pool.threads(), threads);
    for (int64_t n : {0, 1, 2, 3, 31, 32, 33, 1000, 4097}) {
      std::vector<std::atomic<int>> runs(static_cast<size_t>(n));
      std::atomic<int> out_of_range = 0;
      pool.parallel(n, [&](int64_t i, int worker) {
        runs[size_t(i)].fetch_add(1, std::memory_order_relaxed);
        if (worker < 0 || worker >= threads) ++out_of_range;
      });
      for (int64_t i = 0; i < n; ++i) ASSERT_EQ(runs[size_t(i)], 1) << "item " << i << " of " << n << ", threads " << threads;
      EXPECT_EQ(out_of_range, 0);
    }
  }
}

// Plain memory on purpose: TSan sees a race if fork or join did not order the writes.
TEST(Pool, WritesAreVisibleAfterTheJoinAndBeforeTheNextLoop) {
  const Pool pool(4);
  std::vector<int64_t> from(257, 0), to(257, 0);  // every item reads what another thread wrote in the loop before
  for (int round = 0; round < 3000; ++round) {
    pool.parallel(257, [&](int64_t i, int) { to[size_t(i)] = from[size_t((i * 101 + 1) % 257)] + 1; });
    std::swap(from, to);
  }
  for (int64_t v : from) ASSERT_EQ(v, 3000);
}

TEST(Pool, OneWorkerNumberIsNeverOnTwoThreadsAtOnce) {
  const Pool pool(4);
  std::vector<int64_t> sums(4, 0);  // unguarded scratch by worker, as ops use it
  for (int round = 0; round < 1000; ++round) pool.parallel(100, [&](int64_t i, int worker) { sums[size_t(worker)] += i; });
  EXPECT_EQ(sums[0] + sums[1] + sums[2] + sums[3], 1000 * 4950);
}

TEST(Pool, ALoopInsideALoopRunsInlineUnderTheSameWorker) {
  const Pool pool(3);
  std::atomic<int> strangers = 0;
  std::atomic<int64_t> items = 0;
  pool.parallel(50, [&](int64_t, int worker) {
    const auto self = std::this_thread::get_id();
    pool.parallel(20, [&](int64_t, int inner) {
      ++items;
      if (inner != worker || std::this_thread::get_id() != self) ++strangers;
    });
  });
  EXPECT_EQ(items, 1000);
  EXPECT_EQ(strangers, 0);
}

TEST(Pool, ShortAndSleepingWorkersStillJoin) {
  const Pool pool(3);
  std::atomic<int64_t> items = 0;
  for (int round = 0; round < 300; ++round) {
    if (round % 3 == 0) usleep(300);  // longer than the spin: the workers sleep
    pool.parallel(1 + round % 5, [&](int64_t, int) { ++items; });
  }
  EXPECT_EQ(items, 300 * 3);
}

TEST(Pool, TheCallerSleepsForALongChunkOfAWorker) {
  const Pool pool(2);
  for (int round = 0; round < 20; ++round) {
    std::atomic<int> done = 0;
    pool.parallel(2, [&](int64_t, int worker) {
      if (worker == 1) usleep(1000);
      ++done;
    });
    ASSERT_EQ(done, 2);
  }
}

TEST(Pool, CallersFromSeveralThreadsTakeTurns) {
  const Pool pool(3);
  int64_t scratch[3] = {};
  std::vector<std::thread> callers;
  for (int c = 0; c < 4; ++c)
    callers.emplace_back([&] {
      for (int round = 0; round < 200; ++round) pool.parallel(37, [&](int64_t, int worker) { ++scratch[worker]; });
    });
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(scratch[0] + scratch[1] + scratch[2], 4 * 200 * 37);
}

TEST(Pool, StartsAndStopsWhileWorkersSpinSleepOrStart) {
  for (int round = 0; round < 100; ++round) {
    const Pool pool(1 + round % 5);
    std::atomic<int> items = 0;
    if (round % 2) pool.parallel(10, [&](int64_t, int) { ++items; });
    if (round % 7 == 0) usleep(200);
    ASSERT_EQ(items, round % 2 ? 10 : 0);
  }
}

// A worker that has no core must not hold up a loop it took nothing of: with many more threads than cores every loop still ends, and
// an unstarted worker costs no time slice.
TEST(Pool, MoreThreadsThanCoresDoNotWaitForAScheduler) {
  const Pool pool(4 * logical_cpus() + 3);
  std::atomic<int64_t> items = 0;
  for (int round = 0; round < 500; ++round) pool.parallel(64, [&](int64_t, int) { ++items; });
  EXPECT_EQ(items, 500 * 64);
}

TEST(PoolDeathTest, AnExceptionEndsTheProcess) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  EXPECT_DEATH(
      {
        const Pool pool(2);
        pool.parallel(4, [](int64_t, int) { throw 1; });
      },
      "");
}

TEST(PoolDeathTest, AnotherPoolInsideALoopIsRefused) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  EXPECT_DEATH(
      {
        const Pool outer(2);
        const Pool inner(2);
        outer.parallel(4, [&](int64_t, int) { inner.parallel(4, [](int64_t, int) {}); });
      },
      "another pool");
}

// ---- isa

TEST(Isa, EmptyChoosesTheDetectedLevel) {
  EXPECT_EQ(*choose_isa(nullptr), detect_isa());
  EXPECT_EQ(*choose_isa(""), detect_isa());
}

TEST(Isa, EveryLevelUpToTheDetectedOneCanBeForced) {
  for (int i = 0; i <= int(Isa::amx); ++i) {
    const Result<Isa> chosen = choose_isa(isa_name(Isa(i)));
    ASSERT_EQ(chosen.ok(), Isa(i) <= detect_isa()) << isa_name(Isa(i));
    if (chosen) { EXPECT_EQ(*chosen, Isa(i)); }
    if (!chosen) { EXPECT_NE(chosen.status().sentence().find("more than this CPU can do"), std::string::npos); }
  }
}

TEST(Isa, UnknownNamesAreUsageErrorsThatListTheChoices) {
  for (const char* name : {"AVX2", "avx", "amx ", "avx10", "\xff\xfe"}) {
    const Result<Isa> chosen = choose_isa(name);
    ASSERT_FALSE(chosen) << name;
    EXPECT_EQ(chosen.status().code(), Code::usage);
    EXPECT_NE(chosen.status().sentence().find("portable"), std::string::npos);
  }
}

TEST(Isa, AgreesWithTheKernelsFlags) {
  std::ifstream file("/proc/cpuinfo");
  std::string flags;
  for (std::string line; flags.empty() && std::getline(file, line);)
    if (line.rfind("flags", 0) == 0) flags = line + " ";
  if (flags.empty()) GTEST_SKIP() << "no flags in /proc/cpuinfo";
  const auto has = [&](const char* flag) { return flags.find(" " + std::string(flag) + " ") != std::string::npos; };
  Isa expected = Isa::portable;
  if (has("avx2") && has("fma") && has("f16c")) expected = Isa::avx2;
  if (has("avx512f") && has("avx512bw") && has("avx512dq") && has("avx512vl")) expected = Isa::avx512;
  if (expected == Isa::avx512 && has("avx512_vnni")) expected = Isa::vnni;
  if (expected == Isa::vnni && has("amx_tile") && has("amx_bf16") && has("amx_int8") && has("avx512_bf16")) expected = Isa::amx;
  EXPECT_LE(detect_isa(), expected);
  if (expected != Isa::amx) { EXPECT_EQ(detect_isa(), expected); }  // the tile permission alone may be refused
  EXPECT_NE(describe_isa().find(isa_name(active_isa())), std::string::npos);
  EXPECT_NE(cpu_model(), "");
}

// ---- topology

class FakeRoot {
 public:
  FakeRoot() {
    char name[] = "/tmp/ridge_topology_XXXXXX";
    path_ = mkdtemp(name);
  }
  ~FakeRoot() { std::filesystem::remove_all(path_); }
  void put(const std::string& file, const std::string& text) const {
    const std::filesystem::path full = path_ + file;
    std::filesystem::create_directories(full.parent_path());
    std::ofstream(full) << text;
  }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

TEST(Topology, CgroupV2TakesTheTightestOfAllEnclosingGroups) {
  const FakeRoot root;
  root.put("/proc/self/cgroup", "0::/a/b\n");
  root.put("/sys/fs/cgroup/a/cpu.max", "150000 100000\n");
  root.put("/sys/fs/cgroup/a/b/cpu.max", "400000 100000\n");
  EXPECT_DOUBLE_EQ(cgroup_cpu_limit(root.path()), 1.5);
  root.put("/sys/fs/cgroup/a/b/cpu.max", "50000 100000\n");
  EXPECT_DOUBLE_EQ(cgroup_cpu_limit(root.path()), 0.5);
}

TEST(Topology, CgroupV1QuotaAndNoLimit) {
  const FakeRoot root;
  root.put("/proc/self/cgroup", "2:cpuacct,cpu:/job\n0::/\n");
  root.put("/sys/fs/cgroup/cpu/job/cpu.cfs_quota_us", "-1\n");
  root.put("/sys/fs/cgroup/cpu/job/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(cgroup_cpu_limit(root.path()), 0);
  root.put("/sys/fs/cgroup/cpu/job/cpu.cfs_quota_us", "250000\n");
  EXPECT_DOUBLE_EQ(cgroup_cpu_limit(root.path()), 2.5);
}

TEST(Topology, BrokenCgroupFilesAreNoLimit) {
  const FakeRoot root;
  EXPECT_EQ(cgroup_cpu_limit(root.path()), 0);
  for (const char* text : {"", "max 100000", "100000", "100000 0", "-5 100000", "x y z"}) {
    root.put("/proc/self/cgroup", "garbage\n0::/g\n::\n1::no_slash\n");
    root.put("/sys/fs/cgroup/g/cpu.max", text);
    EXPECT_EQ(cgroup_cpu_limit(root.path()), 0) << text;
  }
}

TEST(Topology, CpuListsAreCounted) {
  EXPECT_EQ(count_cpu_list("0"), 1);
  EXPECT_EQ(count_cpu_list("0-3,8,10-11"), 7);
  for (const char* text : {"", "x", "3-1", "0-99999999999999999999"}) EXPECT_EQ(count_cpu_list(text), 0) << text;
}

TEST(Topology, ThisMachineIsSane) {
  EXPECT_GE(logical_cpus(), 1);
  EXPECT_LE(physical_cores(), logical_cpus());
  EXPECT_GE(default_threads(), 1);
  EXPECT_LE(default_threads(), physical_cores());
  EXPECT_GE(numa_nodes(), 1);
  EXPECT_GE(total_memory(), int64_t(64) << 20);
  EXPECT_GE(page_bytes(), 4096);
}

TEST(Topology, PeakRssSeesTouchedMemory) {
  const int64_t before = peak_rss_bytes();
  std::vector<char> block(size_t(64) << 20);
  for (size_t i = 0; i < block.size(); i += 4096) block[i] = 1;
  asm volatile("" : : "r"(block.data()) : "memory");
  EXPECT_GT(peak_rss_bytes(), before / 2);
  EXPECT_GE(peak_rss_bytes(), int64_t(64) << 20);
}

}  // namespace
}  // namespace ridge
