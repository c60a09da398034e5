#include "node-agent/survival/run_lock.h"

#include <fcntl.h>
#include <sys/file.h>

#include <cerrno>
#include <utility>

#include "linux/system_error.h"
#include "node-agent/switching/switch_clock.h"

namespace agent {
namespace {

// flock() has no time-out; a signal would be the only other way to end a wait in the kernel.
constexpr base::Duration kRetryAfter = std::chrono::milliseconds{10};

}  // namespace

// O_NOFOLLOW: a link in the directory must not make root lock, or create, a file elsewhere.
base::Result<RunLock> RunLock::open(const std::string& run_directory) {
  const std::string path = run_directory + "/" + kLockName;
  os::FileDescriptor file{::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600)};
  if (!file.is_open()) return os::error_from_errno("run directory " + run_directory, errno);
  return RunLock{run_directory, std::move(file)};
}

// flock() belongs to the open file description, which a forked worker shares with its supervisor.
// So the kernel frees the lock when the last of the two processes is gone, by whatever death, and
// not when one of them closes its copy.
bool RunLock::try_take() {
  return ::flock(file_.get(), LOCK_EX | LOCK_NB) == 0;
}

base::Status RunLock::take_within(base::Duration within) {
  RealSwitchClock clock;
  const base::Duration give_up = clock.monotonic() + within;
  while (!try_take()) {
    if (clock.monotonic() >= give_up) {
      return base::Error{base::Code::kAlreadyExists,
                         "run directory " + run_directory_ +
                             ": another kubegang-agent uses it: stop it, or give this one its own "
                             "with --run-dir"};
    }
    clock.pause(kRetryAfter);
  }
  return {};
}

void RunLock::give_back() {
  ::flock(file_.get(), LOCK_UN);
}

// Clears FD_CLOEXEC in the child between fork and exec: the worker holds the lock as long as it
// lives, also when the supervisor has died before it.
void RunLock::keep_in_child() {
  ::fcntl(file_.get(), F_SETFD, 0);
}

}  // namespace agent
