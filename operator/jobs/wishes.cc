// The wishes of users for their jobs: submission, changes, holds, suspension, canceling.
#include "operator/jobs/wishes.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "api/annotations.h"
#include "api/array_status.h"
#include "api/kstatus.h"
#include "api/wellknown.h"
#include "operator/jobs/job_report.h"
#include "operator/jobs/queue_priorities.h"
#include "operator/jobs/status_after.h"
#include "operator/jobs/task_wishes.h"
#include "slurm/array.h"
#include "translation/job_check.h"
#include "translation/job_translation.h"
#include "translation/sentences.h"

namespace control {
namespace {

// How long agents may take to be there before it is worth a word.
constexpr base::Duration kSuspensionPatience = std::chrono::seconds{5};
const std::string kWaits = "its suspension waits: node ";

// Returns true if the job's user wants it to end: it is canceled, or its object is being deleted.
// Deletion counts at once, because the object may stay for long: for other finalizers, or, in the
// foreground, for its pods.
bool must_end(const JobRecord& job) {
  return job.object->spec.control.cancel.value_or(false) ||
         job.object->metadata.deletion_timestamp.has_value();
}

void note_terms(ArrayWishes& array, int task, const sched::TaskTerms& terms) {
  if (terms == sched::TaskTerms{}) {
    array.told_terms.erase(task);
  } else {
    array.told_terms[task] = terms;
  }
}

// For those who select by it. Nothing is decided by it.
std::string user_of(const kube::Job& job) {
  const auto found = job.metadata.annotations.find(std::string{kube::kAnnotationUser});
  return found == job.metadata.annotations.end() ? job.metadata.ns : found->second;
}

bool has_nodes(const JobRecord& job) {
  return job.is_allocated() ||
         (job.array && std::ranges::any_of(job.array->tasks(),
                                           [](auto& task) { return task.second->is_allocated(); }));
}

// REQUIRES: the job is accepted.
std::string remark_of(const JobRecord& job) {
  if (!job.wishes->pod_warning.empty()) {
    return "; the API server would refuse its pods now: " + job.wishes->pod_warning;
  }
  if (job.pod_template == nullptr || !job.pod_template->has_resource_claims) return "";
  return "; what its pods claim (resourceClaims) is not counted: it gets whole nodes, and "
         "kube-scheduler says whether they have the devices";
}

}  // namespace

// Order: a job that was never submitted has no commands, since the scheduler does not know it.
void Wishes::heed(JobRecord& job) {
  if (job.task) return heed_task(job);
  judge(job);
  if (job.array && job.wishes->submitted) tell_tasks(job);
  if (job.wishes->submitted) return tell_commands(job);
  // judge() sets judge_again again if it could not judge.
  // A job without a number yet is judged again when numbers have come, and ends then.
  const bool was_judged = !*job.judge_again;
  if (was_judged && must_end(job)) end_refused(job);
}

// The wishes for its array are sent once for all tasks (tell_commands).
void Wishes::heed_task(JobRecord& task) {
  if (!task.wishes->submitted) return;
  if (!task.is_allocated() && std::exchange(task.wishes.edit().judge_when_free, false)) {
    take_request_of_array(task);
  }
  const kube::TaskControl wish = wish_for(parts_.jobs.array_of(task), *task.task);
  if (!task.wanted().observed) task.wanted_unmarked().observed.emplace();
  if (task.is_allocated() && !task.wanted().job_id) {
    // A request from before its first start has no effect, as with a job (submit).
    kube::JobObserved& observed = *task.wanted_unmarked().observed;
    observed.requeue_request = wish.requeue_request.value_or(0);
    observed.release_request = wish.release_request.value_or(0);
    give_number(task);
  }
  tell_suspension(task);
  if (!task.is_allocated() && !task.wanted().held) return;
  tell_requests(task, wish.requeue_request.value_or(0), wish.release_request.value_or(0));
}

// The request of its array has changed while the task had nodes, and the scheduler takes only the
// time limit and the priority of an Update of a job that has some.
void Wishes::take_request_of_array(JobRecord& task) {
  sched::JobRequest request = request_of_task(parts_.jobs.array_of(task), *task.task);
  request.suspend = task.wishes->told_suspend;
  task.wishes.edit().request = std::make_shared<const sched::JobRequest>(request);
  scheduler_.tell(sched::Update{std::move(request)});
}

// As Slurm, which gives a task a number of its own when it splits it off: the last one keeps that
// of the array.
void Wishes::give_number(JobRecord& task) {
  JobRecord& array = parts_.jobs.array_of(task);
  const auto has_other_number = [&](const auto& each) {
    const auto& number = each.second->wanted().job_id;
    return each.second == &task || (number && *number != array.id.number());
  };
  const bool is_last =
      !array.array->has_rest() && std::ranges::all_of(array.array->tasks(), has_other_number);
  if (is_last) {
    task.wanted_unmarked().job_id = array.id.number();
  } else if (const auto id = numbers_.next(task.uid)) {
    task.wanted_unmarked().job_id = id->number();
  }
}

// Sends holds and ends of single tasks, with or without records, each once: those of the whole
// array go to the array.
void Wishes::tell_tasks(JobRecord& array) {
  ArrayRecord& record = *array.array;
  const std::int64_t generation = array.object->metadata.generation;
  if (std::exchange(record.wishes.edit().told_generation, generation) == generation) return;
  tell_terms(array);
  std::set<int> named = named_tasks(array);
  for (const auto& [number, held] : record.wishes->told_holds) named.insert(number);
  for (const int number : named) {
    if (!record.wishes->all.contains(number) || !record.is_open(number)) continue;
    const kube::TaskControl wish = wish_for(array, number);
    const sched::JobId id = sched::JobId::of_task(array.id, number);
    // Also one that is ending, which may be about to wait again (T5).
    if (wish.cancel.value_or(false) && record.wishes.edit().told_cancels.insert(number).second) {
      scheduler_.tell(sched::Cancel{id});
      continue;
    }
    const bool of_array = array.request().hold;
    // The array may be held because it is suspended.
    const bool goes_on = wish.suspend && !*wish.suspend;
    const bool hold =
        wish.hold.value_or(goes_on ? array.object->spec.control.hold.value_or(false) : of_array);
    const auto [told, is_new] = record.wishes.edit().told_holds.try_emplace(number, of_array);
    if (std::exchange(told->second, hold) == hold) continue;
    if (hold) {
      scheduler_.tell(sched::Hold{.job = id});
    } else {
      scheduler_.tell(sched::Release{id});
    }
  }
}

// Sends the differences from the array's request for each task with new ones. For a task that a new
// leader has restored, the limit may be new.
void Wishes::tell_terms(JobRecord& array) {
  ArrayRecord& record = *array.array;
  std::map<int, sched::TaskTerms> terms = terms_of_tasks(array);
  for (const auto& [number, told] : record.wishes->told_terms) terms.try_emplace(number);
  for (const auto& [number, task] : record.tasks()) terms.try_emplace(number);
  for (const auto& [number, wished] : terms) {
    if (!record.wishes->all.contains(number) || !record.is_open(number)) continue;
    JobRecord* const task = parts_.jobs.peek(sched::JobId::of_task(array.id, number));
    const sched::JobRequest before =
        task != nullptr ? task->request() : request_of_task(array, number);
    note_terms(record.wishes.edit(), number, wished);
    sched::JobRequest request = request_of_task(array, number);
    if (has_terms_of(before, request)) continue;
    if (task != nullptr) {
      WishNotes& of_task = task->wishes.edit();
      request.suspend = of_task.told_suspend;
      of_task.request = with_terms_of(of_task.request, request);
    }
    scheduler_.tell(sched::Update{std::move(request)});
  }
}

void Wishes::heed_finished(JobRecord& job) {
  const std::int64_t generation = job.object->metadata.generation;
  const bool is_observed = job.wanted().observed_generation == generation;
  if (!parts_.jobs.take_judge_again(job) && is_observed) return;
  // A job that has ended can still be edited. The only changes that make sense are those of its
  // housekeeping (ttlAfterFinished); a command that is taken back is refused as before the end.
  const auto changes = check_change(job.basis(), job.object->spec, false);
  if (!changes.empty()) return refuse_change(job, changes);
  parts_.jobs.accept(job);
  if (is_observed) return;
  parts_.jobs.change(job, WriteUrgency::kInforms,
                     [&](auto& wanted) { wanted.observed_generation = generation; });
  // Tools such as kstatus take a job for finished only when its newest spec has been judged.
  if (kube::is_true(job.wanted().conditions, kube::kStalled)) {
    const std::string message = "the change is in force";
    (void)parts_.jobs.set_condition(job, WriteUrgency::kInforms, kube::kStalled,
                                    kube::ConditionStatus::kFalse, "Accepted", message);
    (void)parts_.jobs.set_condition(job, WriteUrgency::kInforms, kube::kAccepted,
                                    kube::ConditionStatus::kTrue, "Accepted", message);
  }
}

// Judges whether the job is legal, and what of it changed. REQUIRES: the job is not final.
//
// 1. It needs a number first; without one it is judged again when numbers have come.
// 2. A change that is not allowed now (an allocated job) is refused, and the job goes on without
//    it. What else has changed, with it or later, is taken: a time limit that was cut is not lost.
//    The job is judged again when no nodes are left.
// 3. A job that is illegal leaves the queue, unless only its partition is missing.
// 4. The accepted spec becomes the basis with which the next change is compared.
// 5. A new job is submitted; for a known one the scheduler gets the changes, holds as events of
//    their own.
void Wishes::judge(JobRecord& job) {
  if (job.wishes->judge_when_free && !has_nodes(job)) {
    job.wishes.edit().judge_when_free = false;
    parts_.jobs.judge_again(job);
  }
  if (!parts_.jobs.take_judge_again(job)) return;
  // 1. a number
  if (job.id.number() == 0) {
    // numbers_ remembers the job and touches it when a block of numbers has been reserved.
    const auto id = numbers_.next(job.uid);
    if (!id) {
      parts_.jobs.judge_again(job);
      return;
    }
    parts_.jobs.set_id(job, *id);
    job.wanted_unmarked().job_id = job.id.number();
  }
  if (!job.wanted().submit_time) {
    // When the user made it, not when a leader saw it: an election must not cost a job its age.
    job.wanted_unmarked().submit_time =
        job.object->metadata.creation_timestamp.value_or(parts_.now);
  }
  if (std::string user = user_of(*job.object); job.wanted().user != user) {
    parts_.jobs.change(job, WriteUrgency::kInforms,
                       [&](auto& wanted) { wanted.user = std::move(user); });
  }
  // Always translated in full, also if only a label has changed: what is legal depends on
  // partitions, QOS and nodes as well, and comparing the outcomes (below) is simpler than tracking
  // all causes.
  JobVerdict verdict =
      translate_job(*job.object, *job.pod_template, job.id, *job.wanted().submit_time,
                    context_of(job, parts_.policy, parts_.nodes));
  // A job that has nodes has no open dependencies.
  Predecessors predecessors{.dependency = job.request().dependency, .known = {}, .problems = {}};
  if (verdict.request) {
    if (!job.is_allocated()) predecessors = find_predecessors(parts_.jobs, job);
    verdict.request->dependency = predecessors.dependency;
  }
  // 2. a change that is not allowed
  if (job.wishes->submitted) {
    const auto problems = problems_of_change(job, verdict, predecessors);
    if (!problems.empty()) {
      job.wishes.edit().judge_when_free = has_nodes(job);
      (void)take_allowed(job);
      return refuse_change(job, problems);
    }
  }
  if (!job.is_allocated()) show_partitions(job);
  // 3. an illegal job
  if (!verdict.request) return go_on_illegally(job, verdict);
  if (!predecessors.problems.empty()) return refuse(job, predecessors.problems);
  sched::JobRequest request = std::move(*verdict.request);
  // 4. what is accepted
  parts_.jobs.accept(job);
  if (job.array) job.array->wishes.edit().all = request.array->tasks;
  // 5. the scheduler
  if (!job.wishes->submitted) return submit(job, std::move(request), predecessors.known);
  if (job.array && std::exchange(job.array->wishes.edit().waits_for_mend, false)) release_all(job);
  tell_update(job, std::move(request), predecessors.known);
  show_accepted(job);
}

// A job whose spec is worth nothing today. One that has nodes goes on, and takes what may change;
// one whose partition was deleted stays in the queue as PartitionInactive (api.md).
void Wishes::go_on_illegally(JobRecord& job, const JobVerdict& verdict) {
  if (!verdict.partition_missing && job.array && job.wishes->submitted && job.array->has_begun()) {
    (void)take_allowed(job);
    return hold_rest(job, verdict.problems);
  }
  if (!has_nodes(job)) {
    const bool waits_for_partition = job.wishes->submitted && verdict.partition_missing;
    if (!waits_for_partition) refuse(job, verdict.problems);
    return;
  }
  if (take_allowed(job)) return show_accepted(job);
  if (job.object->spec != job.basis()) refuse_change(job, verdict.problems);
}

// Takes of a changed spec what may change now, whatever the rest is worth. Returns false if that is
// not legal by itself.
bool Wishes::take_allowed(JobRecord& job) {
  auto changed = std::make_shared<kube::Job>(*job.object);
  changed->spec = allowed_change(job.basis(), job.object->spec, has_nodes(job));
  if (!check_job(*changed).empty()) return false;
  sched::JobRequest request = job.request();
  set_what_may_change(changed->spec, request);
  // Tasks that wait start on the nodes as they are now, also if an edit of their array is refused.
  if (job.array) {
    JobVerdict verdict =
        translate_job(*changed, *job.pod_template, job.id, *job.wanted().submit_time,
                      context_of(job, parts_.policy, parts_.nodes));
    if (verdict.request) {
      verdict.request->dependency = std::move(request.dependency);
      request = *std::move(verdict.request);
    }
  }
  if (changed->spec == job.object->spec) {
    parts_.jobs.accept(job);
  } else if (changed->spec != job.basis()) {
    parts_.jobs.accept(job, std::move(changed));
  }
  tell_update(job, std::move(request), {});
  return true;
}

void Wishes::tell_update(JobRecord& job, sched::JobRequest request,
                         const std::vector<sched::KnownJob>& known) {
  // Most changes (a label, the suspend switch) are none of the request. Compared with what was sent
  // last, although the scheduler takes only the time limit and the priority of an Update of a job
  // with nodes. A requeued job gets the rest all the same: its requeue gives it a new submit time
  // (status_after), so the two differ when it is judged again.
  if (job.request() == request) return;
  // The hold as the scheduler knows it, before the request is replaced.
  const bool held = job.request().hold;
  if (job.request().dependency != request.dependency) show_terms(job, request.dependency);
  job.wishes.edit().request = std::make_shared<const sched::JobRequest>(std::move(request));
  sched::Update update{job.request(), known};
  if (job.array) {
    // The terms of single tasks go with it: for an instant without a longer limit of its own, a
    // task would be ended.
    update.tasks = terms_of_tasks(job);
    ArrayRecord& record = *job.array;
    std::set<int> apart;
    for (const auto& [number, told] : record.wishes->told_terms) apart.insert(number);
    for (const auto& [number, task] : record.tasks()) apart.insert(number);
    for (const int number : apart) {
      const auto own = update.tasks.find(number);
      note_terms(record.wishes.edit(), number,
                 own == update.tasks.end() ? sched::TaskTerms{} : own->second);
    }
    for (const auto& [number, task] : record.tasks()) {
      WishNotes& of_task = task->wishes.edit();
      of_task.request = with_terms_of(of_task.request, request_of_task(job, number));
      // The rest is for its next start (take_request_of_array).
      if (task->is_allocated()) of_task.judge_when_free = true;
    }
  }
  // An Update never takes a hold back, so both directions are sent as events of their own.
  scheduler_.tell(std::move(update));
  share_request(job);
  if (job.request().hold && !held) scheduler_.tell(sched::Hold{.job = job.id});
  if (!job.request().hold && held) return release_all(job);
  // Also a new priority releases, and a hold of the request holds, each task that waits.
  tell_tasks_again(job);
}

// An array of which tasks have started does not leave the scheduler, to which all of its tasks
// would be new when it comes back.
void Wishes::hold_rest(JobRecord& array, const std::vector<std::string>& problems) {
  if (!std::exchange(array.array->wishes.edit().waits_for_mend, true)) {
    scheduler_.tell(sched::Hold{.job = array.id, .by_admin = true});
  }
  refuse_change(array, problems,
                "; tasks that have started go on, and no other one starts until this is mended");
}

// Ends the holds by the system. A hold in its spec stays, as it would with the next leader.
void Wishes::release_all(JobRecord& job) {
  scheduler_.tell(sched::Release{job.id});
  const bool is_held = job.request().hold || (job.array && job.array->wishes->waits_for_mend);
  if (is_held) scheduler_.tell(sched::Hold{.job = job.id, .by_admin = !job.request().hold});
  tell_tasks_again(job);
}

// A hold or a release of an array acts on all of its tasks: wishes for single ones are sent
// again.
void Wishes::tell_tasks_again(JobRecord& job) {
  if (!job.array) return;
  // A task that is a job by itself hears it once more: whether what it was sent last still counts
  // is not known. Any other one is as its array now.
  for (auto& [number, held] : job.array->wishes.edit().told_holds) {
    const bool is_apart = job.array->tasks().contains(number);
    held = is_apart ? !wish_for(job, number).hold.value_or(job.request().hold) : job.request().hold;
  }
  job.array->wishes.edit().told_generation = -1;
  parts_.jobs.touch(job.uid);
}

std::vector<std::string> Wishes::problems_of_change(const JobRecord& job, const JobVerdict& verdict,
                                                    const Predecessors& predecessors) const {
  auto problems = check_change(job.basis(), job.object->spec, has_nodes(job));
  std::ranges::copy(predecessors.problems, std::back_inserter(problems));
  if (verdict.request && predecessors.dependency != job.request().dependency) {
    auto circle = scheduler_.names().refused_dependency(*verdict.request);
    if (circle) problems.push_back("spec.dependency: " + *std::move(circle));
  }
  if (job.is_allocated() && !job.pod_template->problems.empty()) {
    // The pods of the next start are built from the new template, so a template that has become
    // illegal is a change that cannot be carried out.
    problems.push_back(job.pod_template->problems.front());
  }
  return problems;
}

// Once told, it is the scheduler's: a cancel cannot be taken back. The cancel of an array is one of
// its tasks.
void Wishes::cancel(JobRecord& job) {
  if (!std::exchange(job.wishes.edit().told_cancel, true) && !job.task) {
    scheduler_.tell(sched::Cancel{job.id});
  }
}

void Wishes::forget(JobRecord& job) {
  job.wishes.edit().submitted = false;
  // Jobs may wait for one that was never submitted, too.
  if (job.id.number() != 0) scheduler_.tell(sched::Forget{job.id});
}

// It is submitted again when that may change.
void Wishes::submit_refused(JobRecord& job, const std::string& message) {
  job.wishes.edit().submitted = false;
  refuse(job, {message});
}

void Wishes::forget_warning(JobRecord& job) {
  if (!std::exchange(job.wishes.edit().pod_warning, {}).empty()) show_accepted(job);
}

void Wishes::tell_hold_again(JobRecord& array, int task) {
  ArrayWishes& wishes = array.array->wishes.edit();
  const auto told = wishes.told_holds.find(task);
  if (told == wishes.told_holds.end() || !std::exchange(told->second, false)) return;
  wishes.told_generation = -1;
  parts_.jobs.touch(array.uid);
}

void Wishes::refuse(JobRecord& job, const std::vector<std::string>& problems) {
  if (job.wishes->submitted) {
    job.wishes.edit().submitted = false;
    // It comes back as a new submission if its author mends it, with the same number and submit
    // time.
    // The scheduler must not start a job whose spec cannot be turned into pods.
    scheduler_.tell(sched::Forget{.job = job.id, .returns = true});
  }
  const std::string message = joined(problems);
  job.wanted_unmarked().observed_generation = job.object->metadata.generation;
  // An event and a log line once, and not at each look at an unchanged job.
  const bool changed = show_refused(job, "Invalid", message);
  if (!changed && job.wanted().message == message) return;
  parts_.jobs.change(job, WriteUrgency::kUrgent, [&](kube::JobStatus& wanted) {
    wanted.state = kube::JobState::kPending;
    wanted.reason = "NotAccepted";
    wanted.message = message;
  });
  parts_.report.log("job refused", job_fields(job, {{"message", message}}));
  tell_event(parts_.report, job, true, "Refused", message);
}

// Returns true if that has not been said before.
bool Wishes::show_refused(JobRecord& job, const std::string& reason, const std::string& message) {
  (void)parts_.jobs.set_condition(job, WriteUrgency::kUrgent, kube::kStalled,
                                  kube::ConditionStatus::kTrue, reason, message);
  return parts_.jobs.set_condition(job, WriteUrgency::kUrgent, kube::kAccepted,
                                   kube::ConditionStatus::kFalse, reason, message);
}

// The scheduler does not know a job that was refused, so its end is decided here.
void Wishes::end_refused(JobRecord& job) {
  const sched::StateChange end{.job = job.id,
                               .state = sched::JobState::kCancelled,
                               .reason = sched::Reason::kNone,
                               // The count stays as it is: status_after() takes a different one for
                               // a requeue.
                               .restarts = static_cast<int>(job.wanted().restarts.value_or(0))};
  parts_.jobs.apply(job, end, {.now = parts_.now, .generation = job.object->metadata.generation});
  parts_.jobs.accept(job);
  // For those that wait for it.
  scheduler_.tell(sched::Forget{job.id});
  parts_.jobs.touch(job.uid);
  parts_.report.log("state", job_fields(job, {{"state", "Cancelled"}}));
}

// Says that a change is not obeyed, and why. `job.basis()` stays the spec that is in force, with
// which the next change is compared, so an edit back to it is accepted.
void Wishes::refuse_change(JobRecord& job, const std::vector<std::string>& problems,
                           std::string_view what_follows) {
  const std::string message = joined(problems) + std::string{what_follows};
  job.wanted_unmarked().observed_generation = job.object->metadata.generation;
  if (!show_refused(job, "ChangeRefused", message)) return;
  parts_.report.log("change refused", job_fields(job, {{"message", message}}));
  tell_event(parts_.report, job, true, "ChangeRefused", message);
}

// squeue's PARTITION of a job that waits. The first write of its status carries it.
void Wishes::show_partitions(JobRecord& job) {
  std::string names = partition_names(job.object->spec, parts_.policy.configuration());
  if (names == job.wanted().partition) return;
  parts_.jobs.change(job, WriteUrgency::kInforms,
                     [&](auto& wanted) { wanted.partition = std::move(names); });
}

// Both are Accepted=True: a refusal of pods by the API server, such as by a quota, may be over
// before the job starts.
void Wishes::show_accepted(JobRecord& job) {
  const bool warns = !job.wishes->pod_warning.empty();
  const std::int64_t generation = job.object->metadata.generation;
  const auto judged = std::exchange(job.wanted_unmarked().observed_generation, generation);
  // Editors of a job look at it next. The first look at a job goes with the write of its number.
  const bool is_edit = judged && judged != generation;
  if (is_edit && !job.is_allocated()) show_priority_unmarked(job, scheduler_);
  if (is_edit) parts_.jobs.mark(job, WriteUrgency::kUrgent);
  const auto show = [&](std::string_view type, kube::ConditionStatus value, const char* reason,
                        std::string message) {
    (void)parts_.jobs.set_condition(job, WriteUrgency::kInforms, type, value, reason,
                                    std::move(message));
  };
  const auto has = [&](std::string_view type) {
    return kube::find_condition(job.wanted().conditions, type) != nullptr;
  };
  if (has(kube::kStalled)) {
    show(kube::kStalled, kube::ConditionStatus::kFalse, "Accepted", "the spec is in force");
  }
  // Until its first start; then the start says what it is waited for.
  if (!has(kube::kReady)) {
    show(kube::kReady, kube::ConditionStatus::kFalse, "Queued", "it has not been started yet");
  }
  show(kube::kAccepted, kube::ConditionStatus::kTrue, warns ? "AcceptedWithWarning" : "Accepted",
       "the job is in the queue" + remark_of(job));
}

// The terms are stored with the number by which other jobs name the job, so that a leader that
// finds the one finds the other.
// A number that a name stands for is written after the job that has it: the next leader would give
// that job another one.
void Wishes::show_terms(JobRecord& job, const sched::Dependency& dependency) {
  parts_.jobs.change(job, WriteUrgency::kUrgent, [&](auto& wanted) {
    wanted.dependency = shown_terms(*job.object, dependency, wanted.dependency);
  });
  for (const kube::DependencyStatus& term : job.wanted().dependency) {
    if (term.job_name.empty() || !term.job_id) continue;
    JobRecord* const named = parts_.jobs.peek(sched::JobId{*term.job_id});
    if (named == nullptr || named->status.stored().job_id) continue;
    statuses_.write_after_end(job, named->id);
    parts_.jobs.mark(*named, WriteUrgency::kUrgent);
  }
}

// Keeps no copy of the request that the scheduler has.
void Wishes::share_request(JobRecord& job) {
  const auto view = scheduler_.view(job.id);
  if (view && *view->facts->request == job.request())
    job.wishes.edit().request = view->facts->request;
}

void Wishes::submit(JobRecord& job, sched::JobRequest request, std::vector<sched::KnownJob> known) {
  job.wishes.edit().submitted = true;
  show_terms(job, request.dependency);
  job.wishes.edit().request = std::make_shared<const sched::JobRequest>(std::move(request));
  // A Submit carries the suspension with it; it is not sent as an event of its own.
  job.wishes.edit().told_suspend = job.request().suspend;
  parts_.jobs.change(job, WriteUrgency::kUrgent, [&](kube::JobStatus& wanted) {
    wanted.state = kube::JobState::kPending;
    wanted.reason.clear();
    wanted.message.clear();
    // The counters that the spec was made with are not commands: a Job copied from another one,
    // with requeueRequest: 3, asks for nothing.
    if (wanted.observed) return;
    wanted.observed = kube::JobObserved{job.object->spec.control.requeue_request.value_or(0),
                                        job.object->spec.control.release_request.value_or(0)};
  });
  show_accepted(job);
  // The pods of an adopted gang exist already, so the API server has taken them.
  if (!job.is_adopted()) trials_.add(job.uid);
  parts_.report.log("job submitted", job_fields(job));
  scheduler_.tell(sched::Submit{job.request(), std::move(known)});
  share_request(job);
  show_priority_unmarked(job, scheduler_);
}

// Sends everything in the spec that is a command rather than a property.
void Wishes::tell_commands(JobRecord& job) {
  const kube::JobControl& control = job.object->spec.control;
  if (must_end(job)) cancel(job);
  tell_suspension(job);
  if (!job.wanted().observed) job.wanted_unmarked().observed.emplace();
  tell_requests(job, control.requeue_request.value_or(0), control.release_request.value_or(0));
}

// Requests are counters (requeueRequest, releaseRequest): one that is higher than what was last
// observed is a command that has not been carried out. The observed numbers are stored, so a new
// leader repeats none. Two requests between two looks are one: the counter says that there was a
// request, not how many. Each is noted before it is sent, because the answer of the scheduler may
// arrive within the call.
void Wishes::tell_requests(JobRecord& job, std::int64_t requeue, std::int64_t release) {
  if (requeue > job.wanted().observed->requeue_request) {
    parts_.jobs.change(job, WriteUrgency::kUrgent,
                       [&](auto& wanted) { wanted.observed->requeue_request = requeue; });
    scheduler_.tell(sched::Requeue{job.id});
  }
  if (release > job.wanted().observed->release_request) {
    parts_.jobs.change(job, WriteUrgency::kUrgent, [&](kube::JobStatus& wanted) {
      wanted.observed->release_request = release;
      wanted.held.reset();
    });
    if (!job.task) return release_all(job);
    scheduler_.tell(sched::Release{job.id});
  }
}

// A job that runs stands still only if its nodes' agents see to it. Where jobs take no turns there
// may be none, and no timetable: both are asked for, and the scheduler hears of the suspension when
// they are there. A job that is Suspended by its status is so, and its CPUs are free for others.
void Wishes::tell_suspension(JobRecord& job) {
  if (job.array) return;  // each of its tasks by itself
  const kube::JobControl& control = job.object->spec.control;
  const bool of_job = control.suspend.value_or(false);
  // Those that wait are not suspended (13.4), but for one that was when it was requeued.
  if (job.task && !job.is_allocated() && !job.wishes->told_suspend) return;
  const bool suspend =
      job.task ? wish_for(parts_.jobs.array_of(job), *job.task).suspend.value_or(of_job) : of_job;
  if (!suspend && (job.wishes->told_suspend || *job.suspension_waits)) {
    for (const std::string& node : job.start->nodes) parts_.nodes.stop_asking(node, job.uid);
  }
  if (!suspend) suspension_waits_no_more(job);
  if (suspend == job.wishes->told_suspend) return;
  if (!suspend) {
    job.wishes.edit().told_suspend = false;
    return scheduler_.tell(sched::UserResume{job.id});
  }
  // A job without nodes needs no agent: suspending it is like a hold.
  if (job.is_allocated() && !job.wanted().ending) {
    for (const std::string& node : job.start->nodes) parts_.nodes.ask_to_stop(node, job.uid);
    if (suspension_waits(job)) return;
  }
  // Before this, the job runs on and counts as running: what is said to be Suspended really stands
  // still.
  job.wishes.edit().told_suspend = true;
  scheduler_.tell(sched::UserSuspend{job.id});
}

// Returns true if the suspension waits for an agent. After a while the job says for which one.
bool Wishes::suspension_waits(JobRecord& job) {
  // The first node that is not ready decides; the others are asked when that one is.
  for (const std::string& node : job.start->nodes) {
    const auto why = parts_.nodes.why_not_stopped(node);
    if (!why) continue;
    if (!*job.suspension_waits) job.suspension_waits.edit() = parts_.now;
    // A usual wait lasts a few seconds; a message that comes and goes with it would alarm
    // users for nothing.
    const base::Instant told_at = **job.suspension_waits + kSuspensionPatience;
    if (told_at > parts_.now) {
      parts_.jobs.set_timer(job, told_at);
      return true;
    }
    const std::string message = kWaits + node + " " + why->message;
    // The node may change from look to look; the event is sent once for the whole wait.
    const std::string before = job.wanted().message;
    if (before != message) {
      parts_.jobs.change(job, WriteUrgency::kUrgent,
                         [&](auto& wanted) { wanted.message = message; });
    }
    if (!before.starts_with(kWaits)) {
      tell_event(parts_.report, job, true, "SuspensionWaits", message);
    }
    return true;
  }
  suspension_waits_no_more(job);
  return false;
}

void Wishes::suspension_waits_no_more(JobRecord& job) {
  job.suspension_waits.edit().reset();
  // Recognized by its text: the message may have been written by an earlier leader, and any other
  // message must stay.
  if (!job.wanted().message.starts_with(kWaits)) return;
  parts_.jobs.change(job, WriteUrgency::kUrgent, [](auto& wanted) { wanted.message.clear(); });
}

void Wishes::judge_waiting() {
  parts_.jobs.for_each_unfinished([this](JobRecord& job) { judge_later(job); });
}

void Wishes::judge_classes(const std::set<NodeClasses::Names>& outdated) {
  if (outdated.empty()) return;
  parts_.jobs.for_each_unfinished([&](JobRecord& job) {
    if (outdated.contains(job.request().unusable_nodes)) judge_later(job);
  });
}

// A job that runs already is not concerned by a change of what a partition, a QOS or a node allows,
// but its next start is.
void Wishes::judge_later(JobRecord& job) {
  if (job.is_final() || job.deleted) return;
  if (job.is_allocated()) {
    job.wishes.edit().judge_when_free = true;
    return;
  }
  parts_.jobs.judge_again(job);
  parts_.jobs.touch(job.uid);
}

std::vector<JobRecord*> Wishes::restore_tasks(JobRecord& array) {
  const ArrayRecord& record = *array.array;
  ArrayWishes& told = array.array->wishes.edit();
  std::vector<JobRecord*> made;
  const std::map<int, sched::TaskTerms> wished = terms_of_tasks(array);
  const std::set<int> held = held_tasks(array);
  std::set<int> apart = held;
  for (const auto& [number, terms] : wished) apart.insert(number);
  // Without it the array may need to be judged like a new one.
  if (apart.empty() || !array.object->spec.array || !array.wanted().array) return made;
  const auto all =
      slurm::parse_array("spec.array.tasks", array.object->spec.array->tasks, kube::kArrayTasksMax);
  if (!all) return made;
  for (const int number : apart) {
    if (!all->tasks.contains(number)) continue;
    const auto known = record.tasks().find(number);
    const bool has_record = known != record.tasks().end();
    if (!has_record && std::ssize(made) >= kube::kArrayBegunMax) continue;
    const auto terms = wished.find(number);
    if (terms != wished.end()) told.told_terms[number] = terms->second;
    const bool waits = !has_record || !known->second->is_allocated();
    if (waits && held.contains(number)) told.told_holds[number] = true;
    if (has_record) continue;
    const kube::ArrayTask entry{.task = number, .state = kube::JobState::kPending};
    made.push_back(&parts_.jobs.make_task(array, number, &entry));
  }
  return made;
}

void Wishes::restore_all(JobRecord& array, const sched::TaskSet& all) {
  array.array->wishes.edit().all = all;
}

// The spec may have changed while there was no leader: it is judged like any change, since a new
// record has yet to be judged.
void Wishes::restore(JobRecord& job, std::shared_ptr<const sched::JobRequest> request,
                     bool is_suspended) {
  WishNotes& told = job.wishes.edit();
  told.submitted = true;
  told.request = std::move(request);
  told.told_suspend = is_suspended;
  parts_.jobs.accept(job);
  if (!is_suspended) return;
  // Nodes are asked for an agent on behalf of a suspension; that is kept in memory alone.
  for (const std::string& node : job.start->nodes) parts_.nodes.ask_to_stop(node, job.uid);
}

void Wishes::answered(PodTried&& outcome) {
  const std::string warning = refusal_of(outcome);
  for (const std::string& uid : trials_.answered(outcome)) {
    JobRecord* job = parts_.jobs.peek(uid);
    // The job has pods or will have some now: their own refusal says more than the trial.
    if (job == nullptr || job->is_final() || job->is_allocated()) continue;
    if (warning == job->wishes->pod_warning) continue;
    job->wishes.edit().pod_warning = warning;
    show_accepted(*job);
    // One event for all that are alike: thousands would push out what else there is to say.
    if (warning.empty() || uid != outcome.uid) continue;
    tell_event(parts_.report, *job, true, "PodsWouldBeRefused", warning);
  }
}

}  // namespace control
