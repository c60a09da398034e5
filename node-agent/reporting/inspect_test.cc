#include "node-agent/reporting/inspect.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/file.h>

#include <filesystem>
#include <sstream>

#include "linux/file_descriptor.h"
#include "node-agent/policy/timetable_json.h"
#include "node-agent/survival/thaw_journaled.h"
#include "node-agent/testing/pod_files.h"

namespace agent {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// A tree of ordinary files, two pods of it under control of a dead agent.
class DeadAgentTest : public testing::PodFilesTest {
 protected:
  DeadAgentTest() {
    timetable_.metadata.name = "n1";
    timetable_.spec.term = 3;
    timetable_.spec.revision = 17;
    // a and b are listed and journaled; c is listed and never came; d is journaled from an earlier
    // timetable, and its cgroup has gone.
    timetable_.spec.pods = {{.ns = "ns", .name = "a", .job_uid = "j1"},
                            {.ns = "ns", .name = "b", .job_uid = "j2"},
                            {.ns = "ns", .name = "c", .job_uid = "j3"}};
    timetable_.spec.timetable = {
        .slice = std::chrono::seconds{30}, .pods_count = 3, .cycle = {{0, 2}, {1}}};
    journal_.timetable = timetable_to_json(timetable_);
    journal_.pods = {{.uid = "ua", .name = "ns/a", .job_uid = "j1", .path = "kubepods/podua"},
                     {.uid = "ub", .name = "ns/b", .job_uid = "j2", .path = "kubepods/podub"},
                     {.uid = "ud", .name = "ns/d", .job_uid = "j4", .path = "kubepods/podud"}};
    write("podua", "0", "populated 1\nfrozen 0\n");
    write("podub", "1", "populated 1\nfrozen 1\n");
  }
  kube::NodeTimetable timetable_;
  Journal journal_;
};

// Three sources side by side: the kernel's files, the timetable at this instant, and the agent's
// last words.
TEST_F(DeadAgentTest, InspectShowsEveryListedPod) {
  base::Result<PodCgroups> cgroups = PodCgroups::open(root_.path(), "");
  ASSERT_TRUE(cgroups.ok());
  const base::Instant now{std::chrono::seconds{1'767'225'600}};  // an even slot: a and c
  const std::string shown = format_shown_pods(
      {{.name = "ns/a",
        .standing = PodStanding::kControlled,
        .state = FreezeState::kThawed,
        .last_switch = now},
       {.name = "ns/b", .standing = PodStanding::kControlled, .state = FreezeState::kFrozen},
       {.name = "ns/c", .standing = PodStanding::kWaitedFor}});
  const std::string text = inspect(journal_, parse_shown_pods(shown), *cgroups, now);
  EXPECT_THAT(text, HasSubstr("term=3 revision=17 slice=30s pods=3"));
  EXPECT_THAT(text, HasSubstr("now          2026-01-01T00:00:00.000000Z, slot 58907520, 0 of 2\n"
                              "next change  2026-01-01T00:00:30.000000Z\n"));
  EXPECT_THAT(
      text,
      HasSubstr("INDEX  STANDING           KERNEL   TURN  SLOTS  LAST SWITCH\n"
                "0      controlled/thawed  running  on    0      2026-01-01T00:00:00.000000Z\n"
                "       ns/a\n"
                "       kubepods/podua\n"
                "1      controlled/frozen  frozen   off   1      -\n"
                "       ns/b\n"
                "       kubepods/podub\n"
                "2      waited-for         -        on    0      -\n"
                "       ns/c\n"));
}

// The longest words, and no name. A cycle of 64 slots, a cgroup that cannot be read, and the
// longest standing.
TEST_F(DeadAgentTest, InspectKeepsWithin80Columns) {
  base::Result<PodCgroups> cgroups = PodCgroups::open(root_.path(), "");
  ASSERT_TRUE(cgroups.ok());
  const base::Instant now{std::chrono::seconds{1'767'225'600}};
  timetable_.spec.timetable.cycle.clear();
  for (int i = 0; i < 32; ++i) {
    timetable_.spec.timetable.cycle.push_back({0});
    timetable_.spec.timetable.cycle.push_back({1});
  }
  journal_.timetable = timetable_to_json(timetable_);
  fs::remove_all(root_.path() + "/kubepods/podub");
  fs::create_directory_symlink(root_.path() + "/kubepods/podua", root_.path() + "/kubepods/podub");
  const std::string text = inspect(
      journal_, {{"ns/a", {.state = "controlled/freezing", .last_switch = now}}}, *cgroups, now);
  EXPECT_THAT(text, HasSubstr("  32/64  "));
  EXPECT_THAT(text, HasSubstr("  unreadable  "));
  EXPECT_THAT(text, HasSubstr("  controlled/freezing  "));
  std::istringstream lines{text};
  for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 80U) << line;
}

// By the lock, which ends with the process; a file left behind says nothing.
TEST_F(DeadAgentTest, InspectSaysWhetherAnAgentHasTheRunDirectory) {
  EXPECT_FALSE(agent_runs(root_.path()));
  const std::string path = root_.path() + "/lock";
  const os::FileDescriptor lock{::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600)};
  EXPECT_FALSE(agent_runs(root_.path()));
  ASSERT_EQ(::flock(lock.get(), LOCK_EX | LOCK_NB), 0);
  EXPECT_TRUE(agent_runs(root_.path()));
}

// With an empty journal, and with one that an agent has left.
TEST_F(DeadAgentTest, InspectWorksWithoutAnyAgent) {
  base::Result<PodCgroups> cgroups = PodCgroups::open(root_.path(), "");
  EXPECT_THAT(inspect(Journal{}, {}, *cgroups, {}), HasSubstr("none"));
  EXPECT_THAT(inspect(journal_, {}, *cgroups, {}), HasSubstr("frozen"));
}

// The supervisor's and the guard's way out. It thaws every pod that the journal names and no other:
// those belong to another program.
TEST_F(DeadAgentTest, ThawJournaledThawsAllThatTheJournalNames) {
  base::Result<PodCgroups> cgroups = PodCgroups::open(root_.path(), "");
  write("podforeign", "1", "populated 1\nfrozen 1\n");
  ThawResult result = thaw_journaled(journal_.pods, *cgroups);
  EXPECT_EQ(freeze_file("podub"), "0");
  EXPECT_EQ(freeze_file("podforeign"), "1");
  // The files are not a kernel: b's `frozen 1` stays, and is reported.
  ASSERT_EQ(result.failed.size(), 1U);
  EXPECT_EQ(result.failed[0].pod.name, "ns/b");
  EXPECT_EQ(result.failed[0].why, "still frozen");
  EXPECT_EQ(result.thawed_count, 1U);
  EXPECT_EQ(result.gone_count, 1U);
  write("podub", "0", "populated 1\nfrozen 0\n");
  result = thaw_journaled(journal_.pods, *cgroups);
  EXPECT_EQ(result.thawed_count, 2U);
  EXPECT_THAT(result.failed, ::testing::IsEmpty());
}

// The file may be of another version of the agent; inspect shows what it understands.
TEST(ShownPods, LinesOfAnotherFormAreLeftOut) {
  EXPECT_THAT(parse_shown_pods(""), ::testing::IsEmpty());
  EXPECT_THAT(parse_shown_pods("nonsense\n\nns/a settling\nns/b settling x\nns/c refused"),
              ElementsAre(std::pair{"ns/b", ShownPod{.state = "settling"}}));
}

}  // namespace
}  // namespace agent
