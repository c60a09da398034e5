// The wall clock and the local zone: what a person at the keyboard means by "14:30".
#pragma once

#include "cli/slurm/quantities.h"

namespace cli {

Now local_now();

}  // namespace cli
