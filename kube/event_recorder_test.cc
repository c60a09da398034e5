#include "kube/event_recorder.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "kube/testing/fake_transport.h"
#include "kube/testing/manual_sleeper.h"

namespace kube {
namespace {

using nlohmann::json;

// A server that stores what it is sent; it can refuse everything, or have forgotten the events that
// are to be patched.
class EventRecorderTest : public testing::Test {
 protected:
  EventRecorderTest() {
    transport_.set_handler([this](const Request& request) -> base::Result<Response> {
      if (refuse_) return Response{403, {}, R"({"reason": "Forbidden", "message": "no"})"};
      if (request.method == Method::kPatch && forgotten_) {
        return Response{404, {}, R"({"kind": "Status", "reason": "NotFound"})"};
      }
      return Response{200, {}, request.method == Method::kPost ? request.body : "{}"};
    });
  }

  ManualClock clock_;
  ManualSleeper sleeper_{clock_};
  FakeTransport transport_;
  bool refuse_ = false;
  bool forgotten_ = false;
  EventRecorder recorder_{Client{transport_, clock_, sleeper_, {.rate = {.burst = 5000}}},
                          clock_,
                          {.component = "kubegang-operator"}};
  ObjectReference job_{.kind = "Job", .ns = "team-a", .name = "myload", .uid = "u"};
};

// The manual clock begins at the start of 2026.
TEST_F(EventRecorderTest, WritesTheEventInTheObjectsNamespace) {
  recorder_.record(job_, EventType::kNormal, "Started", "on n[12-14]");
  (void)recorder_.step();
  ASSERT_EQ(transport_.requests().size(), 1U);
  EXPECT_TRUE(transport_.last_request().path.starts_with("/api/v1/namespaces/team-a/events?"));
  const json event = json::parse(transport_.last_request().body);
  EXPECT_EQ(event["involvedObject"]["uid"], "u");
  EXPECT_EQ(event["type"], "Normal");
  EXPECT_EQ(event["count"], 1);
  EXPECT_EQ(event["firstTimestamp"], "2026-01-01T00:00:00Z");
}

// As client-go has it: events have a namespace, and kubectl describe looks there.
TEST_F(EventRecorderTest, ClusterScopedObjectsUseTheDefaultNamespace) {
  job_.ns.clear();
  recorder_.record(job_, EventType::kWarning, "Rejected", "no");
  (void)recorder_.step();
  EXPECT_TRUE(transport_.last_request().path.starts_with("/api/v1/namespaces/default/events?"));
}

// At most 1,024 bytes, and no half of the character that would pass them. 1,023 bytes fit; then
// follows a character of two bytes ("xx" counts as two of one), or of two, three and four.
TEST_F(EventRecorderTest, LongMessagesAreCutBetweenCharacters) {
  for (const char* last : {"xx", "\u00e4", "\u20ac", "\U0001F600"}) {
    const std::string fits(1023, 'x');
    recorder_.record(job_, EventType::kNormal, "Started", fits + last);
    (void)recorder_.step();
    const json event = json::parse(transport_.last_request().body);
    EXPECT_EQ(event["message"], last == std::string_view{"xx"} ? fits + "x" : fits) << last;
    clock_.advance(std::chrono::hours{1});  // each is an event of its own
  }
}

// One POST, two PATCHes for the repetitions, and a POST for the other message. The body of the
// third request has the time of the third record.
TEST_F(EventRecorderTest, RepetitionRaisesTheCount) {
  for (int i = 0; i < 3; ++i) {
    recorder_.record(job_, EventType::kNormal, "Started", "on n[12-14]");
    clock_.advance(std::chrono::seconds{1});
  }
  recorder_.record(job_, EventType::kNormal, "Started", "on n[15-16]");
  (void)recorder_.step();
  const auto requests = transport_.requests();
  ASSERT_EQ(requests.size(), 4U);
  EXPECT_EQ(requests[0].method, Method::kPost);
  EXPECT_EQ(json::parse(requests[2].body),
            (json{{"count", 3}, {"lastTimestamp", "2026-01-01T00:00:02Z"}}));
  EXPECT_EQ(requests[3].method, Method::kPost);
}

// The server deletes events after an hour, so the patch meets 404; an event that is older than the
// window is not even tried.
TEST_F(EventRecorderTest, OldOrForgottenEventIsMadeAnew) {
  recorder_.record(job_, EventType::kNormal, "Started", "x");
  (void)recorder_.step();
  forgotten_ = true;
  recorder_.record(job_, EventType::kNormal, "Started", "x");
  (void)recorder_.step();
  EXPECT_EQ(transport_.last_request().method, Method::kPost);
  clock_.advance(EventRecorder::kRepeatWindow + std::chrono::seconds{1});
  recorder_.record(job_, EventType::kNormal, "Started", "x");
  (void)recorder_.step();
  EXPECT_EQ(transport_.requests().size(), 4U);  // post, patch, post, post
  EXPECT_EQ(recorder_.dropped_count(), 0U);
}

// One was refused, and three did not fit into the queue.
TEST_F(EventRecorderTest, DropsAndCountsWhatItCannotWrite) {
  refuse_ = true;
  recorder_.record(job_, EventType::kNormal, "Started", "x");
  (void)recorder_.step();
  EXPECT_EQ(recorder_.dropped_count(), 1U);
  for (std::size_t i = 0; i < EventRecorder::kQueuedMax + 3; ++i) {
    recorder_.record(job_, EventType::kNormal, "Started", std::to_string(i));
  }
  EXPECT_EQ(recorder_.dropped_count(), 4U);
}

}  // namespace
}  // namespace kube
