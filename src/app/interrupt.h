// Ctrl-C as a flag that loops look at: nothing is cut off in the middle of a step or a write.
#pragma once

namespace ridge {

void catch_interrupts();  // from now on the first Ctrl-C sets the flag, a second one ends the process
bool interrupted();
void clear_interrupt();

}  // namespace ridge
