#include "scheduler/backfill/books_without.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace sched {

// Two ways. Where free cores can be counted, the selector answers in the trial itself: its books
// are as cheap to ask with jobs gone as without. Where jobs are stacked rows are packed for the
// question, in a copy: what it answers, and what the selector answers later, does not depend on
// what was asked before. Books from which nothing is taken are asked themselves, which packs them
// if that is due.
Chooser& BooksWithout::first(std::size_t count, const Victims* victims) {
  if (is_on_nodes_) release();
  if (ends_.counts_cores()) {
    take_away(count, victims);
    return books_.selector();
  }
  if (count == 0 && victims == nullptr) {
    release();
    return books_.selector();
  }
  const auto known = copies_.find(count);
  if (victims == nullptr && known != copies_.end()) return *known->second;
  take_away(count, victims);
  std::unique_ptr<Chooser> copy = trial_->copy();
  if (copy == nullptr) return books_.selector();
  // A copy has some hundred bytes for each node. At least one is kept, however many nodes there
  // are.
  constexpr int kNodesMax = 50'000;  // in all of them
  const auto copies_max = static_cast<std::size_t>(1 + kNodesMax / (cluster_.node_count() + 1));
  if (copies_.size() >= copies_max) copies_.clear();
  std::unique_ptr<Chooser>& kept = victims != nullptr ? victims_copy_ : copies_[count];
  kept = std::move(copy);
  return *kept;
}

// In the order of the job table; a job may be on several of the nodes.
Chooser& BooksWithout::on(const NodeSet& nodes, base::Instant at) {
  release();
  std::vector<const Job*> gone;
  for (int rank = nodes.next(0); rank >= 0; rank = nodes.next(rank + 1)) {
    for (const Job* const job : books_.usage().jobs_on(cluster_.node_at(rank))) {
      if (!job->completing() && ends_.guess(*job) <= at) gone.push_back(job);
    }
  }
  std::ranges::sort(gone, {}, &Job::table_order);
  gone.erase(std::unique(gone.begin(), gone.end()), gone.end());
  trial_ = books_.selector().begin_trial();
  is_on_nodes_ = true;
  for (const Job* const job : gone) trial_->remove(job->select, Selector::Trial::Keep::kNothing);
  return books_.selector();
}

// A trial changes the selector's books and puts them back when it ends. No other part may look at
// them, or change them, while it lasts.
void BooksWithout::release() {
  trial_.reset();
  is_on_nodes_ = false;
  gone_victims_ = nullptr;
  gone_ = 0;
}

void BooksWithout::forget_copies() {
  copies_.clear();
  victims_copy_.reset();
}

// Brings the trial to the state in which the victims and the first `count` ends are gone. While it
// lives, gone_victims_ and the first gone_ ends that are not victims are out of the books, in this
// order.
//
// Questions come close to each other, so the trial moves on instead of beginning again: after a
// question with 5 ends gone one with 8 takes three more away, and one with 6 after that puts two
// back.
void BooksWithout::take_away(std::size_t count, const Victims* victims) {
  const std::vector<Ends::End>& ends = ends_.all();
  const auto is_victim = [&](std::size_t end) {
    return victims != nullptr && victims->contains(end);
  };
  // A trial counts the jobs that were taken away in the order of their ends, and victims come from
  // anywhere in it.
  if (gone_victims_ != victims) release();
  // The last jobs taken away come back, if the selector can undo it. If it cannot, the trial begins
  // with the real books.
  while (gone_ > count) {
    if (is_victim(gone_ - 1) || trial_->put_back()) {
      --gone_;
    } else {
      release();
    }
  }
  if (!trial_ && (count > 0 || victims != nullptr)) {
    trial_ = books_.selector().begin_trial();
    gone_victims_ = victims;
    if (victims != nullptr) {
      for (const auto& [victim, keep] : victims->jobs) trial_->remove(*victim, keep);
    }
  }
  for (; gone_ < count; ++gone_) {
    if (!is_victim(gone_)) trial_->remove(ends[gone_].job->select, Selector::Trial::Keep::kNothing);
  }
}

}  // namespace sched
