#include "scheduler/backfill/promises.h"

#include <gtest/gtest.h>

#include <chrono>
#include <optional>
#include <string>

#include "base/prng.h"

namespace sched {
namespace {

base::Instant at(int seconds) {
  return base::Instant{std::chrono::seconds{seconds}};
}

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

// A job that would still run when a promise begins does not get its nodes; one that begins when it
// ends does.
TEST(Promises, ASweepLeavesOutNodesThatArePromisedWhileTheJobRuns) {
  Promises promises{4, at(1000)};
  promises.add(set(4, "01"), at(100), at(200));
  Promises::Sweep sweep{promises};
  sweep.begin(NodeSet::all(4), std::chrono::seconds{99});
  // A job of 99 s that starts at 0 ends at 99, before the promise of 100; one that starts at 1 ends
  // at 100, and the end counts. A job of 100 s is too long even at 0.
  EXPECT_EQ(ranks(sweep.at(at(0))), "0123");
  EXPECT_EQ(ranks(sweep.at(at(1))), "23");
  EXPECT_EQ(ranks(sweep.at(at(199))), "23");
  EXPECT_EQ(ranks(sweep.at(at(200))), "0123");
  sweep.begin(set(4, "03"), std::chrono::seconds{100});
  EXPECT_EQ(ranks(sweep.at(at(0))), "3");
}

TEST(Promises, NodesComeFreeAtTheEndsOfPromisesWithinTheWindow) {
  Promises promises{4, at(1000)};
  promises.add(set(4, "0"), at(100), at(200));
  promises.add(set(4, "1"), at(50), at(300));
  promises.add(set(4, "2"), at(50), at(2000));
  Promises::Sweep sweep{promises};
  sweep.begin(NodeSet::all(4), base::Duration{0});
  const auto next_free = [&](int start) {
    sweep.at(at(start));
    return sweep.next_free();
  };
  // Node 2 is promised beyond the window of 1000, so it does not come free.
  EXPECT_EQ(next_free(0), at(200));
  EXPECT_EQ(next_free(200), at(300));
  EXPECT_EQ(next_free(300), std::nullopt);
  EXPECT_EQ(promises.next_begin(set(4, "01"), at(50)), at(100));
  EXPECT_EQ(promises.next_begin(set(4, "3"), at(0)), std::nullopt);
}

TEST(Promises, OverlapsAreThoseOfTheSameNodesAtTheSameTime) {
  Promises promises{4, at(1000)};
  promises.add(set(4, "01"), at(100), at(200));
  // Node 1 within [100, 200); other nodes; before; after, with ends that touch.
  EXPECT_TRUE(promises.overlaps(set(4, "12"), at(150), at(160)));
  EXPECT_FALSE(promises.overlaps(set(4, "23"), at(150), at(160)));
  EXPECT_FALSE(promises.overlaps(set(4, "01"), at(50), at(100)));
  EXPECT_FALSE(promises.overlaps(set(4, "01"), at(200), at(300)));
}

// The sweep counts entries and exits; the definition looks at every promise again.
TEST(Promises, ASweepAgreesWithTheDefinition) {
  base::Prng prng{11};
  for (int round = 0; round < 50; ++round) {
    Promises promises{9, at(500)};
    struct Made {
      NodeSet nodes;
      int begin, end;
    };
    std::vector<Made> all;
    for (int i = 0; i < 12; ++i) {
      NodeSet nodes{9};
      for (int rank = 0; rank < 9; ++rank) nodes.assign(rank, prng.below(4) == 0);
      const int begin = static_cast<int>(prng.below(300));
      const int end = begin + 1 + static_cast<int>(prng.below(100));
      promises.add(nodes, at(begin), at(end));
      all.push_back({nodes, begin, end});
    }
    const int length = static_cast<int>(prng.below(80));
    Promises::Sweep sweep{promises};
    sweep.begin(NodeSet::all(9), std::chrono::seconds{length});
    NodeSet marked{9};
    for (int start = 0; start < 400; start += 1 + static_cast<int>(prng.below(20))) {
      NodeSet free = NodeSet::all(9);
      for (const Made& made : all) {
        if (made.begin <= start + length && made.end > start) free -= made.nodes;
      }
      EXPECT_EQ(ranks(sweep.at(at(start))), ranks(free)) << "start " << start;
      EXPECT_EQ(sweep.count(), free.count());
      if (const int rank = static_cast<int>(prng.below(9)); !marked.test(rank)) {
        marked.set(rank);
        sweep.mark(rank);
      }
      EXPECT_EQ(sweep.marked_count(), (free & marked).count());
    }
  }
}

}  // namespace
}  // namespace sched
