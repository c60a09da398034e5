#include "scheduler/model/legality.h"

#include <algorithm>
#include <map>
#include <set>
#include <string_view>
#include <utility>

namespace sched {
namespace {

using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;

constexpr int kShareMax = 32767;  // 1.2: OverSubscribe's count is a 15-bit number
// Slurm's 16-bit settings keep 65534 and 65535 for "not set" and "infinite".
constexpr int kTierMax = 65533;

// Slurm's words: messages speak of the configuration as an administrator wrote it.
std::string_view to_string(PreemptMode mode) {
  switch (mode) {
    case PreemptMode::kOff:
      return "OFF";
    case PreemptMode::kCancel:
      return "CANCEL";
    case PreemptMode::kRequeue:
      return "REQUEUE";
    case PreemptMode::kSuspend:
      return "SUSPEND";
  }
  return "?";
}

// One function for each object. An issue names its rule ("C1" to "C20" of 1.6, a chapter or a
// pitfall), "range" or "name". Errors are what cannot work; warnings are what works otherwise than
// it looks. The whole configuration is checked at once and all issues are collected, because the
// caller decides what happens with them: a slurm.conf with an error is refused, and the operator
// lets one object after the other retreat until the rest is legal.
//
// Each rule asks as little as possible of the others, so the order in which
// they run only decides the order of the messages. A configuration that is
// legal by these rules but not supported is refused where it is read, not
// here.
class Check {
 public:
  explicit Check(const Configuration& configuration) : all_{configuration} {}

  std::vector<ConfigIssue> run() {
    cluster();
    for (const PartitionConfig& each : all_.partitions) partition(each);
    for (const QosConfig& each : all_.qos) qos(each);
    accounts();
    overlaps();
    return std::move(issues_);
  }

 private:
  struct Where {
    IssueObject object = IssueObject::kCluster;
    std::string name;
  };
  // The fields name Slurm's keys; the operator turns them into its own spelling.
  void issue(IssueSeverity severity, const Where& where, std::string rule, std::string field,
             std::string message) {
    issues_.push_back({severity, std::move(rule), where.object, where.name, std::move(field),
                       std::move(message)});
  }
  void error(const Where& where, std::string rule, std::string field, std::string message) {
    issue(IssueSeverity::kError, where, std::move(rule), std::move(field), std::move(message));
  }
  void warn(const Where& where, std::string rule, std::string field, std::string message) {
    issue(IssueSeverity::kWarning, where, std::move(rule), std::move(field), std::move(message));
  }

  // Rules on the cluster's parameters alone (C1, C2, C3, C5, C9, C17). Each message says what to
  // change. The modes are looked at in pairs: a mode that suspends needs the gang, which resumes
  // (C1); a type needs a mode and a mode a type (C2, C3); two conditions exclude the gang (C5).
  void cluster() {
    const ClusterParameters& p = all_.cluster;
    const Where here;
    const bool preempts = p.preempt_type != PreemptType::kNone;
    if (p.preempt_mode == PreemptMode::kSuspend && !p.gang) {
      error(here, "C1", "PreemptMode", "SUSPEND needs GANG, which resumes the victims: add GANG");
    }
    // A mode without a type says how, but not which jobs are preempted.
    if (!preempts && p.preempt_mode != PreemptMode::kOff) {
      error(here, "C2", "PreemptMode",
            std::string{to_string(p.preempt_mode)} +
                " without a PreemptType: set PreemptType, or PreemptMode to OFF");
    }
    if (preempts && p.preempt_mode == PreemptMode::kOff) {
      error(here, "C3", "PreemptMode",
            "OFF with a PreemptType: choose CANCEL, REQUEUE or SUSPEND, or unset PreemptType");
    }
    if (p.gang && (p.preempt_within || p.preempt_priority)) {
      error(here, "C5", "PreemptMode",
            std::string{"GANG excludes "} + (p.preempt_within ? "WITHIN" : "PRIORITY") +
                ": leave one of the two out");
    }
    if (!preempts && (p.preempt_within || p.preempt_priority)) {
      error(here, "C2", "PreemptMode",
            std::string{p.preempt_within ? "WITHIN" : "PRIORITY"} +
                " without a PreemptType: set PreemptType, or leave it out");
    }
    if (p.preempt_within && p.preempt_type == PreemptType::kPartitionPriority) {
      error(here, "C5", "PreemptMode",
            "WITHIN is a condition between jobs of one QOS: use it with preempt/qos");
    }
    // CR_CPU hands out CPUs one by one, so a task could not have a core to itself.
    if (p.one_task_per_core && p.select == SelectType::kConsTres && p.unit == SelectUnit::kCpu) {
      error(here, "1.1", "SelectTypeParameters",
            "CR_ONE_TASK_PER_CORE does not go with CR_CPU: use CR_Core or CR_Socket");
    }
    if (p.preempt_type == PreemptType::kQos && p.preempt_mode == PreemptMode::kSuspend) {
      no_suspending_by_qos(here);
    }
    if (p.select == SelectType::kConsTres && p.unit == SelectUnit::kCpu) {
      warn(
          here, "C17", "SelectTypeParameters",
          "CR_CPU: on nodes with several threads per core jobs are stacked by core, not by thread");
    }
    suspends(here, p.preempt_mode, "SelectTypeParameters");
    memory(here, p.default_memory, p.max_memory);
    ranges(here, p);
  }

