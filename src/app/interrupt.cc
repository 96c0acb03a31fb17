#include "app/interrupt.h"

#include <signal.h>
#include <unistd.h>

#include <atomic>

namespace ridge {

namespace {
std::atomic<bool> flag{false};
void on_signal(int) {
  if (flag.exchange(true)) _exit(130);
}
}  // namespace

void catch_interrupts() {
  struct sigaction action {};
  action.sa_handler = on_signal;  // no SA_RESTART: a blocking read returns
  sigaction(SIGINT, &action, nullptr);
}

bool interrupted() { return flag.load(); }
void clear_interrupt() { flag.store(false); }

}  // namespace ridge
