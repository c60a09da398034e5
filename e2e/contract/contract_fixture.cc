#include "e2e/contract/contract_fixture.h"

#include <chrono>
#include <condition_variable>
#include <mutex>

namespace contract {
namespace {

constexpr const char* kCrds = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

// Returns a kind of the tests' own, with a field for each feature of schemas that kubegang's own
// kinds use; the tests' bounds and sentences are about these.
json widget_crd() {
  const json text = {{"type", "string"}};
  const json schema = {
      {"type", "object"},
      {"description", "A test kind."},
      {"required", {"spec"}},
      {"properties",
       {{"spec",
         {{"type", "object"},
          {"description", "What is wanted."},
          {"required", {"size"}},
          {"properties",
           {{"size", {{"type", "integer"}, {"format", "int32"}, {"minimum", 1}, {"maximum", 10}}},
            {"color", {{"type", "string"}, {"enum", {"Red", "Green"}}, {"default", "Red"}}},
            {"label",
             {{"type", "string"}, {"minLength", 2}, {"maxLength", 5}, {"pattern", "^[a-z]+$"}}},
            {"flag", {{"type", "boolean"}}},
            {"ratio", {{"type", "number"}, {"nullable", true}}},
            {"amount", {{"x-kubernetes-int-or-string", true}}},
            {"when", {{"type", "string"}, {"format", "date-time"}}},
            {"open", {{"type", "object"}, {"x-kubernetes-preserve-unknown-fields", true}}},
            {"map", {{"type", "object"}, {"additionalProperties", text}, {"maxProperties", 2}}},
            {"list", {{"type", "array"}, {"minItems", 1}, {"maxItems", 2}, {"items", text}}},
            {"set", {{"type", "array"}, {"x-kubernetes-list-type", "set"}, {"items", text}}},
            {"parts",
             {{"type", "array"},
              {"x-kubernetes-list-type", "map"},
              {"x-kubernetes-list-map-keys", {"name"}},
              {"items",
               {{"type", "object"},
                {"required", {"name"}},
                {"properties", {{"name", text}, {"value", text}}}}}}}}}}},
        {"status",
         {{"type", "object"},
          {"properties", {{"phase", text}, {"count", {{"type", "integer"}}}}}}}}}};
  // For tables: a number, an absent value, a wide column with a filter in its path, and an age.
  const json columns = {
      {{"name", "Size"}, {"type", "integer"}, {"jsonPath", ".spec.size"}},
      {{"name", "Phase"}, {"type", "string"}, {"jsonPath", ".status.phase"}},
      {{"name", "Wide"},
       {"type", "string"},
       {"priority", 1},
       {"jsonPath", ".spec.parts[?(@.name==\"b\")].value"}},
      {{"name", "Age"}, {"type", "date"}, {"jsonPath", ".metadata.creationTimestamp"}}};
  return {{"apiVersion", "apiextensions.k8s.io/v1"},
          {"kind", "CustomResourceDefinition"},
          {"metadata", {{"name", "widgets.contract.kubegang.io"}}},
          {"spec",
           {{"group", "contract.kubegang.io"},
            {"scope", "Namespaced"},
            {"names",
             {{"kind", "Widget"},
              {"plural", "widgets"},
              {"singular", "widget"},
              {"shortNames", {"wd"}},
              {"categories", {"contract"}}}},
            {"versions",
             {{{"name", "v1"},
               {"served", true},
               {"storage", true},
               {"subresources", {{"status", json::object()}}},
               {"additionalPrinterColumns", columns},
               {"schema", {{"openAPIV3Schema", schema}}}}}}}}};
}

}  // namespace

// A namespace of its own for each test: a real server is shared with other tests and with what was
// there before.
void ApiServerContract::SetUp() {
  auto server = start_server(GetParam());
  if (!server.ok() && server.error().code == base::Code::kNotFound) {
    GTEST_SKIP() << server.error().message;
  }
  ASSERT_TRUE(server.ok()) << server.error().message;
  server_ = std::move(*server);
  const Reply created = post(
      "/api/v1/namespaces",
      {{"apiVersion", "v1"}, {"kind", "Namespace"}, {"metadata", {{"generateName", "contract-"}}}});
  ASSERT_EQ(created.status, 201) << created.body;
  ns_ = name_of(created.body);
  const Reply crd = post(kCrds, widget_crd());
  // All tests share the definition, which is never changed.
  ASSERT_TRUE(crd.status == 201 || crd.status == 409) << crd.body;
  // A real server serves a new kind a moment after the definition; 409 is the definition that an
  // earlier test left.
  ASSERT_TRUE(eventually([&] { return get(widgets()).status == 200; }));
  // A real server refuses pods until the namespace's service account exists.
  ASSERT_TRUE(!is_real() ||
              eventually([&] { return get(core("serviceaccounts", "default")).status == 200; }));
}

// On our own servers the namespace goes with the server.
void ApiServerContract::TearDown() {
  if (server_ && is_real()) remove("/api/v1/namespaces/" + ns_);
}

// Only a failure of the transport fails the test; refusals are for the caller to look at.
Reply ApiServerContract::raw(kube::Method method, const std::string& path, const std::string& body,
                             const CallOptions& options) {
  kube::Request request;
  request.method = method;
  request.path = path;
  request.body = body;
  request.content_type = options.content_type;
  request.accept = options.accept;
  const auto response = server_->transport().send(request);
  if (!response.ok()) {
    ADD_FAILURE() << path << ": " << response.error().message;
    return {};
  }
  // An answer that is not JSON becomes a discarded value, in which no test finds what it looks for.
  return {response->status, json::parse(response->body, nullptr, false), response->headers};
}

// Without a body if it is null.
Reply ApiServerContract::call(kube::Method method, const std::string& path, const json& body,
                              const CallOptions& options) {
  return raw(method, path, body.is_null() ? "" : body.dump(), options);
}

Reply ApiServerContract::merge_patch(const std::string& path, const json& body) {
  return call(kube::Method::kPatch, path, body, {.content_type = "application/merge-patch+json"});
}

Reply ApiServerContract::json_patch(const std::string& path, const json& body) {
  return call(kube::Method::kPatch, path, body, {.content_type = "application/json-patch+json"});
}

// Ends when `enough` says so, or after 10 s, with the events seen so far: the test's comparison
// then shows what is missing.
std::vector<json> ApiServerContract::watch(
    const std::string& path, const std::function<bool(const std::vector<json>&)>& enough) {
  std::vector<json> events;
  kube::Request request;
  request.path = path;
  request.timeout = std::chrono::seconds{10};
  const base::Status status =
      server_->transport().stream(request,
                                  [&](std::string_view line) {
                                    events.push_back(json::parse(line, nullptr, false));
                                    return !enough(events);
                                  },
                                  {});
  EXPECT_TRUE(status.ok()) << path << ": " << status.error().message;
  return events;
}

// For tests that know how many events must come.
std::vector<json> ApiServerContract::watch_count(const std::string& path, std::size_t count) {
  return watch(path, [count](const std::vector<json>& events) { return events.size() >= count; });
}

// Waits until `done()`, up to 90 s on a real server and 10 s on the tests' own; returns false if it
// does not come true.
bool ApiServerContract::eventually(const std::function<bool()>& done) {
  // A real collector of garbage looks for new kinds every 30 s.
  const auto give_up = std::chrono::steady_clock::now() + std::chrono::seconds{is_real() ? 90 : 10};
  std::mutex mu;
  // It is never notified: it is a sleep.
  std::condition_variable never;
  std::unique_lock lock{mu};
  while (!done()) {
    if (std::chrono::steady_clock::now() > give_up) return false;
    never.wait_for(lock, std::chrono::milliseconds{20});
  }
  return true;
}

std::string ApiServerContract::widgets(const std::string& name) const {
  return "/apis/contract.kubegang.io/v1/namespaces/" + ns_ + "/widgets" +
         (name.empty() ? "" : "/" + name);
}

std::string ApiServerContract::core(const std::string& resource, const std::string& name) const {
  return "/api/v1/namespaces/" + ns_ + "/" + resource + (name.empty() ? "" : "/" + name);
}

// With size 1 unless the test says otherwise.
json ApiServerContract::widget(const std::string& name, const json& spec) const {
  return {{"apiVersion", "contract.kubegang.io/v1"},
          {"kind", "Widget"},
          {"metadata", {{"name", name}}},
          {"spec", spec}};
}

// Returns the simplest object that any server has: no rules of its own, and no status.
json ApiServerContract::config_map(const std::string& name) const {
  return {{"apiVersion", "v1"}, {"kind", "ConfigMap"}, {"metadata", {{"name", name}}}};
}

json ApiServerContract::pod(const std::string& name, const std::string& node) const {
  json object = {{"apiVersion", "v1"},
                 {"kind", "Pod"},
                 {"metadata", {{"name", name}}},
                 {"spec",
                  // So that no volume is added to the pod by a real server.
                  {{"automountServiceAccountToken", false},
                   {"containers", {{{"name", "main"}, {"image", "registry.e2e/none:1"}}}}}}};
  if (!node.empty()) {
    object["spec"]["nodeName"] = node;
  } else {
    // It stays without one, also where there are nodes and a scheduler.
    object["spec"]["nodeSelector"] = {{"contract", "no-such-node"}};
  }
  return object;
}

// Fails the test if the object is refused; post() is for tests about refusals.
json ApiServerContract::create(const std::string& path, const json& object) {
  Reply reply;
  // A real server refuses pods until the namespace's service account exists.
  eventually([&] {
    reply = post(path, object);
    return reply.status != 403;
  });
  EXPECT_EQ(reply.status, 201) << reply.body;
  return reply.body;
}

// Returns where a watch must begin to see all that comes after now.
std::string ApiServerContract::list_rv(const std::string& path) {
  return get(path).body["metadata"]["resourceVersion"];
}

std::string name_of(const json& object) {
  return object["metadata"]["name"];
}
std::string rv_of(const json& object) {
  return object["metadata"]["resourceVersion"];
}

// In the order of the list, which is part of the contract.
std::vector<std::string> names_in(const json& list) {
  std::vector<std::string> names;
  for (const json& item : list["items"]) names.push_back(name_of(item));
  return names;
}

// Returns "ADDED a", one line for each event: what most tests of watches compare.
std::vector<std::string> summary(const std::vector<json>& events) {
  std::vector<std::string> lines;
  for (const json& event : events) {
    lines.push_back(event.value("type", "?") + " " + event["object"]["metadata"].value("name", ""));
  }
  return lines;
}

// The tests stand in several files; they all run against all servers.
INSTANTIATE_TEST_SUITE_P(Servers, ApiServerContract,
                         testing::Values(ServerKind::kInProcess, ServerKind::kHttps,
                                         ServerKind::kReal),
                         [](const testing::TestParamInfo<ServerKind>& server) -> std::string {
                           switch (server.param) {
                             case ServerKind::kInProcess:
                               return "InProcess";
                             case ServerKind::kHttps:
                               return "Https";
                             case ServerKind::kReal:
                               return "Real";
                           }
                           return "";
                         });

}  // namespace contract
