// scontrol show: the records of jobs, nodes and partitions.
#pragma once

#include <string>
#include <vector>

#include "api/partition.h"
#include "cli/cluster/session.h"
#include "cli/program.h"
#include "cli/slurm/job_facts.h"
#include "cli/slurm/node_facts.h"

namespace cli {

// Returns the record of `scontrol show job`.
std::string job_record(const JobFacts& facts);

struct ShowOptions {
  bool one_line = false;  // a line for each record
};

// "" shows all of them.
int show_job(const Session& session, const std::string& id, ShowOptions options, Output output);
int show_node(const Session& session, const std::string& hostlist, ShowOptions options,
              Output output);
int show_partition(const Session& session, const std::string& name, ShowOptions options,
                   Output output);
int show_licenses(const Session& session, const std::string& name, ShowOptions options,
                  Output output);
int show_config(const Session& session, Output output);
// Shows if an operator holds its Lease, which stands for slurmctld.
int show_ping(const Session& session, Output output);

}  // namespace cli
