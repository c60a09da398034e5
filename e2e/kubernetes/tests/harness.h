// Tests on a real Kubernetes: the cluster that e2e/kubernetes/run-tests has brought up, the chart
// installed. A test has a namespace of its own and may do to the nodes and to the control plane
// what befalls them in real life; it puts everything back. Skips aloud when no cluster is named.
//
// Probes stamp a folder of this machine that their pods mount, so that what ran when is measured
// and not asked for.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "e2e/scenarios/turns.h"
#include "kube/api/job.h"
#include "kube/api/node_timetable.h"
#include "kube/clock.h"
#include "kube/transport.h"

namespace kubernetes {

using base::Duration;
using base::Instant;
using nlohmann::json;
using std::chrono::milliseconds;
using std::chrono::seconds;

// The state folder of the cluster (KUBEGANG_CLUSTER_DIR).
inline constexpr const char* kStateVariable = "KUBEGANG_CLUSTER_DIR";
inline constexpr const char* kSystemNamespace = "kubegang-system";
inline constexpr const char* kProbeImage = "registry.e2e/kubegang/probe:0.1.0";
inline constexpr const char* kBusyboxImage = "registry.e2e/busybox:1";
// The machine may be busy: only what never happens takes so long.
inline constexpr milliseconds kPatience = seconds{60};

struct JobOptions {
  std::string name;
  std::int32_t nodes_count = 3;
  // Absent: the probe.
  std::vector<std::string> command;  // in busybox
  std::string image;                 // instead of either
  std::string partition;             // absent: the test's own, all nodes
  json patch = json::object();       // merged into the Job
};

struct Output {
  int exit_code = -1;
  std::string text;  // stdout and stderr
};

// A program and its arguments as a shell takes them; waits for it.
Output run(const std::string& command);

class Cluster : public testing::Test {
 protected:
  // begin("t-<test>") and end().
  void SetUp() override;
  void TearDown() override;

  // A namespace and a partition of that name: all nodes, Force.
  void begin(const std::string& name);
  // Removes both and waits until none of their pods is left.
  static void end(const std::string& name);
  void show_failure();

  // --- the API, as its administrator ---
  static kube::Transport& api();
  static base::Result<json> call(kube::Method method, const std::string& path,
                                 const json& body = nullptr);
  static json get(const std::string& path);  // null: it is not there
  void apply(const json& object);            // a refusal fails the test
  void patch(const std::string& path, const json& merge_patch);
  void remove(const std::string& path, const json& options = nullptr);
  // The same with somebody's token, to see what is denied.
  std::unique_ptr<kube::Transport> as(const std::string& token);
  // A token of the service account; bound to the pod of its namespace, if one is named.
  std::string token_of(const std::string& ns, const std::string& account,
                       const std::string& pod = {});
  static std::string kubectl(const std::string& arguments);  // the command, for run()
  static std::string kubectl_gang(const std::string& arguments);

  // --- objects ---
  void make_namespace(const std::string& name, const json& labels = json::object());
  void make_partition(const std::string& name, const json& spec_patch = json::object());
  json job_object(const JobOptions& options) const;
  void submit(const JobOptions& options);
  std::string job_path(const std::string& name) const;
  kube::Job job(const std::string& name);  // default-constructed when it is gone
  std::string state(const std::string& name);
  std::string status_text(const std::string& name);
  std::vector<json> pods(const std::string& job_name);
  json pod_on(const std::string& job_name, const std::string& node);  // null: there is none
  std::vector<kube::NodeTimetable> timetables();

  // --- waiting ---
  void wait_until(const std::string& what, const std::function<bool()>& condition,
                  milliseconds patience = kPatience);
  void wait_ready(const std::string& name);
  bool has_ended(const std::string& name);  // for good
  void wait_state(const std::string& name, const std::string& state,
                  milliseconds patience = kPatience);
  void wait_reason(const std::string& name, const std::string& reason);
  void wait_nodes_ready();
  Instant now() const { return clock_.wall(); }

  // --- who ran when ---
  scenarios::Turns turns() const;
  // Until from now on every one of them has had each node for itself twice, and nobody shared it
  // meanwhile.
  void wait_for_turns(const std::vector<std::string>& job_names);
  // Nobody ran at the same time as another since `from`, and now they take turns on all nodes.
  void expect_turns_since(Instant from, const std::vector<std::string>& job_names);
  // All pods of the first start, never restarted.
  void expect_undisturbed(const std::string& job_name);

  // --- the machines ---
  static std::string node(int number) { return "n" + std::to_string(number); }
  static int number_of(const std::string& node) { return std::stoi(node.substr(1)); }
  // A script of e2e/kubernetes with its arguments.
  Output script(const std::string& command) const;
  // A command inside a node.
  Output on_node(int number, const std::string& command) const;
  std::string log_of_node(int number, const std::string& program) const;
  // The pod's cgroup as this machine sees it; "" when the node has none.
  std::string cgroup_of(const json& pod) const;
  bool is_frozen(const json& pod) const;
  bool has_processes(const std::string& cgroup) const;
  // The processes of the pod's containers as this machine numbers them, without the pause
  // container's.
  std::vector<int> processes_of(const json& pod) const;

  static std::string state_directory();

  std::string ns_;         // and the partition's name
  std::string stamps_in_;  // where its probes stamp
  const kube::SystemClock clock_;
};

}  // namespace kubernetes
