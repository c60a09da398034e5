// Cluster-wide keys of priorities (chapter 9).
#include "slurm/conf_priority.h"

#include <array>

#include "slurm/limits.h"
#include "slurm/tres.h"

namespace slurm {
namespace {

using sched::PriorityParameters;

// Basic gives each new job a lower number than the one before (R9.2); multifactor adds up the terms
// of R9.3.
base::Status priority_type(PriorityParameters& p, std::string_view key, std::string_view value) {
  return choose(p.type, key, value,
                {{"priority/basic", sched::PriorityType::kBasic},
                 {"priority/multifactor", sched::PriorityType::kMultifactor}});
}

// Slurm's weights are 32 bits wide: a factor of 0 to 1 times the weight is the term of the priority
// (chapter 9).
template <std::uint32_t PriorityParameters::*field>
base::Status weight(PriorityParameters& p, std::string_view key, std::string_view value) {
  return set_integer(p.*field, key, value, {.min = 0, .max = kUint32Max});
}

// Reads a weight for each resource; those that are not named have 0.
base::Status weight_tres(PriorityParameters& p, std::string_view key, std::string_view value) {
  const base::Result<sched::TresWeights> read = parse_tres_weights(key, value);
  if (!read) return read.error();
  p.weight_tres = *read;
  return {};
}

// UNLIMITED is a hundred years here, which works like no end for half-lives, periods and ages.
template <base::Duration PriorityParameters::*field>
base::Status time(PriorityParameters& p, std::string_view key, std::string_view value) {
  const base::Result<std::optional<base::Duration>> read = parse_time(key, value);
  if (!read) return read.error();
  p.*field = read->value_or(kUnlimited);
  return {};
}

// Reads when the usage that fair share counts is set back to zero.
base::Status usage_reset(PriorityParameters& p, std::string_view key, std::string_view value) {
  using sched::UsageReset;
  if (same_word(value, "NOW")) {
    // sacctmgr's NOW clears the usage once, when slurmctld reads it. A file that is read at every
    // start would clear it each time.
    return base::invalid_argument(std::string{key} + " NOW: is a command, not a period; say NONE");
  }
  return choose(p.usage_reset, key, value,
                {{"NONE", UsageReset::kNever},
                 {"DAILY", UsageReset::kDaily},
                 {"WEEKLY", UsageReset::kWeekly},
                 {"MONTHLY", UsageReset::kMonthly},
                 {"QUARTERLY", UsageReset::kQuarterly},
                 {"YEARLY", UsageReset::kYearly}});
}

// Flags are named by what they switch off in Slurm ("NO_…") and kept as what is on. Flags add up
// over the list. NO_NORMAL_ALL is four of them at once.
base::Status flags(PriorityParameters& p, std::string_view key, std::string_view value) {
  struct Flag {
    std::string_view name;
    bool PriorityParameters::*field;
    bool set_to;
  };
  constexpr std::array<Flag, 11> kFlags = {
      {{"ACCRUE_ALWAYS", &PriorityParameters::accrue_always, true},
       {"CALCULATE_RUNNING", &PriorityParameters::calculate_running, true},
       {"INCR_ONLY", &PriorityParameters::increase_only, true},
       {"MAX_TRES", &PriorityParameters::max_tres, true},
       {"FAIR_TREE", &PriorityParameters::fair_tree, true},  // a flag of old versions
       {"NO_FAIR_TREE", &PriorityParameters::fair_tree, false},
       {"NO_NORMAL_ASSOC", &PriorityParameters::normal_assoc, false},
       {"NO_NORMAL_PART", &PriorityParameters::normal_partition, false},
       {"NO_NORMAL_QOS", &PriorityParameters::normal_qos, false},
       {"NO_NORMAL_TRES", &PriorityParameters::normal_tres, false},
       {"SMALL_RELATIVE_TO_TIME", &PriorityParameters::small_relative_to_time, true}}};
  for (const std::string& word : split(value, ',')) {
    if (same_word(word, "NO_NORMAL_ALL")) {
      p.normal_assoc = p.normal_partition = p.normal_qos = p.normal_tres = false;
      continue;
    }
    if (same_word(word, "DEPTH_OBLIVIOUS")) {
      return not_supported(std::string{key} + " " + word);
    }
    bool known = false;
    std::vector<std::string_view> names = {"NO_NORMAL_ALL"};
    for (const Flag& flag : kFlags) {
      // The names are collected beside the search: they are needed only for the message about an
      // unknown word.
      names.push_back(flag.name);
      if (!same_word(flag.name, word)) continue;
      p.*(flag.field) = flag.set_to;
      known = true;
    }
    if (!known) return unknown_word(key, word, names);
  }
  return {};
}

// One row for each key; conf_cluster.cc looks here first.
using Key = ConfKey<PriorityParameters>;
constexpr std::array kKeys = {
    Key{"PriorityType", priority_type},
    // The weights of the terms of R9.3. All are zero by default: then multifactor tells jobs apart
    // by their nice values only.
    Key{"PriorityWeightAge", weight<&PriorityParameters::weight_age>},
    Key{"PriorityWeightAssoc", weight<&PriorityParameters::weight_assoc>},
    Key{"PriorityWeightFairshare", weight<&PriorityParameters::weight_fair_share>},
    Key{"PriorityWeightJobSize", weight<&PriorityParameters::weight_job_size>},
    Key{"PriorityWeightPartition", weight<&PriorityParameters::weight_partition>},
    Key{"PriorityWeightQOS", weight<&PriorityParameters::weight_qos>},
    Key{"PriorityWeightTRES", weight_tres},
    // The age at which the age factor has grown to 1.
    Key{"PriorityMaxAge", time<&PriorityParameters::max_age>},
    Key{"PriorityFavorSmall", boolean_key<&PriorityParameters::favor_small>},
    // How usage is forgotten, and how often it is worked out (R9.4).
    Key{"PriorityDecayHalfLife", time<&PriorityParameters::decay_half_life>},
    Key{"PriorityCalcPeriod", time<&PriorityParameters::calc_period>},
    Key{"PriorityUsageResetPeriod", usage_reset},
    // 0 would divide by zero in the classic formula.
    Key{"FairShareDampeningFactor",
        [](PriorityParameters& p, std::string_view key, std::string_view value) {
          return set_integer(p.dampening, key, value, {.min = 1, .max = kUint16Max});
        }},
    Key{"PriorityFlags", flags},
};

}  // namespace

// This table distinguishes the cluster's keys, so a key is written down once.
bool is_priority_key(std::string_view key) {
  for (const Key& row : kKeys) {
    if (same_word(row.name, key)) return true;
  }
  return false;
}

base::Status read_priority_keys(PriorityParameters& parameters, std::span<const KeyValue> keys) {
  return apply_keys(parameters, keys, kKeys, "slurm.conf");
}

}  // namespace slurm
