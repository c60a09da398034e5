#include "scheduler/select/cons_tres/partition_rows.h"

#include <algorithm>
#include <tuple>

#include "base/check.h"

namespace sched::cons_tres {
namespace {

std::size_t at(int rank) {
  return static_cast<std::size_t>(rank);
}

constexpr CoreSet kNothingUsed{};

}  // namespace

// Rows at the end that hold jobs stay. The union of rows is kept by node only from the second row
// on: with a single one it is that row's cores.
void PartitionRows::set_count(int count) {
  const auto wanted = static_cast<std::size_t>(count);
  if (rows_.size() == wanted) return;
  while (rows_.size() > wanted && rows_.back().jobs_count == 0) rows_.pop_back();
  int id = 0;
  for (const Row& row : rows_) id = std::max(id, row.id);
  while (rows_.size() < wanted) rows_.push_back(Row{.id = ++id, .cores = {}});
  jobs_on_.resize(at(node_count_));
  // The second row makes the union differ from the first.
  if (rows_.size() < 2 || !used_.empty()) return;
  used_ = rows_.front().cores;
  used_.resize(at(node_count_));
}

// Finds it by the row's id, since packing changes the order of the rows.
const PartitionRows::Row& PartitionRows::row_of(const RowJob& job) const {
  const auto row = std::find_if(rows_.begin(), rows_.end(),
                                [&](const Row& candidate) { return candidate.id == job.row; });
  CHECK(row != rows_.end());
  return *row;
}

// Returns true if all these cores are free in the row.
bool PartitionRows::fits(const std::vector<RankCores>& nodes, const Row& row) {
  // A row that was never used has no cores to compare with.
  if (row.jobs_count == 0) return true;
  return std::none_of(nodes.begin(), nodes.end(), [&](const RankCores& node) {
    return row.cores[at(node.rank)].intersects(node.cores);
  });
}

// Jobs of one row are disjoint, so the job's cores can simply be taken away.
void PartitionRows::take_out(const RowJob& job) {
  Row& row = row_of(job);
  for (const RankCores& node : job.nodes) row.cores[at(node.rank)] -= node.cores;
  row.held_count -= job.cores_count;
  --row.jobs_count;
}

// The caller has seen that the cores are free in the row. A row gets its array of cores with its
// first job, so the unused rows of a large FORCE:n cost nothing.
void PartitionRows::put(RowJob& job, Row& row) {
  occupy(row, job);
  job.row = row.id;
}

void PartitionRows::occupy(Row& row, const RowJob& job) const {
  row.cores.resize(at(node_count_));
  for (const RankCores& node : job.nodes) row.cores[at(node.rank)] |= node.cores;
  row.held_count += job.cores_count;
  ++row.jobs_count;
}

// For 4.5.1 steps 5 and 6, which ask if any job of a partition is on the node, whatever its cores.
void PartitionRows::count_job(const RowJob& job, int delta) {
  for (const RankCores& node : job.nodes) {
    jobs_on_[at(node.rank)] = static_cast<std::uint16_t>(jobs_on_[at(node.rank)] + delta);
  }
}

// After a job left: what the rows hold on its nodes. Its cores cannot simply be taken away: a job
// in another row may hold the same ones.
void PartitionRows::refresh_used(const RowJob& job) {
  if (used_.empty()) return;
  for (const RankCores& node : job.nodes) {
    CoreSet& used = used_[at(node.rank)];
    used = kNothingUsed;
    for (const Row& row : rows_) {
      if (row.jobs_count > 0) used |= row.cores[at(node.rank)];
    }
  }
}

// Packs first: a hole left by a job that ended may be in the wrong row until then.
bool PartitionRows::has_room(const std::vector<RankCores>& nodes) {
  pack();
  return std::any_of(rows_.begin(), rows_.end(), [&](const Row& row) { return fits(nodes, row); });
}

// R4.10: the first row that holds it, in the present order of the rows.
void PartitionRows::add(JobId id, std::vector<RankCores> nodes, int cpus) {
  CHECK(!in_trial_ && !nodes.empty() && !holds(id));
  pack();
  RowJob job{.nodes = std::move(nodes), .cpus = cpus};
  for (const RankCores& node : job.nodes) job.cores_count += node.cores.count();
  auto row = std::find_if(rows_.begin(), rows_.end(),
                          [&](const Row& candidate) { return fits(job.nodes, candidate); });
  if (row == rows_.end()) {  // beyond all rows: see the header
    set_count(count() + 1);
    row = rows_.end() - 1;
  }
  put(job, *row);
  job.sequence = next_sequence_++;
  count_job(job, +1);
  if (!used_.empty()) {
    for (const RankCores& node : job.nodes) used_[at(node.rank)] |= node.cores;
  }
  list(jobs_.emplace(id, std::move(job)).first->second);
}

// `flat_` and the remembered packing know the jobs that are in rows now. A job keeps its place in
// `flat_`, so that unlist() needs no search.
void PartitionRows::list(RowJob& job) {
  job.place = flat_.size();
  flat_.push_back(&job);
  if (packing_.known()) packing_.came(job);
}

void PartitionRows::unlist(const RowJob& job) {
  if (packing_.known()) packing_.leaves(job);
  // The last one takes its place: flat_ has no order, so nothing is moved.
  flat_.back()->place = job.place;
  flat_[job.place] = flat_.back();
  flat_.pop_back();
}

// The hole that the job leaves may let others move into lower rows: that is left to pack().
void PartitionRows::leave_row(const RowJob& job) {
  unlist(job);
  take_out(job);
  count_job(job, -1);
  unpacked_ = true;
}

// Returns its nodes, because what is kept about them elsewhere must be worked out again.
std::vector<RankCores> PartitionRows::remove(JobId id) {
  CHECK(!in_trial_);
  const auto found = jobs_.find(id);
  CHECK(found != jobs_.end(), to_string(id));
  leave_row(found->second);
  const RowJob job = std::move(found->second);
  jobs_.erase(found);
  refresh_used(job);
  return job.nodes;
}

// The job's record stays in jobs_, so that pointers to it hold until the trial ends.
bool PartitionRows::remove_for_trial(JobId id) {
  CHECK(in_trial_);
  const auto found = jobs_.find(id);
  if (found == jobs_.end()) return false;
  leave_row(found->second);
  removed_.push_back(&found->second);
  refresh_used(found->second);
  return true;
}

// The union of a single row is that row itself.
const CoreSet& PartitionRows::used(int rank) const {
  if (!used_.empty()) return used_[at(rank)];
  const bool nothing = rows_.empty() || rows_.front().cores.empty();
  return nothing ? kNothingUsed : rows_.front().cores[at(rank)];
}

// nullptr for a row that has never held a job.
const CoreSet* PartitionRows::row(int index) const {
  const Row& row = rows_[at(index)];
  return row.cores.empty() ? nullptr : row.cores.data();
}

// Returns true if packing could move a job; it cannot if all are in the first row.
bool PartitionRows::stacked() const {
  const auto in_use =
      std::count_if(rows_.begin(), rows_.end(), [](const Row& row) { return row.jobs_count > 0; });
  return in_use > 1 || (in_use == 1 && rows_.front().jobs_count == 0);
}

// R4.11: all jobs are taken out and put back, first fit, in the order of their first node, first
// core and CPUs asked for. There is nothing to do if no job left since, or if the first row holds
// everything. The packing is put off until rows are looked at, and many jobs that end at one
// instant cost one packing.
//
// Why jobs are moved at all: on a node of 4 cores with two rows, A holds cores 0 and 1 of the first
// row and B those of the second, C holds cores 2 and 3 of the first and D those of the second. When
// A and D have ended each row is half full, and a job of 4 cores fits into neither. Packing puts B
// and C into one row, and the other one is empty.
void PartitionRows::pack() {
  if (!std::exchange(unpacked_, false) || !stacked()) return;
  save_for_trial();
  if (!packing_.known() || !replay()) pack_from_scratch();
}

// Packs by what packing_ remembers. False, and nothing changed, if that has to be done from
// scratch. "Fits nowhere" is an answer, too: as in pack_from_scratch() the rows then stay as they
// are.
bool PartitionRows::replay() {
  std::vector<Packing::Row> order;
  for (const Row& row : rows_) order.push_back({row.id, row.held_count});
  std::vector<Packing::Move> moves;
  switch (packing_.replay(order, moves)) {
    case Packing::Result::kTooMuch:
      return false;
    case Packing::Result::kFitsNowhere:
      return true;
    case Packing::Result::kPacked:
      break;
  }
  // All out before any goes in: jobs that change places with each other would overlap in between.
  for (const Packing::Move& move : moves) take_out(*move.job);
  for (const Packing::Move& move : moves) {
    move.job->row = move.row;
    put(*move.job, row_of(*move.job));
    for (const RankCores& node : move.job->nodes) changed_(node.rank);
  }
  std::vector<Row> rows;
  for (const Packing::Row& row : order) {
    rows.push_back(std::move(*std::ranges::find(rows_, row.id, &Row::id)));
  }
  rows_ = std::move(rows);
  return true;
}

// Returns the jobs by their first core and the CPUs that they asked for; equal ones as they stand:
// by row, then by arrival.
std::vector<RowJob*> PartitionRows::packing_order(std::vector<RowJob*> jobs) const {
  using Key = std::tuple<int, int, int, std::size_t, std::int64_t>;
  std::vector<std::pair<Key, RowJob*>> order;
  order.reserve(jobs.size());
  for (RowJob* const job : jobs) {
    const auto row = static_cast<std::size_t>(&row_of(*job) - rows_.data());
    const RankCores& first = job->nodes.front();
    order.push_back({{first.rank, first.cores.next(0), job->cpus, row, job->sequence}, job});
  }
  std::sort(order.begin(), order.end());
  std::ranges::transform(order, jobs.begin(), [](const auto& keyed) { return keyed.second; });
  return jobs;
}

// 1. Sort the jobs.
// 2. Put each into the first row where it fits; after each the densest row goes to the front, which
//    decides where the next one looks first.
// 3. If one fits nowhere the old packing stays: first fit in another order may need more rows than
//    there are.
// 4. Jobs count as having arrived in the order in which they were put back.
void PartitionRows::pack_from_scratch() {
  const std::vector<RowJob*> order = packing_order(flat_);  // 1
  std::vector<Row> before = std::move(rows_);  // 2
  rows_ = empty_rows(before);
  std::vector<int> rows_before;
  rows_before.reserve(order.size());
  packing_.begin();
  for (RowJob* const job : order) {
    const auto row = std::find_if(rows_.begin(), rows_.end(), [&](const Row& candidate) {
      return fits(job->nodes, candidate);
    });
    if (row == rows_.end()) break;
    rows_before.push_back(job->row);
    put(*job, *row);
    remember(*job, row);
    sort_densest_first();
  }
  // The jobs put so far get their rows back; the others have not lost their rows.
  if (rows_before.size() < order.size()) {  // 3
    packing_.forget();
    for (std::size_t i = 0; i < rows_before.size(); ++i) order[i]->row = rows_before[i];
    keep_memory(std::exchange(rows_, std::move(before)));
    return;
  }
  // 4
  for (RowJob* const job : order) job->sequence = next_sequence_++;
  tell_changes(before);
  keep_memory(std::move(before));
}

// The job has been put into this row, after the rows before it were tried.
void PartitionRows::remember(RowJob& job, std::vector<Row>::const_iterator row) {
  if (!packing_.known()) return;
  std::uint64_t blocked = 0;
  bool fits = Packing::can_hold(job);
  for (auto tried = rows_.cbegin(); tried != row && fits; ++tried) {
    // A row's id is a bit of the mask. Beyond 64 rows there is nothing to remember, and the next
    // packing is one from scratch.
    fits = tried->id < 64;
    if (fits) blocked |= std::uint64_t{1} << tried->id;
  }
  if (fits) {
    packing_.add(job, blocked);
  } else {
    packing_.forget();
  }
}

// Returns the same rows in the same order, without jobs. Their arrays come from earlier packings.
std::vector<PartitionRows::Row> PartitionRows::empty_rows(const std::vector<Row>& like) {
  std::vector<Row> rows;
  for (const Row& row : like) {
    Row& made = rows.emplace_back(Row{.id = row.id, .cores = {}});
    if (row.cores.empty() || spare_.empty()) continue;
    made.cores = std::move(spare_.back());
    spare_.pop_back();
    std::fill(made.cores.begin(), made.cores.end(), kNothingUsed);
  }
  return rows;
}

// Takes the arrays of rows that are not needed any longer, at most one for each row.
void PartitionRows::keep_memory(std::vector<Row> rows) {
  for (Row& row : rows) {
    // A row's cores are a large array; packing would allocate one for each row each time.
    if (row.cores.size() == at(node_count_) && spare_.size() < rows_.size()) {
      spare_.push_back(std::move(row.cores));
    }
  }
}

// Compares row by row, not the union of rows: the memo of offers keeps one offer for each row.
void PartitionRows::tell_changes(const std::vector<Row>& before) const {
  for (const Row& row : rows_) {
    const auto old = std::ranges::find(before, row.id, &Row::id);
    for (int rank = 0; rank < node_count_; ++rank) {
      const CoreSet& now = row.cores.empty() ? kNothingUsed : row.cores[at(rank)];
      const bool was_empty = old == before.end() || old->cores.empty();
      if (now != (was_empty ? kNothingUsed : old->cores[at(rank)])) changed_(rank);
    }
  }
}

// R4.12 by exchanges, as Slurm does it. Not stable: rows of equal density may change places, and
// which of them is looked at first decides where a job goes.
void PartitionRows::sort_densest_first() {
  if (is_sorted(rows_)) return;
  save_for_trial();
  sort_densest_first(rows_);
}

bool PartitionRows::is_sorted(const std::vector<Row>& rows) {
  return std::is_sorted(rows.begin(), rows.end(),
                        [](const Row& a, const Row& b) { return a.held_count > b.held_count; });
}

void PartitionRows::sort_densest_first(std::vector<Row>& rows) {
  for (std::size_t i = 0; i < rows.size(); ++i) {
    for (std::size_t j = i + 1; j < rows.size(); ++j) {
      if (rows[j].held_count > rows[i].held_count) std::swap(rows[i], rows[j]);
    }
  }
}

// Jobs that this trial has taken out may come back, so that the order is worked out once for all of
// its copies. After a packing within the trial the jobs stand otherwise.
const std::vector<RowJob*>& PartitionRows::order_in_trial() {
  if (!order_.empty()) return order_;
  std::vector<RowJob*> all = flat_;
  if (!saved_) all.insert(all.end(), removed_.begin(), removed_.end());
  return order_ = packing_order(std::move(all));
}

// Does as pack() and pack_from_scratch(), but changes nothing of this object. It must give the same
// rows as they do, because the question about the copy must have the answer that the books would
// give with these jobs gone: the same order of jobs, the same first fit, the same sorting after
// each job, and the old rows if a job fits nowhere.
std::unique_ptr<PartitionRows> PartitionRows::packed_copy(int count) {
  CHECK(in_trial_);
  auto copy = std::make_unique<PartitionRows>(node_count_);
  copy->rows_ = rows_;
  copy->used_ = used_;
  copy->jobs_on_ = jobs_on_;
  copy->set_count(count);
  if (!unpacked_ || !copy->stacked()) return copy;
  std::vector<Row> rows = copy->empty_rows(copy->rows_);
  for (const RowJob* const job : order_in_trial()) {
    const bool is_out = job->place >= flat_.size() || flat_[job->place] != job;
    if (is_out) continue;
    const auto row = std::ranges::find_if(
        rows, [&](const Row& candidate) { return fits(job->nodes, candidate); });
    if (row == rows.end()) return copy;  // the rows stay as they are
    occupy(*row, *job);
    if (!is_sorted(rows)) sort_densest_first(rows);
  }
  copy->rows_ = std::move(rows);
  return copy;
}

void PartitionRows::begin_trial() {
  CHECK(!in_trial_);
  pack();  // what is due anyway is not part of the trial
  in_trial_ = true;
}

// Once in a trial, and only if it packs or sorts: most questions do neither.
void PartitionRows::save_for_trial() {
  if (!in_trial_ || saved_) return;
  order_.clear();
  saved_ = Layout{.rows = rows_, .places = {}, .removed_count = removed_.size()};
  saved_->places.reserve(flat_.size());
  for (RowJob* const job : flat_) saved_->places.push_back({job, job->row, job->sequence});
}

// False after a packing within the trial, when the job's row is no longer as it left it; then only
// the end of the trial restores it. Jobs come back in the reverse order in which they left, so each
// finds its cores free.
bool PartitionRows::put_back() {
  CHECK(in_trial_ && !removed_.empty());
  if (saved_) return false;
  RowJob& job = *removed_.back();
  removed_.pop_back();
  count_job(job, +1);
  put(job, row_of(job));
  if (!used_.empty()) {
    for (const RankCores& node : job.nodes) used_[at(node.rank)] |= node.cores;
  }
  list(job);
  if (removed_.empty()) unpacked_ = false;
  return true;
}

// A packing within the trial has changed rows and jobs altogether: then the saved layout comes
// back, in which jobs removed before it was saved have no place. Those go back into the rows that
// they were in. Jobs that were removed after that are in the rows that come back, and need only be
// listed and counted.
void PartitionRows::end_trial() {
  CHECK(in_trial_);
  in_trial_ = false;
  order_.clear();
  std::size_t outside = removed_.size();  // how many of them are in no row now
  if (saved_) {
    const std::vector<Row> in_trial = std::exchange(rows_, std::move(saved_->rows));
    for (const Layout::JobPlace& place : saved_->places) {
      place.job->row = place.row;
      place.job->sequence = place.sequence;
    }
    packing_.forget();
    outside = saved_->removed_count;
    tell_changes(in_trial);
    saved_.reset();
  }
  for (std::size_t i = 0; i < removed_.size(); ++i) {
    RowJob& job = *removed_[i];
    count_job(job, +1);
    if (i < outside) put(job, row_of(job));
    list(job);
  }
  // When all jobs are back: several of them may share a node.
  for (const RowJob* const job : removed_) refresh_used(*job);
  removed_.clear();
  unpacked_ = false;
}

}  // namespace sched::cons_tres
