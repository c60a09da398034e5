#include "scheduler/backfill/lookahead.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "scheduler/model/allocation_nodes.h"

namespace sched {
namespace {

using Kind = Lookahead::Answer::Kind;

// The most times that nodes without room for the job's pods are left out; after that the job counts
// as one that does not fit, rather than let a cluster of full nodes hold up the pass.
constexpr int kRoomRoundsMax = 16;

}  // namespace

// A question, for one way of sharing, and what is known about it while it is answered.
struct Lookahead::Search {
  const Question& question;
  const Needs& needs;
  const SharingStatus& sharing;
  const Victims* victims = nullptr;  // taken away from the beginning; null = there are none
  bool is_future = false;
  // Facts that are known without the selector, each of them necessary and not sufficient:
  bool is_bounded = false;     // by the room in the rows: …
  std::size_t least_gone = 0;  // … with fewer ends gone the job does not fit
  std::optional<std::size_t> refused{};  // while victims stay: refused with as many gone

  RowRooms::Asked in_rooms() const { return {question.partition, question.nodes, needs}; }
  bool is_refused(std::size_t gone) const {
    return victims == nullptr && refused && gone <= *refused;
  }
};

void Lookahead::begin(base::Instant now) {
  release();
  if (!ends_.go_to(now)) changed();
}

void Lookahead::started(const Job& job) {
  victims_.forget();
  rooms_.forget();
  // Copies are kept only where cores cannot be counted, and there the ends are read again.
  if (!ends_.add(job)) changed();
}

void Lookahead::changed() {
  ends_.forget();
  victims_.forget();
  rooms_.forget();
  books_without_.forget_copies();
}

std::string Lookahead::check_invariants() {
  changed();
  return ends_.check_invariants();
}

// First as if the job shared its nodes with no other, and if it cannot start at once, as it may
// (8.1 step 3h).
Lookahead::Answer Lookahead::will_run(const Question& question) {
  const Partition& partition = cluster_.partition(question.partition);
  const SelectType select = cluster_.parameters().select;
  const SharingStatus own = resolve_sharing(select, partition, question.job.request->sharing);
  const Needs needs = needs_.of(question.job, question.partition);
  // A job that may be stacked prefers nodes of its own; FORCE leaves it no choice.
  const bool tries_alone = select == SelectType::kLinear || !partition.force;
  if (own.may_stack && tries_alone && !question.estimates_only) {
    SharingStatus alone = own;
    alone.may_stack = false;
    alone.max_share = 1;
    Search search{.question = question, .needs = needs, .sharing = alone};
    Answer answer = try_with(search);
    if (answer.kind == Kind::kStarts && answer.start <= ends_.now()) return answer;
  }
  Search search{.question = question, .needs = needs, .sharing = own};
  return try_with(search);
}

Lookahead::Answer Lookahead::try_with(Search& search) {
  const Question& question = search.question;
  const bool may_preempt =
      !question.estimates_only && victims_.may_be_any(question.job, question.partition);
  if (counts_ripe_nodes() && !may_preempt) return when_ripe(search);
  return general(search);
}

// --- where nodes ripen ---

// Returns false with batches: the start is then the end of a batch and not of a node.
bool Lookahead::counts_ripe_nodes() {
  return !cluster_.parameters().quirks.ends_come_in_batches && ends_.counts_cores();
}

// Returns false with preemption: a node can then be ripe before jobs have ended.
bool Lookahead::goes_by_ripening(const Job& job, PartitionIndex partition) {
  return counts_ripe_nodes() && !victims_.may_be_any(job, partition);
}

Ripening* Lookahead::ripening(const Job& job, PartitionIndex partition) {
  if (!goes_by_ripening(job, partition)) return nullptr;
  return &ripening_for(needs_.of(job, partition).each);
}

Ripening& Lookahead::ripening_for(const NodeNeeds& needs) {
  ends_.read();
  if (std::exchange(ripenings_generation_, ends_.generation()) != ends_.generation()) {
    ripenings_.clear();
  }
  return ripenings_.try_emplace(needs, cluster_, ends_, needs).first->second;
}

// Answers where cores can be counted and the job may preempt none:
//
// 1. Find when enough nodes are ripe (Ripening). If never, or too late to be of use, the selector
//    is not asked.
// 2. Ask it about these nodes as they will be then. It mostly says yes, so a question costs one
//    answer of the selector, where the general way costs one for each batch.
// 3. If it says no, go on from there by the general way.
//
// The job cannot start before enough nodes are ripe, and mostly it can then.
//
// Of very many nodes that ripen together the first ones are asked about at first: to take away all
// the jobs that end at one instant would hold up everything else.
Lookahead::Answer Lookahead::when_ripe(Search& search) {
  const Question& question = search.question;
  Ripening& ripening = ripening_for(search.needs.each);
  const Ripening::Enough first = ripening.first_enough(question.nodes, search.needs);
  const base::Instant at = first.at;
  if (at == base::kNever) return {};
  search.is_future = at > ends_.now();
  if (search.is_future && question.now_only) return {.kind = Kind::kLater};
  if (question.until && at > *question.until) return {.kind = Kind::kLater};
  const Ripening::Enough some{at, std::max(first.count, together_max_)};
  const Ripening::Node* const more = search.is_future ? ripening.node(some.count) : nullptr;
  if (more != nullptr && more->at <= at) {
    if (auto answer = ask_ripe(search, ripening, some)) return *std::move(answer);
  }
  const Ripening::Enough all{at, std::numeric_limits<std::size_t>::max()};
  if (auto answer = ask_ripe(search, ripening, all)) return *std::move(answer);
  if (question.now_only) return {.kind = Kind::kLater};
  // It does not fit although enough nodes are ripe (sockets, or tasks that need more than the
  // least of each node): the general search goes on from there, end by end.
  const std::vector<Ends::End>& ends = ends_.all();
  std::size_t from = 0;
  while (from < ends.size() && ends_.guess(ends[from]) <= at) ++from;
  return after_ends(search, from);
}

std::optional<Lookahead::Answer> Lookahead::ask_ripe(const Search& search, Ripening& ripening,
                                                     const Ripening::Enough& ripe) {
  const NodeSet nodes = ripening.ripe(search.question.nodes, ripe);
  return ask_selector(search, books_without_.on(nodes, ripe.at), nodes, ripe.at);
}

// --- in general: the steps of the header ---

// Asks first what is known without the selector: the room in the rows, which only ever says no. The
// numbers beside the code are the steps of the header.
Lookahead::Answer Lookahead::general(Search& search) {
  bound_by_room(search);
  if (auto answer = ask(search, 0, ends_.now())) return *std::move(answer);  // 1
  Answer answer = after_now(search);
  if (search.victims != nullptr) books_without_.release();
  return answer;
}

Lookahead::Answer Lookahead::after_now(Search& search) {
  if (!search.question.estimates_only && take_victims(search)) {  // 2
    if (auto answer = ask(search, 0, ends_.now())) return *std::move(answer);
  }
  if (search.question.now_only) return {.kind = Kind::kLater};
  ends_.read();
  bound_by_ends(search);
  if (is_in_vain(search)) return {.kind = Kind::kLater};
  return after_ends(search, 0);  // 3
}

// Step 3, from the end `from` on:
//
// a. Take the next batch of ends. `possible` is the first number of ends gone in it with which the
//    job may fit by what is foreseen.
// b. Give up if the batch begins too late to be of use; cut it where its ends become so.
// c. Ask the selector with the whole batch gone, unless it is foreseen that the job does not fit.
//    If it fits, look for the first end in the batch that is enough (narrow()).
//
// For example, of 100 jobs of which one ends every 36 s, the batches hold 1, 2, 4, 7, 14, 27 and
// 45: the selector is asked seven times at most to reach the last of them, and about six times more
// to find the end in the last batch.
Lookahead::Answer Lookahead::after_ends(Search& search, std::size_t from) {
  const std::vector<Ends::End>& ends = ends_.all();
  const std::optional<base::Instant> until = search.question.until;
  search.is_future = true;
  EndBatches batches{cluster_, ends_, search.question.nodes, search.victims, from};
  for (;;) {
    std::optional<std::size_t> possible;  // by what is foreseen: the number gone
    auto batch = batches.next([&](std::size_t index) {
      if (!possible && index + 1 >= search.least_gone) possible = index + 1;
    });
    if (!batch) return {};
    const base::Instant start = ends_.guess(ends[batch->end - 1]);
    // Not the end of the batch, which can lie after `until` though a start within it does not.
    const base::Instant earliest =
        cluster_.parameters().quirks.ends_come_in_batches ? start : batch->first;
    if (until && earliest > *until) return {.kind = Kind::kLater};
    const bool ends_later = cut(search, *batch);
    if (!possible || *possible <= batch->end) {
      if (auto answer = ask(search, batch->end, ends_.guess(ends[batch->end - 1]))) {
        return narrow(search, *batch, possible, *std::move(answer));
      }
    }
    if (ends_later) return {.kind = Kind::kLater};
  }
}

// Ends the batch with the last end by Question::until, and returns true if that leaves ends out: a
// start at these would be of no use. Ends that are guessed have no order, so such a batch stays
// whole.
bool Lookahead::cut(const Search& search, EndBatches::Batch& batch) const {
  const std::vector<Ends::End>& ends = ends_.all();
  const std::optional<base::Instant> until = search.question.until;
  if (cluster_.parameters().quirks.ends_come_in_batches || !until) return false;
  if (ends[batch.begin].at <= ends_.now()) return false;
  const std::size_t whole = batch.end;
  while (batch.end > batch.begin + 1 && ends[batch.end - 1].at > *until) --batch.end;
  return batch.end < whole;
}

// The job fits at the end of the batch; if that is asked for, the first end in it that is enough. A
// job that fits with some jobs gone is taken to fit with more of them gone, so the first end is
// found by halving.
Lookahead::Answer Lookahead::narrow(Search& search, const EndBatches::Batch& batch,
                                    std::optional<std::size_t> possible, Answer found) {
  if (cluster_.parameters().quirks.ends_come_in_batches) return found;
  // A binary search between the last count that is too few and the first that is enough. It begins
  // with the first count that the room allows, which is often the answer.
  std::size_t enough = batch.end;
  std::size_t too_few = possible ? *possible - 1 : batch.begin;
  if (search.victims == nullptr) too_few = std::max(too_few, search.refused.value_or(0));
  for (std::size_t next = too_few + 1; too_few + 1 < enough;) {
    if (auto answer = ask(search, next, ends_.guess(ends_.all()[next - 1]))) {
      found = *std::move(answer);
      enough = next;
    } else {
      too_few = next;
    }
    next = too_few + (enough - too_few) / 2;
  }
  return found;
}

// --- what is foreseen ---

// Asks first only if more than none must be gone, for which the ends need not be read.
void Lookahead::bound_by_room(Search& search) {
  search.is_bounded = rooms_.knows();
  if (search.is_bounded) search.least_gone = rooms_.may_fit_now(search.in_rooms()) ? 0 : 1;
}

void Lookahead::bound_by_ends(Search& search) {
  if (!search.is_bounded || search.least_gone == 0) return;
  search.least_gone = rooms_.least_gone_in_partition(search.in_rooms());
  if (is_in_vain(search)) return;
  search.least_gone =
      rooms_.least_gone(search.in_rooms(), search.least_gone, search.question.until);
}

// Returns true if the job cannot start by Question::until: what is known about its room, and what
// was refused, is enough for that. With as many gone as were refused it does not fit, so one more
// must be gone.
bool Lookahead::is_in_vain(const Search& search) const {
  const std::optional<base::Instant> until = search.question.until;
  if (cluster_.parameters().quirks.any() || !until) return false;
  std::size_t least = search.least_gone;
  if (search.victims == nullptr && search.refused) least = std::max(least, *search.refused + 1);
  if (least == 0) return false;
  return least > ends_.all().size() || ends_.all()[least - 1].at > *until;
}

// Returns false if the job may preempt none. The room counts victims as if they stayed.
bool Lookahead::take_victims(Search& search) {
  search.victims =
      victims_.of(search.question.job, search.question.partition, search.question.by_standing);
  if (search.victims == nullptr) return false;
  const std::vector<Ends::End>& ends = ends_.all();
  for (std::size_t i = 0; i < ends.size(); ++i) {
    if (!search.victims->contains(i)) continue;
    if (!search.is_bounded) continue;
    if (RowRooms::counts(search.in_rooms(), *ends[i].job, search.victims->must_end(i))) {
      search.is_bounded = false;
      search.least_gone = 0;
    }
  }
  return true;
}

// --- the selector ---

// Asks if the job fits when `gone` jobs are gone; then it starts at `start`. This is the one place
// at which the general way comes to the selector. The bounds are asked first, and a refusal is
// noted: with as many jobs gone, or fewer, no later question of this search needs to be asked. Not
// with victims gone: then it is said about other books.
std::optional<Lookahead::Answer> Lookahead::ask(Search& search, std::size_t gone,
                                                base::Instant start) {
  if (search.is_refused(gone)) return std::nullopt;
  std::optional<Answer> answer;
  if (gone >= search.least_gone) {
    Chooser& books = books_without_.first(gone, search.victims);
    answer = ask_selector(search, books, search.question.nodes, start);
  }
  if (!answer && search.victims == nullptr) search.refused = gone;
  return answer;
}

// Asks if the job fits on these nodes with these books. Nodes that cannot take its pods are left
// out, and it is asked again.
std::optional<Lookahead::Answer> Lookahead::ask_selector(const Search& search, Chooser& books,
                                                         const NodeSet& nodes,
                                                         base::Instant start) {
  // bf_busy_nodes: promises go to nodes that are busy anyway, and idle ones stay for jobs that
  // start now.
  const bool busy_first = cluster_.parameters().backfill.busy_nodes && search.is_future;
  const bool takes_extra_row = search.victims != nullptr && search.victims->takes_extra_row;
  NodeSet usable = nodes;
  for (int round = 0; round < kRoomRoundsMax; ++round) {
    const std::optional<Allocation> found =
        placement_.will_run(books, {.job = search.question.job,
                                    .partition = search.question.partition,
                                    .nodes = usable,
                                    .now = ends_.now(),
                                    .sharing = search.sharing,
                                    .takes_extra_row = takes_extra_row,
                                    .on_any_node = search.question.on_any_node,
                                    .idle_last = busy_first ? &books_.usage().idle() : nullptr});
    if (!found) return std::nullopt;
    Answer answer{.kind = Kind::kStarts, .start = start, .nodes = cluster_.no_nodes()};
    bool fits = true;
    for_each_rank(cluster_, *found, [&](int rank, const NodeAllocation& use) {
      answer.nodes.set(rank);
      if (has_room(search, use, start)) return;
      usable.reset(rank);
      fits = false;
    });
    if (fits) return answer;
  }
  return std::nullopt;
}

// Returns true if the node takes the pods that the job would have there. The selector counts cores
// and memory only; pods (NodeSpec::pods_max) are looked at afterwards, because those of a job with
// one for each task follow from its layout.
bool Lookahead::has_room(const Search& search, const NodeAllocation& use,
                         base::Instant start) const {
  const std::optional<int> left = books_.usage().pods_left(use.node);
  int missing = left ? pods_on(*search.question.job.request, use) - *left : 0;
  if (missing <= 0) return true;
  for (const Job* const there : books_.usage().jobs_on(use.node)) {
    if (there->has_left(use.node) || !is_gone_by(search, *there, start)) continue;
    for (const NodeAllocation& freed : there->allocation.nodes) {
      if (freed.node == use.node) missing -= pods_on(*there->request, freed);
    }
  }
  return missing <= 0;
}

// Returns true if the allocated job has no pods on its nodes any longer when the one in question
// starts.
bool Lookahead::is_gone_by(const Search& search, const Job& allocated, base::Instant start) const {
  // The job's pods leave soon, but not at this instant.
  if (allocated.completing()) return start > ends_.now();
  const std::optional<std::size_t> end = ends_.find(allocated);
  if (!end) return false;
  if (search.victims != nullptr && search.victims->contains(*end)) {
    return search.victims->must_end(*end);
  }
  return start > ends_.now() && ends_.guess(ends_.all()[*end]) <= start;
}

}  // namespace sched
