// The parts of a Service that a job's headless Service needs. SOURCE: k8s.io/api core/v1.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "kube/api/meta.h"
#include "kube/api/raw_json.h"

namespace kube {

struct ServicePort {
  std::string name{};
  std::string protocol{};  // TCP (absent) | UDP | SCTP
  std::int32_t port = 0;
  RawJson target_port{};  // a number, or the name of a port of the pods' containers

  friend bool operator==(const ServicePort&, const ServicePort&) = default;
};

struct ServiceSpec {
  std::optional<std::string> cluster_ip{};  // "None" = headless
  Labels selector{};
  std::vector<ServicePort> ports{};
  bool publish_not_ready_addresses = false;

  friend bool operator==(const ServiceSpec&, const ServiceSpec&) = default;
};

struct Service {
  static constexpr ResourceInfo kResource{"", "v1", "services", "Service", true};

  ObjectMeta metadata{};
  ServiceSpec spec{};

  friend bool operator==(const Service&, const Service&) = default;
};

template <>
base::Result<Service> decode<Service>(const JsonView& object);
template <>
const KnownFields& known_fields<Service>();
nlohmann::json encode(const Service& service);

}  // namespace kube
