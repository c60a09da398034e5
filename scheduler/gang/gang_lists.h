// GangLists: the lists of chapter 6 for a closed set of jobs, one per partition: which of the jobs
// that share units run now. It never chooses resources. With told timing one GangLists holds all
// tracked jobs; otherwise one holds the jobs of one component, and a copy of it is played ahead for
// timetables.
//
// Each partition has a list of its jobs. A job of the list runs if it has a row: ACTIVE, chosen by
// the last rotation, or FILLER, put where there was room since. Jobs of one list that run do not
// overlap, and a running job casts a shadow on all lists of lower tiers: what it holds is taken
// there. A tick rotates: ACTIVE jobs go to the back, and the list is filled from the front (6.6);
// any other change fills holes without a change of the order (6.5).
//
// Each list has an active map, what its running jobs and the shadows over it hold of each node, so
// that "does this job fit" is a comparison of words. Nodes are numbered locally, in the order in
// which jobs brought them.
//
// A value: copying it copies the state, and equal states behave equally. Results of an operation
// are kept until take_actions(); all stops of one rotation precede all its resumes (6.6).
//
// Cost: adding a job O(its nodes) when it runs and nothing of lower tier is under it, else, and for
// removing, O(jobs of the lists concerned); a tick O(jobs × nodes of a job). Copying is a handful
// of allocations.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "scheduler/model/cluster.h"
#include "scheduler/model/job.h"

namespace sched::gang {

// The unit that a partition shares (6.2).
enum class Unit { kNode, kCore, kCpuCount, kSocket };

Unit unit_of(const ClusterParameters& parameters);

enum class EntryRow : std::uint8_t { kNone, kActive, kFiller };

// A job as it enters the lists.
struct Newcomer {
  JobId job;
  PartitionIndex partition;
  const Allocation* allocation = nullptr;  // read during the call only
  bool held = false;                       // prio 0 (R6.9)
  bool kill_under_shadow = false;  // its effective preempt mode is CANCEL or REQUEUE (6.4 stop)
  bool suspended = false;          // by the gang, before (restart, 6.10)
};

// The actions that the lists ask for.
enum class ActionKind {
  kStop,  // suspend
  kResume,
  kKill,  // a shadow is over it and its mode is CANCEL or REQUEUE: preempt it (6.4)
};
struct Action {
  JobId job;
  ActionKind kind;
  std::optional<JobId> by;  // of a kill: the shadow
  friend bool operator==(const Action&, const Action&) = default;
};

// A job's place, for reading and for restoring.
struct Place {
  JobId job;
  EntryRow row = EntryRow::kNone;
  bool resumed = false;
  bool held = false;
  friend bool operator==(const Place&, const Place&) = default;
};

// Returns all cores of every socket that these cores touch, as a job of CR_Socket takes them (6.2).
CoreSet whole_sockets(const CoreSet& cores, const NodeSpec& node);

class GangLists {
 public:
  // `quirks`: of these P1 and P17 count.
  GangLists(const Cluster& cluster, Unit unit, const Quirks& quirks = {})
      : cluster_{&cluster},
        unit_{unit},
        turns_by_counts_{quirks.turns_by_counts},
        any_shadow_kills_{quirks.any_shadow_kills} {}

  // 6.9. `refill`: step 5, refill_all if it keeps running; false while the lists are being rebuilt,
  // the caller calls refill_all() at the end.
  void start(const Newcomer& newcomer, bool refill = true);
  // Puts a job at the end of its partition's list with this place, casting a shadow when it runs
  // and without any action: for restoring. The caller calls recount() at the end.
  void append(const Newcomer& newcomer, const Place& place);
  // Works the active maps out from the rows (after append, or after a change of tiers).
  void recount();
  // 6.8: job gone, or suspended by its user.
  void remove(JobId job, bool refill = true);
  // Sets if the job is never chosen: a gang-suspended job that its user suspended too (T11). It
  // keeps its place in the list.
  void set_held(JobId job, bool held);
  // 6.5 for every partition, highest tier first.
  void refill_all();
  // Ends a slice: every list chooses again (6.7).
  void tick();

