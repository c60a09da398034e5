#include "api/array_status.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "api/wellknown.h"
#include "base/cut_text.h"
#include "base/number_list.h"

namespace kube {
namespace {

constexpr std::string_view kLetters =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
constexpr std::size_t kTasksPerLetter = 3;  // two bits each
constexpr std::size_t kFailedShown = 100;
constexpr std::size_t kSentenceBytesMax = 300;  // of an entry

constexpr std::pair<TaskOutcome, std::string ArrayStatus::*> kTexts[] = {
    {TaskOutcome::kSucceeded, &ArrayStatus::succeeded},
    {TaskOutcome::kFailed, &ArrayStatus::failed},
    {TaskOutcome::kCancelled, &ArrayStatus::cancelled}};

Condition condition(std::string_view type, bool value, std::string reason,
                    std::optional<base::Instant> since) {
  return {.type = std::string{type},
          .status = value ? ConditionStatus::kTrue : ConditionStatus::kFalse,
          .last_transition_time = since,
          .reason = std::move(reason)};
}

bool names_task(std::string_view list, int task) {
  if (list.empty()) return false;
  const auto numbers = base::parse_number_list(list, kArrayTasksMax - 1);
  return numbers && std::ranges::find(*numbers, task) != numbers->end();
}

// Copies the fields of a run that a status, the entry of a task and its end have in common.
template <typename From, typename To>
void copy_run(const From& from, To& to) {
  to.job_id = from.job_id;
  to.state = from.state;
  to.reason = from.reason;
  to.restarts = from.restarts;
  to.allocation = from.allocation;
  to.partition = from.partition;
  to.submit_time = from.submit_time;
  to.eligible_time = from.eligible_time;
  to.time_limit = from.time_limit;
  to.run_time = from.run_time;
  to.suspend_time = from.suspend_time;
  to.exit_code = from.exit_code;
}

// Fills the times that the task's entry lacks with those of the array.
void take_times_of_array(const JobStatus& of_array, JobStatus& task) {
  if (!task.submit_time) task.submit_time = of_array.submit_time;
  if (!task.eligible_time) task.eligible_time = of_array.eligible_time;
}

}  // namespace

bool names_too_many_tasks(const JobControl& control) {
  std::size_t named = 0;
  for (const TaskControl& entry : control.tasks) {
    const auto numbers = base::parse_number_list(entry.tasks, kArrayTasksMax - 1);
    // Not read on: an entry that names the same tasks again and again may be as long as it likes.
    if (!numbers) return false;
    named += numbers->size();
    if (named > kNamedTasksMax) return true;
  }
  return false;
}

JobState state_of(TaskOutcome outcome) {
  switch (outcome) {
    case TaskOutcome::kSucceeded:
      return JobState::kCompleted;
    case TaskOutcome::kFailed:
      return JobState::kFailed;
    case TaskOutcome::kCancelled:
      return JobState::kCancelled;
    case TaskOutcome::kNone:
      break;
  }
  return JobState::kPending;
}

TaskOutcomes::TaskOutcomes(const ArrayStatus& stored) {
  for (std::size_t at = 0; at < stored.outcomes.size(); ++at) {
    const std::size_t letter = kLetters.find(stored.outcomes[at]);
    for (std::size_t i = 0; letter != std::string_view::npos && i < kTasksPerLetter; ++i) {
      const std::size_t task = at * kTasksPerLetter + i;
      if (task < kArrayTasksMax) {
        set(static_cast<int>(task), static_cast<TaskOutcome>((letter >> (2 * i)) & 3U));
      }
    }
  }
  if (!stored.outcomes.empty()) return;
  for (const auto& [outcome, text] : kTexts) {
    const auto numbers = base::parse_number_list(stored.*text, kArrayTasksMax - 1);
    if (!numbers) continue;
    for (const int task : *numbers) set(task, outcome);
  }
}

void TaskOutcomes::set(int task, TaskOutcome outcome) {
  const auto index = static_cast<std::size_t>(task);
  if (index >= outcomes_.size()) {
    if (outcome == TaskOutcome::kNone) return;
    outcomes_.resize(index + 1, TaskOutcome::kNone);
  }
  --counts_[static_cast<std::size_t>(outcomes_[index])];
  outcomes_[index] = outcome;
  ++counts_[static_cast<std::size_t>(outcome)];
}

int TaskOutcomes::ended() const {
  return count(TaskOutcome::kSucceeded) + count(TaskOutcome::kFailed) +
         count(TaskOutcome::kCancelled);
}

std::vector<int> TaskOutcomes::tasks(TaskOutcome outcome) const {
  std::vector<int> numbers;
  for (std::size_t i = 0; i < outcomes_.size(); ++i) {
    if (outcomes_[i] == outcome) numbers.push_back(static_cast<int>(i));
  }
  return numbers;
}

// Ranges are nearly always the shorter way, and the one that people read.
void TaskOutcomes::show(ArrayStatus& status) const {
  std::size_t size = 0;
  for (const auto& [outcome, text] : kTexts) {
    status.*text = base::format_number_list(tasks(outcome));
    size += (status.*text).size();
  }
  status.outcomes.clear();
  const std::size_t letters = (outcomes_.size() + kTasksPerLetter - 1) / kTasksPerLetter;
  if (size <= std::max<std::size_t>(letters, 1'024)) return;
  for (std::size_t at = 0; at < letters; ++at) {
    std::size_t letter = 0;
    for (std::size_t i = 0; i < kTasksPerLetter; ++i) {
      const TaskOutcome outcome = of(static_cast<int>(at * kTasksPerLetter + i));
      letter |= static_cast<std::size_t>(outcome) << (2 * i);
    }
    status.outcomes += kLetters[letter];
  }
  std::vector<int> failed = tasks(TaskOutcome::kFailed);
  failed.resize(std::min(failed.size(), kFailedShown));
  status.succeeded.clear();
  status.cancelled.clear();
  status.failed = base::format_number_list(failed);
}

namespace {

// Hundreds of tasks may end, or wait again, with one write: it lists only the script of their
// steps.
JobUsage usage_of_script(JobUsage usage) {
  const auto others =
      std::erase_if(usage.steps, [](const StepUsage& step) { return step.id != "batch"; });
  usage.more_steps += static_cast<std::int32_t>(others);
  return usage;
}

}  // namespace

JobStatus task_status(const ArrayTask& entry, const JobStatus& of_array) {
  JobStatus status;
  status.observed_generation = of_array.observed_generation;
  status.priority = of_array.priority;
  status.term = of_array.term;
  status.dependency = of_array.dependency;
  for (DependencyStatus& term : status.dependency) {
    const std::string failed = std::exchange(term.failed_tasks, {});
    if (names_task(failed, entry.task)) term.state = DependencyState::kFailed;
  }
  copy_run(entry, status);
  take_times_of_array(of_array, status);
  status.message = entry.message;
  status.starts = entry.starts;
  status.node_failures = entry.node_failures;
  status.start_time = entry.start_time;
  status.preempt_eligible_time = entry.preempt_eligible_time;
  status.claim = entry.claim;
  status.ending = entry.ending;
  status.held = entry.held;
  status.retry = entry.retry;
  status.succeeded_indexes = entry.succeeded_indexes;
  status.observed = entry.observed;
  status.conditions.push_back(condition(kAccepted, true, "Accepted", of_array.submit_time));
  const bool is_ready = entry.allocation && entry.start_time;
  status.conditions.push_back(condition(kReady, is_ready,
                                        is_ready           ? "Settled"
                                        : entry.allocation ? "Starting"
                                                           : "NotStarted",
                                        is_ready ? entry.start_time : entry.allocated_time));
  if (entry.ending) {
    status.conditions.push_back(condition(kCompleting, true, "Ending", entry.ending->since));
  }
  if (!entry.never_frozen.empty()) {
    status.conditions.push_back(
        condition(kNeverFrozen, true, "ChangedByWebhook", entry.allocated_time));
    status.conditions.back().message = entry.never_frozen;
  }
  if (entry.usage) status.usage = *entry.usage;
  return status;
}

JobStatus stored_task(const JobStatus& of_array, int task) {
  if (!of_array.array) return {};
  const auto& tasks = of_array.array->tasks;
  const auto found = std::ranges::find(tasks, task, &ArrayTask::task);
  return found == tasks.end() ? JobStatus{} : task_status(*found, of_array);
}

ArrayTask task_entry(int task, const JobStatus& status) {
  // All entries share one object: what a sentence says at length stands in the events.
  const auto brief = [](const std::string& text) {
    return base::shortened(text, kSentenceBytesMax);
  };
  ArrayTask entry;
  entry.task = task;
  copy_run(status, entry);
  entry.message = brief(status.message);
  entry.starts = status.starts;
  entry.node_failures = status.node_failures;
  const bool is_ready = is_true(status.conditions, kReady);
  if (const Condition* ready = find_condition(status.conditions, kReady); ready != nullptr) {
    if (!is_ready) entry.allocated_time = ready->last_transition_time;
  }
  if (is_ready) entry.start_time = status.start_time;
  entry.preempt_eligible_time = status.preempt_eligible_time;
  entry.claim = status.claim;
  entry.ending = status.ending;
  entry.held = status.held;
  entry.retry = status.retry;
  entry.succeeded_indexes = status.succeeded_indexes;
  entry.observed = status.observed;
  const Condition* frozen = find_condition(status.conditions, kNeverFrozen);
  if (frozen != nullptr && frozen->status == ConditionStatus::kTrue) {
    entry.never_frozen = brief(frozen->message);
  }
  if (status.usage) entry.usage = usage_of_script(*status.usage);
  return entry;
}

TaskEnd task_end(int task, const JobStatus& status) {
  TaskEnd end{.task = task};
  copy_run(status, end);
  end.start_time = status.start_time;
  end.end_time = status.end_time;
  if (status.usage) end.usage = usage_of_script(*status.usage);
  return end;
}

JobStatus task_status(const TaskEnd& end, const JobStatus& of_array) {
  JobStatus status;
  copy_run(end, status);
  take_times_of_array(of_array, status);
  status.priority = of_array.priority;
  status.start_time = end.start_time;
  status.end_time = end.end_time;
  status.usage = end.usage;
  return status;
}

std::string array_summary(const ArrayCounts& counts) {
  const int done = counts.succeeded + counts.failed + counts.cancelled;
  std::string text = std::to_string(done) + " of " +
                     std::to_string(done + counts.running + counts.waiting) + " done";
  if (counts.running > 0) text += ", " + std::to_string(counts.running) + " run";
  if (counts.failed > 0) text += ", " + std::to_string(counts.failed) + " failed";
  if (counts.cancelled > 0) text += ", " + std::to_string(counts.cancelled) + " canceled";
  return text;
}

}  // namespace kube
