// Reading and writing one small kernel file through a descriptor that stays open.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"
#include "linux/file_descriptor.h"

namespace os {

// The result of a system call. An enum and no base::Status: the switcher may not allocate.
enum class IoResult : std::uint8_t {
  kOk,
  kGone,    // ENODEV, ENOENT: the cgroup was removed; not an error, the pod is gone
  kDenied,  // EACCES, EPERM, EROFS: the agent lacks the right; a person must change something
  kFailed,  // anything else; may be tried again
};

constexpr std::string_view to_string(IoResult result) {
  switch (result) {
    case IoResult::kOk:
      return "ok";
    case IoResult::kGone:
      return "gone";
    case IoResult::kDenied:
      return "denied";
    case IoResult::kFailed:
      return "failed";
  }
  return "unknown";
}

// Returns the meaning of an errno of a read or write on a cgroup file.
IoResult io_result_from_errno(int error_number);

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

}  // namespace os
