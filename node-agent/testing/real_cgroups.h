// Real cgroups for tests: a tree of its own under a unique name in one of this machine's freezer
// hierarchies, processes in it that count, and a guardian process that thaws, kills and removes
// everything when the test ends, also when it crashes.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/time.h"
#include "linux/file_descriptor.h"
#include "linux/mountinfo.h"
#include "node-agent/freezer/freezer.h"

namespace agent::testing {

using os::CgroupVersion;

// The counter of one process, in memory that it shares with the test.
struct Progress {
  std::atomic<std::uint64_t> count;
  std::atomic<std::uint64_t> signals;  // of SIGTERM, where it handles that
  std::atomic<std::int64_t> last_micros;
};

class RealCgroups {
 public:
  // Why tests of this version cannot run here; nullopt if they can.
  static std::optional<std::string> missing(CgroupVersion version);

  // REQUIRES: !missing(version).
  explicit RealCgroups(CgroupVersion version);
  RealCgroups(const RealCgroups&) = delete;
  RealCgroups& operator=(const RealCgroups&) = delete;
  ~RealCgroups();

  const std::string& root() const { return root_; }
  // Makes kubepods/burstable/pod<uid> and returns that path, relative to the root.
  std::string add_pod(const std::string& uid);
  // Makes a cgroup below; `path` is relative to the root.
  void make(const std::string& path) const;
  bool remove(const std::string& path) const;

  // Spawns a process in the cgroup that runs `body` and ends. Its parent is the test.
  pid_t spawn(const std::string& path, const std::function<void()>& body) const;
  // Spawns one that counts: busy, or sleeping `pause` after each count.
  Progress& spawn_counter(const std::string& path, base::Duration pause = base::Duration{0});

  // The kernel's state, read beside the code under test.
  bool is_asked_frozen(const std::string& path) const;
  bool is_frozen(const std::string& path) const;
  void set_frozen(const std::string& path, bool frozen) const;
  std::size_t processes_count(const std::string& path) const;

 private:
  std::string absolute(const std::string& path) const { return root_ + "/" + path; }

  CgroupVersion version_;
  std::string root_;
  os::FileDescriptor guard_;  // the guardian acts when its other end closes
  pid_t guardian_ = 0;
  std::vector<Progress*> progress_;
};

// For a process that was just forked: it ends when its parent does, also when the parent was gone
// before this call, as happens on a busy machine.
void end_with_parent(pid_t parent);

// Waits, in steps of a millisecond, at most `limit`. For processes of the kernel's real world only.
bool eventually(const std::function<bool()>& condition,
                base::Duration limit = std::chrono::seconds{10});

// Returns true if the counter stands still for `span`.
bool stands_still(const Progress& progress, base::Duration span = std::chrono::milliseconds{50});
bool moves(const Progress& progress, base::Duration limit = std::chrono::seconds{5});

}  // namespace agent::testing
