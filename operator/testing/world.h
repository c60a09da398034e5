// A whole cluster in virtual time on one thread: the in-memory API server, nodes, and one or more
// operator processes that can crash at any write. Everything follows from the seed.
#pragma once

#include <functional>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "kube/client.h"
#include "kube/testing/api_server/api_server.h"
#include "kube/testing/manual_clock.h"
#include "kube/testing/manual_sleeper.h"
#include "operator/loop/control_loop.h"
#include "operator/loop/informers.h"
#include "operator/testing/fake_node.h"
#include "operator/testing/manual_writer.h"
#include "operator/testing/pump_transport.h"
#include "operator/testing/stored.h"

namespace control {

// The operator's object graph, as the program makes it, without threads.
class OperatorProcess {
 public:
  OperatorProcess(devcluster::ApiServer& server, kube::ManualClock& clock, std::uint64_t seed,
                  std::int32_t lease_transitions, GatedPods::Adopts adopts,
                  std::vector<std::string>& log);
  void expect_agents_in(const std::string& ns) { loop_.expect_agents_in(ns); }

  // Everything that can be done now. Returns false when it crashed.
  bool pump();
  // Informers and loop only: what it decides stays unwritten.
  void pump_without_writes();

  ManualWriter& writer() { return writer_; }
  ControlLoop& loop() { return loop_; }
  // Why it would have ended; "" = it goes on.
  const std::string& ended() const { return ended_; }

 private:
  bool look_around();

  devcluster::ApiServer& server_;
  std::int64_t seen_ = -1;
  PumpTransport transport_;
  kube::ManualSleeper sleeper_;
  kube::Client client_;
  kube::Waker waker_;
  Inbox inbox_;
  TemplateBook templates_;
  ManualWriter writer_;
  Informers informers_;
  ControlLoop loop_;
  std::string ended_;
};

class World {
 public:
  struct Options {
    std::uint64_t seed = 1;
    std::vector<std::string> nodes = {"n12", "n13", "n14", "n15", "n16"};
    int cpus = 8;
    int pods_per_node = 110;
    int crash_per_mille = 0;
    bool agent_pods = false;      // else agents are not pods
    bool kube_scheduler = false;  // binds pods that are pinned to a node
    bool pod_groups = false;      // PodGroups name gangs, where a test has their kind served
  };
  explicit World(Options options);

  // YAML-like JSON; kinds of kubegang.io and namespaces. Created or merged into what is there.
  void apply(const nlohmann::json& object);
  void remove_job(const std::string& name);
  void patch_job(const std::string& name, const nlohmann::json& spec);

  // Lets virtual time pass in ticks; after each, every part does what it can.
  void run_for(base::Duration duration);
  // Runs until it holds, at most `limit`. Returns true if it does.
  bool run_until(const std::function<bool()>& condition, base::Duration limit);
  void pump();

  kube::Job job(const std::string& name) const;
  std::string state(const std::string& name) const;  // "Running", "" when there is none
  std::string condition(const std::string& kind, const std::string& name,
                        const std::string& type) const;  // "True: reason: message"
  std::vector<kube::Pod> pods() const;
  std::vector<kube::Pod> pods_of(const std::string& job) const;
  kube::NodeTimetable timetable(const std::string& node) const;
  FakeNode& node(const std::string& name);
  // Returns the time that the job's first pod of the present start has run.
  base::Duration ran(const std::string& job);

  // Violations seen so far: two incarnations, pods without allocation, overlaps, more pods than
  // places.
  std::vector<std::string> violations() const;
  std::string log_tail() const;

  // A crash and a new leader, by hand.
  void restart_operator();
  OperatorProcess& process() { return *process_; }
  std::unique_ptr<OperatorProcess> take_process() { return std::move(process_); }
  int crashes() const { return crashes_; }
  void set_crash_per_mille(int value);
  void crash_after(WritePoint point, int count = 1) {
    process_->writer().crash_after(point, count);
  }

  kube::Client& client() { return client_; }
  kube::ManualClock& clock() { return clock_; }
  devcluster::ApiServer& server() { return server_; }

  base::Duration tick = std::chrono::milliseconds{250};

 private:
  void check_pods();
  void bind_pinned_pods();

  Options options_;
  kube::ManualClock clock_;
  devcluster::ApiServer server_;
  PumpTransport transport_;
  kube::ManualSleeper sleeper_;
  kube::Client client_;
  const Stored<kube::Job> jobs_;
  const Stored<kube::Pod> pods_;
  const Stored<kube::NodeTimetable> tables_;
  std::vector<std::string> log_;
  std::vector<std::unique_ptr<FakeNode>> nodes_;
  std::int32_t transitions_ = 0;
  int crashes_ = 0;
  std::unique_ptr<OperatorProcess> process_;
  std::vector<std::string> violations_;
  std::int64_t checked_ = -1;
  std::int64_t bound_ = -1;
};

// Objects as a user would write them.
nlohmann::json linear_config(const std::string& slice = "30s");
nlohmann::json partition(const std::string& name, const nlohmann::json& spec);
// Makes the spec of the default partition, with turns of up to four jobs; merges `more` into it.
nlohmann::json force(const std::string& nodes = "n[12-16]");
nlohmann::json force(const std::string& nodes, const nlohmann::json& more);
// Makes a job of `nodes` nodes whose program runs for `work` ("" = forever).
nlohmann::json gang_job(const std::string& name, int nodes, const std::string& work);
// `more` is merged into its spec, `annotations` are its template's; null: nothing.
nlohmann::json gang_job(const std::string& name, int nodes, const std::string& work,
                        const nlohmann::json& more);
nlohmann::json gang_job(const std::string& name, int nodes, const std::string& work,
                        const nlohmann::json& more, const nlohmann::json& annotations);

void expect_no_violations(const World& world);

}  // namespace control
