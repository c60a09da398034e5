#include "kube/clock_watch.h"

#include <gtest/gtest.h>

#include "kube/testing/fake_transport.h"
#include "kube/testing/manual_clock.h"

namespace kube {
namespace {

using std::chrono::hours;
using std::chrono::minutes;
using std::chrono::seconds;

class ClockWatchTest : public testing::Test {
 protected:
  // Gives an answer each two seconds for `during`, in which each address says how far this clock is
  // ahead.
  void answers(const std::vector<std::pair<std::string, base::Duration>>& of_addresses,
               base::Duration during) {
    for (base::Duration passed{}; passed <= during; passed += seconds{2}) {
      for (const auto& [address, ahead] : of_addresses) {
        watch_.saw(address, clock_.wall() - ahead, {});
      }
      clock_.advance(seconds{2});
    }
  }

  ManualClock clock_;
  ClockWatch watch_{clock_};
};

TEST_F(ClockWatchTest, AClockIsOffIfAnswersSaySoForTenSeconds) {
  EXPECT_FALSE(watch_.off());
  EXPECT_FALSE(watch_.is_in_doubt()) << "no answer has a date: nobody says that it is wrong";
  answers({{"a", seconds{1}}}, minutes{1});
  EXPECT_FALSE(watch_.is_in_doubt());
  answers({{"a", hours{2}}}, seconds{8});
  EXPECT_TRUE(watch_.is_in_doubt());
  EXPECT_FALSE(watch_.off());
  answers({{"a", hours{2}}}, seconds{2});
  EXPECT_EQ(watch_.off(), hours{2} - seconds{1});
  answers({{"a", seconds{30}}}, {});
  EXPECT_FALSE(watch_.off()) << "one answer that agrees";
  answers({{"a", -seconds{31}}}, seconds{10});
  EXPECT_EQ(watch_.off(), -seconds{31});
}

// Two answers that are ten seconds apart are not three.
TEST_F(ClockWatchTest, TwoAnswersAreTooFew) {
  for (int i = 0; i < 2; ++i) {
    watch_.saw("a", clock_.wall() - hours{1}, {});
    EXPECT_FALSE(watch_.off());
    clock_.advance(seconds{10});
  }
  watch_.saw("a", clock_.wall() - hours{1}, {});
  EXPECT_TRUE(watch_.off());
}

TEST_F(ClockWatchTest, TheMajorityOfTheAddressesDecides) {
  answers({{"a", hours{1}}, {"b", {}}, {"c", {}}}, seconds{20});
  EXPECT_FALSE(watch_.off());
  EXPECT_FALSE(watch_.is_in_doubt());
  answers({{"a", hours{1}}, {"b", hours{1}}, {"c", {}}}, seconds{20});
  EXPECT_TRUE(watch_.off());
  // Half is not a majority. An address that has not answered for five minutes has no say.
  answers({{"a", {}}, {"b", hours{1}}}, seconds{20});
  EXPECT_FALSE(watch_.off());
  answers({{"b", hours{1}}}, minutes{6});
  EXPECT_TRUE(watch_.off());
}

// The header was written at any time between request and answer.
TEST_F(ClockWatchTest, ASlowAnswerIsNoWrongClock) {
  for (int i = 0; i < 5; ++i) {
    clock_.advance(minutes{2});
    watch_.saw("a", clock_.wall() - minutes{2}, minutes{2});
    watch_.saw("b", clock_.wall(), minutes{2});
  }
  EXPECT_FALSE(watch_.is_in_doubt());
}

TEST_F(ClockWatchTest, AnswersAreSeenOnTheirWay) {
  FakeTransport inner;
  inner.set_handler([this](const Request&) {
    return Response{404, {{"date", http_date(clock_.wall() + hours{1})}}, "", "10.0.0.1:6443"};
  });
  ClockWatchTransport transport{inner, clock_, watch_};
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(transport.send({.path = "/x"})->status, 404);
    clock_.advance(seconds{6});
  }
  EXPECT_EQ(watch_.off(), -hours{1});
}

TEST(HttpDate, IsReadAndWritten) {
  const std::string text = "Sat, 28 Nov 2026 15:02:20 GMT";
  const auto at = parse_http_date(text);
  ASSERT_TRUE(at);
  EXPECT_EQ(http_date(*at), text);
  EXPECT_EQ(http_date(ManualClock::kStart), "Thu, 01 Jan 2026 00:00:00 GMT");
  for (const char* bad : {"", "Saturday, 28-Nov-26 15:02:20 GMT", "Sat, 28 Nox 2026 15:02:20 GMT",
                          "Sat, 31 Feb 2026 15:02:20 GMT", "Sat, 28 Nov 2026 15:02:20 UTC"}) {
    EXPECT_FALSE(parse_http_date(bad)) << bad;
  }
}

}  // namespace
}  // namespace kube
