// select/linear: whole nodes (4.4).
#include <algorithm>
#include <cstddef>
#include <limits>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "scheduler/select/cons_tres/cheapest.h"
#include "scheduler/select/linear/best_fit.h"
#include "scheduler/select/selector.h"

namespace sched {
namespace {

using linear::best_fit;
using linear::BestFitRequest;
using linear::CpuSums;

constexpr int kUnlimited = std::numeric_limits<int>::max();

// 4.4.1. Counted over all partitions (R4.5).
struct NodeBook {
  MemoryMiB memory{0};
  int exclusive = 0;  // jobs that refuse to be stacked
  int running = 0;    // not suspended by their users
  int total = 0;
};

class Linear final : public Selector {
 public:
  explicit Linear(const Cluster& cluster)
      : cluster_{cluster},
        manages_memory_{cluster.parameters().memory},
        books_(static_cast<std::size_t>(cluster.node_count())),
        empty_{NodeSet::all(cluster.node_count())} {
    std::vector<int> cpus;
    for (const NodeIndex node : cluster.order()) cpus.push_back(cluster.node(node).cpus);
    cpus_ = CpuSums{cpus};
  }

  SelectOutcome select(const SelectRequest& request) override;
  void add(const SelectJob& job) override {
    jobs_.emplace(job.table_order, &job);
    for_each(job, [&](NodeBook& book, MemoryMiB memory) { book_in(book, job, memory); });
    if (job.user_suspended) user_suspend(job);
  }
  void remove(const SelectJob& job) override {
    if (job.user_suspended) count_running(job, +1);
    for_each(job, [&](NodeBook& book, MemoryMiB memory) { book_out(book, job, memory); });
    jobs_.erase(job.table_order);
  }
  void user_suspend(const SelectJob& job) override { count_running(job, -1); }
  bool user_resume(const SelectJob& job) override;

 private:
  using Books = std::vector<NodeBook>;
  struct Demand {
    bool per_cpu = false;
    std::optional<MemoryMiB> amount;  // nothing = the whole node's memory
  };

  template <typename Visit>
  void for_each(const SelectJob& job, Visit visit) {
    for (const NodeAllocation& use : job.allocation->nodes) {
      if (!cluster_.exists(use.node)) continue;
      const int rank = cluster_.rank(use.node);
      NodeBook& book = books_[static_cast<std::size_t>(rank)];
      visit(book, use.memory);
      empty_.assign(rank, book.total == 0);
    }
  }
  // Whether the job refuses to be stacked follows from how it was started; it is kept here so that
  // a changed partition does not unbalance the books.
  bool refuses(const SelectJob& job) const { return !job.may_stack; }
  void book_in(NodeBook& book, const SelectJob& job, MemoryMiB memory) const {
    book.memory += memory;
    if (refuses(job)) ++book.exclusive;
    ++book.running;
    ++book.total;
  }
  void book_out(NodeBook& book, const SelectJob& job, MemoryMiB memory) const {
    book.memory -= memory;
    if (refuses(job)) --book.exclusive;
    --book.running;
    --book.total;
  }
  void count_running(const SelectJob& job, int delta) {
    for_each(job, [&](NodeBook& book, MemoryMiB) {
      book.running += delta;
      if (refuses(job)) book.exclusive += delta;
    });
  }

  Demand demand(const SelectJob& job) const;
  MemoryMiB charge(const Demand& demand, int rank) const;
  bool memory_fits(const SelectRequest& request, const Books& books, int rank) const;
  NodeSet count(const SelectRequest& request, const NodeSet& nodes, const Books& books,
                int run_limit, int total_limit) const;
  std::optional<NodeSet> find_mate(const SelectRequest& request, const NodeSet& eligible) const;
  std::optional<NodeSet> fit(const SelectRequest& request, const NodeSet& eligible) const;
  std::optional<NodeSet> run_now(const SelectRequest& request, const NodeSet& nodes) const;
  class Sparing;
  std::optional<NodeSet> cheapest(const SelectRequest& request,
                                  std::vector<std::size_t>& victims) const;
  std::optional<NodeSet> with_victims(const SelectRequest& request,
                                      std::vector<std::size_t>& victims) const;
  Allocation allocate(const SelectRequest& request, const NodeSet& chosen) const;

