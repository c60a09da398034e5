// Occupancy: which cores, how much memory and how many devices jobs hold (4.5, 5, 11): rows per
// partition, sharing classes, memory and devices per node. Everything is indexed by rank.
//
// Memory and devices are charged to every allocated job, running or suspended, gang or user (R5.2,
// R11.3); cores to all but user-suspended ones (T10). Gang suspension changes nothing here (R4.13).
//
// A trial takes jobs out of the counters of their nodes at once, and out of the rows only when rows
// are looked at (flush_rows()): a job that shares its cores with none is placed by the counters.
//
// Cost: a change costs O(nodes of the job × partitions that hold jobs), plus packing
// (PartitionRows).
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "scheduler/model/cluster.h"
#include "scheduler/model/job_pages.h"
#include "scheduler/model/node_set.h"
#include "scheduler/select/cons_tres/node_facts.h"
#include "scheduler/select/cons_tres/partition_rows.h"
#include "scheduler/select/cons_tres/shape.h"
#include "scheduler/select/device_books.h"

namespace sched::cons_tres {

class Occupancy {
 public:
  // `cluster` must be settled and outlive this.
  explicit Occupancy(const Cluster& cluster);
  Occupancy(const Occupancy&) = delete;
  Occupancy& operator=(const Occupancy&) = delete;

  // Returns a copy for questions, with its rows packed. It has no list of jobs, and nothing may be
  // added to it or removed. `cluster` must outlive it and stay as it is.
  std::unique_ptr<Occupancy> packed_copy();

  // Rows that a partition has now: max_share, plus the extra row of preempt/qos (R4.8).
  int rows_count(PartitionIndex partition) const;
  bool has_extra_row() const { return cluster_.parameters().preempt_type == PreemptType::kQos; }

  void add(const SelectJob& job);
  void remove(const SelectJob& job);
  void release_cores(const SelectJob& job);  // no effect if it holds none
  // After release_cores: true when it holds its cores (again). False, and nothing changed, when no
  // row is free or others are there now that it must not share with.
  bool resume_cores(const SelectJob& job);

  // The node's memory may be another one.
  void node_changed(int rank);

  // --- by rank ---
  int node_count() const { return static_cast<int>(facts_.size()); }
  const NodeFacts& facts(int rank) const { return facts_[index(rank)]; }
  const CoreSet& busy(int rank) const { return nodes_[index(rank)].busy; }  // any row of any job
  int idle_cores(int rank) const { return nodes_[index(rank)].idle_count; }
  const CountedBook& memory() const { return memory_; }  // in MiB
  const DeviceBooks& devices() const { return devices_; }
  bool holds_reserved(int rank) const { return nodes_[index(rank)].reserved_count > 0; }
  bool holds_one_row(int rank) const { return nodes_[index(rank)].one_row_count > 0; }
  bool holds_cores(int rank) const { return nodes_[index(rank)].jobs_count > 0; }
  // Ranks where the weight differs from the one before: runs of nodes are cut there (4.8).
  const NodeSet& weight_changes() const { return weight_changes_; }
  bool is_of_one_weight() const { return is_of_one_weight_; }

  // Returns null before a partition's first job.
  PartitionRows* rows(PartitionIndex partition) {
    flush_rows();
    return partition.index() < rows_.size() ? rows_[partition.index()].get() : nullptr;
  }
  // Returns the partitions with jobs in rows, in the order of R4.9: highest tier first, then
  // configuration order. One that a trial has emptied may be among them.
  std::vector<PartitionIndex> partitions_in_use() const;
  struct Held {
    const SelectJob* job;
    std::optional<NodeClass> cores;  // it holds some, as a job of this class
  };
  const std::map<JobId, Held>& jobs() const { return jobs_; }

  // --- what changed ---
  // Ranks in the order in which they were touched. Positions below log_begin() are forgotten: then
  // everything may have changed.
  std::size_t log_begin() const { return log_begin_; }
  std::size_t log_end() const { return log_begin_ + log_.size(); }
  int touched(std::size_t position) const { return log_[position - log_begin_]; }
  // Called when a trial ends, with the position at which it began. The books are as they were then,
  // and what was logged since is about to be taken back: it must not be kept by a reader.
  using TrialEnd = std::function<void(std::size_t position)>;
  void on_trial_end(TrialEnd listener) { on_trial_end_ = std::move(listener); }

 private:
  friend class OccupancyTrial;
  void begin_trial();
  void remove_for_trial(const SelectJob& job, Selector::Trial::Keep keep);
  bool put_back_in_trial();
  void end_trial();

  struct Node {
    CoreSet busy;
    int idle_count = 0;
    int held_count = 0;  // cores, each as often as jobs hold it
    // Counts of jobs that hold cores.
    std::uint16_t reserved_count = 0, one_row_count = 0, jobs_count = 0;
  };
  struct CopyOf {
    const Occupancy& books;
  };
  explicit Occupancy(CopyOf copy);

  struct TrialStep {
    const SelectJob* job;
    std::optional<NodeClass> cores;  // it held some, as a job of this class
    bool memory;                     // and devices
    bool in_row = false;
    bool alone = false;  // no other job held one of its cores
  };
  void restore(const TrialStep& step);
  Held* find(JobId job) const { return by_id_.find(job); }
  bool is_alone(const SelectJob& job) const;
  void show_cores(const SelectJob& job, bool held);
  void flush_rows();
  void take_out_of_row(TrialStep& step);
  static std::size_t index(int rank) { return static_cast<std::size_t>(rank); }
  std::vector<RankCores> cores_of(const SelectJob& job) const;
  PartitionRows& rows_for(PartitionIndex partition);
  void take_cores(Held& held);
  void release_cores(Held& held);
  bool may_return(const SelectJob& job);
  void charge(const SelectJob& job, int sign);
  void count_class(const SelectJob& job, NodeClass node_class, int delta);
  void refresh(int rank);
  void touch(int rank);

  const Cluster& cluster_;
  std::vector<NodeFacts> facts_;
  std::vector<Node> nodes_;
  CountedBook memory_;
  DeviceBooks devices_;
  NodeSet weight_changes_;
  bool is_of_one_weight_ = true;
  std::vector<std::unique_ptr<PartitionRows>> rows_;  // by PartitionIndex
  std::map<JobId, Held> jobs_;                        // all that are allocated
  JobPages<Held> by_id_;                              // the same
  std::vector<TrialStep> trial_;
  std::size_t flushed_ = 0;  // the steps of the trial that are done in the rows
  bool in_trial_ = false;
  std::vector<int> log_;
  std::size_t log_begin_ = 0;
  std::size_t trial_log_begin_ = 0;  // the end of the log when the trial began
  TrialEnd on_trial_end_;
};

// Selector::Trial on an occupancy.
class OccupancyTrial final : public Selector::Trial {
 public:
  explicit OccupancyTrial(Occupancy& occupancy) : occupancy_{occupancy} {
    occupancy_.begin_trial();
  }
  ~OccupancyTrial() override { occupancy_.end_trial(); }
  OccupancyTrial(const OccupancyTrial&) = delete;
  OccupancyTrial& operator=(const OccupancyTrial&) = delete;

  void remove(const SelectJob& job, Keep keep) override { occupancy_.remove_for_trial(job, keep); }
  bool put_back() override { return occupancy_.put_back_in_trial(); }

 private:
  Occupancy& occupancy_;
};

}  // namespace sched::cons_tres
