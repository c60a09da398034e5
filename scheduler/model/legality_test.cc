// Tests of configurations that are refused or warned of (1.6), one change to a legal configuration
// at a time.
#include "scheduler/model/legality.h"

#include <iterator>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace sched {
namespace {

// Returns a legal configuration: SUSPEND,GANG by partition priority over managed memory.
Configuration legal() {
  Configuration c;
  c.cluster.preempt_type = PreemptType::kPartitionPriority;
  c.cluster.preempt_mode = PreemptMode::kSuspend;
  c.cluster.gang = true;
  PartitionConfig low;
  low.name = "low";
  low.nodes = {"n1", "n2"};
  low.over_subscribe = OverSubscribe::kForce;
  low.max_share = 1;
  PartitionConfig high = low;
  high.name = "high";
  high.priority_tier = 2;
  c.partitions = {low, high};
  QosConfig normal;
  normal.name = "normal";
  c.qos = {normal};
  return c;
}

struct Case {
  const char* rule;
  IssueSeverity severity;
  void (*change)(Configuration&);
};

// No issue at all, not even a warning: what is recommended must not look suspicious.
TEST(Legality, AcceptsTheDefaultsAndTheRecommendedProfile) {
  EXPECT_EQ(check(Configuration{}), std::vector<ConfigIssue>{});
  EXPECT_EQ(check(legal()), std::vector<ConfigIssue>{});
}

// C7: a partition may shield its jobs.
TEST(Legality, APartitionMayBeOff) {
  Configuration c = legal();
  c.partitions[1].preempt_mode = PreemptMode::kOff;
  EXPECT_EQ(check(c), std::vector<ConfigIssue>{});
}

// One change each to the legal configuration, and the rule that it breaks.
using S = IssueSeverity;
const Case kIllegal[] = {
    // SUSPEND needs the gang, which resumes the victims.
    {"C1", S::kError, [](auto& c) { c.cluster.gang = false; }},
    // A mode of preemption without a type, and a type without a mode.
    {"C2", S::kError, [](auto& c) { c.cluster.preempt_type = PreemptType::kNone; }},
    {"C3", S::kError, [](auto& c) { c.cluster.preempt_mode = PreemptMode::kOff; }},
    {"C4", S::kError, [](auto& c) { c.qos[0].preempt_mode = PreemptMode::kOff; }},
    // PRIORITY beside GANG, and WITHIN where tiers decide and not QOS.
    {"C5", S::kError, [](auto& c) { c.cluster.preempt_priority = true; }},
    {"C5", S::kError,
     [](auto& c) {
       c.cluster.gang = false;
       c.cluster.preempt_mode = PreemptMode::kCancel;
       c.cluster.preempt_within = true;
     }},
    {"C2", S::kError,
     [](auto& c) {
       c.cluster.preempt_type = PreemptType::kNone;
       c.cluster.preempt_mode = PreemptMode::kOff;
       c.cluster.preempt_priority = true;
     }},
    // A partition that suspends in a cluster without gang: no turn would ever resume its victims.
    {"C8", S::kError,
     [](auto& c) {
       c.cluster.gang = false;
       c.cluster.preempt_mode = PreemptMode::kCancel;
       c.partitions[0].preempt_mode = PreemptMode::kSuspend;
     }},
    // select/linear cannot suspend by QOS, whether the cluster says so or a QOS.
    {"C9", S::kError,
     [](auto& c) {
       c.cluster.preempt_type = PreemptType::kQos;
       c.cluster.select = SelectType::kLinear;
     }},
    {"C9", S::kError,
     [](auto& c) {
       c.cluster.select = SelectType::kLinear;
       c.qos[0].preempt_mode = PreemptMode::kSuspend;
     }},
    {"C9", S::kWarning,  // Slurm accepts it where its configuration rules
     [](auto& c) {
       c.cluster.quirks.linear_suspends_by_qos = true;
       c.cluster.preempt_type = PreemptType::kQos;
       c.cluster.select = SelectType::kLinear;
     }},
    // high is a QOS whose jobs may be in the lower tier, from where the gang suspends none of the
    // higher.
    {"C10", S::kWarning,
     [](auto& c) {
       c.cluster.preempt_type = PreemptType::kQos;
       c.qos.push_back({.name = "high", .preempt = {"normal"}});
     }},
    // FORCE:2 without gang: two jobs on one core at the same time.
    {"C14", S::kWarning,
     [](auto& c) {
       c.cluster.gang = false;
       c.cluster.preempt_mode = PreemptMode::kCancel;
       c.partitions[0].max_share = 2;
     }},
    {"C17", S::kWarning, [](auto& c) { c.cluster.unit = SelectUnit::kCpu; }},
    {"1.1", S::kError,
     [](auto& c) {
       c.cluster.unit = SelectUnit::kCpu;
       c.cluster.one_task_per_core = true;
     }},
    // Suspended victims keep their memory: mode of the cluster, of a partition, of a QOS.
    {"C11", S::kWarning, [](auto& c) { c.cluster.memory = false; }},
    {"C11", S::kWarning,
     [](auto& c) {
       c.cluster.memory = false;
       c.cluster.preempt_mode = PreemptMode::kCancel;
       c.partitions[0].preempt_mode = PreemptMode::kSuspend;
     }},
    {"C11", S::kWarning,
     [](auto& c) {
       c.cluster.memory = false;
       c.cluster.preempt_mode = PreemptMode::kCancel;
       c.qos[0].preempt_mode = PreemptMode::kSuspend;
     }},
    // Both partitions have n1 and n2 at one tier, and nothing preempts: their jobs run over each
    // other.
    {"C12", S::kWarning,
     [](auto& c) {
       c.cluster.preempt_type = PreemptType::kNone;
       c.cluster.preempt_mode = PreemptMode::kOff;
       c.partitions[1].priority_tier = 1;
     }},
    // In a partition with OverSubscribe=NO no job can be stacked upon another, which SUSPEND needs.
    {"C13", S::kWarning, [](auto& c) { c.partitions[0].over_subscribe = OverSubscribe::kNo; }},
    {"C16", S::kError,
     [](auto& c) {
       c.cluster.default_memory = {.per_cpu = MemoryMiB{1}, .per_node = MemoryMiB{1}};
     }},
    {"C16", S::kError,
     [](auto& c) {
       c.partitions[0].max_memory = {.per_cpu = MemoryMiB{1}, .per_node = MemoryMiB{1}};
     }},
    // Timetables cannot have so short a slice. The second one is legal, though shorter than
    // Slurm's.
    {"C18", S::kError, [](auto& c) { c.cluster.time_slice = std::chrono::milliseconds{99}; }},
    {"C18", S::kWarning, [](auto& c) { c.cluster.time_slice = std::chrono::seconds{2}; }},
    // FORCE:1 in both tiers and no gang: the upper job would lie over the lower one, which runs on.
    {"P20", S::kWarning,
     [](auto& c) {
       c.cluster.gang = false;
       c.cluster.preempt_mode = PreemptMode::kCancel;
     }},
    // Values that no rule of Slurm's table names, and names that lead nowhere.
    {"range", S::kError, [](auto& c) { c.partitions[0].max_share = 0; }},
    {"range", S::kError, [](auto& c) { c.partitions[0].max_nodes = 0; }},
    {"range", S::kError, [](auto& c) { c.cluster.kill_wait = std::chrono::seconds{-1}; }},
    {"range", S::kError, [](auto& c) { c.cluster.timetable_lead = std::chrono::minutes{11}; }},
    {"range", S::kError, [](auto& c) { c.qos[0].limits.group_jobs = -1; }},
    {"name", S::kError, [](auto& c) { c.partitions[1].name = "low"; }},
    {"name", S::kError, [](auto& c) { c.partitions[1].qos = "gold"; }},
    {"name", S::kError, [](auto& c) { c.qos[0].preempt = {"gold"}; }},
};

// A warning leaves the configuration legal, an error does not. A change may break other rules as
// well.
TEST(Legality, NamesTheRuleOfEachIllegalCombination) {
  for (std::size_t i = 0; i < std::size(kIllegal); ++i) {
    Configuration c = legal();
    kIllegal[i].change(c);
    const std::vector<ConfigIssue> issues = check(c);
    bool found = false;
    for (const ConfigIssue& issue : issues) {
      found = found || (issue.rule == kIllegal[i].rule && issue.severity == kIllegal[i].severity);
      EXPECT_FALSE(issue.message.empty());
    }
    EXPECT_TRUE(found) << "case " << i << ": " << kIllegal[i].rule;
    EXPECT_EQ(is_legal(issues), kIllegal[i].severity == S::kWarning) << "case " << i;
  }
}

}  // namespace
}  // namespace sched
