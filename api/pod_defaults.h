// PodDefaults: what administrators add to the pods of jobs in a partition, under what the jobs say
// themselves. The parts are Kubernetes' own and stay the JSON that came.
#pragma once

#include <optional>
#include <string>

#include "kube/api/meta.h"
#include "kube/api/raw_json.h"

namespace kube {

// Whether the pods need an identity of their namespace where an administrator's volume or pull
// secret comes in.
enum class IdentityPolicy { kRequired, kIfKnown };
constexpr auto names_of(std::type_identity<IdentityPolicy>) {
  return std::to_array<EnumName<IdentityPolicy>>(
      {{IdentityPolicy::kRequired, "Required"}, {IdentityPolicy::kIfKnown, "IfKnown"}});
}

struct PodDefaults {
  std::string image{};           // of a first container that names none
  RawJson image_pull_secrets{};  // lists, as in a PodSpec and a Container
  RawJson volumes{};
  RawJson volume_mounts{};  // of all containers that are not init containers
  RawJson env{};
  RawJson security_context{};                // a PodSecurityContext
  std::optional<IdentityPolicy> identity{};  // absent: Required

  friend bool operator==(const PodDefaults&, const PodDefaults&) = default;
};

}  // namespace kube
