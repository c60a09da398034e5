#include "cli/workload/trace_jobs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/scenario.h"

namespace cli {
namespace {

using std::chrono::minutes;
using std::chrono::seconds;
using testing::ElementsAre;
using testing::HasSubstr;

// Four CPUs; queue 7 has a partition of two of them.
constexpr const char* kCluster = R"(
nodes:
- {name: 'n[1-4]', cores: 1, memory: 1000}
conf: {SelectType: select/linear}
partitions:
- {name: batch, Default: 'YES'}
- {name: queue7, Nodes: 'n[1-2]'}
)";

// A scenario of kCluster and `more`, to which traces are added.
class TraceJobs : public testing::Test {
 protected:
  explicit TraceJobs(const std::string& more = "inputs: []\n") {
    base::Result<simulate::Scenario> scenario = read_scenario(kCluster + more, "c.yaml");
    EXPECT_TRUE(scenario.ok()) << scenario.error().message;
    scenario_ = std::move(scenario).value();
  }
  void add(const SwfTrace& trace, std::optional<double> load = std::nullopt) {
    const base::Status added = add_trace(trace, load, scenario_);
    EXPECT_TRUE(added.ok()) << added.error().message;
  }
  std::vector<base::Duration> times() const {
    std::vector<base::Duration> times;
    for (const simulate::Input& input : scenario_.inputs)
      times.push_back(input.at - base::Instant{});
    return times;
  }

  simulate::Scenario scenario_;
};

// Rounded up to what a user could ask for: whole minutes, whole MiB.
TEST_F(TraceJobs, AskForWhatTheTraceSays) {
  add({{.number = 3,
        .submit = seconds{5},
        .run = seconds{70},
        .processors_allocated = 2,
        .requested_time = seconds{90},
        .requested_memory_kib = 1025,
        .user = 12,
        .queue = 7}});
  ASSERT_EQ(scenario_.jobs.size(), 1U);
  const simulate::Job& job = scenario_.jobs.front();
  EXPECT_EQ(job.label, "j3");
  EXPECT_EQ(job.work, seconds{70});
  EXPECT_EQ(job.request.id, sched::JobId{1});
  EXPECT_EQ(job.request.tasks, 2);
  EXPECT_EQ(job.request.time_limit, minutes{2});
  EXPECT_EQ(job.request.memory, sched::MemoryRequest{sched::MemoryPerCpu{sched::MemoryMiB{2}}});
  EXPECT_EQ(job.request.user, "user12");
  EXPECT_THAT(job.request.partitions, ElementsAre("queue7"));
  EXPECT_THAT(times(), ElementsAre(seconds{5}));
}

// A line of a trace that knows little. A run of 0 s is one that was rounded down, so it is not
// skipped.
TEST_F(TraceJobs, WithoutMoreHaveThePartitionsDefaults) {
  add({{.number = 3, .run = seconds{0}, .processors_requested = 1, .queue = 1}});
  ASSERT_EQ(scenario_.jobs.size(), 1U);
  const simulate::Job& job = scenario_.jobs.front();
  EXPECT_EQ(job.work, seconds{1}) << "0 is less than half a second";
  EXPECT_EQ(job.request.time_limit, std::nullopt);
  EXPECT_EQ(job.request.user, "root");
  EXPECT_TRUE(job.request.partitions.empty()) << "there is no queue1";
}

// One job for each reason, in one sentence per reason: a trace of which half is left out must not
// look like a study of the whole.
TEST_F(TraceJobs, ThatCannotBePlayedAreCounted) {
  add({{.number = 1, .run = seconds{1}, .processors_requested = 5},
       {.number = 2, .run = seconds{1}, .processors_requested = 3, .queue = 7},
       {.number = 3, .run = seconds{1}},
       {.number = 4, .processors_requested = 1},
       {.number = 5, .run = seconds{1}, .processors_requested = 1, .status = 2},
       {.number = 6, .run = seconds{1}, .processors_requested = 4}});
  ASSERT_EQ(scenario_.jobs.size(), 1U);
  EXPECT_EQ(scenario_.jobs.front().label, "j6");
  EXPECT_THAT(scenario_.warnings,
              ElementsAre("2 jobs of the trace are left out: more processors than CPUs in the "
                          "partition",
                          "1 jobs of the trace are left out: parts of other jobs",
                          "1 jobs of the trace are left out: processors unknown",
                          "1 jobs of the trace are left out: run time unknown"));
}

// By hand: 2 × 100 + 1 × 200 processor seconds; four CPUs have a load of a half after 200 s. All
// times between submissions are stretched by the same factor, so that bursts stay bursts.
TEST_F(TraceJobs, AreStretchedToALoad) {
  add({{.number = 1, .run = seconds{100}, .processors_requested = 2},
       {.number = 2, .submit = seconds{30}, .run = seconds{150}, .processors_requested = 1},
       {.number = 3, .submit = seconds{60}, .run = seconds{50}, .processors_requested = 1}},
      0.5);
  EXPECT_THAT(times(), ElementsAre(seconds{0}, seconds{100}, seconds{200}));
}

// No jobs; jobs that all come at once; and a load so low that times would overflow.
TEST_F(TraceJobs, ALoadNeedsWorkAndTime) {
  EXPECT_FALSE(add_trace({}, 0.5, scenario_).ok());
  EXPECT_FALSE(
      add_trace({{.number = 1, .run = seconds{1}, .processors_requested = 1}}, 0.5, scenario_)
          .ok());
  const SwfTrace endless = {
      {.number = 1, .run = seconds{kSwfSecondsMax}, .processors_requested = 4},
      {.number = 2,
       .submit = seconds{9},
       .run = seconds{kSwfSecondsMax},
       .processors_requested = 4}};
  EXPECT_THAT(add_trace(endless, 0.01, scenario_).error().message, HasSubstr("95 years"));
}

// A scenario that has a job j2 of its own at 10 s, and whose node n1 fails at 50 s.
class TraceBesideInputs : public TraceJobs {
 protected:
  TraceBesideInputs()
      : TraceJobs(
            "users: [user1]\ninputs:\n- {t: 10, submit: j2, args: -n1, run: 5}\n"
            "- {t: 50, node: n1, state: DOWN}\n") {}
};

// Inputs of both are sorted by time, and ids are given out in that order. The order of ids is the
// order of the queue among equals, so it must not depend on the source of a job.
TEST_F(TraceBesideInputs, JobsComeInBetween) {
  add({{.number = 1, .run = seconds{1}, .processors_requested = 1},
       {.number = 2, .submit = seconds{20}, .run = seconds{1}, .processors_requested = 1}});
  EXPECT_THAT(times(), ElementsAre(seconds{0}, seconds{10}, seconds{20}, seconds{50}));
  ASSERT_EQ(scenario_.jobs.size(), 3U);
  EXPECT_NE(scenario_.jobs[2].label, "j2") << "there is one";
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(scenario_.jobs[i].request.id, sched::JobId{static_cast<std::int64_t>(i) + 1});
  }
}

