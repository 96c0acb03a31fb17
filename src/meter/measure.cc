// Arithmetic: each thread's best run, summed. Memory: the best of all threads' runs together, because they share it.
#include "meter/measure.h"

#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <vector>

#include "base/log.h"
#include "device/topology.h"
#include "meter/probe_cpu.h"

namespace ridge {

namespace portable {
extern const ProbeCpu probe_cpu;
}
namespace avx2 {
extern const ProbeCpu probe_cpu;
}
namespace avx512 {
extern const ProbeCpu probe_cpu;
}
namespace vnni {
extern const ProbeCpu probe_cpu;
}
namespace amx {
extern const ProbeCpu probe_cpu;
}

namespace {

constexpr double kUnitSeconds = 0.08, kMemorySeconds = 0.15;  // of repeating short runs, for each number
constexpr int64_t kPage = 4096, kMiB = 1 << 20;
// NOTE: beyond any cache share: 300 MB of last-level cache are shown to a 2-core machine, and a 200 MB buffer still read 1.7 times too fast.
constexpr int64_t kLargest = 512 * kMiB;

const ProbeCpu& probe_of(Isa isa) {
  const ProbeCpu* const levels[] = {&portable::probe_cpu, &avx2::probe_cpu, &avx512::probe_cpu, &vnni::probe_cpu,
                                    &amx::probe_cpu};
  return *levels[int(isa)];
}

double seconds() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

double unit_rate(const Pool& pool, double (*probe)(int64_t rounds), double effort) {
  if (!probe) return 0;
  std::vector<double> best(size_t(pool.threads()), 0);
  pool.parallel(pool.threads(), [&](int64_t i, int) {
    int64_t rounds = 1000;
    for (const double end = seconds() + effort * kUnitSeconds; seconds() < end;) {
      const double start = seconds(), done = probe(rounds), taken = seconds() - start;
      if (taken < 2e-4)
        rounds *= 2;  // long beside the clock, short beside a time slice
      else
        best[size_t(i)] = std::max(best[size_t(i)], done / taken);
    }
  });
  double sum = 0;
  for (double b : best) sum += b;
  return sum;
}

// Large pages where the system gives them: with 4 KiB pages reads from the last-level cache were half as fast.
class Buffer {
 public:
  explicit Buffer(int64_t bytes) : bytes_(bytes) {
    void* p = mmap(nullptr, size_t(bytes), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED) return;
    data_ = static_cast<char*>(p);
    madvise(data_, size_t(bytes), MADV_HUGEPAGE);
  }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  ~Buffer() {
    if (data_) munmap(data_, size_t(bytes_));
  }
  char* data() const { return data_; }

