#include "operator/publish/task_ends.h"

#include <gtest/gtest.h>

#include "api/array_status.h"

namespace control {
namespace {

using std::chrono::hours;
using std::chrono::seconds;

constexpr base::Instant kNow{seconds{1'000'000}};

class TaskEndsTest : public ::testing::Test {
 protected:
  TaskEndsTest() { array_.array = std::make_unique<ArrayRecord>(); }

  static kube::TaskEnd end(int task, base::Instant at = kNow) {
    kube::TaskEnd one;
    one.task = task;
    one.end_time = at;
    return one;
  }
  // Makes a write that reports these ends first, and has `entries` entries of tasks; it is stored
  // in that version. Returns the tasks whose ends it reports.
  std::vector<int> write(std::vector<kube::TaskEnd> told, const std::string& version,
                         std::size_t entries = 0) {
    kube::ArrayStatus shown;
    shown.tasks.resize(entries);
    shown.ended = std::move(told);
    ends_.keep(array_, shown, kNow);
    std::vector<int> tasks;
    for (const kube::TaskEnd& one : shown.ended) tasks.push_back(one.task);
    kube::Job object;
    object.metadata.resource_version = version;
    object.status.array = std::move(shown);
    array_.status = JobMirror{object};
    return tasks;
  }
  void recorded(std::int64_t version) {
    kube::Lease lease;
    lease.metadata.annotations["kubegang.io/recorded-version"] = std::to_string(version);
    recorded_.answered({lease}, kNow);
  }
  void follow() { recorded_.follow({"kubegang-system", "kubegang-records"}); }

  Recorded recorded_;
  TaskEnds ends_{recorded_};
  JobRecord array_;
};

TEST_F(TaskEndsTest, NothingIsToldWithoutRecords) {
  EXPECT_TRUE(write({end(1)}, "5").empty());
  EXPECT_FALSE(ends_.awaits());
}

// The version that reported an end first counts, not the newest one.
TEST_F(TaskEndsTest, AreKeptUntilTheyAreRecorded) {
  follow();
  EXPECT_EQ(write({end(1)}, "5"), (std::vector{1}));
  EXPECT_EQ(write({end(2)}, "8"), (std::vector{1, 2}));
  EXPECT_TRUE(ends_.awaits());
  recorded(4);
  EXPECT_EQ(write({end(3)}, "9"), (std::vector{1, 2, 3}));
  recorded(5);
  EXPECT_EQ(write({}, "12"), (std::vector{2, 3}));
  recorded(9);
  EXPECT_FALSE(ends_.awaits());
  EXPECT_TRUE(write({}, "15").empty());
}

// The next leader does not know which version told them first.
TEST_F(TaskEndsTest, ANewLeaderKeepsWhatIsStored) {
  follow();
  write({end(1)}, "5");
  write({end(2)}, "8");
  array_.array = std::make_unique<ArrayRecord>();
  recorded(7);
  EXPECT_EQ(write({}, "11"), (std::vector{1, 2}));
  recorded(8);
  EXPECT_TRUE(write({}, "12").empty());
}

// The record of a task stays until its pods are settled.
TEST_F(TaskEndsTest, OneThatIsToldAgainIsNotTwice) {
  follow();
  write({end(1)}, "5");
  EXPECT_EQ(write({end(1)}, "8"), (std::vector{1}));
  recorded(5);
  EXPECT_TRUE(write({}, "9").empty());
}

TEST_F(TaskEndsTest, WaitForADayAtMost) {
  follow();
  write({end(1, kNow - hours{24}), end(2, kNow - hours{23})}, "5");
  EXPECT_EQ(write({}, "6"), (std::vector{2}));
}

// The status of an array has a bound: the oldest ends go first.
TEST_F(TaskEndsTest, AreBounded) {
  follow();
  std::vector<kube::TaskEnd> many;
  for (int i = 0; i < 499; ++i) many.push_back(end(i));
  write(many, "5");
  std::vector<int> kept = write({end(600), end(601)}, "6");
  EXPECT_EQ(kept.size(), kube::kArrayEndsMax);
  EXPECT_EQ(kept.front(), 1);
  EXPECT_EQ(kept.back(), 601);
  kept = write({}, "7", 900);
  EXPECT_EQ(kept.size(), 100U) << "beside the entries of so many tasks";
  EXPECT_EQ(kept.back(), 601);
  EXPECT_EQ(write({end(700)}, "8", 1'000), (std::vector{700})) << "each is told once";
}

}  // namespace
}  // namespace control
