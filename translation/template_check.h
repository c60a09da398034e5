// The requests of a Job's pod template, as far as they matter after its JSON was dropped, and those
// that cannot be granted. A template never changes, so it is read once. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kube/api/pod.h"
#include "kube/api/raw_json.h"
#include "translation/devices.h"

namespace control {

// The most containers of a template, and the most init containers.
inline constexpr std::size_t kTemplateContainersMax = 32;
// Bounds on what is kept of each job: the most labels of its nodeSelector, the most tolerations,
// and the most bytes of text in each of the two.
inline constexpr std::size_t kTemplateListMax = 64;
inline constexpr std::size_t kTemplateListBytesMax = 32'768;
bool is_small(const kube::Labels& node_selector);
bool is_small(const std::vector<kube::Toleration>& tolerations);

// Returns the program that starts tasks (slurm/launchers.h) which the container's command calls.
std::optional<std::string_view> launcher_of(const kube::Container& container);

struct ContainerMemory {
  std::string container;
  std::optional<kube::Bytes> limit;
  friend bool operator==(const ContainerMemory&, const ContainerMemory&) = default;
};

struct TemplateFacts {
  // Whole sentences that name the field, the value and what to do. Empty = legal.
  std::vector<std::string> problems;
  // The same, of calls of mpirun: problems unless the job has one pod, in which it works.
  std::vector<std::string> launchers;
  // These two are empty if they are larger than a template may have them.
  kube::Labels node_selector;
  std::vector<kube::Toleration> tolerations;
  std::optional<std::int64_t> grace_seconds;  // terminationGracePeriodSeconds
  std::vector<ContainerMemory> memory;        // one per container
  kube::Bytes init_memory{0};  // the largest limit of an init container; 0 = none has one
  kube::Bytes disk{0};         // ephemeral storage that its node must have
  DeviceResources devices{};   // that each pod asks for, counted or not
  std::optional<std::string> runtime_class{};
  // Devices that kube-scheduler allocates and kubegang does not count (DRA).
  bool has_resource_claims = false;
  bool may_evict = false;  // it has a priority class, and not preemptionPolicy: Never
  std::size_t init_containers_count = 0;
  std::size_t text_hash = 0;  // of the JSON, to notice that it changed though it may not
  friend bool operator==(const TemplateFacts&, const TemplateFacts&) = default;
};

// Says whose template it is: the sentences name fields that its author has.
enum class TemplateOf { kJob, kBatchJob, kGatedPods };

// Checks everything about the template that can be said without the rest of the job: the CEL rules
// of the CRD once more, and programs that start tasks themselves (srun, mpirun).
TemplateFacts check_template(const kube::RawJson& pod_template,
                             TemplateOf owner = TemplateOf::kJob);

}  // namespace control
