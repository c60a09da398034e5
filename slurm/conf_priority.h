// The keys of slurm.conf that are about priorities (conf.h reads them with the others). Pure.
#pragma once

#include <span>
#include <string_view>

#include "base/result.h"
#include "scheduler/model/config.h"
#include "slurm/conf_actions.h"

namespace slurm {

bool is_priority_key(std::string_view key);
// REQUIRES: all of them are such keys.
base::Status read_priority_keys(sched::PriorityParameters& parameters,
                                std::span<const KeyValue> keys);

}  // namespace slurm
