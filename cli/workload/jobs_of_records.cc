#include "cli/workload/jobs_of_records.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "slurm/text.h"

namespace cli {
namespace {

using records::Record;

template <typename List>
bool has_name(const List& list, const std::string& name) {
  return std::ranges::any_of(list, [&](const auto& each) { return each.name == name; });
}

// A job or a task, from its first run to its last.
struct Past {
  const Record* last = nullptr;
  base::Instant since = base::kNever;  // when it could start
};

// By UID and task.
std::vector<Past> pasts_of(std::span<const Record> records) {
  std::map<std::tuple<std::string, int>, Past> by_key;
  for (const Record& record : records) {
    Past& past = by_key[{record.job_uid, record.task.value_or(-1)}];
    if (past.last == nullptr || past.last->restart < record.restart) past.last = &record;
    const auto& since = record.eligible_time ? record.eligible_time : record.submit_time;
    if (since) past.since = std::min(past.since, *since);
  }
  std::vector<Past> pasts;
  for (const auto& [key, past] : by_key) pasts.push_back(past);
  std::ranges::stable_sort(pasts, {}, [](const Past& past) {
    return std::tuple{past.since, past.last->job_id.value_or(0), past.last->task.value_or(-1)};
  });
  return pasts;
}

sched::MemoryMiB in_mib(kube::Bytes bytes) {
  constexpr std::int64_t kMiB = 1 << 20;
  return sched::MemoryMiB{(bytes.value() + kMiB - 1) / kMiB};
}

class JobsOfRecords {
 public:
  explicit JobsOfRecords(simulate::Scenario& scenario) : scenario_{scenario} {
    for (const simulate::Job& job : scenario.jobs) labels_.insert(job.label);
  }

  base::Result<RecordedPast> add(std::span<const Record> records) {
    std::vector<Past> played;
    for (const Past& past : pasts_of(records)) {
      if (is_played(past)) played.push_back(past);
    }
    if (played.empty()) return base::invalid_argument("there is no record of a job that has run");
    RecordedPast recorded{.first = scenario_.jobs.size()};
    const base::Instant begin = played.front().since;
    recorded.span = played.back().since - begin;
    for (const Past& past : played) {
      if (const base::Status status = submit(past, begin); !status) return status.error();
      note(past, played.back().since, recorded);
    }
    std::ranges::stable_sort(scenario_.inputs, {}, &simulate::Input::at);
    warn();
    return recorded;
  }

 private:
  bool is_played(const Past& past) {
    const Record& record = *past.last;
    const auto leave_out = [this](const char* why) {
      ++warnings_[std::string{"of the records are left out: "} + why];
      return false;
    };
    if (past.since == base::kNever) return leave_out("when they could start is not known");
    if (!record.start_time || record.hostlist.empty()) return leave_out("they have not run");
    if (!record.end_time) return leave_out("they have not ended");
    if (record.state == records::RecordState::kLost) return leave_out("their end was not seen");
    if (!record.devices.empty()) ++warnings_["asked for devices, which are not played"];
    if (!record.licenses.empty()) ++warnings_["asked for licenses, which are not played"];
    if (!record.constraint.empty()) ++warnings_["asked for features, which are not played"];
    return true;
  }

  // Returns "j12", "j12_3"; "j12-N" if there is such a job already.
  std::string label_of(const Record& record) {
    const std::int64_t number =
        record.task ? record.array_id.value_or(0) : record.job_id.value_or(0);
    const std::string plain =
        "j" + std::to_string(number) + (record.task ? "_" + std::to_string(*record.task) : "");
    std::string label = plain;
    for (std::size_t n = labels_.size(); !labels_.insert(label).second; ++n) {
      label = plain + "-" + std::to_string(n);
    }
    return label;
  }

  base::Status submit(const Past& past, base::Instant begin) {
    const Record& record = *past.last;
    const sched::Configuration& configuration = scenario_.configuration;
    simulate::Job job;
    job.label = label_of(record);
    job.work = std::max<base::Duration>(record.elapsed, std::chrono::seconds{1});
    sched::JobRequest& request = job.request;
    request.id = sched::JobId{static_cast<std::int64_t>(scenario_.jobs.size()) + 1};
    request.name = job.label;
    request.user = record.user.empty() ? record.ns : record.user;
    if (!configuration.users.empty() && !has_name(configuration.users, request.user)) {
      return base::invalid_argument("the user " + slurm::in_quotes(request.user) +
                                    " is not among the scenario's users");
    }
    if (has_name(configuration.accounts, record.account)) request.account = record.account;
    if (has_name(configuration.qos, record.qos)) request.qos = record.qos;
    if (has_name(configuration.partitions, record.partition)) {
      request.partitions = {record.partition};
    }
    request.nodes_given = record.nodes > 1 || !record.tasks;
    request.min_nodes = record.nodes;
    if (request.nodes_given) request.max_nodes = record.nodes;
    request.tasks = record.tasks;
    request.tasks_per_node = record.tasks_per_node;
    request.cpus_per_task = record.cpus_per_task.value_or(1);
    if (record.memory_per_cpu) {
      request.memory = sched::MemoryPerCpu{in_mib(*record.memory_per_cpu)};
    } else if (record.memory_per_node) {
      request.memory = sched::MemoryPerNode{in_mib(*record.memory_per_node)};
    }
    if (record.time_limit) {
      request.time_limit = std::chrono::ceil<std::chrono::minutes>(*record.time_limit);
    }
    const base::Instant at{past.since - begin};
    request.submit_time = at;
    scenario_.inputs.push_back({.at = at, .happening = simulate::SubmitJob{request.id}});
    scenario_.jobs.push_back(std::move(job));
    return {};
  }

  // How it was. The run time is spread evenly over the last run.
  static void note(const Past& past, base::Instant last, RecordedPast& recorded) {
    const Record& record = *past.last;
    recorded.cpus.push_back(record.allocated_cpus);
    recorded.served.push_back(
        {.service = {.response = *record.end_time - past.since, .run = record.elapsed},
         .cpus = record.allocated_cpus});
    const base::Duration whole = *record.end_time - *record.start_time;
    const base::Duration part = std::min(*record.end_time, last) - *record.start_time;
    if (part <= base::Duration{} || whole <= base::Duration{}) return;
    const double ran = static_cast<double>(record.elapsed.count()) *
                       static_cast<double>(part.count()) / static_cast<double>(whole.count());
    recorded.used += record.allocated_cpus * base::Duration{static_cast<std::int64_t>(ran)};
  }

  void warn() {
    for (const auto& [what, count] : warnings_) {
      scenario_.warnings.push_back(std::to_string(count) + " jobs " + what);
    }
  }

  simulate::Scenario& scenario_;
  std::set<std::string> labels_;
  std::map<std::string, std::size_t> warnings_;
};

}  // namespace

base::Result<RecordedPast> add_records(std::span<const Record> records,
                                       simulate::Scenario& scenario) {
  return JobsOfRecords{scenario}.add(records);
}

}  // namespace cli
