#include "kube/client.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "api/job.h"
#include "api/partition.h"
#include "kube/api/pod.h"
#include "kube/testing/fake_transport.h"
#include "kube/testing/manual_sleeper.h"

namespace kube {
namespace {

using base::Code;
using nlohmann::json;
using std::chrono::milliseconds;
using std::chrono::seconds;

// Returns the body of a refusal, as the server sends it.
std::string status_json(int code, const std::string& reason, const std::string& message) {
  return json{{"kind", "Status"}, {"code", code}, {"reason", reason}, {"message", message}}.dump();
}

// Only what each object has: the tests are about requests, and not about jobs.
json job_json(const std::string& name, const std::string& version = "1") {
  return {{"metadata",
           {{"name", name},
            {"namespace", "team-a"},
            {"uid", "u-" + name},
            {"resourceVersion", version}}}};
}

// No network and no time: answers come from a queue, and waiting moves the manual clock.
class ClientTest : public testing::Test {
 protected:
  ManualClock clock_;
  ManualSleeper sleeper_{clock_};
  FakeTransport transport_;
  Client client_{transport_, clock_, sleeper_, {}};
};

// The path tells group, version, namespace and plural of the kind: one of them wrong, and the
// server knows no such resource.
TEST_F(ClientTest, GetReadsTheTypedObject) {
  transport_.answer(200, job_json("myload").dump());
  const auto job = client_.get<Job>({"team-a", "myload"});
  ASSERT_TRUE(job.ok()) << job.error().message;
  EXPECT_EQ(job->metadata.uid, "u-myload");
  EXPECT_EQ(transport_.last_request().path,
            "/apis/kubegang.io/v1alpha1/namespaces/team-a/jobs/myload");
}

// The server's message names the object in its own way; the client adds what was tried, once.
TEST_F(ClientTest, ErrorNamesVerbKindAndObject) {
  transport_.answer(404, status_json(404, "NotFound", "jobs \"myload\" not found"));
  const auto job = client_.get<Job>({"team-a", "myload"});
  ASSERT_FALSE(job.ok());
  EXPECT_EQ(job.error(),
            (base::Error{Code::kNotFound, "get Job team-a/myload: jobs \"myload\" not found"}));
}

// One failure without an answer and one with a 503: both are retried for a read.
TEST_F(ClientTest, ReadsAreTriedAgainWithBackOffUntilTheyWork) {
  transport_.enqueue(base::Error{Code::kUnavailable, "connection reset"});
  transport_.answer(503, status_json(503, "ServiceUnavailable", "etcd is away"));
  transport_.answer(200, job_json("myload").dump());
  EXPECT_TRUE(client_.get<Job>({"team-a", "myload"}).ok());
  const auto slept = sleeper_.slept();
  ASSERT_EQ(slept.size(), 2U);
  // 100 ms and 200 ms, each plus at most a half.
  EXPECT_GE(slept[0], milliseconds{100});
  EXPECT_LE(slept[0], milliseconds{150});
  EXPECT_GE(slept[1], milliseconds{200});
  EXPECT_LE(slept[1], milliseconds{300});
}

// A transport without an answer says Unavailable; five tries are the default.
TEST_F(ClientTest, GivesUpAfterAttemptsMax) {
  const auto job = client_.get<Job>({"team-a", "myload"});
  ASSERT_FALSE(job.ok());
  EXPECT_EQ(job.error().code, Code::kUnavailable);
  EXPECT_EQ(transport_.requests().size(), 5U);
}

// Exactly what the server asks for, without the back-off's jitter.
TEST_F(ClientTest, RetryAfterIsHonoured) {
  transport_.enqueue(Response{429, {{"retry-after", "7"}}, ""});
  transport_.answer(200, job_json("myload").dump());
  EXPECT_TRUE(client_.get<Job>({"team-a", "myload"}).ok());
  EXPECT_EQ(sleeper_.slept(), std::vector<base::Duration>{seconds{7}});
}

// A 429 was refused before anything was done. After a reset connection it is unknown whether the
// object was made, so the second failure ends it.
TEST_F(ClientTest, CreateIsTriedAgainOnlyAfter429) {
  Job job;
  job.metadata.name = "myload";
  job.metadata.ns = "team-a";
  transport_.enqueue(Response{429, {}, ""});
  transport_.enqueue(base::Error{Code::kUnavailable, "connection reset"});
  const auto created = client_.create(job);
  ASSERT_FALSE(created.ok());
  EXPECT_EQ(created.error().message, "create Job team-a/myload: connection reset");
  EXPECT_EQ(transport_.requests().size(), 2U);
  EXPECT_EQ(transport_.last_request().path,
            "/apis/kubegang.io/v1alpha1/namespaces/team-a/jobs?fieldManager=kubegang");
}

// Only the caller can decide again on what is stored now.
TEST_F(ClientTest, ConflictIsNotTriedAgain) {
  transport_.answer(409, status_json(409, "Conflict", "the object has been modified"));
  const auto patched = client_.patch<Job>({"team-a", "myload"}, json::object());
  EXPECT_EQ(patched.error().code, Code::kConflict);
  EXPECT_EQ(transport_.requests().size(), 1U);
}

// Version and UID go into the patch itself, where the server compares them.
TEST_F(ClientTest, StatusPatchCarriesItsPreconditions) {
  transport_.answer(200, job_json("myload").dump());
  const json patch{{"status", {{"state", "Running"}}}};
  ASSERT_TRUE(client_
                  .patch_status<Job>({"team-a", "myload"}, patch,
                                     {.resource_version = "41", .uid = "u", .dry_run = true})
                  .ok());
  const Request request = transport_.last_request();
  EXPECT_EQ(request.method, Method::kPatch);
  EXPECT_EQ(request.path,
            "/apis/kubegang.io/v1alpha1/namespaces/team-a/jobs/myload/status"
            "?fieldManager=kubegang&dryRun=All");
  EXPECT_EQ(request.content_type, "application/merge-patch+json");
  EXPECT_EQ(json::parse(request.body),
            (json{{"metadata", {{"resourceVersion", "41"}, {"uid", "u"}}},
                  {"status", {{"state", "Running"}}}}));
}

// The reason is unchanged and not sent; the hold is removed by a null. UID and version are those of
// the object that the difference was computed from.
TEST_F(ClientTest, PatchStatusFromSendsOnlyTheDifference) {
  auto from = decode<Job>(job_json("myload", "41"));
  from->status.state = JobState::kPending;
  from->status.reason = "Resources";
  from->status.held = JobHeld{"JobHeldAdmin"};
  Job to = *from;
  to.status.state = JobState::kRunning;
  to.status.held.reset();
  transport_.answer(200, job_json("myload", "42").dump());
  ASSERT_TRUE(client_.patch_status_from(*from, to).ok());
  EXPECT_EQ(json::parse(transport_.last_request().body),
            (json{{"metadata", {{"resourceVersion", "41"}, {"uid", "u-myload"}}},
                  {"status", {{"state", "Running"}, {"held", nullptr}}}}));
}

// No request at all: an idle operator costs the API server nothing.
TEST_F(ClientTest, PatchStatusFromWritesNothingWhenNothingChanged) {
  const auto job = decode<Job>(job_json("myload"));
  const auto same = client_.patch_status_from(*job, *job);
  ASSERT_TRUE(same.ok());
  EXPECT_EQ(*same, *job);
  EXPECT_TRUE(transport_.requests().empty());
}

// A server answers 422 and not 409 here, because to it the patch changes an immutable field.
TEST_F(ClientTest, WriteUnderALostUidIsAConflict) {
  json status = json::parse(status_json(422, "Invalid", "metadata.uid: Invalid value"));
  status["details"] = {{"causes", {{{"field", "metadata.uid"}}}}};
  transport_.answer(422, status.dump());
  const auto patched = client_.patch<Job>({"team-a", "myload"}, json::object(), {.uid = "old"});
  EXPECT_EQ(patched.error().code, Code::kConflict);
}

// Everything in the body. A grace period of 0 is sent, not left out.
TEST_F(ClientTest, DeleteSendsPreconditionsGraceAndPropagation) {
  transport_.answer(200, "{}");
  ASSERT_TRUE(client_
                  .remove<Pod>({"team-a", "p-0"}, {.uid = "u",
                                                   .resource_version = "7",
                                                   .grace_period = seconds{0},
                                                   .propagation = Propagation::kForeground,
                                                   .dry_run = true})
                  .ok());
  const Request request = transport_.last_request();
  EXPECT_EQ(request.path, "/api/v1/namespaces/team-a/pods/p-0");
  EXPECT_EQ(json::parse(request.body), json::parse(R"({
    "apiVersion": "v1", "kind": "DeleteOptions", "gracePeriodSeconds": 0,
    "propagationPolicy": "Foreground", "dryRun": ["All"],
    "preconditions": {"uid": "u", "resourceVersion": "7"}})"));
}

// One object that this version cannot read must not hide all others. The continue token is opaque
// and may need escaping.
TEST_F(ClientTest, ListReadsAllPagesAndSetsApartWhatDoesNotDecode) {
  const json bad{{"metadata", {{"name", "bad"}, {"namespace", "team-a"}, {"resourceVersion", "3"}}},
                 {"spec", {{"resources", {{"tasks", "six"}}}}}};
  transport_.answer(200, json{{"metadata", {{"resourceVersion", "9"}, {"continue", "t&1"}}},
                              {"items", {job_json("a"), bad}}}
                             .dump());
  transport_.answer(
      200, json{{"metadata", {{"resourceVersion", "9"}}}, {"items", {job_json("b")}}}.dump());
  const auto list = client_.list<Job>({.label_selector = "a=b", .page_items_max = 2});
  ASSERT_TRUE(list.ok()) << list.error().message;
  EXPECT_EQ(list->resource_version, "9");
  ASSERT_EQ(list->items.size(), 2U);
  EXPECT_EQ(list->items[1].metadata.name, "b");
  ASSERT_EQ(list->undecodable.size(), 1U);
  EXPECT_EQ(list->undecodable[0].key, (ObjectKey{"team-a", "bad"}));
  EXPECT_EQ(list->undecodable[0].error.message,
            "Job team-a/bad: spec.resources.tasks: want an integer, got \"six\"");
  EXPECT_EQ(transport_.requests()[0].path,
            "/apis/kubegang.io/v1alpha1/jobs?limit=2&labelSelector=a%3Db");
  EXPECT_EQ(transport_.requests()[1].path,
            "/apis/kubegang.io/v1alpha1/jobs?limit=2&continue=t%261&labelSelector=a%3Db");
}

// The first page of the old list is dropped: pages of two versions do not make a list.
TEST_F(ClientTest, ListBeginsAgainWhenTheServerForgotIt) {
  transport_.answer(200, json{{"metadata", {{"resourceVersion", "9"}, {"continue", "t"}}},
                              {"items", {job_json("old")}}}
                             .dump());
  transport_.answer(410, status_json(410, "Expired", "the list is too old"));
  transport_.answer(
      200, json{{"metadata", {{"resourceVersion", "20"}}}, {"items", {job_json("new")}}}.dump());
  const auto list = client_.list<Job>();
  ASSERT_TRUE(list.ok()) << list.error().message;
  ASSERT_EQ(list->items.size(), 1U);
  EXPECT_EQ(list->items[0].metadata.name, "new");
  EXPECT_EQ(list->resource_version, "20");
}

// Waiting moves the clock, so the time that has passed is the time that was waited.
TEST_F(ClientTest, RequestsAreSpacedAfterTheBurst) {
  Client client{transport_, clock_, sleeper_, {.rate = {.per_second = 10, .burst = 2}}};
  transport_.set_handler([](const Request&) {
    return Response{200, {}, job_json("myload").dump()};
  });
  const base::Duration began = clock_.monotonic();
  for (int i = 0; i < 12; ++i) ASSERT_TRUE(client.get<Job>({"team-a", "myload"}).ok());
  // Two at once, ten more at ten per second.
  EXPECT_EQ(clock_.monotonic() - began, seconds{1});
}

// A program that ends must no longer write: its successor may lead by then.
TEST_F(ClientTest, StoppedClientSendsNothing) {
  client_.request_stop();
  EXPECT_EQ(client_.get<Job>({"team-a", "myload"}).error().code, Code::kCancelled);
  EXPECT_TRUE(transport_.requests().empty());
}

// A Status with code 200, or the page of a proxy.
TEST_F(ClientTest, AnswerThatIsNotTheKindIsAnError) {
  transport_.answer(200, R"({"kind": "Status"})");
  EXPECT_EQ(client_.get<Job>({"team-a", "x"}).error().message,
            "get Job team-a/x: the answer: Job without a name: kind is \"Status\"");
  transport_.answer(200, "<html>");
  EXPECT_EQ(client_.get<Job>({"team-a", "x"}).error().message,
            "get Job team-a/x: the answer is not JSON");
}

// The event of an unknown type is skipped; the error's own code (410) is returned, not that of the
// stream, which was 200. A Status is not read by the fields of a Job.
TEST_F(ClientTest, WatchDeliversEventsAndEndsWithTheServersError) {
  const KnownFields* const all = nullptr;
  for (const KnownFields* fields : {all, &known_fields<Job>()}) {
    transport_.enqueue_stream(
        {.lines = {
             json{{"type", "ADDED"}, {"object", job_json("a")}}.dump(),
             json{{"type", "FUTURE"}, {"object", job_json("b")}}.dump(),
             json{{"type", "ERROR"},
                  {"object", json::parse(status_json(410, "Expired", "too old"))}}
                 .dump()}});
    int events_count = 0;
    const auto ended = client_.watch_json(
        Job::kResource,
          {.field_selector = "metadata.name=a", .resource_version = "7", .fields = fields},
        [&](WatchEventType, const JsonView&) {
          ++events_count;
          return true;
        },
        {});
    EXPECT_EQ(events_count, 1);
    ASSERT_FALSE(ended.ok());
    EXPECT_EQ(ended.error(), (base::Error{Code::kGone, "watch Job: too old"}));
    EXPECT_EQ(transport_.last_request().path,
              "/apis/kubegang.io/v1alpha1/jobs?watch=true&allowWatchBookmarks=true&"
              "resourceVersion=7&fieldSelector=metadata.name%3Da&timeoutSeconds=300");
  }
}

}  // namespace
}  // namespace kube
