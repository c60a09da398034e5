// Lease: which process leads, and until when that may be believed. SOURCE: k8s.io/api
// coordination/v1.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "kube/api/meta.h"

namespace kube {

struct LeaseSpec {
  std::optional<std::string> holder_identity{};  // absent or "": released
  std::optional<std::int32_t> lease_duration_seconds{};
  std::optional<base::Instant> acquire_time{};
  std::optional<base::Instant> renew_time{};
  std::optional<std::int32_t> lease_transitions{};

  friend bool operator==(const LeaseSpec&, const LeaseSpec&) = default;
};

struct Lease {
  static constexpr ResourceInfo kResource{"coordination.k8s.io", "v1", "leases", "Lease", true};

  ObjectMeta metadata{};
  LeaseSpec spec{};

  friend bool operator==(const Lease&, const Lease&) = default;
};

template <>
base::Result<Lease> decode<Lease>(const JsonView& object);
template <>
const KnownFields& known_fields<Lease>();
nlohmann::json encode(const Lease& lease);

}  // namespace kube