  const Cluster& cluster_;
  const bool manages_memory_;
  Books books_;    // by rank
  NodeSet empty_;  // no job at all
  CpuSums cpus_;
  std::map<std::int64_t, const SelectJob*> jobs_;  // allocated, in job-table order
};

// MaxMemPerCPU of the partition, else the cluster's; nothing = unlimited (1.8 step 5).
std::optional<MemoryMiB> max_per_cpu(const Cluster& cluster, PartitionIndex partition) {
  const MemoryLimit& own = cluster.partition(partition).config.max_memory;
  const MemoryLimit& limit = own.per_cpu || own.per_node ? own : cluster.parameters().max_memory;
  return limit.per_cpu;
}

// 1.8 step 6: by how much a request per CPU is above its limit; so many more CPUs does a task get.
std::int64_t memory_factor(const Cluster& cluster, const SelectJob& job) {
  const auto* per_cpu = std::get_if<MemoryPerCpu>(&job.request->memory);
  const auto most = max_per_cpu(cluster, job.partition);
  if (per_cpu == nullptr || !most || most->value() <= 0) return 1;
  return std::max<std::int64_t>(1, (per_cpu->amount.value() + most->value() - 1) / most->value());
}

int min_cpus(const Cluster& cluster, const SelectJob& job) {
  const JobRequest& request = *job.request;
  if (request.overcommit) return 1;
  return tasks_of(request, request.min_nodes) * request.cpus_per_task *
         static_cast<int>(memory_factor(cluster, job));
}

Linear::Demand Linear::demand(const SelectJob& job) const {
  const MemoryRequest& asked = job.request->memory;
  if (const auto* per_cpu = std::get_if<MemoryPerCpu>(&asked)) {
    const std::int64_t factor = memory_factor(cluster_, job);
    return {true, MemoryMiB{(per_cpu->amount.value() + factor - 1) / factor}};
  }
  if (const auto* per_node = std::get_if<MemoryPerNode>(&asked)) {
    if (per_node->amount.value() == 0) return {};
    return {false, per_node->amount};
  }
  // 1.8 steps 2 to 4.
  const MemoryLimit& partition = cluster_.partition(job.partition).config.default_memory;
  const MemoryLimit& cluster = cluster_.parameters().default_memory;
  const bool own = partition.per_cpu || partition.per_node;
  const MemoryLimit& chosen = own ? partition : cluster;
  if (chosen.per_cpu) return {true, chosen.per_cpu};
  if (chosen.per_node) return {false, chosen.per_node};
  return {};
}

MemoryMiB Linear::charge(const Demand& demand, int rank) const {
  const NodeSpec& node = cluster_.spec_at(rank);
  if (!demand.amount) return node.memory;
  return demand.per_cpu ? MemoryMiB{demand.amount->value() * node.cpus} : *demand.amount;
}

bool Linear::memory_fits(const SelectRequest& request, const Books& books, int rank) const {
  if (!manages_memory_) return true;
  return books[static_cast<std::size_t>(rank)].memory + charge(demand(*request.job), rank) <=
         cluster_.spec_at(rank).memory;
}

// 4.4.2
NodeSet Linear::count(const SelectRequest& request, const NodeSet& nodes, const Books& books,
                      int run_limit, int total_limit) const {
  if (run_limit == 0 && total_limit == 0 && !manages_memory_) return nodes & empty_;
  NodeSet eligible = nodes;
  for (int rank = eligible.next(0); rank >= 0; rank = eligible.next(rank + 1)) {
    const NodeBook& book = books[static_cast<std::size_t>(rank)];
    if (book.exclusive != 0 || book.running > run_limit || book.total > total_limit ||
        !memory_fits(request, books, rank)) {
      eligible.reset(rank);
    }
  }
  return eligible;
}

// 4.4.3 step 1b, also with jobs that the gang has suspended (P16). The mate may be of any
// partition.
std::optional<NodeSet> Linear::find_mate(const SelectRequest& request,
                                         const NodeSet& eligible) const {
  const JobRequest& asked = *request.job->request;
  for (const auto& [order, mate] : jobs_) {
    if (mate->user_suspended) continue;
    if (static_cast<int>(mate->allocation->nodes.size()) != request.req_nodes) continue;
    if (mate->request->contiguous != asked.contiguous) continue;
    NodeSet nodes{eligible.size()};
    bool all_there = true;
    int cpus = 0;
    for (const NodeAllocation& use : mate->allocation->nodes) {
      all_there = all_there && cluster_.exists(use.node);
      if (!all_there) break;
      const int rank = cluster_.rank(use.node);
      nodes.set(rank);
      cpus += cpus_.cpus(rank);
    }
    if (!all_there || cpus < min_cpus(cluster_, *request.job)) continue;
    if (eligible.contains(nodes) && nodes.contains(request.required)) return nodes;
  }
  return std::nullopt;
}

std::optional<NodeSet> Linear::fit(const SelectRequest& request, const NodeSet& eligible) const {
  if (!eligible.contains(request.required)) return std::nullopt;
  return best_fit(cpus_, BestFitRequest{.eligible = eligible,
                                        .required = request.required,
                                        .min_nodes = request.min_nodes,
                                        .req_nodes = request.req_nodes,
                                        .max_nodes = request.max_nodes,
                                        .min_cpus = min_cpus(cluster_, *request.job),
                                        .contiguous = request.job->request->contiguous});
}

// 4.4.3 step 1
std::optional<NodeSet> Linear::run_now(const SelectRequest& request, const NodeSet& nodes) const {
  const int max_share = request.may_stack ? std::max(1, request.max_share) : 1;
  int previous = -1;
  for (int k = 0; k < max_share; ++k) {
    const bool last = k + 1 == max_share;
    for (const int extra : {0, 4}) {
      const int total_limit = extra == 0 ? k : last ? kUnlimited : k + extra;
      const NodeSet eligible = count(request, nodes, books_, k, total_limit);
      const int found = eligible.count();
      if (found == previous || found < request.min_nodes) continue;
      previous = found;
      if (k > 0) {
        if (auto mate = find_mate(request, eligible)) return mate;
      }
      if (auto fitting = fit(request, eligible)) return fitting;
    }
  }
  return std::nullopt;
}

// 7.6.1. The candidates are removed one by one from a copy of the books.
std::optional<NodeSet> Linear::with_victims(const SelectRequest& request,
                                            std::vector<std::size_t>& victims) const {
  struct Removal {
    std::size_t candidate = 0;
    int usable = 0;  // u(v)
  };
  const int max_share = request.may_stack ? std::max(1, request.max_share) : 1;
  std::vector<Removal> removals;
  for (std::size_t i = 0; i < request.candidates.size(); ++i) removals.push_back({i, 0});
  for (int pass = 0; pass < 2; ++pass) {
    Books books = books_;
    NodeSet eligible = count(request, request.nodes, books, max_share - 1, kUnlimited);
    int found = eligible.count();
    std::size_t at = 0;
    std::optional<NodeSet> chosen;
    for (; at < removals.size() && !chosen; ++at) {
      const Candidate& candidate = request.candidates[removals[at].candidate];
      const SelectJob& victim = *candidate.job;
      const bool ends = candidate.must_end();
      int usable = 0;
      for (const NodeAllocation& use : victim.allocation->nodes) {
        if (!cluster_.exists(use.node)) continue;
        const int rank = cluster_.rank(use.node);
        NodeBook& book = books[static_cast<std::size_t>(rank)];
        if (!victim.user_suspended) {
          --book.running;
          if (refuses(victim)) --book.exclusive;
        }
        if (ends) {
          --book.total;
          book.memory -= use.memory;
        }
        if (!request.nodes.test(rank)) continue;
        if (!eligible.test(rank) && book.exclusive == 0 && book.running < max_share &&
            memory_fits(request, books, rank)) {
          eligible.set(rank);
          ++found;
        }
        if (eligible.test(rank)) ++usable;
      }
      removals[at].usable = usable;
      if (found >= request.min_nodes) chosen = fit(request, eligible);
    }
    if (!chosen) return std::nullopt;
    const std::size_t decisive = at - 1;
    if (pass == 0 && removals.size() > 1) {
      removals[decisive].usable = 9999;
      for (std::size_t i = at; i < removals.size(); ++i) removals[i].usable = 0;
      std::stable_sort(removals.begin(), removals.end(),
                       [](const Removal& a, const Removal& b) { return a.usable > b.usable; });
      continue;
    }
    for (std::size_t i = 0; i < at; ++i) {
      if (removals[i].usable == 0) continue;
      const SelectJob& victim = *request.candidates[removals[i].candidate].job;
      const bool hit =
          std::any_of(victim.allocation->nodes.begin(), victim.allocation->nodes.end(),
                      [&](const NodeAllocation& use) {
                        return cluster_.exists(use.node) && chosen->test(cluster_.rank(use.node));
                      });
      if (hit) victims.push_back(removals[i].candidate);
    }
    return chosen;
  }
  return std::nullopt;
}

// Would the job start if it might stop or end the jobs taken so far? (15.4) Those are the
// candidates that are offered and, where gang casts shadows, whoever of a lower tier it would be
// stacked upon.
class Linear::Sparing final : public cons_tres::VictimQuestion {
 public:
  Sparing(const Linear& linear, const SelectRequest& request)
      : linear_{linear},
        request_{request},
        books_{linear.books_},
        blockers_(linear.books_.size(), 0) {
    const Cluster& cluster = linear.cluster_;
    const int own_tier = cluster.partition(request.job->partition).tier();
    const bool shadows = request.may_stack && cluster.parameters().gang;
    for (std::size_t i = 0; i < request.candidates.size(); ++i) {
      victims_.push_back({.job = request.candidates[i].job, .candidate = i});
    }
    for (const auto& by_order : linear.jobs_) {
      const SelectJob* const job = by_order.second;
      if (!shadows || job->user_suspended || cluster.partition(job->partition).tier() >= own_tier) {
        continue;
      }
      const auto known = std::find_if(victims_.begin(), victims_.end(),
                                      [&](const Victim& victim) { return victim.job == job; });
      if (known == victims_.end()) {
        victims_.push_back({.job = job, .candidate = std::nullopt, .shadowed = true});
      } else {
        known->shadowed = true;
      }
    }
    std::erase_if(victims_, [&](const Victim& victim) { return !near(*victim.job); });
    for (std::size_t i = 0; i < victims_.size(); ++i) {
      if (victims_[i].shadowed) block(victims_[i], +1);
    }
  }

