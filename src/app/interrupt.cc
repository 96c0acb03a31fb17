#include "app/interrupt.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>

#include "base/check.h"

namespace ridge {

namespace {

std::atomic<bool> flag{false};
int wake[2] = {-1, -1};  // holds a byte while the flag is set; poll passes over negative numbers

void on_signal(int) {
  if (flag.exchange(true)) _exit(130);
  const int before = errno;
  [[maybe_unused]] const ssize_t n = write(wake[1], "", 1);  // a full pipe wakes as well
  errno = before;
}

void empty_pipe() {
  char bytes[16];
  while (wake[0] >= 0 && read(wake[0], bytes, sizeof bytes) > 0) {}
}

}  // namespace

void catch_interrupts() {
  if (wake[0] < 0) RIDGE_CHECK(pipe2(wake, O_CLOEXEC | O_NONBLOCK) == 0, "no pipe for Ctrl-C");
  struct sigaction action {};
  action.sa_handler = on_signal;
  action.sa_flags = SA_RESTART;  // NOTE: stdio gives up a write that a signal cuts off, and the text with it; poll always returns
  sigaction(SIGINT, &action, nullptr);
}

bool interrupted() { return flag.load(); }

void clear_interrupt() {
  flag.store(false);  // first: a Ctrl-C from here on may lose its byte, but not its flag, and a wait looks at that before
  empty_pipe();
}

ssize_t read_or_interrupt(int fd, void* to, size_t bytes) {
  while (!interrupted()) {
    pollfd files[2] = {{fd, POLLIN, 0}, {wake[0], POLLIN, 0}};
    if (poll(files, 2, -1) <= 0) continue;
    if (files[1].revents) empty_pipe();  // the flag is set, or was: a handler on another thread may write after it is cleared
    if (!files[0].revents) continue;
    const ssize_t n = read(fd, to, bytes);
    if (n >= 0 || (errno != EINTR && errno != EAGAIN)) return n;
  }
  errno = EINTR;
  return -1;
}

}  // namespace ridge
