// The administrator's configuration: the cluster's parameters (1.1), partitions (1.2), QOS (1.4),
// accounts and users (9.1). Plain values; defaults are Slurm's unless a comment says otherwise.
// scheduler/model/legality.h refuses illegal combinations (1.6) before a configuration reaches the
// scheduler.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/time.h"
#include "scheduler/model/accounts.h"
#include "scheduler/model/devices.h"
#include "scheduler/model/ids.h"
#include "scheduler/model/licenses.h"
#include "scheduler/model/limits.h"
#include "scheduler/model/quirks.h"
#include "scheduler/model/tres.h"

namespace sched {

enum class SelectType { kLinear, kConsTres };
enum class SelectUnit { kCpu, kCore, kSocket };  // CR_CPU, CR_Core, CR_Socket; cons_tres only
// The jobs that may preempt others: none, those of a higher partition tier, or those whose QOS
// lists the other's QOS (7.2).
enum class PreemptType { kNone, kPartitionPriority, kQos };
// The treatment of a victim (7.1). kOff for a partition: its jobs are never victims (C7); for the
// cluster: there is no preemption at all, so it goes with PreemptType kNone alone (C3).
enum class PreemptMode { kOff, kCancel, kRequeue, kSuspend };
enum class SchedulerType { kBuiltin, kBackfill };
enum class EnforcePartLimits { kNone, kAny, kAll };
enum class PlacementPolicy { kCompat, kMinimisePreemption };  // Slurm's, or fewest victims (15.4)

// At most one of the two is set at one level (C16). Nothing set = unlimited / whole node (1.8).
struct MemoryLimit {
  std::optional<MemoryMiB> per_cpu;
  std::optional<MemoryMiB> per_node;
  friend bool operator==(const MemoryLimit&, const MemoryLimit&) = default;
};

struct PreemptParameters {  // in which order victims are asked (1.1.1)
  int reorder_count = 1;
  bool strict_order = false;
  bool youngest_first = false;
  std::optional<Priority> min_exempt_priority;
  bool reclaim_licenses = false;  // jobs that hold licenses may need to end for them (R7.2)
  friend bool operator==(const PreemptParameters&, const PreemptParameters&) = default;
};

struct QueueParameters {  // how often and how deep the main pass walks the queue (3.9)
  int default_queue_depth = 100;
  int partition_job_depth = 0;                               // 0 = no limit
  int max_job_start = 0;                                     // in one pass; likewise
  base::Duration sched_interval = std::chrono::seconds{60};  // < 0: no main loop
  base::Duration requeue_delay = std::chrono::seconds{120};
  int max_batch_requeue = 5;
  base::Duration complete_wait{};  // no pass while a job has been completing for less; 0 = off
  bool defer = false;  // as it always is: a submission starts nothing by itself (recordings)
  friend bool operator==(const QueueParameters&, const QueueParameters&) = default;
};

enum class PriorityType { kBasic, kMultifactor };
// PriorityUsageResetPeriod: when all usage goes back to 0, at the beginning of a day, week, month,
// quarter or year in UTC.
enum class UsageReset { kNever, kDaily, kWeekly, kMonthly, kQuarterly, kYearly };

// Chapter 9; everything but `type` has a meaning with kMultifactor alone.
struct PriorityParameters {
  PriorityType type = PriorityType::kBasic;
  // PriorityWeight…
  std::uint32_t weight_age = 0, weight_assoc = 0, weight_fair_share = 0, weight_job_size = 0,
                weight_partition = 0, weight_qos = 0;
  TresWeights weight_tres;
  base::Duration max_age = std::chrono::hours{7 * 24};
  bool favor_small = false;
  base::Duration decay_half_life = std::chrono::hours{7 * 24};  // 0 = usage does not decay
  base::Duration calc_period = std::chrono::minutes{5};
  UsageReset usage_reset = UsageReset::kNever;
  int dampening = 1;  // FairShareDampeningFactor
  // PriorityFlags
  bool accrue_always = false;
  bool calculate_running = false;
  bool fair_tree = true;  // false: NO_FAIR_TREE
  bool increase_only = false;
  bool max_tres = false;  // MAX_TRES: a job is billed for its dearest resource, not for the sum
  bool normal_assoc = true, normal_partition = true, normal_qos = true, normal_tres = true;
  bool small_relative_to_time = false;
  friend bool operator==(const PriorityParameters&, const PriorityParameters&) = default;
};

// The jobs that sched/backfill plans, and how far ahead (8.2); 0 jobs means any number.
struct BackfillParameters {
  base::Duration interval = std::chrono::seconds{30};  // < 0: no backfill
  base::Duration resolution = std::chrono::seconds{60};
  base::Duration window = std::chrono::minutes{1440};
  int max_job_test = 500;  // records of the queue, in one pass; at least 1
  int max_job_start = 0;   // in one pass
  int max_job_part = 0, max_job_user = 0, max_job_user_part = 0;  // tried in one pass, of each
  // Jobs that are younger or of a lower priority get no promise: they start now or not at all.
  base::Duration min_age_reserve{0};
  Priority min_prio_reserve{};
  int job_part_count_reserve = 0;  // the jobs of each partition that get a promise
  int max_job_array_resv = 20;     // the tasks of an array that get one, in each partition
  int node_space_size = 0;         // entries of the plan; 0 = max_job_test
  base::Duration window_linear{0};
  bool continues = false;            // bf_continue: goes on although something changed meanwhile
  bool busy_nodes = false;           // a promise takes nodes that are in use first
  bool one_resv_per_job = false;     // also of a job that waits in several partitions
  bool running_job_reserve = false;  // nodes that a running job has as a whole are promised to it
  bool licenses = false;             // bf_licenses: they are planned, too
  friend bool operator==(const BackfillParameters&, const BackfillParameters&) = default;
};

// Times are real durations, not Slurm's seconds or minutes; slurm.conf's units are resolved where
// it is read.
struct ClusterParameters {
  Quirks quirks;  // all off, unless Slurm 22.05 is replayed or asked for
  // A recording is replayed: it tells the passes, but not of which kind those were that started
  // nothing.
  bool is_recording = false;
  // The recorded clock at instant 0, within its minute, if that is known: Slurm counts
  // in whole seconds, and its windows begin with half minutes (R8.3).
  std::optional<base::Duration> recorded_clock;
  SelectType select = SelectType::kConsTres;
  SelectUnit unit = SelectUnit::kCore;
  bool memory = true;              // memory is a consumable resource (R5.1)
  bool least_loaded = false;       // CR_LLN
  bool one_task_per_core = false;  // CR_ONE_TASK_PER_CORE
  bool core_default_dist_block = false;
  bool task_affinity = true;  // false = TaskPlugin task/none: CR_CPU gang counts CPUs (6.2)
  PreemptType preempt_type = PreemptType::kNone;
  PreemptMode preempt_mode = PreemptMode::kOff;
  bool gang = false;  // PreemptMode contains GANG
  // PreemptMode contains WITHIN or PRIORITY (7.2). They are conditions on which jobs may preempt,
  // no modes.
  bool preempt_within = false;
  bool preempt_priority = false;
  std::optional<base::Duration> preempt_exempt_time;
  PreemptParameters preempt;
  PlacementPolicy placement = PlacementPolicy::kCompat;
  base::Duration time_slice = std::chrono::seconds{30};
  base::Duration kill_wait = std::chrono::seconds{30};
  base::Duration message_timeout = std::chrono::seconds{10};          // part of 7.7 step 2's window
  bool requeue_default = true;                                        // JobRequeue
  std::optional<base::Duration> over_time_limit = base::Duration{0};  // nothing = UNLIMITED
  bool kill_invalid_depend = false;  // DependencyParameters: jobs that can never start are canceled
  int max_array_size = 100'001;      // numbers of an array's tasks are below; 0: no arrays
  EnforcePartLimits enforce_part_limits = EnforcePartLimits::kNone;
  SchedulerType scheduler = SchedulerType::kBackfill;
  PriorityParameters priority;
  QueueParameters queue;
  BackfillParameters backfill;
  MemoryLimit default_memory;                               // DefMemPerCPU, DefMemPerNode
  MemoryLimit max_memory;                                   // MaxMemPerCPU, MaxMemPerNode
  PerGpu default_per_gpu;                                   // DefCpuPerGPU, DefMemPerGPU
  Licenses licenses;                                        // how many there are
  base::Duration timetable_lead = std::chrono::seconds{3};  // 0 with told timing
  friend bool operator==(const ClusterParameters&, const ClusterParameters&) = default;
};

// Returns the last whole second by then; of Slurm's clock, if it is known what that showed.
inline base::Instant whole_second(const ClusterParameters& parameters, base::Instant at) {
  const base::Duration clock = parameters.recorded_clock.value_or(base::Duration{0});
  return std::chrono::floor<std::chrono::seconds>(at + clock) - clock;
}

// bf_licenses, if there is a backfill.
inline bool plans_licenses(const ClusterParameters& parameters) {
  return parameters.backfill.licenses && parameters.scheduler == SchedulerType::kBackfill &&
         parameters.backfill.interval >= base::Duration{0};
}

enum class PartitionState { kUp, kDown, kDrain, kInactive };  // takes jobs, starts them: 1.2.1
// 1.2.2 says what they come to: how many jobs may be on one unit, and if all jobs must share.
enum class OverSubscribe { kNo, kYes, kForce, kExclusive };

struct PartitionConfig {
  std::string name;
  std::vector<std::string> nodes;  // names; those that do not exist (yet) are left out
  bool is_default = false;
  PartitionState state = PartitionState::kUp;
  std::uint16_t priority_tier = 1;
  std::uint16_t priority_job_factor = 1;
  OverSubscribe over_subscribe = OverSubscribe::kNo;
  int max_share = 4;  // YES:n, FORCE:n; of no meaning for NO and EXCLUSIVE
  bool exclusive_user = false;
  std::optional<PreemptMode> preempt_mode;  // nothing = the cluster's
  bool preempt_priority = false;            // PRIORITY: its jobs preempt none of higher priority
  base::Duration grace_time{0};
  MemoryLimit default_memory;
  MemoryLimit max_memory;
  PerGpu default_per_gpu;
  int min_nodes = 0;
  std::optional<int> max_nodes;
  std::optional<int> max_cpus_per_node;
  std::optional<base::Duration> default_time;  // nothing = max_time
  std::optional<base::Duration> max_time;
  std::optional<base::Duration> over_time_limit;
  bool least_loaded = false;
  std::string qos;  // partition QOS
  // TRESBillingWeights in millionths; nothing = the CPUs are billed. Memory is billed by the MiB.
  std::optional<TresWeights> billing_weights_micro;
  // Users (namespaces) and QOS that may use it; nothing = all. Allow wins over deny.
  std::optional<std::vector<std::string>> allow_users, deny_users, allow_qos, deny_qos;
  friend bool operator==(const PartitionConfig&, const PartitionConfig&) = default;
};

// A QOS (1.4). Its mode, grace time and exempt time count for its jobs as victims; its limits for
// its own jobs and, if a partition names it, for all jobs there.
struct QosConfig {
  std::string name;
  std::uint32_t priority = 0;
  std::vector<std::string> preempt;  // QOS that it may preempt
  std::optional<PreemptMode> preempt_mode;
  bool preempt_within = false;    // WITHIN: also jobs of this QOS, when their priority is lower
  bool preempt_priority = false;  // PRIORITY: only jobs of lower priority
  std::optional<base::Duration> preempt_exempt_time;
  base::Duration grace_time{0};
  bool deny_on_limit = false;
  bool partition_min_nodes = false;  // waives the partition's bound, likewise below
  bool partition_max_nodes = false;
  bool partition_time_limit = false;
  bool over_part_qos = false;
  bool no_reserve = false;
  Limits limits;
  std::int64_t usage_factor_milli = 1000;  // UsageFactor: what usage of its jobs counts
  friend bool operator==(const QosConfig&, const QosConfig&) = default;
};

// All of it, as accepted. Partitions in the order in which they were created (it breaks ties).
struct Configuration {
  ClusterParameters cluster;
  std::vector<PartitionConfig> partitions;
  std::vector<QosConfig> qos;
  // Nothing in both: there are no associations, and users are not told apart by shares.
  std::vector<AccountConfig> accounts;
  std::vector<UserConfig> users;
  friend bool operator==(const Configuration&, const Configuration&) = default;
};

}  // namespace sched
