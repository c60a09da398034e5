// Grace times in replays of recordings (7.8, ClusterParameters::quirks).
#include "scheduler/testing/rule_test.h"

#include <memory>
#include <vector>

namespace sched::testing {
namespace {

// One node, CANCEL, and partitions low, high and top of tiers 1 to 3; the low one has a grace time
// of 5 s. Job 1 of the low one runs from 0 on.
class GraceAsRecorded : public RuleTest {
 protected:
  GraceAsRecorded() { begin(one_); }

  void begin(const std::vector<NodeSpec>& nodes) {
    Configuration c =
        whole_nodes({closed("low", nodes, 1), closed("high", nodes, 2), closed("top", nodes, 3)});
    c.cluster.quirks = only(&Quirks::grace_is_a_notice);
    c.cluster.preempt_type = PreemptType::kPartitionPriority;
    c.cluster.preempt_mode = PreemptMode::kCancel;
    c.partitions[0].grace_time = seconds(5);
    replay_ = std::make_unique<Driver>(c, nodes, make_replay());
    submit_and_pass(*replay_, 0, job(1, 1, "low"));
  }

  std::vector<End> ends_of(double t, const Event& event) {
    replay_->take_log();
    replay_->step(at(t), event);
    std::vector<End> found;
    for (const Decision& decision : replay_->take_log()) {
      if (const auto* end = std::get_if<End>(&decision)) found.push_back(*end);
    }
    return found;
  }

  const std::vector<NodeSpec> one_ = nodes("n", 1, 1);
  std::unique_ptr<Driver> replay_;
};

// The grace time is over at 6, and does not end the victim by itself: slurmctld only moves its end.
TEST_F(GraceAsRecorded, R7_8_AVictimIsEndedForTheNextJobThatChoosesIt) {
  replay_->step(at(1), Submit{job(2, 1, "high")});
  EXPECT_TRUE(ends_of(1, Pass{}).empty()) << "its grace time begins";
  EXPECT_TRUE(ends_of(9, Pass{}).empty()) << "the first preemptor does not ask again so soon";
  replay_->step(at(10), Submit{job(3, 1, "top")});
  const std::vector<End> ended = ends_of(10, Pass{});
  ASSERT_EQ(ended.size(), 1U);
  EXPECT_EQ(ended[0].job, JobId{1});
  EXPECT_EQ(ended[0].preemptor, JobId{3});
}

// The grace time ends at 6. At 5 another preemptor chooses the victim in vain.
TEST_F(GraceAsRecorded, R7_8_DuringItsGraceTimeAVictimIsSpared) {
  replay_->step(at(1), Submit{job(2, 1, "high")});
  replay_->step(at(1), Pass{});
  replay_->step(at(5), Submit{job(3, 1, "top")});
  EXPECT_TRUE(ends_of(5, Pass{}).empty());
}

// slurmctld looks at time limits each 30 s; it is 1.5 s old when a recording begins.
TEST_F(GraceAsRecorded, R7_8_TheCheckOfTimeLimitsEndsAVictim) {
  replay_->step(at(1), Submit{job(2, 1, "high")});
  replay_->step(at(1), Pass{});
  const std::vector<End> ended = ends_of(28.6, Pass{});
  ASSERT_EQ(ended.size(), 1U);
  EXPECT_EQ(ended[0].preemptor, JobId{2});
}

// In the same round slurmctld makes a pass if something has changed since the last one: job 2
// starts on the node that job 3 has left, beside the victim.
TEST_F(GraceAsRecorded, R7_8_APassThatIsWantedFollowsTheCheckOfTimeLimits) {
  begin(nodes("n", 1, 2));
  submit_and_pass(*replay_, 0, job(3, 1, "top"));
  submit_and_pass(*replay_, 1, job(2, 1, "high"));
  replay_->step(at(28), JobGone{JobId{3}});
  const std::vector<End> ended = ends_of(28.6, Pass{});
  ASSERT_EQ(ended.size(), 1U);
  EXPECT_EQ(ended[0].job, JobId{1});
  EXPECT_EQ(state(*replay_, 2), JobState::kRunning);
}

// No pass is recorded between 1 and 10. Slurm must have made one, soon after 1, in which job 2
// chose the victim: its grace time is over at 10.
TEST_F(GraceAsRecorded, R7_8_APassThatIsNotToldMayHaveChosenTheVictim) {
  replay_->step(at(1), Submit{job(2, 1, "high")});
  replay_->step(at(10), Submit{job(3, 1, "top")});
  EXPECT_EQ(ends_of(10, Pass{}).size(), 1U) << "a pass 3 s after the last one chose it for job 2";
}

// At 12 it has passed the end at 6 that the preemption gave it, so Slurm records a timeout; in the
// next test it goes at 4.
TEST_F(GraceAsRecorded, R7_8_AVictimThatEndsByItselfAfterItsGraceTimeIsOverItsTime) {
  replay_->step(at(1), Submit{job(2, 1, "high")});
  replay_->step(at(1), Pass{});
  replay_->step(at(12), JobGone{JobId{1}});
  EXPECT_EQ(replay_->view(1).state, JobState::kTimeout);
}

// The end that the preemption gave it, at 6, has not come yet.
TEST_F(GraceAsRecorded, R7_8_AVictimThatEndsByItselfInItsGraceTimeHasCompleted) {
  replay_->step(at(1), Submit{job(2, 1, "high")});
  replay_->step(at(1), Pass{});
  replay_->step(at(4), JobGone{JobId{1}});
  EXPECT_EQ(replay_->view(1).state, JobState::kCompleted);
}

}  // namespace
}  // namespace sched::testing
