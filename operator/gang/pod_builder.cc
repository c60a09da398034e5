#include "operator/gang/pod_builder.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <tuple>
#include <vector>

#include "api/wellknown.h"
#include "kube/api/batch_job.h"
#include "kube/api/json_text.h"
#include "kube/api/pod.h"
#include "operator/gang/batch_pod.h"
#include "operator/gang/pod_pin.h"
#include "slurm/per_node_list.h"
#include "translation/pod_identity.h"
#include "translation/units.h"

namespace control {
namespace {

using Json = nlohmann::json;

std::string text(std::int64_t value) {
  return std::to_string(value);
}

// How many tasks a script hears of for each node, where that is not what its pods have; else {}.
// SOURCE: recorded (sessions tasks_of_jobs, sbatch_overcommit): without a number of them, as many
// as there are CPUs for. With --overcommit CPUs say nothing: an equal share, or one.
std::vector<int> tasks_of_script(const kube::Job& job, const GangLayout& gang) {
  const kube::JobResources& asked = job.spec.resources;
  const bool overcommits = asked.overcommit.value_or(false);
  if (!job.spec.batch || (!overcommits && (asked.tasks || asked.tasks_per_node))) return {};
  const int nodes = static_cast<int>(gang.cpus_per_node.size());
  std::vector<int> tasks;
  for (int node = 0; node < nodes; ++node) {
    const int cpus = gang.cpus_per_node[static_cast<std::size_t>(node)];
    const int fit = std::max(cpus / asked.cpus_per_task.value_or(1), 1);
    const int share = (asked.tasks.value_or(nodes) + nodes - 1 - node) / nodes;
    tasks.push_back(overcommits ? asked.tasks_per_node.value_or(share) : fit);
  }
  return tasks;
}

// SOURCE: sbatch.1 and srun.1, "OUTPUT ENVIRONMENT VARIABLES". So programs and launchers that were
// written for Slurm find out where they run.
Variables slurm_environment(const kube::Job& job, const PodSlot& slot, const GangLayout& gang,
                            const sched::MemoryRequest& memory) {
  const auto node_index = static_cast<std::size_t>(slot.node_index);
  const kube::JobStatus& status = job.status;
  const std::string id = text(status.job_id.value_or(0));
  const std::string nodes = text(static_cast<std::int64_t>(gang.cpus_per_node.size()));
  Variables env{
      {"SLURM_JOB_ID", id},
      {"SLURM_JOBID", id},
      {"SLURM_JOB_NAME", job.metadata.name},
      {"SLURM_JOB_PARTITION", status.partition},
      {"SLURM_JOB_NODELIST", status.allocation->hostlist},
      {"SLURM_NODELIST", status.allocation->hostlist},
      {"SLURM_JOB_NUM_NODES", nodes},
      {"SLURM_NNODES", nodes},
      {"SLURM_NODEID", text(slot.node_index)},
      {"SLURMD_NODENAME", slot.node},
      {"SLURM_NTASKS", text(gang.tasks)},
      {"SLURM_NPROCS", text(gang.tasks)},
      {"SLURM_TASKS_PER_NODE", gang.tasks_list},
      {"SLURM_JOB_CPUS_PER_NODE", gang.cpus_list},
      {"SLURM_CPUS_ON_NODE", text(gang.cpus_per_node[node_index])},
      // A pod that runs all tasks of its node (PerNode) has the first of them, as a batch script
      // has.
      {"SLURM_PROCID", text(slot.first_task)},
      {"SLURM_LOCALID", text(slot.first_task - gang.first_task[node_index])},
      {"SLURM_RESTART_COUNT", text(status.restarts.value_or(0))},
      {"SLURM_JOB_USER", job.metadata.ns},
  };
  const std::vector<int> tasks = tasks_of_script(job, gang);
  for (auto& [name, value] : env) {
    if (name == "SLURM_TASKS_PER_NODE" && !tasks.empty()) value = slurm::per_node_list(tasks);
  }
  if (job.spec.resources.cpus_per_task)
    env.emplace_back("SLURM_CPUS_PER_TASK", text(*job.spec.resources.cpus_per_task));
  if (job.spec.resources.tasks_per_node) {
    env.emplace_back("SLURM_NTASKS_PER_NODE", text(*job.spec.resources.tasks_per_node));
  }
  if (job.spec.schedule.qos) env.emplace_back("SLURM_JOB_QOS", *job.spec.schedule.qos);
  if (job.spec.schedule.account) env.emplace_back("SLURM_JOB_ACCOUNT", *job.spec.schedule.account);
  if (slot.memory) env.emplace_back("SLURM_MEM_PER_NODE", text(mib_of(*slot.memory).value()));
  if (job.spec.batch) set_batch_variables(env, job, slot, gang.hosts, memory);
  if (gang.array) {
    env.emplace_back("SLURM_ARRAY_JOB_ID", text(gang.array->job_id));
    env.emplace_back("SLURM_ARRAY_TASK_ID", text(gang.array->task));
    env.emplace_back("SLURM_ARRAY_TASK_COUNT", text(gang.array->count));
    env.emplace_back("SLURM_ARRAY_TASK_MAX", text(gang.array->max));
    env.emplace_back("SLURM_ARRAY_TASK_MIN", text(gang.array->min));
    env.emplace_back("SLURM_ARRAY_TASK_STEP", text(gang.array->step));
  }
  return env;
}

// Within the pod its devices have the numbers from 0 on, whichever of the node they are: kubelet's
// device plugin shows it no others.
Variables device_variables(const DeviceResources& devices, const kube::DevicesConfig& config) {
  Variables env;
  int gpus = 0, nvidia = 0, amd = 0;
  for (const auto& [resource, count] : devices) {
    if (!kube::is_gpu(resource, config)) continue;
    gpus += count;
    if (resource.starts_with("nvidia.com/")) nvidia += count;
    if (resource.starts_with("amd.com/")) amd += count;
  }
  if (gpus == 0) return {};
  const auto numbers = [](int count) {
    std::string list;
    for (int i = 0; i < count; ++i) list += (i == 0 ? "" : ",") + text(i);
    return list;
  };
  env.emplace_back("SLURM_JOB_GPUS", numbers(gpus));
  env.emplace_back("SLURM_GPUS_ON_NODE", text(gpus));
  if (nvidia > 0) env.emplace_back("CUDA_VISIBLE_DEVICES", numbers(nvidia));
  if (amd > 0) env.emplace_back("ROCR_VISIBLE_DEVICES", numbers(amd));
  return env;
}

// The devices of a pod and who gets them. A template that asks for some itself has said so.
struct PodDevices {
  DeviceResources all;
  bool of_template = false;
  const kube::DevicesConfig& config;

