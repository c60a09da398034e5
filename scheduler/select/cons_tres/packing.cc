#include "scheduler/select/cons_tres/packing.h"

#include <algorithm>
#include <array>
#include <utility>

namespace sched::cons_tres {
namespace {

// The changes beyond which a packing from scratch is cheaper; rows are bits of a word.
constexpr std::size_t kChangesMax = 32;  // each moves a part of the entries
constexpr int kRowsMax = 64;

std::uint64_t bit(int row) {
  return std::uint64_t{1} << row;
}

// Null if the job has no cores on the node.
const RankCores* cores_on(const RowJob& job, int rank) {
  const auto found =
      std::lower_bound(job.nodes.begin(), job.nodes.end(), rank,
                       [](const RankCores& node, int wanted) { return node.rank < wanted; });
  return found != job.nodes.end() && found->rank == rank ? &*found : nullptr;
}

}  // namespace

// The rows while jobs are put into them one by one.
struct Packing::Rows {
  // Empty rows in the order in which they stand now: that is where a packing begins.
  explicit Rows(const std::vector<Row>& rows) : order{rows} {
    for (Row& row : order) row.held_count = 0;
    for (std::size_t i = 0; i < order.size(); ++i) {
      at_first[static_cast<std::size_t>(order[i].id)] = static_cast<int>(i);
    }
    index();
  }

  void index() {
    std::uint64_t passed = 0;
    for (std::size_t i = 0; i < order.size(); ++i) {
      const auto id = static_cast<std::size_t>(order[i].id);
      at[id] = i;
      // The rows in front of this one, as bits: "is each of them blocked?" is then one operation.
      before[id] = passed;
      passed |= bit(order[i].id);
    }
  }
  // -1 = each row is blocked.
  int first_not_in(std::uint64_t blocked) const {
    for (const Row& row : order) {
      if ((blocked & bit(row.id)) == 0) return row.id;
    }
    return -1;
  }
  // R4.12 after each job: by exchanges, as in PartitionRows::sort_densest_first().
  void put(int id, int cores_count) {
    const std::size_t place = at[static_cast<std::size_t>(id)];
    order[place].held_count += cores_count;
    // One row has grown, so the order changes only if it passes the one in front of it.
    if (place == 0 || order[place].held_count <= order[place - 1].held_count) return;
    for (std::size_t i = 0; i < order.size(); ++i) {
      for (std::size_t j = i + 1; j < order.size(); ++j) {
        if (order[j].held_count > order[i].held_count) std::swap(order[i], order[j]);
      }
    }
    index();
  }

