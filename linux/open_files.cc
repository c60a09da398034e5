#include "linux/open_files.h"

#include <sys/resource.h>

#include <algorithm>

namespace os {

std::uint64_t open_files_max() {
  rlimit limit{};
  ::getrlimit(RLIMIT_NOFILE, &limit);  // Cannot fail: resource and pointer are valid.
  return limit.rlim_max;
}

void raise_open_files(std::uint64_t wanted) {
  rlimit limit{};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  // Up to the hard limit no right is needed.
  limit.rlim_cur = std::max(limit.rlim_cur, std::min<rlim_t>(wanted, limit.rlim_max));
  ::setrlimit(RLIMIT_NOFILE, &limit);
}

}  // namespace os
