// A NodeTimetable as one line of JSON and back: what the journal keeps.
#pragma once

#include <string>
#include <string_view>

#include "api/node_timetable.h"
#include "base/result.h"

namespace agent {

// Without status and without what the server adds to the metadata.
std::string timetable_to_json(const kube::NodeTimetable& timetable);

// Parsed, decoded and valid (timetable_gate.h). kInvalidArgument says what is wrong with it.
base::Result<kube::NodeTimetable> timetable_from_json(std::string_view text);

}  // namespace agent
