// CHECK is for our own bugs only: a broken invariant aborts the process with the condition, the
// values and the place. Nothing that was read from outside may be CHECKed; that is a base::Result.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <string>

namespace base {

// Prints one line to stderr and aborts. Never returns; async-signal-safety is not promised.
[[noreturn]] inline void check_failed(const char* file, int line, const char* condition,
                                      const std::string& detail) {
  std::fprintf(stderr, "%s:%d: CHECK failed: %s%s%s\n", file, line, condition,
               detail.empty() ? "" : ": ", detail.c_str());
  std::abort();
}

}  // namespace base

// Always on, in every build type. The place is a file name without its folder, so that a program
// is the same wherever it was built. CHECK(cond) or CHECK(cond, std::string with the values).
#define CHECK(condition, ...)                                                              \
  do {                                                                                     \
    if (!(condition)) [[unlikely]]                                                         \
      ::base::check_failed(__FILE_NAME__, __LINE__, #condition, std::string{__VA_ARGS__}); \
  } while (false)
