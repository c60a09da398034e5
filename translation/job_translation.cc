#include "translation/job_translation.h"

#include <algorithm>
#include <iterator>

#include "api/array_status.h"
#include "api/job_size.h"
#include "api/wellknown.h"
#include "base/natural_order.h"
#include "scheduler/model/cluster.h"
#include "slurm/array.h"
#include "slurm/gres.h"
#include "slurm/hostlist.h"
#include "translation/devices.h"
#include "translation/job_check.h"
#include "translation/units.h"

namespace control {
namespace {

// The rule of kube-scheduler and kubelet: an empty effect matches all effects, an empty key with
// Exists all taints. Pods that name their node pass kubelet's check of NoExecute taints only, so
// for the other effects this is the only check there is.
bool tolerates(const std::vector<kube::Toleration>& tolerations, const kube::Taint& taint) {
  return std::any_of(tolerations.begin(), tolerations.end(), [&](const kube::Toleration& t) {
    if (!t.effect.empty() && t.effect != taint.effect) return false;
    if (t.key.empty()) return t.op == "Exists";
    if (t.key != taint.key) return false;
    return t.op == "Exists" || t.value == taint.value;
  });
}

// Empty for a list that is absent or does not parse (check_job says so). In natural order and
// without repetitions, as the scheduler's own order of nodes is.
std::vector<std::string> names_of(const std::optional<std::string>& hostlist) {
  if (!hostlist) return {};
  auto names = slurm::expand_hostlist(*hostlist);
  if (!names.ok()) return {};
  std::sort(names->begin(), names->end(), base::natural_less);
  names->erase(std::unique(names->begin(), names->end()), names->end());
  return std::move(*names);
}

// Returns the API's words for --oversubscribe and --exclusive.
sched::Sharing translate(kube::JobSharing sharing) {
  switch (sharing) {
    case kube::JobSharing::kAny:
      return sched::Sharing::kAny;
    case kube::JobSharing::kOverSubscribe:
      return sched::Sharing::kOverSubscribe;
    case kube::JobSharing::kNode:
      return sched::Sharing::kNode;
    case kube::JobSharing::kUser:
      return sched::Sharing::kUser;
  }
  return sched::Sharing::kAny;
}

// Returns the partition in force of that name; nullptr if there is none. A linear search: clusters
// have few partitions, and the names come from a user.
const sched::PartitionConfig* find_partition(const sched::Configuration& configuration,
                                             const std::string& name) {
  for (const auto& partition : configuration.partitions) {
    if (partition.name == name) return &partition;
  }
  return nullptr;
}

// At most one is the default (config_acceptance.cc); nullptr if none is.
const sched::PartitionConfig* default_partition(const sched::Configuration& configuration) {
  for (const auto& partition : configuration.partitions) {
    if (partition.is_default) return &partition;
  }
  return nullptr;
}

// For messages: users see at once what they could have written.
std::string partitions_to_name(const sched::Configuration& configuration) {
  std::string names;
  for (const auto& partition : configuration.partitions) {
    names += (names.empty() ? "" : ", ") + partition.name;
  }
  return names.empty() ? "name one when an administrator has created it; there is none yet"
                       : "name one of: " + names;
}

// Returns the partitions that the job may run in; problems for those that do not exist.
std::vector<const sched::PartitionConfig*> find_partitions(const kube::JobSpec& spec,
                                                           const JobContext& context,
                                                           std::vector<std::string>& problems) {
  std::vector<const sched::PartitionConfig*> found;
  for (const std::string& name : spec.partitions) {
    if (const auto* partition = find_partition(context.configuration, name)) {
      found.push_back(partition);
    } else {
      problems.push_back("spec.partitions: there is no partition \"" + name + "\"; " +
                         partitions_to_name(context.configuration));
    }
  }
  // A list of which some do not exist is refused as a whole: the job would otherwise wait in the
  // rest without its user having noticed the error.
  if (!spec.partitions.empty()) return found;
  if (const auto* partition = default_partition(context.configuration)) return {partition};
  problems.push_back("spec.partitions: is absent and no partition is the default; " +
                     partitions_to_name(context.configuration));
  return found;
}

// Returns why the job can never run in a partition of this size; empty if it may. Only sizes that
// can never fit count; whether nodes are free, down or reserved is the scheduler's question. A
// partition without known CPUs is not judged by them.
std::string why_too_small(const sched::JobRequest& request, const std::string& partition,
                          const PartitionCapacity& has) {
  if (request.min_nodes > has.nodes) {
    return "spec.resources.nodes.min: " + std::to_string(request.min_nodes) +
           " nodes are asked for, but partition \"" + partition + "\" has " +
           std::to_string(has.nodes) + "; lower nodes.min or name a larger partition";
  }
  // With overcommit the number of tasks says nothing about CPUs.
  if (!request.tasks || request.overcommit || has.cpus_per_node_max == 0) return "";
  const std::int64_t nodes = std::min(request.max_nodes.value_or(has.nodes), has.nodes);
  // An upper bound: some nodes may have fewer CPUs than the largest one.
  const std::int64_t cpus = nodes * has.cpus_per_node_max;
  const std::int64_t wanted = std::int64_t{*request.tasks} * request.cpus_per_task;
  if (wanted <= cpus) return "";
  return "spec.resources.tasks: " + std::to_string(*request.tasks) + " tasks of " +
         std::to_string(request.cpus_per_task) + " CPUs need " + std::to_string(wanted) +
         " CPUs, but " + std::to_string(nodes) + " nodes of partition \"" + partition +
         "\" have at most " + std::to_string(cpus) + "; lower tasks or raise nodes.max";
}

// Adds a problem if no partition that the job names can ever hold it. A partition of few large
// nodes may hold what one of many small nodes cannot, so each is asked; the problem names the one
// with the most nodes.
void check_capacity(const sched::JobRequest& request,
                    const std::vector<const sched::PartitionConfig*>& partitions,
                    const JobContext& context, std::vector<std::string>& problems) {
  std::string problem;
  int nodes_of_problem = -1;
  for (const auto* partition : partitions) {
    const auto found = context.capacity.find(partition->name);
    const PartitionCapacity has =
        found == context.capacity.end() ? PartitionCapacity{} : found->second;
    std::string why = why_too_small(request, partition->name, has);
    // One partition that may hold it is enough.
    if (why.empty()) return;
    if (has.nodes <= nodes_of_problem) continue;
    nodes_of_problem = has.nodes;
    problem = std::move(why);
  }
  if (!problem.empty()) problems.push_back(std::move(problem));
}

// The freezer stops what the runtime puts into the cgroups of the pod; that it does so is for an
// administrator to say.
void check_runtime_class(const TemplateFacts& facts, const std::vector<std::string>& allowed,
                         std::vector<std::string>& problems) {
  if (!facts.runtime_class || std::ranges::find(allowed, *facts.runtime_class) != allowed.end()) {
    return;
  }
  std::string names;
  for (const std::string& name : allowed) names += (names.empty() ? "" : ", ") + name;
  problems.push_back("spec.template.spec.runtimeClassName: \"" + *facts.runtime_class +
                     "\": is not allowed, the freezer needs a runtime that is runc underneath; "
                     "remove it, or ask an administrator to add it to runtimeClasses of the "
                     "SchedulerConfig (" +
                     (names.empty() ? "it allows none" : "it allows " + names) + ")");
}

// Allocations by kube-scheduler are not counted, so two such jobs must not meet on a node: they
// get whole nodes. Where the partition stacks jobs over whole nodes, too (R4.1), they are refused.
void isolate(const TemplateFacts& facts,
             const std::vector<const sched::PartitionConfig*>& partitions,
             sched::JobRequest& request, std::vector<std::string>& problems) {
  if (!facts.has_resource_claims) return;
  request.sharing = sched::Sharing::kNode;
  for (const auto* partition : partitions) {
    if (partition->over_subscribe != sched::OverSubscribe::kForce || partition->max_share <= 1) {
      continue;
    }
    problems.push_back(
        "spec.template.spec.resourceClaims: such devices are not counted, so the job needs nodes "
        "that it shares with no other, and all jobs of partition \"" +
        partition->name +
        "\" take turns; name a partition whose overSubscribe.policy is not Force");
  }
}

// The template beside the fields of the job and its partitions: how long a pod may take to end, and
// memory limits that contradict the memory that the scheduler reserves. A pod that used more than
// was reserved would take the memory of a job that is frozen beside it.
void check_template_against(const kube::JobSpec& spec, const TemplateFacts& facts,
                            const std::vector<const sched::PartitionConfig*>& partitions,
                            const JobContext& context, std::vector<std::string>& problems) {
  // A grace period above killWait + graceTime would outlive every other rule about ending a job.
  base::Duration grace{0};
  for (const auto* partition : partitions) grace = std::max(grace, partition->grace_time);
  for (const auto& qos : context.configuration.qos) {
    if (qos.name == spec.schedule.qos.value_or("")) grace = std::max(grace, qos.grace_time);
  }
  // The pods are pinned to their nodes and bound by kube-scheduler, which evicts others for them.
  const bool has_devices =
      kube::asks_for_devices(spec.resources) || !facts.devices.empty() || facts.has_resource_claims;
  if (has_devices && facts.may_evict) {
    problems.push_back(
        "spec.template.spec.priorityClassName: kube-scheduler would evict other pods from the "
        "gang's "
        "nodes for it, because the job asks for devices; use a class with preemptionPolicy: Never "
        "and say so in the template, or none");
  }
  check_runtime_class(facts, context.parameters.runtime_classes, problems);
  const base::Duration longest = context.configuration.cluster.kill_wait + grace;
  // Compared in seconds: those of a batch Job or a foreign pod may be more than a duration holds.
  // The sentence shows whole seconds, rounded up.
  if (facts.grace_seconds && *facts.grace_seconds > whole_seconds_down(longest)) {
    problems.push_back("spec.template.spec.terminationGracePeriodSeconds: " +
                       std::to_string(*facts.grace_seconds) + " is above killWait + graceTime (" +
                       std::to_string(whole_seconds_up(longest)) + "); lower it");
  }
  // With one container its limit must be the job's memory; with several the sum must not exceed
  // it.
  // Depends on the CPUs or GPUs that it gets: checked when pods are made.
  if (spec.resources.memory_per_cpu || spec.resources.memory_per_gpu) return;
  const std::int64_t job =
      spec.resources.memory_per_node ? spec.resources.memory_per_node->value() : 0;
  // Init containers run before the others, each of them with all of the job's memory.
  if (job != 0 && facts.init_memory.value() > job) {
    problems.push_back("spec.template.spec.initContainers: a memory limit of " +
                       kube::format_bytes(facts.init_memory) +
                       " is above spec.resources.memoryPerNode " +
                       kube::format_bytes(kube::Bytes{job}) + "; lower it or raise memoryPerNode");
  }
  std::int64_t limits = 0;
  bool all = !facts.memory.empty();
  for (const ContainerMemory& container : facts.memory) {
    if (container.limit) limits += container.limit->value();
    all = all && container.limit.has_value();
  }
  if (limits == 0) return;
  // Equal sums are legal. A smaller one is legal as long as some container has no limit, since such
  // containers share what is left of the memory (pod_builder.cc).
  if (job != 0 && (limits == job || (!all && limits < job))) return;
  problems.push_back("spec.template.spec.containers: memory limits of " +
                     kube::format_bytes(kube::Bytes{limits}) +
                     (job == 0 ? std::string{" but the job asks for no memory; set "
                                             "spec.resources.memoryPerNode to the same"}
                               : " differ from spec.resources.memoryPerNode " +
                                     kube::format_bytes(kube::Bytes{job}) +
                                     "; leave the limits out or make them equal"));
}

// Returns how many pods of the job a node has at most, where the job decides that: one if it says
// nothing of its nodes. nullopt if the scheduler would choose, because the job has a range of nodes
// or its pods do not come out even.
std::optional<int> pods_per_node(const kube::JobSpec& spec) {
  const bool per_task =
      spec.pod_policy.value_or(kube::PodPolicy::kPerNode) == kube::PodPolicy::kPerTask;
  if (!per_task || kube::has_one_pod(spec)) return 1;
  const auto& nodes = spec.resources.nodes;
  const std::optional<std::int32_t> most = spec.resources.tasks_per_node;
  if (!nodes && !most) return 1;
  const std::int32_t nodes_min = nodes ? std::max(nodes->min, 1) : 1;
  if (most && !spec.resources.tasks) return most;
  const std::int32_t tasks = spec.resources.tasks.value_or(nodes_min);
  const bool even = nodes && nodes->max.value_or(nodes->min) == nodes_min && tasks % nodes_min == 0;
  if (!most) return even ? std::optional{tasks / nodes_min} : std::nullopt;
  // Each other node has at least one pod; the rest remain for this one.
  const std::int32_t remaining = std::max(tasks - (nodes_min - 1), 1);
  return std::min(*most, even ? tasks / nodes_min : remaining);
}

// The devices that the template's containers ask for, as if the job asked for them on each node.
// The scheduler counts devices by node, so it must be known how many pods one may have.
void add_devices_of(const TemplateFacts& facts, const kube::JobSpec& spec,
                    const kube::DevicesConfig& config, sched::JobRequest& request,
                    std::vector<std::string>& problems) {
  const kube::JobResources& asked = spec.resources;
  for (const auto& [devices, field] :
       {std::pair{&asked.devices, "spec.resources.devices"},
        {&asked.devices_of_job, "spec.resources.devicesOfJob"},
        {&asked.devices_per_task, "spec.resources.devicesPerTask"},
        {&asked.devices_per_socket, "spec.resources.devicesPerSocket"}}) {
    for (std::string& sentence : unknown_devices(*devices, field, config)) {
      problems.push_back(std::move(sentence));
    }
  }
  if (facts.devices.empty()) return;
  if (!asked.devices_of_job.empty() || !asked.devices_per_task.empty() ||
      !asked.devices_per_socket.empty()) {
    problems.emplace_back(
        "spec.template.spec.containers: ask for devices, and the job for devicesOfJob, "
        "devicesPerTask or devicesPerSocket; leave one of the two out");
    return;
  }
  for (const auto& [resource, count] : facts.devices) {
    if (kube::device_asked(resource, config)) continue;
    problems.push_back("spec.template.spec.containers: \"" + resource +
                       "\": devices of this kind are not counted, so two gangs would share them; "
                       "remove it, or ask an administrator for an entry in devices.resources of "
                       "the SchedulerConfig (it has " +
                       device_names_text(config) + ")");
  }
  const std::optional<int> pods = pods_per_node(spec);
  if (!pods) {
    problems.emplace_back(
        "spec.resources.nodes: pods that ask for devices need one number of nodes that divides the "
        "number of pods; change nodes, in a batch Job or gated pods the annotation "
        "kubegang.io/nodes");
    return;
  }
  const std::vector<kube::JobDevice> of_template = devices_asked(facts.devices, *pods, config);
  const auto devices = same_devices(spec.resources.devices, of_template);
  if (!devices) {
    problems.push_back("spec.resources.devices: " + device_text(spec.resources.devices) +
                       " on each node contradict the template, whose pods ask for " +
                       device_text(of_template) + " there; leave one of the two out");
    return;
  }
  request.devices = devices_from(*devices);
  if (!request.pod_per_task || kube::has_one_pod(spec)) return;
  // No node gets more pods than it has devices for.
  request.tasks_per_node = *pods;
  if (spec.resources.nodes || spec.resources.tasks_per_node) return;
  request.nodes_given = true;
  request.min_nodes = spec.resources.tasks.value_or(1);
  request.max_nodes = request.min_nodes;
}

void take_devices(const kube::JobResources& resources, sched::JobRequest& request) {
  request.devices = devices_from(resources.devices);
  request.devices_of_job = devices_from(resources.devices_of_job);
  request.devices_per_task = devices_from(resources.devices_per_task);
  request.devices_per_socket = devices_from(resources.devices_per_socket);
  request.per_gpu = {.cpus = resources.cpus_per_gpu.value_or(0),
                     .tasks = resources.tasks_per_gpu.value_or(0)};
  if (resources.memory_per_gpu) request.per_gpu.memory = mib_of(*resources.memory_per_gpu);
}

// Devices of the whole job and of tasks: what cannot go together, and what the selector lacks.
void check_device_numbers(const kube::JobSpec& spec, const JobContext& context,
                          sched::JobRequest& request, std::vector<std::string>& problems) {
  if (const base::Status settled = slurm::settle_devices(request); !settled) {
    problems.push_back("spec.resources: in the words of sbatch, " + settled.error().message);
    return;
  }
  if (spec.resources.tasks_per_gpu && request.tasks != spec.resources.tasks) {
    problems.push_back("spec.resources.tasksPerGPU: comes to " +
                       std::to_string(request.tasks.value_or(0)) + " tasks, and not to " +
                       std::to_string(spec.resources.tasks.value_or(0)) + "; change tasks");
  }
  // SOURCE: R11.9: select/linear counts devices of each node alone.
  if (sched::shares_devices(request) &&
      context.configuration.cluster.select == sched::SelectType::kLinear) {
    problems.emplace_back(
        "spec.resources.devices: with select.type Linear devices are counted on each node alone; "
        "use devices (sbatch --gpus-per-node) in place of devicesOfJob, devicesPerTask and "
        "devicesPerSocket");
  }
}

// Lists that contradict each other or the number of nodes. The job could wait forever otherwise.
void check_node_list(const sched::JobRequest& request, std::vector<std::string>& problems) {
  // Both lists are of names, so a node that does not exist contradicts nothing yet. A few bytes of
  // a hostlist are 65,536 names, so each list is gone through once, and one node is named.
  std::vector<std::string> both;
  std::set_intersection(request.required_nodes.begin(), request.required_nodes.end(),
                        request.excluded_nodes.begin(), request.excluded_nodes.end(),
                        std::back_inserter(both), base::natural_less);
  if (!both.empty()) {
    problems.push_back(
        "spec.placement.hostlist: node \"" + both.front() + "\"" +
        (both.size() == 1 ? " is" : " and " + std::to_string(both.size() - 1) + " more are") +
        " excluded by spec.placement.excludeHostlist; leave " + (both.size() == 1 ? "it" : "them") +
        " out of one of the two");
  }
  if (request.max_nodes && static_cast<int>(request.required_nodes.size()) > *request.max_nodes) {
    problems.push_back("spec.placement.hostlist: names " +
                       std::to_string(request.required_nodes.size()) +
                       " nodes, but spec.resources.nodes allows at most " +
                       std::to_string(*request.max_nodes) + "; raise nodes.max");
  }
}

// Adds a problem if the job names an account that does not list its namespace. A job without a name
// is in its namespace's default account, or in none. On a cluster without accounts every name is
// taken and means nothing, as in Slurm without accounting: scripts of other sites name accounts.
void check_account(const kube::Job& job, const sched::Configuration& configuration,
                   std::vector<std::string>& problems) {
  const std::string account = job.spec.schedule.account.value_or("");
  const auto& accounts = configuration.accounts;
  if (account.empty() || accounts.empty()) return;
  if (std::none_of(accounts.begin(), accounts.end(),
                   [&](const auto& each) { return each.name == account; })) {
    problems.push_back("spec.schedule.account: there is no account \"" + account +
                       "\"; name one that exists or leave it out");
    return;
  }
  const auto& users = configuration.users;
  if (std::none_of(users.begin(), users.end(), [&](const auto& each) {
        return each.account == account && each.name == job.metadata.ns;
      })) {
    problems.push_back("spec.schedule.account: account \"" + account +
                       "\" does not list namespace \"" + job.metadata.ns +
                       "\"; name one that does or leave it out");
  }
}

}  // namespace

// Looks at all partitions and QOS: a pod whose Job is gone does not show which were its own.
std::chrono::seconds longest_grace(const sched::Configuration& configuration) {
  base::Duration grace{0};
  for (const auto& partition : configuration.partitions) {
    grace = std::max(grace, partition.grace_time);
  }
  for (const auto& qos : configuration.qos) grace = std::max(grace, qos.grace_time);
  const std::int64_t seconds = whole_seconds_up(configuration.cluster.kill_wait + grace);
  return std::chrono::seconds{std::max<std::int64_t>(seconds, 1)};
}

bool needs_device_nodes(const kube::JobSpec& spec, const TemplateFacts& pod_template) {
  return spec.adopted.empty() &&
         (kube::asks_for_devices(spec.resources) || !pod_template.devices.empty());
}

// The taints of Kubernetes itself say what state a node is in (not ready, under memory pressure,
// cordoned). The operator reads states from conditions and from spec.unschedulable, so these taints
// exclude no job, and neither does our own, which keeps other pods off.
bool is_state_taint(const kube::Taint& taint) {
  return taint.key.starts_with("node.kubernetes.io/") || taint.key == kube::kTaintManaged;
}

// As the status shows them: separated by commas, or the default partition's name.
std::string partition_names(const kube::JobSpec& spec, const sched::Configuration& configuration) {
  std::string names;
  for (const std::string& name : spec.partitions) names += (names.empty() ? "" : ",") + name;
  if (!names.empty()) return names;
  const sched::PartitionConfig* partition = default_partition(configuration);
  return partition == nullptr ? "" : partition->name;
}

// Each task that runs has an entry in the status of its array, so there is a bound, by Slurm's own
// means.
int at_once_of(const kube::JobArray& array) {
  const int given = array.parallelism.value_or(0);
  return given > 0 ? std::min(given, kube::kArrayBegunMax) : kube::kArrayBegunMax;
}

sched::ArrayRequest array_request(const kube::JobArray& array) {
  sched::ArrayRequest request;
  if (auto read = slurm::parse_array("spec.array.tasks", array.tasks, kube::kArrayTasksMax)) {
    request = std::move(*read);
  }
  request.at_once = at_once_of(array);
  request.begun_most = kube::kArrayBegunMax;
  return request;
}

void set_what_may_change(const kube::JobSpec& spec, sched::JobRequest& request) {
  request.time_limit = spec.schedule.time_limit;
  request.priority.reset();
  if (spec.schedule.priority) {
    request.priority = sched::Priority{static_cast<std::uint32_t>(*spec.schedule.priority)};
  }
  request.nice = spec.schedule.nice.value_or(0);
  request.hold = spec.control.hold.value_or(false);
  // An array's tasks that run are suspended, and the rest does not start.
  const bool suspend = spec.control.suspend.value_or(false);
  request.suspend = !spec.array && suspend;
  request.hold = request.hold || (spec.array && suspend);
  if (spec.array && request.array) request.array->at_once = at_once_of(*spec.array);
}

// Field by field, without any check. It is used for jobs that were accepted before, too, so a
// request that is restored must come out as it was.
sched::JobRequest plain_request(const kube::Job& job, sched::JobId id, base::Instant submit_time) {
  const kube::JobSpec& spec = job.spec;
  sched::JobRequest request;
  request.id = id;
  const bool has_name = spec.batch && !spec.batch->name.empty();
  request.name = has_name ? spec.batch->name : job.metadata.name;
  request.user = job.metadata.ns;
  request.submit_time = submit_time;
  request.partitions = spec.partitions;
  if (spec.resources.nodes) {
    request.nodes_given = true;
    request.min_nodes = spec.resources.nodes->min;
    // As with sbatch -N2: one number is both.
    request.max_nodes = spec.resources.nodes->max.value_or(request.min_nodes);
  }
  request.tasks = spec.resources.tasks;
  request.tasks_per_node = spec.resources.tasks_per_node;
  request.cpus_per_task = spec.resources.cpus_per_task.value_or(1);
  request.tasks_per_socket = spec.resources.tasks_per_socket;
  request.tasks_per_core = spec.resources.tasks_per_core;
  request.min_cpus_per_node = spec.placement.min_cpus_per_node;
  request.sockets_per_node = spec.placement.sockets_per_node;
  request.cores_per_socket = spec.placement.cores_per_socket;
  request.threads_per_core = spec.placement.threads_per_core;
  request.overcommit = spec.resources.overcommit.value_or(false);
  request.use_min_nodes = spec.resources.use_min_nodes.value_or(false);
  if (spec.placement.tmp_disk) request.tmp_disk = mib_of(*spec.placement.tmp_disk);
  if (spec.resources.memory_per_cpu)
    request.memory = sched::MemoryPerCpu{mib_of(*spec.resources.memory_per_cpu)};
  if (spec.resources.memory_per_node)
    request.memory = sched::MemoryPerNode{mib_of(*spec.resources.memory_per_node)};
  // --mem=0 asks for all memory of each node.
  // The scheduler has Slurm's notation for it.
  if (spec.resources.all_memory.value_or(false)) {
    request.memory = sched::MemoryPerNode{sched::MemoryMiB{0}};
  }
  take_devices(spec.resources, request);
  request.licenses.insert(spec.resources.licenses.begin(), spec.resources.licenses.end());
  request.sharing = translate(spec.placement.sharing.value_or(kube::JobSharing::kAny));
  request.required_nodes = names_of(spec.placement.hostlist);
  request.excluded_nodes = names_of(spec.placement.exclude_hostlist);
  request.contiguous = spec.placement.contiguous.value_or(false);
  request.constraint = spec.placement.constraint.value_or("");
  request.time_min = spec.schedule.time_min;
  request.begin_time = spec.schedule.begin_time;
  request.deadline = spec.schedule.deadline;
  request.qos = spec.schedule.qos.value_or("");
  request.account = spec.schedule.account.value_or("");
  request.requeue = spec.lifecycle.requeue;
  if (!spec.adopted.empty()) request.requeue = false;  // others have made its pods: once
  if (spec.array) request.array = array_request(*spec.array);
  set_what_may_change(spec, request);
  request.pod_per_task =
      spec.pod_policy.value_or(kube::PodPolicy::kPerNode) == kube::PodPolicy::kPerTask;
  // Numbers that cannot be settled were refused when the job came (check_device_numbers).
  (void)slurm::settle_devices(request);
  return request;
}

// PreferNoSchedule is a wish, which kube-scheduler weighs and we do not.
bool can_use(const kube::Labels& node_selector, const std::vector<kube::Toleration>& tolerations,
             const kube::Node& node) {
  const kube::Labels& labels = node.metadata.labels;
  const bool selected = std::ranges::all_of(node_selector, [&](const auto& wanted) {
    const auto label = labels.find(wanted.first);
    return label != labels.end() && label->second == wanted.second;
  });
  return selected && std::ranges::all_of(node.spec.taints, [&](const kube::Taint& taint) {
           return taint.effect == "PreferNoSchedule" || is_state_taint(taint) ||
                  tolerates(tolerations, taint);
         });
}

// Judges a job by everything that it depends on, and makes the scheduler's request of it:
// 1. the object by itself (check_job()), and its template
// 2. the names in it: partitions, QOS, account
// 3. the devices of its template; its size against the partitions, its node lists, its template
// against its other fields
// 4. the request; nodes that its template cannot use are excluded
//
// After step 2 an object with a field out of range goes no further. All problems are collected.
JobVerdict translate_job(const kube::Job& job, const TemplateFacts& pod_template, sched::JobId id,
                         base::Instant submit_time, const JobContext& context) {
  JobVerdict verdict;
  verdict.problems = check_job(job);
  // A field out of range would make the request below overflow or the checks read nonsense.
  const bool object_is_legal = verdict.problems.empty();
  verdict.problems.insert(verdict.problems.end(), pod_template.problems.begin(),
                          pod_template.problems.end());
  if (!kube::has_one_pod(job.spec)) {
    verdict.problems.insert(verdict.problems.end(), pod_template.launchers.begin(),
                            pod_template.launchers.end());
  }
  const std::size_t problems_before = verdict.problems.size();
  // All problems are collected, so that a user sees them at once and not one per try.
  const auto partitions = find_partitions(job.spec, context, verdict.problems);
  // Noted apart from the sentences: a job that was accepted waits for its partition to come back,
  // whereas a new job is refused.
  verdict.partition_missing = verdict.problems.size() > problems_before;
  if (const std::string qos = job.spec.schedule.qos.value_or(""); !qos.empty()) {
    const auto& known = context.configuration.qos;
    if (std::none_of(known.begin(), known.end(), [&](const auto& q) { return q.name == qos; })) {
      verdict.problems.push_back("spec.schedule.qos: there is no QOS \"" + qos +
                                 "\"; name one that exists or leave it out");
    }
  }
  check_account(job, context.configuration, verdict.problems);
  if (!object_is_legal) return verdict;

  sched::JobRequest request = plain_request(job, id, submit_time);
  add_devices_of(pod_template, job.spec, context.parameters.devices, request, verdict.problems);
  check_device_numbers(job.spec, context, request, verdict.problems);
  isolate(pod_template, partitions, request, verdict.problems);
  check_node_list(request, verdict.problems);
  check_capacity(request, partitions, context, verdict.problems);
  check_template_against(job.spec, pod_template, partitions, context, verdict.problems);
  if (!verdict.problems.empty()) return verdict;

  // A template that asks for ephemeral storage needs nodes that have it, as with sbatch --tmp.
  request.tmp_disk = std::max(request.tmp_disk, mib_of(pod_template.disk));
  // Nodes that its template cannot use count as excluded by the job, as with sbatch --exclude.
  request.unusable_nodes = context.unusable_nodes;
  verdict.request = std::move(request);
  return verdict;
}

}  // namespace control
