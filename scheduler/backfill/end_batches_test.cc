// Ends in batches of those that are close together. Jobs 1, 2, … on nodes a to d; a batch is
// written as the numbers of its jobs.
#include "scheduler/backfill/end_batches.h"

#include <gtest/gtest.h>

#include <chrono>
#include <string>

#include "scheduler/testing/ends_world.h"

namespace sched::testing {
namespace {

// Jobs that end at these seconds, one after the other on a to d and a again.
class Batches {
 public:
  explicit Batches(std::initializer_list<double> ends,
                   const Configuration& configuration = EndsWorld::of_cores())
      : world_{configuration} {
    int id = 0;
    for (const double end : ends) {
      const auto node = static_cast<char>('a' + id % 4);
      world_.running_on_some(++id, std::string{node}, 1, end);
    }
    world_.ends_at(1);
  }
  std::string of(const std::string& letters = "abcd", const Victims* victims = nullptr,
                 std::size_t from = 0) {
    const NodeSet nodes = world_.set_of(letters);
    EndBatches batches{world_.cluster, world_.ends, nodes, victims, from};
    std::string text;
    for (;;) {
      const auto batch = batches.next(
          [&](std::size_t index) { text += to_string(world_.ends.all()[index].job->id); });
      if (!batch) return text;
      text += " ";
    }
  }
  const Ends& ends() const { return world_.ends; }

 private:
  EndsWorld world_;
};

// Windows of 30, 60 and 120 s, each from the first end that is left.
TEST(EndBatches, WindowsAreTwiceAsLongEachTime) {
  EXPECT_EQ(Batches({10, 40, 41, 101, 102, 222, 223}).of(), "12 34 56 7 ");
}

TEST(EndBatches, WindowsGrowByAStepIfThatIsAskedFor) {
  Configuration configuration = EndsWorld::of_cores();
  configuration.cluster.backfill.window_linear = seconds(10);
  // 30, 40 and 50 s.
  EXPECT_EQ(Batches({10, 40, 41, 81, 82, 132, 133}, configuration).of(), "12 34 56 7 ");
}

TEST(EndBatches, WithSelectLinearEachEndIsABatch) {
  EXPECT_EQ(Batches({10, 11, 12}, PassWorld::one_partition()).of(), "1 2 3 ");
}

TEST(EndBatches, OnlyEndsOnTheNodesInQuestionCount) {
  EXPECT_EQ(Batches({10, 20, 30, 51, 55}).of("bd"), "2 4 ") << "51 is 31 s after 20";
  EXPECT_EQ(Batches({10, 20, 30, 50, 60}).of("ad"), "1 45 ");
  EXPECT_EQ(Batches({10}).of("b"), "");
}

TEST(EndBatches, VictimsAreNotAmongThem) {
  Batches batches{10, 20, 30};
  Victims victims;
  victims.fates = {Victims::Fate::kMustEnd, Victims::Fate::kStays, Victims::Fate::kIsSuspended};
  EXPECT_EQ(batches.of("abcd", &victims), "2 ");
}

TEST(EndBatches, BeginWithAnyEnd) {
  EXPECT_EQ(Batches({10, 20, 45}).of("abcd", nullptr, 1), "23 ");
}

TEST(EndBatches, ABatchSaysWhereItIs) {
  Batches batches{10, 20, 45};
  EndsWorld world{EndsWorld::of_cores()};
  const NodeSet nodes = world.set_of("ac");
  EndBatches each{world.cluster, batches.ends(), nodes, nullptr, 0};
  const auto nothing = [](std::size_t) {};
  const auto first = each.next(nothing);
  ASSERT_TRUE(first);
  EXPECT_EQ(first->begin, 0U);
  EXPECT_EQ(first->end, 1U) << "2 is on b, and not in question";
  EXPECT_EQ(first->first, at(10));
  EXPECT_EQ(first->next, at(45));
  const auto last = each.next(nothing);
  ASSERT_TRUE(last);
  EXPECT_EQ(last->begin, 1U);
  EXPECT_EQ(last->end, 3U);
  EXPECT_EQ(last->next, at(45 + 60)) << "where its window ends";
}

// As recorded: windows are counted from 15 s after the first end of all, without a clock; 25 + 30
// and 25 + 60. An end after the window is taken if the job before it was not.
TEST(EndBatches, AsRecordedWindowsAreCountedFromTheFirstEnd) {
  Configuration configuration = EndsWorld::of_cores();
  configuration.cluster.quirks.ends_come_in_batches = true;
  EXPECT_EQ(Batches({10, 55, 56, 85, 86}, configuration).of(), "12 34 5 ");
  EXPECT_EQ(Batches({10, 20, 90, 95}, configuration).of("acd"), "13 4 ");
}

// The half minute of Slurm's clock, which is 20 s ahead: that of 30 s ends at 60 on it, at 40 here.
TEST(EndBatches, AsRecordedTheyBeginWithAHalfMinuteOfTheClock) {
  Configuration configuration = EndsWorld::of_cores();
  configuration.cluster.quirks.ends_come_in_batches = true;
  configuration.cluster.recorded_clock = seconds(20);
  EXPECT_EQ(Batches({10, 70, 71}, configuration).of(), "12 3 ");
}

}  // namespace
}  // namespace sched::testing