  std::vector<Row> order;
  // Indexed by id.
  std::array<int, kRowsMax> at_first{};          // where it stood before the first job
  std::array<std::size_t, kRowsMax> at{};        // where it stands
  std::array<std::uint64_t, kRowsMax> before{};  // the rows before it
};

void Packing::forget() {
  known_ = false;
  entries_.clear();
}

// A job without cores on its first node has no key, and a row beyond the 64th no bit.
bool Packing::can_hold(const RowJob& job) {
  return job.row < kRowsMax && !job.nodes.front().cores.empty();
}

void Packing::begin() {
  forget();
  known_ = true;
  changes_ = 0;
  on_node_.resize(static_cast<std::size_t>(node_count_));
  for (std::vector<RowJob*>& jobs : on_node_) jobs.clear();
}

// Returns the order of R4.11: the job's first core in the cluster, then the CPUs that it asked for.
// Two jobs with one key begin on the same core, so they are in different rows, by which
// order_equals() tells them apart.
Packing::Key Packing::key_of(const RowJob& job) {
  const RankCores& first = job.nodes.front();
  return {.rank = first.rank, .core = first.cores.next(0), .cpus = job.cpus};
}

// REQUIRES: called in the order of packing, so that entries_ is sorted by key as it grows.
void Packing::add(RowJob& job, std::uint64_t blocked) {
  entries_.push_back({.key = key_of(job),
                      .cores_count = job.cores_count,
                      .job = &job,
                      .blocked = blocked,
                      .row = job.row,
                      .unknown = false});
  for (const RankCores& node : job.nodes) {
    on_node_[static_cast<std::size_t>(node.rank)].push_back(&job);
  }
}

// Several entries may have one key; there are few, so they are gone through.
std::size_t Packing::index_of(const RowJob& job) const {
  const auto before = [](const Entry& entry, const Key& key) { return entry.key < key; };
  auto at = std::lower_bound(entries_.begin(), entries_.end(), key_of(job), before);
  while (at->job != &job) ++at;
  return static_cast<std::size_t>(at - entries_.begin());
}

// False if there were too many changes to keep up with: everything is forgotten.
bool Packing::count_change() {
  if (++changes_ <= kChangesMax) return true;
  forget();
  return false;
}

// A newcomer sits in a row already (first fit), and goes where a packing would put it only at the
// next replay.
void Packing::came(RowJob& job) {
  if (!can_hold(job)) return forget();
  if (!count_change()) return;
  const Key key = key_of(job);
  const auto after = [](const Key& wanted, const Entry& entry) { return wanted < entry.key; };
  entries_.insert(std::upper_bound(entries_.begin(), entries_.end(), key, after),
                  {.key = key,
                   .cores_count = job.cores_count,
                   .job = &job,
                   .blocked = 0,
                   .row = job.row,
                   .unknown = true});
  for (const RankCores& node : job.nodes) {
    on_node_[static_cast<std::size_t>(node.rank)].push_back(&job);
  }
}

void Packing::leaves(const RowJob& job) {
  if (!count_change()) return;
  const std::size_t index = index_of(job);
  // The job's cores are free for the jobs behind it on these nodes: they may move to a row further
  // in front.
  mark_unknown(job, index + 1);
  entries_.erase(entries_.begin() + static_cast<std::ptrdiff_t>(index));
  for (const RankCores& node : job.nodes) {
    std::erase(on_node_[static_cast<std::size_t>(node.rank)], &job);
  }
}

// The jobs on its nodes whose entries are at `from` or behind it.
void Packing::mark_unknown(const RowJob& job, std::size_t from) {
  for (const RankCores& node : job.nodes) {
    for (const RowJob* const other : on_node_[static_cast<std::size_t>(node.rank)]) {
      if (other == &job) continue;
      const std::size_t index = index_of(*other);
      if (index >= from) entries_[index].unknown = true;
    }
  }
}

// Jobs of equal keys are put in the order of the rows that they are in, as these stood before this
// packing. A job that changes places with an equal one has other jobs before it, so what is known
// about the rows blocked for it holds no longer.
void Packing::order_equals(std::size_t begin, std::size_t end, const Rows& rows) {
  const auto row_before = [&](const Entry& a, const Entry& b) {
    return rows.at_first[static_cast<std::size_t>(a.row)] <
           rows.at_first[static_cast<std::size_t>(b.row)];
  };
  const auto first = entries_.begin() + static_cast<std::ptrdiff_t>(begin);
  const auto last = entries_.begin() + static_cast<std::ptrdiff_t>(end);
  if (std::is_sorted(first, last, row_before)) return;
  std::stable_sort(first, last, row_before);
  for (auto entry = first; entry != last; ++entry) entry->unknown = true;
}

// Returns the rows in which jobs before it hold some of its cores.
std::uint64_t Packing::blocked_for(const RowJob& job, std::size_t index) const {
  std::uint64_t blocked = 0;
  for (const RankCores& node : job.nodes) {
    for (const RowJob* const other : on_node_[static_cast<std::size_t>(node.rank)]) {
      if (other == &job || !cores_on(*other, node.rank)->cores.intersects(node.cores)) continue;
      const std::size_t place = index_of(*other);
      if (place < index) blocked |= bit(entries_[place].row);
    }
  }
  return blocked;
}

// Does the packing of R4.11, without doing again what cannot have changed. It goes through the
// entries in the order in which a packing from scratch would put the jobs. A job whose surroundings
// are as before, and for which each row in front of its own is still known to be blocked, stays
// where it is; so do nearly all. For the others it looks at the jobs before it on the same nodes
// and takes the first row that they do not block. If that is another row than before, the jobs
// behind it on these nodes must be looked at too.
//
// For example, A, B and C overlap on one node, in this order, and D is elsewhere. When A has left,
// B and C are unknown, and their rows are looked for among the jobs before them on the node; if B
// moves, C is unknown for that reason too. D is not looked at, unless the rows stand in another
// order by then and one in front of its own is not known to be blocked.
Packing::Result Packing::replay(std::vector<Row>& rows, std::vector<Move>& moves) {
  if (!std::all_of(rows.begin(), rows.end(), [](const Row& row) { return row.id < kRowsMax; })) {
    forget();
    return Result::kTooMuch;
  }
  // A search costs as much as many additions: from about one in 64 on a packing from scratch wins.
  std::size_t looked_for_max = 64 + entries_.size() / 64;
  Rows state{rows};
  std::size_t equals_end = 0;
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    // Equal keys begin: which of them goes first depends on the rows they were in (R4.11).
    if (i == equals_end) {
      while (++equals_end < entries_.size() && entries_[equals_end].key == entries_[i].key) {
      }
      order_equals(i, equals_end, state);
    }
    Entry& entry = entries_[i];
    // The invariant of the replay: the job stays if nothing around it changed and all rows in front
    // of its own are known to be blocked for it.
    if (entry.unknown || (state.before[static_cast<std::size_t>(entry.row)] & ~entry.blocked)) {
      if (looked_for_max-- == 0) {
        forget();
        return Result::kTooMuch;
      }
      entry.blocked = blocked_for(*entry.job, i);
      entry.unknown = false;
      const int row = state.first_not_in(entry.blocked);
      if (row < 0) {
        forget();
        return Result::kFitsNowhere;
      }
      if (std::exchange(entry.row, row) != row) {
        moves.push_back({entry.job, row});
        mark_unknown(*entry.job, i + 1);
      }
    }
    // The order of the rows is made again step by step, as if all jobs had been put again.
    state.put(entry.row, entry.cores_count);
  }
  rows = std::move(state.order);
  changes_ = 0;
  return Result::kPacked;
}

}  // namespace sched::cons_tres
