// switch/*: from the instant to the last thaw, beside a bare loop that only writes the same files
// and reads back `frozen`. The two take turns, a few switches each, on the same pods.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

namespace agent::bench {

struct SwitchShape {
  std::string name{};
  int pods = 1;   // that go off, and as many that come on
  int tasks = 1;  // busy ones in each
};

// {"name", "p50_us", "p99_us", "bare_p50_us", "bare_p99_us", "policy"}. `rounds`: switches of each
// of the two.
nlohmann::ordered_json measure_switch(const SwitchShape& shape, int rounds);

}  // namespace agent::bench
