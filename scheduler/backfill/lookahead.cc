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
constexpr std::size_t kAllNodes = std::numeric_limits<std::size_t>::max();

}  // namespace

// A question, for one way of sharing, and what is known about it while it is answered.
struct Lookahead::Search {
  const Question& question;
  const Needs& needs;
  const SharingStatus& sharing;
  const NodeSet* nodes = &question.nodes;
  NodeSet unclaimed{};               // with victims, if some are claimed
  OpenRoom* room = nullptr;          // null = nothing is known without the selector
  const Victims* victims = nullptr;  // taken away from the beginning; null = there are none
  bool is_future = false;
};

void Lookahead::begin(base::Instant now) {
  release();
  if (!ends_.go_to(now)) changed();
}

void Lookahead::started(const Job& job) {
  victims_.forget();
  rooms_.clear();
  // Copies are kept only where cores cannot be counted, and there the ends are read again.
  if (!ends_.add(job)) changed();
}

void Lookahead::changed() {
  ends_.forget();
  victims_.forget();
  rooms_.clear();
  books_without_.forget_copies();
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

// The numbers beside the code are the steps of the header.
Lookahead::Answer Lookahead::try_with(Search& search) {
  const Question& question = search.question;
  const bool may_preempt =
      !question.estimates_only && victims_.may_be_any(question.job, question.partition);
  search.room = room_for(question.partition, search.needs.each, may_preempt);
  const std::optional<OpenRoom::Enough> room_now = enough_room(search, 0);
  std::optional<Answer> answer;
  if (room_now) answer = ask(search, *room_now, ends_.now());  // 1
  if (!answer && may_preempt && take_victims(search)) {        // 2
    answer = ask(search, OpenRoom::Enough{}, ends_.now());
  }
  if (!answer) answer = question.now_only ? Answer{.kind = Kind::kLater} : after_now(search);  // 3
  if (search.victims != nullptr) books_without_.release();
  return *std::move(answer);
}

// --- what is known without the selector ---

// Returns true if no two jobs share a core. With batches the start is the end of a batch and not of
// a job.
bool Lookahead::counts_cores() {
  return !cluster_.parameters().quirks.ends_come_in_batches && ends_.counts_cores();
}

// With preemption a node can be ripe before jobs have ended.
OpenRoom* Lookahead::room(const Job& job, PartitionIndex partition) {
  if (!counts_cores() || victims_.may_be_any(job, partition)) return nullptr;
  return room_for(partition, needs_.of(job, partition).each, false);
}

// Knows nothing of select/linear where jobs are stacked or preempted: it counts jobs and not cores.
OpenRoom* Lookahead::room_for(PartitionIndex partition, const NodeNeeds& needs, bool may_preempt) {
  const auto room_of = [&](std::optional<PartitionIndex> of) {
    return &rooms_.try_emplace({of, needs}, cluster_, books_, ends_, needs, of).first->second;
  };
  if (counts_cores() && !may_preempt) {
    ends_.read();
    return room_of(std::nullopt);
  }
  const ClusterParameters& parameters = cluster_.parameters();
  if (parameters.select != SelectType::kConsTres || parameters.quirks.any()) return nullptr;
  return room_of(partition);
}

// Returns the first number of ends with which the job may fit; nullopt if it is more than `most`.
std::optional<OpenRoom::Enough> Lookahead::enough_room(const Search& search, std::size_t most) {
  if (search.room == nullptr) return OpenRoom::Enough{};
  return search.room->first_enough(*search.nodes, search.needs, most);
}

// Returns false if the job may preempt none. The room counts victims as if they stayed.
bool Lookahead::take_victims(Search& search) {
  const Question& question = search.question;
  search.victims = victims_.of(question.job, question.partition, question.by_standing);
  if (search.victims == nullptr) return false;
  if (question.claimed != nullptr) {
    search.unclaimed = question.nodes - *question.claimed;
    search.nodes = &search.unclaimed;
  }
  const std::vector<Ends::End>& ends = ends_.all();
  for (std::size_t i = 0; i < ends.size(); ++i) {
    if (search.victims->contains(i) &&
        OpenRoom::counts(question.partition, search.needs.each, *ends[i].job,
                         search.victims->must_end(i))) {
      search.room = nullptr;
    }
  }
  return true;
}

// --- after now ---

// Goes on to the first end with which there is room enough, and asks the selector there: mostly it
// says yes. If it says no (sockets, rows that are packed another way, tasks that need more than the
// least of each node), the search goes on from there.
Lookahead::Answer Lookahead::after_now(Search& search) {
  ends_.read();
  const std::vector<Ends::End>& ends = ends_.all();
  const std::optional<base::Instant> until = search.question.until;
  // An overdue job counts as gone by `until`, though it is guessed to stay longer.
  std::size_t most = ends.size();
  if (until && search.room != nullptr) {
    most = static_cast<std::size_t>(std::ranges::upper_bound(ends, *until, {}, &Ends::End::at) -
                                    ends.begin());
  }
  const std::optional<OpenRoom::Enough> enough = enough_room(search, most);
  if (!enough) return {.kind = most < ends.size() ? Kind::kLater : Kind::kNever};
  search.is_future = true;
  std::size_t from = enough->gone;
  if (from > 0) {
    const base::Instant start = ends_.after(from);
    if (until && start > *until) return {.kind = Kind::kLater};
    if (auto answer = ask(search, *enough, start)) return *std::move(answer);
  }
  return after_ends(search, from);
}

// Asks after the ends from `from` on that matter: after the first, then after twice as many each
// time. When the job fits, the first number that is enough is found by halving: a job that fits
// with some jobs gone is taken to fit with more of them gone. Slurm asks after one batch after the
// other. Ends after Question::until are of no use.
Lookahead::Answer Lookahead::after_ends(const Search& search, std::size_t from) {
  const bool by_one = cluster_.parameters().quirks.ends_come_in_batches;
  const std::optional<base::Instant> until = search.question.until;
  EndBatches ends{cluster_, ends_, *search.nodes, search.victims, from};
  std::vector<std::size_t> gone;  // with each end that matters
  bool is_cut = false;
  const auto ask_at = [&](std::size_t count) {
    return ask(search, {.gone = gone[count - 1]}, ends_.after(gone[count - 1]));
  };
  std::size_t too_few = 0, enough = 0;
  std::optional<Answer> found;
  while (!found) {
    too_few = enough;
    const std::size_t wanted = by_one ? too_few + 1 : std::max<std::size_t>(1, 2 * too_few);
    while (gone.size() < wanted && !is_cut) {
      const std::optional<std::size_t> next = ends.next();
      if (!next) break;
      is_cut = until && ends_.all()[*next - 1].at > *until;
      if (!is_cut) gone.push_back(*next);
    }
    enough = std::min(wanted, gone.size());
    if (enough == too_few) return {.kind = is_cut ? Kind::kLater : Kind::kNever};
    found = ask_at(enough);
  }
  while (too_few + 1 < enough) {
    const std::size_t middle = too_few + (enough - too_few) / 2;
    auto answer = ask_at(middle);
    (answer ? enough : too_few) = middle;
    if (answer) found = std::move(answer);
  }
  return *std::move(found);
}

// --- the selector ---

// Asks if the job fits with as many ends gone; then it starts at `start`. The nodes that are ripe
// then are asked about: the job has room on no others. Where cores are counted, of very many nodes
// that ripen together the first ones are asked about at first: to take away all the jobs that end
// at one instant would hold up everything else.
std::optional<Lookahead::Answer> Lookahead::ask(const Search& search,
                                                const OpenRoom::Enough& enough,
                                                base::Instant start) {
  const NodeSet& nodes = *search.nodes;
  if (enough.count == 0 || !search.room->counts_all()) {
    Chooser& books = books_without_.first(enough.gone, search.victims);
    if (search.room == nullptr) return ask_selector(search, books, nodes, start);
    return ask_selector(search, books, search.room->ripe(nodes, kAllNodes, start, enough.gone),
                        start);
  }
  const auto ask_ripe = [&](std::size_t count) {
    const NodeSet ripe = search.room->ripe(nodes, count, start);
    return ask_selector(search, books_without_.on(ripe, start), ripe, start);
  };
  const std::size_t some = std::max(enough.count, together_max_);
  const OpenRoom::Node* const more = search.is_future ? search.room->node(some) : nullptr;
  if (more != nullptr && search.room->at(*more) <= start) {
    if (auto answer = ask_ripe(some)) return answer;
  }
  return ask_ripe(kAllNodes);
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
  const auto end = search.victims != nullptr ? ends_.find(allocated) : std::nullopt;
  if (end && search.victims->contains(*end)) return search.victims->must_end(*end);
  return start > ends_.now() && ends_.guess(allocated) <= start;
}

}  // namespace sched
