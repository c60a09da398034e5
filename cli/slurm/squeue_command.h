// squeue, as scripts and tools call it.
#pragma once

#include <span>
#include <string>

#include "cli/program.h"
#include "cli/slurm/job_facts.h"
#include "cli/slurm/reference.h"
#include "cli/slurm/words.h"

namespace cli {

int run_squeue(std::span<const std::string> arguments, const WithCluster& with_cluster,
               Output output);

// Returns one line of -o: "%.18i %j".
std::string squeue_line(const std::string& format, const JobFacts& facts);

SlurmReference squeue_reference();

}  // namespace cli
