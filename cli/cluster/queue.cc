#include "cli/cluster/queue.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <span>
#include <string_view>
#include <tuple>
#include <utility>

#include "cli/cluster/followed_queue.h"
#include "cli/cluster/read.h"
#include "cli/table.h"
#include "kube/api/time_format.h"
#include "kube/sleeper.h"
#include "slurm/quantities.h"
#include "slurm/text.h"

namespace cli {
namespace {

// How a line comes about. A job's status is written when something of it changes, and turns change
// every slice without a write. So `queue` reads the jobs and the timetables of the nodes that they
// have, and works out for one instant who runs (job_time.h): with that the whole table is a picture
// of one moment, and a later one needs no new request. --watch does so with informers, the plain
// command with one list.

using Json = nlohmann::ordered_json;

// ECMA-48: the cursor to the upper left, then everything on the screen away.
constexpr std::string_view kClearScreen = "\033[H\033[2J";
// Between two looks of --watch. Rounds of turns last whole seconds or simple parts of one, and
// looks that far apart come to each part of them: once a second would show the same gang always.
constexpr base::Duration kBetweenLooks = std::chrono::milliseconds{618};

// Returns a value for each of squeue_columns().
std::vector<std::vector<std::string>> queue_rows(const std::vector<view::QueueLine>& lines) {
  std::vector<std::vector<std::string>> rows;
  for (const view::QueueLine& line : lines) {
    rows.push_back({line.job_id, line.partition, line.name, line.user, line.moment.code,
                    slurm::format_run_time(line.moment.run_time), std::to_string(line.nodes),
                    line.reason.empty() ? line.hostlist : "(" + line.reason + ")"});
  }
  return rows;
}

// A QueueLine has "" for what there is not, and JSON has null, so that programs need not know the
// convention.
Json text_or_null(const std::string& text) {
  return text.empty() ? Json(nullptr) : Json(text);
}

// Seconds since the epoch with microseconds, which a double keeps until the year 2200.
Json expected_or_null(const std::optional<base::Instant>& at) {
  return at ? Json(static_cast<double>(base::micros_since_epoch(*at)) / 1e6) : Json(nullptr);
}

// Returns the lines as JSON. Times are in seconds since the epoch, durations in seconds, both with
// fractions. `jobID` is null before an operator has seen the job.
std::string queue_json(const std::vector<view::QueueLine>& lines, base::Instant now) {
  Json jobs = Json::array();
  for (const view::QueueLine& line : lines) {
    jobs.push_back(
        {{"jobID", line.job_id.empty() ? Json(nullptr) : Json(std::stoll(line.job_id))},
         {"partition", line.partition},
         {"name", line.job_name},
         {"batchJob", text_or_null(line.batch_job)},
         {"namespace", line.user},
         {"state", line.moment.code},
         {"runSeconds", static_cast<double>(line.moment.run_time.count()) / 1e6},
         {"nodes", line.nodes},
         {"hostlist", text_or_null(line.hostlist)},
         {"reason", text_or_null(line.reason)},
         {"priority", line.priority},
         {"succeeded", line.progress ? Json(line.progress->succeeded) : Json(nullptr)},
         {"completions", line.progress ? Json(line.progress->completions) : Json(nullptr)},
         {"expectedStart", expected_or_null(line.expected_start)},
         {"plannedNodes", text_or_null(line.planned_nodes)}});
  }
  const Json all = {{"asOf", static_cast<double>(base::micros_since_epoch(now)) / 1e6},
                    {"jobs", jobs}};
  return all.dump(2) + "\n";
}

// Returns the length of the longest line in bytes, which are columns: names in Kubernetes are
// ASCII.
std::size_t longest_line(std::string_view text) {
  std::size_t longest = 0;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    longest = std::max(longest, end);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return longest;
}

// Returns the table as it is if it fits; else partition, user and name (columns 1, 3 and 2) are
// cut, as far as it takes and not below squeue's widths. The name comes last: kubectl needs it.
// Nothing else is ever cut: a line that is still too long is wrapped by the terminal, so that no
// node and no reason is lost.
std::string format_narrow(std::span<const Column> columns,
                          std::vector<std::vector<std::string>> rows,
                          std::optional<std::size_t> columns_max) {
  std::string text = format_table(columns, rows);
  if (!columns_max || longest_line(text) <= *columns_max) return text;
  std::size_t excess = longest_line(text) - *columns_max;
  for (const std::size_t column : {1U, 3U, 2U}) {
    std::size_t width = columns[column].width_min;
    for (const std::vector<std::string>& row : rows) width = std::max(width, row[column].size());
    const std::size_t cut = std::min(excess, width - columns[column].width_min);
    for (std::vector<std::string>& row : rows) {
      if (row[column].size() > width - cut) row[column].resize(width - cut);
    }
    excess -= cut;
  }
  return format_table(columns, rows);
}

// Returns true if the job is in one of the partitions, or waits for one of them: squeue -p shows a
// job that may run in several for each of them.
bool is_in(const view::QueueLine& line, const std::vector<std::string>& partitions) {
  const std::vector<std::string> names = slurm::split(line.partition, ',');
  return std::any_of(names.begin(), names.end(), [&](const std::string& name) {
    return std::find(partitions.begin(), partitions.end(), name) != partitions.end();
  });
}

// 1. only the partitions that were asked for; only waiting jobs with --start
// 2. a clear screen for --watch, on a terminal only: a file gets one table below the other
// 3. the format
void print_lines(std::vector<view::QueueLine> lines, base::Instant now, const QueueOptions& options,
                 Output output) {
  if (!options.partitions.empty()) {
    std::erase_if(lines,
                  [&](const view::QueueLine& line) { return !is_in(line, options.partitions); });
  }
  if (options.start) {
    std::erase_if(lines, [](const view::QueueLine& line) { return line.moment.code != "PD"; });
  }
  if (options.watch && !options.json && output.columns) {
    output.out << kClearScreen << "kubectl gang queue --watch    " << kube::format_time(now)
               << "\n";
  }
  const auto columns_max = options.wide ? std::nullopt : output.columns;
  output.out << (options.json    ? queue_json(lines, now)
                 : options.start ? format_starts(std::move(lines), columns_max)
                 : options.wide  ? format_wide_queue(lines)
                                 : format_queue(lines, columns_max));
  output.out.flush();
}

// Returns true if the job is among those that were asked for; without names all are.
bool is_wanted(const kube::Job& job, const std::vector<std::string>& names) {
  return names.empty() || std::any_of(names.begin(), names.end(), [&](const std::string& name) {
           return is_called(job, name);
         });
}

// Returns the error of the first name that fits no job, in the session's namespace. A name is
// looked for once more by itself, because a finished job, which the queue does not show, is not an
// error.
base::Status check_names(const Session& session, const std::vector<kube::Job>& jobs,
                         const std::vector<std::string>& names, Output output) {
  for (const std::string& name : names) {
    const auto is_it = [&](const kube::Job& job) { return is_called(job, name); };
    if (std::any_of(jobs.begin(), jobs.end(), is_it)) continue;
    const base::Result<kube::Job> found = find_job(session, name, output);
    if (!found) return found.error();
  }
  return {};
}

// Reads the list of jobs first, then the timetables of only those nodes that they have.
// One instant for all lines, taken after the list has arrived: a list of thousands of jobs takes a
// second, and run times that were worked out meanwhile would not agree.
base::Status print_once(const Session& session, const QueueOptions& options, const std::string& ns,
                        Output output) {
  base::Result<std::vector<kube::Job>> list =
      list_all<kube::Job>(session, ns, output, &view::fields_of_queue());
  if (!list) return list.error();
  if (const base::Status s = check_names(session, *list, options.jobs, output); !s) return s;
  std::vector<std::shared_ptr<const kube::Job>> jobs;
  for (kube::Job& job : *list) {
    if (!is_wanted(job, options.jobs)) continue;
    jobs.push_back(std::make_shared<const kube::Job>(std::move(job)));
  }
  const base::Instant now = session.clock.wall();
  TimetableReader timetables{session, output};
  std::vector<view::QueueLine> lines = view::queue_lines(jobs, timetables.lookup(), now);
  if (!timetables.status()) return timetables.status();
  print_lines(std::move(lines), now, options, output);
  return {};
}

// Prints the queue again and again, since run times go on and turns change without a write. Returns
// the error of the first list, since a mistake (a wrong namespace, no rights) is reported at once.
// An error after the first lists is shown below the table and outlived, because a watch is meant
// to run through an upgrade of the API server.
//
// It ends when its output is closed (`queue -w | head`): the client ignores SIGPIPE, so a closed
// pipe shows in the stream alone. With `watch_rounds_max` it ends after that many rounds, unless
// it is 0.
base::Status follow(const Session& session, const QueueOptions& options, const std::string& ns,
                    Output output) {
  kube::ThreadSleeper sleeper;
  FollowedQueue queue{session, ns};
  for (std::int64_t round = 0; options.watch_rounds_max == 0 || round < options.watch_rounds_max;) {
    const std::optional<base::Error> error = queue.take_error();
    if (error && !queue.has_synced()) return *error;
    if (!queue.has_synced()) {
      // The first lists have not all arrived: half a picture is not shown.
      (void)sleeper.sleep(std::chrono::milliseconds{20}, {});
      continue;
    }
    if (const std::optional<base::Error> refusal = queue.take_refusal()) {
      tell_no_timetables(*refusal, output);
    }
    const base::Instant now = session.clock.wall();
    auto jobs = queue.jobs();
    std::erase_if(jobs, [&](const auto& job) { return !is_wanted(*job, options.jobs); });
    print_lines(view::queue_lines(jobs, queue.timetable_of(), now), now, options, output);
    if (!output.out) break;
    if (error) output.err << "kubectl-gang queue: " << error->message << "; trying again\n";
    if (++round == options.watch_rounds_max) break;
    (void)sleeper.sleep(kBetweenLooks, {});
  }
  return {};
}

}  // namespace

// Makes the narrow form, for a terminal of that many columns; without a terminal nothing is cut,
// since a pipe has no width.
std::string format_queue(const std::vector<view::QueueLine>& lines,
                         std::optional<std::size_t> columns_max) {
  return format_narrow(squeue_columns(), queue_rows(lines), columns_max);
}

// squeue's columns with the priority before the last one, and nothing is cut.
std::string format_wide_queue(const std::vector<view::QueueLine>& lines) {
  const auto narrow = squeue_columns();
  std::vector<Column> columns{narrow.begin(), narrow.end()};
  std::vector<std::vector<std::string>> rows = queue_rows(lines);
  columns.insert(columns.end() - 1, {"PRIORITY", 10});
  for (std::size_t i = 0; i < rows.size(); ++i) {
    rows[i].insert(rows[i].end() - 1, std::to_string(lines[i].priority));
  }
  const auto has_progress = [](const view::QueueLine& line) { return line.progress.has_value(); };
  if (std::any_of(lines.begin(), lines.end(), has_progress)) {
    columns.insert(columns.end() - 1, {"SUCCEEDED", 10});
    for (std::size_t i = 0; i < rows.size(); ++i) {
      const auto& progress = lines[i].progress;
      rows[i].insert(rows[i].end() - 1, progress ? std::to_string(progress->succeeded) + "/" +
                                                       std::to_string(progress->completions)
                                                 : "");
    }
  }
  return format_table(columns, rows);
}

// Sorts by the expected start; jobs without one come last, in the order of the queue. "N/A" and
// "(null)" are squeue's words, so that scripts that read its output read this one.
std::string format_starts(std::vector<view::QueueLine> lines,
                          std::optional<std::size_t> columns_max) {
  std::stable_sort(
      lines.begin(), lines.end(), [](const view::QueueLine& a, const view::QueueLine& b) {
        return a.expected_start.value_or(base::kNever) < b.expected_start.value_or(base::kNever);
      });
  std::vector<std::vector<std::string>> rows;
  for (const view::QueueLine& line : lines) {
    rows.push_back({line.job_id, line.partition, line.name, line.user, line.moment.code,
                    line.expected_start ? kube::format_time(*line.expected_start) : "N/A",
                    std::to_string(line.nodes),
                    line.planned_nodes.empty() ? "(null)" : line.planned_nodes,
                    "(" + line.reason + ")"});
  }
  return format_narrow(squeue_start_columns(), std::move(rows), columns_max);
}

// With --watch, the exit code is that of the first list; later errors are shown and outlived.
int run_queue(const Session& session, const QueueOptions& options, Output output) {
  const std::string ns = options.all_namespaces ? "" : session.ns;
  const base::Status status = options.watch ? follow(session, options, ns, output)
                                            : print_once(session, options, ns, output);
  if (status) return kExitOk;
  output.err << "kubectl-gang queue: " << status.error().message << "\n";
  return kExitFailed;
}

}  // namespace cli
