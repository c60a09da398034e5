#include "slurm/array.h"

#include <cstdint>
#include <string>
#include <vector>

#include "slurm/text.h"

namespace slurm {
namespace {

// One part between commas, in its grammar: N, N-M, N-M:STEP.
class RangeReader {
 public:
  RangeReader(std::string_view what, std::string_view part, int tasks_end)
      : what_{what}, part_{part}, tasks_end_{tasks_end} {
    // SOURCE: recorded: brackets around a part are passed over.
    if (part_.starts_with('[')) part_.remove_prefix(1);
    if (part_.ends_with(']')) part_.remove_suffix(1);
  }

  // Adds to `written` how many numbers it stands for.
  base::Status read(sched::TaskSet& into, std::int64_t& written) const {
    const std::size_t colon = part_.find(':');
    const std::string_view range = part_.substr(0, colon);
    const std::size_t dash = range.find('-');
    const auto first = task(range.substr(0, dash));
    if (!first) return first.error();
    if (dash == std::string_view::npos) {
      if (colon != std::string_view::npos) return wrong("a step (:) goes with a range alone");
      ++written;
      into.insert(*first);
      return {};
    }
    const auto last = task(range.substr(dash + 1));
    if (!last) return last.error();
    if (*last < *first) return wrong("the range runs backwards");
    int step = 1;
    if (colon != std::string_view::npos) {
      const auto read =
          parse_integer(what_, part_.substr(colon + 1), {.min = 1, .max = tasks_end_});
      if (!read) return wrong("the step must be a number from 1 on");
      step = static_cast<int>(*read);
    }
    written += (*last - *first) / step + 1;
    // A text of a few bytes can name the same tasks again and again.
    if (written > 2 * std::int64_t{tasks_end_}) return wrong("names tasks that are named before");
    into.insert(*first, *last, step);
    return {};
  }

 private:
  base::Error wrong(const std::string& why) const {
    return base::invalid_argument(std::string{what_} + " " + in_quotes(part_) + ": " + why);
  }
  base::Result<int> task(std::string_view text) const {
    const auto read = parse_integer(what_, text, {.min = 0, .max = tasks_end_ - 1});
    if (read) return static_cast<int>(*read);
    return wrong("tasks are numbers from 0 to " + std::to_string(tasks_end_ - 1) +
                 ", like 0-15, 1,3,5-7 or 1-7:2");
  }

  std::string_view what_;
  std::string_view part_;
  int tasks_end_;
};

// Returns "1-7:2" if the whole set is a row of equal steps of more than one.
std::string format_steps(const sched::TaskSet& tasks) {
  if (tasks.size() < 3) return "";
  const int first = *tasks.next();
  const int step = *tasks.next(first + 1) - first;
  const int last = *tasks.last();
  if (step == 1 || last != first + step * (tasks.size() - 1)) return "";
  for (int task = first; task <= last; task += step) {
    if (!tasks.contains(task)) return "";
  }
  return std::to_string(first) + "-" + std::to_string(last) + ":" + std::to_string(step);
}

}  // namespace

base::Result<sched::ArrayRequest> parse_array(std::string_view what, std::string_view text,
                                              int tasks_end) {
  sched::ArrayRequest array;
  const std::size_t percent = text.find('%');
  std::int64_t written = 0;
  for (const std::string& part : split(text.substr(0, percent), ',')) {
    const base::Status status = RangeReader{what, part, tasks_end}.read(array.tasks, written);
    if (!status) return status.error();
  }
  if (array.tasks.empty()) {
    return base::invalid_argument(std::string{what} + ": names no tasks; write it like 0-15");
  }
  // SOURCE: recorded: a % without a number sets no bound.
  if (percent == std::string_view::npos || percent + 1 == text.size()) return array;
  const auto at_once =
      parse_integer(what, text.substr(percent + 1), {.min = 0, .max = sched::JobId::kTasksMax});
  if (!at_once) {
    return base::invalid_argument(std::string{what} + " " + in_quotes(text) +
                                  ": behind % stands how many tasks run at once at most");
  }
  // 0 means no bound, as with Slurm.
  if (*at_once > 0) array.at_once = static_cast<int>(*at_once);
  return array;
}

std::string format_tasks(const sched::TaskSet& tasks) {
  std::string text = format_steps(tasks);
  if (!text.empty()) return text;
  for (auto first = tasks.next(); first;) {
    int last = *first;
    while (tasks.contains(last + 1)) ++last;
    if (!text.empty()) text += ',';
    text += std::to_string(*first);
    if (last > *first) text += "-" + std::to_string(last);
    first = tasks.next(last + 1);
  }
  return text;
}

std::string format_array(const sched::ArrayRequest& array) {
  std::string text = format_tasks(array.tasks);
  if (array.at_once) text += "%" + std::to_string(*array.at_once);
  return text;
}

std::optional<sched::JobId> parse_job_id(std::string_view text) {
  const std::size_t underscore = text.find('_');
  const auto number =
      parse_integer("", text.substr(0, underscore), {.min = 1, .max = sched::JobId::kNumberMax});
  if (!number) return std::nullopt;
  const sched::JobId job{*number};
  if (underscore == std::string_view::npos) return job;
  const auto task = parse_integer("", text.substr(underscore + 1),
                                  {.min = 0, .max = sched::JobId::kTasksMax - 1});
  if (!task) return std::nullopt;
  return sched::JobId::of_task(job, static_cast<int>(*task));
}

}  // namespace slurm
