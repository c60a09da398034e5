#include "kube/informer.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "api/job.h"
#include "kube/testing/fake_transport.h"
#include "kube/testing/manual_sleeper.h"

namespace kube {
namespace {

using base::Code;
using nlohmann::json;

json job(const std::string& name, int version, const std::string& uid = "u") {
  return {{"metadata",
           {{"name", name},
            {"namespace", "ns"},
            {"uid", uid},
            {"resourceVersion", std::to_string(version)}}},
          {"spec", {{"template", {{"spec", {}}}}}}};
}

// Tasks are a number; a text there cannot come from an API server with our CRD, but from one whose
// CRD is newer.
json undecodable_job(const std::string& name, int version) {
  json out = job(name, version);
  out["spec"]["resources"]["tasks"] = "six";
  return out;
}

std::string list_of(int version, const std::vector<json>& jobs) {
  return json{{"metadata", {{"resourceVersion", std::to_string(version)}}}, {"items", jobs}}.dump();
}

std::string event(const char* type, const json& object) {
  return json{{"type", type}, {"object", object}}.dump();
}

// As a server tells a watch that its version is too old: an event, in a stream with status 200.
std::string gone() {
  return event("ERROR", {{"code", 410}, {"reason", "Expired"}, {"message", "too old"}});
}

// No threads: each step() is one list or one watch session, whose answer or lines the test has
// queued. The log has one line for each call of a handler.
class InformerTest : public testing::Test {
 protected:
  using Log = std::vector<std::string>;

  static std::string text(const char* what, const Job& object) {
    return std::string{what} + " " + object.metadata.name + "@" + object.metadata.resource_version;
  }

  Informer<Job>::Handlers handlers() {
    return {
        .on_add = [this](const auto& now) { log_.push_back(text("add", *now)); },
        .on_update =
            [this](const auto& before, const auto& now) {
              log_.push_back(text("update", *now) + " from " + before->metadata.resource_version +
                             (before->metadata.uid == now->metadata.uid ? "" : " recreated"));
            },
        .on_delete = [this](const auto& last) { log_.push_back(text("delete", *last)); },
        .on_undecodable = [this](const Undecodable& one) { log_.push_back("bad " + one.key.name); },
        .on_error = [this](const base::Error& error) { errors_.push_back(error.message); }};
  }

  // Returns the calls of handlers since the last call.
  Log log() { return std::exchange(log_, {}); }
  base::Duration step() { return informer_.step({}); }
  std::string last_query() {
    const std::string path = transport_.last_request().path;
    return path.substr(path.find('?'));
  }

