#include "cli/slurm/job_facts.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <ctime>

#include "api/partition.h"
#include "api/scheduler_config.h"
#include "cli/cluster/job_time.h"
#include "cli/cluster/read.h"
#include "cli/local_zone.h"
#include "slurm/hostlist.h"
#include "slurm/quantities.h"
#include "slurm/text.h"

namespace cli {
namespace {

struct State {
  const char* code;
  const char* name;
};
// SOURCE: squeue(1), "JOB STATE CODES".
constexpr std::array kStates = {
    State{"PD", "PENDING"},   State{"R", "RUNNING"},         State{"S", "SUSPENDED"},
    State{"CD", "COMPLETED"}, State{"CA", "CANCELLED"},      State{"F", "FAILED"},
    State{"TO", "TIMEOUT"},   State{"NF", "NODE_FAIL"},      State{"PR", "PREEMPTED"},
    State{"DL", "DEADLINE"},  State{"OOM", "OUT_OF_MEMORY"}, State{"CG", "COMPLETING"}};

// The template and the script are most of a job's text, and nothing of them is shown.
const kube::KnownFields& fields_of_jobs() {
  static const kube::KnownFields kFields = [] {
    kube::KnownFields fields = kube::known_fields<kube::Job>();
    fields.remove({"spec", "template"});
    fields.remove({"spec", "batch", "script"});
    fields.remove({"spec", "batch", "environment"});
    return fields;
  }();
  return kFields;
}

const PartitionDefaults* partition_of(const kube::Job& job,
                                      const std::vector<PartitionDefaults>& partitions) {
  const std::string name = !job.status.partition.empty()  ? job.status.partition
                           : !job.spec.partitions.empty() ? job.spec.partitions.front()
                                                          : "";
  const auto found = std::ranges::find_if(partitions, [&](const PartitionDefaults& partition) {
    return name.empty() ? partition.is_default : partition.name == name;
  });
  return found == partitions.end() ? nullptr : &*found;
}

// SOURCE: slurmctld shows such a reason for a script that a signal has ended, too.
std::string reason_of(const kube::Job& job, const std::string& state_code, int exit_signal) {
  if (state_code == "F") return exit_signal != 0 ? "JobLaunchFailure" : "NonZeroExitCode";
  if (state_code == "TO") return "TimeLimit";
  const bool waits = state_code == "PD" || state_code == "S";
  return waits && !job.status.reason.empty() ? job.status.reason : "None";
}

void set_sizes(JobFacts& facts, const kube::Job& job, const PartitionDefaults* partition) {
  const kube::JobResources& asked = job.spec.resources;
  facts.nodes = node_count(job);
  facts.tasks = asked.tasks.value_or(asked.tasks_per_node.value_or(1) * facts.nodes);
  facts.cpus = facts.tasks * asked.cpus_per_task.value_or(1);
  if (job.status.allocation) {
    facts.nodes = job.status.allocation->nodes;
    facts.cpus = job.status.allocation->cpus;
  }
  // SOURCE: slurmctld estimates the nodes of a job that waits by the CPUs of a node.
  if (!job.status.allocation && partition != nullptr && partition->cpus_per_node > 0) {
    const int per_node = partition->cpus_per_node;
    facts.nodes = std::max(facts.nodes, (facts.cpus + per_node - 1) / per_node);
  }
  facts.memory_per_cpu = asked.memory_per_cpu;
  facts.memory_per_node = asked.memory_per_node;
  const bool has_memory =
      asked.memory_per_cpu || asked.memory_per_node || asked.all_memory.value_or(false);
  if (partition != nullptr && !has_memory) {
    facts.memory_per_cpu = partition->memory_per_cpu;
    facts.memory_per_node = partition->memory_per_node;
  }
  facts.limit = job.status.time_limit ? job.status.time_limit : job.spec.schedule.time_limit;
  if (!facts.limit && partition != nullptr) facts.limit = partition->time;
}

}  // namespace

base::Result<std::vector<kube::Job>> list_jobs(const Session& session, Output output) {
  auto jobs = list_all<kube::Job>(session, "", output, &fields_of_jobs());
  if (!jobs && jobs.error().code == base::Code::kPermissionDenied) {
    jobs = list_all<kube::Job>(session, session.ns, output, &fields_of_jobs());
  }
  if (!jobs) return jobs.error();
  std::erase_if(*jobs, [](const kube::Job& job) { return !job.status.job_id; });
  std::ranges::sort(*jobs, {}, [](const kube::Job& job) { return *job.status.job_id; });
  return jobs;
}

// A user who may not read these sees jobs without them.
base::Result<std::vector<PartitionDefaults>> list_partition_defaults(const Session& session,
                                                                     Output output) {
  const auto partitions = list_all<kube::Partition>(session, "", output);
  if (!partitions) {
    const bool is_hidden = partitions.error().code == base::Code::kPermissionDenied;
    if (is_hidden) return std::vector<PartitionDefaults>{};
    return partitions.error();
  }
  const auto config = session.client.get<kube::SchedulerConfig>(
      {.ns = "", .name = std::string{kube::kSchedulerConfigName}});
  std::vector<PartitionDefaults> all;
  for (const kube::Partition& partition : *partitions) {
    PartitionDefaults one{.name = partition.metadata.name};
    one.is_default = partition.spec.is_default.value_or(false);
    const std::int32_t nodes = partition.status.nodes.value_or(0);
    if (nodes > 0) one.cpus_per_node = partition.status.cpus.value_or(0) / nodes;
    if (const auto& limits = partition.spec.limits) {
      one.time = limits->default_time ? limits->default_time : limits->max_time;
    }
    const auto& memory = partition.spec.memory ? partition.spec.memory
                         : config.ok()         ? config->spec.memory
                                               : partition.spec.memory;
    if (memory) {
      one.memory_per_cpu = memory->default_per_cpu;
      one.memory_per_node = memory->default_per_node;
    }
    all.push_back(std::move(one));
  }
  return all;
}

JobFacts facts_of(const kube::Job& job, const std::vector<PartitionDefaults>& partitions,
                  base::Instant now) {
  const PartitionDefaults* const partition = partition_of(job, partitions);
  JobFacts facts{.id = job.status.job_id.value_or(0), .user = job.metadata.ns, .job = &job};
  const bool has_name = job.spec.batch && !job.spec.batch->name.empty();
  facts.name = has_name ? job.spec.batch->name : job.metadata.name;
  facts.partition = job.status.partition;
  if (facts.partition.empty() && partition != nullptr) facts.partition = partition->name;
  // Turns are not shown: to Slurm's users a job that takes turns runs.
  const JobMoment moment = job_moment(
      job, [](const std::string&) { return nullptr; }, now);
  // CF is a node that boots; here it would be a pod that starts.
  facts.state_code = moment.code == "CF" ? "R" : moment.code;
  for (const State& state : kStates) {
    if (facts.state_code == state.code) facts.state = state.name;
  }
  facts.run_time = moment.run_time;
  const int code = job.status.exit_code.value_or(0);
  facts.exit_signal = code > 128 ? code - 128 : 0;
  facts.exit_code = code > 128 ? 0 : code;
  facts.reason = reason_of(job, facts.state_code, facts.exit_signal);
  if (job.status.allocation) {
    facts.hostlist = job.status.allocation->hostlist;
    const auto nodes = slurm::expand_hostlist(facts.hostlist);
    if (nodes.ok() && !nodes->empty()) facts.batch_host = nodes->front();
  }
  set_sizes(facts, job, partition);
  facts.priority = job.spec.control.hold.value_or(false) ? 0 : job.status.priority.value_or(0);
  return facts;
}

std::string state_code_of(const std::string& text) {
  for (const State& state : kStates) {
    if (slurm::same_word(text, state.code) || slurm::same_word(text, state.name)) return state.code;
  }
  return "";
}

std::string all_states() {
  std::string names;
  for (const State& state : kStates) names += (names.empty() ? "" : ",") + std::string{state.name};
  return names;
}

std::string slurm_time(const std::optional<base::Instant>& instant) {
  if (!instant) return "Unknown";
  const base::Instant local = *instant + local_time(*instant).zone;
  const std::time_t seconds = base::micros_since_epoch(local) / 1'000'000;
  std::tm parts{};
  ::gmtime_r(&seconds, &parts);
  char text[32];
  const std::size_t size = std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S", &parts);
  return {text, size};
}

std::string slurm_memory(kube::Bytes bytes) {
  constexpr std::int64_t kMiB = 1 << 20;
  const std::int64_t mib = bytes.value() / kMiB;
  constexpr std::array kUnits = {"M", "G", "T", "P"};
  double amount = static_cast<double>(mib);
  std::size_t unit = 0;
  while (amount >= 1024 && unit + 1 < kUnits.size()) {
    amount /= 1024;
    ++unit;
  }
  const bool is_whole = amount == static_cast<double>(static_cast<std::int64_t>(amount));
  char text[32];
  std::snprintf(text, sizeof text, is_whole ? "%.0f%s" : "%.2f%s", amount, kUnits[unit]);
  return text;
}

}  // namespace cli
