// kubectl sends a few commands' objects (create namespace, configmap, secret, serviceaccount; auth
// can-i; drain) as protobuf whatever the server says it understands. These, and no others, are
// turned into JSON here.
#pragma once

#include <string_view>

#include <nlohmann/json_fwd.hpp>

#include "kube/testing/api_server/api_error.h"

namespace devcluster {

inline constexpr const char* kProtobufType = "application/vnd.kubernetes.protobuf";

// 415 for other kinds, 400 for bytes that are not such a message.
// SOURCE: k8s.io/api …/generated.proto (field numbers), runtime.Unknown for the envelope.
Outcome<nlohmann::json> protobuf_to_json(std::string_view body);

}  // namespace devcluster
