// The targets of the fuzzers: what the launcher is sent by srun and by the launchers of other pods,
// with what must hold whatever the bytes are. A broken promise aborts.
#pragma once

#include <string_view>

namespace launcher {

// A stream of messages: the first that makes no sense ends it, whatever pieces it comes in; any
// other is written as it was read, and a step that is asked for has a decision.
void fuzz_message(std::string_view bytes);

// Two ends that say something, hear it and lose their connection in the order that the bytes give:
// each hears what the other one has said, all of it once and in its order.
void fuzz_ledger(std::string_view bytes);

}  // namespace launcher
