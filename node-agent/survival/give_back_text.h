// Memory that a process which only waits does not need.
#pragma once

namespace agent {

// Drops the code pages touched during start-up (OpenSSL and library initializers) from our resident
// set; the few that are still needed are faulted in again. Only code, which is never changed in
// memory.
void give_back_text();

}  // namespace agent
