#include "simulation/world.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>

#include "kube/testing/api_server/empty_cluster.h"
#include "simulation/paths.h"

namespace simulation {
namespace {

using nlohmann::json;
using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;

// How often the ledger looks at what runs, and how often the other controllers of the cluster act.
constexpr Time kSampleEvery = milliseconds{100};
constexpr Time kClusterEvery = seconds{1};
// Against jobs that never end: far beyond all back-off times of operator, agents and kubelets.
constexpr Time kAllEndsWithin = minutes{15};  // after the last fault
constexpr Time kQuietBegins = seconds{110};   // after the last job has ended
constexpr Time kQuietLasts = seconds{40};
// The most steps of World::run_until() without any progress of time.
constexpr int kStepsAtOnceMax = 20'000;
// The patience of users with a job whose init container never ends, after the faults.
constexpr Time kPatience = minutes{2};
// A leader follows no step of its clock beyond that.
constexpr Time kFollowedStepMax = minutes{1};
constexpr Time kUsagePeriod = seconds{10};  // in a quiet cluster a record of usage each

std::string in_seconds(Time time) {
  return std::to_string(time / seconds{1}) + "s";
}

// Returns true if the stored job, which has init containers as planned, has one that never ends:
// as planned, or because the peer that it waits for does not come. An edit has left it one pod, or
// its peers have succeeded and do not run again.
bool is_endless(const JobPlan& plan, const json& job) {
  if (!plan.init_ends) return true;
  if (plan.init_waits == Time{0}) return false;
  const json status = job.value("status", json::object());
  const json nodes = job["spec"].value("resources", json::object()).value("nodes", json::object());
  return plan.completions > 0 ? !status.value("succeededIndexes", "").empty()
                              : nodes.value("min", 1) == 1;
}

// Returns true if the job, or a task of the array, waits for that reason.
bool waits_by(const json& job, const std::string& reason) {
  const auto stored = kube::decode<kube::Job>(job);
  if (!stored.ok()) return false;
  const kube::JobStatus& status = stored->status;
  return status.reason == reason ||
         (status.array && std::ranges::any_of(status.array->tasks, [&](const kube::ArrayTask& one) {
            return one.reason == reason;
          }));
}

// Returns how many devices the pod asks for.
int devices_of(const json& pod) {
  int all = 0;
  for (const json& container : pod["spec"].value("containers", json::array())) {
    const json limits =
        container.value("resources", json::object()).value("limits", json::object());
    all += std::stoi(limits.value(paths::kDevice, "0"));
  }
  return all;
}

// Returns the name of the node that a pod without one is pinned to; "" if it is to none.
std::string pinned_to(const json& pod) {
  const json::json_pointer node{
      "/spec/affinity/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution"
      "/nodeSelectorTerms/0/matchFields/0/values/0"};
  return pod.contains(node) ? pod[node].get<std::string>() : "";
}

// Returns true if the pod tolerates the taint of these rounds.
bool tolerates(const json& pod) {
  const json all = pod["spec"].value("tolerations", json::array());
  return std::any_of(all.begin(), all.end(),
                     [](const json& one) { return one.value("key", "") == paths::kTaint; });
}

// Returns true if the Node says that it is ready.
bool says_ready(const json& node) {
  const json none = json::array();
  const json status = node.value("status", json::object());
  for (const json& condition : status.value("conditions", none)) {
    if (condition.value("type", "") == "Ready") return condition.value("status", "") == "True";
  }
  return false;
}

}  // namespace

// Every round begins with the same store, into which the CRDs have been loaded once in the process:
// parsing their schemas would take longer than the round. The server has a seed from the plan, so
// its own draws are the same in each replay.
World::World(Plan plan, Breaks breaks, Tally& tally, const std::string& directory, Trace trace)
    : plan_{std::move(plan)},
      breaks_{breaks},
      tally_{tally},
      directory_{directory},
      trace_{std::move(trace)},
      server_clock_{now_},
      server_{server_clock_, {.seed = plan_.seed + 1}},
      ledger_{server_, now_, plan_, tally} {
  server_.restore(*devcluster::empty_cluster(KUBEGANG_SOURCE_DIR "/crds"));
  server_.set_pod_webhook([this](json& pod) { change_as_webhook(pod); });
  furnish();
}

World::~World() = default;

void World::trace(const std::string& line) {
  if (trace_) trace_(std::to_string(now_ / milliseconds{1}) + " ms  " + line);
}

// Sends a request of a user, an administrator or another controller: always answered, never late.
// Refusals are only traced, because users may ask for something that is refused. Returns the
// answer's body, also that of an error; a discarded value if it is not JSON.
json World::call(kube::Method method, const std::string& path, const json& body) {
  devcluster::ApiRequest request;
  request.http.method = method;
  request.http.path = path;
  if (!body.is_null()) request.http.body = body.dump();
  if (method == kube::Method::kPatch) request.http.content_type = "application/merge-patch+json";
  request.user_agent = "user";
  const kube::Response answer = server_.handle(request).response;
  if (answer.status >= 400) trace("refused: " + path + " " + answer.body.substr(0, 200));
  return json::parse(answer.body, nullptr, false);
}

// The cluster of the plan: namespaces, policies, machines with kubelet and agent, and two
// operators. Each part has a seed of its own, so that another draw in one does not change the
// others.
void World::furnish() {
  for (const char* name : {paths::kNamespace, "kubegang-system"}) {
    call(kube::Method::kPost, "/api/v1/namespaces",
         {{"apiVersion", "v1"}, {"kind", "Namespace"}, {"metadata", {{"name", name}}}});
  }
  furnish_policies();
  base::Prng prng{plan_.seed + 2};
  nodes_.reserve(static_cast<std::size_t>(plan_.nodes));
  for (int i = 1; i <= plan_.nodes; ++i) make_node("n" + std::to_string(i), prng.next());
  for (const char* name : {"operator-a", "operator-b"}) {
    operators_.push_back(std::make_unique<OperatorHost>(
        name, server_, now_, breaks_, tally_, prng.next(),
        trace_ ? [this](const std::string& line) { trace(line); } : OperatorHost::Log{}));
  }
}

// Two partitions of the same nodes. Jobs of "low" take turns, or have nodes for themselves, as the
// plan says; "high" is the higher tier and preempts them.
json World::partition_spec(bool low) const {
  json spec{{"nodes", {{"hostlist", "n[1-" + std::to_string(plan_.nodes) + "]"}}},
            {"state", "Up"},
            {"overSubscribe", {{"policy", "Exclusive"}}}};
  if (plan_.turns) spec["overSubscribe"] = {{"policy", "Force"}, {"maxShare", low ? 3 : 1}};
  if (low) spec["default"] = true;
  if (!low) spec["priorityTier"] = 2;
  return spec;
}

// Returns the SchedulerConfig as administrators have it.
json World::config_spec() const {
  json config{{"select", {{"type", "Linear"}, {"memory", false}}},
              {"timeSlice", in_seconds(plan_.slice)},
              {"preemptMode", plan_.preempt_mode},
              {"requeue", {{"delay", "2s"}, {"maxBatch", 100}}},
              {"killWait", "3s"},
              {"timetable", {{"failOpenAfter", in_seconds(plan_.fail_open_after)}}}};
  if (plan_.fair_share) {
    // Usage never decays in these rounds: the record can then be compared with a plain sum
    // (check_usage()).
    config["priority"] = {{"type", "Multifactor"},
                          {"weights", {{"fairShare", 1000}}},
                          {"usageDecay", "Never"},
                          {"calcPeriod", in_seconds(kUsagePeriod)}};
  }
  return config;
}

// Creates the configuration, the account and both partitions. Existing objects are refused with a
// conflict and stay as they are, so that this also restores what an event deleted.
void World::furnish_policies() {
  const auto make = [&](const char* path, const char* kind, const char* name, const json& spec) {
    call(kube::Method::kPost, path,
         {{"apiVersion", "kubegang.io/v1alpha1"},
          {"kind", kind},
          {"metadata", {{"name", name}}},
          {"spec", spec}});
  };
  make(paths::kConfigs, "SchedulerConfig", "default", config_spec());
  make(paths::kAccounts, "Account", "physics",
       {{"namespaces", json::array({{{"name", paths::kNamespace}}})}});
  make(paths::kPartitions, "Partition", "low", partition_spec(true));
  make(paths::kPartitions, "Partition", "high", partition_spec(false));
}

// Adds a machine with kubelet and agent, switched on, and its Node object. The callback looks the
// node up by its index, since `nodes_` may still grow while it is made.
void World::make_node(const std::string& name, std::uint64_t seed) {
  const std::size_t index = nodes_.size();
  Node& node = nodes_.emplace_back();
  node.machine = std::make_unique<Machine>(name, now_, [this, index](const std::string& uid) {
    if (nodes_[index].agent) ledger_.thawed(nodes_[index], uid);
  });
  node.kubelet =
      std::make_unique<Kubelet>(*node.machine, server_, now_, breaks_, tally_, ledger_, seed);
  node.kubelet->know_peers([this](const Program& program) { return peers_worked(program); });
  node.agent = std::make_unique<NodeAgent>(*node.machine, server_, now_, breaks_, tally_,
                                           directory_ + "/journal-" + name, seed + 7);
  create_node_object(name);
}

// Returns how long the other program of that start that has worked most has; as long as can be if
// one has ended.
base::Duration World::peers_worked(const Program& program) {
  base::Duration most{0};
  for (Node& node : nodes_) {
    for (const auto& [uid, other] : node.kubelet->programs()) {
      const bool is_peer = other.job_uid == program.job_uid && other.start == program.start &&
                           other.task != program.task;
      if (!is_peer) continue;
      if (other.over) return base::Duration::max();
      if (other.running) most = std::max(most, node.machine->kernel.worked(uid));
    }
  }
  return most;
}

// As kubelet registers its machine: ready, with the eight cores that the agent reports, too
// (NodeAgent::topology()).
void World::create_node_object(const std::string& name) {
  const json resources{{"cpu", "8"},
                       {"memory", "16Gi"},
                       {"pods", "110"},
                       {paths::kDevice, std::to_string(kDevices)}};
  const json status{{"capacity", resources},
                    {"allocatable", resources},
                    {"conditions", json::array({{{"type", "Ready"},
                                                 {"status", "True"},
                                                 {"reason", "KubeletReady"},
                                                 {"message", "ready"}}})}};
  call(kube::Method::kPost, paths::kNodes,
       {{"apiVersion", "v1"},
        {"kind", "Node"},
        {"metadata", {{"name", name}, {"labels", {{paths::kRackLabel, rack_of(name)}}}}}});
  call(kube::Method::kPatch, std::string{paths::kNodes} + "/" + name + "/status",
       {{"status", status}});
}

// --- the run ---

// 1. The plan's events, until faults end.
// 2. All heals. All jobs must end within a time that no recovery needs.
// 3. A while in which nothing happens: nothing may be written.
// 4. The objects stored at the end, and usage, are compared with what the programs did.
//
// A finding ends the round at once, because consequences of it would be found, too.
Outcome World::run() {
  ++tally_.rounds;
  run_until([] { return false; }, plan_.faults_end);
  heal();
  run_until(
      [this] { return event_ == plan_.events.size() && later_.empty() && ledger_.all_final(); },
      now_ + kAllEndsWithin);
  if (!ledger_.finding()) {
    ++tally_.looked["all end"];
    if (!ledger_.all_final()) ledger_.find("all end", ledger_.unfinished());
  }
  if (!ledger_.finding()) quiet();
  if (!ledger_.finding()) ledger_.check_end();
  if (!ledger_.finding() && plan_.fair_share && !reinstalled_) check_usage();
  tally_.virtual_seconds += now_ / seconds{1};
  for (const Node& node : nodes_) {
    const std::int64_t slow = node.machine->kernel.slow_freezes();
    if (slow > 0) tally_.faults["task that does not freeze"] += slow;
  }
  return {ledger_.finding(), now_};
}

// Compares the usage record with the ledger. Nothing decays, so usage is the sum of the jobs' run
// times.
void World::check_usage() {
  const json record = call(kube::Method::kGet, std::string{paths::kUsage} + "/default", nullptr);
  base::Duration recorded{0};
  if (record.contains("spec")) {
    for (const json& one : record["spec"].value("namespaces", json::array())) {
      recorded += milliseconds{one.value("runTimeMillis", std::int64_t{0})};
    }
  }
  ledger_.check_usage(recorded);
}

// Checks that a system with nothing to do writes nothing. Two things may go on: leaders renew
// their Lease, and the passing of time changes usage, which is stored once in each kUsagePeriod
// (one more if the interval begins just before a store).
void World::quiet() {
  run_until([] { return false; }, now_ + kQuietBegins);
  const base::Instant since = server_clock_.wall();
  run_until([] { return false; }, now_ + kQuietLasts);
  ++tally_.looked["quiet"];
  std::int64_t records_left = plan_.fair_share ? kQuietLasts / kUsagePeriod + 1 : 0;
  for (const devcluster::WriteRecord& write : server_.writes_since(since)) {
    if (write.kind.resource == "leases") continue;
    if (write.kind.resource == "usagerecords" && --records_left >= 0) continue;
    ledger_.find("quiet",
                 "a quiet system: " + write.kind.verb + " " + write.kind.resource + " " +
                     write.name + " by " + write.kind.user_agent + " at " +
                     std::to_string((write.at - kube::ManualClock::kStart) / milliseconds{1}) +
                     " ms");
  }
}

// Lets virtual time pass until `done()`, a finding, or `limit`. Time jumps from one instant at
// which something is due to the next; nothing happens between, so a minute in which all parts wait
// costs nothing. The clock never moves while parts have work at the present instant, so a part that
// asks to be stepped at once forever would stop time: kStepsAtOnceMax makes that a finding.
void World::run_until(const std::function<bool()>& done, Time limit) {
  int steps = 0;
  while (!ledger_.finding() && now_ < limit && !done()) {
    const Time to = std::min(next(), limit);
    steps = to > now_ ? 0 : steps + 1;
    ++tally_.looked["comes to rest"];
    if (steps > kStepsAtOnceMax) return ledger_.find("comes to rest", "it does not");
    now_ = std::max(now_, to);
    step();
  }
}

// Returns the earliest instant at which any part has something to do; machines that are off do not.
Time World::next() const {
  Time next = std::min(sample_at_, cluster_at_);
  if (event_ < plan_.events.size()) next = std::min(next, plan_.events[event_].at);
  for (const Later& later : later_) next = std::min(next, std::max(later.at, down_until_));
  for (const auto& one : operators_) next = std::min(next, one->next());
  for (const Node& node : nodes_) {
    if (!node.machine->is_on) continue;
    next = std::min({next, node.kubelet->next(), node.agent->next()});
  }
  return next;
}

// 1. events of the plan, and what is due from earlier ones; while the API server is down its users
//    wait
// 2. operators, then kubelets and agents, in a fixed order: the same seed gives the same round
// 3. controllers of the cluster
// 4. if anything was written: the ledger looks at all of it, and the links take it up for delivery
// 5. a sample of what runs, ten times a second
void World::step() {
  const auto is_down = [this] { return now_ < down_until_; };
  while (event_ < plan_.events.size() && plan_.events[event_].at <= now_) {
    const Event& event = plan_.events[event_++];
    if (is_down() && needs_server(event.act)) {
      later(down_until_ - now_, [this, &event] { perform(event); });
    } else {
      perform(event);
    }
  }
  // By index and not by iterator: an act may add another one, as let_go() does.
  for (std::size_t i = 0; i < later_.size();) {
    if (later_[i].at > now_ || is_down()) {
      ++i;
      continue;
    }
    const auto act = std::move(later_[i].act);
    later_.erase(later_.begin() + static_cast<std::ptrdiff_t>(i));
    act();
  }
  const auto fault_if = [&](bool happened) {
    if (happened) ledger_.fault();
  };
  const auto outage_if = [&](std::optional<Time> lasts) {
    if (lasts) ledger_.fault(*lasts);
  };
  for (auto& one : operators_) {
    if (one->next() <= now_) one->step();
    if (one->never_rests()) ledger_.find("comes to rest", "an operator's loop does not");
    outage_if(one->take_died_at_write());
    fault_if(one->link().take_broke_off());
  }
  for (Node& node : nodes_) {
    if (!node.machine->is_on) continue;
    if (node.kubelet->next() <= now_) node.kubelet->step();
    if (node.agent->next() <= now_) node.agent->step();
    outage_if(node.agent->take_died_at_freeze());
    fault_if(node.agent->link().take_broke_off());
    fault_if(node.kubelet->link().take_broke_off());
  }
  if (cluster_at_ <= now_) {
    cluster_at_ = now_ + kClusterEvery;
    if (!is_down()) step_cluster();
  }
  // The links take up what was written only after every part has had its step: a program never
  // hears of a write at the instant of the write.
  if (const std::int64_t version = server_.resource_version(); version != looked_at_) {
    looked_at_ = version;
    ledger_.look();
    for (auto& one : operators_) one->link().look();
    for (Node& node : nodes_) {
      if (!node.machine->is_on) continue;
      node.kubelet->link().look();
      node.agent->link().look();
    }
  }
  if (sample_at_ <= now_) {
    sample_at_ = now_ + kSampleEvery;
    // A leader is expected to keep its promises 5 s after it became well, since it must restore
    // its state and to publish timetables first.
    if (!operator_is_well()) well_since_ = now_;
    const bool is_well = now_ >= well_since_ + seconds{5};
    ledger_.sample(nodes_, is_well);
    for (const auto& one : operators_) {
      if (is_well && one->is_running() && one->loop() != nullptr) check_stored(*one->loop());
    }
  }
}

// Checks that the knowledge of a well leader about pods is stored, and that all it has no write for
// is stored as wanted.
void World::check_stored(const control::ControlLoop& loop) {
  loop.for_each_clean([this](const std::string& uid, const kube::JobStatus& wanted) {
    ledger_.check_stored(uid, wanted);
  });
  loop.for_each_clean_timetable(
      [this](const std::string& node, const kube::NodeTimetableSpec& wanted) {
        ledger_.check_stored_table(node, wanted);
      });
  loop.for_each_pod(
      [this](const kube::Pod& pod, bool is_unseen) { ledger_.check_known_pod(pod, is_unseen); });
}

// Returns true if an operator leads, hears and is heard, and its clock goes on and is trusted: only
// then may its promises be expected to hold. While its clock stands still, an array's status may
// rest, with a start that was decided before the leader heard what it hears now.
bool World::operator_is_well() const {
  return std::any_of(operators_.begin(), operators_.end(), [&](const auto& one) {
    return one->leads() && one->is_running() && one->link().was_whole_for(seconds{3}) &&
           one->link().is_up_to_date() && !one->has_writes_under_way() && !one->distrusts_clock() &&
           !one->stands_still();
  });
}

// The other controllers of a cluster, once a second: nodes that are not heard of become not ready,
// and kubelets register their Nodes. Every five seconds pods of nodes that do not exist are
// deleted. Backups are kept only if the plan goes back to one.
void World::step_cluster() {
  const bool goes_back =
      std::any_of(plan_.events.begin(), plan_.events.end(), [](const Event& one) {
        return one.act == Act::kRestore || one.act == Act::kStaleTimetables;
      });
  // A backup is a snapshot that shares what did not change, taken once a second.
  if (goes_back && now_ < plan_.faults_end) backups_.push_back({now_, server_.back_up()});
  for (Node& node : nodes_) {
    const std::string& name = node.machine->name;
    const bool heard = node.machine->is_on && !node.kubelet->link().is_partitioned();
    const StoredObject object = stored_node(name);
    if (!object) {
      if (heard) create_node_object(name);  // kubelet registers it
      continue;
    }
    if (heard == says_ready(*object)) continue;
    call(kube::Method::kPatch, std::string{paths::kNodes} + "/" + name + "/status",
         {{"status",
           {{"conditions", json::array({{{"type", "Ready"},
                                         {"status", heard ? "True" : "Unknown"},
                                         {"reason", "NodeStatus"},
                                         {"message", ""}}})}}}});
  }
  if (now_ < clean_until_) clean_up_pods();
  bind_pods();
  // Pods of nodes that are gone, as Kubernetes' pod garbage collector deletes them: by force, since
  // no kubelet can confirm.
  if (now_ / kClusterEvery % 5 != 0) return;
  for (const StoredObject& pod : server_.objects(kube::Pod::kResource)) {
    const std::string node = (*pod)["spec"].value("nodeName", "");
    if (node.empty() || stored_node(node)) continue;
    call(kube::Method::kDelete,
         std::string{paths::kPods} + "/" + (*pod)["metadata"].value("name", ""),
         {{"gracePeriodSeconds", 0}});
  }
}

// Returns the Node as it is stored; null if there is none. No request: the other controllers look
// so often that texts of objects would take most of a round's time.
World::StoredObject World::stored_node(const std::string& name) const {
  for (StoredObject& node : server_.objects(kube::Node::kResource)) {
    if ((*node)["metadata"].value("name", "") == name) return std::move(node);
  }
  return nullptr;
}

// kube-scheduler, for pods that are pinned to a node: it binds them when the node is ready, takes
// them and has devices for them, and else says that it cannot.
void World::bind_pods() {
  const bool has_some = std::any_of(plan_.jobs.begin(), plan_.jobs.end(),
                                    [](const JobPlan& job) { return job.devices > 0; });
  if (!has_some) return;
  const std::vector<StoredObject> pods = server_.objects(kube::Pod::kResource);
  std::map<std::string, int> used;  // devices, by node
  for (const StoredObject& pod : pods) {
    const std::string phase = pod->value("status", json::object()).value("phase", "");
    const bool is_over = phase == "Succeeded" || phase == "Failed";
    if (!is_over) used[(*pod)["spec"].value("nodeName", "")] += devices_of(*pod);
  }
  for (const StoredObject& stored : pods) {
    const json& pod = *stored;
    const json& metadata = pod["metadata"];
    const std::string node = pinned_to(pod);
    if (node.empty() || pod["spec"].contains("nodeName")) continue;
    if (metadata.contains("deletionTimestamp")) continue;
    const std::string path = std::string{paths::kPods} + "/" + metadata.value("name", "");
    const StoredObject object = stored_node(node);
    const json spec = object ? object->value("spec", json::object()) : json::object();
    const bool fits = object && says_ready(*object) && used[node] + devices_of(pod) <= kDevices &&
                      !spec.value("unschedulable", false) &&
                      (!spec.contains("taints") || tolerates(pod));
    if (fits) {
      used[node] += devices_of(pod);
      ++tally_.looked["pod bound by kube-scheduler"];
      call(kube::Method::kPost, path + "/binding",
           {{"apiVersion", "v1"},
            {"kind", "Binding"},
            {"metadata", {{"name", metadata.value("name", "")}}},
            {"target", {{"apiVersion", "v1"}, {"kind", "Node"}, {"name", node}}}});
    } else if (!pod.value("status", json::object()).contains("conditions")) {
      ++tally_.looked["pod that kube-scheduler cannot bind"];
      call(kube::Method::kPatch, path + "/status",
           {{"status",
             {{"conditions", json::array({{{"type", "PodScheduled"},
                                           {"status", "False"},
                                           {"reason", "Unschedulable"},
                                           {"message", "0/1 nodes are available"}}})}}}});
    }
  }
}

// Ends the faults. Links and processes heal by the plan's own times, none of which is after this;
// the rest is set right here:
//
// * policies, as administrators had them at the beginning
// * clocks
// * kill switches, cordons and taints (a restore may have brought one back)
// * crashes that were armed for a write or a freeze that has not come, and watches that were to
//   break off with what comes next
// * jobs that users hold
void World::heal() {
  furnish_policies();
  for (const bool low : {true, false}) {
    const json is_up{{"spec", {{"nodes", partition_spec(low)["nodes"]}, {"state", "Up"}}}};
    call(kube::Method::kPatch, std::string{paths::kPartitions} + (low ? "/low" : "/high"), is_up);
  }
  for (Node& node : nodes_) {
    set_kill_switch(node.machine->name, false);
    for (const bool taint : {false, true}) close_node(node.machine->name, taint, false);
    node.machine->clock.drift(0);
    // To set a clock right is a step, as in perform_machine().
    if (node.machine->clock.offset() != Time{0}) node.machine->excuse_clock(now_);
    node.machine->clock.step(-node.machine->clock.offset());
  }
  for (auto& one : operators_) {
    one->clock().drift(0);
    // To set a clock right is a step, and has its effects, but for a far one, by which no process
    // leads or ends anything.
    const Time offset = one->clock().offset();
    if (std::chrono::abs(offset) <= kFollowedStepMax) {
      ledger_.fault(offset);
      ledger_.operator_clock_stepped(std::chrono::abs(offset));
    }
    one->clock().step(-one->clock().offset());
  }
  for (auto& one : operators_) {
    one->disarm();
    one->link().weather.breaks_off = 0;
  }
  for (Node& node : nodes_) {
    node.agent->disarm();
    node.agent->link().weather.breaks_off = 0;
    node.kubelet->link().weather.breaks_off = 0;
  }
  let_go();
}

// Users resume and release the jobs that they hold, and give up those that were refused or whose
// init container never ends, every 20 s until all jobs have ended: a restore may have brought an
// older spec back, and a job may be held by the system at any time. In the first minute the jobs of
// a reinstallation may yet come.
void World::let_go() {
  const json jobs = call(kube::Method::kGet, paths::kJobs, nullptr);
  for (const json& job : jobs.value("items", json::array())) {
    const std::string name = job["metadata"].value("name", "");
    if (job["spec"].contains("array")) let_tasks_go(job);
    const json before = job["spec"].value("control", json::object());
    json control = json::object();
    for (const char* wish : {"suspend", "hold"}) {
      if (before.value(wish, false)) control[wish] = false;
    }
    if (job.contains("status") && job["status"].contains("held")) {
      // A request counts only if its number is higher than the last one.
      control["releaseRequest"] = before.value("releaseRequest", std::int64_t{0}) + 1;
    }
    const bool is_refused =
        job["spec"].value("partitions", json::array()) == json::array({paths::kNoPartition});
    const bool is_hopeless =
        now_ >= plan_.faults_end + kPatience &&
        std::any_of(plan_.jobs.begin(), plan_.jobs.end(),
                    [&](const JobPlan& one) { return one.name == name && is_endless(one, job); });
    if ((is_refused || is_hopeless) && !before.value("cancel", false)) {
      ledger_.user_ends(name);
      ++tally_.faults[is_refused ? "user: cancel a refused job" : "user: cancel an endless job"];
      control["cancel"] = true;
    }
    json change = json::object();
    if (!control.empty()) change["control"] = control;
    // Users do not wait for jobs that can never run or that wait for a job that never comes.
    const json status = job.value("status", json::object());
    const bool is_in_vain =
        status.value("reason", "") == "DependencyNeverSatisfied" ||
        (waits_by(job, "Dependency") && now_ >= plan_.faults_end + kPatience);
    if (job["spec"].contains("dependency") && status.value("state", "") == "Pending" &&
        is_in_vain) {
      ++tally_.faults["user: take a dependency back"];
      change["dependency"] = nullptr;
    }
    if (change.empty()) continue;
    call(kube::Method::kPatch, std::string{paths::kJobs} + "/" + name, {{"spec", change}});
  }
  // A batch Job's own suspension, which a kubegang Job follows.
  const json batch_jobs = call(kube::Method::kGet, paths::kBatchJobs, nullptr);
  for (const json& job : batch_jobs.value("items", json::array())) {
    if (!job["spec"].value("suspend", false)) continue;
    call(kube::Method::kPatch,
         std::string{paths::kBatchJobs} + "/" + job["metadata"].value("name", ""),
         {{"spec", {{"suspend", false}}}});
  }
  const bool may_come = now_ < plan_.faults_end + std::chrono::minutes{1};
  if (may_come || !ledger_.all_final()) later(seconds{20}, [this] { let_go(); });
}

// 1. Tasks that are held, or stand, by themselves are let go, once for all of them.
// 2. One that the system holds is released.
// 3. One that waits in vain for the task of its number is given up.
void World::let_tasks_go(const json& job) {
  const std::string name = job["metadata"].value("name", "");
  const json control = job["spec"].value("control", json::object());
  const json asked = control.value("tasks", json::array());
  const bool is_held = std::any_of(asked.begin(), asked.end(), [](const json& entry) {
    return entry.value("hold", false) || entry.value("suspend", false);
  });
  const std::string all = "0-99";
  const bool was_let_go = !asked.empty() && asked.back().value("tasks", "") == all;
  if (is_held && !was_let_go) {
    return ask_of_tasks(job, {{"tasks", all}, {"hold", false}, {"suspend", false}});
  }
  const auto stored = kube::decode<kube::Job>(job);
  if (!stored.ok() || !stored->status.array) return;
  for (const kube::ArrayTask& task : stored->status.array->tasks) {
    const int number = task.task;
    if (task.held) {
      return ask_of_tasks(job, {{"tasks", std::to_string(number)},
                                {"releaseRequest", static_cast<std::int64_t>(now_.count())}});
    }
    if (task.reason != "DependencyNeverSatisfied") continue;
    const std::string title = name + "_" + std::to_string(number);
    ++tally_.faults["user: cancel a task that waits in vain"];
    ledger_.user_ends(title);
    return ask_of_tasks(job, {{"tasks", std::to_string(number)}, {"cancel", true}});
  }
}

// Has `act` done after a time, by step(). Its references must live as long as the world does.
void World::later(Time after, std::function<void()> act) {
  later_.push_back({now_ + after, std::move(act)});
}

// Prints jobs, timetables and pods as they are stored: the end of a replay's trace.
std::string World::dump() {
  std::string text;
  for (const char* path : {paths::kJobs, paths::kTables}) {
    const json list = call(kube::Method::kGet, path, nullptr);
    for (const json& item : list.value("items", json::array())) {
      text += item["metadata"].value("name", "") + " spec " +
              (std::string_view{path} == paths::kJobs ? "" : item["spec"].dump()) + " status " +
              item.value("status", json::object()).dump() + "\n";
    }
  }
  const json pods = call(kube::Method::kGet, paths::kAllPods, nullptr);
  for (const json& pod : pods.value("items", json::array())) {
    text += "pod " + pod["metadata"].value("name", "") + " on " +
            pod["spec"].value("nodeName", "") + " " +
            pod.value("status", json::object()).value("phase", "") +
            (pod["metadata"].contains("deletionTimestamp") ? " (being deleted)" : "") + "\n";
  }
  return text;
}

}  // namespace simulation
