// Checks what is stored of jobs and batch Jobs: verdicts, times and usage.
#include "simulation/ledger.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "api/wellknown.h"
#include "simulation/ledger_terms.h"

namespace simulation {
namespace {

using nlohmann::json;
using std::chrono::milliseconds;
using std::chrono::seconds;

// Returns the reference to the batch Job that this Job runs; null if it is a user's own.
const kube::OwnerReference* batch_owner(const kube::Job& job) {
  const kube::OwnerReference* owner = kube::controller_of(job.metadata);
  return owner != nullptr && owner->api_version.starts_with("batch/") ? owner : nullptr;
}

// Returns the name by which the plan knows the job: its own, or that of the batch Job that it runs.
const std::string& name_of(const kube::Job& job) {
  const kube::OwnerReference* owner = batch_owner(job);
  return owner == nullptr ? job.metadata.name : owner->name;
}

// Returns true if the status has this condition with the value True.
bool says(const json& object, const char* type) {
  const json status = object.value("status", json::object());
  for (const json& condition : status.value("conditions", json::array())) {
    if (condition.value("type", "") == type) return condition.value("status", "") == "True";
  }
  return false;
}

}  // namespace

// Returns the plan of the job, or of the batch Job that it runs; null if there is none.
const JobPlan* Ledger::plan_of_job(const kube::Job& job) const {
  const auto found = std::find_if(plan_.jobs.begin(), plan_.jobs.end(),
                                  [&](const JobPlan& one) { return one.name == name_of(job); });
  return found == plan_.jobs.end() ? nullptr : &*found;
}

void Ledger::on_job(const std::string& type, kube::Job job) {
  if (job.spec.test_only.value_or(false)) return on_question(type, std::move(job));
  if (type == "DELETED") {
    if (job.spec.array) on_array_gone(job);
    return on_job_gone(job);
  }
  if (job.spec.array) return on_array(std::move(job));
  const std::string uid = job.metadata.uid;
  on_version(uid, std::move(job));
}

void Ledger::on_job_gone(const kube::Job& job) {
  const std::string& name = name_of(job);
  ++tally_.looked["lost"];
  // A restore may take the batch Job away, and that takes this one along; or leave a Job that has
  // not ended beside a batch Job that has.
  const kube::OwnerReference* owner = batch_owner(job);
  const bool excused = owner != nullptr && (now_ < restored_at_ + kAfterRestore ||
                                            (!is_final_state(job) && has_ended(owner->uid)));
  if (!deleted_by_user_.contains(name) && !excused) {
    find("lost", "job " + name + " was deleted by no user");
  }
  jobs_went_ = true;
  note_fate_of_gone(job.metadata.uid, job.metadata.name);
  jobs_.erase(job.metadata.uid);
}

// For a job, or a task of an array, whose UID is the key then.
void Ledger::on_version(const std::string& uid, kube::Job job) {
  const std::string name = title_of(name_of(job), control::task_in(uid));
  // The version before stays in `before`: all rules below compare the two.
  const auto [entry, fresh] = jobs_.try_emplace(uid);
  JobFacts& facts = entry->second;
  facts.task = control::task_in(uid);
  if (const kube::OwnerReference* owner = batch_owner(job)) {
    facts.owner = owner->uid;
    owners_[uid] = owner->uid;
  }
  const kube::Job before = std::exchange(facts.job, std::move(job));
  const kube::JobStatus& status = facts.job.status;
  note_fate(facts.job);
  note_hold(facts);
  on_successes(before, facts.job);
  if (fresh || status.starts != before.status.starts) facts.start_at = now_;
  if (status.allocation) facts.allocation = *status.allocation;
  if (const auto limit = facts.job.spec.schedule.time_limit) {
    base::Duration& least = least_limits_.try_emplace(uid, *limit).first->second;
    least = std::min(least, *limit);
  }
  if (is_final_state(facts.job)) note_attempt(facts);
  const bool ready = kube::is_true(status.conditions, kube::kReady);
  if (fresh) {  // there is nothing to compare it with: after a restore of etcd it may be ready
    if (ready) facts.ready_at = now_;
    return;
  }
  ++tally_.looked["verdict"];
  const bool two_leaders = now_ < restored_at_ + kTwoLeadersWithin;
  // The leader that stays may write over it later: it does not read what the other one wrote.
  const bool of_two_leaders =
      facts.final_at >= restored_at_ && facts.final_at < restored_at_ + kTwoLeadersWithin;
  if (is_final_state(before) && before.status.state != status.state && !two_leaders &&
      !of_two_leaders) {
    find("verdict",
         "job " + name + " was " + state_of(before) + " and became " + state_of(facts.job));
  }
  // Both are counters that every later decision builds on: a lower one would give two pods the same
  // name, or let an old leader write again.
  const bool went_back = before.status.starts.value_or(0) > status.starts.value_or(0) ||
                         before.status.term.value_or(0) > status.term.value_or(0);
  if (went_back && !two_leaders) {
    find("verdict", "starts or term of job " + name + " went back");
  }
  if (before.status.allocation && !status.allocation) on_left_nodes(facts, before.status);
  if (status.starts != before.status.starts) on_start(facts);
  if (ready && !kube::is_true(before.status.conditions, kube::kReady)) facts.ready_at = now_;
  if (status.ending && !before.status.ending) on_ending(facts);
  if (!is_final_state(before) && is_final_state(facts.job)) {
    facts.final_at = now_;
    on_final(facts);
  }
}

// A new start is stored: what is known about the one before counts no more.
void Ledger::on_start(JobFacts& facts) {
  last_start_at_ = now_;
  started_on_.merge(nodes_of(facts.allocation));
  if (facts.task) check_task_start(facts);
  check_held(facts);
  check_done_again(facts);
  check_dependency(facts);
  check_placement(facts);
  check_devices(facts);
  facts.succeeded.clear();
  facts.is_known_done = false;
  if (now_ <= starts_are_unsliced_until_) {
    unsliced_.try_emplace({facts.job.metadata.uid, facts.job.status.starts.value_or(0)}, now_);
  }
  forget_times(facts);
}

void Ledger::forget_times(JobFacts& facts) {
  facts.ready_at = facts.began_at = kNoTime;
  facts.ran = facts.stood = facts.charged = base::Duration{0};
  facts.told_late = facts.began_by_wrong_clock = facts.was_going = false;
  facts.turns = 0;
}

// It waits again, or ended while it did: its times go with the start that is over (Slurm counts
// them for each start), and its ending was the last to say them. A start that is undone has none.
void Ledger::on_left_nodes(JobFacts& facts, const kube::JobStatus& last) {
  if (last.ending) check_charged(facts, last);
  forget_times(facts);
}

void Ledger::note_hold(JobFacts& facts) const {
  if (!facts.job.spec.control.hold.value_or(false)) {
    facts.held_at = kNoTime;
    facts.hold_is_heard = false;
  } else if (facts.held_at == kNoTime) {
    facts.held_at = now_;
  }
}

// A job that its user holds does not start once the operator has heard of it. For tasks see
// check_task_start().
void Ledger::check_held(const JobFacts& facts) {
  if (facts.task || now_ < restored_at_ + kAfterRestore) return;
  if (facts.hold_is_heard)
    find("held", "job " + title_of(facts.job) + " starts, its user holds it");
}

// Returns true if all programs of the last start have ended well; where pods follow one another, of
// all starts. A job that no longer has an allocation is judged by its plan.
bool Ledger::have_ended_well(const JobFacts& facts) {
  const kube::Job& job = facts.job;
  if (job.spec.completions) {
    return pods_that_ended_well(job) >= static_cast<std::size_t>(*job.spec.completions);
  }
  const JobPlan* planned = plan_of_job(job);
  const std::size_t tasks = job.status.allocation ? pods_at_once(job, *job.status.allocation)
                            : planned == nullptr  ? 1
                                                  : static_cast<std::size_t>(planned->nodes);
  return succeeded_[job.metadata.uid][job.status.starts.value_or(0)].size() >= tasks;
}

// Checks a verdict at the instant at which it is stored: the state that a job is said to have ended
// in is what its programs did.
//
// 1. Completed: as many different tasks have ended well as the job has pods.
// 2. Cancelled: a user asked for it, or preemption cancels its victims.
// 3. For the others see ledger_verdicts.cc.
void Ledger::on_final(const JobFacts& facts) {
  const kube::Job& job = facts.job;
  const std::string name = title_of(name_of(job), facts.task);
  if (facts.task) return check_task_end(facts);
  if (job.spec.array) return;  // check_array_end()
  ++tally_.looked["verdict at the end"];
  if (job.status.state == kube::JobState::kCompleted && !have_ended_well(facts)) {
    find("verdict", "job " + name + " is Completed, but not all of its programs were");
  }
  check_failure(facts);
  if (job.status.state == kube::JobState::kCancelled && !ended_by_user_.contains(name) &&
      plan_.preempt_mode != "Cancel") {
    find("verdict", "job " + name + " is Cancelled by no user");
  }
  check_times(facts);
  check_charged(facts, job.status);
}

// Compares run time and suspended time as accounted with what was sampled, whatever the job ended
// with, where nothing went wrong since its first program began. Faults may move times: a
// leader that comes late lets a job run longer than planned.
//
// Both may differ by one slice and 2 s: the slice because a switch may fall anywhere within it, 2 s
// because containers' times are stored in whole seconds, one at each end; and by one sample for
// each turn. Where a node began or ceased to let everything run, its agent may have said so
// kToldWithin later.
// While pods follow one another, run time goes on between two of them although none of
// their containers runs: there the run time may be larger, and the suspended time is not compared.
void Ledger::check_times(const JobFacts& facts) {
  const kube::JobStatus& status = facts.job.status;
  const bool calm = facts.ready_at != kNoTime && facts.began_at != kNoTime &&
                    faults_until_ + seconds{15} < facts.began_at;
  // The time of a pod that was made again before the job was ready went with its object; and when
  // a start began that etcd went back to is not known.
  const bool is_known =
      !happened_to(facts).lost && facts.start_at >= restored_at_ + kAfterRestore;
  if (!calm || !is_known || !status.run_time || !status.suspend_time) return;
  const base::Duration most = plan_.slice + seconds{2} + kSample * facts.turns +
                              (facts.told_late ? kToldWithin : base::Duration{0});
  const bool follows = facts.job.spec.completions.has_value();
  const auto compare = [&](const char* what, base::Duration accounted, base::Duration sampled) {
    const base::Duration off = accounted - sampled;
    if (off >= -most && (off <= most || follows)) return;
    find("time", "job " + name_of(facts.job) + " " + what + " for " + text_of(sampled) +
                     ", accounted " + text_of(accounted));
  };
  ++tally_.looked["time"];
  compare("ran", status.run_time->elapsed, facts.ran);
  if (follows) return;
  if (facts.stood > base::Duration{0}) ++tally_.looked["suspended time"];
  compare("stood", status.suspend_time->elapsed, facts.stood);
}

// No second of a program is lost: the run time that the status says about a start is at least the
// time for which programs ran in the turns of the job, also where something failed. That of a start
// that is undone is bounded by the start timeout. An operator whose clock was set back stands still
// until it has caught up, and what ran while an ending was decided and not stored yet is not
// compared.
void Ledger::check_charged(const JobFacts& facts, const kube::JobStatus& status) {
  const bool is_bounded =
      facts.ready_at == kNoTime && facts.job.spec.lifecycle.start_timeout.has_value();
  const bool ends_in_a_fault = now_ < faults_until_ + seconds{15};
  if (facts.began_at == kNoTime || is_bounded || ends_in_a_fault || happened_to(facts).lost ||
      facts.start_at < restored_at_ + kAfterRestore) {
    return;
  }
  ++tally_.looked["charged"];
  const base::Duration accounted = status.run_time ? status.run_time->elapsed : base::Duration{0};
  const base::Duration most =
      plan_.slice + seconds{2} + kToldWithin + clock_steps_ + kSample * facts.turns;
  if (accounted + most >= facts.charged) return;
  find("charged", "job " + name_of(facts.job) + " ran for " + text_of(facts.charged) +
                      " in its turns, accounted " + text_of(accounted));
}

// Checks that what is clean and not on its way is stored as it is wanted. A difference of the term
// alone does not count, nor do successes of a gang whose pods do not follow one another: the next
// write brings them.
void Ledger::check_stored(const std::string& uid, const kube::JobStatus& wanted) {
  if (control::task_in(uid)) return check_stored_task(uid, wanted);
  const auto job = jobs_.find(uid);
  if (job == jobs_.end()) return;
  ++tally_.looked["stored"];
  // Most looks see the same two as the one before.
  auto& [same_as_wanted, same_as_stored] = same_statuses_[uid];
  if (same_as_wanted == wanted && same_as_stored == job->second.job.status) return;
  kube::Job want{.status = wanted};
  kube::Job is{.status = job->second.job.status};
  want.status.term = is.status.term;
  if (!job->second.job.spec.completions) {
    want.status.succeeded_indexes = is.status.succeeded_indexes;
  }
  // Encoding rounds times.
  const json difference = want.status == is.status
                              ? json::array()
                              : json::diff(encode(is)["status"], encode(want)["status"]);
  if (difference.empty()) {
    same_as_wanted = wanted;
    same_as_stored = job->second.job.status;
    return;
  }
  find("stored", "the status of job " + job->second.job.metadata.name +
                     " is not stored as the operator wants it: " + difference.dump());
}

// Checks what is stored of a batch Job: its conditions are final, and it is Complete only if a Job
// that runs it is stored as Completed.
void Ledger::on_batch_job(const std::string& type, const json& object) {
  const std::string uid = object["metadata"].value("uid", "");
  if (type == "DELETED") {
    batch_.erase(uid);
    return;
  }
  BatchFacts& facts = batch_[uid];
  facts.name = object["metadata"].value("name", "");
  const BatchFacts before = facts;
  facts.complete = says(object, "Complete");
  facts.failed = says(object, "Failed");
  const json& spec = object["spec"];
  const json status = object.value("status", json::object());
  facts.retries = spec.value("backoffLimit", 6);
  facts.needed = spec.value("completions", spec.value("parallelism", 1));
  facts.succeeded = status.value("succeeded", 0);
  facts.completed = indexes_in(status.value("completedIndexes", ""));
  if (spec.value("completionMode", "") == "Indexed") indexed_.insert(uid);
  on_counters(uid, before, facts);
  ++tally_.looked["batch verdict"];
  if (before.complete != facts.complete || before.failed != facts.failed) {
    if (before.complete || before.failed) {
      find("batch verdict", "batch Job " + facts.name + " had ended and its conditions changed");
    }
  }
  if (facts.failed && !before.failed) check_batch_failure(uid, facts);
  // The batch Job's status must follow from a Job that is stored: an operator that reports success
  // first and then dies would leave a batch Job Complete whose Job runs again.
  if (!facts.complete || before.complete || now_ < restored_at_ + kAfterRestore) return;
  // Where pods follow one another its own counter tells, too, that none is left to run.
  if (before.needed > 0 && before.succeeded >= before.needed) return;
  const bool stored = std::any_of(jobs_.begin(), jobs_.end(), [&](const auto& entry) {
    return entry.second.owner == uid && entry.second.job.status.state == kube::JobState::kCompleted;
  });
  if (!stored) {
    find("batch verdict",
         "batch Job " + facts.name + " is Complete, no Job of it is stored as Completed");
  }
}

// Remembers how a Job that runs a batch Job has ended, also of one that is gone later.
void Ledger::note_attempt(const JobFacts& facts) {
  if (facts.owner.empty()) return;
  const kube::JobState state = *facts.job.status.state;
  if (state == kube::JobState::kFailed || state == kube::JobState::kNodeFail) {
    attempts_[facts.owner].failed.insert(facts.job.metadata.uid);
  } else if (state != kube::JobState::kCompleted) {
    attempts_[facts.owner].given_up = true;
  }
}

// A batch Job has failed if more of the Jobs that ran it failed than its backoffLimit allows, or if
// one ended in a way after which it is not tried again.
void Ledger::check_batch_failure(const std::string& uid, const BatchFacts& facts) {
  if (now_ < restored_at_ + kAfterRestore) return;
  ++tally_.looked["batch failure"];
  const Attempts& attempts = attempts_[uid];
  if (attempts.given_up || static_cast<int>(attempts.failed.size()) > facts.retries) return;
  find("batch verdict", "batch Job " + facts.name + " is Failed, " +
                            std::to_string(attempts.failed.size()) + " Jobs of it have failed");
}

bool Ledger::has_ended(const std::string& batch_uid) const {
  const auto found = batch_.find(batch_uid);
  return found != batch_.end() && (found->second.complete || found->second.failed);
}

// Adds one sampling step to the run time of each job of which at least one program goes on, and to
// the suspended time of each that has programs, all of which stand. That is not how the
// operator accounts (in closed form, over the timetable), so the two can be compared. A pod that
// follows another may start in the turn of another gang, and runs there until it has settled. Until
// the job is ready, all time since its first program counts as run time.
void Ledger::sample_times(std::vector<Node>& nodes) {
  std::set<std::string> going, there, told_late, unclear, wrong_clock;
  for (Node& node : nodes) {
    Time& unsliced_at = unsliced_at_.try_emplace(node.machine->name, -kToldWithin).first->second;
    if (node.agent->everything_runs()) unsliced_at = now_;
    const bool is_told_late = now_ <= unsliced_at + kToldWithin;
    for (const auto& [uid, program] : node.kubelet->programs()) {
      if (!program.running) continue;
      there.insert(program.job_uid);
      if (is_told_late) told_late.insert(program.job_uid);
      const auto debugged = debugged_.find(uid);
      const bool may_run = debugged != debugged_.end() && debugged->second.may_run;
      if (may_run || is_excused(node) || is_ending(program)) unclear.insert(program.job_uid);
      if (node.machine->clock.offset() > kSample) wrong_clock.insert(program.job_uid);
      // One that the kernel cannot stop runs in the turn of others: that is overlap.
      if (node.machine->kernel.is_asked_frozen(uid)) continue;
      const auto job = jobs_.find(program.job_uid);
      const bool follows = job != jobs_.end() && job->second.job.spec.completions;
      if (!follows || is_settled(node, program)) going.insert(program.job_uid);
    }
  }
  for (auto& [uid, facts] : jobs_) {
    if (facts.ready_at == kNoTime) {
      // The rest of a start that is over does not belong to the next one.
      if (!facts.job.status.allocation) continue;
      if (facts.began_at == kNoTime && there.contains(uid)) facts.began_at = now_;
      if (facts.began_at != kNoTime) facts.ran += kSample;
      // By that clock its containers may not have started yet.
      if (wrong_clock.contains(uid)) facts.began_by_wrong_clock = true;
      const bool counts = there.contains(uid) && !unclear.contains(uid);
      if (counts && !facts.began_by_wrong_clock) facts.charged += kSample;
      continue;
    }
    if (!there.contains(uid)) continue;
    const bool was_going = std::exchange(facts.was_going, going.contains(uid));
    if (facts.was_going && !was_going) ++facts.turns;
    if (going.contains(uid) && !unclear.contains(uid)) facts.charged += kSample;
    (going.contains(uid) ? facts.ran : facts.stood) += kSample;
    if (told_late.contains(uid)) facts.told_late = true;
  }
}

// Returns true if every job and every batch Job that is stored has ended, and no question is left.
bool Ledger::all_final() const {
  return questions_.empty() &&
         std::all_of(jobs_.begin(), jobs_.end(),
                     [](const auto& entry) { return is_final_state(entry.second.job); }) &&
         std::all_of(batch_.begin(), batch_.end(),
                     [this](const auto& entry) { return has_ended(entry.first); });
}

// For the text of a finding.
std::string Ledger::unfinished() const {
  std::string text;
  for (const auto& [uid, facts] : jobs_) {
    if (is_final_state(facts.job)) continue;
    text += title_of(facts.job) + " is " + state_of(facts.job) + " (" + facts.job.status.reason +
            "), starts " + std::to_string(facts.job.status.starts.value_or(0)) + "; ";
  }
  for (const auto& [uid, job] : questions_) text += job.metadata.name + " is there; ";
  for (const auto& [uid, facts] : batch_) {
    if (!facts.complete && !facts.failed) text += "batch Job " + facts.name + " has not ended; ";
  }
  return text;
}

// Checks that a user's last write has been judged, also after the job's end: tools
// such as kstatus wait for that.
void Ledger::check_observed(const kube::Job& job) {
  ++tally_.looked["observed"];
  const std::int64_t observed = job.status.observed_generation.value_or(0);
  if (observed == job.metadata.generation) return;
  find("observed", "job " + job.metadata.name + " has generation " +
                       std::to_string(job.metadata.generation) + ", observed is " +
                       std::to_string(observed));
}

// Three looks that need a cluster at rest: specs are observed, numbers of jobs are unique, and no
// program was left behind when its job ended.
void Ledger::check_end() {
  std::map<std::int64_t, std::string> numbers;
  const bool numbers_may_repeat = reinstalled_at_ >= Time{0} && restored_at_ > reinstalled_at_;
  for (const auto& [uid, facts] : jobs_) {
    if (!facts.task) check_observed(facts.job);
    ++tally_.looked["job numbers"];
    const std::int64_t id = facts.job.status.job_id.value_or(0);
    // The last task of an array has the number of the array.
    const auto array = jobs_.find(control::uid_in(uid));
    if (facts.task && array != jobs_.end() && array->second.job.status.job_id == id) continue;
    // A job has no number until the operator has taken it in. A restore may bring back jobs of
    // before a reinstallation, after which numbers begin again; ended ones keep their numbers.
    if (id == 0 || (numbers_may_repeat && is_final_state(facts.job))) continue;
    if (!numbers.try_emplace(id, uid).second) {
      find("job numbers", "two jobs have the number " + std::to_string(id));
    }
  }
  for (const auto& [uid, running] : running_) {
    ++tally_.looked["left running"];
    for (const Program& program : running) {
      if (!suffered_.contains(program.node)) {
        find("left running", program.name + " runs after its job has ended");
      }
    }
  }
}

// Compares the usage that was recorded for all jobs with the run times in their statuses.
//
// Each run of a job is charged once, in whole seconds, so each job may differ by less than a
// second: `rounding`. A status tells the last run only. Runs before a requeue and jobs that were
// deleted have been charged, too, and are unknown here, so with any of those the record may be
// larger (`all_told` is false). It may never be smaller. A restore of etcd takes back statuses and
// records at different instants and is not judged at all.
void Ledger::check_usage(base::Duration recorded) {
  if (restored_at_ >= Time{0}) return;
  ++tally_.looked["usage"];
  base::Duration ran{0};
  bool all_told = !jobs_went_;
  std::string text;
  for (const auto& [uid, facts] : jobs_) {
    const kube::JobStatus& status = facts.job.status;
    if (status.starts.value_or(0) > 1) all_told = false;
    // The run time of a task is no longer stored when it has ended (faults.md, section 4, 8).
    if (facts.task || !status.run_time || !status.allocation) {
      all_told = false;
      continue;
    }
    ran += status.run_time->elapsed;
    text += " " + facts.job.metadata.name + " " + text_of(status.run_time->elapsed);
  }
  const base::Duration rounding = seconds{1} * static_cast<std::int64_t>(jobs_.size());
  const bool too_much = all_told && recorded > ran + rounding;
  if (recorded + rounding >= ran && !too_much) return;
  find("usage", "recorded are " + text_of(recorded) + ", jobs ran:" + text);
}

}  // namespace simulation
