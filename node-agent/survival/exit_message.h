// Why the program cannot do what it was started for, as one sentence: on the standard error and not
// in the log, whose level and form are for what happens while it works.
#pragma once

#include <cstdio>

#include "base/result.h"

namespace agent {

inline constexpr int kExitFailed = 1;

// Returns kExitFailed.
inline int fail_with(const base::Error& error) {
  std::fprintf(stderr, "kubegang-agent: %s\n", error.message.c_str());
  return kExitFailed;
}

}  // namespace agent
