// The interface that a scenario needs of a cluster, whichever it is. Two fixtures implement it:
// Scenario, on a devcluster of its own (harness.h), and kubernetes::Cluster, in a namespace and on
// three nodes of a real Kubernetes (e2e/kubernetes/tests/harness.h). The scenarios of both/ are
// compiled into the test programs of both.
//
// Pods of a job run the probe unless a command is named; it stamps when it ran, so that what ran
// when is measured and not asked for. Commands run in a shell's environment with BusyBox's programs
// at least.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "api/job.h"
#include "api/node_timetable.h"
#include "e2e/scenarios/turns.h"
#include "kube/clock.h"
#include "kube/transport.h"

namespace scenarios {

using nlohmann::json;
using std::chrono::milliseconds;
using std::chrono::seconds;

struct JobOptions {
  std::string name;
  std::int32_t nodes_count = 0;      // 0: all nodes of the test
  std::vector<std::string> command;  // absent: the probe
  std::string image;                 // instead of either; means nothing on the devcluster
  std::string partition;             // absent: the test's own, all its nodes
  json patch = json::object();       // merged into the Job
};

class Cluster : public testing::Test {
 protected:
  // --- what a back end is ---

  // Into the API server as its administrator.
  virtual kube::Transport& api() = 0;
  virtual std::vector<std::string> all_nodes() const = 0;  // of the test
  virtual Duration slice() const = 0;
  virtual milliseconds patience() const = 0;    // only what never happens takes so long
  virtual milliseconds look_every() const = 0;  // while waiting
  virtual std::string own_partition() const = 0;
  // Returns the pod spec of a job's template: one container "main", and what it needs.
  virtual json pod_spec_of(const JobOptions& options) const = 0;
  // Returns a folder for files of programs, as they see it on that node and as this process does.
  virtual std::string folder_of_programs() const = 0;
  virtual std::string folder_here() const = 0;
  // Returns the folder on this machine that holds the node's kubepods.
  virtual std::string node_cgroup(const std::string& node) const = 0;
  virtual devcluster::StampStore stamps() const = 0;
  // Every process of the node's agent is killed. Returns when it runs again.
  virtual void kill_agent(const std::string& node) = 0;
  // All of that time the jobs took turns on the nodes that they share, and no two ran together. A
  // back end that has the machine for itself demands more.
  virtual void expect_turns(Instant from, const std::vector<std::string>& job_names);

  // --- the API ---

  base::Result<json> call(kube::Method method, const std::string& path, const json& body = nullptr);
  // Returns the object; asks again if the API server does not answer. null: it is not there.
  json get(const std::string& path);
  std::vector<json> list(const std::string& path);  // the items
  void apply(const json& object);                   // a refusal fails the test
  void patch(const std::string& path, const json& merge_patch);
  void remove(const std::string& path, const json& options = nullptr);

  // --- objects ---

  json job_object(const JobOptions& options) const;
  void submit(const JobOptions& options);
  void submit_ready(const JobOptions& options);
  void cancel(const std::string& job_name);
  // Returns the test's own name for an object that belongs to no namespace.
  std::string name_of(const std::string& what) const;
  void make_partition(const std::string& name, const json& spec);
  std::string job_path(const std::string& name) const;
  kube::Job job(const std::string& name);      // default-constructed when it is gone
  std::string state(const std::string& name);  // "Running", …; "" before the operator saw it
  bool has_ended(const std::string& name);     // for good
  bool is_ready(const std::string& name);      // or was: the condition ends with the job
  std::string status_text(const std::string& name);
  std::vector<json> pods(const std::string& job_name);
  json pod_on(const std::string& job_name, const std::string& node);  // null: there is none
  std::vector<kube::NodeTimetable> timetables();                      // of the test's nodes

  // --- waiting; the test fails when it takes longer than the patience ---

  void wait_until(const std::string& what, const std::function<bool()>& condition);
  void wait_until(const std::string& what, const std::function<bool()>& condition,
                  milliseconds longest);
  void wait_ready(const std::string& name);
  void wait_state(const std::string& name, const std::string& state);
  void wait_state(const std::string& name, const std::string& state, milliseconds longest);
  void wait_reason(const std::string& name, const std::string& reason);
  // The same without a failure: whether it came true.
  bool comes_true(const std::function<bool()>& condition, milliseconds longest) const;
  static void pass(milliseconds time);
  Instant now() const { return clock_.wall(); }

  // --- who ran when ---

  Turns turns() const { return {stamps(), slice()}; }
  // Until from now on every one of them has had each of the nodes (absent: all) for itself twice,
  // and no two shared it meanwhile.
  void wait_for_turns(const std::vector<std::string>& job_names,
                      std::vector<std::string> nodes = {});
  // No two ran at the same time since `from`, and now they take turns on all nodes.
  void expect_turns_since(Instant from, const std::vector<std::string>& job_names);
  // All of that time they took turns on the nodes: each slot was one's alone, and each had its
  // part.
  void expect_turns_between(Instant from, Instant to, const std::vector<std::string>& job_names,
                            const std::vector<std::string>& nodes) const;
  // Returns true if the job made progress on all its nodes in the last while.
  bool runs_now(const std::string& name, Duration within = milliseconds{50}) const;
  // All pods of the first start run and were never restarted.
  void expect_undisturbed(const std::string& job_name);

  // --- the kernel ---

  // Returns the pod's cgroup as this machine sees it; "" when the node has none.
  std::string cgroup_of(const json& pod) const;
  bool is_frozen(const json& pod) const;
  // By the pods of the job; false when it has none.
  bool all_frozen(const std::string& job_name);
  bool none_frozen(const std::string& job_name);

  std::string ns_;                       // where its jobs are
  std::vector<std::string> partitions_;  // that make_partition() made
  const kube::SystemClock clock_{};
};

}  // namespace scenarios
