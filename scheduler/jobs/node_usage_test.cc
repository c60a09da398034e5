// The sets of nodes that passes start from, as jobs come and go (R4.4, R2.1, R7.30). Nodes are a to
// d; a set is written as the letters of its nodes.
#include "scheduler/jobs/node_usage.h"

#include <gtest/gtest.h>

#include <string>

#include "scheduler/testing/cluster_driver.h"

namespace sched::testing {
namespace {

class NodeUsageTest : public ::testing::Test {
 protected:
  NodeUsageTest() {
    std::vector<NodeSpec> specs;
    for (const char* name : {"a", "b", "c", "d"}) specs.push_back(node(name));
    specs[3].pods_max = 2;  // d takes two pods
    for (const NodeSpec& spec : specs) EXPECT_TRUE(cluster_.upsert_node(spec).ok());
    configuration_ = gang_linear({partition("p", specs), partition("alone", specs)});
    configuration_.partitions[1].exclusive_user = true;
    cluster_.configure(configuration_);
    cluster_.settle();
    usage_.reset();
  }
  NodeIndex index(char letter) const { return cluster_.find_node(std::string{letter}).value(); }
  static JobFacts of_user(const std::string& user) {
    JobRequest request;
    request.user = user;
    return JobFacts::of(std::move(request));
  }
  // Makes a running job on these nodes, with a pod on each, as far as NodeUsage reads it.
  Job made(const std::string& letters, const std::string& user = "",
           const std::string& partition = "p") const {
    Job made{of_user(user)};
    made.partition = cluster_.find_partition(partition).value();
    made.state = JobState::kRunning;
    for (const char letter : letters) made.allocation.nodes.push_back({.node = index(letter)});
    return made;
  }
  std::string letters(const NodeSet& nodes) const {
    std::string text;
    for (int rank = nodes.next(0); rank >= 0; rank = nodes.next(rank + 1)) {
      text += cluster_.spec_at(rank).name;
    }
    return text;
  }
  // Returns the nodes that a job of this user may have.
  std::string open_to(const std::string& user, bool exclusive_user) const {
    const Job asking{of_user(user)};
    NodeSet nodes = NodeSet::all(4);
    usage_.restrict_to_user(asking, exclusive_user, nodes);
    return letters(nodes);
  }

