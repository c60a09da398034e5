// Ends in batches of those that are close together. Jobs 1, 2, … on nodes a to d.
#include "scheduler/backfill/end_batches.h"

#include <gtest/gtest.h>

#include <chrono>
#include <string>

#include "scheduler/testing/ends_world.h"

namespace sched::testing {
namespace {

Configuration as_recorded(Configuration configuration = EndsWorld::of_cores()) {
  configuration.cluster.quirks.ends_come_in_batches = true;
  return configuration;
}

// Jobs that end at these seconds, one after the other on a to d and a again.
class Batches {
 public:
  explicit Batches(std::initializer_list<double> ends,
                   const Configuration& configuration = as_recorded())
      : world_{configuration} {
    int id = 0;
    for (const double end : ends) {
      const auto node = static_cast<char>('a' + id % 4);
      world_.running_on_some(++id, std::string{node}, 1, end);
    }
    world_.ends_at(1);
  }
  // Writes the jobs that are gone with each batch: "12 1234 ".
  std::string of(const std::string& letters = "abcd", const Victims* victims = nullptr,
                 std::size_t from = 0) {
    const NodeSet nodes = world_.set_of(letters);
    EndBatches batches{world_.cluster, world_.ends, nodes, victims, from};
    std::string text;
    while (const auto gone = batches.next()) {
      for (std::size_t i = 0; i < *gone; ++i) text += to_string(world_.ends.all()[i].job->id);
      text += " ";
    }
    return text;
  }

 private:
  EndsWorld world_;
};

// Windows are counted from 15 s after the first end of all, without a clock; 25 + 30 and 25 + 60.
// An end after the window is taken if the job before it was not.
TEST(EndBatches, WindowsAreCountedFromTheFirstEnd) {
  EXPECT_EQ(Batches({10, 55, 56, 85, 86}).of(), "12 1234 12345 ");
  EXPECT_EQ(Batches({10, 20, 90, 95}).of("acd"), "123 1234 ");
}

// 30, 60 and 120 s; and a window that reaches as far as its first job, 25 + 480.
TEST(EndBatches, WindowsAreTwiceAsLongEachTime) {
  EXPECT_EQ(Batches({10, 85, 86, 145, 146}).of(), "1 12 1234 12345 ");
  EXPECT_EQ(Batches({10, 300, 505, 506}).of(), "1 123 1234 ");
}

// 30, 40 and 50 s.
TEST(EndBatches, WindowsGrowByAStepIfThatIsAskedFor) {
  Configuration configuration = as_recorded();
  configuration.cluster.backfill.window_linear = seconds(10);
  EXPECT_EQ(Batches({10, 56, 65, 66, 75, 76}, configuration).of(), "1 123 12345 123456 ");
}

// The half minute of Slurm's clock, which is 20 s ahead: that of 30 s ends at 60 on it, at 40 here.
TEST(EndBatches, TheyBeginWithAHalfMinuteOfTheClock) {
  Configuration configuration = as_recorded();
  configuration.cluster.recorded_clock = seconds(20);
  EXPECT_EQ(Batches({10, 70, 71}, configuration).of(), "12 123 ");
}

TEST(EndBatches, WithSelectLinearEachEndIsABatch) {
  EXPECT_EQ(Batches({10, 11, 12}, as_recorded(PassWorld::one_partition())).of(), "1 12 123 ");
}

TEST(EndBatches, WithoutTheQuirkEachEndIsABatch) {
  Batches batches{{10, 11, 12}, EndsWorld::of_cores()};
  EXPECT_EQ(batches.of(), "1 12 123 ");
  EXPECT_EQ(batches.of("abcd", nullptr, 1), "12 123 ");
  EXPECT_EQ(batches.of("ac", nullptr, 1), "123 ");
}

TEST(EndBatches, OnlyEndsOnTheNodesInQuestionCount) {
  EXPECT_EQ(Batches({10, 20, 30}).of("a"), "1 ");
  EXPECT_EQ(Batches({10}).of("b"), "");
}

TEST(EndBatches, VictimsAreNotAmongThem) {
  Batches batches{10, 20, 30};
  Victims victims;
  victims.fates = {Victims::Fate::kMustEnd, Victims::Fate::kStays, Victims::Fate::kIsSuspended};
  EXPECT_EQ(batches.of("abcd", &victims), "12 ");
}

}  // namespace
}  // namespace sched::testing
