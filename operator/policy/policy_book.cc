#include "operator/policy/policy_book.h"

#include <algorithm>

#include "api/kstatus.h"
#include "api/wellknown.h"
#include "translation/pod_identity.h"
#include "translation/policy_values.h"
#include "translation/sentences.h"

namespace control {
namespace {

// Returns the entries that count, oldest first, ties by name: `entries` is sorted by name, and the
// sort is stable. All leaders see the same order, so they accept the same specs.
template <typename T>
std::vector<PolicyEntry<T>*> by_age(PolicyEntries<T>& entries) {
  std::vector<PolicyEntry<T>*> sorted;
  for (auto& [name, entry] : entries) {
    if (PolicyKind<T>::counts(*entry.object)) sorted.push_back(&entry);
  }
  std::stable_sort(sorted.begin(), sorted.end(), [](const auto* a, const auto* b) {
    return a->object->metadata.creation_timestamp < b->object->metadata.creation_timestamp;
  });
  return sorted;
}

// Returns the specs of an object as acceptance weighs them: what is asked now beside what is in
// force. The latter is the status that is wanted, not the one that is stored, so a write under way
// or a failed one changes nothing. The pointers are valid until decide() writes the status.
template <typename T>
auto candidate_of(const PolicyEntry<T>& entry) {
  using Spec = decltype(T::spec);
  const auto& accepted = entry.status.wanted().accepted;
  return SpecCandidate<Spec>{
      .name = entry.object->metadata.name,
      .created = entry.object->metadata.creation_timestamp.value_or(base::Instant{}),
      .newest = &entry.object->spec,
      .accepted = accepted ? &*accepted : nullptr,
      .problems = PolicyKind<T>::check(*entry.object)};
}

// Makes an object's condition Accepted. A refusal says whether an older spec is still in force.
kube::Condition accepted_condition(const SpecVerdict& verdict, std::int64_t generation) {
  kube::Condition condition{.type = std::string{kube::kAccepted},
                            .observed_generation = generation};
  if (verdict.newest_in_force) {
    condition.status = kube::ConditionStatus::kTrue;
    condition.reason = verdict.warnings.empty() ? "InForce" : "InForceWithWarning";
    condition.message =
        verdict.warnings.empty() ? "the spec is in force" : joined(verdict.warnings);
  } else {
    condition.status = kube::ConditionStatus::kFalse;
    condition.reason = "Invalid";
    condition.message = joined(verdict.problems) +
                        (verdict.any_in_force ? "; the last accepted spec stays in force" : "");
  }
  return condition;
}

}  // namespace

// 1. All specs that count, with what is wrong with each. 2. Which of them are legal together.
// 3. The status of each object, also of those that do not count.
PolicyBook::Decided PolicyBook::decide(std::span<const kube::Node* const> nodes,
                                       base::Instant now) {
  is_dirty_ = false;
  AcceptanceInput input;
  input.nodes = nodes;
  // 1. all specs that count
  PolicyKinds::for_each([&]<typename T>(std::type_identity<T>) {
    for (const PolicyEntry<T>* entry : by_age(entries<T>())) {
      PolicyKind<T>::translate(input, candidate_of(*entry));
    }
  });
  // 2. which of them are legal together
  // From here on nothing refers to `input`.
  Acceptance acceptance = accept(input);
  Decided decided{
      // The very first decision counts as a change, even if it equals the defaults: the scheduler
      // has had no configuration before it.
      .configuration_changed = !has_decided_ || !(configuration_ == acceptance.configuration),
      .parameters_changed = !(parameters_ == acceptance.parameters)};
  has_decided_ = true;
  // 3. the status of each object, also of those that do not count
  PolicyKinds::for_each([&]<typename T>(std::type_identity<T>) {
    const auto counted = by_age(entries<T>());
    for (std::size_t i = 0; i < counted.size(); ++i) {
      show(*counted[i], PolicyKind<T>::blame(acceptance, i), now, decided);
    }
    for (auto& [name, entry] : entries<T>()) {
      if (PolicyKind<T>::counts(*entry.object)) continue;
      show(entry, SpecVerdict{.problems = PolicyKind<T>::check(*entry.object)}, now, decided);
    }
  });
  configuration_ = std::move(acceptance.configuration);
  parameters_ = acceptance.parameters;
  show_preempt_modes();
  return decided;
}

// The modes in force, also where a spec leaves them to what it inherits.
// Users need not look up three objects to see what happens to their jobs.
// The condition is there from the first time on at which it was true.
void PolicyBook::show_licenses(const sched::Licenses& in_use, base::Instant now) {
  auto* const mirror = find_status<kube::SchedulerConfig>(std::string{kube::kSchedulerConfigName});
  if (mirror == nullptr) return;
  std::string over;
  for (const auto& [name, count] : in_use) {
    const int total = sched::licenses_of(configuration_.cluster.licenses, name);
    if (count <= total) continue;
    over += (over.empty() ? "" : ", ") + std::to_string(count) + " of license " + name +
            " are in use and there are " + std::to_string(total);
  }
  kube::Conditions conditions = mirror->wanted().conditions;
  const kube::Condition* const before = kube::find_condition(conditions, kube::kLicensesExceeded);
  if (over.empty() && before == nullptr) return;
  kube::Condition condition{.type = std::string{kube::kLicensesExceeded}};
  condition.status = over.empty() ? kube::ConditionStatus::kFalse : kube::ConditionStatus::kTrue;
  condition.reason = over.empty() ? "WithinLimits" : "CounterLowered";
  condition.message = over.empty()
                          ? "no more licenses are in use than there are"
                          : over + "; no job ends, and none gets any until enough are given back";
  condition.observed_generation = mirror->wanted().observed_generation;
  if (kube::set_condition(conditions, std::move(condition), now)) {
    mirror->change(WriteUrgency::kInforms).conditions = std::move(conditions);
  }
}

void PolicyBook::show_preempt_modes() {
  const auto show_mode = [](auto* mirror, sched::PreemptMode mode) {
    if (mirror == nullptr || mirror->wanted().preempt_mode == preempt_mode_of(mode)) return;
    mirror->change(WriteUrgency::kUrgent).preempt_mode = preempt_mode_of(mode);
  };
  const sched::PreemptMode cluster = configuration_.cluster.preempt_mode;
  show_mode(find_status<kube::SchedulerConfig>(std::string{kube::kSchedulerConfigName}), cluster);
  for (const auto& partition : configuration_.partitions) {
    show_mode(find_status<kube::Partition>(partition.name),
              partition.preempt_mode.value_or(cluster));
  }
  for (const auto& qos : configuration_.qos) {
    show_mode(find_status<kube::Qos>(qos.name), qos.preempt_mode.value_or(cluster));
  }
}

// Writes the verdict into the object's status, and notes a refusal for the log. Nothing is written
// if nothing has changed.
template <typename T>
void PolicyBook::show(PolicyEntry<T>& entry, const SpecVerdict& verdict, base::Instant now,
                      Decided& decided) {
  StatusMirror<T>& mirror = entry.status;
  auto wanted = mirror.wanted();
  wanted.observed_generation = entry.object->metadata.generation;
  // Otherwise `accepted` keeps the last legal spec, which a new leader reads from here.
  if (verdict.newest_in_force) wanted.accepted = entry.object->spec;
  kube::Condition condition = accepted_condition(verdict, entry.object->metadata.generation);
  const std::string message = condition.message;
  // If the spec was and is in force, only what is said about it can have changed, as with each node
  // of a partition that comes.
  const kube::Condition* before = kube::find_condition(mirror.wanted().conditions, kube::kAccepted);
  const bool only_informs = PolicyKind<T>::kFollowsNodes && verdict.newest_in_force &&
                            before != nullptr && before->status == condition.status &&
                            before->observed_generation == condition.observed_generation &&
                            wanted.accepted == mirror.wanted().accepted;
  // The same for tools that know no kind: a refused object is not fine.
  kube::Condition stalled = condition;
  stalled.type = kube::kStalled;
  stalled.status =
      verdict.newest_in_force ? kube::ConditionStatus::kFalse : kube::ConditionStatus::kTrue;
  if (!verdict.newest_in_force ||
      kube::find_condition(wanted.conditions, kube::kStalled) != nullptr) {
    (void)kube::set_condition(wanted.conditions, std::move(stalled), now);
  }
  const bool changed = kube::set_condition(wanted.conditions, std::move(condition), now);
  if (!changed && wanted == mirror.wanted()) return;
  mirror.change(only_informs ? WriteUrgency::kInforms : WriteUrgency::kUrgent) = std::move(wanted);
  // For the log, once for each refusal that is new: an unchanged one has returned above.
  if (!verdict.newest_in_force) {
    decided.refused.push_back(
        {{"kind", T::kResource.kind}, {"name", entry.object->metadata.name}, {"message", message}});
  }
}

// Goes by the accepted spec: one that was refused must not taint nodes.
bool PolicyBook::taints_nodes(const std::string& partition) const {
  const auto found = entries<kube::Partition>().find(partition);
  if (found == entries<kube::Partition>().end()) return false;
  const auto& accepted = found->second.status.wanted().accepted;
  return accepted && accepted->taint_nodes.value_or(false);
}

// Accounts that disagree about an identity are not in force together (config_acceptance.cc).
DefaultsInForce PolicyBook::pod_defaults(const std::string& partition,
                                         const std::string& ns) const {
  DefaultsInForce in_force{.partition = partition};
  const auto found = entries<kube::Partition>().find(partition);
  if (found != entries<kube::Partition>().end() && found->second.status.wanted().accepted) {
    in_force.defaults = found->second.status.wanted().accepted->pod_defaults;
  }
  for (const auto& [name, entry] : entries<kube::Account>()) {
    const auto& accepted = entry.status.wanted().accepted;
    if (accepted && !in_force.identity) in_force.identity = identity_of(*accepted, ns);
  }
  return in_force;
}

}  // namespace control
