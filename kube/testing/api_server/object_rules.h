// The rules for objects of every kind (metadata), and for the built-in kinds: the defaults and the
// basic validation that callers rely on. Schemas of custom resources are in schema.h.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "kube/testing/api_server/api_error.h"
#include "kube/testing/api_server/resource_type.h"

namespace devcluster {

// metadata.name, labels, annotations and ownerReferences of a new or changed object.
std::vector<Cause> validate_metadata(const ResourceType& type, const nlohmann::json& object);

// Defaults of a built-in kind; nothing for custom resources.
void default_builtin(const ResourceType& type, nlohmann::json& object);

// Returns the errors of an object of a built-in kind. `previous`: what it replaces, or null.
std::vector<Cause> validate_builtin(const ResourceType& type, const nlohmann::json& object,
                                    const nlohmann::json* previous);

// events.k8s.io/v1 and core/v1 are two spellings of one object; it is stored as core/v1.
void event_to_core(nlohmann::json& event);
void event_from_core(nlohmann::json& event);

bool is_dns_label(std::string_view text);
bool is_dns_subdomain(std::string_view text);

}  // namespace devcluster
