// Deliberate breaks of rules that matter, to show that the checkers find them. Each is made where
// the simulation stands between the real parts: what the API server keeps, what the writer
// acknowledges, what the agent's policy gets, what is on the disk.
#pragma once

#include <array>
#include <optional>
#include <string_view>

namespace simulation {

enum class Break {
  kNone,
  kStartNotStored,      // pods are made before the start is committed
  kEndingNotStored,     // pods are deleted before the ending is committed
  kJournalAfterFreeze,  // the journal names a pod only some time after it was frozen
  kNoBarrier,           // the incoming pods are thawed without waiting for the outgoing ones
  kStaleObeyed,         // an older timetable is obeyed as if a quorum read had said the same
  kNeverFailsOpen,      // the agents do not look at the operator's Lease
  kFrozenUnsettled,     // pods count as settled as soon as they are seen
  kDeletedStaysFrozen,  // a pod that is being deleted is not thawed
  kGoneNotListed,       // an informer does not list again after 410
  kOutcomeLost,         // a write that failed is never heard of
  kNeverConfirmed,      // an agent does not hear what its quorum read says
  kEndNotStored,        // what follows from a job's end is done before it is stored
  kChargesForgotten,    // the record of usage does not list the jobs that have nodes
  kPlaceNotStored,      // the next pod of a place is made before it is stored that it has the place
  kTableNotStored,      // timetables list a start before it is committed
  kWriteSwallowed,      // a status that only informs counts as written, and is not
  kTimeoutNotSeen,      // the operator does not see the start timeouts of jobs
  kSelectorNotSeen,     // nor the node selectors of their templates
  kDependencyNotSeen,   // nor what jobs wait for
  kDevicesNotSeen,      // nor the devices that jobs want
  kDevicesDoubled,      // nodes have twice as many devices, as operators see them
  kProbeNotSeen,        // nor the probes that a webhook has added to pods
  kProxyBelieved,       // a proxy's 404 counts as the API server's
  kClockBelieved,       // an operator does not compare its clock with the API server's
  kTimeLost,            // operators count four seconds for five
  kUncordonNotSeen,     // nor that a node is open to jobs again
  kDebugExempts,        // a pod with a debug container no longer takes turns
  kLabelExempts,        // nor does one that others have labeled
  kDeadlineExempts,     // nor one to which others have given a deadline
  kDebugEndless,        // a pod runs for a debug container for as long as that does not start
  kTableSwallowed,      // a timetable that is there already counts as written, and is not
  kPodNewsLost,         // operators do not hear of each change of a pod
  kThrottleNotSeen,     // the operator does not see how many tasks of an array may run at once
  kOutcomesNotSeen,     // nor which of them have succeeded, as its predecessor stored it
  kExitCodeNotSeen,     // nor the exit code of an array, likewise
  kTaskHoldNotSeen,     // nor that tasks are held
  kTaskCancelNotSeen,   // nor that tasks are canceled
  kHoldNotSeen,         // nor that jobs are held
  kTestOnlyNotSeen,     // nor that a job only asks when it would start
  kOverlapForgotten,    // an agent does not count for how long gangs ran beside each other
  kTurnsShifted,        // one node has its turns a slot later than the others
  kSaidAgain,           // agents repeat what they have said, though nothing has changed
  kNeverRests,          // an agent has something to do at once, whenever it has done it
};

struct BreakInfo {
  Break which;
  std::string_view name;
};

// All but kNone, by the names that the command line takes.
inline constexpr std::array<BreakInfo, 43> kBreaks{{
    {Break::kStartNotStored, "start-not-stored"},
    {Break::kEndingNotStored, "ending-not-stored"},
    {Break::kJournalAfterFreeze, "journal-after-freeze"},
    {Break::kNoBarrier, "no-barrier"},
    {Break::kStaleObeyed, "stale-obeyed"},
    {Break::kNeverFailsOpen, "never-fails-open"},
    {Break::kFrozenUnsettled, "frozen-unsettled"},
    {Break::kDeletedStaysFrozen, "deleted-stays-frozen"},
    {Break::kGoneNotListed, "gone-not-listed"},
    {Break::kOutcomeLost, "outcome-lost"},
    {Break::kNeverConfirmed, "never-confirmed"},
    {Break::kEndNotStored, "end-not-stored"},
    {Break::kChargesForgotten, "charges-forgotten"},
    {Break::kPlaceNotStored, "place-not-stored"},
    {Break::kTableNotStored, "table-not-stored"},
    {Break::kWriteSwallowed, "write-swallowed"},
    {Break::kTimeoutNotSeen, "timeout-not-seen"},
    {Break::kSelectorNotSeen, "selector-not-seen"},
    {Break::kDependencyNotSeen, "dependency-not-seen"},
    {Break::kDevicesNotSeen, "devices-not-seen"},
    {Break::kDevicesDoubled, "devices-doubled"},
    {Break::kProbeNotSeen, "probe-not-seen"},
    {Break::kProxyBelieved, "proxy-believed"},
    {Break::kClockBelieved, "clock-believed"},
    {Break::kTimeLost, "time-lost"},
    {Break::kUncordonNotSeen, "uncordon-not-seen"},
    {Break::kDebugExempts, "debug-exempts"},
    {Break::kLabelExempts, "label-exempts"},
    {Break::kDeadlineExempts, "deadline-exempts"},
    {Break::kDebugEndless, "debug-endless"},
    {Break::kTableSwallowed, "table-swallowed"},
    {Break::kPodNewsLost, "pod-news-lost"},
    {Break::kThrottleNotSeen, "throttle-not-seen"},
    {Break::kOutcomesNotSeen, "outcomes-not-seen"},
    {Break::kExitCodeNotSeen, "exit-code-not-seen"},
    {Break::kTaskHoldNotSeen, "task-hold-not-seen"},
    {Break::kTaskCancelNotSeen, "task-cancel-not-seen"},
    {Break::kHoldNotSeen, "hold-not-seen"},
    {Break::kTestOnlyNotSeen, "test-only-not-seen"},
    {Break::kOverlapForgotten, "overlap-forgotten"},
    {Break::kTurnsShifted, "turns-shifted"},
    {Break::kSaidAgain, "said-again"},
    {Break::kNeverRests, "never-rests"},
}};

// Returns nullopt if no break has that name, or for the empty name.
constexpr std::optional<Break> parse_break(std::string_view name) {
  for (const BreakInfo& info : kBreaks) {
    if (info.name == name) return info.which;
  }
  return std::nullopt;
}

// The break of a round: at most one rule, so that a finding shows which checker watches over
// it.
struct Breaks {
  Break active = Break::kNone;
  bool is(Break which) const { return active == which; }
};

}  // namespace simulation
