#include "scheduler/gang/dirty_nodes.h"

#include <gtest/gtest.h>

namespace sched::gang {
namespace {

base::Instant at(int seconds) {
  return base::Instant{std::chrono::seconds{seconds}};
}

TEST(DirtyNodes, TheEarlierInstantCountsAndWhatIsNotDueStays) {
  DirtyNodes dirty;
  EXPECT_EQ(dirty.next(), std::nullopt);
  dirty.mark(NodeIndex{3}, at(10));
  dirty.mark(NodeIndex{1}, at(20));
  dirty.mark(NodeIndex{2}, at(5));
  dirty.mark(NodeIndex{3}, at(4));   // earlier
  dirty.mark(NodeIndex{2}, at(30));  // later: nothing changes
  EXPECT_EQ(dirty.next(), at(4));
  EXPECT_EQ(dirty.take(at(3)), std::vector<NodeIndex>{});
  EXPECT_EQ(dirty.take(at(5)), (std::vector<NodeIndex>{NodeIndex{2}, NodeIndex{3}}));
  EXPECT_EQ(dirty.next(), at(20));
  EXPECT_EQ(dirty.all().size(), 1U);
}

}  // namespace
}  // namespace sched::gang
