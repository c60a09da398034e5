#include "e2e/scenarios/harness.h"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>

#include "e2e/devcluster/apply.h"
#include "e2e/devcluster/testing/eventually.h"
#include "kube/api/time_format.h"

namespace scenarios {
namespace {

constexpr const char* kProgramDirectory = KUBEGANG_BINARY_DIR "/bin";
constexpr const char* kCrdsDirectory = KUBEGANG_SOURCE_DIR "/crds";
// Enough for the last decisions, and little enough to read in the output of many tests.
constexpr std::size_t kLogLinesShown = 40;

// Describes an operator whose Lease a successor can take after two seconds: failover is quick.
devcluster::OperatorSpec operator_spec(const std::string& name,
                                       const std::vector<std::string>& environment) {
  return {.name = name,
          .arguments = {"--lease-duration", "2s", "--renew-deadline", "1500ms", "--retry-period",
                        "200ms", "--log-level", "debug"},
          .environment = environment};
}

// Returns the scenario's times as fields of a SchedulerConfig.
json times_of(const ClusterOptions& options) {
  return {{"timeSlice", kube::format_duration(options.slice)},
          {"killWait", "2s"},
          {"timetable",
           {{"settle", kube::format_duration(options.settle)},
            {"lead", kube::format_duration(options.lead)}}}};
}

// Returns the end of a log, for a test that failed.
std::string tail(const std::string& path) {
  std::ifstream in{path};
  std::vector<std::string> lines;
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  std::string out;
  const std::size_t first = lines.size() > kLogLinesShown ? lines.size() - kLogLinesShown : 0;
  for (std::size_t i = first; i < lines.size(); ++i) out += lines[i] + "\n";
  return out;
}

}  // namespace

// 1. skip if no cgroup can be written
// 2. a folder of the test's own, and a devcluster in it
// 3. the configuration: an example's or the linear one
// 4. the partition "batch" of all nodes
// 5. all agents are ready: only then do nodes take jobs
void Scenario::start(const ClusterOptions& options) {
  options_ = options;
  ns_ = "default";
  const auto probe_root =
      os::make_cgroup_root(std::nullopt, "kubegang-scenario-" + std::to_string(::getpid()));
  if (!probe_root.ok()) GTEST_SKIP() << probe_root.error().message;
  (void)os::destroy_cgroup(probe_root->version, probe_root->path, seconds{1});
  std::string pattern = testing::TempDir() + "scenario-XXXXXX";
  ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
  directory_ = pattern;
  devcluster::DevclusterConfig config{
      .directory = directory_,
      .program_directory = options.programs.empty() ? kProgramDirectory : options.programs,
      .crds_directory = kCrdsDirectory,
      .with_operator = options.with_operator,
      .operator_spec =
          operator_spec(std::string{devcluster::kOperator}, options.operator_environment)};
  for (std::int32_t i = 0; i < options.nodes_count; ++i) {
    config.nodes.push_back({.name = node(i),
                            .cpu = kube::MilliCpu{std::int64_t{options.cpus} * 1000},
                            .sockets = options.sockets});
  }
  auto cluster = devcluster::Devcluster::start(clock_, std::move(config));
  ASSERT_TRUE(cluster.ok()) << cluster.error().message;
  cluster_ = std::move(cluster).value();
  if (!options.example.empty()) {
    apply_example();
  } else {
    apply(config_object());
  }
  if (options.example.empty() && options.with_partition) {
    apply({{"apiVersion", "kubegang.io/v1alpha1"},
           {"kind", "Partition"},
           {"metadata", {{"name", "batch"}}},
           {"spec",
            {{"nodes", {{"hostlist", "n[12-" + std::to_string(11 + options.nodes_count) + "]"}}},
             {"default", true},
             {"overSubscribe", {{"policy", "Force"}, {"maxShare", 4}}}}}});
  }
  if (!options.with_operator || (options.example.empty() && !options.with_partition)) return;
  wait_agents();
}

void Scenario::wait_agents() {
  ASSERT_NO_FATAL_FAILURE(wait_until("all agents are ready", [&] {
    const auto all = timetables();
    return std::ssize(all) == options_.nodes_count &&
           std::all_of(all.begin(), all.end(), [](const kube::NodeTimetable& timetable) {
             return kube::is_true(timetable.status.conditions, "Ready");
           });
  }));
}

// Whole nodes, and the scenario's own times.
json Scenario::config_object() const {
  json spec{{"select", {{"type", "Linear"}, {"memory", false}}}};
  spec.merge_patch(times_of(options_));
  spec.merge_patch(json::parse(options_.config));
  return {{"apiVersion", "kubegang.io/v1alpha1"},
          {"kind", "SchedulerConfig"},
          {"metadata", {{"name", "default"}}},
          {"spec", spec}};
}

// Reads the demo's own files, so that what users run is what is tested.
std::vector<json> Scenario::example_objects() const {
  auto objects =
      devcluster::read_manifests(KUBEGANG_SOURCE_DIR "/examples/demo/" + options_.example);
  EXPECT_TRUE(objects.ok()) << objects.error().message;
  return objects.ok() ? std::move(objects).value() : std::vector<json>{};
}

// Jobs come later (submit_example). The file's configuration gets the scenario's shorter times.
void Scenario::apply_example() {
  for (const json& object : example_objects()) {
    if (object["kind"] == "Job") continue;
    if (object["kind"] != "SchedulerConfig") {
      apply(object);
      continue;
    }
    json merged = object;
    merged["spec"].merge_patch(times_of(options_));
    merged["spec"].merge_patch(json::parse(options_.config));
    apply(merged);
  }
}

std::vector<std::string> Scenario::submit_example() {
  std::vector<std::string> names;
  for (const json& object : example_objects()) {
    if (object["kind"] != "Job") continue;
    apply(object);
    names.push_back(object["metadata"]["name"]);
  }
  return names;
}

// Logs of a test that failed are printed, and its folder stays. tools/second-tries reads the line
// about the machine.
void Scenario::TearDown() {
  if (const std::string stalls = stalls_.told(); HasFailure() && !stalls.empty()) {
    std::printf("the machine stood still %s\n", stalls.c_str());
  }
  if (cluster_ && HasFailure()) {
    for (const std::string& name : cluster_->components().names()) {
      std::printf("--- end of %s.log\n%s", name.c_str(),
                  tail(directory_ + "/logs/" + name + ".log").c_str());
    }
  }
  // Before the folder: everything in it is open until then.
  cluster_.reset();
  if (!directory_.empty() && !HasFailure()) std::filesystem::remove_all(directory_);
}

// Beside those that run, so a test must end the leader before if it wants a successor.
void Scenario::start_operator(const std::string& name,
                              const std::vector<std::string>& environment) {
  const auto status = cluster_->start_operator(operator_spec(name, environment));
  ASSERT_TRUE(status.ok()) << status.error().message;
}

void Scenario::wait_for_operators_end(const std::string& name) {
  ASSERT_TRUE(cluster_->components().wait(name, seconds{20}).has_value())
      << name << " has not ended";
}

// The image is ignored by the process kubelet.
json Scenario::pod_spec_of(const JobOptions& options) const {
  const std::vector<std::string>& command = options.command.empty() ? kProbe : options.command;
  return {{"containers", {{{"name", "main"}, {"image", "none"}, {"command", command}}}}};
}

std::string Scenario::node_cgroup(const std::string& node) const {
  return cluster_->kubelet().node_cgroup(node);
}

// And starts it again at once, as a DaemonSet would.
void Scenario::kill_agent(const std::string& node) {
  const std::string agent = devcluster::agent_name(node);
  cluster_->components().kill(agent);
  ASSERT_TRUE(cluster_->components().start_again(agent).ok());
}

void Scenario::expect_turns(Instant from, const std::vector<std::string>& job_names) {
  expect_strict_turns(from, now(), job_names);
}

std::vector<std::string> Scenario::owners_of_slots(
    const std::string& node, Instant from, Instant to,
    const std::vector<std::string>& job_names) const {
  return turns().owners_of_slots(node, from, to, job_names);
}

Duration Scenario::overlap_since(Instant from, const std::vector<std::string>& job_names) const {
  return turns().overlap_since(from, job_names);
}

// A boundary that was missed is seen in the slot after it too.
// The 10 ms before the slot belong to its switch.
bool Scenario::is_disturbed(Instant slot_begin) const {
  return stalls_.stalled(slot_begin - milliseconds{10}, slot_begin + options_.slice);
}

// Expects that jobs owned the slots of all nodes in turn, exactly:
// 1. If the time reaches to the present, it goes on until three slots are undisturbed.
// 2. No two jobs overlap, on any node and at any time.
// 3. On each node that all the jobs share, the first slot with one owner says whose turn it is;
//    from there on the jobs own the slots in turn.
//
// Slots in which the machine stood still are left out of 3: in them no program could have been in
// time. Overlaps are never excused: agents freeze before they thaw, so a late machine makes gaps
// and not overlaps.
void Scenario::expect_strict_turns(Instant from, Instant to,
                                   const std::vector<std::string>& job_names) {
  const auto enough = [&] {
    int undisturbed = 0;
    Instant slot = base::boundary_at_or_after(from, options_.slice);
    for (; slot + options_.slice <= to; slot += options_.slice) {
      if (!is_disturbed(slot)) ++undisturbed;
    }
    return undisturbed >= 3;
  };
  // A look at the present goes on while the machine stands still, for a while.
  const bool goes_on = now() - to < milliseconds{100};
  for (int tries = 0; goes_on && !enough() && tries < 20; ++tries) {
    pass(milliseconds{500});
    to = now();
  }
  EXPECT_EQ(overlap_since(from, job_names), Duration{});
  std::map<std::string, std::size_t> jobs_on;  // by node
  for (const std::string& name : job_names) {
    for (const auto& [node, runs] : cluster_->stamps().gang(name).nodes) ++jobs_on[node];
  }
  for (const auto& [node, count] : jobs_on) {
    if (count < job_names.size()) continue;  // not all of them share it
    const std::vector<std::string> slots = owners_of_slots(node, from, to, job_names);
    const Instant begin = base::boundary_at_or_after(from, options_.slice);
    // The job that begins, by the first slot that had one owner.
    std::optional<std::size_t> offset;
    std::size_t checked = 0;
    for (std::size_t i = 0; i < slots.size(); ++i) {
      if (is_disturbed(begin + options_.slice * static_cast<std::int64_t>(i))) continue;
      const auto owner = std::find(job_names.begin(), job_names.end(), slots[i]);
      const auto number = static_cast<std::size_t>(owner - job_names.begin());
      if (!offset && owner != job_names.end()) {
        // The turn of slot i is job (i + offset) modulo their number; found once, it must hold for
        // all slots.
        offset = (number + job_names.size() - i % job_names.size()) % job_names.size();
      }
      const std::size_t turn = (i + offset.value_or(0)) % job_names.size();
      EXPECT_EQ(slots[i], job_names[turn]) << node << ", slot " << i << " of " << slots.size();
      ++checked;
    }
    EXPECT_GE(checked, 2U) << node << ": the machine stood still all the time";
  }
}

std::string Scenario::pod_cgroup_of(const std::string& job_name, const std::string& node) {
  return cgroup_of(pod_on(job_name, node));
}

// Returns the cycle that is published, as names of jobs; not what the agents do with it.
std::vector<std::set<std::string>> Scenario::cycle_of(const std::string& node) {
  const auto view = devcluster::read_cluster(cluster_->transport());
  if (!view.ok()) return {};
  std::map<std::string, std::string> names;
  for (const kube::Job& job : view->jobs) names[job.metadata.uid] = job.metadata.name;
  std::vector<std::set<std::string>> cycle;
  for (const kube::NodeTimetable& table : view->timetables) {
    if (table.metadata.name != node) continue;
    for (const timetable::PodSet& slot : table.spec.timetable.cycle) {
      std::set<std::string>& running = cycle.emplace_back();
      for (const std::uint16_t index : slot) running.insert(names[table.spec.pods[index].job_uid]);
    }
  }
  return cycle;
}

// Expects by the cgroups that jobs of `taking_turns` were each seen frozen and running on the node,
// and those of `never_stopped` never frozen: the kernel's view, for jobs whose processes are not
// probes.
void Scenario::expect_frozen_in_turn(const std::string& node,
                                     const std::vector<std::string>& taking_turns,
                                     const std::vector<std::string>& never_stopped) {
  // How one job's pod on the node was seen so far.
  struct Seen {
    std::string cgroup;
    bool frozen = false, running = false;
  };
  std::map<std::string, Seen> seen;
  for (const auto* names : {&taking_turns, &never_stopped}) {
    for (const std::string& name : *names) seen[name].cgroup = pod_cgroup_of(name, node);
  }
  const auto look = [&] {
    for (auto& [name, one] : seen) (is_frozen(one.cgroup) ? one.frozen : one.running) = true;
    return std::all_of(taking_turns.begin(), taking_turns.end(), [&](const std::string& name) {
      return seen[name].frozen && seen[name].running;
    });
  };
  ASSERT_NO_FATAL_FAILURE(wait_until("each was seen frozen and running on " + node, look));
  // Once round more, for those that must not be frozen.
  (void)devcluster::eventually([&] { return look(), false; }, milliseconds{1000});
  for (const std::string& name : never_stopped) {
    EXPECT_FALSE(seen[name].frozen) << name << " on " << node;
  }
}

}  // namespace scenarios
