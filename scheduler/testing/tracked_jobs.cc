#include "scheduler/testing/tracked_jobs.h"

#include <cctype>
#include <sstream>
#include <vector>

#include "base/check.h"

namespace sched::testing {
namespace {

constexpr std::string_view kNodes = "abcdefgh";

// 6.2 backwards: the settings that give this unit.
ClusterParameters parameters_of(gang::Unit unit) {
  ClusterParameters parameters;
  // SUSPEND by partition priority, so that jobs of higher tiers cast shadows under which those
  // below are stopped.
  parameters.gang = true;
  parameters.memory = false;
  parameters.preempt_type = PreemptType::kPartitionPriority;
  parameters.preempt_mode = PreemptMode::kSuspend;
  parameters.timetable_lead = base::Duration{0};
  switch (unit) {
    case gang::Unit::kNode:
      parameters.select = SelectType::kLinear;
      break;
    case gang::Unit::kCore:
      parameters.unit = SelectUnit::kCore;
      break;
    case gang::Unit::kCpuCount:
      parameters.unit = SelectUnit::kCpu;
      parameters.task_affinity = false;
      break;
    case gang::Unit::kSocket:
      parameters.unit = SelectUnit::kSocket;
      break;
  }
  CHECK(gang::unit_of(parameters) == unit);
  return parameters;
}

}  // namespace

// "H2 A1!": partitions by letter and tier; "!" = its jobs are canceled under a shadow. Eight nodes
// a to h of two sockets of two cores.
TrackedJobs::TrackedJobs(std::string_view partitions, gang::Unit unit) {
  configuration.cluster = parameters_of(unit);
  std::vector<std::string> names;
  for (const char name : kNodes) {
    NodeSpec spec;
    spec.name = std::string{name};
    spec.sockets = 2;
    spec.cores_per_socket = 2;
    spec.cpus = 4;
    spec.memory = MemoryMiB{8000};
    CHECK(cluster.upsert_node(spec).ok());
    names.push_back(spec.name);
  }
  std::istringstream words{std::string{partitions}};
  for (std::string word; words >> word;) {
    PartitionConfig config;
    config.name = word.substr(0, 1);
    config.nodes = names;
    config.over_subscribe = OverSubscribe::kForce;
    config.priority_tier = static_cast<std::uint16_t>(word.at(1) - '0');
    if (word.back() == '!') config.preempt_mode = PreemptMode::kCancel;
    configuration.partitions.push_back(config);
  }
  cluster.configure(configuration);
  cluster.settle();
  usage.reset();
}

PartitionIndex TrackedJobs::partition(char name) const {
  return *cluster.find_partition(std::string{name});
}

NodeIndex TrackedJobs::node(char name) const {
  return *cluster.find_node(std::string{name});
}

// Reads "ab": all of a and b; "a01": cores 0 and 1 of a.
Allocation TrackedJobs::place(std::string_view text) const {
  Allocation allocation;
  for (std::size_t i = 0; i < text.size();) {
    NodeAllocation use;
    use.node = node(text[i++]);
    while (i < text.size() && std::isdigit(static_cast<unsigned char>(text[i])) != 0) {
      use.cores.set(text[i++] - '0');
    }
    if (use.cores.empty()) use.cores = CoreSet::first(cluster.node(use.node).cores());
    use.cpus = use.cores.count();
    allocation.nodes.push_back(use);
  }
  return allocation;
}

// Placed by the test: no selector has a say.
Job& TrackedJobs::add(std::int64_t id, char partition_name, std::string_view where) {
  JobRequest request;
  request.id = JobId{id};
  Job& job = jobs.add(JobFacts::of(request));
  job.state = JobState::kRunning;
  job.partition = partition(partition_name);
  job.allocation = place(where);
  job.ready = true;
  usage.add(job);
  return job;
}

// Frees its units at once: jobs do not complete step by step here.
void TrackedJobs::erase(std::int64_t id) {
  usage.remove(job(id));
  jobs.erase(JobId{id});
}

}  // namespace sched::testing
