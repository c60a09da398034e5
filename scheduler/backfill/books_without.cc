#include "scheduler/backfill/books_without.h"

#include <utility>

namespace sched {

// Books from which nothing is taken are asked themselves, which packs them if that is due.
Chooser& BooksWithout::first(std::size_t count, const Victims* victims) {
  const bool is_real = count == 0 && victims == nullptr;
  if (ends_.counts_cores()) {
    take_away(count, victims);
    return books_.selector();
  }
  if (!is_real) return copy_of(count, victims);
  release();
  return books_.selector();
}

// A trial changes the selector's books and puts them back when it ends. No other part may look at
// them, or change them, while it lasts.
void BooksWithout::release() {
  trial_.reset();
  gone_victims_ = nullptr;
  gone_ = 0;
}

void BooksWithout::forget_copies() {
  copies_.clear();
  victim_copies_.clear();
}

void BooksWithout::take_away(std::size_t count, const Victims* victims) {
  const std::vector<Ends::End>& ends = ends_.all();
  const auto is_victim = [&](std::size_t end) {
    return victims != nullptr && victims->contains(end);
  };
  // A trial counts the jobs that were taken away in the order of their ends, and victims come from
  // anywhere in it.
  if (gone_victims_ != victims) release();
  // The last jobs taken away come back, if the selector can undo it. If it cannot, the trial begins
  // anew with the real books.
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

Chooser& BooksWithout::copy_of(std::size_t count, const Victims* victims) {
  if (victims != nullptr && copies_victims_ != victims->jobs) {
    victim_copies_.clear();
    copies_victims_ = victims->jobs;
  }
  Copies& copies = victims != nullptr ? victim_copies_ : copies_;
  if (const auto known = copies.find(count); known != copies.end()) return *known->second;
  take_away(count, victims);
  std::unique_ptr<Chooser> copy = trial_->copy();
  if (copy == nullptr) return books_.selector();
  // A copy has some hundred bytes for each node.
  constexpr int kNodesMax = 50'000;  // in all of them
  if (copies.size() >= static_cast<std::size_t>(1 + kNodesMax / (cluster_.node_count() + 1))) {
    copies.clear();
  }
  return *copies.emplace(count, std::move(copy)).first->second;
}

}  // namespace sched
