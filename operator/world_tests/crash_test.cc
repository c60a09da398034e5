// Crashes between any two writes, a paused old leader, and an API server in bad health.
// Safety throughout (never two incarnations, never a pod without an allocation, never two gangs on
// a node at once); liveness afterwards (every job ends).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <nlohmann/json.hpp>
#include <set>

#include "kube/api/time_format.h"
#include "operator/gang/pod_builder.h"
#include "operator/gang/step_secret.h"
#include "operator/testing/world.h"
#include "operator/write/actuator.h"

namespace control {
namespace {

using nlohmann::json;
using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;
using ::testing::HasSubstr;

// KUBEGANG_LONG plays fifty times as many seeds; a normal run plays a few, always the same.
int rounds(int normal) {
  return std::getenv("KUBEGANG_LONG") != nullptr ? normal * 50 : normal;
}

// Two partitions over the same nodes: gangs that take turns below, and preemption from above.
void furnish(World& world, const std::string& mode) {
  json config = linear_config("4s");
  // Short delays all over, so that in one minute a job can be preempted, requeued and started
  // again.
  config["spec"]["preemptMode"] = mode;
  config["spec"]["requeue"] = {{"delay", "2s"}, {"maxBatch", 100}};
  config["spec"]["killWait"] = "2s";
  world.apply(config);
  world.apply(partition("low", {{"nodes", {{"hostlist", "n[1-3]"}}},
                                {"default", true},
                                {"overSubscribe", {{"policy", "Force"}, {"maxShare", 3}}}}));
  world.apply(partition("high", {{"nodes", {{"hostlist", "n[1-3]"}}},
                                 {"priorityTier", 2},
                                 {"overSubscribe", {{"policy", "Force"}, {"maxShare", 1}}}}));
}

// Submits jobs of one to three nodes and 4 to 15 s of work, a third of them in the higher tier, one
// of eight with a program that fails; up to 3 s apart.
std::vector<std::string> submit_some(World& world, base::Prng& prng, int count) {
  std::vector<std::string> names;
  for (int i = 0; i < count; ++i) {
    const std::string name = "job-" + std::to_string(i);
    const int nodes = 1 + static_cast<int>(prng.below(3));
    const std::string work = std::to_string(4 + prng.below(12)) + "s";
    json more = json::object();
    if (prng.below(3) == 0) more["partitions"] = json::array({"high"});
    json notes = json::object();
    if (prng.below(8) == 0) notes["test/exit-code"] = "1";
    world.apply(gang_job(name, nodes, work, more, notes));
    names.push_back(name);
    world.run_for(seconds{prng.below(4)});
  }
  return names;
}

bool all_ended(const World& world, const std::vector<std::string>& names) {
  for (const std::string& name : names) {
    const kube::Job job = world.job(name);
    if (!job.status.state || !kube::is_final(*job.status.state)) return false;
  }
  return true;
}

std::string states(const World& world, const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) {
    const kube::Job job = world.job(name);
    text += name + "=" + world.state(name) + "(" + job.status.reason + ") ";
  }
  return text;
}

class Crashes : public testing::TestWithParam<const char*> {};

// 6 % of all writes end the operator, half of them before and half after the write took effect.
TEST_P(Crashes, AtRandomWritesLoseNothingAndRunNothingTwice) {
  int crashes = 0;
  for (int round = 0; round < rounds(4); ++round) {
    SCOPED_TRACE("seed " + std::to_string(round));
    World world{{.seed = static_cast<std::uint64_t>(round) + 1,
                 .nodes = {"n1", "n2", "n3"},
                 .crash_per_mille = 60}};
    // A generator of its own for what users do: the crashes draw from the world's seed, so adding a
    // write does not change the jobs.
    base::Prng prng{static_cast<std::uint64_t>(round) + 77};
    furnish(world, GetParam());
    const auto names = submit_some(world, prng, 5);
    world.run_for(seconds{60});
    crashes += world.crashes();
    // Faults off: everything ends.
    world.set_crash_per_mille(0);
    EXPECT_TRUE(world.run_until([&] { return all_ended(world, names); }, minutes{10}))
        << states(world, names) << "\n"
        << world.log_tail();
    expect_no_violations(world);
    if (HasFailure()) return;  // one seed is enough to look at
  }
  // A test in which nothing crashed would prove nothing.
  EXPECT_GT(crashes, 0);
}

INSTANTIATE_TEST_SUITE_P(Modes, Crashes, testing::Values("Suspend", "Requeue", "Cancel"),
                         [](const auto& mode) { return std::string{mode.param}; });

// One job per node at times, up to four at others, and users who suspend their jobs: timetables
// come and go with the turns that need them.
TEST(CrashesAtRandom, WhileTimetablesComeAndGoLoseNothing) {
  int crashes = 0;
  for (int round = 0; round < rounds(4); ++round) {
    SCOPED_TRACE("seed " + std::to_string(round));
    World world{{.seed = static_cast<std::uint64_t>(round) + 400,
                 .nodes = {"n1", "n2", "n3"},
                 .crash_per_mille = 60,
                 .agent_pods = true}};
    base::Prng prng{static_cast<std::uint64_t>(round) + 17};
    json config = linear_config("4s");
    config["spec"]["killWait"] = "2s";
    world.apply(config);
    const auto share = [&](bool on) {
      world.apply(
          partition("batch", {{"nodes", {{"hostlist", "n[1-3]"}}},
                              {"default", true},
                              {"overSubscribe", {{"policy", on ? "Force" : "Exclusive"}}}}));
    };
    const auto suspend = [&](const std::string& name, bool on) {
      world.patch_job(name, {{"control", {{"suspend", on}}}});
    };
    share(false);
    std::vector<std::string> names;
    for (int i = 0; i < 5; ++i) {
      names.push_back("job-" + std::to_string(i));
      const int nodes = 1 + static_cast<int>(prng.below(2));
      world.apply(gang_job(names.back(), nodes, std::to_string(10 + prng.below(20)) + "s"));
      world.run_for(seconds{prng.below(4)});
    }
    for (int i = 0; i < 20; ++i) {
      if (prng.below(3) == 0) share(prng.below(2) == 0);
      const std::string& name = names[prng.below(names.size())];
      suspend(name, prng.below(2) == 0);
      world.run_for(seconds{prng.below(5)});
    }
    crashes += world.crashes();
    world.set_crash_per_mille(0);
    share(false);
    for (const std::string& name : names) suspend(name, false);
    EXPECT_TRUE(world.run_until([&] { return all_ended(world, names); }, minutes{10}))
        << states(world, names) << "\n"
        << world.log_tail();
    world.run_for(seconds{10});
    const auto tables = world.client().list<kube::NodeTimetable>();
    // With one job per node and no suspensions no node needs a timetable.
    EXPECT_TRUE(tables.ok() && tables->items.empty()) << world.log_tail();
    expect_no_violations(world);
    if (HasFailure()) return;  // one seed is enough to look at
  }
  EXPECT_GT(crashes, 0);
}

// A restart in the middle of a rotation: no job loses a turn.
TEST(Restart, InTheMiddleOfARotationChangesNothing) {
  World world{{}};
  world.apply(linear_config("4s"));
  world.apply(partition("batch", force()));
  world.apply(gang_job("first", 5, ""));
  world.run_for(seconds{6});
  world.apply(gang_job("second", 5, ""));
  world.run_for(seconds{22});
  const auto before = world.timetable("n12").spec;
  for (int i = 0; i < 6; ++i) {
    world.restart_operator();
    world.run_for(seconds{7});
  }
  const auto after = world.timetable("n12").spec;
  // The published function is the same, so it was not written again.
  EXPECT_EQ(before.timetable.cycle, after.timetable.cycle);
  EXPECT_EQ(before.revision, after.revision) << world.log_tail();
  // The first ran alone for up to 6 s before the second came; the rest of the tolerance is slices
  // at the edges.
  EXPECT_NEAR(std::chrono::duration<double>(world.ran("first")).count(),
              std::chrono::duration<double>(world.ran("second")).count(), 13);
  EXPECT_EQ(world.job("first").status.starts, 1);
  expect_no_violations(world);
}

// Numbers come in blocks that are reserved in the API server; a new leader begins behind the block
// of the last one.
TEST(Restart, JobNumbersAreNeverGivenTwice) {
  World world{{}};
  world.apply(linear_config());
  world.apply(partition("batch", {{"nodes", {{"hostlist", "n[12-16]"}}}, {"default", true}}));
  std::set<std::int64_t> numbers;
  for (int i = 0; i < 4; ++i) {
    const std::string name = "j" + std::to_string(i);
    world.apply(gang_job(name, 1, "1s"));
    world.run_for(seconds{2});
    numbers.insert(world.job(name).status.job_id.value_or(0));
    world.restart_operator();
  }
  EXPECT_EQ(numbers.size(), 4U);
}

// A job had ended, its nodes' timetables were not yet written. Nothing that a watch shows tells the
// new leader to rewrite them: it must see by itself that those below may go on.
TEST(Restart, AfterAJobEndedFillsTheHoleThatItLeft) {
  World world{{.nodes = {"n1", "n2", "n3"}}};
  furnish(world, "Suspend");
  world.apply(gang_job("below", 2, "20s"));
  world.run_for(seconds{6});
  world.apply(gang_job("above", 2, "5s", {{"partitions", json::array({"high"})}}));
  ASSERT_TRUE(world.run_until([&] { return world.state("below") == "Suspended"; }, seconds{30}));
  // The job's end is stored; the timetables that would let the others go on are not.
  world.crash_after(WritePoint::kFinal);
  ASSERT_TRUE(world.run_until([&] { return world.crashes() == 1; }, minutes{1}));
  EXPECT_TRUE(world.run_until([&] { return world.state("below") == "Completed"; }, minutes{3}))
      << world.log_tail();
}

// A job is ready and runs above others: one of its nodes' timetables was written, the other was
// not.
TEST(Restart, BetweenTheTimetablesOfOneGangStopsWhatIsBelowItOnAllItsNodes) {
  World world{{.nodes = {"n1", "n2"}}};
  furnish(world, "Suspend");
  for (const char* name : {"below-1", "below-2", "below-3", "below-4"}) {
    world.apply(gang_job(name, 1, "30s"));
    world.run_for(seconds{1});
  }
  world.run_for(seconds{9});
  world.apply(gang_job("above", 2, "9s", {{"partitions", json::array({"high"})}}));
  world.run_for(seconds{1});
  ASSERT_FALSE(kube::is_true(world.job("above").status.conditions, kube::kReady));
  world.crash_after(WritePoint::kTimetable);
  ASSERT_TRUE(world.run_until([&] { return world.crashes() == 1; }, seconds{20}));
  EXPECT_TRUE(kube::is_true(world.job("above").status.conditions, kube::kReady));
  EXPECT_TRUE(world.run_until([&] { return world.state("above") == "Completed"; }, minutes{1}))
      << world.log_tail();
  expect_no_violations(world);
}

// The old leader was paused with decisions unwritten; a new one went on. The old one's late writes
// must not take effect.
TEST(TwoOperators, ThePausedOneCannotUndoTheNewOnesWork) {
  World world{{}};
  world.apply(linear_config("4s"));
  world.apply(partition("batch", force()));
  world.apply(gang_job("first", 5, ""));
  world.run_for(seconds{6});
  world.apply(gang_job("second", 5, ""));
  // It decides, but does not get to write.
  auto old = world.take_process();
  old->pump_without_writes();
  // Decisions of the old term stand in its queue, the start of "second" among them.
  ASSERT_GT(old->writer().queued_count(), 0U);
  world.restart_operator();
  world.run_for(seconds{20});
  const kube::JobStatus before = world.job("second").status;
  ASSERT_EQ(before.starts, 1);
  // It wakes up and goes on as if nothing had happened.
  for (int i = 0; i < 5; ++i) (void)old->pump();
  EXPECT_THAT(old->ended(), HasSubstr("another operator leads"));
  world.run_for(seconds{20});
  EXPECT_EQ(world.job("second").status.term, before.term);
  EXPECT_EQ(world.job("second").status.starts, 1);
  EXPECT_EQ(world.pods_of("second").size(), 5U);
  expect_no_violations(world);
}

// The write of a leader that was paused arrives: it was on the network.
void arrives(World& world, OperatorProcess& old) {
  world.clock().advance(seconds{20});
  while (old.writer().run_one() != ManualWriter::Turn::kNothing) {
  }
}

// The new one has listed all, and has written nothing.
void begins(World& world) {
  world.restart_operator();
  for (int i = 0; i < 3; ++i) world.process().pump_without_writes();
}

// It arrives when the new leader has listed the job, and has not written it: neither version nor
// term refuses it.
TEST(TwoOperators, AStartThatThePausedOneStoresLateIsUndone) {
  World world{{}};
  world.apply(linear_config("4s"));
  world.apply(partition("batch", force()));
  world.apply(gang_job("first", 1, "1s"));
  ASSERT_TRUE(world.run_until([&] { return world.state("first") == "Completed"; }, minutes{1}));
  world.apply(gang_job("second", 5, "3s"));
  auto old = world.take_process();
  old->pump_without_writes();
  // The new one may not start it. The job itself is not changed, which would refuse the write.
  world.apply(partition("batch", force("n[12-16]", {{"state", "Down"}})));
  begins(world);
  arrives(world, *old);
  ASSERT_EQ(world.job("second").status.starts, 1);
  world.run_for(seconds{2});
  EXPECT_EQ(world.state("second"), "Pending");
  EXPECT_EQ(world.job("second").status.starts, 1) << "users may have seen it";
  EXPECT_EQ(world.process().ended(), "");
  world.apply(partition("batch", force("n[12-16]", {{"state", "Up"}})));
  EXPECT_TRUE(world.run_until([&] { return world.state("second") == "Completed"; }, minutes{1}))
      << world.log_tail();
  EXPECT_EQ(world.job("second").status.starts, 2);
  expect_no_violations(world);
}

// The pods were cleaned up, so without that end the job would be run again.
TEST(TwoOperators, AnEndThatThePausedOneStoresLateStays) {
  World world{{}};
  world.apply(linear_config("4s"));
  world.apply(partition("batch", force()));
  world.apply(gang_job("one", 2, "6s"));
  ASSERT_TRUE(world.run_until([&] { return world.state("one") == "Running"; }, minutes{1}));
  world.run_for(seconds{4});
  world.process().writer().be_slow(world.clock(), seconds{20});
  world.run_for(seconds{10});
  ASSERT_EQ(world.state("one"), "Running") << "its end is on the network";
  auto old = world.take_process();
  for (const kube::Pod& pod : world.pods_of("one")) {
    ASSERT_TRUE(world.client().remove<kube::Pod>(kube::key_of(pod.metadata)).ok());
  }
  world.run_for(seconds{1});
  begins(world);
  arrives(world, *old);
  ASSERT_EQ(world.state("one"), "Completed");
  world.run_for(seconds{1});
  EXPECT_THAT(world.process().ended(), HasSubstr("the next one lists again"));
  world.restart_operator();
  world.run_for(seconds{30});
  EXPECT_EQ(world.state("one"), "Completed");
  EXPECT_EQ(world.job("one").status.starts, 1);
  expect_no_violations(world);
}

// A machine that boots with a wrong clock is put right by NTP after the operator has begun. The
// clock that has to catch up first would keep jobs from ending for an hour.
TEST(TwoOperators, AClockThatWasSetBackFarEndsTheLeaderAndTheNextOneGoesOn) {
  World world{{}};
  world.apply(linear_config("4s"));
  world.apply(partition("batch", force()));
  json job = gang_job("first", 2, "");
  job["spec"]["schedule"]["timeLimit"] = "60s";
  world.apply(job);
  world.run_for(seconds{6});
  ASSERT_EQ(world.state("first"), "Running");
  // A small step is waited for.
  world.clock().step_wall(-seconds{30});
  world.run_for(seconds{1});
  EXPECT_EQ(world.process().ended(), "");
  world.clock().step_wall(-std::chrono::hours{1});
  world.run_for(seconds{1});
  EXPECT_EQ(world.process().ended(), "the clock was set back by 3629 s");
  world.restart_operator();
  job["metadata"]["name"] = "second";
  world.apply(job);
  EXPECT_TRUE(world.run_until([&] { return world.state("first") == "Timeout"; }, minutes{2}))
      << world.log_tail();
  EXPECT_TRUE(world.run_until([&] { return world.state("second") == "Timeout"; }, minutes{2}))
      << world.log_tail();
  expect_no_violations(world);
}

// The two hours have not passed: a job with 59 minutes left does not end, and none that has ended
// is deleted. The process that follows has the same clock, which differs from the API server's. It
// leads, because no other process does, and ends nothing by time. Then the clock is right.
TEST(TwoOperators, AClockThatWasSetAheadEndsNoJob) {
  World world{{}};
  world.apply(linear_config("4s"));
  world.apply(partition("batch", force()));
  json job = gang_job("first", 2, "");
  job["spec"]["schedule"]["timeLimit"] = "1h";
  world.apply(job);
  json last = gang_job("done", 1, "1s");
  last["spec"]["lifecycle"]["ttlAfterFinished"] = "1h";
  world.apply(last);
  json late = gang_job("late", 5, "");
  late["spec"]["schedule"]["deadline"] = kube::format_time(world.clock().wall() + minutes{90});
  late["spec"]["control"]["hold"] = true;
  world.apply(late);
  ASSERT_TRUE(world.run_until([&] { return world.state("done") == "Completed"; }, seconds{30}));
  const auto nothing_ended = [&] {
    EXPECT_EQ(world.state("first"), "Running");
    EXPECT_EQ(world.state("done"), "Completed") << "not deleted";
    EXPECT_EQ(world.state("late"), "Pending");
  };
  const auto trust = [&] { return world.condition("SchedulerConfig", "default", "ClockTrusted"); };
  world.clock().step_wall(std::chrono::hours{2});
  world.run_for(seconds{1});
  EXPECT_EQ(world.process().ended(), "the clock was set ahead by 7200 s");
  nothing_ended();
  world.restart_operator();
  world.process().loop().distrust_clock();
  world.run_for(minutes{2});
  nothing_ended();
  EXPECT_THAT(trust(), HasSubstr("False: DiffersFromApiServer"));
  world.clock().step_wall(-std::chrono::hours{2});
  world.run_for(seconds{1});
  EXPECT_THAT(world.process().ended(), HasSubstr("the clock was set back"));
  world.restart_operator();
  world.run_for(seconds{30});
  nothing_ended();
  EXPECT_EQ(trust(), "");
  EXPECT_TRUE(world.run_until([&] { return world.state("first") == "Timeout"; }, minutes{61}))
      << world.log_tail();
  expect_no_violations(world);
}

// The leader's clock may be hours ahead of the agents': an entry of a plan would be in force there
// until then, and the other gangs would stand until then, too. So it publishes the turns alone.
TEST(TwoOperators, ALeaderThatDistrustsItsClockTellsNoInstants) {
  World world{{}};
  world.apply(linear_config("4s"));
  world.apply(partition("batch", force()));
  int plans = 0;
  int turns = 0;
  const auto count = [&] {
    for (int i = 0; i < 20; ++i) {
      world.run_for(milliseconds{500});
      const auto tables = world.client().list<kube::NodeTimetable>();
      ASSERT_TRUE(tables.ok());
      for (const kube::NodeTimetable& table : tables->items) {
        plans += static_cast<int>(table.spec.timetable.plan.size());
        if (table.spec.timetable.cycle.size() > 1) ++turns;
      }
    }
  };
  for (const bool trusts : {true, false}) {
    if (!trusts) {
      world.restart_operator();
      world.process().loop().distrust_clock();
    }
    plans = turns = 0;
    for (const char* name : {"a", "b", "c"}) {
      world.apply(gang_job(std::string{name} + (trusts ? "-before" : "-after"), 5, "6s"));
    }
    count();
    EXPECT_EQ(plans > 0, trusts);
    EXPECT_GT(turns, 0);
    world.run_for(minutes{3});
  }
  EXPECT_EQ(world.state("c-after"), "Completed") << world.log_tail();
  expect_no_violations(world);
}

// No pod has the key of an earlier start. A leader that dies before the answer leaves a
// Secret that the next one tries to make again.
TEST(TwoOperators, OfTheStepSecretsOfAJobTheLastOneIsKept) {
  World world{{}};
  world.apply(gang_job("script", 2, ""));
  const std::string uid = world.job("script").metadata.uid;
  const Actuator actuator{world.client()};
  for (const std::int64_t starts : {1, 2, 2, 3}) {
    const Outcome outcome = actuator.carry_out(CreateStepSecret{{"team-a", "script"}, uid, starts});
    EXPECT_TRUE(std::get<StepSecretCreated>(outcome).status.ok());
    const auto list =
        world.client().call_json(kube::Method::kGet, "/api/v1/namespaces/team-a/secrets");
    ASSERT_TRUE(list.ok());
    ASSERT_EQ((*list)["items"].size(), 1U) << starts;
    EXPECT_EQ((*list)["items"][0]["metadata"]["name"], step_secret_name({"script", uid, starts}));
  }
}

TEST(Actuator, DeletesWhatTheStepsOfATaskNeeded) {
  World world{{}};
  world.apply(gang_job("script", 2, ""));
  kube::Job job = world.job("script");
  job.spec.batch.emplace();
  const std::string uid = job.metadata.uid;
  const kube::ObjectKey key{"team-a", "script"};
  const Actuator actuator{world.client()};
  for (const int task : {7, 8}) {
    ASSERT_TRUE(world.client().create(build_service(job, {"script", uid, 1, task})).ok());
    actuator.carry_out(CreateStepSecret{key, uid + "/" + std::to_string(task), 1});
  }
  actuator.carry_out(DeleteStepObjects{key, uid + "/7", 1});
  for (const char* const kind : {"secrets", "services"}) {
    const auto list = world.client().call_json(kube::Method::kGet,
                                               std::string{"/api/v1/namespaces/team-a/"} + kind);
    ASSERT_TRUE(list.ok());
    ASSERT_EQ((*list)["items"].size(), 1U) << kind;
    const std::string name = (*list)["items"][0]["metadata"]["name"];
    EXPECT_TRUE(name.starts_with("script-8-")) << name;
  }
}

// ResetAfter is the hardest fault: the write has taken effect and its answer is lost. Afterwards
// all watches break and their versions are compacted, so everything is listed again.
TEST(ApiServer, InBadHealthDelaysButLosesNothing) {
  for (int round = 0; round < rounds(3); ++round) {
    SCOPED_TRACE("seed " + std::to_string(round));
    World world{{.seed = static_cast<std::uint64_t>(round) + 100, .nodes = {"n1", "n2", "n3"}}};
    base::Prng prng{static_cast<std::uint64_t>(round) + 7};
    furnish(world, "Suspend");
    using Kind = devcluster::Fault::Kind;
    for (int i = 0; i < 60; ++i) {
      const Kind kinds[] = {Kind::kStatus, Kind::kResetBefore, Kind::kResetAfter};
      const int codes[] = {500, 503, 409, 429};
      const char* resources[] = {"jobs", "pods", "nodetimetables"};
      world.server().inject({.kind = kinds[prng.below(3)],
                             .verb = "",
                             .resource = resources[prng.below(3)],
                             .user_agent = "operator",
                             .code = codes[prng.below(4)]});
    }
    const auto names = submit_some(world, prng, 4);
    world.run_for(seconds{30});
    world.server().compact();
    world.server().drop_watches();
    world.server().clear_faults();
    EXPECT_TRUE(world.run_until([&] { return all_ended(world, names); }, minutes{10}))
        << states(world, names) << "\n"
        << world.log_tail();
    expect_no_violations(world);
  }
}

}  // namespace
}  // namespace control
