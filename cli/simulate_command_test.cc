// `simulate` from the file to what it prints.
#include "cli/simulate_command.h"

#include <gmock/gmock.h>
#include <unistd.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>

#include "cli/files.h"

namespace cli {
namespace {

using testing::HasSubstr;
using testing::Not;

// Each test has a folder of its own: the command reads its scenario from a file and writes pictures
// to files, as a user would have it.
class SimulateCommand : public testing::Test {
 protected:
  SimulateCommand() {
    const auto* const test = testing::UnitTest::GetInstance()->current_test_info();
    directory_ = std::filesystem::path{testing::TempDir()} /
                 (std::string{"simulate_"} + test->name() + std::to_string(::getpid()));
    std::filesystem::create_directories(directory_);
  }
  ~SimulateCommand() override { std::filesystem::remove_all(directory_); }

  std::string file(const std::string& name) const { return (directory_ / name).string(); }

  // Runs the command on a scenario of this text; returns its exit code. out_ and err_ have what
  // this run printed.
  int run(const std::string& scenario, SimulateOptions options) {
    options.file = file("s.yaml");
    EXPECT_TRUE(write_file(options.file, scenario).ok());
    out_.str("");
    err_.str("");
    return run_simulate(options, nullptr, {.out = out_, .err = err_});
  }

  // Returns what `-o json` prints of this scenario.
  nlohmann::json what_if(const std::string& scenario, SimulateOptions options = {}) {
    options.json = true;
    EXPECT_EQ(run(scenario, options), kExitOk) << err_.str();
    return nlohmann::json::parse(out_.str());
  }

