#include "scheduler/select/cons_tres/victims.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "scheduler/model/allocation_nodes.h"

namespace sched::cons_tres {
namespace {

using Keep = Selector::Trial::Keep;

// Returns true if the licenses that jobs would free are all that is missing (null = nothing).
bool is_enough(const Licenses* missing, const Licenses& freed) {
  return missing == nullptr || std::ranges::all_of(*missing, [&](const auto& license) {
           return licenses_of(freed, license.first) >= license.second;
         });
}

// Would the job start if these had ended? Each question is a trial of its own.
class EndingQuestion final : public VictimQuestion {
 public:
  EndingQuestion(Occupancy& occupancy, Attempt& attempt, const Licenses* missing,
                 std::vector<const SelectJob*> jobs)
      : occupancy_{occupancy},
        attempt_{attempt},
        missing_{missing},
        jobs_{std::move(jobs)},
        taken_(jobs_.size()) {}

  void take(std::size_t victim) override { taken_[victim] = true; }
  void spare(std::size_t victim) override { taken_[victim] = false; }
  bool fits() override { return allocation().has_value(); }
  std::optional<Allocation> allocation() {
    OccupancyTrial trial{occupancy_};
    Licenses freed;
    for (std::size_t i = 0; i < jobs_.size(); ++i) {
      if (!taken_[i]) continue;
      trial.remove(*jobs_[i], Keep::kNothing);
      add_licenses(freed, jobs_[i]->request->licenses);
    }
    // Cheap, and refuses most sets before the tests are run.
    if (!is_enough(missing_, freed) || !attempt_.may_fit()) return std::nullopt;
    return attempt_.run({});
  }

