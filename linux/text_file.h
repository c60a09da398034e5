// A text file as a whole: read it, or replace it so that a reader sees the old text or the new one.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "base/result.h"

namespace os {

// Reads a file of at most `bytes_max` bytes. kInvalidArgument: it is longer. Other codes as in
// error_from_errno(); the message begins with the path.
base::Result<std::string> read_text_file(const std::string& path, std::size_t bytes_max);

// Writes PATH.next and renames it. A crash leaves the old file or the new one, but for a crash of
// the machine: nothing is synced to a disk. The message of an error begins with the path.
base::Status replace_text_file(const std::string& path, std::string_view text);

}  // namespace os
