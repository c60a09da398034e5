// Licenses (chapter 11): who waits for them, who holds them, and who ends for them; the recordings
// *licen* show more.
#include "scheduler/testing/rule_test.h"

#include <string>
#include <variant>

namespace sched::testing {
namespace {

class LicenseRules : public RuleTest {
 protected:
  LicenseRules() {
    c_.cluster.select = SelectType::kConsTres;
    c_.cluster.licenses = {{"foo", 2}};
  }
  static JobRequest licensed(std::int64_t id, int count, const std::string& partition = {}) {
    JobRequest request = with_tasks(job(id, 1, partition), 1);
    request.licenses["foo"] = count;
    request.time_limit = seconds(60);
    return request;
  }
  std::string refusal(const JobRequest& request) {
    driver_->take_log();
    driver_->step(at(0), Submit{request});
    for (const Decision& decision : driver_->take_log()) {
      if (const auto* refused = std::get_if<SubmitRefused>(&decision)) return refused->message;
    }
    return "accepted";
  }
  void configure(double t, int foo) {
    c_.cluster.licenses["foo"] = foo;
    driver_->step(at(t), Configure{std::make_shared<const Configuration>(c_)});
  }
  Reason reason(std::int64_t id) const { return driver_->view(id).reason; }
};

TEST_F(LicenseRules, R11_6_MoreThanThereAreIsRefusedAtSubmission) {
  begin_with(1);
  EXPECT_EQ(refusal(licensed(1, 3)),
            "invalid license specification: asks for 3 of license foo, and the cluster has 2");
  JobRequest unknown = job(2, 1);
  unknown.licenses["bar"] = 1;
  EXPECT_EQ(refusal(unknown),
            "invalid license specification: the cluster has no license bar; it has foo:2");
  EXPECT_EQ(refusal(licensed(3, 2)), "accepted");
}

// Job 2 waits for job 1's, and is passed by job 3, which needs none (R11.8).
TEST_F(LicenseRules, R11_6_AJobHoldsThemUntilItsLastPodIsGone) {
  begin_with(1);
  tell(0, Submit{licensed(1, 2)});
  tell(1, Submit{licensed(2, 1)});
  tell(2, Submit{with_tasks(job(3, 1), 1)});
  EXPECT_EQ(reason(2), Reason::kLicenses);
  EXPECT_EQ(state(3), JobState::kRunning);
  tell(3, Cancel{JobId{1}});
  EXPECT_EQ(state(2), JobState::kPending);  // its pods are on their way out
  tell(4, JobGone{JobId{1}});
  EXPECT_EQ(state(2), JobState::kRunning);
}

TEST_F(LicenseRules, R11_7_ASuspendedJobKeepsThem) {
  begin_with(1);
  tell(0, Submit{licensed(1, 2)});
  tell(1, UserSuspend{JobId{1}});
  tell(2, Submit{licensed(2, 1)});
  EXPECT_EQ(reason(2), Reason::kLicenses);
}

// Nothing is ended; no job gets any until enough are back.
TEST_F(LicenseRules, R11_6_ALoweredCounterEndsNoJob) {
  begin_with(1);
  tell(0, Submit{licensed(1, 1)});
  tell(0, Submit{licensed(2, 1)});
  tell(1, Submit{licensed(3, 1)});
  tell(1, Submit{licensed(4, 2)});
  configure(2, 1);
  tell(3, JobGone{JobId{1}});
  EXPECT_EQ(state(2), JobState::kRunning);
  EXPECT_EQ(reason(3), Reason::kLicenses);
  EXPECT_EQ(reason(4), Reason::kLicenses);
  tell(4, JobGone{JobId{2}});
  EXPECT_EQ(state(3), JobState::kRunning);
  EXPECT_EQ(reason(4), Reason::kLicenses);  // there are too few for it at any time
  configure(5, 3);
  tell(6, Pass{});
  EXPECT_EQ(state(4), JobState::kRunning);
}

TEST_F(LicenseRules, R11_6_MoreThanThereAreIsRefusedAtAChange) {
  begin_with(1);
  tell(0, Submit{licensed(1, 2)});
  tell(1, Submit{licensed(2, 1)});
  driver_->take_log();
  JobRequest changed = licensed(2, 3);
  tell(2, Update{changed});
  const auto log = driver_->take_log();
  ASSERT_EQ(log.size(), 1U);
  EXPECT_EQ(std::get<CommandRefused>(log[0]).message,
            "invalid license specification: asks for 3 of license foo, and the cluster has 2");
  // Where the counter was lowered since, another change of the job is none of this.
  configure(3, 0);
  changed = licensed(2, 1);
  changed.nice = 5;
  tell(4, Update{changed});
  EXPECT_EQ(driver_->view(2).facts->request->nice, 5);
}

// Nothing is promised to job 2, so the jobs behind it take nothing from it.
TEST_F(LicenseRules, R11_8_AJobThatCanNeverHaveThemStopsNoPass) {
  c_.cluster.scheduler = SchedulerType::kBackfill;
  c_.cluster.backfill.licenses = true;
  c_.cluster.backfill.interval = seconds(30);
  begin_with(1);
  tell(0, Submit{licensed(1, 1)});
  tell(1, Submit{licensed(2, 2)});
  tell(2, Submit{with_tasks(job(3, 1), 1)});
  EXPECT_EQ(state(3), JobState::kPending);
  configure(3, 1);
  tell(4, Submit{with_tasks(job(4, 1), 1)});
  EXPECT_EQ(reason(2), Reason::kLicenses);
  EXPECT_EQ(state(3), JobState::kRunning);
  EXPECT_EQ(state(4), JobState::kRunning);
}

// Job 2 needs both and is promised them when job 1 is over. Job 3 would be over by then, job 4 not.
TEST_F(LicenseRules, R11_8_TheBackfillPlansThem) {
  c_.cluster.scheduler = SchedulerType::kBackfill;
  c_.cluster.backfill.resolution = seconds(1);
  c_.cluster.backfill.licenses = true;
  c_.cluster.backfill.interval = seconds(30);
  begin_with(2);
  driver_->step(at(0), Submit{licensed(1, 1)});
  driver_->step(at(0), Pass{.main = true, .backfill = true});
  JobRequest quick = licensed(3, 1), slow = licensed(4, 1);
  quick.time_limit = seconds(40);
  for (const JobRequest& request : {licensed(2, 2), slow, quick}) {
    driver_->step(at(10), Submit{request});
  }
  driver_->step(at(11), Pass{.main = true, .backfill = true});
  EXPECT_EQ(reason(2), Reason::kLicenses);
  EXPECT_EQ(driver_->view(2).expected_start, at(60));
  EXPECT_EQ(state(3), JobState::kRunning);
  EXPECT_EQ(state(4), JobState::kPending);
}

// The two jobs of low hold one each; the one that high takes is the last one that started.
class Reclaiming : public LicenseRules {
 protected:
  void begin_full(PreemptMode mode) {
    preempt_by_tier(mode, nodes("n", 1, 2));
    auto all = nodes("n", 1, 2);
    all.push_back(node("a1"));
    begin(all);
    tell(0, Submit{licensed(1, 1, "low")});
    tell(0, Submit{licensed(2, 1, "low")});
    driver_->take_log();
  }
};

TEST_F(Reclaiming, R7_2_NoJobEndsForThemUnlessTheClusterSaysSo) {
  begin_full(PreemptMode::kCancel);
  tell(1, Submit{licensed(3, 1, "high")});
  EXPECT_TRUE(ends().empty());
  EXPECT_EQ(reason(3), Reason::kLicenses);
}

TEST_F(Reclaiming, R7_2_AJobThatHoldsThemEnds) {
  c_.cluster.preempt.reclaim_licenses = true;
  begin_full(PreemptMode::kRequeue);
  tell(1, Submit{licensed(3, 1, "high")});
  const auto victims = ends();
  ASSERT_EQ(victims.size(), 1U);
  EXPECT_EQ(victims[0].verdict, EndingVerdict::kRequeue);
  // The victim's licenses are kept for job 3.
  tell(2, Submit{licensed(4, 1, "low")});
  tell(3, JobGone{victims[0].job});
  EXPECT_EQ(state(3), JobState::kRunning);
  EXPECT_EQ(reason(4), Reason::kLicenses);
  EXPECT_TRUE(ends().empty());
}

// Job 3 needs the nodes of neither.
TEST_F(Reclaiming, R7_2_AsManyEndAsItNeeds) {
  c_.cluster.preempt.reclaim_licenses = true;
  begin_full(PreemptMode::kCancel);
  tell(1, Submit{licensed(3, 2, "high")});
  EXPECT_EQ(ends().size(), 2U);
}

// The first victim's licenses are job 3's, and those that it holds until then count once. Job 4 is
// on a node of its own, so that it does not wait behind job 3.
TEST_F(Reclaiming, R7_2_VictimsOfOthersCountOnce) {
  c_.cluster.preempt.reclaim_licenses = true;
  c_.cluster.licenses["foo"] = 3;
  add("apart", nodes("a", 1, 1), 3);
  begin_full(PreemptMode::kCancel);
  tell(0, Submit{licensed(5, 1, "low")});
  driver_->take_log();
  tell(1, Submit{licensed(3, 1, "high")});
  const auto first = ends();
  ASSERT_EQ(first.size(), 1U);
  tell(2, Submit{licensed(4, 1, "apart")});
  const auto second = ends();
  ASSERT_EQ(second.size(), 1U);
  tell(3, JobGone{second[0].job});
  tell(3, JobGone{first[0].job});
  EXPECT_EQ(state(3), JobState::kRunning);
  EXPECT_EQ(state(4), JobState::kRunning);
  EXPECT_TRUE(ends().empty());
}

TEST_F(Reclaiming, R7_2_ASuspendedJobWouldKeepThem) {
  c_.cluster.gang = true;
  c_.cluster.preempt.reclaim_licenses = true;
  begin_full(PreemptMode::kSuspend);
  tell(1, Submit{licensed(3, 1, "high")});
  EXPECT_TRUE(ends().empty());
  EXPECT_EQ(reason(3), Reason::kLicenses);
}

}  // namespace
}  // namespace sched::testing
