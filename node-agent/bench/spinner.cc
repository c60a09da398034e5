#include "node-agent/bench/spinner.h"

#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace agent::bench {
namespace {

[[noreturn]] void spin(SpinnerMemory& memory, const SpinnerOptions& options) {
  ::setpgid(0, 0);  // A group with a parent outside of it: SIGTSTP has its usual effect.
  if (options.ignores_sigtstp) ::signal(SIGTSTP, SIG_IGN);
  if (options.cpu) {
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(static_cast<std::size_t>(*options.cpu), &set);
    ::sched_setaffinity(0, sizeof set, &set);
  }
  std::int64_t last = 0;
  std::uint64_t runs = 0;
  for (;;) {
    // A gap between two looks at the clock means that the process did not run. The begin of a run
    // is stored before its number, so a reader never sees a run without a begin.
    const std::int64_t now = wall_nanos();
    if (runs == 0 || now - last > kBreakNanos) {
      SpinnerMemory::Stored& run = memory.runs[runs++ % kRunsMax];
      run.begin.store(now, std::memory_order_relaxed);
      run.end.store(now, std::memory_order_relaxed);
      memory.runs_count.store(runs, std::memory_order_release);
    } else {
      memory.runs[(runs - 1) % kRunsMax].end.store(now, std::memory_order_relaxed);
    }
    last = now;
  }
}

}  // namespace

// Reads the clock that boundaries of slices are on, read without a system call.
std::int64_t wall_nanos() {
  timespec time{};
  ::clock_gettime(CLOCK_REALTIME, &time);
  return std::int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

// The memory is mapped before the fork, so both see it; nothing must be asked of a process that
// may be frozen.
Spinner::Spinner(const testing::RealCgroups& cgroups, const std::string& path,
                 SpinnerOptions options) {
  void* memory = ::mmap(nullptr, sizeof(SpinnerMemory), PROT_READ | PROT_WRITE,
                        MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  CHECK(memory != MAP_FAILED);
  memory_ = static_cast<SpinnerMemory*>(memory);
  pid_ = cgroups.spawn(path, [this, options] { spin(*memory_, options); });
}

Spinner::Spinner(Spinner&& other) noexcept
    : memory_{std::exchange(other.memory_, nullptr)}, pid_{other.pid_} {}

// Only the memory: the process ends with its cgroup.
Spinner::~Spinner() {
  if (memory_ != nullptr) ::munmap(memory_, sizeof(SpinnerMemory));
}

// The ring keeps the newest kRunsMax runs. The newest may still grow while it is read.
std::vector<Run> Spinner::runs_since(std::int64_t from) const {
  const std::uint64_t count = memory_->runs_count.load(std::memory_order_acquire);
  std::vector<Run> runs;
  for (std::uint64_t i = count > kRunsMax ? count - kRunsMax : 0; i < count; ++i) {
    const SpinnerMemory::Stored& stored = memory_->runs[i % kRunsMax];
    const Run run{.begin = stored.begin.load(std::memory_order_relaxed),
                  .end = stored.end.load(std::memory_order_relaxed)};
    if (run.end >= from) runs.push_back(run);
  }
  return runs;
}

}  // namespace agent::bench
