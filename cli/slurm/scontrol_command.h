// scontrol, as far as scripts call it: show job, show hostnames and hostlists, and what changes
// jobs: hold, release, requeue, suspend, resume.
#pragma once

#include <span>
#include <string>

#include "cli/program.h"
#include "cli/slurm/job_facts.h"
#include "cli/slurm/words.h"

namespace cli {

int run_scontrol(std::span<const std::string> arguments, const WithCluster& with_cluster,
                 Output output);

// The record of `scontrol show job`.
std::string job_record(const JobFacts& facts);

}  // namespace cli
