// The words of SchedulerParameters that begin with bf_ (8.2).
#pragma once

#include <string_view>

#include "base/result.h"
#include "scheduler/model/config.h"

namespace slurm {

// `key` is what the words are a list of; `option` is one word of it, with its value.
base::Status read_backfill_option(sched::BackfillParameters& backfill, std::string_view key,
                                  std::string_view option);

}  // namespace slurm