  ManualClock clock_;
  ManualSleeper sleeper_{clock_};
  FakeTransport transport_;
  Log log_;
  std::vector<std::string> errors_;
  Client client_{transport_, clock_, sleeper_, {.call = {.attempts_max = 1}}};
  Informer<Job> informer_{
      client_, clock_, {}, handlers(), [](Job& one) { one.spec.pod_template = {}; }};
};

// The watch begins at the list's version, 10, and not at that of its newest object: between the two
// others may have been deleted.
TEST_F(InformerTest, ListsThenFollowsTheWatchFromThere) {
  transport_.answer(200, list_of(10, {job("a", 3), job("b", 4)}));
  EXPECT_FALSE(informer_.has_synced());
  EXPECT_EQ(step(), base::Duration{});
  EXPECT_TRUE(informer_.has_synced());
  EXPECT_EQ(log(), (Log{"add a@3", "add b@4"}));

  transport_.enqueue_stream(
      {.lines = {event("MODIFIED", job("a", 11)), event("ADDED", job("c", 12)),
                 event("DELETED", job("b", 13))}});
  step();
  EXPECT_NE(last_query().find("resourceVersion=10&"), std::string::npos);
  EXPECT_EQ(log(), (Log{"update a@11 from 3", "add c@12", "delete b@13"}));
  EXPECT_EQ(informer_.size(), 2U);
  EXPECT_EQ(informer_.find({"ns", "b"}), nullptr);
  EXPECT_EQ(informer_.find({"ns", "a"})->metadata.resource_version, "11");
}

// The transform of this fixture drops the template, which is most of a job's memory.
TEST_F(InformerTest, TransformDropsWhatIsNotNeeded) {
  transport_.answer(200, list_of(1, {job("a", 1)}));
  step();
  EXPECT_TRUE(informer_.find({"ns", "a"})->spec.pod_template.empty());
}

// Also one that does not decode, and one that is no longer wanted: a is deleted for the handlers as
// soon as its UID is another. c comes and goes unseen.
TEST_F(InformerTest, TheFilterDropsWhatIsNotWanted) {
  Informer<Job> only_ours{client_, clock_, {}, handlers(), {}, [](const JsonView& object) {
                            return object.find("metadata").find("uid").string() == "ours";
                          }};
  transport_.answer(200, list_of(10, {job("a", 3, "ours"), undecodable_job("b", 4)}));
  only_ours.step({});
  EXPECT_EQ(log(), Log{"add a@3"});
  transport_.enqueue_stream(
      {.lines = {event("ADDED", job("c", 11)), event("MODIFIED", undecodable_job("b", 12)),
                 event("DELETED", job("c", 13)), event("MODIFIED", job("a", 14, "theirs"))}});
  only_ours.step({});
  EXPECT_EQ(log(), Log{"delete a@3"});
  EXPECT_EQ(only_ours.size(), 0U);
  EXPECT_TRUE(errors_.empty());
}

TEST_F(InformerTest, ResumesAtTheLastEventOrBookmark) {
  transport_.answer(200, list_of(10, {}));
  step();
  transport_.enqueue_stream(
      {.lines = {event("ADDED", job("a", 11)),
                 event("BOOKMARK", {{"metadata", {{"resourceVersion", "50"}}}})},
       .end = base::Error{Code::kUnavailable, "connection reset"}});
  // The connection broke, so the next session waits for the back-off; it resumes behind the
  // bookmark, at 50, though the newest object has version 11.
  EXPECT_GT(step(), base::Duration{});
  EXPECT_EQ(errors_, (Log{"watch Job: connection reset"}));
  transport_.enqueue_stream({});
  step();
  EXPECT_NE(last_query().find("watch=true"), std::string::npos);
  EXPECT_NE(last_query().find("resourceVersion=50&"), std::string::npos);
  EXPECT_EQ(log(), (Log{"add a@11"}));
}

// The list says only what exists. A comparison with the cache finds objects that are gone or were
// recreated: a is not reported, because its version is the same.
TEST_F(InformerTest, AfterGoneListsAgainAndDeliversMissedDeletes) {
  transport_.answer(200, list_of(10, {job("a", 3), job("b", 4), job("c", 5)}));
  step();
  (void)log();
  transport_.enqueue_stream({.lines = {gone()}});
  step();
  // b was deleted, c deleted and made again, d is new, a is as it was.
  transport_.answer(200, list_of(90, {job("a", 3), job("c", 80, "u2"), job("d", 81)}));
  step();
  EXPECT_EQ(log(), (Log{"delete b@4", "update c@80 from 5 recreated", "add d@81"}));
  EXPECT_EQ(informer_.size(), 3U);
}

// A server that forgets versions as fast as they are listed must not be asked in a tight loop.
TEST_F(InformerTest, GoneAtOnceBacksOff) {
  transport_.answer(200, list_of(10, {}));
  step();
  transport_.enqueue_stream({.end = base::Error{Code::kGone, "too old"}});
  EXPECT_GE(step(), BackoffOptions{}.first);
}

// Nothing is queued, so the transport refuses each connection.
// A server that was away, and has forgotten the version meanwhile: the list does not wait for as
// long as another try of the watch would.
TEST_F(InformerTest, GoneAfterFailuresListsSoon) {
  transport_.answer(200, list_of(10, {}));
  step();
  base::Duration pause{};
  for (int i = 0; i < 6; ++i) {
    transport_.enqueue_stream({.end = base::Error{Code::kUnavailable, "away"}});
    pause = step();
  }
  EXPECT_GT(pause, std::chrono::seconds{5});
  transport_.enqueue_stream({.end = base::Error{Code::kGone, "too old"}});
  pause = step();
  EXPECT_GT(pause, base::Duration{});
  EXPECT_LT(pause, std::chrono::seconds{1});
}

TEST_F(InformerTest, ListFailureBacksOffLongerEachTime) {
  const base::Duration first = step();
  const base::Duration second = step();
  EXPECT_GE(first, BackoffOptions{}.first);
  EXPECT_GE(second, BackoffOptions{}.first * 2);
  EXPECT_FALSE(informer_.has_synced());
  EXPECT_EQ(errors_, (Log{"list Job: connection refused", "list Job: connection refused"}));
}

// Without an error, but also without an event: an overloaded server may close each watch. One event
// is progress, and the next session may begin at once.
TEST_F(InformerTest, WatchThatEndsAtOnceWithoutAWordBacksOff) {
  transport_.answer(200, list_of(10, {}));
  step();
  transport_.enqueue_stream({});
  EXPECT_GE(step(), BackoffOptions{}.first);
  transport_.enqueue_stream({.lines = {event("ADDED", job("a", 11))}});
  EXPECT_EQ(step(), base::Duration{});
}

// A resumed watch may repeat what the list had; a deletion of what was never seen is nothing
// either.
TEST_F(InformerTest, RepeatedEventIsNoChange) {
  transport_.answer(200, list_of(10, {job("a", 3)}));
  step();
  (void)log();
  transport_.enqueue_stream(
      {.lines = {event("ADDED", job("a", 3)), event("DELETED", job("unknown", 12))}});
  step();
  EXPECT_EQ(log(), Log{});
}

// 1. by an event; 2. by a list, which has the same bad version: no second report; 3. mended, and
//    reported as an update from the last good version; 4. deleted while bad again: its last good
//    version is reported.
TEST_F(InformerTest, UndecodableObjectKeepsItsLastGoodVersionAndIsReportedOncePerVersion) {
  transport_.answer(200, list_of(10, {job("a", 3)}));
  step();
  (void)log();
  transport_.enqueue_stream({.lines = {event("MODIFIED", undecodable_job("a", 11)), gone()}});
  step();
  EXPECT_EQ(log(), (Log{"bad a"}));
  EXPECT_EQ(informer_.find({"ns", "a"})->metadata.resource_version, "3");

  transport_.answer(200, list_of(20, {undecodable_job("a", 11)}));
  step();
  EXPECT_EQ(log(), Log{});
  EXPECT_NE(informer_.find({"ns", "a"}), nullptr);

  transport_.enqueue_stream(
      {.lines = {event("MODIFIED", job("a", 21)), event("DELETED", undecodable_job("a", 22))}});
  step();
  EXPECT_EQ(log(), (Log{"update a@21 from 3", "delete a@21"}));
}

// After a line that was cut off the state is unknown. The list finds the same version, so the log
// has only the first "add".
TEST_F(InformerTest, LineThatIsNoEventListsAgain) {
  transport_.answer(200, list_of(10, {job("a", 3)}));
  step();
  transport_.enqueue_stream({.lines = {"{\"type\":"}});
  EXPECT_GT(step(), base::Duration{});
  transport_.answer(200, list_of(11, {job("a", 3)}));
  step();
  EXPECT_EQ(log(), (Log{"add a@3"}));
}

// With the same selectors for both: otherwise the list would report as deleted what the watch never
// shows.
TEST_F(InformerTest, SelectorsGoToListAndWatch) {
  Informer<Job> informer{
      client_, clock_, {.ns = "ns", .label_selector = "a=b", .field_selector = "x=y"}, {}};
  transport_.answer(200, list_of(10, {}));
  (void)informer.step({});
  const std::string want = "labelSelector=a%3Db&fieldSelector=x%3Dy";
  const std::string list_path = transport_.last_request().path;
  EXPECT_TRUE(list_path.starts_with("/apis/kubegang.io/v1alpha1/namespaces/ns/jobs?"));
  EXPECT_NE(list_path.find(want), std::string::npos);
  transport_.enqueue_stream({});
  (void)informer.step({});
  EXPECT_NE(transport_.last_request().path.find(want), std::string::npos);
}

// 1. at first any state of the server's cache will do; 2. after a gap none that is older than what
// was seen; 3. a server that knows no such version (its store was set back) is asked for its newest
// state, in pages. All of the first two in one piece: pages are read from etcd, all objects of the
// kind for each.
TEST_F(InformerTest, ListsFromTheServersCacheGoNotBackBehindWhatWasSeen) {
  Informer<Job> cached{client_, clock_, {.freshness = Freshness::kNotOlderThanSeen}, handlers()};
  const auto query = [&] {
    const std::string path = transport_.last_request().path;
    return path.find('?') == std::string::npos ? "" : path.substr(path.find('?'));
  };
  transport_.answer(200, list_of(10, {job("a", 3)}));
  cached.step({});
  EXPECT_EQ(query(), "?resourceVersion=0&resourceVersionMatch=NotOlderThan");
  transport_.enqueue_stream({{event("MODIFIED", job("a", 12)), gone()}});
  cached.step({});
  transport_.answer(504, R"({"kind": "Status", "reason": "Timeout", "details": {"causes": [
      {"reason": "ResourceVersionTooLarge"}]}})");
  cached.step({});
  EXPECT_EQ(query(), "?resourceVersion=12&resourceVersionMatch=NotOlderThan");
  transport_.answer(200, list_of(5, {job("a", 4)}));
  cached.step({});
  EXPECT_EQ(query(), "?limit=500");
  EXPECT_EQ(log(), (Log{"add a@3", "update a@12 from 3", "update a@4 from 12"}));
}

