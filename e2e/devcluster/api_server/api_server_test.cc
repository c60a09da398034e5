// What only this server has: its knobs, counters and limits. What it shares with every API server
// is in e2e/contract.
#include "e2e/devcluster/api_server/api_server.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "e2e/devcluster/api_server/in_process_transport.h"
#include "kube/testing/manual_clock.h"

namespace devcluster {
namespace {

using nlohmann::json;

constexpr const char* kPods = "/api/v1/namespaces/default/pods";

json pod(const std::string& name, const std::string& node = "") {
  json object = {{"apiVersion", "v1"},
                 {"kind", "Pod"},
                 {"metadata", {{"name", name}}},
                 {"spec", {{"containers", {{{"name", "main"}, {"image", "x"}}}}}}};
  if (!node.empty()) object["spec"]["nodeName"] = node;
  return object;
}

class ApiServerTest : public testing::Test {
 protected:
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
  // The lines that a watch has now.
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

TEST_F(ApiServerTest, ServesTheProjectsCrds) {
  const base::Status status = server_.load_crds(KUBEGANG_SOURCE_DIR "/crds");
  ASSERT_TRUE(status.ok()) << status.error().message;
  for (const char* path : {"partitions", "qos", "schedulerconfigs", "nodetimetables", "jobs"}) {
    EXPECT_EQ(get(std::string{"/apis/kubegang.io/v1alpha1/"} + path)["items"].size(), 0U) << path;
  }
}

TEST_F(ApiServerTest, LoadingCrdsNamesTheFolderThatIsMissing) {
  const base::Status status = server_.load_crds("/does/not/exist");
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().code, base::Code::kNotFound);
  EXPECT_NE(status.error().message.find("/does/not/exist"), std::string::npos);
}

TEST_F(ApiServerTest, FailNextRefusesOnceWithCodeAndRetryAfter) {
  server_.fail_next("create", "pods", 429, 7);
  const kube::Response refused = call(kube::Method::kPost, kPods, pod("a"));
  EXPECT_EQ(refused.status, 429);
  EXPECT_EQ(refused.headers.at("retry-after"), "7");
  EXPECT_EQ(json::parse(refused.body)["reason"], "TooManyRequests");
  EXPECT_EQ(call(kube::Method::kGet, std::string{kPods} + "/a").status, 404);
  EXPECT_EQ(call(kube::Method::kPost, kPods, pod("a")).status, 201);
}

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

TEST_F(ApiServerTest, LostEventIsSeenByNobodyButTheNextOneIs) {
  const auto stream = watch(std::string{kPods} + "?watch=true");
  server_.lose_next_event("pods");
  call(kube::Method::kPost, kPods, pod("a"));
  call(kube::Method::kPost, kPods, pod("b"));
  const std::vector<json> events = drain(stream);
  ASSERT_EQ(events.size(), 1U);
  EXPECT_EQ(events[0]["object"]["metadata"]["name"], "b");
}

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

TEST_F(ApiServerTest, BookmarksAndTimeOutFollowTheClock) {
  const auto stream =
      watch(std::string{kPods} + "?watch=true&allowWatchBookmarks=true&timeoutSeconds=90");
  EXPECT_TRUE(drain(stream).empty());
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

TEST_F(ApiServerTest, CountsRequestsByVerbResourceSubresourceAndUserAgent) {
  call(kube::Method::kPost, kPods, pod("a"));
  call(kube::Method::kPatch, std::string{kPods} + "/a/status", {{"status", {{"phase", "Running"}}}},
       "application/merge-patch+json");
  call(kube::Method::kGet, "/api/v1/pods");
  const auto counts = server_.request_counts();
  EXPECT_EQ(counts.at({"create", "pods", "", "test"}), 1);
  EXPECT_EQ(counts.at({"patch", "pods", "status", "test"}), 1);
  EXPECT_EQ(counts.at({"list", "pods", "", "test"}), 1);
  EXPECT_EQ(server_.writes_since(clock_.wall()).size(), 2U);
  EXPECT_TRUE(server_.writes_since(clock_.wall() + std::chrono::seconds{1}).empty());
}

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

}  // namespace
}  // namespace devcluster
