#include "operator/loop/kept_fields.h"

#include <algorithm>
#include <cstddef>
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "api/annotations.h"
#include "api/wellknown.h"
#include "kube/api/batch_job.h"
#include "kube/api/pod_group.h"
#include "operator/gang/pod_pin.h"
#include "operator/jobs/pod_index.h"
#include "operator/nodes/agent_pods.h"
#include "translation/devices.h"
#include "translation/judged_spec.h"
#include "translation/kept_text.h"
#include "translation/node_translation.h"

namespace control {
namespace {

// Informers keep all pods, batch Jobs and nodes of a cluster, and authors choose how large those
// are. So each object is cut to the fields that the operator reads, by name, as it arrives. A field
// that is read and not named here would silently be empty: kept_fields_test holds what is left
// against what the whole object says. The bounds are listed in docs/design/faults.md, section 5.

using Names = std::initializer_list<std::string_view>;

// The longest value of an annotation that is read is a list of 32 names of partitions.
constexpr std::size_t kAnnotationBytesMax = 2'047;
constexpr std::size_t kQuotedBytes = 100;  // of one that is longer
// kubelet's and kube-scheduler's words, which may quote the author's: an image, a claim.
constexpr std::size_t kMessageBytesMax = 2'048;
// The operator's own note on a pod is compared as a whole; it is never that long.
constexpr std::size_t kNoteBytesMax = 32'768;
// A template has 32 containers and as many init containers, and webhooks add a few.
constexpr std::size_t kContainersMax = 64;
constexpr std::size_t kNodeLabelsBytesMax = 65'536;
constexpr std::size_t kNodeDeviceKindsMax = 64;  // MIG has about a dozen profiles
constexpr std::size_t kPodDeviceKindsMax = 8;
constexpr std::size_t kIndexesBytesMax = 4'096;  // the CRD's, of a rule of successPolicy

bool is_one_of(std::string_view name, Names names) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

// Keeps extended resources, GPUs first: those are counted without a word of an administrator's, and
// must not be lost behind others.
template <typename Amounts, typename Keep>
void keep_devices(const Amounts& all, std::size_t kinds_max, const Keep& keep) {
  std::size_t count = 0;
  for (const bool gpus : {true, false}) {
    for (const auto& [name, amount] : all) {
      if (!kube::is_extended(name) || kube::is_gpu(name, {}) != gpus) continue;
      if (++count <= kinds_max) keep(name, amount);
    }
  }
}

// Moves the entries of these names out of `all`; the rest is dropped with it.
kube::Labels only(kube::Labels& all, Names names) {
  kube::Labels kept;
  for (auto at = all.begin(); at != all.end();) {
    const auto next = std::next(at);
    if (is_one_of(at->first, names)) kept.insert(all.extract(at));
    at = next;
  }
  return kept;
}

// A value that is longer than any legal one becomes a short one that is refused as well.
kube::Labels only_short(kube::Labels& all, Names names) {
  kube::Labels kept = only(all, names);
  for (auto& [name, value] : kept) {
    if (value.size() > kAnnotationBytesMax) value = head(value, kQuotedBytes) + "...";
  }
  return kept;
}

// Assigning alone would keep memory of what was there: a string into which a short one is moved
// keeps its buffer.
template <typename T>
void replace(T& object, T kept) {
  const T dropped = std::move(object);
  object = std::move(kept);
}

// Returns the controller alone, which says to which job a pod belongs.
std::vector<kube::OwnerReference> only_controller(const kube::ObjectMeta& metadata) {
  const kube::OwnerReference* controller = kube::controller_of(metadata);
  if (controller == nullptr) return {};
  return {{.api_version = head(controller->api_version),
           .kind = head(controller->kind),
           .name = head(controller->name),
           .uid = head(controller->uid),
           .controller = true,
           .block_owner_deletion = controller->block_owner_deletion}};
}

// Names, UIDs and versions are moved, because they are bounded by the API server already.
kube::ObjectMeta identity_of(kube::ObjectMeta& metadata) {
  return {.name = std::move(metadata.name),
          .ns = std::move(metadata.ns),
          .uid = std::move(metadata.uid),
          .resource_version = std::move(metadata.resource_version),
          .generation = metadata.generation,
          .creation_timestamp = metadata.creation_timestamp,
          .deletion_timestamp = metadata.deletion_timestamp,
          .deletion_grace_period_seconds = metadata.deletion_grace_period_seconds};
}

// Returns how much is kept of a condition's message: most messages are never read.
std::size_t message_bytes_max(const kube::Condition& condition) {
  if (condition.type == kube::kPodWaiting) return kNoteBytesMax;
  return condition.type == "PodScheduled" ? kMessageBytesMax : 0;
}

// Keeps the conditions of these types: reason and times, and as much of the message as is read.
kube::Conditions only(const kube::Conditions& all, Names types) {
  kube::Conditions kept;
  for (const kube::Condition& condition : all) {
    // The API server takes a type twice; the first one is what is read.
    if (!is_one_of(condition.type, types) || kube::find_condition(kept, condition.type)) continue;
    kept.push_back({.type = condition.type,
                    .status = condition.status,
                    .last_transition_time = condition.last_transition_time,
                    .reason = head(condition.reason),
                    .message = head(condition.message, message_bytes_max(condition))});
  }
  return kept;
}

// A container is running, waiting or terminated; the exit code and the times decide about the gang.
kube::ContainerState short_state(const kube::ContainerState& state) {
  kube::ContainerState kept{.running = state.running};
  if (const auto& waiting = state.waiting) {
    kept.waiting = {.reason = head(waiting->reason),
                    .message = head(waiting->message, kMessageBytesMax)};
  }
  if (const auto& terminated = state.terminated) {
    kept.terminated = {.exit_code = terminated->exit_code,
                       .reason = head(terminated->reason),
                       .message = head(terminated->message, kMessageBytesMax),
                       .started_at = terminated->started_at,
                       .finished_at = terminated->finished_at};
  }
  return kept;
}

// Further containers than a legal pod has are dropped.
std::vector<kube::ContainerStatus> short_states(const std::vector<kube::ContainerStatus>& all) {
  std::vector<kube::ContainerStatus> kept;
  kept.reserve(std::min(all.size(), kContainersMax));
  bool has_usage = false;
  for (const kube::ContainerStatus& status : all) {
    if (kept.size() == kContainersMax) break;
    kept.push_back({.name = head(status.name), .state = short_state(status.state)});
    // A launcher's message is read whole or not at all. A pod has one launcher.
    const auto& end = status.state.terminated;
    if (!end || !kube::is_usage_message(end->message) || std::exchange(has_usage, true)) continue;
    kept.back().state.terminated->message = end->message;
  }
  return kept;
}

// Keeps of each container what freeze_hazards() reads. Webhooks may have added it.
// Webhooks may have added what freeze_hazards reads.
std::vector<kube::Container> only_hazards(const std::vector<kube::Container>& all) {
  std::vector<kube::Container> kept;
  kept.reserve(std::min(all.size(), kContainersMax));
  for (const kube::Container& container : all) {
    if (kept.size() == kContainersMax) break;
    keep_hazards(container, kept.emplace_back(kube::Container{.name = head(container.name)}));
  }
  return kept;
}

// --- the three kinds of pods; `kept` has the identity ---

// Pods behind our gate: everything that makes them a gang and that is judged (judged_spec()).
// The pod waits, so its status says nothing but our own note.
void keep_gated(kube::Pod& pod, kube::Pod& kept) {
  kept.metadata.labels = only(pod.metadata.labels,
                              {kube::kLabelGang, kube::kLabelPodGroup, kube::kLabelPodGroupBefore});
  kept.metadata.annotations =
      only_short(pod.metadata.annotations,
                 {kube::kAnnotationPartition, kube::kAnnotationQos, kube::kAnnotationNodes,
                  kube::kAnnotationPods, kube::kAnnotationCpus, kube::kAnnotationTimeLimit});
  kept.spec = judged_spec(std::move(pod.spec));
  static const kube::RawJson kGate{nlohmann::json::array({{{"name", kube::kGangGate}}})};
  kept.spec.scheduling_gates = kGate;
  // The operator's own condition is kept in order to see whether it must be written again.
  kept.status.conditions = only(pod.status.conditions, {kube::kPodWaiting});
}

// Keeps what pods of jobs need: the states of their containers decide about the gang, and statuses
// quote their messages.
void keep_ours(kube::Pod& pod, kube::Pod& kept) {
  kept.metadata.labels = only(pod.metadata.labels, {kube::kLabelJobUid, kube::kLabelArrayTask,
                                                    kube::kLabelGang, kube::kBatchControllerUid});
  kept.metadata.owner_references = only_controller(pod.metadata);
  // The node that a pod is pinned to and not bound to yet.
  // Affinity in general may be large; what node_of() reads of it is one name, from which the same
  // small affinity is made again.
  if (!pod.spec.node_name) {
    if (const auto node = node_of(pod)) {
      kept.spec.affinity = kube::RawJson{affinity_to_node(head(*node))};
    }
  }
  kept.spec.active_deadline_seconds = pod.spec.active_deadline_seconds;
  kept.spec.termination_grace_period_seconds = pod.spec.termination_grace_period_seconds;
  kept.spec.init_containers = only_hazards(pod.spec.init_containers);
  kept.spec.containers = only_hazards(pod.spec.containers);
  kept.status.reason = head(pod.status.reason);
  kept.status.message = head(pod.status.message, kMessageBytesMax);
  kept.status.conditions = only(
      pod.status.conditions,
      {"PodScheduled", "DisruptionTarget", kube::kReady, kube::kPodSuspended, kube::kPodWaiting});
  kept.status.init_container_statuses = short_states(pod.status.init_container_statuses);
  kept.status.container_statuses = short_states(pod.status.container_statuses);
}

// Keeps what counts of other pods, which are most of a cluster's: their memory and devices take
// room on the node, and one of them may be the node's agent.
void keep_foreign(kube::Pod& pod, kube::Pod& kept) {
  kept.metadata.labels =
      only(pod.metadata.labels, {kube::kLabelName, kube::kLabelComponent, kube::kLabelGang});
  // The sums stand in for the containers: nothing else of them is read.
  kube::Container all;
  if (const kube::Bytes memory = memory_request(pod); memory.value() > 0) {
    all.resources.requests.emplace("memory", kube::Quantity::from_units(memory.value()));
  }
  keep_devices(device_requests(pod.spec), kPodDeviceKindsMax,
               [&](const std::string& resource, int count) {
                 all.resources.requests.emplace(resource, kube::Quantity::from_units(count));
               });
  if (!all.resources.requests.empty()) kept.spec.containers.push_back(std::move(all));
  kept.status.conditions = only(pod.status.conditions, {kube::kReady, kube::kPodWaiting});
  for (const kube::ContainerStatus& status : pod.status.container_statuses) {
    // The node can switch if the agent's container runs.
    if (status.name != kube::kAgentContainer) continue;
    kept.status.container_statuses = {{.name = status.name, .state = short_state(status.state)}};
    break;
  }
}

// The API server takes 20 rules. One that names more indexes than a kubegang Job may is cut, so
// that it is still refused.
void shorten(kube::BatchSuccessPolicy& policy) {
  for (kube::BatchSuccessRule& rule : policy.rules) {
    if (rule.succeeded_indexes.size() <= kIndexesBytesMax) continue;
    rule.succeeded_indexes = head(rule.succeeded_indexes, kIndexesBytesMax + 1);
  }
}

kube::ResourceList only(const kube::ResourceList& all, Names names) {
  kube::ResourceList kept;
  for (const auto& [name, quantity] : all) {
    if (is_one_of(name, names)) kept.emplace(name, quantity);
  }
  return kept;
}

// Keeps labels in two rounds, kubegang's first: partitions, jobs and their users may select by any
// label, and a node with more labels than are kept must not lose those that kubegang's partitions
// and notes depend on. Within a round the order is that of the names.
kube::Labels labels_of_node(kube::Labels& all) {
  kube::Labels kept;
  std::size_t bytes = 0;
  for (const bool ours : {true, false}) {
    for (auto at = all.begin(); at != all.end();) {
      const auto next = std::next(at);
      const std::size_t more = at->first.size() + at->second.size();
      if (at->first.starts_with(kube::kAnnotationPrefix) == ours &&
          bytes + more <= kNodeLabelsBytesMax) {
        bytes += more;
        kept.insert(all.extract(at));
      }
      // extract() has made the iterator invalid, hence `next`.
      at = next;
    }
  }
  return kept;
}

}  // namespace

// 1. a pod behind kubegang's gate: what makes it part of a gang
// 2. a pod of a job
// 3. any other pod: its memory and its node
// `kept` starts empty and takes what is needed. So a field that is added to kube::Pod is dropped
// until a reader asks for it, and not kept by accident.
void keep_what_is_read(kube::Pod& pod) {
  kube::Pod kept{.metadata = identity_of(pod.metadata)};
  kept.status.phase = pod.status.phase;
  if (has_gang_gate(pod)) {
    keep_gated(pod, kept);
  } else {
    job_uid_of(pod).empty() ? keep_foreign(pod, kept) : keep_ours(pod, kept);
    // The last field to be moved: the functions above read it.
    kept.spec.node_name = std::move(pod.spec.node_name);
  }
  replace(pod, std::move(kept));
}

bool concerns_only_its_node(const kube::Pod& pod) {
  return job_uid_of(pod).empty() && !has_gang_gate(pod) && !is_agents(pod);
}

const kube::KnownFields& fields_of_pods() {
  static const kube::KnownFields kFields = [] {
    kube::KnownFields fields = kube::known_fields<kube::Pod>();
    for (const char* list : {"containers", "initContainers"}) {
      for (const char* field : {"env", "workingDir", "readinessProbe"}) {
        fields.remove({"spec", list, field});
      }
    }
    return fields;
  }();
  return kFields;
}

void keep_what_is_read(kube::BatchJob& job) {
  // The template stays as far as it is judged; pods are made of the whole one, which is read again
  // then.
  kube::ObjectMeta kept = identity_of(job.metadata);
  kept.annotations =
      only_short(job.metadata.annotations,
                 {kube::kAnnotationPartition, kube::kAnnotationQos, kube::kAnnotationNodes});
  replace(job.metadata, std::move(kept));
  // One that has finished gets no more attempts.
  job.spec.pod_template =
      kube::is_finished(job.status) ? kube::RawJson{} : judged_template(job.spec.pod_template);
  if (job.spec.success_policy) shorten(*job.spec.success_policy);
}

// The spec is small and stays; only capacities and readiness are read from the status.
void keep_what_is_read(kube::Node& node) {
  kube::Node kept{.metadata = identity_of(node.metadata), .spec = std::move(node.spec)};
  kept.metadata.labels = labels_of_node(node.metadata.labels);
  kept.status.capacity = only(node.status.capacity, {"cpu"});
  // The resources that the operator counts on a node (translate_node()).
  kept.status.allocatable =
      only(node.status.allocatable, {"cpu", "memory", "pods", "ephemeral-storage"});
  keep_devices(node.status.allocatable, kNodeDeviceKindsMax,
               [&](const std::string& resource, const kube::Quantity& amount) {
                 kept.status.allocatable.emplace(resource, amount);
               });
  kept.status.conditions = only(node.status.conditions, {kube::kReady});
  // Whether it mounts images (image_volume.h).
  kept.status.node_info.kubelet_version = head(node.status.node_info.kubelet_version);
  kept.status.node_info.container_runtime_version =
      head(node.status.node_info.container_runtime_version);
  replace(node, std::move(kept));
}

// Everything that users can make large goes.
void keep_identity(kube::ObjectMeta& metadata) {
  replace(metadata, identity_of(metadata));
}

// Keeps the metadata of kubegang Jobs, whose spec and status stay whole.
void keep_what_jobs_need(kube::ObjectMeta& metadata) {
  kube::ObjectMeta kept = identity_of(metadata);
  kept.labels = only(metadata.labels, {kube::kLabelGang, kube::kLabelPodGroup, kube::kLabelAttempt,
                                       kube::kLabelFailures});
  kept.annotations =
      only_short(metadata.annotations, {kube::kAnnotationUser, kube::kAnnotationName});
  kept.owner_references = only_controller(metadata);
  replace(metadata, std::move(kept));
}

}  // namespace control