 private:
  char* data_ = nullptr;
  int64_t bytes_ = 0;
};

// The best rate of run(from, bytes, part): every thread works on its own share of [0, total) in slices of a few milliseconds, coming round.
template <class Run>
double memory_rate(const Pool& pool, int64_t total, double bytes_moved_per_byte, double effort, const Run& run) {
  const int threads = pool.threads();
  const int64_t share = total / threads / kPage * kPage,
                slice = std::min(share, std::max(kPage, 32 * kMiB / threads / kPage * kPage));
  const int64_t slices = share / slice, repeats = std::max<int64_t>(1, 8 * kMiB / (slice * threads));
  const auto go = [&](int64_t s) {
    pool.parallel(threads, [&](int64_t i, int) {
      for (int64_t r = 0; r < repeats; ++r) run(i * share + s * slice, slice);
    });
  };
  for (int64_t s = 0; s < slices; ++s) go(s);  // pages, caches
  double best = 0;
  const double end = seconds() + effort * kMemorySeconds;
  for (int64_t s = 0; s < slices || seconds() < end; ++s) {
    const double start = seconds();
    go(s % slices);
    best = std::max(best, double(repeats * slice * threads) * bytes_moved_per_byte / (seconds() - start));
  }
  return best;
}

void measure_memory(const Pool& pool, const ProbeCpu& probe, double effort, Machine& m) {
  const int threads = pool.threads();
  const int64_t large = std::min(int64_t(effort * double(kLargest)), total_memory() / 8) / (2 * kMiB) * (2 * kMiB);
  const Buffer buffer(large);
  char* const p = buffer.data();
  if (!p) return;
  const int64_t share = large / threads / kPage * kPage;
  pool.parallel(threads, [&](int64_t i, int) {
    for (int64_t at = 0; at < share; at += kPage) p[i * share + at] = 1;
  });
  const auto read = [&](int64_t from, int64_t bytes) { probe.read(p + from, bytes); };
  m.l2_read = memory_rate(pool, threads * 512 * 1024, 1, effort, read);
  m.reads = {{double(threads) * 512 * 1024, m.l2_read}};
  for (int64_t bytes : {8 * kMiB, 32 * kMiB, 96 * kMiB, 192 * kMiB, large})
    if (bytes <= large && double(bytes) > m.reads.back().bytes)
      m.reads.push_back({double(bytes), memory_rate(pool, bytes, 1, effort, read)});
  m.dram_read = m.reads.back().rate;
  m.dram_copy = memory_rate(pool, large / 2, 2, effort, [&](int64_t from, int64_t bytes) {
    probe.copy(p + large / 2 / kPage * kPage + from, p + from, bytes);
  });
}

// Fork, every thread taking part, join, as a step finds its pool: while the workers still spin. A low percentile, for busy machines.
double launch_seconds(const Pool& pool) {
  const int threads = pool.threads();
  if (threads == 1) return 0;
  std::vector<double> times;
  for (const double end = seconds() + 0.1; times.size() < 4000 && (times.size() < 16 || seconds() < end);) {
    std::atomic<int> there = 0;
    const double start = seconds();
    pool.parallel(threads, [&](int64_t, int) {
      ++there;
      for (const double late = seconds() + 20e-6; there.load(std::memory_order_relaxed) < threads && seconds() < late;) {}
    });
    times.push_back(seconds() - start);
  }
  std::sort(times.begin(), times.end());
  return times[times.size() / 20];
}

void keep_best(Machine& m, const Machine& before) {
  for (int u = 0; u < kUnits; ++u) m.rate[u] = std::max(m.rate[u], before.rate[u]);
  for (double Machine::*rate : {&Machine::dram_read, &Machine::dram_copy, &Machine::l2_read})
    m.*rate = std::max(m.*rate, before.*rate);
  for (size_t i = 0; i < m.reads.size() && i < before.reads.size(); ++i)
    if (m.reads[i].bytes == before.reads[i].bytes) m.reads[i].rate = std::max(m.reads[i].rate, before.reads[i].rate);
  if (before.launch_s > 0) m.launch_s = std::min(m.launch_s, before.launch_s);
}

}  // namespace

Machine measure_machine(const Pool& pool, Isa isa, double effort) {
  const ProbeCpu& probe = probe_of(isa);
  Machine m = nominal_machine(cpu_model(), isa_name(isa), pool.threads());
  m.rate[int(Unit::fma_f32)] = unit_rate(pool, probe.fma_f32, effort);
  m.rate[int(Unit::vector_i8)] = unit_rate(pool, probe.vector_i8, effort);
  m.rate[int(Unit::matrix_bf16)] = unit_rate(pool, probe.matrix_bf16, effort);
  m.rate[int(Unit::matrix_i8)] = unit_rate(pool, probe.matrix_i8, effort);
  measure_memory(pool, probe, effort, m);
  m.launch_s = launch_seconds(pool);
  m.measured = true;
  m.note.clear();
  return m;
}

std::string cache_folder() {
  if (const char* cache = getenv("XDG_CACHE_HOME"); cache && *cache == '/')
    return std::string(cache) + "/ridgeline";  // relative: to be ignored
  if (const char* home = getenv("HOME"); home && *home) return std::string(home) + "/.cache/ridgeline";
  return "";
}

std::string machine_path(Isa isa, int threads) {
  const std::string folder = cache_folder();
  if (folder.empty()) return "";
  std::string cpu;
  for (const char c : cpu_model())
    if (isalnum(static_cast<unsigned char>(c)))
      cpu += char(tolower(c));
    else if (!cpu.empty() && cpu.back() != '-')
      cpu += '-';
  return fmt::format("{}/machines/{}-{}-{}.json", folder, cpu, isa_name(isa), threads);
}

Machine load_machine(Isa isa, int threads) {
  const std::string path = machine_path(isa, threads);
  if (!path.empty() && access(path.c_str(), F_OK) == 0) {
    Result<Machine> m = read_machine(path);
    if (m) return std::move(*m);
    log_warn("{}", m.status().sentence());
  }
  return nominal_machine(cpu_model(), isa_name(isa), threads);
}

Machine measure_and_keep(const Pool& pool, Isa isa, double effort) {
  const Machine before = load_machine(isa, pool.threads());
  Machine m = measure_machine(pool, isa, effort);
  if (before.measured) keep_best(m, before);
  if (const std::string path = machine_path(isa, pool.threads()); !path.empty())
    if (const Status written = write_machine(m, path); !written) log_warn("{}", written.sentence());
  return m;
}

Machine load_or_measure(const Pool& pool, Isa isa, double effort) {
  Machine m = load_machine(isa, pool.threads());
  return m.measured ? m : measure_and_keep(pool, isa, effort);
}

}  // namespace ridge
