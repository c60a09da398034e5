#include "e2e/probe/stamp_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>

#include "e2e/probe/work_loop.h"

namespace probe {
namespace {

using base::instant_from_micros;
using testing::ElementsAre;

// Names one file for each test and process: tests run beside each other.
std::string path_of(const std::string& name) {
  return testing::TempDir() + name + "-" + std::to_string(::getpid());
}

// A break of 10 ms is the longest that does not end a run; one of 10,001 µs does.
// Goal: runs are cut at breaks that a busy CPU does not explain, and progress stays with its run.
TEST(StampFile, KeepsRunsAndBeginsANewOneAfterABreak) {
  const std::string path = path_of("runs");
  auto writer = StampWriter::create(path);
  ASSERT_TRUE(writer.ok()) << writer.error().message;
  writer->stamp(instant_from_micros(1'000));
  writer->count_progress();
  writer->stamp(instant_from_micros(11'000));  // just not too long a break
  writer->count_progress();
  writer->stamp(instant_from_micros(21'001));
  const auto stamps = read_stamps(path);
  ASSERT_TRUE(stamps.ok());
  EXPECT_THAT(stamps->runs,
              ElementsAre(probe::Run{instant_from_micros(1'000), instant_from_micros(11'000), 2},
                          probe::Run{instant_from_micros(21'001), instant_from_micros(21'001), 0}));
  EXPECT_EQ(stamps->runs_lost, 0);
  ::unlink(path.c_str());
}

// As a pod that stood still for three milliseconds: less than the break that ends a run by itself,
// so only the stop that was noticed tells that another gang may have run.
TEST(StampFile, BeginsANewRunAfterAStopHoweverShort) {
  const std::string path = path_of("stops");
  auto writer = StampWriter::create(path);
  ASSERT_TRUE(writer.ok());
  writer->stamp(instant_from_micros(1'000));
  writer->stamp(instant_from_micros(2'000));
  writer->stamp(instant_from_micros(5'000), true);
  writer->stamp(instant_from_micros(6'000));
  writer->stamp(instant_from_micros(5'500), true);  // and the clock stepped back
  EXPECT_THAT(read_stamps(path)->runs,
              ElementsAre(probe::Run{instant_from_micros(1'000), instant_from_micros(2'000), 0},
                          probe::Run{instant_from_micros(5'000), instant_from_micros(6'000), 0},
                          probe::Run{instant_from_micros(6'000), instant_from_micros(6'000), 0}));
  ::unlink(path.c_str());
}

// A stamp never goes back: a run would end before it began.
TEST(StampFile, StandsStillWhenTheClockStepsBack) {
  const std::string path = path_of("back");
  auto writer = StampWriter::create(path);
  ASSERT_TRUE(writer.ok());
  writer->stamp(instant_from_micros(50'000));
  writer->stamp(instant_from_micros(40'000));
  EXPECT_THAT(read_stamps(path)->runs,
              ElementsAre(probe::Run{instant_from_micros(50'000), instant_from_micros(50'000), 0}));
  ::unlink(path.c_str());
}

// Each stamp is 20 ms after the last, so each begins a run. A long test must not lose the end of
// its history, and must know that the beginning is missing.
TEST(StampFile, OverwritesTheOldestRunAndSaysSo) {
  const std::string path = path_of("ring");
  auto writer = StampWriter::create(path);
  ASSERT_TRUE(writer.ok());
  for (std::int64_t i = 0; i < std::int64_t{kRunsMax} + 3; ++i) {
    writer->stamp(instant_from_micros(i * 20'000));
  }
  const auto stamps = read_stamps(path);
  ASSERT_TRUE(stamps.ok());
  // Runs 0 to 2 are overwritten; the slot of run 3 is the one that the writer fills next.
  EXPECT_EQ(stamps->runs.size(), kRunsMax - 1);
  EXPECT_EQ(stamps->runs_lost, 4);
  EXPECT_EQ(stamps->runs.front().begin, instant_from_micros(80'000));
  ::unlink(path.c_str());
}

// A reader that took any file for stamps would report that no gang ever ran.
TEST(StampFile, RefusesAnotherKindOfFile) {
  const std::string path = path_of("other");
  std::ofstream{path} << "text";
  EXPECT_EQ(read_stamps(path).error().code, base::Code::kInvalidArgument);
  ::unlink(path.c_str());
  EXPECT_EQ(read_stamps(path).error().code, base::Code::kNotFound);
}

// The phase spreads probes over the period, so that not all of a machine work at the same instant.
TEST(WorkLoop, WorksOnEveryInstantOfItsPhase) {
  WorkLoop loop{instant_from_micros(100), std::chrono::microseconds{300}};
  EXPECT_EQ(loop.due(), instant_from_micros(300));
  EXPECT_TRUE(loop.begin(instant_from_micros(350)));
  EXPECT_EQ(loop.due(), instant_from_micros(1'300));
  EXPECT_TRUE(loop.begin(instant_from_micros(1'300)));
  EXPECT_EQ(loop.due(), instant_from_micros(2'300));
}

// Work that was missed while frozen must not be made up for: it would look as if the gang had run
// faster.
TEST(WorkLoop, DoesNotMakeUpForInstantsThatItMissed) {
  WorkLoop loop{instant_from_micros(0), std::chrono::microseconds{0}};
  EXPECT_TRUE(loop.begin(instant_from_micros(0)));
  // Frozen from 1,000 to 101,500: the instants in between are lost, the next one is 102,000.
  EXPECT_FALSE(loop.begin(instant_from_micros(101'500)));
  EXPECT_EQ(loop.due(), instant_from_micros(102'000));
}

TEST(WorkLoop, HasThePeriodThatItIsTold) {
  WorkLoop loop{instant_from_micros(100), std::chrono::microseconds{300},
                std::chrono::milliseconds{5}};
  EXPECT_EQ(loop.due(), instant_from_micros(300));
  EXPECT_TRUE(loop.begin(instant_from_micros(5'299)));
  EXPECT_EQ(loop.due(), instant_from_micros(5'300));
  EXPECT_FALSE(loop.begin(instant_from_micros(10'300)));
  EXPECT_EQ(loop.due(), instant_from_micros(10'300));
}

}  // namespace
}  // namespace probe
