// Run time while nodes do not slice.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "api/wellknown.h"
#include "operator/testing/world.h"

namespace control {
namespace {

using std::chrono::seconds;

// Two full-size jobs that take turns of 4 s, and their nodes.
class UnslicedTest : public ::testing::Test {
 protected:
  UnslicedTest() : world_{{}} {
    world_.apply(linear_config("4s"));
    world_.apply(partition("batch", force()));
    world_.apply(gang_job("first", 5, ""));
    world_.run_for(seconds{6});
    world_.apply(gang_job("second", 5, "", {{"schedule", {{"timeLimit", "300s"}}}}));
    world_.run_for(seconds{24});
  }
  void open_nodes(const std::string& reason) {
    for (const char* node : {"n12", "n13", "n14", "n15", "n16"}) world_.node(node).open(reason);
  }
  // As its status says, which lags behind by a minute or so.
  struct Times {
    double suspended = 0;
    double since_start = 0;  // as of the same instant
  };
  Times times(const std::string& job) {
    world_.run_for(seconds{130});
    const kube::JobStatus status = world_.job(job).status;
    EXPECT_TRUE(status.suspend_time && status.start_time);
    if (!status.suspend_time || !status.start_time) return {};
    const auto in_seconds = [](base::Duration d) {
      return std::chrono::duration<double>(d).count();
    };
    return {in_seconds(status.suspend_time->elapsed),
            in_seconds(status.suspend_time->as_of - *status.start_time)};
  }
  World world_;
};

// Each write takes 10 s. The job goes on until its nodes hear that it is to stand
// still, and that counts as run time.
TEST(LateTimetables, AJobRunsUntilItIsStoredThatItStandsStill) {
  World world{{}};
  world.apply(linear_config("4s"));
  world.apply(partition("batch", force()));
  world.apply(gang_job("first", 5, ""));
  world.run_for(seconds{20});
  world.process().writer().be_slow(world.clock(), seconds{10});
  world.patch_job("first", {{"control", {{"suspend", true}}}});
  const auto all_are_told = [&] {
    for (const char* node : {"n12", "n13", "n14", "n15", "n16"}) {
      const auto table = world.client().get<kube::NodeTimetable>({"", node});
      if (!table.ok() || table->spec.pods.empty()) return false;
    }
    return true;
  };
  const base::Instant asked = world.clock().wall();
  ASSERT_TRUE(world.run_until(all_are_told, seconds{200})) << world.log_tail();
  const base::Instant told = world.clock().wall();
  EXPECT_GE(told - asked, seconds{10});
  world.process().writer().be_slow(world.clock(), seconds{0});
  world.run_for(seconds{130});
  const kube::JobStatus status = world.job("first").status;
  ASSERT_TRUE(status.suspend_time);
  EXPECT_GE(status.suspend_time->elapsed, seconds{30});
  EXPECT_LT(status.suspend_time->elapsed - (status.suspend_time->as_of - told), seconds{3})
      << world.log_tail();
}

// Before the kill switch the second job took turns for 24 s, so it was suspended for 12, give or
// take two slices. Under it nothing is added; afterwards half of the time is.
TEST_F(UnslicedTest, TimeInWhichNodesDoNotSliceCountsAsRunTime) {
  open_nodes("KillSwitch");
  const Times open = times("second");
  EXPECT_GT(open.since_start, 60);
  EXPECT_NEAR(open.suspended, 12, 8) << world_.log_tail();  // of the 24 s before, and a turn
  open_nodes("");
  const Times before = times("second");
  const Times after = times("second");
  EXPECT_NEAR(after.suspended - before.suspended, (after.since_start - before.since_start) / 2, 8)
      << world_.log_tail();
}

// An agent that cannot write its journal says Ready=False and goes on switching: turns count as
// always.
TEST_F(UnslicedTest, AnotherReasonIsNone) {
  open_nodes("JournalUnwritable");
  const Times then = times("second");
  EXPECT_NEAR(then.suspended, then.since_start / 2, 8) << world_.log_tail();
}

TEST_F(UnslicedTest, ATimeLimitHoldsMeanwhile) {
  open_nodes("KillSwitch");
  // 12 s of its 300 s are over, and half as much of the time would be without.
  EXPECT_TRUE(world_.run_until([&] { return world_.state("second") == "Timeout"; }, seconds{310}))
      << world_.log_tail();
}

TEST_F(UnslicedTest, ANewLeaderCountsTheTimeWithoutOne) {
  world_.take_process().reset();
  open_nodes("FailedOpen");
  world_.run_for(seconds{150});
  world_.restart_operator();
  world_.run_for(seconds{5});
  open_nodes("");
  const Times then = times("second");
  EXPECT_GT(then.since_start, 180);
  // For the 155 s without slicing the job ran all the time; it was off for half of the rest.
  EXPECT_NEAR(then.suspended, (then.since_start - 155) / 2, 12) << world_.log_tail();
}

// A webhook gives the pods of the second job a probe, so they are never frozen: it runs in the
// first one's turns too. It pays for what it gets: otherwise a label that a webhook goes by
// would buy the other half of the node. So it is suspended for no time, also while there is no
// leader, and its limit of 300 s is over 300 s after its start and not 600.
class NeverFrozenTest : public ::testing::Test {
 protected:
  NeverFrozenTest() : world_{{}} {
    world_.server().set_pod_webhook([](nlohmann::json& pod) {
      if (pod["metadata"]["labels"].value(std::string{kube::kLabelJob}, "") != "second") return;
      pod["spec"]["containers"][0]["livenessProbe"] = {{"tcpSocket", {{"port", 80}}}};
    });
    world_.apply(linear_config("4s"));
    world_.apply(partition("batch", force()));
    world_.apply(gang_job("first", 5, ""));
    world_.run_for(seconds{6});
    world_.apply(gang_job("second", 5, "", {{"schedule", {{"timeLimit", "300s"}}}}));
  }
  double suspended(const std::string& job) {
    const kube::JobStatus status = world_.job(job).status;
    return status.suspend_time ? std::chrono::duration<double>(status.suspend_time->elapsed).count()
                               : -1;
  }
  World world_;
};

TEST_F(NeverFrozenTest, IsChargedForAllOfItsTime) {
  world_.run_for(seconds{200});
  EXPECT_NEAR(suspended("second"), 0, 12) << world_.log_tail();
  EXPECT_NEAR(suspended("first"), 100, 30) << "of the 200 s, as the status lags behind";
  ASSERT_NE(world_.state("second"), "Timeout");
  EXPECT_TRUE(world_.run_until([&] { return world_.state("second") == "Timeout"; }, seconds{125}))
      << world_.log_tail();
}

TEST_F(NeverFrozenTest, IsChargedForTheTimeWithoutALeader) {
  world_.run_for(seconds{80});
  world_.take_process().reset();
  world_.run_for(seconds{100});
  world_.restart_operator();
  world_.run_for(seconds{70});
  EXPECT_NEAR(suspended("second"), 0, 12) << world_.log_tail();
  EXPECT_TRUE(world_.run_until([&] { return world_.state("second") == "Timeout"; }, seconds{75}))
      << world_.log_tail();
}

}  // namespace
}  // namespace control
