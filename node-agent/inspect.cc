#include "node-agent/inspect.h"

#include <algorithm>
#include <array>
#include <sstream>
#include <vector>

#include "kube/api/time_format.h"
#include "node-agent/timetable_json.h"

namespace agent {
namespace {

using Row = std::array<std::string, 7>;

std::string kernel_state(const PodCgroups& cgroups, const std::string& path,
                         const std::string& uid) {
  const base::Result<PodCgroup> cgroup = cgroups.at(path, uid);
  if (!cgroup) return cgroup.error().code == base::Code::kNotFound ? "gone" : "unreadable";
  const base::Result<std::unique_ptr<Freezer>> freezer = open_freezer(*cgroup);
  if (!freezer) return "unreadable";
  if ((*freezer)->observe().frozen) return "frozen";
  return (*freezer)->requested().wish == Wish::kFrozen ? "freezing" : "running";
}

std::string table(const std::vector<Row>& rows) {
  std::array<std::size_t, std::tuple_size_v<Row>> widths{};
  for (const Row& row : rows) {
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  std::string text;
  for (const Row& row : rows) {
    for (std::size_t i = 0; i < row.size(); ++i) {
      text += row[i];
      text += i + 1 < row.size() ? std::string(widths[i] - row[i].size() + 2, ' ') : "\n";
    }
  }
  return text;
}

std::string when(const std::optional<base::Instant>& instant) {
  return instant ? kube::format_micro_time(*instant) : "-";
}

std::string head(const kube::NodeTimetable& timetable, base::Instant now) {
  const kube::NodeTimetableSpec& spec = timetable.spec;
  std::ostringstream out;
  out << "timetable  node=" << timetable.metadata.name << " term=" << spec.term
      << " revision=" << spec.revision << " slice=" << kube::format_duration(spec.timetable.slice)
      << " pods=" << spec.pods.size() << "\n"
      << "slot       " << base::slot_of(now, spec.timetable.slice) << ", now " << when(now)
      << ", next change " << when(timetable::next_change(spec.timetable, now)) << "\n";
  return out.str();
}

}  // namespace

std::string inspect(const Journal& journal, const SharedState* state, const PodCgroups& cgroups,
                    base::Instant now) {
  if (journal.timetable.empty()) return "timetable  none: nothing is frozen by this agent\n";
  const base::Result<kube::NodeTimetable> timetable = timetable_from_json(journal.timetable);
  if (!timetable) return "timetable  unreadable: " + timetable.error().message + "\n";
  std::optional<std::vector<SharedState::Shown>> shown;
  if (state != nullptr) shown = state->read();
  std::vector<Row> rows{{"INDEX", "POD", "STANDING", "KERNEL", "TURN", "LAST SWITCH", "CGROUP"}};
  const kube::NodeTimetableSpec& spec = timetable->spec;
  for (std::size_t i = 0; i < spec.pods.size(); ++i) {
    const std::string name = spec.pods[i].ns + "/" + spec.pods[i].name;
    const auto index = static_cast<std::uint16_t>(i);
    Row row{std::to_string(i), name, "-", "-", "-", "-", "-"};
    row[4] = timetable::runs_at(spec.timetable, index, now) ? "on" : "off";
    if (shown && i < shown->size()) {
      row[2] = to_string((*shown)[i].standing);
      if ((*shown)[i].state) row[2] += "/" + std::string{to_string(*(*shown)[i].state)};
      row[5] = when((*shown)[i].last_switch);
    }
    const auto known = std::find_if(journal.pods.begin(), journal.pods.end(),
                                    [&](const PodIdentity& pod) { return pod.name == name; });
    if (known != journal.pods.end()) {
      row[3] = kernel_state(cgroups, known->path, known->uid);
      row[6] = known->path;
    }
    rows.push_back(std::move(row));
  }
  return head(*timetable, now) + table(rows);
}

}  // namespace agent
