// squeue, as scripts and tools call it.
#pragma once

#include <span>
#include <string>

#include "cli/program.h"
#include "cli/slurm/job_facts.h"
#include "cli/slurm/words.h"

namespace cli {

int run_squeue(std::span<const std::string> arguments, const WithCluster& with_cluster,
               Output output);

// One line of -o: "%.18i %j". kInvalidArgument: a letter that is not there yet, by name.
base::Result<std::string> format_line(const std::string& format, const JobFacts& facts);
// The same of the headings.
base::Result<std::string> format_heading(const std::string& format);

}  // namespace cli
