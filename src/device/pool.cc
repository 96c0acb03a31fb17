// The loop protocol. One word, the ticket, holds (loop number, chunks unclaimed). The caller writes the loop's fields while no chunk is
// unclaimed or running, then the ticket; a thread claims a chunk by taking one off the ticket with a compare-exchange. The claim
// proves that the fields it read before were this loop's: the caller writes new ones only after every claimed chunk was
// counted in `done`. So a late worker needs no handshake, and nobody waits for one.
// Sleeping is a flag and a re-check on either side, all sequentially consistent: whoever stores second sees the other's store.
// When other programs want the cores: a worker without a chunk yields, so that it loses its core there and not while it holds a chunk;
// a caller that waits for a worker on its own core sleeps at once. With one or two busy programs beside two threads the pool then
// kept the rate of one thread on long loops (0.7 of it without) and up to twice that on short ones.
#include "device/pool.h"

#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <mutex>
#include <thread>
#include <vector>

#include "base/check.h"

namespace ridge {
namespace {

// A decode step's serial gaps are below this, and a worker that spins for nobody gives its core back soon.
constexpr auto kSpin = std::chrono::microseconds(50);
constexpr int kPausesPerClock = 16;       // a pause is 40 to 140 cycles, reading the clock 25 ns
constexpr int64_t kChunksPerThread = 64;  // the last chunk is then 1/64 of a thread's share: the price of uneven threads
constexpr int kChunkBits = 20;
constexpr uint64_t kChunkMask = (uint64_t(1) << kChunkBits) - 1;
constexpr int kMaxThreads = int(kChunkMask / kChunksPerThread / 2);

void pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

void futex_wait(std::atomic<uint32_t>& word, uint32_t seen) {
  syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, seen, nullptr, nullptr, 0);
}
void futex_wake(std::atomic<uint32_t>& word, int threads) {
  syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, threads, nullptr, nullptr, 0);
}

// True once ready() is; false when the spin's time is over or give_up() is true. Each round of pauses ends with give_up().
template <class Ready, class GiveUp>
bool spin_until(const Ready& ready, const GiveUp& give_up) {
  if (ready()) return true;
  const auto end = std::chrono::steady_clock::now() + kSpin;
  do {
    for (int i = 0; i < kPausesPerClock; ++i) {
      pause();
      if (ready()) return true;
    }
    if (give_up()) return ready();
  } while (std::chrono::steady_clock::now() < end);
  return false;
}

struct Place {
  const void* pool = nullptr;  // whose loop body this thread is in
  int worker = 0;
};
thread_local Place place;

}  // namespace

struct Pool::State {
  // One cache line: a worker that sees the new ticket has the loop's fields with it.
  alignas(64) std::atomic<uint64_t> ticket{0};
  std::atomic<Item> item{nullptr};
  std::atomic<void*> arg{nullptr};
  std::atomic<int64_t> n{0};
  std::atomic<int64_t> chunk{1};  // items a chunk
  std::atomic<int64_t> chunks{0};

  alignas(64) std::atomic<uint32_t> done{0};  // chunks finished; the caller's futex
  std::atomic<uint32_t> caller_sleeps{0};
  std::atomic<int> helper_cpu{-1};  // where the latest claim of a worker runs

  alignas(64) std::atomic<uint32_t> wakes{0};  // the workers' futex
  std::atomic<uint32_t> sleepers{0};
  std::atomic<bool> stop{false};

  alignas(64) int threads = 1;
  std::mutex turn;  // one loop at a time
  std::vector<std::thread> workers;

  bool work(int worker);
  void worker_loop(int worker);
};

// Claims and runs chunks until none is unclaimed; false if there was none.
bool Pool::State::work(int worker) {
  bool any = false;
  uint64_t seen = ticket.load(std::memory_order_acquire);
  while (const int64_t unclaimed = int64_t(seen & kChunkMask)) {
    const Item f = item.load(std::memory_order_relaxed);
    void* const a = arg.load(std::memory_order_relaxed);
    const int64_t items = n.load(std::memory_order_relaxed), size = chunk.load(std::memory_order_relaxed);
    // Large claims first, single chunks at the end: few trips of the ticket's cache line, and an even finish.
    const int64_t claim = std::max<int64_t>(1, unclaimed / (2 * threads));
    const int64_t begin = (chunks.load(std::memory_order_relaxed) - unclaimed) * size,
                  end = std::min(begin + claim * size, items);
    if (!ticket.compare_exchange_weak(seen, seen - uint64_t(claim), std::memory_order_acq_rel, std::memory_order_acquire))
      continue;
    if (worker != 0) helper_cpu.store(sched_getcpu(), std::memory_order_relaxed);
    for (int64_t i = begin; i < end; ++i) f(a, i, worker);
    // Sequentially consistent against the caller's own store to caller_sleeps.
    done.fetch_add(uint32_t(claim), std::memory_order_seq_cst);
    if (worker != 0 && caller_sleeps.load(std::memory_order_seq_cst)) futex_wake(done, 1);
    any = true;
    seen = ticket.load(std::memory_order_acquire);
  }
  return any;
}

