// How many files this process may have open (RLIMIT_NOFILE).
#pragma once

#include <cstdint>

namespace os {

// Returns the hard limit: as far as raise_open_files() can go.
std::uint64_t open_files_max();

// Raises the soft limit to `wanted`, or to the hard limit if that is less. Never lowers it.
// Programs that are started later inherit it.
void raise_open_files(std::uint64_t wanted);

}  // namespace os
