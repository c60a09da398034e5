#include "node-agent/freezer/cgroup1_freezer.h"

#include <fcntl.h>

#include <array>
#include <utility>

#include "linux/cgroup_file.h"

namespace agent {

Cgroup1Freezer::Cgroup1Freezer(os::FileDescriptor state, os::FileDescriptor self_freezing)
    : state_{std::move(state)}, self_freezing_{std::move(self_freezing)} {}

base::Result<std::unique_ptr<Freezer>> Cgroup1Freezer::open(int directory_fd) {
  base::Result<os::FileDescriptor> state = os::open_beneath(directory_fd, "freezer.state", O_RDWR);
  if (!state) return state.error();
  base::Result<os::FileDescriptor> self =
      os::open_beneath(directory_fd, "freezer.self_freezing", O_RDONLY);
  if (!self) return self.error();
  return std::unique_ptr<Freezer>{
      std::make_unique<Cgroup1Freezer>(*std::move(state), *std::move(self))};
}

// A write of FROZEN to a cgroup that is FREEZING makes the kernel try once more to freeze its
// tasks, which a task that has entered since needs.
IoResult Cgroup1Freezer::request(FreezeRequest wanted) {
  return os::write_file(state_.get(), wanted == FreezeRequest::kFrozen ? "FROZEN\n" : "THAWED\n");
}

Observation Cgroup1Freezer::observe() {
  std::array<char, 16> buffer;
  const os::FileText state = os::read_file(state_.get(), buffer);
  // The third value is FREEZING: at least one task still runs. Reading the file makes the kernel
  // look at the tasks again, so the state can only become FROZEN by being read.
  return {.result = state.result, .frozen = state.text.starts_with("FROZEN")};
}

AskedState Cgroup1Freezer::asked() {
  // self_freezing is this cgroup's own request; freezer.state also shows the freeze of a parent.
  std::array<char, 8> buffer;
  const os::FileText self = os::read_file(self_freezing_.get(), buffer);
  return {.result = self.result,
          .request = self.text.starts_with('1') ? FreezeRequest::kFrozen : FreezeRequest::kThawed};
}

}  // namespace agent
