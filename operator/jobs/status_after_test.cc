// Each decision changes some fields of a status and leaves the others alone.
#include "operator/jobs/status_after.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

#include "api/kstatus.h"
#include "api/wellknown.h"

namespace control {
namespace {

using kube::ConditionStatus;
using std::chrono::seconds;

constexpr base::Instant kDecidedAt{std::chrono::seconds{1'000}};
const std::string kNode = "n1";

// The job's generation is 3, and each node is called n1.
DecisionContext context() {
  return {.now = kDecidedAt,
          .generation = 3,
          .node_name = [](sched::NodeIndex) -> const std::string& { return kNode; }};
}

// Ready for a minute, submitted half a minute before that.
kube::JobStatus running() {
  kube::JobStatus status;
  status.state = kube::JobState::kRunning;
  status.job_id = 7;
  status.partition = "batch";
  status.allocation = kube::Allocation{.hostlist = "n1"};
  status.starts = 1;
  status.submit_time = kDecidedAt - seconds{90};
  status.start_time = kDecidedAt - seconds{60};
  return status;
}

// Returns "True Reason" of a condition that this decision has set, at the present generation.
std::string says(const kube::JobStatus& status, std::string_view type) {
  const kube::Condition* found = kube::find_condition(status.conditions, type);
  if (found == nullptr) return "";
  EXPECT_EQ(found->observed_generation, 3);
  return std::string{kube::to_string(found->status)} + " " + found->reason;
}

// Everything that a status can hold, so that what a decision must forget is seen.
kube::JobStatus full() {
  kube::JobStatus status = running();
  status.observed_generation = 3;
  status.reason = "Before";
  status.message = "before";
  status.priority = 5;
  status.term = 2;
  status.restarts = 1;
  status.eligible_time = status.end_time = status.expected_start_time = kDecidedAt - seconds{70};
  status.planned_nodes = "n9";
  status.preempt_eligible_time = kDecidedAt - seconds{50};
  status.run_time = status.suspend_time = kube::RunTime{seconds{40}, kDecidedAt - seconds{1}};
  status.claim = kube::JobClaim{.hostlist = "n8"};
  status.ending = kube::JobEnding{.reason = "TheEndings"};
  status.held = kube::JobHeld{"JobHeldAdmin"};
  status.exit_code = 9;
  status.usage = kube::JobUsage{.user_cpu = seconds{9}};
  status.observed = kube::JobObserved{1, 2};
  for (const std::string_view type :
       {kube::kAccepted, kube::kReady, kube::kCompleting, kube::kNeverFrozen}) {
    status.conditions.push_back(
        {.type = std::string{type}, .status = ConditionStatus::kTrue, .reason = "Before"});
  }
  return status;
}

// Returns "Accepted True Before, …": all conditions by their names.
std::string all_conditions(const kube::JobStatus& status) {
  std::set<std::string> sorted;
  for (const kube::Condition& each : status.conditions) {
    sorted.insert(each.type + " " + std::string{kube::to_string(each.status)} + " " + each.reason);
  }
  std::string text;
  for (const std::string& each : sorted) text += (text.empty() ? "" : ", ") + each;
  return text;
}

// All but the conditions.
void expect_status(const kube::JobStatus& got, kube::JobStatus want) {
  want.conditions = got.conditions;
  EXPECT_EQ(got, want);
}

// From a status in which every field is set to what it must be after a start, compared as a whole.
// An old exit code or start time would be shown for a run that has just begun.
TEST(StatusAfter, AStartForgetsWhatWasOfEarlierOnes) {
  DecisionContext in = context();
  in.partition = "batch";
  sched::Start start{.job = sched::JobId{7}, .partition = {}, .allocation = {}};
  start.allocation.nodes.push_back({.node = sched::NodeIndex{0}, .cpus = 4});
  const auto [status, urgency] = status_after(start, full(), in);
  kube::JobStatus want = full();
  want.reason = want.message = want.planned_nodes = "";
  want.allocation = status.allocation;
  // The number of the start, which is in the names of its pods.
  want.starts = 2;
  want.start_time = want.end_time = want.expected_start_time = std::nullopt;
  want.ending.reset();
  want.claim.reset();
  want.exit_code.reset();
  want.usage.reset();
  expect_status(status, want);
  EXPECT_EQ(all_conditions(status),
            "Accepted True Before, Completing False NotEnding, NeverFrozen False NotStarted, "
            "Ready False Starting");
  EXPECT_EQ(kube::find_condition(status.conditions, kube::kReady)->last_transition_time,
            kDecidedAt);
}

// Users look at these for long after the end; plans, claims and holds would be of no meaning. The
// conditions are those that `kubectl wait` knows: Complete, and Finished for either end.
TEST(StatusAfter, AFinalStateKeepsWhereAndHowLongItRan) {
  const sched::StateChange change{.job = sched::JobId{7},
                                  .state = sched::JobState::kCompleted,
                                  .reason = sched::Reason::kNone,
                                  .exit_code = 0,
                                  .restarts = 1};
  DecisionContext in = context();
  in.usage = kube::JobUsage{.user_cpu = seconds{5}};
  const auto [status, urgency] = status_after(change, full(), in);
  kube::JobStatus want = full();
  want.usage = in.usage;
  want.state = kube::JobState::kCompleted;
  // The scheduler named no reason (kNone), so the ending's stays.
  want.reason = "TheEndings";
  want.message = want.planned_nodes = "";
  want.end_time = kDecidedAt;
  want.expected_start_time.reset();
  want.ending.reset();
  want.claim.reset();
  want.held.reset();
  want.exit_code = 0;
  expect_status(status, want);
  EXPECT_EQ(all_conditions(status),
            "Accepted True Before, Complete True Completed, Completing False Completed, "
            "Finished True Completed, NeverFrozen True Before");
}

// As after its first submission, but for its number, its starts and the wishes for it. With
// two of the three reasons the system holds the job, so that a person must look at it; the hold
// is stored, or the next leader would start the job again.
TEST(StatusAfter, AJobThatWaitsAgainForgetsItsStart) {
  for (const sched::Reason reason : {sched::Reason::kBeginTime, sched::Reason::kJobHoldMaxRequeue,
                                     sched::Reason::kLaunchFailedRequeuedHeld}) {
    kube::JobStatus before = full();
    before.held.reset();
    DecisionContext in = context();
    in.partition = "batch,other";
    const sched::StateChange change{.job = sched::JobId{7},
                                    .state = sched::JobState::kPending,
                                    .reason = reason,
                                    .exit_code = 4,
                                    .restarts = 2,
                                    .eligible_at = kDecidedAt + seconds{120}};
    const auto [status, urgency] = status_after(change, before, in);
    kube::JobStatus want = before;
    want.state = kube::JobState::kPending;
    want.reason = status.reason;
    EXPECT_NE(want.reason, "Before");
    want.message = want.planned_nodes = "";
    want.restarts = 2;
    want.exit_code = 4;
    want.usage.reset();  // its launcher was killed
    want.allocation.reset();
    want.partition = "batch,other";
    want.submit_time = kDecidedAt;
    want.eligible_time = kDecidedAt + seconds{120};
    want.start_time = want.expected_start_time = want.preempt_eligible_time = std::nullopt;
    want.run_time = want.suspend_time = std::nullopt;
    want.claim.reset();
    want.ending.reset();
    if (reason != sched::Reason::kBeginTime) want.held = kube::JobHeld{status.reason};
    expect_status(status, want);
    EXPECT_EQ(all_conditions(status),
              "Accepted True Before, Completing False NotStarted, NeverFrozen False NotStarted, "
              "Ready False NotStarted");
  }
}

// Where and when it is not tried again is nowhere else; what is over is not stored.
TEST(StatusAfter, ARefusedStartIsStoredUntilItIsForgotten) {
  sched::StateChange change{.job = sched::JobId{7}, .state = sched::JobState::kPending};
  change.retry = sched::Retry{.at = kDecidedAt + seconds{20},
                              .nodes = {sched::NodeIndex{0}},
                              .nodes_until = kDecidedAt + seconds{60}};
  kube::JobStatus status = status_after(change, running(), context()).status;
  ASSERT_TRUE(status.retry);
  EXPECT_EQ(status.retry->at, kDecidedAt + seconds{20});
  EXPECT_EQ(status.retry->avoid_nodes, "n1");
  EXPECT_EQ(status.retry->avoid_until, kDecidedAt + seconds{60});
  change.retry->at = kDecidedAt;
  status = status_after(change, running(), context()).status;
  EXPECT_FALSE(status.retry->at);
  change.retry.reset();
  EXPECT_FALSE(status_after(change, status, context()).status.retry);
}

// Both together: otherwise the next leader would take the new limit for one that it has not obeyed.
TEST(StatusAfter, ALimitThatItsUserChangedReplacesTheOneThatWasCut) {
  DecisionContext in = context();
  in.asked_limit = seconds{900};
  kube::JobStatus before = running();
  before.time_limit = seconds{60};
  const auto [status, urgency] =
      status_after(sched::LimitChanged{sched::JobId{7}, seconds{900}}, before, in);
  EXPECT_EQ(urgency, WriteUrgency::kUrgent);
  EXPECT_EQ(status.time_limit, seconds{900});
  EXPECT_EQ(status.observed->time_limit, seconds{900});
}

// A hold by the system is stored for as long as it is the reason, by whatever it ends.
TEST(StatusAfter, AHoldThatIsOverIsNotStored) {
  kube::JobStatus before;
  before.state = kube::JobState::kPending;
  before.held = kube::JobHeld{"JobHoldMaxRequeue"};
  const auto [status, urgency] = status_after(
      sched::Waits{sched::JobId{7}, sched::Reason::kJobHeldUser, ""}, before, context());
  EXPECT_FALSE(status.held);
  EXPECT_EQ(urgency, WriteUrgency::kUrgent);
}

// The claim goes with the same write, and the exit code of the start before is not this one's. No
// start time yet: it is that of readiness, since the limit counts from there.
TEST(StatusAfter, AStartIsACommitPointWithItsAllocation) {
  kube::JobStatus before;
  before.state = kube::JobState::kPending;
  before.reason = "Resources";
  before.starts = 2;
  before.exit_code = 1;
  before.claim = kube::JobClaim{.hostlist = "n1"};
  before.job_id = 7;
  DecisionContext in = context();
  in.partition = "batch";
  sched::Start start{.job = sched::JobId{7}, .partition = {}, .allocation = {}};
  start.allocation.nodes.push_back({.node = sched::NodeIndex{0}, .cpus = 4});
  start.time_limit = seconds{600};
  in.asked_limit = seconds{900};
  const auto [status, urgency] = status_after(start, before, in);
  EXPECT_EQ(urgency, WriteUrgency::kCommit);
  EXPECT_EQ(status.state, kube::JobState::kRunning);
  EXPECT_EQ(status.reason, "");
  EXPECT_EQ(status.partition, "batch");
  // All of it in one status, hence in one write: a leader that dies after it has either not started
  // the job, or its successor knows where.
  ASSERT_TRUE(status.allocation);
  EXPECT_EQ(status.allocation->hostlist, "n1");
  EXPECT_EQ(status.starts, 3);
  EXPECT_EQ(status.time_limit, seconds{600});
  EXPECT_EQ(status.observed->time_limit, seconds{900});
  EXPECT_FALSE(status.claim || status.exit_code || status.start_time);
  EXPECT_EQ(says(status, kube::kReady), "False Starting");
  EXPECT_EQ(status.job_id, 7);
}

// Turns come every few seconds and follow from the timetable: a new leader needs no status for
// them. Other suspensions it knows from the status only. A write for each turn of each job would be
// more than the API server bears.
TEST(StatusAfter, ATurnOfTheRotationOnlyInformsAnyOtherSuspensionIsABaseState) {
  for (const auto& [cause, want] : {std::pair{sched::Reason::kTimeslice, WriteUrgency::kInforms},
                                    std::pair{sched::Reason::kPreempted, WriteUrgency::kUrgent},
                                    std::pair{sched::Reason::kUser, WriteUrgency::kUrgent}}) {
    kube::JobStatus before = running();
    before.message = "before";
    const auto off = status_after(sched::Suspend{sched::JobId{7}, cause}, before, context());
    EXPECT_EQ(off.status.message, "");
    EXPECT_EQ(off.urgency, want);
    EXPECT_EQ(off.status.state, kube::JobState::kSuspended);
    // As urgent as the suspension, since the two undo each other: if only one of the pair is
    // stored, a new leader believes that one.
    const auto on = status_after(sched::Resume{sched::JobId{7}}, off.status, context());
    EXPECT_EQ(on.urgency, want) << "as it was suspended";
    EXPECT_EQ(on.status, running());
  }
}

// A job of a higher tier came between two of its turns, and went: both are sent, or else the status
// would say for long that it has turns, or that it has none.
TEST(StatusAfter, ThatATurnDoesNotComeIsABaseState) {
  const sched::JobId job{7};
  const auto turn =
      status_after(sched::Suspend{job, sched::Reason::kTimeslice}, running(), context());
  const auto none =
      status_after(sched::Suspend{job, sched::Reason::kPreempted}, turn.status, context());
  EXPECT_EQ(none.status.reason, "Preempted");
  EXPECT_EQ(none.urgency, WriteUrgency::kUrgent);
  const auto again =
      status_after(sched::Suspend{job, sched::Reason::kTimeslice}, none.status, context());
  EXPECT_EQ(again.status.reason, "Timeslice");
  EXPECT_EQ(again.status.state, kube::JobState::kSuspended);
  EXPECT_EQ(again.urgency, WriteUrgency::kUrgent);
}

// A new leader goes on with the ending by what is stored: why, since when, until when the pods have
// time. The allocation stays, because the pods still use the nodes.
TEST(StatusAfter, AnEndingNamesItsVerdictAndThePreemptor) {
  DecisionContext in = context();
  in.preemptor = kube::JobReference{.ns = "team-b", .name = "urgent", .uid = "u"};
  const sched::End end{.job = sched::JobId{7},
                       .verdict = sched::EndingVerdict::kPreempted,
                       .kill_at = kDecidedAt + seconds{30},
                       .preemptor = sched::JobId{9}};
  const auto [status, urgency] = status_after(end, running(), in);
  EXPECT_EQ(urgency, WriteUrgency::kCommit);
  ASSERT_TRUE(status.ending);
  EXPECT_EQ(status.ending->reason, "Preempted");
  EXPECT_EQ(status.ending->since, kDecidedAt);
  EXPECT_EQ(status.ending->by, in.preemptor);
  EXPECT_EQ(status.ending->grace_end, kDecidedAt + seconds{30});
  EXPECT_EQ(says(status, kube::kCompleting), "True Ending");
  EXPECT_TRUE(status.allocation) << "until its pods are gone";
}

// A claim that is forgotten would be a preemption for nothing; one that stays would keep nodes
// empty for a job that no longer needs them.
TEST(StatusAfter, AClaimIsACommitPointAlsoWhenItIsGivenUp) {
  sched::Claim claim{.job = sched::JobId{7}, .claim = sched::Allocation{}, .until = kDecidedAt};
  claim.claim->nodes.push_back({.node = sched::NodeIndex{0}, .cpus = 4});
  const auto taken = status_after(claim, {}, context());
  EXPECT_EQ(taken.urgency, WriteUrgency::kCommit);
  ASSERT_TRUE(taken.status.claim);
  EXPECT_EQ(taken.status.claim->hostlist, "n1");
  const auto given_up =
      status_after(sched::Claim{sched::JobId{7}, std::nullopt}, taken.status, context());
  EXPECT_EQ(given_up.urgency, WriteUrgency::kCommit);
  EXPECT_FALSE(given_up.status.claim);
}

// `kubectl wait --for=condition=Complete` must not hang: exactly one of the two conditions comes.
TEST(StatusAfter, AnEndSaysCompleteOrFailed) {
  for (const bool complete : {true, false}) {
    const sched::StateChange change{
        .job = sched::JobId{7},
        .state = complete ? sched::JobState::kCompleted : sched::JobState::kFailed,
        .reason = sched::Reason::kNone,
        .exit_code = complete ? 0 : 2};
    DecisionContext in = context();
    in.end_message = complete ? "" : "pod x failed with exit code 2";
    const auto [status, urgency] = status_after(change, running(), in);
    EXPECT_EQ(urgency, WriteUrgency::kCommit);
    EXPECT_EQ(status.end_time, kDecidedAt);
    EXPECT_EQ(status.exit_code, complete ? 0 : 2);
    EXPECT_EQ(status.message, in.end_message);
    EXPECT_EQ(says(status, kube::kJobComplete), complete ? "True Completed" : "");
    EXPECT_EQ(says(status, kube::kJobFailed), complete ? "" : "True Failed");
    // For kstatus it is current, or failed; with Ready=False it would be neither forever.
    EXPECT_EQ(says(status, kube::kReady), "");
    EXPECT_EQ(says(status, kube::kStalled), complete ? "" : "True Failed");
    EXPECT_TRUE(status.allocation) << "where it ran";
  }
}

// A requeued job counts as submitted again (T7). A start that was undone is not the job's doing, so
// it keeps its age. Its age is a part of its priority: it would lose its place in the queue by a
// fault of the cluster.
TEST(StatusAfter, ARequeuedJobWaitsAsIfSubmittedNowOneWhoseStartIsUndoneDoesNot) {
  for (const bool requeued : {true, false}) {
    const sched::StateChange change{.job = sched::JobId{7},
                                    .state = sched::JobState::kPending,
                                    .reason = sched::Reason::kNone,
                                    .restarts = requeued ? 1 : 0,
                                    .eligible_at = kDecidedAt + seconds{5}};
    DecisionContext in = context();
    in.partition = "batch,long";
    const auto [status, urgency] = status_after(change, running(), in);
    EXPECT_EQ(urgency, WriteUrgency::kCommit);
    EXPECT_EQ(status.state, kube::JobState::kPending);
    EXPECT_FALSE(status.allocation || status.start_time || status.ending);
    EXPECT_EQ(status.partition, "batch,long");
    EXPECT_EQ(status.eligible_time,
              requeued ? std::optional{kDecidedAt + seconds{5}} : running().eligible_time);
    EXPECT_EQ(status.submit_time, requeued ? kDecidedAt : kDecidedAt - seconds{90});
  }
}

// A new leader finds reasons again by itself; a hold by the system is nowhere but in the status.
TEST(StatusAfter, AWaitInformsButAHoldBySystemIsABaseState) {
  kube::JobStatus pending;
  pending.state = kube::JobState::kPending;
  // The reason that stopped a start (such as a quota) is shown while the job backs off for it, and
  // behind the scheduler's own sentence afterwards.
  const auto waits = [&](sched::Reason reason, const std::string& refusal) {
    DecisionContext in = context();
    in.last_end = refusal;
    return status_after(sched::Waits{sched::JobId{7}, reason, "why"}, pending, in);
  };
  EXPECT_EQ(waits(sched::Reason::kResources, "").urgency, WriteUrgency::kInforms);
  EXPECT_EQ(waits(sched::Reason::kResources, "").status.message, "why");
  EXPECT_EQ(waits(sched::Reason::kResources, "quota").status.message,
            "why; its last start ended: quota");
  EXPECT_EQ(waits(sched::Reason::kBeginTime, "quota").status.message, "quota");
  const auto held = waits(sched::Reason::kJobHoldMaxRequeue, "");
  EXPECT_EQ(held.urgency, WriteUrgency::kUrgent);
  EXPECT_TRUE(held.status.held);
}

// The tolerance is 5 s: 4 s are below it, 5 s are not, in both directions; another node always
// counts. Plans move by a second or two with each pass of the backfill scheduler, and each move
// would be a write for each job that waits.
TEST(StatusAfter, APlanThatMovesByLessThanTheToleranceStaysAsItIsStored) {
  kube::JobStatus stored;
  stored.state = kube::JobState::kPending;
  stored.expected_start_time = kDecidedAt + seconds{600};
  stored.planned_nodes = "n[1-2]";
  const auto planned = [&](base::Duration from_now, std::vector<sched::NodeIndex> nodes) {
    DecisionContext in = context();
    in.stored = &stored;
    in.node_name = [](sched::NodeIndex node) -> const std::string& {
      static const std::string kNames[] = {"n1", "n2"};
      return kNames[node.index()];
    };
    return status_after(sched::Planned{sched::JobId{7}, kDecidedAt + from_now, std::move(nodes)},
                        {}, in)
        .status;
  };
  const std::vector<sched::NodeIndex> both{sched::NodeIndex{0}, sched::NodeIndex{1}};
  EXPECT_EQ(planned(seconds{604}, both).expected_start_time, stored.expected_start_time);
  EXPECT_EQ(planned(seconds{605}, both).expected_start_time, kDecidedAt + seconds{605});
  EXPECT_EQ(planned(seconds{595}, both).expected_start_time, kDecidedAt + seconds{595});
  const kube::JobStatus elsewhere = planned(seconds{601}, {sched::NodeIndex{1}});
  EXPECT_EQ(elsewhere.expected_start_time, kDecidedAt + seconds{601});
  EXPECT_EQ(elsewhere.planned_nodes, "n2");
  // A plan that is given up is reported at once, whatever is stored.
  DecisionContext in = context();
  in.stored = &stored;
  const StatusAfter none =
      status_after(sched::Planned{.job = sched::JobId{7}, .start = {}, .nodes = {}}, stored, in);
  EXPECT_FALSE(none.status.expected_start_time);
  EXPECT_EQ(none.status.planned_nodes, "");
  EXPECT_EQ(none.urgency, WriteUrgency::kInforms);
}

}  // namespace
}  // namespace control
