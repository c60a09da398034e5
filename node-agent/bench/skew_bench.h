// skew/2: two agents as on two nodes of one CPU each, that CPU busy with the pods; how far apart
// their incoming pods run for the first time after the same boundary.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

namespace agent::bench {

// {"name", "p50_us", "p99_us", "policy"}; without figures, but with "skipped", on a machine of one
// CPU.
nlohmann::ordered_json measure_skew(const std::string& name, bool fifo, int rounds);

}  // namespace agent::bench
