#include "scheduler/backfill/lookahead.h"

#include <algorithm>
#include <chrono>
#include <limits>
#include <utility>

#include "scheduler/model/allocation_nodes.h"
#include "scheduler/model/asked_product.h"
#include "scheduler/place/node_counts.h"
#include "scheduler/place/sharing.h"
#include "scheduler/select/memory_demand.h"

namespace sched {
namespace {

using Keep = Selector::Trial::Keep;
using Kind = Lookahead::Answer::Kind;

constexpr base::Duration kFirstWindow = std::chrono::seconds{30};
constexpr int kRipe = std::numeric_limits<int>::min();
// So often nodes without room for the job's pods are left out.
constexpr int kRoomRoundsMax = 16;

// As recorded: the end of the half minute of Slurm's clock in which a job ends; the middle of the
// half minute after its end if nothing says what the clock showed.
base::Instant half_minute_after(const ClusterParameters& parameters, base::Instant end) {
  if (!parameters.recorded_clock) return end + kFirstWindow / 2;
  const base::Instant on_clock = end + *parameters.recorded_clock;
  return base::slot_begin(base::slot_of(on_clock, kFirstWindow) + 1, kFirstWindow) -
         *parameters.recorded_clock;
}

}  // namespace

// The least that a job needs. Divided by the most threads that any core there has, so that cores
// stay a lower bound: a job that is refused by it cannot fit.
struct Lookahead::Needs {
  Needs(Lookahead& lookahead, const Job& job, PartitionIndex index) {
    const Cluster& cluster = lookahead.cluster_;
    const JobRequest& asked = job.request;
    const NodeCounts counts = node_counts(cluster, asked, index);
    const Partition& partition = cluster.partition(index);
    const Hardware& most = lookahead.hardware(index);
    const auto in_cores = [threads = most.threads](std::int64_t cpus) {
      return (cpus + threads - 1) / threads;
    };
    whole = resolve_sharing(cluster.parameters().select, partition, asked.sharing).whole_nodes;
    nodes = counts.min;
    nodes_max = std::max(counts.min, counts.max);
    const int of_task = asked.overcommit ? 1 : std::max(1, asked.cpus_per_task);
    const std::int64_t cpus =
        asked.overcommit ? counts.min : std::int64_t{tasks_of(asked, counts.min)} * of_task;
    cores = in_cores(cpus);
    const int tasks = asked.overcommit ? 1 : std::max(1, asked.tasks_per_node.value_or(1));
    // What the other nodes cannot have, each of them must.
    const std::int64_t others = std::int64_t{nodes_max - 1} * most.cpus;
    const int cpus_of_node =
        clamped(std::max<std::int64_t>({1, asked_product(of_task, tasks), cpus - others}));
    of_node = static_cast<int>(in_cores(cpus_of_node));
    const CountedDemand demand =
        memory_demand(cluster.parameters(), partition.config, asked.memory).memory;
    least = {.cores = whole ? 0 : of_node, .cpus = whole ? 0 : cpus_of_node, .memory = demand};
    if (demand.per == CountedPer::kCpu) memory = demand.charge(clamped(cpus), 0);
  }
  static int clamped(std::int64_t cpus) {
    return static_cast<int>(std::min<std::int64_t>(cpus, kAskedMax));
  }

  bool whole = false;  // all cores of each node
  int of_node = 1;     // else so many
  int nodes = 1, nodes_max = 1;
  std::int64_t cores = 1;   // in all
  std::int64_t memory = 0;  // in all, where it is charged for each CPU; MiB
  Least least;
};

// Free cores of the nodes in question, as jobs leave. A job that does not fit by this count does
// not fit.
struct Lookahead::Count {
  Count(Lookahead& lookahead, const Question& question)
      : cluster{lookahead.cluster_},
        nodes{question.nodes},
        needs{lookahead, question.job, question.partition},
        free{lookahead.free_} {
    for (int rank = nodes.next(0); rank >= 0; rank = nodes.next(rank + 1)) {
      const int here = free[static_cast<std::size_t>(rank)].cores;
      total += here;
      if (here >= needed_on(rank)) ++ready;
    }
  }

  int needed_on(int rank) const {
    return needs.whole ? cluster.spec_at(rank).cores() : needs.of_node;
  }
  // The job leaves its nodes.
  void add(const Job& job) {
    if (job.user_suspended) return;  // its cores are free already
    for_each_rank(cluster, job.allocation, [&](int rank, const NodeAllocation& use) {
      if (!nodes.test(rank)) return;
      int& here = free[static_cast<std::size_t>(rank)].cores;
      const int needed = needed_on(rank), cores = use.cores.count();
      // Counted when a node crosses what is needed, once; jobs only leave.
      if (here < needed && here + cores >= needed) ++ready;
      here += cores;
      total += cores;
    });
  }
  // Necessary, not sufficient: memory, sockets and stacking are the selector's to judge.
  bool may_fit() const { return ready >= needs.nodes && total >= needs.cores; }

