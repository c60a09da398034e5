#include "scheduler/select/cons_tres/choose.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <numeric>

namespace sched::cons_tres {
namespace {

// True if the job wants a number of devices over all its nodes: then their nodes are chosen by
// devices, too (R11.9).
bool counts_over_nodes(const Shape& shape) {
  return std::ranges::any_of(shape.kinds, [](const KindDemand& kind) { return kind.of_job > 0; });
}

// Devices that nodes give to a job that wants a number of them over all its nodes.
class DeviceSums {
 public:
  explicit DeviceSums(const ChoiceRequest& request)
      : kinds_{request.shape.kinds},
        counts_{counts_over_nodes(request.shape)},
        sums_(counts_ ? kinds_.size() : 0) {}

  bool counts() const { return counts_; }
  void add(const std::vector<int>& devices) {
    for (std::size_t i = 0; i < sums_.size(); ++i) sums_[i] += devices[i];
  }
  void add(const DeviceSums& other) { add(other.sums_); }
  bool suffice() const {
    for (std::size_t i = 0; i < sums_.size(); ++i) {
      if (sums_[i] < kinds_[i].of_job) return false;
    }
    return true;
  }
  // With those of a node besides.
  bool suffice_with(const std::vector<int>& devices) const {
    for (std::size_t i = 0; i < sums_.size(); ++i) {
      if (sums_[i] + devices[i] < kinds_[i].of_job) return false;
    }
    return true;
  }
  bool suffice_with(const DeviceSums& other) const { return suffice_with(other.sums_); }

 private:
  const std::vector<KindDemand>& kinds_;
  bool counts_;
  std::vector<int> sums_;
};

// Takes nodes one by one and keeps count of what is still missing.
class Taker {
 public:
  Taker(const Offer& offer, const ChoiceRequest& request)
      : offer_{offer},
        request_{request},
        shape_{request.shape},
        occupancy_{request.occupancy},
        rem_nodes_{std::max(request.shape.min_nodes, request.shape.req_nodes)},
        min_rem_nodes_{request.shape.min_nodes},
        max_nodes_{request.shape.max_nodes},
        rem_cpus_{request.shape.min_cpus},
        devices_{request} {
    // Nodes beyond the least are taken for their devices alone.
    if (devices_.counts()) rem_nodes_ = std::min(shape_.min_nodes, shape_.req_nodes);
    // GPUs bring CPUs with them, of which a node may give as many.
    most_cpus_ = std::max<std::int64_t>(
        {rem_cpus_, std::int64_t{shape_.min_gpu_cpus} * rem_nodes_, shape_.min_gpu_cpus_of_job});
  }

  // Leaves one core's CPUs for each node that must still follow. For 10 CPUs on three nodes at
  // least, a first node that offers 10 gives 8.
  void take(int rank) {
    int cpus = offer_.cpus(rank);
    if (!shape_.whole_nodes) {
      const NodeFacts& node = occupancy_.facts(rank);
      const int unit = cpus_per_core(shape_, node) *
                       (shape_.unit == SelectUnit::kSocket ? node.cores_per_socket : 1);
      // A node that took all CPUs would leave nothing for the nodes that the job must have besides.
      const std::int64_t most = most_cpus_ - std::int64_t{std::max(min_rem_nodes_ - 1, 0)} * unit;
      if (cpus > most) {
        cpus = static_cast<int>(std::max<std::int64_t>(
            {most, std::int64_t{shape_.given_cpus}, std::int64_t{shape_.min_gpu_cpus}}));
      }
    }
    // The cores beyond the offer have been given up.
    if (!shape_.kinds.empty()) cpus = std::min(cpus, offer_.cpus(rank));
    chosen_.push_back({rank, cpus});
    if (devices_.counts()) cpus = with_devices(rank, cpus);
    rem_cpus_ -= cpus;
    most_cpus_ -= cpus;
    --rem_nodes_;
    --min_rem_nodes_;
    --max_nodes_;
  }

