// The thread pool: one fork-join loop at a time over [0, n), the caller working as worker 0.
// Items are claimed in chunks from one atomic ticket, so a thread that lost its core is only ever waited for when it holds a
// claimed chunk; all unclaimed ones go to whoever runs. Waiting is a bounded spin, then a futex. A loop allocates nothing.
// Cost: about a microsecond for fork and join while the workers still spin, a futex wake-up when they sleep.
// Not for blocking work (files, sockets) and not for tasks that wait for each other.
#pragma once
#include <cstdint>
#include <memory>
#include <type_traits>

namespace ridge {

class Pool {
 public:
  // `threads` counts the caller: Pool(1) starts no thread and runs everything inline.
  explicit Pool(int threads);
  ~Pool();
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;

  int threads() const;

  // f(int64_t i, int worker) once for every i in [0, n), worker in [0, threads()); returns when all are done, with their writes
  // visible. Inside f a further parallel() of this pool runs inline under the same worker number. f must not throw: an exception
  // ends the process. Callers from several threads take turns.
  template <class F>
  void parallel(int64_t n, const F& f) const {
    static_assert(std::is_invocable_v<const F&, int64_t, int>, "Pool::parallel takes f(int64_t i, int worker)");
    run(
        n, [](void* arg, int64_t i, int worker) noexcept { (*static_cast<const F*>(arg))(i, worker); },
        const_cast<void*>(static_cast<const void*>(&f)));
  }

  using Item = void (*)(void* arg, int64_t i, int worker);
  void run(int64_t n, Item item, void* arg) const noexcept;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace ridge
