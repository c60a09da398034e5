// NodeBook: what is known of each node, and what follows from it: what the scheduler may use of the
// node, how much each partition can hold, and which nodes are lost.
//
// A node is remembered until nothing of it is left: its Node object, its NodeTimetable, other pods
// or orphans on it, jobs with an allocation there. Pods of a DaemonSet, the agent's among them,
// outlive their Node.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "api/node_timetable.h"
#include "kube/api/node.h"
#include "kube/api/pod.h"
#include "operator/loop/report.h"
#include "operator/nodes/agent_pods.h"
#include "operator/nodes/node_classes.h"
#include "operator/nodes/turns.h"
#include "operator/nodes/unusable_nodes.h"
#include "scheduler/event.h"
#include "scheduler/model/config.h"
#include "scheduler/model/node.h"
#include "translation/config_acceptance.h"
#include "translation/devices.h"
#include "translation/job_translation.h"
#include "translation/node_translation.h"

namespace control {

// Belongs to the loop's thread. Cost: the logarithm of the number of nodes, if nothing else is
// said.
class NodeBook {
 public:
  NodeBook(const AgentPods& agents, const Report& report) : agents_{agents}, report_{report} {}

  // --- what is seen ---
  struct Change {
    // It came, went, or has other labels or taints. Taints that stand for its state do not count.
    bool selectable = false;
    bool lost = false;      // is_lost is another than before
    bool cordoned = false;  // is_cordoned is another than before
  };
  // Null: the Node is gone.
  Change observe(const std::string& name, std::shared_ptr<const kube::Node> node);
  // Takes the node's NodeTimetable, in which the agent reports; null: there is none.
  void observe_agent(const std::string& name, std::shared_ptr<const kube::NodeTimetable> table);
  // AgentPods may say something else of it than before.
  void observe_agent_pod(const std::string& name);
  // Puts a pod that is not of a job and has not finished, with the memory and the devices that it
  // requests.
  void put_foreign(const std::string& name, const kube::ObjectKey& pod, kube::Bytes memory,
                   DeviceResources devices = {});
  // Puts a pod of kubegang whose job is gone or has ended.
  void put_orphan(const std::string& name, const kube::ObjectKey& pod);
  // Removes a pod of either kind, if there was one.
  void erase_pod(const std::string& name, const kube::ObjectKey& pod);
  // Notes that a job got an allocation there, or has it no more.
  void enter(const std::string& name, const std::string& job_uid);
  void leave(const std::string& name, const std::string& job_uid);
  // Notes that the job's user wants it to stand still there, or no longer does: meanwhile the node
  // needs an agent and a timetable, whatever the configuration says. Ends when the job leaves the
  // node.
  void ask_to_stop(const std::string& name, const std::string& job_uid);
  void stop_asking(const std::string& name, const std::string& job_uid);
  // Another configuration or other parameters are in force: all nodes are looked at again.
  void observe_policy();

  // --- what follows ---
  struct News {
    std::vector<sched::Event> events;    // that the scheduler must hear of
    std::vector<std::string> forgotten;  // nodes of which nothing is left
  };
  // Returns news of the nodes that changed since the last call, in the order of their names. Cost:
  // these nodes.
  News take_news(const sched::Configuration& configuration, const OperatorParameters& parameters);
  // Returns the nodes of which needs_timetable may be another than when this was called last.
  std::set<std::string> take_asked() { return std::exchange(asked_changed_, {}); }
  // Returns true if the capacity of partitions may have changed since the last count().
  bool is_uncounted() const { return is_uncounted_; }
  // Returns true if all jobs that wait must be judged again: a partition holds more or less, or the
  // policy is another. Cost: all nodes of all partitions.
  bool count(const sched::Configuration& configuration);
  // Brings unusable_in() up to date, which alone changes when nodes stop or begin to take jobs.
  // Returns true if it did. Cost: the nodes that changed, and those of their partitions that take
  // no jobs. REQUIRES: !is_uncounted(), and the configuration of the last count().
  bool count_unusable(const sched::Configuration& configuration);

  // --- as of the last count() or count_unusable() ---
  const std::map<std::string, PartitionCapacity>& capacity() const { return capacity_; }
  std::int32_t cpus_of(const std::string& partition) const;
  // Returns the partition's nodes that take no new jobs; their number may exceed that of the names.
  const std::vector<kube::UnusableNodes>& unusable_in(const std::string& partition) const;
  bool in_partition(const std::string& name) const;