  std::filesystem::path directory_;
  std::ostringstream out_, err_;
};

// The first example of the gang scheduling guide (14.1), ticks on the grid of 30 s. By hand: A
// alone is FILLER until the tick at 30, then it has a slot of its own until 60; B 60–90, A 90–120,
// B 120–150, A 150–180 (120 s of work done at 180), B from there on: 180–240.
constexpr const char* kTwoGangs = R"(
name: two gangs
nodes:
- {name: 'n[12-16]', cores: 8, memory: 16000}
conf: {SelectType: select/linear, PreemptMode: GANG, SchedulerTimeSlice: 30}
partitions:
- {name: active, Default: 'YES', OverSubscribe: FORCE}
inputs:
- {t: 0, submit: A, args: -N5, run: 120}
- {t: 10, submit: B, args: -N5, run: 120}
)";

// Labels are cut to 16 columns, of which ä takes one and two bytes: no character is cut in half,
// and all strips begin below each other.
TEST_F(SimulateCommand, LabelsAreCutBetweenCharacters) {
  std::string a_umlauts;
  for (int i = 0; i < 20; ++i) a_umlauts += "ä";
  ASSERT_EQ(run(std::string{"nodes:\n- {name: n1, cores: 1, memory: 1000}\n"
                            "partitions:\n- {name: p, Default: 'YES'}\ninputs:\n"
                            "- {t: 0, submit: "} +
                    a_umlauts + ", args: -N1, run: 60}\n- {t: 0, submit: xä" + a_umlauts +
                    ", args: -N1, run: 60}\n- {t: 0, submit: ö, args: -N1, run: 60}\n",
                {}),
            kExitOk)
      << err_.str();
  const std::string sixteen = a_umlauts.substr(0, 32);
  EXPECT_THAT(out_.str(), HasSubstr("\n" + sixteen + " █"));
  EXPECT_THAT(out_.str(), HasSubstr("\nx" + sixteen.substr(2) + " "));
  EXPECT_THAT(out_.str(), HasSubstr("\nö" + std::string(16, ' ')));
}

// At 75 s B is in the middle of its first turn: A has run 60 s and stands still, B has run 15 s. No
// second of the five nodes is idle while both are there.
TEST_F(SimulateCommand, ShowsQueueStripsAndTotals) {
  ASSERT_EQ(run(kTwoGangs, {.at = {"10", "75"}}), kExitOk) << err_.str();
  EXPECT_THAT(
      out_.str(),
      HasSubstr("At 1:15:\n"
                "   JOBID PARTITION     NAME     USER ST       TIME  NODES NODELIST(REASON)\n"
                "       1    active        A     root  S       1:00      5 n[12-16]\n"
                "       2    active        B     root  R       0:15      5 n[12-16]\n"));
  EXPECT_THAT(out_.str(), HasSubstr("Utilization        100.0 %\n"));
  EXPECT_THAT(out_.str(), HasSubstr("Ended              2 jobs\n"));
  EXPECT_THAT(out_.str(), Not(HasSubstr("Never started")));
  // A responds in 180 s and B in 230 s, and each runs for 120 s of that: the rest is its wait, also
  // the turns of the other. 95 % of two values do not exceed the larger one.
  EXPECT_THAT(out_.str(),
              HasSubstr("Wait               mean 1:25, median 1:00, 95 % 1:50, most 1:50\n"));
  EXPECT_THAT(out_.str(),
              HasSubstr("Response           mean 3:25, median 3:00, 95 % 3:50, most 3:50\n"));
}

// A trace of jobs that can never run must not look like an idle cluster. A is refused at its
// submission and B can never run; C ends. B waits until the end, for 60 − 1 = 59 s.
TEST_F(SimulateCommand, SaysWhyJobsNeverStarted) {
  const std::string scenario = R"(
nodes: [{name: n1, cores: 4, memory: 16000}]
conf: {EnforcePartLimits: ALL}
partitions: [{name: batch, Default: 'YES', MaxTime: '5'}]
inputs:
- {t: 0, submit: A, args: '-n1 -t 10', run: 60}
- {t: 0, submit: C, args: '-n1 -t 5', run: 60}
- {t: 1, submit: B, args: '-N1 --mem=1T -t 5', run: 60}
)";
  ASSERT_EQ(run(scenario, {}), kExitOk) << err_.str();
  EXPECT_THAT(out_.str(), HasSubstr("Ended              1 jobs\n"));
  EXPECT_THAT(out_.str(), HasSubstr("Wait               mean 0:29, median 0:00, 95 % 0:59"));
  EXPECT_THAT(out_.str(), HasSubstr("Never started      2 jobs\n  A: refused: "));
  EXPECT_THAT(out_.str(), HasSubstr("\n  B: BadConstraints: "));
  const nlohmann::json json = what_if(scenario);
  EXPECT_EQ(json["jobs"]["A"]["reason"], "Refused");
  EXPECT_EQ(json["jobs"]["A"]["submit"], nullptr);
}

// The ends are those worked out above; B responds in 240 − 10 = 230 s.
TEST_F(SimulateCommand, WhatIfAsJson) {
  const nlohmann::json json = what_if(kTwoGangs, {.at = {"75"}});
  EXPECT_EQ(json["jobs"]["A"]["end"], 180.0);
  EXPECT_EQ(json["jobs"]["B"]["end"], 240.0);
  EXPECT_EQ(json["jobs"]["B"]["runSeconds"], 120.0);
  EXPECT_EQ(json["queues"][0]["jobs"][0]["state"], "S");
  EXPECT_EQ(json["totals"]["response"]["max"], 230.0);
}

// A loses n2 at 20 s and may not run again; B begins on both nodes as soon as n2 is back. By hand:
// B from 60 to 110, when C begins on n1.
TEST_F(SimulateCommand, ALostNodeEndsItsJobs) {
  const nlohmann::json json = what_if(R"(
nodes: [{name: 'n[1-2]', cores: 4}]
partitions: [{name: p, Default: YES}]
inputs:
- {t: 0, submit: A, args: -N2 --no-requeue, run: 100}
- {t: 1, submit: B, args: -N2, run: 50}
- {t: 2, submit: C, args: -N1, run: 50}
- {t: 20, node: n2, state: DOWN}
- {t: 60, node: n2, state: RESUME}
)");
  EXPECT_EQ(json["jobs"]["A"]["state"], "NODE_FAIL");
  EXPECT_EQ(json["jobs"]["A"]["end"], 20.0);
  EXPECT_EQ(json["jobs"]["B"]["end"], 110.0);
  EXPECT_EQ(json["jobs"]["C"]["end"], 160.0);
}

