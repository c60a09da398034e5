// kubectl sends the objects of a few commands as protobuf whatever the server says it understands.
// `kubectl create namespace`, which users need to begin with, is understood here, and nothing else:
// all other objects come from files, as JSON.
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
