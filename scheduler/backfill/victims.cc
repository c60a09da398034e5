#include "scheduler/backfill/victims.h"

#include <algorithm>
#include <utility>

#include "scheduler/preempt/rules.h"

namespace sched {

using Keep = Selector::Trial::Keep;

// preempt::kind_may_take() does not tell jobs of one partition and QOS apart, so one allocated job
// of each is asked about: a handful, where 10,000 may be allocated. It pays because most waiting
// jobs may take none of them: these are planned by counting free cores, as if no PreemptType were
// set (BackfillChurn/preempt in docs/design/performance.md).
bool VictimFinder::may_be_any(const Job& job, PartitionIndex partition) {
  if (!preempt::enabled(cluster_)) return false;
  if (!allocated_kinds_) {
    allocated_kinds_.emplace();
    const auto is_like = [](const Job& a, const Job& b) {
      return a.partition == b.partition && a.request->qos == b.request->qos;
    };
    for (const auto& each : books_.allocated()) {
      const Job* const allocated = each.second;
      const bool is_known = std::ranges::any_of(
          *allocated_kinds_, [&](const Job* known) { return is_like(*known, *allocated); });
      if (!is_known) allocated_kinds_->push_back(allocated);
    }
  }
  return std::ranges::any_of(*allocated_kinds_, [&](const Job* allocated) {
    return preempt::kind_may_take(cluster_, job, partition, *allocated);
  });
}

// Where priorities or times decide as well, jobs share one entry, which each of them overwrites:
// nothing says that the next of them may take the same victims.
const Victims* VictimFinder::of(const Job& job, PartitionIndex partition, bool by_standing) {
  if (!preempt::enabled(cluster_)) return nullptr;
  std::optional<Standing> standing;
  if (by_standing) standing.emplace(partition, job.request->qos);
  const auto [known, is_new] = found_.try_emplace(std::move(standing));
  if (is_new || !by_standing) known->second = find(job, partition);
  return known->second.jobs.empty() ? nullptr : &known->second;
}

void VictimFinder::forget() {
  allocated_kinds_.reset();
  found_.clear();
}

// 1. The candidates, as a start would find them at this instant (7.3), in the order of 7.4.
// 2. The place of each among the ends, by the selector's record of the job, which is all that a
//    candidate names.
// 3. The fate of each: a victim that must end leaves nothing behind, one that is suspended keeps
//    its memory. So a waiting job may start "now" on the cores of a suspended victim, but not on
//    its memory.
Victims VictimFinder::find(const Job& job, PartitionIndex partition) {
  std::vector<const Job*> allocated;
  for (const auto& [order, each] : books_.allocated()) allocated.push_back(each);
  const preempt::CandidateList list =
      preempt::candidates(cluster_, allocated, job, partition, ends_.now());
  Victims victims;
  if (list.candidates.empty()) return victims;
  ends_.read();
  const std::vector<Ends::End>& ends = ends_.all();
  victims.fates.resize(ends.size());
  std::map<const SelectJob*, std::size_t> end_of;
  for (std::size_t i = 0; i < ends.size(); ++i) end_of.emplace(&ends[i].job->select, i);
  for (const Candidate& candidate : list.candidates) {
    const auto end = end_of.find(candidate.job);
    if (end == end_of.end()) continue;
    const bool suspends = candidate.mode == PreemptMode::kSuspend;
    // A suspended victim gives up its cores only: its memory stays taken (7.6.3).
    victims.jobs.emplace_back(candidate.job, suspends ? Keep::kMemory : Keep::kNothing);
    victims.fates[end->second] =
        candidate.must_end() ? Victims::Fate::kMustEnd : Victims::Fate::kIsSuspended;
    // Both jobs hold the same cores then, which takes one row more than the partition has (R7.26).
    if (suspends && cluster_.parameters().preempt_type == PreemptType::kQos) {
      victims.takes_extra_row = true;
    }
  }
  return victims;
}

}  // namespace sched
