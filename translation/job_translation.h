// Job -> sched::JobRequest, judged against the configuration in force and the nodes that exist.
// Pure.
#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "api/job.h"
#include "kube/api/node.h"
#include "kube/api/pod.h"
#include "scheduler/model/config.h"
#include "scheduler/model/job.h"
#include "translation/config_translation.h"
#include "translation/template_check.h"

namespace control {

// The most that a partition can hold, from the nodes that exist now.
struct PartitionCapacity {
  int nodes = 0;
  int cpus_per_node_max = 0;
  friend bool operator==(const PartitionCapacity&, const PartitionCapacity&) = default;
};

struct JobContext {
  const sched::Configuration& configuration;
  const std::map<std::string, PartitionCapacity>& capacity;  // by partition name
  // The nodes that its template cannot use (NodeClasses).
  std::shared_ptr<const std::vector<std::string>> unusable_nodes;
  const OperatorParameters& parameters;
};

struct JobVerdict {
  std::optional<sched::JobRequest> request;  // present iff there is no problem
  std::vector<std::string> problems;         // whole sentences: field, value, what to do
  bool partition_missing = false;            // one of them: a partition that does not exist
};

// Returns the job's request under this number and submit time. Checks what check_job and
// check_template found once more into the verdict, then what needs the cluster: partitions, QOS,
// account, sizes, memory and grace period of the template.
JobVerdict translate_job(const kube::Job& job, const TemplateFacts& pod_template, sched::JobId id,
                         base::Instant submit_time, const JobContext& context);

// Returns the partitions that the job may run in as squeue shows them: "a,b", or the default one;
// "" where it names none and none is the default.
std::string partition_names(const kube::JobSpec& spec, const sched::Configuration& configuration);

// Returns the spec's request, unchecked: for a job that runs already, whatever its spec is worth
// today.
sched::JobRequest plain_request(const kube::Job& job, sched::JobId id, base::Instant submit_time);
// Takes over what may change while a job has nodes (check_change), unchecked.
void set_what_may_change(const kube::JobSpec& spec, sched::JobRequest& request);

// Returns the longest grace period that a pod of any job may have, killWait + graceTime, and at
// least a second: 0 would remove the record of a process that may still run.
std::chrono::seconds longest_grace(const sched::Configuration& configuration);

// True for pods with devices: kube-scheduler binds them, and they tolerate the taints of nodes with
// some. Gated pods are the exception.
bool needs_device_nodes(const kube::JobSpec& spec, const TemplateFacts& pod_template);

// A taint that stands for the state of its node, or is our own: every job's pods tolerate it.
bool is_state_taint(const kube::Taint& taint);

// Returns true if the node's labels match the nodeSelector and all its taints are tolerated.
// Taints that stand for the state of the node do not count, and neither does PreferNoSchedule.
bool can_use(const kube::Labels& node_selector, const std::vector<kube::Toleration>& tolerations,
             const kube::Node& node);

}  // namespace control
