// 15.4: placementPolicy MinimisePreemption, against brute force over all sets of victims.
#include <gtest/gtest.h>

#include <cstdlib>
#include <set>

#include "base/prng.h"
#include "scheduler/select/cheapest.h"
#include "scheduler/select/cons_tres/testing/world.h"

namespace sched::cons_tres::testing {
namespace {

ClusterParameters minimising(PreemptMode mode, bool with_gang) {
  ClusterParameters parameters = preempting(mode, with_gang);
  parameters.placement = PlacementPolicy::kMinimisePreemption;
  return parameters;
}

// Three nodes are wanted; n4 and n5 are idle, so one victim is enough. All three cost the same, and
// the first one goes. Slurm's own example of a placement that is not optimal (14.9).
TEST(MinimisePreemption, SuspendsOneJobWhereSlurmSuspendsThree) {
  World w{{{.last = 5, .cores = 2}},
          {force("active", 1, 1), force("hipri", 1, 2)},
          minimising(PreemptMode::kSuspend, true)};
  for (const char* name : {"17", "18", "19"})
    w.start(name, {.in = "active", .nodes = 1, .tasks = 2});
  EXPECT_EQ(w.ask({.in = "hipri", .nodes = 3, .tasks = 6}).where, "n1:0-1 n4:0-1 n5:0-1");
}

// Four cores of one node: L1 and L2 of n1 (two victims), L3 of n2 (one of tier 1), or M of n3 (one
// of tier 2).
TEST(MinimisePreemption, EndsTheOneThatSuffices) {
  World w{{{.last = 3}},
          {no("low", 1), no("mid", 2), no("hi", 3)},
          minimising(PreemptMode::kCancel, false)};
  w.start("L1", {.in = "low", .tasks = 2});
  w.start("L2", {.in = "low", .tasks = 2});
  w.start("L3", {.in = "low", .tasks = 4});
  w.start("M", {.in = "mid", .tasks = 4});
  const Placed placed =
      w.ask({.in = "hi", .nodes = 1, .tasks = 4, .take = {"L1", "L2", "L3", "M"}});
  EXPECT_EQ(placed.victims, std::vector<std::string>{"L3"});
  EXPECT_EQ(placed.where, "n2:0-3");
}

// n2 is idle, so stacking over L of n1 would stop a job for nothing.
TEST(MinimisePreemption, NobodyIsTouchedWhenItFitsWithout) {
  World w{{{.last = 2}},
          {force("low", 1, 1), force("hi", 1, 2)},
          minimising(PreemptMode::kSuspend, true)};
  w.start("L", {.in = "low", .tasks = 4});
  EXPECT_EQ(w.ask({.in = "hi", .tasks = 4}).where, "n2:0-3");
}

// --- against brute force ---

// Up to five jobs of two lower tiers on a few nodes, then a question for a job of the highest tier.
// The victims that the selector takes must cost what the cheapest of all sets costs; sets of equal
// cost may differ.
class RandomDuel {
 public:
  RandomDuel(std::uint64_t seed, bool suspends)
      : prng_{seed},
        suspends_{suspends},
        nodes_{1 + pick(4)},
        cores_{1 + pick(4)},
        world_{{{.last = nodes_, .cores = cores_}},
               {force("low", 1, 1), force("mid", 1, 2), force("hi", 1, 3)},
               minimising(suspends ? PreemptMode::kSuspend : PreemptMode::kCancel, suspends)} {}