  // C9, for the cluster's mode and for that of each QOS. Slurm 22.05 accepts it (recorded), so
  // what is played as Slurm only gets a warning.
  void no_suspending_by_qos(const Where& here) {
    if (all_.cluster.select != SelectType::kLinear) return;
    if (all_.cluster.quirks.linear_suspends_by_qos) {
      return warn(here, "C9", "PreemptMode",
                  "Slurm does not support SUSPEND by QOS under select/linear");
    }
    error(here, "C9", "PreemptMode",
          "preempt/qos cannot suspend under select/linear: use select/cons_tres");
  }

  // C11, for the mode of the cluster, of a partition or of a QOS. Suspension frees CPUs only. If
  // memory is not managed, the preemptor starts on a node whose memory its victim still fills.
  void suspends(const Where& here, std::optional<PreemptMode> mode, const char* field) {
    if (mode != PreemptMode::kSuspend || all_.cluster.memory) return;
    warn(here, "C11", field,
         "suspended jobs keep their memory, which is not managed: make memory consumable");
  }

  // Slurm ignores a slice below 5 s and uses 30 s (C18). Here it is allowed down to 100 ms, with a
  // warning.
  void ranges(const Where& here, const ClusterParameters& p) {
    if (p.time_slice < milliseconds{100} || p.time_slice > seconds{65533}) {
      error(here, "C18", "SchedulerTimeSlice", "must be between 100ms and 65533s");
    } else if (p.time_slice < seconds{5}) {
      warn(here, "C18", "SchedulerTimeSlice",
           "below Slurm's minimum of 5s: switches may cost a noticeable share of the time");
    }
    const auto bounded = [&](const char* field, base::Duration value) {
      if (value.count() < 0 || value > seconds{65533}) {
        error(here, "range", field, "must be between 0s and 65533s");
      }
    };
    bounded("KillWait", p.kill_wait);
    bounded("MessageTimeout", p.message_timeout);
    bounded("requeue_delay", p.queue.requeue_delay);
    bounded("CompleteWait", p.queue.complete_wait);
    if (p.preempt_exempt_time && p.preempt_exempt_time->count() < 0) {
      error(here, "range", "PreemptExemptTime", "must not be negative");
    }
    if (p.preempt.reorder_count < 0) {
      error(here, "range", "reorder_count", "must not be negative");
    }
    if (p.timetable_lead.count() < 0 || p.timetable_lead > minutes{10}) {
      error(here, "range", "lead", "must be between 0s and 10m");
    }
    if (p.queue.default_queue_depth < 0) {
      error(here, "range", "default_queue_depth", "must not be negative");
    }
    if (p.queue.partition_job_depth < 0) {
      error(here, "range", "partition_job_depth", "must not be negative");
    }
  }

