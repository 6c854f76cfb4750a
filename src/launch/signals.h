// The signals that the launcher answers, taken one by one instead of by a handler.
// Thread: any; block_signals() before the first other thread.
#pragma once

#include <string>

#include "base/status.h"
#include "base/unique_fd.h"

namespace halay::launch {

// INT, TERM, HUP, QUIT and CHLD wait to be taken; PIPE is ignored (a closed reader is an error of write).
void block_signals();
// Sleeps until one of them comes.
int wait_signal();
// A descriptor that is readable when one has come, and the next of them; 0: none now.
UniqueFd signal_descriptor();
int next_signal(int descriptor);

// "SIGKILL"; "signal 64" where it has no name.
std::string signal_name(int number);

}  // namespace halay::launch
