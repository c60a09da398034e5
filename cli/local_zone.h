// The local zone: what a person at the keyboard means by "14:30", today and after the clocks are
// changed.
#pragma once

#include <string_view>

#include "base/result.h"
#include "slurm/quantities.h"

namespace cli {

// Returns the time in this process's zone (TZ, /etc/localtime).
slurm::Now local_time(base::Instant now);

// Reads an instant as commands do that look back: a time of the day alone is today's, where
// parse_instant() takes the next one.
base::Result<base::Instant> past_instant(std::string_view what, std::string_view text,
                                         const slurm::Now& now);

}  // namespace cli
