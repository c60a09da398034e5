// Linear: select/linear, which hands out whole nodes (4.4). Jobs of several partitions may be
// stacked on a node; what they hold there is in NodeBooks.
//
// Threads: none. Cost of a select: O(nodes taken) while the first empty nodes do, O(nodes / 64)
// while empty nodes or a mate are found, else O(max_share × nodes / 64), O(max_share × nodes) if
// memory counts or users have suspended jobs; O(candidates × their nodes) more when victims are
// looked for. Bookkeeping costs O(nodes of the job × jobs there × log jobs) where jobs are stacked,
// else O(nodes of the job).
#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "scheduler/select/linear/best_fit.h"
#include "scheduler/select/linear/mates.h"
#include "scheduler/select/linear/node_books.h"
#include "scheduler/select/memory_demand.h"
#include "scheduler/select/selector.h"

namespace sched::linear {

class Linear final : public Selector {
 public:
  // `cluster` must be settled and outlive this.
  explicit Linear(const Cluster& cluster);

  SelectOutcome select(const SelectRequest& request) override;
  void add(const SelectJob& job) override {
    jobs_.emplace(job.table_order, &job);
    books_.add(job);
    if (job.user_suspended) {
      ++stopped_;
    } else {
      mates_.add(job, books_);
    }
  }
  void remove(const SelectJob& job) override {
    books_.remove(job);
    if (job.user_suspended) {
      --stopped_;
    } else {
      mates_.remove(job, books_);
    }
    jobs_.erase(job.table_order);
  }
  void user_suspend(const SelectJob& job) override {
    books_.stop(job);
    mates_.remove(job, books_);
    ++stopped_;
  }
  bool user_resume(const SelectJob& job) override;
  void node_changed(int rank) override { books_.node_changed(rank); }
  std::unique_ptr<Trial> begin_trial() override {
    return std::make_unique<NodeBooks::Trial>(books_);
  }

 private:
  using Ranks = std::vector<int>;  // chosen nodes, ascending
  static constexpr int kUnlimited = std::numeric_limits<int>::max();
  // Returns how many jobs may run on a node that this one takes, itself included.
  static int share_of(const SelectRequest& request) {
    return request.may_stack && request.max_share > 1 ? request.max_share : 1;
  }
  CountedDemand memory_of(const SelectJob& job) const;
  // Returns what it asks for: whole nodes do not bring their devices with them here (recorded).
  static DeviceDemand devices_of(const SelectJob& job) { return {.asked = job.request->devices}; }
  int min_cpus(const SelectJob& job) const;

  // --- linear.cc ---
  NodeSet with_jobs(const NodeSet& nodes, int run_limit, int total_limit) const;
  void leave_out_full(const SelectRequest& request, NodeSet& nodes) const;
  NodeSet count(const SelectRequest& request, const NodeSet& nodes, int run_limit,
                int total_limit) const;
  struct Others {  // how many other jobs may run on a node, and be there
    int running;
    int total;
  };
  std::optional<Ranks> find_mate(const SelectRequest& request, const NodeSet& nodes, Others others,
                                 int tries) const;
  std::optional<Ranks> fit(const SelectRequest& request, const NodeSet& eligible) const;
  // Such a job takes idle nodes only; with preemption configured none does (R4.3).
  bool takes_idle_nodes(const SelectRequest& request) const {
    return request.mode == SelectMode::kRunNow && !request.may_stack &&
           cluster_.parameters().preempt_type == PreemptType::kNone;
  }
  std::optional<Ranks> fit_on_first(const BestFitRequest& question) const;
  std::optional<Ranks> first_of(const BestFitRequest& question) const;
  bool takes_first_nodes(const SelectRequest& request) const;
  std::optional<Ranks> first_empty(const SelectRequest& request) const;
  std::optional<Ranks> run_now(const SelectRequest& request, const NodeSet& nodes) const;
  Allocation allocate(const SelectRequest& request, const Ranks& chosen) const;
  // --- victims.cc ---
  struct Removal;
  class Sparing;
  std::optional<Ranks> remove_until_fits(const SelectRequest& request,
                                         std::vector<Removal>& removals,
                                         std::size_t& removed_count);
  std::optional<Ranks> with_victims(const SelectRequest& request,
                                    std::vector<std::size_t>& victims);
  std::optional<Ranks> cheapest(const SelectRequest& request, std::vector<std::size_t>& victims);

  const Cluster& cluster_;
  NodeBooks books_;
  Mates mates_{cluster_};
  CpuSums cpus_;
  std::vector<int> by_weight_;                     // ranks; empty = the order of ranks
  std::map<std::int64_t, const SelectJob*> jobs_;  // allocated, in job-table order
  int stopped_ = 0;                                // of them, suspended by their users
};

}  // namespace sched::linear
