// The workload of the benchmarks: a process that does nothing but read the clock, and says in
// shared memory when it ran. It reads the clock after it has noticed that it runs, so a stamp is
// never from before a freeze that it has just left.
#pragma once

#include <sys/types.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "node-agent/bench/lost_work.h"
#include "node-agent/testing/real_cgroups.h"

namespace agent::bench {

// Two readings further apart than this: it did not run in between. An interrupt takes less.
inline constexpr std::int64_t kBreakNanos = 15'000;
inline constexpr std::size_t kRunsMax = 1U << 14U;  // then the oldest is overwritten

// Shared between the process and the benchmark.
struct SpinnerMemory {
  std::atomic<std::uint64_t> runs_count;
  struct Stored {
    std::atomic<std::int64_t> begin;
    std::atomic<std::int64_t> end;
  };
  std::array<Stored, kRunsMax> runs;
};

struct SpinnerOptions {
  std::optional<int> cpu{};      // pinned to
  bool ignores_sigtstp = false;  // as the first process of a container does, and many an MPI
};

// Ends with the benchmark.
class Spinner {
 public:
  // In the cgroup `path` of `cgroups`. REQUIRES: no other thread yet (it forks).
  Spinner(const testing::RealCgroups& cgroups, const std::string& path,
          SpinnerOptions options = {});
  Spinner(Spinner&& other) noexcept;
  Spinner& operator=(Spinner&&) = delete;
  ~Spinner();

  pid_t pid() const { return pid_; }
  // Runs that ended at or after `from`, ascending.
  std::vector<Run> runs_since(std::int64_t from) const;

 private:
  SpinnerMemory* memory_;
  pid_t pid_;
};

std::int64_t wall_nanos();

}  // namespace agent::bench
