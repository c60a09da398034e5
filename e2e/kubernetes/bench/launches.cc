#include "e2e/kubernetes/bench/launches.h"

#include <unistd.h>

#include <cmath>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string_view>
#include <thread>

#include "api/wellknown.h"
#include "e2e/kubernetes/bench/fake_cluster.h"
#include "e2e/kubernetes/bench/operator_run.h"

// A comparison shows what a launch costs: the ways of launches.h make the same pods on the same
// server within minutes, each alone. The plain client is the floor, since no operator can make pods
// with fewer requests than one for each; what a way needs beyond it is its own. Ratios of CPU time
// are the figures to look at on a machine that is busy, those of times on one that is idle.
namespace kubernetes_bench {
namespace {

using base::Duration;
using base::Status;
using kube::Method;
using nlohmann::json;

// Connections, caches and code paths of the API server are warm after these; the first measurement
// would be slower without.
constexpr int kWarmUpPods = 200;
// The control plane is at rest when it needs less of one core than this, for that time.
constexpr double kRestingCores = 0.4;
constexpr Duration kRest = std::chrono::seconds{3};

double seconds_between(Duration from, Duration to) {
  return std::chrono::duration<double>(to - from).count();
}

// Returns the growth of each counter that has grown, by name. A counter that was not there before
// counts from 0.
json growth(const std::map<std::string, double>& before,
            const std::map<std::string, double>& after) {
  json out = json::object();
  for (const auto& [name, value] : after) {
    const auto start = before.find(name);
    const double more = value - (start == before.end() ? 0 : start->second);
    if (more > 0) out[name] = more;
  }
  return out;
}

// Each count by how many things it was for, to three decimals.
json divided(const json& counts, int things) {
  json out = json::object();
  for (const auto& [name, count] : counts.items()) {
    out[name] = std::round(count.get<double>() * 1000 / things) / 1000;
  }
  return out;
}

}  // namespace

// Reads the control plane's processes, the operator if it runs, and this one.
Launches::Counts Launches::cpu_by_process(pid_t operator_pid) const {
  Counts out;
  for (const auto& file : std::filesystem::directory_iterator{options_.state + "/pids"}) {
    pid_t pid = 0;
    std::ifstream{file.path()} >> pid;
    out[file.path().filename()] = cpu_seconds(pid);
  }
  if (operator_pid != 0) out["kubegang-operator"] = cpu_seconds(operator_pid);
  out["benchmark"] = cpu_seconds(::getpid());
  return out;
}

// Waits until three seconds in a row cost the control plane less than 0.4 cores. Deletions of the
// last measurement go on for long after their objects are gone from lists.
Status Launches::settle() {
  const auto total = [this] {
    double seconds = 0;
    for (const auto& [name, used] : cpu_by_process(0)) seconds += used;
    return seconds;
  };
  const double rest = std::chrono::duration<double>(kRest).count();
  return api_.wait_until("the control plane is at rest", [&] {
    const double before = total();
    std::this_thread::sleep_for(kRest);
    return total() - before < kRestingCores * rest;
  });
}

// Makes one measurement: from the first request until the last pod is Running, with the CPU time
// and the requests in between. It begins when the control plane rests, so that the one before does
// not count. The counters are read around it, after the watch has begun, so the watch itself is not
// in them.
// 1. wait until the control plane rests
// 2. watch the pods, then read the counters
// 3. create; from here on the clock runs
// 4. wait for the last pod, then read the counters again
base::Result<json> Launches::submission(const std::string& ns,
                                        const std::function<Status()>& create,
                                        std::size_t pods_count, pid_t operator_pid) {
  if (Status is = settle(); !is.ok()) return is.error();
  PodWatch watch{api_.transport(), clock_, ns};
  const auto requests_before = api_.request_counts();
  if (!requests_before.ok()) return requests_before.error();
  const Counts cpu_before = cpu_by_process(operator_pid);
  const Duration began = clock_.monotonic();
  if (Status made = create(); !made.ok()) return made.error();
  // How long the client alone took, which is the least that any way can take.
  const double submitted = seconds_between(began, clock_.monotonic());
  const auto times = watch.wait_for(pods_count, kPatience);
  if (!times.ok()) return times.error();
  const Counts cpu_after = cpu_by_process(operator_pid);
  const auto requests_after = api_.request_counts();
  if (!requests_after.ok()) return requests_after.error();
  return json{{"submitted_seconds", submitted},
              {"last_bound_seconds", seconds_between(began, times->last_bound)},
              {"last_running_seconds", seconds_between(began, times->last_running)},
              {"watches_ended", times->watches_ended},
              {"cpu_seconds", growth(cpu_before, cpu_after)},
              {"requests", growth(*requests_before, *requests_after)}};
}

// REQUIRES: `objects` outlives the result.
std::function<Status()> Launches::creation_of(const std::string& path,
                                              const std::vector<json>& objects) {
  return [this, path, &objects] { return api_.create_all(path, objects); };
}

// One task is one pod, as in a batch Job.
// The nodes have room for all of them, so no job waits for another and only the launch is measured.
std::vector<json> Launches::gang_jobs(const Shape& shape, const char* ns) const {
  std::vector<json> jobs;
  for (int i = 0; i < shape.jobs; ++i) {
    jobs.push_back(
        gang_job(ns, "j" + std::to_string(i),
                 {{"partitions", {kPartition}},
                  {"resources", {{"tasks", shape.pods_per_job}, {"cpusPerTask", kCpusPerPod}}},
                  {"podPolicy", "PerTask"},
                  {"network", options_.network}}));
  }
  return jobs;
}

// Starts an operator for each measurement, so that its caches are as empty each time. It has
// found the cluster as it is, and the agents have answered, before the clock starts.
base::Result<json> Launches::by_operator(const std::string& ns, const std::string& path,
                                         const std::vector<json>& jobs, std::size_t pods_count) {
  auto run = OperatorRun::start(options_, clock_);
  if (!run.ok()) return run.error();
  const auto ready = [&] {
    return run->is_ready() && agents_.ready_nodes() == static_cast<std::size_t>(options_.nodes);
  };
  if (Status is = api_.wait_until("operator and fake agents are ready", ready); !is.ok()) {
    return is.error();
  }
  // Until it has heard of the last acknowledgement.
  std::this_thread::sleep_for(std::chrono::seconds{2});
  const auto metrics_before = run->metrics();
  if (!metrics_before.ok()) return metrics_before.error();
  const std::int64_t acknowledged_before = agents_.acknowledgements();
  auto row = submission(ns, creation_of(path, jobs), pods_count, run->pid());
  if (!row.ok()) return row;
  const auto metrics_after = run->metrics();
  if (!metrics_after.ok()) return metrics_after.error();
  (*row)["operator"] = OperatorRun::growth(*metrics_before, *metrics_after);
  // The peak of this process alone, since it is new.
  (*row)["operator"]["peak_rss_mebibytes"] = peak_rss_mebibytes(run->pid());
  (*row)["operator_cpu_milliseconds_per_pod"] =
      row->at("cpu_seconds").value("kubegang-operator", 0.0) * 1000 /
      static_cast<double>(pods_count);
  (*row)["acknowledgements"] = agents_.acknowledgements() - acknowledged_before;
  return row;
}

// Returns the pods that the operator made, for a plain client to make again in its own namespace.
base::Result<std::vector<json>> Launches::made_pods() {
  std::vector<json> pods;
  std::string go_on;
  // In pages, as the API server is asked by any client.
  do {
    auto page = api_.call(Method::kGet, pods_path(kGang) + "?limit=500" +
                                            (go_on.empty() ? "" : "&continue=" + go_on));
    if (!page.ok()) return page.error();
    for (json& pod : (*page)["items"]) {
      pods.push_back({{"apiVersion", "v1"},
                      {"kind", "Pod"},
                      // Without owner, UID and version, which belong to the pods that were made.
                      {"metadata",
                       {{"name", pod["metadata"]["name"]},
                        {"namespace", kLimit},
                        {"labels", pod["metadata"].value("labels", json::object())},
                        {"annotations", pod["metadata"].value("annotations", json::object())}}},
                      {"spec", std::move(pod["spec"])}});
    }
    go_on = (*page)["metadata"].value("continue", "");
  } while (!go_on.empty());
  return pods;
}

// backoffLimit 0, so that a pod that failed is not made again and the count of pods is that of the
// shape.
std::vector<json> Launches::batch_jobs(const Shape& shape, const char* ns,
                                       const std::string& managed_by) {
  std::vector<json> jobs;
  for (int i = 0; i < shape.jobs; ++i) {
    // The same container as in our Jobs, with the CPUs as requests: kube-scheduler places by them.
    const json pod_spec{{"restartPolicy", "Never"},
                        {"containers", {container({{"cpu", std::to_string(kCpusPerPod)}})}}};
    json job{{"apiVersion", "batch/v1"},
             {"kind", "Job"},
             {"metadata", {{"name", "j" + std::to_string(i)}, {"namespace", ns}}},
             {"spec",
              {{"parallelism", shape.pods_per_job},
               {"completions", shape.pods_per_job},
               {"backoffLimit", 0},
               {"template", {{"spec", pod_spec}}}}}};
    if (!managed_by.empty()) {
      job["spec"]["managedBy"] = managed_by;
      job["metadata"]["annotations"] = {{"kubegang.io/partition", kPartition}};
    }
    jobs.push_back(std::move(job));
  }
  return jobs;
}

// Makes pods with their node, the simplest things that go through all parts of the control plane.
Status Launches::warm_up() {
  std::vector<json> pods;
  for (int i = 0; i < kWarmUpPods; ++i) {
    pods.push_back({{"apiVersion", "v1"},
                    {"kind", "Pod"},
                    {"metadata", {{"name", "w" + std::to_string(i)}, {"namespace", kLimit}}},
                    {"spec",
                     {{"nodeName", "k" + std::to_string(i % options_.nodes + 1)},
                      {"containers", {container(nullptr)}}}}});
  }
  const auto done = submission(kLimit, creation_of(pods_path(kLimit), pods), pods.size(), 0);
  return done.ok() ? api_.clean(kLimit, "") : done.status();
}

// KWOK stands for the kubelets, whose CPU time is that of the nodes and not of the control plane.
// A way that failed ends the shape, with what was measured before it in the row.
Status Launches::keep(const Shape& shape, const char* name, base::Result<json> figures,
                      json& row) const {
  if (!figures.ok()) return figures.error().with_context(shape.name() + ", " + name);
  row[name] = std::move(*figures);
  double control = 0;
  for (const auto& [process, seconds] : row[name]["cpu_seconds"].items()) {
    if (process != "kwok") control += seconds.get<double>();  // in place of kubelets
  }
  row[name]["control_cpu_seconds"] = control;
  row[name]["requests_per_pod"] = divided(row[name]["requests"], shape.pods());
  if (name != std::string_view{kLimit}) {
    row[name]["requests_per_job"] = divided(row[name]["requests"], shape.jobs);
  }
  std::printf("%-10s %-10s last bound %8.2f s   last Running %8.2f s   %8.2f s of CPU\n",
              shape.name().c_str(), name, row[name]["last_bound_seconds"].get<double>(),
              row[name]["last_running_seconds"].get<double>(), control);
  std::fflush(stdout);
  return {};
}

// Compares each of `ways` to each of `bases`, by both times, and by CPU time, which a busy machine
// spoils less. REQUIRES: all of them are in `row`.
void Launches::compare(const std::vector<std::string>& ways, const std::vector<std::string>& bases,
                       json& row) {
  for (const std::string& way : ways) {
    for (const std::string& base : bases) {
      for (const char* what :
           {"last_bound_seconds", "last_running_seconds", "control_cpu_seconds"}) {
        row["ratios"][way + "_to_" + base + "_" + what] =
            row[way][what].get<double>() / row[base][what].get<double>();
      }
    }
  }
}

// With Kubernetes' own controllers and no operator.
Status Launches::measure_batch(const Shape& shape, json& row) {
  const auto pods_count = static_cast<std::size_t>(shape.pods());
  const std::string theirs = batch_jobs_path(kBatch);
  const auto jobs = batch_jobs(shape, kBatch, "");
  auto figures = submission(kBatch, creation_of(theirs, jobs), pods_count, 0);
  if (Status s = keep(shape, kBatch, std::move(figures), row); !s.ok()) return s;
  return api_.clean(kBatch, theirs);
}

// Makes each Job just before its pods, so that the client is never ahead with either.
// Two floors: the pods alone, and the pods with the Jobs, whose creation our users pay for as well.
Status Launches::measure_limits(const Shape& shape, std::vector<json> pods, json& row) {
  const auto pods_count = pods.size();
  if (!is_pair()) {
    auto figures = submission(kLimit, creation_of(pods_path(kLimit), pods), pods_count, 0);
    if (Status s = keep(shape, kLimit, std::move(figures), row); !s.ok()) return s;
    if (Status s = api_.clean(kLimit, ""); !s.ok()) return s;
  }
  for (json& pod : pods) pod["metadata"]["namespace"] = kLimitJobs;
  const auto jobs = gang_jobs(shape, kLimitJobs);
  const auto each = static_cast<std::size_t>(shape.pods_per_job) + 1;
  const auto create = [&] {
    // The indexes are jobs and pods by turns: a Job, its pods, the next Job.
    return api_.for_each(jobs.size() * each, [&](std::size_t i) -> Status {
      const std::size_t job = i / each;
      if (i % each == 0) {
        return api_.call(Method::kPost, gang_jobs_path(kLimitJobs), jobs[job]).status();
      }
      // job + 1 of the i things before this one are Jobs.
      return api_.call(Method::kPost, pods_path(kLimitJobs), pods[i - job - 1]).status();
    });
  };
  auto figures = submission(kLimitJobs, create, pods_count, 0);
  if (Status s = keep(shape, kLimitJobs, std::move(figures), row); !s.ok()) return s;
  return api_.clean(kLimitJobs, gang_jobs_path(kLimitJobs));
}

// Five ways for the same pods, one after the other (launches.h). The plain client creates the very
// pods that the operator made where no turns are possible.
Status Launches::measure(const Shape& shape, json& row) {
  row = {{"shape", shape.name()}, {"jobs", shape.jobs}, {"pods", shape.pods()}};
  const auto pods_count = static_cast<std::size_t>(shape.pods());
  std::vector<json> pods;
  // First without turns and then with: what listing pods in timetables costs is the difference.
  for (const char* way : {kGang, kTurns}) {
    const bool turns = way == std::string_view{kTurns};
    if (Status s = allow_turns(api_, turns); !s.ok()) return s;
    const std::string ours = gang_jobs_path(way);
    auto figures = by_operator(way, ours, gang_jobs(shape, way), pods_count);
    if (Status s = keep(shape, way, std::move(figures), row); !s.ok()) return s;
    if (!turns) {
      auto made = made_pods();
      if (!made.ok()) return made.error();
      pods = std::move(*made);
    }
    if (Status s = api_.clean(way, ours); !s.ok()) return s;
    if (is_pair()) break;
  }
  if (Status s = measure_limits(shape, std::move(pods), row); !s.ok()) return s;
  if (is_pair()) {
    compare({kGang}, {kLimitJobs}, row);
    return {};
  }
  if (Status s = measure_batch(shape, row); !s.ok()) return s;
  compare({kGang, kTurns}, {kLimit, kLimitJobs, kBatch}, row);
  return {};
}

// Our own Jobs once more, so that both are measured on the same cluster within minutes.
Status Launches::measure_adopted(const Shape& shape, json& row) {
  row = {{"shape", shape.name()}, {"jobs", shape.jobs}, {"pods", shape.pods()}};
  const auto pods_count = static_cast<std::size_t>(shape.pods());
  if (Status s = allow_turns(api_, false); !s.ok()) return s;
  const std::string ours = gang_jobs_path(kGang);
  auto figures = by_operator(kGang, ours, gang_jobs(shape, kGang), pods_count);
  if (Status s = keep(shape, kGang, std::move(figures), row); !s.ok()) return s;
  if (Status s = api_.clean(kGang, ours); !s.ok()) return s;
  const std::string adopted = batch_jobs_path(kAdopted);
  const auto managed = batch_jobs(shape, kAdopted, std::string{kube::kManagedBy});
  figures = by_operator(kAdopted, adopted, managed, pods_count);
  if (Status s = keep(shape, kAdopted, std::move(figures), row); !s.ok()) return s;
  if (Status s = api_.clean(kAdopted, adopted); !s.ok()) return s;
  if (Status s = measure_batch(shape, row); !s.ok()) return s;
  compare({kAdopted}, {kGang, kBatch}, row);
  return {};
}

Status Launches::make_claim() {
  const json size{{"storage", "1Gi"}};
  const auto volume = api_.call(Method::kPost, "/api/v1/persistentvolumes",
                                {{"apiVersion", "v1"},
                                 {"kind", "PersistentVolume"},
                                 {"metadata", {{"name", "home"}}},
                                 {"spec",
                                  {{"capacity", size},
                                   {"accessModes", {"ReadWriteMany"}},
                                   {"storageClassName", ""},
                                   {"claimRef", {{"namespace", kClaim}, {"name", "home"}}},
                                   {"nfs", {{"server", "nfs.example.com"}, {"path", "/home"}}}}}});
  if (!volume.ok()) return volume.error();
  const std::string path = std::string{"/api/v1/namespaces/"} + kClaim + "/persistentvolumeclaims";
  const auto claim = api_.call(Method::kPost, path,
                               {{"apiVersion", "v1"},
                                {"kind", "PersistentVolumeClaim"},
                                {"metadata", {{"name", "home"}, {"namespace", kClaim}}},
                                {"spec",
                                 {{"storageClassName", ""},
                                  {"volumeName", "home"},
                                  {"accessModes", {"ReadWriteMany"}},
                                  {"resources", {{"requests", size}}}}}});
  if (!claim.ok()) return claim.error();
  return api_.wait_until("the claim is bound", [&] {
    const auto now = api_.call(Method::kGet, path + "/home");
    return now.ok() && (*now)["status"].value("phase", "") == "Bound";
  });
}

// Beside the same Jobs without a claim.
Status Launches::measure_claims(const Shape& shape, json& row) {
  row = {{"shape", shape.name()}, {"jobs", shape.jobs}, {"pods", shape.pods()}};
  const auto pods_count = static_cast<std::size_t>(shape.pods());
  if (Status s = allow_turns(api_, false); !s.ok()) return s;
  if (Status s = make_claim(); !s.ok()) return s;
  for (const char* way : {kGang, kClaim}) {
    std::vector<json> jobs = gang_jobs(shape, way);
    if (way == std::string_view{kClaim}) {
      const json volume{{"name", "home"}, {"persistentVolumeClaim", {{"claimName", "home"}}}};
      for (json& job : jobs) {
        json& pod = job["spec"]["template"]["spec"];
        pod["volumes"] = json::array({volume});
        pod["containers"][0]["volumeMounts"] = {{{"name", "home"}, {"mountPath", "/home"}}};
      }
    }
    const std::string ours = gang_jobs_path(way);
    auto figures = by_operator(way, ours, jobs, pods_count);
    if (Status s = keep(shape, way, std::move(figures), row); !s.ok()) return s;
    if (Status s = api_.clean(way, ours); !s.ok()) return s;
  }
  compare({kClaim}, {kGang}, row);
  return {};
}

}  // namespace kubernetes_bench