void Pool::State::worker_loop(int worker) {
  place = {this, worker};
  const auto called = [&] {
    return (ticket.load(std::memory_order_relaxed) & kChunkMask) || stop.load(std::memory_order_relaxed);
  };
  while (!stop.load(std::memory_order_acquire)) {
    if (work(worker) || spin_until(called, [] { return sched_yield() != 0; })) continue;
    const uint32_t seen = wakes.load(std::memory_order_seq_cst);
    sleepers.fetch_add(1, std::memory_order_seq_cst);
    if (!(ticket.load(std::memory_order_seq_cst) & kChunkMask) && !stop.load(std::memory_order_seq_cst)) futex_wait(wakes, seen);
    sleepers.fetch_sub(1, std::memory_order_seq_cst);
  }
}

Pool::Pool(int threads) : state_(std::make_unique<State>()) {
  RIDGE_CHECK(threads >= 1 && threads <= kMaxThreads, "a pool of " + std::to_string(threads) + " threads");
  state_->threads = threads;
  for (int worker = 1; worker < threads; ++worker)
    state_->workers.emplace_back([state = state_.get(), worker] { state->worker_loop(worker); });
}

Pool::~Pool() {
  state_->stop.store(true, std::memory_order_seq_cst);
  state_->wakes.fetch_add(1, std::memory_order_seq_cst);
  futex_wake(state_->wakes, int(state_->workers.size()));
  for (std::thread& worker : state_->workers) worker.join();
}

int Pool::threads() const { return int(state_->workers.size()) + 1; }

void Pool::run(int64_t n, Item item, void* arg) const noexcept {
  RIDGE_CHECK(n >= 0, "a loop over " + std::to_string(n) + " items");
  State& s = *state_;
  const bool nested = place.pool == &s;
  RIDGE_CHECK(nested || !place.pool || s.workers.empty(), "a loop body of one pool called another pool");
  if (n <= 1 || nested || s.workers.empty()) {
    const Place outer = place;
    if (!nested) place = {&s, 0};
    for (int64_t i = 0; i < n; ++i) item(arg, i, place.worker);
    place = outer;
    return;
  }
  const std::lock_guard turn(s.turn);
  const int64_t most = threads() * kChunksPerThread, size = (n + most - 1) / most, chunks = (n + size - 1) / size;
  s.item.store(item, std::memory_order_relaxed);
  s.arg.store(arg, std::memory_order_relaxed);
  s.n.store(n, std::memory_order_relaxed);
  s.chunk.store(size, std::memory_order_relaxed);
  s.chunks.store(chunks, std::memory_order_relaxed);
  s.done.store(0, std::memory_order_relaxed);
  const uint64_t loop = (s.ticket.load(std::memory_order_relaxed) >> kChunkBits) + 1;
  s.ticket.store(loop << kChunkBits | uint64_t(chunks), std::memory_order_seq_cst);
  if (const uint32_t asleep = s.sleepers.load(std::memory_order_seq_cst)) {
    s.wakes.fetch_add(1, std::memory_order_seq_cst);
    futex_wake(s.wakes, int(std::min<int64_t>(asleep, chunks - 1)));
  }
  place = {&s, 0};
  s.work(0);
  place = {};
  const auto joined = [&] { return s.done.load(std::memory_order_acquire) == uint32_t(chunks); };
  const auto shares_core = [&] { return s.helper_cpu.load(std::memory_order_relaxed) == sched_getcpu(); };
  while (!spin_until(joined, shares_core)) {
    s.caller_sleeps.store(1, std::memory_order_seq_cst);
    for (uint32_t seen; (seen = s.done.load(std::memory_order_seq_cst)) != uint32_t(chunks);) futex_wait(s.done, seen);
    s.caller_sleeps.store(0, std::memory_order_relaxed);
  }
}

}  // namespace ridge