  bool contains(JobId job) const { return index_of(job) >= 0; }
  bool empty() const { return index_of_.empty(); }
  std::size_t size() const { return index_of_.size(); }
  // Returns true if it is not much larger than its jobs make it: nodes and entries of jobs that
  // left stay until the lists are built again.
  bool is_lean() const;
  // Records only kills as actions from now on, or everything again.
  void record_kills_only(bool only) { kills_only_ = only; }
  // By partition (highest tier first), in list order.
  std::vector<Place> places() const;
  std::vector<JobId> jobs() const;
  bool runs(JobId job) const;
  // Returns true if a tick or a start may kill a job.
  bool may_kill() const;
  // Returns where each of these jobs, which ascend, is held here, for runs(slot): valid until a job
  // is added or removed; -1 = it is not.
  std::vector<std::int32_t> slots_of(const std::vector<JobId>& jobs) const;
  bool runs(std::int32_t slot) const { return entries_[static_cast<std::size_t>(slot)].resumed; }
  JobId job_at(std::int32_t slot) const { return entries_[static_cast<std::size_t>(slot)].job; }
  // All slots are below.
  std::size_t slots_count() const { return entries_.size(); }
  // Returns true if the job is under a shadow that it conflicts with, so that it does not run at
  // any turn of its own list (R6.34).
  bool shadowed(JobId job) const;
  // Returns false if no job here can be under a shadow, whatever runs.
  bool has_tiers() const { return !lists_.empty() && lists_.front().tier > lists_.back().tier; }
  // Returns true if two jobs have common units.
  bool overlap(JobId a, JobId b) const;
  // Everything that decides the future: the lists with their rows. Worlds of one origin with equal
  // signatures go on alike.
  std::vector<std::int32_t> signature() const;

  std::vector<Action> take_actions();
  // Does the same with only the last stop or resume of each job; of kills all.
  std::vector<Action> take_last_actions();
  // Calls visit(slot, action) for each action that a tick recorded, in order, at most one for each
  // job, and forgets them. The memory is kept for the next tick.
  template <typename Visit>
  void for_each_action(const Visit& visit) const {
    for (std::size_t i = 0; i < actions_.size(); ++i) visit(action_slots_[i], actions_[i]);
  }
  void forget_actions() {
    actions_.clear();
    action_slots_.clear();
    has_kills_ = false;
  }
  bool has_actions() const { return !actions_.empty(); }
  // Returns true if a kill is among the actions.
  bool has_kills() const { return has_kills_; }

  // I1 to I5 of 6.13; an empty string, or what is broken.
  std::string check_invariants() const;

 private:
  // The part of one node that a job takes.
  struct Use {
    std::int32_t node = 0;  // local
    std::int32_t cpus = 0;
    // Cores 0 to 63; where whole nodes are shared, core 0 stands for the node.
    std::uint64_t low = 0;
  };
  // The cores that a job takes of several nodes, or of one with more than 64 cores.
  struct Uses {
    std::vector<Use> nodes;
    std::vector<CoreSet> cores;  // of each; empty if no node has more than 64
  };
  struct Entry {
    JobId job;
    // Most jobs have one node, and a rotation need not look up what they take: it is `only`, and
    // `uses` is null.
    Use only;
    std::shared_ptr<const Uses> uses;  // never changes: copies of the lists share it
    std::uint16_t list = 0;            // index into lists_; there are as many as partitions
    EntryRow row = EntryRow::kNone;
    bool resumed = false;  // sig
    bool held = false;
    bool kill_under_shadow = false;
    bool casts = false;  // its shadow counts in all lists of lower tiers
    bool used = true;
  };
  struct List {
    PartitionIndex partition;
    int tier = 0;
    int order = 0;
    std::vector<std::int32_t> entries;
    // The active map, by local node.
    std::vector<std::uint64_t> active_low;  // as in Use
    std::vector<CoreSet> active_cores;      // only in wide lists
    std::vector<std::int32_t> active_cpus;  // where CPUs are counted; kNobody = no job is there
    int active_count = 0;                   // jobs and shadows in the map
    int jobs_active = 0;                    // active_count without the shadows
    bool shadows_changed = false;           // since the last rebuild (P1)
    bool may_change = false;  // a rebuild could admit or stop a job for another reason
  };

