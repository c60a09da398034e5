// Tests of the nodes that are kept for others. Nodes are a to d, or 0 to 3 by rank.
#include "scheduler/backfill/node_calendar.h"

#include <gtest/gtest.h>

#include <chrono>
#include <optional>
#include <string>

#include "base/prng.h"
#include "scheduler/testing/pass_world.h"

namespace sched::testing {
namespace {

constexpr NodeCalendar::Who kJob{.job = JobId{1}, .tier = 1};

NodeSet set(int size, const std::string& ranks) {
  NodeSet nodes{size};
  for (const char rank : ranks) nodes.set(rank - '0');
  return nodes;
}

std::string ranks(const NodeSet& nodes) {
  std::string text;
  for (int rank = nodes.next(0); rank >= 0; rank = nodes.next(rank + 1)) {
    text += static_cast<char>('0' + rank);
  }
  return text;
}

class NodeCalendarTest : public ::testing::Test {
 protected:
  // Makes job 9 of p a preemptor with a claim on these nodes. Its victim is on a, and gone at 100.
  Job& claims(const std::string& letters, std::optional<base::Duration> limit = std::nullopt) {
    JobRequest request = job(9, static_cast<int>(letters.size()));
    request.time_limit = limit;
    Job& claimant = world_.submit(request);
    Job& victim = world_.run(7, "a");
    world_.books.set_ending(victim, Ending{.grace_end = at(100), .preemptor = claimant.id});
    Allocation claim;
    for (const char letter : letters) {
      claim.nodes.push_back({.node = world_.cluster.find_node(std::string{letter}).value()});
    }
    const ClusterParameters& parameters = world_.cluster.parameters();
    world_.books.set_claim(claimant, std::move(claim),
                           at(100) + parameters.kill_wait + parameters.message_timeout);
    return claimant;
  }