  bool may_take() const { return max_nodes_ > 0; }
  bool complete() const { return rem_nodes_ <= 0 && rem_cpus_ <= 0 && devices_.suffice(); }
  // Enough, if not as many nodes as wished for.
  bool acceptable() const { return rem_cpus_ <= 0 && enough_nodes(0) && devices_.suffice(); }
  bool enough_nodes(int count) const {
    // Two nodes of "-N2-4" may be missing in the end.
    const int spare = shape_.req_nodes > shape_.min_nodes ? shape_.req_nodes - shape_.min_nodes : 0;
    return count >= rem_nodes_ - spare;
  }
  int rem_nodes() const { return rem_nodes_; }
  int max_nodes() const { return max_nodes_; }
  std::int64_t rem_cpus() const { return rem_cpus_; }
  const DeviceSums& devices() const { return devices_; }

  std::vector<Chosen> result() && {
    std::sort(chosen_.begin(), chosen_.end(),
              [](const Chosen& a, const Chosen& b) { return a.rank < b.rank; });
    return std::move(chosen_);
  }

 private:
  // Counts the node's devices, and returns the CPUs that count with them: with --cpus-per-gpu those
  // of its GPUs (recorded: rnd_pergpu_1, where two tasks and a GPU with one CPU need a node with
  // two GPUs).
  int with_devices(int rank, int cpus) {
    std::vector<int> devices = request_.devices(rank).devices;
    int of_gpus = 0;
    if (shape_.cpus_per_gpu > 0 && !shape_.gpu_cpus_by_default) {
      for (std::size_t i = 0; i < devices.size(); ++i) {
        const KindDemand& kind = shape_.kinds[i];
        if (!kind.is_gpu || kind.of_job == 0) continue;
        devices[i] = std::min(devices[i], cpus / shape_.cpus_per_gpu);
        of_gpus = std::max(of_gpus, devices[i] * shape_.cpus_per_gpu);
      }
    }
    devices_.add(devices);
    return of_gpus > 0 ? of_gpus : cpus;
  }

