// Slurm's spelling of trackable resources: "cpu=4,mem=2G,node=1" (sacctmgr(1), slurm.conf(5)).
// Pure.
#pragma once

#include <string_view>

#include "base/result.h"
#include "scheduler/model/tres.h"

namespace slurm {

// Limits: cpu, mem (MiB, or with K, M, G or T), node, billing, gres/gpu and gres/gpu:TYPE. −1 sets
// none. `what` begins the message. Other GRES, licenses and energy are refused: nothing counts
// them.
base::Result<sched::TresLimits> parse_tres_limits(std::string_view what, std::string_view text);

// PriorityWeightTRES: whole numbers.
base::Result<sched::TresWeights> parse_tres_weights(std::string_view what, std::string_view text);

// Reads TRESBillingWeights, in millionths: decimal numbers; of memory per MiB, or with K, M, G or T
// per that unit.
base::Result<sched::TresWeights> parse_billing_weights(std::string_view what,
                                                       std::string_view text);

// Parses a decimal number in millionths: "0.25" is 250000. Not negative.
base::Result<std::int64_t> parse_millionths(std::string_view what, std::string_view text);

}  // namespace slurm
