#include "e2e/devcluster/bench.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "e2e/devcluster/apply.h"
#include "e2e/devcluster/cluster_view.h"

namespace devcluster {
namespace {

using base::Code;
using base::Error;
using nlohmann::json;
using std::chrono::milliseconds;
using std::chrono::seconds;

// Enough for a median that one slow start does not move.
constexpr int kStarts = 10;
// Both are long against a clock tick (10 ms), which is the unit of CPU time in /proc.
constexpr seconds kIdleTime{10};
constexpr seconds kRotationTime{20};
constexpr seconds kPatience{30};
// The shortest slice there is, so that an agent's work per switch shows in the coarse clock of
// /proc.
constexpr const char* kRotationSlice = "100ms";
constexpr double kMebibyte = 1024.0 * 1024.0;

// The measurements on one cluster that runs:
// 1. time_one_start(), ten times: from the apply to processes on all nodes
// 2. idle(): the operator's CPU with nothing to do, and the memory of both programs
// 3. rotate(): the CPU of both with two gangs that switch ten times a second
class Bench {
 public:
  Bench(const kube::Clock& clock, Devcluster& cluster, const BenchOptions& options,
        Interrupts& interrupts)
      : clock_{clock}, cluster_{cluster}, options_{options}, interrupts_{interrupts} {}

  base::Status run(json& figures);

 private:
  base::Status apply_files();
  base::Result<base::Duration> time_one_start(const std::string& name);
  base::Status idle(json& figures);
  base::Status rotate(json& figures);
  base::Status wait_until(const std::string& what, const std::function<bool()>& condition);
  ProcessUsage usage(const std::string& component) const;

