// Tests of the nodes that a pass may give to a job. Nodes are a to d; partitions low and high of
// tiers 1 and 2 have all of them. A view is written as the letters of its nodes.
#include "scheduler/pass/availability.h"

#include <string>

#include <gtest/gtest.h>

#include "scheduler/testing/pass_world.h"

namespace sched::testing {
namespace {

class AvailabilityTest : public ::testing::Test {
 protected:
  static Configuration tiers() {
    Configuration configuration = PassWorld::one_partition();
    configuration.partitions = {PassWorld::closed("low", "abcd", 1),
                                PassWorld::closed("high", "abcd", 2)};
    return configuration;
  }
  NodeSet set(const std::string& names) const {
    NodeSet nodes = world_.cluster.no_nodes();
    for (const char name : names) {
      nodes.set(world_.cluster.rank(world_.cluster.find_node(std::string{name}).value()));
    }
    return nodes;
  }
  // Makes a job that waits in the partition, with a claim on these nodes from 600 s on: it waits
  // 30 s and 10 s more for victims that resist.
  Job& claimant(const std::string& partition, const std::string& names, std::int64_t id = 9) {
    Job& job = world_.submit(id, static_cast<int>(names.size()), partition);
    Allocation claim;
    for (const char name : names) {
      claim.nodes.push_back({.node = world_.cluster.find_node(std::string{name}).value()});
    }
    const ClusterParameters& parameters = world_.cluster.parameters();
    world_.books.set_claim(job, std::move(claim),
                           at(600) + parameters.kill_wait + parameters.message_timeout);
    return job;
  }
  Availability available() { return {world_.cluster, up_, world_.books, at(0)}; }
  std::string view(Availability& available, const Job& job, const std::string& partition,
                   std::optional<base::Duration> length = std::nullopt) const {
    const Availability::View seen = available.view(job, world_.in(partition), length);
    std::string names;
    for (int rank = seen.nodes.next(0); rank >= 0; rank = seen.nodes.next(rank + 1)) {
      names += world_.cluster.spec_at(rank).name;
    }
    EXPECT_EQ(seen.in_partition, static_cast<int>(names.size()));  // both partitions have all
    return names;
  }

  PassWorld world_{tiers()};
  NodeSet up_ = set("abcd");
  const Job& other_ = world_.submit(1, 1, "low");
};

TEST_F(AvailabilityTest, BeginsWithTheNodesThatAreUp) {
  up_ = set("abd");
  Availability seen = available();
  EXPECT_EQ(view(seen, other_, "low"), "abd");
}

// A job that could not start withholds the nodes that it waits for from all jobs behind it.
TEST_F(AvailabilityTest, JobsBehindGetNoneOfTheNodesThatAreWithheld) {
  Availability seen = available();
  EXPECT_EQ(view(seen, other_, "low"), "abcd");
  seen.withhold(set("bc"));
  EXPECT_EQ(view(seen, other_, "low"), "ad");
  EXPECT_EQ(view(seen, other_, "high"), "ad");
}

// P14: Slurm keeps nothing for a preemptor, and others take what its victims leave. A claim holds
// against its own tier and those below; a higher tier could preempt the claimant anyway.
TEST_F(AvailabilityTest, AClaimIsKeptForItsJobFromJobsOfItsTierAndBelow) {
  Availability seen = available();
  const Job& job = claimant("low", "ab");
  EXPECT_EQ(view(seen, other_, "low"), "cd");
  EXPECT_EQ(view(seen, other_, "high"), "abcd");  // it might preempt the claimant
  EXPECT_EQ(view(seen, job, "low"), "abcd");
}

TEST_F(AvailabilityTest, ClaimedNodesAreForJobsThatAreOverInTime) {
  claimant("low", "ab");
  Availability seen = available();
  EXPECT_EQ(view(seen, other_, "low", seconds(600)), "abcd");
  EXPECT_EQ(view(seen, other_, "low", seconds(601)), "cd");
}

TEST_F(AvailabilityTest, ClaimsAreLookedAtAgainWhenTheyHaveChanged) {
  Availability seen = available();
  Job& job = claimant("low", "ab");
  EXPECT_EQ(view(seen, other_, "low"), "cd");
  world_.books.clear_claim(job, false, at(0));
  claimant("low", "cd", 8);
  seen.claims_changed();
  EXPECT_EQ(view(seen, other_, "low"), "ab");
}

// A blocked job ahead of it withholds nodes from those behind (3.4 step 10). The claimant's victims
// ended for these nodes, so it gets a and b all the same, and c, which is not claimed, stays
// withheld.
TEST_F(AvailabilityTest, AClaimantGetsItsNodesEvenIfTheyAreWithheldFromOthers) {
  Availability seen = available();
  const Job& job = claimant("high", "ab");
  seen.withhold(set("abc"));
  EXPECT_EQ(view(seen, job, "high"), "abd");
  EXPECT_EQ(view(seen, other_, "high"), "d");
}

// b is claimed and down: a claim keeps others away and makes nothing usable.
TEST_F(AvailabilityTest, AClaimantGetsNoNodeThatWentDown) {
  up_ = set("acd");
  Availability seen = available();
  const Job& job = claimant("low", "ab");
  EXPECT_EQ(view(seen, job, "low"), "acd");
}

}  // namespace
}  // namespace sched::testing