  // Returns the variables of the container's devices: kubelet gives it its own alone.
  Variables variables_of(const kube::Container& container) const {
    return device_variables(of_template ? device_requests(container.resources) : all, config);
  }
};

PodDevices devices_of_pod(const kube::PodSpec& pod, const PodOptions& options) {
  DeviceResources own = device_requests(pod);
  if (own.empty()) return {options.devices, false, options.devices_config};
  return {std::move(own), true, options.devices_config};
}

// Unless the template says who, the first container gets them all: kubelet gives devices to
// containers, and a second one could not have the same. The tolerations are those that a taint of
// GPU nodes needs, which is named after the resource.
void set_devices(Json& spec, const PodDevices& devices) {
  for (const auto& [resource, count] : devices.all) {
    for (const std::string& key : device_taints(resource)) {
      spec["tolerations"].push_back({{"key", key}, {"operator", "Exists"}});
    }
    if (devices.of_template) continue;
    Json& resources = spec["containers"][0]["resources"];
    resources["requests"][resource] = text(count);
    resources["limits"][resource] = text(count);
  }
}

// Not by an initializer list, in which the library copies each text several times: a pod has twenty
// of these, which were half of what it costs to build one.
Json variable_of(const std::string& name, const std::string& value) {
  Json::object_t variable;
  variable.emplace("name", name);
  variable.emplace("value", value);
  return variable;
}

// Adds the operator's variables first, so that the template's may refer to them by $(NAME).
void add_environment(Json& container, const Variables& environment, const Variables& of_devices) {
  Json& env = container["env"];
  if (!env.is_array()) env = Json::array();
  std::set<std::string> given;
  for (const Json& variable : env) given.insert(kube::text_at(variable, "name"));
  Json all = Json::array();
  for (const auto& [name, value] : environment) {
    // A variable that the template sets itself stays its own.
    if (!given.contains(name)) all.push_back(variable_of(name, value));
  }
  for (const auto& [name, value] : of_devices) {
    if (!given.contains(name)) all.push_back(variable_of(name, value));
  }
  for (Json& variable : env) all.push_back(std::move(variable));
  env = std::move(all);
}

// The first container without a limit of its own gets what the other limits leave of the job's
// memory.
base::Result<std::vector<std::optional<kube::Bytes>>> share_out_memory(
    const std::vector<kube::Container>& containers, const PodSlot& slot) {
  std::vector<std::optional<kube::Bytes>> shares(containers.size());
  if (!slot.memory) return shares;
  std::int64_t left = slot.memory->value();
  std::vector<std::size_t> without;
  for (std::size_t i = 0; i < containers.size(); ++i) {
    const auto limit = containers[i].resources.limits.find("memory");
    if (limit == containers[i].resources.limits.end()) {
      without.push_back(i);
      continue;
    }
    shares[i] = limit->second.bytes();
    left -= shares[i]->value();
  }
  if (left < 0 || (left == 0 && !without.empty())) {
    return base::invalid_argument(
        "the memory limits of the template's containers exceed the job's memory of " +
        kube::format_bytes(*slot.memory) + " per node");
  }
  for (std::size_t i = 0; i < without.size(); ++i) {
    // All but the first get an equal small part, so that each container has a limit.
    // Bytes that do not divide go to the first container, so the sum is exactly the memory of the
    // slot.
    const std::int64_t part = left / static_cast<std::int64_t>(without.size());
    shares[without[i]] =
        kube::Bytes{i == 0 ? left - part * static_cast<std::int64_t>(without.size() - 1) : part};
  }
  return shares;
}

// Init containers run one after the other, each with all of the slot's memory unless its author
// gave it a limit.
base::Result<std::vector<std::optional<kube::Bytes>>> memory_of_init(
    const std::vector<kube::Container>& containers, const PodSlot& slot) {
  std::vector<std::optional<kube::Bytes>> shares(containers.size(), slot.memory);
  if (!slot.memory) return shares;
  for (std::size_t i = 0; i < containers.size(); ++i) {
    const auto limit = containers[i].resources.limits.find("memory");
    if (limit == containers[i].resources.limits.end()) continue;
    shares[i] = limit->second.bytes();
    if (*shares[i] <= *slot.memory) continue;
    return base::invalid_argument("the memory limit of init container " + containers[i].name +
                                  " exceeds the job's memory of " +
                                  kube::format_bytes(*slot.memory) + " per node");
  }
  return shares;
}

// Ephemeral storage is no more than a filter of nodes (PodShape), so kubelet's sum of the requests
// must not decide either. The author's limit stays.
void set_disk(Json& resources) {
  const char* const name = "ephemeral-storage";
  if (resources["requests"].contains(name) || resources["limits"].contains(name)) {
    resources["requests"][name] = "0";
  }
}

// requests: 1m per CPU, so that kubelet's sum never decides (stacked jobs would not fit);
// limits: the allocation.
void set_resources(Json& container, bool first, const PodSlot& slot,
                   const std::optional<kube::Bytes>& memory) {
  Json& resources = container["resources"];
  if (!resources.is_object()) resources = Json::object();
  if (!resources["requests"].is_object()) resources["requests"] = Json::object();
  if (!resources["limits"].is_object()) resources["limits"] = Json::object();
  resources["requests"]["cpu"] =
      first ? std::to_string(std::max(slot.cpus, 1)) + "m" : std::string{"0"};
  set_disk(resources);
  // The template's own CPU limit would contradict the allocation.
  resources["limits"].erase("cpu");
  if (slot.cpus > 0) resources["limits"]["cpu"] = std::to_string(slot.cpus);
  // Requests and limits of memory are equal: memory cannot be taken back from a frozen pod, so it
  // must be there for all jobs of a node at once.
  resources["requests"].erase("memory");
  resources["limits"].erase("memory");
  if (memory) {
    resources["requests"]["memory"] = kube::format_bytes(*memory);
    resources["limits"]["memory"] = kube::format_bytes(*memory);
  }
}

// A batch Job that is deleted in the foreground goes when its pods are gone.
bool is_of_batch_job(const kube::Job& job) {
  const kube::OwnerReference* owner = kube::controller_of(job.metadata);
  return owner != nullptr && owner->api_version.starts_with("batch/");
}

// The pod's name, labels and owner, by which it is found again and deleted with its job.
void set_metadata(Json& pod, const kube::Job& job, const PodSlot& slot, const PodOptions& options,
                  std::optional<int> array_task) {
  Json metadata = Json::object();
  // Only labels and annotations of the template are taken over: a name, an owner or finalizers of
  // its author would break the rules by which pods are found and ended.
  const Json& from = pod["metadata"];
  if (from.is_object()) {
    for (const char* field : {"labels", "annotations"}) {
      if (from.contains(field)) metadata[field] = from[field];
    }
  }
  metadata["name"] = slot.name;
  metadata["namespace"] = job.metadata.ns;
  Json& labels = metadata["labels"];
  labels[std::string{kube::kLabelJob}] = job.metadata.name;
  labels[std::string{kube::kLabelJobId}] = text(job.status.job_id.value_or(0));
  labels[std::string{kube::kLabelPartition}] = job.status.partition;
  labels[std::string{kube::kLabelTask}] = text(slot.pod_index);
  labels[std::string{kube::kLabelStart}] = text(job.status.starts.value_or(0));
  const std::string task_label{kube::kLabelArrayTask};
  labels.erase(task_label);  // no template's
  if (array_task) labels[task_label] = text(*array_task);
  Json& annotations = metadata["annotations"];
  // A template that has it gets each pod's own, as the pods of an Indexed batch Job have it.
  const std::string index{kube::kBatchCompletionIndex};
  if (annotations.contains(index)) annotations[index] = labels[index] = text(slot.pod_index);
  if (!annotations.contains(std::string{kube::kSafeToEvict})) {
    // Moving one pod of a gang would end the gang, so cluster-autoscaler leaves its node alone,
    // unless the template says otherwise.
    annotations[std::string{kube::kSafeToEvict}] = "false";
  }
  const std::string cpuset{kube::kAnnotationCpuSet};
  annotations.erase(cpuset);  // no template's
  if (!options.cpuset.empty()) annotations[cpuset] = options.cpuset;
  metadata["ownerReferences"] = Json::array({{{"apiVersion", "kubegang.io/v1alpha1"},
                                              {"kind", "Job"},
                                              {"name", job.metadata.name},
                                              {"uid", job.metadata.uid},
                                              {"controller", true},
                                              {"blockOwnerDeletion", is_of_batch_job(job)}}});
  pod["metadata"] = std::move(metadata);
}

std::string host_name(const kube::Job& job, const GangLayout& gang, const PodSlot& slot) {
  const std::string task = gang.array ? "-" + text(gang.array->task) : "";
  return job.metadata.name + task + "-" + text(slot.pod_index);
}

}  // namespace

// Worked out once for all pods of a start: each of them gets the same lists.
GangLayout gang_layout(std::span<const PodSlot> slots) {
  GangLayout gang{.pods_count = slots.size()};
  std::vector<int> tasks_per_node;
  std::vector<std::string> nodes;
  for (const PodSlot& slot : slots) {
    // The slots of a node stand together, so a new index begins the next node.
    if (slot.node_index == static_cast<int>(gang.cpus_per_node.size())) {
      gang.cpus_per_node.push_back(0);
      gang.first_task.push_back(slot.first_task);
      tasks_per_node.push_back(0);
      nodes.push_back(slot.node);
    }
    gang.cpus_per_node.back() += slot.cpus;
    tasks_per_node.back() += slot.tasks;
    gang.tasks += slot.tasks;
  }
  gang.hosts = host_names(nodes);
  gang.cpus_list = slurm::per_node_list(gang.cpus_per_node);
  gang.tasks_list = slurm::per_node_list(tasks_per_node);
  return gang;
}

base::Result<Json> build_pod(const kube::Job& job, const PodSlot& slot, const GangLayout& gang,
                             const PodOptions& options, const PodLauncher& launcher) {
  // Decoded first, so that all fields that are touched below have the types that the code expects.
  // The pod itself is built from the JSON, which keeps fields that this version of the operator
  // does not know.
  const auto decoded = kube::decode_template(job.spec.pod_template);
  if (!decoded.ok()) return decoded.error();
  const auto memory = share_out_memory(decoded->spec.containers, slot);
  if (!memory.ok()) return memory.error();
  const auto init_memory = memory_of_init(decoded->spec.init_containers, slot);
  if (!init_memory.ok()) return init_memory.error();

  Json pod = job.spec.pod_template.json();
  pod["apiVersion"] = "v1";
  pod["kind"] = "Pod";
  set_metadata(pod, job, slot, options, gang.array_task());
  Json& spec = pod["spec"];
  if (const auto added = add_pod_defaults(spec, job, options.defaults); !added) {
    return added.error();
  }
  const PodDevices devices = devices_of_pod(decoded->spec, options);
  if (has_claims(spec) || !devices.all.empty()) {
    // Volumes that wait for their first consumer are bound by kube-scheduler alone. For devices it
    // waits, where kubelet drops requests that its node does not meet at that moment.
    spec["affinity"] = affinity_to_node(slot.node);
    spec.erase("schedulerName");  // a template may name us, and we bind no pods
  } else {
    // Bound at creation: kube-scheduler never sees the pod and cannot put it anywhere else.
    spec["nodeName"] = slot.node;
  }
  // A container that kubelet restarted would lose what its gang has exchanged; the job is restarted
  // as a whole.
  spec["restartPolicy"] = "Never";
  if (!spec.contains("terminationGracePeriodSeconds")) {
    spec["terminationGracePeriodSeconds"] = whole_seconds_up(options.kill_wait);
  }
  if (needs_service(job, gang.pods_count)) {
    spec["hostname"] = host_name(job, gang, slot);
    spec["subdomain"] = job.metadata.name;
  } else if (pod["metadata"]["labels"].contains(std::string{kube::kBatchCompletionIndex})) {
    spec["hostname"] =
        pod["metadata"]["labels"].value(std::string{kube::kBatchJobName}, job.metadata.name) + "-" +
        std::to_string(slot.pod_index);
  }
  Json& tolerations = spec["tolerations"];
  if (!tolerations.is_array()) tolerations = Json::array();
  // The taint that keeps foreign pods off nodes of partitions.
  tolerations.push_back({{"key", kube::kTaintManaged}, {"operator", "Exists"}});

  const Variables environment = slurm_environment(job, slot, gang, options.memory);
  for (const auto& [list, containers, limits] :
       {std::tuple{"initContainers", &decoded->spec.init_containers, &*init_memory},
        {"containers", &decoded->spec.containers, &*memory}}) {
    if (!spec.contains(list)) continue;
    for (std::size_t i = 0; i < spec[list].size(); ++i) {
      add_environment(spec[list][i], environment, devices.variables_of((*containers)[i]));
      set_resources(spec[list][i], i == 0, slot, (*limits)[i]);
    }
  }
  set_devices(spec, devices);
  if (!job.spec.batch) return pod;
  // Last, because its container is not the template's.
  const auto is_installed = add_launcher(
      pod, job, slot, gang.hosts, launcher,
      {options.mounts_images, options.may_requeue, options.time_limit, gang.array_task()});
  if (!is_installed) return is_installed.error();
  if (*is_installed) set_resources(spec["initContainers"][0], false, slot, slot.memory);
  return pod;
}

// One pod has no member to look up.
bool needs_service(const kube::Job& job, std::size_t pods_count) {
  return pods_count > 1 &&
         job.spec.network.value_or(kube::JobNetwork::kService) == kube::JobNetwork::kService;
}

// Makes a headless service: it only gives the pods names in DNS.
kube::Service build_service(const kube::Job& job, const JobIdentity& identity) {
  const bool of_task = identity.task && job.spec.batch;
  kube::Service service;
  service.metadata.name = service_name(identity, job.spec.batch.has_value());
  service.metadata.ns = job.metadata.ns;
  service.metadata.labels[std::string{kube::kLabelJob}] = job.metadata.name;
  service.metadata.owner_references.push_back({.api_version = "kubegang.io/v1alpha1",
                                               .kind = "Job",
                                               .name = job.metadata.name,
                                               .uid = job.metadata.uid,
                                               .controller = true});
  service.spec.cluster_ip = "None";
  service.spec.selector[std::string{kube::kLabelJob}] = job.metadata.name;
  if (of_task) {
    service.spec.selector[std::string{kube::kLabelArrayTask}] = std::to_string(*identity.task);
  }
  if (job.spec.batch) service.spec.ports = ports_of_first_pod();
  // Members look each other up while they start, before any of them is ready.
  service.spec.publish_not_ready_addresses = true;
  return service;
}

}  // namespace control
