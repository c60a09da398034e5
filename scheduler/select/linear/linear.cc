// select/linear: whole nodes (4.4).
#include <algorithm>
#include <cstddef>
#include <limits>
#include <map>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

#include "scheduler/select/cons_tres/cheapest.h"
#include "scheduler/select/linear/best_fit.h"
#include "scheduler/select/memory_demand.h"
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
    const auto lighter = [&](int a, int b) {
      return cluster.spec_at(a).weight < cluster.spec_at(b).weight;
    };
    std::vector<int> ranks(cpus.size());
    std::iota(ranks.begin(), ranks.end(), 0);
    if (!std::is_sorted(ranks.begin(), ranks.end(), lighter)) {
      std::stable_sort(ranks.begin(), ranks.end(), lighter);
      by_weight_ = std::move(ranks);
    }
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

  MemoryMiB charge(const MemoryDemand& demand, int rank) const;
  bool memory_fits(const MemoryDemand& demand, const Books& books, int rank) const;
  NodeSet count(const SelectRequest& request, const NodeSet& nodes, const Books& books,
                int run_limit, int total_limit) const;
  std::optional<NodeSet> find_mate(const SelectRequest& request, const NodeSet& eligible) const;
  std::optional<NodeSet> fit(const SelectRequest& request, const NodeSet& eligible) const;
  // R4.3
  bool takes_idle_nodes(const SelectRequest& request) const {
    return request.mode == SelectMode::kRunNow && !request.may_stack &&
           cluster_.parameters().preempt_type == PreemptType::kNone;
  }
  std::optional<NodeSet> fit_on_first(const BestFitRequest& question) const;
  std::optional<NodeSet> first_of(const BestFitRequest& question) const;
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
  std::vector<int> by_weight_;                     // ranks; empty = the order of ranks
  std::map<std::int64_t, const SelectJob*> jobs_;  // allocated, in job-table order
};

MemoryDemand demand_of(const Cluster& cluster, const SelectJob& job) {
  return memory_demand(cluster.parameters(), cluster.partition(job.partition).config,
                       job.request->memory);
}

int min_cpus(const Cluster& cluster, const SelectJob& job) {
  const JobRequest& request = *job.request;
  if (request.overcommit) return 1;
  return tasks_of(request, request.min_nodes) * request.cpus_per_task *
         demand_of(cluster, job).task_factor;
}

MemoryMiB Linear::charge(const MemoryDemand& demand, int rank) const {
  const NodeSpec& node = cluster_.spec_at(rank);
  switch (demand.kind) {
    case MemoryKind::kUnmanaged:
      break;
    case MemoryKind::kPerCpu:
      return MemoryMiB{demand.mib * node.cpus};
    case MemoryKind::kPerNode:
      return MemoryMiB{demand.mib};
    case MemoryKind::kWholeNode:
      return node.memory;
  }
  return MemoryMiB{0};
}

bool Linear::memory_fits(const MemoryDemand& demand, const Books& books, int rank) const {
  return demand.kind == MemoryKind::kUnmanaged ||
         books[static_cast<std::size_t>(rank)].memory + charge(demand, rank) <=
             cluster_.spec_at(rank).memory;
}

// 4.4.2
NodeSet Linear::count(const SelectRequest& request, const NodeSet& nodes, const Books& books,
                      int run_limit, int total_limit) const {
  if (run_limit == 0 && total_limit == 0 && !manages_memory_) return nodes & empty_;
  const MemoryDemand demand = demand_of(cluster_, *request.job);
  NodeSet eligible = nodes;
  for (int rank = eligible.next(0); rank >= 0; rank = eligible.next(rank + 1)) {
    const NodeBook& book = books[static_cast<std::size_t>(rank)];
    if (book.exclusive != 0 || book.running > run_limit || book.total > total_limit ||
        !memory_fits(demand, books, rank)) {
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
  const BestFitRequest question{.eligible = eligible,
                                .required = request.required,
                                .min_nodes = request.min_nodes,
                                .req_nodes = request.req_nodes,
                                .max_nodes = request.max_nodes,
                                .min_cpus = min_cpus(cluster_, *request.job),
                                .contiguous = request.job->request->contiguous};
  return takes_idle_nodes(request) ? fit_on_first(question) : best_fit(cpus_, question);
}

// Of equal nodes as many as are needed, and the required ones.
std::optional<NodeSet> Linear::first_of(const BestFitRequest& question) const {
  const int of_node = cpus_.cpus(0);
  const int by_cpus = (question.min_cpus + of_node - 1) / of_node;
  const int wanted = std::max({question.min_nodes, question.req_nodes, by_cpus});
  NodeSet chosen = question.required;
  int count = chosen.count();
  for (int rank = question.eligible.next(0); rank >= 0 && count < wanted;
       rank = question.eligible.next(rank + 1)) {
    if (chosen.test(rank)) continue;
    chosen.set(rank);
    ++count;
  }
  if (count < std::max(question.min_nodes, by_cpus) || count > question.max_nodes) {
    return std::nullopt;
  }
  return chosen;
}

// A job that shares its nodes with nobody and could preempt nobody is tried on the first nodes, the
// lightest first, and then on one more at a time: so Slurm 22.05 decides (recorded).
std::optional<NodeSet> Linear::fit_on_first(const BestFitRequest& question) const {
  if (cpus_.uniform() && by_weight_.empty() && !question.contiguous) return first_of(question);
  NodeSet first = question.required;
  int nodes = first.count();
  std::int64_t cpus = 0;
  for (int rank = first.next(0); rank >= 0; rank = first.next(rank + 1)) cpus += cpus_.cpus(rank);
  const int wanted =
      std::min(std::max(question.min_nodes, question.req_nodes), question.eligible.count());
  const auto try_first = [&]() -> std::optional<NodeSet> {
    if (nodes < wanted || cpus < question.min_cpus) return std::nullopt;
    const BestFitRequest part{.eligible = first,
                              .required = question.required,
                              .min_nodes = question.min_nodes,
                              .req_nodes = question.req_nodes,
                              .max_nodes = question.max_nodes,
                              .min_cpus = question.min_cpus,
                              .contiguous = question.contiguous};
    return best_fit(cpus_, part);
  };
  if (auto found = try_first()) return found;
  std::optional<NodeSet> found;
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
  const MemoryDemand demand = demand_of(cluster_, *request.job);
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
            memory_fits(demand, books, rank)) {
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
  const MemoryDemand demand = demand_of(cluster_, *request.job);
  const int tasks = tasks_of(*request.job->request, nodes_count);
  int index = 0;
  for (int rank = chosen.next(0); rank >= 0; rank = chosen.next(rank + 1), ++index) {
    const NodeSpec& node = cluster_.spec_at(rank);
    NodeAllocation use;
    use.node = cluster_.node_at(rank);
    use.cores = CoreSet::first(node.cores());
    use.cpus = node.cpus;
    use.tasks = tasks / nodes_count + (index < tasks % nodes_count ? 1 : 0);
    use.memory = charge(demand, rank);
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
