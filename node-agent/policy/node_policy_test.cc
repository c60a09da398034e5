// Tests of which timetable the policy obeys, and when it lets everything run.
#include "node-agent/policy/node_policy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/prng.h"
#include "node-agent/survival/lease_watch.h"
#include "node-agent/testing/node_policy_fixture.h"

namespace agent {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// Two gangs take turns of a second; a is on first. Both are journaled, since both will be frozen.
// The journal tells the next agent what to thaw; a freeze that is not in it would outlive the
// agent.
TEST_F(NodePolicyTest, ObeysTheTimetableAndJournalsBeforeItFreezes) {
  two_gangs();
  node_.step();
  EXPECT_THAT(node_.log(), ElementsAre("freeze uid-b"));
  EXPECT_THAT(journaled(), ElementsAre("uid-a", "uid-b"));
  node_.run_for(milliseconds{1500});
  EXPECT_FALSE(node_.runs("a"));
  EXPECT_TRUE(node_.runs("b"));
  EXPECT_EQ(node_.view("a").standing, PodStanding::kControlled);
  EXPECT_EQ(node_.view("a").state, FreezeState::kFrozen);
}

// A cache, or an operator that has lost its Lease, may still show an older timetable. Each offer
// says that a is off, so obeying it would show.
TEST_F(NodePolicyTest, IgnoresALowerTermOrRevisionAndTheNewOneStaysInForce) {
  node_.add_pod("a", "a");
  const kube::NodeTimetable old = node_.timetable({"a"}, {{}});
  kube::NodeTimetable newer = node_.timetable({"a"}, {{0}});
  newer.spec.term = 2;
  node_.publish(newer);
  node_.step();
  kube::NodeTimetable stale = old;
  stale.spec.revision = 99;
  node_.publish(stale);  // term 1 < 2
  node_.step();
  EXPECT_TRUE(node_.runs("a"));
  stale = newer;
  stale.spec.revision = 1;
  stale.spec.timetable.cycle = {{}};
  node_.publish(stale);
  node_.step();
  EXPECT_TRUE(node_.runs("a"));
  EXPECT_EQ(node_.policy().offers_ignored().at(GateVerdict::kStaleTerm), 1U);
  EXPECT_EQ(node_.policy().offers_ignored().at(GateVerdict::kStaleRevision), 1U);
  stale.metadata.uid = "recreated";  // another object may begin at revision 1
  node_.publish(stale);
  node_.step();
  EXPECT_FALSE(node_.runs("a"));
}

// etcd was restored from a backup: lower revisions are published under a higher term. Compared by
// the revision alone, the agent would obey the lost timetable forever.
TEST_F(NodePolicyTest, AHigherTermBeginsWithAnyRevision) {
  node_.add_pod("a", "a");
  kube::NodeTimetable table = node_.timetable({"a"}, {{0}});
  table.spec.revision = 1000;
  node_.publish(table);
  node_.step();
  ASSERT_TRUE(node_.runs("a"));
  table.spec.term = 2;
  table.spec.revision = 901;
  table.spec.timetable.cycle = {{}};
  node_.publish(table);
  node_.step();
  EXPECT_EQ(node_.policy().last_verdict(), GateVerdict::kObeyed);
  EXPECT_FALSE(node_.runs("a"));
}

// The cluster was installed again, so terms begin at 1 again. A watch alone cannot tell that from a
// cache that is behind; the quorum read can.
TEST_F(NodePolicyTest, ObeysAnOlderTimetableOnceAQuorumReadSaysTheSame) {
  node_.add_pod("a", "a");
  kube::NodeTimetable older = node_.timetable({"a"}, {{}});
  kube::NodeTimetable newer = node_.timetable({"a"}, {{0}});
  newer.spec.term = 57;
  node_.publish(newer);
  node_.step();
  older.metadata.uid = "of-a-cluster-installed-anew";
  node_.publish(older);
  node_.step();
  EXPECT_TRUE(node_.runs("a"));
  EXPECT_TRUE(node_.policy().needs_confirmation());
  EXPECT_THAT(node_.policy().timetable_complaint(), HasSubstr("is older than term 57 revision 2"));
  // The answer to the quorum read: the watch was behind.
  node_.inputs().confirmed = std::make_shared<const kube::NodeTimetable>(newer);
  node_.step();
  EXPECT_TRUE(node_.runs("a"));
  EXPECT_TRUE(node_.policy().needs_confirmation());
  // It was not: the API server itself has gone back.
  node_.inputs().confirmed = std::make_shared<const kube::NodeTimetable>(older);
  node_.step();
  EXPECT_FALSE(node_.runs("a"));
  EXPECT_FALSE(node_.policy().needs_confirmation());
  EXPECT_EQ(node_.policy().timetable_complaint(), "");
}

// A status write brings the same timetable in a new object. A counter that rises with each status
// write would look like a fault that goes on.
TEST_F(NodePolicyTest, CountsATimetableThatItDoesNotObeyOnce) {
  two_gangs();
  node_.step();
  const kube::NodeTimetable bad = node_.timetable({"a", "b"}, {{7}});
  for (int write = 0; write < 3; ++write) {
    node_.publish(bad);
    node_.step();
    EXPECT_EQ(node_.policy().last_verdict(), GateVerdict::kInvalid);
    EXPECT_EQ(node_.policy().offers_ignored().at(GateVerdict::kInvalid), 1U);
  }
}

// Stopping all turns for one bad write would be worse than going on by the timetable before.
TEST_F(NodePolicyTest, KeepsTheLastValidTimetableInForceAndSaysWhy) {
  two_gangs();
  node_.step();
  kube::NodeTimetable bad = node_.timetable({"a", "b"}, {{7}});
  node_.publish(bad);
  node_.run_for(milliseconds{1500});
  EXPECT_TRUE(node_.runs("b"));
  EXPECT_FALSE(node_.runs("a"));
  EXPECT_THAT(node_.policy().timetable_complaint(), HasSubstr("pod index 7 out of range"));
  EXPECT_EQ(node_.policy().timetable()->spec.revision, 1);
}

// The last valid one stays in force, whatever is wrong with the new one. Two gangs go on taking
// turns all the while; the sound one at the end is obeyed at once.
TEST_F(NodePolicyTest, ObeysNoTimetableThatIsInvalid) {
  struct Wrong {
    const char* why;
    void (*make)(kube::NodeTimetableSpec&);
  };
  const Wrong wrongs[] = {
      {"cycle: empty", [](auto& spec) { spec.timetable.cycle.clear(); }},
      {"out of range",
       [](auto& spec) {
         spec.timetable.cycle = {{0}, {2}};
       }},
      {"do not ascend",
       [](auto& spec) {
         spec.timetable.cycle = {{1, 0}};
       }},
      {"slice: 0 us", [](auto& spec) { spec.timetable.slice = base::Duration{0}; }},
      {"slice: -1 us", [](auto& spec) { spec.timetable.slice = base::Duration{-1}; }},
      {"cycle: 65 slots", [](auto& spec) { spec.timetable.cycle.assign(65, {0}); }},
      {"out of range",
       [](auto& spec) { spec.timetable.plan = {{.until = base::kNever, .run = {0}}}; }},
      {"is not after",
       [](auto& spec) {
         spec.timetable.plan = {{.until = {}, .run = {}}, {.until = {}, .run = {}}};
       }},
      {"listed twice", [](auto& spec) { spec.pods[1] = spec.pods[0]; }},
      {"jobUID is empty", [](auto& spec) { spec.pods[0].job_uid.clear(); }},
      {"is negative",
       [](auto& spec) {
         spec.term = 1;
         spec.revision = -1;
       }},
      {"10000 listed",
       [](auto& spec) {
         for (int i = 0; spec.pods.size() < 10'000; ++i) {
           spec.pods.push_back({.ns = "x", .name = std::to_string(i), .job_uid = "j"});
         }
         spec.timetable.pods_count = spec.pods.size();
       }},
  };
  two_gangs();
  node_.step();
  for (const Wrong& wrong : wrongs) {
    SCOPED_TRACE(wrong.why);
    kube::NodeTimetable bad = node_.timetable({"a", "b"}, {{}});
    wrong.make(bad.spec);
    // A revision that is lower is stale before it is invalid.
    if (bad.spec.revision < 0) bad.metadata.uid = "another";
    node_.publish(bad);
    node_.run_for(milliseconds{2000});
    EXPECT_NE(node_.runs("a"), node_.runs("b"));
    EXPECT_THAT(node_.policy().timetable_complaint(), HasSubstr(wrong.why));
    EXPECT_EQ(node_.policy().last_verdict(), GateVerdict::kInvalid);
    EXPECT_EQ(node_.policy().timetable()->spec.revision, 1);
  }
  node_.publish(node_.timetable({"a", "b"}, {{0, 1}}));
  node_.step();
  EXPECT_TRUE(node_.runs("a") && node_.runs("b"));
  EXPECT_EQ(node_.policy().timetable_complaint(), "");
}

// A plan comes before the cycle: one that is over leaves the cycle in force, one that has not ended
// rules alone. Instants near the ends of the representable time must not overflow.
TEST_F(NodePolicyTest, APlanInThePastOrTheFarFutureIsAsGoodAsAny) {
  two_gangs();
  kube::NodeTimetable past = node_.timetable({"a", "b"}, {{1}});
  past.spec.timetable.plan = {{.until = timetable::kInstantMin, .run = {0}},
                              {.until = node_.clock().wall() - hours{1}, .run = {0}}};
  node_.publish(past);
  node_.run_for(seconds{2});
  EXPECT_TRUE(!node_.runs("a") && node_.runs("b"));
  kube::NodeTimetable future = node_.timetable({"a", "b"}, {{1}});
  future.spec.timetable.plan = {{.until = timetable::kInstantMax, .run = {0}}};
  node_.publish(future);
  node_.run_for(seconds{2});
  EXPECT_TRUE(node_.runs("a") && !node_.runs("b"));
}

// The operator has deleted it, or the Partition: pods that stayed frozen would have nothing to thaw
// them.
TEST_F(NodePolicyTest, ThawsEverythingWhenTheTimetableIsGone) {
  two_gangs();
  node_.step();
  ASSERT_FALSE(node_.runs("b"));
  node_.inputs().timetable.reset();
  node_.run_for(milliseconds{200});
  EXPECT_TRUE(node_.runs("a"));
  EXPECT_TRUE(node_.runs("b"));
  EXPECT_THAT(journaled(), IsEmpty());
}

// Both are reversible: when the cause is gone, the same timetable applies again without a new
// revision. "Failed open": the operator's Lease was not renewed for too long. The kill switch is an
// administrator's.
TEST_F(NodePolicyTest, RunsEverythingWhileFailedOpenOrKilled) {
  two_gangs();
  node_.step();
  node_.inputs().failed_open = true;
  node_.step();
  EXPECT_TRUE(node_.runs("a") && node_.runs("b"));
  node_.inputs().failed_open = false;
  node_.step();
  EXPECT_FALSE(node_.runs("b"));
  node_.inputs().kill_switch = true;
  node_.step();
  EXPECT_TRUE(node_.runs("a") && node_.runs("b"));
}

// How long a pod settles, and whether anything may be frozen here at all, must be known before.
// The agent has just started and has not read the SchedulerConfig. The journal keeps what it reads,
// for an agent that starts without the API server.
TEST_F(NodePolicyTest, TakesNoPodUnderControlBeforeTheRulesAreKnownAndJournalsThem) {
  two_gangs();
  node_.inputs().rules_known = false;
  node_.run_for(seconds{3});
  EXPECT_THAT(node_.log(), IsEmpty());
  EXPECT_THAT(node_.view("a").note, HasSubstr("has not been read yet"));
  EXPECT_EQ(node_.journal().rules, std::nullopt);
  node_.inputs().rules_known = true;
  node_.inputs().settings.settle = seconds{9};
  node_.run_for(milliseconds{1200});
  EXPECT_NE(node_.runs("a"), node_.runs("b"));
  EXPECT_EQ(node_.view("a").note, "");
  node_.inputs().kill_switch = true;
  node_.run_for(milliseconds{100});
  EXPECT_EQ(node_.journal().rules,
            (Rules{.settings = {.settle = seconds{9}}, .kill_switch = true}));
}

// b never has a turn.
TEST_F(NodePolicyTest, AFreezeOfDaysIsNoFault) {
  two_gangs();
  node_.publish(node_.timetable({"a", "b"}, {{0}}));
  node_.step();
  // A preempted pod may stand still for days: no limit of the agent's own ends a freeze (freezer.md
  // 4 rule 7).
  node_.clock().advance(hours{72});
  node_.run_for(milliseconds{100});
  EXPECT_FALSE(node_.runs("b"));
}

// The journal must be empty in the end: a name that stayed would make the next agent thaw what
// another program has frozen.
TEST_F(NodePolicyTest, ThawsAllOfOursWhenItStops) {
  two_gangs();
  node_.step();
  EXPECT_FALSE(node_.policy().all_thawed());
  node_.inputs().stopping = true;
  node_.run_for(milliseconds{150});
  EXPECT_TRUE(node_.runs("a") && node_.runs("b"));
  EXPECT_TRUE(node_.policy().all_thawed());
  // A freeze from now on is of another program, also for the next agent.
  EXPECT_THAT(journaled(), IsEmpty());
  node_.cgroup("b").request = FreezeRequest::kFrozen;
  node_.inputs().stopping = false;
  node_.restart_agent();
  node_.run_for(milliseconds{1500});
  EXPECT_EQ(node_.view("b").state, FreezeState::kForeign);
}

// All of them run, but the switcher may be about to freeze one by the assignment before.
TEST_F(NodePolicyTest, IsNotDoneWithStoppingBeforeTheSwitcherHasHeardOfIt) {
  two_gangs();
  node_.publish(node_.timetable({"a", "b"}, {{0, 1}, {0}}));
  node_.step();
  ASSERT_TRUE(node_.policy().all_thawed());
  node_.hold_switcher(true);
  node_.inputs().stopping = true;
  node_.step();
  EXPECT_FALSE(node_.policy().all_thawed());
  EXPECT_THAT(journaled(), ElementsAre("uid-a", "uid-b"));
  node_.hold_switcher(false);
  node_.step();
  EXPECT_TRUE(node_.policy().all_thawed());
  EXPECT_THAT(journaled(), IsEmpty());
}

// The parts of the long test below; each draws from the one generator, so a seed is a whole run.
class NodePolicyRandomTest : public NodePolicyTest {
 protected:
  // Lists most of the pods, and `last`, with any cycle.
  kube::NodeTimetable random_timetable(base::Prng& prng, const std::vector<std::string>& names,
                                       const std::string& last) {
    std::vector<std::string> listed;
    for (const std::string& name : names) {
      if (prng.below(5) != 0) listed.push_back(name);
    }
    listed.push_back(last);
    std::vector<timetable::PodSet> cycle(1 + prng.below(4));
    for (timetable::PodSet& slot : cycle) {
      for (std::uint16_t pod = 0; pod < listed.size(); ++pod) {
        if (prng.below(2) == 0) slot.push_back(pod);
      }
    }
    return node_.timetable(listed, cycle);
  }