  PassWorld world_;
};

// A job that would still run when a promise begins does not get its nodes; one that begins when it
// ends does.
TEST_F(NodeCalendarTest, ASweepLeavesOutNodesThatArePromisedWhileTheJobRuns) {
  NodeCalendar calendar{world_.cluster, world_.books, at(1000)};
  calendar.promise(set(4, "01"), at(100), at(200));
  NodeCalendar::Sweep sweep{calendar};
  sweep.begin(kJob, NodeSet::all(4), std::chrono::seconds{99});
  // A job of 99 s that starts at 0 ends at 99, before the promise of 100; one that starts at 1 ends
  // at 100, and the end counts. A job of 100 s is too long even at 0.
  EXPECT_EQ(ranks(sweep.at(at(0))), "0123");
  EXPECT_EQ(ranks(sweep.at(at(1))), "23");
  EXPECT_EQ(ranks(sweep.at(at(199))), "23");
  EXPECT_EQ(ranks(sweep.at(at(200))), "0123");
  sweep.begin(kJob, set(4, "03"), std::chrono::seconds{100});
  EXPECT_EQ(ranks(sweep.at(at(0))), "3");
}

TEST_F(NodeCalendarTest, NodesComeFreeAtTheEndsOfPromisesWithinTheWindow) {
  NodeCalendar calendar{world_.cluster, world_.books, at(1000)};
  calendar.promise(set(4, "0"), at(100), at(200));
  calendar.promise(set(4, "1"), at(50), at(300));
  calendar.promise(set(4, "2"), at(50), at(2000));
  NodeCalendar::Sweep sweep{calendar};
  sweep.begin(kJob, NodeSet::all(4), base::Duration{0});
  const auto next_free = [&](int start) {
    sweep.at(at(start));
    return sweep.next_free();
  };
  // Node 2 is promised beyond the window of 1000, so it does not come free.
  EXPECT_EQ(next_free(0), at(200));
  EXPECT_EQ(next_free(200), at(300));
  EXPECT_EQ(next_free(300), std::nullopt);
  EXPECT_EQ(calendar.next_kept_from(kJob, set(4, "01"), at(50)), at(100));
  EXPECT_EQ(calendar.next_kept_from(kJob, set(4, "3"), at(0)), std::nullopt);
}

TEST_F(NodeCalendarTest, OverlapsAreThoseOfTheSameNodesAtTheSameTime) {
  NodeCalendar calendar{world_.cluster, world_.books, at(1000)};
  calendar.promise(set(4, "01"), at(100), at(200));
  // Node 1 within [100, 200); other nodes; before; after, with ends that touch.
  EXPECT_TRUE(calendar.kept_from(std::nullopt, set(4, "12"), at(150), at(160)));
  EXPECT_FALSE(calendar.kept_from(std::nullopt, set(4, "23"), at(150), at(160)));
  EXPECT_FALSE(calendar.kept_from(std::nullopt, set(4, "01"), at(50), at(100)));
  EXPECT_FALSE(calendar.kept_from(std::nullopt, set(4, "01"), at(200), at(300)));
}

// The victim is gone at 100, and the claimant runs for 60 s; later if the victim resists until 120.
TEST_F(NodeCalendarTest, AClaimEndsWhenItsClaimantDoes) {
  claims("ab", seconds(60));
  NodeCalendar calendar{world_.cluster, world_.books, at(1000)};
  const auto free_from = [&](double now) {
    calendar.read_claims(at(now));
    NodeCalendar::Sweep sweep{calendar};
    sweep.begin(kJob, NodeSet::all(4), base::Duration{0});
    EXPECT_EQ(ranks(sweep.at(at(130))), "23");
    EXPECT_EQ(sweep.next_free(), calendar.kept_until(kJob, set(4, "0")));
    return calendar.kept_until(kJob, set(4, "1"));
  };
  EXPECT_EQ(free_from(0), at(160));
  EXPECT_EQ(free_from(120), at(180));
}

TEST_F(NodeCalendarTest, AClaimIsInTheWayOfJobsOfItsTierAndBelowFromItsBeginOn) {
  Job& claimant = claims("ab");
  NodeCalendar calendar{world_.cluster, world_.books, at(1000)};
  calendar.read_claims(at(0));
  const NodeCalendar::Who higher{.job = JobId{2}, .tier = 2}, own{.job = claimant.id, .tier = 1};
  NodeCalendar::Sweep sweep{calendar};
  const auto free = [&](const NodeCalendar::Who& who, int length) {
    sweep.begin(who, NodeSet::all(4), std::chrono::seconds{length});
    return ranks(sweep.at(at(10)));
  };
  EXPECT_EQ(free(kJob, 90), "123") << "it is over in time";
  EXPECT_EQ(free(kJob, 91), "23");
  EXPECT_EQ(free(higher, 500), "0123");
  EXPECT_EQ(free(own, 500), "0123");
  EXPECT_TRUE(calendar.kept_from(kJob, set(4, "1"), at(90), at(101)));
  EXPECT_FALSE(calendar.kept_from(kJob, set(4, "1"), at(90), at(100)));
  EXPECT_FALSE(calendar.kept_from(std::nullopt, set(4, "01"), at(0), at(1000)));
  EXPECT_EQ(ranks(calendar.claimed_from(kJob, at(100))), "0");
  EXPECT_EQ(ranks(calendar.claimed_from(kJob, at(1000))), "01");
  EXPECT_EQ(ranks(calendar.claimed_from(own, at(1000))), "");
  EXPECT_EQ(calendar.next_kept_from(kJob, set(4, "1"), at(0)), at(100) + base::Duration{1});
  EXPECT_EQ(calendar.next_kept_from(higher, set(4, "1"), at(0)), std::nullopt);
}

// T11: a job that its user has resumed waits for the ends of any jobs.
TEST_F(NodeCalendarTest, AJobThatWaitsForRoomClaimsItsNodesAtOnce) {
  Job& resumed = world_.run(8, "c");
  world_.books.wait_for_room(resumed);
  NodeCalendar calendar{world_.cluster, world_.books, at(1000)};
  calendar.read_claims(at(0));
  EXPECT_EQ(ranks(calendar.claimed_from(kJob, at(1))), "2");
}

TEST_F(NodeCalendarTest, ClaimsAreReadAgainAndPromisesStay) {
  NodeCalendar calendar{world_.cluster, world_.books, at(1000)};
  calendar.promise(set(4, "0"), at(100), at(200));
  EXPECT_EQ(calendar.changes(), 3);
  Job& claimant = claims("ab");
  calendar.read_claims(at(0));
  EXPECT_EQ(ranks(calendar.claimed_from(kJob, at(1000))), "01");
  EXPECT_EQ(calendar.changes(), 3) << "Slurm's slots know of promises alone";
  world_.books.clear_claim(claimant, false, at(0));
  calendar.read_claims(at(0));
  EXPECT_EQ(ranks(calendar.claimed_from(kJob, at(1000))), "");
  EXPECT_TRUE(calendar.kept_from(std::nullopt, set(4, "0"), at(150), at(160)));
}

// The sweep counts entries and exits; the definition looks at every promise again.
TEST_F(NodeCalendarTest, ASweepAgreesWithTheDefinition) {
  base::Prng prng{11};
  for (int round = 0; round < 50; ++round) {
    NodeCalendar calendar{world_.cluster, world_.books, at(500)};
    struct Made {
      NodeSet nodes;
      int begin, end;
    };
    std::vector<Made> all;
    for (int i = 0; i < 12; ++i) {
      NodeSet nodes{4};
      for (int rank = 0; rank < 4; ++rank) nodes.assign(rank, prng.below(4) == 0);
      const int begin = static_cast<int>(prng.below(300));
      const int end = begin + 1 + static_cast<int>(prng.below(100));
      calendar.promise(nodes, at(begin), at(end));
      all.push_back({nodes, begin, end});
    }
    const int length = static_cast<int>(prng.below(80));
    NodeCalendar::Sweep sweep{calendar};
    sweep.begin(kJob, NodeSet::all(4), std::chrono::seconds{length});
    NodeSet marked{4};
    for (int start = 0; start < 400; start += 1 + static_cast<int>(prng.below(20))) {
      NodeSet free = NodeSet::all(4);
      for (const Made& made : all) {
        if (made.begin <= start + length && made.end > start) free -= made.nodes;
      }
      EXPECT_EQ(ranks(sweep.at(at(start))), ranks(free)) << "start " << start;
      EXPECT_EQ(sweep.count(), free.count());
      if (const int rank = static_cast<int>(prng.below(4)); !marked.test(rank)) {
        marked.set(rank);
        sweep.mark(rank);
      }
      EXPECT_EQ(sweep.marked_count(), (free & marked).count());
    }
  }
}

}  // namespace
}  // namespace sched::testing