  std::vector<cons_tres::VictimCost> costs() const {
    std::vector<cons_tres::VictimCost> costs;
    for (const Victim& victim : victims_) {
      std::int64_t cpus = 0;
      for (const NodeAllocation& use : victim.job->allocation->nodes) cpus += use.cpus;
      const int tier = linear_.cluster_.partition(victim.job->partition).tier();
      costs.push_back({.count = 1, .tiers = tier, .cpus = cpus});
    }
    return costs;
  }
  void take(std::size_t index) override { change(victims_[index], +1); }
  void spare(std::size_t index) override { change(victims_[index], -1); }
  bool fits() override { return chosen().has_value(); }

  std::optional<NodeSet> chosen() const {
    NodeSet nodes = request_.nodes;
    for (int rank = nodes.next(0); rank >= 0; rank = nodes.next(rank + 1)) {
      if (blockers_[static_cast<std::size_t>(rank)] > 0) nodes.reset(rank);
    }
    if (auto found = linear_.run_now(request_, nodes)) return found;
    const int share = request_.may_stack ? std::max(1, request_.max_share) : 1;
    const NodeSet eligible = linear_.count(request_, nodes, books_, share - 1, kUnlimited);
    if (eligible.count() < request_.min_nodes) return std::nullopt;
    return linear_.fit(request_, eligible);
  }
  std::optional<std::size_t> candidate(std::size_t index) const {
    return victims_[index].candidate;
  }

