#include "operator/nodes/observed_lag.h"

#include <gtest/gtest.h>

namespace control {
namespace {

using std::chrono::seconds;

constexpr base::Instant kStart{};
bool any(const std::string&) {
  return true;
}

TEST(ObservedLag, CountsFromTheFirstRevisionThatIsNotObeyed) {
  ObservedLag lag;
  lag.see("n1", 7, 7, kStart);
  EXPECT_EQ(lag.oldest(kStart + seconds{5}, any), seconds{0});
  lag.see("n1", 8, 7, kStart + seconds{10});
  lag.see("n1", 9, 7, kStart + seconds{20});
  EXPECT_EQ(lag.oldest(kStart + seconds{30}, any), seconds{20});
}

TEST(ObservedLag, StartsAnewWithEachRevisionThatIsReached) {
  ObservedLag lag;
  lag.see("n1", 8, 7, kStart);
  lag.see("n1", 9, 8, kStart + seconds{5});
  EXPECT_EQ(lag.oldest(kStart + seconds{6}, any), seconds{1});
  lag.see("n1", 9, 9, kStart + seconds{7});
  EXPECT_EQ(lag.oldest(kStart + seconds{60}, any), seconds{0});
}

TEST(ObservedLag, AgentThatHasSaidNothingIsBehind) {
  ObservedLag lag;
  lag.see("n1", 1, std::nullopt, kStart);
  EXPECT_EQ(lag.oldest(kStart + seconds{3}, any), seconds{3});
  lag.forget("n1");
  EXPECT_EQ(lag.oldest(kStart + seconds{3}, any), seconds{0});
}

TEST(ObservedLag, TimetableThatWasMadeAnewIsAnotherOne) {
  ObservedLag lag;
  lag.see("n1", 40, 39, kStart);
  lag.see("n1", 1, std::nullopt, kStart + seconds{10});
  EXPECT_EQ(lag.oldest(kStart + seconds{11}, any), seconds{1});
}

TEST(ObservedLag, OnlyNodesThatCount) {
  ObservedLag lag;
  lag.see("down", 2, 1, kStart);
  lag.see("up", 2, 1, kStart + seconds{4});
  EXPECT_EQ(lag.oldest(kStart + seconds{5}, [](const std::string& node) { return node == "up"; }),
            seconds{1});
}

}  // namespace
}  // namespace control
