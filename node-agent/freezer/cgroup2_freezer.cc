#include "node-agent/freezer/cgroup2_freezer.h"

#include <fcntl.h>

#include <array>
#include <utility>

#include "linux/cgroup_file.h"

namespace agent {
namespace {

// "populated 0\nfrozen 0\n" and what later kernels may add.
constexpr std::size_t kEventsBytesMax = 256;

}  // namespace

Cgroup2Freezer::Cgroup2Freezer(os::FileDescriptor freeze, os::FileDescriptor events)
    : freeze_{std::move(freeze)}, events_{std::move(events)} {}

// Both files stay open as long as the pod is controlled: a switch then costs a write and reads, and
// no look-up of names. They fail with ENODEV once the cgroup is gone.
base::Result<std::unique_ptr<Freezer>> Cgroup2Freezer::open(int directory_fd) {
  base::Result<os::FileDescriptor> freeze = os::open_beneath(directory_fd, "cgroup.freeze", O_RDWR);
  if (!freeze) return freeze.error();
  base::Result<os::FileDescriptor> events =
      os::open_beneath(directory_fd, "cgroup.events", O_RDONLY);
  if (!events) return events.error();
  return std::unique_ptr<Freezer>{
      std::make_unique<Cgroup2Freezer>(*std::move(freeze), *std::move(events))};
}

IoResult Cgroup2Freezer::request(FreezeRequest wanted) {
  return os::write_file(freeze_.get(), wanted == FreezeRequest::kFrozen ? "1\n" : "0\n");
}

// `frozen` in cgroup.events is 1 when all tasks of the cgroup and below it stand still, by whatever
// request.
Observation Cgroup2Freezer::observe() {
  std::array<char, kEventsBytesMax> buffer;
  const os::FileText events = os::read_file(events_.get(), buffer);
  return {.result = events.result,
          .frozen = events.text.find("frozen 1") != std::string_view::npos};
}

// cgroup.freeze holds what was written last to this cgroup; an ancestor's freeze does not show.
AskedState Cgroup2Freezer::asked() {
  std::array<char, 8> buffer;
  const os::FileText freeze = os::read_file(freeze_.get(), buffer);
  return {
      .result = freeze.result,
      .request = freeze.text.starts_with('1') ? FreezeRequest::kFrozen : FreezeRequest::kThawed};
}

}  // namespace agent
