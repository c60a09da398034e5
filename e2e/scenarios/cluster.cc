#include "e2e/scenarios/cluster.h"

#include <algorithm>
#include <filesystem>
#include <thread>

#include "api/wellknown.h"
#include "e2e/devcluster/apply.h"
#include "kube/api/time_format.h"
#include "linux/cgroup_tree.h"

namespace scenarios {
namespace {

// Text for a failure: for each overlap of two jobs the node, and the runs of both within a slice of
// it.
std::string overlaps_of(const Turns& turns, Instant from,
                        const std::vector<std::string>& job_names) {
  std::string text;
  const auto tell = [&](const std::string& name, const std::vector<probe::Run>& runs,
                        const probe::Interval& piece) {
    text += " " + name;
    for (const probe::Run& run : runs) {
      if (run.begin > piece.to + turns.slice() || run.end < piece.from - turns.slice()) continue;
      text += " " + kube::format_micro_time(run.begin) + " to " + kube::format_micro_time(run.end) +
              ";";
    }
  };
  for (std::size_t b = 1; b < job_names.size(); ++b) {
    for (std::size_t a = 0; a < b; ++a) {
      const probe::Gang one = turns.stamps().gang(job_names[a]);
      const probe::Gang other = turns.stamps().gang(job_names[b]);
      for (const auto& [node, runs] : one.nodes) {
        const auto theirs = other.nodes.find(node);
        if (theirs == other.nodes.end()) continue;
        for (const probe::Interval& piece : probe::overlaps(runs, theirs->second)) {
          if (piece.to <= from) continue;
          text += node + ":";
          tell(one.name, runs, piece);
          tell(other.name, theirs->second, piece);
          text += "\n";
        }
      }
    }
  }
  return text;
}

}  // namespace

// As an administrator.
base::Result<json> Cluster::call(kube::Method method, const std::string& path, const json& body) {
  return devcluster::call_api(api(), method, path, body);
}

// Tried until the API server answers: scenarios stop it and start it again. Not found is an answer.
json Cluster::get(const std::string& path) {
  json found;
  const auto is_answered = [&] {
    const auto answer = call(kube::Method::kGet, path);
    if (answer.ok()) found = *answer;
    return answer.ok() || answer.error().code == base::Code::kNotFound;
  };
  EXPECT_TRUE(comes_true(is_answered, patience())) << "the API server says nothing of " << path;
  return found;
}

// Empty if the path is not served (a kind whose CRD is not there).
std::vector<json> Cluster::list(const std::string& path) {
  const json found = get(path);
  if (found.is_null()) return {};
  return {found["items"].begin(), found["items"].end()};
}

// Fails the test if the object is refused, as a user would see it.
void Cluster::apply(const json& object) {
  const auto status = devcluster::apply_object(api(), object);
  ASSERT_TRUE(status.ok()) << status.error().message << "\n" << object.dump(1);
}

void Cluster::patch(const std::string& path, const json& merge_patch) {
  const auto answer = call(kube::Method::kPatch, path, merge_patch);
  ASSERT_TRUE(answer.ok()) << path << ": " << answer.error().message;
}

// `options`: DeleteOptions, or null.
void Cluster::remove(const std::string& path, const json& options) {
  const auto answer = call(kube::Method::kDelete, path, options);
  ASSERT_TRUE(answer.ok()) << path << ": " << answer.error().message;
}

// The test's patch is merged last, so it can change everything.
json Cluster::job_object(const JobOptions& options) const {
  const std::size_t nodes =
      // 0 stands for all nodes of the cluster, so that a scenario need not know how many it has.
      options.nodes_count == 0 ? all_nodes().size() : static_cast<std::size_t>(options.nodes_count);
  json object{{"apiVersion", "kubegang.io/v1alpha1"},
              {"kind", "Job"},
              {"metadata", {{"name", options.name}, {"namespace", ns_}}},
              {"spec",
               {{"partitions", {options.partition.empty() ? own_partition() : options.partition}},
                {"resources", {{"nodes", {{"min", nodes}}}}},
                {"template", {{"spec", pod_spec_of(options)}}}}}};
  EXPECT_TRUE(options.patch.is_object());
  object.merge_patch(options.patch);
  return object;
}

void Cluster::submit(const JobOptions& options) {
  ASSERT_NO_FATAL_FAILURE(apply(job_object(options)));
}

// Returns when all pods have settled, so that turns are possible.
void Cluster::submit_ready(const JobOptions& options) {
  ASSERT_NO_FATAL_FAILURE(submit(options));
  ASSERT_NO_FATAL_FAILURE(wait_ready(options.name));
}

void Cluster::cancel(const std::string& job_name) {
  patch(job_path(job_name), {{"spec", {{"control", {{"cancel", true}}}}}});
}

// Names of objects without a namespace begin with the test's namespace, so that tests which share a
// cluster do not meet.
std::string Cluster::name_of(const std::string& what) const {
  return ns_ + "-" + what;
}

// Remembered by name, because partitions have no namespace to go with.
void Cluster::make_partition(const std::string& name, const json& spec) {
  partitions_.push_back(name);
  ASSERT_NO_FATAL_FAILURE(apply({{"apiVersion", "kubegang.io/v1alpha1"},
                                 {"kind", "Partition"},
                                 {"metadata", {{"name", name}}},
                                 {"spec", spec}}));
}

std::string Cluster::job_path(const std::string& name) const {
  return "/apis/kubegang.io/v1alpha1/namespaces/" + ns_ + "/jobs/" + name;
}

// Returns a Job without a name if there is none, or if it cannot be read.
kube::Job Cluster::job(const std::string& name) {
  const auto found = kube::decode<kube::Job>(get(job_path(name)));
  return found.ok() ? *found : kube::Job{};
}

// Returns "" before the operator has written anything.
std::string Cluster::state(const std::string& name) {
  const kube::Job found = job(name);
  return found.status.state ? std::string{to_string(*found.status.state)} : std::string{};
}

bool Cluster::has_ended(const std::string& name) {
  const kube::Job found = job(name);
  return found.status.state && kube::is_final(*found.status.state);
}

// startTime is written at JobReady, when all pods have settled.
// Or was, before it ended. A start that is undone has a start time, too, if a container of it ran.
bool Cluster::is_ready(const std::string& name) {
  const kube::JobStatus status = job(name).status;
  const bool has_ended = status.state && kube::is_final(*status.state);
  return status.start_time && (has_ended || kube::is_true(status.conditions, kube::kReady));
}

std::string Cluster::status_text(const std::string& name) {
  const json object = get(job_path(name));
  return object.is_object() ? object.value("status", json::object()).dump(1) : "no such job";
}

// Pods of all starts, those that have ended and those that are being deleted, too.
std::vector<json> Cluster::pods(const std::string& job_name) {
  return list("/api/v1/namespaces/" + ns_ + "/pods?labelSelector=kubegang.io/job=" + job_name);
}

json Cluster::pod_on(const std::string& job_name, const std::string& node) {
  for (const json& pod : pods(job_name)) {
    if (pod["spec"]["nodeName"] == node) return pod;
  }
  return nullptr;
}

// Nodes without one are left out.
std::vector<kube::NodeTimetable> Cluster::timetables() {
  std::vector<kube::NodeTimetable> found;
  for (const std::string& node : all_nodes()) {
    const auto one =
        kube::decode<kube::NodeTimetable>(get("/apis/kubegang.io/v1alpha1/nodetimetables/" + node));
    if (one.ok()) found.push_back(*one);
  }
  return found;
}

// With the cluster's own patience: a real Kubernetes needs longer than a devcluster.
void Cluster::wait_until(const std::string& what, const std::function<bool()>& condition) {
  ASSERT_NO_FATAL_FAILURE(wait_until(what, condition, patience()));
}

void Cluster::wait_until(const std::string& what, const std::function<bool()>& condition,
                         milliseconds longest) {
  ASSERT_TRUE(comes_true(condition, longest)) << "still not: " << what;
}

void Cluster::wait_ready(const std::string& name) {
  ASSERT_TRUE(comes_true([&] { return is_ready(name); }, patience()))
      << "job " << name << " is not ready: " << status_text(name);
}

void Cluster::wait_state(const std::string& name, const std::string& wanted) {
  ASSERT_NO_FATAL_FAILURE(wait_state(name, wanted, patience()));
}

void Cluster::wait_state(const std::string& name, const std::string& wanted, milliseconds longest) {
  ASSERT_TRUE(comes_true([&] { return state(name) == wanted; }, longest))
      << "job " << name << " is not " << wanted << ": " << status_text(name);
}

void Cluster::wait_reason(const std::string& name, const std::string& reason) {
  ASSERT_TRUE(comes_true([&] { return job(name).status.reason == reason; }, patience()))
      << "job " << name << " has not the reason " << reason << ": " << status_text(name);
}

// Looks once more when the time is over, so that a machine which stood still all the while does not
// fail a condition that holds.
bool Cluster::comes_true(const std::function<bool()>& condition, milliseconds longest) const {
  const auto deadline = std::chrono::steady_clock::now() + longest;
  while (!condition()) {
    if (std::chrono::steady_clock::now() >= deadline) return false;
    pass(look_every());
  }
  return true;
}

void Cluster::pass(milliseconds time) {
  std::this_thread::sleep_for(time);
}

// Turns are there if on each node every job had at least two slots of the last few, and no slot had
// two owners. The window slides, so the overlap while a newcomer settles drops out of it.
void Cluster::wait_for_turns(const std::vector<std::string>& job_names,
                             std::vector<std::string> nodes) {
  if (nodes.empty()) nodes = all_nodes();
  const Instant begin = now();
  const auto take_turns = [&] {
    const Instant to = now();
    // At least two slots for each job, and two more for slots that are cut off at either end.
    // Not from before the call: turns of an earlier time do not count.
    const Instant from =
        std::max(begin, to - slice() * static_cast<std::int64_t>(2 * job_names.size() + 2));
    for (const std::string& node : nodes) {
      const auto slots = turns().owners_of_slots(node, from, to, job_names);
      for (const std::string& name : job_names) {
        if (std::count(slots.begin(), slots.end(), name) < 2) return false;
      }
      if (std::any_of(slots.begin(), slots.end(), [](const std::string& owners) {
            return owners.find('+') != std::string::npos;
          })) {
        return false;
      }
    }
    return true;
  };
  const auto look = [&] {
    if (take_turns()) return true;
    pass(milliseconds{100});  // the stamps are many
    return false;
  };
  ASSERT_TRUE(comes_true(look, patience())) << "they do not take turns on all of these nodes";
}

void Cluster::expect_turns(Instant from, const std::vector<std::string>& job_names) {
  expect_turns_between(from, now(), job_names, all_nodes());
}

// The overlap is taken over the whole time since `from`, and the turns over its last slots.
void Cluster::expect_turns_since(Instant from, const std::vector<std::string>& job_names) {
  ASSERT_NO_FATAL_FAILURE(wait_for_turns(job_names));
  EXPECT_EQ(turns().overlap_since(from, job_names), Duration{})
      << overlaps_of(turns(), from, job_names);
}

// The demands that a machine can meet which others use, too: each job had half of its share of the
// slots at least, and no two jobs ran at the same time for a microsecond.
void Cluster::expect_turns_between(Instant from, Instant to,
                                   const std::vector<std::string>& job_names,
                                   const std::vector<std::string>& nodes) const {
  for (const std::string& node : nodes) {
    const auto slots = turns().owners_of_slots(node, from, to, job_names);
    const auto wanted = slots.size() / job_names.size() / 2;  // half of its share: others are busy
    ASSERT_GE(wanted, 1U) << "too short a time";
    for (const std::string& job_name : job_names) {
      EXPECT_GE(static_cast<std::size_t>(std::count(slots.begin(), slots.end(), job_name)), wanted)
          << job_name << " on " << node << " in " << slots.size() << " slots";
    }
  }
  // In whole, as far as it is this time's.
  EXPECT_EQ(turns().overlap_between(from, to, job_names, nodes), Duration{})
      << overlaps_of(turns(), from, job_names);
}

// `within`: how old the last stamp may be.
bool Cluster::runs_now(const std::string& name, Duration within) const {
  return turns().runs_at(now(), name, within);
}

// Fails if the job was started again, has lost a pod or was touched by kubelet.
// The pods are those of the first start, as many as the job has nodes.
void Cluster::expect_undisturbed(const std::string& job_name) {
  const kube::Job found = job(job_name);
  EXPECT_EQ(found.status.starts.value_or(0), 1) << job_name;
  EXPECT_EQ(found.status.restarts.value_or(0), 0) << job_name;
  ASSERT_TRUE(found.status.allocation) << status_text(job_name);
  const std::vector<json> all = pods(job_name);
  EXPECT_EQ(std::ssize(all), found.spec.resources.nodes->min) << job_name;
  for (const json& pod : all) {
    EXPECT_EQ(pod["status"]["phase"], "Running") << pod["metadata"]["name"];
    for (const json& container : pod["status"]["containerStatuses"]) {
      EXPECT_EQ(container["restartCount"], 0) << pod["metadata"]["name"];
    }
  }
}

// By the names that both cgroupfs and the process kubelet use: kubepods, the QoS class, pod<uid>.
std::string Cluster::cgroup_of(const json& pod) const {
  if (!pod.is_object()) return "";
  const std::string qos = pod["status"].value("qosClass", "BestEffort");
  const std::string path = node_cgroup(pod["spec"].value("nodeName", "")) + "/kubepods/" +
                           (qos == "Guaranteed"  ? ""
                            : qos == "Burstable" ? "burstable/"
                                                 : "besteffort/") +
                           "pod" + pod["metadata"]["uid"].get<std::string>();
  return std::filesystem::exists(path) ? path : "";
}

// By the kernel, whatever the objects say.
bool Cluster::is_frozen(const json& pod) const {
  const std::string cgroup = cgroup_of(pod);
  return !cgroup.empty() && os::is_frozen(cgroup);
}

// Returns true if the job has pods and all are frozen; none_frozen() likewise. Some of each is
// neither.
bool Cluster::all_frozen(const std::string& job_name) {
  const auto all = pods(job_name);
  return !all.empty() &&
         std::all_of(all.begin(), all.end(), [&](const json& pod) { return is_frozen(pod); });
}

bool Cluster::none_frozen(const std::string& job_name) {
  const auto all = pods(job_name);
  return !all.empty() &&
         std::none_of(all.begin(), all.end(), [&](const json& pod) { return is_frozen(pod); });
}

}  // namespace scenarios