  const Offer& offer_;
  const ChoiceRequest& request_;
  const Shape& shape_;
  const Occupancy& occupancy_;
  int rem_nodes_, min_rem_nodes_, max_nodes_;
  std::int64_t rem_cpus_;
  std::int64_t most_cpus_ = 0;  // that a node may give
  DeviceSums devices_;
  std::vector<Chosen> chosen_;
};

// Neighbours of one weight. Required nodes lie in it, but count neither as nodes nor as CPUs.
struct Run {
  int begin = 0, end = 0;
  std::int64_t cpus = 0;
  int nodes = 0;
  std::uint64_t weight = 0;
  int first_required = -1;
  DeviceSums devices;
};

// Lower is taken first: among nodes of one weight those with more GPUs for the job.
std::uint64_t weight_of(const ChoiceRequest& request, int rank) {
  constexpr int kMost = 0xff;
  const int near = request.devices ? std::min(request.devices(rank).near_gpus, kMost) : 0;
  return (std::uint64_t{request.occupancy.facts(rank).weight} << 8U) +
         static_cast<std::uint64_t>(kMost - near);
}

// True if nodes differ in the GPUs that the job may have of them.
bool weighs_devices(const Shape& shape) {
  return !shape.kinds.empty() && (shape.whole_nodes || counts_over_nodes(shape));
}

// Returns the end of the run of neighbors that begins here.
int run_end(const Offer& offer, const ChoiceRequest& request, int begin) {
  // Often all nodes offer something.
  const bool all = offer.count() == offer.nodes().size();
  const int end = all ? offer.count() : offer.nodes().next_absent(begin);
  // --contiguous must not fail because of weights: its runs are not cut at them.
  if (request.shape.contiguous) return end;
  if (weighs_devices(request.shape)) {
    int cut = begin + 1;
    while (cut < end && weight_of(request, cut) == weight_of(request, begin)) ++cut;
    return cut;
  }
  if (request.occupancy.is_of_one_weight()) return end;
  const int cut = request.occupancy.weight_changes().next(begin + 1);
  return cut >= 0 && cut < end ? cut : end;
}

// Required nodes have been taken before this. A run counts only the others, but remembers its first
// required node, because best_run() prefers a run with one: there the job's nodes are neighbors.
std::vector<Run> find_runs(const Offer& offer, const ChoiceRequest& request) {
  std::vector<Run> runs;
  for (int begin = offer.nodes().next(0); begin >= 0;) {
    const int end = run_end(offer, request, begin);
    // Required nodes where the weight has just changed draw no node into a run (recorded).
    if (begin > 0 && offer.nodes().test(begin - 1)) {
      while (request.any_required && begin < end && request.required.test(begin)) ++begin;
    }
    if (begin == end) {
      begin = offer.nodes().next(end);
      continue;
    }
    Run run{.begin = begin,
            .end = end,
            // Often all that is offered is one run.
            .cpus = end - begin == offer.count() ? offer.total() : offer.of_run(begin, end),
            .nodes = end - begin,
            .weight = weighs_devices(request.shape) ? weight_of(request, begin)
                                                    : request.occupancy.facts(begin).weight,
            .devices = DeviceSums{request}};
    if (run.devices.counts()) {
      for (int rank = begin; rank < end; ++rank) {
        const bool taken = request.any_required && request.required.test(rank);
        if (!taken) run.devices.add(request.devices(rank).devices);
      }
    }
    for (int rank = request.any_required ? request.required.next(begin) : -1;
         rank >= 0 && rank < end; rank = request.required.next(rank + 1)) {
      if (run.first_required < 0) run.first_required = rank;
      run.cpus -= offer.cpus(rank);
      --run.nodes;
    }
    if (run.nodes > 0) runs.push_back(run);  // of required nodes alone: nothing left to choose
    begin = offer.nodes().next(end);
  }
  return runs;
}

// Returns the best run that is left, as Slurm weighs them in node order: a required node inside, a
// lower weight, then the first that suffices, the tightest that does, or else the largest.
//
// For example, 10 CPUs are wanted of runs with 8, 16 and 12 in node order. The first is kept until
// one suffices; 16 does, and 12 is tighter. Had no run sufficed, the largest would be used up
// first, and the rest sought in the others.
Run* best_run(std::vector<Run>& runs, const ChoiceRequest& request, const Taker& taker) {
  const bool contiguous = request.shape.contiguous;
  const bool one_block = contiguous && request.any_required;
  Run* best = nullptr;
  bool best_suffices = false;
  for (Run& run : runs) {
    if (run.nodes == 0 || (one_block && run.first_required < 0)) continue;
    const bool suffices = run.cpus >= taker.rem_cpus() && taker.enough_nodes(run.nodes) &&
                          taker.devices().suffice_with(run.devices);
    // One block must do: a run that does not suffice cannot be added to by another.
    if (contiguous && !suffices) continue;
    bool better = best == nullptr || (best->first_required < 0 && run.first_required >= 0) ||
                  run.weight < best->weight;
    if (!better && run.weight == best->weight) {
      // A larger one that does not suffice is taken even before one that does (recorded).
      better = suffices ? !best_suffices || run.cpus < best->cpus : run.cpus > best->cpus;
    }
    if (!better) continue;
    best = &run;
    best_suffices = suffices;
  }
  return best;
}

// Returns, of the run's nodes that hold what is missing, the one that offers least; -1: none does.
int tightest(const Run& run, const Offer& offer, const ChoiceRequest& request, const Taker& taker,
             int need) {
  if (!taker.devices().counts()) return offer.tightest(run.begin, run.end, need);
  int best = -1;
  for (int rank = run.begin; rank < run.end; ++rank) {
    if (offer.cpus(rank) < need || request.required.test(rank)) continue;
    if (!taker.devices().suffice_with(request.devices(rank).devices)) continue;
    if (best < 0 || offer.cpus(rank) < offer.cpus(best)) best = rank;
  }
  return best;
}

// Takes nodes until the job has enough or the run is used up: around the required node if there is
// one in it, else the single node that holds the rest, else from its begin on.
void take_run(const Run& run, const Offer& offer, const ChoiceRequest& request, Taker& taker) {
  const auto take = [&](int rank) {
    if (!request.required.test(rank)) taker.take(rank);
    return taker.may_take() && !taker.complete();
  };
  if (run.first_required >= 0) {  // upward from it, then downward
    bool more = true;
    for (int rank = run.first_required; more && rank < run.end; ++rank) more = take(rank);
    for (int rank = run.first_required - 1; more && rank >= run.begin; --rank) more = take(rank);
    return;
  }
  if (taker.rem_nodes() <= 1) {  // one node that holds the rest alone, if there is one
    const auto need = static_cast<int>(std::max<std::int64_t>(taker.rem_cpus(), 0));
    if (const int single = tightest(run, offer, request, taker, need); single >= 0) {
      take(single);
      return;
    }
  }
  for (int rank = run.begin; rank < run.end; ++rank) {
    // The last node that the job may have must hold the rest (recorded).
    if (taker.max_nodes() == 1 && offer.cpus(rank) < taker.rem_cpus()) continue;
    if (!take(rank)) break;
  }
}

// Consecutive best fit (4.8).
//
// 1. Required nodes are taken first; with --contiguous all of them must be in one block.
// 2. Cut what is offered into runs of neighbors of one weight.
// 3. Take from the best run until the job has what it needs; then from the next best of the others.
std::vector<Chosen> best_fit(const Offer& offer, const ChoiceRequest& request) {
  Taker taker{offer, request};
  for (int rank = request.any_required ? request.required.next(0) : -1; rank >= 0;  // 1
       rank = request.required.next(rank + 1)) {
    taker.take(rank);
  }
  // Runs keep jobs together: a large job that takes a run whole leaves larger runs to the others
  // than one that takes nodes from everywhere.
  std::vector<Run> runs = find_runs(offer, request);  // 2
  if (request.shape.contiguous && request.any_required) {
    // All required nodes in one block.
    const int first = request.required.next(0);
    const int end = run_end(offer, request, first);
    for (int rank = first; rank >= 0; rank = request.required.next(rank + 1)) {
      if (rank >= end) return {};
    }
  }
  while (taker.may_take() && !taker.complete()) {  // 3
    Run* const run = best_run(runs, request, taker);
    if (run == nullptr) break;
    take_run(*run, offer, request, taker);
    // Used up: what it could give has been taken.
    run->nodes = 0;
  }
  if (!taker.complete() && !taker.acceptable()) return {};
  return std::move(taker).result();
}

// bf_busy_nodes: nodes in use first, in node order, whatever runs of neighbors there are. A promise
// on busy nodes leaves the idle ones to jobs that can start now.
std::vector<Chosen> busy_first(const Offer& offer, const ChoiceRequest& request) {
  Taker taker{offer, request};
  for (int rank = request.required.next(0); rank >= 0; rank = request.required.next(rank + 1)) {
    taker.take(rank);
  }
  for (const bool idle : {false, true}) {
    for (int rank = offer.nodes().next(0); rank >= 0; rank = offer.nodes().next(rank + 1)) {
      if (!taker.may_take() || taker.complete()) break;
      if (request.idle_last->test(rank) == idle && !request.required.test(rank)) taker.take(rank);
    }
  }
  if (!taker.complete() && !taker.acceptable()) return {};
  return std::move(taker).result();
}

// A node as CR_LLN compares it. Weights come first; a node with 3 of 4 cores free is before one
// with 5 of 8.
struct Load {
  int rank;
  std::uint32_t weight;
  std::int64_t free, all;  // cores

