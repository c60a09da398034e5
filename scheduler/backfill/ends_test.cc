// Tests of when allocated jobs are expected to end, and what they give back. Nodes a to d of 4
// cores and 8,000 MiB.
#include "scheduler/backfill/ends.h"

#include <gtest/gtest.h>

#include <map>
#include <string>

#include "scheduler/testing/ends_world.h"

namespace sched::testing {
namespace {

// Returns "8@60 9@70 " for two jobs in their order, in seconds.
std::string text_of(const Ends& ends) {
  std::string text;
  for (const Ends::End& end : ends.all()) {
    text += to_string(end.job->id) + "@" +
            std::to_string(base::micros_since_epoch(end.at) / 1'000'000) + " ";
  }
  return text;
}
// Returns what the jobs give back together, by rank.
std::map<int, CoresAndMemory> held_by_rank(const Ends& ends) {
  std::map<int, CoresAndMemory> held;
  for (const Ends::End& end : ends.all()) {
    ends.for_each_node(end,
                       [&](int rank, const CoresAndMemory& freed) { held[rank].add(freed, 1); });
  }
  return held;
}
double seconds_of(base::Instant at) {
  return static_cast<double>(base::micros_since_epoch(at)) / 1e6;
}

TEST(Ends, ComeInTheOrderOfTheirTimesAndThenOfTheJobTable) {
  EndsWorld world;
  world.running(8, "ab", 60);
  world.running(9, "c", 30);
  world.running(7, "d", 60);
  EXPECT_EQ(text_of(world.ends_at(1)), "9@30 8@60 7@60 ") << "8 is before 7 in the job table";
  EXPECT_EQ(world.ends.find(*world.books.find(JobId{7})), 2);
}

// On a and b; its user has suspended the second one, which keeps its memory (R5.2).
TEST(Ends, EachJobGivesBackWhatItHolds) {
  EndsWorld world;
  Job& runs = world.running(8, "a", 60);
  runs.allocation.nodes.front().memory = MemoryMiB{3000};
  Job& stopped = world.running(9, "b", 60);
  stopped.allocation.nodes.front().memory = MemoryMiB{1000};
  stopped.user_suspended = true;
  const auto held = held_by_rank(world.ends_at(1));
  EXPECT_EQ(held.size(), 2U);
  EXPECT_EQ(held.at(0), (CoresAndMemory{.cores = 4, .memory = 3000}));
  EXPECT_EQ(held.at(1), (CoresAndMemory{.cores = 0, .memory = 1000}));
}

TEST(Ends, AJobThatIsCompletingIsNotAmongThem) {
  EndsWorld world;
  Job& job = world.running(8, "a", 60);
  world.books.set_ending(job, Ending{.grace_end = at(5)});
  EXPECT_EQ(text_of(world.ends_at(1)), "8@5 ") << "with the end of its grace time";
  world.books.release_cores(job);
  EXPECT_EQ(text_of(world.ends_at(2)), "");
  EXPECT_FALSE(world.ends.find(job));
}

// Two jobs on node a and one on two nodes.
TEST(Ends, EachNodeThatAJobLeavesIsVisited) {
  EndsWorld world;
  world.running_on_some(8, "a", 3, 30);
  world.running_on_some(9, "bc", 2, 60);
  std::string text;
  const Ends& ends = world.ends_at(1);
  for (const Ends::End& end : ends.all()) {
    ends.for_each_node(end, [&](int rank, const CoresAndMemory& freed) {
      text += world.cluster.spec_at(rank).name + std::to_string(freed.cores) + " ";
    });
  }
  EXPECT_EQ(text, "a3 b2 c2 ");
}

// A limit that changed without notice moves no end that was read.
TEST(Ends, AJobIsFoundWhereItWasRead) {
  EndsWorld world{EndsWorld::of_cores()};
  Job& first = world.running(7, "a", 30);
  Job& second = world.running(8, "b", 60);
  Job& third = world.running(9, "c", 60);
  const Ends& ends = world.ends_at(1);
  EXPECT_EQ(ends.find(first), 0);
  EXPECT_EQ(ends.find(third), 2) << "with 8 at the same time";
  first.time_limit = seconds(90);
  EXPECT_EQ(ends.find(first), 0);
  EXPECT_EQ(ends.find(second), 1);
  EXPECT_EQ(ends.find(world.submit(1, 1)), std::nullopt);
}

// Goal: the ends are read again exactly when they may be others.
TEST(Ends, AreReadAgainAfterAChange) {
  EndsWorld world;
  world.running(8, "a", 60);
  world.ends_at(1);
  EXPECT_TRUE(world.ends.go_to(at(1))) << "nothing has changed";
  EXPECT_FALSE(world.ends.go_to(at(2))) << "ends that are overdue are guessed again";
  world.ends_at(2);
  world.running(9, "b", 30);
  EXPECT_FALSE(world.ends.go_to(at(2))) << "the books have changed";
  EXPECT_EQ(text_of(world.ends_at(2)), "9@30 8@60 ");
}

// A job that has not begun to run ends its limit from now on, whenever that is.
TEST(Ends, AJobThatIsNotReadyEndsLaterWithTheTime) {
  EndsWorld world;
  JobRequest request = job(8, 1);
  Job& starts = world.submit(request);
  world.admission.withdraw(starts);
  Allocation allocation;
  allocation.nodes.push_back({.node = NodeIndex{0}, .cores = CoreSet::first(4), .cpus = 4});
  world.books.begin(starts, world.in("p"), std::move(allocation), {.whole_nodes = true}, at(0));
  starts.time_limit = seconds(60);
  EXPECT_EQ(text_of(world.ends_at(1)), "8@61 ");
  EXPECT_FALSE(world.ends.go_to(at(10)));
  world.ends.forget();
  EXPECT_EQ(text_of(world.ends_at(10)), "8@70 ");
}

TEST(Ends, AStartIsPutIntoTheOrder) {
  EndsWorld world{EndsWorld::of_cores(1)};
  world.running(8, "a", 60);
  world.running(9, "b", 30);
  world.ends_at(1);
  Job& started = world.running(7, "c", 45);
  EXPECT_TRUE(world.ends.add(started));
  EXPECT_EQ(text_of(world.ends), "9@30 7@45 8@60 ");
  EXPECT_EQ(held_by_rank(world.ends).at(2).cores, 4);
  EXPECT_TRUE(world.ends.go_to(at(1))) << "it is known already";
}

// There the ends are read only when they are needed.
TEST(Ends, AStartIsNotPutIntoTheOrderWhereJobsAreStacked) {
  EndsWorld world{EndsWorld::of_cores(2)};
  EXPECT_FALSE(world.ends.counts_cores());
  world.ends_at(1);
  EXPECT_FALSE(world.ends.add(world.running(7, "c", 45)));
}

// R8.3, at 100 s a job that should have ended at 60, with a limit of 60 s.
TEST(Ends, AnOverdueEndIsGuessed) {
  const auto guessed = [](const Configuration& configuration) {
    EndsWorld world{configuration};
    world.running(8, "a", 60);
    world.running(9, "b", 200);
    const Ends& ends = world.ends_at(100);
    EXPECT_EQ(seconds_of(ends.guess(ends.all()[1])), 200) << "it is not overdue";
    return seconds_of(ends.guess(ends.all()[0]));
  };
  EXPECT_EQ(guessed(PassWorld::one_partition()), 101) << "select/linear: soon";
  Configuration cores = EndsWorld::of_cores(1);
  cores.cluster.kill_wait = seconds(30);
  cores.cluster.over_time_limit = seconds(120);
  EXPECT_EQ(guessed(cores), 60 + 30 + 120);
  cores.cluster.over_time_limit = seconds(0);
  EXPECT_EQ(guessed(cores), 101) << "60 + 30 has passed, too";
  cores.cluster.over_time_limit.reset();
  EXPECT_EQ(guessed(cores), 160) << "unlimited: its limit once more";
}

}  // namespace
}  // namespace sched::testing
