#include "kube/api/meta.h"

#include <algorithm>
#include <utility>

#include "base/cut_text.h"

namespace kube {

// Returns the name as kubectl shows it: "ns/name", "name" for kinds without namespaces.
std::string to_string(const ObjectKey& key) {
  return key.ns.empty() ? key.name : key.ns + "/" + key.name;
}

// Null if no owner is the controller. The API server allows one.
const OwnerReference* controller_of(const ObjectMeta& meta) {
  for (const OwnerReference& owner : meta.owner_references) {
    if (owner.controller) return &owner;
  }
  return nullptr;
}

// Returns the first of that type; null if there is none.
const Condition* find_condition(const Conditions& conditions, std::string_view type) {
  for (const Condition& condition : conditions) {
    if (condition.type == type) return &condition;
  }
  return nullptr;
}

// False also for a condition that is absent or Unknown.
bool is_true(const Conditions& conditions, std::string_view type) {
  const Condition* condition = find_condition(conditions, type);
  return condition != nullptr && condition->status == ConditionStatus::kTrue;
}

// Returns true if anything changed, so that the caller writes only then. The transition time is
// kept as long as the status stays: it says since when that holds.
bool set_condition(Conditions& conditions, Condition condition, base::Instant now) {
  // Here and not when it is written: what is wanted is compared with what is stored.
  condition.message = base::shortened(std::move(condition.message), kStatusMessageBytesMax);
  const auto old = std::ranges::find(conditions, condition.type, &Condition::type);
  if (!condition.last_transition_time) {
    // metav1.Time has no fractions; storing them would make each comparison a change.
    condition.last_transition_time = std::chrono::floor<std::chrono::seconds>(now);
  }
  if (old == conditions.end()) {
    conditions.push_back(std::move(condition));
    return true;
  }
  // A new message or reason is not a transition.
  if (old->status == condition.status && old->last_transition_time) {
    condition.last_transition_time = old->last_transition_time;
  }
  if (*old == condition) return false;
  *old = std::move(condition);
  return true;
}

namespace {

bool holds(const LabelSelectorRequirement& requirement, const Labels& labels) {
  const auto found = labels.find(requirement.key);
  const bool exists = found != labels.end();
  const bool listed =
      exists && std::ranges::find(requirement.values, found->second) != requirement.values.end();
  if (requirement.op == "In") return listed;
  // Also an object without the label is not in the list.
  if (requirement.op == "NotIn") return !listed;
  if (requirement.op == "Exists") return exists;
  if (requirement.op == "DoesNotExist") return !exists;
  return false;
}

}  // namespace

bool matches(const LabelSelector& selector, const Labels& labels) {
  const bool equal = std::ranges::all_of(selector.match_labels, [&](const auto& want) {
    const auto found = labels.find(want.first);
    return found != labels.end() && found->second == want.second;
  });
  return equal && std::ranges::all_of(selector.match_expressions,
                                      [&](const auto& one) { return holds(one, labels); });
}

}  // namespace kube
