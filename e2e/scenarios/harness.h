// One devcluster per test, in this process: real operator and agents, real processes in real
// cgroups, the API server and the kubelet at hand with their failure knobs. Skips aloud where
// cgroups cannot be written.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "e2e/devcluster/cluster_view.h"
#include "e2e/devcluster/devcluster.h"
#include "e2e/probe/analysis.h"
#include "e2e/scenarios/stall_watch.h"
#include "e2e/scenarios/turns.h"
#include "kube/clock.h"

namespace scenarios {

using std::chrono::milliseconds;
using std::chrono::seconds;

struct ClusterOptions {
  std::int32_t nodes_count = 5;  // n12, n13, …
  Duration slice = milliseconds{300};
  // Shorter than the defaults, so that a scenario takes seconds.
  Duration settle = milliseconds{200};
  Duration lead = milliseconds{400};
  bool with_operator = true;
  std::vector<std::string> operator_environment;
  bool with_partition = true;  // "batch": all nodes, Force
  // An example instead of the linear configuration and "batch": all of it but its Jobs is applied,
  // its SchedulerConfig with the times above and with `config` merged into its spec.
  std::string example;
  std::string config = "{}";
  std::int32_t cpus = 8;  // of each node
  std::int32_t sockets = 1;
};

// Works a twentieth of the time: several clusters share this machine's CPUs, and the probe senses
// every stop however little it works.
inline const std::vector<std::string> kProbe{"kubegang-probe", "--work-micros=50"};

struct JobOptions {
  std::string name;
  std::int32_t nodes_count = 1;
  std::vector<std::string> command = kProbe;
  std::string partition = "batch";
  // Merged into the Job, as JSON text.
  std::string patch = "{}";
};

class Scenario : public testing::Test {
 protected:
  // Begins the cluster. Use with ASSERT_NO_FATAL_FAILURE; check IsSkipped().
  void start(const ClusterOptions& options = {});
  void TearDown() override;

  // The API, as an administrator.
  nlohmann::json get(const std::string& path);  // null: an error
  // An error fails the test.
  void apply(const nlohmann::json& object);
  void patch(const std::string& path, const nlohmann::json& merge_patch);
  void remove(const std::string& path);
  static std::string job_path(const std::string& name);

  // A further operator, or the same again, with a Lease that a successor may take after two
  // seconds.
  void start_operator(const std::string& name = std::string{devcluster::kOperator},
                      const std::vector<std::string>& environment = {});
  void wait_for_operators_end(const std::string& name = std::string{devcluster::kOperator});

  void submit(const JobOptions& options);
  // The Jobs of the example, as they stand there, in their order. Returns their names.
  std::vector<std::string> submit_example();
  kube::Job job(const std::string& name);      // default-constructed when it is gone
  std::string state(const std::string& name);  // "Running", …; "" before the operator saw it
  bool is_ready(const std::string& name);
  std::vector<nlohmann::json> pods(const std::string& job_name);
  std::vector<kube::NodeTimetable> timetables();

  // Until all nodes take jobs, which they do when their agent has been heard of. They need a
  // partition.
  void wait_agents();
  // Waits; the test fails when it takes longer.
  void wait_ready(const std::string& name);
  void wait_state(const std::string& name, const std::string& state);
  void wait_until(const std::string& what, const std::function<bool()>& condition,
                  milliseconds patience = seconds{20});
  void pass(milliseconds time);
  Instant now() const { return clock_.wall(); }

  Turns turns() const { return {cluster_->stamps(), options_.slice}; }
  // The owners of every whole slot in [from, to): one text per slot, "first" or "first+third" or
  // "".
  std::vector<std::string> owners_of_slots(const std::string& node, Instant from, Instant to,
                                           const std::vector<std::string>& job_names) const;
  // Overlap of any two of the jobs on any node since `from`.
  Duration overlap_since(Instant from, const std::vector<std::string>& job_names) const;
  // Whether the job made progress on all its nodes in the last while.
  bool runs_now(const std::string& name) const;

  // Every slot from `from` on had exactly one owner on the nodes that all of the jobs share, the
  // jobs in turn: nobody lost a turn. Slots in which the whole machine stood still are left out.
  void expect_strict_turns(Instant from, Instant to, const std::vector<std::string>& job_names);
  // The machine stood still in that slot, or at its boundary.
  bool is_disturbed(Instant slot_begin) const;

  // Who runs in each slot of the node's cycle, by the names of the jobs.
  std::vector<std::set<std::string>> cycle_of(const std::string& node);
  // Looks at the kernel until each of `taking_turns` was seen frozen and seen running on the node,
  // and none of `never_stopped` was seen frozen.
  void expect_frozen_in_turn(const std::string& node, const std::vector<std::string>& taking_turns,
                             const std::vector<std::string>& never_stopped);

  // The cgroup of the job's pod on a node, and whether it is frozen.
  std::string pod_cgroup_of(const std::string& job_name, const std::string& node);
  bool is_frozen(const std::string& cgroup) const;

  // How long the cgroup has been frozen in all, by the kernel's count; nothing where the kernel
  // does not count (v1, v2 before 6.18).
  std::optional<Duration> frozen_time(const std::string& cgroup) const;

  std::string node(std::int32_t index) const { return "n" + std::to_string(12 + index); }

 private:
  nlohmann::json config_object() const;
  std::vector<nlohmann::json> example_objects() const;
  void apply_example();

 protected:
  const kube::SystemClock clock_;
  const StallWatch stalls_{clock_};
  std::string directory_;
  ClusterOptions options_;
  std::unique_ptr<devcluster::Devcluster> cluster_;
};

}  // namespace scenarios
