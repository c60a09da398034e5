// Scenario files: YAML in, simulate::Scenario out. The format is described in
// docs/scenarios.md; the recordings in scheduler/testdata/conformance are written in it.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "scheduler/simulate/scenario.h"

namespace cli {

inline constexpr std::size_t kScenarioBytesMax = 64U << 20U;
inline constexpr std::size_t kScenarioNodesMax = 65'536;
inline constexpr std::size_t kScenarioInputsMax = 1'000'000;

// Reads a scenario. An error, for example about an unknown key or an impossible value, names file,
// line and key and says what is allowed. `file` is only for messages. Pure.
base::Result<simulate::Scenario> read_scenario(std::string_view text, const std::string& file);

}  // namespace cli
