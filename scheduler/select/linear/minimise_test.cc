// 15.4 under select/linear: placementPolicy MinimisePreemption against brute force over all sets of
// victims, on random small clusters; and a job that cannot start even then takes no victim.
#include <algorithm>
#include <cstdlib>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include <gtest/gtest.h>

#include "base/prng.h"
#include "scheduler/testing/cluster_driver.h"

namespace sched::testing {
namespace {

// A way to preempt: the mode, with the gang or without it, and how deep partitions are stacked.
struct Profile {
  const char* name;
  PreemptMode mode;
  bool gang;
  int low_share, high_share;  // FORCE:n
};

Configuration minimising(const Profile& profile, const std::vector<NodeSpec>& all) {
  Configuration c =
      gang_linear({partition("low", all, OverSubscribe::kForce, profile.low_share, 1),
                   partition("mid", all, OverSubscribe::kForce, profile.low_share, 2),
                   partition("high", all, OverSubscribe::kForce, profile.high_share, 3)});
  c.cluster.gang = profile.gang;
  c.cluster.preempt_type = PreemptType::kPartitionPriority;
  c.cluster.preempt_mode = profile.mode;
  c.cluster.placement = PlacementPolicy::kMinimisePreemption;
  return c;
}

using Cost = std::tuple<int, int, int>;  // victims, their tiers, their CPUs

// Goal: under MinimisePreemption no other set of victims would have been cheaper. Method: up to
// four jobs of lower tiers run on two to six nodes, and a job of the highest tier comes. Before it
// does, the cost of the cheapest set of victims is worked out by trying all sets; afterwards the
// cost of the victims that were taken must be the same. Sets of equal cost may differ.
class RandomDuel {
 public:
  RandomDuel(std::uint64_t seed, const Profile& profile)
      : prng_{seed},
        nodes_{nodes("n", 1, 2 + pick(5))},
        driver_{minimising(profile, nodes_), nodes_, make_replay()} {
    driver_.ends_at_once = false;
  }

  void run() {
    const int count = static_cast<int>(nodes_.size());
    // Up to four victims: brute force over 16 sets is exact and fast.
    for (std::int64_t id = 1; id <= 4; ++id) {
      const bool mid = pick(2) == 0;
      const int size = 1 + pick(3);
      // Only jobs that start at once: one that waits would be no victim and could take the nodes
      // later.
      if (size > free_nodes({})) break;
      tell(Submit{job(id, size, mid ? "mid" : "low")});
      tell(Pass{});
      running_.push_back({id, mid ? 2 : 1});
    }
    driver_.take_log();
    const int wanted = 1 + pick(count);
    // Worked out before the preemptor comes, from what each job holds then.
    const std::optional<Cost> best = cheapest(wanted);
    tell(Submit{job(9, wanted, "high")});
    tell(Pass{});
    std::set<std::int64_t> victims;
    for (const Decision& decision : driver_.take_log()) {
      if (const auto* end = std::get_if<End>(&decision)) victims.insert(end->job.number());
      if (const auto* stop = std::get_if<Suspend>(&decision)) victims.insert(stop->job.number());
    }
    ASSERT_TRUE(best.has_value()) << "a cluster that its victims leave always suffices";
    EXPECT_EQ(cost(victims), *best) << wanted << " nodes wanted of " << count;
  }

 private:
  struct Running {
    std::int64_t id;
    int tier;
  };
  int pick(int bound) { return static_cast<int>(prng_.below(static_cast<std::uint64_t>(bound))); }
  void tell(const Event& event) { driver_.step(at(static_cast<double>(++time_)), event); }

  // Nodes without any job once these jobs are gone. Whole nodes are handed out, so counting is
  // enough.
  int free_nodes(const std::set<std::int64_t>& gone) const {
    int free = static_cast<int>(nodes_.size());
    for (const Running& running : running_) {
      if (!gone.contains(running.id)) free -= static_cast<int>(driver_.nodes_of(running.id).size());
    }
    return free;
  }
  // In the order in which costs are compared (15.4): number, tiers, CPUs.
  Cost cost(const std::set<std::int64_t>& victims) const {
    Cost sum{};
    for (const Running& running : running_) {
      if (!victims.contains(running.id)) continue;
      std::get<0>(sum) += 1;
      std::get<1>(sum) += running.tier;
      for (const NodeAllocation& use : driver_.view(running.id).allocation->nodes) {
        std::get<2>(sum) += use.cpus;
      }
    }
    return sum;
  }
  // Whole nodes: a set of victims suffices if it leaves enough nodes without a job.
  std::optional<Cost> cheapest(int wanted) const {
    std::optional<Cost> best;
    for (unsigned set = 0; set < 1U << running_.size(); ++set) {
      std::set<std::int64_t> gone;
      for (std::size_t i = 0; i < running_.size(); ++i) {
        if ((set >> i & 1U) != 0) gone.insert(running_[i].id);
      }
      if (free_nodes(gone) >= wanted && (!best || cost(gone) < *best)) best = cost(gone);
    }
    return best;
  }

