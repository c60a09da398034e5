#include "scheduler/select/cheapest.h"

#include <algorithm>
#include <numeric>
#include <span>

namespace sched {
namespace {

// Three steps, because to ask about all sets of victims takes 2^n questions, and a question is a
// whole selection:
//
// 1. With all victims taken the job must fit.
// 2. Spare as many as possible, the dearest first: a set of which none can be spared, and an upper
//    bound.
// 3. If there are few enough sets of at most that size, ask for all that are cheaper, smallest
//    first; the cost is lexicographic with the count first, so the first size that fits is enough.
class Search {
 public:
  Search(const std::vector<VictimCost>& costs, VictimQuestion& question)
      : costs_{costs}, question_{question}, order_(costs.size()) {
    std::iota(order_.begin(), order_.end(), std::size_t{0});
    // Stable, so that of victims of one price the first candidate goes first.
    std::stable_sort(order_.begin(), order_.end(),
                     [&](std::size_t a, std::size_t b) { return costs_[a] < costs_[b]; });
  }

  std::optional<std::vector<std::size_t>> run() {
    for (const std::size_t victim : order_) question_.take(victim);  // 1
    if (!question_.fits()) return std::nullopt;
    // 2
    const std::vector<std::size_t> dearest_first{order_.rbegin(), order_.rend()};
    spare_where_possible(dearest_first);
    std::reverse(best_.begin(), best_.end());
    // Only sets that are really cheaper are asked for now.
    best_cost_ = sum(best_);
    if (affordable(best_.size())) {  // 3
      for (const std::size_t victim : best_) question_.spare(victim);
      bool found = false;
      for (std::size_t count = 1; count <= best_.size() && !found; ++count) {
        const VictimCost before = best_cost_;
        extend(0, count, {});
        found = best_cost_ < before;
      }
      // The caller may ask the question for what the job gets with these victims.
      for (const std::size_t victim : best_) question_.take(victim);
    }
    std::sort(best_.begin(), best_.end());
    return best_;
  }

 private:
  VictimCost sum(const std::vector<std::size_t>& victims) const {
    VictimCost total;
    for (const std::size_t victim : victims) total += costs_[victim];
    return total;
  }

  // Spares as many as can be spared, in this order; whole blocks at a time.
  void spare_where_possible(std::span<const std::size_t> block) {
    for (const std::size_t victim : block) question_.spare(victim);
    // Halves the set: where most victims can be spared, which is the usual case, this takes about
    // log2(n) questions for each victim that cannot.
    if (question_.fits()) return;
    for (const std::size_t victim : block) question_.take(victim);
    if (block.size() == 1) {
      best_.push_back(block.front());
      return;
    }
    const std::size_t half = block.size() / 2;
    spare_where_possible(block.first(half));
    spare_where_possible(block.subspan(half));
  }

  // All sets of at most `size` victims can be asked for.
  bool affordable(std::size_t size) const {
    std::int64_t sets = 1, total = 0;
    const auto count = static_cast<std::int64_t>(costs_.size());
    for (std::int64_t k = 1; k <= static_cast<std::int64_t>(size); ++k) {
      // The binomial coefficient "count over k" from the one before it; the division leaves no
      // rest.
      sets = sets * (count - k + 1) / k;
      total += sets;
      if (total > kVictimQuestionsMax) return false;
    }
    return true;
  }

  // Asks for all sets of `left` more victims out of order_[from …] that are cheaper than the best
  // so far. Costs only grow along a branch, so a branch that is no longer cheaper is cut. On return
  // the question is as it was on entry.
  void extend(std::size_t from, std::size_t left, const VictimCost& cost) {
    if (left == 0) {
      if (cost < best_cost_ && question_.fits()) {
        best_ = taken_;
        best_cost_ = cost;
      }
      return;
    }
    for (std::size_t i = from; i + left <= order_.size(); ++i) {
      VictimCost with = cost;
      with += costs_[order_[i]];
      if (with >= best_cost_) continue;
      question_.take(order_[i]);
      taken_.push_back(order_[i]);
      extend(i + 1, left - 1, with);
      taken_.pop_back();
      question_.spare(order_[i]);
    }
  }

  const std::vector<VictimCost>& costs_;
  VictimQuestion& question_;
  std::vector<std::size_t> order_;  // cheapest first
  std::vector<std::size_t> taken_;
  std::vector<std::size_t> best_;
  VictimCost best_cost_;
};

}  // namespace

std::optional<std::vector<std::size_t>> cheapest_victims(const std::vector<VictimCost>& costs,
                                                         VictimQuestion& question) {
  return Search{costs, question}.run();
}

}  // namespace sched
