// The wall clock and the local zone: what a person at the keyboard means by "14:30".
#pragma once

#include "slurm/quantities.h"

namespace cli {

slurm::Now local_now();

}  // namespace cli
