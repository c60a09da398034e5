// The fields that a pod gets from its Partition (spec.podDefaults) and from the identity of its
// namespace (an Account's), under those of its Job. Pure.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "api/account.h"
#include "api/job.h"
#include "api/pod_defaults.h"
#include "base/result.h"

namespace control {

// The defaults in force when a job starts.
struct DefaultsInForce {
  std::string partition;
  std::optional<kube::PodDefaults> defaults;
  std::optional<kube::PodIdentity> identity;
  friend bool operator==(const DefaultsInForce&, const DefaultsInForce&) = default;
};

// Returns the faults of a partition's defaults as whole sentences. Empty = legal.
std::vector<std::string> pod_defaults_problems(const kube::PodDefaults& defaults);

// Batch scripts get defaults unless they say no; other Jobs if they ask for them.
bool takes_pod_defaults(const kube::JobSpec& spec);

// Adds them to the spec of a template:
//
// 1. A template that reaches for a volume of the defaults by itself is refused: its mount could be
//    another one than the administrator means.
// 2. If an administrator's volume or pull secret comes in, the namespace's identity decides under
//    which user everything runs. A template that wants another one, or a way to become it, is
//    refused. Without an identity the job is refused, unless the defaults say IfKnown.
// 3. Otherwise the identity is a default like the others.
// 4. Image, pull secrets, volumes, mounts, variables, security context: where the template has none
//    of that name or place.
//
// kInvalidArgument: a sentence for the job's user.
base::Status apply_pod_defaults(nlohmann::json& pod_spec, const kube::JobSpec& spec,
                                const DefaultsInForce& in_force);

}  // namespace control
