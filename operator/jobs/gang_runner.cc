#include "operator/jobs/gang_runner.h"

#include <algorithm>
#include <set>
#include <utility>

#include "api/wellknown.h"
#include "base/number_list.h"
#include "operator/gang/own_turn.h"
#include "operator/gang/pod_pin.h"
#include "operator/jobs/job_report.h"
#include "operator/jobs/listed_job.h"
#include "operator/jobs/run_times.h"
#include "operator/jobs/status_after.h"
#include "translation/job_check.h"
#include "translation/job_translation.h"
#include "translation/pod_slots.h"
#include "translation/reason_names.h"

namespace control {
namespace {

// A node that could not start a pod is left out this long for the job. Other jobs may still try it.
constexpr base::Duration kAvoidNode = std::chrono::seconds{60};
// Between starts that the API server refuses: a quota or a webhook is mended by people, not by
// another try.
constexpr base::Duration kApiBackoffFirst = std::chrono::minutes{1};
constexpr base::Duration kApiBackoffMax = std::chrono::minutes{30};

// So late the readiness is written at the latest for which nothing waits, while the API server has
// more to do than it can.
constexpr base::Duration kReadinessLate = std::chrono::minutes{2};

// Nearly all starts take less; the condition Ready of one that does not says what it waits for.
constexpr base::Duration kWaitTold = std::chrono::minutes{1};

bool is_ready(const JobRecord& job) {
  return kube::is_true(job.wanted().conditions, kube::kReady);
}

std::string_view reason_of(const GangEnd& end) {
  if (end.state == sched::JobState::kOutOfMemory) return "OutOfMemory";
  // A gang whose pods have all succeeded does not come here: only successPolicy ends one early.
  if (end.state == sched::JobState::kCompleted) return "SuccessPolicy";
  if (end.launch_failed) return "JobLaunchFailure";  // Slurm's word
  return end.lost_member ? kube::kLostMember : "NonZeroExitCode";
}

}  // namespace

void GangRunner::run(JobRecord& job) {
  if (job.readiness_is_late()) {
    const base::Instant latest = *job.gang->late_readiness + kReadinessLate;
    if (parts_.now < latest) {
      parts_.jobs.set_timer(job, latest);
    } else {
      parts_.jobs.mark(job, WriteUrgency::kUrgent);
    }
  }
  if (job.wanted().ending) {
    run_ending(job);
  } else {
    run_started(job);
  }
}

// The operator cannot make gated pods again, so their gang has only one start, but for
// those by which no pod has lost its gate.
bool GangRunner::may_requeue(const JobRecord& job) const {
  if (job.is_adopted()) return false;
  return job.object->spec.lifecycle.requeue.value_or(
      parts_.policy.configuration().cluster.requeue_default);
}

// Asks for the deletion of all pods, and tells the scheduler which nodes have none any longer, and
// when the last one is gone. A creation that is under way counts as a pod: its answer may bring
// one.
void GangRunner::run_ending(JobRecord& job) {
  const kube::JobEnding ending = *job.wanted().ending;
  pods_.end_pods(job, ending.grace_end);
  if (!job.launch->creating.empty()) return;
  if (pods_.has_pods_left(job)) return tell_clean_nodes(job);
  note_successes(job);
  if (job.gang->undo) return finish_undo(job);
  // A job with a grace time has run on since its ending was shown.
  show_times_unmarked(job, scheduler_, parts_.now);
  scheduler_.tell(
      sched::JobGone{.job = job.id,
                     .verdict = sched::JobState::kFailed,  // decided: 0 shows that SIGTERM ended it
                     .exit_code = ending.exit_code.value_or(0)});
}

// A gang's pods may end minutes apart (their grace periods, a slow kubelet); its other nodes are of
// use meanwhile.
void GangRunner::tell_clean_nodes(JobRecord& job) {
  if (job.gang->undo) return;  // to the scheduler it never ran
  const std::optional<std::set<std::string>> left = pods_.nodes_with_pods_left(job);
  if (!left) return;
  sched::NodesClean clean{.job = job.id, .nodes = {}};
  for (const std::string& node : job.start->nodes) {
    if (!left->contains(node) && job.gang.edit().clean_nodes.insert(node).second) {
      clean.nodes.push_back(node);
    }
  }
  if (!clean.nodes.empty()) scheduler_.tell(std::move(clean));
}

// The launcher of a batch script counts the time itself, and so hears how much there is.
void GangRunner::launch(JobRecord& job, const std::vector<int>& missing) {
  const auto view = job.object->spec.batch ? scheduler_.view(job.id) : std::nullopt;
  pods_.launch(job, missing, view ? view->time_limit : std::nullopt);
}

// Pods that others have made: their owner decides what the end of one of them means, so the gang
// ends with its last pod. Only a gang that does not start as a whole is ended by the operator.
void GangRunner::run_adopted(JobRecord& job) {
  const GangObservation seen = look_at_pods(job);
  // Slots that must still be pinned: their pod waits behind the gate, unseen by the index.
  std::vector<int> missing;
  for (const int index : seen.missing) {
    // A slot in `gone` has no pod to pin: it was deleted, or another client removed its gate, and
    // kube-scheduler may put it on any node.
    if (!job.launch->gone.contains(index)) missing.push_back(index);
  }
  if (!missing.empty()) return launch(job, missing);
  const auto is_over = [&](const SlotPod& one) {
    return one.pod == nullptr || one.is_finished ||
           parts_.nodes.is_lost(node_of(*one.pod).value_or(""));
  };
  if (std::ranges::all_of(job.start->slot_pods, is_over)) {
    note_life_before_ready(job, scheduler_, parts_.now);
    return end_adopted(job, seen);
  }
  // The gang has not started as a whole. After it has, single pods that end are their owner's
  // business.
  if (is_ready(job)) return;
  if (!job.launch->gone.empty()) {
    const auto first = static_cast<std::size_t>(*job.launch->gone.begin());
    return end_by_itself(job,
                         {.exit_code = 1,
                          .message = "pod " + job.start->slots[first].name +
                                     " was deleted, or lost its gate otherwise, before its gang "
                                     "had started"});
  }
  // The gates are removed already, so the start cannot be undone like one of kubegang's pods.
  // Devices that the node lacks are not a failure of the program.
  if (seen.launch) {
    return end_by_itself(job, {.state = seen.launch->lacks_devices ? sched::JobState::kNodeFail
                                                                   : sched::JobState::kFailed,
                               .exit_code = 1,
                               .lost_member = seen.launch->lacks_devices,
                               .message = seen.launch->message});
  }
  if (is_out_of_time(job)) return;
  become_ready_when_settled(job, seen);
}

// REQUIRES: each of its pods has ended or is gone.
void GangRunner::end_adopted(JobRecord& job, const GangObservation& seen) {
  const auto& pods = job.start->slot_pods;
  // SIGTERM makes a program fail that its owner deletes, as an MPIJob its workers.
  const bool has_failed = std::ranges::any_of(pods, [](const SlotPod& one) {
    return one.is_finished && !one.has_succeeded && !one.pod->metadata.deletion_timestamp;
  });
  if (has_failed && seen.failure) return end_by_itself(job, *seen.failure);
  if (has_failed) {
    return end_by_itself(job, {.exit_code = 1, .message = seen.launch ? seen.launch->message : ""});
  }
  const bool has_succeeded = std::ranges::any_of(pods, &SlotPod::has_succeeded);
  show_times_unmarked(job, scheduler_, parts_.now);  // the scheduler forgets it with the next line
  if (!has_succeeded) job.gang.edit().end_message = "its pods were deleted";
  scheduler_.tell(sched::JobGone{
      .job = job.id,
      .verdict = has_succeeded ? sched::JobState::kCompleted : sched::JobState::kCancelled,
      .exit_code = 0});
}

// Applies the time limit to a gang that is not ready: a program that works in an init container
// gets no more time than any other. Returns true if the gang must end.
bool GangRunner::is_out_of_time(JobRecord& job) {
  if (!parts_.ends_by_time) return false;
  const auto life = life_before_ready(job, parts_.now, true);
  const auto view = life ? scheduler_.view(job.id) : std::nullopt;
  // A suspended job never times out, also while it waits for a row after its resume.
  if (!view || !view->time_limit || view->ending || view->facts->user_suspended) return false;
  // No time passes while none of its containers runs.
  const base::Instant over = life->began + *view->time_limit;
  if (life->ended < over) {
    if (life->ended == parts_.now) parts_.jobs.set_timer(job, over);
    return false;
  }
  note_life_before_ready(job, scheduler_, parts_.now);
  scheduler_.tell(sched::TimeLimitReached{job.id});
  return true;
}

// Draws the conclusion from the pods of a start. The first case that holds decides:
//
// 1. A node of the job is lost: the gang has lost a member.
// 2. A pod cannot be started: the start is undone, without its node if that is to blame, otherwise
//    the job is held, because it would fail in the same way anywhere.
// 3. A pod has failed: the gang ends, or is requeued if its script has called `scontrol requeue`.
// 4. All pods have succeeded, or those that its successPolicy asks for: the job is complete. With
//    spec.completions others follow them (run_members).
// 5. The gang was ready and misses a pod: it has lost a member. Pods are never made a second time
//    then.
// 6. The gang is starting and misses pods: they are made.
// 7. All pods have settled: the gang is ready.
//
// A gang that ends before 7 takes its times from its containers, because the scheduler counts none.
void GangRunner::run_started(JobRecord& job) {
  if (job.is_adopted()) return run_adopted(job);
  // 1. a node is lost. Asked before the pods: they will never say anything again, and the scheduler
  //    must not restart the gang on that node
  for (const std::string& node : job.start->nodes) {
    if (!parts_.nodes.is_lost(node)) continue;
    return end_by_itself(job, {.state = sched::JobState::kNodeFail,
                               .lost_member = true,
                               .message = "node " + node + " is gone"});
  }
  // The Service is checked at each look: its creation may have failed, or the pods may be those of
  // an earlier leader.
  if (!job.pods->empty()) pods_.ensure_service(job);
  const GangObservation seen = look_at_pods(job);
  const bool was_ready = is_ready(job);
  // 2. a pod cannot start, which is not a failure of the program. Its node is left out, or, if the
  //    same would happen anywhere, the job is held until a user has looked at it
  if (seen.launch && was_ready && job.start->members) {
    return end_by_itself(job, {.exit_code = 1,
                               .lost_member = seen.launch->node_is_at_fault,
                               .message = seen.launch->message});
  }
  if (seen.launch) {
    note_life_before_ready(job, scheduler_, parts_.now);  // init containers may have worked
    return undo_start(
        job,
        {.avoid_nodes = seen.launch->node_is_at_fault ? std::vector<std::string>{seen.launch->node}
                                                      : std::vector<std::string>{},
         .avoid_for = seen.launch->node_is_at_fault ? kAvoidNode : base::Duration{0},
         .hold = !seen.launch->node_is_at_fault,
         .message = seen.launch->message});
  }
  const bool is_over = seen.all_finished && !job.start->members;
  if (is_over || seen.failure || seen.success) note_life_before_ready(job, scheduler_, parts_.now);
  // 3. a pod has failed
  if (seen.failure) return end_or_requeue(job, *seen.failure);
  // 4. enough pods have succeeded, or all
  if (seen.success) return complete_early(job, *seen.success);
  if (job.start->members) return run_members(job, seen);
  if (seen.all_succeeded) return complete(job);
  // 5. a ready gang that lacks a pod has lost a member: the processes of the others wait for it,
  //    and a new pod would not know what it did. The gang ends as a whole, and may be requeued
  if (was_ready) {
    if (!seen.missing.empty()) lose_member(job, seen.missing.front());
    return;
  }
  if (is_out_of_time(job)) return;
  // 6. pods are made, also those whose creation has failed before
  if (!seen.missing.empty()) return launch(job, seen.missing);
  // 7. all pods run, and have settled
  become_ready_when_settled(job, seen);
}

// If some pods do not run yet, a change of one of them brings the loop back here. If all run, they
// settle at a known instant.
void GangRunner::become_ready_when_settled(JobRecord& job, const GangObservation& seen) {
  if (!seen.settled_at) return;
  if (*seen.settled_at > parts_.now) return parts_.jobs.set_timer(job, *seen.settled_at);
  tell_life_before_ready(job, scheduler_, parts_.now);
  become_ready(job);
}

void GangRunner::complete(JobRecord& job) {
  show_times_unmarked(job, scheduler_, parts_.now);  // the scheduler forgets it with the next line
  scheduler_.tell(
      sched::JobGone{.job = job.id, .verdict = sched::JobState::kCompleted, .exit_code = 0});
}

void GangRunner::lose_member(JobRecord& job, int slot) {
  const auto index = static_cast<std::size_t>(slot);
  const PodSlot& lost = job.start->slots[index];
  // This leader has seen it until it was gone, or the pod went while there was none.
  const std::string why = job.start->slot_pods[index].was_seen
                              ? " is gone, and had not ended before"
                              : " was deleted while no operator ran; whether it had succeeded is "
                                "not known";
  end_by_itself(job, {.state = sched::JobState::kNodeFail,
                      .lost_member = true,
                      .message = "pod " + lost.name + " on node " + lost.node + why});
}

// A job whose pods follow one another (Members). Nothing has failed. The first case that holds
// decides:
//
// 1. All pods that it needs have succeeded: it is complete.
// 2. The gang is starting: as any other, with its first pods. Whatever succeeds meanwhile is
//    followed by another when the gang is ready.
// 3. Pods have succeeded, and there are others to follow them: who has which place is a commit
//    point. Then timetables name the new pods, then they are made. So no leader makes other ones.
// 4. Pods are missing. One that was seen is a lost member, as with any gang. Any other is made, in
//    a turn of the gang: its name is stored, and the name shows whether an earlier leader has made
//    it.
// 5. Places on nodes that are cordoned get no pods, so that those nodes empty, and the others go
//    on. When no pod runs, the rest is queued again and runs elsewhere.
void GangRunner::run_members(JobRecord& job, const GangObservation& seen) {
  const Members& members = *job.start->members;
  // 1. After a requeue none may be left to run: the last ones succeeded while the gang ended.
  if (members.all_have_succeeded()) {
    note_life_before_ready(job, scheduler_, parts_.now);
    return complete(job);
  }
  // 2.
  if (!is_ready(job)) {
    if (is_out_of_time(job)) return;
    if (!seen.missing.empty()) return launch(job, seen.missing);
    return become_ready_when_settled(job, seen);
  }
  // 3.
  fill_places(job);
  if (job.status.is_uncommitted()) return;
  // 4.
  std::vector<int> missing;
  for (const int slot : seen.missing) {
    const auto index = static_cast<std::size_t>(slot);
    if (job.start->slot_pods[index].was_seen) return lose_member(job, slot);
    if (!parts_.nodes.is_cordoned(job.start->slots[index].node)) missing.push_back(slot);
  }
  // 5.
  if (missing.empty()) return leave_cordoned_nodes(job);
  // Looked at again each slice: a job that is suspended has no next turn as yet.
  const base::Duration slice = parts_.policy.configuration().cluster.time_slice;
  const base::Instant turn = turn_for_next_pod(job);
  if (turn > parts_.now) return parts_.jobs.set_timer(job, std::min(turn, parts_.now + slice));
  launch(job, missing);
}

// Goes by what the agents of its nodes obey: the nodes of a gang turn together, so one of them is
// enough. A job that no timetable lists takes no turns.
base::Instant GangRunner::turn_for_next_pod(const JobRecord& job) const {
  // kubelet rounds the start of a container down to a second.
  const base::Duration settle = parts_.policy.parameters().settle + std::chrono::seconds{1};
  for (const std::string& node : job.start->nodes) {
    const auto obeyed = timetables_.stored(node);
    if (obeyed == nullptr) continue;
    const auto turn = next_turn_to_settle_in(*obeyed, job.uid, parts_.now, settle);
    if (turn) return *turn;
  }
  return parts_.now;
}

// No pod of its own ends for it. A job that may not be requeued waits until the node is back.
void GangRunner::leave_cordoned_nodes(JobRecord& job) {
  const auto may_run = [](const SlotPod& one) { return one.pod != nullptr && !one.is_finished; };
  const bool is_idle =
      job.launch->creating.empty() && std::ranges::none_of(job.start->slot_pods, may_run);
  const auto cordoned = std::ranges::find_if(
      job.start->nodes, [this](const auto& node) { return parts_.nodes.is_cordoned(node); });
  if (!is_idle || cordoned == job.start->nodes.end() || !may_requeue(job)) return;
  end_by_itself(
      job, {.state = sched::JobState::kNodeFail,
            .lost_member = true,
            .message = "node " + *cordoned + " is cordoned; the pods that are left run elsewhere"});
}

// The timetables are only wanted here: CommitGate holds them back until the places are stored.
void GangRunner::fill_places(JobRecord& job) {
  const std::vector<PodSlot> before =
      job.fill_places([this](const std::string& node) { return !parts_.nodes.is_cordoned(node); });
  if (before.empty()) return;
  parts_.jobs.change(job, WriteUrgency::kCommit, [&](auto& wanted) {
    wanted.member_indexes = job.start->members->members_text();
  });
  for (const PodSlot& slot : before) {
    const PodSlot& now = job.start->slots[static_cast<std::size_t>(slot.index)];
    timetables_.replace_pod(slot.node, {job.uid, slot.name, now.name});
  }
  parts_.report.log("pods follow",
                    job_fields(job, {{"members", job.wanted().member_indexes},
                                     {"succeeded", job.wanted().succeeded_indexes}}));
}

// A pod that has succeeded is done, though its object may be deleted. With members it is done for
// good, whatever becomes of this start; else for this start. A gang of one pod ends with it.
void GangRunner::note_successes(JobRecord& job) const {
  const StartPods& start = *job.start;
  if (start.slots.size() < 2 && !start.members) return;
  std::vector<int> succeeded;
  for (std::size_t i = 0; i < start.slots.size(); ++i) {
    if (start.slot_pods[i].has_succeeded) succeeded.push_back(start.slots[i].pod_index);
  }
  if (start.members) {
    const auto note = [&](int index) { return job.note_success(index); };
    if (std::ranges::count_if(succeeded, note) == 0) return;
    // The next commit point carries it at the latest: until then the pods that show it stay.
    return parts_.jobs.change(job, WriteUrgency::kUrgent, [&](auto& wanted) {
      wanted.succeeded_indexes = start.members->succeeded_text();
    });
  }
  // Without members nothing waits for it: the next status that is written brings it, unless the
  // object that shows it is gone.
  const auto [are_new, are_at_risk] = job.note_successes(succeeded.size());
  if (are_new) job.wanted_unmarked().succeeded_indexes = base::format_number_list(succeeded);
  if (are_at_risk && job.wanted().succeeded_indexes != job.status.stored().succeeded_indexes) {
    parts_.jobs.mark(job, WriteUrgency::kUrgent);
  }
}

void GangRunner::take_slots(JobRecord& job) {
  job.take_slots({});
  if (!job.wanted().allocation) return;
  auto slots = pod_slots(job.identity(), *job.wanted().allocation,
                         job.object->spec.pod_policy.value_or(kube::PodPolicy::kPerNode));
  // An error leaves the gang without slots, and observe_gang treats such a gang as neither finished
  // nor complete, so nothing is concluded from pods that cannot be assigned.
  if (!slots.ok()) {
    // The job keeps its allocation and has no pods. Only another version of the operator, or a
    // hand, can have written such a status.
    parts_.report.warn("allocation cannot be read",
                       job_fields(job, {{"error", slots.error().message}}));
    return;
  }
  const std::vector<kube::AdoptedPod>& adopted = job.object->spec.adopted;
  if (!adopted.empty()) {  // a slot for each pod, and its name
    slots->resize(std::min(slots->size(), adopted.size()));
    for (std::size_t i = 0; i < slots->size(); ++i) (*slots)[i].name = adopted[i].name;
  }
  if (const auto completions = job.object->spec.completions) {
    kube::JobStatus& wanted = job.wanted_unmarked();
    Members members{*completions,
                    {.succeeded = wanted.succeeded_indexes, .members = wanted.member_indexes},
                    static_cast<int>(slots->size())};
    name_slots(job.identity(), members, *slots);
    // For a start that has just been decided; else as it is stored.
    wanted.succeeded_indexes = members.succeeded_text();
    wanted.member_indexes = members.members_text();
    job.take_slots(std::move(*slots), std::move(members));
  } else {
    job.take_slots(std::move(*slots));
    job.know_successes(parse_indexes(job.wanted().succeeded_indexes));
  }
  for (const std::string& node : job.start->nodes) parts_.nodes.enter(node, job.uid);
  // The templates of pods that others have made are not known here.
  GangNotes& notes = job.gang.edit();
  notes.awaits_init = !kube::is_true(job.wanted().conditions, kube::kReady) &&
                      (job.is_adopted() || job.pod_template->init_containers_count > 0);
  // The pods of a start that is restored may be other ones than those that showed it.
  notes.never_frozen = kube::is_true(job.wanted().conditions, kube::kNeverFrozen);
}

void GangRunner::end_otherwise(JobRecord& job) {
  job.gang.edit().undo.reset();
  pods_.end_again(job);
}

void GangRunner::restore_ending(JobRecord& job, const kube::JobEnding& ending) {
  GangNotes& notes = job.gang.edit();
  notes.end_message = job.wanted().message;
  const bool is_failed = ending.reason == kube::kLaunchFailed;
  if (is_failed || ending.reason == kube::kStartUndone) {
    notes.undo = StartUndo{.hold = is_failed, .message = notes.end_message};
  }
}

// Also notes which have succeeded, since when which pods have failed, and when to look again.
GangObservation GangRunner::look_at_pods(JobRecord& job) {
  job.see_pods(parts_.now);
  GangView view{.slots = job.start->slots,
                .pods = job.start->slot_pods,
                .failing_since = &job.gang->failing_since,
                .settle = parts_.policy.parameters().settle,
                // The next pods have yet to start.
                .ready = is_ready(job) && !job.start->members,
                .members = job.start->members ? &*job.start->members : nullptr,
                .are_adopted = job.is_adopted()};
  const auto& success_policy = job.object->spec.lifecycle.success_policy;
  if (success_policy) view.success_policy = &*success_policy;
  // A batch script is in the first pod; the others wait for steps and never end by themselves.
  static const kube::SuccessPolicy kScript{{{.succeeded_indexes = "0"}}};
  if (job.object->spec.batch) view.success_policy = &kScript;
  view.start_timeout = std::min(
      job.object->spec.lifecycle.start_timeout.value_or(parts_.policy.parameters().start_timeout),
      kStartTimeoutMax);
  // A clock that cannot be trusted ends nothing.
  if (!parts_.ends_by_time) view.start_timeout = std::chrono::hours{24 * 365};
  const std::optional<base::Instant> starting = starting_since(job.wanted());
  // A new leader reads from the status when the nodes were allocated.
  if (!is_ready(job) && starting) view.start_deadline = *starting + view.start_timeout;
  const GangObservation seen = observe_gang(view, parts_.now);
  note_successes(job);
  // The patience with a pod (kLaunchPatience) counts from when it was first seen to fail. A new
  // leader has no such memory and grants it once more.
  std::map<std::string, base::Instant> failing;
  for (const std::string& name : seen.failing) {
    const auto since = job.gang->failing_since.find(name);
    failing[name] = since == job.gang->failing_since.end() ? parts_.now : since->second;
  }
  // Pods that have recovered are left out here, so their patience begins again.
  job.gang.edit().failing_since = std::move(failing);
  if (seen.look_again) parts_.jobs.set_timer(job, *seen.look_again);
  if (seen.never_frozen && !job.gang->never_frozen) leave_rotation(job, *seen.never_frozen);
  if (!seen.awaits_init) list_in_timetables(job);
  show_what_it_waits_for(job, seen);
  return seen;
}

// The job's pods may be frozen from here on: none waits for another in an init container.
void GangRunner::list_in_timetables(JobRecord& job) {
  if (!std::exchange(job.gang.edit().awaits_init, false)) return;
  for (const std::string& node : job.start->nodes) {
    timetables_.list(node, [this](sched::JobId id) { return listed_job(parts_.jobs.find(id)); });
  }
}

// A start that takes longer than most says which pod it waits for, and what kubelet says of that.
void GangRunner::show_what_it_waits_for(JobRecord& job, const GangObservation& seen) {
  const std::optional<base::Instant> starting = starting_since(job.wanted());
  // Why pods cannot be made is said already (PodWrites).
  if (is_ready(job) || !seen.waits_for || !starting || job.launch->failing_pods_told) return;
  if (parts_.now < *starting + kWaitTold) {
    return parts_.jobs.set_timer(job, *starting + kWaitTold);
  }
  const auto index = static_cast<std::size_t>(*seen.waits_for);
  const std::string why = why_waiting(job.start->slots[index], job.start->slot_pods[index]);
  if (!parts_.jobs.set_condition(job, WriteUrgency::kInforms, kube::kReady,
                                 kube::ConditionStatus::kFalse, "Starting",
                                 "its pods are being started; " + why)) {
    return;
  }
  parts_.report.log("start is slow", job_fields(job, {{"why", why}}));
}

// For as long as this start lasts: what a webhook has put into its pods does not go with being
// frozen (architecture.md 4). The scheduler goes on giving it its turns; it runs in other turns
// too.
void GangRunner::leave_rotation(JobRecord& job, const std::string& why) {
  job.gang.edit().never_frozen = true;
  for (const std::string& node : job.start->nodes) timetables_.leave_out(node, job.uid);
  const std::string message = why +
                              ", which its template has not: a mutating webhook of the cluster "
                              "added it. The job's pods are never frozen; jobs that share their "
                              "nodes run at the same time";
  if (!parts_.jobs.set_condition(job, WriteUrgency::kUrgent, kube::kNeverFrozen,
                                 kube::ConditionStatus::kTrue, "ChangedByWebhook", message)) {
    return;  // a new leader finds what its predecessor has said
  }
  parts_.report.warn("never frozen", job_fields(job, {{"why", why}}));
  tell_event(parts_.report, job, true, "NeverFrozen", message);
}

// Reports the gang as ready. The commit point of readiness is marked before the scheduler hears of
// it, because its answer may end victims, whose endings wait for that commit point. Where no job is
// stopped for another there are no victims, and no timetable waits for it either: it only informs,
// and the job's next write, such as its end, brings it along if that comes first. A leader that
// does not find it stored sees by the pods that they are ready.
void GangRunner::become_ready(JobRecord& job) {
  // This start has succeeded, so the back-off of refused ones begins again.
  job.api_refusals.edit() = 0;
  const auto& nodes = job.start->nodes;
  const bool takes_turns = std::ranges::any_of(
      nodes, [this](const std::string& node) { return parts_.nodes.takes_turns(node); });
  if (!takes_turns) job.gang.edit().late_readiness = parts_.now;
  // A controller, such as that of batch Jobs (ManagedJobs), says in its own object what it sees.
  const bool is_watched = kube::controller_of(job.object->metadata) != nullptr;
  const WriteUrgency how = takes_turns  ? WriteUrgency::kCommit
                           : is_watched ? WriteUrgency::kUrgent
                                        : WriteUrgency::kInforms;
  parts_.jobs.change(job, how, [&](auto& wanted) { wanted.start_time = parts_.now; });
  (void)parts_.jobs.set_condition(job, how, kube::kReady, kube::ConditionStatus::kTrue, "Settled",
                                  "all its pods run");
  parts_.report.log("ready", job_fields(job));
  scheduler_.tell(sched::JobReady{job.id});
  show_times_unmarked(job, scheduler_, parts_.now);
}

// The times are shown first: they end here, and the scheduler forgets them.
void GangRunner::end_by_itself(JobRecord& job, const GangEnd& end) {
  note_successes(job);
  show_times_unmarked(job, scheduler_,
                      parts_.now);  // its time ends here, not when the last of its pods is gone
  sched::JobState state = end.state;
  // The verdict that is stored (Requeue) and the scheduler's (NodeFail) mean the same: the
  // scheduler requeues a NodeFail of a job that may be requeued.
  const bool requeue = end.lost_member && may_requeue(job);
  if (requeue) state = sched::JobState::kNodeFail;  // the scheduler requeues it then
  kube::JobEnding ending;
  ending.verdict = requeue ? kube::EndingVerdict::kRequeue : verdict_of(state);
  ending.reason = std::string{reason_of(end)};
  // Stored, because the pods that show it may be gone when a new leader finishes the ending.
  ending.exit_code = end.exit_code;
  ending.since = parts_.now;
  job.gang.edit().end_message = end.message;
  show_ending(job, ending, end.message);
  parts_.report.log("job ends", job_fields(job, {{"verdict", kube::to_string(ending.verdict)},
                                                 {"why", end.message}}));
  // An early success is not worth a warning.
  if (state != sched::JobState::kCompleted) {
    tell_event(parts_.report, job, true, "Ending", end.message);
  }
  scheduler_.tell(sched::JobEnding{.job = job.id, .verdict = state, .exit_code = end.exit_code});
}

void GangRunner::show_ending(JobRecord& job, const kube::JobEnding& ending,
                             const std::string& message) {
  parts_.jobs.change(job, WriteUrgency::kCommit, [&](kube::JobStatus& wanted) {
    wanted.ending = ending;
    wanted.message = message;
  });
  (void)parts_.jobs.set_condition(job, WriteUrgency::kCommit, kube::kCompleting,
                                  kube::ConditionStatus::kTrue, "Ending",
                                  "its pods are being ended");
}

// A script that asks for it is requeued as by its user: with the same delay before the next start,
// and not if the job may not be requeued.
void GangRunner::end_or_requeue(JobRecord& job, const GangEnd& end) {
  if (end.wants_requeue && job.object->spec.batch && may_requeue(job)) {
    scheduler_.tell(sched::Requeue{job.id});
  }
  if (!job.wanted().ending) end_by_itself(job, end);
}

// The other pods are ended like those of a gang that has failed.
void GangRunner::complete_early(JobRecord& job, const EarlySuccess& success) {
  // Written with the ending in one commit point: the other pods are killed afterwards, and then
  // nothing else tells which had succeeded.
  job.wanted_unmarked().succeeded_indexes = success.succeeded;
  end_by_itself(
      job, {.state = sched::JobState::kCompleted,
            .message = "pods " + success.succeeded + " have succeeded, which is enough by rule " +
                       std::to_string(success.rule) + " of successPolicy"});
}

// The start is undone as an ending with verdict Requeue, so that a crash between its two halves
// leaves nothing behind: a new leader finds the ending and finishes it. A job that would be held,
// and that may not be requeued, fails.
void GangRunner::undo_start(JobRecord& job, StartUndo undo) {
  // A pod without its gate can never be queued again.
  if (job.is_adopted() && !job.pods->empty()) {
    return end_by_itself(job, {.exit_code = 1, .launch_failed = true, .message = undo.message});
  }
  // The next pod of a gang that runs is refused: the gang is queued again, with what has succeeded.
  if (is_ready(job) && job.start->members) {
    return end_by_itself(job, {.exit_code = 1, .lost_member = true, .message = undo.message});
  }
  // A hold would leave it waiting for a release, and the release would start it a second time,
  // which its owner has forbidden.
  if (undo.hold && !may_requeue(job)) {
    return end_by_itself(job, {.exit_code = 1, .launch_failed = true, .message = undo.message});
  }
  kube::JobEnding ending;
  ending.verdict = kube::EndingVerdict::kRequeue;
  ending.reason = std::string{undo.hold ? kube::kLaunchFailed : kube::kStartUndone};
  ending.since = parts_.now;
  show_ending(job, ending, undo.message);
  job.gang.edit().undo = std::move(undo);
  parts_.report.warn("start undone", job_fields(job, {{"why", job.gang->undo->message}}));
  tell_event(parts_.report, job, true, "StartUndone", job.gang->undo->message);
}

// All pods of the start are gone. After a refusal by the API server the job waits longer each time,
// because the next start would be refused as well.
void GangRunner::finish_undo(JobRecord& job) {
  // Taken out before the scheduler hears of it: its StateChange for this very job comes back while
  // tell() runs, and clears the start.
  const StartUndo undo = *std::exchange(job.gang.edit().undo, std::nullopt);
  sched::StartRefused refused{.job = job.id,
                              .avoid_nodes = undo.avoid_nodes,
                              .avoid_for = undo.avoid_for,
                              .hold = undo.hold,
                              .message = undo.message};
  // 1 min, 2 min, 4 min … up to half an hour; quotas and webhooks are mended by people.
  if (undo.api_refused) {
    refused.avoid_for = std::min(
        kApiBackoffFirst * (std::int64_t{1} << std::min(*job.api_refusals, 10)), kApiBackoffMax);
    ++job.api_refusals.edit();
  }
  job.gang.edit().end_message = undo.message;
  scheduler_.tell(refused);
}

}  // namespace control
