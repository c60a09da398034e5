// Bounds, and words for findings, that the checkers of the ledger share.
#pragma once

#include <chrono>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "api/job.h"
#include "base/number_list.h"
#include "simulation/clock.h"
#include "translation/pod_slots.h"
#include "translation/task_key.h"

namespace simulation {

// Bounds that are promised stand beside their checkers (docs/design/faults.md, section 1). These
// say how long an explanation holds.
//
// As World::kSampleEvery: what holds at a look counts for one such step.
inline constexpr Time kSample = std::chrono::milliseconds{100};
// How long a process may need to hear again after its link was cut or its worker was started.
inline constexpr Time kHearsWithin = std::chrono::seconds{3};
// A user's wish counts for a start once the operator has been well this long since the wish.
inline constexpr Time kHeardWithin = std::chrono::seconds{1};
// An agent writes its status once in this time, whatever it has to say.
inline constexpr Time kToldWithin = std::chrono::seconds{5};
// After etcd was restored the leader of before stores what it knew until its next renewal of the
// Lease, 2 s at most; then the next leader puts that right.
inline constexpr Time kTwoLeadersWithin = std::chrono::seconds{2} + kHearsWithin;
// After etcd was restored statuses and timetables describe a past that the programs have left
// behind. Until the operator has put them right nothing that is compared with them counts.
inline constexpr Time kAfterRestore = std::chrono::seconds{60};

inline std::string text_of(base::Duration duration) {
  return std::to_string(duration / std::chrono::milliseconds{1}) + " ms";
}

inline bool is_final_state(const kube::Job& job) {
  return job.status.state && kube::is_final(*job.status.state);
}

inline std::string state_of(const kube::Job& job) {
  return job.status.state ? std::string{kube::to_string(*job.status.state)} : "none";
}

// Returns a job, or a task of an array as "sweep_3", for findings.
inline std::string title_of(const std::string& name, std::optional<int> task) {
  return task ? name + "_" + std::to_string(*task) : name;
}
inline std::string title_of(const kube::Job& job) {
  return title_of(job.metadata.name, control::task_in(job.metadata.uid));
}

// Returns the terms that a job fulfills that was deleted before it had ended.
inline std::set<std::string> fate_of_deleted() {
  return {"After", "AfterAny", "AfterNotOK"};
}

// Parses a list of indexes of pods ("0,2-3"); empty if it is malformed.
inline std::set<int> indexes_in(std::string_view text) {
  constexpr int kIndexMax = 99'999;
  const auto indexes = base::parse_number_list(text, kIndexMax).value_or(std::vector<int>{});
  return {indexes.begin(), indexes.end()};
}

// Returns the names of the nodes, by way of the pods that the job has there.
inline std::set<std::string> nodes_of(const kube::Allocation& allocation) {
  std::set<std::string> nodes;
  const auto slots = control::pod_slots({}, allocation, kube::PodPolicy::kPerNode);
  if (!slots.ok()) return nodes;
  for (const control::PodSlot& slot : *slots) nodes.insert(slot.node);
  return nodes;
}

// Returns how many pods the job has at once with this allocation.
inline std::size_t pods_at_once(const kube::Job& job, const kube::Allocation& allocation) {
  const auto slots =
      control::pod_slots({}, allocation, job.spec.pod_policy.value_or(kube::PodPolicy::kPerNode));
  return slots.ok() ? slots->size() : static_cast<std::size_t>(allocation.nodes);
}

}  // namespace simulation
