#include "launcher/usage.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <regex>

#include "launcher/process.h"

namespace launcher {
namespace {

using std::chrono::microseconds;
using std::chrono::seconds;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

UsageReport::Time at(int second) {
  return UsageReport::Time{seconds{second}};
}

constexpr int kExitedWith3 = 3 << 8;

TEST(Used, IsReadAsItIsWritten) {
  const Used used{.user = microseconds{1'500'000},
                  .system = microseconds{7},
                  .max_rss = 5U << 20U,
                  .memory_peak = 1U << 30U};
  EXPECT_EQ(decode_used(encode(used)), used);
  EXPECT_EQ(decode_used(encode(Used{})), Used{});
}

TEST(Used, TakesNothingElse) {
  for (const char* text : {"", "1", "1 2 3", "1 2 3 4 5", "-1 2 3 4", "1 -2 3 4", "a b c d",
                           "1 2 3 99999999999999999999999"}) {
    EXPECT_EQ(decode_used(text), std::nullopt) << text;
  }
}

TEST(Used, HasTheTimeOfAChildAndItsOwnChildren) {
  const pid_t pid = start({.argv = {"/bin/sh", "-c",
                                    "i=0; while [ $i -lt 20000 ]; do "
                                    "i=$((i+1)); done; exit 3"},
                           .environment = {},
                           .directory = "/",
                           .speaker = "test"});
  ASSERT_GT(pid, 0);
  int status = 0;
  rusage usage{};
  ASSERT_EQ(::wait4(pid, &status, 0, &usage), pid);
  EXPECT_EQ(status, kExitedWith3);
  const Used used = used_of(usage);
  EXPECT_GT((used.user + used.system).count(), 0);
  EXPECT_GT(used.max_rss, 100U << 10U);
}

TEST(MemoryPeak, IsThatOfTheContainersOwnGroup) {
  const std::string version_2 = "26 22 0:23 / /sys/fs/cgroup ro,nosuid - cgroup2 cgroup rw\n";
  EXPECT_THAT(memory_peak_files("0::/\n", version_2), ElementsAre("/sys/fs/cgroup/memory.peak"));
  EXPECT_THAT(memory_peak_files("0::/kubepods/pod1/c1\n", version_2),
              ElementsAre("/sys/fs/cgroup/kubepods/pod1/c1/memory.peak"));
  // Bound into a container without a name space of its own.
  EXPECT_THAT(memory_peak_files("0::/kubepods/pod1/c1\n",
                                "26 22 0:23 /kubepods/pod1/c1 /sys/fs/cgroup ro - cgroup2 c rw\n"),
              ElementsAre("/sys/fs/cgroup/memory.peak"));
  EXPECT_THAT(memory_peak_files("0::/kubepods/pod10/c1\n",
                                "26 22 0:23 /kubepods/pod1 /sys/fs/cgroup ro - cgroup2 c rw\n"),
              IsEmpty());
  EXPECT_THAT(
      memory_peak_files("5:memory:/kubepods/c1\n0::/x\n",
                        "30 25 0:27 /kubepods/c1 /sys/fs/cgroup/memory ro - cgroup c rw,memory\n"),
      ElementsAre("/sys/fs/cgroup/memory/memory.max_usage_in_bytes"));
}

TEST(MemoryPeak, IsNotThatOfTheMachine) {
  EXPECT_THAT(memory_peak_files("5:memory:/\n",
                                "30 25 0:27 / /sys/fs/cgroup/memory ro - cgroup c memory\n"),
              IsEmpty());
  EXPECT_THAT(memory_peak_files("", "no mounts\n"), IsEmpty());
  EXPECT_THAT(memory_peak_files("nothing", ""), IsEmpty());
}

// The text is what the operator's side reads (api/job_usage_test.cc).
TEST(UsageReport, SumsUpTheScriptAndItsSteps) {
  UsageReport report;
  report.begin_script(at(10));
  report.begin_step(0, "/usr/bin/hostname", {.tasks = 2, .nodes = 2, .cpus = 4}, at(11));
  const Used one{.user = seconds{1}, .system = microseconds{500}, .max_rss = 4'096};
  report.task_ended(0, 0, encode(one));
  report.task_ended(0, kExitedWith3, encode(one));
  report.end_step(0, false, at(13));
  report.begin_step(1, "sleep", {}, at(14));
  report.script_ended({.user = seconds{2}, .max_rss = 8'192}, 0, at(19));
  const std::regex peak{"\"memoryPeak\":\"[0-9]+\""};
  const std::string message =
      std::regex_replace(report.message(at(20)), peak, "\"memoryPeak\":\"1048576\"");
  EXPECT_EQ(message + "\n",
            text_of_file(KUBEGANG_SOURCE_DIR "/launcher/testing/usage_message.json"));
}

// A field of its own, which the operator reads whatever stands before it.
TEST(UsageReport, HasTheWishToRunAgain) {
  EXPECT_THAT(UsageReport{}.message(at(1), true), HasSubstr(",\"requeue\":true,"));
  EXPECT_THAT(UsageReport{}.message(at(1)), testing::Not(HasSubstr("requeue")));
}

TEST(UsageReport, AStepThatLosesItsSrunEndsThere) {
  UsageReport report;
  report.begin_step(7, "sleep", {}, at(1));
  report.end_step(7, true, at(3));
  EXPECT_THAT(report.message(at(90)), HasSubstr("\"signal\":9,\"startTime\":\"1970-01-01T00:00:01."
                                                "000000Z\",\"elapsed\":\"2.000000s\""));
}

TEST(UsageReport, StaysWithinItsBoundAndCountsTheRest) {
  UsageReport report;
  const Used much{.user = seconds{200'000'000},
                  .system = seconds{200'000'000},
                  .max_rss = std::uint64_t{1} << 50U};
  for (std::uint32_t id = 4'000'000'000; id < 4'000'001'000; ++id) {
    report.begin_step(id, std::string(5'000, '"'),
                      {.tasks = 65'536, .nodes = 65'536, .cpus = 9'000'000}, at(1));
    report.task_ended(id, SIGKILL, encode(much));
    report.end_step(id, true, at(1'999'999'999));
  }
  const std::string message = report.message(at(2'000'000'000));
  EXPECT_LE(message.size(), kUsageMessageBytesMax);
  EXPECT_THAT(message, HasSubstr("4000000005"));
  EXPECT_THAT(message, Not(HasSubstr("\\")));
  // Steps that are not listed are in the sum all the same.
  EXPECT_THAT(message, HasSubstr("\"userCPU\":\"200000000000.000000s\""));
  EXPECT_THAT(message, testing::ContainsRegex("\"moreSteps\":9[89][0-9]}$"));
}

class TerminationLog : public testing::Test {
 protected:
  TerminationLog() { ::unlink(path_.c_str()); }
  ~TerminationLog() override { ::unlink(path_.c_str()); }
  const std::string path_ = testing::TempDir() + "termination-log-" + std::to_string(::getpid());
};

TEST_F(TerminationLog, IsWrittenIfItIsThereAndEmpty) {
  std::ofstream{path_};
  leave_message(path_, "said");
  EXPECT_EQ(text_of_file(path_), "said");
}

TEST_F(TerminationLog, KeepsWhatTheScriptHasWritten) {
  std::ofstream{path_} << "of the script";
  leave_message(path_, "said");
  EXPECT_EQ(text_of_file(path_), "of the script");
}

TEST_F(TerminationLog, IsNotMade) {
  leave_message(path_, "said");
  EXPECT_NE(::access(path_.c_str(), F_OK), 0);
}

}  // namespace
}  // namespace launcher
