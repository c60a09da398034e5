#include "translation/reason_names.h"

#include <array>
#include <utility>

#include "base/check.h"
#include "scheduler/model/reason_names.h"

namespace control {
namespace {

// The scheduler's names of states in the words of the API, for both directions.
// The two enumerations are equal today. They are kept apart, because one is stored in objects of
// users and the other is the scheduler's own.
constexpr auto kStates = std::to_array<std::pair<sched::JobState, kube::JobState>>({
    {sched::JobState::kPending, kube::JobState::kPending},
    {sched::JobState::kRunning, kube::JobState::kRunning},
    {sched::JobState::kSuspended, kube::JobState::kSuspended},
    {sched::JobState::kCompleted, kube::JobState::kCompleted},
    {sched::JobState::kFailed, kube::JobState::kFailed},
    {sched::JobState::kCancelled, kube::JobState::kCancelled},
    {sched::JobState::kTimeout, kube::JobState::kTimeout},
    {sched::JobState::kPreempted, kube::JobState::kPreempted},
    {sched::JobState::kNodeFail, kube::JobState::kNodeFail},
    {sched::JobState::kOutOfMemory, kube::JobState::kOutOfMemory},
    {sched::JobState::kDeadline, kube::JobState::kDeadline},
});

// The order is that of both enumerations, here and below.
constexpr auto kKinds = std::to_array<std::pair<sched::DependencyKind, kube::DependencyType>>({
    {sched::DependencyKind::kAfter, kube::DependencyType::kAfter},
    {sched::DependencyKind::kAfterAny, kube::DependencyType::kAfterAny},
    {sched::DependencyKind::kAfterOk, kube::DependencyType::kAfterOk},
    {sched::DependencyKind::kAfterNotOk, kube::DependencyType::kAfterNotOk},
    {sched::DependencyKind::kAfterCorr, kube::DependencyType::kAfterCorr},
    {sched::DependencyKind::kSingleton, kube::DependencyType::kSingleton},
});
constexpr auto kTermStates = std::to_array<std::pair<sched::TermState, kube::DependencyState>>({
    {sched::TermState::kOpen, kube::DependencyState::kUnfulfilled},
    {sched::TermState::kMet, kube::DependencyState::kFulfilled},
    {sched::TermState::kFailed, kube::DependencyState::kFailed},
});

}  // namespace

// "" stands for no reason, so that a status without one has an empty field.
std::string_view reason_name(sched::Reason reason) {
  return reason == sched::Reason::kNone ? std::string_view{} : sched::name_of(reason);
}

std::optional<sched::Reason> parse_reason(std::string_view name) {
  // nullopt for a name that this version does not know: a later version may have written the
  // status.
  return name.empty() ? sched::Reason::kNone : sched::parse_reason(name);
}

// The CHECK is reached only by a state that was added to an enumeration and forgotten in the table.
// A linear search: eleven entries, and both directions from one table.
kube::JobState state_of(sched::JobState state) {
  for (const auto& [ours, theirs] : kStates) {
    if (ours == state) return theirs;
  }
  CHECK(false);
}

sched::JobState state_of(kube::JobState state) {
  for (const auto& [ours, theirs] : kStates) {
    if (theirs == state) return ours;
  }
  CHECK(false);
}

sched::DependencyKind kind_of(kube::DependencyType type) {
  return kKinds.at(static_cast<std::size_t>(type)).first;
}

kube::DependencyType type_of(sched::DependencyKind kind) {
  return kKinds.at(static_cast<std::size_t>(kind)).second;
}

sched::TermState term_state_of(kube::DependencyState state) {
  return kTermStates.at(static_cast<std::size_t>(state)).first;
}

kube::DependencyState term_state_of(sched::TermState state) {
  return kTermStates.at(static_cast<std::size_t>(state)).second;
}

// The scheduler decides five ways to end a job before its time. Each becomes status.ending, which
// is written before the first pod is deleted (architecture.md 3, commit point 3).
// Not a table like kStates: a value that is added to an enumeration makes the compiler name each of
// these switches.
kube::EndingVerdict verdict_of(sched::EndingVerdict verdict) {
  switch (verdict) {
    case sched::EndingVerdict::kRequeue:
      return kube::EndingVerdict::kRequeue;
    case sched::EndingVerdict::kPreempted:
      return kube::EndingVerdict::kPreempted;
    case sched::EndingVerdict::kTimeout:
      return kube::EndingVerdict::kTimeout;
    case sched::EndingVerdict::kCancelled:
      return kube::EndingVerdict::kCancel;
    case sched::EndingVerdict::kDeadline:
      return kube::EndingVerdict::kDeadline;
  }
  CHECK(false);
}

// An end that was read from the pods is stored as an ending, too, so that a new leader need not
// read it from pods that may be gone.
// REQUIRES: the state is final.
kube::EndingVerdict verdict_of(sched::JobState state) {
  switch (state) {
    case sched::JobState::kCompleted:
      return kube::EndingVerdict::kCompleted;
    case sched::JobState::kFailed:
      return kube::EndingVerdict::kFailed;
    case sched::JobState::kCancelled:
      return kube::EndingVerdict::kCancel;
    case sched::JobState::kTimeout:
      return kube::EndingVerdict::kTimeout;
    case sched::JobState::kPreempted:
      return kube::EndingVerdict::kPreempted;
    case sched::JobState::kNodeFail:
      return kube::EndingVerdict::kNodeFail;
    case sched::JobState::kOutOfMemory:
      return kube::EndingVerdict::kOutOfMemory;
    case sched::JobState::kDeadline:
      return kube::EndingVerdict::kDeadline;
    case sched::JobState::kPending:
    case sched::JobState::kRunning:
    case sched::JobState::kSuspended:
      break;
  }
  CHECK(false, "not final");
}

// Returns the verdict of a stored ending that the scheduler decided, which hears it again from a
// new leader; verdicts that followed from the pods (own_verdict) are not its decisions.
std::optional<sched::EndingVerdict> decided_verdict(kube::EndingVerdict verdict) {
  switch (verdict) {
    case kube::EndingVerdict::kRequeue:
      return sched::EndingVerdict::kRequeue;
    case kube::EndingVerdict::kPreempted:
      return sched::EndingVerdict::kPreempted;
    case kube::EndingVerdict::kTimeout:
      return sched::EndingVerdict::kTimeout;
    case kube::EndingVerdict::kCancel:
      return sched::EndingVerdict::kCancelled;
    case kube::EndingVerdict::kDeadline:
      return sched::EndingVerdict::kDeadline;
    case kube::EndingVerdict::kCompleted:
    case kube::EndingVerdict::kFailed:
    case kube::EndingVerdict::kNodeFail:
    case kube::EndingVerdict::kOutOfMemory:
      return std::nullopt;
  }
  return std::nullopt;
}

// Returns the other half: verdicts that the operator itself read from the pods. Exactly one of the
// two functions returns a value.
std::optional<sched::JobState> own_verdict(kube::EndingVerdict verdict) {
  switch (verdict) {
    case kube::EndingVerdict::kCompleted:
      return sched::JobState::kCompleted;
    case kube::EndingVerdict::kFailed:
      return sched::JobState::kFailed;
    case kube::EndingVerdict::kNodeFail:
      return sched::JobState::kNodeFail;
    case kube::EndingVerdict::kOutOfMemory:
      return sched::JobState::kOutOfMemory;
    case kube::EndingVerdict::kRequeue:
    case kube::EndingVerdict::kPreempted:
    case kube::EndingVerdict::kTimeout:
    case kube::EndingVerdict::kCancel:
    case kube::EndingVerdict::kDeadline:
      return std::nullopt;
  }
  return std::nullopt;
}

}  // namespace control
