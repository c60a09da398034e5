#include "scheduler/select/cons_tres/testing/world.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace sched::cons_tres::testing {
namespace {

// Returns "0-2,5".
std::string show_cores(const CoreSet& cores) {
  std::string text;
  for (int core = cores.next(0); core >= 0;) {
    int last = core;
    while (cores.next(last + 1) == last + 1) ++last;
    text += (text.empty() ? "" : ",") + std::to_string(core);
    if (last > core) text += "-" + std::to_string(last);
    core = cores.next(last + 1);
  }
  return text;
}

// 0 in an Ask means "not said".
std::optional<int> given(int value) {
  return value > 0 ? std::optional<int>{value} : std::nullopt;
}

}  // namespace

World::World(const std::vector<Nodes>& nodes, const std::vector<PartitionConfig>& partitions,
             const ClusterParameters& parameters) {
  Configuration configuration{.cluster = parameters, .partitions = partitions, .qos = {}};
  std::vector<std::string> names;
  for (const Nodes& group : nodes) {
    // Nodes of one group differ in their numbers only.
    for (int i = group.first; i <= group.last; ++i) {
      NodeSpec spec;
      spec.name = group.prefix + std::to_string(i);
      spec.sockets = group.sockets;
      spec.cores_per_socket = group.cores;
      spec.threads_per_core = group.threads;
      spec.cpus = group.sockets * group.cores * group.threads;
      spec.memory = MemoryMiB{group.memory};
      spec.weight = group.weight;
      spec.devices = group.devices;
      CHECK(cluster_.upsert_node(spec).ok());
      names.push_back(spec.name);
    }
  }
  for (PartitionConfig& partition : configuration.partitions) {
    // A test names the nodes of a partition only where it is not all of them.
    if (partition.nodes.empty()) partition.nodes = names;
  }
  cluster_.configure(configuration);
  cluster_.settle();
  selector_ = make_cons_tres_selector(cluster_);
}

// The order in which jobs are made is the job table's.
std::unique_ptr<World::Job> World::make_job(const Ask& ask) {
  auto job = std::make_unique<Job>();
  JobRequest& request = job->request;
  request.id = JobId{next_id_++};
  // `-N n` is a range of one; `-N n-m` is `range`.
  if (ask.nodes > 0) request.min_nodes = ask.nodes, request.max_nodes = ask.nodes;
  if (ask.range.first > 0)
    request.min_nodes = ask.range.first, request.max_nodes = ask.range.second;
  request.nodes_given = ask.nodes > 0 || ask.range.first > 0;
  request.tasks = given(ask.tasks);
  request.tasks_per_node = given(ask.per_node);
  request.tasks_per_socket = given(ask.per_socket);
  request.tasks_per_core = given(ask.per_core);
  request.cpus_per_task = ask.cpus_per_task;
  request.min_cpus_per_node = given(ask.mincpus);
  request.threads_per_core = given(ask.threads_per_core);
  request.sockets_per_node = given(ask.sockets_per_node);
  request.cores_per_socket = given(ask.cores_per_socket);
  if (ask.mem) request.memory = MemoryPerNode{MemoryMiB{*ask.mem}};
  if (ask.mem_per_cpu) request.memory = MemoryPerCpu{MemoryMiB{*ask.mem_per_cpu}};
  if (ask.exclusive) request.sharing = Sharing::kNode;
  if (ask.share) request.sharing = Sharing::kOverSubscribe;
  request.contiguous = ask.contiguous;
  request.overcommit = ask.overcommit;
  request.required_nodes = ask.on;
  request.devices = ask.gres;
  request.devices_of_job = ask.gpus;
  request.devices_per_task = ask.gpus_per_task;
  request.devices_per_socket = ask.gpus_per_socket;
  request.per_gpu = ask.per_gpu;
  job->select.id = request.id;
  job->select.table_order = request.id.number();
  job->select.request = &job->request;
  const auto partition = cluster_.find_partition(ask.in);
  CHECK(partition.has_value(), ask.in);
  job->select.partition = *partition;
  return job;
}

