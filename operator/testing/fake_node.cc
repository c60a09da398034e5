#include "operator/testing/fake_node.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "api/wellknown.h"
#include "base/check.h"
#include "kube/api/node.h"
#include "kube/api/time_format.h"
#include "operator/jobs/pod_index.h"

namespace control {
namespace {

using nlohmann::json;
using std::chrono::seconds;

// A FakeNode is both halves of a node: a kubelet for which running means to count time, and an
// agent that obeys NodeTimetables at once. It differs from real ones on purpose: it never delays or
// loses anything by itself (the API server's faults do that), so a test sees the operator's own
// delays. It checks what a real agent must be able to rely on: a timetable that is
// published is valid, never goes back, and never has two gangs run.

// A real agent counts 2 s from the end of the second in which the container started; this one takes
// the most that can be.
constexpr base::Duration kSettle = seconds{3};  // settle, and the whole second of startedAt

// Returns "" if the pod is not known or its template does not say so.
std::string annotation(const std::map<std::string, kube::Labels>& all, const std::string& uid,
                       const std::string& name) {
  const auto pod = all.find(uid);
  if (pod == all.end()) return "";
  const auto found = pod->second.find("test/" + name);
  return found == pod->second.end() ? "" : found->second;
}

}  // namespace

FakeNode::FakeNode(kube::Client client, const Stored<kube::Pod>& pods,
                   const Stored<kube::NodeTimetable>& tables, const kube::Clock& clock,
                   FakeNodeOptions options)
    : client_{std::move(client)},
      pods_{pods},
      tables_{tables},
      clock_{clock},
      options_{std::move(options)} {
  last_ = ready_since_ = clock_.wall();
}

// Errors end the test: nothing is tried yet.
void FakeNode::create() {
  const json resources{{"cpu", std::to_string(options_.cpus)},
                       {"memory", options_.memory},
                       {"pods", std::to_string(options_.pods)}};
  const json node{{"apiVersion", "v1"},
                  {"kind", "Node"},
                  {"metadata", {{"name", options_.name}}},
                  {"status",
                   {{"capacity", resources},
                    {"allocatable", resources},
                    {"conditions",
                     json::array({{{"type", "Ready"},
                                   {"status", "True"},
                                   {"reason", "KubeletReady"},
                                   {"message", "ready"},
                                   {"lastTransitionTime", kube::format_time(clock_.wall())}}})}}}};
  const auto created = client_.create_json<kube::Node>("", node);
  CHECK(created.ok(), created.error().message);
  const auto patched =
      client_.patch_status<kube::Node>({"", options_.name}, {{"status", node["status"]}});
  CHECK(patched.ok(), patched.error().message);
  create_agent_pod();
}

// As the DaemonSet's controller makes it, and kubelet reports it.
void FakeNode::create_agent_pod() {
  if (options_.agents_namespace.empty()) return;
  const json pod{
      {"apiVersion", "v1"},
      {"kind", "Pod"},
      {"metadata",
       {{"name", "agent-" + options_.name},
        {"namespace", options_.agents_namespace},
        {"labels",
         {{"app.kubernetes.io/name", "kubegang"}, {"app.kubernetes.io/component", "agent"}}}}},
      {"spec",
       {{"nodeName", options_.name},
        {"containers", json::array({{{"name", "agent"}, {"image", "x"}}})}}}};
  CHECK(client_.create_json<kube::Pod>(options_.agents_namespace, pod).ok());
  const json status{
      {"phase", "Running"},
      {"conditions", json::array({{{"type", "Ready"}, {"status", "True"}}})},
      {"containerStatuses", json::array({{{"name", "agent"},
                                          {"ready", true},
                                          {"restartCount", 0},
                                          {"image", "x"},
                                          {"imageID", ""},
                                          {"state", {{"running", json::object()}}}}})}};
  CHECK(client_
            .patch_status<kube::Pod>({options_.agents_namespace, "agent-" + options_.name},
                                     {{"status", status}})
            .ok());
}

// With its last word, as after a SIGTERM; without, as after a SIGKILL.
void FakeNode::remove_agent(bool with_last_word) {
  has_agent_ = false;
  if (with_last_word) open("Stopped");
  if (options_.agents_namespace.empty()) return;
  // The DaemonSet's controller would make another; return_agent() does.
  (void)client_.remove<kube::Pod>({options_.agents_namespace, "agent-" + options_.name},
                                  {.grace_period = seconds{0}});
}

void FakeNode::return_agent() {
  has_agent_ = true;
  create_agent_pod();
  open("");
}

// Unknown, as the node controller writes for a kubelet that it does not hear of.
void FakeNode::set_ready(bool ready) {
  const json conditions = json::array({{{"type", "Ready"},
                                        {"status", ready ? "True" : "Unknown"},
                                        {"reason", "Test"},
                                        {"message", "test"},
                                        {"lastTransitionTime", kube::format_time(clock_.wall())}}});
  (void)client_.patch_status<kube::Node>({"", options_.name},
                                         {{"status", {{"conditions", conditions}}}});
}

// The same reason again writes nothing.
void FakeNode::open(const std::string& reason) {
  if (std::exchange(open_reason_, reason) == reason) return;
  ready_since_ = clock_.wall();
  (void)client_.patch_status<kube::NodeTimetable>(
      {"", options_.name}, {{"status", {{"conditions", json::array({agent_condition()})}}}});
}

json FakeNode::agent_condition() const {
  return {{"type", "Ready"},
          {"status", open_reason_.empty() ? "True" : "False"},
          {"reason", open_reason_.empty() ? "Obeying" : open_reason_},
          {"message", "test"},
          {"lastTransitionTime", kube::format_time(ready_since_)}};
}

// 1. time passes for what ran since the last step; 2. what kubelet does by itself; 3. what is new
//    in the API server. In this order a change takes effect at the instant of the step and never
//    before it.
void FakeNode::step(std::int64_t server_version) {
  const base::Instant now = clock_.wall();
  const base::Instant from = std::exchange(last_, now);
  if (!is_on_) return;
  pass_time(from, now);
  start_what_is_due();
  // The rest costs requests, and nothing can be new.
  if (std::exchange(seen_, server_version) == server_version) return;
  report();
  std::map<std::string, bool> seen;
  for (const auto& pod : pods_.all()) {
    if (pod->spec.node_name != options_.name) continue;
    if (pod->metadata.ns == options_.agents_namespace) continue;
    seen[pod->metadata.uid] = true;
    take_annotations(*pod);
    look_at(*pod);
  }
  // Pods whose objects are gone have no processes.
  std::erase_if(processes_, [&](const auto& entry) { return !seen.contains(entry.first); });
}

// Takes what the annotations say about the pod with its index.
void FakeNode::take_annotations(const kube::Pod& pod) {
  kube::Labels& annotations = annotations_[pod.metadata.uid] = pod.metadata.annotations;
  const auto index = pod.metadata.labels.find(std::string{kube::kLabelTask});
  if (index == pod.metadata.labels.end()) return;
  // Annotations are the template's, so all pods of a job have the same; some are about one pod of
  // them.
  const auto names_another = [&](const char* name) {
    const auto only = annotations.find(name);
    return only != annotations.end() && only->second != index->second;
  };
  if (names_another("test/only-pod")) annotations.erase("test/work");
  if (names_another("test/refuse-index")) annotations.erase("test/refuse");
  if (names_another("test/init-index")) annotations["test/init"] = "0s";
  if (names_another("test/waiting-index")) annotations.erase("test/waiting");
  const auto others = annotations.find("test/work-of-others");
  if (others != annotations.end() && index->second != "0") {
    annotations["test/work"] = others->second;
  }
  const auto task = pod.metadata.labels.find(std::string{kube::kLabelArrayTask});
  const auto failing = annotations.find("test/failing-task");
  if (task != pod.metadata.labels.end() && failing != annotations.end() &&
      failing->second == task->second) {
    annotations["test/exit-code"] = "1";
  }
  const auto job = pod.metadata.labels.find(std::string{kube::kLabelJob});
  const auto fails = annotations.find("test/fails");
  if (fails != annotations.end() && job != pod.metadata.labels.end() &&
      fails->second == job->second + ":" + index->second) {
    annotations["test/exit-code"] = "1";
  }
}

void FakeNode::look_at(const kube::Pod& pod) {
  const base::Instant now = clock_.wall();
  const std::string& uid = pod.metadata.uid;
  // By the UID: a pod of the same name that was made since is another process.
  const auto [entry, fresh] = processes_.try_emplace(uid);
  Process& process = entry->second;
  if (fresh) {
    process.uid = uid;
    process.ns = pod.metadata.ns;
    process.name = pod.metadata.name;
    process.job_uid = job_uid_of(pod);
    process.container = pod.spec.containers.front().name;
    if (!pod.spec.init_containers.empty()) {
      process.init_container = pod.spec.init_containers.front().name;
    }
    process.accepted_at = now;
    // A pod that has ended before this kubelet saw it is not run again.
    process.finished = pod.status.phase == kube::PodPhase::kSucceeded ||
                       pod.status.phase == kube::PodPhase::kFailed;
  }
  if (pod.metadata.deletion_timestamp) {
    // The program ends at SIGTERM. As a kubelet does, it reports that end before the record goes.
    if (process.started_at && !process.finished) return finish(process, 143, "Error");
    process.finished = true;
    (void)client_.remove<kube::Pod>({process.ns, process.name},
                                    {.uid = uid, .grace_period = seconds{0}});
    return;
  }
  if (!process.finished && pod.spec.active_deadline_seconds) {  // of a second: it is over
    process.finished = true;
    patch_status(process, {{"phase", "Failed"},
                           // The words of a real kubelet.
                           {"reason", "DeadlineExceeded"},
                           {"message", "Pod was active on the node longer than the deadline"}});
  }
  // Annotations of the template tell this kubelet what to do: "test/refuse" is a reason for which
  // it refuses the pod, "test/refusals" how often in all, "test/refuse-on" on which node alone.
  if (process.finished || process.started_at) return;
  const std::string only_on = annotation(annotations_, uid, "refuse-on");
  if (const std::string reason = annotation(annotations_, uid, "refuse");
      !reason.empty() && (only_on.empty() || only_on == options_.name)) {
    const std::string times = annotation(annotations_, uid, "refusals");
    // Counted by job, so that a new start of it counts on.
    if (times.empty() || refusals_[process.job_uid] < std::stoi(times)) {
      ++refusals_[process.job_uid];
      process.finished = true;
      patch_status(process, {{"phase", "Failed"}, {"reason", reason}, {"message", "no room"}});
      return;
    }
  }
}

// A pod starts `start_delay` after kubelet has seen it, so that there is an instant at which it is
// bound and not running.
void FakeNode::start_what_is_due() {
  for (auto& [uid, process] : processes_) {
    if (process.finished || process.started_at || process.waits) continue;
    if (clock_.wall() < process.accepted_at + options_.start_delay) continue;
    if (initialize(process)) start(process);
  }
}

bool FakeNode::initialize(Process& process) {
  if (process.init_container.empty()) return true;
  const base::Instant now = clock_.wall();
  const std::string time = annotation(annotations_, process.uid, "init");
  const base::Duration lasts = kube::parse_duration(time.empty() ? "0s" : time).value();
  const bool begins = !process.init_since;
  if (begins) process.init_since = now;
  const bool is_done = now >= *process.init_since + lasts;
  if (!begins && !is_done) return false;
  const std::string since = kube::format_time(*process.init_since);
  const json state = is_done ? json{{"terminated",
                                     {{"exitCode", 0},
                                      {"reason", "Completed"},
                                      {"startedAt", since},
                                      {"finishedAt", kube::format_time(now)}}}}
                             : json{{"running", {{"startedAt", since}}}};
  patch_status(process, {{"phase", "Pending"},
                         {"initContainerStatuses", json::array({{{"name", process.init_container},
                                                                 {"ready", is_done},
                                                                 {"restartCount", 0},
                                                                 {"image", "x"},
                                                                 {"imageID", ""},
                                                                 {"state", state}}})}});
  return is_done;
}

void FakeNode::start(Process& process) {
  const base::Instant now = clock_.wall();
  const std::string& name = process.container;
  const std::string waiting = annotation(annotations_, process.uid, "waiting");
  if (!waiting.empty()) {
    // Until it is deleted: an image does not come by itself here.
    process.waits = true;
    patch_status(process, {{"phase", "Pending"},
                           {"containerStatuses",
                            json::array({{{"name", name},
                                          {"ready", false},
                                          {"restartCount", 0},
                                          {"image", "x"},
                                          {"imageID", ""},
                                          {"state", {{"waiting", {{"reason", waiting}}}}}}})}});
    return;
  }
  process.started_at = now;
  patch_status(
      process,
      {{"phase", "Running"},
       {"startTime", kube::format_time(now)},
       {"conditions", conditions_of(process, true)},
       {"containerStatuses",
        json::array({{{"name", name},
                      {"ready", true},
                      {"restartCount", 0},
                      {"image", "x"},
                      {"imageID", ""},
                      {"state", {{"running", {{"startedAt", kube::format_time(now)}}}}}}})}});
}

void FakeNode::finish(Process& process, int exit_code, const std::string& reason) {
  process.finished = true;
  const std::string now = kube::format_time(clock_.wall());
  patch_status(process,
               {{"phase", exit_code == 0 ? "Succeeded" : "Failed"},
                {"conditions", conditions_of(process, false)},
                {"containerStatuses",
                 json::array({{{"name", process.container},
                               {"ready", false},
                               {"restartCount", 0},
                               {"image", "x"},
                               {"imageID", ""},
                               {"state",
                                {{"terminated",
                                  {{"exitCode", exit_code},
                                   {"reason", reason},
                                   {"message", annotation(annotations_, process.uid, "usage")},
                                   {"startedAt", kube::format_time(*process.started_at)},
                                   {"finishedAt", now}}}}}}})}});
}

// Conditions that others wrote, such as our own notes, stay: a merge patch replaces the whole list.
json FakeNode::conditions_of(const Process& process, bool is_ready) const {
  kube::Pod pod;
  if (const auto stored = pods_.find(process.ns, process.name)) {
    pod.status.conditions = stored->status.conditions;
  }
  kube::set_condition(
      pod.status.conditions,
      {.type = "Ready",
       .status = is_ready ? kube::ConditionStatus::kTrue : kube::ConditionStatus::kFalse},
      clock_.wall());
  return kube::encode(pod)["status"]["conditions"];
}

// A listed pod that has settled runs when the timetable says so; others run.
bool FakeNode::is_frozen(const Process& process, base::Instant t) const {
  if (!has_agent_ || !table_ || !process.started_at || !open_reason_.empty()) return false;
  // The agent freezes nothing that has not settled.
  if (t < *process.started_at + kSettle) return false;
  const auto& pods = table_->spec.pods;
  const auto listed = std::find_if(pods.begin(), pods.end(), [&](const kube::TimetablePod& pod) {
    return pod.ns == process.ns && pod.name == process.name && pod.job_uid == process.job_uid;
  });
  // A pod that is not listed runs.
  if (listed == pods.end()) return false;
  return !timetable::runs_at(table_->spec.timetable,
                             static_cast<std::uint16_t>(listed - pods.begin()), t);
}

// Lets the programs of the node run for the time that has passed. A state holds for the whole step,
// as it was at its begin: steps are ticks, and turns change only at multiples of them in these
// tests. A program whose work is done ends with the exit code of its annotation.
void FakeNode::pass_time(base::Instant from, base::Instant to) {
  std::vector<const Process*> running;
  for (auto& [uid, process] : processes_) {
    if (process.finished || !process.started_at || is_frozen(process, from)) continue;
    process.ran += to - from;
    ran_[process.name] = process.ran;
    // A pod that has not settled is not frozen by the real agent either, so it may run in other
    // turns.
    if (from >= *process.started_at + kSettle) running.push_back(&process);
    const std::string work = annotation(annotations_, uid, "work");
    if (work.empty() || process.ran < kube::parse_duration(work).value()) continue;
    if (annotation(annotations_, uid, "oom") == "true") {
      finish(process, 137, "OOMKilled");
      continue;
    }
    const std::string code = annotation(annotations_, uid, "exit-code");
    const int exit_code = code.empty() ? 0 : std::stoi(code);
    finish(process, exit_code, exit_code == 0 ? "Completed" : "Error");
  }
  // Where the agent is gone or has failed open, jobs do run together: that is meant to be.
  const bool slices = has_agent_ && open_reason_.empty();
  // The rule of gang scheduling that every test checks: pods of two jobs never run at the same time
  // on one node.
  // All are compared with the first: two different jobs among them suffice.
  for (std::size_t i = 1; i < running.size() && slices; ++i) {
    if (running[i]->job_uid == running[0]->job_uid || to == from) continue;
    overlaps_.push_back(kube::format_micro_time(from) + ": " + running[0]->name + " and " +
                        running[i]->name + " ran together on " + options_.name);
  }
}

// The part of the agent: it reads its NodeTimetable, checks it and acknowledges it.
void FakeNode::report() {
  if (!has_agent_) return;
  const auto table = tables_.find("", options_.name);
  if (!table) {
    // Without a timetable everything runs.
    table_.reset();
    return;
  }
  const bool stale =
      table_ && table->metadata.uid == table_->metadata.uid &&
      (table->spec.term < table_->spec.term || table->spec.revision < table_->spec.revision);
  const bool valid = timetable::validate(table->spec.timetable).ok();
  CHECK(valid, "an invalid timetable was published for " + options_.name);
  CHECK(!stale, "a stale timetable was published for " + options_.name);
  // An object that was deleted and made again begins with revision 1 again, so the UID counts, too.
  const bool news = !table_ || table_->metadata.uid != table->metadata.uid ||
                    table_->spec.revision != table->spec.revision;
  table_ = *table;
  if (!news) return;
  (void)client_.patch_status<kube::NodeTimetable>(
      {"", options_.name}, {{"status",
                             {{"observedTerm", table_->spec.term},
                              {"observedRevision", table_->spec.revision},
                              {"topology",
                               {{"sockets", 1},
                                {"coresPerSocket", options_.cpus},
                                {"threadsPerCore", 1},
                                {"cpuIDs", "0-" + std::to_string(options_.cpus - 1)}}},
                              {"conditions", json::array({agent_condition()})}}}});
}

// With the pod's UID, so that another pod of the same name is not hit. Errors are dropped: a pod
// that is gone has no status.
void FakeNode::patch_status(const Process& process, const json& status) {
  (void)client_.patch_status<kube::Pod>({process.ns, process.name}, {{"status", status}},
                                        {.uid = process.uid});
}

base::Duration FakeNode::ran(const std::string& pod) const {
  const auto found = ran_.find(pod);
  return found == ran_.end() ? base::Duration{0} : found->second;
}

}  // namespace control
