#include "scheduler/backfill/lookahead.h"

#include <algorithm>
#include <utility>

#include "scheduler/backfill/lookahead_search.h"

namespace sched {
namespace {

using Keep = Selector::Trial::Keep;
using Kind = Lookahead::Answer::Kind;

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
    if (counts_cores()) {
      take_away({}, 0);
    } else {
      release();
    }
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

// Asks if the job fits on these nodes with these books. Nodes that cannot take its pods are left
// out, and it is asked again.
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
