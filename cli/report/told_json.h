// The decisions of a told run as JSON, the format that scheduler/testdata/conformance compares.
#pragma once

#include <string>

#include "scheduler/simulate/told.h"

namespace cli {

// Returns one line per step, ends with a newline.
std::string told_json(const simulate::Scenario& scenario, const simulate::ToldReport& report);

}  // namespace cli
