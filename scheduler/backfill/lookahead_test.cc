// When and where a waiting job could start, if running jobs end with their limits (8.1, R8.3).
// Nodes a to d, one job on each; an answer is written as "at 30 cd", in seconds, or "later", or
// "never".
#include "scheduler/backfill/lookahead.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/prng.h"
#include "scheduler/gang/own_turns.h"
#include "scheduler/place/placement.h"
#include "scheduler/place/sharing.h"
#include "scheduler/testing/no_turn_events.h"
#include "scheduler/testing/pass_world.h"

namespace sched::testing {
namespace {

class LookaheadTest : public ::testing::Test {
 protected:
  explicit LookaheadTest(const Configuration& configuration = PassWorld::one_partition())
      : world_{configuration} {}

  // Adds a job that has run on these nodes since 0, up to `end`.
  Job& running(std::int64_t id, const std::string& letters, double end,
               const std::string& partition = {}) {
    Job& job = world_.run(id, letters, partition);
    job.time_limit = seconds(end);
    return job;
  }
  struct Asked {
    std::optional<double> until{};
    bool now_only = false;
  };
  std::string ask(std::int64_t id, int nodes_count, double now) {
    return ask(id, nodes_count, now, Asked{});
  }
  std::string ask(std::int64_t id, int nodes_count, double now, const Asked& asked) {
    Job* job = world_.books.find(JobId{id});
    if (job == nullptr) job = &world_.submit(id, nodes_count);
    const auto version = world_.books.version();
    const NodeSet all = NodeSet::all(world_.cluster.node_count());
    lookahead_.begin(at(now));
    const Lookahead::Answer answer = lookahead_.will_run(
        {.job = *job,
         .partition = job->queued.in.front().partition,
         .nodes = all,
         .now_only = asked.now_only,
         .until = asked.until ? std::optional{at(*asked.until)} : std::nullopt});
    lookahead_.end();
    // Jobs are taken out and put back while a question is answered; the books must not count that
    // as a change.
    EXPECT_EQ(world_.books.version(), version) << "it was only asked";
    EXPECT_TRUE(job->pending());
    return text(answer);
  }
  std::string text(const Lookahead::Answer& answer) const {
    if (answer.kind == Lookahead::Answer::Kind::kNever) return "never";
    if (answer.kind == Lookahead::Answer::Kind::kLater) return "later";
    std::string text =
        "at " + std::to_string(base::micros_since_epoch(answer.start) / 1'000'000) + " ";
    for (int rank = answer.nodes.next(0); rank >= 0; rank = answer.nodes.next(rank + 1)) {
      text += world_.cluster.spec_at(rank).name;
    }
    return text;
  }

