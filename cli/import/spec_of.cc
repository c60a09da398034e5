#include "cli/import/spec_of.h"

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "slurm/hostlist.h"
#include "translation/config_translation.h"
#include "translation/policy_values.h"
#include "translation/units.h"

namespace cli {
namespace {

// The reverse of translation/: from the scheduler's parameters to specs of the API. A field
// whose value is the default is left out, so that the printed objects say what slurm.conf said and
// no more. The importer checks every result by translating it back, so a field that is forgotten
// here costs a remark, not a wrong configuration.

using sched::Tres;

// The field is set if the value differs from the default. The cast is for fields whose type differs
// from that of the value.
// `usual` is what the operator takes for an absent field, which need not be Slurm's default.
template <typename Field, typename Value>
void set_unless(std::optional<Field>& field, const Value& value, const Value& usual) {
  if (value != usual) field = static_cast<Field>(value);
}
// A group of fields is there if any of them is.
template <typename Group>
std::optional<Group> unless_empty(Group group) {
  if (group == Group{}) return std::nullopt;
  return group;
}

// Slurm's sizes are in MiB, the API's in bytes. nullopt stays nullopt: no limit.
std::optional<kube::Bytes> bytes_of(const std::optional<sched::MemoryMiB>& memory) {
  if (!memory) return std::nullopt;
  return control::bytes_of(*memory);
}

// DefMemPer… and MaxMemPer…, of the cluster or of a partition. Slurm allows one of the two forms at
// a level (C16); both fields exist here because either may be the one.
std::optional<kube::MemoryLimits> memory_of(const sched::MemoryLimit& defaults,
                                            const sched::MemoryLimit& maxima,
                                            const sched::PerGpu& per_gpu) {
  const bool of_gpus = per_gpu.memory.value() > 0;
  return unless_empty(kube::MemoryLimits{
      .default_per_cpu = bytes_of(defaults.per_cpu),
      .max_per_cpu = bytes_of(maxima.per_cpu),
      .default_per_node = bytes_of(defaults.per_node),
      .max_per_node = bytes_of(maxima.per_node),
      .default_per_gpu = bytes_of(of_gpus ? std::optional{per_gpu.memory} : std::nullopt)});
}

// nullopt says that a partition or QOS has no mode of its own, which is different from Off.
std::optional<kube::PreemptMode> mode_of(const std::optional<sched::PreemptMode>& mode) {
  if (!mode) return std::nullopt;
  return control::preempt_mode_of(*mode);
}

// --- SchedulerConfig ---

// The type is always written, since all other fields of the group depend on it.
// CR_Core_Memory, for example, is unit Core with memory; the API has one field for each of the two.
kube::SelectConfig select_of(const sched::ClusterParameters& c,
                             const sched::ClusterParameters& usual) {
  // The arrays of this file are in the order of the scheduler's enumerations, which index them.
  constexpr std::array kUnits = {kube::SelectUnit::kCpu, kube::SelectUnit::kCore,
                                 kube::SelectUnit::kSocket};
  kube::SelectConfig select;
  const bool linear = c.select == sched::SelectType::kLinear;
  select.type = linear ? kube::SelectType::kLinear : kube::SelectType::kConsTres;
  if (c.unit != usual.unit) select.unit = kUnits.at(static_cast<std::size_t>(c.unit));
  set_unless(select.memory, c.memory, usual.memory);
  set_unless(select.task_affinity, c.task_affinity, usual.task_affinity);
  set_unless(select.least_loaded, c.least_loaded, usual.least_loaded);
  set_unless(select.one_task_per_core, c.one_task_per_core, usual.one_task_per_core);
  set_unless(select.block_distribution, c.core_default_dist_block, usual.core_default_dist_block);
  return select;
}

// Reads the words of SchedulerParameters that begin with bf_. Numbers and times go over as they
// are: their units were resolved when slurm.conf was read.
kube::BackfillConfig backfill_of(const sched::BackfillParameters& b,
                                 const sched::BackfillParameters& usual) {
  kube::BackfillConfig spec;
  set_unless(spec.interval, b.interval, usual.interval);
  set_unless(spec.window, b.window, usual.window);
  set_unless(spec.resolution, b.resolution, usual.resolution);
  set_unless(spec.window_linear, b.window_linear, usual.window_linear);
  set_unless(spec.max_job_test, b.max_job_test, usual.max_job_test);
  set_unless(spec.max_job_start, b.max_job_start, usual.max_job_start);
  set_unless(spec.max_job_part, b.max_job_part, usual.max_job_part);
  set_unless(spec.max_job_user, b.max_job_user, usual.max_job_user);
  set_unless(spec.max_job_user_part, b.max_job_user_part, usual.max_job_user_part);
  set_unless(spec.min_age_reserve, b.min_age_reserve, usual.min_age_reserve);
  set_unless(spec.min_prio_reserve, b.min_prio_reserve.value(), usual.min_prio_reserve.value());
  set_unless(spec.job_part_count_reserve, b.job_part_count_reserve, usual.job_part_count_reserve);
  set_unless(spec.max_job_array_resv, b.max_job_array_resv, usual.max_job_array_resv);
  set_unless(spec.node_space_size, b.node_space_size, usual.node_space_size);
  set_unless(spec.continues, b.continues, usual.continues);
  set_unless(spec.busy_nodes, b.busy_nodes, usual.busy_nodes);
  set_unless(spec.one_resv_per_job, b.one_resv_per_job, usual.one_resv_per_job);
  set_unless(spec.running_job_reserve, b.running_job_reserve, usual.running_job_reserve);
  set_unless(spec.licenses, b.licenses, usual.licenses);
  return spec;
}

// Reads the words of SchedulerParameters that are about preemption. The time between the two
// signals of a suspension is not among them: it is the nodes' matter.
kube::PreemptParameters preempt_of(const sched::PreemptParameters& p) {
  const sched::PreemptParameters usual;
  kube::PreemptParameters spec;
  set_unless(spec.reorder_count, p.reorder_count, usual.reorder_count);
  set_unless(spec.strict_order, p.strict_order, usual.strict_order);
  set_unless(spec.youngest_first, p.youngest_first, usual.youngest_first);
  set_unless(spec.reclaim_licenses, p.reclaim_licenses, usual.reclaim_licenses);
  if (p.min_exempt_priority) spec.min_exempt_priority = p.min_exempt_priority->value();
  return spec;
}

// Reads the PriorityWeight… keys. A weight of 0 is the default and means that the factor does
// not count. Billing has no weight in the API. A slurm.conf that gives it one does not come
// back, and the importer says so. The weights of TRES are 64 bits, hence the two types of
// zero.
kube::PriorityWeights weights_of(const sched::PriorityParameters& p) {
  kube::PriorityWeights spec;
  set_unless(spec.age, p.weight_age, 0U);
  set_unless(spec.account, p.weight_assoc, 0U);
  set_unless(spec.fair_share, p.weight_fair_share, 0U);
  set_unless(spec.job_size, p.weight_job_size, 0U);
  set_unless(spec.partition, p.weight_partition, 0U);
  set_unless(spec.qos, p.weight_qos, 0U);
  set_unless(spec.cpus, p.weight_tres[Tres::kCpu], std::int64_t{0});
  set_unless(spec.memory, p.weight_tres[Tres::kMemory], std::int64_t{0});
  set_unless(spec.nodes, p.weight_tres[Tres::kNode], std::int64_t{0});
  set_unless(spec.gpus, p.weight_tres[Tres::kGpu], std::int64_t{0});
  spec.gpus_of_type.insert(p.weight_tres.of_gpu_type.begin(), p.weight_tres.of_gpu_type.end());
  return spec;
}

// PriorityFlags. Some of Slurm's flags (NO_NORMAL_…) switch something off that is on otherwise; the
// scheduler keeps what is on. NO_FAIR_TREE is missing here: in the API it is the field fairShare.
std::vector<kube::PriorityFlag> flags_of(const sched::PriorityParameters& p) {
  using kube::PriorityFlag;
  const std::array<std::pair<bool, PriorityFlag>, 9> all = {
      {{p.accrue_always, PriorityFlag::kAccrueAlways},
       {p.calculate_running, PriorityFlag::kCalculateRunning},
       {p.increase_only, PriorityFlag::kIncreaseOnly},
       {p.max_tres, PriorityFlag::kMaxTres},
       {!p.normal_assoc, PriorityFlag::kNoNormalAccount},
       {!p.normal_partition, PriorityFlag::kNoNormalPartition},
       {!p.normal_qos, PriorityFlag::kNoNormalQos},
       {!p.normal_tres, PriorityFlag::kNoNormalTres},
       {p.small_relative_to_time, PriorityFlag::kSmallRelativeToTime}}};
  std::vector<PriorityFlag> flags;
  for (const auto& [is_set, flag] : all) {
    if (is_set) flags.push_back(flag);
  }
  return flags;
}

// PriorityType, the weights, and what usage is and how long it lasts (chapter 9).
kube::PriorityConfig priority_of(const sched::PriorityParameters& p) {
  constexpr std::array kResets = {
      kube::UsageResetPeriod::kNever,     kube::UsageResetPeriod::kDaily,
      kube::UsageResetPeriod::kWeekly,    kube::UsageResetPeriod::kMonthly,
      kube::UsageResetPeriod::kQuarterly, kube::UsageResetPeriod::kYearly};
  const sched::PriorityParameters usual;
  kube::PriorityConfig spec;
  if (p.type == sched::PriorityType::kMultifactor) spec.type = kube::PriorityType::kMultifactor;
  spec.weights = unless_empty(weights_of(p));
  set_unless(spec.max_age, p.max_age, usual.max_age);
  set_unless(spec.favor_small, p.favor_small, usual.favor_small);
  if (!p.fair_tree) spec.fair_share = kube::FairShareRule::kClassic;
  set_unless(spec.dampening_factor, p.dampening, usual.dampening);
  // Zero would read as "at once" in an API; Slurm means that usage never decays.
  if (p.decay_half_life.count() == 0) {
    spec.usage_decay = kube::UsageDecay::kNever;  // PriorityDecayHalfLife=0
  } else {
    set_unless(spec.decay_half_life, p.decay_half_life, usual.decay_half_life);
  }
  if (p.usage_reset != usual.usage_reset) {
    spec.usage_reset_period = kResets.at(static_cast<std::size_t>(p.usage_reset));
  }
  set_unless(spec.calc_period, p.calc_period, usual.calc_period);
  spec.flags = flags_of(p);
  return spec;
}

// --- limits ---

// Limits of TRES; an absent one means no limit. Memory is in MiB there and in bytes here; the other
// kinds are counts.
kube::ResourceAmounts amounts_of(const sched::TresLimits& tres) {
  kube::ResourceAmounts amounts{.cpus = tres[Tres::kCpu],
                                .memory = {},
                                .nodes = tres[Tres::kNode],
                                .billing = tres[Tres::kBilling],
                                .gpus = tres[Tres::kGpu]};
  for (const auto& [type, limit] : tres.of_gpu_type) amounts.gpus_of_type[type] = limit.value_or(0);
  if (tres[Tres::kMemory]) amounts.memory = bytes_of(sched::MemoryMiB{*tres[Tres::kMemory]});
  return amounts;
}

// Returns the limits that QOS and accounts have in common. Groups without a limit are left out as a
// whole, so that an account without limits has no empty maps in its YAML.
// The types of the API differ (AccountLimits, QosLimits), and their common fields have the same
// names.
template <typename Limits>
Limits common_of(const sched::Limits& limits) {
  Limits spec;
  spec.group =
      unless_empty(kube::GroupLimits{.resources = unless_empty(amounts_of(limits.group_tres)),
                                     .jobs = limits.group_jobs,
                                     .submitted_jobs = limits.group_submit,
                                     .run_time = limits.group_wall});
  spec.per_job =
      unless_empty(kube::JobLimits{.resources = unless_empty(amounts_of(limits.job_tres)),
                                   .resources_per_node = unless_empty(amounts_of(limits.node_tres)),
                                   .time = limits.job_wall});
  return spec;
}

// Slurm's limits per user are those per namespace here, since a user becomes a namespace.
std::optional<kube::AccountLimits> account_limits_of(const sched::Limits& limits) {
  auto spec = common_of<kube::AccountLimits>(limits);
  spec.per_namespace = unless_empty(
      kube::JobCountLimits{.jobs = limits.user_jobs, .submitted_jobs = limits.user_submit});
  return unless_empty(std::move(spec));
}

// A QOS limits each account, too, and may ask for a least size of its jobs, which accounts cannot.
// Accounts have no limits per account, which would be those of the account itself.
std::optional<kube::QosLimits> qos_limits_of(const sched::Limits& limits) {
  auto spec = common_of<kube::QosLimits>(limits);
  spec.min_per_job = unless_empty(amounts_of(limits.min_tres));
  spec.per_namespace =
      unless_empty(kube::HolderLimits{.resources = unless_empty(amounts_of(limits.user_tres)),
                                      .jobs = limits.user_jobs,
                                      .submitted_jobs = limits.user_submit});
  spec.per_account =
      unless_empty(kube::HolderLimits{.resources = unless_empty(amounts_of(limits.account_tres)),
                                      .jobs = limits.account_jobs,
                                      .submitted_jobs = limits.account_submit});
  return unless_empty(std::move(spec));
}

// --- Partition ---

// OverSubscribe=FORCE:4 and the like; NO is the default and is left out. A number of jobs belongs
// to OnRequest and Force only (1.2.2).
std::optional<kube::OverSubscribe> over_subscribe_of(const sched::PartitionConfig& p) {
  constexpr std::array kPolicies = {
      kube::OverSubscribePolicy::kNever, kube::OverSubscribePolicy::kOnRequest,
      kube::OverSubscribePolicy::kForce, kube::OverSubscribePolicy::kExclusive};
  if (p.over_subscribe == sched::OverSubscribe::kNo) return std::nullopt;
  kube::OverSubscribe spec{.policy = kPolicies.at(static_cast<std::size_t>(p.over_subscribe))};
  if (p.over_subscribe != sched::OverSubscribe::kExclusive) spec.max_share = p.max_share;
  return spec;
}

// TRESBillingWeights. The scheduler has millionths per CPU, MiB, node and GPU; the API thousandths
// per CPU, GiB, node and GPU. A weight that is finer than a thousandth is cut off here, so it does
// not come back and is reported.
std::optional<kube::BillingWeights> billing_of(const std::optional<sched::TresWeights>& micro) {
  if (!micro) return std::nullopt;
  constexpr std::int64_t kMicroPerMilli = 1'000;
  constexpr std::int64_t kMibPerGib = 1'024;
  kube::BillingWeights spec;
  set_unless(spec.milli_per_cpu, (*micro)[Tres::kCpu] / kMicroPerMilli, std::int64_t{0});
  // An example: a quarter per GiB is 244 millionths per MiB, which are 249,856 per GiB and thus 250
  // thousandths, the number that the file has.
  const std::int64_t per_gib = (*micro)[Tres::kMemory] * kMibPerGib;
  // Rounded to the nearest thousandth per GiB. That is at most half a thousandth off, which is less
  // than half a millionth per MiB: the operator, which rounds to the nearest of these, gets the
  // same weight again.
  set_unless(spec.milli_per_gibibyte, (per_gib + kMicroPerMilli / 2) / kMicroPerMilli,
             std::int64_t{0});
  set_unless(spec.milli_per_node, (*micro)[Tres::kNode] / kMicroPerMilli, std::int64_t{0});
  set_unless(spec.milli_per_gpu, (*micro)[Tres::kGpu] / kMicroPerMilli, std::int64_t{0});
  for (const auto& [type, each] : micro->of_gpu_type) {
    spec.milli_per_gpu_of_type[type] = each / kMicroPerMilli;
  }
  return spec;
}

}  // namespace

// Returns the cluster as the one SchedulerConfig. Type, mode and gang of preemption are always
// written: they decide together what happens to victims (1.6), and a reader should not have to know
// the defaults of all three.
kube::SchedulerConfigSpec spec_of(const sched::ClusterParameters& c) {
  constexpr std::array kPreemptTypes = {
      kube::PreemptType::kNone, kube::PreemptType::kPartitionPriority, kube::PreemptType::kQos};
  constexpr std::array kEnforce = {kube::EnforcePartitionLimits::kNone,
                                   kube::EnforcePartitionLimits::kAny,
                                   kube::EnforcePartitionLimits::kAll};
  // The defaults are those of an empty SchedulerConfig, not the scheduler's own: a field is left
  // out if leaving it out means the same.
  const sched::ClusterParameters usual = control::translate_config({});
  kube::SchedulerConfigSpec spec;
  spec.select = select_of(c, usual);
  if (c.scheduler == sched::SchedulerType::kBuiltin) {
    spec.scheduler_type = kube::SchedulerType::kBuiltin;
  }
  spec.backfill = unless_empty(backfill_of(c.backfill, usual.backfill));
  spec.preempt_type = kPreemptTypes.at(static_cast<std::size_t>(c.preempt_type));
  spec.preempt_mode = control::preempt_mode_of(c.preempt_mode);
  spec.gang = c.gang;
  // False is the default of both sides.
  set_unless(spec.preempt_within, c.preempt_within, false);
  set_unless(spec.preempt_priority, c.preempt_priority, false);
  spec.preempt_exempt_time = c.preempt_exempt_time;
  spec.preempt_parameters = unless_empty(preempt_of(c.preempt));
  set_unless(spec.time_slice, c.time_slice, usual.time_slice);
  set_unless(spec.kill_wait, c.kill_wait, usual.kill_wait);
  set_unless(spec.complete_wait, c.queue.complete_wait, usual.queue.complete_wait);
  kube::RequeueConfig requeue;
  set_unless(requeue.by_default, c.requeue_default, usual.requeue_default);
  set_unless(requeue.delay, c.queue.requeue_delay, usual.queue.requeue_delay);
  set_unless(requeue.max_batch, c.queue.max_batch_requeue, usual.queue.max_batch_requeue);
  spec.requeue = unless_empty(requeue);
  if (c.kill_invalid_depend) {
    spec.dependency = kube::DependencyConfig{.if_never_satisfied = kube::NeverSatisfied::kCancel};
  }
  set_unless(spec.max_array_size, c.max_array_size, usual.max_array_size);
  // UNLIMITED, which is nothing here, has no value in the API: it does not come back, and the
  // importer says so.
  if (c.over_time_limit) set_unless(spec.over_time_limit, *c.over_time_limit, base::Duration{0});
  if (c.enforce_part_limits != usual.enforce_part_limits) {
    spec.enforce_partition_limits = kEnforce.at(static_cast<std::size_t>(c.enforce_part_limits));
  }
  spec.memory = memory_of(c.default_memory, c.max_memory, c.default_per_gpu);
  set_unless(spec.default_cpus_per_gpu, c.default_per_gpu.cpus, 0);
  spec.licenses.insert(c.licenses.begin(), c.licenses.end());
  spec.priority = unless_empty(priority_of(c.priority));
  return spec;
}

// Returns a partition. Its nodes are written as a hostlist, since the file has no labels to select
// by. Optional limits go over as they are: nullopt means "no limit of its own" on both sides.
kube::PartitionSpec spec_of(const sched::PartitionConfig& p) {
  constexpr std::array kStates = {kube::PartitionState::kUp, kube::PartitionState::kDown,
                                  kube::PartitionState::kDrain, kube::PartitionState::kInactive};
  const sched::PartitionConfig usual;
  kube::PartitionSpec spec;
  spec.nodes.hostlist = slurm::compress_hostlist(p.nodes);
  set_unless(spec.is_default, p.is_default, false);
  if (p.state != usual.state) spec.state = kStates.at(static_cast<std::size_t>(p.state));
  set_unless(spec.priority_tier, p.priority_tier, usual.priority_tier);
  set_unless(spec.priority_job_factor, p.priority_job_factor, usual.priority_job_factor);
  spec.over_subscribe = over_subscribe_of(p);
  set_unless(spec.exclusive_user, p.exclusive_user, false);
  spec.preempt_mode = mode_of(p.preempt_mode);
  set_unless(spec.preempt_priority, p.preempt_priority, false);
  set_unless(spec.grace_time, p.grace_time, usual.grace_time);
  spec.memory = memory_of(p.default_memory, p.max_memory, p.default_per_gpu);
  set_unless(spec.default_cpus_per_gpu, p.default_per_gpu.cpus, 0);
  kube::PartitionLimits limits{.max_nodes = p.max_nodes,
                               .default_time = p.default_time,
                               .max_time = p.max_time,
                               .max_cpus_per_node = p.max_cpus_per_node};
  set_unless(limits.min_nodes, p.min_nodes, 0);
  spec.limits = unless_empty(limits);
  spec.over_time_limit = p.over_time_limit;
  set_unless(spec.least_loaded, p.least_loaded, false);
  set_unless(spec.qos, p.qos, std::string{});
  spec.billing_weights = billing_of(p.billing_weights_micro);
  spec.allow = unless_empty(kube::AccessList{.namespaces = p.allow_users, .qos = p.allow_qos});
  spec.deny = unless_empty(kube::AccessList{.namespaces = p.deny_users, .qos = p.deny_qos});
  return spec;
}

// Returns a QOS. Its Preempt list is copied as it is; the importer renames the names in it.
kube::QosSpec spec_of(const sched::QosConfig& q) {
  using kube::QosFlag;
  const sched::QosConfig usual;
  kube::QosSpec spec;
  set_unless(spec.priority, q.priority, usual.priority);
  spec.preempt = q.preempt;
  spec.preempt_mode = mode_of(q.preempt_mode);
  set_unless(spec.preempt_within, q.preempt_within, false);
  set_unless(spec.preempt_priority, q.preempt_priority, false);
  spec.preempt_exempt_time = q.preempt_exempt_time;
  set_unless(spec.grace_time, q.grace_time, usual.grace_time);
  const std::array<std::pair<bool, QosFlag>, 6> flags = {
      {{q.deny_on_limit, QosFlag::kDenyOnLimit},
       {q.no_reserve, QosFlag::kNoReserve},
       {q.partition_min_nodes, QosFlag::kPartitionMinNodes},
       {q.partition_max_nodes, QosFlag::kPartitionMaxNodes},
       {q.partition_time_limit, QosFlag::kPartitionTimeLimit},
       {q.over_part_qos, QosFlag::kOverPartQos}}};
  for (const auto& [is_set, flag] : flags) {
    if (is_set) spec.flags.push_back(flag);
  }
  spec.limits = qos_limits_of(q.limits);
  // UsageFactor has six digits in Slurm and whole percents in the API: a factor with more digits
  // does not come back, and is reported.
  constexpr std::int64_t kMilliPerPercent = 10;
  set_unless(spec.usage_factor_percent, q.usage_factor_milli / kMilliPerPercent,
             usual.usage_factor_milli / kMilliPerPercent);
  return spec;
}

// Returns an account without its users. One share is the default of both sides.
kube::AccountSpec spec_of(const sched::AccountConfig& account) {
  kube::AccountSpec spec;
  set_unless(spec.parent, account.parent, std::string{});
  if (account.shares.of_parent) {
    spec.shares_of_parent = true;
  } else {
    set_unless(spec.shares, account.shares.count, std::int64_t{1});
  }
  set_unless(spec.priority, account.priority, 0U);
  spec.limits = account_limits_of(account.limits);
  return spec;
}

// A user in an account becomes an entry for the namespace of that name.
kube::AccountNamespace namespace_of(const sched::UserConfig& user) {
  kube::AccountNamespace spec;
  spec.name = user.name;
  if (user.shares.of_parent) {
    spec.shares_of_account = true;
  } else {
    set_unless(spec.shares, user.shares.count, std::int64_t{1});
  }
  set_unless(spec.priority, user.priority, 0U);
  spec.limits = account_limits_of(user.limits);
  return spec;
}

}  // namespace cli
