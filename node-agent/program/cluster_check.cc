#include "node-agent/program/cluster_check.h"

#include <algorithm>
#include <cstdio>
#include <utility>

#include "kube/client.h"
#include "kube/http_transport.h"
#include "kube/sleeper.h"
#include "kube/transport_config.h"
#include "node-agent/survival/exit_message.h"
#include "node-agent/switching/switch_clock.h"

namespace agent {
namespace {

// Long enough for the agents of a chart that was installed just now to start and report.
constexpr base::Duration kPassesWithin = std::chrono::minutes{1};
constexpr base::Duration kAgainAfter = std::chrono::seconds{2};
// The reason of a node that an administrator has switched off. That is not a fault, so the node
// passes.
constexpr char kKillSwitch[] = "KillSwitch";

// Returns the reason and not the status: "Obeying", "JournalUnwritable", "AllGranted" say more than
// True.
std::string told(const kube::Condition* condition) {
  return condition == nullptr ? "not said yet" : condition->reason;
}

}  // namespace

// A node passes if its agent obeys and has been granted what a switch needs. Its clock is shown
// only: what follows from it is up to timetable.clock. Nodes whose jobs never take turns have no
// NodeTimetable, and need no agent.
// A line for each node, for example "n7: Obeying, Limited, Synchronized", and below it the messages
// with what to change.
ClusterCheck check_cluster(const std::vector<kube::NodeTimetable>& nodes,
                           const std::vector<kube::Partition>& partitions) {
  if (nodes.empty()) {
    const bool have_nodes = std::any_of(
        partitions.begin(), partitions.end(),
        [](const kube::Partition& partition) { return partition.status.nodes.value_or(0) > 0; });
    if (!have_nodes) return {.table = "no node is in a partition: create a Partition first\n"};
    return {.table = "no partition lets jobs take turns: the agents have nothing to do\n",
            .passed = true};
  }
  ClusterCheck check{.passed = true};
  for (const kube::NodeTimetable& node : nodes) {
    const kube::Condition* ready = kube::find_condition(node.status.conditions, "Ready");
    const kube::Condition* granted = kube::find_condition(node.status.conditions, "Granted");
    const kube::Condition* clock =
        kube::find_condition(node.status.conditions, "ClockSynchronized");
    check.table +=
        node.metadata.name + ": " + told(ready) + ", " + told(granted) + ", " + told(clock) + "\n";
    for (const kube::Condition* condition : {ready, granted, clock}) {
      if (condition != nullptr && !condition->message.empty()) {
        check.table += "    " + condition->message + "\n";
      }
    }
    const bool obeys = ready != nullptr && (ready->status == kube::ConditionStatus::kTrue ||
                                            ready->reason == kKillSwitch);
    const bool has_all = granted != nullptr && granted->status == kube::ConditionStatus::kTrue;
    check.passed = check.passed && obeys && has_all;
  }
  return check;
}

// Lists the NodeTimetables again and again until all pass or the time is over, then prints the last
// table: a table that fails shows the state after the wait. If there is none, the operator may just
// have started.
int run_cluster_check(const std::string& kubeconfig) {
  RealSwitchClock clock;
  kube::ThreadSleeper sleeper;
  const base::Result<kube::TransportConfig> config = kube::default_config(kubeconfig);
  if (!config) return fail_with(config.error());
  const base::Result<std::unique_ptr<kube::HttpTransport>> transport =
      kube::HttpTransport::create(*config, clock);
  if (!transport) return fail_with(transport.error());
  const kube::Client client{**transport, clock, sleeper, {.field_manager = "kubegang-agent"}};
  const base::Duration give_up = clock.monotonic() + kPassesWithin;
  for (;;) {
    const auto nodes = client.list<kube::NodeTimetable>();
    if (!nodes) return fail_with(nodes.error());
    const bool may_be_early = nodes->items.empty();
    std::vector<kube::Partition> partitions;
    if (may_be_early) {  // else the nodes say all
      auto listed = client.list<kube::Partition>();
      if (!listed) return fail_with(listed.error());
      partitions = std::move(listed->items);
    }
    const ClusterCheck check = check_cluster(nodes->items, partitions);
    if ((check.passed && !may_be_early) || clock.monotonic() >= give_up) {
      std::fputs(check.table.c_str(), stdout);
      return check.passed ? 0 : kExitFailed;
    }
    clock.pause(kAgainAfter);
  }
}

}  // namespace agent
