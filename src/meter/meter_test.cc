#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "device/topology.h"
#include "io/json.h"
#include "meter/bound.h"
#include "meter/doctor.h"
#include "meter/measure.h"

namespace ridge {
namespace {

namespace fs = std::filesystem;

// A folder of its own that is the cache for as long as the object lives.
class TempCache {
 public:
  TempCache() {
    char name[] = "/tmp/ridge_meter_XXXXXX";
    path_ = mkdtemp(name);
    if (const char* before = getenv("XDG_CACHE_HOME")) before_ = before;
    setenv("XDG_CACHE_HOME", path_.c_str(), 1);
  }
  ~TempCache() {
    before_.empty() ? unsetenv("XDG_CACHE_HOME") : setenv("XDG_CACHE_HOME", before_.c_str(), 1);
    fs::permissions(path_, fs::perms::owner_all);
    fs::remove_all(path_);
  }
  void put(const std::string& file, const std::string& text) const {
    const fs::path full = path_ + "/" + file;
    fs::create_directories(full.parent_path());
    std::ofstream(full) << text;
  }
  const std::string& path() const { return path_; }

 private:
  std::string path_, before_;
};

Result<Machine> parse(const char* text) {
  const Result<Json> json = parse_json(text, "m.json", kHeaderJson);
  EXPECT_TRUE(json) << text;
  return machine_from_json(json ? *json : Json(), "m.json");
}

// ---- machine files

TEST(Machine, TheH200FileIsReadAndBoundsADecodeStepByMemory) {
  const Result<Machine> m = read_machine(RIDGE_SOURCE_DIR "/machines/h200.json");
  ASSERT_TRUE(m) << m.status().sentence();
  EXPECT_EQ(m->ceiling(Unit::matrix_bf16), 795e12);
  EXPECT_EQ(m->ceiling(Unit::vector_i8), 0);
  EXPECT_EQ(m->launch_s, 0.55e-6);
  EXPECT_EQ(m->read_rate(1e9), 4.6e12);
  const Bound b = bound({.matmul_flops = 2e9, .bytes_read = 4.6e9}, *m);
  EXPECT_STREQ(b.by, "memory");
  EXPECT_NEAR(b.seconds, 1e-3 + 0.55e-6, 1e-9);
}

TEST(Machine, WrittenAndReadBackIsTheSame) {
  const TempCache cache;
  Machine m = nominal_machine("Some \"CPU\" \xc3\xa9", "amx", 7);
  m.reads = {{1e6, 3e11}, {1e9, 1.0 / 3 * 1e10}};
  m.measured = true;
  const std::string path = cache.path() + "/a/b/m.json";
  ASSERT_TRUE(write_machine(m, path));
  const Result<Machine> back = read_machine(path);
  ASSERT_TRUE(back) << back.status().sentence();
  EXPECT_EQ(*back, m);
}

TEST(Machine, BadFilesAreRefusedWithTheKeyAndTheFile) {
  const struct {
    const char* text;
    const char* says;
  } cases[] = {
      {"[1]", "must be an object"},
      {"{}", "name"},
      {R"({"name": 3})", "name"},
      {R"({"name": "x", "fma_f32": 1e9})", "dram_read"},
      {R"({"name": "x", "dram_read": 1e9})", "fma_f32"},
      {R"({"name": "x", "fma_f32": 1e9, "dram_read": -1})", "dram_read"},
      {R"({"name": "x", "fma_f32": "fast", "dram_read": 1})", "fma_f32"},
      {R"({"name": "x", "fma_f32": 1e9, "dram_read": 1e9, "dram_raed": 1})", "dram_raed"},
      {R"({"name": "x", "fma_f32": 1e9, "dram_read": 1e9, "threads": -3})", "threads"},
      {R"({"name": "x", "fma_f32": 1e9, "dram_read": 1e9, "reads": [[1, 2, 3]]})", "reads"},
      {R"({"name": "x", "fma_f32": 1e9, "dram_read": 1e9, "reads": [[2, 5], [1, 5]]})", "reads"},
      {R"({"name": "x", "fma_f32": 1e9, "dram_read": 1e9, "reads": [[0, 5]]})", "reads"},
      {R"({"name": "x", "fma_f32": 1e9, "dram_read": 1e9, "reads": [7]})", "reads"},
  };
  for (const auto& c : cases) {
    const Result<Machine> m = parse(c.text);
    ASSERT_FALSE(m) << c.text;
    EXPECT_NE(m.status().sentence().find("m.json"), std::string::npos) << m.status().sentence();
    EXPECT_NE(m.status().sentence().find(c.says), std::string::npos) << m.status().sentence();
  }
  EXPECT_FALSE(read_machine("/no/such/machine.json"));
}

TEST(Machine, ReadRateFollowsTheCurveBetweenItsPointsAndStaysAtItsEnds) {
  Machine m;
  m.dram_read = 1;
  EXPECT_EQ(m.read_rate(1e12), 1);
  m.reads = {{1e6, 100}, {1e8, 10}, {1e9, 8}};
  EXPECT_EQ(m.read_rate(1), 100);
  EXPECT_NEAR(m.read_rate(1e7), std::sqrt(1000.0), 1e-9);
  EXPECT_NEAR(m.read_rate(1e8), 10, 1e-9);
  EXPECT_EQ(m.read_rate(1e12), 8);
}

TEST(Machine, NominalValuesGrowWithTheLevel) {
  double last = 0;
  for (int level = 0; level <= int(Isa::amx); ++level) {
    const Machine m = nominal_machine("x", isa_name(Isa(level)), 2);
    EXPECT_FALSE(m.measured);
    const double best = *std::max_element(std::begin(m.rate), std::end(m.rate));
    EXPECT_GT(best, last);
    last = best;
  }
}

// ---- measuring

TEST(Measure, EveryLevelMeasuresItsOwnUnits) {
  const Pool pool(default_threads());
  for (int level = 0; level <= int(detect_isa()); ++level) {
    const Machine m = measure_machine(pool, Isa(level), 0.1);
    EXPECT_TRUE(m.measured);
    EXPECT_GT(m.ceiling(Unit::fma_f32), 1e8) << m.name;
    EXPECT_EQ(m.ceiling(Unit::vector_i8) > 0, level >= int(Isa::avx2)) << m.name;
    EXPECT_EQ(m.ceiling(Unit::matrix_bf16) > 0, level == int(Isa::amx)) << m.name;
    EXPECT_EQ(m.ceiling(Unit::matrix_i8) > 0, level == int(Isa::amx)) << m.name;
    if (level == int(Isa::amx)) { EXPECT_GT(m.ceiling(Unit::matrix_bf16), m.ceiling(Unit::fma_f32)); }
    EXPECT_GT(m.dram_read, 1e8);
    EXPECT_GT(m.dram_copy, 1e8);
    EXPECT_EQ(m.l2_read, m.reads.front().rate);
    EXPECT_EQ(m.launch_s > 0, pool.threads() > 1);
    EXPECT_LT(m.launch_s, 1e-3);
  }
}

TEST(Measure, IsKeptForThisMachineAndLoadedInstantly) {
  const TempCache cache;
  const Pool pool(1);
  EXPECT_FALSE(load_machine(Isa::portable, 1).measured);
  const Machine first = load_or_measure(pool, Isa::portable, 0.1);
  EXPECT_TRUE(first.measured);
  EXPECT_EQ(load_machine(Isa::portable, 1), first);
  EXPECT_EQ(load_or_measure(pool, Isa::portable, 0.1), first);  // two measurements are never equal to the last bit
  EXPECT_FALSE(load_machine(Isa::portable, 2).measured);        // another thread count is another machine
}

TEST(Measure, ABrokenFileIsReplacedAndAnUnwritableCacheIsNoError) {
  const TempCache cache;
  const Pool pool(1);
  const std::string path = machine_path(Isa::portable, 1);
  cache.put(path.substr(cache.path().size() + 1), "{\"name\": ");
  EXPECT_FALSE(load_machine(Isa::portable, 1).measured);
  EXPECT_TRUE(load_or_measure(pool, Isa::portable, 0.1).measured);
  EXPECT_TRUE(load_machine(Isa::portable, 1).measured);
  setenv("XDG_CACHE_HOME", "/dev/null/cache", 1);
  EXPECT_TRUE(load_or_measure(pool, Isa::portable, 0.1).measured);
  const Status status = write_machine(nominal_machine("x", "avx2", 1), machine_path(Isa::avx2, 1));
  ASSERT_FALSE(status);
  EXPECT_NE(status.sentence().find("/dev/null"), std::string::npos) << status.sentence();
}

TEST(Measure, ARelativeCacheVariableIsIgnored) {
  const TempCache cache;
  setenv("XDG_CACHE_HOME", "relative", 1);
  EXPECT_EQ(cache_folder().find("relative"), std::string::npos);
}

// ---- doctor

const DoctorRow& row(const std::vector<DoctorRow>& rows, const std::string& what) {
  for (const DoctorRow& r : rows)
    if (r.what == what) return r;
  static const DoctorRow none;
  ADD_FAILURE() << "no row " << what;
  return none;
}

TEST(Doctor, AdvisesOnWhatIsWrong) {
  const TempCache root;
  root.put("proc/self/cgroup", "0::/g\n");
  root.put("sys/fs/cgroup/g/cpu.max", "150000 100000\n");
  root.put("proc/loadavg", "97.50 9 9 1/2 3\n");
  root.put("sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", "powersave\n");
  root.put("sys/kernel/mm/transparent_hugepage/enabled", "always madvise [never]\n");
  root.put("sys/devices/system/node/online", "0-1\n");
  root.put("sys/devices/system/cpu/smt/active", "1\n");
  root.put("proc/swaps", "Filename Type Size Used Priority\n/swapfile file 2000000 1000000 -2\n");
  const std::vector<DoctorRow> rows = doctor_rows(Isa::portable, 1000, root.path());
  for (const char* what : {"instructions", "threads", "hyper-threads", "CPU quota", "other load", "frequency governor",
                           "large pages", "NUMA nodes", "memory"})
    EXPECT_NE(row(rows, what).advice, "") << what;
  EXPECT_EQ(row(rows, "CPU quota").value, "1.50 CPUs");
  EXPECT_EQ(row(rows, "large pages").value, "never");
  EXPECT_NE(row(rows, "memory").value.find("1.0 GB swapped"), std::string::npos);
}

TEST(Doctor, HasNothingToSayWhereAllIsWell) {
  const TempCache root;
  root.put("proc/loadavg", "0.00 0 0 1/2 3\n");
  root.put("sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", "performance\n");
  root.put("sys/kernel/mm/transparent_hugepage/enabled", "[always] madvise never\n");
  root.put("sys/devices/system/node/online", "0\n");
  root.put("sys/devices/system/cpu/smt/active", "0\n");
  root.put("proc/swaps", "Filename Type Size Used Priority\n");
  for (const DoctorRow& r : doctor_rows(detect_isa(), default_threads(), root.path())) {
    if (r.what == "instructions" || r.what == "AMX tiles") continue;  // this machine's own
    EXPECT_EQ(r.advice, "") << r.what << ": " << r.value;
  }
}

TEST(Doctor, MissingFilesAreSaid) {
  const TempCache root;
  const std::vector<DoctorRow> rows = doctor_rows(detect_isa(), 1, root.path());
  EXPECT_EQ(row(rows, "other load").value, "not shown");
  EXPECT_EQ(row(rows, "large pages").value, "not shown");
  for (const DoctorRow& r : rows) EXPECT_NE(r.value, "") << r.what;
}

}  // namespace
}  // namespace ridge