  PassWorld world_;
  NoTurnEvents events_;
  std::unique_ptr<gang::Turns> turns_ =
      std::make_unique<gang::OwnTurns>(world_.cluster, world_.books, events_, true);
  Lookahead lookahead_{world_.cluster, world_.groups, world_.books, *turns_};
};

TEST_F(LookaheadTest, AJobThatFitsStartsNow) {
  running(9, "ab", 60);
  EXPECT_EQ(ask(1, 2, 1), "at 1 cd");
}

TEST_F(LookaheadTest, AJobStartsWithTheFirstEndThatIsEnough) {
  running(8, "ab", 60);
  running(9, "c", 30);
  // d is free and c comes free at 30; a third node comes free only with job 8, at 60.
  EXPECT_EQ(ask(1, 2, 1), "at 30 cd");
  EXPECT_EQ(ask(2, 3, 1), "at 60 abc") << "8 ends as a whole";
  EXPECT_EQ(ask(3, 4, 1), "at 60 abcd");
}

TEST_F(LookaheadTest, AStartAfterTheAskedInstantIsOfNoUse) {
  running(9, "abcd", 60);
  // The first end is at 60: one second before, any answer would be too late.
  EXPECT_EQ(ask(1, 1, 1, {.until = 59}), "later");
  EXPECT_EQ(ask(1, 1, 1, {.until = 60}), "at 60 a");
  EXPECT_EQ(ask(1, 1, 1, {.now_only = true}), "later");
}

// Five nodes of four: no end of any job helps.
TEST_F(LookaheadTest, AJobThatNeedsMoreNodesThanThereAreNeverStarts) {
  running(9, "ab", 60);
  EXPECT_EQ(ask(1, 5, 1), "never");
}

// Without a limit a job counts for a year.
TEST_F(LookaheadTest, AJobWithoutALimitEndsInAYear) {
  running(9, "abcd", 60).time_limit.reset();
  // 365 days × 86,400 s.
  EXPECT_EQ(ask(1, 1, 1), "at 31536000 a");
}

// R8.3: it should have ended; select/linear takes it to end in a second.
TEST_F(LookaheadTest, AnOverdueJobIsTakenToEndSoon) {
  running(9, "abcd", 10);
  EXPECT_EQ(ask(1, 1, 50), "at 51 a");
}

// A job whose end is decided leaves with its grace time, whatever its limit is.
TEST_F(LookaheadTest, AnEndingCutsTheExpectedEnd) {
  Job& ends = running(9, "abcd", 600);
  world_.books.set_ending(ends, Ending{.grace_end = at(20)});
  EXPECT_EQ(ask(1, 1, 1), "at 20 a");
}

TEST_F(LookaheadTest, WhatMovedBetweenPassesCounts) {
  running(7, "a", 40);
  Job& longer = running(8, "b", 50);
  running(9, "cd", 60);
  EXPECT_EQ(ask(1, 1, 1), "at 40 a");
  // 1. A job that ended gives its node at once.
  world_.end(7);
  EXPECT_EQ(ask(1, 1, 2), "at 2 a");
  // 2. A new one on the same node counts with its own end.
  running(6, "a", 45);
  EXPECT_EQ(ask(1, 1, 3), "at 45 a");
  // 3. A limit that was changed moves an end that was known.
  longer.time_limit = seconds(44);
  world_.books.changed();
  EXPECT_EQ(ask(1, 1, 4), "at 44 b");
}

Configuration low_and_high() {
  Configuration configuration = PassWorld::one_partition();
  configuration.partitions = {PassWorld::closed("low", "abcd", 1),
                              PassWorld::closed("high", "abcd", 2)};
  configuration.partitions.front().is_default = true;
  configuration.cluster.preempt_type = PreemptType::kPartitionPriority;
  configuration.cluster.preempt_mode = PreemptMode::kCancel;
  return configuration;
}

class PreemptingLookaheadTest : public LookaheadTest {
 protected:
  PreemptingLookaheadTest() : LookaheadTest{low_and_high()} {}
};

// The caller that starts it ends the victims, so a start that needs some counts as now.
TEST_F(PreemptingLookaheadTest, VictimsCountAsGone) {
  running(8, "ab", 60, "low");
  running(9, "cd", 90, "high");
  world_.submit(1, 2, "high");
  world_.submit(2, 3, "high");
  world_.submit(3, 1, "low");
  EXPECT_EQ(ask(1, 2, 1), "at 1 ab");
  EXPECT_EQ(ask(2, 3, 1), "at 90 abc") << "9 is of its own tier";
  EXPECT_EQ(ask(3, 1, 1), "at 60 a") << "a job of the low tier preempts none";
  EXPECT_EQ(ask(1, 2, 1), "at 1 ab") << "no mark of an earlier question is left";
}

// Whom a job may preempt is looked up again when the jobs have changed.
TEST_F(PreemptingLookaheadTest, AJobOfALowerTierThatComesLaterIsAVictim) {
  running(9, "abcd", 90, "high");
  world_.submit(1, 1, "high");
  EXPECT_EQ(ask(1, 1, 1), "at 90 a");
  world_.end(9);
  running(8, "abcd", 60, "low");
  EXPECT_EQ(ask(1, 1, 2), "at 2 a");
}

Configuration low_and_high_cores() {
  Configuration configuration = low_and_high();
  configuration.cluster.select = SelectType::kConsTres;
  return configuration;
}

class PreemptingCoresTest : public LookaheadTest {
 protected:
  PreemptingCoresTest() : LookaheadTest{low_and_high_cores()} {}
};

// One batch of ends within 30 s, in which the first that is enough is looked for: b is free of its
// victim from the beginning, and a at 60.
TEST_F(PreemptingCoresTest, AnEndBeforeThatOfAVictimIsFound) {
  running(6, "a", 60, "high");
  running(7, "b", 70, "low");
  running(8, "c", 80, "high");
  running(9, "d", 85, "high");
  world_.submit(1, 2, "high");
  EXPECT_EQ(ask(1, 2, 1), "at 60 ab");
}

Configuration stacked() {
  Configuration configuration = PassWorld::one_partition();
  configuration.cluster.select = SelectType::kConsTres;
  configuration.cluster.gang = true;
  configuration.partitions = {
      partition("p", PassWorld::nodes_named("abcd"), OverSubscribe::kForce, 3),
      partition("q", PassWorld::nodes_named("abcd"), OverSubscribe::kForce, 2)};
  configuration.partitions.front().is_default = true;
  return configuration;
}

// Makes the same partitions; no jobs share a core, so that what is free can be counted, memory too.
Configuration side_by_side() {
  Configuration configuration = stacked();
  configuration.cluster.gang = false;
  configuration.cluster.memory = true;
  for (PartitionConfig& each : configuration.partitions) each.over_subscribe = OverSubscribe::kNo;
  return configuration;
}

// Random jobs on four nodes, which end one after the other, and questions about random others.
class RandomLookaheadTest : public LookaheadTest {
 protected:
  explicit RandomLookaheadTest(const Configuration& configuration) : LookaheadTest{configuration} {}

