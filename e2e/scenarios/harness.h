// One devcluster per test, in this process: real operator and agents, real processes in real
// cgroups, the API server and the kubelet at hand with their failure knobs. Skips aloud where
// cgroups cannot be written.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "e2e/devcluster/cluster_view.h"
#include "e2e/devcluster/devcluster.h"
#include "e2e/probe/analysis.h"
#include "e2e/scenarios/cluster.h"
#include "e2e/scenarios/stall_watch.h"
#include "linux/cgroup_tree.h"

namespace scenarios {

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
  std::string programs{};  // a folder of programs instead of those of this build
};

// Works a twentieth of the time: several clusters share this machine's CPUs, and the probe senses
// every stop however little it works.
inline const std::vector<std::string> kProbe{"kubegang-probe", "--work-micros=50"};

class Scenario : public Cluster {
 protected:
  // Begins the cluster. Use with ASSERT_NO_FATAL_FAILURE; check IsSkipped().
  void start(const ClusterOptions& options = {});
  void TearDown() override;

  // --- what Cluster asks for ---
  kube::Transport& api() override { return cluster_->transport(); }
  std::vector<std::string> all_nodes() const override { return cluster_->node_names(); }
  Duration slice() const override { return options_.slice; }
  milliseconds patience() const override { return seconds{20}; }
  milliseconds look_every() const override { return milliseconds{5}; }
  std::string own_partition() const override { return "batch"; }
  json pod_spec_of(const JobOptions& options) const override;
  std::string folder_of_programs() const override { return directory_; }
  std::string folder_here() const override { return directory_; }
  std::string node_cgroup(const std::string& node) const override;
  devcluster::StampStore stamps() const override { return cluster_->stamps(); }
  void kill_agent(const std::string& node) override;
  void expect_turns(Instant from, const std::vector<std::string>& job_names) override;

  // A further operator, or the same again, with a Lease that a successor may take after two
  // seconds.
  void start_operator(const std::string& name = std::string{devcluster::kOperator},
                      const std::vector<std::string>& environment = {});
  void wait_for_operators_end(const std::string& name = std::string{devcluster::kOperator});

  // Submits the Jobs of the example, as they stand there, in their order. Returns their names.
  std::vector<std::string> submit_example();

  // Until all nodes take jobs, which they do when their agent has been heard of. They need a
  // partition.
  void wait_agents();

  // Returns the owners of every whole slot in [from, to): one text per slot, "first" or
  // "first+third" or "".
  std::vector<std::string> owners_of_slots(const std::string& node, Instant from, Instant to,
                                           const std::vector<std::string>& job_names) const;
  // Overlap of any two of the jobs on any node since `from`.
  Duration overlap_since(Instant from, const std::vector<std::string>& job_names) const;

  // Every slot from `from` on had exactly one owner on the nodes that all of the jobs share, the
  // jobs in turn: no job lost a turn. Slots in which the whole machine stood still are left out.
  void expect_strict_turns(Instant from, Instant to, const std::vector<std::string>& job_names);
  // The machine stood still in that slot, or at its boundary.
  bool is_disturbed(Instant slot_begin) const;

  // Returns the names of the jobs that run in each slot of the node's cycle.
  std::vector<std::set<std::string>> cycle_of(const std::string& node);
  // Looks at the kernel until each of `taking_turns` was seen frozen and seen running on the node,
  // and none of `never_stopped` was seen frozen.
  void expect_frozen_in_turn(const std::string& node, const std::vector<std::string>& taking_turns,
                             const std::vector<std::string>& never_stopped);

  std::string pod_cgroup_of(const std::string& job_name, const std::string& node);
  using Cluster::is_frozen;
  static bool is_frozen(const std::string& cgroup) { return os::is_frozen(cgroup); }

  std::string node(std::int32_t index) const { return "n" + std::to_string(12 + index); }

 private:
  json config_object() const;
  std::vector<json> example_objects() const;
  void apply_example();

 protected:
  const StallWatch stalls_{clock_};
  std::string directory_;
  ClusterOptions options_;
  std::unique_ptr<devcluster::Devcluster> cluster_;
};

}  // namespace scenarios
