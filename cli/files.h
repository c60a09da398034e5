// Files that a command reads or writes.
#pragma once

#include <cstddef>
#include <cstdio>
#include <ostream>
#include <string>
#include <string_view>

#include "base/result.h"

namespace cli {

// Returns the whole file; "-" = standard input. More than bytes_max is an error.
base::Result<std::string> read_file(const std::string& path, std::size_t bytes_max);

base::Status write_file(const std::string& path, std::string_view text);

// Writes the rest of `out`, a stream on `file`, and returns 0 if all of the stream could be
// written; else errno of the failure: EPIPE if it is a pipe whose reader is gone.
int flush_output(std::ostream& out, std::FILE* file);

}  // namespace cli
