// A told run for a person: one line per thing that changed.
#pragma once

#include <string>

#include "scheduler/simulate/told.h"

namespace cli {

std::string told_text(const simulate::Scenario& scenario, const simulate::ToldReport& report);

}  // namespace cli