// 1. at first there is none: no error, no object, synced; 2. the definition comes, and an object;
// 3. something in between answers with the text of an unknown path, and discovery says that the
// kind is served: an error, and nothing is gone; 4. the definition goes: the watch ends, discovery
// lacks the kind, and the object is reported as gone; 5. an outage is an error like any other.
TEST_F(InformerTest, AKindThatIsNotServedHasNoObjects) {
  const std::string text = "404 page not found";
  const std::string others = R"({"groups": [{"name": "apps", "versions": [{"version": "v1"}]}]})";
  const std::string groups =
      R"({"groups": [{"name": "kubegang.io", "versions": [{"version": "v1alpha1"}]}]})";
  const auto resources = [](const std::string& name) {
    return R"({"resources": [{"name": ")" + name + R"("}]})";
  };
  Informer<Job> optional{client_, clock_, {.unserved_retry = std::chrono::seconds{30}}, handlers()};
  transport_.answer(200, others);
  EXPECT_EQ(optional.step({}), std::chrono::seconds{30});
  EXPECT_TRUE(optional.has_synced());
  transport_.answer(200, groups);
  transport_.answer(200, resources("jobs"));
  transport_.answer(200, list_of(10, {job("a", 3)}));
  EXPECT_EQ(optional.step({}), base::Duration{});
  EXPECT_EQ(log(), Log{"add a@3"});
  EXPECT_TRUE(errors_.empty());

  transport_.enqueue_stream({.end = base::Error{Code::kUnavailable, text}});
  optional.step({});
  errors_.clear();
  transport_.answer(200, groups);
  transport_.answer(200, resources("jobs"));
  transport_.answer(404, text);
  optional.step({});
  EXPECT_EQ(log(), Log{});
  EXPECT_EQ(errors_.size(), 1U);

  errors_.clear();
  transport_.answer(200, groups);
  transport_.answer(200, resources("partitions"));
  EXPECT_EQ(optional.step({}), std::chrono::seconds{30});
  EXPECT_EQ(log(), Log{"delete a@3"});
  EXPECT_TRUE(errors_.empty());

  transport_.answer(503, "");
  optional.step({});
  EXPECT_EQ(errors_.size(), 1U);
}

// A kubegang kind that is not served means that its CRD is missing.
TEST_F(InformerTest, AKindThatMustBeServedIsWaitedFor) {
  transport_.answer(404, "404 page not found");
  EXPECT_LE(step(), BackoffOptions{}.max);
  EXPECT_FALSE(informer_.has_synced());
  EXPECT_EQ(errors_.size(), 1U);
}

// A process that ends still reads its caches.
TEST_F(InformerTest, StopEndsTheWatchAndKeepsTheCache) {
  transport_.answer(200, list_of(10, {job("a", 3)}));
  step();
  std::stop_source stop;
  stop.request_stop();
  EXPECT_EQ(informer_.step(stop.get_token()), base::Duration{});
  EXPECT_EQ(informer_.size(), 1U);
}

}  // namespace
}  // namespace kube
