#include "operator/testing/world.h"

#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "api/array_status.h"
#include "api/wellknown.h"
#include "kube/api/namespace.h"
#include "kube/api/time_format.h"
#include "kube/testing/api_server/empty_cluster.h"
#include "operator/gang/pod_pin.h"
#include "operator/jobs/pod_index.h"
#include "translation/members.h"
#include "translation/task_key.h"

namespace control {
namespace {

// How a World comes to rest at an instant, and how time passes.
//
// 1. The operator is pumped: its informers look, its loop takes a step, and a few of the writes
//    that it has queued are carried out, in an order that follows from the seed. That repeats until
//    the operator writes nothing more. At any of those writes it may crash; then a new process with
//    the next term begins, with nothing but what the API server has.
// 2. kube-scheduler, if there is one, binds pods.
// 3. Each node takes a step: programs run for the time that has passed, kubelet and agent react.
// 4. If anything was written since step 1, all of that again: at one instant everything reacts to
//    everything else.
// 5. Safety is checked after each round, from the API server alone (check_pods()), and by each node
//    (overlaps()).
//
// Then the clock is advanced by a tick. Nothing happens between ticks, so a test's numbers are
// exact to a tick's width.

using nlohmann::json;

// Without limits on the rate: nothing may depend on real time.
const kube::ClientOptions kFast{.rate = {.per_second = 1'000'000, .burst = 1'000'000}};
// A loop and an API server that answer each other forever would hang the test instead of failing
// it.
constexpr int kPumpRoundsMax = 2'000;
constexpr std::size_t kLogTail = 60;
// The namespace of all jobs that World makes.
constexpr const char* kNamespace = "team-a";
constexpr const char* kSystemNamespace = "kubegang-system";

}  // namespace

OperatorProcess::OperatorProcess(devcluster::ApiServer& server, kube::ManualClock& clock,
                                 std::uint64_t seed, std::int32_t lease_transitions,
                                 GatedPods::Adopts adopts, std::vector<std::string>& log)
    : server_{server},
      transport_{server, "operator"},
      sleeper_{clock},
      client_{transport_, clock, sleeper_, kFast},
      inbox_{waker_},
      writer_{Actuator{client_, {.image = "registry/launcher:1"}}, inbox_, seed},
      informers_{
          client_,
          clock,
          inbox_,
          templates_,
          [&log](std::string_view kind, const base::Error& error) {
            log.push_back("WARN watch failed kind=" + std::string{kind} + " " + error.message);
          },
          {.pod_groups = adopts.groups}},
      loop_{clock,
            inbox_,
            writer_,
            templates_,
            {.log = [&log](const std::string& message,
                           const std::string& fields) { log.push_back(message + " " + fields); },
             .warn =
                 [&log](const std::string& message, const std::string& fields) {
                   log.push_back("WARN " + message + " " + fields);
                 },
             .event = {},
             .ended = [this](const std::string& why) { ended_ = why; }}} {
  loop_.lead(lease_transitions);
  loop_.adopt_pods(adopts);
}

// Watches are asked only when something changed.
// Returns true if all informers have listed once, which the loop demands before its first step.
bool OperatorProcess::look_around() {
  const std::int64_t version = server_.resource_version();
  // The World is stepped thousands of times per test, and each step of an informer is a request.
  if (version == seen_ && informers_.have_synced()) return true;
  for (auto& [name, step] : informers_.steps()) (void)step({});
  if (informers_.have_synced()) seen_ = version;
  return informers_.have_synced();
}

// For tests of what a leader decides while another one writes.
void OperatorProcess::pump_without_writes() {
  if (look_around()) (void)loop_.step();
}

// Steps the operator until it has nothing to do at this instant. Returns false if it crashed.
// Alternates between a step of the loop and a few writes, in an order that the seed decides
// (ManualWriter), as threads would.
bool OperatorProcess::pump() {
  for (int round = 0; round < kPumpRoundsMax; ++round) {
    if (!look_around()) continue;
    const base::Instant due = loop_.step();
    // A program would end here; the test looks at what it has done until then.
    if (!ended_.empty()) return true;
    bool wrote = false;
    // A few at a time, so that what is queued later may overtake.
    for (int i = 0; i < 3; ++i) {
      switch (writer_.run_one()) {
        case ManualWriter::Turn::kNothing:
          break;
        case ManualWriter::Turn::kDone:
          wrote = true;
          break;
        case ManualWriter::Turn::kCrashedBefore:
        case ManualWriter::Turn::kCrashedAfter:
          return false;
      }
    }
    (void)due;
    if (!wrote) return true;
  }
  ADD_FAILURE() << "the operator does not come to rest";
  return true;
}

World::World(Options options)
    : options_{std::move(options)},
      server_{clock_, {.seed = options_.seed}},
      transport_{server_, "test"},
      sleeper_{clock_},
      client_{transport_, clock_, sleeper_, kFast},
      jobs_{server_},
      pods_{server_},
      tables_{server_} {
  // A prepared cluster, which has the CRDs.
  server_.restore(*devcluster::empty_cluster(KUBEGANG_SOURCE_DIR "/crds"));
  for (const char* name : {kNamespace, kSystemNamespace}) {
    kube::Namespace ns;
    ns.metadata.name = name;
    EXPECT_TRUE(client_.create(ns).ok());
  }
  for (const std::string& name : options_.nodes) {
    nodes_.push_back(std::make_unique<FakeNode>(
        client_, pods_, tables_, clock_,
        FakeNodeOptions{.name = name,
                        .cpus = options_.cpus,
                        .pods = options_.pods_per_node,
                        .agents_namespace = options_.agent_pods ? kSystemNamespace : ""}));
    nodes_.back()->create();
  }
  // The nodes exist before, as in a cluster in which kubegang is installed.
  restart_operator();
}

// A new process with the next term; the old one is gone with all that it knew. A seed of its own,
// so that the next run crashes elsewhere.
void World::restart_operator() {
  process_.reset();
  process_ = std::make_unique<OperatorProcess>(
      server_, clock_, options_.seed * 1'000 + static_cast<std::uint64_t>(transitions_),
      transitions_, GatedPods::Adopts{.groups = options_.pod_groups}, log_);
  if (options_.agent_pods) process_->expect_agents_in(kSystemNamespace);
  process_->writer().crash_at_random(options_.crash_per_mille);
  ++transitions_;
}

void World::set_crash_per_mille(int value) {
  options_.crash_per_mille = value;
  if (process_) process_->writer().crash_at_random(value);
}

// Creates an object or merges it into the one that is there. A status that is given is written in a
// second request, as the API server demands.
void World::apply(const json& given) {
  json object = given;
  const std::string kind = object["kind"];
  std::string path = "/apis/kubegang.io/v1alpha1/";
  if (kind == "Job") {
    object["metadata"]["namespace"] = kNamespace;
    path += std::string{"namespaces/"} + kNamespace + "/jobs";
  } else {
    path += kind == "Partition"       ? "partitions"
            : kind == "QOS"           ? "qos"
            : kind == "Account"       ? "accounts"
            : kind == "NodeTimetable" ? "nodetimetables"
                                      : "schedulerconfigs";
  }
  const std::string name = object["metadata"]["name"];
  auto made = client_.call_json(kube::Method::kPost, path, &object);
  // Created, or changed by a merge patch: like kubectl apply, but fields that are left out stay.
  if (!made.ok() && made.error().code == base::Code::kAlreadyExists) {
    made = client_.call_json(kube::Method::kPatch, path + "/" + name, &object);
  }
  ASSERT_TRUE(made.ok()) << made.error().message;
  if (object.contains("status")) {
    const json status{{"status", object["status"]}};
    const auto patched =
        client_.call_json(kube::Method::kPatch, path + "/" + name + "/status", &status);
    ASSERT_TRUE(patched.ok()) << patched.error().message;
  }
}

void World::remove_job(const std::string& name) {
  EXPECT_TRUE(client_.remove<kube::Job>({kNamespace, name}).ok());
}

void World::patch_job(const std::string& name, const json& spec) {
  const auto patched = client_.patch<kube::Job>({kNamespace, name}, {{"spec", spec}});
  EXPECT_TRUE(patched.ok()) << patched.error().message;
}

void World::pump() {
  std::int64_t before = -1;
  while (before != server_.resource_version()) {
    before = server_.resource_version();
    // A crash ends the process in the middle of its writes; the next one goes on at the same
    // instant.
    while (process_ && !process_->pump()) {
      ++crashes_;
      log_.push_back("--- crash");
      check_pods();
      restart_operator();
    }
    if (options_.kube_scheduler) bind_pinned_pods();
    for (auto& node : nodes_) node->step(before);
    // Everything reacts to everything else until no write is left, so one call is one instant of
    // the cluster. Safety is checked after each round, not only at the end: a violation that heals
    // by itself is one as well.
    if (before != checked_) check_pods();
    checked_ = before;
  }
}

// As kube-scheduler does with a pod that has no gate and only one node to choose from.
void World::bind_pinned_pods() {
  // Nothing is new since the last look.
  if (std::exchange(bound_, server_.resource_version()) == server_.resource_version()) return;
  for (const auto& pod : pods_.all()) {
    const auto node = node_of(*pod);
    if (pod->spec.node_name || !node || !pod->spec.scheduling_gates.empty()) continue;
    const json binding{{"apiVersion", "v1"},
                       {"kind", "Binding"},
                       {"metadata", {{"name", pod->metadata.name}}},
                       {"target", {{"kind", "Node"}, {"name", *node}}}};
    // By the subresource, as kube-scheduler does.
    const auto bound = client_.call_json(
        kube::Method::kPost,
        "/api/v1/namespaces/" + pod->metadata.ns + "/pods/" + pod->metadata.name + "/binding",
        &binding);
    EXPECT_TRUE(bound.ok()) << bound.error().message;
  }
}

// The last tick may be shorter, so that time is exact.
void World::run_for(base::Duration duration) {
  const base::Instant end = clock_.wall() + duration;
  pump();
  while (clock_.wall() < end) {
    clock_.advance(std::min(tick, end - clock_.wall()));
    pump();
  }
}

// The condition is tried after each tick.
bool World::run_until(const std::function<bool()>& condition, base::Duration limit) {
  const base::Instant end = clock_.wall() + limit;
  pump();
  while (!condition()) {
    if (clock_.wall() >= end) return false;
    clock_.advance(tick);
    pump();
  }
  return true;
}

// Returns a Job without a name if there is none.
kube::Job World::job(const std::string& name) const {
  const auto found = jobs_.find(kNamespace, name);
  return found ? *found : kube::Job{};
}

std::string World::state(const std::string& name) const {
  const kube::Job found = job(name);
  return found.status.state ? std::string{kube::to_string(*found.status.state)} : "";
}

// Returns "True: Reason: message"; "" if there is no such condition.
std::string World::condition(const std::string& kind, const std::string& name,
                             const std::string& type) const {
  kube::Conditions conditions;
  if (kind == "Job") conditions = job(name).status.conditions;
  if (kind == "Partition") {
    const auto object = client_.get<kube::Partition>({"", name});
    if (object.ok()) conditions = object->status.conditions;
  }
  if (kind == "QOS") {
    const auto object = client_.get<kube::Qos>({"", name});
    if (object.ok()) conditions = object->status.conditions;
  }
  if (kind == "Account") {
    const auto object = client_.get<kube::Account>({"", name});
    if (object.ok()) conditions = object->status.conditions;
  }
  if (kind == "SchedulerConfig") {
    const auto object = client_.get<kube::SchedulerConfig>({"", name});
    if (object.ok()) conditions = object->status.conditions;
  }
  const kube::Condition* found = kube::find_condition(conditions, type);
  if (found == nullptr) return "";
  return std::string{kube::to_string(found->status)} + ": " + found->reason + ": " + found->message;
}

std::vector<kube::Pod> World::pods() const {
  std::vector<kube::Pod> found;
  for (const auto& pod : pods_.all()) found.push_back(*pod);
  return found;
}

// By the label with the job's name, so pods of an earlier job of that name count, too.
std::vector<kube::Pod> World::pods_of(const std::string& job) const {
  std::vector<kube::Pod> found;
  for (const auto& pod : pods_.all()) {
    const auto label = pod->metadata.labels.find(std::string{kube::kLabelJob});
    if (label != pod->metadata.labels.end() && label->second == job) found.push_back(*pod);
  }
  return found;
}

kube::NodeTimetable World::timetable(const std::string& node) const {
  const auto found = tables_.find("", node);
  return found ? *found : kube::NodeTimetable{};
}

// Fails the test if there is none.
FakeNode& World::node(const std::string& name) {
  for (auto& node : nodes_) {
    if (node->name() == name) return *node;
  }
  ADD_FAILURE() << "no node " << name;
  return *nodes_.front();
}

// Returns the run time of the job's first pod.
base::Duration World::ran(const std::string& name) {
  for (const kube::Pod& pod : pods_of(name)) {
    if (pod.metadata.labels.at(std::string{kube::kLabelTask}) == "0") {
      return node(*pod.spec.node_name).ran(pod.metadata.name);
    }
  }
  return {};
}

// Safety, from the API server alone.
void World::check_pods() {
  std::map<std::string, Stored<kube::Job>::Ptr> jobs;
  for (const auto& one : jobs_.all()) jobs[one->metadata.uid] = one;
  std::map<std::string, std::set<std::string>> incarnations;  // by job UID
  std::map<std::string, std::set<int>> members;               // likewise
  for (const auto& pod : pods_.all()) {
    if (pod->status.phase == kube::PodPhase::kSucceeded ||
        // A pod that ends does not count: its successor may be there.
        pod->status.phase == kube::PodPhase::kFailed || pod->metadata.deletion_timestamp) {
      continue;
    }
    const std::string key = record_key_of(*pod);
    const auto known = jobs.find(uid_in(key));
    if (known == jobs.end()) continue;  // a deleted job's, or foreign
    const std::optional<int> task = task_in(key);
    const kube::JobStatus status =
        task ? kube::stored_task(known->second->status, *task) : known->second->status;
    // 1. of one job only pods of one start may be alive. 2. a pod may be alive only while the
    //    stored status allocates nodes to its start.
    const std::string start = pod->metadata.labels.at(std::string{kube::kLabelStart});
    incarnations[key].insert(start);
    if (incarnations[key].size() > 1) {
      violations_.push_back("two incarnations of " + known->second->metadata.name);
    }
    if (!status.allocation || std::to_string(status.starts.value_or(0)) != start) {
      violations_.push_back("pod " + pod->metadata.name + " without an allocation");
    }
    // 3. where pods follow one another, each has a place of its own, and none that has succeeded,
    // as stored, runs again.
    if (!known->second->spec.completions) continue;
    const int index = std::stoi(pod->metadata.labels.at(std::string{kube::kLabelTask}));
    std::set<int>& running = members[known->first];
    const auto done = parse_indexes(status.succeeded_indexes);
    if (!running.insert(index).second || std::ranges::binary_search(done, index)) {
      violations_.push_back("pod " + pod->metadata.name + " runs a second time");
    }
    if (static_cast<int>(running.size()) > known->second->spec.resources.tasks) {
      violations_.push_back("more pods than places of " + known->second->metadata.name);
    }
  }
}

std::vector<std::string> World::violations() const {
  std::vector<std::string> all = violations_;
  for (const auto& node : nodes_) {
    all.insert(all.end(), node->overlaps().begin(), node->overlaps().end());
  }
  // A broken rule mostly breaks at each step; the first ten say enough.
  if (all.size() > 10) all.resize(10);
  return all;
}

// For the message of a failed test: the operator's last lines, and all objects as they are.
std::string World::log_tail() const {
  std::string text;
  const std::size_t first = log_.size() > kLogTail ? log_.size() - kLogTail : 0;
  for (std::size_t i = first; i < log_.size(); ++i) text += log_[i] + "\n";
  for (const std::string& name : options_.nodes) {
    text += name + ": " + kube::encode(timetable(name))["spec"].dump() + "\n";
  }
  for (const kube::Pod& pod : pods()) {
    text += "pod " + pod.metadata.name + " on " + pod.spec.node_name.value_or("") + " " +
            std::string{kube::to_string(pod.status.phase.value_or(kube::PodPhase::kUnknown))} +
            (pod.metadata.deletion_timestamp ? " (being deleted)" : "") + "\n";
  }
  for (const auto& one : jobs_.all()) {
    text += "job " + one->metadata.name + " " + kube::encode(*one)["status"].dump() + "\n";
  }
  return text + "now " + kube::format_micro_time(clock_.wall()) + "\n";
}

json linear_config(const std::string& slice) {
  return {{"apiVersion", "kubegang.io/v1alpha1"},
          {"kind", "SchedulerConfig"},
          {"metadata", {{"name", "default"}}},
          {"spec", {{"select", {{"type", "Linear"}, {"memory", false}}}, {"timeSlice", slice}}}};
}

json partition(const std::string& name, const json& spec) {
  return {{"apiVersion", "kubegang.io/v1alpha1"},
          {"kind", "Partition"},
          {"metadata", {{"name", name}}},
          {"spec", spec}};
}

json force(const std::string& nodes) {
  return force(nodes, json::object());
}

json force(const std::string& nodes, const json& more) {
  json spec{{"nodes", {{"hostlist", nodes}}},
            {"default", true},
            {"overSubscribe", {{"policy", "Force"}, {"maxShare", 4}}}};
  spec.update(more);
  return spec;
}

json gang_job(const std::string& name, int nodes, const std::string& work) {
  return gang_job(name, nodes, work, nullptr);
}

json gang_job(const std::string& name, int nodes, const std::string& work, const json& more) {
  return gang_job(name, nodes, work, more, nullptr);
}

// Makes a Linear job: `nodes` whole nodes with one pod on each.
json gang_job(const std::string& name, int nodes, const std::string& work, const json& more,
              const json& annotations) {
  json notes = annotations.is_object() ? annotations : json::object();
  // FakeNode lets the program run this long; without it forever.
  if (!work.empty()) notes["test/work"] = work;
  json spec{{"resources", {{"nodes", {{"min", nodes}}}}},
            {"template",
             {{"metadata", {{"annotations", notes}}},
              {"spec",
               {{"containers", json::array({{{"name", "main"},
                                             {"image", "busybox"},
                                             {"command", json::array({"sleep", "300"})}}})}}}}}};
  if (more.is_object()) spec.merge_patch(more);
  return {{"apiVersion", "kubegang.io/v1alpha1"},
          {"kind", "Job"},
          {"metadata", {{"name", name}}},
          {"spec", spec}};
}

void expect_no_violations(const World& world) {
  const auto violations = world.violations();
  EXPECT_TRUE(violations.empty()) << testing::PrintToString(violations) << world.log_tail();
}

}  // namespace control
