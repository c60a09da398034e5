// Victims of select/linear: in the order of 7.6.1, or the cheapest (15.4).
#include <algorithm>
#include <cstddef>

#include "scheduler/model/allocation_nodes.h"
#include "scheduler/select/cheapest.h"
#include "scheduler/select/linear/linear.h"

namespace sched::linear {
namespace {

using Keep = Selector::Trial::Keep;

// A victim that is only suspended keeps its memory (R5.4); as recorded, NodeBooks forgets it (P5).
Keep kept_by(const Candidate& candidate) {
  return candidate.must_end() ? Keep::kNothing : Keep::kMemory;
}

}  // namespace

struct Linear::Removal {
  std::size_t candidate = 0;
  int usable = 0;  // u(v): nodes of the victim that the job could take then
};

// Removes the candidates in this order until the job fits. Returns where, and how many are removed
// then; notes for each of these how many usable nodes it has.
std::optional<Linear::Ranks> Linear::remove_until_fits(const SelectRequest& request,
                                                       std::vector<Removal>& removals,
                                                       std::size_t& removed_count) {
  // The jobs that may run there besides this one; victims count until they are removed.
  const int run_limit = share_of(request) - 1;
  const CountedDemand memory = memory_of(*request.job);
  const DeviceDemand devices = devices_of(*request.job);
  // All removals are undone at the end of this function.
  NodeBooks::Trial trial{books_};
  NodeSet eligible = count(request, request.nodes, run_limit, kUnlimited);
  int found = eligible.count();
  for (removed_count = 0; removed_count < removals.size();) {
    Removal& removal = removals[removed_count++];
    const Candidate& candidate = request.candidates[removal.candidate];
    trial.remove(*candidate.job, kept_by(candidate));
    removal.usable = 0;
    for_each_rank(cluster_, *candidate.job->allocation, [&](int rank, const NodeAllocation&) {
      if (!request.nodes.test(rank)) return;
      // Only nodes of the removed job can have become eligible; the others are as before.
      if (!eligible.test(rank) && books_.admits(rank, run_limit, kUnlimited) &&
          books_.memory().fits(memory, cpus_.cpus(rank), rank) &&
          books_.devices().fit(devices, rank)) {
        eligible.set(rank);
        ++found;
      }
      if (eligible.test(rank)) ++removal.usable;
    });
    if (found < request.min_nodes) continue;
    if (auto chosen = fit(request, eligible)) return chosen;
  }
  return std::nullopt;
}

// Searches the victims as Slurm does (7.6.1).
//
// 1. Remove the candidates in the order of 7.4 until the job fits.
// 2. With more than one candidate, do it again: first the one that was decisive, then the others by
//    how many usable nodes they have, those that were not removed last.
// 3. Victims are those with usable nodes of which the job takes one.
//
// Why twice: the first walk ends with the job that made the difference, and jobs before it may have
// been removed in vain. With candidates of 2, 4 and 8 nodes, in this order, and a job of 8 nodes,
// the first walk removes all three; the second begins with the last one, and that is enough
// (14.10).
std::optional<Linear::Ranks> Linear::with_victims(const SelectRequest& request,
                                                  std::vector<std::size_t>& victims) {
  std::vector<Removal> removals;
  for (std::size_t i = 0; i < request.candidates.size(); ++i) removals.push_back({i, 0});
  std::size_t removed_count = 0;
  std::optional<Ranks> chosen = remove_until_fits(request, removals, removed_count);  // 1
  if (!chosen) return std::nullopt;
  if (removals.size() > 1) {  // 2
    for (std::size_t i = removed_count; i < removals.size(); ++i) removals[i].usable = 0;
    const auto decisive = removals.begin() + static_cast<std::ptrdiff_t>(removed_count) - 1;
    // The decisive one goes first (9999 in Slurm's arrays), the others behind it by what they have
    // to offer.
    std::rotate(removals.begin(), decisive, decisive + 1);
    std::stable_sort(removals.begin() + 1, removals.end(),
                     [](const Removal& a, const Removal& b) { return a.usable > b.usable; });
    chosen = remove_until_fits(request, removals, removed_count);
    if (!chosen) return std::nullopt;
  }
  NodeSet taken = cluster_.no_nodes();  // 3
  for (const int rank : *chosen) taken.set(rank);
  for (std::size_t i = 0; i < removed_count; ++i) {
    const std::size_t candidate = removals[i].candidate;
    if (removals[i].usable == 0) continue;
    if (has_node_in(cluster_, *request.candidates[candidate].job->allocation, taken)) {
      victims.push_back(candidate);
    }
  }
  return chosen;
}

// Would the job start if it might stop or end the jobs taken so far? (15.4) These are the
// candidates that are offered and, where gang casts shadows, jobs of a lower tier that it would be
// stacked upon.
//
// Two kinds of jobs are in the way, and some are both. A candidate is taken by removing it from the
// books for the question. A job of a lower tier, upon which the gang lets this one be stacked, is
// not removed: as long as it is not taken its nodes are left out, because to be stacked upon it
// would stop it.
class Linear::Sparing final : public VictimQuestion {
 public:
  Sparing(Linear& linear, const SelectRequest& request)
      : linear_{linear},
        request_{request},
        blockers_(static_cast<std::size_t>(linear.cluster_.node_count()), 0) {
    const Cluster& cluster = linear.cluster_;
    const int own_tier = cluster.partition(request.job->partition).tier();
    // A job that is stacked upon jobs of a lower tier stops them with gang, without a list of
    // victims (7.6.5); here these cost something, too.
    const bool shadows = request.may_stack && cluster.parameters().gang;
    for (std::size_t i = 0; i < request.candidates.size(); ++i) {
      victims_.push_back({.job = request.candidates[i].job, .candidate = i});
    }
    for (const auto& [order, job] : linear.jobs_) {
      if (!shadows || job->user_suspended || cluster.partition(job->partition).tier() >= own_tier) {
        continue;
      }
      const auto known =
          std::find_if(victims_.begin(), victims_.end(),
                       [&one = *job](const Victim& victim) { return victim.job == &one; });
      if (known == victims_.end()) {
        victims_.push_back({.job = job, .candidate = std::nullopt, .shadowed = true});
      } else {
        known->shadowed = true;
      }
    }
    // Jobs that are on none of the nodes in question are not in the way.
    std::erase_if(victims_, [&](const Victim& victim) {
      return !has_node_in(cluster, *victim.job->allocation, request.nodes);
    });
    // Until a shadowed job is taken, nothing may be stacked upon it.
    for (const Victim& victim : victims_) {
      if (victim.shadowed) block(victim, +1);
    }
  }

