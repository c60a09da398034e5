#include "node-agent/inspect.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "node-agent/testing/temporary_directory.h"
#include "node-agent/thaw_journaled.h"
#include "node-agent/timetable_json.h"

namespace agent {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// A tree of ordinary files, two pods of it under control of a dead agent.
class DeadAgentTest : public ::testing::Test {
 protected:
  DeadAgentTest() {
    timetable_.metadata.name = "n1";
    timetable_.spec.term = 3;
    timetable_.spec.revision = 17;
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
  void write(const std::string& pod, const std::string& freeze, const std::string& events) {
    const fs::path path = fs::path{root_.path()} / "kubepods" / pod;
    fs::create_directories(path);
    std::ofstream{path / "cgroup.freeze"} << freeze << "\n";
    std::ofstream{path / "cgroup.events"} << events;
  }
  std::string freeze_file(const std::string& pod) {
    std::ifstream file{root_.path() + "/kubepods/" + pod + "/cgroup.freeze"};
    std::string line;
    std::getline(file, line);
    return line;
  }
  testing::TemporaryDirectory root_;
  kube::NodeTimetable timetable_;
  Journal journal_;
};

TEST_F(DeadAgentTest, InspectShowsEveryListedPod) {
  base::Result<PodCgroups> cgroups = PodCgroups::open(root_.path(), "");
  ASSERT_TRUE(cgroups.ok());
  base::Result<SharedState> state = SharedState::create(root_.path() + "/state");
  ASSERT_TRUE(state.ok());
  const base::Instant now{std::chrono::seconds{1'767'225'600}};  // an even slot: a and c
  state->show({{.uid = "ua",
                .standing = PodStanding::kControlled,
                .state = FreezeState::kThawed,
                .last_switch = now},
               {.uid = "ub", .standing = PodStanding::kControlled, .state = FreezeState::kFrozen},
               {.standing = PodStanding::kWaitedFor}});
  const std::string text = inspect(journal_, &state.value(), *cgroups, now);
  EXPECT_THAT(text, HasSubstr("term=3 revision=17 slice=30s pods=3"));
  EXPECT_THAT(text, HasSubstr("next change 2026-01-01T00:00:30.000000Z"));
  EXPECT_THAT(text, HasSubstr("ns/a  controlled/thawed  running  on    2026-01-01T00:00:00.000000Z"
                              "  kubepods/podua\n"));
  EXPECT_THAT(text, HasSubstr("ns/b  controlled/frozen  frozen   off   -"));
  EXPECT_THAT(text, HasSubstr("ns/c  waited-for         -        on    -"));
}

TEST_F(DeadAgentTest, InspectWorksWithoutAnyAgent) {
  base::Result<PodCgroups> cgroups = PodCgroups::open(root_.path(), "");
  EXPECT_THAT(inspect(Journal{}, nullptr, *cgroups, {}), HasSubstr("none"));
  EXPECT_THAT(inspect(journal_, nullptr, *cgroups, {}), HasSubstr("frozen"));
}

TEST_F(DeadAgentTest, ThawJournaledThawsAllThatTheJournalNames) {
  base::Result<PodCgroups> cgroups = PodCgroups::open(root_.path(), "");
  write("podforeign", "1", "populated 1\nfrozen 1\n");
  ThawResult result = thaw_journaled(journal_, *cgroups);
  EXPECT_EQ(freeze_file("podub"), "0");
  EXPECT_EQ(freeze_file("podforeign"), "1");
  // The files are no kernel: b's `frozen 1` stays, and is reported.
  EXPECT_THAT(result.failed, ElementsAre("ns/b: still frozen"));
  EXPECT_EQ(result.thawed_count, 1U);
  EXPECT_EQ(result.gone_count, 1U);
  write("podub", "0", "populated 1\nfrozen 0\n");
  result = thaw_journaled(journal_, *cgroups);
  EXPECT_EQ(result.thawed_count, 2U);
  EXPECT_THAT(result.failed, ::testing::IsEmpty());
}

TEST(SharedState, ShowsWhatTheWorkerWrote) {
  const testing::TemporaryDirectory directory;
  const std::string path = directory.path() + "/state";
  EXPECT_EQ(SharedState::open(path).error().code, base::Code::kNotFound);
  base::Result<SharedState> worker = SharedState::create(path);
  ASSERT_TRUE(worker.ok());
  worker->keeper_beat().fetch_add(3);
  base::Result<SharedState> reader = SharedState::open(path);
  ASSERT_TRUE(reader.ok());
  EXPECT_EQ(reader->keeper_beat().load(), 3U);
  worker->show({{.uid = std::string(100, 'x'), .standing = PodStanding::kExempt}});
  ASSERT_EQ(reader->read()->size(), 1U);
  EXPECT_EQ((*reader->read())[0].uid, std::string(63, 'x'));
  EXPECT_EQ((*reader->read())[0].standing, PodStanding::kExempt);
  std::ofstream{directory.path() + "/other"} << std::string(1 << 20, 'x');
  EXPECT_EQ(SharedState::open(directory.path() + "/other").error().code,
            base::Code::kInvalidArgument);
}

}  // namespace
}  // namespace agent
