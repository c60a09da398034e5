#include "operator/nodes/unsliced_time.h"

#include <gtest/gtest.h>

#include "api/wellknown.h"
#include "translation/node_translation.h"

namespace control {
namespace {

using std::chrono::seconds;

constexpr base::Instant kOpened{seconds{1'000}};

// Returns a timetable whose agent said at kOpened that it is ready, or not, and why.
kube::NodeTimetable saying(bool ready, std::string_view reason) {
  kube::NodeTimetable table;
  table.status.conditions = {
      {.type = std::string{kube::kReady},
       .status = ready ? kube::ConditionStatus::kTrue : kube::ConditionStatus::kFalse,
       .last_transition_time = kOpened,
       .reason = std::string{reason}}};
  return table;
}

// An agent that ends lets all pods run, and its last word may still be "Obeying": then kubelet's
// word about its pod counts. Where no agent has ever said anything, nothing was ever sliced.
TEST(IsUnsliced, ByTheAgentsWordOrByItsPod) {
  const kube::NodeTimetable obeying = saying(true, "Obeying");
  EXPECT_FALSE(is_unsliced(&obeying, std::nullopt));
  EXPECT_FALSE(is_unsliced(&obeying, AgentPod::kReady));
  EXPECT_FALSE(is_unsliced(&obeying, AgentPod::kNotReady));  // a probe fails, it switches
  EXPECT_TRUE(is_unsliced(&obeying, AgentPod::kNotRunning));
  EXPECT_TRUE(is_unsliced(&obeying, AgentPod::kMissing));
  for (const auto reason : {kube::kAgentKillSwitch, kube::kAgentFailedOpen, kube::kAgentStopped}) {
    const kube::NodeTimetable open = saying(false, reason);
    EXPECT_TRUE(is_unsliced(&open, std::nullopt)) << reason;
    EXPECT_TRUE(is_unsliced(&open, AgentPod::kReady)) << reason;
  }
  const kube::NodeTimetable stale = saying(false, "StaleTimetable");  // it obeys another one
  EXPECT_FALSE(is_unsliced(&stale, AgentPod::kReady));
  const kube::NodeTimetable silent;
  EXPECT_FALSE(is_unsliced(&silent, AgentPod::kMissing));
  EXPECT_FALSE(is_unsliced(nullptr, AgentPod::kMissing));
}

// One job, "u", on node n1, that has half of the time by the scheduler's clock.
class UnslicedTimeTest : public testing::Test {
 protected:
  // Counts at kOpened + `at`, when the job's run time is `run_time`; returns what was reported.
  seconds counted(seconds at, std::optional<seconds> run_time) {
    reported_ = seconds{0};
    time_.count(kOpened + at, sources(run_time));
    return reported_;
  }
  // The same of the job alone.
  seconds counted_job(seconds at, std::optional<seconds> run_time) {
    reported_ = seconds{0};
    time_.count_job("u", jobs_.contains("u"), kOpened + at, sources(run_time));
    return reported_;
  }
  UnslicedTime time_;
  std::set<std::string> jobs_{"u"};

 private:
  UnslicedTime::Sources sources(std::optional<seconds> run_time) {
    UnslicedTime::Sources sources;
    sources.jobs_on = [this](const std::string& node) -> const std::set<std::string>& {
      return node == "n1" ? jobs_ : none_;
    };
    sources.run_time = [run_time](const std::string&) -> std::optional<base::Duration> {
      return run_time;
    };
    sources.ran = [this](const std::string& uid, base::Duration more) {
      EXPECT_EQ(uid, "u");
      reported_ += std::chrono::duration_cast<seconds>(more);
    };
    return sources;
  }

  const std::set<std::string> none_{};
  seconds reported_{0};
};

// Pods of all gangs run then, and use their limit up: a job that is off by its timetable would
// otherwise run on for free. `run_time` is what the scheduler's clock has counted by itself.
TEST_F(UnslicedTimeTest, ReportsTheTimeOffWhileTheNodeDoesNotSlice) {
  EXPECT_EQ(counted(seconds{0}, seconds{100}), seconds{0});
  EXPECT_EQ(time_.next_due(), base::kNever);
  EXPECT_TRUE(time_.observe("n1", true));
  EXPECT_FALSE(time_.observe("n1", true));
  EXPECT_FALSE(time_.slices("n1"));
  EXPECT_EQ(counted(seconds{10}, seconds{105}), seconds{0});  // from here on
  EXPECT_EQ(time_.next_due(), kOpened + seconds{20});
  EXPECT_EQ(counted(seconds{15}, seconds{107}), seconds{0});  // not that often
  // 10 s have passed since the last count, and the scheduler's clock shows 4 of them.
  EXPECT_EQ(counted(seconds{20}, seconds{109}), seconds{6});
  EXPECT_TRUE(time_.observe("n1", false));
  EXPECT_EQ(counted(seconds{24}, seconds{111}), seconds{2});  // at once, and the last time
  EXPECT_EQ(time_.next_due(), base::kNever);
  EXPECT_EQ(counted(seconds{60}, seconds{120}), seconds{0});
}

// A job that is looked at is about to end, perhaps, or has become ready: the ten seconds between
// two counts are not lost to it.
TEST_F(UnslicedTimeTest, CountsOneJobAtOnce) {
  (void)time_.observe("n1", true);
  (void)counted(seconds{0}, std::nullopt);
  EXPECT_EQ(counted_job(seconds{3}, seconds{0}), seconds{0});  // has become ready
  EXPECT_EQ(counted_job(seconds{7}, seconds{1}), seconds{3});
  EXPECT_EQ(counted_job(seconds{7}, seconds{4}), seconds{0});  // what was reported is in there
  EXPECT_EQ(counted(seconds{10}, seconds{5}), seconds{2});
  jobs_.clear();
  EXPECT_EQ(counted_job(seconds{11}, seconds{5}), seconds{1});  // the last time
  EXPECT_EQ(counted_job(seconds{15}, seconds{7}), seconds{0});
}

// A run time that went back is of another start: the difference would be nonsense.
TEST_F(UnslicedTimeTest, ForgetsAJobThatLeavesEndsOrStartsAnew) {
  (void)time_.observe("n1", true);
  (void)counted(seconds{0}, seconds{100});
  EXPECT_EQ(counted(seconds{10}, std::nullopt), seconds{0});  // its end is decided
  EXPECT_EQ(counted(seconds{20}, seconds{3}), seconds{0});    // another start of it
  EXPECT_EQ(counted(seconds{30}, seconds{1}), seconds{0});    // and another
  jobs_.clear();
  EXPECT_EQ(counted(seconds{40}, seconds{6}), seconds{5});  // the last time
  EXPECT_EQ(counted(seconds{50}, seconds{8}), seconds{0});
}

// A new leader adds what its predecessor could no longer see.
TEST(MissedBefore, IsTheTimeOffSinceTheNodeStoppedSlicing) {
  kube::NodeTimetable table = saying(false, kube::kAgentStopped);
  table.spec.pods = {{.ns = "a", .name = "p", .job_uid = "u"}, {.ns = "a", .name = "q"}};
  table.spec.timetable.pods_count = 2;
  table.spec.timetable.slice = seconds{10};
  table.spec.timetable.cycle = {{0}, {1}};
  kube::JobStatus status;
  status.start_time = kOpened - seconds{500};
  // 100 s since the agent's last word, half of them by turns.
  EXPECT_EQ(missed_before(&table, table.spec, "u", status, kOpened + seconds{100}), seconds{50});
  status.run_time = kube::RunTime{seconds{7}, kOpened + seconds{60}};  // what is stored has some
  // The stored run time is as of second 60, and of the 40 s since then the job was off for 20.
  EXPECT_EQ(missed_before(&table, table.spec, "u", status, kOpened + seconds{100}), seconds{20});
  EXPECT_EQ(missed_before(&table, table.spec, "other", status, kOpened + seconds{100}), seconds{0});
  const kube::NodeTimetable slices = saying(true, "Obeying");
  EXPECT_EQ(missed_before(&slices, table.spec, "u", status, kOpened + seconds{100}), seconds{0});
}

}  // namespace
}  // namespace control
