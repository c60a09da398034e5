// The name by which an API server knows its user, where the way to log in says it.
#pragma once

#include <optional>
#include <string>

#include "kube/transport_config.h"

namespace kube {

// Returns the name of who is impersonated, of the subject of a client certificate, or of a service
// account's token: the API server takes it from there. nullopt: it must be asked
// (SelfSubjectReview). For what people see, not for rights: nothing here is verified.
std::optional<std::string> own_name(const TransportConfig& config);

}  // namespace kube
