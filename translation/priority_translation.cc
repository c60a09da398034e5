#include "translation/priority_translation.h"

#include <cstdint>
#include <utility>

namespace control {
namespace {

using std::chrono::hours;
using std::chrono::seconds;

// The largest 32-bit and 16-bit numbers that have no meaning of their own in Slurm: the two above
// each are NO_VAL and INFINITE.
constexpr std::int64_t kWeightMax = 4'294'967'293;
constexpr std::int64_t kDampeningMax = 65'533;

// Slurm's PriorityUsageResetPeriod without NOW, which is a command and not a period.
sched::UsageReset translate(kube::UsageResetPeriod period) {
  switch (period) {
    case kube::UsageResetPeriod::kNever:
      return sched::UsageReset::kNever;
    case kube::UsageResetPeriod::kDaily:
      return sched::UsageReset::kDaily;
    case kube::UsageResetPeriod::kWeekly:
      return sched::UsageReset::kWeekly;
    case kube::UsageResetPeriod::kMonthly:
      return sched::UsageReset::kMonthly;
    case kube::UsageResetPeriod::kQuarterly:
      return sched::UsageReset::kQuarterly;
    case kube::UsageResetPeriod::kYearly:
      return sched::UsageReset::kYearly;
  }
  return sched::UsageReset::kNever;
}

// Slurm's PriorityFlags. Some switch a rule off that holds by default.
// "Normal" in the name of a flag means that the factor is divided by the largest one of the queue.
void set_flag(kube::PriorityFlag flag, sched::PriorityParameters& out) {
  switch (flag) {
    case kube::PriorityFlag::kAccrueAlways:
      out.accrue_always = true;
      break;
    case kube::PriorityFlag::kCalculateRunning:
      out.calculate_running = true;
      break;
    case kube::PriorityFlag::kIncreaseOnly:
      out.increase_only = true;
      break;
    case kube::PriorityFlag::kMaxTres:
      out.max_tres = true;
      break;
    case kube::PriorityFlag::kNoNormalAccount:
      out.normal_assoc = false;
      break;
    case kube::PriorityFlag::kNoNormalPartition:
      out.normal_partition = false;
      break;
    case kube::PriorityFlag::kNoNormalQos:
      out.normal_qos = false;
      break;
    case kube::PriorityFlag::kNoNormalTres:
      out.normal_tres = false;
      break;
    case kube::PriorityFlag::kSmallRelativeToTime:
      out.small_relative_to_time = true;
      break;
  }
}

// A weight that is absent is 0: that part of the priority does not count. Names differ where
// Slurm's do: an account is an association there.
// REQUIRES: check_priority() found nothing, so each weight fits into its 32 bits.
void translate_weights(const kube::PriorityWeights& weights, sched::PriorityParameters& out) {
  const auto weight = [](const std::optional<std::int64_t>& value) {
    return static_cast<std::uint32_t>(value.value_or(0));
  };
  out.weight_age = weight(weights.age);
  out.weight_assoc = weight(weights.account);
  out.weight_fair_share = weight(weights.fair_share);
  out.weight_job_size = weight(weights.job_size);
  out.weight_partition = weight(weights.partition);
  out.weight_qos = weight(weights.qos);
  out.weight_tres[sched::Tres::kCpu] = weights.cpus.value_or(0);
  out.weight_tres[sched::Tres::kMemory] = weights.memory.value_or(0);
  out.weight_tres[sched::Tres::kNode] = weights.nodes.value_or(0);
  out.weight_tres[sched::Tres::kGpu] = weights.gpus.value_or(0);
  out.weight_tres.of_gpu_type.insert(weights.gpus_of_type.begin(), weights.gpus_of_type.end());
}

}  // namespace

// Checks the weights by one list, so that each has the same bounds and its own name in the
// sentence. Bounds of the durations are kubegang's: a period below a second would only recalculate
// what has not changed.
// The half-life has a lower bound and "Never" a field of its own, because Slurm's 0 for "never"
// looks like the shortest time there is.
void check_priority(const std::optional<kube::PriorityConfig>& priority, SpecProblems& problems) {
  if (!priority) return;
  if (priority->weights) {
    const kube::PriorityWeights& weights = *priority->weights;
    for (const auto& [name, weight] :
         {std::pair{"age", &weights.age}, std::pair{"account", &weights.account},
          std::pair{"fairShare", &weights.fair_share}, std::pair{"jobSize", &weights.job_size},
          std::pair{"partition", &weights.partition}, std::pair{"qos", &weights.qos},
          std::pair{"cpus", &weights.cpus}, std::pair{"memory", &weights.memory},
          std::pair{"nodes", &weights.nodes}, std::pair{"gpus", &weights.gpus}}) {
      problems.range(std::string{"spec.priority.weights."} + name, *weight, 0, kWeightMax);
    }
    problems.by_gpu_type("spec.priority.weights.gpusOfType", weights.gpus_of_type, kWeightMax);
  }
  problems.not_negative("spec.priority.maxAge", priority->max_age);
  if (priority->decay_half_life && *priority->decay_half_life < seconds{1}) {
    problems.add(
        "spec.priority.decayHalfLife: must be at least 1s; for usage that never decays set "
        "spec.priority.usageDecay to Never");
  }
  problems.range("spec.priority.dampeningFactor", priority->dampening_factor, 1, kDampeningMax);
  problems.range("spec.priority.calcPeriod", priority->calc_period, seconds{1}, hours{24});
}

// `out` begins with Slurm's defaults, and a field that the spec leaves out keeps its own.
sched::PriorityParameters translate_priority(const std::optional<kube::PriorityConfig>& priority) {
  sched::PriorityParameters out;
  if (!priority) return out;
  // Absent means Basic: the order of submission.
  out.type = priority->type == kube::PriorityType::kMultifactor ? sched::PriorityType::kMultifactor
                                                                : sched::PriorityType::kBasic;
  if (priority->weights) translate_weights(*priority->weights, out);
  out.max_age = priority->max_age.value_or(out.max_age);
  out.favor_small = priority->favor_small.value_or(false);
  // Absent means Fair Tree, Slurm's default.
  out.fair_tree = priority->fair_share != kube::FairShareRule::kClassic;
  out.dampening = priority->dampening_factor.value_or(1);
  // 0 is the scheduler's word, as it is Slurm's, for usage that does not decay.
  out.decay_half_life = priority->usage_decay == kube::UsageDecay::kNever
                            ? base::Duration{0}
                            : priority->decay_half_life.value_or(out.decay_half_life);
  out.usage_reset =
      translate(priority->usage_reset_period.value_or(kube::UsageResetPeriod::kNever));
  out.calc_period = priority->calc_period.value_or(out.calc_period);
  for (const kube::PriorityFlag flag : priority->flags) set_flag(flag, out);
  return out;
}

}  // namespace control