  // --- as of the last take_news() ---
  // A timetable is kept for it even if that lists no pod.
  bool needs_timetable(const std::string& name) const;
  // Returns true if it takes jobs only while its agent is ready.
  bool needs_agent(const std::string& name) const;
  // True if a job there may need to be stopped for another or by its user, or is.
  bool takes_turns(const std::string& name) const;
  // Why no pod can be made to stand still there yet, where the configuration alone needs no agent;
  // nullopt: the node's agent is ready, or it takes jobs only while it is.
  std::optional<NodeProblem> why_not_stopped(const std::string& name) const;
  // UIDs of the jobs there that were asked to stop.
  const std::set<std::string>& asked_on(const std::string& name) const;

  // --- as seen last ---
  // Pods with devices tolerate the taints of nodes that have some.
  NodeClasses::Names unusable_for(const TemplateFacts& pod_template, const kube::JobSpec& spec,
                                  const kube::DevicesConfig& devices) {
    if (!needs_device_nodes(spec, pod_template)) return classes_.unusable_for(pod_template);
    TemplateFacts with_devices;
    with_devices.node_selector = pod_template.node_selector;
    with_devices.tolerations = with_device_tolerations(
        pod_template.tolerations, devices_named(spec.resources), pod_template.devices, devices);
    return classes_.unusable_for(with_devices);
  }
  std::set<NodeClasses::Names> take_outdated() { return classes_.take_outdated(); }
  std::int64_t size() const { return static_cast<std::int64_t>(nodes_.size()); }
  bool knows(const std::string& name) const { return nodes_.contains(name); }
  std::vector<const kube::Node*> objects() const;
  // Null: there is none.
  const kube::Node* object(const std::string& name) const;
  const kube::NodeTimetable* table(const std::string& name) const;
  // Returns the node as the scheduler knows it; null: not at all.
  const sched::NodeSpec* told(const std::string& name) const;
  // Returns true if its pods count as gone: they cannot run there.
  bool is_lost(const std::string& name) const;
  // True if the node is to be emptied: cordoned, as by kubectl drain, or being deleted.
  bool is_cordoned(const std::string& name) const;
  // UIDs of the jobs with an allocation there.
  const std::set<std::string>& jobs_on(const std::string& name) const;

 private:
  // A node's place in the lists of a configuration.
  struct Place {
    std::uint32_t partition = 0;
    std::uint32_t node = 0;
  };
  // The nodes of a partition that take no jobs, by their places, whose order is that of the names.
  struct Unusable {
    std::map<NodeProblem, std::set<std::uint32_t>> places;
    std::vector<kube::UnusableNodes> groups;
  };
  struct ForeignPod {
    kube::Bytes memory;
    DeviceResources devices;
  };
  struct Record {
    std::shared_ptr<const kube::Node> node;            // null: gone
    std::shared_ptr<const kube::NodeTimetable> table;  // newest seen; null: none
    sched::NodeSpec told;                              // the name is empty before it is known
    std::optional<NodeProblem> problem;                // why it takes no new jobs
    std::optional<NodeProblem> counted_problem;        // as unusable_ has it
    std::vector<Place> places;                         // as of the last count()
    std::map<kube::ObjectKey, ForeignPod> foreign;
    std::set<kube::ObjectKey> orphans;
    std::set<std::string> jobs;
    std::set<std::string> asked;  // of them, to stop

    bool is_used() const {
      return node != nullptr || table != nullptr || !foreign.empty() || !orphans.empty() ||
             !jobs.empty();
    }
  };

  const Record* find(const std::string& name) const;
  NodeFacts facts_of(const std::string& name, const Record& record) const;
  static void group(Unusable& unusable, const sched::PartitionConfig& partition);
  // Updates record.problem.
  sched::NodeSpec judge(const std::string& name, Record& record,
                        const OperatorParameters& parameters);

  const AgentPods& agents_;
  const Report& report_;
  std::map<std::string, Record> nodes_;
  std::set<std::string> changed_;
  std::set<std::string> asked_changed_;
  bool is_policy_new_ = true;
  Turns turns_;
  bool is_uncounted_ = false;
  std::set<std::string> problem_changed_;
  bool is_policy_uncounted_ = false;
  std::map<std::string, PartitionCapacity> capacity_;
  std::map<std::string, std::int32_t> cpus_;  // by partition
  std::map<std::string, Unusable> unusable_;  // by partition
  NodeClasses classes_;
};

}  // namespace control
