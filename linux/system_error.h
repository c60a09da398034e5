// The meaning of a failed system call for the caller, and its text. The one table of the
// repository.
#pragma once

#include <cerrno>
#include <string>
#include <system_error>

#include "base/result.h"

namespace os {

// Not by strerror(), whose buffer threads may share.
inline std::string errno_text(int error_number) {
  return std::generic_category().message(error_number);
}

// kUnavailable, "may be tried again", for all that are not listed.
inline base::Code code_of_errno(int error_number) {
  switch (error_number) {
    case ENOENT:
    case ENOTDIR:
    case ENODEV:  // a cgroup that was removed
      return base::Code::kNotFound;
    case EACCES:
    case EPERM:
    case EROFS:
    case ELOOP:  // a symbolic link where none is allowed
    case EXDEV:  // a path that leaves its directory
      return base::Code::kPermissionDenied;
    case EEXIST:
      return base::Code::kAlreadyExists;
    case ENOEXEC:
    case E2BIG:
    case ENAMETOOLONG:
      return base::Code::kInvalidArgument;
    default:
      return base::Code::kUnavailable;
  }
}

// Returns "what: reason", with the code that fits it.
inline base::Error error_from_errno(const std::string& what, int error_number) {
  return {code_of_errno(error_number), what + ": " + errno_text(error_number)};
}

}  // namespace os