  Configuration configuration_;
  Cluster cluster_;
  NodeUsage usage_{cluster_};
};

// R5.3. For as long as it is there: also suspended, and while others come and go.
TEST_F(NodeUsageTest, MemoryIsTakenWhereAJobThatAskedForNoneIs) {
  Job asks = made("ab");
  asks.change_request([](JobRequest& r) { r.memory = MemoryPerNode{MemoryMiB{10}}; });
  Job all = made("bc");
  usage_.add(asks);
  usage_.add(all);
  EXPECT_EQ(letters(usage_.memory_taken()), "") << "memory is not managed";
  usage_.remove(all);
  usage_.remove(asks);
  // Whether memory is managed is asked when a job enters, so everything begins again.
  Configuration managed = configuration_;
  managed.cluster.memory = true;
  cluster_.configure(managed);
  cluster_.settle();
  usage_.reset();
  usage_.add(asks);
  usage_.add(all);
  EXPECT_EQ(letters(usage_.memory_taken()), "bc");
  EXPECT_EQ(usage_.memory_holder(index('b')), &all);
  EXPECT_EQ(usage_.memory_holder(index('a')), nullptr);
  usage_.remove(asks);
  EXPECT_EQ(letters(usage_.memory_taken()), "bc");
  usage_.remove(all);
  EXPECT_EQ(letters(usage_.memory_taken()), "");
}

// A reader that keeps a set of nodes looks only at those in the log.
TEST_F(NodeUsageTest, ANodeWhosePlaceInTheSetsChangesIsInTheLog) {
  const std::size_t begin = usage_.log().end();
  const Job first = made("bc");
  const Job second = made("b");
  usage_.add(first);
  usage_.add(second);  // b was in use before
  ASSERT_EQ(usage_.log().end(), begin + 2);
  EXPECT_EQ(usage_.log().at(begin), cluster_.rank(index('b')));
  EXPECT_EQ(usage_.log().at(begin + 1), cluster_.rank(index('c')));
  usage_.remove(first);
  ASSERT_EQ(usage_.log().end(), begin + 3);
  EXPECT_EQ(usage_.log().at(begin + 2), cluster_.rank(index('c')));
  usage_.reset();
  EXPECT_GT(usage_.log().begin(), begin + 3) << "anything may have changed";
}

// R4.4 has two maps: "idle" asks for running jobs, "shareable" for those among them that refuse to
// share.
TEST_F(NodeUsageTest, ANodeIsIdleWithoutARunningJob) {
  const Job job = made("ab");
  EXPECT_EQ(letters(usage_.idle()), "abcd");
  usage_.add(job);
  EXPECT_EQ(letters(usage_.idle()), "cd");
  EXPECT_EQ(letters(usage_.shareable()), "abcd") << "it does not refuse to share";
  usage_.remove(job);
  EXPECT_EQ(letters(usage_.idle()), "abcd");
}

// Both of a node's jobs must go.
TEST_F(NodeUsageTest, ANodeOfTwoJobsIsIdleWhenBothAreGone) {
  const Job first = made("ab"), second = made("bc");
  usage_.add(first);
  usage_.add(second);
  usage_.remove(first);
  EXPECT_EQ(letters(usage_.idle()), "ad");
  usage_.remove(second);
  EXPECT_EQ(letters(usage_.idle()), "abcd");
}

// Both maps look at running jobs only: a gang that suspends the job opens its nodes again in both,
// though it keeps its place among the jobs there.
TEST_F(NodeUsageTest, AJobThatRefusesToShareClosesItsNodesWhileItRuns) {
  Job job = made("a");
  job.sharing.shares_nodes = false;
  usage_.add(job);
  EXPECT_EQ(letters(usage_.shareable()), "bcd");
  usage_.change_running(job, false);  // suspended
  job.state = JobState::kSuspended;
  EXPECT_EQ(letters(usage_.shareable()), "abcd");
  EXPECT_EQ(letters(usage_.idle()), "abcd") << "R4.4: suspended jobs do not count";
  EXPECT_EQ(usage_.jobs_on(index('a')).size(), 1U);
  usage_.remove(job);
  EXPECT_EQ(letters(usage_.shareable()), "abcd");
}

// It counts as completing instead of running, and keeps its place among the jobs of its node.
TEST_F(NodeUsageTest, ACompletingJobKeepsItsNodesFromNewJobs) {
  Job first = made("a");
  const Job second = made("a");
  usage_.add(first);
  usage_.add(second);
  EXPECT_FALSE(usage_.any_completing());
  // As JobBooks does it at the end of a grace time: the job gives its cores back and stays until
  // its processes are gone (R2.1).
  first.ending = Ending{};
  usage_.before_change(first);
  first.ending->killed = true;
  usage_.after_change(first);
  EXPECT_EQ(letters(usage_.completing()), "a");
  EXPECT_TRUE(usage_.any_completing());
  EXPECT_EQ(usage_.jobs_on(index('a')), (std::vector<const Job*>{&first, &second}));
  usage_.remove(second);
  EXPECT_EQ(letters(usage_.idle()), "bcd") << "a completing job is not idle either";
  usage_.remove(first);
  EXPECT_FALSE(usage_.any_completing());
  EXPECT_EQ(letters(usage_.idle()), "abcd");
}

// d takes two pods, and each job has one on each of its nodes.
TEST_F(NodeUsageTest, ANodeIsFullWithAsManyPodsAsItTakes) {
  const Job first = made("cd"), second = made("d");
  EXPECT_EQ(usage_.pods_left(index('c')), std::nullopt);
  EXPECT_EQ(usage_.pods_left(index('d')), 2);
  usage_.add(first);
  EXPECT_FALSE(usage_.any_full());
  usage_.add(second);
  EXPECT_EQ(usage_.pods_left(index('d')), 0);
  EXPECT_EQ(letters(usage_.full()), "d");
  usage_.remove(first);
  EXPECT_EQ(usage_.pods_left(index('d')), 1);
  EXPECT_FALSE(usage_.any_full());
  EXPECT_EQ(letters(usage_.full()), "");
}

// Kubelet was given another number of pods, below what is there.
TEST_F(NodeUsageTest, ALoweredNumberOfPodsLeavesNoRoomAndNotLess) {
  const Job first = made("d"), second = made("d");
  usage_.add(first);
  usage_.add(second);
  NodeSpec fewer = node("d");
  fewer.pods_max = 1;
  ASSERT_TRUE(cluster_.upsert_node(fewer).ok());
  usage_.node_changed(index('d'));
  EXPECT_EQ(usage_.pods_left(index('d')), 0);
  EXPECT_EQ(letters(usage_.full()), "d");
  fewer.pods_max = 3;
  ASSERT_TRUE(cluster_.upsert_node(fewer).ok());
  usage_.node_changed(index('d'));
  EXPECT_FALSE(usage_.any_full());
}

// R7.30: both the job that asks and the one that is there may insist on being alone.
TEST_F(NodeUsageTest, UsersThatInsistAreAlone) {
  const Job shared = made("a", "ann"), alone = made("b", "ann", "alone");
  usage_.add(shared);
  EXPECT_FALSE(usage_.restricts(false));
  EXPECT_EQ(open_to("bob", false), "abcd");
  EXPECT_EQ(open_to("bob", true), "bcd") << "bob insists";
  usage_.add(alone);
  EXPECT_TRUE(usage_.restricts(false));
  EXPECT_EQ(open_to("bob", false), "acd") << "ann insists on b";
  EXPECT_EQ(open_to("bob", true), "cd");
  EXPECT_EQ(open_to("ann", true), "abcd") << "her own jobs are not in the way";
  // The question about a single node, with the job that is there and as if it were gone.
  const Job asking{of_user("bob")};
  EXPECT_FALSE(usage_.open_to_user(asking, false, index('b'), nullptr));
  EXPECT_TRUE(usage_.open_to_user(asking, false, index('b'), &alone)) << "as if it were gone";
  usage_.remove(alone);
  EXPECT_FALSE(usage_.restricts(false));
}

}  // namespace
}  // namespace sched::testing
