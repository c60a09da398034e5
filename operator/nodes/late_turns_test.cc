#include "operator/nodes/late_turns.h"

#include <gtest/gtest.h>

namespace control {
namespace {

using std::chrono::seconds;

constexpr base::Instant kWanted{seconds{1'000}};

// The jobs "on" and "off" are on n1 and n2. In the stored timetables, which have slots of 10 s, one
// runs all the time, and the other in each second slot, the first of them from kWanted on.
class LateTurnsTest : public testing::Test {
 protected:
  LateTurnsTest() {
    stored_.pods = {{.name = "on-0", .job_uid = "on"}, {.name = "half-0", .job_uid = "half"}};
    stored_.timetable.slice = seconds{10};
    stored_.timetable.pods_count = 2;
    stored_.timetable.cycle = {{0, 1}, {0}};
  }
  LateTurns::Sources sources() {
    return {.jobs_on = [this](const auto&) -> const std::set<std::string>& { return jobs_; },
            .run_time = [this](const std::string& uid) -> std::optional<base::Duration> {
              const auto found = run_times_.find(uid);
              if (found == run_times_.end()) return std::nullopt;
              return found->second;
            },
            .ran =
                [this](const std::string& uid, base::Duration more) {
                  told_[uid] += more;
                  run_times_[uid] += more;
                }};
  }
  void begin(const std::string& node) {
    late_.begin(node, std::make_shared<const kube::NodeTimetableSpec>(stored_), kWanted, sources());
  }
  void end(const std::string& node, seconds at) { late_.end(node, kWanted + at, sources()); }

  LateTurns late_;
  kube::NodeTimetableSpec stored_;
  const std::set<std::string> jobs_{"on", "half", "new"};
  std::map<std::string, base::Duration> run_times_{{"on", seconds{5}}, {"half", seconds{5}}};
  std::map<std::string, base::Duration> told_;
};

// Both are to stand still, which is stored 40 s later.
TEST_F(LateTurnsTest, AJobRunsByWhatIsStored) {
  begin("n1");
  EXPECT_FALSE(late_.counts_nobody());
  end("n1", seconds{40});
  EXPECT_TRUE(late_.counts_nobody());
  EXPECT_EQ(told_["on"], seconds{40});
  EXPECT_EQ(told_["half"], seconds{20});
  EXPECT_EQ(told_["new"], seconds{0}) << "not ready";
  end("n1", seconds{50});
  EXPECT_EQ(told_["on"], seconds{40});
}

// Time that the scheduler has counted, or has heard of for another node, counts once.
TEST_F(LateTurnsTest, OnlyWhatIsNotKnownIsCounted) {
  begin("n1");
  begin("n2");
  run_times_["on"] += seconds{15};
  end("n1", seconds{40});
  EXPECT_EQ(told_["on"], seconds{25});
  end("n2", seconds{50});
  EXPECT_EQ(told_["on"], seconds{35});
  EXPECT_EQ(told_["half"], seconds{30}) << "its slots begin at 0, 20 and 40";
}

// A write that takes a moment is not late.
TEST_F(LateTurnsTest, AWriteInTimeCountsForNothing) {
  begin("n1");
  late_.end("n1", kWanted + std::chrono::milliseconds{900}, sources());
  EXPECT_TRUE(told_.empty());
}

// Before an end, and after it no more. In another start the run time begins again.
TEST_F(LateTurnsTest, OneJobIsCountedBeforeItsEnd) {
  begin("n1");
  late_.count_job("on", kWanted + seconds{10}, sources());
  EXPECT_EQ(told_["on"], seconds{10});
  late_.count_job("on", kWanted + seconds{12}, sources());
  EXPECT_EQ(told_["on"], seconds{12});
  run_times_.erase("on");
  run_times_["half"] = seconds{0};
  end("n1", seconds{60});
  EXPECT_EQ(told_["on"], seconds{12});
  EXPECT_EQ(told_["half"], seconds{0});
}

// Where no timetable is stored everything runs.
TEST_F(LateTurnsTest, WithoutATimetableAJobRuns) {
  late_.begin("n1", nullptr, kWanted, sources());
  end("n1", seconds{40});
  EXPECT_EQ(told_["half"], seconds{40});
}

}  // namespace
}  // namespace control
