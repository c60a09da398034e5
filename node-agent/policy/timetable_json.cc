#include "node-agent/policy/timetable_json.h"

#include <nlohmann/json.hpp>

#include "node-agent/policy/timetable_gate.h"

namespace agent {

// Writes one line, for the journal: what a new process needs to go on before the API server
// answers. Status and labels are left out, and the resource version, which would change the journal
// with each write of the status.
std::string timetable_to_json(const kube::NodeTimetable& timetable) {
  kube::NodeTimetable kept;
  kept.metadata.name = timetable.metadata.name;
  kept.metadata.uid = timetable.metadata.uid;
  kept.spec = timetable.spec;
  return kube::encode(kept).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

// Checked like one from the API server: the journal is a file, and a file can be changed.
base::Result<kube::NodeTimetable> timetable_from_json(std::string_view text) {
  const nlohmann::json json = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (json.is_discarded()) return base::invalid_argument("timetable: not JSON");
  base::Result<kube::NodeTimetable> timetable = kube::decode<kube::NodeTimetable>(json);
  if (!timetable) return timetable.error();
  if (const base::Status status = validate(*timetable); !status) return status.error();
  return timetable;
}

}  // namespace agent
