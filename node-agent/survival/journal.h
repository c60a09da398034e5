// The record that survives the agent's process: the pods that it may have frozen, those that it has
// bound to CPUs, the timetable that it last obeyed, when it last saw the operator alive, and the
// rules that it followed. On tmpfs, replaced as a whole, and written before a pod is frozen or
// bound for the first time, so its reader can undo everything that the agent did.
//
// Text, one fact per line, so that the supervisor reads it without a JSON library:
//   kubegang-agent-journal 1
//   boot <boot id>
//   lease <monotonic us> <renew time us, or ->
//   rules <settle us> <barrier us> <failOpenAfter us> <killed, or ->
//   pod <uid> <namespace>/<name> <job uid> <cgroup path>
//   unread <uid>
//   bound <uid>
//   timetable <NodeTimetable as one line of JSON>
//   end
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "node-agent/survival/lease_watch.h"
#include "node-agent/switching/assignment.h"

namespace agent {

inline constexpr std::size_t kJournalBytesMax = 4U << 20U;

// From SchedulerConfig.status.accepted.timetable; the defaults are api.md's.
struct TimetableSettings {
  base::Duration settle = std::chrono::seconds{2};
  base::Duration barrier = std::chrono::milliseconds{20};
  base::Duration fail_open_after = std::chrono::minutes{15};

  friend bool operator==(const TimetableSettings&, const TimetableSettings&) = default;
};

// The decisions of people about this node, as the API server last said it.
struct Rules {
  TimetableSettings settings{};
  bool kill_switch = false;

  friend bool operator==(const Rules&, const Rules&) = default;
};

struct Journal {
  std::string boot_id{};
  std::optional<LeaseSeen> lease{};
  std::optional<Rules> rules{};
  std::vector<PodIdentity> pods{};
  // UIDs of the pods of which a journal that was lost may have said that they are frozen by us, and
  // whose cgroups could not be read since, sorted.
  std::vector<std::string> unread{};
  std::vector<std::string> bound{};  // UIDs of pods with the agent's CPU set, sorted
  std::string timetable{};           // JSON; "" = none

  friend bool operator==(const Journal&, const Journal&) = default;
};

std::string format_journal(const Journal& journal);
// kInvalidArgument names the line.
base::Result<Journal> parse_journal(std::string_view text);
// One file of that format. One thread.
class JournalFile {
 public:
  explicit JournalFile(std::string path) : path_{std::move(path)} {}

  // kNotFound: there is none, or it is of an earlier boot. Another code: it is damaged or cannot be
  // read, so it is not known which pods are frozen by us. Since it is replaced by a rename, a crash
  // does not damage it; something else did.
  base::Result<Journal> read(std::string_view boot_id) const;
  // Atomic: a reader sees the old one or the new one.
  base::Status write(const Journal& journal) const;

  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

// /proc/sys/kernel/random/boot_id, or "" where it cannot be read.
std::string read_boot_id();

}  // namespace agent