  // Adds a pod that another program has frozen, in place of the one before. Returns its name.
  std::string add_foreign(const std::string& before) {
    node_.remove_pod(before);
    const std::string name = before + "x";
    node_.add_pod(name, name);
    node_.cgroup(name).request = FreezeRequest::kFrozen;
    return name;
  }

  // Expects that each controlled pod runs if and only if it may run now. Returns how many pods that
  // were; 0 shortly after a change.
  int count_looks_at_run_of_now(const kube::NodeTimetable& newest, const std::string& foreign) {
    // ε: a switch, a barrier, and the retry of what failed.
    const timetable::Timetable& table = newest.spec.timetable;
    const base::Instant now = node_.clock().wall();
    const auto change = timetable::next_change(table, now - milliseconds{300});
    if (change && *change <= now) return 0;
    int looks = 0;
    for (std::uint16_t pod = 0; pod < newest.spec.pods.size(); ++pod) {
      const std::string& name = newest.spec.pods[pod].name;
      // After a crash with a damaged journal and a clock that was set back it settles once more.
      if (node_.view(name).standing != PodStanding::kControlled || name == foreign) continue;
      const bool want = node_.inputs().failed_open || timetable::runs_at(table, pod, now);
      EXPECT_EQ(node_.runs(name), want) << name;
      ++looks;
    }
    return looks;
  }
};

// Goal: whatever happens, only what may run at t runs, up to the time that a freeze takes; a
// foreign freeze is never written while the journal is whole; and once all inputs stop and
// fail-open has passed, everything that the agent froze runs. Method: random events against the
// whole agent but its threads, in virtual time. With a damaged journal the foreign pod becomes the
// agent's, since a kubegang Job controls it; then another foreign one takes its place.
TEST_F(NodePolicyRandomTest, WhateverHappensOnlyRunOfNowRunsAndInTheEndEverythingDoes) {
  constexpr std::uint64_t kSeed = 20260105;
  base::Prng prng{kSeed};
  const std::vector<std::string> names = {"a", "b", "c", "d", "e"};
  for (const std::string& name : names) node_.add_pod(name, name);
  std::string foreign = add_foreign("");
  LeaseWatch lease{std::nullopt, node_.clock().monotonic()};
  base::Instant renewed{seconds{1}};
  kube::NodeTimetable newest = node_.timetable({foreign}, {{}});
  node_.publish(newest);
  const auto pass = [&](base::Duration span) {
    node_.inputs().failed_open =
        lease.failed_open(node_.clock().monotonic(), node_.inputs().settings.fail_open_after);
    node_.inputs().lease = lease.seen();
    node_.run_for(span);
  };
  int looks = 0;
  for (int round = 0; round < 400; ++round) {
    SCOPED_TRACE("seed " + std::to_string(kSeed) + " round " + std::to_string(round));
    if (prng.below(10) != 0) {
      // The first reading is not known to be a renewal, each later change is.
      renewed += seconds{1};
      lease.read(renewed, node_.clock().monotonic());
    }
    bool damaged = false;
    switch (prng.below(8)) {
      case 0:
      case 1:
      case 2: {
        newest = random_timetable(prng, names, foreign);
        node_.publish(newest);
        break;
      }
      case 3:
        node_.restart_agent(/*pods_known=*/prng.below(2) == 0);
        break;
      case 4:
        damaged = true;
        damage_journal(format_journal(node_.journal()).substr(0, prng.below(400)));
        node_.restart_agent(/*pods_known=*/prng.below(2) == 0);
        break;
      case 5:
        node_.clock().step_wall(seconds{static_cast<std::int64_t>(prng.below(7'201)) - 3'600});
        break;
      case 6:
        node_.clock().advance(milliseconds{static_cast<std::int64_t>(prng.below(5'000))});
        break;
      default:
        node_.cgroup(names[prng.below(names.size())]).freeze_takes =
            milliseconds{static_cast<std::int64_t>(prng.below(15))};
    }
    pass(milliseconds{400});
    node_.inputs().pods_known = true;
    node_.inputs().timetable_known = true;
    pass(milliseconds{700});
    if (damaged) foreign = add_foreign(foreign);
    ASSERT_EQ(node_.cgroup(foreign).writes, 0U);
    looks += count_looks_at_run_of_now(newest, foreign);
    ASSERT_FALSE(HasFailure());
  }
  // Otherwise the comparison above would pass because it hardly ever took place.
  EXPECT_GT(looks, 400);
  // The inputs stop: the Lease is no longer renewed.
  pass(milliseconds{100});
  node_.clock().advance(node_.inputs().settings.fail_open_after);
  pass(seconds{1});
  for (const std::string& name : names) EXPECT_TRUE(node_.runs(name)) << name;
  EXPECT_EQ(node_.cgroup(foreign).writes, 0U);
}

}  // namespace
}  // namespace agent
