// JobBooks keeps table, allocated jobs, node usage, selector and decisions in step.
#include "scheduler/jobs/job_books.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "scheduler/testing/cluster_driver.h"

namespace sched::testing {
namespace {

class JobBooksTest : public ::testing::Test {
 protected:
  JobBooksTest() {
    // One node of four cores that no two jobs share: the node is free, or one job has all of it.
    EXPECT_TRUE(cluster_.upsert_node(node("n1")).ok());
    cluster_.configure(gang_linear({partition("p", {node("n1")}, OverSubscribe::kNo, 1)}));
    cluster_.settle();
    books_.reshape();
  }
  NodeIndex n1() const { return cluster_.find_node("n1").value(); }
  Allocation all_of_n1() const {
    Allocation allocation;
    allocation.nodes.push_back({.node = n1(), .cores = CoreSet::first(4), .cpus = 4});
    allocation.whole_nodes = true;
    return allocation;
  }
  // Makes a job with an allocation that the test chose: the books take what they are given, and
  // placement is not their business.
  Job& started(std::int64_t id) {
    Job& made = books_.add(JobFacts::of(job(id, 1, "p")));
    books_.begin(made, cluster_.find_partition("p").value(), all_of_n1(), {}, at(10));
    return made;
  }
  // Returns true if another job would get the node.
  bool is_free() {
    const JobRequest request = job(99, 1, "p");
    SelectJob asking{.id = request.id, .request = &request, .partition = PartitionIndex{0}};
    const NodeSet all = NodeSet::all(1), none = cluster_.no_nodes();
    return books_.selector()
        .select(
            {.job = &asking, .now = at(10), .nodes = all, .required = none, .whole_nodes = true})
        .allocation.has_value();
  }

  Cluster cluster_;
  JobBooks books_{cluster_};
};

// The four books are the list of allocated jobs, the jobs of each node, the idle nodes and the
// selector. Whatever one of them forgets shows after the end.
TEST_F(JobBooksTest, AJobThatBeginsIsInAllBooksAndAfterItsEndInNone) {
  ASSERT_TRUE(is_free());
  Job& job = started(1);
  EXPECT_EQ(job.state, JobState::kRunning);
  EXPECT_EQ(books_.allocated().size(), 1U);
  EXPECT_EQ(books_.usage().jobs_on(n1()).size(), 1U);
  EXPECT_TRUE(books_.usage().idle().empty());
  EXPECT_FALSE(is_free());
  books_.end(job, JobState::kPending);
  EXPECT_TRUE(job.pending());
  EXPECT_FALSE(job.allocated());
  EXPECT_TRUE(books_.allocated().empty());
  EXPECT_TRUE(books_.usage().jobs_on(n1()).empty());
  EXPECT_FALSE(books_.usage().idle().empty());
  EXPECT_TRUE(is_free());
}

// R2.1: the selector gives the cores away again, but passes leave the node out.
TEST_F(JobBooksTest, AJobThatReleasedItsCoresIsCompletingUntilItsEnd) {
  Job& job = started(1);
  books_.set_ending(job, Ending{});
  EXPECT_FALSE(is_free());
  books_.release_cores(job);
  EXPECT_TRUE(is_free());
  EXPECT_TRUE(job.completing());
  EXPECT_TRUE(books_.usage().any_completing());
  books_.end(job, JobState::kCompleted);
  EXPECT_FALSE(books_.usage().any_completing());
}

// After a change of the cluster the selector is a new one, which knows nothing by itself.
TEST_F(JobBooksTest, ReshapeBooksTheAllocatedJobsAgain) {
  started(1);
  books_.reshape();
  EXPECT_FALSE(is_free());
  EXPECT_EQ(books_.usage().jobs_on(n1()).size(), 1U);
}

// Limits and usage count by what the job holds. At its end, too, they must find the allocation, and
// all listeners are called, in the order in which they came.
TEST_F(JobBooksTest, ListenersSeeTheJobWithItsAllocation) {
  std::vector<std::string> heard;
  const auto hear = [&](const std::string& what) {
    return [&heard, what](Job& job) {
      heard.push_back(what + " " + std::to_string(job.allocation.nodes.size()));
    };
  };
  books_.on_begin(hear("begin"));
  books_.on_begin(hear("second"));
  books_.on_end(hear("end"));
  books_.end(started(1), JobState::kCancelled);
  // One node each time: at the end the allocation has not gone yet.
  EXPECT_EQ(heard, (std::vector<std::string>{"begin 1", "second 1", "end 1"}));
}

// A pass may start a job after any change but a turn of the gang.
TEST_F(JobBooksTest, VersionCountsChangesThatMayLetAnotherJobStart) {
  Job& job = started(1);
  const auto version = books_.version();
  books_.suspend(job, Reason::kTimeslice);
  books_.resume(job);
  books_.set_reason(job, Reason::kNone, "a sentence");
  EXPECT_EQ(books_.version(), version);
  books_.set_ready(job, at(20));
  EXPECT_GT(books_.version(), version);
  const auto ready = books_.version();
  books_.end(job, JobState::kCompleted);
  EXPECT_GT(books_.version(), ready);
}

// Each decision is a write to the API server: a reason that a pass repeats must not be one.
TEST_F(JobBooksTest, AReasonIsDecidedWhenItChanges) {
  Job& waiting = books_.add(JobFacts::of(job(1, 1, "p")));
  books_.set_reason(waiting, Reason::kResources, "waits");
  books_.set_reason(waiting, Reason::kResources, "waits");
  EXPECT_EQ(books_.take_decisions().size(), 1U);
}

// A pass tries a job once for each partition; only its last reason is reported.
TEST_F(JobBooksTest, InAPassAJobWithSeveralRecordsSaysOneReason) {
  Job& waiting = books_.add(JobFacts::of(job(1, 1, "p")));
  waiting.queued.in.resize(2);
  books_.set_reason(waiting, Reason::kResources, "waits");
  books_.take_decisions();
  books_.begin_pass();
  books_.set_reason(waiting, Reason::kPriority, "behind others");
  books_.set_reason(waiting, Reason::kResources, "waits");
  books_.end_pass();
  EXPECT_TRUE(books_.take_decisions().empty());
  books_.begin_pass();
  books_.set_reason(waiting, Reason::kResources, "waits for two");
  books_.set_reason(waiting, Reason::kPriority, "behind others");
  books_.end_pass();
  const std::vector<Decision> decisions = books_.take_decisions();
  ASSERT_EQ(decisions.size(), 1U);
  EXPECT_EQ(std::get<Waits>(decisions.front()).message, "behind others");
}

}  // namespace
}  // namespace sched::testing
