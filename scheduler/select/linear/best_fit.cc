#include "scheduler/select/linear/best_fit.h"

#include <algorithm>
#include <climits>
#include <utility>

namespace sched::linear {
namespace {

// A maximal run of consecutive eligible nodes. Required nodes in it are taken already: `nodes` and
// `cpus` count the others.
struct Run {
  int begin = 0;
  int end = 0;  // exclusive
  int nodes = 0;
  int cpus = 0;
  int first_required = -1;
};

// 4.4.4. The aim is to leave large runs of free neighbors to later jobs: a job goes into the
// smallest run that holds it, and only a job that fits into none is spread over several.
//
// `rem_nodes_` and `rem_cpus_` are what is still missing of the wish, and may become negative;
// `room_` is how many more nodes the job may have.
//
// For example, nodes 1 to 8 without 3 and 6 are eligible: runs 1-2, 4-5 and 7-8. A job of two nodes
// gets 1-2. One of three nodes finds no run that suffices, takes the first of the largest, 1-2, as
// a whole, and then 4.
class BestFit {
 public:
  BestFit(const CpuSums& cpus, const BestFitRequest& request)
      : cpus_{cpus},
        request_{request},
        any_required_{request.any_required && !request.required.empty()},
        chosen_{request.eligible.size()},
        rem_nodes_{std::max(request.min_nodes, request.req_nodes)},
        rem_cpus_{request.min_cpus},
        room_{request.max_nodes} {}

  // 1, 2. Find the runs, and take the required nodes.
  // 3. If only big nodes will do, take the biggest ones wherever they are.
  // 4. Otherwise take from the best run, then from the next best, until the job has enough.
  // 5. With --contiguous one run must do.
  // 6. With a range of node counts, fewer than wished for are accepted, down to the minimum.
  std::optional<std::vector<int>> run() {
    find_runs();
    if (prefers_big_nodes()) {
      take_biggest();
      const bool fits = accepted() && (!request_.contiguous || one_block());
      return fits ? std::optional{ranks()} : std::nullopt;
    }
    while (room_ > 0 && !satisfied()) {
      const int best = best_run();
      if (best < 0) break;
      Run& run = runs_[static_cast<std::size_t>(best)];
      if (request_.contiguous && !sufficient(run)) break;
      take_from(run);
      if (request_.contiguous) break;
      // It gave all it could and was not enough: the next best adds to it.
      run.nodes = run.cpus = 0;
    }
    if (request_.contiguous && !one_block()) return std::nullopt;
    return accepted() ? std::optional{ranks()} : std::nullopt;
  }

 private:
  std::vector<int> ranks() const {
    std::vector<int> ranks;
    for (int rank = chosen_.next(0); rank >= 0; rank = chosen_.next(rank + 1)) {
      ranks.push_back(rank);
    }
    return ranks;
  }

  bool satisfied() const { return rem_nodes_ <= 0 && rem_cpus_ <= 0; }

  // Step 6: the target may be missed, the minimum not.
  bool accepted() const {
    if (satisfied()) return true;
    const int slack = std::max(0, request_.req_nodes - request_.min_nodes);
    return rem_cpus_ <= 0 && rem_nodes_ <= slack;
  }

  // Returns true if the run alone holds what is missing.
  bool sufficient(const Run& run) const {
    const int slack = std::max(0, request_.req_nodes - request_.min_nodes);
    return run.cpus >= rem_cpus_ && run.nodes >= rem_nodes_ - slack;
  }

  // Nodes are handed out whole, so each brings all of its CPUs.
  void take(int rank) {
    chosen_.set(rank);
    --rem_nodes_;
    --room_;
    rem_cpus_ -= cpus_.cpus(rank);
  }

  // Steps 1 and 2.
  void find_runs() {
    const NodeSet& eligible = request_.eligible;
    for (int begin = eligible.next(0); begin >= 0;) {
      Run run;
      run.begin = begin;
      run.end = eligible.next_absent(begin);
      run.nodes = run.end - run.begin;
      run.cpus = cpus_.of_run(run.begin, run.end);
      runs_.push_back(run);
      begin = eligible.next(run.end);
    }
    if (!any_required_) return;
    std::size_t at = 0;
    for (int rank = request_.required.next(0); rank >= 0; rank = request_.required.next(rank + 1)) {
      // Both are ascending, so one walk finds the run of each.
      while (runs_[at].end <= rank) ++at;
      Run& run = runs_[at];
      if (run.first_required < 0) run.first_required = rank;
      --run.nodes;
      run.cpus -= cpus_.cpus(rank);
      take(rank);
    }
  }

