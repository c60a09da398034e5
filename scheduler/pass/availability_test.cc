// Tests of the nodes that a pass may give to a job. Nodes are a to d; partitions low and high of
// tiers 1 and 2 have all of them. A view is written as the letters of its nodes.
#include "scheduler/pass/availability.h"

#include <string>

#include <gtest/gtest.h>

#include "scheduler/testing/cluster_driver.h"

namespace sched::testing {
namespace {

class AvailabilityTest : public ::testing::Test {
 protected:
  AvailabilityTest() {
    std::vector<NodeSpec> specs;
    for (const char* name : {"a", "b", "c", "d"}) specs.push_back(node(name));
    for (const NodeSpec& spec : specs) EXPECT_TRUE(cluster_.upsert_node(spec).ok());
    cluster_.configure(gang_linear(
        {partition("low", specs), partition("high", specs, OverSubscribe::kForce, 4, 2)}));
    cluster_.settle();
    up_ = NodeSet::all(cluster_.node_count());
  }
  PartitionIndex in(const std::string& name) const { return cluster_.find_partition(name).value(); }
  NodeSet set(const std::string& names) const {
    NodeSet nodes = cluster_.no_nodes();
    for (const char name : names) {
      nodes.set(cluster_.rank(cluster_.find_node(std::string{name}).value()));
    }
    return nodes;
  }
  // Makes a job that waits in the partition, with a claim on these nodes.
  Job claimant(const std::string& partition, const std::string& names) const {
    Job job;
    job.queued.in.push_back({.partition = in(partition)});
    job.claim.emplace();
    for (const char name : names) {
      job.claim->nodes.push_back({.node = cluster_.find_node(std::string{name}).value()});
    }
    return job;
  }
  std::string view(Availability& available, const Job& job, const std::string& partition) const {
    const Availability::View seen = available.view(job, in(partition));
    std::string names;
    for (int rank = seen.nodes.next(0); rank >= 0; rank = seen.nodes.next(rank + 1)) {
      names += cluster_.spec_at(rank).name;
    }
    EXPECT_EQ(seen.in_partition, static_cast<int>(names.size()));  // both partitions have all
    return names;
  }

  Cluster cluster_;
  NodeSet up_;
  const Job other_;
};

TEST_F(AvailabilityTest, BeginsWithTheNodesThatAreUp) {
  up_ = set("abd");
  Availability available{cluster_, up_};
  EXPECT_EQ(view(available, other_, "low"), "abd");
}

// A job that could not start withholds the nodes that it waits for from all jobs behind it.
TEST_F(AvailabilityTest, JobsBehindGetNoneOfTheNodesThatAreWithheld) {
  Availability available{cluster_, up_};
  EXPECT_EQ(view(available, other_, "low"), "abcd");
  available.withhold(set("bc"));
  EXPECT_EQ(view(available, other_, "low"), "ad");
  EXPECT_EQ(view(available, other_, "high"), "ad");
}

// P14: Slurm keeps nothing for a preemptor, and others take what its victims leave. A claim holds
// against its own tier and those below; a higher tier could preempt the claimant anyway.
TEST_F(AvailabilityTest, AClaimIsKeptForItsJobFromJobsOfItsTierAndBelow) {
  Availability available{cluster_, up_};
  const Job job = claimant("low", "ab");
  available.add_claim(job);
  EXPECT_EQ(view(available, other_, "low"), "cd");
  EXPECT_EQ(view(available, other_, "high"), "abcd");  // it might preempt the claimant
  EXPECT_EQ(view(available, job, "low"), "abcd");
}

// A blocked job ahead of it withholds nodes from those behind (3.4 step 10). The claimant's victims
// ended for these nodes, so it gets a and b all the same, and c, which is not claimed, stays
// withheld.
TEST_F(AvailabilityTest, AClaimantGetsItsNodesEvenIfTheyAreWithheldFromOthers) {
  Availability available{cluster_, up_};
  const Job job = claimant("high", "ab");
  available.add_claim(job);
  available.withhold(set("abc"));
  EXPECT_EQ(view(available, job, "high"), "abd");
  EXPECT_EQ(view(available, other_, "high"), "d");
}

// b is claimed and down: a claim keeps others away and makes nothing usable.
TEST_F(AvailabilityTest, AClaimantGetsNoNodeThatWentDown) {
  up_ = set("acd");
  Availability available{cluster_, up_};
  const Job job = claimant("low", "ab");
  available.add_claim(job);
  EXPECT_EQ(view(available, job, "low"), "acd");
}

}  // namespace
}  // namespace sched::testing
