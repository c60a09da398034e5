// A node in virtual time: a kubelet that "runs" pods by letting time pass for them, and an agent
// that freezes them by the NodeTimetable, as the real ones do (settle rule, thaw on deletion). It
// checks, on the way, that no two gangs run on the node at the same time.
#pragma once

#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "api/node_timetable.h"
#include "kube/api/pod.h"
#include "kube/client.h"
#include "kube/clock.h"
#include "operator/testing/stored.h"

namespace control {

struct FakeNodeOptions {
  std::string name;
  int cpus = 8;
  std::string memory = "16Gi";
  int pods = 110;
  std::string agents_namespace;  // of the agent's pod; "" = the agent is not a pod
  base::Duration start_delay = std::chrono::milliseconds{300};  // until a pod's container runs
};

// How a pod behaves; from annotations of the template, so that tests say it in the job:
//   test/work: "30s"        how long its program runs (default: forever)
//   test/exit-code: "3"     with what it ends
//   test/only-pod: "0"      both are of the pod with this index; the others run forever
//   test/fails: "train:3"   of the kubegang Job of that name, the pod with this index ends with 1
//   test/work-of-others: "5s"  the program of all pods but that with index 0 runs this long
//   test/refuse: "OutOfcpu" kubelet refuses it with this reason, the first `test/refusals` times
//   test/refuse-index: "3"     of the pod with this index only
//   test/waiting: "ErrImagePull"  its container never starts, for this reason
//   test/waiting-index: "4"    of the pod with this index only
//   test/init: "10s"        its init container runs this long; never frozen meanwhile
//   test/init-index: "0"       of the pod with this index only, the other ones' end at once
//   test/usage: "{…"        the termination message with which it ends
//   test/oom: "true"        it is killed for memory when its work is done
class FakeNode {
 public:
  // It writes through the client, and looks at `pods` and `tables`.
  FakeNode(kube::Client client, const Stored<kube::Pod>& pods,
           const Stored<kube::NodeTimetable>& tables, const kube::Clock& clock,
           FakeNodeOptions options);

  // Creates the Node object, ready.
  void create();
  // Lets the time since the last step pass for its pods, and looks at the API server unless it is
  // still at the version that was seen last.
  void step(std::int64_t server_version);
  // Switches the machine off: nothing happens on it, and kubelet is silent.
  void power_off() { is_on_ = false; }
  void set_ready(bool ready);
  // Removes the agent, and thaws what it had frozen; an agent that is asked to stop says so
  // last.
  void remove_agent(bool with_last_word);
  // Brings it back, and it says so.
  void return_agent();
  // Makes the agent slice no more, for this reason of its condition Ready; "": it does again.
  void open(const std::string& reason);

  const std::string& name() const { return options_.name; }
  // Returns "t: a and b ran together on n1", … since the start.
  const std::vector<std::string>& overlaps() const { return overlaps_; }
  // Returns the time that the pod has run.
  base::Duration ran(const std::string& pod) const;

 private:
  struct Process {
    std::string uid, ns, name, job_uid, container, init_container;
    std::optional<base::Instant> init_since;
    bool waits = false;  // its container cannot be started
    base::Instant accepted_at{};
    std::optional<base::Instant> started_at;
    base::Duration ran{};
    bool finished = false;
  };

  void take_annotations(const kube::Pod& pod);
  void look_at(const kube::Pod& pod);
  void start_what_is_due();
  // Lets its init container run; returns true if that has ended, or there is none.
  bool initialize(Process& process);
  void start(Process& process);
  void finish(Process& process, int exit_code, const std::string& reason);
  // Returns the conditions of the pod, with the given readiness.
  nlohmann::json conditions_of(const Process& process, bool is_ready) const;
  void pass_time(base::Instant from, base::Instant to);
  bool is_frozen(const Process& process, base::Instant t) const;
  void report();
  void create_agent_pod();
  nlohmann::json agent_condition() const;
  void patch_status(const Process& process, const nlohmann::json& status);

  kube::Client client_;
  const Stored<kube::Pod>& pods_;
  const Stored<kube::NodeTimetable>& tables_;
  const kube::Clock& clock_;
  const FakeNodeOptions options_;
  bool is_on_ = true;
  bool has_agent_ = true;
  base::Instant last_{};
  std::int64_t seen_ = -1;
  std::map<std::string, Process> processes_;         // by pod UID
  std::map<std::string, kube::Labels> annotations_;  // by pod UID
  std::map<std::string, base::Duration> ran_;
  std::map<std::string, int> refusals_;  // by job UID
  std::optional<kube::NodeTimetable> table_;
  std::string open_reason_;  // "" = it slices
  base::Instant ready_since_{};
  std::vector<std::string> overlaps_;
};

}  // namespace control
