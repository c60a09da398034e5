// core/v1 Event, as `kubectl describe` shows it. An event about a cluster-scoped object lives in
// namespace "default". SOURCE: k8s.io/api core/v1.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "kube/api/meta.h"

namespace kube {

struct ObjectReference {
  std::string api_version{};
  std::string kind{};
  std::string ns{};  // "namespace"
  std::string name{};
  std::string uid{};
  std::string resource_version{};

  friend bool operator==(const ObjectReference&, const ObjectReference&) = default;
};

// Returns a reference to any typed object.
template <ApiObject T>
ObjectReference reference_to(const T& object) {
  const ResourceInfo& info = T::kResource;
  return {.api_version = info.group.empty()
                             ? std::string{info.version}
                             : std::string{info.group} + "/" + std::string{info.version},
          .kind = std::string{info.kind},
          .ns = object.metadata.ns,
          .name = object.metadata.name,
          .uid = object.metadata.uid,
          .resource_version = object.metadata.resource_version};
}

struct EventSource {
  std::string component{};
  std::string host{};

  friend bool operator==(const EventSource&, const EventSource&) = default;
};

struct Event {
  static constexpr ResourceInfo kResource{"", "v1", "events", "Event", true};

  ObjectMeta metadata{};
  ObjectReference involved_object{};
  std::string type{};    // Normal | Warning
  std::string reason{};  // CamelCase
  std::string message{};
  EventSource source{};
  std::int32_t count = 1;
  std::optional<base::Instant> first_timestamp{};
  std::optional<base::Instant> last_timestamp{};

  friend bool operator==(const Event&, const Event&) = default;
};

template <>
base::Result<Event> decode<Event>(const JsonView& object);
template <>
const KnownFields& known_fields<Event>();
nlohmann::json encode(const Event& event);

}  // namespace kube
