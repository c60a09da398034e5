#include "cli/slurm/array_parts.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <iterator>
#include <map>
#include <utility>

#include "api/array_status.h"
#include "base/number_list.h"
#include "cli/cluster/task_control.h"
#include "slurm/array.h"
#include "slurm/text.h"

namespace cli {
namespace {

static_assert(slurm::kArrayTasksEnd == kube::kArrayTasksMax);

constexpr const char* kHeld = "JobHeldUser";
// SOURCE: Slurm's own buffers, of a list of tasks and of squeue's %i.
constexpr std::size_t kTaskTextMax = 64;
constexpr std::size_t kTaskTextEnd = 4'096;
constexpr std::size_t kLabelMax = 31;
constexpr const char* kTaskTextVariable = "SLURM_BITSTR_LEN";

// 0: none.
std::size_t task_text_max() {
  const char* const text = std::getenv(kTaskTextVariable);
  if (text == nullptr) return kTaskTextMax;
  const auto read = slurm::parse_integer(kTaskTextVariable, text, {.min = 0});
  return read ? std::min(static_cast<std::size_t>(*read), kTaskTextEnd) : kTaskTextMax;
}

template <typename Value>
std::optional<Value> wish_of(const std::map<int, Value>& wishes, int task) {
  const auto found = wishes.find(task);
  return found == wishes.end() ? std::nullopt : std::optional{found->second};
}

class Splitter {
 public:
  Splitter(const kube::Job& array, const kube::ArrayStatus& status)
      : status_{status}, wishes_{array.spec.control.tasks}, plain_{array} {
    // Neither is of a single task, and both may be long.
    plain_.status.array.reset();
    plain_.spec.control.tasks.clear();
    const auto read =
        slurm::parse_array("spec.array.tasks", array.spec.array->tasks, kube::kArrayTasksMax);
    if (read) read->tasks.each([&](int task) { all_.push_back(task); });
    const int throttle = array.spec.array->parallelism.value_or(0);
    if (throttle > 0) throttle_ = throttle;
  }

  std::vector<JobPart> split(ArrayView view, bool has_ended) {
    const kube::TaskOutcomes outcomes{status_};
    std::map<int, const kube::ArrayTask*> started;
    for (const kube::ArrayTask& entry : status_.tasks) started[entry.task] = &entry;
    // Until the records have it, more is kept of the last ones than the outcome.
    std::map<int, const kube::TaskEnd*> ends;
    for (const kube::TaskEnd& end : status_.ended) ends[end.task] = &end;
    std::vector<JobPart> waiting, others;
    for (const int task : all_) {
      const kube::TaskOutcome outcome = outcomes.of(task);
      const auto entry = started.find(task);
      if (outcome != kube::TaskOutcome::kNone) {
        if (!has_ended) continue;
        const auto end = ends.find(task);
        others.push_back(part(
            task, end == ends.end() ? ended(outcome)
                                    : own_job({}, kube::task_status(*end->second, plain_.status))));
      } else if (entry != started.end()) {
        auto own = own_job(wish_for(task), kube::task_status(*entry->second, plain_.status));
        (entry->second->allocation ? others : waiting).push_back(part(task, std::move(own)));
      } else {
        waiting.push_back(part(task, rest(wish_for(task))));
      }
    }
    if (view == ArrayView::kJoined && waiting.size() > 1) {
      waiting = {joined(waiting)};
    } else if (view == ArrayView::kJoined && waiting.size() == 1) {
      waiting.front().array->is_rest = is_whole(outcomes, *waiting.front().job);
    }
    std::ranges::move(others, std::back_inserter(waiting));
    return waiting;
  }

 private:
  // The part of spec.control.tasks that is shown of a task.
  struct Wish {
    std::optional<bool> hold, suspend;
    std::optional<base::Duration> time_limit;
    std::optional<std::int64_t> priority;
    std::optional<std::int32_t> nice;
    friend auto operator<=>(const Wish&, const Wish&) = default;
  };

  // SOURCE: recorded: once a task has been set apart, the last one is a job of its own, too. One
  // that was left by scancel, or that was always alone, stays the array.
  bool is_whole(const kube::TaskOutcomes& outcomes, const kube::Job& last) const {
    const auto rest = rest_.find(Wish{});
    const bool has_started = !status_.tasks.empty() ||
                             outcomes.count(kube::TaskOutcome::kSucceeded) > 0 ||
                             outcomes.count(kube::TaskOutcome::kFailed) > 0;
    return !has_started && rest != rest_.end() && rest->second.get() == &last;
  }

