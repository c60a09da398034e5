// PartitionRows: the layers in which a partition's jobs are stacked (R4.8 to R4.12). Jobs of one
// row never share a core. Which row a job is in means nothing outside, and changes when rows are
// packed.
//
// Packing is put off until single rows are looked at. A trial (begin_trial … end_trial) takes
// jobs out for a question and restores everything exactly.
//
// Cost: add and remove O(log jobs + rows × the job's nodes); packing only while jobs are really
// stacked: from scratch O(jobs × (rows + log jobs)), again after few changes O(jobs) in additions
// (packing.h).
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "scheduler/model/core_set.h"
#include "scheduler/model/ids.h"
#include "scheduler/select/cons_tres/packing.h"

namespace sched::cons_tres {

class PartitionRows {
 public:
  // `changed(rank)` is called when packing has changed what single rows hold of a node. (What a job
  // that comes or goes changes is its caller's business.)
  using Changed = std::function<void(int rank)>;
  explicit PartitionRows(
      int node_count, Changed changed = [](int) {})
      : node_count_{node_count}, changed_{std::move(changed)}, packing_{node_count} {}

  // Makes room for `count` rows. Rows beyond that stay while they hold jobs.
  void set_count(int count);
  int count() const { return static_cast<int>(rows_.size()); }
  bool empty() const {
    return std::ranges::all_of(rows_, [](const Row& row) { return row.jobs_count == 0; });
  }

  // Returns true if there is a row where these cores are free.
  bool has_room(const std::vector<RankCores>& nodes);
  // R4.10: into the first row where it fits. Where Slurm would leave it unrecorded (after a
  // restart, or with fewer rows than before) it gets a row beyond the count, whose cores no
  // other job is given. `cpus` = what the job asked for, which may be less than it holds: packing
  // goes by it. REQUIRES: at least one node, ascending; no trial.
  void add(JobId job, std::vector<RankCores> nodes, int cpus);
  // Returns the cores that it held. REQUIRES: holds(job); no trial.
  std::vector<RankCores> remove(JobId job);
  // REQUIRES: no trial.
  bool holds(JobId job) const { return jobs_.contains(job); }

  // Cores on the node that any row holds.
  const CoreSet& used(int rank) const;
  // Returns the jobs of this partition with cores on the node.
  int jobs_on(int rank) const { return jobs_on_[static_cast<std::size_t>(rank)]; }

  // Packs the rows, indexed by rank; nullptr = nothing was ever in it.
  void pack();
  // Makes the next packing start from scratch; for tests, which compare the two.
  void forget_packing() { packing_.forget(); }
  const CoreSet* row(int index) const;
  // A row keeps its id while it moves among the others.
  int row_id(int index) const { return rows_[static_cast<std::size_t>(index)].id; }
  // R4.12: densest first, by the number of cores held.
  void sort_densest_first();

  // Returns a copy for questions: `count` rows, packed as pack() would pack these. It has no list
  // of jobs, and nothing may be added to it or removed.
  std::unique_ptr<PartitionRows> packed_copy(int count);

  void begin_trial();
  // Takes the job out until the trial ends. False if the rows do not hold it. REQUIRES: it was not
  // taken out before in this trial.
  bool remove_for_trial(JobId id);
  // Puts the job back that was removed last in this trial. False, and nothing changed, if the rows
  // were packed meanwhile.
  bool put_back();
  void end_trial();

 private:
  struct Row {
    int id = 0;
    std::vector<CoreSet> cores;  // by rank; empty until first used
    std::int64_t held_count = 0;
    int jobs_count = 0;
  };
  using Jobs = std::map<JobId, RowJob>;
  // The places of the jobs; those that were removed in the trial before are not among them.
  struct Layout {
    struct JobPlace {
      RowJob* job;
      int row;
      std::int64_t sequence;
    };
    std::vector<Row> rows;
    std::vector<JobPlace> places;
    std::size_t removed_count;  // when it was saved
  };
  const Row& row_of(const RowJob& job) const;
  Row& row_of(const RowJob& job) { return const_cast<Row&>(std::as_const(*this).row_of(job)); }
  static bool fits(const std::vector<RankCores>& nodes, const Row& row);
  static bool is_sorted(const std::vector<Row>& rows);
  static void sort_densest_first(std::vector<Row>& rows);
  void occupy(Row& row, const RowJob& job) const;
  std::vector<RowJob*> packing_order(std::vector<RowJob*> jobs) const;
  const std::vector<RowJob*>& order_in_trial();
  void leave_row(const RowJob& job);
  void take_out(const RowJob& job);
  void put(RowJob& job, Row& row);
  void count_job(const RowJob& job, int delta);
  void refresh_used(const RowJob& job);
  bool stacked() const;
  bool replay();
  void pack_from_scratch();
  void remember(RowJob& job, std::vector<Row>::const_iterator row);
  void save_for_trial();
  void list(RowJob& job);
  void unlist(const RowJob& job);

  // Calls changed_ for each node of which a row holds other cores than the row of its id in
  // `before`.
  void tell_changes(const std::vector<Row>& before) const;
  // Rows with these ids and nothing in them, in the memory of earlier ones.
  std::vector<Row> empty_rows(const std::vector<Row>& like);
  void keep_memory(std::vector<Row> rows);

  int node_count_;
  Changed changed_;
  std::vector<Row> rows_;
  std::vector<std::vector<CoreSet>> spare_;  // cores of rows that are no more, for the next packing
  Jobs jobs_;                                // also those that were removed in this trial
  std::vector<RowJob*> flat_;  // those in rows, in no order: packing from scratch walks over them
  Packing packing_;
  std::vector<CoreSet> used_;  // by rank; kept only while there are several rows
  std::vector<std::uint16_t> jobs_on_;
  std::int64_t next_sequence_ = 0;
  bool unpacked_ = false;

  bool in_trial_ = false;
  std::vector<RowJob*> removed_;  // in this trial
  std::optional<Layout> saved_;   // before this trial first changed the layout
  // packing_order() of all jobs that were in rows when the trial began; empty = not known.
  std::vector<RowJob*> order_;
};

}  // namespace sched::cons_tres
