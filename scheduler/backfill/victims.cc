#include "scheduler/backfill/victims.h"

#include <algorithm>

#include "scheduler/preempt/rules.h"

namespace sched {

using Keep = Selector::Trial::Keep;

bool VictimFinder::may_be_any(const Job& job, PartitionIndex partition) {
  if (!preempt::enabled(cluster_)) return false;
  if (!allocated_kinds_) {
    allocated_kinds_.emplace();
    const auto is_like = [](const Job& a, const Job& b) {
      return a.partition == b.partition && a.request.qos == b.request.qos;
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

const Victims* VictimFinder::of(const Job& job, PartitionIndex partition,
                                std::optional<int> kind) {
  if (!preempt::enabled(cluster_)) return nullptr;
  const auto [known, is_new] = found_.try_emplace(kind);
  if (is_new || !kind) known->second = find(job, partition);
  return known->second.jobs.empty() ? nullptr : &known->second;
}

void VictimFinder::forget() {
  allocated_kinds_.reset();
  found_.clear();
}

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
    if (suspends && cluster_.parameters().preempt_type == PreemptType::kQos) {
      victims.takes_extra_row = true;
    }
  }
  return victims;
}

}  // namespace sched