  // Step 3.
  bool prefers_big_nodes() const {
    if (cpus_.uniform() || rem_nodes_ <= 0) return false;
    int least = INT_MAX;
    int most = 0;
    for (int rank = request_.eligible.next(0); rank >= 0; rank = request_.eligible.next(rank + 1)) {
      least = std::min(least, cpus_.cpus(rank));
      most = std::max(most, cpus_.cpus(rank));
    }
    // If the smallest nodes cannot bring the CPUs together, where nodes lie no longer
    // counts.
    return least < most && rem_cpus_ > static_cast<long long>(least) * rem_nodes_;
  }

  // Step 3: largest first, until the job has enough or may have no more.
  void take_biggest() {
    std::vector<int> ranks;
    for (int rank = request_.eligible.next(0); rank >= 0; rank = request_.eligible.next(rank + 1)) {
      if (!chosen_.test(rank)) ranks.push_back(rank);
    }
    // Ties: the higher rank wins.
    std::sort(ranks.begin(), ranks.end(), [this](int a, int b) {
      return cpus_.cpus(a) != cpus_.cpus(b) ? cpus_.cpus(a) > cpus_.cpus(b) : a > b;
    });
    for (const int rank : ranks) {
      if (satisfied() || room_ <= 0) break;
      take(rank);
    }
  }

  // Step 4: which of two runs is better depends on what was found before, in run order.
  int best_run() const {
    int best = -1;
    bool best_sufficient = false;
    for (std::size_t i = 0; i < runs_.size(); ++i) {
      const Run& run = runs_[i];
      if (run.nodes == 0) continue;
      // Only the run of the required nodes counts.
      if (request_.contiguous && any_required_ && run.first_required < 0) continue;
      const bool enough = sufficient(run);
      const Run* held = best < 0 ? nullptr : &runs_[static_cast<std::size_t>(best)];
      const bool better = held == nullptr ||
                          (held->first_required < 0 && run.first_required >= 0) ||
                          (enough && !best_sufficient) || (enough && run.cpus < held->cpus) ||
                          (!enough && !best_sufficient && run.cpus > held->cpus);
      if (!better) continue;
      best = static_cast<int>(i);
      best_sufficient = enough;
    }
    return best;
  }

  // Upward from the first required node, or from the begin of the run; then downward.
  void take_from(const Run& run) {
    const int from = run.first_required < 0 ? run.begin : run.first_required;
    for (int rank = from; rank < run.end && room_ > 0 && !satisfied(); ++rank) {
      if (!chosen_.test(rank)) take(rank);
    }
    // Below the first required node there is still something to take, nearest first.
    for (int rank = from - 1; rank >= run.begin && room_ > 0 && !satisfied(); --rank) {
      if (!chosen_.test(rank)) take(rank);
    }
  }

  // Step 5.
  bool one_block() const {
    const int first = chosen_.next(0);
    return first >= 0 && chosen_.next(chosen_.next_absent(first)) < 0;
  }

  const CpuSums& cpus_;
  const BestFitRequest& request_;
  const bool any_required_;
  NodeSet chosen_;
  std::vector<Run> runs_;
  int rem_nodes_;
  int rem_cpus_;
  int room_;
};

}  // namespace

// Prefix sums, so the CPUs of any run cost two look-ups.
CpuSums::CpuSums(const std::vector<int>& cpus_by_rank) {
  sums_.reserve(cpus_by_rank.size() + 1);
  for (const int cpus : cpus_by_rank) {
    sums_.push_back(sums_.back() + cpus);
    uniform_ = uniform_ && cpus == cpus_by_rank.front();
  }
}

std::optional<std::vector<int>> best_fit(const CpuSums& cpus, const BestFitRequest& request) {
  return BestFit{cpus, request}.run();
}

}  // namespace sched::linear
