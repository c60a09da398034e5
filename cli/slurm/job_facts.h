// What Slurm's commands say of a job, from its object: the words are Slurm's. Pure, but for the
// list.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "api/job.h"
#include "base/result.h"
#include "base/time.h"
#include "cli/cluster/session.h"
#include "cli/program.h"

namespace cli {

struct JobFacts {
  std::int64_t id = 0;
  std::string name;
  std::string user;  // the namespace
  std::string partition;
  std::string state;       // "PENDING"
  std::string state_code;  // "PD"
  std::string reason;      // "None" if there is none
  std::string hostlist;    // that it has, or had; "" = none
  std::string batch_host;
  int nodes = 0;
  int cpus = 0;
  int tasks = 0;
  std::optional<kube::Bytes> memory_per_cpu{};
  std::optional<kube::Bytes> memory_per_node{};
  std::optional<base::Duration> limit{};  // absent: none
  base::Duration run_time{};
  std::int64_t priority = 0;
  int exit_code = 0;
  int exit_signal = 0;
  const kube::Job* job = nullptr;
};

// All jobs that have a number, by it. Jobs of all namespaces, or of the session's own if the others
// may not be read.
base::Result<std::vector<kube::Job>> list_jobs(const Session& session, Output output);

// The memory and time that a job of a partition has if it does not say so.
struct PartitionDefaults {
  std::string name;
  bool is_default = false;
  std::optional<base::Duration> time{};
  std::optional<kube::Bytes> memory_per_cpu{};
  std::optional<kube::Bytes> memory_per_node{};
  int cpus_per_node = 0;  // on average; 0: not known
};
base::Result<std::vector<PartitionDefaults>> list_partition_defaults(const Session& session,
                                                                     Output output);

// `job` must live longer than the facts.
JobFacts facts_of(const kube::Job& job, const std::vector<PartitionDefaults>& partitions,
                  base::Instant now);

// The name of a state for one of its two spellings in any case, "" for none.
std::string state_code_of(const std::string& text);
// All states, as Slurm lists them in an error.
std::string all_states();

// "2026-01-01T00:00:00" in local time, "Unknown" if absent.
std::string slurm_time(const std::optional<base::Instant>& instant);
// "100M", "2G", "1.50G".
std::string slurm_memory(kube::Bytes bytes);

}  // namespace cli
