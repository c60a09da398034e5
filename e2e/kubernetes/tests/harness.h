// Tests on a real Kubernetes: the cluster that e2e/kubernetes/run-tests has brought up, the chart
// installed. Skips aloud when no cluster is named.
//
// Suites run side by side, so a test has two things to itself: a namespace (and what is named like
// it), and three nodes. To those it may do what befalls nodes in real life; it puts everything
// back. By this file's functions it reaches no other node. Only the third of them may be powered
// off, since an operator may stand on the others (values.yaml).
//
// All tests share the control plane, the operators, the chart's release and the agents' DaemonSet.
// A suite that acts on one of them is an Alone<…>, and is named in tests.cmake (`alone`), so that
// it runs by itself; its tests fail elsewhere.
//
// Probes stamp a folder of this machine that their pods mount, so that what ran when is measured
// and not asked for.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "e2e/scenarios/cluster.h"
#include "kube/transport.h"
#include "linux/testing/shell.h"

namespace kubernetes {

using base::Duration;
using base::Instant;
using nlohmann::json;
using os::testing::Output;
using os::testing::run_shell;
using std::chrono::milliseconds;
using std::chrono::seconds;

// The state folder of the cluster (KUBEGANG_CLUSTER_DIR).
inline constexpr const char* kStateVariable = "KUBEGANG_CLUSTER_DIR";
// The lane that ctest gives to a test, "id:4,slots:1": the number of the first of its three nodes.
// Absent: 1.
inline constexpr const char* kLaneVariable = "CTEST_RESOURCE_GROUP_0_LANES";
// Set where no other test runs at the same time.
inline constexpr const char* kAloneVariable = "KUBEGANG_TEST_ALONE";
inline constexpr const char* kSystemNamespace = "kubegang-system";
inline constexpr const char* kProbeImage = "registry.e2e/kubegang/probe:" KUBEGANG_VERSION;
inline constexpr const char* kBusyboxImage = "registry.e2e/busybox:1";
inline constexpr const char* kGlibcImage = "registry.e2e/glibc:1";  // busybox and getent
// busybox, and bash whose login shells set PATH and BASH_ENV again
inline constexpr const char* kBashImage = "registry.e2e/bash:1";
// The machine may be busy: only what never happens takes so long.
inline constexpr milliseconds kPatience = seconds{60};

inline constexpr Duration kSlice = milliseconds{500};  // values.yaml
inline constexpr int kNodesCount = 3;                  // of a lane; nodes_per_lane, lib.sh

using scenarios::JobOptions;

// KUBEGANG_LONG: what takes a minute or more is tried too (e2e/kubernetes/README.md).
bool takes_its_time();

// As devcluster::eventually, but rarely enough for the machine's API server.
bool eventually(const std::function<bool()>& condition, milliseconds patience,
                milliseconds every = milliseconds{50});

// The definitions are in harness.cc (a test's begin and end, waiting), harness_api.cc and
// harness_nodes.cc.
// The API server as its administrator, on one connection for all tests of the program.
kube::Transport& administrator();

class Cluster : public scenarios::Cluster {
 protected:
  // begin(), by the test's name, and end().
  void SetUp() override;
  void TearDown() override;

  // Returns "t-" and the text, as names of objects are written.
  static std::string name_like(const std::string& text);
  // Makes a namespace and a partition of that name: all three nodes, Force.
  void begin(const std::string& name);
  // Removes both and waits until none of their pods is left.
  static void end(const std::string& name);
  void show_failure();
  // The nodes as a test finds them: on, with a kubelet that runs, no taints, not cordoned, sliced.
  // For a test that failed before it came to it.
  void restore_nodes();

  // --- what scenarios::Cluster asks for ---
  kube::Transport& api() override;
  std::vector<std::string> all_nodes() const override;
  Duration slice() const override { return kSlice; }
  milliseconds patience() const override { return kPatience; }
  milliseconds look_every() const override { return milliseconds{50}; }
  std::string own_partition() const override { return ns_; }
  json pod_spec_of(const JobOptions& options) const override;
  std::string folder_of_programs() const override { return "/stamps"; }
  std::string folder_here() const override { return stamps_in_; }
  std::string node_cgroup(const std::string& node) const override;
  devcluster::StampStore stamps() const override { return devcluster::StampStore{stamps_in_}; }
  void kill_agent(const std::string& node) override;

  // --- the API, as its administrator ---
  // With the token of an account, to see what is denied.
  std::unique_ptr<kube::Transport> as(const std::string& token);
  // Returns a token of the service account; bound to the pod of its namespace, if one is named.
  std::string token_of(const std::string& ns, const std::string& account,
                       const std::string& pod = {});
  // Makes a service account of the test's namespace with a ClusterRole in one namespace, and
  // returns its token.
  std::string token_with_role(const std::string& account, const std::string& role,
                              const std::string& in_namespace);
  // Policies and rights come into force a moment after they are made: asked again for 10 s.
  void expect_denied(const std::string& sentence,
                     const std::function<base::Result<json>()>& request);
  // The counterpart: a test that only denies would pass if everything were denied.
  void expect_allowed(const std::function<base::Result<json>()>& request);
  static std::string kubectl(const std::string& arguments);  // the command, for run()
  static std::string kubectl_gang(const std::string& arguments);

  // --- objects ---
  void make_namespace(const std::string& name, const json& labels = json::object());
  // All its nodes, Force, and what the patch says.
  void make_lane_partition(const std::string& name, const json& spec_patch = json::object());
  std::vector<json> operators();           // their pods
  json agent_on(const std::string& node);  // its pod; null: there is none

  void wait_nodes_ready();

  // Never standing still for as long as that, whether frozen or kept waiting; absent: half a slice.
  void expect_ran_without_a_break(Instant from, Instant to, const std::string& name,
                                  const std::string& node, Duration pause = {}) const;

  // --- the machines: `place` is 1, 2 or 3 ---
  static std::string node(int place);
  // Returns a hostlist: nodes(2, 3) is "n[2-3]" where the first is n1.
  static std::string nodes(int from, int to);
  static std::string node_path(int place) { return "/api/v1/nodes/" + node(place); }
  bool node_is_ready(int place);
  // Runs a command inside a node.
  Output on_node(int place, const std::string& command) const;
  void power_off(int place);
  void power_on(int place);
  // Runs a script of e2e/kubernetes with its arguments.
  Output script(const std::string& command) const;
  bool has_processes(const std::string& cgroup) const;
  // Returns the processes of the pod's containers as this machine numbers them, without the pause
  // container's.
  std::vector<int> processes_of(const json& pod) const;
  // Returns the memory of all of them, in KiB.
  std::int64_t resident_kib(const json& pod) const;

  static std::string state_directory();

  std::string stamps_in_;  // where its probes stamp
};

// Further acts, of the tests of an Alone<…> only.
class SharedParts {
 protected:
  // A failure of the test unless it runs by itself.
  static void require_alone();
  static Output helm(const std::string& arguments);
};

template <class Fixture>
class Alone : public Fixture, protected SharedParts {
 protected:
  void SetUp() override {
    ASSERT_NO_FATAL_FAILURE(require_alone());
    Fixture::SetUp();
  }
};

}  // namespace kubernetes
