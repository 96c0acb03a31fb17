// Ctrl-C as a flag that loops look at and that ends a wait for input: nothing is cut off in the middle of a step or a write.
// A Ctrl-C is never lost between looking at the flag and waiting: its handler also writes to a pipe that every wait listens to.
#pragma once
#include <sys/types.h>

#include <cstddef>

namespace ridge {

void catch_interrupts();  // from now on the first Ctrl-C sets the flag, a second one ends the process
bool interrupted();
void clear_interrupt();

// As read(2), but a Ctrl-C ends it, also one that came before: -1 and EINTR while the flag is set.
ssize_t read_or_interrupt(int fd, void* to, size_t bytes);

}  // namespace ridge