  JobPart part(int task, std::shared_ptr<const kube::Job> job) const {
    return {.job = std::move(job), .array = ArrayPart{number(), {task}, throttle_}};
  }

  std::int64_t number() const { return plain_.status.job_id.value_or(0); }

  Wish wish_for(int task) const {
    return {.hold = wish_of(wishes_.hold, task),
            .suspend = wish_of(wishes_.suspend, task),
            .time_limit = wish_of(wishes_.time_limit, task),
            .priority = wish_of(wishes_.priority, task),
            .nice = wish_of(wishes_.nice, task)};
  }

  // Returns the job of a task that has not ended. The operator writes the priority of the array
  // alone.
  std::shared_ptr<const kube::Job> own_job(const Wish& wish, kube::JobStatus status) const {
    auto own = std::make_shared<kube::Job>(plain_);
    kube::JobSchedule& schedule = own->spec.schedule;
    if (wish.priority) {
      status.priority = wish.priority;
    } else if (wish.nice && status.priority && !schedule.priority) {
      status.priority =
          std::max<std::int64_t>(*status.priority + schedule.nice.value_or(0) - *wish.nice, 1);
    }
    own->status = std::move(status);
    if (!own->status.job_id) own->status.job_id = number();
    if (wish.hold) own->spec.control.hold = wish.hold;
    if (wish.suspend) own->spec.control.suspend = wish.suspend;
    if (wish.time_limit) schedule.time_limit = wish.time_limit;
    if (wish.priority) schedule.priority = wish.priority;
    if (wish.nice) schedule.nice = wish.nice;
    return own;
  }

  // Returns the job of a task that waits for its first start.
  std::shared_ptr<const kube::Job> rest(const Wish& wish) {
    std::shared_ptr<const kube::Job>& job = rest_[wish];
    if (job != nullptr) return job;
    kube::JobStatus status = plain_.status;
    status.exit_code.reset();
    if (!status.state || !kube::is_final(*status.state)) status.state = kube::JobState::kPending;
    if (wish.hold && *wish.hold) status.reason = kHeld;
    if (wish.hold && !*wish.hold && status.reason == kHeld) status.reason.clear();
    return job = own_job(wish, std::move(status));
  }

  // Returns the job of a task that has ended. The exit code of a failed one is not kept; the array
  // has the highest.
  std::shared_ptr<const kube::Job> ended(kube::TaskOutcome outcome) {
    std::shared_ptr<const kube::Job>& job = ended_[outcome];
    if (job != nullptr) return job;
    kube::JobStatus status = plain_.status;
    const int code = status.exit_code.value_or(0);
    status.reason.clear();
    status.exit_code = outcome == kube::TaskOutcome::kFailed ? code : 0;
    status.state = kube::state_of(outcome);
    return job = own_job({}, std::move(status));
  }

  // squeue names each reason once.
  // SOURCE: recorded: the rest is what is shown of it all, if some tasks are as the rest; tasks
  // that were set apart, which Slurm has as jobs of their own, take the throttle away.
  JobPart joined(std::vector<JobPart>& waiting) {
    JobPart all = waiting.front();
    const auto as_rest = rest_.find(Wish{});
    const kube::Job* const rest = as_rest != rest_.end() ? as_rest->second.get() : nullptr;
    if (rest != nullptr) all.job = as_rest->second;
    const auto is_apart = [&](const JobPart& each) { return each.job.get() != rest; };
    if (std::ranges::any_of(waiting, is_apart)) all.array->throttle.reset();
    std::vector<std::string> reasons;
    std::vector<int> tasks;
    const kube::Job* last = nullptr;
    for (const JobPart& each : waiting) {
      tasks.push_back(each.array->tasks.front());
      if (std::exchange(last, each.job.get()) == each.job.get()) continue;
      const std::string& reason = each.job->status.reason;
      if (std::ranges::find(reasons, reason) == reasons.end()) reasons.push_back(reason);
    }
    auto job = std::make_shared<kube::Job>(*all.job);
    job->status.job_id = all.array->array_id;
    job->status.reason.clear();
    for (const std::string& reason : reasons) {
      if (!job->status.reason.empty() && !reason.empty()) job->status.reason += ",";
      job->status.reason += reason;
    }
    all.job = std::move(job);
    all.array->tasks = std::move(tasks);
    return all;
  }

