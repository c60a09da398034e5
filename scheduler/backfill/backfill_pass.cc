#include "scheduler/backfill/backfill_pass.h"

#include <algorithm>
#include <chrono>
#include <utility>
#include <variant>

#include "scheduler/model/allocation_nodes.h"
#include "scheduler/model/qos_order.h"
#include "scheduler/place/node_counts.h"
#include "scheduler/preempt/rules.h"

namespace sched {
namespace {

// Slurm's plan is in whole seconds (0.3).
base::Instant whole_seconds(base::Instant at) {
  return std::chrono::floor<std::chrono::seconds>(at);
}

}  // namespace

// bf_resolution puts promises on a grid since the epoch. The promises of different jobs then begin
// and end at the same instants, so that one can follow another without a gap too short for any job.
base::Instant BackfillPass::round_down(base::Instant at) const {
  const base::Duration resolution = cluster_.parameters().backfill.resolution;
  return base::slot_begin(base::slot_of(at, resolution), resolution);
}

base::Instant BackfillPass::round_up(base::Instant at) const {
  return base::boundary_at_or_after(at, cluster_.parameters().backfill.resolution);
}

// The queue is read as the pass goes on (8.1 step 1).
void BackfillPass::begin(base::Instant now) {
  const BackfillParameters& parameters = cluster_.parameters().backfill;
  books_.expire_claims(now);
  lookahead_.changed();
  const base::Instant begun = whole_seconds(now);
  // Slurm counts in whole seconds. So does this, or promises would begin fractions apart and cut
  // the time into slots of no use.
  plan_.emplace(cluster_, books_, begun, begun + parameters.window);
  plan_->version = books_.version();
  plan_->configuration = cluster_.configuration_version();
  const bool licenses = plans_licenses(cluster_.parameters());
  if (licenses) plan_licenses();
  // SOURCE: slurm.conf(5), bf_licenses, which implies bf_running_job_reserve.
  if (parameters.running_job_reserve || licenses) promise_running_jobs();
}

// Notes that a job started that the pass did not start. It no longer uses its promise: on those
// nodes only promises before that one are in its way, since none overlaps it.
void BackfillPass::begun(const Job& job) {
  if (!plan_ || stepping_) return;
  const base::Instant end = job.allocated_at + job.time_limit.value_or(kUnlimitedTime);
  if (plans_licenses_of(job)) {
    // They may have been promised to others.
    plan_->licenses->take(job.request->licenses, plan_->now, end);
    plan_->is_wrong = true;
  }
  const auto promised = plan_->expected.find(job.id);
  if (promised == plan_->expected.end()) return taken(job.allocation, end);
  const Job::Plan& own = promised->second;
  Allocation there, elsewhere;
  for (const NodeAllocation& use : job.allocation.nodes) {
    const bool is_own = std::ranges::find(own.nodes, use.node) != own.nodes.end();
    (is_own ? there : elsewhere).nodes.push_back(use);
  }
  taken(there, std::min(end, round_down(own.start)));
  taken(elsewhere, end);
}

// The promises are wrong if one of these nodes is promised before `until`. Changed ranks do not
// matter: then the pass ends in any case.
void BackfillPass::taken(const Allocation& nodes, base::Instant until) {
  if (!plan_ || stepping_ || plan_->configuration != cluster_.configuration_version()) return;
  const NodeSet ranks = ranks_of(cluster_, nodes);
  if (plan_->calendar.kept_from(std::nullopt, ranks, plan_->now, until)) plan_->is_wrong = true;
}

// Appends the next records of the queue that the pass has not come to. Returns false if there are
// none. If the pass may end early, all that it may try are needed, since one of the last may be the
// one that can start.
bool BackfillPass::fetch() {
  Plan& plan = *plan_;
  if (plan.has_all) return false;
  const bool ends_early = may_end_early();
  // At least as many as it has passed, so that few walks are made over those.
  int left = std::max({1, cluster_.parameters().backfill.max_job_test - plan.tried,
                       static_cast<int>(plan.passed.size())});
  const std::size_t before = plan.records.size();
  plan.has_all = true;
  admission_.queue().walk([&](const QueueRecord& record) {
    if (plan.passed.contains({record.job, record.partition})) return true;
    plan.has_all = left > 0;
    if (!plan.has_all) return false;
    plan.records.push_back({record.job, record.partition});
    const bool counts = !ends_early || !held_back(*record.record, record.partition);
    if (counts) --left;
    return true;
  });
  plan.ask_all_again();
  return plan.records.size() > before;
}

// Tries at most `records` records.
//
// 1. If promised nodes were taken since the last step the pass ends, unless bf_continue is set (8.1
//    step 3a). A changed configuration always ends it: promises are kept by rank, and ranks may be
//    others now.
// 2. After any other change the records to come are fetched again. The next pass does not rely on
//    this one: it may find something else for the records before them.
// 3. Try the next records. The expected ends of jobs are read once for all of them.
bool BackfillPass::step(base::Instant now, int records) {
  Plan& plan = *plan_;
  if ((plan.is_wrong && !cluster_.parameters().backfill.continues) ||
      plan.configuration != cluster_.configuration_version()) {
    plan.complete = false;
    plan.cut_short = true;
    return finish();
  }
  if (plan.version != books_.version()) {
    plan.complete = plan.complete && plan.next == 0;
    plan.records.resize(plan.next);
    plan.has_all = false;
  }
  plan.now = whole_seconds(now);
  plan.version = books_.version();
  plan.has_claims = false;
  lookahead_.begin(plan.now);
  stepping_ = true;
  const bool goes_on = walk(now, records);
  stepping_ = false;
  lookahead_.end();
  return goes_on ? false : finish();
}

// Returns false if the pass is over: with the last record, or at a limit; and if plans are not
// reported, before the first record from which on none can start.
bool BackfillPass::walk(base::Instant now, int records) {
  // A record that a limit holds back costs a 64th of one for which nodes are looked for.
  constexpr std::int64_t kTryCost = 64;
  Plan& plan = *plan_;
  for (std::int64_t left = records * kTryCost; left > 0;) {
    if (plan.next == plan.records.size() && !fetch()) return false;
    if (!may_start_more(now)) return false;
    const Record record = plan.records[plan.next++];
    plan.passed.insert({record.job, record.partition});
    const int before = plan.tried;
    if (!try_record(record, now)) return false;
    left -= plan.tried > before ? kTryCost : 1;
  }
  return plan.next < plan.records.size() || !plan.has_all;
}

// A next pass over the same version would find the same only if this one saw the whole queue and
// started nothing. The books never have version 0, so it makes the next pass due.
bool BackfillPass::finish() {
  passed_until_ = plan_->valid_until;
  const bool unchanged = plan_->complete && plan_->started == 0;
  passed_version_ = unchanged ? books_.version() : 0;
  if (tells_plans_) tell_plans();
  plan_.reset();
  return true;
}

// A job that the pass came to and that got no promise loses its reported plan. If the pass was cut
// short, jobs that it did not come to keep their plans, since nothing shows that they are wrong.
void BackfillPass::tell_plans() {
  std::set<JobId> reached;
  for (std::size_t i = 0; i < plan_->next; ++i) reached.insert(plan_->records[i].job);
  for (auto it = planned_.begin(); it != planned_.end();) {
    Job* const job = books_.find(*it);
    const bool stands = plan_->cut_short && !reached.contains(*it);
    if (job != nullptr && job->plan && (stands || plan_->expected.contains(*it))) {
      ++it;
      continue;
    }
    if (job != nullptr && job->pending()) books_.set_plan(*job, std::nullopt);
    it = planned_.erase(it);
  }
  for (const auto& [id, plan] : plan_->expected) {
    Job* const job = books_.find(id);
    if (job == nullptr || !job->pending() || job->queued.in.empty()) continue;
    books_.set_plan(*job, plan);
    planned_.insert(id);
  }
}

// The limits of 8.2 on how many records of a user and a partition are tried. A record that one of
// them refuses counts against none.
bool BackfillPass::count_try(const Job& job, PartitionIndex partition) {
  const BackfillParameters& parameters = cluster_.parameters().backfill;
  const std::string& user = job.request->user;
  int& in_partition = plan_->tried_in[partition];
  int& of_user = plan_->tried_of[user];
  int& of_both = plan_->tried_of_in[{user, partition}];
  const auto reached = [](int most, int tried) { return most > 0 && tried >= most; };
  if (reached(parameters.max_job_part, in_partition) || reached(parameters.max_job_user, of_user) ||
      reached(parameters.max_job_user_part, of_both)) {
    return false;
  }
  ++in_partition;
  ++of_user;
  ++of_both;
  return true;
}

// A limit forbids the job to start, whichever nodes are free; of licenses only if they are not
// planned.
bool BackfillPass::held_back(const Job& job, PartitionIndex partition) const {
  const bool planned = plan_->licenses.has_value();
  return planned ? limits_on_resources_.over_before_but_licenses(job, partition).has_value()
                 : limits_on_resources_.over_before(job, partition).has_value();
}

bool BackfillPass::plans_licenses_of(const Job& job) const {
  return plan_->licenses && !job.request->licenses.empty();
}

// 8.1 step 3c.
bool BackfillPass::gets_no_promise(const Job& job, PartitionIndex partition,
                                   base::Instant now) const {
  const BackfillParameters& parameters = cluster_.parameters().backfill;
  if (job.priority < parameters.min_prio_reserve) return true;
  if (now < job.eligible_time + parameters.min_age_reserve) return true;
  if (parameters.one_resv_per_job && plan_->expected.contains(job.id)) return true;
  const auto promised = plan_->promised_in.find(partition);
  return parameters.job_part_count_reserve > 0 && promised != plan_->promised_in.end() &&
         promised->second >= parameters.job_part_count_reserve;
}

// 8.1 step 4: the tasks of an array one after the other, until one neither starts nor gets a
// promise, or promises enough were made.
bool BackfillPass::try_record(const Record& record, base::Instant now) {
  const Job* const job = books_.find(record.job);
  if (job == nullptr) return true;
  if (!job->is_array()) return try_one(record, now);
  for (int promises = 0;;) {
    const int started = plan_->started;
    const int promised = plan_->promised_in[record.partition];
    if (!try_one(record, now)) return false;
    if (plan_->started > started) continue;
    if (plan_->promised_in[record.partition] == promised) return true;
    if (++promises >= tasks_to_promise(*job)) return true;
  }
}

// Tasks that run already do not count, as recorded (rnd_array_3012).
int BackfillPass::tasks_to_promise(const Job& array) const {
  const int most = std::min(array.count(), cluster_.parameters().backfill.max_job_array_resv);
  return std::min(most, array.request->array->at_once.value_or(most));
}

// The steps of 8.1 from 3b on.
bool BackfillPass::try_one(const Record& record, base::Instant now) {
  Job* const job = books_.find(record.job);
  if (job == nullptr || !job->pending() || job->held || job->startable() == 0) return true;
  const auto waits_there = [&](const QueueRecord& each) {
    return each.partition == record.partition;
  };
  // The records were noted at the beginning. Between steps the job may have started, or left this
  // partition's queue.
  if (std::none_of(job->queued.in.begin(), job->queued.in.end(), waits_there)) return true;
  if (plan_->tried >= cluster_.parameters().backfill.max_job_test) return false;
  // Before it is counted: what a limit holds back uses up nothing of bf_max_job_test (8.1 n).
  if (held_back(*job, record.partition)) return true;
  if (!count_try(*job, record.partition)) return true;
  if (admission_.end_if_too_late(*job, now)) {
    admission_.withdraw(*job);
    return true;
  }
  Try tried{.job = *job, .partition = record.partition};
  tried.now_only = gets_no_promise(*job, record.partition, now);
  // It gets a promise from that age on, so the findings of this pass hold no longer.
  if (const base::Instant old = job->eligible_time + cluster_.parameters().backfill.min_age_reserve;
      now < old) {
    plan_->valid_until = std::min(plan_->valid_until, old);
  }
  set_limits(tried, now);
  if (!cluster_.parameters().quirks.tests_count_with_nodes) ++plan_->tried;
  return place(tried, now);
}

NodeCalendar::Who BackfillPass::who(const Try& tried) const {
  return {.job = tried.job.id, .tier = cluster_.partition(tried.partition).tier()};
}

// 8.1 step 3d.
void BackfillPass::set_limits(Try& tried, base::Instant now) const {
  const JobRequest& asked = *tried.job.request;
  tried.full_limit = limits_.limit_of(tried.job, tried.partition, now).value_or(kUnlimitedTime);
  if (const auto& most = cluster_.partition(tried.partition).config.max_time) {
    tried.full_limit = std::min(tried.full_limit, *most);
  }
  tried.limit = tried.full_limit;
  const QosConfig* const qos = qos_named(cluster_, asked.qos);
  const bool no_reserve = qos != nullptr && qos->no_reserve;
  if (no_reserve) tried.now_only = true;
  if (no_reserve && preempt_mode_is_set()) {
    // 8.1 r: NoReserve with preemption: it can be preempted whenever its nodes are needed, so it
    // need only fit for a moment.
    tried.limit = std::chrono::minutes{1};
  } else if (asked.time_min) {
    // Planned with the least time; limit_to_promises() gives it more if there is more.
    tried.limit = std::min(tried.limit, *asked.time_min);
  }
}

// False where two equal requests may differ in whether they can start (preemption by priority), or
// where time alone may let a job start (exempt times). And with quirks, with which a job may find
// nodes among few and none among more.
bool BackfillPass::equal_requests_start_alike() const {
  const ClusterParameters& parameters = cluster_.parameters();
  if (parameters.quirks.any()) return false;
  if (!preempt::enabled(cluster_)) return true;
  const bool by_priority = parameters.preempt_type != PreemptType::kPartitionPriority ||
                           parameters.preempt_priority ||
                           std::ranges::any_of(cluster_.partitions(), [&](PartitionIndex each) {
                             return cluster_.partition(each).config.preempt_priority;
                           });
  const bool has_exempt_times = parameters.preempt_exempt_time ||
                                std::ranges::any_of(cluster_.qos(), [](const QosConfig& qos) {
                                  return qos.preempt_exempt_time.has_value();
                                });
  return !by_priority && !has_exempt_times;
}

// False too where time alone may give a job a promise (a least age): of that only a pass over all
// records tells when the next one is due.
bool BackfillPass::may_end_early() const {
  return !tells_plans_ && equal_requests_start_alike() &&
         cluster_.parameters().backfill.min_age_reserve <= base::Duration{0};
}

// Jobs that see nodes of their own, or that a deadline may end.
bool BackfillPass::is_special(const Job& job, PartitionIndex partition, base::Instant now) const {
  return job.request->deadline || job.claim || now < job.retry.nodes_until ||
         books_.usage().owns_nodes(job, partition);
}

Lookahead::Answer BackfillPass::ask(const Try& tried, const NodeSet& nodes,
                                    std::optional<base::Instant> until) {
  return lookahead_.will_run({.job = tried.job,
                              .partition = tried.partition,
                              .nodes = nodes,
                              .now_only = tried.now_only,
                              .until = until,
                              .by_standing = equal_requests_start_alike(),
                              .claimed = plan_->claimed ? &*plan_->claimed : nullptr});
}

// Returns true if a record from the next one on may start now. Promises only become more in a pass,
// so of the last records those that cannot start are not asked about again before another job has
// started.
bool BackfillPass::may_start_more(base::Instant now) {
  if (!may_end_early()) return true;
  Plan& plan = *plan_;
  for (; plan.may_start > plan.next; --plan.may_start, plan.starts_on.reset()) {
    if (can_start(plan.records[plan.may_start - 1], now)) return true;
  }
  return false;
}

// Returns true if the record could start if those before it were promised nothing more. The nodes
// where it can are noted, so that the selector is asked again only when they were promised.
bool BackfillPass::can_start(const Record& record, base::Instant now) {
  Plan& plan = *plan_;
  Job* const job = books_.find(record.job);
  if (job == nullptr || !job->pending() || job->held || job->startable() == 0) return false;
  if (held_back(*job, record.partition)) return false;
  // The pass must come to special jobs.
  if (is_special(*job, record.partition, now)) return true;
  Try tried{.job = *job, .partition = record.partition};
  set_limits(tried, now);
  tried.now_only = true;
  // Both ends included, as in a sweep.
  const base::Instant end = plan.now + tried.limit + base::Duration{1};
  if (plan.starts_on && !plan.calendar.kept_from(who(tried), *plan.starts_on, plan.now, end)) {
    return true;
  }
  begin_sweep(tried, now);
  const NodeSet& nodes = plan.sweep.at(plan.now);
  if (plan.sweep.count() < node_counts(cluster_, *job->request, record.partition).min) return false;
  Lookahead::Answer answer = ask(tried, nodes, {});
  plan.starts_on = std::move(answer.nodes);
  return answer.kind == Lookahead::Answer::Kind::kStarts;
}

// PreemptMode is not OFF; GANG alone counts too.
bool BackfillPass::preempt_mode_is_set() const {
  return cluster_.parameters().gang || cluster_.parameters().preempt_mode != PreemptMode::kOff;
}

// Begins the sweep over the nodes that the job may use: whom they are kept for, and when, is the
// calendar's to say. Nodes that have just refused the job are not promised to it: they would stay
// idle until it may try them again.
void BackfillPass::begin_sweep(const Try& tried, base::Instant now) {
  Plan& plan = *plan_;
  if (!std::exchange(plan.has_claims, true)) plan.calendar.read_claims(plan.now);
  if (now < tried.job.retry.nodes_until) {
    plan.valid_until = std::min(plan.valid_until, tried.job.retry.nodes_until);
  }
  plan.sweep.begin(who(tried),
                   lookahead_.placement().open_nodes(tried.job, tried.partition, now, groups_.up()),
                   tried.limit);
  plan.claimed.reset();
  // No victims end for nodes on which the job would have to be over soon.
  if (!books_.claimants().empty()) plan.claimed = plan.calendar.claimed_from(who(tried), plan.end);
}

// Returns the first start from then on for which the job's licenses are free; nullopt if there is
// none. The same instant if it needs none, or they are not planned.
std::optional<base::Instant> BackfillPass::with_licenses(const Try& tried,
                                                         std::optional<base::Instant> from) const {
  if (!from || !plans_licenses_of(tried.job)) return from;
  const auto free = plan_->licenses->first_free(tried.job.request->licenses, *from, tried.limit);
  return tried.now_only && free > plan_->now ? std::nullopt : free;
}

// Finds when the job may start, beginning with now: on the nodes that are free of promises from
// then on for as long as its limit, as soon as enough of them come free of running jobs.
//
// 1. With bf_licenses go on to an instant from which on they are free for as long as its limit.
//    Take the nodes that are free of promises if it starts at `from`. If they are too few, go on to
//    the next instant at which nodes come free of promises (`later`).
// 2. If too few of them have the cores by then, go on likewise; the selector need not be asked.
// 3. Ask the lookahead when the job can start on these nodes.
// 4. If that is now, start it (or tell its victims to end).
// 5. If it is after `later`, begin again there: more nodes may allow an earlier start than waiting
//    for these.
// 6. Otherwise promise it the nodes. If the promise would overlap others, try again from its start
//    on.
//
// Each turn of the loop moves `from` on, and it ends with the window. `until`: begins of promises
// are rounded down to the resolution, so a start may lie within the one in which nodes come free.
bool BackfillPass::place(const Try& tried, base::Instant now) {
  Plan& plan = *plan_;
  const BackfillParameters& parameters = cluster_.parameters().backfill;
  const JobRequest& request = *tried.job.request;
  const bool any_required = !request.required_nodes.empty();
  const NodeSet required = any_required ? cluster_.named(request.required_nodes) : NodeSet{};
  const int nodes_min = node_counts(cluster_, request, tried.partition).min;
  begin_sweep(tried, now);
  NodeCalendar::Sweep& sweep = plan.sweep;
  // Marks the nodes in the sweep that are ripe by then; false: they are too few.
  OpenRoom* room = lookahead_.room(tried.job, tried.partition);
  auto are_ripe = [&, next = std::size_t{0}](std::optional<base::Instant> by) mutable {
    if (room == nullptr) return true;
    for (; sweep.marked_count() < nodes_min; ++next) {
      const OpenRoom::Node* const node = room->node(next);
      if (node == nullptr || (by && room->at(*node) > *by)) return false;
      sweep.mark(node->rank);
    }
    return true;
  };
  bool counted = !cluster_.parameters().quirks.tests_count_with_nodes;
  std::optional<base::Instant> from = plan.now;
  while ((from = with_licenses(tried, from)) && *from < plan.end) {
    const NodeSet& nodes = sweep.at(*from);
    // The instant from which the job may find more nodes that are free of promises.
    std::optional<base::Instant> later;
    if (!tried.now_only) later = sweep.next_free();
    std::optional<base::Instant> until = later;
    if (until) until = *until + parameters.resolution - base::Duration{1};
    if (sweep.count() < nodes_min || (any_required && !nodes.contains(required))) {
      from = later;
      continue;
    }
    if (!std::exchange(counted, true)) ++plan.tried;
    if (!are_ripe(until)) {
      from = later;
      continue;
    }
    Lookahead::Answer answer = ask(tried, nodes, until);
    if (answer.kind != Lookahead::Answer::Kind::kStarts) {
      from = later;
      continue;
    }
    base::Instant start = std::max(*from, answer.start);
    // The cores are free, but pods that end are still on the node (R2.1). The job gets a promise
    // for the earliest instant instead.
    if (start <= plan.now && answer.nodes.intersects(books_.usage().completing())) {
      start = plan.now + kShortestTime;
      later.reset();
    }
    if (start <= plan.now) {
      const Started started = start_now(tried, nodes, now);
      if (started == Started::kYes || started == Started::kSkipped) return goes_on();
      room = nullptr;  // the books have changed
      later.reset();
      if (tried.job.claim) start = std::max(start, plan.calendar.victims_end(tried.job));
    }
    if (later && start > *until) {
      from = later;
      continue;
    }
    if (tried.now_only || start > plan.end) return true;
    // A promise adds up to two changes to Slurm's table of slots (bf_node_space_size); when it is
    // full the pass ends.
    if (plan.calendar.changes() >= space_size()) return false;
    if (promise(tried, answer.nodes, start)) return true;
    from = start > *from ? start : *from + parameters.resolution;
  }
  return true;
}

// bf_node_space_size, whose default is bf_max_job_test (8.2).
int BackfillPass::space_size() const {
  const BackfillParameters& parameters = cluster_.parameters().backfill;
  return parameters.node_space_size > 0 ? parameters.node_space_size : parameters.max_job_test;
}

bool BackfillPass::goes_on() const {
  const int most = cluster_.parameters().backfill.max_job_start;
  return most == 0 || plan_->started < most;
}

// 8.1 step 3i. kSkipped: it cannot be said when it could start.
BackfillPass::Started BackfillPass::start_now(const Try& tried, const NodeSet& nodes,
                                              base::Instant now) {
  Job& job = tried.job;
  // The real books from here on: StartAttempt asks about now, and a start changes them.
  lookahead_.release();
  // Only nodes that are free of promises, or the start would delay a job ahead (R8.2).
  const Availability::View view{.nodes = nodes,
                                .in_partition = nodes.count(),
                                .claimed = plan_->claimed ? &*plan_->claimed : nullptr};
  StartAttempt::Answer answer = attempt_.run(job, tried.partition, view, now);
  plan_->valid_until = std::min(plan_->valid_until, answer.valid_until);
  if (auto* const fits = std::get_if<Fits>(&answer.verdict)) {
    limit_to_promises(tried, *fits);
    if (plans_licenses_of(job)) {
      plan_->licenses->take(job.request->licenses, plan_->now, plan_->now + tried.full_limit);
    }
    Job& started = actions_.start(job, tried.partition, std::move(*fits));
    if (&started == &job) {
      admission_.withdraw(job);
    } else {
      admission_.task_started(job, now);
    }
    lookahead_.started(started);
    ++plan_->started;
    ++starts_;
    plan_->ask_all_again();
    plan_->version = books_.version();
    plan_->has_claims = false;
    return Started::kYes;
  }
  if (auto* const needs = std::get_if<NeedsVictims>(&answer.verdict)) {
    // The job falls through to a promise of these nodes, so that jobs behind do not take them while
    // the victims end (8.1 i).
    if (!job.waits_for_victims(now)) {
      actions_.preempt_for(job, std::move(*needs));
      lookahead_.changed();
      plan_->version = books_.version();
      // When the victims are gone it must be looked at again, even if nothing else changes.
      plan_->complete = false;
      plan_->has_claims = false;
    }
    return Started::kNo;
  }
  return std::holds_alternative<OverLimit>(answer.verdict) ? Started::kSkipped : Started::kNo;
}

// A job with a least time limit gets as much of its limit as delays no promise, in whole minutes.
void BackfillPass::limit_to_promises(const Try& tried, Fits& fits) const {
  if (!tried.job.request->time_min) return;
  const auto next =
      plan_->calendar.next_kept_from(who(tried), ranks_of(cluster_, fits.allocation), plan_->now);
  base::Duration limit = tried.full_limit;
  if (cluster_.parameters().quirks.least_limit_is_kept) {
    limit = tried.limit;
  } else if (next) {
    // Slurm's limits are whole minutes.
    const base::Duration left = std::chrono::floor<std::chrono::minutes>(*next - plan_->now);
    limit = std::clamp(left, tried.limit, tried.full_limit);
  }
  const auto asked_for = limits_.limit_of(tried.job, tried.partition, plan_->now);
  if (limit < asked_for.value_or(kUnlimitedTime)) fits.time_limit = limit;
}

// 8.1 step 3k. False if the nodes are promised to others in that time, or the licenses are in use
// when the nodes come free.
bool BackfillPass::promise(const Try& tried, const NodeSet& nodes, base::Instant start) {
  // A job that a limit holds back would not use the nodes when they come free.
  if (limits_on_resources_.over_as_asked(tried.job, tried.partition)) return true;
  if (with_licenses(tried, start) != start) return false;
  const base::Instant begin = round_down(start);
  const base::Instant end = round_up(start + tried.limit);
  if (plan_->calendar.kept_from(who(tried), nodes, begin, end)) return false;
  plan_->calendar.promise(nodes, begin, end);
  if (plans_licenses_of(tried.job)) plan_->licenses->take(tried.job.request->licenses, begin, end);
  ++plan_->promised_in[tried.partition];
  // When its time has come the job may start, even if no event comes until then.
  plan_->valid_until = std::min(plan_->valid_until, start);
  Job::Plan expected{.start = start, .nodes = {}};
  for (int rank = nodes.next(0); rank >= 0; rank = nodes.next(rank + 1)) {
    expected.nodes.push_back(cluster_.node_at(rank));
  }
  // A job with records in several partitions reports the earliest start.
  const auto [known, first] = plan_->expected.emplace(tried.job.id, expected);
  if (!first && start < known->second.start) known->second = std::move(expected);
  return true;
}

// Licenses are in use until the jobs that hold them are expected to end.
void BackfillPass::plan_licenses() {
  plan_->licenses.emplace(cluster_.parameters().licenses);
  for (const auto& [order, job] : books_.allocated()) {
    // One whose time is over still holds them.
    const base::Instant end = std::max(lookahead_.expected_end(*job), plan_->now + kShortestTime);
    plan_->licenses->take(job->request->licenses, plan_->now, end);
  }
}

// bf_running_job_reserve.
void BackfillPass::promise_running_jobs() {
  for (const auto& [order, job] : books_.allocated()) {
    if (job->running() && !job->completing()) promise_running(*job);
  }
}

// Promises its nodes to a job that cons_tres gave whole nodes and that cannot be preempted.
void BackfillPass::promise_running(const Job& job) {
  if (cluster_.parameters().select == SelectType::kLinear || !job.allocation.whole_nodes) return;
  // A job that can be preempted does not stand in the way of a job of higher standing.
  if (preempt::effective_mode(cluster_, job) != PreemptMode::kOff) return;
  if (plan_->calendar.changes() >= space_size()) return;
  const base::Instant begin = round_down(plan_->now);
  plan_->calendar.promise(ranks_of(cluster_, job.allocation), begin,
                          round_up(lookahead_.expected_end(job)));
}

}  // namespace sched