 private:
  struct Victim {
    const SelectJob* job;
    std::optional<std::size_t> candidate;  // index into request.candidates
    bool shadowed = false;                 // stopped by the gang where the job is stacked upon it
  };
  bool near(const SelectJob& job) const {
    const auto& nodes = job.allocation->nodes;
    return std::any_of(nodes.begin(), nodes.end(), [&](const NodeAllocation& use) {
      return linear_.cluster_.exists(use.node) &&
             request_.nodes.test(linear_.cluster_.rank(use.node));
    });
  }
  void block(const Victim& victim, int delta) {
    for (const NodeAllocation& use : victim.job->allocation->nodes) {
      if (!linear_.cluster_.exists(use.node)) continue;
      blockers_[static_cast<std::size_t>(linear_.cluster_.rank(use.node))] += delta;
    }
  }
  // 7.6.1 step 1: who has to end leaves everything, who is suspended its count and exclusivity.
  void change(const Victim& victim, int delta) {
    if (victim.shadowed) block(victim, -delta);
    if (!victim.candidate) return;
    const PreemptMode mode = request_.candidates[*victim.candidate].mode;
    const bool ends = mode == PreemptMode::kCancel || mode == PreemptMode::kRequeue;
    for (const NodeAllocation& use : victim.job->allocation->nodes) {
      if (!linear_.cluster_.exists(use.node)) continue;
      NodeBook& book = books_[static_cast<std::size_t>(linear_.cluster_.rank(use.node))];
      if (!victim.job->user_suspended) {
        book.running -= delta;
        if (linear_.refuses(*victim.job)) book.exclusive -= delta;
      }
      if (!ends) continue;
      book.total -= delta;
      book.memory -= MemoryMiB{use.memory.value() * delta};
    }
  }

