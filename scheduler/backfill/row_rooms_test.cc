// How many ends must be gone before a job may fit, where jobs are stacked: nodes a to d of 4 cores,
// two rows (FORCE:2).
#include "scheduler/backfill/row_rooms.h"

#include <gtest/gtest.h>

#include "scheduler/testing/ends_world.h"

namespace sched::testing {
namespace {

// Each node has a job in both rows. Those of the second row end at 10 (a), 20 (b), 30 (c), 40 (d),
// those of the first at 50.
class RowRoomsTest : public ::testing::Test {
 protected:
  RowRoomsTest() {
    world_.running(1, "abcd", 50);
    for (int i = 0; i < 4; ++i) {
      world_.running(2 + i, std::string{static_cast<char>('a' + i)}, 10 * (i + 1));
    }
    world_.ends_at(1);
  }
  RowRooms::Asked asked(const NodeSet& nodes, const Needs& needs) {
    return {.partition = world_.in("p"), .nodes = nodes, .needs = needs};
  }

  EndsWorld world_{EndsWorld::of_cores(2)};
  RowRooms rooms_{world_.cluster, world_.books, world_.ends};
  const NodeSet all_ = world_.set_of("abcd");
  const NodeSet of_d_ = world_.set_of("d");
};

TEST_F(RowRoomsTest, AJobFitsWhenARowIsFreeOnSoManyNodes) {
  ASSERT_TRUE(rooms_.knows());
  for (int count = 1; count <= 4; ++count) {
    const Needs needs{.nodes_min = count, .nodes_max = count, .cores = count};
    EXPECT_FALSE(rooms_.may_fit_now(asked(all_, needs)));
    EXPECT_EQ(rooms_.least_gone_in_partition(asked(all_, needs)), count);
  }
  const Needs five{.nodes_min = 5, .nodes_max = 5};
  EXPECT_EQ(rooms_.least_gone_in_partition(asked(all_, five)), 5 + 1) << "five ends are not enough";
}

TEST_F(RowRoomsTest, WithFewerNodesMoreEndsAreNeeded) {
  const Needs needs{};
  const RowRooms::Asked on_d = asked(of_d_, needs);
  EXPECT_FALSE(rooms_.may_fit_now(on_d));
  EXPECT_EQ(rooms_.least_gone_in_partition(on_d), 1) << "on any node";
  EXPECT_EQ(rooms_.least_gone(on_d, 1, std::nullopt), 4);
  EXPECT_EQ(rooms_.least_gone(on_d, 1, at(40)), 4);
  EXPECT_EQ(rooms_.least_gone(on_d, 1, at(39)), 3 + 1) << "three end by then, and are too few";
}

TEST_F(RowRoomsTest, ABoundIsForgottenWithTheBooks) {
  const Needs needs{};
  EXPECT_FALSE(rooms_.may_fit_now(asked(all_, needs)));
  world_.end(2);
  rooms_.forget();
  EXPECT_TRUE(rooms_.may_fit_now(asked(all_, needs)));
  EXPECT_FALSE(rooms_.may_fit_now(asked(of_d_, needs)));
}

TEST_F(RowRoomsTest, AVictimCountsIfItHasCoresOrMemoryOfTheRoom) {
  Job& job = *world_.books.find(JobId{2});
  const Needs cores{}, memory{.each = {.memory = {CountedPer::kNode, 100}}};
  EXPECT_TRUE(RowRooms::counts(asked(all_, cores), job, false));
  job.user_suspended = true;
  EXPECT_FALSE(RowRooms::counts(asked(all_, cores), job, true)) << "its cores are free already";
  EXPECT_TRUE(RowRooms::counts(asked(all_, memory), job, true));
  EXPECT_FALSE(RowRooms::counts(asked(all_, memory), job, false)) << "it keeps its memory";
}

TEST(RowRooms, KnowNothingAsRecordedAndOfWholeNodes) {
  Configuration configuration = EndsWorld::of_cores(2);
  configuration.cluster.quirks = Quirks::slurm_22_05();
  EndsWorld recorded{configuration}, linear;
  EXPECT_FALSE(RowRooms(recorded.cluster, recorded.books, recorded.ends).knows());
  EXPECT_FALSE(RowRooms(linear.cluster, linear.books, linear.ends).knows());
}

}  // namespace
}  // namespace sched::testing
