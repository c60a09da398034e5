#include "scheduler/pass/start_attempt.h"

#include <algorithm>
#include <utility>

namespace sched {

// Asks in the order of cost: a count, the limits, the placement. Each refusal is of another kind,
// because the passes treat them differently (3.4 step 9).
StartAttempt::Answer StartAttempt::run(const Job& job, PartitionIndex partition,
                                       const Availability::View& available, base::Instant now) {
  const NodeCounts counts = node_counts(cluster_, *job.request, partition);
  const Partition& where = cluster_.partition(partition);
  // A count that needs no placement and that most jobs of a full cluster fail. A partition that
  // never has as many nodes is for the placement to classify: that job can never run.
  if (available.in_partition < counts.min &&
      static_cast<int>(where.nodes_ranked.size()) >= counts.min) {
    return {TooFewLeft{"needs " + std::to_string(counts.min) + " nodes and " +
                       std::to_string(available.in_partition) +
                       " are left; the others are down, drained or kept for jobs ahead of it"}};
  }
  // Licenses, and limits on jobs and wall time come before the nodes, those on resources after them
  // (R9.9), when it is known what the job would get.
  const auto unlicensed = limits_.licenses().over(job);
  const Licenses missing = unlicensed ? limits_.licenses().missing(job) : Licenses{};
  auto over =
      unlicensed && !may_reclaim() ? unlicensed : limits_.over_before_but_licenses(job, partition);
  if (over) return {OverLimit{over->reason, std::move(over->message)}};
  PlacementOutcome outcome =
      placement_.place(books_.selector(), {.job = job,
                                           .partition = partition,
                                           .available = available.nodes,
                                           .now = now,
                                           .claimed = available.claimed,
                                           .missing = unlicensed ? &missing : nullptr});
  base::Instant valid_until = outcome.valid_until;
  if (unlicensed && outcome.result != PlacementResult::kFits) {
    return {OverLimit{unlicensed->reason, unlicensed->message}, valid_until};
  }
  // Nodes that refused the job are left out until then.
  if (job.retry.nodes_until > now) valid_until = std::min(valid_until, job.retry.nodes_until);
  return {verdict_of(job, partition, std::move(outcome)), valid_until};
}

// R7.2: jobs may need to end for licenses if the cluster says so; select/linear cannot.
bool StartAttempt::may_reclaim() const {
  const ClusterParameters& parameters = cluster_.parameters();
  return parameters.preempt.reclaim_licenses && preempt::enabled(cluster_) &&
         parameters.select == SelectType::kConsTres;
}

Verdict StartAttempt::verdict_of(const Job& job, PartitionIndex partition,
                                 PlacementOutcome outcome) const {
  switch (outcome.result) {
    case PlacementResult::kFits:
      break;
    case PlacementResult::kBusy:
      // The request is over a limit in any case. So the job waits for the limit, and it does not
      // block its partition for nodes that it could not use (R9.9).
      if (auto over = limits_.over_as_asked(job, partition)) {
        return OverLimit{over->reason, std::move(over->message)};
      }
      return Busy{std::move(outcome.message)};
    case PlacementResult::kNotAvailable:
      return NotAvailable{std::move(outcome.message)};
    case PlacementResult::kNever:
      return Never{std::move(outcome.message)};
  }
  // A victim that is only suspended frees its cores as soon as the gang casts the shadow: the
  // preemptor starts at once (R6.32).
  const bool waits = std::any_of(outcome.victims.begin(), outcome.victims.end(),
                                 [](const Candidate& victim) { return victim.must_end(); });
  if (waits) return NeedsVictims{*std::move(outcome.allocation), std::move(outcome.victims)};
  // 3.5 step 6: the limits on resources, with those that it really gets.
  if (auto over = limits_.over(job, partition, *outcome.allocation)) {
    return OverLimit{over->reason, std::move(over->message)};
  }
  return Fits{*std::move(outcome.allocation), outcome.sharing};
}

}  // namespace sched
