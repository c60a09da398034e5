// Changes that would let a waiting job start sooner: the operator is asked about jobs that differ
// from it in one thing each.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "api/job.h"
#include "api/partition.h"
#include "base/result.h"
#include "cli/cluster/session.h"

namespace cli {

struct SoonerVariant {
  std::string change{};  // "with a time limit of 1:00:00", "in partition fast"
  kube::JobSpec spec{};
};

// Returns a shorter time limit, fewer nodes, other partitions; a few of them. None if nothing of it
// can be changed alone. Pure.
std::vector<SoonerVariant> sooner_variants(const kube::Job& job,
                                           const std::vector<kube::Partition>& partitions);

// `text` is {"ns","name"}. Returns {"asOf":µs,"same":ANSWER,"variants":[{"change",…ANSWER}]} with
// "start" (µs, or null: it would not start), "partition" and "stops" (whether it would stop other
// jobs) in each ANSWER; "same" is about the job as it is, if it were submitted once more.
// kInvalidArgument: no answer would help the job, as it does not wait for its turn.
base::Result<std::string> page_sooner(const Session& session, std::string_view text);

}  // namespace cli
