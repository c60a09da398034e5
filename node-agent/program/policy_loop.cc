#include "node-agent/program/policy_loop.h"

#include <algorithm>

namespace agent {
namespace {

// A bound on the pause between two steps, as a safety net: everything that changes wakes the loop,
// or has said when it will change.
constexpr base::Duration kStepMax = std::chrono::seconds{5};

}  // namespace

PolicyLoop::PolicyLoop(const kube::Clock& clock, NodeWatch& watch, NodePolicy& policy,
                       const Journal& before)
    : clock_{clock},
      watch_{watch},
      policy_{policy},
      rules_before_{before.rules},
      lease_watch_{before.lease, clock.monotonic()} {
  inputs_.lease = lease_watch_.seen();
}

// Reads both clocks once, so that all rules of one step see one instant.
void PolicyLoop::read(bool stopping) {
  inputs_.wall = clock_.wall();
  inputs_.monotonic = clock_.monotonic();
  inputs_.stopping = stopping;
  watch_.read(inputs_, rules_before_);
  // Before the reading itself: one that ends in between is not missed.
  const std::optional<base::Duration> tried = watch_.lease_tried();
  // Only a new reading counts: to hand the same one on again would make an operator that is gone
  // look as if it had renewed.
  if (const std::optional<LeaseReading> lease = watch_.lease(); lease != last_lease_) {
    last_lease_ = lease;
    lease_watch_.read(lease->renew_time, lease->at);
    inputs_.lease = lease_watch_.seen();
  }
  const bool is_over =
      lease_watch_.failed_open(inputs_.monotonic, inputs_.settings.fail_open_after);
  if (fail_open_.look(is_over, tried, inputs_.monotonic)) watch_.ask_lease();
  inputs_.failed_open = fail_open_.is_open();
}

// 1. the policy's step, 2. a quorum read if the policy wants one, 3. the earliest of: the policy's
//    own wish, the instant of failing open, kStepMax.
base::Duration PolicyLoop::decide(const Inputs& told) {
  const std::optional<base::Duration> next = policy_.step(told);
  watch_.confirm_timetable(policy_.needs_confirmation());
  base::Duration at = inputs_.monotonic + kStepMax;
  if (next) at = std::min(at, *next);
  // Nothing wakes the loop when the Lease is NOT renewed, so it must wake up by itself at that
  // instant.
  if (const auto again = fail_open_.look_again_at()) {
    at = std::min(at, *again);
  } else if (!inputs_.failed_open) {
    at = std::min(at, lease_watch_.fails_open_at(inputs_.settings.fail_open_after));
  }
  return at;
}

// Returns what the policy and the watches know; clock, topology and grants are the agent's own
// (Agent::tell).
AgentReport PolicyLoop::report() const {
  return {.pods = policy_.pods(),
          .cpu_notes = policy_.cpu_notes(),
          .in_force = policy_.timetable(),
          .verdict = policy_.last_verdict(),
          .timetable_complaint = policy_.timetable_complaint(),
          .ignored = policy_.offers_ignored(),
          .undecodable = inputs_.timetable_undecodable,
          .journal_error = policy_.journal_error(),
          .failed_open = inputs_.failed_open,
          .kill_switch = inputs_.kill_switch};
}

}  // namespace agent
