#include "scheduler/testing/cluster_driver.h"

#include <algorithm>

#include "base/check.h"

namespace sched::testing {

// Returns one socket of single-threaded cores, and more memory than tests ask for.
NodeSpec node(const std::string& name, int cpus) {
  NodeSpec spec;
  spec.name = name;
  spec.cores_per_socket = spec.cpus = cpus;
  spec.memory = MemoryMiB{8000};
  return spec;
}

// Returns "n1" to "n5" for nodes("n", 1, 5).
std::vector<NodeSpec> nodes(const std::string& prefix, int first, int last, int cpus) {
  std::vector<NodeSpec> all;
  for (int i = first; i <= last; ++i) all.push_back(node(prefix + std::to_string(i), cpus));
  return all;
}

PartitionConfig partition(const std::string& name, const std::vector<NodeSpec>& nodes,
                          OverSubscribe over_subscribe, int max_share, std::uint16_t tier) {
  PartitionConfig config;
  config.name = name;
  for (const NodeSpec& spec : nodes) config.nodes.push_back(spec.name);
  config.over_subscribe = over_subscribe;
  config.max_share = max_share;
  config.priority_tier = tier;
  return config;
}

// Features that most tests leave alone are off: no lead, no requeue delay, no backfill. The first
// partition is the default.
Configuration gang_linear(std::vector<PartitionConfig> partitions) {
  Configuration configuration;
  configuration.cluster.select = SelectType::kLinear;
  configuration.cluster.memory = false;
  configuration.cluster.gang = true;
  configuration.cluster.timetable_lead = base::Duration{0};
  configuration.cluster.queue.requeue_delay = base::Duration{0};
  configuration.cluster.backfill.interval = seconds(-1);
  configuration.partitions = std::move(partitions);
  if (!configuration.partitions.empty()) configuration.partitions.front().is_default = true;
  return configuration;
}

// As `sbatch -N nodes_count`: exactly that many nodes.
JobRequest job(std::int64_t id, int nodes_count, const std::string& partition) {
  JobRequest request;
  request.id = JobId{id};
  request.min_nodes = nodes_count;
  request.max_nodes = nodes_count;
  request.nodes_given = true;
  if (!partition.empty()) request.partitions = {partition};
  return request;
}

// For failure messages and drawings: the list with its rows, what is in force until when, the
// cycle.
std::string to_text(const NodePlan& plan) {
  const auto time = [](base::Instant t) {
    return std::to_string(static_cast<double>(base::micros_since_epoch(t)) / 1e6);
  };
  const auto pods = [&](const timetable::PodSet& run) {
    std::string text;
    for (const std::uint16_t pod : run) text += " " + to_string(plan.entries[pod].job);
    return text.empty() ? std::string{" -"} : text;
  };
  std::string text = "node " + to_string(plan.node) + " as of " + time(plan.as_of) + ":";
  for (const NodeTimetableEntry& entry : plan.entries) {
    const char* row = entry.row == Row::kActive ? "A" : entry.row == Row::kFiller ? "F" : "W";
    text += " " + to_string(entry.job) + row;
  }
  for (const timetable::PlanEntry& entry : plan.timetable.plan) {
    text += " | until " + time(entry.until) + ":" + pods(entry.run);
  }
  text += " | cycle";
  for (const timetable::PodSet& run : plan.timetable.cycle) text += pods(run) + ",";
  return text;
}

// Sends the configuration before the nodes, as the operator does; nothing is decided until the
// first event of the test.
Driver::Driver(Configuration configuration, const std::vector<NodeSpec>& nodes, Scheduler scheduler)
    : scheduler_{std::move(scheduler)} {
  scheduler_.step(now_, Configure{std::make_shared<const Configuration>(std::move(configuration))});
  for (const NodeSpec& spec : nodes) scheduler_.step(now_, NodeUpdate{spec});
}

// The hook first, so that a watch knows of an event before the decisions that it brings about.
void Driver::feed(const Event& event) {
  if (on_event) on_event(now_, event);
  scheduler_.step(now_, event);
}

// Plays the cluster: pods become ready, victims end, timetables arrive, until nothing follows.
// Plans are taken in every round, as the operator does it, because a decision may have changed
// them.
void Driver::settle() {
  while (true) {
    const std::vector<Decision> decisions = scheduler_.take_decisions();
    if (on_decisions) on_decisions(decisions);
    for (const Decision& decision : decisions) {
      log_.push_back(decision);
      if (const auto* start = std::get_if<Start>(&decision)) {
        if (ready_after) ready_due_.insert({now_ + *ready_after, start->job});
      } else if (const auto* end = std::get_if<End>(&decision)) {
        if (ends_at_once) feed(JobGone{end->job});
      }
    }
    while (!ready_due_.empty() && ready_due_.begin()->first <= now_) {
      const JobId id = ready_due_.begin()->second;
      ready_due_.erase(ready_due_.begin());
      feed(JobReady{id});
    }
    std::vector<NodePlan> plans = scheduler_.take_plans(now_);
    if (on_plans) on_plans(now_, plans);
    // As the nodes get them: an empty plan takes the timetable back.
    for (NodePlan& plan : plans) {
      if (plan.entries.empty()) {
        published_.erase(plan.node);
      } else {
        CHECK(timetable::validate(plan.timetable).ok());
        published_[plan.node] = std::move(plan);
      }
    }
    if (decisions.empty()) return;
  }
}

// The API server stamps a job's submission.
void Driver::step(base::Instant now, const Event& event) {
  now_ = now;
  Event stamped = event;
  if (auto* submit = std::get_if<Submit>(&stamped)) submit->request.submit_time = now;
  feed(stamped);
  settle();
}

// Every wake at its own instant, as a caller that is never late. Bounded, so that a scheduler which
// is due forever fails the test instead of hanging it.
void Driver::run_until(base::Instant now) {
  constexpr int kWakesMax = 1'000'000;
  for (int i = 0; i < kWakesMax; ++i) {
    base::Instant next = base::kNever;
    if (const auto due = scheduler_.next_due()) next = *due;
    if (!ready_due_.empty()) next = std::min(next, ready_due_.begin()->first);
    if (next > now) break;
    now_ = std::max(now_, next);
    feed(Wake{});
    settle();
  }
  now_ = std::max(now_, now);
}

// REQUIRES: the scheduler knows the job; ended jobs are known until they are forgotten.
JobView Driver::view(JobId id) const {
  const auto found = scheduler_.job(id, now_);
  CHECK(found.has_value(), to_string(id));
  return *found;
}

// Empty while the job waits.
std::vector<std::string> Driver::nodes_of(std::int64_t id) const {
  std::vector<std::string> names;
  const JobView found = view(id);
  if (found.allocation == nullptr) return names;
  for (const NodeAllocation& use : found.allocation->nodes) {
    names.push_back(scheduler_.node_name(use.node));
  }
  return names;
}

// As the tables of Slurm's guide show it: "R(9)" has run for nine seconds, "S(9)" as well and does
// not run now, "PD" waits.
std::string Driver::state(std::int64_t id) const {
  const JobView found = view(id);
  const auto run = std::chrono::floor<std::chrono::seconds>(found.run_time).count();
  const std::string time = "(" + std::to_string(run) + ")";
  if (found.state == JobState::kPending) return "PD";
  if (found.state == JobState::kRunning) return "R" + time;
  if (found.state == JobState::kSuspended) return "S" + time;
  return "done";
}

// Returns what an agent would do: a job that its node's timetable does not list runs. Nodes of one
// job that disagree are a broken gang (kSplit).
Driver::Says Driver::published_says(JobId id, base::Instant t) const {
  const auto found = scheduler_.job(id, now_);
  CHECK(found && found->allocation != nullptr, to_string(id));
  int on = 0;
  int off = 0;
  for (const NodeAllocation& use : found->allocation->nodes) {
    const auto plan = published_.find(use.node);
    bool runs = true;
    if (plan != published_.end()) {
      const auto& entries = plan->second.entries;
      for (std::size_t i = 0; i < entries.size(); ++i) {
        if (entries[i].job != id) continue;
        runs = timetable::runs_at(plan->second.timetable, static_cast<std::uint16_t>(i), t);
      }
    }
    ++(runs ? on : off);
  }
  return on > 0 && off > 0 ? Says::kSplit : on > 0 ? Says::kRuns : Says::kFrozen;
}

}  // namespace sched::testing