  base::Prng prng_;
  std::vector<NodeSpec> nodes_;
  Driver driver_;
  std::vector<Running> running_;
  int time_ = 0;
};

class MinimiseLinear : public ::testing::TestWithParam<Profile> {};

// Goal and method are those of RandomDuel; each seed is a cluster of its own.
TEST_P(MinimiseLinear, NoOtherVictimsAreCheaper) {
  const int rounds = std::getenv("KUBEGANG_LONG") != nullptr ? 20'000 : 1'000;
  for (int seed = 1; seed <= rounds && !HasFailure(); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    RandomDuel{static_cast<std::uint64_t>(seed), GetParam()}.run();
  }
}

INSTANTIATE_TEST_SUITE_P(Profiles, MinimiseLinear,
                         ::testing::Values(Profile{"Cancel", PreemptMode::kCancel, false, 1, 1},
                                           Profile{"Requeue", PreemptMode::kRequeue, false, 1, 1},
                                           Profile{"Suspend", PreemptMode::kSuspend, true, 1, 1},
                                           // Two rows in each partition: a victim may share its
                                           // node with another.
                                           Profile{"Stacked", PreemptMode::kSuspend, true, 2, 2}),
                         [](const auto& profile) { return std::string{profile.param.name}; });

// 14.9 under select/linear: one of three is stopped, as Slurm's linear does too.
TEST(MinimiseLinearExample, TakesOneAndTheIdleNodes) {
  const auto five = nodes("n", 1, 5);
  const Profile profile{"", PreemptMode::kSuspend, true, 1, 1};
  Driver driver{minimising(profile, five), five, make_replay()};
  for (std::int64_t id = 17; id <= 19; ++id) {
    driver.step(at(0), Submit{job(id, 1, "low")});
    driver.step(at(0), Pass{});
  }
  driver.step(at(1), Submit{job(20, 3, "high")});
  driver.step(at(1), Pass{});
  // Jobs 17 to 19 are on n1 to n3. Two nodes are idle, so one victim is enough; the first is taken.
  EXPECT_EQ(driver.nodes_of(20), (std::vector<std::string>{"n1", "n4", "n5"}));
  EXPECT_EQ(driver.view(18).state, JobState::kRunning);
}

// Always, whatever the policy: all victims together would not make room, so none is touched.
TEST(Preemptor, TakesNobodyWhenAllWouldNotSuffice) {
  for (const PlacementPolicy policy :
       {PlacementPolicy::kCompat, PlacementPolicy::kMinimisePreemption}) {
    for (const SelectType select : {SelectType::kLinear, SelectType::kConsTres}) {
      for (const PreemptMode mode : {PreemptMode::kCancel, PreemptMode::kSuspend}) {
        const auto three = nodes("n", 1, 3);
        const Profile profile{"", mode, mode == PreemptMode::kSuspend, 1, 1};
        Configuration c = minimising(profile, three);
        c.cluster.placement = policy;
        c.cluster.select = select;
        c.cluster.memory = true;
        Driver driver{c, three, make_replay()};
        driver.ends_at_once = false;
        const auto with_memory = [](JobRequest request, std::int64_t mib) {
          request.sharing = Sharing::kNode;
          request.memory = MemoryPerNode{MemoryMiB{mib}};
          return request;
        };
        driver.step(at(0), Submit{with_memory(job(1, 1, "high"), 5000)});  // no victim of any job
        driver.step(at(0), Submit{with_memory(job(2, 1, "low"), 5000)});
        driver.step(at(0), Submit{with_memory(job(3, 1, "mid"), 5000)});
        driver.step(at(0), Pass{});
        driver.take_log();
        // Job 1 keeps 5,000 of its node's 8,000 MiB and is not a candidate, so three nodes with
        // 5,000 cannot come free.
        driver.step(at(1), Submit{with_memory(job(4, 3, "high"), 5000)});
        driver.step(at(1), Pass{});
        EXPECT_EQ(driver.view(4).state, JobState::kPending);
        for (const std::int64_t id : {1, 2, 3}) {
          EXPECT_EQ(driver.view(id).state, JobState::kRunning) << id;
          EXPECT_FALSE(driver.view(id).ending.has_value()) << id;
        }
      }
    }
  }
}

}  // namespace
}  // namespace sched::testing
