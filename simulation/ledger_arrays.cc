// Arrays: what is stored of their tasks, and what is asked of them.
//
// A task that has started or ended is judged as a job: its entry, or its outcome, is taken for the
// status of one. So all rules for starts, endings, verdicts, pods and timetables hold for it.
#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>

#include "simulation/ledger.h"
#include "simulation/ledger_terms.h"

namespace simulation {
namespace {

using kube::TaskOutcome;

// Returns the numbers that spec.array names: "3,5-7", "0-18:2".
std::set<int> numbers_in(std::string_view text) {
  std::set<int> numbers;
  while (!text.empty()) {
    const std::string_view part = text.substr(0, text.find(','));
    text.remove_prefix(std::min(part.size() + 1, text.size()));
    const std::size_t colon = part.find(':');
    const int step =
        colon == std::string_view::npos ? 1 : std::stoi(std::string{part.substr(colon + 1)});
    const std::set<int> range = indexes_in(part.substr(0, colon));
    for (const int number : range) {
      if ((number - *range.begin()) % step == 0) numbers.insert(number);
    }
  }
  return numbers;
}

// Returns what is asked of one task: by the last entry that names it and has the field, else by
// what is asked of the array.
kube::JobControl asked_of(const kube::JobControl& control, int task) {
  kube::JobControl asked = control;
  for (const kube::TaskControl& entry : control.tasks) {
    if (!indexes_in(entry.tasks).contains(task)) continue;
    if (entry.hold) asked.hold = entry.hold;
    if (entry.suspend) asked.suspend = entry.suspend;
    // A canceled array cancels all its tasks.
    if (entry.cancel) asked.cancel = *entry.cancel || control.cancel.value_or(false);
  }
  return asked;
}

// 0 stands for any number.
std::int32_t looser(std::int32_t a, std::int32_t b) {
  return a == 0 || b == 0 ? 0 : std::max(a, b);
}

std::ptrdiff_t with_nodes(const kube::ArrayStatus& status) {
  return std::count_if(status.tasks.begin(), status.tasks.end(),
                       [](const kube::ArrayTask& task) { return bool{task.allocation}; });
}

}  // namespace

void Ledger::on_array(kube::Job job) {
  const std::string uid = job.metadata.uid;
  const auto [entry, fresh] = arrays_.try_emplace(uid);
  ArrayFacts& facts = entry->second;
  const ArrayFacts before = facts;
  facts.tasks = numbers_in(job.spec.array->tasks);
  facts.throttle = job.spec.array->parallelism.value_or(0);
  const auto known = jobs_.find(uid);
  const bool is_other_spec = known == jobs_.end() ||
                             !(known->second.job.spec.array == job.spec.array) ||
                             !(known->second.job.spec.control == job.spec.control);
  if (is_other_spec) {
    const std::int32_t of_before = fresh ? facts.throttle : before.throttle;
    facts.throttle_before = facts.is_heard ? of_before : looser(of_before, facts.throttle_before);
    facts.spec_at = now_;
    facts.is_heard = false;
  }
  facts.outcomes = kube::TaskOutcomes{job.status.array.value_or(kube::ArrayStatus{})};
  check_array(job, before, facts);
  on_version(uid, job);
  on_tasks(job, facts, fresh);
  if (facts.starts > before.starts) check_throttle(job, facts);
  note_array_fate(job, facts);
  if (is_final_state(job)) check_array_end(job, facts);
}

void Ledger::on_array_gone(const kube::Job& job) {
  const auto array = arrays_.find(job.metadata.uid);
  if (array == arrays_.end()) return;
  bool all_succeeded = true;
  for (const int task : array->second.tasks) {
    const std::string key = control::record_key(job.metadata.uid, task);
    const std::string title = title_of(job.metadata.name, task);
    note_fate_of_gone(key, title);
    all_succeeded = all_succeeded && fates_[title].contains("AfterOK");
    jobs_.erase(key);
  }
  if (all_succeeded) fates_[job.metadata.name].insert("AfterOK");
  arrays_.erase(array);
}

// Changes of several tasks in one write happen at one instant: tasks that have left their nodes
// come first.
void Ledger::on_tasks(const kube::Job& job, const ArrayFacts& facts, bool fresh) {
  const kube::ArrayStatus status = job.status.array.value_or(kube::ArrayStatus{});
  std::map<int, kube::JobStatus> with, without;
  for (const kube::ArrayTask& entry : status.tasks) {
    (entry.allocation ? with : without)[entry.task] = kube::task_status(entry, job.status);
  }
  for (const int task : facts.tasks) {
    const TaskOutcome outcome = facts.outcomes.of(task);
    if (outcome == TaskOutcome::kNone) {
      if (!with.contains(task) && !without.contains(task)) on_task(job, task, {}, fresh);
      continue;
    }
    const auto known = jobs_.find(control::record_key(job.metadata.uid, task));
    kube::JobStatus ended = known == jobs_.end() ? kube::JobStatus{} : known->second.job.status;
    ended.state = kube::state_of(outcome);
    ended.ending.reset();
    on_task(job, task, ended, fresh);
  }
  for (const auto* entries : {&without, &with}) {
    for (const auto& [task, entry] : *entries) on_task(job, task, entry, fresh);
  }
}

// A task without an entry has not started; or waits as the others do, again.
void Ledger::on_task(const kube::Job& job, int task, const std::optional<kube::JobStatus>& status,
                     bool fresh) {
  const std::string key = control::record_key(job.metadata.uid, task);
  const auto known = jobs_.find(key);
  if (!status) {
    if (known == jobs_.end()) return;
    const bool has_started = known->second.job.status.starts.value_or(0) > 0;
    if (has_started && now_ >= restored_at_ + kTwoLeadersWithin) {
      find("array", "task " + title_of(known->second.job) + " has started and has no entry");
    }
    jobs_.erase(known);
    return;
  }
  kube::Job one = job;
  one.metadata.uid = key;
  one.spec.control = asked_of(job.spec.control, task);
  one.status = {};
  // If the array is known already, it is known that the task had not started.
  if (known == jobs_.end() && !fresh) on_version(key, one);
  one.status = *status;
  on_version(key, std::move(one));
}

// Checks that the status is consistent about tasks: a task has an entry, an outcome or none of
// both, and an outcome stays. The counts are those of entries and outcomes; all are 0 for an array
// that was never accepted.
void Ledger::check_array(const kube::Job& job, const ArrayFacts& before, const ArrayFacts& facts) {
  if (!job.status.array) return;
  ++tally_.looked["array"];
  const kube::ArrayStatus& status = *job.status.array;
  const std::string& name = job.metadata.name;
  for (const int task : before.tasks) {
    const TaskOutcome had = before.outcomes.of(task);
    const bool stays = had == TaskOutcome::kNone || had == facts.outcomes.of(task);
    if (!stays && now_ >= restored_at_ + kTwoLeadersWithin) {
      find("array", "task " + title_of(name, task) + " had ended, its outcome is another one");
    }
  }
  for (const kube::ArrayTask& entry : status.tasks) {
    const bool is_one = facts.tasks.contains(entry.task);
    if (is_one && facts.outcomes.of(entry.task) == TaskOutcome::kNone) continue;
    find("array", "task " + title_of(name, entry.task) + " has an entry, and " +
                      (is_one ? "has ended" : "is not one of the array's"));
  }
  const kube::ArrayCounts& counts = status.counts;
  const auto all =
      counts.waiting + counts.running + counts.succeeded + counts.failed + counts.cancelled;
  const bool agree = counts.succeeded == facts.outcomes.count(TaskOutcome::kSucceeded) &&
                     counts.failed == facts.outcomes.count(TaskOutcome::kFailed) &&
                     counts.cancelled == facts.outcomes.count(TaskOutcome::kCancelled) &&
                     counts.running == with_nodes(status) &&
                     (all == 0 || all == static_cast<std::int32_t>(facts.tasks.size()));
  if (!agree) find("array", "the counts of " + name + " are wrong: " + status.summary);
}

// An array has ended when all its tasks have: Failed if one has failed, else Cancelled if one was
// canceled. Its exit code is the highest of all: 0 if all succeeded, at least that of each program
// that has failed by itself.
void Ledger::check_array_end(const kube::Job& job, const ArrayFacts& facts) {
  ++tally_.looked["array at the end"];
  const std::string text = "array " + job.metadata.name + " is " + simulation::state_of(job);
  const auto size = static_cast<int>(facts.tasks.size());
  if (facts.outcomes.ended() < size && facts.outcomes.ended() + facts.starts > 0) {
    find("array at the end", text + ", " + std::to_string(facts.outcomes.ended()) + " of " +
                                 std::to_string(size) + " tasks have ended");
  }
  const auto has = [&](TaskOutcome outcome) { return facts.outcomes.count(outcome) > 0; };
  const kube::JobState state = has(TaskOutcome::kFailed)      ? kube::JobState::kFailed
                               : has(TaskOutcome::kCancelled) ? kube::JobState::kCancelled
                                                              : kube::JobState::kCompleted;
  if (facts.outcomes.ended() == size && job.status.state != state) {
    find("array at the end", text + ", its tasks say " + std::string{kube::to_string(state)});
  }
  const int told = job.status.exit_code.value_or(0);
  const std::string code = text + " with exit code " + std::to_string(told);
  if (job.status.state == kube::JobState::kCompleted && told != 0) find("array at the end", code);
  for (const int task : facts.tasks) {
    const auto known = jobs_.find(control::record_key(job.metadata.uid, task));
    if (known == jobs_.end() || is_of_a_restore(known->second)) continue;
    if (known->second.job.status.state != kube::JobState::kFailed) continue;
    // A program on a node that went at that time could not be known.
    const StartFacts happened = happened_to(known->second);
    const int own = happened.exit_code;
    if (own <= told || happened.lost || happened.over) continue;
    find("array at the end",
         code + ", task " + std::to_string(task) + " ended with " + std::to_string(own));
  }
}

// No more tasks have nodes than spec.array.parallelism allows when one starts. One that was looser
// counts until the operator has heard of the change.
void Ledger::check_throttle(const kube::Job& job, const ArrayFacts& facts) {
  if (now_ < restored_at_ + kAfterRestore || !job.status.array) return;
  const std::int32_t most =
      facts.is_heard ? facts.throttle : looser(facts.throttle, facts.throttle_before);
  if (most == 0) return;
  ++tally_.looked["throttle"];
  // Those of which the end is decided may count no more.
  const auto run = std::ranges::count_if(job.status.array->tasks, [](const kube::ArrayTask& task) {
    return task.allocation && !task.ending;
  });
  if (run <= most) return;
  find("throttle", std::to_string(run) + " tasks of " + job.metadata.name + " run, " +
                       std::to_string(most) + " may");
}

// A task that its user holds, or has canceled, does not start once the operator has heard of it.
void Ledger::check_task_start(const JobFacts& facts) {
  const auto array = arrays_.find(control::uid_in(facts.job.metadata.uid));
  if (array == arrays_.end()) return;
  ++array->second.starts;
  if (now_ < restored_at_ + kAfterRestore || !array->second.is_heard) return;
  ++tally_.looked["task asked"];
  const kube::JobControl& asked = facts.job.spec.control;
  const std::string title = "task " + title_of(facts.job) + " starts, its user ";
  if (asked.cancel.value_or(false)) find("task asked", title + "has canceled it");
  if (asked.hold.value_or(false)) find("task asked", title + "holds it");
}

// Checks that an outcome is what the programs of the task did. It has ended well in one start
// alone, but for programs that were made to end, or that could not be known.
void Ledger::check_task_end(const JobFacts& facts) {
  const std::string& key = facts.job.metadata.uid;
  const std::string title = title_of(facts.job);
  const std::string& name = facts.job.metadata.name;
  const std::int64_t last = facts.job.status.starts.value_or(0);
  const std::size_t pods = pods_at_once(facts.job, facts.allocation);
  ++tally_.looked["task at the end"];
  const kube::JobState state = *facts.job.status.state;
  if (state == kube::JobState::kCompleted) {
    const bool was_restored = restored_at_ >= Time{0};
    // A restore of etcd takes back starts of which the leader knows the ends.
    const bool ended_well = std::ranges::any_of(succeeded_[key], [&](const auto& one) {
      return (one.first == last || (was_restored && one.first > last)) && one.second.size() >= pods;
    });
    if (!ended_well) {
      find("verdict", "task " + title + " has succeeded, but not all of its programs have");
    }
    const bool may_repeat =
        was_restored || requeued_by_user_.contains(title) || requeued_by_user_.contains(name);
    for (const auto& [start, pods_done] : succeeded_[key]) {
      if (start == last || pods_done.size() < pods || may_repeat) continue;
      if (starts_[key][start].lost || endings_.contains({key, start})) continue;
      find("task once", "task " + title + " has succeeded in its starts " + std::to_string(start) +
                            " and " + std::to_string(last));
    }
    ++tally_.looked["task once"];
  } else if (state == kube::JobState::kCancelled) {
    const bool by_user = ended_by_user_.contains(name) || ended_by_user_.contains(title);
    if (!by_user && plan_.preempt_mode != "Cancel") {
      find("verdict", "task " + title + " is canceled by no user");
    }
  } else {
    check_task_failure(facts);
  }
}

// The kind of a failure is not stored: of a program, by a loss, a time limit or a preemption.
void Ledger::check_task_failure(const JobFacts& facts) {
  if (is_of_a_restore(facts)) return;
  const StartFacts happened = happened_to(facts);
  const std::optional<base::Duration> limit = least_limit(facts);
  const bool is_over_time =
      limit && now_ - facts.start_at + clock_steps_ + std::chrono::seconds{5} >= *limit;
  const bool may_be_preempted =
      plan_.preempt_mode == "Cancel" || !facts.job.spec.lifecycle.requeue.value_or(true) ||
      is_unsliced(facts.job.metadata.uid, facts.job.status.starts.value_or(0));
  ++tally_.looked["verdict of a task"];
  if (has_failed(happened, facts.job) || happened.lost || is_over_time || may_be_preempted) return;
  find("verdict", "task " + title_of(facts.job) + " has failed, and nothing of it has");
}

// As check_stored(): a task with nothing left to be written has the entry that is wanted.
void Ledger::check_stored_task(const std::string& key, const kube::JobStatus& wanted) {
  // One that has not started has an entry only if it waits for another reason than the rest.
  if (wanted.starts.value_or(0) == 0) return;
  const auto known = jobs_.find(key);
  if (!arrays_.contains(control::uid_in(key))) return;
  ++tally_.looked["stored task"];
  if (known == jobs_.end()) {
    return find("stored task", "task " + key + " has started, and has no entry");
  }
  const int task = *known->second.task;
  // Successes of pods that do not follow one another come with the next write.
  const auto shown = [task](const kube::JobStatus& status) {
    kube::Job job;
    kube::ArrayTask& entry =
        job.status.array.emplace().tasks.emplace_back(kube::task_entry(task, status));
    entry.succeeded_indexes.clear();
    return encode(job)["status"];
  };
  const auto difference = nlohmann::json::diff(shown(known->second.job.status), shown(wanted));
  if (difference.empty() && !is_final_state(known->second.job)) return;
  find("stored task", "the entry of task " + title_of(known->second.job) +
                          " is not stored as the operator wants it: " + difference.dump());
}

void Ledger::note_array_fate(const kube::Job& job, const ArrayFacts& facts) {
  // Tasks that have no fate yet get an empty one.
  for (const int task : facts.tasks) fates_[title_of(job.metadata.name, task)];
  std::set<std::string>& fate = fates_[job.metadata.name];
  const bool all_began = std::all_of(facts.tasks.begin(), facts.tasks.end(), [&](int task) {
    const auto known = jobs_.find(control::record_key(job.metadata.uid, task));
    return facts.outcomes.of(task) != TaskOutcome::kNone ||
           (known != jobs_.end() && known->second.job.status.starts.value_or(0) > 0);
  });
  if (all_began && !facts.tasks.empty()) fate.insert("After");
  const auto size = static_cast<int>(facts.tasks.size());
  if (facts.outcomes.ended() < size && !is_final_state(job)) return;
  const bool succeeded = facts.outcomes.count(TaskOutcome::kSucceeded) == size;
  fate.insert({"After", "AfterAny", succeeded ? "AfterOK" : "AfterNotOK"});
}

// Returns true if a task of the array waits that has no entry of its own.
bool Ledger::some_task_waits(const JobFacts& facts) const {
  const std::string& uid = facts.job.metadata.uid;
  const auto array = arrays_.find(uid);
  if (array == arrays_.end()) return false;
  const auto& tasks = array->second.tasks;
  return std::any_of(tasks.begin(), tasks.end(), [&](int task) {
    const kube::JobControl asked = asked_of(facts.job.spec.control, task);
    return array->second.outcomes.of(task) == TaskOutcome::kNone &&
           !jobs_.contains(control::record_key(uid, task)) && !asked.hold.value_or(false) &&
           !asked.cancel.value_or(false);
  });
}

// Returns true if as many tasks of the array have nodes as may.
bool Ledger::is_throttled(const JobFacts& facts) const {
  const auto array = arrays_.find(control::uid_in(facts.job.metadata.uid));
  if (array == arrays_.end() || array->second.throttle == 0) return false;
  const auto whole = jobs_.find(array->first);
  return whole != jobs_.end() && whole->second.job.status.array &&
         with_nodes(*whole->second.job.status.array) >= array->second.throttle;
}

// Checks that the operator has heard the requests for jobs and tasks.
void Ledger::sample_wishes() {
  if (!operator_is_well_) return;
  for (auto& [uid, facts] : jobs_) {
    if (facts.held_at != kNoTime && now_ >= facts.held_at + kHeardWithin) {
      facts.hold_is_heard = true;
      ++tally_.looked["held"];
    }
  }
  for (auto& [uid, facts] : arrays_) {
    if (now_ >= facts.spec_at + kHeardWithin) facts.is_heard = true;
  }
}

}  // namespace simulation