// A runs from its beginning once more when both nodes are there and the delay of 10 s is over.
TEST_F(SimulateCommand, ALostNodeBringsItsJobsBack) {
  const nlohmann::json json = what_if(R"(
nodes: [{name: 'n[1-2]', cores: 4}]
partitions: [{name: p, Default: YES}]
conf: {SchedulerParameters: requeue_delay=10}
inputs:
- {t: 0, submit: A, args: -N2, run: 100}
- {t: 20, node: n2, state: DOWN}
- {t: 25, node: n2, state: RESUME}
)");
  EXPECT_EQ(json["jobs"]["A"]["state"], "COMPLETED");
  EXPECT_EQ(json["jobs"]["A"]["end"], 130.0);
}

// By hand: A has n1 from 0 to 100, B waits for it from 20 to 100 and has it until 150. Two nodes of
// 4 CPUs for 150 s are 1200 CPU seconds, used are (100 + 50) × 4. Waits 0 and 80, responses 100 and
// 130.
TEST_F(SimulateCommand, TotalsAreThoseWorkedOutByHand) {
  const nlohmann::json totals = what_if(R"(
nodes:
- {name: 'n[1-2]', cores: 4, memory: 16000}
conf: {SelectType: select/linear}
partitions:
- {name: p, Default: 'YES'}
inputs:
- {t: 0, submit: A, args: -N1 -w n1, run: 100}
- {t: 20, submit: B, args: -N1 -w n1, run: 50}
)")["totals"];
  EXPECT_EQ(totals["seconds"], 150.0);
  EXPECT_EQ(totals["cpuSeconds"], 1200);
  EXPECT_EQ(totals["usedCPUSeconds"], 600);
  EXPECT_EQ(totals["ended"], 2);
  EXPECT_EQ(totals["wait"]["mean"], 40.0);
  EXPECT_EQ(totals["wait"]["max"], 80.0);
  EXPECT_EQ(totals["response"]["mean"], 115.0);
  EXPECT_EQ(totals["response"]["max"], 130.0);
  EXPECT_EQ(totals["preemptedJobs"], 0);
}

