// The two rebuilds of an active set: refill keeps the order (6.5), rotate turns it (6.6).
#include <algorithm>
#include <cstddef>

#include "scheduler/gang/gang_lists.h"

namespace sched::gang {

// Builds the active map again with nothing but the shadows in it.
void GangLists::begin_rebuild(List& list) {
  clear_active(list);
  list.jobs_active = 0;
  list.shadows_changed = list.may_change = false;
  for_each_shadow(list, [&](const Entry& shadow) { occupy(list, shadow); });
}

// 6.5; the steps' numbers are the rule's.
void GangLists::refill(List& list, bool admit_new) {
  // Two passes over the running jobs: ACTIVE jobs, which the last rotation chose, before FILLER
  // jobs, which came into holes since. If a shadow has grown and only one of two jobs still fits,
  // the one that had its turn by right keeps it. No job moves in the list, so that a job that must
  // stop here does not lose its place in the rotation.
  begin_rebuild(list);                                                 // 1
  for (const EntryRow row : {EntryRow::kActive, EntryRow::kFiller}) {  // 2 and 3
    for (const std::int32_t index : list.entries) {
      Entry& entry = entries_[static_cast<std::size_t>(index)];
      if (entry.row != row) continue;
      if (fits(list, entry)) {
        add(list, entry, row);
        cast(entry);
        continue;
      }
      if (entry.resumed) {
        stop(list, entry);
        uncast(entry);
      }
      entry.row = EntryRow::kNone;
    }
  }
  // Holes are filled first-fit in list order. A job may start to run before one ahead of it that
  // does not fit: the head of the list waits for its units and does not reserve them.
  if (!admit_new) return;
  for (const std::int32_t index : list.entries) {  // 4
    Entry& entry = entries_[static_cast<std::size_t>(index)];
    if (entry.row != EntryRow::kNone || entry.held || !fits(list, entry)) continue;
    add(list, entry, EntryRow::kFiller);
    cast(entry);
    if (!entry.resumed) resume(entry);
  }
}

// A rebuild of a list would change nothing unless a job of it left, came back or was put there with
// its row (append), or the shadows over it changed. A job that merely came, whether it runs or does
// not fit, changes nothing for the others.
void GangLists::refill_all() {
  for (List& list : lists_) {
    if (list.may_change || list.shadows_changed) refill(list, true);
  }
}

// 6.6; the steps' numbers are the rule's. Two walks over the entries: a slice of a large partition
// costs what it must look at.
void GangLists::rotate(List& list) {
  // 1: ACTIVE jobs go to the back in their mutual order, FILLER and NONE keep order at the front.
  turned_.clear();
  std::size_t kept = 0;
  for (const std::int32_t index : list.entries) {
    EntryRow& row = entries_[static_cast<std::size_t>(index)].row;
    if (row == EntryRow::kActive) {
      turned_.push_back(index);
    } else {
      list.entries[kept++] = index;
    }
    row = EntryRow::kNone;
  }
  std::copy(turned_.begin(), turned_.end(),
            list.entries.begin() + static_cast<std::ptrdiff_t>(kept));
  begin_rebuild(list);  // 2
  turned_.clear();
  for (const std::int32_t index : list.entries) {
    Entry& entry = entries_[static_cast<std::size_t>(index)];
    if (!entry.held && fits(list, entry)) {
      add(list, entry, EntryRow::kActive);
      if (!entry.resumed) turned_.push_back(index);
    } else if (entry.resumed) {  // 3
      stop(list, entry);
      uncast(entry);
    }
  }
  // All stops come before all resumes, so that a caller that carries them out in order never has
  // two jobs on one core.
  for (const std::int32_t index : turned_) {  // 4
    Entry& entry = entries_[static_cast<std::size_t>(index)];
    resume(entry);
    cast(entry);
  }
  turned_.clear();  // the lists are copied, and this need not be
}

// 6.7, from the highest tier down. A partition is turned if a job in it does not run, or if it has
// more shadows than at its last rebuild. If its shadows changed in this very tick its holes are
// filled even though the counts happen to be equal (P1).
void GangLists::tick() {
  for (List& list : lists_) {
    // The map still holds the shadows as of the list's last rebuild.
    const int shadows_before = list.active_count - list.jobs_active;
    int shadows_now = shadows_before;
    if (list.shadows_changed) {
      shadows_now = 0;
      for_each_shadow(list, [&](const Entry&) { ++shadows_now; });
    }
    if (turns_by_counts_) {  // by the counts alone, and no hole is filled in a tick
      if (list.active_count < static_cast<int>(list.entries.size()) + shadows_now) rotate(list);
      continue;
    }
    const bool a_job_waits = list.jobs_active < static_cast<int>(list.entries.size());
    // A list in which all jobs run and to which no shadow was added is not turned: its FILLER jobs
    // stay FILLER and so keep their place in front when a rival comes (R6.6).
    if (a_job_waits || shadows_now > shadows_before) {
      rotate(list);
    } else if (list.shadows_changed) {
      refill(list, true);
    }
  }
}

}  // namespace sched::gang
