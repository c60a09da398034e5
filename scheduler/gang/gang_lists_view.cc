// Reading the lists: places, conflicts, and the invariants of 6.13.
#include <algorithm>
#include <cstddef>
#include <string>

#include "scheduler/gang/gang_lists.h"

namespace sched::gang {

// Returns all jobs, list by list from the highest tier down, each list in its order.
std::vector<Place> GangLists::places() const {
  std::vector<Place> places;
  for (const List& list : lists_) {
    for (const std::int32_t index : list.entries) {
      const Entry& entry = entries_[static_cast<std::size_t>(index)];
      places.push_back({entry.job, entry.row, entry.resumed, entry.held});
    }
  }
  return places;
}

// Returns false if nodes and entries of jobs that have left take more room than those that are
// there; then the owner builds the lists again.
bool GangLists::is_lean() const {
  // Twice what the present jobs need: lists are built again only after as many jobs have left as
  // stay. The 16 leave small lists alone.
  std::size_t uses = 0;
  for (const Entry& entry : entries_) {
    if (entry.used) uses += uses_of(entry).size();
  }
  return nodes_.size() <= 2 * uses + 16 && entries_.size() <= 2 * index_of_.size() + 16;
}

// Ascending by id, since the index is.
std::vector<JobId> GangLists::jobs() const {
  std::vector<JobId> jobs;
  for (const auto& [job, index] : index_of_) jobs.push_back(job);
  return jobs;
}

bool GangLists::runs(JobId job) const {
  const std::int32_t index = index_of(job);
  return index >= 0 && runs(index);
}

// Necessary, not sufficient: without a list of a higher tier no shadow can kill it. A component for
// which this holds is projected as a whole, so that the tick that kills is known.
bool GangLists::may_kill() const {
  return std::any_of(entries_.begin(), entries_.end(),
                     [](const Entry& entry) { return entry.used && entry.kill_under_shadow; });
}

bool GangLists::shadowed(JobId job) const {
  // Shadows come from lists of higher tiers; a single list has none above it.
  if (lists_.size() < 2) return false;
  const std::int32_t index = index_of(job);
  if (index < 0) return false;
  const Entry& entry = entries_[static_cast<std::size_t>(index)];
  return shadow_over(lists_[static_cast<std::size_t>(entry.list)], entry).has_value();
}

// Cost: O(nodes of a × nodes of b).
bool GangLists::overlap(JobId a, JobId b) const {
  return overlaps(entries_[static_cast<std::size_t>(index_of(a))],
                  entries_[static_cast<std::size_t>(index_of(b))]);
}

// Entries by their positions, which do not change while jobs stay; what casts a shadow follows from
// the rows.
std::vector<std::int32_t> GangLists::signature() const {
  std::vector<std::int32_t> signature;
  for (const List& list : lists_) {
    for (const std::int32_t index : list.entries) {
      const Entry& entry = entries_[static_cast<std::size_t>(index)];
      // The row takes the two lowest bits, `held` the third.
      signature.push_back(index * 8 + (entry.held ? 4 : 0) + static_cast<std::int32_t>(entry.row));
    }
    // Marks the end of a list: without it, entries that are shared out differently could look
    // alike.
    signature.push_back(-1);
  }
  return signature;
}

// Plays each list through as it should have been filled: the shadows, then each job that runs (I1,
// I2, I5), and then no other job may fit (I3).
std::string GangLists::check_invariants() const {
  for (const List& list : lists_) {
    // The kept map may be the thing that is wrong, so it is built again.
    List rebuilt = list;
    clear_active(rebuilt);
    for_each_shadow(list, [&](const Entry& shadow) { occupy(rebuilt, shadow); });
    for (const std::int32_t index : list.entries) {
      const Entry& entry = entries_[static_cast<std::size_t>(index)];
      const std::string name = "job " + to_string(entry.job);
      if ((entry.row != EntryRow::kNone) != entry.resumed) {
        return "I2: " + name +
               (entry.resumed ? " runs without a row" : " has a row and is stopped");
      }
      if (entry.casts != entry.resumed) return "I5: the shadow of " + name;
      if (!entry.resumed) continue;
      if (!fits(rebuilt, entry)) return "I1: " + name + " runs over others";
      occupy(rebuilt, entry);
    }
    for (const std::int32_t index : list.entries) {
      const Entry& entry = entries_[static_cast<std::size_t>(index)];
      // A held job may wait although it fits.
      if (!entry.resumed && !entry.held && fits(rebuilt, entry)) {
        return "I3: job " + to_string(entry.job) + " fits and waits";
      }
    }
  }
  return {};
}

}  // namespace sched::gang
