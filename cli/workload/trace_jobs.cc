#include "cli/workload/trace_jobs.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "slurm/text.h"

namespace cli {
namespace {

using sched::Configuration;
using simulate::Scenario;

// Traces name users and groups by number, so a scenario says which of them it knows by names such
// as "user7" and "group3".
template <typename List>
bool has_name(const List& list, const std::string& name) {
  return std::any_of(list.begin(), list.end(), [&](const auto& each) { return each.name == name; });
}

// Adds jobs to one scenario. The sums over nodes are made once, since a trace may have a million
// jobs.
// A queue of the trace becomes a partition only if the scenario has one of that name. So a scenario
// with one default partition plays any trace, and one that wants the queues apart says so.
class TraceJobs {
 public:
  explicit TraceJobs(Scenario& scenario) : scenario_{scenario} {
    std::map<std::string, std::int64_t> cpus_of_node;
    for (const sched::NodeSpec& node : scenario.nodes) {
      cpus_of_node[node.name] = node.cpus;
      cpus_ += node.cpus;
    }
    for (const sched::PartitionConfig& partition : scenario.configuration.partitions) {
      std::int64_t& cpus = cpus_of_partition_[partition.name];
      for (const std::string& node : partition.nodes) cpus += cpus_of_node[node];
      if (partition.is_default) default_ = partition.name;
    }
    for (const simulate::Job& job : scenario.jobs) labels_.insert(job.label);
  }

  // 1. The jobs that can be played; the others are counted by reason.
  // 2. The factor of their submit times.
  // 3. The scenario's jobs and inputs, which are sorted by time, as inputs of a file must be.
  // The order matters: the load is that of the jobs that are played, and labels are given in their
  // order.
  base::Status add(const SwfTrace& trace, std::optional<double> load) {
    SwfTrace played;
    for (const SwfJob& job : trace) {
      if (is_played(job)) played.push_back(job);
    }
    const base::Result<double> factor = load ? factor_for(played, *load) : 1.0;
    if (!factor) return factor.error();
    for (const SwfJob& job : played) {
      if (base::Status status = submit(job, *factor); !status) return status;
    }
    std::stable_sort(
        scenario_.inputs.begin(), scenario_.inputs.end(),
        [](const simulate::Input& a, const simulate::Input& b) { return a.at < b.at; });
    warn();
    return {};
  }

 private:
  // Returns the partition that a queue of the trace is played in: queue7 if the scenario has it,
  // else the default one. "" if the scenario has none: the request then names no partition.
  std::string partition_of(const SwfJob& job) const {
    if (!job.queue) return default_;
    const std::string name = "queue" + std::to_string(*job.queue);
    return cpus_of_partition_.count(name) != 0 ? name : default_;
  }

  // Returns true if the job can be played; else counts why not. A job that never fits its partition
  // would wait until the end of the simulation and spoil every mean.
  bool is_played(const SwfJob& job) {
    const auto leave_out = [this](const char* why) {
      ++left_out_[why];
      return false;
    };
    if (job.is_part()) return leave_out("parts of other jobs");
    if (!job.run) return leave_out("run time unknown");
    if (!job.processors()) return leave_out("processors unknown");
    const auto cpus = cpus_of_partition_.find(partition_of(job));
    if (cpus != cpus_of_partition_.end() && *job.processors() > cpus->second) {
      return leave_out("more processors than CPUs in the partition");
    }
    return true;
  }

  // Load is work divided by what all CPUs could do from time 0 to the last submission, so
  // stretching all submit times by one factor meets any load and keeps the pattern of arrivals. 1
  // leaves the trace as it is. Work counts CPUs × seconds of the jobs that are played, so jobs that
  // are left out do not change the load that was asked for.
  // For example 64 CPUs for 100 h could do 6,400 CPU hours. If the jobs are 3,200 of them, the load
  // is 50 %, and for one of 80 % each submit time becomes 5/8 of what it was.
  base::Result<double> factor_for(const SwfTrace& jobs, double load) const {
    double work = 0;
    for (const SwfJob& job : jobs) {
      work += static_cast<double>(job.run->count()) * *job.processors();
    }
    const double span = jobs.empty() ? 0 : static_cast<double>(jobs.back().submit.count());
    if (work <= 0 || span <= 0) {
      return base::invalid_argument("a load cannot be set: the trace has no work, or no time");
    }
    const double factor = work / (static_cast<double>(cpus_) * span) / load;
    if (span * factor > static_cast<double>(kSwfSecondsMax) * 1e6) {
      return base::invalid_argument("with that load the trace would take more than 95 years");
    }
    return factor;
  }

