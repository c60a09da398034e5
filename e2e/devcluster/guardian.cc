#include "e2e/devcluster/guardian.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <optional>
#include <sstream>
#include <system_error>
#include <vector>

namespace devcluster {
namespace {

using base::Code;
using base::Error;

constexpr std::string_view kInstancePrefix = "kubegang-devcluster-";
// Frozen processes are thawed and killed; one in a system call that cannot be interrupted may take
// seconds.
constexpr std::chrono::seconds kDestroyPatience{10};
constexpr std::chrono::seconds kSweepPatience{2};

// Returns "" if the file is gone: the process has ended meanwhile.
std::string read_file(const std::string& path) {
  std::ifstream in{path};
  std::ostringstream text;
  text << in.rdbuf();
  return std::move(text).str();
}

// Returns when the process was started, in clock ticks since boot; nullopt if there is no such
// process. SOURCE: proc(5), stat field 22. The second field is the program's name in parentheses
// and may contain anything, so fields are counted from the last closing one.
std::optional<std::string> start_time(const std::string& pid) {
  const std::string stat = read_file("/proc/" + pid + "/stat");
  const auto name_end = stat.rfind(')');
  if (name_end == std::string::npos) return std::nullopt;
  std::istringstream fields{stat.substr(name_end + 1)};
  std::string field;
  for (int number = 3; number <= 22; ++number) fields >> field;
  return field;
}

}  // namespace

// PID and start time together name a process for good: PIDs are used again.
std::string instance_name() {
  const std::string pid = std::to_string(::getpid());
  return std::string{kInstancePrefix} + pid + "-" + start_time(pid).value_or("0");
}

// Another process may have the same PID by now; it does not have the same start time.
bool is_dead_instance(const std::string& name) {
  if (!name.starts_with(kInstancePrefix)) return false;
  const std::string rest = name.substr(kInstancePrefix.size());
  const auto dash = rest.find('-');
  if (dash == std::string::npos) return false;
  return start_time(rest.substr(0, dash)) != rest.substr(dash + 1);
}

// The names are collected first: removing folders while their parent is iterated may skip some.
void sweep_dead_instances() {
  for (const os::CgroupMount& mount : os::cgroup_mounts()) {
    std::error_code error;
    std::vector<std::string> dead;
    for (const auto& entry : std::filesystem::directory_iterator{mount.path, error}) {
      if (is_dead_instance(entry.path().filename())) dead.push_back(entry.path());
    }
    for (const std::string& path : dead) {
      (void)os::destroy_cgroup(mount.version, path, kSweepPatience);  // its guardian may be at it
    }
  }
}

// The reading end of the pipe goes to the guardian under its own number; the writing end stays here
// and is closed on exec, so no pod and no component holds it open.
base::Result<Guardian> Guardian::start(const std::string& program, const os::CgroupRoot& root,
                                       const std::string& log_path) {
  std::array<int, 2> fds{};
  if (::pipe2(fds.data(), O_CLOEXEC) != 0) {
    return Error{Code::kInternal, "pipe: " + std::generic_category().message(errno)};
  }
  // The parent's copy of the reading end is closed when this function returns; it has no use for
  // it.
  const os::FileDescriptor reader{fds[0]};
  os::FileDescriptor writer{fds[1]};
  base::Result<Child> child =
      spawn({.argv = {program, "guard", "--lifeline", std::to_string(reader.get()), "--cgroup",
                      root.path, "--version", std::string{to_string(root.version)}},
             .output_path = log_path,
             .inherited_fds = {reader.get()}});
  if (!child.ok()) return child.error().with_context("start guardian");
  return Guardian{std::move(child).value(), std::move(writer)};
}

Guardian::Guardian(Child child, os::FileDescriptor lifeline)
    : child_{std::move(child)}, lifeline_{std::move(lifeline)} {}

// The orderly end: closing the pipe is what the guardian waits for.
Guardian::~Guardian() {
  // Moved from: another object has the pipe.
  if (!lifeline_.is_open()) return;
  lifeline_.reset();
  pollfd fd{child_.pidfd.get(), POLLIN, 0};
  // The guardian destroys the cgroup now; a second more than its own patience.
  ::poll(&fd, 1, static_cast<int>(std::chrono::milliseconds{kDestroyPatience}.count()) + 1000);
  (void)reap(child_);
}

// The write end of the pipe is open in the devcluster only. The kernel closes it however that
// process ends, also by SIGKILL, and then read() returns 0: frozen processes that no agent would
// thaw are killed with their cgroup.
int guard(int lifeline_fd, const os::CgroupRoot& root) {
  char byte = 0;
  for (;;) {
    const ssize_t count = ::read(lifeline_fd, &byte, 1);
    if (count == 0 || (count < 0 && errno != EINTR)) break;
  }
  const base::Status status = os::destroy_cgroup(root.version, root.path, kDestroyPatience);
  if (status.ok()) return 0;
  std::fprintf(stderr, "guardian: %s\n", status.error().message.c_str());
  return 1;
}

}  // namespace devcluster
