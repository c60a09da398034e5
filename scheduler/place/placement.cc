#include "scheduler/place/placement.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "scheduler/model/allocation_nodes.h"

namespace sched {
namespace {

// A job with a pod for each task is tried this many times, each time without the nodes that could
// not take its pods.
constexpr int kPodRoundsMax = 16;

}  // namespace

// State of one call of place(). `base` are the nodes that could ever hold the job, `outcome` is
// filled as the attempt goes, and `mode` says which of the selector's questions (3.8) is asked now.
struct Placement::Attempt {
  Attempt(const PlacementRequest& a_request, Chooser& a_selector, const Cluster& cluster,
          const Base& a_base)
      : request{a_request},
        tried{a_request.job.select},
        selector{a_selector},
        partition{cluster.partition(a_request.partition)},
        constraint{a_base.constraint},
        base{a_base.nodes},
        required{a_base.required},
        requires_nodes{a_base.required_count > 0} {
    tried.partition = a_request.partition;
  }

  const PlacementRequest& request;
  SelectJob tried;  // the job, in this partition
  Chooser& selector;
  const Partition& partition;
  const Constraint& constraint;
  NodeCounts counts;
  const NodeSet& base;
  const NodeSet& required;  // --nodelist
  bool requires_nodes;      // `required` is not empty
  PlacementOutcome outcome;
  std::vector<Candidate> candidates;
  SelectMode mode = SelectMode::kRunNow;
  bool offers_victims = false;
  const WillRunRequest* will_run = nullptr;
};

// The purpose of the nodes of one choice: the whole job, or its part on nodes of a counted feature.
struct Placement::Wish {
  const SelectJob& job;
  NodeCounts counts;
  const NodeSet& required;
  bool requires_nodes;  // `required` is not empty
};

// Finds where the job can start now (3.6), in this order, each step only if the one before has
// found nothing:
// 1. what can never be, or needs a required node that is not to be had, is answered at once
// 2. on the usable nodes, without victims
// 3. the same with victims, if preemption is on (R3.2)
// 4. why it cannot start (classify), for the reason that users see
PlacementOutcome Placement::place(Selector& selector, const PlacementRequest& request) {
  const Job& job = request.job;
  find_base(job, request.partition);
  Attempt attempt{request, selector, cluster_, base_};
  attempt.outcome.sharing =
      resolve_sharing(cluster_.parameters().select, attempt.partition, job.request->sharing);
  attempt.counts = node_counts(cluster_, *job.request, request.partition);
  // Too few nodes have the hardware, or a required one is not among them: no end of another job can
  // help, so nothing is tried.
  if (static_cast<int>(job.request->required_nodes.size()) > base_.required_count ||
      base_.count < attempt.counts.min ||
      (attempt.requires_nodes && !base_.nodes.contains(base_.required))) {
    classify(attempt);
    return std::move(attempt.outcome);
  }
  // A required node is not to be had, so no other choice is tried (3.6 step 3).
  if (attempt.requires_nodes && !request.available.contains(base_.required)) {
    attempt.outcome.result = PlacementResult::kNotAvailable;
    attempt.outcome.message = "a required node is down, drained or kept for other jobs";
    return std::move(attempt.outcome);
  }
  if (request.missing == nullptr && try_all(attempt, usable_nodes(attempt))) {
    return std::move(attempt.outcome);
  }
  // Victims count only after everything was tried without them (R3.2, R7.1).
  if (preempt::enabled(cluster_)) {
    // The candidates are the same for all alternatives and node sets. There may be more of them
    // when an exempt time ends, so a refusal holds no longer than that.
    std::vector<const Job*> allocated;
    for (const auto& [order, other] : allocated_) allocated.push_back(other);
    preempt::CandidateList list = preempt::candidates(cluster_, allocated, job, request.partition,
                                                      request.now, request.missing);
    attempt.outcome.valid_until = list.valid_until;
    attempt.candidates = std::move(list.candidates);
    attempt.offers_victims = !attempt.candidates.empty();
    if (attempt.offers_victims && try_all(attempt, usable_nodes(attempt))) {
      return std::move(attempt.outcome);
    }
  }
  classify(attempt);
  return std::move(attempt.outcome);
}

// Asks the same question about the future: the books are a trial's, from which jobs that will have
// ended have been taken. There is no second try with victims, and no reason to give to users.
std::optional<Allocation> Placement::will_run(Chooser& books, const WillRunRequest& asked) {
  std::optional<Base> any;  // built for replays alone: a Base holds a whole request
  if (asked.on_any_node) {
    any = Base{};
    any->nodes = asked.nodes;
    any->required = cluster_.named(asked.job.request->required_nodes);
    any->required_count = any->required.count();
  } else {
    find_base(asked.job, asked.partition);
  }
  const Base& base = any ? *any : base_;
  const PlacementRequest request{
      .job = asked.job, .partition = asked.partition, .available = asked.nodes, .now = asked.now};
  Attempt attempt{request, books, cluster_, base};
  attempt.outcome.sharing = asked.sharing;
  attempt.counts = node_counts(cluster_, *asked.job.request, asked.partition);
  attempt.mode = SelectMode::kWillRun;
  attempt.will_run = &asked;
  // Nodes of running jobs, and nodes that a job keeps to itself, stay in: the question is about
  // books from which jobs have been taken away, and the selector knows what is left there.
  NodeSet& usable = usable_;
  usable.assign_and(base.nodes, asked.nodes);
  const bool all_there =
      static_cast<int>(asked.job.request->required_nodes.size()) == base.required_count;
  if (!all_there || !usable.contains(base.required) || usable.count() < attempt.counts.min ||
      !try_all(attempt, usable)) {
    return std::nullopt;
  }
  return std::move(attempt.outcome.allocation);
}

namespace {

// Returns the part of a request that decides which nodes are its base. A field that in_base() reads
// and that is missing here would give a job the base of another one.
auto base_part(const JobRequest& request) {
  return std::tie(request.tasks_per_node, request.tasks_per_core, request.cpus_per_task,
                  request.min_cpus_per_node, request.sockets_per_node, request.cores_per_socket,
                  request.threads_per_core, request.overcommit, request.memory, request.tmp_disk,
                  request.devices, request.devices_of_job, request.devices_per_task,
                  request.devices_per_socket, request.per_gpu, request.required_nodes,
                  request.excluded_nodes, request.unusable_nodes, request.constraint);
}

NodeSet excluded_by(const JobRequest& request, const Cluster& cluster) {
  NodeSet excluded = cluster.named(request.excluded_nodes);
  if (request.unusable_nodes != nullptr) excluded |= cluster.named(*request.unusable_nodes);
  return excluded;
}

}  // namespace

// The base (4.2 steps 1 to 3).
void Placement::find_base(const Job& job, PartitionIndex partition) {
  // Jobs of one shape often stand in the queue one behind the other and share the base of the
  // first.
  if (base_.groups_version == groups_.version() && base_.seen >= groups_.log().begin() &&
      base_.partition == partition && base_part(*base_.request) == base_part(*job.request)) {
    return refresh_base();
  }
  base_ = Base{.groups_version = groups_.version(),
               .seen = groups_.log().end(),
               .partition = partition,
               .request = job.request,
               .constraint = {},
               .memory = memory_demand(cluster_.parameters(), cluster_.partition(partition).config,
                                       *job.request),
               .excluded = excluded_by(*job.request, cluster_),
               .nodes = {},
               .required = cluster_.named(job.request->required_nodes)};
  // Callers check it before they submit the job; an invalid one filters nothing.
  if (auto constraint = Constraint::parse(job.request->constraint); constraint.ok()) {
    base_.constraint = *std::move(constraint);
  }
  base_.nodes = base_nodes();
  base_.count = base_.nodes.count();
  base_.required_count = base_.required.count();
  for (Kept* kept : {&up_, &idle_, &usable_up_, &usable_idle_}) kept->known = false;
}

// Most questions of a pass are about the same sets (which nodes of this shape are up, idle,
// usable), and between two of them few nodes change: a start touches its own nodes. So a set is
// kept with the places up to which it has read the two logs of changes.
//
// `all(nodes)` works the whole set out, which is done if that costs less than to ask is_in(rank) of
// each node that changed. REQUIRES: both follow from the base, the groups and the books alone.
template <typename All, typename IsIn>
const Placement::Kept& Placement::bring_up_to_date(Kept& kept, const All& all,
                                                   const IsIn& is_in) const {
  const ChangeLog& groups = groups_.log();
  const ChangeLog& usage = usage_.log();
  const bool seen =
      kept.known && kept.groups_seen >= groups.begin() && kept.usage_seen >= usage.begin();
  // Beyond this many changes the whole set costs less: it is worked out 64 nodes at a time.
  const auto changes_max = static_cast<std::size_t>(8 + cluster_.node_count() / 64);
  if (!seen || groups.end() - kept.groups_seen + usage.end() - kept.usage_seen > changes_max) {
    all(kept.nodes);
    kept.count = kept.nodes.count();
    kept.known = true;
    kept.groups_seen = groups.end();
    kept.usage_seen = usage.end();
    return kept;
  }
  const auto look_at = [&](int rank) {
    // The count follows each node: counting the set would cost more than all the changes.
    const bool member = is_in(rank);
    kept.count += (member ? 1 : 0) - (kept.nodes.test(rank) ? 1 : 0);
    kept.nodes.assign(rank, member);
  };
  for (; kept.groups_seen < groups.end(); ++kept.groups_seen) look_at(groups.at(kept.groups_seen));
  for (; kept.usage_seen < usage.end(); ++kept.usage_seen) look_at(usage.at(kept.usage_seen));
  return kept;
}

// Returns the usable nodes if the question is about all nodes that are up, which is the common
// case. Few nodes change between two such questions.
const Placement::Kept& Placement::usable_of_up(bool only_idle) {
  return bring_up_to_date(
      only_idle ? usable_idle_ : usable_up_,
      [&](NodeSet& nodes) {
        nodes.assign_and(base_.nodes, groups_.up(), usage_.shareable());
        if (only_idle) nodes &= usage_.idle();
        if (usage_.any_completing()) nodes -= usage_.completing();
        if (usage_.any_full()) nodes -= usage_.full();
      },
      [&](int rank) {
        return base_.nodes.test(rank) && groups_.up().test(rank) && usage_.shareable().test(rank) &&
               (!only_idle || usage_.idle().test(rank)) && !usage_.completing().test(rank) &&
               !usage_.full().test(rank);
      });
}

// For classify() and the message: which nodes of the base are up, and which of these are idle.
const Placement::Kept& Placement::up_of_base() {
  return bring_up_to_date(
      up_, [&](NodeSet& nodes) { nodes.assign_and(base_.nodes, groups_.up()); },
      [&](int rank) { return base_.nodes.test(rank) && groups_.up().test(rank); });
}

// Idle in the sense of R4.4: on these nodes no job runs and none is completing. Suspended jobs do
// not count.
const Placement::Kept& Placement::idle_of_up() {
  return bring_up_to_date(
      idle_, [&](NodeSet& nodes) { nodes.assign_and(base_.nodes, groups_.up(), usage_.idle()); },
      [&](int rank) {
        return base_.nodes.test(rank) && groups_.up().test(rank) && usage_.idle().test(rank);
      });
}

// The kept sets know how many they have; a set that was made for this question stops counting at
// `wanted`.
bool Placement::has_at_least(const NodeSet& nodes, int wanted) const {
  for (const Kept* kept : {&usable_idle_, &usable_up_, &up_}) {
    if (&nodes == &kept->nodes) return kept->count >= wanted;
  }
  return &nodes == &base_.nodes ? base_.count >= wanted : nodes.has_at_least(wanted);
}

// 1. Hardware by groups, features by their index: sets of nodes.
// 2. Memory, disk and devices node by node, unless every node has as much as is asked for.
NodeSet Placement::base_nodes() const {
  NodeSet nodes = cluster_.no_nodes();
  for (const NodeGroup& group : groups_.all()) {  // 1
    if (hardware_fits(group.sample, *base_.request, base_.memory)) nodes |= group.nodes;
  }
  nodes &= cluster_.partition(base_.partition).nodes;
  nodes = base_.constraint.matching(nodes, [&](const std::string& feature) -> const NodeSet& {
    return groups_.nodes_with(feature);
  });
  nodes -= base_.excluded;
  const bool all_have_it = base_.memory.mib <= groups_.memory_floor() &&  // 2
                           base_.request->tmp_disk <= groups_.tmp_disk_floor() &&
                           !asks_for_devices(*base_.request);
  if (all_have_it) return nodes;
  for (int rank = nodes.next(0); rank >= 0; rank = nodes.next(rank + 1)) {
    if (!capacity_fits(cluster_.spec_at(rank), *base_.request, base_.memory)) nodes.reset(rank);
  }
  return nodes;
}

// The same conditions as base_nodes(), for one node. The two must agree, or a node that is reported
// again would change the base.
bool Placement::in_base(int rank) const {
  const NodeSpec& node = cluster_.spec_at(rank);
  return cluster_.partition(base_.partition).nodes.test(rank) && !base_.excluded.test(rank) &&
         hardware_fits(node, *base_.request, base_.memory) &&
         capacity_fits(node, *base_.request, base_.memory) &&
         base_.constraint.matches(node.features);
}

// Looks again at the nodes that were reported since.
void Placement::refresh_base() {
  for (; base_.seen < groups_.log().end(); ++base_.seen) {
    const int rank = groups_.log().at(base_.seen);
    const bool is_in = in_base(rank);
    base_.count += (is_in ? 1 : 0) - (base_.nodes.test(rank) ? 1 : 0);
    base_.nodes.assign(rank, is_in);
  }
}

// Alternatives in the order in which they are written; the first that fits is taken.
bool Placement::try_all(Attempt& attempt, const NodeSet& usable) const {
  const std::size_t alternatives = std::max<std::size_t>(1, attempt.constraint.alternatives());
  for (std::size_t i = 0; i < alternatives; ++i) {
    if (try_alternative(attempt, usable, i)) return true;
  }
  return false;
}

// Only a running job keeps others off its nodes, and only if it does not share them. Its node is
// open without it even if it is another user's (R7.31), but not if a job of another user stays
// there.
const NodeSet& Placement::open_nodes(const Job& job, PartitionIndex partition, base::Instant now,
                                     const NodeSet& available,
                                     const std::vector<Candidate>& victims, bool any_user) {
  find_base(job, partition);
  const bool exclusive_user = usage_.owns_nodes(job, partition);
  NodeSet& open = usable_;
  open.assign_and(base_.nodes, available);
  if (!any_user) usage_.restrict_to_user(job, exclusive_user, open);
  for_each_closed(victims, [&](int rank, const Job& victim) {
    if (base_.nodes.test(rank) && available.test(rank) &&
        usage_.open_to_user(job, exclusive_user, cluster_.node_at(rank), &victim)) {
      open.set(rank);
    }
  });
  usage_.leave_out_refusing(job, now, open);
  return open;
}

// Calls visit(rank, victim) for each node that a victim keeps to itself.
template <typename Visit>
void Placement::for_each_closed(const std::vector<Candidate>& victims, const Visit& visit) const {
  for (const Candidate& candidate : victims) {
    const Job& victim = *allocated_.at(candidate.job->table_order);
    if (!victim.running() || victim.sharing.shares_nodes) continue;
    for_each_rank(cluster_, victim.allocation,
                  [&](int rank, const NodeAllocation&) { visit(rank, victim); });
  }
}

// R4.3: with a PreemptType the idle test is dropped, and the selector's books alone decide.
bool Placement::takes_only_idle(const Attempt& attempt) const {
  return !preempt::enabled(cluster_) && !attempt.outcome.sharing.shares_nodes;
}

// Returns the usable nodes (3.6 steps 4b to 4f). Valid until the next call.
const NodeSet& Placement::usable_nodes(const Attempt& attempt) {
  const PlacementRequest& request = attempt.request;
  const bool exclusive_user = usage_.owns_nodes(request.job, request.partition);
  const bool only_idle = takes_only_idle(attempt);
  const bool as_usual = sees_all_up(request) && !attempt.offers_victims &&
                        !usage_.restricts(exclusive_user) &&
                        request.now >= request.job.retry.nodes_until;
  const std::vector<Candidate>& victims = attempt.candidates;  // empty unless they are offered
  if (as_usual) return usable_of_up(only_idle).nodes;
  open_nodes(request.job, request.partition, request.now, request.available, victims);
  NodeSet& usable = usable_;
  if (victims.empty()) {
    usable &= usage_.shareable();
  } else {
    NodeSet shareable = usage_.shareable();
    for_each_closed(victims, [&](int rank, const Job&) { shareable.set(rank); });
    usable &= shareable;
    if (request.claimed != nullptr) usable -= *request.claimed;
  }
  if (only_idle) usable &= usage_.idle();
  // 3.6 step 4d: the pods of a job that ends are still there.
  if (usage_.any_completing()) usable -= usage_.completing();
  if (usage_.any_full()) usable -= without_room(attempt);
  return usable;
}

// One alternative of a matching OR. 4.2.4: the nodes of each counted feature are chosen first, for
// what is asked of a single node, and are then required.
//
// For example, "gpu*1&ssd*2" on four nodes: one node that has gpu is chosen, then two others that
// have ssd; these three are required in the last choice, which adds a fourth, whatever it has.
bool Placement::try_alternative(Attempt& attempt, const NodeSet& usable,
                                std::size_t alternative) const {
  const SelectJob& job = attempt.tried;
  if (attempt.constraint.counted().empty()) {
    const Wish whole{job, attempt.counts, attempt.required, attempt.requires_nodes};
    return pick_best(attempt, whole, usable, alternative);
  }
  JobRequest of_each = *job.request;
  // For the nodes of a counted feature, what each node must have counts, and not how many tasks
  // there are in all.
  of_each.tasks.reset();
  SelectJob part = job;
  part.request = &of_each;
  const NodeSet none = cluster_.no_nodes();
  NodeSet required = attempt.required;  // --nodelist; these nodes do not count (recorded)
  for (const Constraint::Counted& counted : attempt.constraint.counted()) {
    const NodeSet matching = (groups_.nodes_with(counted.feature) & usable) - required;
    const int count = of_each.min_nodes = counted.count;
    const Wish wish{part, {.min = count, .req = count, .max = count}, none, false};
    if (!pick_best(attempt, wish, matching, alternative)) return false;
    for (const NodeAllocation& use : attempt.outcome.allocation->nodes) {
      required.set(cluster_.rank(use.node));
    }
  }
  NodeCounts counts = attempt.counts;
  counts.req = counts.min;  // of a range no more than must be (recorded)
  return required.count() <= counts.max &&
         pick_best(attempt, Wish{job, counts, required, true}, usable, alternative);
}

// The node sets by weight (3.6 step 4). With a matching OR only nodes of the one alternative count:
// all nodes of the job have the same feature of those in the brackets (4.2 step 3).
bool Placement::pick_best(Attempt& attempt, const Wish& wish, const NodeSet& usable,
                          std::size_t alternative) const {
  if (attempt.constraint.alternatives() == 0) return pick_by_weight(attempt, wish, usable);
  return pick_by_weight(attempt, wish,
                        usable & groups_.nodes_with(attempt.constraint.alternative(alternative)));
}

// So cheap nodes are used up before expensive ones are touched (1.3: a low weight first), but a job
// that needs both kinds gets both.
//
// For example, two nodes of weight 1 and four of weight 5: select/linear tries a job of two nodes
// on the first two alone, and a job of three at once on all six.
bool Placement::pick_by_weight(Attempt& attempt, const Wish& wish, const NodeSet& usable) const {
  const std::vector<NodeGroup>& groups = groups_.all();
  if (groups.size() == 1) {  // nothing to divide
    return has_at_least(usable, wish.counts.min) &&
           (!wish.requires_nodes || usable.contains(wish.required)) &&
           select(attempt, wish, usable);
  }
  const bool linear = cluster_.parameters().select == SelectType::kLinear;
  const bool apart = cluster_.parameters().quirks.kinds_are_tried_apart;
  // Step 4e. cons_tres gets all groups at once and weighs the nodes itself. linear is asked after
  // each weight for which enough nodes have come together, so that nodes of a low weight are tried
  // alone; the count of the last set need only reach the minimum. With the quirk, nodes of another
  // kind and the same weight are a set of their own, too.
  const int wanted = std::max(wish.counts.min, wish.counts.req);
  NodeSet found = cluster_.no_nodes();
  if (wish.requires_nodes) found |= wish.required & usable;  // whatever they weigh
  int tried = -1;
  for (std::size_t i = 0; i < groups.size(); ++i) {
    const bool last = i + 1 == groups.size();
    found |= groups[i].nodes & usable;
    // Step 4g: victims are offered on the last set only, never just to use cheap nodes.
    if (!last && (!linear || attempt.offers_victims || attempt.mode != SelectMode::kRunNow ||
                  (!apart && groups[i].sample.weight == groups[i + 1].sample.weight))) {
      continue;
    }
    const int count = found.count();
    // No node was added since the last try: the answer would be the same.
    if (count < (last ? wish.counts.min : wanted) || count == tried) continue;
    tried = count;
    if (wish.requires_nodes && !found.contains(wish.required)) continue;
    if (select(attempt, wish, found)) return true;
  }
  return false;
}

// Returns nodes without room for another pod (NodeSpec::pods_max), except for the pods of victims.
NodeSet Placement::without_room(const Attempt& attempt) const {
  NodeSet full = usage_.full();
  if (!attempt.offers_victims) return full;
  for (const Candidate& candidate : attempt.candidates) {
    if (!candidate.must_end()) continue;
    // A candidate that is only suspended keeps its pods.
    for (const NodeAllocation& use : allocated_.at(candidate.job->table_order)->allocation.nodes) {
      if (cluster_.exists(use.node)) full.reset(cluster_.rank(use.node));
    }
  }
  return full;
}

// Returns the nodes of the outcome that cannot take the pods that the job would have there.
NodeSet Placement::overfilled(const Attempt& attempt) const {
  NodeSet nodes = cluster_.no_nodes();
  const PlacementOutcome& outcome = attempt.outcome;
  for (const NodeAllocation& use : outcome.allocation->nodes) {
    std::optional<int> left = usage_.pods_left(use.node);
    if (!left) continue;
    // The pods of victims that end make room, too.
    for (const Candidate& victim : outcome.victims) {
      if (!victim.must_end()) continue;
      const Job& job = *allocated_.at(victim.job->table_order);
      for (const NodeAllocation& freed : job.allocation.nodes) {
        if (freed.node == use.node) *left += pods_on(*job.request, freed);
      }
    }
    if (pods_on(*attempt.request.job.request, use) > *left) nodes.set(cluster_.rank(use.node));
  }
  return nodes;
}

// How many pods a job of a pod per task has on a node is known when the selector has chosen; and
// whether the victims whose pods would make room are among those that it takes.
bool Placement::select(Attempt& attempt, const Wish& wish, const NodeSet& nodes) const {
  const bool counts_pods =
      attempt.request.job.request->pod_per_task || (attempt.offers_victims && usage_.any_full());
  if (!counts_pods || attempt.mode != SelectMode::kRunNow) {
    return select_from(attempt, wish, nodes);
  }
  NodeSet left = nodes;
  // Each round takes away the nodes that turned out too small. A bound, because in a cluster with
  // few free pods every round could find another such node.
  for (int round = 0; round < kPodRoundsMax && select_from(attempt, wish, left); ++round) {
    const NodeSet over = overfilled(attempt);
    if (over.empty()) return true;
    left -= over;
  }
  return false;
}

// Asks the selector. The outcome replaces that of an earlier choice of the same attempt (counted
// features, rounds).
bool Placement::select_from(Attempt& attempt, const Wish& wish, const NodeSet& nodes) const {
  const SharingStatus& sharing = attempt.outcome.sharing;
  SelectRequest request{.job = &wish.job,
                        .mode = attempt.mode,
                        .now = attempt.request.now,
                        .nodes = nodes,
                        .required = wish.required,
                        .any_required = wish.requires_nodes,
                        .min_nodes = wish.counts.min,
                        .req_nodes = wish.counts.req,
                        .max_nodes = wish.counts.max,
                        .whole_nodes = sharing.whole_nodes,
                        .may_stack = sharing.may_stack,
                        .max_share = sharing.max_share,
                        .candidates = {}};
  // The selector answers with positions in this list.
  if (attempt.offers_victims) {
    request.candidates = attempt.candidates;
    request.missing = attempt.request.missing;
  }
  if (attempt.will_run != nullptr) {
    request.takes_extra_row = attempt.will_run->takes_extra_row;
    request.idle_last = attempt.will_run->idle_last;
  }
  SelectOutcome selected = attempt.selector.select(request);
  if (!selected.allocation) return false;
  attempt.outcome.result = PlacementResult::kFits;
  attempt.outcome.allocation = std::move(selected.allocation);
  attempt.outcome.victims.clear();
  for (const std::size_t index : selected.victims) {
    attempt.outcome.victims.push_back(attempt.candidates[index]);
  }
  return true;
}

// Says why there is no allocation: busy, not available or never (3.6 step 5).
void Placement::classify(Attempt& attempt) {
  const Job& job = attempt.request.job;
  PlacementOutcome& outcome = attempt.outcome;
  // TEST_ONLY ignores running jobs and what they hold (3.8), and victims play no part in what could
  // ever run.
  attempt.mode = SelectMode::kTestOnly;
  attempt.offers_victims = false;
  const auto could_run = [&](const NodeSet& nodes) {
    return (!attempt.requires_nodes || nodes.contains(attempt.required)) &&
           has_at_least(nodes, attempt.counts.min) && try_all(attempt, nodes);
  };
  // 3.5 step 3: with a required node that does not exist, or is not in the partition, it can never
  // run. As in place(): the same question again, since other answers lead here.
  const bool all_there =
      static_cast<int>(job.request->required_nodes.size()) == base_.required_count;
  const bool all_up = sees_all_up(attempt.request);
  if (!all_up) usable_.assign_and(attempt.base, attempt.request.available);
  const NodeSet& usable = all_up ? up_of_base().nodes : usable_;
  if (all_there && could_run(usable)) {
    outcome.result = PlacementResult::kBusy;
    outcome.message = describe_busy(attempt);
  } else if (all_there && could_run(attempt.base)) {
    outcome.result = PlacementResult::kNotAvailable;
    outcome.message = "nodes that it needs are down, drained or kept for jobs ahead of it";
  } else {
    outcome.result = PlacementResult::kNever;
    outcome.message = describe_never(attempt);
  }
  outcome.allocation.reset();
  outcome.victims.clear();
}

namespace {

// Returns "4 GPUs of type a100", "1 nic".
std::string words_for(const DeviceCount& devices) {
  const bool is_gpu = devices.kind.name == "gpu";
  std::string text = std::to_string(devices.count) + " " + (is_gpu ? "GPU" : devices.kind.name);
  if (is_gpu && devices.count != 1) text += "s";
  return text + (devices.kind.type.empty() ? "" : " of type " + devices.kind.type);
}

std::string words_for(const Devices& devices) {
  std::string text;
  for (const DeviceCount& each : devices) text += (text.empty() ? "" : " and ") + words_for(each);
  return text;
}

std::string count_of_nodes(int count) {
  return std::to_string(count) + (count == 1 ? " node" : " nodes");
}

}  // namespace

// For users: the first of the things that a job asks of each node which too few nodes have. The
// order is that of in_base().
std::string Placement::describe_never(const Attempt& attempt) const {
  const int wanted = attempt.counts.min;
  const NodeSet& all = cluster_.partition(base_.partition).nodes;
  int allowed = 0;
  int large = 0;
  int equipped = 0;
  int roomy = 0;
  for (int rank = all.next(0); rank >= 0; rank = all.next(rank + 1)) {
    const NodeSpec& node = cluster_.spec_at(rank);
    if (base_.excluded.test(rank)) continue;
    ++allowed;
    if (!hardware_fits(node, *base_.request, base_.memory)) continue;
    ++large;
    if (!has_devices(node, *base_.request)) continue;
    ++equipped;
    if (capacity_fits(node, *base_.request, base_.memory)) ++roomy;
  }
  const std::string text = "partition " + attempt.partition.config.name +
                           " can never hold it: it needs " + count_of_nodes(wanted);
  const auto too_few = [&](int count, const char* what) {
    return text + ", and " + std::to_string(count) + " of " + std::to_string(all.count()) + " " +
           what;
  };
  if (cluster_.parameters().select == SelectType::kLinear && shares_devices(*base_.request)) {
    return "partition " + attempt.partition.config.name +
           " can never hold it: select/linear has devices of each node alone; ask for them by "
           "--gres";
  }
  if (base_.required_count < static_cast<int>(base_.request->required_nodes.size())) {
    return text + ", and not all nodes that it names exist";
  }
  if (!all.contains(base_.required)) {
    return text + ", and not all nodes that it names are in this partition";
  }
  if (allowed < wanted) return too_few(allowed, "are not excluded");
  if (large < wanted) return too_few(large, "have the CPUs that it asks for");
  if (equipped < wanted) {
    return too_few(equipped, "have ") + words_for(least_devices(*base_.request)) +
           ", which it asks for on each";
  }
  if (roomy < wanted) return too_few(roomy, "have the memory and the disk that it asks for");
  if (base_.count < wanted) return too_few(base_.count, "have the features that it asks for");
  return text + ", and its nodes have no room for all that it asks for";
}

// For users: how many nodes are wanted, could hold the job and are idle; and what else stands in
// the way.
std::string Placement::describe_busy(const Attempt& attempt) {
  const NodeSet& base = attempt.base;
  std::string text = "needs " + count_of_nodes(attempt.counts.min) + "; of " +
                     std::to_string(up_of_base().count) + " that could hold it " +
                     std::to_string(idle_of_up().count) + " are idle";
  if (preempt::enabled(cluster_) && !attempt.candidates.empty()) {
    text += ", " + std::to_string(attempt.candidates.size()) +
            " jobs could be preempted and are not enough";
  }
  const int full = usage_.any_full() ? base.count_and(groups_.up(), usage_.full()) : 0;
  if (full > 0) {
    text += ", " + std::to_string(full) + " have no room for another pod";
  }
  // A job that takes idle nodes only would not come to one that is in use, whatever memory is left.
  if (!takes_only_idle(attempt)) text += describe_devices() + describe_memory();
  return text;
}

// Returns how many nodes have the devices free that the job asks of each; if none has enough of a
// kind, how many of it the best one has; if all together have too few for the job, how many these
// are.
std::string Placement::describe_devices() {
  const Devices wanted = least_devices(*base_.request);
  if (wanted.empty()) return "";
  int free = 0;
  std::vector<int> most(wanted.size());
  const Devices& of_job = base_.request->devices_of_job;
  std::vector<int> in_all(of_job.size());
  const NodeSet& up = up_of_base().nodes;
  for (int rank = up.next(0); rank >= 0; rank = up.next(rank + 1)) {
    const NodeIndex node = cluster_.node_at(rank);
    Devices held;
    for (const Job* const job : usage_.jobs_on(node)) {
      if (job->completing()) continue;  // its devices are given back
      for (const DeviceCount& use : devices_on(job->allocation, node)) {
        add_devices(held, use.kind, use.count);
      }
    }
    const Devices left = devices_left(cluster_.node(node).devices, held);
    if (have_devices(left, wanted)) ++free;
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      while (most[i] < wanted[i].count && have_devices(left, {{wanted[i].kind, most[i] + 1}})) {
        ++most[i];
      }
    }
    for (std::size_t i = 0; i < of_job.size(); ++i) in_all[i] += count_of(left, of_job[i].kind);
  }
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    if (most[i] == wanted[i].count) continue;
    return "; needs " + words_for(wanted[i]) +
           (base_.request->min_nodes > 1 ? " on each node" : " on one node") +
           "; the largest has " + std::to_string(most[i]) + " free";
  }
  for (std::size_t i = 0; i < of_job.size(); ++i) {
    if (in_all[i] >= of_job[i].count) continue;
    return "; needs " + words_for(of_job[i]) + " in all; " + std::to_string(in_all[i]) +
           (in_all[i] == 1 ? " is free" : " are free");
  }
  return "; " + std::to_string(free) + (free == 1 ? " has " : " have ") + words_for(wanted) +
         " free";
}

// Names one job: they have mostly the same cause, which its user or an administrator can remove.
std::string Placement::describe_memory() {
  const NodeSet& up = up_of_base().nodes;
  const NodeSet& taken = usage_.memory_taken();
  const int first = up.next_common(0, taken);
  if (first < 0) return "";
  const Job* const holder = usage_.memory_holder(cluster_.node_at(first));
  if (holder == nullptr) return "";
  return "; " + std::to_string(up.count_and(taken)) + " have no memory left: job " +
         to_string(holder->id) + " asked for none and so was given all of " +
         cluster_.spec_at(first).name + "'s";
}

}  // namespace sched
