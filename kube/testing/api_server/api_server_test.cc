// The parts that only this server has: its knobs, counters and limits. The behavior that it shares
// with every API server is tested in e2e/contract.
#include "kube/testing/api_server/api_server.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "kube/api/pod.h"
#include "kube/testing/api_server/in_process_transport.h"
#include "kube/testing/manual_clock.h"

namespace devcluster {
namespace {

using nlohmann::json;

constexpr const char* kPods = "/api/v1/namespaces/default/pods";

// Returns a pod with one container; without a node it is not bound.
json pod(const std::string& name, const std::string& node = "") {
  json object = {{"apiVersion", "v1"},
                 {"kind", "Pod"},
                 {"metadata", {{"name", name}}},
                 {"spec", {{"containers", {{{"name", "main"}, {"image", "x"}}}}}}};
  if (!node.empty()) object["spec"]["nodeName"] = node;
  return object;
}

// The server without any network: each call is handled before call() returns, and time stands still
// until a test moves the clock.
class ApiServerTest : public testing::Test {
 protected:
  // Returns the answer, of whatever status. Only a broken connection is a failure of the test.
  kube::Response call(kube::Method method, const std::string& path, const json& body = nullptr,
                      const std::string& content_type = "application/json") {
    kube::Request request;
    request.method = method;
    request.path = path;
    request.content_type = content_type;
    if (!body.is_null()) request.body = body.dump();
    auto response = transport_.send(request);
    EXPECT_TRUE(response.ok());
    return response.ok() ? *response : kube::Response{};
  }
  json get(const std::string& path) {
    return json::parse(call(kube::Method::kGet, path).body, nullptr, false);
  }
  // Returns the lines that a watch has now.
  std::vector<json> drain(const std::shared_ptr<BodyStream>& stream) {
    std::string text;
    while (true) {
      const std::size_t before = text.size();
      last_state_ = stream->read(text, base::Duration{0});
      if (text.size() == before) break;
    }
    std::vector<json> lines;
    std::istringstream input{text};
    for (std::string line; std::getline(input, line);) lines.push_back(json::parse(line));
    return lines;
  }
  // Returns the body of a watch, to be read with drain(). `path` has "watch=true".
  std::shared_ptr<BodyStream> watch(const std::string& path) {
    ApiRequest request;
    request.http.path = path;
    return server_.handle(request).stream;
  }