  std::vector<VictimCost> costs() const {
    std::vector<VictimCost> costs;
    for (const Victim& victim : victims_) {
      std::int64_t cpus = 0;
      for (const NodeAllocation& use : victim.job->allocation->nodes) cpus += use.cpus;
      const int tier = linear_.cluster_.partition(victim.job->partition).tier();
      costs.push_back({.count = 1, .tiers = tier, .cpus = cpus});
    }
    return costs;
  }
  void take(std::size_t index) override { change(victims_[index], true); }
  void spare(std::size_t index) override { change(victims_[index], false); }
  bool fits() override { return chosen().has_value(); }

  // 1. On nodes without a job that must not be stacked upon, as if there were no victims.
  // 2. On nodes that the victims taken so far leave.
  std::optional<Ranks> chosen() {
    NodeSet nodes = request_.nodes;
    for (int rank = nodes.next(0); rank >= 0; rank = nodes.next(rank + 1)) {
      if (blockers_[static_cast<std::size_t>(rank)] > 0) nodes.reset(rank);
    }
    if (auto found = linear_.run_now(request_, nodes)) return found;  // 1
    NodeBooks::Trial trial{linear_.books_};                           // 2
    for (const Victim& victim : victims_) {
      if (!victim.taken || !victim.candidate) continue;
      trial.remove(*victim.job, kept_by(request_.candidates[*victim.candidate]));
    }
    const NodeSet eligible = linear_.count(request_, nodes, share_of(request_) - 1, kUnlimited);
    if (eligible.count() < request_.min_nodes) return std::nullopt;
    return linear_.fit(request_, eligible);
  }
  // nullopt for a job that the gang stops by its shadow: no ending must be ordered.
  std::optional<std::size_t> candidate(std::size_t index) const {
    return victims_[index].candidate;
  }

 private:
  struct Victim {
    const SelectJob* job;
    std::optional<std::size_t> candidate;  // index into request.candidates
    bool shadowed = false;                 // stopped by the gang where the job is stacked upon it
    bool taken = false;
  };
  // The new job must not be stacked on the nodes of a shadowed job that is not taken.
  void block(const Victim& victim, int delta) {
    for_each_rank(linear_.cluster_, *victim.job->allocation, [&](int rank, const NodeAllocation&) {
      blockers_[static_cast<std::size_t>(rank)] += delta;
    });
  }
  void change(Victim& victim, bool taken) {
    if (victim.taken == taken) return;
    victim.taken = taken;
    if (victim.shadowed) block(victim, taken ? -1 : +1);
  }

  Linear& linear_;
  const SelectRequest& request_;
  std::vector<Victim> victims_;
  std::vector<int> blockers_;  // by rank: jobs that must not be stacked upon
};

// MinimisePreemption: the fewest victims, then the lowest tiers, then the smallest jobs.
std::optional<Linear::Ranks> Linear::cheapest(const SelectRequest& request,
                                              std::vector<std::size_t>& victims) {
  Sparing question{*this, request};
  if (auto nodes = question.chosen()) return nodes;  // without any victim
  const auto taken = cheapest_victims(question.costs(), question);
  if (!taken) return std::nullopt;
  for (const std::size_t index : *taken) {
    if (const auto candidate = question.candidate(index)) victims.push_back(*candidate);
  }
  return question.chosen();
}

}  // namespace sched::linear
