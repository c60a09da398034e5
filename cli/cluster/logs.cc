#include "cli/cluster/logs.h"

#include <algorithm>
#include <charconv>
#include <iterator>
#include <map>
#include <mutex>
#include <ostream>
#include <thread>
#include <vector>

#include "api/wellknown.h"
#include "cli/cluster/read.h"
#include "cli/cluster/task_control.h"
#include "kube/api/pod.h"

namespace cli {
namespace {

// Each pod that is followed is a request and a thread.
constexpr std::size_t kFollowedMax = 64;
constexpr base::Duration kLookEvery = std::chrono::seconds{1};
// A job may be silent for long: it is frozen, or it computes.
constexpr base::Duration kSilenceMax = std::chrono::hours{24};

std::int64_t number_of(const kube::Pod& pod, std::string_view label) {
  const auto found = pod.metadata.labels.find(std::string{label});
  std::int64_t number = 0;
  if (found == pod.metadata.labels.end()) return number;
  const std::string& text = found->second;
  (void)std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

// Returns, for each task of an array, the pods of its newest start that has some; with `previous`
// those of the start before it.
std::vector<kube::Pod> pods_of_tasks(std::vector<kube::Pod> all,
                                     const std::optional<std::vector<int>>& tasks, bool previous) {
  std::map<std::int64_t, std::map<std::int64_t, std::vector<kube::Pod>>> by_task;
  for (kube::Pod& pod : all) {
    const std::int64_t task = number_of(pod, kube::kLabelArrayTask);
    if (tasks && std::ranges::find(*tasks, task) == tasks->end()) continue;
    by_task[task][number_of(pod, kube::kLabelStart)].push_back(std::move(pod));
  }
  std::vector<kube::Pod> pods;
  for (auto& [task, by_start] : by_task) {
    if (previous) by_start.erase(std::prev(by_start.end()));
    if (by_start.empty()) continue;
    std::ranges::move(by_start.rbegin()->second, std::back_inserter(pods));
  }
  return pods;
}

// Returns the pods of one start, by their places in the job. `last`: the number of the start; with
// `previous` the newest before it that has pods.
base::Result<std::vector<kube::Pod>> pods_of(const Session& session, const kube::Job& job,
                                             const std::optional<std::vector<int>>& tasks,
                                             bool previous) {
  auto list = session.client.list<kube::Pod>(
      {.ns = job.metadata.ns,
       .label_selector = std::string{kube::kLabelJob} + "=" + job.metadata.name});
  if (!list) return list.error();
  if (job.spec.array) return pods_of_tasks(std::move(list->items), tasks, previous);
  const std::int64_t last = job.status.starts.value_or(0);
  std::map<std::int64_t, std::vector<kube::Pod>> by_start;
  for (kube::Pod& pod : list->items) {
    by_start[number_of(pod, kube::kLabelStart)].push_back(std::move(pod));
  }
  std::erase_if(by_start, [&](const auto& each) {
    return previous ? each.first >= last : each.first != last;
  });
  if (by_start.empty()) return std::vector<kube::Pod>{};
  std::vector<kube::Pod> pods = std::move(by_start.rbegin()->second);
  std::ranges::sort(pods, {}, [](const kube::Pod& pod) {
    return std::pair{number_of(pod, kube::kLabelTask), pod.metadata.name};
  });
  return pods;
}

// Writes the lines of several pods, each as a whole.
class LogLines {
 public:
  LogLines(std::ostream& out, bool has_names) : out_{out}, has_names_{has_names} {}

  // The API server's time stamp stands before each line, so that an empty one is a line, too.
  void write(const std::string& pod, std::string_view line) {
    line.remove_prefix(std::min(line.find(' ') + 1, line.size()));
    const std::lock_guard lock{mu_};
    if (has_names_) out_ << pod << ": ";
    out_ << line << "\n";
    out_.flush();
  }

 private:
  std::ostream& out_;
  const bool has_names_;
  std::mutex mu_;
};

// Reads a log; a pod whose container has not begun has none yet, which is a 400.
base::Status read_log(const Session& session, const kube::Pod& pod, bool follow, LogLines& lines) {
  const std::string& container = pod.spec.containers.front().name;
  const std::string path = "/api/v1/namespaces/" + pod.metadata.ns + "/pods/" + pod.metadata.name +
                           "/log?container=" + container + "&timestamps=true" +
                           (follow ? "&follow=true" : "");
  const auto on_line = [&](std::string_view line) {
    lines.write(pod.metadata.name, line);
    return true;
  };
  for (;;) {
    const base::Status status = session.client.text_lines(path, kSilenceMax, on_line, {});
    const bool waits = !status && status.error().code == base::Code::kInvalidArgument &&
                       status.error().message.find("waiting to start") != std::string::npos;
    if (!waits) return status;
    if (!follow) return {};
    if (const base::Status slept = session.sleeper.sleep(kLookEvery, {}); !slept) return slept;
  }
}

// Reads again until there are pods, or the job has ended.
base::Result<std::vector<kube::Pod>> pods_in_time(const Session& session, kube::Job job,
                                                  const std::optional<std::vector<int>>& tasks,
                                                  const LogsOptions& options) {
  for (;;) {
    auto pods = pods_of(session, job, tasks, options.previous);
    const bool has_ended = job.status.state && kube::is_final(*job.status.state);
    if (!pods || !pods->empty() || !options.follow || options.previous || has_ended) return pods;
    if (const base::Status slept = session.sleeper.sleep(kLookEvery, {}); !slept) {
      return slept.error();
    }
    auto next = session.client.get<kube::Job>(kube::key_of(job.metadata));
    if (!next) return next.error();
    job = std::move(next).value();
  }
}

}  // namespace

int run_logs(const Session& session, const std::string& name, const LogsOptions& options,
             Output output) {
  const auto fail = [&](const std::string& message) {
    output.err << "kubectl-gang logs: " << message << "\n";
    return kExitFailed;
  };
  const base::Result<JobAndTasks> named = read_job_and_tasks(name);
  if (!named) return fail(named.error().message);
  const base::Result<kube::Job> job = find_job(session, named->job, output);
  if (!job) return fail(job.error().message);
  const auto pods = pods_in_time(session, *job, named->tasks, options);
  if (!pods) return fail(pods.error().message);
  if (pods->empty()) {
    const std::string state =
        job->status.state ? std::string{to_string(*job->status.state)} : std::string{"new"};
    return fail("job " + job->metadata.name + " (" + state + ") has no pods" +
                (options.previous ? " of an earlier start: they go when it starts again"
                                  : "; kubectl gang explain says why"));
  }
  const bool is_followed = options.follow && !options.previous;
  if (is_followed && pods->size() > kFollowedMax) {
    return fail("job " + job->metadata.name + " has " + std::to_string(pods->size()) +
                " pods, more than the " + std::to_string(kFollowedMax) +
                " that can be followed; leave out -f");
  }
  LogLines lines{output.out, pods->size() > 1};
  std::vector<base::Status> ends(pods->size());
  {
    std::vector<std::jthread> followers;
    for (std::size_t i = 0; i < pods->size(); ++i) {
      const auto read = [&, i] { ends[i] = read_log(session, (*pods)[i], is_followed, lines); };
      if (is_followed) {
        followers.emplace_back(read);
      } else {
        read();
      }
    }
  }
  int code = kExitOk;
  for (const base::Status& end : ends) {
    if (!end) code = fail(end.error().message);
  }
  return code;
}

}  // namespace cli
