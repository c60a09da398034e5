#include "simulation/plan.h"

#include <algorithm>
#include <array>

#include "base/prng.h"

namespace simulation {
namespace {

using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;

// A round's faults come in its first minute: long enough for several recoveries to overlap, short
// enough for thousands of rounds.
constexpr Time kFaultsEnd = seconds{60};

// An act, its name, the least and largest length that is drawn for it, and by which names the tally
// counts that it took effect; its own name if there are none.
struct Kind {
  Act act;
  std::string_view name;
  std::int64_t length_min_ms = 0, length_max_ms = 0;
  std::array<std::string_view, 4> felt{};
};

// The first one submits a job, and the last one is of arrays alone: they are not drawn with the
// others.
constexpr std::array kUsers{
    Kind{Act::kSubmit, "submit"},
    Kind{Act::kDelete, "delete the job"},
    Kind{Act::kCancel, "cancel the job"},
    Kind{Act::kSuspend, "suspend the job", 1'000, 15'000},
    Kind{Act::kHold, "hold the job", 1'000, 15'000},
    Kind{Act::kRequeue, "requeue the job"},
    Kind{Act::kEdit, "edit the job"},
    Kind{Act::kResubmit, "delete and resubmit the job"},
    Kind{Act::kAsk, "ask when the job would start"},
    Kind{Act::kEditTasks, "edit tasks of the array", 1'000, 15'000},
};
// The length is how long the fault lasts or, if a process or machine dies, when it is back; for
// some it is the size instead: the step of a clock, the age of a restored backup, the time that a
// freeze takes. Kinds without a length act at once.
constexpr std::array kFaults{
    Kind{Act::kChangeSlice, "change the slice"},
    Kind{Act::kChangeShare, "change the partition's share"},
    Kind{Act::kChangePartition, "change the partition", 1'000, 20'000},
    Kind{Act::kChangeScheduler, "change the scheduler"},
    Kind{Act::kKillSwitch, "kill switch", 1'000, 15'000},
    Kind{Act::kReinstall, "reinstall", 1'000, 15'000},
    Kind{Act::kCordon, "cordon a node", 1'000, 30'000},
    Kind{Act::kTaint, "taint a node", 1'000, 30'000},
    Kind{Act::kCleanPods, "clean up pods", 1'000, 30'000},
    Kind{Act::kDeletePod, "delete a pod", 0, 0, {"pod deleted by others"}},
    Kind{Act::kPatchPod, "patch a pod", 0, 0, {"pod patched by others"}},
    Kind{Act::kPatchHazard,
         "patch a hazard into a pod",
         0,
         0,
         {"pod labeled by others", "deadline of a pod", "deadline of a pod reached",
          "debug container"}},
    Kind{Act::kWebhook,
         "a webhook changes pods",
         5'000,
         40'000,
         {"label of a webhook", "probe of a webhook", "sidecar of a webhook"}},
    Kind{Act::kKillOperator, "kill the operator", 100, 10'000, {"operator killed"}},
    Kind{Act::kKillOperatorAtWrite,
         "kill the operator at a write",
         100,
         5'000,
         {"operator killed before a write", "operator killed after a write"}},
    Kind{Act::kNoOperator, "no operator", 10'000, 55'000},
    Kind{Act::kPauseOperator, "pause the operator", 1'000, 30'000, {"leader paused"}},
    Kind{Act::kPauseOperatorAtWrite,
         "pause the operator at a write",
         2'000,
         30'000,
         {"operator paused before a write", "operator paused after a write"}},
    Kind{Act::kSlowWrites, "slow writes", 500, 15'000, {"write slow"}},
    Kind{Act::kHangLoop, "hang the operator's loop", 1'000, 25'000, {"leader's loop hung"}},
    Kind{Act::kKillWorker, "kill the agent's worker", 0, 0, {"agent's worker killed"}},
    Kind{Act::kHangWorker, "hang the agent's worker", 0, 0, {"agent's worker hung"}},
    Kind{Act::kKillAgent, "kill the agent's container", 500, 25'000, {"agent's container killed"}},
    Kind{Act::kKillAgentAtFreeze,
         "kill the agent at a freeze",
         500,
         25'000,
         {"agent killed at a freeze"}},
    Kind{Act::kStopAgent, "stop the agent", 2'000, 15'000, {"agent stopped"}},
    Kind{Act::kTearJournal,
         "tear or lose the journal",
         500,
         5'000,
         {"journal torn", "journal lost"}},
    Kind{Act::kLoseCpu, "no CPU for the agent", 100, 4'500, {"agent without CPU"}},
    Kind{Act::kPartition, "partition", 500, 40'000, {"request into a partition"}},
    Kind{Act::kBadAnswers, "bad answers", 1'000, 20'000, {"answer 500", "answer lost"}},
    Kind{Act::kDelayWatches, "delay watches", 1'000, 20'000, {"watch delayed"}},
    Kind{Act::kDuplicateWatches,
         "duplicate watch events",
         1'000,
         20'000,
         {"watch event duplicated"}},
    Kind{Act::kBreakWatches, "break watches off", 0, 0, {"watch broken off"}},
    Kind{Act::kCompact, "compact", 0, 0, {"watch gone (410)"}},
    Kind{Act::kStaleTimetables, "timetables from a stale cache", 1'000, 15'000},
    Kind{Act::kRestore, "restore etcd", 500, 15'000, {"etcd restored"}},
    Kind{Act::kServerDown, "API server down", 500, 20'000},
    Kind{Act::kProxyAnswers,
         "answers of a proxy",
         1'000,
         20'000,
         {"answer 404 of a proxy", "answer 410 of a proxy", "answer 429 of a proxy",
          "answer 502 of a proxy"}},
    Kind{Act::kStepClock, "step a clock", 10, 30'000, {"clock stepped"}},
    Kind{Act::kStepClockFar,
         "step a clock far",
         0,
         0,
         {"clock of a node stepped far", "clock of an operator stepped far"}},
    Kind{Act::kDriftClock, "drift a clock", 0, 0, {"clock drifts"}},
    Kind{Act::kPowerOff, "power off", 1'000, 30'000, {"node off"}},
    Kind{Act::kReplaceNode, "replace the node", 2'000, 20'000, {"node replaced"}},
    Kind{Act::kStuckTask, "a task that does not freeze", 1, 5'000, {"task that does not freeze"}},
    Kind{Act::kRestartKubelet, "restart kubelet", 0, 0, {"kubelet restarted"}},
    Kind{Act::kRefusePods, "kubelet refuses pods", 0, 0, {"pod refused by kubelet"}},
    Kind{Act::kSlowKubelet, "slow kubelet", 2'000, 20'000, {"kubelet slow"}},
    Kind{Act::kLateVolumes, "late volumes", 2'000, 40'000, {"pod in ContainerCreating"}},
    Kind{Act::kKillProgram, "kill a program", 0, 0, {"program killed"}},
    Kind{Act::kLosePod, "lose a pod", 0, 0, {"pod object lost"}},
};

// Returns the kind of an act; null if none has it.
template <typename Has>
const Kind* kind_that(Has has) {
  const Kind* found = nullptr;
  const auto look_in = [&](const auto& kinds) {
    const auto kind = std::find_if(kinds.begin(), kinds.end(), has);
    if (kind != kinds.end()) found = &*kind;
  };
  look_in(kUsers);
  look_in(kFaults);
  return found;
}

// Draws a whole number of milliseconds from min to max, both included.
Time between(base::Prng& prng, std::int64_t min_ms, std::int64_t max_ms) {
  return milliseconds{min_ms + static_cast<std::int64_t>(
                                   prng.below(static_cast<std::uint64_t>(max_ms - min_ms + 1)))};
}

// Draws an event between two instants. It is over when the faults end. Targets and amounts are raw
// draws, which the act reduces to what it needs.
Event event_of(base::Prng& prng, const Kind& kind, Time from, Time until) {
  Event event{.at = between(prng, from / milliseconds{1}, until / milliseconds{1}),
              .act = kind.act,
              .target = prng.next() >> 8U,
              .length = between(prng, kind.length_min_ms, kind.length_max_ms),
              .amount = prng.next() >> 8U};
  // World::heal() counts on that.
  event.length = std::min(event.length, kFaultsEnd - event.at);
  return event;
}

// Every job is submitted, the first one soon, so that no round is empty; and up to three acts on
// jobs.
void add_users(base::Prng& prng, Plan& plan) {
  for (std::size_t i = 0; i < plan.jobs.size(); ++i) {
    plan.events.push_back(
        {.at = between(prng, 0, i == 0 ? 1'000 : 45'000), .act = Act::kSubmit, .target = i});
  }
  const std::uint64_t meddling = prng.below(4);
  for (std::uint64_t i = 0; i < meddling; ++i) {
    const Kind& kind = kUsers[1 + prng.below(kUsers.size() - 2)];
    plan.events.push_back(event_of(prng, kind, seconds{2}, seconds{55}));
  }
}

// Some jobs have more pods than run at once, which follow one another, or are work queues. All jobs
// draw alike, so that what one of them is does not change the draws of the next.
void add_followers(base::Prng& prng, Plan& plan) {
  for (JobPlan& job : plan.jobs) {
    const std::uint64_t kind = prng.below(6);
    const int pods = job.nodes + static_cast<int>(prng.below(2));
    const int completions = pods + 1 + static_cast<int>(prng.below(4));
    const Time work = between(prng, 1'500, 6'000);
    // A third of batch Jobs runs its pods all at once, and a sixth has no completions; a sixth of
    // the other jobs has pods that follow one another.
    const bool is_queue = job.batch && kind == 5;
    const bool follows = job.batch ? kind >= 2 && kind <= 4 : kind == 0 && !job.wrong;
    if (!is_queue && !follows) continue;
    job.pods = pods;
    job.indexed = job.batch && (kind == 2 || kind == 3);
    if (!follows) continue;
    job.completions = completions;
    job.work = work;
  }
}

// Templates differ: some jobs run only on one half of the nodes, or on nodes with a taint, too;
// some have an init container. One that may never end, or that waits for a peer, needs a timeout.
void add_templates(base::Prng& prng, Plan& plan) {
  for (JobPlan& job : plan.jobs) {
    const std::uint64_t rack = prng.below(8);
    job.tolerates = prng.below(3) == 0;
    const bool has_init = prng.below(5) == 0;
    const Time init = between(prng, 500, 4'000);
    const bool is_endless = prng.below(4) == 0 && !job.batch;
    const bool waits = prng.below(3) == 0 && !job.batch && job.nodes > 1;
    const Time waits_for = between(prng, 500, 6'000);
    const bool has_timeout = prng.below(4) == 0 && !job.batch;
    const Time timeout = seconds{12 + static_cast<std::int64_t>(prng.below(20))};
    if (rack < 2) {
      job.rack = rack == 0 ? "odd" : "even";
      job.nodes = std::min(job.nodes, (plan.nodes + (rack == 0 ? 1 : 0)) / 2);
    }
    if (has_init) {
      job.init = init;
      job.init_ends = !is_endless;
      if (waits && job.nodes > 1) job.init_waits = waits_for;
    }
    if (has_timeout || !job.init_ends || job.init_waits > Time{0}) job.start_timeout = timeout;
  }
}

// A third of our jobs wait for one that comes before them in the plan: there are no circles. It may
// be submitted later, or never.
void add_dependencies(base::Prng& prng, Plan& plan) {
  constexpr std::array kKinds{"After", "AfterAny", "AfterOK", "AfterOK", "AfterNotOK"};
  for (std::size_t i = 1; i < plan.jobs.size(); ++i) {
    JobPlan& job = plan.jobs[i];
    const bool waits = prng.below(3) == 0 && !job.batch && !job.wrong;
    const std::uint64_t other = prng.below(i);
    const std::uint64_t kind = prng.below(kKinds.size());
    if (!waits) continue;
    job.waits_for = plan.jobs[other].name;
    job.waits_kind = kKinds[kind];
  }
}

// In a third of the rounds half of our jobs want devices: kube-scheduler binds their pods.
void add_devices(base::Prng& prng, Plan& plan) {
  const bool has_some = prng.below(3) == 0;
  for (JobPlan& job : plan.jobs) {
    const std::uint64_t wanted = prng.below(2 * kDevices);
    const bool may_want = !job.batch && job.pods == 0 && wanted <= kDevices;
    if (has_some && may_want) job.devices = static_cast<int>(wanted);
  }
}

// Numbers of tasks as users write them.
std::string task_numbers(std::uint64_t shape, int count) {
  if (shape == 0) return "1-" + std::to_string(count);
  if (shape == 1) return "0-" + std::to_string(2 * (count - 1)) + ":2";
  if (shape == 2) return "3," + std::to_string(5) + "-" + std::to_string(5 + count - 2);
  return "0-" + std::to_string(count - 1);
}

// A quarter of kubegang Jobs with one start are arrays, half of them with a throttle; up to three
// times their users ask something of some tasks. A job that waits for one may wait for one of its
// tasks, and an array for the tasks of the same numbers.
void add_arrays(base::Prng& prng, Plan& plan) {
  for (std::size_t i = 0; i < plan.jobs.size(); ++i) {
    JobPlan& job = plan.jobs[i];
    const bool is_one = prng.below(4) == 0 && !job.batch && !job.wrong && job.pods == 0 &&
                        job.completions == 0 && job.init_ends && job.init_waits == Time{0};
    const int count = 2 + static_cast<int>(prng.below(19));
    const std::uint64_t shape = prng.below(4);
    const bool has_throttle = prng.below(2) == 0;
    const int throttle = 1 + static_cast<int>(prng.below(4));
    const Time work = between(prng, 1'000, 6'000);
    const bool one_fails = prng.below(3) == 0;
    const std::uint64_t edits = prng.below(4);
    if (!is_one) continue;
    job.array = task_numbers(shape, count);
    job.nodes = std::min(job.nodes, 2);
    job.work = work;
    if (has_throttle) job.throttle = throttle;
    if (one_fails) {
      job.exit_code = 3;
      job.fails_task = 6;
    }
    for (std::uint64_t k = 0; k < edits; ++k) {
      Event& event =
          plan.events.emplace_back(event_of(prng, kUsers.back(), seconds{2}, seconds{55}));
      event.target = i;
    }
  }
  for (JobPlan& job : plan.jobs) {
    const auto first = std::find_if(plan.jobs.begin(), plan.jobs.end(),
                                    [&](const JobPlan& one) { return one.name == job.waits_for; });
    const std::uint64_t kind = prng.below(3);
    if (first == plan.jobs.end() || first->array.empty()) continue;
    if (kind == 0) job.waits_task = 6;
    if (kind == 1 && !job.array.empty()) job.waits_kind = "AfterCorr";
  }
}

// A few kinds of faults in each round, so that rare combinations come about and each is also seen
// without the others.
void add_faults(base::Prng& prng, Plan& plan) {
  std::vector<Kind> kinds;
  for (const Kind& kind : kFaults) {
    // A quarter of the kinds, twelve of 48 on average.
    if (prng.below(4) == 0) kinds.push_back(kind);
  }
  // One round in eight has none: there all times can be compared.
  if (prng.below(8) == 0 || kinds.empty()) return;
  const std::uint64_t count = 2 + prng.below(12);
  for (std::uint64_t i = 0; i < count; ++i) {
    const Kind& kind = kinds[prng.below(kinds.size())];
    plan.events.push_back(event_of(prng, kind, seconds{1}, seconds{58}));
  }
}

}  // namespace

std::string_view to_string(Act act) {
  const Kind* kind = kind_that([&](const Kind& one) { return one.act == act; });
  return kind == nullptr ? "?" : kind->name;
}

std::optional<Act> parse_act(std::string_view name) {
  const Kind* kind = kind_that([&](const Kind& one) { return one.name == name; });
  return kind == nullptr ? std::nullopt : std::optional{kind->act};
}

std::vector<std::string_view> felt_faults() {
  std::vector<std::string_view> names;
  for (const Kind& kind : kFaults) {
    for (const std::string_view name : kind.felt) {
      if (!name.empty()) names.push_back(name);
    }
    if (kind.felt[0].empty()) names.push_back(kind.name);
  }
  return names;
}

std::string to_string(const Event& event) {
  return std::to_string(event.at / milliseconds{1}) + " ms: " + std::string{to_string(event.act)} +
         " (target " + std::to_string(event.target) + ", " +
         std::to_string(event.length / milliseconds{1}) + " ms, amount " +
         std::to_string(event.amount) + ")";
}

Plan plan_of(std::uint64_t seed, bool calm) {
  base::Prng prng{
      base::Prng{seed}.next()};  // not seed itself: its neighbours' draws would be alike
  Plan plan{.seed = seed, .nodes = 2 + static_cast<int>(prng.below(3)), .faults_end = kFaultsEnd};
  constexpr std::array kSlices{seconds{1}, seconds{2}, seconds{4}};
  // Short ones, so that agents fail open within a round in which no operator leads; and the
  // default, with which they do not.
  constexpr std::array<Time, 3> kFailOpen{seconds{10}, seconds{20}, minutes{15}};
  constexpr std::array kModes{"Suspend", "Suspend", "Requeue", "Cancel"};
  plan.slice = kSlices[prng.below(kSlices.size())];
  plan.fail_open_after = kFailOpen[prng.below(kFailOpen.size())];
  plan.preempt_mode = kModes[prng.below(kModes.size())];
  plan.fair_share = prng.below(3) == 0;
  plan.turns = prng.below(4) != 0;
  // Where a higher tier suspends jobs, nodes need timetables (operator/nodes/turns.h).
  if (!plan.turns && plan.preempt_mode == "Suspend") plan.preempt_mode = "Requeue";
  const std::uint64_t jobs = 2 + prng.below(4);
  for (std::uint64_t i = 0; i < jobs; ++i) {
    JobPlan job{.name = "job-" + std::to_string(i),
                .nodes = 1 + static_cast<int>(prng.below(static_cast<std::uint64_t>(plan.nodes))),
                .work = between(prng, 3'000, 15'000)};
    // One job in ten fails; one in four preempts others; one in four is a Job of the batch group;
    // one in 16 of the others is refused; half of them have a time limit, which a third of these
    // reach.
    if (prng.below(10) == 0) job.exit_code = 1;
    job.high = prng.below(4) == 0;
    job.batch = prng.below(4) == 0;
    job.wrong = !job.batch && prng.below(16) == 0;
    if (prng.below(2) == 0) {
      const bool is_short = prng.below(3) == 0;
      job.time_limit = is_short ? between(prng, 3'000, 15'000) : between(prng, 60'000, 300'000);
    }
    plan.jobs.push_back(job);
  }
  add_users(prng, plan);
  if (!calm) add_faults(prng, plan);
  add_templates(prng, plan);
  add_followers(prng, plan);
  // A quarter does not run again after a loss, and ends as NodeFail.
  for (JobPlan& job : plan.jobs) job.requeue = job.batch || prng.below(4) != 0;
  // One round in 16 has a job that works for longer than an agent lets a pod run for debug
  // containers.
  const bool is_long = prng.below(16) == 0;
  if (JobPlan& job = plan.jobs.front(); is_long && job.completions == 0) job.work += minutes{3};
  add_dependencies(prng, plan);
  add_devices(prng, plan);
  add_arrays(prng, plan);
  std::stable_sort(plan.events.begin(), plan.events.end(),
                   [](const Event& a, const Event& b) { return a.at < b.at; });
  return plan;
}

}  // namespace simulation