// Two gangs take turns of 30 s for a week: single turns cannot be seen, so each node is a handful
// of marks. Each gang has half of the time, which is half of a row of 18 pixels.
TEST_F(SimulateCommand, APictureIsNoLargerThanWhatCanBeSeen) {
  std::string week{kTwoGangs};
  for (auto at = week.find("run: 120"); at != std::string::npos; at = week.find("run: 120")) {
    week.replace(at, 8, "run: 300000");
  }
  ASSERT_EQ(run(week, {.svg = file("p.svg")}), kExitOk) << err_.str();
  const base::Result<std::string> svg = read_file(file("p.svg"), 1U << 20U);
  ASSERT_TRUE(svg.ok());
  EXPECT_LT(svg->size(), 5'000U);
  EXPECT_THAT(*svg, HasSubstr("height=\"9.0\""));  // half of the time
}

// A label for each node, a name for each job that shows under the pointer, and an end: a file that
// is cut off would still open in some viewers.
TEST_F(SimulateCommand, WritesAPicture) {
  ASSERT_EQ(run(kTwoGangs, {.svg = file("p.svg")}), kExitOk) << err_.str();
  const base::Result<std::string> svg = read_file(file("p.svg"), 1U << 20U);
  ASSERT_TRUE(svg.ok());
  EXPECT_THAT(*svg, HasSubstr(">n12</text>"));
  EXPECT_THAT(*svg, HasSubstr("<title>B</title>"));
  EXPECT_THAT(*svg, HasSubstr("</svg>"));
}

// Told timing: nothing happens but what the file says. Both gangs start in the pass at 11; A was
// there first and is active, so B is suspended until A ends at 20. An instant makes no sense there.
TEST_F(SimulateCommand, ToldTimingForPeople) {
  const std::string told = std::string{kTwoGangs} + "- {t: 11, pass: main}\n- {t: 20, end: A}\n";
  ASSERT_EQ(run(told, {}), kExitOk) << err_.str();
  EXPECT_EQ(out_.str(),
            "    11.000  A starts in active on n[12-16]\n"
            "    11.000  B starts in active on n[12-16]\n"
            "    11.000  B is suspended\n"
            "    20.000  B is no longer suspended\n"
            "\n"
            "A: COMPLETED, 0 restarts\n"
            "B: RUNNING, 0 restarts\n");
  EXPECT_EQ(run(told, {.at = {"5"}}), kExitUsage);
}

// Two jobs of all five nodes, one after the other. j1 runs from 0 to 100; j2 comes at 40, waits for
// 60 s and runs for 40 s, until 140. Slowdowns: 1 and (60 + 40) ÷ 40, of which the mean is 7/4.
// The third job has more processors than there are.
TEST_F(SimulateCommand, PlaysATrace) {
  const std::string cluster = R"(
nodes:
- {name: 'n[1-5]', cores: 1, memory: 1000}
conf: {SelectType: select/linear}
partitions:
- {name: batch, Default: 'YES'}
inputs: []
)";
  ASSERT_TRUE(write_file(file("t.swf"),
                         "; MaxProcs: 5\n"
                         "1 0 -1 100 5 -1 -1 5 -1 -1 1 -1 -1 -1 -1 -1 -1 -1\n"
                         "2 40 -1 40 5 -1 -1 5 -1 -1 1 -1 -1 -1 -1 -1 -1 -1\n"
                         "3 50 -1 40 6 -1 -1 6 -1 -1 1 -1 -1 -1 -1 -1 -1 -1\n")
                  .ok());
  const nlohmann::json json = what_if(cluster, {.swf = file("t.swf")});
  EXPECT_THAT(err_.str(), HasSubstr("warning: 1 jobs of the trace are left out"));
  EXPECT_EQ(json["jobs"]["j1"]["end"], 100.0);
  EXPECT_EQ(json["jobs"]["j2"]["end"], 140.0);
  EXPECT_EQ(json["totals"]["slowdown"]["mean"], 1.75);
  EXPECT_EQ(json["totals"]["slowdown"]["max"], 2.5);

  // 5 × (100 + 40) processor seconds on five CPUs in 280 s.
  EXPECT_EQ(what_if(cluster, {.swf = file("t.swf"), .load = 0.5})["jobs"]["j2"]["submit"], 280.0);

  ASSERT_TRUE(write_file(file("t.swf"), "1 2\n").ok());
  EXPECT_EQ(run(cluster, {.swf = file("t.swf")}), kExitFailed);
  EXPECT_THAT(err_.str(), HasSubstr("t.swf:1: has 2 fields"));
  EXPECT_EQ(run(std::string{kTwoGangs} + "- {t: 11, pass: main}\n", {.swf = file("t.swf")}),
            kExitUsage);
}

// A wrong option is a wrong call (exit code 2); a wrong file, or one that cannot be read or
// written, is a failure (1), so that scripts can tell them apart.
TEST_F(SimulateCommand, SaysWhatIsWrong) {
  EXPECT_EQ(run(kTwoGangs, {.at = {"soon"}}), kExitUsage);
  EXPECT_EQ(err_.str(), "kubectl-gang simulate: --at \"soon\": must be seconds, 0 or more\n");
  EXPECT_EQ(run("nodes: 1\n", {}), kExitFailed);
  EXPECT_THAT(err_.str(), HasSubstr("s.yaml:1: "));
  EXPECT_EQ(run(std::string{kTwoGangs} + "- {t: 11, submit: C}\n", {}), kExitFailed);
  EXPECT_THAT(err_.str(), HasSubstr("submit \"C\": say how many seconds it runs (run)"));
  SimulateOptions missing;
  missing.file = file("none.yaml");
  EXPECT_EQ(run_simulate(missing, nullptr, {.out = out_, .err = err_}), kExitFailed);
  EXPECT_EQ(run(kTwoGangs, {.svg = file("no/such/p.svg")}), kExitFailed);
}

}  // namespace
}  // namespace cli