  const kube::Clock& clock_;
  Devcluster& cluster_;
  const BenchOptions& options_;
  Interrupts& interrupts_;
  json job_;
};

// base::Duration counts microseconds.
double millis(base::Duration time) {
  return static_cast<double>(time.count()) / 1000.0;
}

// 100 is one CPU in use all the time.
double percent_of_core(base::Duration cpu_time, base::Duration time) {
  return 100.0 * static_cast<double>(cpu_time.count()) / static_cast<double>(time.count());
}

std::string job_path(const std::string& name) {
  return "/apis/kubegang.io/v1alpha1/namespaces/default/jobs/" + name;
}

// By looking every millisecond. `what` begins the sentence of a time-out.
base::Status Bench::wait_until(const std::string& what, const std::function<bool()>& condition) {
  const base::Duration end = clock_.monotonic() + kPatience;
  while (!condition()) {
    // A millisecond is the resolution of the start times that are measured here.
    if (interrupts_.wait(milliseconds{1})) return Error{Code::kCancelled, "stopped"};
    if (clock_.monotonic() > end) return Error{Code::kTimeout, what + " takes more than 30 s"};
  }
  return {};
}

// Counts all processes of the component, since an agent is two: the supervisor and its worker.
ProcessUsage Bench::usage(const std::string& component) const {
  return usage_of(cluster_.components().processes(component));
}

// Returns the demo's configuration and partition, with the bench's slice. Jobs are applied later
// under names of their own; the first one of the demo's file is the pattern.
base::Status Bench::apply_files() {
  for (const char* file : {"/scheduler-config.yaml", "/partitions.yaml"}) {
    const auto objects = read_manifests(options_.examples_directory + file);
    if (!objects.ok()) return objects.error();
    for (json object : *objects) {
      if (object["kind"] == "SchedulerConfig") object["spec"]["timeSlice"] = kRotationSlice;
      if (const auto status = apply_object(cluster_.transport(), object); !status.ok())
        return status;
    }
  }
  const auto jobs = read_manifests(options_.examples_directory + "/gang-jobs.yaml");
  if (!jobs.ok()) return jobs.error();
  job_ = jobs->front();
  return wait_until("the first word of the agents", [&] {
    const auto view = read_cluster(cluster_.transport());
    return view.ok() && agents_ready(*view) == cluster_.config().nodes.size();
  });
}

// From the apply to the moment at which all processes run, by the kernel's word.
base::Result<base::Duration> Bench::time_one_start(const std::string& name) {
  job_["metadata"]["name"] = name;
  const base::Duration begin = clock_.monotonic();
  if (const auto status = apply_object(cluster_.transport(), job_); !status.ok())
    return status.error();
  const auto all_run = [&] {
    const std::vector<std::string> nodes = cluster_.node_names();
    return std::all_of(nodes.begin(), nodes.end(), [&](const std::string& node) {
      return !os::processes_below(cluster_.kubelet().node_cgroup(node)).empty();
    });
  };
  if (const auto status = wait_until("a start", all_run); !status.ok()) return status.error();
  const base::Duration time = clock_.monotonic() - begin;
  // The result shows in the wait that follows: pods that stay are reported as a timeout.
  (void)call_api(cluster_.transport(), kube::Method::kDelete, job_path(name), nullptr);
  const auto status = wait_until("the end of a job", [&] {
    const auto pods = pod_names(cluster_.transport());
    return pods.ok() && pods->empty();
  });
  if (!status.ok()) return status.error();
  return time;
}

// CPU as a share of one core over kIdleTime.
base::Status Bench::idle(json& figures) {
  const base::Duration begin = clock_.monotonic();
  const ProcessUsage before = usage(std::string{kOperator});
  if (interrupts_.wait(kIdleTime)) return Error{Code::kCancelled, "stopped"};
  const ProcessUsage after = usage(std::string{kOperator});
  // One agent stands for all: they are equal and idle.
  const ProcessUsage agent = usage(agent_name(cluster_.node_names().front()));
  figures["operator_idle_cpu_percent"] =
      percent_of_core(after.cpu_time - before.cpu_time, clock_.monotonic() - begin);
  figures["operator_resident_mib"] = static_cast<double>(after.resident_bytes) / kMebibyte;
  figures["agent_resident_mib"] = static_cast<double>(agent.resident_bytes) / kMebibyte;
  return {};
}

// Two gangs at a slice of 100 ms: what an agent needs for ten switches a second.
base::Status Bench::rotate(json& figures) {
  for (const char* name : {"first", "second"}) {
    job_["metadata"]["name"] = name;
    if (const auto status = apply_object(cluster_.transport(), job_); !status.ok()) return status;
    const auto status = wait_until("the start of a job", [&] {
      const auto view = read_cluster(cluster_.transport());
      const kube::Job* job = view.ok() ? view->job(name) : nullptr;
      return job != nullptr && job->status.start_time.has_value();
    });
    if (!status.ok()) return status;
  }
  const std::string agent = agent_name(cluster_.node_names().front());
  // The first turns, with the starts of the second job, do not count.
  if (interrupts_.wait(seconds{5})) return Error{Code::kCancelled, "stopped"};
  const base::Duration begin = clock_.monotonic();
  const ProcessUsage before = usage(agent);
  const ProcessUsage operator_before = usage(std::string{kOperator});
  if (interrupts_.wait(kRotationTime)) return Error{Code::kCancelled, "stopped"};
  const base::Duration time = clock_.monotonic() - begin;
  figures["agent_cpu_percent_at_100ms"] =
      percent_of_core(usage(agent).cpu_time - before.cpu_time, time);
  figures["operator_cpu_percent_at_100ms"] =
      percent_of_core(usage(std::string{kOperator}).cpu_time - operator_before.cpu_time, time);
  return {};
}

// The starts come before the idle measurement, so that the operator idles with what jobs have left
// behind in it.
base::Status Bench::run(json& figures) {
  if (const auto status = apply_files(); !status.ok()) return status;
  std::vector<double> times;
  // One after the other: each begins with free nodes.
  for (int i = 0; i < kStarts; ++i) {
    const auto time = time_one_start("start-" + std::to_string(i));
    if (!time.ok()) return time.error();
    times.push_back(millis(*time));
  }
  std::sort(times.begin(), times.end());
  figures["job_applied_to_running_ms_p50"] = times[times.size() / 2];
  figures["job_applied_to_running_ms_max"] = times.back();
  if (const auto status = idle(figures); !status.ok()) return status;
  return rotate(figures);
}

}  // namespace

// SOURCE: proc(5): stat fields 14 and 15 are CPU time in clock ticks, in user and in kernel mode;
// statm's second field is the resident size in pages. A process that has ended meanwhile is passed
// over.
// Files of /proc are read without a lock on the process: between the two files it may end, and then
// its CPU time counts and its memory does not.
ProcessUsage usage_of(const std::vector<pid_t>& pids) {
  ProcessUsage out;
  for (const pid_t pid : pids) {
    const std::string directory = "/proc/" + std::to_string(pid);
    std::ifstream stat{directory + "/stat"};
    std::string text{std::istreambuf_iterator<char>{stat}, {}};
    // The name of a program may contain spaces and parentheses itself, so fields are counted from
    // the last one.
    const auto name_end = text.rfind(')');
    if (name_end == std::string::npos) continue;
    std::istringstream fields{text.substr(name_end + 1)};
    std::string field;
    std::int64_t user = 0;
    std::int64_t system = 0;
    for (int number = 3; number < 14; ++number) fields >> field;  // up to cmajflt
    fields >> user >> system;
    const std::int64_t ticks_per_second = ::sysconf(_SC_CLK_TCK);
    out.cpu_time += base::Duration{(user + system) * 1'000'000 / ticks_per_second};
    std::ifstream memory{directory + "/statm"};
    std::int64_t size = 0;
    std::int64_t resident = 0;
    memory >> size >> resident;
    out.resident_bytes += resident * ::sysconf(_SC_PAGESIZE);
  }
  return out;
}

// Runs the whole life of a cluster: what is measured first is its own start. The figures are
// written only when all have been measured, so a file is never half a result.
base::Status run_bench(const kube::Clock& clock, const DevclusterConfig& config,
                       const BenchOptions& options, Interrupts& interrupts) {
  json figures = json::object();
  const base::Duration begin = clock.monotonic();
  auto cluster = Devcluster::start(clock, config);
  if (!cluster.ok()) return cluster.error();
  figures["ready_ms"] = millis(clock.monotonic() - begin);
  // Destroyed before the cluster, to which it refers.
  Bench bench{clock, **cluster, options, interrupts};
  if (const auto status = bench.run(figures); !status.ok()) return status;
  std::error_code error;
  std::filesystem::create_directories(std::filesystem::path{options.out}.parent_path(), error);
  std::ofstream{options.out} << figures.dump(2) << "\n";
  std::printf("%s\n", figures.dump(2).c_str());
  return {};
}

}  // namespace devcluster