// Node counts and sharing as Placement would resolve them (4.1, 4.3), for partitions of one weight.
SelectOutcome World::select(const Job& job, const Ask& ask) {
  const Partition& partition = cluster_.partition(job.select.partition);
  const NodeSet required = cluster_.named(job.request.required_nodes);
  std::vector<Candidate> candidates;
  for (const std::string& name : ask.take) {
    // A test may give a victim a mode of its own, as its partition or QOS would (7.5).
    const auto mode = modes.find(name);
    candidates.push_back({&jobs_.at(name)->select,
                          mode != modes.end() ? mode->second : cluster_.parameters().preempt_mode});
  }
  SelectRequest request{.job = &job.select,
                        .mode = ask.mode,
                        .now = {},
                        .nodes = partition.nodes,
                        .required = required,
                        .candidates = candidates};
  // The least number of nodes that can take the tasks, if each takes no more than `per_node`.
  request.min_nodes = std::max(1, job.request.min_nodes);
  if (ask.tasks > 0 && ask.per_node > 0) {
    request.min_nodes = std::max(request.min_nodes, (ask.tasks + ask.per_node - 1) / ask.per_node);
  }
  // Slurm's bound for a job that names no maximum (4.1).
  request.max_nodes = job.request.max_nodes.value_or(500'000);
  request.req_nodes = job.request.max_nodes.value_or(request.min_nodes);
  request.whole_nodes = ask.exclusive || partition.max_share == 0;
  request.may_stack = partition.max_share > 1 && (partition.force || ask.share);
  request.max_share = request.may_stack ? partition.max_share : 1;
  return selector_->select(request);
}

// The job exists for this question alone, and is in no books; it uses up a number of the job table
// all the same.
Placed World::ask(const Ask& ask) {
  const auto job = make_job(ask);
  SelectOutcome outcome = select(*job, ask);
  Placed placed;
  for (const std::size_t victim : outcome.victims) placed.victims.push_back(ask.take[victim]);
  if (outcome.allocation) placed.where = show(*outcome.allocation);
  placed.allocation = std::move(outcome.allocation);
  return placed;
}

// Asks a second selector with the other jobs, put in job-table order, as after a restart: which row
// a job gets depends on it.
Placed World::ask_without(const std::set<std::string>& gone, const Ask& ask) {
  std::unique_ptr<Selector> kept = std::exchange(selector_, make_cons_tres_selector(cluster_));
  std::map<std::int64_t, const Job*> by_order;
  for (const auto& [name, job] : jobs_) {
    if (!gone.contains(name)) by_order.emplace(job->select.table_order, job.get());
  }
  for (const auto& [order, job] : by_order) selector_->add(job->select);
  Placed placed = this->ask(ask);
  selector_ = std::move(kept);
  return placed;
}

Placed World::ask_in_trial(const std::vector<std::string>& gone, int back_count, const Ask& ask) {
  const std::unique_ptr<Selector::Trial> trial = selector_->begin_trial();
  for (const std::string& name : gone) {
    trial->remove(jobs_.at(name)->select, Selector::Trial::Keep::kNothing);
  }
  for (int i = 0; i < back_count; ++i) CHECK(trial->put_back());
  return this->ask(ask);
}

std::string World::start(const std::string& name, const Ask& ask) {
  CHECK(!jobs_.contains(name), name);
  auto job = make_job(ask);
  SelectOutcome outcome = select(*job, ask);
  // A selection with victims is not a start: a test that wants one asks, ends them, and starts.
  if (!outcome.allocation || !outcome.victims.empty()) return "";
  job->allocation = *std::move(outcome.allocation);
  job->select.allocation = &job->allocation;
  job->select.state = JobState::kRunning;
  selector_->add(job->select);
  std::string where = show(job->allocation);
  jobs_.emplace(name, std::move(job));
  return where;
}

// At once and without completing: a selector hears of the beginning of a completion alone (R2.1).
void World::end(const std::string& name) {
  selector_->remove(jobs_.at(name)->select);
  jobs_.erase(name);
}

void World::suspend(const std::string& name) {
  SelectJob& job = jobs_.at(name)->select;
  selector_->user_suspend(job);
  job.user_suspended = true;
}

bool World::resume(const std::string& name) {
  SelectJob& job = jobs_.at(name)->select;
  // Refused if the cores are in other hands by now; the job stays suspended.
  if (!selector_->user_resume(job)) return false;
  job.user_suspended = false;
  return true;
}

// Jobs come back in job-table order (R4.13), whatever order they were started in.
void World::restart() {
  selector_ = make_cons_tres_selector(cluster_);
  std::map<std::int64_t, const Job*> by_order;
  for (const auto& [name, job] : jobs_) by_order.emplace(job->select.table_order, job.get());
  for (const auto& [order, job] : by_order) selector_->add(job->select);
}

// Writes "n1:0-1@200 n2:0@100": cores of each node, and the MiB charged if memory is managed.
std::string World::show(const Allocation& allocation) const {
  std::string text;
  for (const NodeAllocation& use : allocation.nodes) {
    text += (text.empty() ? "" : " ") + cluster_.node(use.node).name + ":" + show_cores(use.cores);
    if (use.memory.value() > 0) text += "@" + std::to_string(use.memory.value());
    if (const Devices devices = devices_on(allocation, use.node); !devices.empty()) {
      text += "+" + to_string(devices);
    }
  }
  return text;
}

namespace {

PartitionConfig partition(const std::string& name, OverSubscribe over, int share, int tier) {
  PartitionConfig config;
  config.name = name;
  config.over_subscribe = over;
  config.max_share = share;
  config.priority_tier = static_cast<std::uint16_t>(tier);
  return config;
}

}  // namespace

PartitionConfig no(const std::string& name, int tier) {
  return partition(name, OverSubscribe::kNo, 1, tier);
}
PartitionConfig yes(const std::string& name, int share, int tier) {
  return partition(name, OverSubscribe::kYes, share, tier);
}
PartitionConfig force(const std::string& name, int share, int tier) {
  return partition(name, OverSubscribe::kForce, share, tier);
}
PartitionConfig exclusive(const std::string& name, int tier) {
  return partition(name, OverSubscribe::kExclusive, 0, tier);
}

// CR_Core, the default unit. Memory is not managed, so that only cores decide.
ClusterParameters plain() {
  ClusterParameters parameters;
  parameters.memory = false;
  return parameters;
}

ClusterParameters gang() {
  ClusterParameters parameters = plain();
  parameters.gang = true;
  return parameters;
}

ClusterParameters preempting(PreemptMode mode, bool with_gang, PreemptType type) {
  ClusterParameters parameters = plain();
  parameters.gang = with_gang;
  parameters.preempt_type = type;
  parameters.preempt_mode = mode;
  return parameters;
}

}  // namespace sched::cons_tres::testing