  // Returns "j7", or "j7-N" if there is such a job already. N begins at the number of labels, which
  // grows with each job, so that a trace in which all jobs have one number takes one more try for
  // each of them, not one for every job before it.
  std::string label_of(const SwfJob& job) {
    const std::string plain = "j" + std::to_string(job.number);
    std::string label = plain;
    for (std::size_t n = labels_.size(); !labels_.insert(label).second; ++n) {
      label = plain + "-" + std::to_string(n);
    }
    return label;
  }

  // Makes a job of the scenario, as an input of the file would: a request, work, and a submission.
  // Run times below a second become one: a job that ends in the instant of its start would be none.
  base::Status submit(const SwfJob& traced, double factor) {
    const Configuration& configuration = scenario_.configuration;
    simulate::Job job;
    job.label = label_of(traced);
    job.work = std::max<base::Duration>(*traced.run, std::chrono::seconds{1});
    sched::JobRequest& request = job.request;
    request.id = sched::JobId{static_cast<std::int64_t>(scenario_.jobs.size()) + 1};
    request.name = job.label;
    // Tasks and not nodes: a trace says nothing of how processors were spread over nodes.
    request.tasks = *traced.processors();
    request.user = traced.user ? "user" + std::to_string(*traced.user) : "root";
    if (!configuration.users.empty() && !has_name(configuration.users, request.user)) {
      return base::invalid_argument("job " + std::to_string(traced.number) + ": user " +
                                    slurm::in_quotes(request.user) +
                                    " is not among the scenario's users");
    }
    const std::string account = "group" + std::to_string(traced.group.value_or(-1));
    if (has_name(configuration.accounts, account)) request.account = account;
    if (const std::string partition = partition_of(traced); partition != default_) {
      request.partitions = {partition};
    }
    if (has_name(configuration.qos, "normal")) request.qos = "normal";  // sacctmgr's default
    if (traced.requested_time) {
      // Slurm keeps time limits in minutes; rounding down could kill a job that fits its limit.
      request.time_limit = std::chrono::ceil<std::chrono::minutes>(*traced.requested_time);
    }
    if (traced.requested_memory_kib) {
      // Rounded up to MiB: a job must not get less than it asked for.
      request.memory =
          sched::MemoryPerCpu{sched::MemoryMiB{(*traced.requested_memory_kib + 1023) / 1024}};
    }
    const double submit = static_cast<double>(traced.submit.count()) * factor;
    const base::Instant at{base::Duration{std::llround(submit)}};
    request.submit_time = at;
    scenario_.inputs.push_back({.at = at, .happening = simulate::SubmitJob{request.id}});
    scenario_.jobs.push_back(std::move(job));
    return {};
  }

  // How many jobs are missing, for each reason: totals without them would be taken for the trace's.
  void warn() {
    for (const auto& [why, count] : left_out_) {
      scenario_.warnings.push_back(std::to_string(count) +
                                   " jobs of the trace are left out: " + why);
    }
  }

  Scenario& scenario_;
  std::int64_t cpus_ = 0;
  std::map<std::string, std::int64_t> cpus_of_partition_;
  std::set<std::string> labels_;
  std::string default_;                          // the default partition; empty = none
  std::map<std::string, std::size_t> left_out_;  // by reason
};

}  // namespace

base::Status add_trace(const SwfTrace& trace, std::optional<double> load, Scenario& scenario) {
  return TraceJobs{scenario}.add(trace, load);
}

}  // namespace cli
