// Identities of namespaces, and the variables in a partition's podDefaults that follow from them.
// Pure.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <set>
#include <string>

#include "api/account.h"
#include "base/result.h"
#include "kube/api/raw_json.h"
#include "translation/pod_defaults.h"

namespace control {

// Returns who the pods of the namespace are if the account says it; a name that is left out is the
// namespace's.
std::optional<kube::PodIdentity> identity_of(const kube::AccountSpec& account,
                                             const std::string& ns);

// As apply_pod_defaults(), with $(NAMESPACE), $(USER), $(UID), $(GID) and $(HOME) replaced in the
// defaults' volumes, mounts and values of variables: all but the first are of the identity. Other
// names are the kubelet's affair where it looks for them, in `env` and in a mount's subPathExpr.
// The escape is Kubernetes': $$ is $.
//
// kInvalidArgument, a sentence for the job's user: also if one of them has no value.
base::Status add_pod_defaults(nlohmann::json& pod_spec, const kube::Job& job,
                              DefaultsInForce in_force);

// Returns the names in a list of volumes or mounts that nothing replaces.
std::set<std::string> unknown_variables(const kube::RawJson& list);

}  // namespace control
