// NodeTimetable: who runs when on one node (its name). `spec` is written by the operator only,
// `status` by that node's agent only. SOURCE: api.md "NodeTimetable".
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "kube/api/meta.h"
#include "timetable/timetable.h"

namespace kube {

// The pod's place in the gang's rotation on this node.
enum class TimetableRow { kActive, kFiller, kWaiting };
constexpr auto names_of(std::type_identity<TimetableRow>) {
  return std::to_array<EnumName<TimetableRow>>({{TimetableRow::kActive, "Active"},
                                                {TimetableRow::kFiller, "Filler"},
                                                {TimetableRow::kWaiting, "Waiting"}});
}

// A pod of the list. Plan and cycle name it by its index.
struct TimetablePod {
  std::string ns{};  // "namespace"
  std::string name{};
  std::string job_uid{};
  std::optional<std::int32_t> task{};  // of an array; agents need it not
  std::optional<TimetableRow> row{};
  base::Duration ran{};  // run time of the job at as_of

  friend bool operator==(const TimetablePod&, const TimetablePod&) = default;
};

// JSON has slice, plan and cycle beside the other fields; here they are the Timetable, whose
// pods_count is the size of `pods`. Decoding does not timetable::validate it: an agent reports an
// invalid one in its status.
struct NodeTimetableSpec {
  std::int64_t term = 0;
  std::int64_t revision = 0;
  std::optional<base::Instant> as_of{};
  std::vector<TimetablePod> pods{};
  timetable::Timetable timetable{};

  friend bool operator==(const NodeTimetableSpec&, const NodeTimetableSpec&) = default;
};

// The node's cores, as its kernel numbers them.
struct NodeTopology {
  std::int32_t sockets = 0;
  std::int32_t cores_per_socket = 0;
  std::int32_t threads_per_core = 0;
  std::string cpu_ids{};  // "0-7"

  friend bool operator==(const NodeTopology&, const NodeTopology&) = default;
};

struct PodReference {
  std::string ns{};  // "namespace"
  std::string name{};

  friend auto operator<=>(const PodReference&, const PodReference&) = default;
};

// An agent's report. The first three say which object it obeys, which may be older than the one
// that is stored.
struct NodeTimetableStatus {
  std::optional<std::int64_t> observed_generation{};  // of the object that is obeyed
  std::optional<std::int64_t> observed_term{};
  std::optional<std::int64_t> observed_revision{};
  std::optional<NodeTopology> topology{};
  std::vector<PodReference> stuck{};    // pods that do not freeze or thaw
  std::vector<PodReference> exempt{};   // that the agent may not switch
  std::vector<PodReference> foreign{};  // frozen by another program
  std::optional<std::int64_t> clock_error_micros{};
  std::string agent_version{};
  Conditions conditions{};  // Ready, ClockSynchronized

  friend bool operator==(const NodeTimetableStatus&, const NodeTimetableStatus&) = default;
};

struct NodeTimetable {
  static constexpr ResourceInfo kResource{kGroup, kGroupVersion, "nodetimetables", "NodeTimetable",
                                          false};

  ObjectMeta metadata{};
  NodeTimetableSpec spec{};
  NodeTimetableStatus status{};

  friend bool operator==(const NodeTimetable&, const NodeTimetable&) = default;
};

template <>
base::Result<NodeTimetable> decode<NodeTimetable>(const JsonView& object);
template <>
const KnownFields& known_fields<NodeTimetable>();
nlohmann::json encode(const NodeTimetable& timetable);

}  // namespace kube