  JobRequest random_request(base::Prng& prng) {
    // One draw in each statement: the order of arguments is the compiler's.
    const int nodes = 1 + below(prng, 4);
    const std::string partition = below(prng, 4) == 0 ? "q" : "p";
    JobRequest request = job(++last_id_, nodes, partition);
    request.tasks = request.min_nodes * (1 + below(prng, 4));
    if (below(prng, 4) == 0) request.tasks = request.min_nodes + below(prng, 3);
    if (below(prng, 8) == 0) request.sharing = Sharing::kNode;
    if (world_.cluster.parameters().memory) request.memory = random_memory(prng);
    return request;
  }
  // Returns a request for some of 8,000 MiB on each node of four CPUs.
  static MemoryRequest random_memory(base::Prng& prng) {
    const int way = below(prng, 8);
    const MemoryMiB some{700 * (1 + below(prng, 4))};
    if (way == 0) return MemoryPerNode{MemoryMiB{0}};  // all that a node has
    if (way < 4) return MemoryPerCpu{some};
    return MemoryPerNode{some};
  }
  static int below(base::Prng& prng, std::uint64_t bound) {
    return static_cast<int>(prng.below(bound));
  }
  std::optional<Allocation> fits_now(const Job& job, const NodeSet& nodes) {
    const PartitionIndex partition = job.queued.in.front().partition;
    return placement_.will_run(
        world_.books.selector(),
        {.job = job,
         .partition = partition,
         .nodes = nodes,
         .now = at(1),
         .sharing = resolve_sharing(SelectType::kConsTres, world_.cluster.partition(partition),
                                    job.request->sharing)});
  }
  // Runs until 10 s after the one before, if it fits.
  void start(Job& job) {
    const auto found = fits_now(job, NodeSet::all(4));
    const PartitionIndex partition = job.queued.in.front().partition;
    world_.admission.withdraw(job);
    if (!found) return world_.books.finish(job, JobState::kCancelled);
    world_.books.begin(job, partition, *found, {.shares_nodes = true}, at(0));
    world_.books.set_ready(job, at(0));
    job.time_limit = seconds(20 + 10 * static_cast<double>(by_end_.size()));
    by_end_.push_back(&job);
  }
  // The selector is asked after each end. nullopt if it refuses after an end what it granted before
  // it: packing is first fit, so more room can be in rows that do not go together.
  std::optional<std::string> asked_one_by_one(const Job& job, const NodeSet& nodes) {
    std::string first = fits_now(job, nodes) ? "at 1" : "never";
    const auto trial = world_.books.selector().begin_trial();
    for (const Job* const gone : by_end_) {
      trial->remove(gone->select, Selector::Trial::Keep::kNothing);
      const bool fits = fits_now(job, nodes).has_value();
      if (!fits && first != "never") return std::nullopt;
      if (fits && first == "never") first = text_of_end(*gone);
    }
    return first;
  }
  static std::string text_of_end(const Job& job) {
    return "at " + std::to_string(*job.time_limit / std::chrono::seconds{1});
  }

