// A list whose objects are large comes in smaller pages.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <future>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "kube/api/namespace.h"
#include "kube/client.h"
#include "kube/testing/fake_transport.h"
#include "kube/testing/manual_clock.h"
#include "kube/testing/manual_sleeper.h"

namespace kube {
namespace {

using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Returns the number of the parameter `name` in a URL, 0 without it.
int number_in(const std::string& path, const std::string& name) {
  const auto at = path.find(name + "=");
  return at == std::string::npos ? 0 : std::stoi(path.substr(at + name.size() + 1));
}

class ListPages : public ::testing::Test {
 protected:
  // A server of `count` objects; the transport takes at most `page_max` of them in one answer.
  void serve(int count, int page_max) {
    transport_.set_handler([=, this](const Request& request) -> base::Result<Response> {
      const int from = number_in(request.path, "continue");
      const int limit = number_in(request.path, "limit");
      limits_.push_back(limit);
      const int end = limit == 0 ? count : std::min(from + limit, count);
      if (end - from > page_max) return base::Error{base::Code::kTooLarge, "above 16 MiB"};
      json list{{"metadata", {{"resourceVersion", "7"}}}, {"items", json::array()}};
      if (end < count) list["metadata"]["continue"] = std::to_string(end);
      for (int i = from; i < end; ++i) list["items"].push_back({{"metadata", {{"name", "n"}}}});
      return Response{200, {}, list.dump()};
    });
  }
  base::Result<std::string> list(int& items) {
    return client_.list_json(
        Namespace::kResource, {.page_items_max = 8}, [&](const JsonView&) { ++items; }, [] {});
  }

  FakeTransport transport_;
  ManualClock clock_;
  ManualSleeper sleeper_{clock_};
  Client client_{transport_, clock_, sleeper_, {}};
  std::vector<int> limits_;
};

// 10 objects, 3 in an answer at most: 8 and 4 are refused, 2 works and stays, so five pages of 2.
// If the size went up again after each page, the refused answers would be sent in vain again and
// again.
TEST_F(ListPages, AreHalvedUntilAnAnswerHoldsThem) {
  serve(10, 3);
  int items = 0;
  const auto version = list(items);
  ASSERT_TRUE(version.ok()) << version.error().message;
  EXPECT_EQ(*version, "7");
  EXPECT_EQ(items, 10);
  EXPECT_THAT(limits_, ElementsAre(8, 4, 2, 2, 2, 2, 2));
}

// A list that was asked for in one answer comes in pages if it is too large.
TEST_F(ListPages, AllInOneAnswerBecomesPages) {
  serve(10, 9);
  int items = 0;
  const auto version = client_.list_json(
      Namespace::kResource, {.page_items_max = 0}, [&](const JsonView&) { ++items; }, [] {});
  ASSERT_TRUE(version.ok()) << version.error().message;
  EXPECT_EQ(items, 10);
  ASSERT_GE(limits_.size(), 3U);
  EXPECT_EQ(limits_[0], 0);
  EXPECT_EQ(limits_[1], ListOptions{}.page_items_max);
}

// No page holds even one object: halving ends at 1. The list fails as a whole: a list without that
// object would look like its deletion.
TEST_F(ListPages, OneObjectThatIsTooLargeIsAnError) {
  serve(10, 0);
  int items = 0;
  const auto version = list(items);
  ASSERT_FALSE(version.ok());
  EXPECT_EQ(version.error().code, base::Code::kTooLarge);
  EXPECT_THAT(version.error().message, HasSubstr("16 MiB"));
  EXPECT_THAT(limits_, ElementsAre(8, 4, 2, 1));
}

// The same pages in the same order, and each object once: what is asked for ahead is the page that
// would be asked for later. The halving, an answer that is too large for two pages, is as above.
TEST_F(ListPages, AreTheSameWhenTheyAreReadAhead) {
  serve(10, 3);
  int items = 0;
  const auto version = client_.list_json(
      Namespace::kResource, {.page_items_max = 8, .reads_ahead = true},
      [&](const JsonView&) { ++items; }, [] {});
  ASSERT_TRUE(version.ok()) << version.error().message;
  EXPECT_EQ(*version, "7");
  EXPECT_EQ(items, 10);
  EXPECT_THAT(limits_, ElementsAre(8, 4, 2, 2, 2, 2, 2));
}

// Goal: the next page is under way while one is read and its objects are handled. Method: the first
// object waits until the second page has been asked for; without reading ahead it never is.
TEST_F(ListPages, TheNextIsUnderWayWhileTheObjectsOfOneAreHandled) {
  std::promise<void> asked;
  transport_.set_handler([&](const Request& request) -> base::Result<Response> {
    const bool is_second = number_in(request.path, "continue") == 1;
    if (is_second) asked.set_value();
    json list{{"metadata", {{"resourceVersion", "7"}}},
              {"items", {{{"metadata", {{"name", "n"}}}}}}};
    if (!is_second) list["metadata"]["continue"] = "1";
    return Response{200, {}, list.dump()};
  });
  int items = 0;
  const auto on_item = [&](const JsonView&) {
    if (items++ == 0) {
      EXPECT_EQ(asked.get_future().wait_for(std::chrono::seconds{30}), std::future_status::ready);
    }
  };
  const auto version = client_.list_json(
      Namespace::kResource, {.page_items_max = 1, .reads_ahead = true}, on_item, [] {});
  EXPECT_TRUE(version.ok());
  EXPECT_EQ(items, 2);
}

}  // namespace
}  // namespace kube
