// Namespace. SOURCE: k8s.io/api core/v1.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "kube/api/meta.h"

namespace kube {

struct NamespaceStatus {
  std::string phase{};  // Active | Terminating

  friend bool operator==(const NamespaceStatus&, const NamespaceStatus&) = default;
};

struct Namespace {
  static constexpr ResourceInfo kResource{"", "v1", "namespaces", "Namespace", false};

  ObjectMeta metadata{};
  NamespaceStatus status{};

  friend bool operator==(const Namespace&, const Namespace&) = default;
};

template <>
base::Result<Namespace> decode<Namespace>(const JsonView& object);
template <>
const KnownFields& known_fields<Namespace>();
nlohmann::json encode(const Namespace& object);

}  // namespace kube