  bool before(const Load& other) const {
    return weight != other.weight ? weight < other.weight : free * other.all > other.free * all;
  }
};

// CR_LLN: among the lightest nodes the one with the largest share of free cores, then the next.
std::vector<Chosen> least_loaded(const Offer& offer, const ChoiceRequest& request) {
  Taker taker{offer, request};
  std::vector<Load> order;
  for (int rank = offer.nodes().next(0); rank >= 0; rank = offer.nodes().next(rank + 1)) {
    if (request.required.test(rank)) {
      taker.take(rank);
    } else {
      const NodeFacts& facts = request.occupancy.facts(rank);
      order.push_back({.rank = rank,
                       .weight = facts.weight,
                       .free = request.view.free(rank).count(),
                       .all = facts.cores_count()});
    }
  }
  // The fraction of free cores is compared crosswise, in integers.
  std::stable_sort(order.begin(), order.end(),
                   [](const Load& a, const Load& b) { return a.before(b); });
  for (const Load& load : order) {
    if (!taker.may_take() || taker.complete()) break;
    taker.take(load.rank);
  }
  if (!taker.complete() && !taker.acceptable()) return {};
  return std::move(taker).result();
}

// Returns false if no choice can succeed. True promises nothing.
bool can_hold(const Offer& offer, const ChoiceRequest& request) {
  return offer.count() >= request.shape.min_nodes && offer.total() >= request.shape.min_cpus &&
         (!request.any_required || (offer.nodes().contains(request.required) &&
                                    request.required.count() <= request.shape.max_nodes));
}

// Returns true if as many nodes as the job may have can hold it, whichever they are: those that
// offer most would. REQUIRES: can_hold().
bool largest_suffice(const Offer& offer, const Shape& shape) {
  if (offer.count() <= shape.max_nodes) return true;
  std::vector<int> cpus;
  cpus.reserve(static_cast<std::size_t>(offer.count()));
  for (int rank = offer.nodes().next(0); rank >= 0; rank = offer.nodes().next(rank + 1)) {
    cpus.push_back(std::max(offer.cpus(rank), shape.given_cpus));
  }
  const auto end = cpus.begin() + shape.max_nodes;
  std::nth_element(cpus.begin(), end, cpus.end(), std::greater<>{});
  return std::accumulate(cpus.begin(), end, std::int64_t{0}) >= shape.min_cpus;
}

// Makes one try. The order of the choosers is that of 4.8: busy nodes first, which --contiguous
// excludes, then the least loaded, then best fit.
std::vector<Chosen> choose_once(const Offer& offer, const ChoiceRequest& request) {
  if (!can_hold(offer, request)) return {};
  if (request.idle_last != nullptr && !request.shape.contiguous) return busy_first(offer, request);
  return request.shape.least_loaded ? least_loaded(offer, request) : best_fit(offer, request);
}

}  // namespace

// The chooser that the shape asks for; if it fails though the nodes together offer enough, again
// without the smallest nodes. Example: two nodes at most, 12 CPUs, offers of 2, 2, 8 and 8 CPUs: a
// run that begins with the small nodes fails, and without them the job fits. If not even the nodes
// that offer most hold the job, to leave out others does not help, and there is no second try.
std::vector<Chosen> choose(const Offer& offer, const ChoiceRequest& request) {
  std::vector<Chosen> chosen = choose_once(offer, request);
  if (!chosen.empty() || !can_hold(offer, request)) return chosen;
  // The job may be stuck on nodes that offer little while larger ones would hold it: leave out the
  // small ones, count by count.
  const int min_nodes = request.shape.min_nodes;
  if (offer.count() <= min_nodes || !largest_suffice(offer, request.shape)) return {};
  // For a job with devices: CPUs and GPUs together.
  const auto resources = [&](int rank) {
    return request.devices ? request.devices(rank).resources : offer.cpus(rank);
  };
  int most = 0;
  for (int rank = offer.nodes().next(0); rank >= 0; rank = offer.nodes().next(rank + 1)) {
    most = std::max(most, resources(rank));
  }
  Offer rest = offer;
  // Nodes that offer at most `count` are left out. It ends when the job fits, or when so few
  // nodes are left that it must have them all.
  for (int count = 1; count < most; ++count) {
    bool changed = false;
    for (int rank = rest.nodes().next(0); rank >= 0 && rest.count() > min_nodes;
         rank = rest.nodes().next(rank + 1)) {
      if (resources(rank) > count || request.required.test(rank)) continue;
      rest.set(rank, 0);
      changed = true;
    }
    if (!changed) continue;
    chosen = choose_once(rest, request);
    if (!chosen.empty() || !can_hold(rest, request) || rest.count() <= min_nodes) return chosen;
  }
  return {};
}

}  // namespace sched::cons_tres