  const Cluster& cluster;
  const NodeSet& nodes;
  const Needs needs;
  std::vector<Free> free;  // by rank
  int ready = 0;           // nodes that have what is needed on each
  std::int64_t total = 0;  // free cores
};

// One will_run, for one way of sharing.
struct Lookahead::Search {
  const Question& question;
  const SharingStatus& sharing;
  std::optional<Count> count;  // nothing where cores cannot be counted
  RowRoom* room = nullptr;     // there, if jobs may be stacked
  RowRoom::Needs room_needs{};
  std::optional<std::size_t>* floor = nullptr;  // of floors_
  // By the room, with fewer of ends_ gone the job does not fit. At first only whether that is 0.
  std::size_t least_gone = 0;
  bool has_victims = false;  // some of ends_ are marked
  const Victims* victims = nullptr;  // these: they are taken away from the beginning
  base::Duration window = kFirstWindow;        // of the next batch
  std::optional<base::Instant> windows_begin;  // as recorded
  bool takes_extra_row = false;
  bool is_future = false;
  std::optional<std::size_t> refused{};  // with so many of ends_ gone, and fewer

  void forget_room() {
    room = nullptr;
    least_gone = 0;
  }
  // With so many of ends_ gone. Necessary, not sufficient.
  bool may_fit(std::size_t gone) const {
    return (!count || count->may_fit()) && gone >= least_gone;
  }
};

// Cost: the partition's nodes, once for each configuration.
const Lookahead::Hardware& Lookahead::hardware(PartitionIndex index) {
  if (std::exchange(hardware_version_, cluster_.configuration_version()) !=
      cluster_.configuration_version()) {
    hardware_.clear();
  }
  if (hardware_.size() <= index.index()) hardware_.resize(index.index() + 1);
  Hardware& most = hardware_[index.index()];
  if (most.threads > 0) return most;
  most.threads = 1;
  for (const NodeIndex node : cluster_.partition(index).nodes_ranked) {
    const NodeSpec& spec = cluster_.node(node);
    most.cpus = std::max(most.cpus, spec.cpus);
    most.threads = std::max(most.threads, spec.cpus / std::max(1, spec.cores()));
  }
  return most;
}

void Lookahead::begin(base::Instant now) {
  end();
  // Two steps of one pass mostly find the books as they were, and the ends need not be read again.
  // Ends that follow from the turns of the gang are never kept: a turn that passed has moved them.
  const bool is_later = std::exchange(now_, now) != now;
  if (is_later) forget_ripe();  // an overdue job's end is guessed
  const bool same = ends_version_ == books_.version() && !(is_later && !unsettled_.empty()) &&
                    !cluster_.parameters().gang;
  if (!same) changed();
}

void Lookahead::end() {
  release();
}

// A trial changes the selector's books and puts them back when it ends. No other part may look at
// them, or change them, while it lasts.
void Lookahead::release() {
  trial_.reset();
  gone_ = 0;
  is_ripe_trial_ = false;
}

void Lookahead::changed() {
  has_ends_ = false;
  rooms_.clear();
  floors_.clear();
  refusals_.clear();
  victim_kinds_.reset();
  preempted_.clear();
  copies_.clear();
  victim_copies_.clear();
}

// A start is the usual change within a pass. Its end is put into the order, instead of reading all
// ends anew for each job that the backfill starts.
void Lookahead::started(const Job& job) {
  ends_version_ = books_.version();
  forget_ripe();
  victim_kinds_.reset();
  preempted_.clear();
  // Copies of the books are made where cores cannot be counted.
  if (!has_ends_ || !counts_cores_) return changed();
  const End end = end_of(job);
  ends_.insert(std::upper_bound(ends_.begin(), ends_.end(), end, ends_before), end);
  note_if_unsettled(end);
  count_free(job, -1);
}

// By their ends; those that end together in the order of the job table.
bool Lookahead::ends_before(const End& a, const End& b) {
  return a.at != b.at ? a.at < b.at : a.order < b.order;
}

// What the job gives back on this node. A job that its user has suspended keeps its memory alone
// (R5.2).
Lookahead::Free Lookahead::freed_on(const Job& job, const NodeAllocation& use) {
  return {.cores = job.user_suspended ? 0 : use.cores.count(), .memory = use.memory.value()};
}

void Lookahead::Free::add(const Free& more, int sign) {
  cores += sign * more.cores;
  memory += sign * more.memory;
}

void Lookahead::count_free(const Job& job, int sign) {
  for_each_rank(cluster_, job.allocation, [&](int rank, const NodeAllocation& use) {
    free_[static_cast<std::size_t>(rank)].add(freed_on(job, use), sign);
  });
}

// Counted from the jobs that are there, and not by what came and went: the log of moves names
// nodes, and not how often or why.
void Lookahead::recount_free(NodeIndex node) {
  if (!cluster_.exists(node)) return;
  Free free{.cores = cluster_.node(node).cores()};
  for (const Job* const job : books_.usage().jobs_on(node)) {
    if (job->completing()) continue;
    for (const NodeAllocation& use : job->allocation.nodes) {
      if (use.node == node) free.add(freed_on(*job, use), -1);
    }
  }
  free_[static_cast<std::size_t>(cluster_.rank(node))] = free;
}

base::Instant Lookahead::expected_end(const Job& job) {
  const base::Duration limit = job.time_limit.value_or(kUnlimitedTime);
  base::Instant at = turns_.expected_end(job, limit, now_ + cluster_.parameters().backfill.window);
  // As recorded: what moves the end of a job that goes on after its suspension is its time limit.
  if (cluster_.parameters().as_recorded && !job.time_limit && job.start_time) {
    at = *job.start_time + kUnlimitedTime;
  }
  if (job.notice) at = std::min(at, job.notice->until);  // 7.8: its end was moved
  // It was told to end: it leaves at the end of its grace time, whatever its limit is.
  if (job.ending) at = std::min(at, job.ending->grace_end);
  at = std::min(at, now_ + 2 * kUnlimitedTime);  // one that never runs ends after all others
  return whole_second(cluster_.parameters(), at);
}

Lookahead::End Lookahead::end_of(const Job& job) {
  End end{.at = expected_end(job), .order = job.table_order, .job = &job};
  const std::vector<NodeAllocation>& nodes = job.allocation.nodes;
  if (nodes.size() == 1 && cluster_.exists(nodes.front().node)) {
    end.rank = cluster_.rank(nodes.front().node);
    end.freed = freed_on(job, nodes.front());
  }
  return end;
}

// Calls visit(rank, freed) for each node that the job leaves, with what it gives back.
template <typename Visit>
void Lookahead::for_each_node(const End& end, const Visit& visit) const {
  if (end.rank >= 0) return visit(end.rank, end.freed);
  for_each_rank(cluster_, end.job->allocation, [&](int rank, const NodeAllocation& use) {
    visit(rank, freed_on(*end.job, use));
  });
}

// All ends up to this instant, and maybe more, come to be in leaves_.
void Lookahead::note_leaves(base::Instant until) {
  last_leave_.resize(static_cast<std::size_t>(cluster_.node_count()), -1);
  for (; leaves_end_ < ends_.size() && ends_[leaves_end_].at <= until; ++leaves_end_) {
    const End& end = ends_[leaves_end_];
    const base::Instant at = guess_end(end);
    for_each_node(end, [&](int rank, const Free&) {
      std::ptrdiff_t& last = last_leave_[static_cast<std::size_t>(rank)];
      leaves_.push_back({at, end.order, end.job, last});
      last = static_cast<std::ptrdiff_t>(leaves_.size()) - 1;
    });
  }
}

// The ends are others now, or are guessed anew.
void Lookahead::forget_ripe() {
  ripenings_.clear();
  leaves_.clear();
  leaves_end_ = 0;
  last_leave_.clear();
}

// The end of a job that has not begun to run, or that ends after all others, moves with the time.
void Lookahead::note_if_unsettled(const End& end) {
  const base::Instant last = now_ + 2 * kUnlimitedTime - std::chrono::seconds{1};
  if (!end.job->ready || end.at >= last) unsettled_.push_back(end.order);
}

// Where no two jobs share a core, the free cores of a node are its cores without those of its jobs.
// With gang, or in a partition whose jobs are stacked, a core can be taken and yet be offered.
bool Lookahead::counts_cores() const {
  const auto& partitions = cluster_.partitions();
  return !cluster_.parameters().gang &&
         std::all_of(partitions.begin(), partitions.end(), [&](PartitionIndex partition) {
           return cluster_.partition(partition).max_share <= 1;
         });
}

void Lookahead::read_ends() {
  if (std::exchange(has_ends_, true)) return;
  ends_version_ = books_.version();
  forget_ripe();
  const bool as_before = ends_configuration_ == cluster_.configuration_version();
  if (books_.moves().all || !as_before || cluster_.parameters().gang) {
    read_all_ends();
  } else if (!books_.moves().jobs.empty() || !unsettled_.empty()) {
    read_moved_ends();
  }
  books_.forget_moves();
}

// Jobs that are completing have given their cores back already.
void Lookahead::read_all_ends() {
  ends_configuration_ = cluster_.configuration_version();
  counts_cores_ = counts_cores();
  ends_.clear();
  unsettled_.clear();
  free_.clear();
  for (int rank = 0; rank < cluster_.node_count(); ++rank) {
    free_.push_back({.cores = cluster_.spec_at(rank).cores()});
  }
  for (const auto& [order, job] : books_.allocated()) {
    if (job->completing()) continue;
    ends_.push_back(end_of(*job));
    note_if_unsettled(ends_.back());
    count_free(*job, -1);
  }
  std::sort(ends_.begin(), ends_.end(), ends_before);
}

// 1. The ends of jobs that moved leave, and come back as they are now.
// 2. Their nodes are counted anew.
void Lookahead::read_moved_ends() {
  std::vector<std::int64_t> moved = books_.moves().jobs;  // 1
  moved.insert(moved.end(), unsettled_.begin(), unsettled_.end());
  unsettled_.clear();
  std::sort(moved.begin(), moved.end());
  moved.erase(std::unique(moved.begin(), moved.end()), moved.end());
  std::erase_if(ends_, [&](const End& end) {
    return std::binary_search(moved.begin(), moved.end(), end.order);
  });
  const auto kept = static_cast<std::ptrdiff_t>(ends_.size());
  for (const std::int64_t order : moved) {
    // Looked up by table order, because the record may be gone: a Moves entry outlives its job.
    const auto found = books_.allocated().find(order);
    if (found == books_.allocated().end() || found->second->completing()) continue;
    ends_.push_back(end_of(*found->second));
    note_if_unsettled(ends_.back());
  }
  std::sort(ends_.begin() + kept, ends_.end(), ends_before);
  std::inplace_merge(ends_.begin(), ends_.begin() + kept, ends_.end(), ends_before);
  for (const NodeIndex node : books_.moves().nodes) recount_free(node);  // 2
}

// The ends that are kept from pass to pass by way of JobBooks::moves() must be those that reading
// all jobs anew gives.
std::string Lookahead::check_invariants() {
  if (ends_version_ == 0) return {};  // no pass yet
  changed();
  read_ends();
  const std::vector<End> kept = ends_;
  const std::vector<Free> free_kept = free_;
  read_all_ends();
  const auto same = [](const End& a, const End& b) {
    return a.at == b.at && a.order == b.order && a.job == b.job && a.rank == b.rank &&
           a.freed == b.freed;
  };
  if (!std::equal(kept.begin(), kept.end(), ends_.begin(), ends_.end(), same)) {
    return "the expected ends are not those of the jobs";
  }
  if (counts_cores_ && free_kept != free_) return "what is free is not counted right";
  return {};
}

// As recorded, and of select/linear, which counts jobs and not cores, nothing is known.
RowRoom* Lookahead::room_in(PartitionIndex partition) {
  const ClusterParameters& parameters = cluster_.parameters();
  if (parameters.select != SelectType::kConsTres || parameters.as_recorded) return nullptr;
  const auto [room, is_new] = rooms_.try_emplace(partition, cluster_, partition);
  if (is_new) {
    for (const auto& [order, job] : books_.allocated()) {
      if (!job->completing()) room->second.enter(*job);
    }
  }
  return &room->second;
}

void Lookahead::ask_room(Search& search) {
  search.room = room_in(search.question.partition);
  if (search.room == nullptr) return;
  const Needs needs{*this, search.question.job, search.question.partition};
  search.room_needs = {.nodes_min = needs.nodes,
                       .nodes_max = needs.nodes_max,
                       .of_node = needs.of_node,
                       .whole = needs.whole,
                       .cores = needs.cores,
                       .cpus = needs.least.cpus,
                       .memory = needs.least.memory};
  const NodeSet& all = cluster_.partition(search.question.partition).nodes;
  const auto [floor, is_new] =
      floors_.try_emplace({search.question.partition, search.room_needs}, std::nullopt);
  if (is_new && search.room->may_fit(all, search.room_needs, 0)) floor->second = 0;
  search.floor = &floor->second;
  const bool may_fit_now =
      floor->second == 0 && search.room->may_fit(search.question.nodes, search.room_needs, 0);
  search.least_gone = may_fit_now ? 0 : 1;
}

// By the room, which learns who leaves as far as it is asked.
bool Lookahead::may_fit(const Search& search, const NodeSet& nodes, std::size_t gone) {
  RowRoom& room = *search.room;
  while (room.gone_count() < gone) room.leave(*ends_[room.gone_count()].job);
  return room.may_fit(nodes, search.room_needs, gone);
}

// How many of ends_ must be gone at least, if it is known that it is no fewer than `least`. The
// room only grows, so it is found by halving; first by doubling, because it is mostly small.
std::size_t Lookahead::least_gone(const Search& search, const NodeSet& nodes, std::size_t least) {
  const std::size_t never = ends_.size() + 1;
  std::size_t enough = least;
  std::size_t step = 1;
  for (; enough < never && !may_fit(search, nodes, enough); step *= 2) {
    least = enough + 1;
    enough = std::min(enough + step, never);
  }
  while (least < enough) {
    const std::size_t middle = least + (enough - least) / 2;
    if (may_fit(search, nodes, middle)) {
      enough = middle;
    } else {
      least = middle + 1;
    }
  }
  return enough;
}

// On all nodes of the partition first, once for all jobs that need the same: with fewer nodes no
// fewer ends are enough, and for most questions that is all that has to be known.
void Lookahead::find_least_gone(Search& search) {
  if (search.room == nullptr || search.least_gone == 0) return;
  if (!*search.floor) {
    const NodeSet& all = cluster_.partition(search.question.partition).nodes;
    *search.floor = least_gone(search, all, 1);
  }
  search.least_gone = std::max<std::size_t>(**search.floor, 1);
  if (is_in_vain(search)) return;
  const NodeSet& nodes = search.question.nodes;
  if (search.question.until) {
    // Mostly it does not fit by then, and when it does is of no use.
    const auto later = std::ranges::upper_bound(ends_, *search.question.until, {}, &End::at);
    const auto by_then = static_cast<std::size_t>(later - ends_.begin());
    if (!may_fit(search, nodes, by_then)) {
      search.least_gone = by_then + 1;
      return;
    }
  }
  search.least_gone = least_gone(search, nodes, search.least_gone);
}

// Returns true if the job cannot start by Question::until: what is known of its room, and of what
// others were refused, is enough for that.
bool Lookahead::is_in_vain(const Search& search) const {
  if (cluster_.parameters().as_recorded || !search.question.until) return false;
  std::size_t least = search.least_gone;
  if (!search.has_victims && search.refused) least = std::max(least, *search.refused + 1);
  if (least == 0) return false;
  return least > ends_.size() || ends_[least - 1].at > *search.question.until;
}

// The jobs that the one in question may preempt (7.3).
Lookahead::Preempted Lookahead::work_out_preempted(const Question& question) {
  std::vector<const Job*> allocated;
  for (const auto& [order, job] : books_.allocated()) allocated.push_back(job);
  const preempt::CandidateList list =
      preempt::candidates(cluster_, allocated, question.job, question.partition, now_);
  Preempted preempted;
  if (list.candidates.empty()) return preempted;
  read_ends();
  std::map<const SelectJob*, std::size_t> end_of;
  for (std::size_t i = 0; i < ends_.size(); ++i) end_of.emplace(&ends_[i].job->select, i);
  for (const Candidate& candidate : list.candidates) {
    const auto end = end_of.find(candidate.job);
    if (end == end_of.end()) continue;
    const bool suspends = candidate.mode == PreemptMode::kSuspend;
    // A suspended victim gives up its cores only: its memory stays taken (7.6.3).
    preempted.jobs.emplace_back(candidate.job, suspends ? Keep::kMemory : Keep::kNothing);
    preempted.ends.emplace_back(end->second, candidate.must_end());
    if (suspends && cluster_.parameters().preempt_type == PreemptType::kQos) {
      preempted.takes_extra_row = true;
    }
  }
  return preempted;
}

// Jobs of a kind may preempt the same ones.
const Lookahead::Preempted& Lookahead::preempted_by(const Question& question) {
  constexpr int kNoKind = -1;
  const int number = question.kind ? question.kind->number : kNoKind;
  const auto [known, is_new] = preempted_.try_emplace(number);
  if (is_new || number == kNoKind) known->second = work_out_preempted(question);
  return known->second;
}

// Marks the jobs that the one in question may preempt.
bool Lookahead::has_candidates(Search& search) {
  if (!preempt::enabled(cluster_)) return false;
  const Preempted& preempted = preempted_by(search.question);
  if (preempted.jobs.empty()) return false;
  search.has_victims = true;
  search.victims = &preempted.jobs;
  search.takes_extra_row = preempted.takes_extra_row;
  for (const auto& [index, must_end] : preempted.ends) {
    End& end = ends_[index];
    end.is_victim = true;
    end.must_end = must_end;
    if (search.count) search.count->add(*end.job);
    // The room counts them as if they stayed. One that is only suspended keeps its memory.
    if (search.room == nullptr) continue;
    const bool counts_memory = search.room_needs.memory.per != CountedPer::kNothing;
    if (search.room->counts_cores(*end.job) || (must_end && counts_memory)) search.forget_room();
  }
  return true;
}

// Leaves the books without the victims and without the first `count` of ends_.
void Lookahead::take_away(const Victims& victims, std::size_t count) {
  // A trial counts the jobs that were taken away in the order of their ends, and victims come from
  // anywhere in it.
  if (is_ripe_trial_ || (trial_ && gone_victims_ != victims)) release();
  // The last jobs taken away come back, if the selector can undo it. If it cannot, the trial begins
  // anew with the real books.
  while (gone_ > count) {
    if (ends_[gone_ - 1].is_victim || trial_->put_back()) {
      --gone_;
    } else {
      release();
    }
  }
  if (!trial_ && (gone_ < count || !victims.empty())) {
    trial_ = books_.selector().begin_trial();
    gone_victims_ = victims;
    for (const auto& [victim, keep] : victims) trial_->remove(*victim, keep);
  }
  for (; gone_ < count; ++gone_) {
    if (!ends_[gone_].is_victim) trial_->remove(ends_[gone_].job->select, Keep::kNothing);
  }
}

// The books without so many of ends_ and without the victims. Those from which none is taken are
// asked themselves, which packs them if that is due. Where jobs may be stacked, so that rows would
// be packed anew for each question, the others are copied, and kept for the next question that
// comes to as many.
Chooser& Lookahead::books_without(const Search& search, std::size_t count) {
  if (count == 0 && !search.has_victims) {
    counts_cores() ? take_away({}, 0) : release();
    return books_.selector();
  }
  const Victims none;
  const Victims& victims = search.has_victims ? *search.victims : none;
  if (counts_cores_) {
    take_away(victims, count);
    return books_.selector();
  }
  if (search.has_victims && copies_victims_ != victims) {
    victim_copies_.clear();
    copies_victims_ = victims;
  }
  Copies& copies = search.has_victims ? victim_copies_ : copies_;
  if (const auto known = copies.find(count); known != copies.end()) return *known->second;
  take_away(victims, count);
  std::unique_ptr<Chooser> copy = trial_->copy();
  if (copy == nullptr) return books_.selector();
  // A copy has some hundred bytes for each node.
  constexpr int kNodesMax = 50'000;  // in all of them
  if (copies.size() >= static_cast<std::size_t>(1 + kNodesMax / (cluster_.node_count() + 1))) {
    copies.clear();
  }
  return *copies.emplace(count, std::move(copy)).first->second;
}

// Asks if the job fits when so many jobs are gone; then it starts at `start`.
std::optional<Lookahead::Answer> Lookahead::ask(Search& search, std::size_t gone,
                                                base::Instant start) {
  if (!search.has_victims && search.refused && gone <= *search.refused) return std::nullopt;
  std::optional<Answer> answer;
  if (search.may_fit(gone)) {
    Chooser& books = books_without(search, gone);
    answer = question_selector(search, books, search.question.nodes, start);
  }
  if (!answer && !search.has_victims) search.refused = gone;
  return answer;
}

namespace {

// True if `b` cannot start where `a` cannot.
bool needs_no_less(const Lookahead::Question::Kind& b, const Lookahead::Question::Kind& a) {
  return b.number == a.number && b.nodes >= a.nodes && b.tasks * a.nodes >= a.tasks * b.nodes;
}

}  // namespace

// What others were refused, by the books as they are. Cost: O(64 × nodes / 64).
std::optional<std::size_t> Lookahead::refused_up_to(const Question& question,
                                                    const SharingStatus& sharing) const {
  std::optional<std::size_t> most;
  if (!question.kind) return most;
  for (const Refusal& known : refusals_) {
    if (most && known.gone <= *most) continue;
    if (known.may_stack != sharing.may_stack) continue;
    if (!needs_no_less(*question.kind, known.kind)) continue;
    if (known.nodes.contains(question.nodes)) most = known.gone;
  }
  return most;
}

// Refusals that say no more than this one are superfluous.
void Lookahead::note_refusal(const Search& search) {
  constexpr std::size_t kMost = 64;
  const Question& question = search.question;
  if (!question.kind || !search.refused) return;
  if (search.refused == refused_up_to(question, search.sharing)) return;
  std::erase_if(refusals_, [&](const Refusal& known) {
    return known.gone <= *search.refused && known.may_stack == search.sharing.may_stack &&
           needs_no_less(known.kind, *question.kind) && question.nodes.contains(known.nodes);
  });
  if (refusals_.size() == kMost) refusals_.erase(refusals_.begin());
  refusals_.push_back({*question.kind, search.sharing.may_stack, question.nodes, *search.refused});
}

// Returns true if an allocated job has no pods on its nodes any longer when the one in question
// starts.
bool Lookahead::is_gone_by(const Job& job, base::Instant start) const {
  // Its pods leave soon, but not at this instant.
  if (job.completing()) return start > now_;
  const auto end =
      std::find_if(ends_.begin(), ends_.end(), [&](const End& each) { return each.job == &job; });
  if (end == ends_.end()) return false;
  if (end->is_victim) return end->must_end;
  return start > now_ && guess_end(*end) <= start;
}

// Returns true if the node takes the pods that the job would have there.
bool Lookahead::has_room(const Job& job, const NodeAllocation& use, base::Instant start) const {
  const std::optional<int> left = books_.usage().pods_left(use.node);
  int missing = left ? pods_on(job.request, use) - *left : 0;
  if (missing <= 0) return true;
  for (const Job* const there : books_.usage().jobs_on(use.node)) {
    if (!is_gone_by(*there, start)) continue;
    for (const NodeAllocation& freed : there->allocation.nodes) {
      if (freed.node == use.node) missing -= pods_on(there->request, freed);
    }
  }
  return missing <= 0;
}

// Asks if the job fits on these nodes with these books. Nodes that cannot
// take its pods are left out, and it is asked again.
std::optional<Lookahead::Answer> Lookahead::question_selector(const Search& search, Chooser& books,
                                                              const NodeSet& nodes,
                                                              base::Instant start) {
  // bf_busy_nodes: promises go to nodes that are busy anyway, and idle ones stay for jobs that
  // start now.
  const bool busy_first = cluster_.parameters().backfill.busy_nodes && search.is_future;
  NodeSet usable = nodes;
  for (int round = 0; round < kRoomRoundsMax; ++round) {
    const std::optional<Allocation> found = placement_.will_run(
        books, {.job = search.question.job,
                            .partition = search.question.partition,
                            .nodes = usable,
                            .now = now_,
                            .sharing = search.sharing,
                            .takes_extra_row = search.takes_extra_row,
                            .on_any_node = search.question.on_any_node,
                            .idle_last = busy_first ? &books_.usage().idle() : nullptr});
    if (!found) return std::nullopt;
    Answer answer{.kind = Kind::kStarts, .start = start, .nodes = cluster_.no_nodes()};
    bool fits = true;
    for_each_rank(cluster_, *found, [&](int rank, const NodeAllocation& use) {
      answer.nodes.set(rank);
      if (has_room(search.question.job, use, start)) return;
      usable.reset(rank);
      fits = false;
    });
    if (fits) return answer;
  }
  return std::nullopt;
}

Lookahead::Ripening::Ripening(const Lookahead& lookahead, const Least& least)
    : lookahead_{lookahead}, least_{least}, free_{lookahead.free_} {
  for (int rank = 0; rank < lookahead.cluster_.node_count(); ++rank) {
    free_[static_cast<std::size_t>(rank)].memory += lookahead.cluster_.spec_at(rank).memory.value();
    if (is_enough(rank)) add_ripe(rank, lookahead.now_);
  }
}

bool Lookahead::Ripening::is_enough(int rank) const {
  const Free& free = free_[static_cast<std::size_t>(rank)];
  const NodeSpec& spec = lookahead_.cluster_.spec_at(rank);
  if (free.cores < (least_.cores > 0 ? least_.cores : spec.cores())) return false;
  const int cpus = least_.cpus > 0 ? least_.cpus : spec.cpus;
  return least_.memory.charge(cpus, spec.memory.value()) <= free.memory ||
         least_.memory.per == CountedPer::kNothing;
}

// A node ripens once.
void Lookahead::Ripening::add_ripe(int rank, base::Instant at) {
  Free& free = free_[static_cast<std::size_t>(rank)];
  order_.push_back({rank, at});
  gains_.push_back({rank, free, at});
  free.cores = kRipe;
}

// The next job ends.
void Lookahead::Ripening::add_end() {
  const End& end = lookahead_.ends_[next_end_++];
  const base::Instant at = lookahead_.guess_end(end);
  lookahead_.for_each_node(end, [&](int rank, const Free& freed) {
    Free& free = free_[static_cast<std::size_t>(rank)];
    if (free.cores == kRipe) return gains_.push_back({rank, freed, at});
    free.add(freed, 1);
    if (is_enough(rank)) add_ripe(rank, at);
  });
}

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
    for (const auto& [order, allocated] : books_.allocated()) {
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
  trial_->remove(leave.job->select, Keep::kNothing);
  for_each_rank(cluster_, leave.job->allocation, [&](int rank, const NodeAllocation&) {
    Gone& gone = gone_on(rank);
    gone.last = std::max(gone.last, leave.at);
  });
}

// The books without the jobs that end by then on the nodes that are ripe. What the trial of the
// question before took away on other nodes does not matter. On these nodes it may lack jobs that
// this question takes away too, but none that end later; then a new trial begins.
std::optional<Lookahead::Answer> Lookahead::ask_ripe(const Search& search, Ripening& ripening,
                                                     base::Instant at) {
  ripe_nodes_ = cluster_.no_nodes();
  const auto node_count = static_cast<std::size_t>(cluster_.node_count());
  if (gone_on_.size() != node_count) {
    gone_on_.assign(node_count, {});
    gone_ranks_.clear();
  }
  note_leaves(at);
  bool goes_on = is_ripe_trial_;
  for (std::size_t i = 0;; ++i) {
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

// The first instant at which so many nodes are ripe as the job needs, and have the cores that it
// needs in all: on nodes that are not ripe it has none.
base::Instant Lookahead::earliest(const Search& search, Ripening& ripening) {
  const Needs needs{*this, search.question.job, search.question.partition};
  const NodeSet& nodes = search.question.nodes;
  auto at = base::kNever;
  int missing = needs.nodes;
  for (std::size_t i = 0; at == base::kNever; ++i) {
    const Ripening::Node* const ripe = ripening.node(i);
    if (ripe == nullptr) return at;
    if (nodes.test(ripe->rank) && --missing <= 0) at = ripe->at;
  }
  // Mostly these have enough in all with that, and it need not be counted.
  const bool has_cores = needs.cores <= std::int64_t{needs.nodes} * needs.of_node;
  if (has_cores && needs.memory <= needs.nodes * needs.least.memory.charge(needs.least.cpus, 0)) {
    return at;
  }
  std::int64_t cores = 0, memory = 0;
  for (std::size_t i = 0; cores < needs.cores || memory < needs.memory; ++i) {
    const Ripening::Gain* const gain = ripening.gain(i);
    if (gain == nullptr) return base::kNever;
    if (!nodes.test(gain->rank)) continue;
    cores += gain->more.cores;
    memory += gain->more.memory;
    at = std::max(at, gain->at);
  }
  return at;
}

// Exact starts where cores can be counted: the job cannot start earlier, and mostly it can then.
Lookahead::Answer Lookahead::when_ripe(Search& search, Ripening& ripening) {
  const base::Instant at = earliest(search, ripening);
  if (at == base::kNever) return {};
  if (at > now_ && search.question.now_only) return {.kind = Kind::kLater};
  if (search.question.until && at > *search.question.until) return {.kind = Kind::kLater};
  search.is_future = at > now_;
  // If it does not fit although enough nodes have the cores (memory, sockets, or tasks that need
  // more than the least of each node), the general search goes on from there, end by end.
  if (auto answer = ask_ripe(search, ripening, at)) return *std::move(answer);
  if (search.question.now_only) return {.kind = Kind::kLater};
  search.count.emplace(*this, search.question);
  std::size_t from = 0;
  for (; from < ends_.size() && guess_end(ends_[from]) <= at; ++from) {
    search.count->add(*ends_[from].job);
  }
  return after_ends(search, from);
}

// The expected end of a job that should have ended already.
base::Instant Lookahead::guess_end(const End& last) const {
  if (last.at > now_) return last.at;
  const ClusterParameters& parameters = cluster_.parameters();
  base::Instant guess = now_;
  if (parameters.select != SelectType::kLinear) {
    const auto& own = cluster_.partition(*last.job->partition).config.over_time_limit;
    const auto over = own ? own : parameters.over_time_limit;
    // With OverTimeLimit the job may go on for so long (R8.3). Without it the job is taken to run
    // for its whole limit once more.
    guess = over ? last.at + parameters.kill_wait + *over
                 : now_ + last.job->time_limit.value_or(kUnlimitedTime);
  }
  return std::max(guess, now_ + kShortestTime);
}

// The jobs from here on that end within the window after the first of them, as far as they have
// nodes in question. Slurm counts its windows from the half minute of its clock in which the first
// job of all ends. And it looks at the end of a job only if the job before it was taken.
Lookahead::Batch Lookahead::add_batch(Search& search, std::size_t from) const {
  const bool single = cluster_.parameters().select == SelectType::kLinear;
  const bool exact = !cluster_.parameters().as_recorded;
  Batch batch{.begin = from, .end = from};
  std::optional<base::Instant> limit;
  std::size_t i = from;
  for (bool follows = false; i < ends_.size(); ++i) {
    // Victims are gone from the beginning.
    if (ends_[i].is_victim) continue;
    if (limit && (exact || follows) && ends_[i].at > *limit) break;
    follows = has_node_in(cluster_, ends_[i].job->allocation, search.question.nodes);
    if (!follows) continue;
    if (!limit) {
      batch.first = ends_[i].at;
      // Set by the first batch for all later ones.
      if (!search.windows_begin) {
        search.windows_begin = half_minute_after(cluster_.parameters(), batch.first);
      }
      limit = (exact ? batch.first : *search.windows_begin) + search.window;
    }
    batch.end = i + 1;
    if (search.count) search.count->add(*ends_[i].job);
    const bool counts = search.count || search.room != nullptr;
    if (counts && !batch.possible && search.may_fit(i + 1)) batch.possible = i + 1;
    if (single) break;
  }
  if (limit) batch.next = i < ends_.size() ? ends_[i].at : *limit;
  return batch;
}

// The window of the next batch; with Slurm's windows at least as far as its first job.
void Lookahead::widen(Search& search, const Batch& batch) const {
  const BackfillParameters& parameters = cluster_.parameters().backfill;
  const base::Duration step = parameters.window_linear;
  search.window = step.count() > 0 ? search.window + step : search.window * 2;
  if (!cluster_.parameters().as_recorded) return;
  const base::Duration missing = batch.next - (*search.windows_begin + search.window);
  if (missing.count() <= 0) return;
  if (step.count() > 0) {
    search.window += (missing + step - base::Duration{1}) / step * step;
  } else {
    while (batch.next > *search.windows_begin + search.window) search.window *= 2;
  }
}

// Ends the batch with the last end by Question::until, and returns true if that leaves ends out: a
// start at these would be of no use. Ends that are guessed have no order, so such a batch stays
// whole.
bool Lookahead::cut(const Search& search, Batch& batch) const {
  const std::optional<base::Instant> until = search.question.until;
  if (cluster_.parameters().as_recorded || !until || ends_[batch.begin].at <= now_) return false;
  const std::size_t whole = batch.end;
  while (batch.end > batch.begin + 1 && ends_[batch.end - 1].at > *until) --batch.end;
  return batch.end < whole;
}

// The job fits at the end of the batch; if that is asked for, the first end in it that is enough.
Lookahead::Answer Lookahead::narrow(Search& search, const Batch& batch, Answer found) {
  if (cluster_.parameters().as_recorded) return found;
  search.count.reset();  // it counts the whole batch
  // A binary search between the last count that is too few and the first that is enough. It begins
  // with the first count that free cores allow, which is often the answer.
  std::size_t enough = batch.end;
  std::size_t too_few = batch.possible ? *batch.possible - 1 : batch.begin;
  if (!search.has_victims) too_few = std::max(too_few, search.refused.value_or(0));
  for (std::size_t next = too_few + 1; too_few + 1 < enough;) {
    if (auto answer = ask(search, next, guess_end(ends_[next - 1]))) {
      found = *std::move(answer);
      enough = next;
    } else {
      too_few = next;
    }
    next = too_few + (enough - too_few) / 2;
  }
  return found;
}

Lookahead::Answer Lookahead::after_ends(Search& search, std::size_t from) {
  search.is_future = true;
  while (from < ends_.size()) {
    Batch batch = add_batch(search, from);
    if (batch.end == from) break;  // the others have no nodes in question
    const base::Instant start = guess_end(ends_[batch.end - 1]);
    // Not the end of the batch, which can lie after `until` though a start within it does not.
    const base::Instant earliest = cluster_.parameters().as_recorded ? start : batch.first;
    if (search.question.until && earliest > *search.question.until) return {.kind = Kind::kLater};
    const bool ends_later = cut(search, batch);
    if (!batch.possible || *batch.possible <= batch.end) {
      if (auto answer = ask(search, batch.end, guess_end(ends_[batch.end - 1]))) {
        return narrow(search, batch, *std::move(answer));
      }
    }
    if (ends_later) return {.kind = Kind::kLater};
    from = batch.end;
    widen(search, batch);
  }
  return {};
}

Lookahead::Answer Lookahead::try_with(const Question& question, const SharingStatus& sharing) {
  Search search{.question = question, .sharing = sharing, .count = {}};
  Ripening* const exact =
      ripening(question.job, question.partition, !question.estimates_only);
  if (exact != nullptr) return when_ripe(search, *exact);
  if (counts_cores() && !question.on_any_node) {
    read_ends();
    search.count.emplace(*this, question);
  } else {
    ask_room(search);
  }
  search.refused = refused_up_to(question, sharing);
  if (auto answer = ask(search, 0, now_)) return *std::move(answer);  // 1
  const auto search_on = [&]() -> Answer {
    if (!question.estimates_only && has_candidates(search)) {  // 2
      if (auto answer = ask(search, 0, now_)) return *std::move(answer);
    }
    if (question.now_only) return {.kind = Kind::kLater};
    read_ends();
    find_least_gone(search);
    if (is_in_vain(search)) return {.kind = Kind::kLater};
    return after_ends(search, 0);  // 3
  };
  Answer answer = search_on();
  note_refusal(search);
  if (search.has_victims) {
    release();  // it goes by the marks
    // The marks are for one question; the ends are kept for the next.
    for (End& end : ends_) end.is_victim = false;
  }
  return answer;
}

// First as if the job shared its nodes with no other, and if it cannot start at once, as it may
// (8.1 step 3h).
Lookahead::Answer Lookahead::will_run(const Question& question) {
  const Partition& partition = cluster_.partition(question.partition);
  const SelectType select = cluster_.parameters().select;
  const SharingStatus own = resolve_sharing(select, partition, question.job.request.sharing);
  // A job that may be stacked prefers nodes of its own; FORCE leaves it no choice.
  const bool tries_alone = select == SelectType::kLinear || !partition.force;
  if (own.may_stack && tries_alone && !question.estimates_only) {
    SharingStatus alone = own;
    alone.may_stack = false;
    alone.max_share = 1;
    Answer answer = try_with(question, alone);
    if (answer.kind == Kind::kStarts && answer.start <= now_) return answer;
  }
  return try_with(question, own);
}

}  // namespace sched
