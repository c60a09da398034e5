// The events of a plan, carried out.
#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <utility>

#include "simulation/paths.h"
#include "simulation/world.h"

namespace simulation {
namespace {

using nlohmann::json;
using std::chrono::milliseconds;
using std::chrono::seconds;

// For so long tasks do not freeze at once.
constexpr Time kFreezesLate = seconds{60};

// Returns a merge patch of spec.control: what a user asks of a job that exists.
json control(const json& what) {
  return {{"spec", {{"control", what}}}};
}

// Leaves the pods that run, if there are any.
void keep_running(json& pods) {
  json running = json::array();
  for (const json& pod : pods) {
    if (pod.value("/status/phase"_json_pointer, "") == "Running") running.push_back(pod);
  }
  if (!running.empty()) pods = std::move(running);
}

// Makes the annotations of a job's template, which tell kubelets how long its programs work and how
// they end. Pods that follow one another differ, so that they do not end at the same time; if the
// job fails, one of them does.
json notes_of(const JobPlan& job) {
  json notes{{"simulation/work-ms", std::to_string(job.work / milliseconds{1})},
             {"simulation/exit-code", std::to_string(job.exit_code)}};
  if (job.start_timeout > Time{0}) notes["simulation/start-timeout"] = "yes";
  if (job.init > Time{0}) {
    notes["simulation/init-ms"] = std::to_string(job.init / milliseconds{1});
    notes["simulation/init-ends"] = job.init_ends ? "yes" : "no";
    notes["simulation/init-waits-ms"] = std::to_string(job.init_waits / milliseconds{1});
  }
  if (job.fails_task >= 0) notes["simulation/fails-task"] = std::to_string(job.fails_task);
  if (!job.array.empty()) {
    notes["simulation/work-more-ms"] = std::to_string(job.work / milliseconds{2});
  }
  if (job.completions == 0) return notes;
  notes["simulation/work-more-ms"] = std::to_string(job.work / milliseconds{2});
  notes["simulation/fails-index"] = std::to_string(job.completions / 2);
  return notes;
}

// Makes the spec of a job's template.
json pod_spec_of(const JobPlan& job, json main) {
  json spec{{"containers", json::array({std::move(main)})}};
  if (job.init > Time{0}) {
    spec["initContainers"] = json::array({{{"name", "init"}, {"image", "busybox"}}});
  }
  if (!job.rack.empty()) spec["nodeSelector"] = {{paths::kRackLabel, job.rack}};
  if (job.tolerates) {
    spec["tolerations"] = json::array({{{"key", paths::kTaint}, {"operator", "Exists"}}});
  }
  return spec;
}

}  // namespace

// Acts that are requests to the API server.
bool World::needs_server(Act act) {
  constexpr std::array kRequests{Act::kSubmit,
                                 Act::kDelete,
                                 Act::kCancel,
                                 Act::kSuspend,
                                 Act::kRequeue,
                                 Act::kEdit,
                                 Act::kHold,
                                 Act::kAsk,
                                 Act::kResubmit,
                                 Act::kEditTasks,
                                 Act::kChangeSlice,
                                 Act::kChangeShare,
                                 Act::kChangePartition,
                                 Act::kChangeScheduler,
                                 Act::kKillSwitch,
                                 Act::kReinstall,
                                 Act::kLosePod,
                                 Act::kCordon,
                                 Act::kTaint,
                                 Act::kCleanPods,
                                 Act::kDeletePod,
                                 Act::kPatchPod,
                                 Act::kPatchHazard};
  return std::find(kRequests.begin(), kRequests.end(), act) != kRequests.end();
}

// Carries out one event of the plan, by who acts or what fails. The plan drew raw numbers, before
// anything was known about the round: each act reduces `target` modulo the number of things there
// are, and `amount` to its own choices. An event that finds nothing to act on (a node that is off,
// a cluster without programs) does nothing, and is then not counted as a fault.
//
// Every fault is noted in the ledger, which allows for what it may cost.
void World::perform(const Event& event) {
  // In plan.h acts stand in the order of those who act; each group ends with this one.
  struct Group {
    Act last;
    void (World::*perform)(const Event&);
  };
  constexpr std::array kGroups{Group{Act::kEditTasks, &World::perform_user},
                               Group{Act::kTaint, &World::perform_administrator},
                               Group{Act::kWebhook, &World::perform_others},
                               Group{Act::kHangLoop, &World::perform_operator},
                               Group{Act::kLoseCpu, &World::perform_agent},
                               Group{Act::kProxyAnswers, &World::perform_link},
                               Group{Act::kStuckTask, &World::perform_machine},
                               Group{Act::kLosePod, &World::perform_kubelet}};
  trace("--- " + to_string(event));
  const auto group = std::find_if(kGroups.begin(), kGroups.end(),
                                  [&](const Group& one) { return event.act <= one.last; });
  if (group != kGroups.end()) (this->*group->perform)(event);
}

// The batch Job's annotations say which partition and how many nodes. Its pods run all at once, as
// many of completions as it has places, or have no number that must succeed (a work queue).
void World::submit_batch(const JobPlan& job) {
  json annotations{{"kubegang.io/nodes", std::to_string(job.nodes)}};
  if (job.high) annotations["kubegang.io/partition"] = "high";
  json pod = pod_spec_of(job, {{"name", "main"}, {"image", "busybox"}});
  pod["restartPolicy"] = "Never";
  const bool all_at_once = job.pods == 0;
  json spec{{"managedBy", "kubegang.io/job"},
            {"completionMode", all_at_once || job.indexed ? "Indexed" : "NonIndexed"},
            {"parallelism", all_at_once ? job.nodes : job.pods},
            {"backoffLimit", 1},
            {"template", {{"metadata", {{"annotations", notes_of(job)}}}, {"spec", pod}}}};
  if (all_at_once) spec["completions"] = job.nodes;
  if (job.completions > 0) spec["completions"] = job.completions;
  call(kube::Method::kPost, paths::kBatchJobs,
       {{"apiVersion", "batch/v1"},
        {"kind", "Job"},
        {"metadata",
         {{"name", job.name}, {"namespace", paths::kNamespace}, {"annotations", annotations}}},
        {"spec", spec}});
}

// Submits a job of the plan as a user would. A "wrong" one names a partition that does not exist;
// the operator must refuse it and go on with the others.
void World::submit(const JobPlan& job, bool asks) {
  if (job.batch) return submit_batch(job);
  const json main{
      {"name", "main"}, {"image", "busybox"}, {"command", json::array({"sleep", "300"})}};
  json spec{{"resources", {{"nodes", {{"min", job.nodes}}}}},
            {"template",
             {{"metadata", {{"annotations", notes_of(job)}}}, {"spec", pod_spec_of(job, main)}}}};
  if (job.completions > 0) {
    spec["podPolicy"] = "PerTask";
    spec["completions"] = job.completions;
    spec["resources"]["tasks"] = job.pods;
  }
  if (!job.array.empty()) {
    spec["array"]["tasks"] = job.array;
    if (job.throttle > 0) spec["array"]["parallelism"] = job.throttle;
  }
  if (asks) spec["testOnly"] = true;
  if (!job.requeue) spec["lifecycle"]["requeue"] = false;
  if (!job.waits_for.empty()) {
    json term{{"type", job.waits_kind}, {"jobName", job.waits_for}};
    if (job.waits_task >= 0) term["task"] = job.waits_task;
    spec["dependency"]["terms"] = json::array({term});
  }
  if (job.devices > 0) {
    spec["resources"]["devices"] = json::array({{{"name", "gpu"}, {"count", job.devices}}});
  }
  if (job.start_timeout > Time{0}) {
    spec["lifecycle"]["startTimeout"] = std::to_string(job.start_timeout / seconds{1}) + "s";
  }
  if (job.high) spec["partitions"] = json::array({"high"});
  if (job.wrong) spec["partitions"] = json::array({paths::kNoPartition});
  if (job.time_limit > Time{0}) {
    spec["schedule"] = {{"timeLimit", std::to_string(job.time_limit / seconds{1}) + "s"}};
  }
  call(kube::Method::kPost, paths::kJobs,
       {{"apiVersion", "kubegang.io/v1alpha1"},
        {"kind", "Job"},
        {"metadata", {{"name", job.name}, {"namespace", "team-a"}}},
        {"spec", spec}});
}

// The ledger hears of ends and deletions of jobs: only then may one be missing or canceled.
void World::perform_user(const Event& event) {
  // `path` is our Job; `written` is what the user writes, which for a Job of the batch group is
  // another object. The other acts reach the Job that runs it, as long as that is its first
  // attempt, which has its name.
  const JobPlan& job = plan_.jobs[event.target % plan_.jobs.size()];
  const std::string path = std::string{paths::kJobs} + "/" + job.name;
  const std::string written =
      job.batch ? std::string{paths::kBatchJobs} + "/" + job.name : path;  // by the user
  if (event.act != Act::kSubmit) ++tally_.faults["user: " + std::string{to_string(event.act)}];
  const auto patch = [&](const json& body) { call(kube::Method::kPatch, path, body); };
  if (event.act == Act::kSubmit) {
    submit(job);
  } else if (event.act == Act::kDelete || event.act == Act::kResubmit) {
    ledger_.user_deletes(job.name);
    call(kube::Method::kDelete, written, {{"propagationPolicy", "Background"}});
    if (event.act == Act::kResubmit) submit(job);
  } else if (event.act == Act::kCancel) {
    ledger_.user_ends(job.name);
    patch(control({{"cancel", true}}));
  } else if (event.act == Act::kSuspend) {
    const auto suspend = [this, written, batch = job.batch](bool on) {
      const json body = batch ? json{{"spec", {{"suspend", on}}}} : control({{"suspend", on}});
      call(kube::Method::kPatch, written, body);
    };
    // The suspension of a batch Job is carried out by deleting the Job that runs it.
    if (job.batch) ledger_.user_deletes(job.name);  // the Job that runs it
    suspend(true);
    later(event.length, [suspend] { suspend(false); });
  } else if (event.act == Act::kHold) {
    patch(control({{"hold", true}}));
    later(event.length, [this, path] {
      call(kube::Method::kPatch, path, control({{"hold", false}}));
    });
  } else if (event.act == Act::kAsk) {
    // One of the batch group asks as a kubegang job would that has as many nodes.
    JobPlan question = job;
    question.name += "-asks-" + std::to_string(event.at / milliseconds{1});
    if (job.batch) {
      question.batch = false;
      question.pods = question.completions = 0;
    }
    submit(question, true);
  } else if (event.act == Act::kEditTasks) {
    edit_tasks(event, job);
  } else if (event.act == Act::kRequeue) {
    ledger_.user_requeues(job.name);
    // A request counts if its number is higher than the last one: microseconds only grow.
    patch(control({{"requeueRequest", static_cast<std::int64_t>(now_.count())}}));
  } else if (event.amount % 2 == 0) {
    patch({{"spec", {{"schedule", {{"timeLimit", "10m"}}}}}});
  } else {
    patch({{"spec", {{"resources", {{"nodes", {{"min", 1}}}}}}}});
  }
}

// Adds an entry to what is asked of single tasks: `kubectl gang hold sweep_[3-5]`. REQUIRES: the
// job is an array that exists.
void World::ask_of_tasks(const json& job, json entry) {
  json tasks = job["spec"].value("control", json::object()).value("tasks", json::array());
  tasks.push_back(std::move(entry));
  call(kube::Method::kPatch, std::string{paths::kJobs} + "/" + job["metadata"].value("name", ""),
       control({{"tasks", tasks}}));
}

// Changes how many tasks of an array run at once, or asks something of one or a few of them.
void World::edit_tasks(const Event& event, const JobPlan& job) {
  const std::string path = std::string{paths::kJobs} + "/" + job.name;
  const json stored = call(kube::Method::kGet, path, nullptr);
  if (job.array.empty() || stored.value("kind", "") != "Job") return;
  const std::uint64_t kind = event.amount % 6;
  const int first = static_cast<int>(event.amount / 8 % 20);
  const int last = first + static_cast<int>(event.amount / 256 % 2 * (event.amount / 512 % 8));
  const std::string numbers = std::to_string(first) + "-" + std::to_string(last);
  const auto ask = [&](const char* what, const json& value) {
    ++tally_.faults[std::string{"user: "} + what + " of tasks"];
    ask_of_tasks(stored, {{"tasks", numbers}, {what, value}});
  };
  const auto titles = [&](auto action) {
    for (int task = first; task <= last; ++task) action(job.name + "_" + std::to_string(task));
  };
  if (kind == 0) {
    ++tally_.faults["user: change a throttle"];
    call(kube::Method::kPatch, path,
         {{"spec", {{"array", {{"parallelism", event.amount / 8 % 5}}}}}});
  } else if (kind == 1) {
    ask("hold", true);
  } else if (kind == 2) {
    ask("hold", false);
  } else if (kind == 3) {
    titles([this](const std::string& title) { ledger_.user_ends(title); });
    ask("cancel", true);
  } else if (kind == 4) {
    titles([this](const std::string& title) { ledger_.user_requeues(title); });
    ask("requeueRequest", static_cast<std::int64_t>(now_.count()));
  } else {
    ask("suspend", true);
    later(event.length, [this, path, numbers] {
      const json then = call(kube::Method::kGet, path, nullptr);
      if (then.value("kind", "") != "Job" || !then["spec"].contains("array")) return;
      ask_of_tasks(then, {{"tasks", numbers}, {"suspend", false}});
    });
  }
}

// Changes the configuration under jobs that run. A change of the slice, of the share or of the
// scheduler stays; all others are undone after a while.
void World::perform_administrator(const Event& event) {
  ledger_.fault(event.length);
  ++tally_.faults[std::string{to_string(event.act)}];
  if (event.act == Act::kChangeSlice) {
    const std::string slice = std::to_string(1 + event.amount % 4) + "s";
    call(kube::Method::kPatch, paths::kConfig, {{"spec", {{"timeSlice", slice}}}});
  } else if (event.act == Act::kChangeShare) {
    // In one of five cases turns end altogether: running gangs keep their nodes, and agents must
    // thaw pods that no longer have a timetable.
    json share{{"policy", "Force"}, {"maxShare", 1 + event.amount % 4}};
    if (event.amount % 5 == 0) share = {{"policy", "Exclusive"}, {"maxShare", nullptr}};
    call(kube::Method::kPatch, paths::kLow, {{"spec", {{"overSubscribe", share}}}});
  } else if (event.act == Act::kChangePartition) {
    change_partition(event);
  } else if (event.act == Act::kChangeScheduler) {
    change_scheduler(event);
  } else if (event.act == Act::kReinstall) {
    reinstall(event);
  } else if (event.act == Act::kCordon || event.act == Act::kTaint) {
    const std::string node = node_of(event).machine->name;
    const bool taint = event.act == Act::kTaint;
    close_node(node, taint, true);
    later(event.length, [this, node, taint] { close_node(node, taint, false); });
  } else {
    const std::string node = node_of(event).machine->name;
    set_kill_switch(node, true);
    later(event.length, [this, node] { set_kill_switch(node, false); });
  }
}

// Closes a node to new jobs, or opens it: all of them, or with a taint those that do not tolerate
// it.
void World::close_node(const std::string& node, bool taint, bool closed) {
  json spec{{"unschedulable", closed ? json(true) : json()}};
  if (taint) {
    const json one{{"key", paths::kTaint}, {"effect", "NoSchedule"}};
    spec = {{"taints", closed ? json::array({one}) : json()}};
  }
  const json stored =
      call(kube::Method::kPatch, std::string{paths::kNodes} + "/" + node, {{"spec", spec}});
  // A node that is replaced may have no object now.
  ledger_.node_closes(node, taint, closed && stored.value("kind", "") == "Node");
}

// Others with rights on pods: a cleaner, a webhook, and a user who deletes or changes a job's
// pod.
void World::perform_others(const Event& event) {
  if (event.act == Act::kCleanPods) {
    clean_until_ = std::max(clean_until_, now_ + event.length);
    return clean_up_pods();
  }
  if (event.act == Act::kWebhook) {
    webhook_until_ = now_ + event.length;
    webhook_kind_ = event.amount % 3;
    return ledger_.fault(event.length);
  }
  ledger_.fault();
  json pods = call(kube::Method::kGet, paths::kPods, nullptr)["items"];
  // A deadline ends who runs. Most pods have ended or not begun: to draw among all reaches few.
  if (event.act == Act::kPatchHazard && event.target % 4 == 1) keep_running(pods);
  if (pods.empty()) return;
  const json& pod = pods[event.amount % pods.size()];
  const std::string path =
      std::string{paths::kPods} + "/" + pod["metadata"].value("name", std::string{});
  if (event.act == Act::kDeletePod) {
    ++tally_.faults["pod deleted by others"];
    ledger_.pod_deleted(pod);
    call(kube::Method::kDelete, path, nullptr);
    return;
  }
  if (event.act == Act::kPatchHazard) return patch_hazard(event, path);
  ++tally_.faults["pod patched by others"];
  call(kube::Method::kPatch, path,
       {{"metadata", {{"annotations", {{"example.com/seen", "yes"}}}}}});
}

// Nothing of this takes a pod out of its turns, but for a container of `kubectl debug` until it has
// started (docs/operations.md). Three deadlines of four are reached, if the program works that
// long.
void World::patch_hazard(const Event& event, const std::string& path) {
  const std::uint64_t kind = event.target % 4;
  const bool exempts = breaks_.is(kind == 0 ? Break::kLabelExempts : Break::kDeadlineExempts);
  if (kind < 2 && exempts) {
    const json pod = call(kube::Method::kGet, path, nullptr);
    for (Node& node : nodes_) node.agent->exempt(pod["metadata"].value("uid", ""));
  }
  if (kind == 0) {
    ++tally_.faults["pod labeled by others"];
    call(kube::Method::kPatch, path,
         {{"metadata", {{"labels", {{"sidecar.istio.io/inject", "true"}}}}}});
  } else if (kind == 1) {
    ++tally_.faults["deadline of a pod"];
    const bool is_reached = event.target / 4 % 4 != 1;
    const std::uint64_t after = is_reached ? 1 + event.target / 16 % 5 : 99'999'999;
    call(kube::Method::kPatch, path, {{"spec", {{"activeDeadlineSeconds", after}}}});
  } else {
    add_debug(event.amount, kind == 2);
  }
}

// Changes a pod that is being made, as a service mesh does. A pod with a probe or with a sidecar,
// and its gang, is never frozen (docs/operations.md); a label changes nothing.
void World::change_as_webhook(json& pod) {
  if (now_ >= webhook_until_) return;
  json& spec = pod["spec"];
  if (webhook_kind_ == 0) {
    ++tally_.faults["label of a webhook"];
    pod["metadata"]["labels"]["example.com/mesh"] = "yes";
    spec["containers"][0]["env"].push_back({{"name", "MESH"}, {"value", "yes"}});
  } else if (webhook_kind_ == 1) {
    ++tally_.faults["probe of a webhook"];
    spec["containers"][0]["livenessProbe"] = {{"tcpSocket", {{"port", 80}}}};
  } else {
    ++tally_.faults["sidecar of a webhook"];
    spec["initContainers"].push_back(
        {{"name", "mesh"}, {"image", "mesh"}, {"restartPolicy", "Always"}});
  }
}

// A container of `kubectl debug` in one of the pods that run; it may have an image that does not
// exist.
void World::add_debug(std::uint64_t which, bool starts) {
  std::vector<std::pair<Kubelet*, std::string>> running;
  for (const Node& node : nodes_) {
    for (const auto& [uid, program] : node.kubelet->programs()) {
      if (program.running) running.emplace_back(node.kubelet.get(), uid);
    }
  }
  if (running.empty()) return;
  ++tally_.faults["debug container"];
  const auto& [kubelet, uid] = running[which % running.size()];
  kubelet->add_debug(uid, starts);
}

// As a CronJob that deletes pods with status.phase==Succeeded.
void World::clean_up_pods() {
  const json pods = call(kube::Method::kGet, paths::kPods, nullptr);
  for (const json& pod : pods.value("items", json::array())) {
    if (pod.value("status", json::object()).value("phase", "") != "Succeeded") continue;
    ++tally_.faults["clean up pods"];
    ledger_.pod_deleted(pod);
    call(kube::Method::kDelete,
         std::string{paths::kPods} + "/" + pod["metadata"].value("name", std::string{}), nullptr);
  }
}

// Deletes the partition "low" and makes it again, closes it in one of three ways, or leaves it one
// node; after event.length all is as before. A deleted partition is the hardest of these: its
// running jobs no longer have turns, and its timetables go.
void World::change_partition(const Event& event) {
  const auto set = [this](const json& spec) {
    call(kube::Method::kPatch, paths::kLow, {{"spec", spec}});
  };
  if (event.amount % 3 == 0) {
    Time heard_within{0};
    for (const auto& one : operators_) {
      heard_within = std::max(heard_within, one->hears_and_stores_within());
    }
    ledger_.partition_goes(heard_within);
    call(kube::Method::kDelete, paths::kLow, nullptr);
    return later(event.length, [this] { furnish_policies(); });
  }
  const json before = partition_spec(true);
  if (event.amount % 3 == 1) {
    // Down: nothing starts. Drain: nothing is submitted. Inactive: neither. Running jobs go on in
    // all three.
    constexpr std::array kStates{"Down", "Drain", "Inactive"};
    set({{"state", kStates[event.amount / 3 % kStates.size()]}});
  } else {
    set({{"nodes", {{"hostlist", "n1"}}}});
  }
  later(event.length, [set, before] {
    set({{"state", before["state"]}, {"nodes", before["nodes"]}});
  });
}

// Changes the scheduler's type and, in every other case, the mode of preemption, under jobs that
// run and wait.
void World::change_scheduler(const Event& event) {
  if (event.amount % 4 < 2) ledger_.builtin_scheduler();
  json spec{{"schedulerType", event.amount % 4 < 2 ? "Builtin" : "Backfill"}};
  if (event.amount % 2 == 0)
    spec["preemptMode"] = event.amount / 4 % 2 == 0 ? "Requeue" : "Suspend";
  call(kube::Method::kPatch, paths::kConfig, {{"spec", spec}});
}

// Deletes all objects of a list. `collection` lists them and `each` is the path before a name: they
// differ for kinds that live in a namespace.
void World::delete_all(const std::string& collection, const std::string& each) {
  const json list = call(kube::Method::kGet, collection, nullptr);
  for (const json& item : list.value("items", json::array())) {
    const json& metadata = item["metadata"];
    if (each == paths::kJobs) ledger_.user_deletes(metadata.value("name", ""));
    call(kube::Method::kDelete, each + "/" + metadata.value("name", ""), nullptr);
  }
}

// kubegang goes with its CRDs, and so with all its stored objects, and is installed again: terms,
// revisions and job numbers begin again. Some agents see it, some are cut off meanwhile, some are
// dead; these have journals of the time before. Batch Jobs stay, and are run again.
void World::reinstall(const Event& event) {
  const Time back_at = now_ + event.length;
  for (auto& one : operators_) one->kill(back_at);
  // One draw holds the fates of all nodes, two bits each: 1 = the agent is dead meanwhile, 2 = it
  // is cut off, else it sees everything. The higher bits move the return of an agent by up to 8 s.
  std::uint64_t fates = event.amount;
  for (Node& node : nodes_) {
    const Time away_until = back_at + milliseconds{fates / 8 % 8'000};
    if (fates % 4 == 1 && node.machine->is_on) node.agent->kill_all(away_until);
    if (fates % 4 == 2) node.agent->link().weather.partitioned_until = away_until;
    fates /= 4;
  }
  // Users submit again what they had submitted; jobs that are not submitted yet come by their own
  // events.
  std::vector<const JobPlan*> lost;
  for (const JobPlan& job : plan_.jobs) {
    const std::string path = std::string{paths::kJobs} + "/" + job.name;
    if (job.batch || call(kube::Method::kGet, path, nullptr).value("kind", "") != "Job") continue;
    lost.push_back(&job);
  }
  for (const char* kind :
       {paths::kTables, paths::kPartitions, paths::kAccounts, paths::kUsage, paths::kConfigs}) {
    delete_all(kind, kind);
  }
  delete_all(paths::kAllJobs, paths::kJobs);
  delete_all(paths::kLeases, paths::kOperatorLeases);
  reinstalled_ = true;
  ledger_.reinstalled();
  later(event.length / 2, [this, lost] {
    furnish_policies();
    // An operator that was back sooner has made one, with defaults; an installation applies its
    // own.
    call(kube::Method::kPatch, std::string{paths::kConfigs} + "/default",
         {{"spec", config_spec()}});
    for (const JobPlan* job : lost) submit(*job);
  });
}

// Sets or removes the annotation by which an administrator switches freezing off on one node. The
// agent must then thaw everything there, and the rest of the cluster goes on.
void World::set_kill_switch(const std::string& node, bool on) {
  const json value = on ? json("disabled") : json();
  call(kube::Method::kPatch, std::string{paths::kNodes} + "/" + node,
       {{"metadata", {{"annotations", {{"kubegang.io/freeze", value}}}}}});
}

// Returns the replica that an event is about: mostly the leader, because faults of a stand-by test
// little; in one of five cases any.
OperatorHost& World::operator_of(const Event& event) {
  const auto leader = std::find_if(operators_.begin(), operators_.end(),
                                   [](const auto& one) { return one->leads(); });
  if (leader == operators_.end() || event.target % 5 == 0) {
    return *operators_[event.target % operators_.size()];
  }
  return **leader;
}

// Mostly a death and a return. The harm lies in what was decided and not yet stored, so one of the
// acts dies at one of the next 12 writes, before or after it: the two differ only in the store, and
// the successor must cope with either.
void World::perform_operator(const Event& event) {
  ledger_.fault(event.length);
  OperatorHost& one = operator_of(event);
  if (event.act == Act::kKillOperator) {
    one.kill(now_ + event.length);
  } else if (event.act == Act::kKillOperatorAtWrite) {
    one.kill_at_write(static_cast<int>(1 + event.amount % 12), event.amount / 16 % 2 == 0,
                      event.length);
  } else if (event.act == Act::kNoOperator) {
    for (auto& replica : operators_) replica->kill(now_ + event.length);
    ++tally_.faults["no operator"];
  } else if (event.act == Act::kPauseOperator) {
    one.pause(now_ + event.length);
  } else if (event.act == Act::kPauseOperatorAtWrite) {
    one.pause_at_write(static_cast<int>(1 + event.amount % 12), event.amount / 16 % 2 == 0,
                       now_ + event.length);
  } else if (event.act == Act::kHangLoop) {
    one.hang_loop(now_ + event.length);
  } else {
    one.slow_writes(now_ + event.length, event.length);
    ledger_.fault(2 * event.length);  // the last slow write may take as long again
  }
}

// Returns the event's node, or one that several jobs share, if there is one: where no pod is frozen
// an agent does not die at a freeze.
Node& World::node_with_turns(const Event& event) {
  const auto is_shared = [](const Node& node) {
    std::set<std::string> jobs;
    for (const auto& [uid, program] : node.kubelet->programs()) {
      if (!program.over) jobs.insert(program.job_uid);
    }
    return jobs.size() > 1;
  };
  if (is_shared(node_of(event))) return node_of(event);
  const auto found = std::find_if(nodes_.begin(), nodes_.end(), is_shared);
  return found == nodes_.end() ? node_of(event) : *found;
}

// A machine that is off has no agent to harm. The container dies before its journal is harmed: a
// worker that lives would write the whole file again.
void World::perform_agent(const Event& event) {
  ledger_.fault(event.length);
  Node& node = event.act == Act::kKillAgentAtFreeze ? node_with_turns(event) : node_of(event);
  if (!node.machine->is_on) return;
  NodeAgent& agent = *node.agent;
  if (event.act == Act::kKillWorker) {
    agent.kill_worker();
  } else if (event.act == Act::kHangWorker) {
    agent.hang_worker();
  } else if (event.act == Act::kKillAgent) {
    agent.kill_all(now_ + event.length);
  } else if (event.act == Act::kKillAgentAtFreeze) {
    agent.kill_at_first_freeze(event.amount % 2 == 0, event.length);
  } else if (event.act == Act::kStopAgent) {
    agent.stop(now_ + event.length);
  } else if (event.act == Act::kTearJournal) {
    agent.kill_all(now_ + event.length);
    event.amount % 2 == 0 ? agent.tear_journal() : agent.lose_journal();
  } else {
    ++tally_.faults["agent without CPU"];
    agent.lose_cpu(now_ + event.length);
  }
}

// Every program that talks to the API server has a link: the operators, then kubelet and agent of
// each node.
Link& World::link_of(std::uint64_t target) {
  const std::uint64_t which = target % (operators_.size() + 2 * nodes_.size());
  if (which < operators_.size()) return operators_[which]->link();
  Node& node = nodes_[(which - operators_.size()) / 2];
  return which % 2 == 0 ? node.kubelet->link() : node.agent->link();
}

// Bad weather of one program's link to the API server, or, with a compaction and with a restore, of
// the store itself. A compaction makes every watch that is behind list again (410 Gone).
void World::perform_link(const Event& event) {
  ledger_.fault(event.length);
  Weather& weather = link_of(event.target).weather;
  const Time until = now_ + event.length;
  if (event.act == Act::kServerDown) {
    stop_server(until, event.amount % 2 == 0);
  } else if (event.act == Act::kPartition) {
    weather.partitioned_until = std::max(weather.partitioned_until, until);
  } else if (event.act == Act::kBadAnswers) {
    weather.bad_until = until;
    weather.bad_per_mille = 50 + event.amount % 500;
  } else if (event.act == Act::kProxyAnswers) {
    weather.proxy_until = until;
    weather.bad_per_mille = 50 + event.amount % 500;
  } else if (event.act == Act::kDelayWatches) {
    weather.delayed_until = until;
    weather.delay_max = event.length;
  } else if (event.act == Act::kDuplicateWatches) {
    weather.duplicated_until = until;
  } else if (event.act == Act::kBreakWatches) {
    weather.breaks_off += static_cast<int>(1 + event.amount % 8);
  } else if (event.act == Act::kCompact) {
    server_.compact();
    server_.reset_watches();
    looked_at_ = -1;
  } else if (event.act == Act::kStaleTimetables) {
    // A cache that is 1 to 16 s old, which another API server would serve after its etcd is cut
    // off.
    const Backup* backup = backup_of(now_ - seconds{1} - milliseconds{event.amount % 15'000});
    if (backup == nullptr) return;
    ++tally_.faults["timetables from a stale cache"];
    auto cache = std::make_shared<devcluster::ApiServer>(server_clock_);
    cache->restore(*backup->second);
    node_of(event).agent->link().read_timetables_from(std::move(cache), until);
  } else {
    restore(now_ - event.length);
  }
}

// The API server is unreachable, and parts that act on it without a link wait (step()). Events on
// their way to watches are lost; in every other case so is their history, as after a restart of the
// server's process.
void World::stop_server(Time until, bool forgets) {
  ++tally_.faults["API server down"];
  down_until_ = std::max(down_until_, until);
  const auto cut = [until](Link& link) {
    link.weather.partitioned_until = std::max(link.weather.partitioned_until, until);
  };
  for (auto& one : operators_) cut(one->link());
  for (Node& node : nodes_) {
    cut(node.kubelet->link());
    cut(node.agent->link());
  }
  if (!forgets) return;
  server_.compact();
  server_.reset_watches();
  looked_at_ = -1;
}

// Returns the newest backup that is not younger than that; null if there is none.
const World::Backup* World::backup_of(Time as_of) const {
  const auto found = std::find_if(backups_.rbegin(), backups_.rend(),
                                  [&](const auto& backup) { return backup.first <= as_of; });
  return found == backups_.rend() ? nullptr : &*found;
}

// Sets the store back to the newest backup of `as_of` or before. The server ends all watches and
// raises the revision above everything that it has given out, as docs/backup.md asks of an
// administrator.
void World::restore(Time as_of) {
  const Backup* backup = backup_of(as_of);
  if (backup == nullptr) return;
  ++tally_.faults["etcd restored"];
  const auto lease_versions = [this] {
    std::vector<json> versions;
    for (const auto& lease : server_.objects(kube::Lease::kResource)) {
      const json& metadata = lease->at("metadata");
      if (metadata.at("namespace") == "kubegang-system") {
        versions.push_back(metadata.at("resourceVersion"));
      }
    }
    return versions;
  };
  const std::vector<json> versions = lease_versions();
  server_.restore(*backup->second);
  ledger_.restored(backup->first);
  looked_at_ = -1;
  if (lease_versions() != versions) return;
  // No renewal of the Lease was lost, so a leader does not see that the store went back: the
  // operator is restarted (docs/backup.md).
  for (auto& one : operators_) one->kill(now_ + seconds{1});
}

// The clock may be an operator's, which is not a node's.
void World::perform_machine(const Event& event) {
  ledger_.fault(event.length);
  Node& node = node_of(event);
  Machine& machine = *node.machine;
  const bool back = event.amount % 2 == 0;
  const bool operators_clock = event.target % (event.act == Act::kStepClockFar ? 2 : 7) == 0;
  HostClock& clock = operators_clock ? operator_of(event).clock() : machine.clock;
  if (event.act == Act::kStepClock) {
    ++tally_.faults["clock stepped"];
    clock.step(back ? -event.length : event.length);
    machine.excuse_clock(now_);
    if (operators_clock) ledger_.operator_clock_stepped(event.length);
  } else if (event.act == Act::kStepClockFar) {
    step_clock_far(event, clock, operators_clock);
    machine.excuse_clock(now_);
  } else if (event.act == Act::kDriftClock) {
    ++tally_.faults["clock drifts"];
    const auto ppm = static_cast<std::int64_t>(event.amount % 8'000);
    clock.drift(back ? -ppm : ppm);
  } else if (event.act == Act::kStuckTask) {
    // In half of the cases no task of the machine stops at once: a single one is mostly of a pod
    // that is never frozen. Most turns are taken after the other faults, so this one goes on.
    const auto& cgroups = machine.kernel.all();
    if (event.amount / 2 % 2 == 0) {
      machine.kernel.set_freezes_take(event.length);
    } else if (!cgroups.empty()) {
      const auto nth = static_cast<std::ptrdiff_t>(event.amount % cgroups.size());
      machine.kernel.set_freeze_takes(std::next(cgroups.begin(), nth)->first, event.length);
    }
    ledger_.fault(kFreezesLate);
    later(kFreezesLate, [&machine] { machine.kernel.set_freezes_take(Kernel::kFreezeTakes); });
  } else {
    power_off(node, event.act == Act::kReplaceNode, event.length);
  }
}

// By minutes or hours, so that it cannot be taken for time that has passed. Times by such a clock
// are not judged before it is right again, at the end of the faults.
void World::step_clock_far(const Event& event, HostClock& clock, bool is_operators) {
  ++tally_
        .faults[is_operators ? "clock of an operator stepped far" : "clock of a node stepped far"];
  ledger_.fault(std::max(plan_.faults_end - now_, Time{0}));
  const bool is_short = event.amount / 2 % 2 == 0;
  const std::uint64_t most = is_short ? 10 : 180;
  const Time by = std::chrono::minutes{2 + event.amount / 4 % most};
  clock.step(event.amount % 2 == 0 ? -by : by);
}

// Everything that runs on the machine ends at once. A replaced machine loses its Node object, too,
// and comes back as another one of the same name.
void World::power_off(Node& node, bool replaced, Time length) {
  if (!node.machine->is_on) return;
  ++tally_.faults[replaced ? "node replaced" : "node off"];
  Machine& machine = *node.machine;
  node.kubelet->power_off();
  node.agent->power_off();
  machine.is_on = false;
  const std::string path = std::string{paths::kNodes} + "/" + machine.name;
  if (replaced) {
    ledger_.node_replaced(machine.name, length);
    later(length / 2, [this, path, name = machine.name] {
      call(kube::Method::kDelete, path, nullptr);
      for (const bool taint : {false, true}) ledger_.node_closes(name, taint, false);
    });
  }
  later(length, [this, &node, replaced] {
    node.machine->is_on = true;
    ++node.machine->boots;
    if (replaced) create_node_object(node.machine->name);
    node.kubelet->power_on();
    node.agent->power_on(now_ + seconds{3});
  });
}

// kubelet's restarts, refusals and slowness, a program that dies by itself, and a pod object that
// is deleted without a grace period while its program runs.
void World::perform_kubelet(const Event& event) {
  ledger_.fault(event.length);
  Node& node = node_of(event);
  if (!node.machine->is_on) return;
  Kubelet& kubelet = *node.kubelet;
  if (event.act == Act::kRestartKubelet) {
    kubelet.restart();
  } else if (event.act == Act::kRefusePods) {
    kubelet.refuse_next(static_cast<int>(1 + event.amount % 3));
  } else if (event.act == Act::kSlowKubelet) {
    kubelet.be_slow(now_ + event.length);
  } else if (event.act == Act::kLateVolumes) {
    kubelet.lack_volumes(now_ + event.length);
  } else if (event.act == Act::kKillProgram) {
    if (kubelet.kill_one(event.amount)) ++tally_.faults["program killed"];
  } else {
    const auto& programs = kubelet.programs();
    if (programs.empty()) return;
    const auto which =
        std::next(programs.begin(), static_cast<std::ptrdiff_t>(event.amount % programs.size()));
    ++tally_.faults["pod object lost"];
    ledger_.pod_lost(which->second);
    call(kube::Method::kDelete, std::string{paths::kPods} + "/" + which->second.name,
         {{"gracePeriodSeconds", 0}});
  }
}

}  // namespace simulation