  kube::ManualClock clock_;
  ApiServer server_{clock_};
  InProcessTransport transport_{server_, "test/1.0"};
  StreamState last_state_ = StreamState::kOpen;
};

// One collection per kind, and each is served and empty. A project's schema that this server could
// not read would make all tests of the operator fail, far away from the cause.
TEST_F(ApiServerTest, ServesTheProjectsCrds) {
  const base::Status status = server_.load_crds(KUBEGANG_SOURCE_DIR "/crds");
  ASSERT_TRUE(status.ok()) << status.error().message;
  for (const char* path : {"partitions", "qos", "accounts", "schedulerconfigs", "nodetimetables",
                           "usagerecords", "jobs"}) {
    EXPECT_EQ(get(std::string{"/apis/kubegang.io/v1alpha1/"} + path)["items"].size(), 0U) << path;
  }
}

// The numbers are the last ones that 32 bits hold, and those after them. succeededCount has no
// other maximum, exitCode no minimum.
TEST_F(ApiServerTest, AFieldOf32BitsHoldsNoMore) {
  ASSERT_TRUE(server_.load_crds(KUBEGANG_SOURCE_DIR "/crds").ok());
  const std::string jobs = "/apis/kubegang.io/v1alpha1/namespaces/default/jobs";
  const auto status_with = [&](std::int64_t count) {
    const json policy = {{"rules", json::array({{{"succeededCount", count}}})}};
    return call(kube::Method::kPost, jobs,
                {{"apiVersion", "kubegang.io/v1alpha1"},
                 {"kind", "Job"},
                 {"metadata", {{"name", "j"}}},
                 {"spec",
                  {{"lifecycle", {{"successPolicy", policy}}},
                   {"template", {{"spec", {{"containers", {{{"name", "m"}}}}}}}}}}})
        .status;
  };
  EXPECT_EQ(status_with(2'147'483'648), 422);
  EXPECT_EQ(status_with(2'147'483'647), 201);
  const auto status_of_exit = [&](std::int64_t code) {
    return call(kube::Method::kPatch, jobs + "/j/status", {{"status", {{"exitCode", code}}}},
                "application/merge-patch+json")
        .status;
  };
  EXPECT_EQ(status_of_exit(-2'147'483'649), 422);
  EXPECT_EQ(status_of_exit(-2'147'483'648), 200);
}

// The unfinished jobs of the cluster are what kubectl and plugins ask for.
TEST_F(ApiServerTest, SelectsJobsByTheirState) {
  ASSERT_TRUE(server_.load_crds(KUBEGANG_SOURCE_DIR "/crds").ok());
  // Two Jobs, one of each state, in the same partition. The selector excludes the finished one; the
  // state is in the status, so the fields are those that the CRD declares as selectable.
  const std::string jobs = "/apis/kubegang.io/v1alpha1/namespaces/default/jobs";
  for (const char* state : {"Running", "Completed"}) {
    const std::string name = state[0] == 'R' ? "runs" : "done";
    ASSERT_EQ(call(kube::Method::kPost, jobs,
                   {{"apiVersion", "kubegang.io/v1alpha1"},
                    {"kind", "Job"},
                    {"metadata", {{"name", name}}},
                    {"spec", {{"template", {{"spec", {{"containers", {{{"name", "m"}}}}}}}}}}})
                  .status,
              201);
    ASSERT_EQ(call(kube::Method::kPatch, jobs + "/" + name + "/status",
                   {{"status", {{"state", state}, {"partition", "batch"}}}},
                   "application/merge-patch+json")
                  .status,
              200);
  }
  const json found =
      get(jobs + "?fieldSelector=status.state!%3DCompleted,status.partition%3Dbatch");
  ASSERT_EQ(found["items"].size(), 1U) << found.dump();
  EXPECT_EQ(found["items"][0]["metadata"]["name"], "runs");
}

// A folder is a person's option of the command line: the sentence must show the text that was
// mistyped.
TEST_F(ApiServerTest, LoadingCrdsNamesTheFolderThatIsMissing) {
  const base::Status status = server_.load_crds("/does/not/exist");
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().code, base::Code::kNotFound);
  EXPECT_NE(status.error().message.find("/does/not/exist"), std::string::npos);
}

// The refused request has done nothing: the pod does not exist, and the second try makes it.
TEST_F(ApiServerTest, FailNextRefusesOnceWithCodeAndRetryAfter) {
  server_.fail_next("create", "pods", 429, 7);
  const kube::Response refused = call(kube::Method::kPost, kPods, pod("a"));
  EXPECT_EQ(refused.status, 429);
  EXPECT_EQ(refused.headers.at("retry-after"), "7");
  EXPECT_EQ(json::parse(refused.body)["reason"], "TooManyRequests");
  EXPECT_EQ(call(kube::Method::kGet, std::string{kPods} + "/a").status, 404);
  EXPECT_EQ(call(kube::Method::kPost, kPods, pod("a")).status, 201);
}

// The hardest case for a client: the pod exists, and the client cannot know. A program that simply
// creates again must expect that the name is taken.
TEST_F(ApiServerTest, ResetAfterDoesTheWorkButGivesNoAnswer) {
  Fault fault;
  fault.kind = Fault::Kind::kResetAfter;
  fault.resource = "pods";
  server_.inject(fault);
  kube::Request request;
  request.method = kube::Method::kPost;
  request.path = kPods;
  request.body = pod("a").dump();
  const auto response = transport_.send(request);
  ASSERT_FALSE(response.ok());
  EXPECT_EQ(response.error().code, base::Code::kUnavailable);
  EXPECT_EQ(call(kube::Method::kGet, std::string{kPods} + "/a").status, 200);
}

// The default time-out is below the minute of the delay.
TEST_F(ApiServerTest, SlowBeyondTheTimeOutIsATimeOut) {
  Fault fault;
  fault.kind = Fault::Kind::kSlow;
  fault.delay = std::chrono::minutes{1};
  server_.inject(fault);
  kube::Request request;
  request.path = "/api/v1/nodes";
  const auto response = transport_.send(request);
  ASSERT_FALSE(response.ok());
  EXPECT_EQ(response.error().code, base::Code::kTimeout);
}

// The store has the change; only the watches miss it. An informer that relies on the watch alone
// would never hear of pod a; only its next list shows it.
TEST_F(ApiServerTest, LostEventIsSeenByNobodyButTheNextOneIs) {
  const auto stream = watch(std::string{kPods} + "?watch=true");
  server_.lose_next_event("pods");
  call(kube::Method::kPost, kPods, pod("a"));
  call(kube::Method::kPost, kPods, pod("b"));
  const std::vector<json> events = drain(stream);
  ASSERT_EQ(events.size(), 1U);
  EXPECT_EQ(events[0]["object"]["metadata"]["name"], "b");
}

// Two ends that a client must tell apart: kEnd is the regular end of a session, kReset a broken
// connection.
TEST_F(ApiServerTest, DroppedWatchEndsAndResetWatchBreaks) {
  auto stream = watch(std::string{kPods} + "?watch=true");
  server_.drop_watches("pods");
  drain(stream);
  EXPECT_EQ(last_state_, StreamState::kEnd);
  stream = watch(std::string{kPods} + "?watch=true");
  server_.reset_watches();
  drain(stream);
  EXPECT_EQ(last_state_, StreamState::kReset);
}

// As with a real server: status 200, and the error as the only event.
TEST_F(ApiServerTest, WatchFromBeforeCompactionGetsGone) {
  const std::string rv = std::to_string(server_.resource_version());
  call(kube::Method::kPost, kPods, pod("a"));
  server_.compact();
  const auto stream = watch(std::string{kPods} + "?watch=true&resourceVersion=" + rv);
  const std::vector<json> events = drain(stream);
  ASSERT_EQ(events.size(), 1U);
  EXPECT_EQ(events[0]["type"], "ERROR");
  EXPECT_EQ(events[0]["object"]["code"], 410);
  EXPECT_EQ(last_state_, StreamState::kEnd);
}

// Pod a is in the backup; since then a has been deleted and b created. Versions go on from above
// all that were ever given: if an old one came a second time, a client would take the objects that
// it holds for the current ones.
TEST_F(ApiServerTest, RestoreBringsTheOldObjectsUnderNewVersions) {
  call(kube::Method::kPost, kPods, pod("a"));
  const auto backup = server_.back_up();
  call(kube::Method::kPost, kPods, pod("b"));
  call(kube::Method::kDelete, std::string{kPods} + "/a?gracePeriodSeconds=0");
  const std::int64_t before = server_.resource_version();
  // A watch that is open meanwhile: its server has gone.
  const auto stream = watch(std::string{kPods} + "?watch=true");
  drain(stream);
  server_.restore(*backup);
  drain(stream);
  EXPECT_EQ(last_state_, StreamState::kReset);
  EXPECT_GT(server_.resource_version(), before);
  const json list = get(kPods);
  ASSERT_EQ(list["items"].size(), 1U);
  EXPECT_EQ(list["items"][0]["metadata"]["name"], "a");
  // A client that resumes hears that it is gone.
  const auto resumed =
      watch(std::string{kPods} + "?watch=true&resourceVersion=" + std::to_string(before));
  const std::vector<json> events = drain(resumed);
  ASSERT_EQ(events.size(), 1U);
  EXPECT_EQ(events[0]["object"]["code"], 410);
}

// A bookmark is due each 60 s, and this watch ends after 90 s; both by the manual clock, so that a
// test of a watch of an hour takes no hour.
TEST_F(ApiServerTest, BookmarksAndTimeOutFollowTheClock) {
  const auto stream =
      watch(std::string{kPods} + "?watch=true&allowWatchBookmarks=true&timeoutSeconds=90");
  EXPECT_TRUE(drain(stream).empty());
  // A change of another resource: the bookmark carries its version, so that a resumed watch need
  // not go through it.
  call(kube::Method::kPost, "/api/v1/namespaces/default/configmaps",
       {{"apiVersion", "v1"}, {"kind", "ConfigMap"}, {"metadata", {{"name", "other"}}}});
  clock_.advance(std::chrono::seconds{61});
  const std::vector<json> events = drain(stream);
  ASSERT_EQ(events.size(), 1U);
  EXPECT_EQ(events[0]["type"], "BOOKMARK");
  EXPECT_EQ(events[0]["object"]["metadata"]["resourceVersion"],
            std::to_string(server_.resource_version()));
  clock_.advance(std::chrono::seconds{30});
  drain(stream);
  EXPECT_EQ(last_state_, StreamState::kEnd);
}

// Goal: a benchmark can say what each program asks of the server. Two groups have a kind "jobs", so
// the group is part of the key; the version of the user agent is not, and a subresource is told
// apart from its object.
TEST_F(ApiServerTest, CountsRequestsByVerbResourceAndUserAgent) {
  call(kube::Method::kPost, kPods, pod("a"));
  call(kube::Method::kPatch, std::string{kPods} + "/a/status", {{"status", {{"phase", "Running"}}}},
       "application/merge-patch+json");
  call(kube::Method::kGet, "/api/v1/pods");
  call(kube::Method::kGet, "/apis/batch/v1/jobs");
  const auto counts = server_.request_counts();
  EXPECT_EQ(counts.at({"list", "jobs", "", "test", "batch"}), 1);
  EXPECT_EQ(counts.at({"create", "pods", "", "test"}), 1);
  EXPECT_EQ(counts.at({"patch", "pods", "status", "test"}), 1);
  EXPECT_EQ(counts.at({"list", "pods", "", "test"}), 1);
  EXPECT_EQ(server_.writes_since(clock_.wall()).size(), 2U);
  EXPECT_TRUE(server_.writes_since(clock_.wall() + std::chrono::seconds{1}).empty());
}

// A process that is not a C++ test reaches the knobs in this way. One fault is used up by one
// request. A mistyped key is refused, or a test would pass without the failure that it is about.
TEST_F(ApiServerTest, KnobsWorkOverTheDebugPaths) {
  EXPECT_EQ(call(kube::Method::kPost, "/debug/faults",
                 {{"kind", "Status"}, {"resource", "nodes"}, {"code", 503}})
                .status,
            200);
  EXPECT_EQ(call(kube::Method::kGet, "/api/v1/nodes").status, 503);
  EXPECT_EQ(call(kube::Method::kGet, "/api/v1/nodes").status, 200);
  const kube::Response refused =
      call(kube::Method::kPost, "/debug/faults", {{"kind", "Status"}, {"ressource", "nodes"}});
  EXPECT_EQ(refused.status, 400);
  EXPECT_NE(refused.body.find("unknown key ressource"), std::string::npos);
  EXPECT_EQ(get("/debug/requests")["counts"].size(), 2U);  // list nodes, create /debug/faults
}

// Every path of the value, the value itself first.
void paths_of(const json& value, const json::json_pointer& at,
              std::vector<json::json_pointer>& all) {
  all.push_back(at);
  if (!value.is_structured()) return;
  for (const auto& [key, child] : value.items()) paths_of(child, at / key, all);
}

json parse_json(const char* text) {
  return json::parse(text);
}

// An object named "p", and the collection that it is posted to.
struct Sample {
  std::string collection;
  json object;
};

// Returns objects of several kinds, with fields of every type: texts, numbers, maps, lists of
// objects. The server has rules of its own for pods, nodes and namespaces; CRDs bring their own.
std::vector<Sample> samples() {
  return {
      {kPods, parse_json(R"({"apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": "p", "generateName": "p-", "namespace": "default",
          "labels": {"a": "b"}, "annotations": {"c": "d"}, "finalizers": ["x.io/y"],
          "ownerReferences": [{"apiVersion": "v1", "kind": "Node", "name": "n", "uid": "u",
                               "controller": true}]},
        "spec": {"nodeName": "n1", "restartPolicy": "Never", "terminationGracePeriodSeconds": 3,
          "containers": [{"name": "main", "image": "x", "command": ["a"], "env": [{"name": "A"}],
                          "resources": {"requests": {"cpu": "1"}, "limits": {"cpu": "1"}}}],
          "initContainers": [{"name": "init", "image": "x"}], "tolerations": [{"key": "k"}]},
        "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}],
          "containerStatuses": [{"name": "main", "ready": true, "restartCount": 1,
            "state": {"terminated": {"exitCode": 1, "reason": "Error"}}}],
          "initContainerStatuses": [{"state": {"waiting": {"reason": "X"}}}]}})")},
      {"/api/v1/nodes", parse_json(R"({"apiVersion": "v1", "kind": "Node",
        "metadata": {"name": "p", "labels": {"node-role.kubernetes.io/x": ""}},
        "spec": {"taints": [{"key": "k", "effect": "NoSchedule"}], "unschedulable": true},
        "status": {"capacity": {"cpu": "1"}, "conditions": [{"type": "Ready", "status": "True"}],
          "addresses": [{"type": "InternalIP", "address": "1.2.3.4"}],
          "nodeInfo": {"kubeletVersion": "v1"}}})")},
      {"/api/v1/namespaces/default/services", parse_json(R"({"apiVersion": "v1", "kind": "Service",
        "metadata": {"name": "p"}, "spec": {"type": "ClusterIP", "clusterIP": "None",
          "selector": {"a": "b"}, "ports": [{"port": 80, "protocol": "TCP"}]}})")},
      {"/api/v1/namespaces/default/events", parse_json(R"({"apiVersion": "v1", "kind": "Event",
        "metadata": {"name": "p"}, "reason": "R", "message": "m", "type": "Normal", "count": 2,
        "involvedObject": {"kind": "Pod", "namespace": "default", "name": "n"},
        "firstTimestamp": "2026-01-01T00:00:00Z", "source": {"component": "c"}})")},
      {"/apis/coordination.k8s.io/v1/namespaces/default/leases",
       parse_json(R"({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
        "metadata": {"name": "p"}, "spec": {"holderIdentity": "h", "leaseDurationSeconds": 3}})")},
      {"/api/v1/namespaces/default/configmaps", parse_json(R"({"apiVersion": "v1",
        "kind": "ConfigMap", "metadata": {"name": "p"}, "data": {"a": "b"}})")},
      {"/api/v1/namespaces", parse_json(R"({"apiVersion": "v1", "kind": "Namespace",
        "metadata": {"name": "p"}, "spec": {}, "status": {"phase": "Active"}})")},
      {"/apis/kubegang.io/v1alpha1/namespaces/default/jobs",
       parse_json(R"({"apiVersion": "kubegang.io/v1alpha1", "kind": "Job",
        "metadata": {"name": "p", "labels": {"a": "b"}},
        "spec": {"resources": {"tasks": 2}, "partitions": ["a"], "template": {"spec": {"containers":
          [{"name": "main", "image": "x"}]}}}})")},
      {"/apis/kubegang.io/v1alpha1/nodetimetables",
       parse_json(R"({"apiVersion": "kubegang.io/v1alpha1", "kind": "NodeTimetable",
        "metadata": {"name": "p"}, "spec": {"term": 1, "revision": 2, "slice": "1s",
          "pods": [{"namespace": "default", "name": "x", "jobUID": "u", "row": "Active"}],
          "plan": [{"until": "2026-01-01T00:00:00Z", "run": [0]}], "cycle": [[0]]}})")},
  };
}

// A value of another type anywhere is refused or ignored; it never stays behind to break later
// calls. Each field of each sample is replaced by each of eleven values, and the result goes
// through all verbs. A value that is stored must not break the table and the list that come after
// it. The finalizers go before the deletion, so that the next round begins without the object.
TEST_F(ApiServerTest, WrongTypesAnywhereAreTheClientsError) {
  ASSERT_TRUE(server_.load_crds(KUBEGANG_SOURCE_DIR "/crds").ok());
  const std::vector<json> wrong = {nullptr,
                                   5,
                                   -0.5,
                                   "x",
                                   "",
                                   true,
                                   json::array(),
                                   json::object(),
                                   json::array({1}),
                                   json::array({nullptr}),
                                   {{"a", 1}}};
  for (const Sample& sample : samples()) {
    const std::string path = sample.collection + "/p";
    std::vector<json::json_pointer> paths;
    paths_of(sample.object, json::json_pointer{}, paths);
    for (const json::json_pointer& at : paths) {
      for (const json& value : wrong) {
        json object = sample.object;
        object[at] = value;
        const auto fine = [&](const kube::Response& response, const char* verb) {
          EXPECT_LT(response.status, 500)
              << verb << " " << path << " " << at << " = " << value << "\n"
              << response.body;
        };
        fine(call(kube::Method::kPost, sample.collection, object), "create");
        fine(call(kube::Method::kPost, sample.collection, sample.object), "create");
        fine(call(kube::Method::kPatch, path, object, "application/merge-patch+json"), "patch");
        fine(call(kube::Method::kPatch, path + "/status", object, "application/merge-patch+json"),
             "patch status");
        fine(call(kube::Method::kPut, path, object), "update");
        kube::Request table;
        table.path = sample.collection + "?fieldSelector=spec.nodeName%3Dn1";
        table.accept = "application/json;as=Table;g=meta.k8s.io;v=v1";
        const auto listed = transport_.send(table);
        ASSERT_TRUE(listed.ok());
        fine(*listed, "table");
        table.path = sample.collection;
        fine(*transport_.send(table), "table");
        fine(call(kube::Method::kPatch, path, {{"metadata", {{"finalizers", nullptr}}}},
                  "application/merge-patch+json"),
             "release");
        fine(call(kube::Method::kDelete, path + "?gracePeriodSeconds=0"), "delete");
        // The first failure ends it: all later ones would follow from it, thousands of them.
        ASSERT_FALSE(testing::Test::HasFailure());
      }
    }
  }
}

// A recursive parser needs a part of the stack for each of the 100,000 levels, and would end the
// whole process, which has other tests to run.
TEST_F(ApiServerTest, DeepNestingIsRefused) {
  std::string deep = R"({"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"p"},"data":)";
  deep += std::string(100'000, '[') + std::string(100'000, ']') + "}";
  kube::Request request;
  request.method = kube::Method::kPost;
  request.path = "/api/v1/namespaces/default/configmaps";
  request.content_type = "application/json";
  request.body = deep;
  const auto response = transport_.send(request);
  ASSERT_TRUE(response.ok());
  EXPECT_EQ(response->status, 400);
  EXPECT_NE(response->body.find("nested"), std::string::npos);
}

// As large as a real server's; stored objects have none.
TEST(ManagedFields, ComeWithAnswersIfAskedFor) {
  kube::ManualClock clock;
  ApiServer server{clock, {.managed_fields = true}};
  InProcessTransport transport{server};
  kube::Request request{.method = kube::Method::kPost, .path = kPods, .body = pod("a").dump()};
  const auto made = transport.send(request);
  ASSERT_TRUE(made.ok());
  const json entries = json::parse(made->body)["metadata"]["managedFields"];
  ASSERT_EQ(entries.size(), 2U) << entries.dump();
  const json& spec = entries[0]["fieldsV1"]["f:spec"]["f:containers"];
  EXPECT_TRUE(spec["k:{\"name\":\"main\"}"].contains("f:image")) << spec.dump();
  EXPECT_EQ(entries[1]["subresource"], "status");
  for (const auto& stored : server.objects(kube::Pod::kResource)) {
    EXPECT_FALSE((*stored)["metadata"].contains("managedFields"));
  }
}

}  // namespace
}  // namespace devcluster
