#include "e2e/kubernetes/bench/queue_watch.h"

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>
#include <thread>

#include "e2e/kubernetes/bench/fake_cluster.h"

// The API server's CPU time is measured in windows of 40 s: one without watchers, one with ten,
// three times, each pair close together, because what the server needs by itself drifts over
// minutes. Each window's load is in cores, and one watcher's share is a tenth of the difference of
// the medians. The watchers' first lists fall between the two windows and are shown apart: a queue
// that is watched for hours lists once.
//
// All of it happens twice: with turns alone, which cause no write and so no event for a watcher,
// and with five jobs a second that end while others come.
namespace kubernetes_bench {
namespace {

using base::Status;
using kube::Method;
using nlohmann::json;
using std::chrono::milliseconds;
using std::chrono::seconds;

// Two of them fill a node's cores, and two share each core: on 1,000 nodes 4,000 jobs run, and
// 1,000 wait.
constexpr int kJobs = 5000;
constexpr int kCpusOfJob = kCoresPerNode / 2;
constexpr int kRunningOnNode = 4;
constexpr int kWatchers = 10;  // one costs less than the noise
constexpr int kRounds = 3;     // of a window without and one with watchers
// Long against the ticks of /proc, and against the operator's periods of seconds.
constexpr seconds kWindow{40};
// Work that a launch leaves goes on for minutes.
constexpr seconds kSettled{180};
// Until the first lists are over, and the first tables printed.
constexpr seconds kListed{20};
constexpr milliseconds kBetweenEnds{200};

std::string name_of(int job) {
  return "r" + std::to_string(job);
}

// Returns the middle one of an odd number of values: of three, one that is off does not count.
double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

json job_of(int number) {
  return gang_job(kTurns, name_of(number),
                  {{"partitions", {kPartition}},
                   {"resources", {{"tasks", 1}, {"cpusPerTask", kCpusOfJob}}}});
}

}  // namespace

// With turns four of these jobs share a node, without only two.
Status QueueWatch::measure(json& rows) {
  if (Status s = allow_turns(api_, true); !s.ok()) return s;
  auto run = OperatorRun::start(options_, clock_);
  if (!run.ok()) return run.error();
  if (Status s = fill(*run, kJobs / options_.scale); !s.ok()) return s;
  std::this_thread::sleep_for(kSettled);
  for (const bool jobs_end : {false, true}) {
    auto figures = row(jobs_end);
    if (!figures.ok()) return figures.error();
    rows.push_back(std::move(*figures));
  }
  return {};  // the jobs go with the cluster, this is the last measurement
}

// As many jobs as there is room for run when this returns, and the others wait.
Status QueueWatch::fill(OperatorRun& run, int jobs) {
  Status s = api_.wait_until("the operator is ready", [&] { return run.is_ready(); });
  if (!s.ok()) return s;
  std::vector<json> objects;
  for (; made_ < jobs; ++made_) objects.push_back(job_of(made_));
  if (s = api_.create_all(gang_jobs_path(kTurns), objects); !s.ok()) return s;
  const int running = std::min(jobs, options_.nodes * kRunningOnNode);
  return api_.wait_until(std::to_string(running) + " jobs run", [&] {
    const auto metrics = run.metrics();
    if (!metrics.ok()) return false;
    double have = 0;
    for (const char* state : {"running", "suspended"}) {
      const auto found =
          metrics->find(std::string{"kubegang_operator_jobs{state=\""} + state + "\"}");
      if (found != metrics->end()) have += found->second;
    }
    return have >= running;
  });
}

// Returns the CPU time of the real kube-apiserver since its start; run-bench has written its PID.
double QueueWatch::server_seconds() const {
  pid_t pid = 0;
  std::ifstream{options_.state + "/pids/kube-apiserver"} >> pid;
  return cpu_seconds(pid);
}

// The oldest job goes, which runs, and a new one comes to the end of the queue.
Status QueueWatch::replace_one() {
  const std::string path = gang_jobs_path(kTurns);
  if (auto s = api_.call(Method::kDelete, path + "/" + name_of(ended_++)).status(); !s.ok()) {
    return s;
  }
  return api_.call(Method::kPost, path, job_of(made_++)).status();
}

// Returns the server's CPU time per second of the window. The ends keep their pace by the clock:
// one that took long makes the next pause shorter, and not the pace slower.
base::Result<double> QueueWatch::window(bool jobs_end) {
  const double before = server_seconds();
  const base::Duration begin = clock_.monotonic();
  base::Duration next = begin;
  while (clock_.monotonic() < begin + kWindow) {
    if (jobs_end) {
      if (Status s = replace_one(); !s.ok()) return s.error();
    }
    next += kBetweenEnds;
    std::this_thread::sleep_for(next - clock_.monotonic());
  }
  const auto took = std::chrono::duration<double>(clock_.monotonic() - begin).count();
  return (server_seconds() - before) / took;
}

// Real programs with connections of their own, as ten users have them; they end when the result
// does. Their output goes nowhere: a terminal costs the server nothing.
base::Result<std::vector<ChildProcess>> QueueWatch::start_watchers() {
  std::vector<ChildProcess> watchers;
  for (int i = 0; i < kWatchers; ++i) {
    auto child = ChildProcess::start({options_.plugin, "--kubeconfig", options_.kubeconfig, "queue",
                                      "-n", kTurns, "--watch"},
                                     "/dev/null");
    if (!child.ok()) return child.error();
    watchers.push_back(std::move(*child));
  }
  return watchers;
}

// 1. in each round a window without watchers, their start, and a window with them
// 2. the lists in the second window are counted: none is expected, since a watcher lists once
// 3. the medians, per watcher
base::Result<json> QueueWatch::row(bool jobs_end) {
  std::vector<double> without;
  std::vector<double> with;
  std::vector<double> start;
  json requests = json::object();
  for (int round = 0; round < kRounds; ++round) {
    auto load = window(jobs_end);
    if (!load.ok()) return load.error();
    without.push_back(*load);
    double before = server_seconds();
    auto watchers = start_watchers();
    if (!watchers.ok()) return watchers.error();
    std::this_thread::sleep_for(kListed);
    // Without what the server would have needed in that time anyway.
    start.push_back((server_seconds() - before - *load * kListed.count()) / kWatchers);
    const auto counts_before = api_.request_counts();
    if (load = window(jobs_end); !load.ok()) return load.error();
    with.push_back(*load);
    const auto counts_after = api_.request_counts();
    if (!counts_before.ok() || !counts_after.ok()) return counts_after.error();
    for (const auto& [what, count] : *counts_after) {
      const auto old = counts_before->find(what);
      const double more = count - (old == counts_before->end() ? 0 : old->second);
      const bool is_followed = what == "LIST jobs" || what == "LIST nodetimetables";
      if (is_followed) requests[what] = requests.value(what, 0.0) + more;
    }
  }
  const double each = (median(with) - median(without)) / kWatchers;
  json figures{{"jobs", made_ - ended_},
               {"jobs_end_per_second", jobs_end ? 1000.0 / kBetweenEnds.count() : 0.0},
               {"watchers", kWatchers},
               {"server_cores_without", without},
               {"server_cores_with", with},
               {"share_of_one_watcher", each / median(without)},
               {"cores_of_one_watcher", each},
               {"first_lists_cpu_seconds_of_one", median(start)},
               {"lists_in_windows_with", requests}};
  std::printf("queue --watch, %d jobs, %g end per second: API server %.3f cores without, %.3f with "
              "%d; one of them %.4f (%.2f %%), its first lists %.2f s\n",
              made_ - ended_, figures["jobs_end_per_second"].get<double>(), median(without),
              median(with), kWatchers, each, 100 * each / median(without), median(start));
  std::fflush(stdout);
  return figures;
}

}  // namespace kubernetes_bench
