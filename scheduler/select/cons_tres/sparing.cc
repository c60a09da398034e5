#include "scheduler/select/cons_tres/sparing.h"

#include "scheduler/model/allocation_nodes.h"

namespace sched::cons_tres {

// The search for the cheapest victims (15.4) asks up to 4,096 times if the job starts, each time
// with one job more or less among those that it may be stacked upon. So which jobs hold which cores
// of a node is noted once, a change only marks the nodes of its job, and the next question works
// the offers of these nodes out again, where an attempt goes over all nodes. Begins with no job
// taken: all of them are left alone.
SparingQuestion::SparingQuestion(const Cluster& cluster, const std::vector<const SelectJob*>& jobs,
                                 const NodeSet& nodes, std::vector<CoreSet>& left_alone,
                                 OfferAt offer_at, Choose choose)
    : nodes_{nodes},
      left_alone_{left_alone},
      offer_at_{std::move(offer_at)},
      choose_{std::move(choose)},
      ranks_(jobs.size()),
      holders_(static_cast<std::size_t>(nodes.size())),
      taken_(jobs.size(), false),
      changed_{nodes},
      offer_{nodes.size()} {
  left_alone_.assign(holders_.size(), CoreSet{});
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    for_each_rank(cluster, *jobs[i]->allocation, [&](int rank, const NodeAllocation& use) {
      ranks_[i].push_back(rank);
      holders_[static_cast<std::size_t>(rank)].emplace_back(i, use.cores);
    });
  }
}

void SparingQuestion::change(std::size_t victim, bool taken) {
  // Noted only; the offer is worked out when it is asked for, once for many changes of a node.
  if (taken_[victim] == taken) return;
  taken_[victim] = taken;
  for (const int rank : ranks_[victim]) changed_.set(rank);
}

// Works out again what the changed nodes offer: cores of jobs that are not taken are left alone.
void SparingQuestion::refresh() {
  for (int rank = changed_.next(0); rank >= 0; rank = changed_.next(rank + 1)) {
    const auto index = static_cast<std::size_t>(rank);
    left_alone_[index] = CoreSet{};
    for (const auto& [job, cores] : holders_[index]) {
      if (!taken_[job]) left_alone_[index] |= cores;
    }
    if (nodes_.test(rank)) offer_.set(rank, offer_at_(rank));
  }
  changed_.clear();
}

// Returns the nodes of the job if it stopped the jobs taken so far and left all others alone.
std::vector<Chosen> SparingQuestion::chosen() {
  refresh();
  return choose_(offer_);
}

}  // namespace sched::cons_tres
