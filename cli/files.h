// Files that a command reads or writes.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "base/result.h"

namespace cli {

// The whole file; "-" = standard input. More than bytes_max is an error.
base::Result<std::string> read_file(const std::string& path, std::size_t bytes_max);

base::Status write_file(const std::string& path, std::string_view text);

}  // namespace cli