 private:
  Occupancy& occupancy_;
  Attempt& attempt_;
  const Licenses* const missing_;
  const std::vector<const SelectJob*> jobs_;
  std::vector<bool> taken_;
};

// The victims or candidates beyond which the search would cost more than a pass may.
constexpr std::size_t kCheapestVictimsMax = 64;
constexpr std::size_t kCheapestCandidatesMax = 512;

}  // namespace

// SUSPEND victims are never taken out in 7.6.2: where a job may be stacked over them, test 3 has
// tried that already, and the gang stops them without a list (R6.30).
bool VictimSearch::must_end(std::size_t candidate) const {
  return request_.candidates[candidate].must_end();
}

// Only jobs on nodes that the preemptor can use are removed (R7.3).
bool VictimSearch::intersects_nodes(const SelectJob& job) const {
  return has_node_in(cluster_, *job.allocation, request_.nodes);
}

bool VictimSearch::holds_missing(const SelectJob& job) const {
  return request_.missing != nullptr &&
         std::ranges::any_of(*request_.missing, [&](const auto& license) {
           return licenses_of(job.request->licenses, license.first) > 0;
         });
}

// If the job has nodes without victims, only jobs with licenses that it needs are removed.
bool VictimSearch::may_help(const SelectJob& job) const {
  return holds_missing(job) || (!fits_on_nodes_ && intersects_nodes(job));
}

// Measures for the reorder (7.6.2 step 3); 0 for a candidate that is not a victim after all.
int VictimSearch::nodes_shared(std::size_t candidate, const Allocation& allocation) const {
  NodeSet chosen = cluster_.no_nodes();
  for (const NodeAllocation& use : allocation.nodes) chosen.set(cluster_.rank(use.node));
  return count_nodes_in(cluster_, *request_.candidates[candidate].job->allocation, chosen);
}

// P12: both kinds of victims get their chance; the first candidate's kind comes first. Slurm tries
// no other.
SelectOutcome VictimSearch::search() {
  const auto suspends = [](const Candidate& candidate) {
    return candidate.mode == PreemptMode::kSuspend;
  };
  const auto& candidates = request_.candidates;
  const bool may_suspend = cluster_.parameters().preempt_type == PreemptType::kQos &&
                           std::any_of(candidates.begin(), candidates.end(), suspends);
  // A job that is suspended keeps its licenses (R7.2).
  if (!may_suspend || request_.missing != nullptr) return by_removing();
  const bool is_final = cluster_.parameters().quirks.first_candidate_decides;
  if (suspends(candidates.front())) {
    SelectOutcome outcome = by_suspending();
    return outcome.allocation || is_final ? std::move(outcome) : by_removing();
  }
  SelectOutcome outcome = by_removing();
  return outcome.allocation || is_final ? std::move(outcome) : by_suspending();
}

// 7.6.3: gang stops or slices the victims; the job starts at once, on whatever the extra row has
// free, also on cores of jobs that it may not preempt: they take turns, too.
SelectOutcome VictimSearch::by_suspending() {
  bool fits = false;
  {
    OccupancyTrial trial{occupancy_};
    for (const Candidate& candidate : request_.candidates) {
      if (candidate.mode != PreemptMode::kSuspend || !intersects_nodes(*candidate.job)) continue;
      trial.remove(*candidate.job, Keep::kMemory);  // suspension never frees memory (R5.4)
      fits = attempt_.run({.takes_extra_row = true}).has_value();
      if (fits) break;
    }
  }
  SelectOutcome outcome;
  // Once more with the real books: the trial only showed that one candidate suffices as a ticket,
  // and the job is placed beside its victims, not instead of them.
  if (fits) outcome.allocation = attempt_.run({.takes_extra_row = true});
  return outcome;
}

// Removes candidates one by one and stops at the first success. `removed_count` counts places of
// the order, including candidates that were passed over because they would be suspended or are on
// other nodes: step 3 goes by places.
// may_fit() is cheap and refuses most sets, so the tests are run only where it does not.
std::optional<VictimSearch::Success> VictimSearch::remove_until_fits(
    const std::vector<std::size_t>& order) {
  OccupancyTrial trial{occupancy_};
  Licenses freed;
  for (std::size_t i = 0; i < order.size(); ++i) {
    const SelectJob& job = *request_.candidates[order[i]].job;
    if (!must_end(order[i]) || !may_help(job)) continue;
    trial.remove(job, Keep::kNothing);
    add_licenses(freed, job.request->licenses);
    if (!is_enough(request_.missing, freed) || !attempt_.may_fit()) continue;
    if (auto allocation = attempt_.run({})) return Success{i + 1, *std::move(allocation)};
  }
  return std::nullopt;
}

// The candidate that was decisive goes first, then those that were removed before it, by how many
// nodes they share with the allocation, then those that were not needed. With strict order they
// keep their order.
void VictimSearch::reorder(std::vector<std::size_t>& order, const Success& success) const {
  const auto last = order.begin() + static_cast<std::ptrdiff_t>(success.removed_count) - 1;
  const std::size_t decisive = *last;
  std::vector<std::pair<int, std::size_t>> rest;  // nodes in the chosen set, candidate
  for (std::size_t i = 0; i < order.size(); ++i) {
    if (order[i] == decisive) continue;
    const bool before = i + 1 < success.removed_count;
    const bool counts = before && !cluster_.parameters().preempt.strict_order;
    rest.emplace_back(counts ? nodes_shared(order[i], success.allocation) : 0, order[i]);
  }
  std::stable_sort(rest.begin(), rest.end(),
                   [](const auto& a, const auto& b) { return a.first > b.first; });
  order.clear();
  order.push_back(decisive);
  for (const auto& [shared, candidate] : rest) order.push_back(candidate);
}

// 7.6.2 with R7.24: N asks for N + 1 reorders, as long as there are more candidates than passes.
SelectOutcome VictimSearch::by_removing() {
  std::vector<std::size_t> order(request_.candidates.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  const int reorders_max = cluster_.parameters().preempt.reorder_count + 1;
  std::optional<Success> success;
  for (int passes = 0;; ++passes) {
    success = remove_until_fits(order);
    if (!success) return {};
    // Example 14.10: candidates of 2, 4 and 8 nodes for a job of 8. The first pass removes all
    // three; with the decisive one in front the second pass needs that one alone.
    if (passes >= reorders_max || static_cast<int>(order.size()) <= passes + 1) break;
    reorder(order, *success);
  }
  SelectOutcome outcome;
  for (std::size_t i = 0; i < success->removed_count; ++i) {
    // A candidate that was removed on the way and has no node of the allocation is spared.
    if (!must_end(order[i])) continue;
    const bool on_its_nodes = !fits_on_nodes_ && nodes_shared(order[i], success->allocation) > 0;
    if (on_its_nodes || holds_missing(*request_.candidates[order[i]].job)) {
      outcome.victims.push_back(order[i]);
    }
  }
  outcome.allocation = std::move(success->allocation);
  return cluster_.parameters().placement == PlacementPolicy::kMinimisePreemption
             ? cheapest(std::move(outcome))
             : outcome;
}

// The result of 7.6.2 stands beyond the bounds; it has victims that need not be the cheapest.
// An EndingQuestion is a whole trial with all tests, so both bounds keep its number in check: the
// search spares victims by halves, and then asks for sets (cheapest.cc).
SelectOutcome VictimSearch::cheapest(SelectOutcome found) {
  std::vector<std::size_t> candidates;
  std::vector<const SelectJob*> jobs;
  std::vector<VictimCost> costs;
  for (std::size_t i = 0; i < request_.candidates.size(); ++i) {
    const SelectJob& job = *request_.candidates[i].job;
    if (!must_end(i) || !may_help(job)) continue;
    candidates.push_back(i);
    jobs.push_back(&job);
    costs.push_back(victim_cost(cluster_, job));
  }
  if (found.victims.size() > kCheapestVictimsMax || jobs.size() > kCheapestCandidatesMax) {
    return found;
  }
  EndingQuestion question{occupancy_, attempt_, request_.missing, std::move(jobs)};
  const auto victims = cheapest_victims(costs, question);
  if (!victims) return found;
  SelectOutcome outcome;
  // The search leaves the question with just these victims taken.
  outcome.allocation = question.allocation();
  for (const std::size_t victim : *victims) outcome.victims.push_back(candidates[victim]);
  return outcome;
}

}  // namespace sched::cons_tres
