// The demo's report: what the probes measured, as report.json and as a few lines for people, and
// which of it is not as it must be.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "base/time.h"
#include "e2e/probe/analysis.h"

namespace devcluster {

struct Report {
  base::Duration slice{};
  probe::Findings findings;
  double api_writes_per_switch = 0;
};

// A figure that is not as expected. `hard`: the demo has failed; otherwise the machine may be busy.
struct Complaint {
  std::string sentence;
  bool hard = true;
  friend bool operator==(const Complaint&, const Complaint&) = default;
};

nlohmann::json report_json(const Report& report);
std::vector<Complaint> complaints(const Report& report);
std::vector<std::string> report_lines(const Report& report);

}  // namespace devcluster
