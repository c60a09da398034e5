// The local zone: what a person at the keyboard means by "14:30", today and after the clocks are
// changed.
#pragma once

#include "slurm/quantities.h"

namespace cli {

// Returns the time in this process's zone (TZ, /etc/localtime).
slurm::Now local_time(base::Instant now);

}  // namespace cli
