#include "base/timers.h"

#include <gtest/gtest.h>

namespace base {
namespace {

Instant at(int seconds) {
  return Instant{std::chrono::seconds{seconds}};
}

// A later instant replaces the earlier one of its key; clearing a key without an instant changes
// nothing.
TEST(Timers, KeepOneInstantForEachKey) {
  Timers<int> timers;
  EXPECT_EQ(timers.next(), std::nullopt);
  timers.set(3, at(10));
  timers.set(1, at(20));
  EXPECT_EQ(timers.next(), at(10));
  timers.set(3, at(30));
  EXPECT_EQ(timers.next(), at(20));
  EXPECT_EQ(timers.at(3), at(30));
  timers.clear(1);
  timers.clear(2);
  EXPECT_EQ(timers.at(1), std::nullopt);
  EXPECT_EQ(timers.next(), at(30));
}

// Key 3 is moved forward to 4; key 2 keeps 5, because 30 is later.
TEST(Timers, KeepTheEarlierWhereTheyAreToBeNoLater) {
  Timers<int> timers;
  timers.set_no_later(2, at(5));
  timers.set_no_later(3, at(10));
  timers.set_no_later(3, at(4));
  timers.set_no_later(2, at(30));
  EXPECT_EQ(timers.all(), (std::map<int, Instant>{{2, at(5)}, {3, at(4)}}));
}

// Key 3 is due before key 2, but those that are due are returned in an order that does not depend
// on when the caller looks.
TEST(Timers, TakeWhatIsDueInTheOrderOfTheKeys) {
  Timers<int> timers;
  timers.set(3, at(4));
  timers.set(2, at(5));
  timers.set(1, at(20));
  EXPECT_EQ(timers.take_due(at(3)), std::vector<int>{});
  EXPECT_EQ(timers.take_due(at(5)), (std::vector<int>{2, 3}));
  EXPECT_EQ(timers.next(), at(20));
  EXPECT_FALSE(timers.empty());
}

// A caller that has room for two takes the two that have waited for the longest time. The third
// stays, and is not what the caller waits for.
TEST(Timers, TakeAsManyAsThereIsRoomForTheEarliestFirst) {
  Timers<int> timers;
  timers.set(1, at(6));
  timers.set(2, at(5));
  timers.set(3, at(4));
  timers.set(4, at(20));
  EXPECT_EQ(timers.take_due(at(10), 0), std::vector<int>{});
  EXPECT_EQ(timers.take_due(at(10), 2), (std::vector<int>{2, 3}));
  EXPECT_EQ(timers.next(), at(6));
  EXPECT_EQ(timers.next_after(at(10)), at(20));
  EXPECT_EQ(timers.next_after(at(20)), std::nullopt);
  EXPECT_EQ(timers.take_due(at(10), 2), std::vector<int>{1});
}

}  // namespace
}  // namespace base
