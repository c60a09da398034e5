#include "node-agent/survival/give_back_text.h"

#include <sys/mman.h>

#include <cinttypes>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <string>
#include <string_view>

namespace agent {

// Drops the resident pages of all file-backed code (r-xp). The kernel reads a page back from the
// file when it is executed again, and a process that only waits executes few of them. Private data
// is never touched: MADV_DONTNEED would lose it.
// For supervisor and guard, which run on every node and do nothing nearly all the time: the code
// that they needed to start, OpenSSL among it, would stay in memory otherwise.
void give_back_text() {
  std::ifstream maps{"/proc/self/maps"};
  for (std::string line; std::getline(maps, line);) {
    std::uint64_t begin = 0;
    std::uint64_t end = 0;
    char rights[5] = {};
    if (std::sscanf(line.c_str(), "%" SCNx64 "-%" SCNx64 " %4s", &begin, &end, rights) != 3)
      continue;
    if (std::string_view{rights} != "r-xp" || line.find('/') == std::string::npos) continue;
    ::madvise(reinterpret_cast<void*>(begin), end - begin, MADV_DONTNEED);
  }
}

}  // namespace agent
