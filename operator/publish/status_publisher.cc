#include "operator/publish/status_publisher.h"

#include <algorithm>
#include <map>
#include <type_traits>
#include <utility>

#include "api/wellknown.h"
#include "base/number_list.h"
#include "operator/jobs/status_after.h"
#include "translation/reason_names.h"

namespace control {
namespace {

bool waits_for_number(const JobRecord& job) {
  return job.task && job.is_allocated() && !job.wanted().job_id;
}

// The most tasks of an array that have not started whose reasons to wait differently are shown.
constexpr std::size_t kWaitsTold = 100;
bool waits_for_itself(const kube::JobStatus& task, const kube::JobStatus& array) {
  return !task.reason.empty() && task.reason != array.reason;
}

// Returns which commit point the write is, from the state that it writes: names for logs, tests and
// crash points.
WritePoint status_point(const JobRecord& job) {
  if (job.status.urgency() != WriteUrgency::kCommit) {
    return job.readiness_is_late() ? WritePoint::kReady : WritePoint::kStatus;
  }
  const kube::JobStatus& wanted = job.wanted();
  if (job.is_final()) return WritePoint::kFinal;
  if (!job.is_allocated()) return wanted.claim ? WritePoint::kClaim : WritePoint::kRequeued;
  if (wanted.ending) return WritePoint::kEnding;
  return kube::is_true(wanted.conditions, kube::kReady) ? WritePoint::kReady : WritePoint::kStart;
}

// The API server keeps each version of an object, as a whole, for minutes. So that tasks do not
// fill etcd, a task may take this many bytes of it, half for its start and half for its end: the
// status of an array is written when that has come together, or at the latest after kArrayRestMax,
// since a start waits for it. One that takes no more by itself is written at once. What only
// informs, that a task is ready, mostly comes along with a start or an end: it may take some bytes
// a second.
constexpr std::size_t kTaskBytes = 4 << 10;
constexpr base::Duration kArrayRestMax = std::chrono::seconds{5};
constexpr std::int64_t kInformingBytesPerSecond = 256;
// An estimate: what stands beside the entries (metadata, a spec with a small template), and an
// entry as it is packed.
constexpr std::size_t kOtherBytes = 3 << 10;
constexpr std::size_t kEntryBytes = 45;
ArrayWrite::Rest rest_after(const kube::ArrayStatus& shown, base::Instant now) {
  const std::size_t texts =
      shown.succeeded.size() + shown.failed.size() + shown.cancelled.size() + shown.outcomes.size();
  const std::size_t bytes =
      kOtherBytes + (shown.tasks.size() + shown.ended.size()) * kEntryBytes + texts;
  const base::Duration informs_after = base::Duration{std::chrono::seconds{1}} *
                                       static_cast<std::int64_t>(bytes) / kInformingBytesPerSecond;
  return {.until = bytes > kTaskBytes ? now + kArrayRestMax : now,
          .informs_at = now + std::min(informs_after, InformBudget::kObjectPeriod),
          .points = bytes / (kTaskBytes / 2)};
}

// The most that the CRD takes: more than 18,000 tasks that do not stand side by side. Further ones
// are left out, and start with the next leader.
constexpr std::size_t kFailedTwinsBytesMax = 131'072;

// Says of each term for which tasks of the array it has failed: for the others it may be fulfilled,
// and only this distinguishes them for a new leader. `array`: of its own status.
void show_failed_twins(const ArrayRecord& record, std::vector<kube::DependencyStatus>& of_array) {
  for (std::size_t i = 0; i < of_array.size(); ++i) {
    if (of_array[i].type != kube::DependencyType::kAfterCorr) continue;
    std::vector<int> failed;
    bool some_wait = record.has_rest();
    for (const auto& [number, task] : record.tasks()) {
      const auto& terms = task->wanted().dependency;
      if (task->is_final() || task->is_allocated() || i >= terms.size()) continue;
      if (terms[i].state == kube::DependencyState::kFailed) failed.push_back(number);
      some_wait = some_wait || terms[i].state == kube::DependencyState::kUnfulfilled;
    }
    // Where each task is a job by itself, nothing else says so.
    if (!some_wait) of_array[i].state = kube::DependencyState::kFulfilled;
    std::string text = base::format_number_list(failed);
    if (text.size() > kFailedTwinsBytesMax) text.resize(text.rfind(',', kFailedTwinsBytesMax));
    of_array[i].failed_tasks = std::move(text);
  }
}

void show_undone_starts(const ArrayRecord& record, kube::ArrayStatus& shown) {
  for (const auto& [number, starts] : *record.undone_starts) {
    if (!record.is_open(number)) continue;
    shown.tasks.push_back({.task = number, .state = kube::JobState::kPending, .starts = starts});
  }
  std::ranges::sort(shown.tasks, {}, &kube::ArrayTask::task);
}

// The part of the room that is kept for writes other than commit points: one in this many. Without
// it a suspended job would never be shown as suspended under a constant stream of starts.
constexpr std::size_t kStatesShare = 4;

std::size_t share_of(const WaitingLine& line, std::size_t room, std::size_t share) {
  return std::min(line.size(), (room + share - 1) / share);
}

// Begins a write. The patch is the difference between what is stored and what is wanted, both as of
// now.
template <typename T>
PatchStatus<T> patch_of(WritePoint point, StatusMirror<T>& mirror, base::Instant now) {
  mirror.begin(now);
  return {point, mirror.object_with(mirror.stored()), mirror.object_with(mirror.wanted())};
}

// A difference of the term alone does not count: the next write brings it. An array's facts of its
// tasks are gathered when it is written.
bool says_something(const JobRecord& job) {
  if (job.array) return true;
  kube::JobStatus stored = job.status.stored();
  stored.term = job.wanted().term;
  return !(stored == job.wanted());
}

// Returns when a status that only informs may be written at the earliest: not in a back-off, and
// not more often than its kind may be.
template <typename T>
base::Instant informs_at(const StatusMirror<T>& mirror) {
  constexpr bool kIsJob = std::is_same_v<T, kube::Job>;
  constexpr base::Duration kPeriod =
      kIsJob ? InformBudget::kObjectPeriod : InformBudget::kPolicyPeriod;
  return std::max(mirror.due(), mirror.informed_at() + kPeriod);
}

template <typename T>
bool may_inform(const StatusMirror<T>& mirror, base::Instant now) {
  return mirror.urgency() == WriteUrgency::kInforms && mirror.may_write(now);
}

// Returns true if the job waited for nothing but the start of the other one, and that is stored.
// The end of that one may be outstanding: if it is for this job, it waits for this job's claim
// (rule 4).
bool only_start_is_awaited(const JobRecord& job, const JobRecord& other) {
  const auto& terms = job.wanted().dependency;
  return other.status.stored().starts.value_or(0) > 0 &&
         std::ranges::none_of(terms, [&](const kube::DependencyStatus& term) {
           return term.job_id == other.id.number() && term.type != kube::DependencyType::kAfter;
         });
}

// For an array, all has been said of its tasks then, of which the record may have none (take_out).
bool has_stored_end(const JobRecord& array) {
  const auto& state = array.status.stored().state;
  return state && kube::is_final(*state);
}

// Returns true if the job waits, or waited, for that task of the other one, which is an array.
bool has_waited_for(const JobRecord& job, const JobRecord& other, int task) {
  return std::ranges::any_of(job.wanted().dependency, [&](const kube::DependencyStatus& term) {
    if (term.job_id != other.id.number()) return false;
    const bool has_twin = term.type == kube::DependencyType::kAfterCorr && job.task &&
                          other.array->wishes->all.contains(*job.task);
    const std::optional<int> named = has_twin ? job.task : term.task;
    return !named || *named == task;
  });
}

// Returns true if neither the start of the job nor what became of it since is stored.
bool has_start_to_store(const JobRecord& job) {
  return job.wanted().starts.value_or(0) > job.status.stored().starts.value_or(0);
}

// Returns true if the awaited facts of that task of the other job are stored: its end, or only its
// start if it has begun and not ended.
bool is_told_of_task(const CommitGate& gate, const JobRecord& job, const JobRecord& other,
                     const JobRecord& task) {
  return !has_waited_for(job, other, *task.task) || gate.may_end_wait(task.uid) ||
         (!task.is_final() && !has_start_to_store(task));
}

// Returns true if the awaited facts of the other job are stored, for an array those of all awaited
// tasks.
bool is_told_of(const CommitGate& gate, const JobRecord& job, const JobRecord& other) {
  // The terms of the job have that number.
  if (other.status.exists() && !other.status.stored().job_id) return false;
  if (!gate.may_end_wait(other.uid)) return only_start_is_awaited(job, other);
  // The array's status reports ends without a record.
  const bool is_clean =
      other.status.urgency() == WriteUrgency::kClean && !other.status.is_in_flight();
  if (other.array && *other.array->rest_ended && !is_clean) return false;
  return !other.array || std::ranges::all_of(other.array->tasks(), [&](const auto& each) {
    return is_told_of_task(gate, job, other, *each.second);
  });
}

// Returns true if the claim, or the readiness, of the job is stored, or it is gone.
bool is_committed(JobBook& jobs, const CommitGate& gate, sched::JobId preemptor) {
  const JobRecord* first = jobs.find(preemptor);
  return first == nullptr || gate.may_write_ending(first->uid);
}

// Calls may_end_wait(record) for the job and its array, which wait for jobs that have ended (rule
// 5), and may_pass(id) for each job whose commit comes first (rule 4), until one returns false.
// Returns whether none did.
template <typename Record, typename MayEndWait, typename MayPass>
bool all_awaited(const JobBook& jobs, Record& job, const MayEndWait& may_end_wait,
                 const MayPass& may_pass) {
  JobRecord* const array = job.task ? &jobs.array_of(job) : nullptr;
  if (!may_end_wait(job) || (array != nullptr && !may_end_wait(*array))) return false;
  // A job that ends by preemption waits for the one that preempts it, and so does what starts in
  // its place.
  if (*job.commit_after && !may_pass(**job.commit_after)) return false;
  const bool takes_a_place = array != nullptr && has_start_to_store(job) && array->has_throttle();
  return !takes_a_place || std::ranges::all_of(*array->array->ends_for, may_pass);
}

}  // namespace

void StatusPublisher::write_after(JobRecord& job, std::optional<sched::JobId> preemptor) {
  job.commit_after.edit() = preemptor;
  if (!preemptor || !job.task) return;
  JobRecord& array = jobs_.array_of(job);
  if (array.has_throttle()) array.array->ends_for.edit().insert(*preemptor);
}

void StatusPublisher::write_after_end(JobRecord& job, sched::JobId other) {
  job.commit_after_ends.edit().insert(other);
}

std::map<std::string, kube::JobStatus> StatusPublisher::take_in_flight(JobRecord& array,
                                                                       bool is_stored) {
  ArrayWrite& write = array.array->write.edit();
  if (!is_stored) write.rest = {};
  return std::exchange(write.in_flight, {});
}

void StatusPublisher::take_marked() {
  jobs_to_write_.merge(jobs_.take_marked());
}

// Returns when the rest of its array ends, or of the job itself, if it is one.
base::Instant StatusPublisher::rests_until(const JobRecord& job) const {
  const JobRecord& whole = job.task ? jobs_.array_of(job) : job;
  return whole.array ? whole.array->write->rest.until : base::Instant{};
}

// That a job runs is worth more than why it has waited, which may have been said just before. But a
// large array is not written earlier for that alone.
base::Instant StatusPublisher::informs_from(const JobRecord& job) const {
  const JobRecord& whole = job.task ? jobs_.array_of(job) : job;
  return std::max(job.readiness_is_late() ? job.status.due() : informs_at(job.status),
                  whole.array ? whole.array->write->rest.informs_at : base::Instant{});
}

// Ends the rest of each array of which as many starts and ends are to be written as it waits for,
// or that has something to say of itself: that it was canceled.
void StatusPublisher::end_rests(base::Instant now) {
  std::map<JobRecord*, std::size_t> points;
  for (const std::string& uid : jobs_to_write_) {
    JobRecord* job = jobs_.peek(uid);
    const bool waits = job != nullptr && job->status.exists() && !job->status.is_in_flight() &&
                       job->status.urgency() == WriteUrgency::kCommit;
    if (!waits || rests_until(*job) <= now || !may_say_now(*job, now)) continue;
    JobRecord& whole = job->task ? jobs_.array_of(*job) : *job;
    ArrayWrite::Rest& rest = whole.array->write.edit().rest;
    if (!job->task || ++points[&whole] >= rest.points) rest.until = now;
  }
}

// Returns true if nothing but room keeps the status from being written.
bool StatusPublisher::may_write_now(JobRecord& job, base::Instant now) {
  if (job.task && !jobs_.array_of(job).status.may_write(now)) return false;
  return rests_until(job) <= now && may_say_now(job, now);
}

// Returns true if the outcomes of the jobs that it no longer waits for are stored.
bool StatusPublisher::is_told_of_ends(JobRecord& job) {
  std::set<sched::JobId>& awaited = job.commit_after_ends.edit();
  while (!awaited.empty()) {
    const JobRecord* other = jobs_.peek(*awaited.begin());
    if (other != nullptr && !is_told_of(gate_, job, *other)) return false;
    awaited.erase(awaited.begin());
  }
  return true;
}

// The same without regard to the write of its array that may be under way. Once the commit of a
// preemptor is stored the question is settled for good, whatever is marked for it later.
bool StatusPublisher::may_say_now(JobRecord& job, base::Instant now) {
  if (!job.status.may_write(now)) return false;
  // A task that starts waits for its number (Wishes).
  if (waits_for_number(job)) return false;
  const auto committed = [this](sched::JobId preemptor) { return is_committed(preemptor); };
  auto& commit_after = job.commit_after.edit();
  if (commit_after && committed(*commit_after)) commit_after.reset();
  if (job.task && has_start_to_store(job)) {
    std::erase_if(jobs_.array_of(job).array->ends_for.edit(), committed);
  }
  const bool may_say = all_awaited(
      jobs_, job, [this](JobRecord& waiting) { return is_told_of_ends(waiting); },
      [&](sched::JobId preemptor) { return may_say_before(preemptor, job); });
  if (may_say) commit_after.reset();
  return may_say;
}

bool StatusPublisher::is_committed(sched::JobId preemptor) {
  return control::is_committed(jobs_, gate_, preemptor);
}

// A start and its end may be one write, which comes first if the preemptor waits for that start.
bool StatusPublisher::may_say_before(sched::JobId preemptor, const JobRecord& job) {
  return is_committed(preemptor) ||
         (has_start_to_store(job) && waits_for(*jobs_.find(preemptor), job));
}

bool StatusPublisher::waits_for(const JobRecord& job, const JobRecord& awaited) {
  std::set<const JobRecord*> seen{&job};
  std::vector<const JobRecord*> ahead{&job};
  const auto add = [&](const JobRecord* other) {
    if (other != nullptr && seen.insert(other).second) ahead.push_back(other);
  };
  const auto add_uncommitted = [&](sched::JobId id) {
    if (!is_committed(id)) add(jobs_.find(id));
    return true;
  };
  const auto add_ends = [&](const JobRecord& waiting) {
    for (const sched::JobId id : *waiting.commit_after_ends) {
      const JobRecord* other = jobs_.peek(id);
      if (other == nullptr || is_told_of(gate_, waiting, *other)) continue;
      add(other);
      if (!other->array) continue;
      for (const auto& [number, task] : other->array->tasks()) {
        if (!is_told_of_task(gate_, waiting, *other, *task)) add(task);
      }
    }
    return true;
  };
  while (!ahead.empty() && !seen.contains(&awaited)) {
    const JobRecord& next = *ahead.back();
    ahead.pop_back();
    all_awaited(jobs_, next, add_ends, add_uncommitted);
  }
  return seen.contains(&awaited);
}

// An ending that waits for the claim of its preemptor stays in the set; what only informs moves to
// the budget's queue.
void StatusPublisher::form_lines(base::Instant now) {
  take_marked();
  end_rests(now);
  for (auto it = jobs_to_write_.begin(); it != jobs_to_write_.end();) {
    JobRecord* job = jobs_.peek(*it);
    // A write under way will report its outcome. So each step looks here only at what must be
    // written now, however many jobs wait.
    const bool waits = job != nullptr && job->status.exists() && !job->status.is_in_flight();
    if (!waits || job->status.urgency() <= WriteUrgency::kInforms) {
      if (waits && job->status.urgency() == WriteUrgency::kInforms) queue_informing(*job, now);
      it = jobs_to_write_.erase(it);
      continue;
    }
    since_.try_emplace(*it, now);
    if (!may_write_now(*job, now)) {
      ++it;
      continue;
    }
    line_of(*job).add(*it);
    it = jobs_to_write_.erase(it);
  }
}

OldestWrite StatusPublisher::oldest(base::Instant now) {
  OldestWrite oldest;
  for (auto it = since_.begin(); it != since_.end();) {
    JobRecord* job = jobs_.peek(it->first);
    const bool waits =
        job != nullptr && job->status.exists() &&
        (job->status.is_in_flight() || job->status.urgency() > WriteUrgency::kInforms);
    if (!waits) {
      it = since_.erase(it);
      continue;
    }
    if (now - it->second > oldest.time) oldest = {now - it->second, awaited_by(*job, now)};
    ++it;
  }
  return oldest;
}

// REQUIRES: it has to be written at once, or is under way.
WriteWaitsFor StatusPublisher::awaited_by(JobRecord& job, base::Instant now) {
  const JobRecord& whole = job.task ? jobs_.array_of(job) : job;
  if (whole.status.is_in_flight()) return WriteWaitsFor::kAnswer;
  if (job.status.due() > now || whole.status.due() > now) return WriteWaitsFor::kBackOff;
  if (!may_say_now(job, now)) return WriteWaitsFor::kOtherWrite;
  return rests_until(job) > now ? WriteWaitsFor::kRest : WriteWaitsFor::kRoom;
}

WaitingLine& StatusPublisher::line_of(const JobRecord& job) {
  return job.status.urgency() == WriteUrgency::kCommit ? commits_ : states_;
}

// A job that was marked again may stand in several lines, or have been written from another.
void StatusPublisher::write_from(WaitingLine& line, std::size_t most, base::Instant now,
                                 std::int64_t term, std::vector<Effect>& effects) {
  while (effects.size() < most && !line.empty()) {
    const std::string uid = line.take_first();
    JobRecord* job = jobs_.peek(uid);
    // The state of the job may have changed since it entered the line.
    const bool waits = job != nullptr && job->status.exists() && !job->status.is_in_flight() &&
                       job->status.urgency() > WriteUrgency::kInforms;
    if (!waits) continue;
    if (may_write_now(*job, now)) {
      effects.emplace_back(write(*job, now, term));
    } else {
      // It lost its permission while it stood in the line (a back-off, or a claim that is not
      // stored yet), so it must join again.
      jobs_to_write_.insert(uid);
    }
  }
}

std::vector<Effect> StatusPublisher::due(base::Instant now, std::int64_t term, std::size_t room) {
  std::vector<Effect> effects;
  form_lines(now);
  const std::size_t of_states = share_of(states_, room, kStatesShare);
  write_from(commits_, room - of_states, now, term, effects);
  write_from(states_, effects.size() + of_states, now, term, effects);
  // Statuses of partitions and the like are few and do not take from the room of jobs.
  // A status that says only counts is left to the budget (due_informing_policies).
  policy_.for_each_status([&](WritePoint point, auto& mirror) {
    if (mirror.urgency() <= WriteUrgency::kInforms || !mirror.may_write(now)) return;
    effects.emplace_back(patch_of(point, mirror, now));
  });
  return effects;
}

std::vector<Effect> StatusPublisher::due_rest(base::Instant now, std::int64_t term,
                                              std::size_t room) {
  std::vector<Effect> effects;
  write_from(states_, room, now, term, effects);
  return effects;
}

PatchStatus<kube::Job> StatusPublisher::write(JobRecord& job, base::Instant now,
                                              std::int64_t term) {
  const WritePoint point = status_point(job);
  // It has the run time, too.
  if (job.readiness_is_late()) job.status.informs(now);
  JobRecord& whole = job.task ? jobs_.array_of(job) : job;
  if (whole.array && !has_stored_end(whole)) gather_tasks(whole, now);
  // Every write carries the term, so that the CRD refuses those of a leader that was replaced.
  whole.wanted_unmarked().term = term;
  if (const auto& shown = whole.wanted().array; shown && whole.array) {
    whole.array->write.edit().rest = rest_after(*shown, now);
  }
  return patch_of(point, whole.status, now);
}

// Writes the state of all tasks at once: for each the wanted one or, if that may not be written
// yet, the stored one. A task that has ended becomes an outcome.
void StatusPublisher::gather_tasks(JobRecord& array, base::Instant now) {
  ArrayRecord& record = *array.array;
  kube::JobStatus& wanted = array.wanted_unmarked();
  show_failed_twins(record, wanted.dependency);
  const bool goes_on = array.wishes->submitted && !array.is_final();
  // Where each task is a job by itself, only its entry says why it waits.
  if (goes_on && !record.has_rest()) {
    wanted.reason.clear();
    wanted.message.clear();
  }
  kube::ArrayStatus& shown = wanted.array.emplace();
  bool runs = false;
  std::size_t told = 0;
  for (const auto& [number, task] : record.tasks()) {
    const bool is_said = may_say_now(*task, now);
    const kube::JobStatus& status = is_said ? task->wanted() : task->status.stored();
    if (is_said) {
      task->status.begin(now);
      record.write.edit().in_flight[task->uid] = status;
    }
    if (status.state && kube::is_final(*status.state)) {
      record.note_end(number, task_outcome_of(state_of(*status.state)),
                      status.exit_code.value_or(0));
      // One that never began has nothing to tell but its outcome.
      if (status.allocation || status.starts.value_or(0) > 0) {
        shown.ended.push_back(kube::task_end(number, status));
      }
    } else if (status.starts || (waits_for_itself(status, wanted) && ++told < kWaitsTold)) {
      shown.tasks.push_back(kube::task_entry(number, status));
      runs = runs || status.allocation;
      shown.counts.running += status.allocation ? 1 : 0;
    }
  }
  if (*record.rest_ended) {
    record.wishes->all.each([&](int number) {
      const bool is_open = record.outcomes().of(number) == kube::TaskOutcome::kNone;
      if (is_open && !record.tasks().contains(number)) {
        record.note_end(number, **record.rest_ended);
      }
    });
  }
  show_undone_starts(record, shown);
  ends_.keep(array, shown, now);
  record.outcomes().show(shown);
  shown.counts.succeeded = record.outcomes().count(kube::TaskOutcome::kSucceeded);
  shown.counts.failed = record.outcomes().count(kube::TaskOutcome::kFailed);
  shown.counts.cancelled = record.outcomes().count(kube::TaskOutcome::kCancelled);
  shown.counts.waiting =
      record.wishes->all.size() - record.outcomes().ended() - shown.counts.running;
  shown.summary = kube::array_summary(shown.counts);
  if (record.outcomes().ended() > 0) wanted.exit_code = record.exit_code();
  if (!goes_on) return;
  wanted.state = runs ? kube::JobState::kRunning : kube::JobState::kPending;
}

// A new leader learns from its scheduler why each job waits, which mostly is what its predecessor
// has written: then nothing is written.
void StatusPublisher::queue_informing(JobRecord& job, base::Instant now) {
  if (!says_something(job)) return job.status.unmark();
  budget_.queue({job.wanted().priority.value_or(0), job.id, job.uid}, informs_from(job), now);
}

// There are few of them, so they come before jobs.
std::vector<Effect> StatusPublisher::due_informing_policies(base::Instant now) {
  std::vector<Effect> effects;
  policy_.for_each_status([&](WritePoint point, auto& mirror) {
    if (!budget_.has_one() || !may_inform(mirror, now) || informs_at(mirror) > now) return;
    budget_.spend_one();
    effects.emplace_back(patch_of(point, mirror, now));
  });
  return effects;
}

std::vector<Effect> StatusPublisher::due_informing_jobs(base::Instant now, std::int64_t term) {
  std::vector<Effect> effects;
  // 1. those whose minute is over enter the queue, with the priority that their jobs have now
  while (const auto uid = budget_.take_later(now)) {
    JobRecord* job = jobs_.peek(*uid);
    const bool informs = job != nullptr && !job->status.is_in_flight() &&
                         job->status.urgency() == WriteUrgency::kInforms;
    if (informs) queue_informing(*job, now);
  }
  // 2. the head of the queue, as far as the budget goes
  while (budget_.has_one()) {
    const auto uid = budget_.take_first();
    if (!uid) break;
    JobRecord* job = jobs_.peek(*uid);
    // Said meanwhile, or later.
    if (job == nullptr || !may_inform(job->status, now)) continue;
    // The array is being written, or rests.
    if (!may_write_now(*job, now) || informs_from(*job) > now) {
      budget_.queue({job->wanted().priority.value_or(0), job->id, job->uid},
                    std::max(now + InformBudget::kLookAgain, informs_from(*job)), now);
      continue;
    }
    budget_.spend_one();
    effects.emplace_back(write(*job, now, term));
  }
  return effects;
}

// A write that waits for another job's commit point is not due at any instant: the answer to that
// write brings the loop back. So does an answer where there was no room.
base::Instant StatusPublisher::next_due(base::Instant now) const {
  base::Instant due = base::kNever;
  const auto earlier = [&](base::Instant at) { due = std::min(due, at); };
  const auto awaits_no_end = [](const JobRecord& job) { return job.commit_after_ends->empty(); };
  const auto is_stored = [this](sched::JobId id) {
    return control::is_committed(jobs_, gate_, id);
  };
  const auto look_at = [&](const std::string& uid) {
    const JobRecord* job = jobs_.peek(uid);
    if (job == nullptr) return;
    const StatusMirror<kube::Job>& status = job->status;
    if (status.urgency() == WriteUrgency::kClean) return;
    if (status.due() > now) {
      earlier(status.due());
    } else if (status.urgency() == WriteUrgency::kInforms) {
      earlier(now + InformBudget::kLookAgain);
    } else if (job->task && !jobs_.array_of(*job).status.may_write(now)) {
      earlier(jobs_.array_of(*job).status.due());
    } else if (rests_until(*job) > now) {
      earlier(rests_until(*job));
    } else if (!waits_for_number(*job) && all_awaited(jobs_, *job, awaits_no_end, is_stored)) {
      earlier(now);  // it was marked after the statuses had been looked at
    }
  };
  for (const std::string& uid : jobs_to_write_) look_at(uid);
  for (const std::string& uid : jobs_.marked()) look_at(uid);
  policy_.for_each_status([&](WritePoint, const auto& mirror) {
    if (mirror.urgency() == WriteUrgency::kClean) return;
    const bool informs = mirror.urgency() == WriteUrgency::kInforms;
    earlier(informs ? std::max(now + InformBudget::kLookAgain, informs_at(mirror))
                    : std::max(mirror.due(), now));
  });
  return due;
}

}  // namespace control
