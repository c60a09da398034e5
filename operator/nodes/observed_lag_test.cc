#include "operator/nodes/observed_lag.h"

#include <gtest/gtest.h>

namespace control {
namespace {

using std::chrono::seconds;

// A version is {term, revision}. see() says which one is stored, which one the agent obeys, and
// when that was seen. oldest() is the longest wait of the nodes that count, an alert's metric.
constexpr base::Instant kStart{};
bool any(const std::string&) {
  return true;
}

// Revision 8 has waited since second 10. That 9 came at second 20 makes it no younger.
TEST(ObservedLag, CountsFromTheFirstRevisionThatIsNotObeyed) {
  ObservedLag lag;
  lag.see("n1", {1, 7}, TimetableVersion{1, 7}, kStart);
  EXPECT_EQ(lag.oldest(kStart + seconds{5}, any), seconds{0});
  lag.see("n1", {1, 8}, TimetableVersion{1, 7}, kStart + seconds{10});
  lag.see("n1", {1, 9}, TimetableVersion{1, 7}, kStart + seconds{20});
  EXPECT_EQ(lag.oldest(kStart + seconds{30}, any), seconds{20});
}

// An agent that follows all the time, always one revision behind, is not ill.
TEST(ObservedLag, StartsAnewWithEachRevisionThatIsReached) {
  ObservedLag lag;
  lag.see("n1", {1, 8}, TimetableVersion{1, 7}, kStart);
  lag.see("n1", {1, 9}, TimetableVersion{1, 8}, kStart + seconds{5});
  EXPECT_EQ(lag.oldest(kStart + seconds{6}, any), seconds{1});
  lag.see("n1", {1, 9}, TimetableVersion{1, 9}, kStart + seconds{7});
  EXPECT_EQ(lag.oldest(kStart + seconds{60}, any), seconds{0});
}

// A node whose agent never came up must not look like one without a lag.
TEST(ObservedLag, AgentThatHasSaidNothingIsBehind) {
  ObservedLag lag;
  lag.see("n1", {1, 1}, std::nullopt, kStart);
  EXPECT_EQ(lag.oldest(kStart + seconds{3}, any), seconds{3});
  lag.forget("n1");
  EXPECT_EQ(lag.oldest(kStart + seconds{3}, any), seconds{0});
}

// Revision 1 after revision 40: the object was deleted, and the wait for 40 is over.
TEST(ObservedLag, TimetableThatWasMadeAnewIsAnotherOne) {
  ObservedLag lag;
  lag.see("n1", {1, 40}, TimetableVersion{1, 39}, kStart);
  lag.see("n1", {1, 1}, std::nullopt, kStart + seconds{10});
  EXPECT_EQ(lag.oldest(kStart + seconds{11}, any), seconds{1});
}

// etcd was restored: the agent obeys what the API server no longer knows.
TEST(ObservedLag, AgentThatObeysANewerOneIsBehind) {
  ObservedLag lag;
  lag.see("n1", {5, 900}, TimetableVersion{5, 1000}, kStart);
  EXPECT_EQ(lag.oldest(kStart + seconds{3}, any), seconds{3});
  lag.see("n1", {6, 901}, TimetableVersion{5, 1000}, kStart + seconds{3});
  lag.see("n1", {6, 902}, TimetableVersion{5, 1000}, kStart + seconds{9});
  EXPECT_EQ(lag.oldest(kStart + seconds{13}, any), seconds{10});
  lag.see("n1", {6, 902}, TimetableVersion{6, 902}, kStart + seconds{13});
  EXPECT_EQ(lag.oldest(kStart + seconds{60}, any), seconds{0});
}

// Revisions count per term and object, so only the pair tells which spec is obeyed.
TEST(ObservedLag, TheSameRevisionOfAnotherTermIsAnotherOne) {
  ObservedLag lag;
  lag.see("n1", {6, 901}, TimetableVersion{5, 901}, kStart);
  EXPECT_EQ(lag.oldest(kStart + seconds{3}, any), seconds{3});
}

// A node that is down has no agent that could obey; its wait would hide the lag of the others.
TEST(ObservedLag, OnlyNodesThatCount) {
  ObservedLag lag;
  lag.see("down", {1, 2}, TimetableVersion{1, 1}, kStart);
  lag.see("up", {1, 2}, TimetableVersion{1, 1}, kStart + seconds{4});
  EXPECT_EQ(lag.oldest(kStart + seconds{5}, [](const std::string& node) { return node == "up"; }),
            seconds{1});
}

}  // namespace
}  // namespace control
