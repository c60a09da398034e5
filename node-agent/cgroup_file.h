// Reading and writing one small kernel file through a descriptor that stays open.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"
#include "node-agent/file_descriptor.h"
#include "node-agent/freezer.h"

namespace agent {

// Opens `name` below the directory, never through a symbolic link and never outside of it.
// kNotFound, kPermissionDenied (also a read-only mount), kUnavailable.
base::Result<FileDescriptor> open_beneath(int directory_fd, const std::string& name, int flags);

// Writes the whole text at offset 0, in one call. Does not allocate.
IoResult write_file(int fd, std::string_view text);

struct FileText {
  IoResult result = IoResult::kOk;
  std::string_view text;  // points into the buffer
};

// Reads from offset 0, at most buffer.size() bytes, in one call. Does not allocate.
FileText read_file(int fd, std::span<char> buffer);

// "what path: reason" from an errno, with the Code that fits it.
base::Error error_from_errno(const std::string& what, int error_number);

}  // namespace agent