  struct Compared;
  Compared compare_with_one_by_one(std::uint64_t seed);

  std::int64_t last_id_ = 0;
  std::vector<Job*> by_end_;
  Placement placement_{world_.cluster, world_.groups, world_.books.usage(),
                       world_.books.allocated()};
};

struct RandomLookaheadTest::Compared {
  int later = 0;  // starts after now
  int all = 0;
  int differ = 0;
};

// Random questions, answered by the lookahead and by the selector after each end.
RandomLookaheadTest::Compared RandomLookaheadTest::compare_with_one_by_one(std::uint64_t seed) {
  base::Prng prng{seed};
  Compared compared;
  for (int round = 0; round < 60; ++round) {
    for (int i = 0; i < 30; ++i) start(world_.submit(random_request(prng)));
    for (int i = 0; i < 20; ++i) {
      Job& asks = world_.submit(random_request(prng));
      NodeSet nodes = NodeSet::all(4);
      if (below(prng, 2) == 0) nodes.reset(below(prng, 4));
      lookahead_.begin(at(1));
      const Lookahead::Answer answer = lookahead_.will_run(
          {.job = asks, .partition = asks.queued.in.front().partition, .nodes = nodes});
      lookahead_.end();
      const std::string found = text(answer);
      if (const auto expected = asked_one_by_one(asks, nodes)) {
        ++compared.all;
        if (found.substr(0, found.rfind(' ')) != *expected) ++compared.differ;
      }
      if (answer.kind == Lookahead::Answer::Kind::kStarts && answer.start > at(1)) {
        ++compared.later;
      }
      world_.admission.withdraw(asks);
      world_.books.finish(asks, JobState::kCancelled);
    }
    for (Job* const job : by_end_) world_.books.end(*job, JobState::kCompleted);
    by_end_.clear();
  }
  EXPECT_GT(compared.later, 300) << "the questions were too easy";
  EXPECT_GT(compared.all, 1'000);
  return compared;
}

class StackedLookaheadTest : public RandomLookaheadTest {
 protected:
  StackedLookaheadTest() : RandomLookaheadTest{stacked()} {}
};
class CountedLookaheadTest : public RandomLookaheadTest {
 protected:
  CountedLookaheadTest() : RandomLookaheadTest{side_by_side()} {}
};

// Goal: no end is left out after which the selector would grant the start. The lookahead skips
// ends, so its rows are packed less often than the reference's; packing keeps the rows as they are
// where a job fits in none, so the two can differ, which must stay rare.
TEST_F(StackedLookaheadTest, AStackedJobStartsWithTheFirstEndThatTheSelectorGrants) {
  const Compared compared = compare_with_one_by_one(11);
  EXPECT_LE(compared.differ, compared.all / 100);
}

// Goal: the same where starts are worked out from free cores and memory, of jobs that need them on
// one node or together on some. Here nothing is packed, so all agree.
TEST_F(CountedLookaheadTest, AJobStartsWithTheFirstEndThatTheSelectorGrants) {
  EXPECT_EQ(compare_with_one_by_one(12).differ, 0);
}

// Goal: that not all nodes that ripen together are asked about at first loses no start. Method: one
// node at first, which is often too few for the shape of the job.
TEST_F(CountedLookaheadTest, TheFirstOfManyNodesThatRipenTogetherAreEnough) {
  lookahead_.set_together_max(1);
  EXPECT_EQ(compare_with_one_by_one(12).differ, 0);
}

}  // namespace
}  // namespace sched::testing
