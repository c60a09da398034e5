#include "e2e/kubernetes/bench/many_jobs.h"

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <thread>

#include "api/job.h"
#include "e2e/kubernetes/bench/fake_cluster.h"
#include "e2e/kubernetes/bench/operator_run.h"

// Does an operator that has many Jobs to look after cost more? Two kinds of many: finished ones,
// which no user has deleted, and waiting ones, which the scheduler looks at. For 0, 1,000, 5,000
// and 20,000 of them, three figures each: what a start costs, what a minute without events costs,
// and what fifty lives of other jobs cost beside them. The first row has the costs that do not
// depend on the number.
namespace kubernetes_bench {
namespace {

using base::Status;
using kube::Method;
using nlohmann::json;
using std::chrono::seconds;

// The first row has none, so that the others show what jobs cost by themselves.
constexpr int kCounts[] = {0, 1000, 5000, 20'000};
// Long against the ticks of /proc.
constexpr seconds kIdle{20};
constexpr int kLives = 50;  // jobs of one pod that come to life, one wave
constexpr const char* kMany = "many";
constexpr const char* kBeside = "beside";

const char* name_of(bool finished) {
  return finished ? "finished" : "waiting";
}

}  // namespace

// Finished jobs first: they need no operator to be made.
Status ManyJobs::measure(json& rows) {
  if (Status s = as_operator_.connect(options_.operator_kubeconfig); !s.ok()) return s;
  for (const char* ns : {kMany, kBeside}) {
    if (Status s = api_.make_namespace(ns); !s.ok()) return s;
  }
  for (const Kind kind : {Kind::kFinished, Kind::kWaiting}) {
    if (Status s = measure(kind, rows); !s.ok()) return s;
    if (Status s = api_.clean(kMany, gang_jobs_path(kMany)); !s.ok()) return s;
  }
  return {};
}

// The jobs grow from row to row; each row has an operator of its own, which finds them all at its
// start.
Status ManyJobs::measure(Kind kind, json& rows) {
  if (kind == Kind::kWaiting) {
    if (Status s = block_the_narrow_partition(); !s.ok()) return s;
  }
  // How many there are from the rows before; the next row only adds to them.
  int made = 0;
  for (const int full : kCounts) {
    // `scale` makes a quick trial of the benchmark itself.
    const int count = full / options_.scale;
    if (Status s = make(kind, made, count); !s.ok()) return s;
    made = count;
    auto row = run_beside();
    if (!row.ok()) return row.error();
    (*row)["kind"] = name_of(kind == Kind::kFinished);
    (*row)["jobs"] = count;
    std::printf("%6d %-8s  start %6.2f s  idle %5.2f s/min  %d lives %6.2f s of CPU  %5.1f MiB\n",
                count, name_of(kind == Kind::kFinished), (*row)["start_cpu_seconds"].get<double>(),
                (*row)["idle_cpu_seconds_per_minute"].get<double>(), kLives,
                (*row)["lives_cpu_seconds"].get<double>(), (*row)["rss_mebibytes"].get<double>());
    std::fflush(stdout);
    rows.push_back(std::move(*row));
  }
  return {};
}

// As the operator leaves them when they have ended; and ones that it has yet to see.
// A finished job's status is written with the operator's rights: the chart's policy denies it to
// all others.
// Jobs [first, last), all connections at once.
Status ManyJobs::make(Kind kind, int first, int last) {
  const auto path = gang_jobs_path(kMany);
  return api_.for_each(static_cast<std::size_t>(last - first), [&](std::size_t i) -> Status {
    const std::string name = "j" + std::to_string(first + static_cast<int>(i));
    const char* partition = kind == Kind::kFinished ? kPartition : kNarrowPartition;
    auto job = api_.call(Method::kPost, path, gang_job(kMany, name, {{"partitions", {partition}}}));
    if (!job.ok() || kind == Kind::kWaiting) return job.status();
    const json condition{{"type", "Finished"},
                         {"status", "True"},
                         {"reason", "Completed"},
                         {"message", "the job has ended"},
                         {"lastTransitionTime", "2020-01-01T00:00:00Z"}};
    return as_operator_
        .call(Method::kPatch, path + "/" + name + "/status",
              {{"status",
                {{"state", "Completed"},
                 {"term", 0},
                 {"exitCode", 0},
                 {"starts", 1},
                 {"conditions", {condition}}}}})
        .status();
  });
}

// One job takes the node of the narrow partition, so that all others there wait.
Status ManyJobs::block_the_narrow_partition() {
  auto run = OperatorRun::start(options_, clock_);
  if (!run.ok()) return run.error();
  const auto made = api_.call(Method::kPost, gang_jobs_path(kMany),
                              gang_job(kMany, "blocks", {{"partitions", {kNarrowPartition}}}));
  if (!made.ok()) return made.error();
  return api_.wait_until("the narrow partition is taken", [&] {
    const auto job = api_.call(Method::kGet, gang_jobs_path(kMany) + "/blocks");
    return job.ok() && job->value(json::json_pointer{"/status/state"}, "") == "Running";
  });
}

// 1. CPU time until the operator has looked at all jobs and rests
// 2. CPU time while nothing happens
// 3. CPU time and requests of the lives of fifty other jobs
// No election and no other operator runs, so all of the process's CPU time is what is asked for.
base::Result<json> ManyJobs::run_beside() {
  auto run = OperatorRun::start(options_, clock_);
  if (!run.ok()) return run.error();
  if (Status s = api_.wait_until("the operator is ready", [&] { return run->is_ready(); });
      !s.ok()) {
    return s.error();
  }
  // A new leader looks at every job once; waiting ones must get numbers and be queued first.
  double before = -1;
  const auto rests = [&] {
    const double now = cpu_seconds(run->pid());
    // Two ticks of /proc, which counts CPU time in hundredths of a second.
    const bool same = now - std::exchange(before, now) < 0.02;
    std::this_thread::sleep_for(seconds{1});
    return same;
  };
  if (Status s = api_.wait_until("the operator has looked at all jobs", rests); !s.ok()) {
    return s.error();
  }
  // From the process's beginning, so it is the whole cost of a start.
  json row{{"start_cpu_seconds", cpu_seconds(run->pid())}};
  double cpu = cpu_seconds(run->pid());
  std::this_thread::sleep_for(kIdle);
  row["idle_cpu_seconds_per_minute"] = (cpu_seconds(run->pid()) - cpu) * 60 / kIdle.count();
  row["rss_mebibytes"] = rss_mebibytes(run->pid());
  const auto metrics_before = run->metrics();
  if (!metrics_before.ok()) return metrics_before.error();
  cpu = cpu_seconds(run->pid());
  // Names of jobs have the number of the run, so none is used twice.
  if (Status s = lives_of_others(++lives_); !s.ok()) return s.error();
  row["lives_cpu_seconds"] = cpu_seconds(run->pid()) - cpu;
  const auto metrics_after = run->metrics();
  if (!metrics_after.ok()) return metrics_after.error();
  row["lives"] = OperatorRun::growth(*metrics_before, *metrics_after);
  row["peak_rss_mebibytes"] = peak_rss_mebibytes(run->pid());
  return row;
}

// Submitted, ready, canceled, gone.
Status ManyJobs::lives_of_others(int run) {
  const std::string path = gang_jobs_path(kBeside);
  std::vector<json> jobs;
  for (int i = 0; i < kLives; ++i) {
    jobs.push_back(gang_job(kBeside, "r" + std::to_string(run) + "-" + std::to_string(i),
                            {{"partitions", {kPartition}}}));
  }
  if (Status s = api_.create_all(path, jobs); !s.ok()) return s;
  Status ready = api_.wait_until("the other jobs are ready", [&] {
    const auto list = api_.call(Method::kGet, path);
    if (!list.ok()) return false;
    return std::all_of((*list)["items"].begin(), (*list)["items"].end(), [](const json& object) {
      const auto job = kube::decode<kube::Job>(object);
      return job.ok() && job->status.start_time.has_value();
    });
  });
  if (!ready.ok()) return ready;
  return api_.clean(kBeside, path);
}

}  // namespace kubernetes_bench
