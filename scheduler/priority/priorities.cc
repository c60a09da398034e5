#include "scheduler/priority/priorities.h"

#include <algorithm>
#include <utility>

#include "scheduler/priority/fixed_point.h"
#include "scheduler/queue/partition_gates.h"

namespace sched {

// Associations are indexes into the tree of accounts, which is built again with each configuration,
// so each job looks its own up again.
void Priorities::configure() {
  totals_version_ = 0;
  usage_.configure();
  fair_share_.configure();
  for (const auto& [order, job] : books_.table().all()) {
    job->factors.association = association_of(*job->request);
  }
}

const PriorityTotals& Priorities::totals() {
  // Summed when they are next asked for: a burst of node events costs one sum.
  if (totals_version_ != cluster_.configuration_version()) totals_ = PriorityTotals{cluster_};
  totals_version_ = cluster_.configuration_version();
  return totals_;
}

std::optional<AssociationIndex> Priorities::association_of(const JobRequest& request) const {
  return cluster_.accounts().find_user(request.user, request.account);
}

// Not asked for if nothing weighs it: under the classic rule the question itself fixes the user's
// usage for the period (R9.14).
std::int64_t Priorities::fair_share_of(const Job& job) {
  const bool counts =
      cluster_.parameters().priority.weight_fair_share > 0 && job.factors.association;
  return counts ? fair_share_.factor_ppb(*job.factors.association) : 0;
}

// Age counts from when the job could have started, or from its submission (ACCRUE_ALWAYS).
base::Instant Priorities::waits_since(const Job& job) const {
  const base::Instant since = job.submit_time;
  if (cluster_.parameters().priority.accrue_always) return since;
  // Admission has seen to it that all of these have passed by then.
  if (!job.queued.in.empty()) return job.eligible_time;
  return std::max({since, job.eligible_time, job.request->begin_time.value_or(since),
                   job.not_before.value_or(since)});
}

// Users are shown the same numbers that the priority is made of.
PriorityFactors Priorities::factors(const Job& job, PartitionIndex partition, base::Instant now) {
  const std::uint32_t association_priority =
      job.factors.association ? cluster_.accounts()[*job.factors.association].priority : 0;
  return priority_factors(cluster_, totals(), *job.request, partition, job.factors.was_tested,
                          now - waits_since(job), fair_share_of(job), association_priority);
}

// R9.5: one priority for each partition of the job; Job::priority is that of the first. A job of a
// single partition keeps no list.
bool Priorities::set(Job& job, base::Instant now) {
  job.factors.fixed_terms_version = 0;
  if (!is_multifactor()) return false;
  if (job.request->priority) {  // R9.1
    job.factors.was_tested = job.factors.was_tested || !job.held;
    return !std::exchange(job.factors.priority_in, {}).empty();
  }
  const PriorityParameters& parameters = cluster_.parameters().priority;
  const std::vector<PartitionIndex> partitions = partitions_of(cluster_, *job.request);
  const Priority before = job.priority;
  std::vector<PartitionPriority> each;
  for (const PartitionIndex partition : partitions) {
    const PriorityFactors found = factors(job, partition, now);
    each.push_back({partition, weighted_sum(parameters, found, job.request->nice)});
    // Only the last sum of several partitions would stay, so it is not used for them (version 0
    // below).
    job.factors.fixed_terms = other_terms(parameters, found, job.request->nice);
  }
  // Slurm tests a job that is not held after it has given it its first priority.
  const bool tested_now = !job.held && !job.factors.was_tested;
  job.factors.was_tested = job.factors.was_tested || tested_now;
  const bool grows = tested_now && cluster_.parameters().select == SelectType::kLinear;
  const bool stays = each.size() == 1 && !grows;
  job.factors.fixed_terms_version = stays ? cluster_.configuration_version() : 0;
  // A job whose partitions are all gone waits with the least priority.
  const Priority first = each.empty() ? Priority{1} : each.front().priority;
  job.priority = first;
  if (each.size() < 2) each.clear();
  const bool changed = first != before || each != job.factors.priority_in;
  job.factors.priority_in = std::move(each);
  return changed;
}

// Worked out once for each user in a period, however many jobs it has.
std::int64_t Priorities::term_of(const Job& job) {
  if (!job.factors.association) return 0;
  std::optional<std::int64_t>& term = terms_[job.factors.association->index()];
  if (!term) term = fair_share_term(cluster_.parameters().priority, fair_share_of(job));
  return *term;
}

// The terms that stay the same from period to period are kept with the job. Little else of the job
// is looked at: with many jobs, fetching them from memory is most of the work. INCREASE_ONLY never
// lowers a priority here; what a user changes does (recorded).
bool Priorities::set_again(Job& job, base::Instant now) {
  const PriorityParameters& parameters = cluster_.parameters().priority;
  const Priority before = job.priority;
  if (job.factors.fixed_terms_version != cluster_.configuration_version()) {
    const bool changed = set(job, now);
    if (!parameters.increase_only || job.priority >= before) return changed;
    job.priority = before;
    return !job.factors.priority_in.empty();
  }
  job.priority = priority_of_sum(job.factors.fixed_terms +
                                 age_term(parameters, now - waits_since(job)) + term_of(job));
  if (parameters.increase_only) job.priority = std::max(job.priority, before);
  return job.priority != before;
}

// Charges at the end of a run all of its run time; what was charged at the ends of periods is taken
// off.
void Priorities::charge(Job& job) {
  if (!is_multifactor()) return;
  const bool all_time = cluster_.parameters().quirks.suspended_time_is_charged;
  usage_.charge(job, job.clock.run + (all_time ? job.clock.suspended : base::Duration{0}));
  if (keeps_ends_) charged_ends_.push_back({job.id, job.factors.charged});
}

std::optional<base::Instant> Priorities::next_due() const {
  if (!is_multifactor()) return std::nullopt;
  return period_end_;
}

// `calc_period` of 0 would end a period at every instant; a second is the least.
void Priorities::begin(base::Instant now) {
  if (!is_multifactor()) return;
  if (usage_.period_began() == base::Instant{}) usage_.begin_at(now);
  const base::Duration period =
      std::max<base::Duration>(cluster_.parameters().priority.calc_period, std::chrono::seconds{1});
  // The end lies on a grid of the clock, so that a new leader ends periods at the same instants.
  period_end_ = base::boundary_at_or_after(usage_.period_began() + base::Duration{1}, period);
}

// 1. All usage decays.
// 2. The classic rule looks at what accounts had used before running jobs are charged; the fair
//    tree at what they have used after that.
// 3. With CALCULATE_RUNNING, the priorities of running jobs.
bool Priorities::end_period(base::Instant now) {
  usage_.end_period(now);
  fair_share_.before_charging();
  // Run times are asked for below, and questions work nothing out by themselves.
  turns_.project();
  for (const auto& [order, job] : books_.allocated()) {
    base::Duration time = turns_.run_time(*job, now);
    if (cluster_.parameters().quirks.suspended_time_is_charged)
      time += turns_.suspend_time(*job, now);  // R9.4
    usage_.charge(*job, time);
  }
  fair_share_.after_charging();
  begin(now);
  forget_terms();
  bool changed = false;
  if (!cluster_.parameters().priority.calculate_running) return changed;
  // CALCULATE_RUNNING keeps priorities of running jobs up to date, which PRIORITY preemption
  // compares.
  for (const auto& [order, job] : books_.allocated()) {
    changed = set_again(*job, now) || changed;
  }
  return changed;
}

UsageState Priorities::save_usage() const {
  std::vector<const Job*> jobs;
  for (const auto& [order, job] : books_.allocated()) jobs.push_back(job);
  return usage_.save(jobs);
}

// 1. Usage, and how far the jobs that have nodes have been charged, are as they were saved.
// 2. Jobs that have ended since are charged for the rest. That comes after fair share, which is
//    worked out at the ends of periods only.
void Priorities::restore_usage(const UsageState& state, const std::vector<EndedJob>& ended,
                               base::Instant now) {
  usage_.restore(state);  // 1
  for (const JobCharged& charged : state.jobs) {
    Job* const job = books_.find(charged.job);
    if (job != nullptr && job->allocated()) job->factors.charged = charged.run;
  }
  fair_share_.configure();
  begin(now);
  for (const EndedJob& each : ended) {  // 2
    // The job is gone; a record of just what a charge needs stands in for it.
    Job job;
    job.id = each.request.id;
    job.request = std::make_shared<const JobRequest>(each.request);
    job.factors.association = association_of(each.request);
    job.partition = each.partition;
    job.allocation = each.allocation;
    job.factors.charged = each.charged;
    usage_.charge(job, each.run);
  }
  forget_terms();
}

void Priorities::forget_terms() {
  terms_.assign(cluster_.accounts().all().size(), std::nullopt);
}

// Returns the table that `sshare` shows. Under the fair tree the effective usage is the part of the
// parent's usage, which is what levels are made of; under the classic rule it is U.
std::vector<ShareView> Priorities::shares() {
  const AccountTree& tree = cluster_.accounts();
  const bool by_tree = cluster_.parameters().priority.fair_tree;
  std::vector<ShareView> all;
  for (std::size_t i = 0; i < tree.size(); ++i) {
    const AssociationIndex index{static_cast<std::int32_t>(i)};
    const Association& association = tree[index];
    ShareView view{.account = association.name,
                   .user = {},
                   .parent = {},
                   .shares = association.shares,
                   .shares_ppb = fair_share_.shares_ppb(index),
                   .used = usage_.of(index),
                   .usage_ppb = fair_share_.usage_ppb(index)};
    if (association.parent) view.parent = tree[*association.parent].name;
    // A user's association is named after the user, and its parent is the account.
    if (association.is_user) {
      view.user = std::exchange(view.account, view.parent);
      view.fair_share_ppb = fair_share_.factor_ppb(index);
    }
    view.effective_usage_ppb = !by_tree ? fair_share_.effective_usage_ppb(index)
                               : association.parent
                                   ? ppb(view.used.billed, usage_.of(*association.parent).billed)
                                   : kBillion;
    all.push_back(std::move(view));
  }
  return all;
}

}  // namespace sched
