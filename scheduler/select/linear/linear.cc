#include "scheduler/select/linear/linear.h"

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <utility>

#include "scheduler/model/asked_product.h"

namespace sched::linear {

// Sums CPUs by rank, and orders the ranks by weight. Both change only with the nodes' hardware, and
// then the selector is built again.
Linear::Linear(const Cluster& cluster) : cluster_{cluster}, books_{cluster} {
  std::vector<int> cpus;
  for (const NodeIndex node : cluster.order()) cpus.push_back(cluster.node(node).cpus);
  cpus_ = CpuSums{cpus};
  const auto lighter = [&](int a, int b) {
    return cluster.spec_at(a).weight < cluster.spec_at(b).weight;
  };
  std::vector<int> ranks(cpus.size());
  std::iota(ranks.begin(), ranks.end(), 0);
  // Kept only if weights differ from the order of ranks; otherwise walks by rank do.
  if (!std::is_sorted(ranks.begin(), ranks.end(), lighter)) {
    std::stable_sort(ranks.begin(), ranks.end(), lighter);
    by_weight_ = std::move(ranks);
  }
}

// Returns nothing to count if memory is not a consumable resource.
CountedDemand Linear::memory_of(const SelectJob& job) const {
  return memory_demand(cluster_.parameters(), cluster_.partition(job.partition).config,
                       *job.request)
      .memory;
}

// CPUs over all nodes, including those that a limit of memory per CPU adds (1.8 step 6). With
// overcommit one is enough.
int Linear::min_cpus(const SelectJob& job) const {
  const JobRequest& request = *job.request;
  if (request.overcommit) return 1;
  const MemoryDemand demand =
      memory_demand(cluster_.parameters(), cluster_.partition(job.partition).config, request);
  return asked_product(tasks_of(request, request.min_nodes), request.cpus_per_task,
                       demand.task_factor);
}

// Returns the nodes where at most these numbers of jobs run and are there, and none refuses to be
// stacked.
NodeSet Linear::with_jobs(const NodeSet& nodes, int run_limit, int total_limit) const {
  // The total does not matter if all jobs that are there run.
  const bool counts_total = total_limit < kUnlimited && books_.has_stopped();
  if (!counts_total && run_limit < NodeBooks::kRunningMax) {
    return nodes & books_.with_running(run_limit);
  }
  NodeSet open = nodes;
  for (int rank = open.next(0); rank >= 0; rank = open.next(rank + 1)) {
    if (!books_.admits(rank, run_limit, total_limit)) open.reset(rank);
  }
  return open;
}

// Takes the nodes out that have too little memory or too few devices for the job. (Empty nodes have
// all their devices, and those that never have enough are left out before: capacity_fits.)
void Linear::leave_out_full(const SelectRequest& request, NodeSet& nodes) const {
  const CountedDemand memory = memory_of(*request.job);
  const DeviceDemand devices = devices_of(*request.job);
  if (memory.per == CountedPer::kNothing && devices.asked.empty()) return;
  for (int rank = nodes.next(0); rank >= 0; rank = nodes.next(rank + 1)) {
    if (!books_.memory().fits(memory, cpus_.cpus(rank), rank) ||
        !books_.devices().fit(devices, rank)) {
      nodes.reset(rank);
    }
  }
}

// 4.4.2: returns the nodes that a job could take within these limits of other jobs that run and are
// there.
NodeSet Linear::count(const SelectRequest& request, const NodeSet& nodes, int run_limit,
                      int total_limit) const {
  // The usual question, about nodes without any job, is answered by sets alone.
  if (run_limit == 0 && total_limit == 0 && !books_.has_p5()) {
    const CountedDemand memory = memory_of(*request.job);
    NodeSet eligible = nodes & books_.empty();
    if (memory.per != CountedPer::kNothing) eligible &= books_.roomy(memory);
    return eligible;
  }
  NodeSet eligible = with_jobs(nodes, run_limit, total_limit);
  leave_out_full(request, eligible);
  return eligible;
}

// 4.4.3 step 1b, also with jobs that the gang has suspended, which Slurm passes over (P16). The
// mate may be of any partition; one that its user suspended gets no turns, so there is nothing to
// alternate with. Looks at `tries` jobs at most.
std::optional<Linear::Ranks> Linear::find_mate(const SelectRequest& request, const NodeSet& nodes,
                                               Others others, int tries) const {
  const bool only_running = cluster_.parameters().quirks.mates_run;
  const int cpus_wanted = min_cpus(*request.job);
  const CountedDemand memory = memory_of(*request.job);
  const DeviceDemand devices = devices_of(*request.job);
  Ranks ranks;
  const auto takes = [&](const SelectJob& mate) {
    if (only_running && mate.state != JobState::kRunning) return false;
    ranks.clear();
    int cpus = 0;
    for (const NodeAllocation& use : mate.allocation->nodes) {
      if (!cluster_.exists(use.node)) return false;
      const int rank = cluster_.rank(use.node);
      if (!nodes.test(rank) || !books_.admits(rank, others.running, others.total) ||
          !books_.memory().fits(memory, cpus_.cpus(rank), rank) ||
          !books_.devices().fit(devices, rank)) {
        return false;
      }
      ranks.push_back(rank);
      cpus += cpus_.cpus(rank);
    }
    if (cpus < cpus_wanted) return false;
    if (!request.any_required) return true;
    NodeSet taken{nodes.size()};
    for (const int rank : ranks) taken.set(rank);
    return taken.contains(request.required);
  };
  bool found = false;
  mates_.find(request.req_nodes, request.job->request->contiguous, others.running,
              [&](const SelectJob& mate) {
                found = takes(mate);
                return found || --tries == 0;
              });
  if (!found) return std::nullopt;
  return ranks;
}

// 4.4.4, or R4.3 where only idle nodes are taken.
std::optional<Linear::Ranks> Linear::fit(const SelectRequest& request,
                                         const NodeSet& eligible) const {
  if (request.any_required && !eligible.contains(request.required)) return std::nullopt;
  const BestFitRequest question{.eligible = eligible,
                                .required = request.required,
                                .any_required = request.any_required,
                                .min_nodes = request.min_nodes,
                                .req_nodes = request.req_nodes,
                                .max_nodes = request.max_nodes,
                                .min_cpus = min_cpus(*request.job),
                                .contiguous = request.job->request->contiguous};
  return takes_idle_nodes(request) ? fit_on_first(question) : best_fit(cpus_, question);
}

// Returns as many of the equal nodes as are needed, and the required ones.
std::optional<Linear::Ranks> Linear::first_of(const BestFitRequest& question) const {
  const int by_cpus = quotient_up(question.min_cpus, cpus_.cpus(0));
  const int wanted = std::max({question.min_nodes, question.req_nodes, by_cpus});
  NodeSet chosen = question.required;
  int count = chosen.count();
  for (int rank = question.eligible.next(0); rank >= 0 && count < wanted;
       rank = question.eligible.next(rank + 1)) {
    if (chosen.test(rank)) continue;
    chosen.set(rank);
    ++count;
  }
  // Fewer than wished for are accepted down to the minimum (4.4.4 step 6), as long as the CPUs
  // suffice.
  if (count < std::max(question.min_nodes, by_cpus) || count > question.max_nodes) {
    return std::nullopt;
  }
  Ranks ranks;
  for (int rank = chosen.next(0); rank >= 0; rank = chosen.next(rank + 1)) ranks.push_back(rank);
  return ranks;
}

// Among equal nodes of one weight, without required ones, the first empty nodes do (R4.3).
bool Linear::takes_first_nodes(const SelectRequest& request) const {
  return takes_idle_nodes(request) && cpus_.uniform() && by_weight_.empty() && !books_.has_p5() &&
         !request.any_required && !request.job->request->contiguous;
}

// Returns the nodes that first_of() would choose among the empty ones, if there are as many as
// wished for, without working out which other nodes are eligible. REQUIRES: takes_first_nodes(), at
// least one node.
std::optional<Linear::Ranks> Linear::first_empty(const SelectRequest& request) const {
  const int by_cpus = quotient_up(min_cpus(*request.job), cpus_.cpus(0));
  const int wanted = std::max({request.min_nodes, request.req_nodes, by_cpus});
  if (wanted > request.max_nodes) return std::nullopt;
  const CountedDemand memory = memory_of(*request.job);
  const NodeSet& empty = books_.empty();
  const NodeSet& roomy = memory.per == CountedPer::kNothing ? empty : books_.roomy(memory);
  Ranks ranks;
  for (int rank = empty.next_common(books_.first_empty(), roomy, request.nodes);
       rank >= 0 && static_cast<int>(ranks.size()) < wanted;
       rank = empty.next_common(rank + 1, roomy, request.nodes)) {
    ranks.push_back(rank);
  }
  if (static_cast<int>(ranks.size()) < wanted) return std::nullopt;
  return ranks;
}

// A job that shares its nodes with no other and could preempt no other is tried on the first nodes,
// the lightest first, and then on one more at a time: so Slurm 22.05 decides (recorded).
//
// 1. Among equal nodes of one weight the first ones do.
// 2. Start from the required nodes, and add node after node.
// 3. As soon as there are enough nodes and CPUs, ask best fit of those added so far.
std::optional<Linear::Ranks> Linear::fit_on_first(const BestFitRequest& question) const {
  // 1
  if (cpus_.uniform() && by_weight_.empty() && !question.contiguous) return first_of(question);
  NodeSet first = question.required;  // 2
  int nodes = first.count();
  std::int64_t cpus = 0;
  for (int rank = first.next(0); rank >= 0; rank = first.next(rank + 1)) cpus += cpus_.cpus(rank);
  const int wanted =
      std::min(std::max(question.min_nodes, question.req_nodes), question.eligible.count());  // 3
  // Best fit of the nodes added so far, once there are enough.
  const auto try_first = [&]() -> std::optional<Ranks> {
    if (nodes < wanted || cpus < question.min_cpus) return std::nullopt;
    const BestFitRequest part{.eligible = first,
                              .required = question.required,
                              .any_required = question.any_required,
                              .min_nodes = question.min_nodes,
                              .req_nodes = question.req_nodes,
                              .max_nodes = question.max_nodes,
                              .min_cpus = question.min_cpus,
                              .contiguous = question.contiguous};
    return best_fit(cpus_, part);
  };
  if (auto found = try_first()) return found;
  std::optional<Ranks> found;
  // Adds a node that the job may have. True if the job fits with it.
  const auto add = [&](int rank) {
    if (!question.eligible.test(rank) || first.test(rank)) return false;
    first.set(rank);
    ++nodes;
    cpus += cpus_.cpus(rank);
    found = try_first();
    return found.has_value();
  };
  if (by_weight_.empty()) {
    for (int rank = question.eligible.next(0); rank >= 0; rank = question.eligible.next(rank + 1)) {
      if (add(rank)) return found;
    }
  } else {
    for (const int rank : by_weight_) {
      if (add(rank)) return found;
    }
  }
  return std::nullopt;
}

// 4.4.3 step 1: nodes where at most k jobs run, for k = 0, 1, …, and of these first those where few
// jobs are suspended. From k = 1 on a mate of the same size is preferred, so that jobs that take
// turns do so as a whole. A job that takes idle nodes gets the first ones of them, also where the
// jobs there are suspended by their users (recorded).
std::optional<Linear::Ranks> Linear::run_now(const SelectRequest& request,
                                             const NodeSet& nodes) const {
  if (takes_idle_nodes(request)) {
    // Nodes whose jobs their users have suspended count as idle too, so with such jobs the short
    // way would skip some.
    if (stopped_ == 0 && takes_first_nodes(request)) {
      if (auto first = first_empty(request)) return first;
    }
    const NodeSet eligible = count(request, nodes, 0, kUnlimited);
    if (eligible.count() < request.min_nodes) return std::nullopt;
    return fit(request, eligible);
  }
  const int max_share = share_of(request);
  int previous = -1;
  for (int k = 0; k < max_share; ++k) {
    const bool last = k + 1 == max_share;
    // There are no nodes on which that few jobs run, in whatever partition.
    if (k < NodeBooks::kRunningMax && books_.count_with_running(k) < request.min_nodes) continue;
    // Suspended jobs that may be there besides: none, then four, and with the last k any number.
    // With the quirk, any number at once with the last k, so that a node whose job its user has
    // suspended counts as an idle one does.
    for (const int extra : {0, 4}) {
      if (last && extra == 0 && cluster_.parameters().quirks.suspended_count_as_idle) continue;
      const int total_limit = extra == 0 ? k : last ? kUnlimited : k + extra;
      const Others others{k, total_limit};
      // R4.6: a job that lies exactly on another alternates with that one alone; two that overlap
      // in part would stop each other and a third. Mostly one of the first mates will do, and then
      // no other node need be looked at.
      constexpr int kFirstMates = 8;
      if (k > 0) {
        if (auto mate = find_mate(request, nodes, others, kFirstMates)) return mate;
      }
      NodeSet eligible =
          k == 0 ? count(request, nodes, k, total_limit) : with_jobs(nodes, k, total_limit);
      const int found = eligible.count();
      // The same nodes as before, or too few: the answer cannot be another one.
      if (found == previous || found < request.min_nodes) continue;
      previous = found;
      if (k > 0) {
        if (auto mate = find_mate(request, eligible, others, kUnlimited)) return mate;
        leave_out_full(request, eligible);
        if (!eligible.has_at_least(request.min_nodes)) continue;
      }
      if (auto fitting = fit(request, eligible)) return fitting;
    }
  }
  return std::nullopt;
}

// Allocates all of each node; tasks are dealt out evenly, one more to the first nodes.
Allocation Linear::allocate(const SelectRequest& request, const Ranks& chosen) const {
  Allocation allocation;
  allocation.whole_nodes = true;
  const auto nodes_count = static_cast<int>(chosen.size());
  allocation.nodes.reserve(chosen.size());
  const CountedDemand memory = memory_of(*request.job);
  const DeviceDemand devices = devices_of(*request.job);
  const int tasks = tasks_of(*request.job->request, nodes_count);
  int index = 0;
  for (const int rank : chosen) {
    const NodeSpec& node = cluster_.spec_at(rank);
    NodeAllocation use;
    use.node = cluster_.node_at(rank);
    use.cores = CoreSet::first(node.cores());
    use.cpus = node.cpus;
    use.tasks = tasks / nodes_count + (index++ < tasks % nodes_count ? 1 : 0);
    use.memory = MemoryMiB{memory.charge(node.cpus, node.memory.value())};
    allocation.nodes.push_back(use);
    books_.devices().give(devices, rank, request.mode == SelectMode::kTestOnly, allocation);
  }
  return allocation;
}

// Asks the three questions of 3.8: could it ever run, could it run when some jobs have gone, and
// where does it run now.
SelectOutcome Linear::select(const SelectRequest& request) {
  if (shares_devices(*request.job->request)) return {};
  SelectOutcome outcome;
  if (request.mode == SelectMode::kTestOnly) {
    // 3.8, 4.4.2: neither jobs nor memory matter. A job with more memory per CPU than a node has
    // waits forever, as in Slurm 22.05; more memory per node was refused before (4.2.2).
    if (auto nodes = fit(request, request.nodes)) outcome.allocation = allocate(request, *nodes);
    return outcome;
  }
  std::optional<Ranks> chosen;
  // A look ahead asks about books that a trial has changed: no mates, no victims (R8.3).
  if (request.mode == SelectMode::kWillRun) {
    // Slurm 22.05 works out MAX(max_share − 1, 1): a node with one running job counts as free also
    // for a job that shares with none (R8.3).
    const int least = cluster_.parameters().quirks.one_running_job_counts_as_none ? 1 : 0;
    const int others = std::max(share_of(request) - 1, least);
    const NodeSet eligible = count(request, request.nodes, others, kUnlimited);
    if (eligible.count() >= request.min_nodes) chosen = fit(request, eligible);
  } else if (cluster_.parameters().placement == PlacementPolicy::kMinimisePreemption) {
    chosen = cheapest(request, outcome.victims);
  } else {
    chosen = run_now(request, request.nodes);
    if (!chosen && !request.candidates.empty()) chosen = with_victims(request, outcome.victims);
  }
  if (chosen) outcome.allocation = allocate(request, *chosen);
  return outcome;
}

// T10: the job may run again if each of its nodes takes a job of its kind besides those that run
// there. Its memory was kept all the time.
bool Linear::user_resume(const SelectJob& job) {
  const Partition& partition = cluster_.partition(job.partition);
  const int limit = job.may_stack ? std::max(1, partition.max_share) : 1;
  for (const NodeAllocation& use : job.allocation->nodes) {
    if (!cluster_.exists(use.node)) return false;
    if (!books_.admits(cluster_.rank(use.node), limit - 1, kUnlimited)) return false;
  }
  books_.go_on(job);
  mates_.add(job, books_);
  --stopped_;
  return true;
}

}  // namespace sched::linear

namespace sched {

std::unique_ptr<Selector> make_linear_selector(const Cluster& cluster) {
  return std::make_unique<linear::Linear>(cluster);
}

}  // namespace sched