  const Linear& linear_;
  const SelectRequest& request_;
  std::vector<Victim> victims_;
  Books books_;
  std::vector<int> blockers_;  // by rank: jobs that must not be stacked upon
};

// MinimisePreemption: the fewest victims, then the lowest tiers, then the smallest jobs.
std::optional<NodeSet> Linear::cheapest(const SelectRequest& request,
                                        std::vector<std::size_t>& victims) const {
  Sparing question{*this, request};
  if (auto nodes = question.chosen()) return nodes;  // nobody is touched
  const auto taken = cons_tres::cheapest_victims(question.costs(), question);
  if (!taken) return std::nullopt;
  for (const std::size_t index : *taken) {
    if (const auto candidate = question.candidate(index)) victims.push_back(*candidate);
  }
  return question.chosen();
}

Allocation Linear::allocate(const SelectRequest& request, const NodeSet& chosen) const {
  Allocation allocation;
  allocation.whole_nodes = true;
  const int nodes_count = chosen.count();
  allocation.nodes.reserve(static_cast<std::size_t>(nodes_count));
  const Demand need = demand(*request.job);
  const int tasks = tasks_of(*request.job->request, nodes_count);
  int index = 0;
  for (int rank = chosen.next(0); rank >= 0; rank = chosen.next(rank + 1), ++index) {
    const NodeSpec& node = cluster_.spec_at(rank);
    NodeAllocation use;
    use.node = cluster_.node_at(rank);
    use.cores = CoreSet::first(node.cores());
    use.cpus = node.cpus;
    use.tasks = tasks / nodes_count + (index < tasks % nodes_count ? 1 : 0);
    if (manages_memory_) use.memory = charge(need, rank);
    allocation.nodes.push_back(use);
  }
  return allocation;
}

SelectOutcome Linear::select(const SelectRequest& request) {
  SelectOutcome outcome;
  if (request.mode == SelectMode::kTestOnly) {
    // 3.8, 4.4.2: neither jobs nor memory matter. What asks per CPU for more memory than a node has
    // waits for ever, as in Slurm 22.05; what asks so per node was sorted out before (4.2.2).
    if (auto nodes = fit(request, request.nodes)) outcome.allocation = allocate(request, *nodes);
    return outcome;
  }
  std::optional<NodeSet> chosen;
  if (cluster_.parameters().placement == PlacementPolicy::kMinimisePreemption) {
    chosen = cheapest(request, outcome.victims);
  } else {
    chosen = run_now(request, request.nodes);
    if (!chosen && !request.candidates.empty()) chosen = with_victims(request, outcome.victims);
  }
  if (chosen) outcome.allocation = allocate(request, *chosen);
  return outcome;
}

bool Linear::user_resume(const SelectJob& job) {
  const Partition& partition = cluster_.partition(job.partition);
  const int limit = job.may_stack ? std::max(1, partition.max_share) : 1;
  for (const NodeAllocation& use : job.allocation->nodes) {
    if (!cluster_.exists(use.node)) return false;
    const NodeBook& book = books_[static_cast<std::size_t>(cluster_.rank(use.node))];
    if (book.exclusive != 0 || book.running >= limit) return false;
  }
  count_running(job, +1);
  return true;
}

}  // namespace

std::unique_ptr<Selector> make_linear_selector(const Cluster& cluster) {
  return std::make_unique<Linear>(cluster);
}

}  // namespace sched
