// The plan of a round, worked out from its seed before it begins: the cluster, what its users do,
// and the faults. Events can be left out one by one, which is how a finding is made short.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "simulation/clock.h"

namespace simulation {

enum class Act {
  // users
  kSubmit,
  kDelete,
  kCancel,
  kSuspend,  // and resume `length` later
  kHold,     // and release `length` later
  kRequeue,
  kEdit,       // the nodes of a job that waits, the time limit of one that runs
  kResubmit,   // delete and submit under the same name at once
  kAsk,        // when a job like that would start (spec.testOnly)
  kEditTasks,  // of an array: how many run at once, or what is asked of some
  // administrators
  kChangeSlice,
  kChangeShare,
  kChangePartition,  // it takes no jobs, has fewer nodes, or is gone; and back `length` later
  kChangeScheduler,
  kKillSwitch,
  kReinstall,  // kubegang with its CRDs, while some of the agents are away
  kCordon,     // and uncordon `length` later
  kTaint,      // a node takes only jobs that tolerate it, for `length`
  // other controllers, and people with rights on pods
  kCleanPods,  // pods that have succeeded are deleted, for `length`
  kDeletePod,  // in any phase
  kPatchPod,
  kPatchHazard,  // what would be a hazard in a template is set in a pod, or a container is added
  kWebhook,      // a mutating webhook changes pods as they are made, for `length`
  // the operator's replicas
  kKillOperator,
  kKillOperatorAtWrite,
  kNoOperator,  // all replicas are down
  kPauseOperator,
  kPauseOperatorAtWrite,  // and on `length` after the event
  kSlowWrites,
  kHangLoop,  // it decides nothing, and its Lease is renewed
  // agents
  kKillWorker,
  kHangWorker,
  kKillAgent,
  kKillAgentAtFreeze,  // worker or container, just after it has frozen a pod for the first time
  kStopAgent,
  kTearJournal,  // or remove it; and kill the agent
  kLoseCpu,
  // the network and the API server; of one process each
  kPartition,
  kBadAnswers,
  kDelayWatches,
  kDuplicateWatches,
  kBreakWatches,
  kCompact,
  kStaleTimetables,  // of one agent
  kRestore,
  kServerDown,    // no client reaches it
  kProxyAnswers,  // of something between, in words that are not the API server's
  // machines
  kStepClock,
  kStepClockFar,  // by minutes or hours
  kDriftClock,
  kPowerOff,     // and on `length` later
  kReplaceNode,  // off, its Node deleted, a new one under the same name `length` later
  kStuckTask,
  // kubelets
  kRestartKubelet,
  kRefusePods,
  kSlowKubelet,
  kLateVolumes,  // pods stay in ContainerCreating
  kKillProgram,
  kLosePod,  // its object is deleted by force
};

std::string_view to_string(Act act);
// Returns the act of that name; nullopt if none has it.
std::optional<Act> parse_act(std::string_view name);

// The names under which the tally counts the kinds of faults that took effect, all that are drawn.
std::vector<std::string_view> felt_faults();

// One line of a plan. The act decides which of `target`, `length` and `amount` it reads
// (world_events.cc).
struct Event {
  Time at{};
  Act act = Act::kSubmit;
  std::uint64_t target = 0;  // number of the job, the node, the process; modulo how many there are
  Time length{};             // for how long, or how far
  std::uint64_t amount = 0;
  friend bool operator==(const Event&, const Event&) = default;
};
std::string to_string(const Event& event);

// A job as its user will submit it. `work` is the time that each of its programs needs while it is
// not frozen.
struct JobPlan {
  std::string name;
  int nodes = 1;
  Time work{};
  int exit_code = 0;
  bool high = false;   // in the partition of the higher tier
  bool batch = false;  // a Job of the batch group
  bool wrong = false;  // in a partition that does not exist
  Time time_limit{};   // 0 = none
  // Pods that run at once, if they are tasks and not one for each node; 0 = they are the nodes.
  int pods = 0;
  int completions = 0;     // pods that follow one another at these places; 0 = each has one pod
  bool indexed = true;     // of the batch group
  bool requeue = true;     // when it has lost a pod
  std::string rack;        // "odd" or "even": of its nodes, by their number; "" = any
  bool tolerates = false;  // nodes with a taint (Act::kTaint)
  Time start_timeout{};    // 0 = none
  // The work of the init container of its pods; 0 = they have none.
  Time init{};
  bool init_ends = true;
  // That of its first pod ends only when another pod has worked this long.
  Time init_waits{};
  // It waits until this has become of another job (spec.dependency); "" = for none.
  std::string waits_for;
  std::string waits_kind;
  int waits_task = -1;  // a task of that one, which is an array; -1: all of it
  int devices = 0;      // of each of its nodes, which has kDevices
  std::string array;    // the numbers of its tasks; "" = it is none
  int throttle = 0;     // the most that run at once; 0 = any
  int fails_task = -1;  // the only one that ends with exit_code; -1: all do
  friend bool operator==(const JobPlan&, const JobPlan&) = default;
};

struct Plan {
  std::uint64_t seed = 0;  // of all draws within the round
  int nodes = 3;
  Time slice{};
  Time fail_open_after{};
  std::string preempt_mode;
  bool turns = true;        // else each job has its nodes alone, until the share is changed
  bool fair_share = false;  // priorities by usage
  std::vector<JobPlan> jobs;
  std::vector<Event> events;  // by time
  Time faults_end{};
  friend bool operator==(const Plan&, const Plan&) = default;
};

// The devices of each node.
inline constexpr int kDevices = 2;

// Returns the rack of a node, by its number: "odd" for n1.
inline std::string rack_of(const std::string& node) {
  return node.empty() || node.back() % 2 == 0 ? "even" : "odd";
}

// Works out the plan of a round. The same seed gives the same plan until this file changes; a plan
// that is to stay is kept as text (plan_text.h). `calm`: users only, nothing goes wrong.
Plan plan_of(std::uint64_t seed, bool calm);

}  // namespace simulation
