// The rules of chapter 6 for one closed set of jobs, as scripts. A line is an operation, the lists
// that it leaves, and the actions that it caused:
//
//   tick  -> H: 4* | A: 3f 1 ; -1 +3
//
// Lists are in list order, partitions in order of their tiers. After a job: "*" = ACTIVE, chosen by
// a rotation; "f" = FILLER, it fills a hole; nothing = it waits; "h" = it is held. Actions: +J
// resume, -J stop, xJ(K) kill J because K's shadow is over it. A job that starts where it fits runs
// already, so that it needs no action.
#include "scheduler/gang/gang_lists.h"

#include <gtest/gtest.h>

#include <map>
#include <sstream>
#include <string>
#include <string_view>

#include "scheduler/testing/tracked_jobs.h"

namespace sched::gang {
namespace {

// Plays a script. After each line the lists, the actions and the invariants are compared.
class Script {
 public:
  Script(std::string_view partitions, Unit unit)
      : stage_{partitions, unit}, lists_{stage_.cluster, unit} {}

  void run(const std::string& script) {
    std::istringstream lines{script};
    for (std::string line; std::getline(lines, line);) {
      const std::size_t arrow = line.find("->");
      if (arrow == std::string::npos) continue;
      operate(line.substr(0, arrow));
      EXPECT_EQ(show(), trimmed(line.substr(arrow + 2))) << "after" << line.substr(0, arrow);
      EXPECT_EQ(lists_.check_invariants(), "") << "after" << line.substr(0, arrow);
    }
  }

 private:
  static std::string trimmed(const std::string& text) {
    std::istringstream words{text};
    std::string result;
    for (std::string word; words >> word;) result += (result.empty() ? "" : " ") + word;
    return result;
  }

  // "start J P NODES", "hold J P NODES" for a job that starts held, "leave J", "release J", "tick".
  void operate(const std::string& text) {
    std::istringstream words{text};
    std::string verb, where;
    std::int64_t id = 0;
    char partition = 0;
    words >> verb >> id;
    if (verb == "tick") {
      lists_.tick();
    } else if (verb == "leave") {
      lists_.remove(JobId{id});
    } else if (verb == "release") {
      lists_.set_held(JobId{id}, false);
    } else if (verb == "start" || verb == "hold") {
      words >> partition >> where;
      const Allocation allocation = stage_.place(where);
      const PartitionIndex index = partition_of_[JobId{id}] = stage_.partition(partition);
      lists_.start(
          {.job = JobId{id},
           .partition = index,
           .allocation = &allocation,
           .held = verb == "hold",
           .kill_under_shadow = stage_.cluster.partition(index).config.preempt_mode.has_value()});
    } else {
      FAIL() << "no operation: " << text;
    }
  }

  std::string show() {
    std::string text;
    PartitionIndex last;
    bool any = false;
    for (const Place& place : lists_.places()) {
      const PartitionIndex here = partition_of_.at(place.job);
      if (!any || here != last) {
        text += (any ? " | " : "") + stage_.cluster.partition(here).config.name + ":";
      }
      any = true;
      last = here;
      text += " " + to_string(place.job);
      text += place.row == EntryRow::kActive ? "*" : place.row == EntryRow::kFiller ? "f" : "";
      if (place.held) text += "h";
    }
    std::string actions;
    for (const Action& action : lists_.take_actions()) {
      const std::string job = to_string(action.job);
      if (action.kind == ActionKind::kStop) actions += " -" + job;
      if (action.kind == ActionKind::kResume) actions += " +" + job;
      if (action.kind == ActionKind::kKill)
        actions += " x" + job + "(" + to_string(*action.by) + ")";
    }
    return actions.empty() ? text : text + " ;" + actions;
  }

