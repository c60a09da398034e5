// The plans that nodes publish. A plan is shown as its list (A = ACTIVE, F = FILLER, W = waits),
// what is in force until an instant, and the cycle.
#include "scheduler/projection/node_plans.h"

#include <gtest/gtest.h>

#include "scheduler/testing/cluster_driver.h"
#include "scheduler/testing/tracked_gang.h"

namespace sched {
namespace {

using testing::at;
using testing::TrackedGang;

class Published {
 public:
  explicit Published(TrackedGang& gang)
      : gang_{gang}, plans_{gang.stage.cluster, gang.stage.usage, gang.components} {}

  // Returns the plans to be written by now, one line each.
  std::string take(double t) {
    gang_.components.project_stale();
    std::string text;
    for (const NodePlan& plan :
         plans_.take(at(t), [](const Job&, base::Instant) { return base::Duration{0}; })) {
      text += gang_.stage.cluster.node(plan.node).name + show(plan) + "\n";
    }
    return text;
  }

  void begin(std::int64_t id) { plans_.begin(gang_.stage.job(id)); }

 private:
  static std::string show(const NodePlan& plan) {
    if (plan.entries.empty()) return " nothing";
    const std::string text = testing::to_text(plan);
    return text.substr(text.find(':') + 1);
  }

  TrackedGang& gang_;
  NodePlans plans_;
};

// A node on which every job runs forever needs no timetable.
TEST(NodePlans, PublishNothingWhereEveryJobRuns) {
  TrackedGang gang{"A1 B1", 0, gang::Unit::kNode};
  Published published{gang};
  gang.start(1, 1, 'A', "a");
  gang.start(1, 2, 'B', "a");
  EXPECT_EQ(published.take(1), "");
}

// Neither do jobs on cores of their own: a pod brings its CPU set along.
TEST(NodePlans, PublishNothingForJobsOnCoresOfTheirOwn) {
  TrackedGang gang{"A1"};
  Published published{gang};
  gang.start(1, 1, 'A', "a01");
  gang.start(1, 2, 'A', "a23");
  EXPECT_EQ(published.take(1), "");
}

// Where a job is off at some time all jobs of the node are listed, also those that run always. The
// first slots are a plan, since the first rotation is not part of what repeats.
TEST(NodePlans, ListAllJobsOfANodeWhereOneTakesTurns) {
  TrackedGang gang{"A1 B1", 0, gang::Unit::kNode};
  Published published{gang};
  gang.start(1, 1, 'A', "ab");
  gang.start(2, 2, 'A', "b");
  gang.start(3, 3, 'B', "b");
  // Whole nodes. 1 and 2 meet on b; 3 is of another partition of the tier and runs beside both. At
  // 30 job 1 becomes ACTIVE and runs on; at 60 it gives way to 2, and so on. Slot 0 is the plan,
  // and the cycle's first entry stands for even slots.
  EXPECT_EQ(published.take(3),
            "a 1F | until 30.000000: 1 | cycle -, 1,\n"
            "b 1F 2W 3F | until 30.000000: 1 3 | cycle 2 3, 1 3,\n");
}

// A published plan that says the same from now on stays, though order and rows have changed.
TEST(NodePlans, WriteNothingWhenThePublishedPlanSaysTheSame) {
  TrackedGang gang{"A1", 0, gang::Unit::kNode};
  Published published{gang};
  gang.start(1, 1, 'A', "a");
  gang.start(2, 2, 'A', "a");
  EXPECT_NE(published.take(2), "");
  gang.advance(200);
  gang.components.mark(gang.stage.job(1), at(200));
  EXPECT_EQ(published.take(200), "");
}

// A start that was refused, and the next one of the same job in the same place before anything was
// published: the plan reads the same, but means other pods.
TEST(NodePlans, WriteAPlanAgainWhenAJobOfItHasBegunAnew) {
  TrackedGang gang{"A1", 0, gang::Unit::kNode};
  Published published{gang};
  gang.start(1, 1, 'A', "a");
  gang.start(2, 2, 'A', "a");
  const std::string before = published.take(2);
  EXPECT_EQ(before.substr(0, 1), "a");
  gang.leave(2, 2);
  gang.start(2, 2, 'A', "a");
  EXPECT_EQ(published.take(2), "");
  published.begin(2);
  gang.components.mark(gang.stage.job(2), at(2));
  EXPECT_EQ(published.take(2), before);
  gang.components.mark(gang.stage.job(2), at(2));
  EXPECT_EQ(published.take(2), "") << "once";
}

// When the last job that takes turns leaves, the plan is withdrawn.
TEST(NodePlans, WithdrawAPlanThatIsNotNeededAnyMore) {
  TrackedGang gang{"A1", 0, gang::Unit::kNode};
  Published published{gang};
  gang.start(1, 1, 'A', "a");
  gang.start(2, 2, 'A', "a");
  EXPECT_NE(published.take(2), "");
  gang.leave(3, 1);
  EXPECT_EQ(published.take(3), "a nothing\n");
  EXPECT_EQ(published.take(4), "");
}

// A change that may wait is published a lead before it takes effect, not at once.
TEST(NodePlans, PublishAJoinALeadBeforeItsBoundary) {
  TrackedGang gang{"A1", /*lead=*/20, gang::Unit::kNode};
  Published published{gang};
  gang.start(1, 1, 'A', "ab");
  EXPECT_EQ(published.take(1), "");
  gang.start(102, 2, 'A', "b");                      // joins at 150
  EXPECT_EQ(published.take(102).substr(0, 1), "b");  // it must not run: written at once
  EXPECT_EQ(published.take(129), "");
  EXPECT_EQ(published.take(130).substr(0, 1), "a");  // what follows from that for the others
}

}  // namespace
}  // namespace sched