  // C16: per CPU and per node are two ways to say the same limit, and nothing says which of them
  // would count.
  void memory(const Where& where, const MemoryLimit& defaults, const MemoryLimit& maxima) {
    if (defaults.per_cpu && defaults.per_node) {
      error(where, "C16", "DefMemPerCPU", "and DefMemPerNode exclude each other: keep one");
    }
    if (maxima.per_cpu && maxima.per_node) {
      error(where, "C16", "MaxMemPerCPU", "and MaxMemPerNode exclude each other: keep one");
    }
    for (const auto& amount :
         {defaults.per_cpu, defaults.per_node, maxima.per_cpu, maxima.per_node}) {
      if (amount && amount->value() < 0) {
        error(where, "range", "memory", "must not be negative");
      }
    }
  }

  // Names and ranges of each partition, and its mode against the cluster's (C8, C11). A QOS of the
  // partition must exist, since its limits would silently not hold otherwise.
  void partition(const PartitionConfig& p) {
    const Where here{IssueObject::kPartition, p.name};
    if (p.name.empty()) error(here, "name", "PartitionName", "must not be empty");
    if (!partition_names_.insert(p.name).second) {
      error(here, "name", "PartitionName", "is defined twice: rename or remove one");
    }
    const ClusterParameters& cluster = all_.cluster;
    if (p.preempt_mode == PreemptMode::kSuspend && !cluster.gang) {
      error(here, "C8", "PreemptMode",
            "SUSPEND needs GANG in the cluster's PreemptMode, which resumes the victims");
    }
    suspends(here, p.preempt_mode, "PreemptMode");
    // NO and EXCLUSIVE do not use the number (1.2.2).
    const bool shares =
        p.over_subscribe == OverSubscribe::kYes || p.over_subscribe == OverSubscribe::kForce;
    if (shares && (p.max_share < 1 || p.max_share > kShareMax)) {
      error(here, "range", "OverSubscribe",
            "a share of " + std::to_string(p.max_share) + ": must be between 1 and " +
                std::to_string(kShareMax));
    }
    if (p.priority_tier > kTierMax) {
      error(here, "range", "PriorityTier", "must be at most " + std::to_string(kTierMax));
    }
    if (p.priority_job_factor > kTierMax) {
      error(here, "range", "PriorityJobFactor", "must be at most " + std::to_string(kTierMax));
    }
    if (p.grace_time.count() < 0) error(here, "range", "GraceTime", "must not be negative");
    if (p.min_nodes < 0) error(here, "range", "MinNodes", "must not be negative");
    if (p.max_nodes && *p.max_nodes < std::max(1, p.min_nodes)) {
      error(here, "range", "MaxNodes", "must be at least 1 and at least MinNodes");
    }
    if (p.max_cpus_per_node && *p.max_cpus_per_node < 1) {
      error(here, "range", "MaxCPUsPerNode", "must be at least 1");
    }
    // Every job without a time limit of its own would break the partition's limit.
    if (p.default_time && p.max_time && *p.default_time > *p.max_time) {
      error(here, "range", "DefaultTime", "must not be above MaxTime");
    }
    memory(here, p.default_memory, p.max_memory);
    if (!p.qos.empty() && !has_qos(p.qos)) {
      error(here, "name", "QOS", "there is no QOS " + p.qos + ": create it or choose another");
    }
    sharing(here, p);
  }

  // Legal settings that do something else than most administrators expect.
  // 1. FORCE stacks jobs, and only the gang lets them take turns (C14).
  // 2. A victim that is suspended stays on its CPUs, so the preemptor must be stacked upon it.
  //    OverSubscribe=NO allows no stacking, and what happens then depends on more than this setting
  //    (C13).
  void sharing(const Where& here, const PartitionConfig& p) {
    const ClusterParameters& cluster = all_.cluster;
    const bool stacks = p.over_subscribe == OverSubscribe::kForce && p.max_share > 1;
    if (stacks && !cluster.gang) {
      warn(here, "C14", "OverSubscribe",
           "FORCE without GANG: stacked jobs run at the same time on the same CPUs");
    }
    const PreemptMode mode = p.preempt_mode.value_or(cluster.preempt_mode);
    if (mode == PreemptMode::kSuspend && cluster.preempt_type != PreemptType::kNone &&
        p.over_subscribe == OverSubscribe::kNo) {
      warn(here, "C13", "OverSubscribe",
           "NO where victims are suspended: preemption may not work here; FORCE:1 is meant for it");
    }
  }