  const kube::ArrayStatus& status_;
  const TaskWishes wishes_;
  kube::Job plain_;  // the array without what only its tasks have
  std::vector<int> all_;
  std::optional<int> throttle_;
  std::map<Wish, std::shared_ptr<const kube::Job>> rest_;
  std::map<kube::TaskOutcome, std::shared_ptr<const kube::Job>> ended_;
};

}  // namespace

std::vector<JobPart> array_parts(std::vector<kube::Job> jobs, ArrayView view, bool has_ended) {
  std::vector<JobPart> all;
  for (kube::Job& job : jobs) {
    if (!job.spec.array) {
      all.push_back({.job = std::make_shared<kube::Job>(std::move(job))});
      continue;
    }
    const kube::ArrayStatus status = job.status.array.value_or(kube::ArrayStatus{});
    std::ranges::move(Splitter{job, status}.split(view, has_ended), std::back_inserter(all));
  }
  return all;
}

namespace {

// SOURCE: Slurm writes a row of steps as such if it spans more than ten numbers.
std::string shortened_tasks(const std::vector<int>& tasks) {
  constexpr int kStepsSpan = 10;
  if (tasks.size() > 2 && tasks.back() - tasks.front() > kStepsSpan) {
    const int step = tasks[1] - tasks[0];
    const auto breaks = [&](int a, int b) { return b - a != step; };
    if (step > 1 && std::ranges::adjacent_find(tasks, breaks) == tasks.end()) {
      return std::to_string(tasks.front()) + "-" + std::to_string(tasks.back()) + ":" +
             std::to_string(step);
    }
  }
  std::string text = base::format_number_list(tasks);
  const std::size_t most = task_text_max();
  // The end of the text and Slurm's comma behind the last number are in its buffer, too.
  if (most > 4 && text.size() > most - 3) text = text.substr(0, most - 4) + "...";
  return text;
}

}  // namespace

std::string task_text(const ArrayPart& part) {
  std::string text = shortened_tasks(part.tasks);
  const bool is_list = part.tasks.size() > 1 || part.is_rest;
  if (is_list && part.throttle) text += "%" + std::to_string(*part.throttle);
  return text;
}

std::string job_label(std::int64_t id, const std::optional<ArrayPart>& part) {
  if (!part) return std::to_string(id);
  const std::string tasks = task_text(*part);
  return std::to_string(part->array_id) +
         (part->tasks.size() == 1 && !part->is_rest ? "_" + tasks : "_[" + tasks + "]");
}

std::string short_job_label(std::int64_t id, const std::optional<ArrayPart>& part) {
  std::string label = job_label(id, part);
  const bool is_cut = part && part->tasks.size() > 1 && std::getenv(kTaskTextVariable) == nullptr;
  if (is_cut && label.size() > kLabelMax) label.resize(kLabelMax);
  return label;
}

bool is_named(const JobWord& word, std::int64_t id, const std::optional<ArrayPart>& part) {
  if (!word.tasks) return word.id == id || (part && word.id == part->array_id);
  return part && word.id == part->array_id && part->tasks.size() == 1 &&
         std::ranges::binary_search(*word.tasks, part->tasks.front());
}

std::vector<std::string> job_words(std::string_view text) {
  std::vector<std::string> words(1);
  bool is_inside = false;
  for (const char c : text) {
    if (c == '[') is_inside = true;
    if (c == ']') is_inside = false;
    if (c == ',' && !is_inside) {
      words.emplace_back();
    } else {
      words.back() += c;
    }
  }
  std::erase(words, "");
  return words;
}

std::optional<JobWord> parse_job_word(std::string_view word) {
  JobWord read;
  const std::size_t end = std::min(word.find('_'), word.size());
  const auto parsed = std::from_chars(word.data(), word.data() + end, read.id);
  if (parsed.ec != std::errc{} || parsed.ptr != word.data() + end || read.id < 0) {
    return std::nullopt;
  }
  if (end == word.size()) return read;
  read.tasks = parse_tasks(word.substr(end + 1));
  if (!read.tasks) return std::nullopt;
  std::ranges::sort(*read.tasks);
  return read;
}

}  // namespace cli
