// The part that all objects have: ObjectMeta, owner references, conditions, label selectors.
// SOURCE: k8s.io/apimachinery pkg/apis/meta/v1; the fields that we use.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "base/time.h"
#include "kube/api/enum_names.h"
#include "kube/api/json_text.h"
#include "kube/api/json_view.h"
#include "kube/api/known_fields.h"
#include "kube/api/resource_info.h"

namespace kube {

using Labels = std::map<std::string, std::string>;

struct OwnerReference {
  std::string api_version{};
  std::string kind{};
  std::string name{};
  std::string uid{};
  bool controller = false;
  bool block_owner_deletion = false;

  friend bool operator==(const OwnerReference&, const OwnerReference&) = default;
};

struct ObjectMeta {
  std::string name{};
  std::string generate_name{};
  std::string ns{};  // metadata.namespace; "" = cluster-scoped
  std::string uid{};
  std::string resource_version{};  // opaque: compare for equality only
  std::int64_t generation = 0;
  Labels labels{};
  Labels annotations{};
  std::vector<OwnerReference> owner_references{};
  std::optional<base::Instant> creation_timestamp{};
  std::optional<base::Instant> deletion_timestamp{};
  std::optional<std::int64_t> deletion_grace_period_seconds{};

  friend bool operator==(const ObjectMeta&, const ObjectMeta&) = default;
};

// The key of an object in caches, work queues and log lines. ns is "" for cluster-scoped kinds.
struct ObjectKey {
  std::string ns{};
  std::string name{};

  friend auto operator<=>(const ObjectKey&, const ObjectKey&) = default;
};
// Returns "team-a/myload", or "batch" for a cluster-scoped object.
std::string to_string(const ObjectKey& key);

inline ObjectKey key_of(const ObjectMeta& meta) {
  return {meta.ns, meta.name};
}

// Returns the owner that has controller = true, or null. Valid as long as meta.
const OwnerReference* controller_of(const ObjectMeta& meta);

enum class ConditionStatus { kTrue, kFalse, kUnknown };
constexpr auto names_of(std::type_identity<ConditionStatus>) {
  return std::to_array<EnumName<ConditionStatus>>({{ConditionStatus::kTrue, "True"},
                                                   {ConditionStatus::kFalse, "False"},
                                                   {ConditionStatus::kUnknown, "Unknown"}});
}

// metav1.Condition; also read from Pods and Nodes, whose conditions are the same but for a
// heartbeat.
struct Condition {
  std::string type{};
  ConditionStatus status = ConditionStatus::kUnknown;
  std::optional<std::int64_t> observed_generation{};
  std::optional<base::Instant> last_heartbeat_time{};  // Nodes only
  std::optional<base::Instant> last_transition_time{};
  std::string reason{};
  std::string message{};

  friend bool operator==(const Condition&, const Condition&) = default;
};
using Conditions = std::vector<Condition>;

// The most that we say in a message of a condition or status. People read it, and it must be far
// below the bounds of the CRDs (32,768 characters): a status beyond them is never stored.
inline constexpr std::size_t kStatusMessageBytesMax = 4096;

// Returns the condition of that type, or null. Valid until the list is changed.
const Condition* find_condition(const Conditions& conditions, std::string_view type);
bool is_true(const Conditions& conditions, std::string_view type);

// Adds or replaces the condition of the same type. lastTransitionTime stays unless the status
// changes, in which case it becomes condition.last_transition_time or, if that is absent, `now` in
// whole seconds. Shortens the message to kStatusMessageBytesMax. Returns whether anything changed.
bool set_condition(Conditions& conditions, Condition condition, base::Instant now);

struct LabelSelectorRequirement {
  std::string key{};
  std::string op{};  // "operator": In | NotIn | Exists | DoesNotExist
  std::vector<std::string> values{};

  friend bool operator==(const LabelSelectorRequirement&,
                         const LabelSelectorRequirement&) = default;
};

struct LabelSelector {
  Labels match_labels{};
  std::vector<LabelSelectorRequirement> match_expressions{};

  friend bool operator==(const LabelSelector&, const LabelSelector&) = default;
};

// Returns true if all requirements hold. A requirement with an unknown operator matches nothing; a
// selector without requirements matches everything.
bool matches(const LabelSelector& selector, const Labels& labels);

// Decodes one object of the kind, of which the known fields were read. Unknown fields are ignored,
// null is the same as absent, "" in an optional string too. kInvalidArgument names the object, the
// field and the value: `Job team-a/x: spec.resources.nodes.min: want an integer, got "three"`.
template <typename T>
base::Result<T> decode(const JsonView& object);

// Does the same for a tree. Cost: writes its text and reads that.
template <typename T>
base::Result<T> decode(const nlohmann::json& tree) {
  const std::string text = compact_text(tree);
  const auto read = JsonText::read(text, known_fields<T>());
  return decode<T>(read ? read->root() : JsonView{});
}

// A kind of object: a plain struct with kResource, metadata, decode<T> and encode.
template <typename T>
concept ApiObject = requires(const T& object) {
  { T::kResource } -> std::convertible_to<ResourceInfo>;
  { object.metadata } -> std::convertible_to<ObjectMeta>;
};

}  // namespace kube
