// The freezer of one pod's cgroup, held open: ask for a state, see what the kernel says. No waiting
// and no policy inside; deadlines and repetitions are freeze_machine.h's. The real ones are
// cgroup2_freezer.h and cgroup1_freezer.h, the fake is testing/fake_freezer.h; one contract suite
// runs against all three.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "linux/cgroup_file.h"

namespace agent {

// Our request to the cgroup.
enum class FreezeRequest : std::uint8_t { kThawed, kFrozen };

using os::IoResult;

struct Observation {
  IoResult result = IoResult::kOk;
  // All tasks stand still, whether we asked for it or another program, here or in an ancestor. A
  // new task that enters takes it away for a moment.
  bool frozen = false;

  friend bool operator==(const Observation&, const Observation&) = default;
};

// The last request to this cgroup itself, by any program.
struct AskedState {
  IoResult result = IoResult::kOk;
  FreezeRequest request = FreezeRequest::kThawed;

  friend bool operator==(const AskedState&, const AskedState&) = default;
};

// Any thread may call request(), but only the switcher does while it runs: it is the one writer.
// Nothing here allocates, logs, locks or waits for the tasks to stop.
// SOURCE: kernel Documentation/admin-guide/cgroup-v2.rst (cgroup.freeze, cgroup.events),
// cgroup-v1/freezer-subsystem.rst.
class Freezer {
 public:
  virtual ~Freezer() = default;

  // Writes what is wanted. The kernel goes on in the background; observe() says when it is done.
  // Asking again for the same is allowed and, on v1, makes the kernel look for tasks that entered
  // since. Cost: 15–60 us on v2, 150–350 us on v1 for ten tasks (freezer.md 2.1).
  virtual IoResult request(FreezeRequest wanted) = 0;

  // Reads once whether everything in the cgroup stands still. Cost: about 1 us.
  virtual Observation observe() = 0;

  // Reads what the cgroup itself was asked for. Unlike observe() it does not see an ancestor's.
  virtual AskedState asked() = 0;

  // Returns a descriptor for poll(2): POLLPRI when observe() may have something new since its last
  // call. The kernel notifies at most every 10 ms, so this shortens a wait and does not replace
  // looking. nullopt if the kernel does not notify (v1).
  virtual std::optional<int> changes_fd() const = 0;

  // SIGKILL passes a frozen v2 cgroup; on v1 it waits for the thaw.
  virtual bool kill_works_while_frozen() const = 0;
};

constexpr std::string_view to_string(FreezeRequest wanted) {
  switch (wanted) {
    case FreezeRequest::kThawed:
      return "thawed";
    case FreezeRequest::kFrozen:
      return "frozen";
  }
  return "unknown";
}

}  // namespace agent
