// PodGroup of the coscheduling plugin: how many pods with the group's label must be there. Named
// after its kind; the kind of that name in Kubernetes' own group scheduling.k8s.io is another one.
// SOURCE: sigs.k8s.io/scheduler-plugins, apis/scheduling/v1alpha1.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string_view>

#include "kube/api/meta.h"

namespace kube {

// Labels of pods that name their PodGroup: today's, and the one of the plugin's earlier versions.
inline constexpr std::string_view kLabelPodGroup = "scheduling.x-k8s.io/pod-group";
inline constexpr std::string_view kLabelPodGroupBefore = "pod-group.scheduling.sigs.k8s.io";

// minResources, scheduleTimeoutSeconds and the status are left out: nothing reads them.
struct PodGroupSpec {
  std::optional<std::int32_t> min_member{};

  friend bool operator==(const PodGroupSpec&, const PodGroupSpec&) = default;
};

struct PodGroup {
  static constexpr ResourceInfo kResource{"scheduling.x-k8s.io", "v1alpha1", "podgroups",
                                          "PodGroup", true};

  ObjectMeta metadata{};
  PodGroupSpec spec{};

  friend bool operator==(const PodGroup&, const PodGroup&) = default;
};

template <>
base::Result<PodGroup> decode<PodGroup>(const JsonView& object);
template <>
const KnownFields& known_fields<PodGroup>();
nlohmann::json encode(const PodGroup& group);

}  // namespace kube