  void run() {
    // At most five victims: brute force asks the selector for 32 sets at most.
    for (int i = 0; i < 5; ++i) {
      const std::string name = "j" + std::to_string(i);
      const std::string in = pick(2) == 0 ? "low" : "mid";
      const int count = 1 + pick(nodes_);
      if (!world_.start(name, {.in = in, .nodes = count, .tasks = count + pick(cores_)}).empty()) {
        jobs_.push_back(name);
        tiers_[name] = in == "low" ? 1 : 2;
      }
    }
    Ask ask{.in = "hi", .nodes = 1 + pick(nodes_)};
    // From one task for each node up to every core of as many nodes.
    ask.tasks = ask.nodes + pick(ask.nodes * cores_ - ask.nodes + 1);
    // Jobs that are ended are offered as candidates; jobs that are suspended are stacked upon, and
    // the selector finds them itself.
    if (!suspends_) ask.take = jobs_;
    const Placed placed = world_.ask(ask);
    ask.take.clear();
    const auto best = brute_force(ask);
    ASSERT_EQ(placed.where.empty(), !best.has_value()) << placed.where;
    if (!best) return;
    const VictimCost got = cost(suspends_ ? stacked_upon(*placed.allocation) : victims(placed));
    EXPECT_EQ(got, *best) << placed.where << ": " << got.count << " victims, " << best->count
                          << " would do";
  }

 private:
  int pick(int bound) { return static_cast<int>(prng_.below(static_cast<std::uint64_t>(bound))); }

  VictimCost cost(const std::set<std::string>& victims) const {
    VictimCost total;
    for (const std::string& name : victims) {
      std::int64_t cpus = 0;
      for (const NodeAllocation& use : world_.allocation(name).nodes) cpus += use.cpus;
      total += VictimCost{.count = 1, .tiers = tiers_.at(name), .cpus = cpus};
    }
    return total;
  }
  static std::set<std::string> victims(const Placed& placed) {
    return {placed.victims.begin(), placed.victims.end()};
  }
  // Returns the jobs with a core under the allocation: in SUSPEND mode these are the victims, which
  // no list names (7.6.5).
  std::set<std::string> stacked_upon(const Allocation& allocation) const {
    std::set<std::string> under;
    for (const std::string& name : jobs_) {
      for (const NodeAllocation& low : world_.allocation(name).nodes) {
        for (const NodeAllocation& high : allocation.nodes) {
          if (low.node == high.node && low.cores.intersects(high.cores)) under.insert(name);
        }
      }
    }
    return under;
  }
  // Returns the cost of the cheapest set of jobs without which the job finds idle cores, over all
  // 2^n sets. Without the victims the job must not lie over any job that stays.
  std::optional<VictimCost> brute_force(const Ask& ask) {
    std::optional<VictimCost> best;
    for (unsigned set = 0; set < 1U << jobs_.size(); ++set) {
      std::set<std::string> gone;
      for (std::size_t i = 0; i < jobs_.size(); ++i) {
        if ((set >> i & 1U) != 0) gone.insert(jobs_[i]);
      }
      const VictimCost here = cost(gone);
      // Only cheaper sets are asked for, since each question costs a placement.
      if (best && here >= *best) continue;
      const Placed placed = world_.ask_without(gone, ask);
      if (!placed.allocation) continue;
      bool idle = true;
      for (const std::string& name : stacked_upon(*placed.allocation)) {
        idle = idle && gone.contains(name);
      }
      if (idle) best = here;
    }
    return best;
  }

  base::Prng prng_;
  bool suspends_;
  int nodes_, cores_;
  World world_;
  std::vector<std::string> jobs_;
  std::map<std::string, int> tiers_;
};

int duels() {
  return std::getenv("KUBEGANG_LONG") != nullptr ? 20'000 : 500;
}

// CANCEL without gang: the victims are those of the selector's list.
TEST(MinimisePreemption, NoOtherVictimsToEndAreCheaper) {
  for (int seed = 1; seed <= duels() && !::testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    RandomDuel{static_cast<std::uint64_t>(seed), false}.run();
  }
}

// SUSPEND with gang: the victims are the jobs that it is stacked upon.
TEST(MinimisePreemption, NoOtherVictimsToSuspendAreCheaper) {
  for (int seed = 1; seed <= duels() && !::testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    RandomDuel{static_cast<std::uint64_t>(seed), true}.run();
  }
}

}  // namespace
}  // namespace sched::cons_tres::testing
