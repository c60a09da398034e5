// Questions where no two jobs share a core: when the nodes of a job are ripe.
#include <algorithm>
#include <limits>
#include <utility>

#include "scheduler/backfill/lookahead_search.h"

namespace sched {

// Returns false if the job may take no allocated one, whichever priorities they have: then its
// question is what it is without preemption. One job of each partition and QOS is enough to ask
// about.
bool Lookahead::may_preempt_any(const Job& job, PartitionIndex partition) {
  if (!preempt::enabled(cluster_)) return false;
  if (!victim_kinds_) {
    victim_kinds_.emplace();
    const auto is_like = [](const Job& a, const Job& b) {
      return a.partition == b.partition && a.request.qos == b.request.qos;
    };
    for (const auto& each : books_.allocated()) {
      const Job* const allocated = each.second;
      const bool is_known = std::ranges::any_of(
          *victim_kinds_, [&](const Job* known) { return is_like(*known, *allocated); });
      if (!is_known) victim_kinds_->push_back(allocated);
    }
  }
  return std::ranges::any_of(*victim_kinds_, [&](const Job* victim) {
    return preempt::kind_may_take(cluster_, job, partition, *victim);
  });
}

// As recorded, the start is the end of a batch and not of a node; and with preemption a node is not
// only ripe when jobs have ended.
Lookahead::Ripening* Lookahead::ripening(const Job& job, PartitionIndex partition,
                                         bool may_preempt) {
  if (cluster_.parameters().as_recorded || !counts_cores()) return nullptr;
  if (may_preempt && may_preempt_any(job, partition)) return nullptr;
  read_ends();
  const Least least = Needs{*this, job, partition}.least;
  return &ripenings_.try_emplace(least, *this, least).first->second;
}

void Lookahead::begin_ripe_trial() {
  release();
  trial_ = books_.selector().begin_trial();
  is_ripe_trial_ = true;
  ripe_gone_.clear();
  for (const int rank : gone_ranks_) gone_on_[static_cast<std::size_t>(rank)] = {};
  gone_ranks_.clear();
}

Lookahead::Gone& Lookahead::gone_on(int rank) {
  Gone& gone = gone_on_[static_cast<std::size_t>(rank)];
  if (gone.last == Gone{}.last && gone.whole == Gone{}.whole) gone_ranks_.push_back(rank);
  return gone;
}

void Lookahead::take_away_ripe(const Leave& leave) {
  if (!ripe_gone_.insert(leave.order).second) return;
  trial_->remove(leave.job->select, Selector::Trial::Keep::kNothing);
  for_each_rank(cluster_, leave.job->allocation, [&](int rank, const NodeAllocation&) {
    Gone& gone = gone_on(rank);
    gone.last = std::max(gone.last, leave.at);
  });
}

// The books without the jobs that end by then on the nodes that are ripe. What the trial of the
// question before took away on other nodes does not matter. On these nodes it may lack jobs that
// this question takes away too, but none that end later; then a new trial begins.
std::optional<Lookahead::Answer> Lookahead::ask_ripe(const Search& search, Ripening& ripening,
                                                     const Enough& enough) {
  const base::Instant at = enough.at;
  ripe_nodes_ = cluster_.no_nodes();
  const auto node_count = static_cast<std::size_t>(cluster_.node_count());
  if (gone_on_.size() != node_count) {
    gone_on_.assign(node_count, {});
    gone_ranks_.clear();
  }
  note_leaves(at);
  bool goes_on = is_ripe_trial_;
  for (std::size_t i = 0; i < enough.count; ++i) {
    const Ripening::Node* const ripe = ripening.node(i);
    if (ripe == nullptr || ripe->at > at) break;
    // Only nodes in question, and only the jobs on these: in a large cluster most of those that end
    // by then are elsewhere.
    if (!search.question.nodes.test(ripe->rank)) continue;
    ripe_nodes_.set(ripe->rank);
    goes_on = goes_on && gone_on_[static_cast<std::size_t>(ripe->rank)].last <= at;
  }
  if (!goes_on) begin_ripe_trial();
  // In job-table order. A job may be on several of the nodes; it is taken away once.
  list_leaves(ripe_nodes_, at);
  for (const Leave& leave : gone_first_) take_away_ripe(leave);
  return question_selector(search, books_.selector(), ripe_nodes_, at);
}

// Into gone_first_: what is still to be taken away of what leaves these nodes by then.
void Lookahead::list_leaves(const NodeSet& nodes, base::Instant at) {
  gone_first_.clear();
  for (int rank = nodes.next(0); rank >= 0; rank = nodes.next(rank + 1)) {
    Gone& gone = gone_on(rank);
    if (std::exchange(gone.whole, std::max(gone.whole, at)) >= at) continue;
    for (std::ptrdiff_t last = last_leave_[static_cast<std::size_t>(rank)]; last >= 0;) {
      const Leave& leave = leaves_[static_cast<std::size_t>(last)];
      if (leave.at <= at) gone_first_.push_back(leave);
      last = leave.before;
    }
  }
  std::ranges::sort(gone_first_, {}, &Leave::order);
}

// The first instant at which so many nodes are ripe as the job needs, and have the cores and the
// memory that it needs in all: on nodes that are not ripe it has none.
Lookahead::Enough Lookahead::earliest(const Search& search, Ripening& ripening) {
  const Needs needs{*this, search.question.job, search.question.partition};
  const NodeSet& nodes = search.question.nodes;
  Enough enough{.at = base::kNever, .count = 0};
  int missing = needs.nodes;
  for (std::size_t i = 0; enough.count == 0; ++i) {
    const Ripening::Node* const ripe = ripening.node(i);
    if (ripe == nullptr) return enough;
    if (nodes.test(ripe->rank) && --missing <= 0) enough = {ripe->at, i + 1};
  }
  // Mostly these have enough in all with that, and it need not be counted.
  const bool has_cores = needs.cores <= std::int64_t{needs.nodes} * needs.of_node;
  if (has_cores && needs.memory <= needs.nodes * needs.least.memory.charge(needs.least.cpus, 0)) {
    return enough;
  }
  std::int64_t cores = 0, memory = 0;
  for (std::size_t i = 0; cores < needs.cores || memory < needs.memory; ++i) {
    const Ripening::Gain* const gain = ripening.gain(i);
    if (gain == nullptr) return {.at = base::kNever, .count = 0};
    if (!nodes.test(gain->rank)) continue;
    cores += gain->more.cores;
    memory += gain->more.memory;
    enough.at = std::max(enough.at, gain->at);
    enough.count = std::max(enough.count, gain->ripe);
  }
  return enough;
}

// Exact starts where cores can be counted: the job cannot start earlier, and mostly it can then.
//
// Of very many nodes that ripen together the first ones are asked about at first: to take away all
// the jobs that end at one instant would hold up everything else.
Lookahead::Answer Lookahead::when_ripe(Search& search, Ripening& ripening) {
  const Enough first = earliest(search, ripening);
  const base::Instant at = first.at;
  if (at == base::kNever) return {};
  if (at > now_ && search.question.now_only) return {.kind = Answer::Kind::kLater};
  if (search.question.until && at > *search.question.until) return {.kind = Answer::Kind::kLater};
  search.is_future = at > now_;
  const Enough some{at, std::max(first.count, together_max_)};
  const Ripening::Node* const more = search.is_future ? ripening.node(some.count) : nullptr;
  if (more != nullptr && more->at <= at) {
    if (auto answer = ask_ripe(search, ripening, some)) return *std::move(answer);
  }
  // If it does not fit although enough nodes are ripe (sockets, or tasks that need more than the
  // least of each node), the general search goes on from there, end by end.
  const Enough all{at, std::numeric_limits<std::size_t>::max()};
  if (auto answer = ask_ripe(search, ripening, all)) return *std::move(answer);
  if (search.question.now_only) return {.kind = Answer::Kind::kLater};
  search.count.emplace(*this, search.question);
  std::size_t from = 0;
  for (; from < ends_.size() && guess_end(ends_[from]) <= at; ++from) {
    search.count->add(*ends_[from].job);
  }
  return after_ends(search, from);
}

}  // namespace sched
