#include "node-agent/survival/thaw_everything.h"

#include <gtest/gtest.h>

#include <functional>

#include "node-agent/survival/journal.h"
#include "node-agent/testing/pod_files.h"

namespace agent {
namespace {

// A tree of ordinary files, and a journal that names the pods a and b of it.
class ThawEverythingTest : public testing::PodFilesTest {
 protected:
  ThawEverythingTest() {
    write("podua", "1", "frozen 0\n");
    write("podub", "1", "frozen 1\n");
    const Journal journal{
        .boot_id = read_boot_id(),
        .pods = {{.uid = "ua", .name = "ns/a", .job_uid = "j1", .path = "kubepods/podua"},
                 {.uid = "ub", .name = "ns/b", .job_uid = "j2", .path = "kubepods/podub"}}};
    EXPECT_TRUE(JournalFile{root_.path() + "/" + kJournalName}.write(journal).ok());
  }
  bool thaw(const std::function<bool()>& give_up) {
    return thaw_everything({.run_directory = root_.path(), .cgroup_root = root_.path()}, give_up);
  }
};

// The others are many, and the lock for which a new agent waits is held meanwhile.
TEST_F(ThawEverythingTest, TriesAgainWhatFailedAndNothingElse) {
  int asked = 0;
  // The files are not a kernel: b's `frozen 1` stays until this changes it.
  const bool done = thaw([&] {
    if (++asked == 1) write("podua", "1", "frozen 0\n");
    if (asked == 2) write("podub", "1", "frozen 0\n");
    return false;
  });
  EXPECT_TRUE(done);
  EXPECT_EQ(asked, 2);
  EXPECT_EQ(freeze_file("podua"), "1") << "it was thawed by the first attempt";
  EXPECT_EQ(freeze_file("podub"), "0");
}

TEST_F(ThawEverythingTest, SaysThatAPodStaysFrozen) {
  EXPECT_FALSE(thaw([] { return true; }));
  EXPECT_EQ(freeze_file("podua"), "0");
}

}  // namespace
}  // namespace agent