// A scenario that has taken the name j2 and the first other one that would be tried.
class TraceBesideEqualNames : public TraceJobs {
 protected:
  TraceBesideEqualNames()
      : TraceJobs(
            "inputs:\n- {t: 0, submit: j2, args: -n1, run: 5}\n"
            "- {t: 0, submit: j2-2, args: -n1, run: 5}\n") {}
};

// The first name that is tried instead of j2 has the number of labels so far, 2: it is taken, too.
TEST_F(TraceBesideEqualNames, GetNamesThatAreFree) {
  const SwfJob job{.number = 2, .run = seconds{1}, .processors_requested = 1};
  add({job, job});
  ASSERT_EQ(scenario_.jobs.size(), 4U);
  EXPECT_EQ(scenario_.jobs[2].label, "j2-3");
  EXPECT_EQ(scenario_.jobs[3].label, "j2-4");
}

// A scenario that lists its users, so others are refused as Slurm would refuse them.
class TraceOfUsers : public TraceJobs {
 protected:
  TraceOfUsers()
      : TraceJobs(
            "accounts:\n- {name: group2}\nusers:\n- {name: user4, account: group2}\n"
            "inputs: []\n") {}
};

// A trace has numbers; the names are user4 and group2. The sentence names the job by its number in
// the trace, by which its line is found.
TEST_F(TraceOfUsers, GroupsAreAccountsThatTheScenarioHas) {
  add({{.number = 1, .run = seconds{1}, .processors_requested = 1, .user = 4, .group = 2}});
  EXPECT_EQ(scenario_.jobs.front().request.account, "group2");
  EXPECT_THAT(add_trace({{.number = 9, .run = seconds{1}, .processors_requested = 1, .user = 5}},
                        std::nullopt, scenario_)
                  .error()
                  .message,
              "job 9: user \"user5\" is not among the scenario's users");
}

}  // namespace
}  // namespace cli
