// What a failed system call means for the caller, and its text.
#pragma once

#include <cerrno>
#include <string>
#include <system_error>

#include "base/result.h"

namespace os {

inline std::string errno_text(int error_number) {
  return std::generic_category().message(error_number);
}

inline base::Code code_of_errno(int error_number) {
  switch (error_number) {
    case ENOENT:
    case ENOTDIR:
      return base::Code::kNotFound;
    case EACCES:
    case EPERM:
    case EROFS:
      return base::Code::kPermissionDenied;
    case EEXIST:
      return base::Code::kAlreadyExists;
    case EAGAIN:
    case ENOMEM:
    case EMFILE:
    case ENFILE:
      return base::Code::kUnavailable;
    case ENOEXEC:
    case E2BIG:
    case ELOOP:
    case ENAMETOOLONG:
    case EISDIR:
      return base::Code::kInvalidArgument;
    default:
      return base::Code::kInternal;
  }
}

}  // namespace os