  static constexpr std::int32_t kNobody = -1;

  // Index into entries_, or -1.
  std::int32_t index_of(JobId job) const;
  std::int32_t local_node(NodeIndex node);
  std::size_t list_of(PartitionIndex partition);
  std::int32_t make_entry(const Newcomer& newcomer);
  void sort_lists();
  // Returns true if all that the job takes is free in the list's active map. This is the innermost
  // question of the gang: a tick asks it once for each job of a list. For a job of one node, and
  // most jobs are such, the answer is one AND of two words.
  bool fits(const List& list, const Entry& entry) const {
    if (list.active_count == 0) return true;
    if (entry.uses != nullptr || !one_word()) return each_fits(list, entry);
    return (list.active_low[static_cast<std::size_t>(entry.only.node)] & entry.only.low) == 0;
  }
  bool each_fits(const List& list, const Entry& entry) const;
  std::int32_t cpus_of(const Use& use) const;  // that its node has
  // Returns true if one word of cores for each node decides what fits.
  bool one_word() const { return !wide_ && unit_ != Unit::kCpuCount; }
  static std::span<const Use> uses_of(const Entry& entry);
  static CoreSet cores_of(const Entry& entry, std::size_t use);
  void set_uses(Entry& entry, const Allocation& allocation);
  // Puts a job or a shadow into the map.
  void occupy(List& list, const Entry& entry) const {
    // Counts jobs and shadows alike. tick() compares it with how many there are to learn whether
    // some job does not run.
    ++list.active_count;
    if (entry.uses != nullptr || !one_word()) return occupy_each(list, entry);
    list.active_low[static_cast<std::size_t>(entry.only.node)] |= entry.only.low;
  }
  void occupy_each(List& list, const Entry& entry) const;
  void add(List& list, Entry& entry, EntryRow row);
  bool overlaps(const Entry& a, const Entry& b) const;
  // Returns a job of a higher tier because of which the entry cannot run, even if no other job of
  // its list did.
  std::optional<JobId> shadow_over(const List& list, const Entry& entry) const;
  std::optional<JobId> any_shadow(const List& list) const;
  std::optional<JobId> shadow_that_fills(const List& list, const Entry& entry) const;
  // The shadow list of 6.1: every job of a higher tier that casts a shadow.
  template <typename Visit>
  void for_each_shadow(const List& list, Visit visit) const {
    for (const List& higher : lists_) {
      if (higher.tier <= list.tier) break;
      for (const std::int32_t index : higher.entries) {
        const Entry& entry = entries_[static_cast<std::size_t>(index)];
        if (entry.casts) visit(entry);
      }
    }
  }
  void cast(Entry& entry);
  void uncast(Entry& entry);
  void mark_lower(int tier);
  void act(const Entry& entry, ActionKind kind, std::optional<JobId> by = std::nullopt);
  void stop(List& list, Entry& entry);
  void resume(Entry& entry);
  void size_active(List& list) const;
  static void clear_active(List& list);
  void begin_rebuild(List& list);
  void refill(List& list, bool admit_new);
  void rotate(List& list);

  const Cluster* cluster_;
  Unit unit_;
  bool turns_by_counts_;
  bool any_shadow_kills_;
  std::vector<Entry> entries_;
  std::vector<std::int32_t> vacant_;
  std::vector<std::pair<JobId, std::int32_t>> index_of_;  // by job
  std::vector<List> lists_;       // by tier, highest first; ties by the configuration's order
  std::vector<NodeIndex> nodes_;  // local → global
  std::vector<std::pair<NodeIndex, std::int32_t>> local_of_;  // by node
  bool wide_ = false;                                         // some node has more than 64 cores
  bool kills_only_ = false;
  bool has_kills_ = false;
  std::vector<Action> actions_;
  std::vector<std::int32_t> action_slots_;  // whose they are: indexes into entries_
  std::vector<std::int32_t> turned_;        // of rotate(), which would allocate it each time
};

}  // namespace sched::gang