  testing::TrackedJobs stage_;
  std::map<JobId, PartitionIndex> partition_of_;
  GangLists lists_;
};

void play(std::string_view partitions, const std::string& script, Unit unit = Unit::kCore) {
  Script{partitions, unit}.run(script);
}

// 6.9: a job runs at once if it fits beside those that run; otherwise it waits for its turn.
TEST(GangLists, RunsANewJobOnlyWhereItFits) {
  play("A1", R"(
    start 1 A ab  -> A: 1f
    start 2 A bc  -> A: 1f 2 ; -2
    start 3 A c   -> A: 1f 2 3f
  )");
}

// 6.6: a rotation moves the ACTIVE jobs to the back of the list and then chooses from the front.
// FILLER jobs keep their place, so the first rotation after a start changes nothing: a job that
// filled a hole gets a whole slice of its own.
TEST(GangLists, TurnsTheListAtATickWhileAJobWaits) {
  play("A1", R"(
    start 1 A ab  -> A: 1f
    start 2 A bc  -> A: 1f 2 ; -2
    start 3 A c   -> A: 1f 2 3f
    tick          -> A: 1* 2 3*
    tick          -> A: 2* 1 3 ; -1 -3 +2
    tick          -> A: 1* 3* 2 ; -2 +1 +3
  )");
}

// 6.7: a partition in which every job runs is not turned.
TEST(GangLists, LeavesAPartitionAloneInWhichEveryJobRuns) {
  play("A1", R"(
    start 1 A a  -> A: 1f
    start 2 A b  -> A: 1f 2f
    tick         -> A: 1f 2f
  )");
}

// 6.5, 6.8: where a job leaves, the next in list order that fits fills the hole at once. Jobs that
// run keep running, in front of or behind it.
TEST(GangLists, FillsTheHoleOfAJobThatLeaves) {
  play("A1", R"(
    start 1 A a   -> A: 1f
    start 2 A ab  -> A: 1f 2 ; -2
    start 3 A a   -> A: 1f 2 3 ; -3
    start 4 A b   -> A: 1f 2 3 4f
    leave 1       -> A: 2 3f 4f ; +3
    leave 4       -> A: 2 3f
    leave 3       -> A: 2f ; +2
  )");
}

// 6.3: a running job casts a shadow on all lower tiers: what it holds is taken there.
TEST(GangLists, StopsALowerTierUnderAShadowUntilItIsGone) {
  play("H2 A1", R"(
    start 1 A ab  -> A: 1f
    start 2 A c   -> A: 1f 2f
    start 3 H b   -> H: 3f | A: 1 2f ; -1
    tick          -> H: 3f | A: 1 2*
    leave 3       -> A: 1f 2* ; +1
  )");
}

// 6.7 goes from the highest tier down, so a shadow that moves is seen below in the same tick.
TEST(GangLists, FollowsAShadowThatMovesInTheSameTick) {
  play("H2 A1", R"(
    start 5 H a   -> H: 5f
    start 6 H ab  -> H: 5f 6 ; -6
    start 7 A b   -> H: 5f 6 | A: 7f
    tick          -> H: 5* 6 | A: 7f
    tick          -> H: 6* 5 | A: 7 ; -5 +6 -7
    tick          -> H: 5* 6 | A: 7* ; -6 +5 +7
  )");
}

// Partitions of one tier do not see each other: their jobs run at the same time.
TEST(GangLists, RunsEqualTiersAtTheSameTime) {
  play("A1 B1", R"(
    start 1 A a  -> A: 1f
    start 2 B a  -> A: 1f | B: 2f
  )");
}

// 6.4: a job whose mode is CANCEL or REQUEUE is killed by the shadow over it, and never runs again
// (held). It is not killed for waiting for its own partition's turn.
TEST(GangLists, KillsOnlyUnderAShadow) {
  play("H2 A1!", R"(
    start 1 A a  -> A: 1f
    start 2 A a  -> A: 1f 2 ; -2
    start 3 H a  -> H: 3f | A: 1h 2 ; x1(3)
    leave 3      -> A: 1h 2f ; +2
  )");
}

// R6.9, T11: a job that its user suspended is in the list and is not chosen until it is released.
TEST(GangLists, NeverChoosesAHeldJob) {
  play("A1", R"(
    hold 1 A a   -> A: 1h ; -1
    start 2 A b  -> A: 1h 2f
    tick         -> A: 1h 2*
    release 1    -> A: 1f 2* ; +1
  )");
}

// 6.2: what two jobs must not have in common depends on what the cluster hands out.
TEST(GangLists, ComparesNodesCoresSocketsOrCpus) {
  const std::string neighbours = "start 1 A a0 -> A: 1f\n start 2 A a1 -> ";
  play("A1", neighbours + "A: 1f 2 ; -2", Unit::kNode);
  play("A1", neighbours + "A: 1f 2f", Unit::kCore);
  play("A1", neighbours + "A: 1f 2 ; -2", Unit::kSocket);  // cores 0 and 1 are one socket
  play("A1", "start 1 A a0 -> A: 1f\n start 2 A a2 -> A: 1f 2f", Unit::kSocket);
  // With four CPUs: any four fit, whichever cores they are on; five do not.
  play("A1", "start 1 A a01 -> A: 1f\n start 2 A a12 -> A: 1f 2f", Unit::kCpuCount);
  play("A1", "start 1 A a012 -> A: 1f\n start 2 A a12 -> A: 1f 2 ; -2", Unit::kCpuCount);
}

// A copy plays on by itself: this is how a component is projected.
TEST(GangLists, IsAValueWhoseCopiesPlayAlike) {
  const testing::TrackedJobs stage{"A1"};
  const Allocation place = stage.place("a");
  GangLists lists{stage.cluster, Unit::kCore};
  for (const std::int64_t id : {1, 2, 3}) {
    lists.start({.job = JobId{id}, .partition = stage.partition('A'), .allocation = &place});
  }
  GangLists copy = lists;
  copy.take_actions();
  copy.tick();
  copy.tick();
  EXPECT_TRUE(copy.runs(JobId{2}));
  EXPECT_TRUE(lists.runs(JobId{1}));
  EXPECT_NE(copy.signature(), lists.signature());
  lists.tick();
  lists.tick();
  EXPECT_EQ(copy.signature(), lists.signature());
  EXPECT_EQ(copy.places(), lists.places());
}

}  // namespace
}  // namespace sched::gang
