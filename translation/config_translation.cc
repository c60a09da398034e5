#include "translation/config_translation.h"

#include <algorithm>
#include <utility>

#include "api/array_status.h"
#include "api/device_resources.h"
#include "slurm/licenses.h"
#include "translation/job_check.h"
#include "translation/policy_values.h"
#include "translation/priority_translation.h"
#include "translation/spec_problems.h"
#include "translation/units.h"

namespace control {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

// The maximum is that of Slurm's SchedulerTimeSlice. The minimum is below Slurm's 5 s: a switch
// costs no message here (architecture.md 2).
constexpr base::Duration kSliceMin = milliseconds{100};
constexpr base::Duration kSliceMax = seconds{65'533};

// SOURCE: slurm.conf.5, the bounds of bf_… (rule book 8.2). 0 stands for "no limit" in Slurm; here
// the field is left out for that, so most bounds begin at 1.
void check_backfill(const kube::BackfillConfig& backfill, SpecProblems& problems) {
  using std::chrono::hours;
  using std::chrono::minutes;
  problems.range("spec.backfill.interval", backfill.interval, seconds{1}, hours{3});
  problems.range("spec.backfill.window", backfill.window, minutes{1}, hours{30 * 24});
  problems.range("spec.backfill.resolution", backfill.resolution, seconds{1}, hours{1});
  problems.range("spec.backfill.windowLinear", backfill.window_linear, seconds{1}, hours{30 * 24});
  problems.range("spec.backfill.minAgeReserve", backfill.min_age_reserve, base::Duration{0},
                 hours{30 * 24});
  // Slurm's bound of most counts of jobs.
  constexpr int kJobsMax = 1'000'000;
  problems.range("spec.backfill.maxJobTest", backfill.max_job_test, 1, kJobsMax);
  problems.range("spec.backfill.maxJobStart", backfill.max_job_start, 1, 10'000);
  problems.range("spec.backfill.maxJobPart", backfill.max_job_part, 1, kJobsMax);
  problems.range("spec.backfill.maxJobUser", backfill.max_job_user, 1, kJobsMax);
  problems.range("spec.backfill.maxJobUserPart", backfill.max_job_user_part, 1, kJobsMax);
  problems.range("spec.backfill.minPrioReserve", backfill.min_prio_reserve, 0, 4'294'967'295);
  problems.range("spec.backfill.jobPartCountReserve", backfill.job_part_count_reserve, 1, 100'000);
  problems.range("spec.backfill.maxJobArrayResv", backfill.max_job_array_resv, 0, 1'000);
  problems.range("spec.backfill.nodeSpaceSize", backfill.node_space_size, 2, 2'000'000);
}

// Names as --licenses of sbatch can have them.
void check_licenses(const std::map<std::string, std::int32_t>& licenses, SpecProblems& problems) {
  for (const auto& [name, count] : licenses) {
    const base::Result<sched::Licenses> read = slurm::parse_licenses("", name);
    if (!read || !read->contains(name)) {
      problems.add("spec.licenses: invalid name \"" + name +
                   "\"; use letters, digits and the signs _-.@");
    }
    problems.range("spec.licenses." + name, std::optional{count}, 0, 1'000'000);
  }
}

void check_runtime_classes(const std::vector<std::string>& classes, SpecProblems& problems) {
  for (std::size_t i = 0; i < classes.size(); ++i) {
    const std::string where = "spec.runtimeClasses[" + std::to_string(i) + "]";
    if (classes[i].empty()) problems.add(where + ": is empty; write the name of a RuntimeClass");
    if (std::find(classes.begin(), classes.begin() + static_cast<std::ptrdiff_t>(i), classes[i]) !=
        classes.begin() + static_cast<std::ptrdiff_t>(i)) {
      problems.add(where + ": \"" + classes[i] + "\" stands twice; remove it once");
    }
  }
}

// C5: at the cluster's level these exclude gang; a QOS or a partition may have them beside it. They
// are called conditions because each narrows which victims come into question.
void check_conditions(const kube::SchedulerConfigSpec& spec, SpecProblems& problems) {
  const bool gang = spec.gang.value_or(true);
  const bool by_qos = spec.preempt_type == kube::PreemptType::kQos;
  const bool within = spec.preempt_within.value_or(false);
  for (const auto& [set, field] :
       {std::pair{within, "spec.preemptWithin"},
        std::pair{spec.preempt_priority.value_or(false), "spec.preemptPriority"}}) {
    if (!set || !gang) continue;
    problems.add(
        std::string{field} +
        ": is not possible with gang: true; set gang to false, or set it in a Partition or "
        "QOS");
  }
  if (within && !by_qos) {
    problems.add(
        "spec.preemptWithin: is about jobs of one QOS; set preemptType to QOS or remove it");
  }
}

// Without `select` the cluster shares cores and manages memory, which is Slurm's default, too
// (1.1).
void translate_select(const kube::SelectConfig& select, sched::ClusterParameters& cluster) {
  cluster.select = select.type == kube::SelectType::kLinear ? sched::SelectType::kLinear
                                                            : sched::SelectType::kConsTres;
  switch (select.unit.value_or(kube::SelectUnit::kCore)) {
    case kube::SelectUnit::kCpu:
      cluster.unit = sched::SelectUnit::kCpu;
      break;
    case kube::SelectUnit::kCore:
      cluster.unit = sched::SelectUnit::kCore;
      break;
    case kube::SelectUnit::kSocket:
      cluster.unit = sched::SelectUnit::kSocket;
      break;
  }
  cluster.memory = select.memory.value_or(true);
  cluster.task_affinity = select.task_affinity.value_or(true);
  // Slurm's CR_LLN, CR_ONE_TASK_PER_CORE and CR_CORE_DEFAULT_DIST_BLOCK; the field above is its
  // task/affinity.
  cluster.least_loaded = select.least_loaded.value_or(false);
  cluster.one_task_per_core = select.one_task_per_core.value_or(false);
  cluster.core_default_dist_block = select.block_distribution.value_or(false);
}

// A field that is absent keeps the scheduler's default, so both sides need not agree on numbers.
void translate_backfill(const kube::BackfillConfig& from, sched::BackfillParameters& to) {
  to.interval = from.interval.value_or(to.interval);
  to.window = from.window.value_or(to.window);
  to.resolution = from.resolution.value_or(to.resolution);
  to.window_linear = from.window_linear.value_or(to.window_linear);
  to.max_job_test = from.max_job_test.value_or(to.max_job_test);
  to.max_job_start = from.max_job_start.value_or(to.max_job_start);
  to.max_job_part = from.max_job_part.value_or(to.max_job_part);
  to.max_job_user = from.max_job_user.value_or(to.max_job_user);
  to.max_job_user_part = from.max_job_user_part.value_or(to.max_job_user_part);
  to.min_age_reserve = from.min_age_reserve.value_or(to.min_age_reserve);
  // Slurm's 0: no priority is too low for a reservation, so an absent field and 0 mean the same.
  to.min_prio_reserve =
      sched::Priority{static_cast<std::uint32_t>(from.min_prio_reserve.value_or(0))};
  to.job_part_count_reserve = from.job_part_count_reserve.value_or(to.job_part_count_reserve);
  to.max_job_array_resv = from.max_job_array_resv.value_or(to.max_job_array_resv);
  to.node_space_size = from.node_space_size.value_or(to.node_space_size);
  to.continues = from.continues.value_or(to.continues);
  to.busy_nodes = from.busy_nodes.value_or(to.busy_nodes);
  to.one_resv_per_job = from.one_resv_per_job.value_or(to.one_resv_per_job);
  to.running_job_reserve = from.running_job_reserve.value_or(to.running_job_reserve);
  to.licenses = from.licenses.value_or(to.licenses);
}

// Types and modes have the same values on both sides; the switch makes the compiler find a new one.
sched::PreemptType translate(kube::PreemptType type) {
  switch (type) {
    case kube::PreemptType::kNone:
      return sched::PreemptType::kNone;
    case kube::PreemptType::kPartitionPriority:
      return sched::PreemptType::kPartitionPriority;
    case kube::PreemptType::kQos:
      return sched::PreemptType::kQos;
  }
  return sched::PreemptType::kNone;
}

// The default depends on two other fields, so the CRD cannot write it into the object. A user who
// sets gang to false gets preemption that works, not a Suspend that is illegal without gang.
// Absent: Suspend with gang, Cancel without, Disabled under preemptType None (api.md).
sched::PreemptMode default_preempt_mode(const sched::ClusterParameters& cluster) {
  if (cluster.preempt_type == sched::PreemptType::kNone) return sched::PreemptMode::kOff;
  return cluster.gang ? sched::PreemptMode::kSuspend : sched::PreemptMode::kCancel;
}

// Decides if a job that no partition, or not each of its partitions, can hold is refused at once.
sched::EnforcePartLimits translate(kube::EnforcePartitionLimits limits) {
  switch (limits) {
    case kube::EnforcePartitionLimits::kNone:
      return sched::EnforcePartLimits::kNone;
    case kube::EnforcePartitionLimits::kAny:
      return sched::EnforcePartLimits::kAny;
    case kube::EnforcePartitionLimits::kAll:
      return sched::EnforcePartLimits::kAll;
  }
  return sched::EnforcePartLimits::kNone;
}

// The delay is how long a requeued job waits before it may start again; the number is how often a
// job may be requeued before it is held (1.1).
// Whether a single job may be requeued is its own field (spec.lifecycle.requeue); `byDefault`
// counts for jobs that leave it out.
void translate_queue(const kube::SchedulerConfigSpec& spec, sched::ClusterParameters& cluster) {
  if (spec.dependency) {
    cluster.kill_invalid_depend =
        spec.dependency->if_never_satisfied == kube::NeverSatisfied::kCancel;
  }
  cluster.max_array_size = spec.max_array_size.value_or(cluster.max_array_size);
  if (spec.requeue) {
    cluster.requeue_default = spec.requeue->by_default.value_or(true);
    cluster.queue.requeue_delay = spec.requeue->delay.value_or(cluster.queue.requeue_delay);
    cluster.queue.max_batch_requeue =
        spec.requeue->max_batch.value_or(cluster.queue.max_batch_requeue);
  }
}

}  // namespace

// Checks what the object says by itself. The bounds are also in the CRD; an object may be older
// than the CRD's rules, and the accepted spec is read from a status. accept() (config_acceptance.h)
// finds what is illegal only together with other objects.
std::vector<std::string> check_config(const kube::SchedulerConfig& config) {
  SpecProblems problems;
  const kube::SchedulerConfigSpec& spec = config.spec;
  // A second object is not an error of the cluster: its own status says so, and it changes nothing.
  if (config.metadata.name != kube::kSchedulerConfigName) {
    problems.add("metadata.name: \"" + config.metadata.name +
                 "\" is ignored, the one SchedulerConfig that counts is named \"" +
                 std::string{kube::kSchedulerConfigName} + "\"; create that one");
  }
  problems.range("spec.timeSlice", spec.time_slice, kSliceMin, kSliceMax);
  problems.range("spec.killWait", spec.kill_wait, base::Duration{0}, seconds{65'533});
  problems.range("spec.completeWait", spec.complete_wait, base::Duration{0}, seconds{65'533});
  // An image of 30 GB comes in half an hour over 20 MB/s.
  problems.range("spec.startTimeout", spec.start_timeout, seconds{1}, kStartTimeoutMax);
  problems.not_negative("spec.preemptExemptTime", spec.preempt_exempt_time);
  problems.not_negative("spec.overTimeLimit", spec.over_time_limit);
  problems.range("spec.maxArraySize", spec.max_array_size, 0, kube::kArrayTasksMax);
  problems.memory("spec.memory", spec.memory);
  problems.range("spec.defaultCPUsPerGPU", spec.default_cpus_per_gpu, 1, 65'535);
  check_licenses(spec.licenses, problems);
  if (spec.devices) {
    for (std::string& sentence : kube::devices_config_problems(*spec.devices)) {
      problems.add(std::move(sentence));
    }
  }
  check_runtime_classes(spec.runtime_classes, problems);
  // The rest are parts that are blocks of their own in the spec.
  check_conditions(spec, problems);
  check_priority(spec.priority, problems);
  if (spec.backfill) check_backfill(*spec.backfill, problems);
  if (spec.requeue) {
    problems.not_negative("spec.requeue.delay", spec.requeue->delay);
    problems.range("spec.requeue.maxBatch", spec.requeue->max_batch, 0, 65'535);
  }
  if (spec.preempt_parameters) {
    problems.range("spec.preemptParameters.reorderCount", spec.preempt_parameters->reorder_count, 0,
                   1'000);
    problems.range("spec.preemptParameters.minExemptPriority",
                   spec.preempt_parameters->min_exempt_priority, 0, 4'294'967'295);
  }
  if (spec.node_reserve) {
    problems.range("spec.nodeReserve.memoryPercent", spec.node_reserve->memory_percent, 0, 90);
  }
  if (spec.timetable) {
    problems.range("spec.timetable.lead", spec.timetable->lead, base::Duration{0},
                   std::chrono::minutes{10});
    problems.not_negative("spec.timetable.settle", spec.timetable->settle);
    // A node's agent switches nothing else meanwhile, and the kill switch works within a second.
    problems.range("spec.timetable.barrier", spec.timetable->barrier, base::Duration{0},
                   seconds{1});
    problems.not_negative("spec.timetable.failOpenAfter", spec.timetable->fail_open_after);
  }
  return problems.take();
}

// An absent field keeps the scheduler's default, which is Slurm's, or gets the API's own where the
// line names one (`value_or(true)` for gang and memory).
sched::ClusterParameters translate_config(const kube::SchedulerConfigSpec& spec) {
  sched::ClusterParameters cluster;
  translate_select(spec.select.value_or(kube::SelectConfig{}), cluster);
  cluster.scheduler = spec.scheduler_type == kube::SchedulerType::kBuiltin
                          ? sched::SchedulerType::kBuiltin
                          : sched::SchedulerType::kBackfill;
  if (spec.backfill) translate_backfill(*spec.backfill, cluster.backfill);
  // gang and the type of preemption come first: the default of the mode follows from both.
  cluster.gang = spec.gang.value_or(true);
  cluster.preempt_type =
      translate(spec.preempt_type.value_or(kube::PreemptType::kPartitionPriority));
  cluster.preempt_mode = translate(spec.preempt_mode).value_or(default_preempt_mode(cluster));
  cluster.preempt_within = spec.preempt_within.value_or(false);
  cluster.preempt_priority = spec.preempt_priority.value_or(false);
  // 0 means that no job is exempt, as absence does; the scheduler knows only the latter.
  if (spec.preempt_exempt_time && spec.preempt_exempt_time->count() > 0) {
    cluster.preempt_exempt_time = spec.preempt_exempt_time;
  }
  if (spec.preempt_parameters) {
    const kube::PreemptParameters& from = *spec.preempt_parameters;
    cluster.preempt.reorder_count = from.reorder_count.value_or(1);
    cluster.preempt.strict_order = from.strict_order.value_or(false);
    cluster.preempt.youngest_first = from.youngest_first.value_or(false);
    cluster.preempt.reclaim_licenses = from.reclaim_licenses.value_or(false);
    if (from.min_exempt_priority) {
      cluster.preempt.min_exempt_priority =
          sched::Priority{static_cast<std::uint32_t>(*from.min_exempt_priority)};
    }
  }
  // Compat places as Slurm does, so that recordings of it can be replayed; MinimizePreemption is
  // kubegang's own.
  cluster.placement = spec.placement_policy == kube::PlacementPolicy::kMinimizePreemption
                          ? sched::PlacementPolicy::kMinimisePreemption
                          : sched::PlacementPolicy::kCompat;
  cluster.time_slice = spec.time_slice.value_or(cluster.time_slice);
  cluster.kill_wait = spec.kill_wait.value_or(cluster.kill_wait);
  cluster.queue.complete_wait = spec.complete_wait.value_or(base::Duration{0});
  cluster.over_time_limit = spec.over_time_limit.value_or(base::Duration{0});
  cluster.enforce_part_limits =
      translate(spec.enforce_partition_limits.value_or(kube::EnforcePartitionLimits::kNone));
  translate_queue(spec, cluster);
  cluster.priority = translate_priority(spec.priority);
  translate_memory(spec.memory, cluster.default_memory, cluster.max_memory);
  cluster.default_per_gpu = default_per_gpu(spec.default_cpus_per_gpu, spec.memory);
  cluster.licenses.insert(spec.licenses.begin(), spec.licenses.end());
  // Only the lead changes what is decided, because a change of the rotation takes effect that much
  // later. The other fields of the block are the agents' or operator_parameters()'.
  if (spec.timetable) {
    cluster.timetable_lead = spec.timetable->lead.value_or(cluster.timetable_lead);
  }
  return cluster;
}

// Returns the part of the configuration that the scheduler does not know: how much memory of a node
// is kept back, and how the operator deals with clocks and agents.
OperatorParameters operator_parameters(const kube::SchedulerConfigSpec& spec) {
  OperatorParameters parameters;
  parameters.start_timeout = spec.start_timeout.value_or(parameters.start_timeout);
  if (spec.node_reserve) {
    parameters.memory_reserve_percent =
        spec.node_reserve->memory_percent.value_or(parameters.memory_reserve_percent);
  }
  if (spec.timetable) {
    parameters.settle = spec.timetable->settle.value_or(parameters.settle);
    parameters.clock = spec.timetable->clock.value_or(parameters.clock);
  }
  if (spec.devices) parameters.devices = *spec.devices;
  parameters.runtime_classes = spec.runtime_classes;
  return parameters;
}

}  // namespace control