  // A walk over the list: a configuration has few QOS, and it is checked when it changes.
  bool has_qos(const std::string& name) const {
    return std::any_of(all_.qos.begin(), all_.qos.end(),
                       [&](const QosConfig& qos) { return qos.name == name; });
  }

  // The mode of a QOS counts for its jobs as victims (7.1), so the rules on the cluster's mode
  // apply to it, too.
  void qos(const QosConfig& q) {
    const Where here{IssueObject::kQos, q.name};
    if (q.name.empty()) error(here, "name", "Name", "must not be empty");
    if (!qos_names_.insert(q.name).second) {
      error(here, "name", "Name", "is defined twice: rename or remove one");
    }
    for (const std::string& name : q.preempt) {
      if (!has_qos(name)) {
        error(here, "name", "Preempt", "there is no QOS " + name + ": create it or remove it here");
      }
    }
    // The same as for the mode of a partition.
    if (q.preempt_mode == PreemptMode::kSuspend) {
      if (!all_.cluster.gang) {
        error(here, "C8", "PreemptMode", "SUSPEND needs GANG in the cluster's PreemptMode");
      }
      no_suspending_by_qos(here);
    }
    suspends(here, q.preempt_mode, "PreemptMode");
    if (q.preempt_mode == PreemptMode::kOff) {
      error(here, "C4", "PreemptMode", "a QOS cannot be OFF: leave it out for the cluster's mode");
    }
    if (q.grace_time.count() < 0) error(here, "range", "GraceTime", "must not be negative");
    if (q.preempt_exempt_time && q.preempt_exempt_time->count() < 0) {
      error(here, "range", "PreemptExemptTime", "must not be negative");
    }
    limits(here, q.limits);
    if (q.usage_factor_milli < 0) error(here, "range", "UsageFactor", "must not be negative");
  }

  // A limit of 0 of jobs closes a QOS or an account; below that there is nothing to allow.
  void limits(const Where& here, const Limits& l) {
    bool negative = false;
    for (const auto* each :
         {&l.group_tres, &l.job_tres, &l.node_tres, &l.min_tres, &l.user_tres, &l.account_tres}) {
      for (const auto& limit : each->values) negative = negative || (limit && *limit < 0);
    }
    for (const auto& limit : {l.group_jobs, l.group_submit, l.user_jobs, l.user_submit,
                              l.account_jobs, l.account_submit}) {
      negative = negative || (limit && *limit < 0);
    }
    for (const auto& limit : {l.group_wall, l.job_wall}) {
      negative = negative || (limit && limit->count() < 0);
    }
    if (negative) error(here, "range", "limits", "must not be negative");
  }

  // A parent that is not there may come, and its going must not take the accounts below with it. So
  // a missing parent is only a warning, and a circle is an error.
  void accounts() {
    std::map<std::string_view, const AccountConfig*> by_name;
    for (const AccountConfig& account : all_.accounts) {
      const Where here{IssueObject::kAccount, account.name};
      if (account.name.empty()) error(here, "name", "Name", "must not be empty");
      if (!by_name.emplace(account.name, &account).second) {
        error(here, "name", "Name", "is defined twice: rename or remove one");
      }
      limits(here, account.limits);
    }
    for (const AccountConfig& account : all_.accounts) {
      const Where here{IssueObject::kAccount, account.name};
      if (account.parent.empty() || account.parent == kRootAccount) continue;
      if (!by_name.contains(account.parent)) {
        warn(here, "name", "Parent",
             "there is no account " + account.parent +
                 ": until there is, this one counts as a child of root");
      }
      // Upwards until the root, an unknown name, or a name that was met before: then the chain is a
      // circle, and no account of it would have a place in the tree.
      std::set<std::string_view> above = {account.name};
      for (std::string_view at = account.parent; by_name.contains(at); at = by_name[at]->parent) {
        if (above.insert(at).second) continue;
        error(here, "name", "Parent",
              "account " + account.parent + " is below this one: choose another parent");
        break;
      }
    }
    // A user is not an object by itself: it is listed in its account, and the issue names that.
    for (const UserConfig& user : all_.users)
      limits({IssueObject::kAccount, user.account}, user.limits);
  }

