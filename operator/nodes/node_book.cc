#include "operator/nodes/node_book.h"

#include <algorithm>
#include <utility>

namespace control {
namespace {

// Returns the taints that pods must tolerate for good. Taints that Kubernetes sets for the state
// of a node (not-ready, unreachable and the like) come and go: a partition whose nodes were chosen
// by them would change with each hiccup of a kubelet.
std::vector<kube::Taint> lasting_taints(const kube::Node& node) {
  std::vector<kube::Taint> taints = node.spec.taints;
  std::erase_if(taints, is_state_taint);
  return taints;
}

}  // namespace

// `node` is null if the object is gone; the record stays as long as something is known of the node.
NodeBook::Change NodeBook::observe(const std::string& name,
                                   std::shared_ptr<const kube::Node> node) {
  // Three questions about one change: is the node lost or back (jobs are touched), may partitions
  // select it differently (they are evaluated again), and does the scheduler's view of it change
  // (take_news, which compares).
  const bool lost_before = is_lost(name);
  const bool cordoned_before = is_cordoned(name);
  Record& record = nodes_[name];
  const std::shared_ptr<const kube::Node> before = std::exchange(record.node, std::move(node));
  changed_.insert(name);
  classes_.observe(name, record.node);
  Change change{.lost = is_lost(name) != lost_before,
                .cordoned = is_cordoned(name) != cordoned_before};
  if (before == nullptr || record.node == nullptr) {
    change.selectable = before != record.node;
  } else {
    change.selectable = before->metadata.labels != record.node->metadata.labels ||
                        !(lasting_taints(*before) == lasting_taints(*record.node));
  }
  if (change.selectable) is_uncounted_ = true;
  return change;
}

void NodeBook::observe_agent(const std::string& name,
                             std::shared_ptr<const kube::NodeTimetable> table) {
  Record& record = nodes_[name];
  const std::shared_ptr<const kube::NodeTimetable> before =
      std::exchange(record.table, std::move(table));
  // A report that changes nothing must not cause a judgement. In the spec it only counts whether
  // pods are listed (takes_turns).
  const bool both = before != nullptr && record.table != nullptr;
  const bool same = both ? before->status == record.table->status &&
                               before->spec.pods.empty() == record.table->spec.pods.empty()
                         : before == record.table;
  // A node of which nothing else is known may need to be forgotten.
  if (!same || record.node == nullptr) changed_.insert(name);
}

// A pod on a node that is not known makes no record.
void NodeBook::observe_agent_pod(const std::string& name) {
  if (nodes_.contains(name)) changed_.insert(name);
}

void NodeBook::put_foreign(const std::string& name, const kube::ObjectKey& pod, kube::Bytes memory,
                           DeviceResources devices) {
  nodes_[name].foreign[pod] = {memory, std::move(devices)};
  changed_.insert(name);
}

void NodeBook::put_orphan(const std::string& name, const kube::ObjectKey& pod) {
  nodes_[name].orphans.insert(pod);
  changed_.insert(name);
}

void NodeBook::erase_pod(const std::string& name, const kube::ObjectKey& pod) {
  const auto found = nodes_.find(name);
  if (found == nodes_.end()) return;
  Record& record = found->second;
  if (record.foreign.erase(pod) + record.orphans.erase(pod) > 0) changed_.insert(name);
}

void NodeBook::enter(const std::string& name, const std::string& job_uid) {
  // A node that is not known yet gets a record: after a restore from a backup a job may be
  // allocated to a node that is gone.
  nodes_[name].jobs.insert(job_uid);
}

// The job's pods are gone from this node. Nothing is said to the scheduler: it knows.
void NodeBook::leave(const std::string& name, const std::string& job_uid) {
  const auto found = nodes_.find(name);
  if (found == nodes_.end()) return;
  // take_news can now forget a node that is gone and was kept for its last job.
  found->second.jobs.erase(job_uid);
  changed_.insert(name);
  stop_asking(name, job_uid);
}

// A user has suspended the job: the node needs an agent and a timetable for it, even if no jobs
// take turns there.
void NodeBook::ask_to_stop(const std::string& name, const std::string& job_uid) {
  if (!nodes_[name].asked.insert(job_uid).second) return;
  changed_.insert(name);
  asked_changed_.insert(name);
}

// The reverse. A job that was not asked to stop changes nothing.
void NodeBook::stop_asking(const std::string& name, const std::string& job_uid) {
  const auto found = nodes_.find(name);
  if (found == nodes_.end() || found->second.asked.erase(job_uid) == 0) return;
  changed_.insert(name);
  asked_changed_.insert(name);
}

void NodeBook::observe_policy() {
  is_policy_new_ = true;
  // The facts of each node may depend on the policy (the memory reserve, whether it needs an
  // agent).
  for (const auto& [name, record] : nodes_) changed_.insert(name);
  is_uncounted_ = is_policy_uncounted_ = true;
}

// 1. a node that is there is judged again; the scheduler hears of it if its spec has changed
// 2. a node that is gone stays as long as jobs are booked on it; they are ended first
// 3. then it is removed, and forgotten when nothing else is known about it
NodeBook::News NodeBook::take_news(const sched::Configuration& configuration,
                                   const OperatorParameters& parameters) {
  News news;
  if (std::exchange(is_policy_new_, false)) turns_ = Turns{configuration};
  for (const std::string& name : std::exchange(changed_, {})) {
    const auto found = nodes_.find(name);
    if (found == nodes_.end()) continue;
    Record& record = found->second;
    if (record.node != nullptr) {
      sched::NodeSpec spec = judge(name, record, parameters);
      // The scheduler hears only of differences.
      if (spec == record.told) continue;
      // Only CPUs count in what partitions hold. Memory changes with each other pod, and a count
      // looks at all nodes.
      if (record.told.name.empty() || spec.cpus != record.told.cpus) is_uncounted_ = true;
      record.told = std::move(spec);
      news.events.push_back(sched::NodeUpdate{record.told});
      continue;
    }
    if (!record.jobs.empty()) continue;  // they are ended first, since the node is lost
    if (!record.told.name.empty()) {
      report_.log("node removed", {{"node", name}});
      record.told = {};
      is_uncounted_ = true;
      news.events.push_back(sched::NodeRemove{name});
    }
    // Pods, a timetable or a suspension may still be known about a node that is gone: the record
    // goes with the last of them.
    if (record.is_used()) continue;
    news.forgotten.push_back(name);
    nodes_.erase(found);
  }
  return news;
}

// Returns the facts that do not need a walk over the node's pods.
NodeFacts NodeBook::facts_of(const std::string& name, const Record& record) const {
  NodeFacts facts;
  facts.node = record.node.get();
  facts.agent = record.table != nullptr ? &record.table->status : nullptr;
  facts.agent_pod = agents_.on(name);
  return facts;
}

// A log line is written only if the verdict has changed: nodes report all the time.
sched::NodeSpec NodeBook::judge(const std::string& name, Record& record,
                                const OperatorParameters& parameters) {
  NodeFacts facts = facts_of(name, record);
  for (const auto& [key, pod] : record.foreign) {
    facts.foreign_memory += pod.memory;
    for (const auto& [resource, count] : pod.devices) facts.foreign_devices[resource] += count;
  }
  facts.foreign_pods = static_cast<int>(record.foreign.size());
  facts.has_orphans = !record.orphans.empty();
  facts.memory_reserve_percent = parameters.memory_reserve_percent;
  facts.needs_agent = needs_agent(name);
  facts.clock = parameters.clock;
  facts.devices = parameters.devices;
  NodeVerdict verdict = translate_node(facts);
  if (verdict.problem != record.problem || record.told.name.empty()) {
    base::LogFields fields{
        {"node", name}, {"usable", !verdict.problem}, {"cpus", verdict.spec.cpus}};
    if (verdict.problem) fields.push_back({"why", verdict.problem->message});
    report_.log("node", fields);
    record.problem = std::move(verdict.problem);
    problem_changed_.insert(name);
  }
  return std::move(verdict.spec);
}

// O(partitions × their nodes), so it is done only if something that counts has changed.
bool NodeBook::count(const sched::Configuration& configuration) {
  is_uncounted_ = false;
  problem_changed_.clear();
  const auto before = std::exchange(capacity_, {});
  cpus_.clear();
  unusable_.clear();
  for (auto& [name, record] : nodes_) record.places.clear();
  for (std::uint32_t i = 0; i < configuration.partitions.size(); ++i) {
    const sched::PartitionConfig& partition = configuration.partitions[i];
    PartitionCapacity& capacity = capacity_[partition.name];
    std::int32_t& cpus = cpus_[partition.name];
    Unusable& unusable = unusable_[partition.name];
    for (std::uint32_t at = 0; at < partition.nodes.size(); ++at) {
      const auto found = nodes_.find(partition.nodes[at]);
      if (found == nodes_.end() || found->second.node == nullptr) continue;
      Record& record = found->second;
      // A node may be in several partitions; it counts in each of them.
      record.places.push_back({i, at});
      record.counted_problem = record.problem;
      ++capacity.nodes;
      capacity.cpus_per_node_max = std::max(capacity.cpus_per_node_max, record.told.cpus);
      cpus += record.told.cpus;
      if (record.problem) unusable.places[*record.problem].insert(at);
    }
    group(unusable, partition);
  }
  // Either way a waiting job may now fit that did not, or the other way round: the caller has all
  // of them judged again.
  return std::exchange(is_policy_uncounted_, false) || capacity_ != before;
}

bool NodeBook::count_unusable(const sched::Configuration& configuration) {
  std::set<std::uint32_t> partitions;
  for (const std::string& name : std::exchange(problem_changed_, {})) {
    const auto found = nodes_.find(name);
    if (found == nodes_.end()) continue;
    Record& record = found->second;
    // A node that has gone through several problems since may have the one that it had.
    if (record.problem == record.counted_problem) continue;
    for (const Place& place : record.places) {
      auto& places = unusable_[configuration.partitions[place.partition].name].places;
      if (record.counted_problem) {
        const auto before = places.find(*record.counted_problem);
        before->second.erase(place.node);
        if (before->second.empty()) places.erase(before);
      }
      if (record.problem) places[*record.problem].insert(place.node);
      partitions.insert(place.partition);
    }
    record.counted_problem = record.problem;
  }
  for (const std::uint32_t i : partitions) {
    group(unusable_[configuration.partitions[i].name], configuration.partitions[i]);
  }
  return !partitions.empty();
}

void NodeBook::group(Unusable& unusable, const sched::PartitionConfig& partition) {
  std::map<NodeProblem, std::vector<std::string>> names;
  for (const auto& [problem, places] : unusable.places) {
    for (const std::uint32_t place : places) names[problem].push_back(partition.nodes[place]);
  }
  unusable.groups = group_unusable(std::move(names));
}

// 0 for a partition that was not counted.
std::int32_t NodeBook::cpus_of(const std::string& partition) const {
  const auto found = cpus_.find(partition);
  return found == cpus_.end() ? 0 : found->second;
}

const std::vector<kube::UnusableNodes>& NodeBook::unusable_in(const std::string& partition) const {
  static const std::vector<kube::UnusableNodes> kNone;
  const auto found = unusable_.find(partition);
  return found == unusable_.end() ? kNone : found->second.groups;
}

bool NodeBook::in_partition(const std::string& name) const {
  const Record* record = find(name);
  return record != nullptr && !record->places.empty();
}

// A node needs a timetable if jobs may take turns there by the configuration, or if one job is to
// stand still.
bool NodeBook::needs_timetable(const std::string& name) const {
  return turns_.need_timetable(name) || !asked_on(name).empty();
}

// Also where jobs take turns that were stacked under an earlier configuration.
bool NodeBook::takes_turns(const std::string& name) const {
  // Until the agent has obeyed a table without pods, some pod there may be frozen.
  const kube::NodeTimetable* seen = table(name);
  // The version that the watch has shown: an empty table that was written and not seen yet does not
  // count.
  const bool lists_pods = seen != nullptr && !seen->spec.pods.empty();
  return turns_.possible_on(name) || lists_pods || !asked_on(name).empty();
}

bool NodeBook::needs_agent(const std::string& name) const {
  return turns_.need_agent(name) || takes_turns(name);
}

std::optional<NodeProblem> NodeBook::why_not_stopped(const std::string& name) const {
  const Record* record = find(name);
  // A node without an agent takes no jobs where the configuration needs one anyway, so a suspension
  // there has nothing to wait for.
  const bool waits = record != nullptr && !turns_.need_agent(name);
  return waits ? agent_problem(facts_of(name, *record)) : std::nullopt;
}

const std::set<std::string>& NodeBook::asked_on(const std::string& name) const {
  static const std::set<std::string> kNone;
  const Record* record = find(name);
  return record == nullptr ? kNone : record->asked;
}

std::vector<const kube::Node*> NodeBook::objects() const {
  std::vector<const kube::Node*> objects;
  for (const auto& [name, record] : nodes_) {
    if (record.node != nullptr) objects.push_back(record.node.get());
  }
  return objects;
}

const NodeBook::Record* NodeBook::find(const std::string& name) const {
  const auto found = nodes_.find(name);
  return found == nodes_.end() ? nullptr : &found->second;
}

const kube::Node* NodeBook::object(const std::string& name) const {
  const Record* record = find(name);
  return record == nullptr ? nullptr : record->node.get();
}

const kube::NodeTimetable* NodeBook::table(const std::string& name) const {
  const Record* record = find(name);
  return record == nullptr ? nullptr : record->table.get();
}

const sched::NodeSpec* NodeBook::told(const std::string& name) const {
  const Record* record = find(name);
  return record == nullptr || record->told.name.empty() ? nullptr : &record->told;
}

bool NodeBook::is_cordoned(const std::string& name) const {
  const kube::Node* node = object(name);
  return node != nullptr && (node->spec.unschedulable || node->metadata.deletion_timestamp);
}

// A node that is gone, or that an administrator has declared out of service: nothing runs there, so
// its jobs have lost a member.
bool NodeBook::is_lost(const std::string& name) const {
  const kube::Node* node = object(name);
  return node == nullptr || is_out_of_service(*node);
}

const std::set<std::string>& NodeBook::jobs_on(const std::string& name) const {
  static const std::set<std::string> kNone;
  const Record* record = find(name);
  return record == nullptr ? kNone : record->jobs;
}

}  // namespace control
