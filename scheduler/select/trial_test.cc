// Selector::Trial, for both selectors: what if these jobs were gone?
#include <gtest/gtest.h>

#include <memory>

#include "scheduler/select/selector.h"
#include "scheduler/testing/tracked_jobs.h"

namespace sched {
namespace {

// A cluster of which only nodes a and b are offered, 8,000 MiB each; a job holds both, with all
// their memory.
class Trials : public ::testing::TestWithParam<gang::Unit> {
 protected:
  Trials() {
    stage_.configuration.cluster.memory = true;
    stage_.configuration.partitions[0].over_subscribe = OverSubscribe::kNo;
    stage_.cluster.configure(stage_.configuration);
    stage_.cluster.settle();
    selector_ = GetParam() == gang::Unit::kNode ? make_linear_selector(stage_.cluster)
                                                : make_cons_tres_selector(stage_.cluster);
    holds_ = stage_.place("ab");
    for (NodeAllocation& use : holds_.nodes) use.memory = MemoryMiB{8000};
    holder_ = select_job(1, request_);
    holder_.allocation = &holds_;
    holder_.state = JobState::kRunning;
    selector_->add(holder_);
  }

  SelectJob select_job(std::int64_t id, const JobRequest& request) const {
    return {.id = JobId{id},
            .table_order = id,
            .request = &request,
            .partition = stage_.partition('A')};
  }
  // Returns true if a job that asks for `memory` on two nodes fits.
  bool fits(std::int64_t memory) {
    JobRequest request;
    request.min_nodes = 2;
    request.memory = MemoryPerNode{MemoryMiB{memory}};
    const SelectJob job = select_job(2, request);
    NodeSet offered = stage_.cluster.no_nodes();
    offered.set(0);
    offered.set(1);
    const NodeSet none = stage_.cluster.no_nodes();
    const SelectRequest question{.job = &job,
                                 .nodes = offered,
                                 .required = none,
                                 .min_nodes = 2,
                                 .req_nodes = 2,
                                 .max_nodes = 2,
                                 .whole_nodes = GetParam() == gang::Unit::kNode};
    return selector_->select(question).allocation.has_value();
  }

  testing::TrackedJobs stage_{"A1", GetParam()};
  std::unique_ptr<Selector> selector_;
  JobRequest request_;
  Allocation holds_;
  SelectJob holder_;
};

// Nothing is free before the trial, in it until the job is removed, and after it.
TEST_P(Trials, LeaveNothingOfAJobThatWouldEnd) {
  EXPECT_FALSE(fits(100));
  {
    const auto trial = selector_->begin_trial();
    EXPECT_FALSE(fits(100));
    trial->remove(holder_, Selector::Trial::Keep::kNothing);
    EXPECT_TRUE(fits(8000));
    // All of the memory comes free and not a MiB more.
    EXPECT_FALSE(fits(8001));
  }
  EXPECT_FALSE(fits(100));
}

// R5.4: a job that would be suspended keeps its memory, so only its CPUs are free.
TEST_P(Trials, KeepTheMemoryOfAJobThatWouldBeSuspended) {
  selector_->remove(holder_);
  for (NodeAllocation& use : holds_.nodes) use.memory = MemoryMiB{6000};
  selector_->add(holder_);
  const auto trial = selector_->begin_trial();
  trial->remove(holder_, Selector::Trial::Keep::kMemory);
  // 8,000 MiB less the 6,000 that the suspended job keeps.
  EXPECT_FALSE(fits(2001));
  EXPECT_FALSE(fits(8000));
}

// A search takes victims out and puts them back in turn, within one trial: nothing may be left over
// from a round.
TEST_P(Trials, PutBackTheJobThatWasRemovedLast) {
  const auto trial = selector_->begin_trial();
  for (int round = 0; round < 3; ++round) {
    trial->remove(holder_, Selector::Trial::Keep::kNothing);
    EXPECT_TRUE(fits(8000));
    ASSERT_TRUE(trial->put_back());
    EXPECT_FALSE(fits(100));
  }
}

// The end of a trial restores the books, so the next one and a real removal find them as they were.
TEST_P(Trials, FollowOneAnother) {
  for (int round = 0; round < 3; ++round) {
    const auto trial = selector_->begin_trial();
    trial->remove(holder_, Selector::Trial::Keep::kNothing);
    EXPECT_TRUE(fits(100));
  }
  selector_->remove(holder_);
  EXPECT_TRUE(fits(8000));
}

INSTANTIATE_TEST_SUITE_P(Selectors, Trials, ::testing::Values(gang::Unit::kNode, gang::Unit::kCore),
                         [](const auto& unit) {
                           return unit.param == gang::Unit::kNode ? "Linear" : "ConsTres";
                         });

}  // namespace
}  // namespace sched