  // C10: the gang suspends for a QOS only within a partition or for a higher tier. True if some QOS
  // may preempt another one whose jobs are then suspended.
  bool suspends_by_qos() const {
    const ClusterParameters& cluster = all_.cluster;
    if (cluster.preempt_type != PreemptType::kQos) return false;
    return std::any_of(all_.qos.begin(), all_.qos.end(), [&](const QosConfig& preemptor) {
      return std::any_of(all_.qos.begin(), all_.qos.end(), [&](const QosConfig& victim) {
        const auto& names = preemptor.preempt;
        return std::find(names.begin(), names.end(), victim.name) != names.end() &&
               victim.preempt_mode.value_or(cluster.preempt_mode) == PreemptMode::kSuspend;
      });
    });
  }

  // C10, C12 and P20: partitions on common nodes. Nodes are compared by name, since the
  // configuration may name nodes that do not exist yet.
  void overlaps() {
    for (std::size_t i = 0; i < all_.partitions.size(); ++i) {
      const PartitionConfig& a = all_.partitions[i];
      const std::set<std::string_view> nodes(a.nodes.begin(), a.nodes.end());
      // Each pair once: O(partitions² × nodes), when the configuration changes.
      for (std::size_t j = i + 1; j < all_.partitions.size(); ++j) {
        const PartitionConfig& b = all_.partitions[j];
        const auto common = std::find_if(b.nodes.begin(), b.nodes.end(),
                                         [&](const auto& name) { return nodes.contains(name); });
        if (common != b.nodes.end()) overlap(a, b, *common);
      }
    }
  }

  // The second of the two gets the warning, and it names the first and a node that they share.
  // 1. Without preemption, jobs of two partitions of one tier never take turns with each other, so
  //    they run at the same time on common nodes (C12).
  // 2. Between tiers, a QOS suspends upwards only (C10).
  // 3. FORCE partitions of two tiers without gang: the higher one is stacked over the lower one
  //    (P20).
  void overlap(const PartitionConfig& a, const PartitionConfig& b, const std::string& node) {
    const ClusterParameters& cluster = all_.cluster;
    const Where here{IssueObject::kPartition, b.name};
    const std::string both = "shares node " + node + " with partition " + a.name;
    if (cluster.gang && cluster.preempt_type == PreemptType::kNone &&
        a.priority_tier == b.priority_tier) {
      warn(here, "C12", "Nodes",
           both + " at the same tier: their jobs do not take turns with each other");
    }
    if (a.priority_tier != b.priority_tier && suspends_by_qos()) {
      warn(here, "C10", "PriorityTier",
           both +
               " at another tier: a QOS suspends for jobs of its own partition or of a higher tier "
               "only; from the lower one it preempts no job of the higher");
    }
    const bool force =
        a.over_subscribe == OverSubscribe::kForce && b.over_subscribe == OverSubscribe::kForce;
    if (force && !cluster.gang && a.priority_tier != b.priority_tier &&
        cluster.preempt_type == PreemptType::kPartitionPriority &&
        cluster.select == SelectType::kConsTres) {
      warn(
          here, "P20", "OverSubscribe",
          both +
              ": without GANG the higher tier is stacked over the lower one, which is not stopped");
    }
  }

  const Configuration& all_;
  std::vector<ConfigIssue> issues_;
  std::set<std::string> partition_names_;
  std::set<std::string> qos_names_;
};

}  // namespace

// Issues come in the order of the objects: cluster, partitions, QOS, accounts, and last what pairs
// of partitions share. Messages are in Slurm's words; the operator translates the fields for users
// of Kubernetes.
std::vector<ConfigIssue> check(const Configuration& configuration) {
  return Check{configuration}.run();
}

// Warnings are legal.
bool is_legal(const std::vector<ConfigIssue>& issues) {
  return std::none_of(issues.begin(), issues.end(), [](const ConfigIssue& issue) {
    return issue.severity == IssueSeverity::kError;
  });
}

}  // namespace sched
