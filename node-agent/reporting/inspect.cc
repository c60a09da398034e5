#include "node-agent/reporting/inspect.h"

#include <fcntl.h>
#include <sys/file.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <sstream>
#include <vector>

#include "kube/api/time_format.h"
#include "linux/cpu_list.h"
#include "linux/file_descriptor.h"
#include "node-agent/policy/timetable_json.h"
#include "node-agent/survival/run_lock.h"

namespace agent {
namespace {

// A pod of the table. The cells fit into 80 columns beside each other; below them come name and
// path, however long.
struct Row {
  std::array<std::string, 6> cells{};
  std::string pod{};
  std::string cgroup{};
};

// So that the table keeps its width with 64 slots.
constexpr std::size_t kSlotsLengthMax = 5;

// "freezing" is a request that the kernel has not finished.
// "unreadable" is a cgroup of which this user may not open the files.
std::string kernel_state(const PodCgroups& cgroups, const std::string& path,
                         const std::string& uid) {
  const base::Result<PodCgroup> cgroup = cgroups.at(path, uid);
  if (!cgroup) return cgroup.error().code == base::Code::kNotFound ? "gone" : "unreadable";
  const base::Result<std::unique_ptr<Freezer>> freezer = open_freezer(*cgroup);
  if (!freezer) return "unreadable";
  // The kernel's word, read now, and not the agent's: the two differ exactly when something is
  // wrong.
  if ((*freezer)->observe().frozen) return "frozen";
  return (*freezer)->asked().request == FreezeRequest::kFrozen ? "freezing" : "running";
}

// Returns the places in the cycle at which the pod runs: "0,2", "0-3", or their number, "16/64".
std::string slots(const timetable::Timetable& timetable, std::uint16_t pod) {
  std::vector<int> places;
  for (std::size_t place = 0; place < timetable.cycle.size(); ++place) {
    const timetable::PodSet& run = timetable.cycle[place];
    if (std::binary_search(run.begin(), run.end(), pod)) places.push_back(static_cast<int>(place));
  }
  if (places.empty()) return "-";
  std::string text = os::format_cpu_list(places);  // the same way to write a set of numbers
  if (text.size() <= kSlotsLengthMax) return text;
  return std::to_string(places.size()) + "/" + std::to_string(timetable.cycle.size());
}

// Columns as wide as their widest cell, two blanks apart.
std::string table(const std::vector<Row>& rows) {
  std::array<std::size_t, std::tuple_size_v<decltype(Row::cells)>> widths{};
  for (const Row& row : rows) {
    for (std::size_t i = 0; i < widths.size(); ++i) {
      widths[i] = std::max(widths[i], row.cells[i].size());
    }
  }
  // Name and path stand below the second column, so that indices can be found at the left edge.
  const std::string below(widths[0] + 2, ' ');
  std::string text;
  for (const Row& row : rows) {
    for (std::size_t i = 0; i < widths.size(); ++i) {
      text += row.cells[i];
      text += i + 1 < widths.size() ? std::string(widths[i] - row.cells[i].size() + 2, ' ') : "\n";
    }
    if (!row.pod.empty()) text += below + row.pod + "\n";
    if (!row.cgroup.empty()) text += below + row.cgroup + "\n";
  }
  return text;
}

// As the API writes times, so that the output can be compared with the objects.
std::string when(const std::optional<base::Instant>& instant) {
  return instant ? kube::format_micro_time(*instant) : "-";
}

// The slot's number since the epoch and its place in the cycle tell a person which pods are on.
std::string head(const kube::NodeTimetable& timetable, base::Instant now) {
  const kube::NodeTimetableSpec& spec = timetable.spec;
  const std::int64_t slot = base::slot_of(now, spec.timetable.slice);
  const auto slots_count = static_cast<std::int64_t>(spec.timetable.cycle.size());
  std::ostringstream out;
  out << "timetable    node=" << timetable.metadata.name << " term=" << spec.term
      << " revision=" << spec.revision << " slice=" << kube::format_duration(spec.timetable.slice)
      << " pods=" << spec.pods.size() << "\n"
      << "now          " << when(now) << ", slot " << slot << ", " << slot % slots_count << " of "
      << slots_count << "\n"
      << "next change  " << when(timetable::next_change(spec.timetable, now)) << "\n";
  return out.str();
}

}  // namespace

// Asks for a shared lock: it is refused exactly if an agent or guard holds the exclusive one. The
// descriptor is closed at once, so an agent that starts at this very moment is delayed by
// microseconds (take_within() tries again).
bool agent_runs(const std::string& run_directory) {
  const os::FileDescriptor lock{
      ::open((run_directory + "/" + kLockName).c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW)};
  return lock.is_open() && ::flock(lock.get(), LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK;
}

// From the journal the timetable and the cgroups, from the shown pods the agent's words, from the
// kernel the state.
// The sources differ in age: the timetable is the one in force, the kernel is asked now, and the
// agent's words are as of its last step. After a crash the first two are still true, which is when
// this is read.
std::string inspect(const Journal& journal, const std::map<std::string, ShownPod>& shown,
                    const PodCgroups& cgroups, base::Instant now) {
  if (journal.timetable.empty()) return "timetable    none: nothing is frozen by this agent\n";
  const base::Result<kube::NodeTimetable> timetable = timetable_from_json(journal.timetable);
  if (!timetable) return "timetable    unreadable: " + timetable.error().message + "\n";
  std::vector<Row> rows{{.cells = {"INDEX", "STANDING", "KERNEL", "TURN", "SLOTS", "LAST SWITCH"}}};
  const kube::NodeTimetableSpec& spec = timetable->spec;
  for (std::size_t i = 0; i < spec.pods.size(); ++i) {
    const std::string name = spec.pods[i].ns + "/" + spec.pods[i].name;
    const auto index = static_cast<std::uint16_t>(i);
    Row row{.cells = {std::to_string(i), "-", "-", "-", "-", "-"}, .pod = name};
    // TURN is the wish of the timetable, KERNEL beside it the state. The two differ during a
    // switch, and while everything runs.
    row.cells[3] = timetable::runs_at(spec.timetable, index, now) ? "on" : "off";
    row.cells[4] = slots(spec.timetable, index);
    if (const auto pod = shown.find(name); pod != shown.end()) {
      row.cells[1] = pod->second.state;
      row.cells[5] = when(pod->second.last_switch);
    }
    const auto known = std::find_if(journal.pods.begin(), journal.pods.end(),
                                    [&](const PodIdentity& pod) { return pod.name == name; });
    if (known != journal.pods.end()) {
      row.cells[2] = kernel_state(cgroups, known->path, known->uid);
      row.cgroup = known->path;
    }
    rows.push_back(std::move(row));
  }
  return head(*timetable, now) + table(rows);
}

}  // namespace agent
