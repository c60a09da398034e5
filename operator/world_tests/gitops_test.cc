// Tests how tools that wait for objects of any kind judge kubegang's: kstatus (Flux, Helm 4, kpt),
// whose rules are repeated here, and Argo CD, whose scripts of docs/argocd-health.yaml run in Lua.
#include <gtest/gtest.h>
#include <unistd.h>
#include <yaml-cpp/yaml.h>

#include <array>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "operator/testing/world.h"

namespace control {
namespace {

using nlohmann::json;
using std::chrono::minutes;
using std::chrono::seconds;

// SOURCE: sigs.k8s.io/cli-utils, pkg/kstatus/status: GetStatus() for kinds that it does not know.
std::string kstatus(const json& object) {
  if (object["metadata"].contains("deletionTimestamp")) return "Terminating";
  const json status = object.value("status", json::object());
  if (status.contains("observedGeneration") &&
      status["observedGeneration"] != object["metadata"]["generation"]) {
    return "InProgress";
  }
  const json conditions = status.value("conditions", json::array());
  for (const json& condition : conditions) {
    if (condition["status"] != "True") continue;
    if (condition["type"] == "Reconciling") return "InProgress";
    if (condition["type"] == "Stalled") return "Failed";
  }
  for (const json& condition : conditions) {
    if (condition["type"] == "Ready" && condition["status"] != "True") return "InProgress";
  }
  return "Current";
}

std::string lua_literal(const json& value) {
  if (value.is_object()) {
    std::string text = "{";
    for (const auto& [key, each] : value.items()) {
      text += "[" + json(key).dump() + "]=" + lua_literal(each) + ",";
    }
    return text + "}";
  }
  if (value.is_array()) {
    std::string text = "{";
    for (const json& each : value) text += lua_literal(each) + ",";
    return text + "}";
  }
  // Strings without control characters, numbers and booleans are the same in both languages.
  return value.is_null() ? "nil" : value.dump();
}

std::string output_of(const std::string& command) {
  std::string out;
  std::FILE* pipe = ::popen(command.c_str(), "r");
  if (pipe == nullptr) return "";
  std::array<char, 256> buffer{};
  while (std::fgets(buffer.data(), buffer.size(), pipe) != nullptr) out += buffer.data();
  ::pclose(pipe);
  return out;
}

bool has_lua() {
  return output_of("command -v lua5.4") != "";
}

// Runs the script of the object's kind as Argo CD does: `obj` is the object, and the result has a
// status.
std::string argo_health(const json& object) {
  static const YAML::Node kScripts = YAML::LoadFile(KUBEGANG_SOURCE_DIR "/docs/argocd-health.yaml");
  const std::string kind = object["kind"];
  const auto script =
      kScripts["data"]["resource.customizations.health.kubegang.io_" + kind].as<std::string>();
  const std::filesystem::path path = std::filesystem::temp_directory_path() /
                                     ("kubegang-health-" + std::to_string(::getpid()) + ".lua");
  std::ofstream{path} << "local function health(obj)\n"
                      << script << "end\nio.write(health(" << lua_literal(object) << ").status)\n";
  std::string health = output_of("lua5.4 " + path.string() + " 2>&1");
  std::filesystem::remove(path);
  return health;
}

class GitOpsTest : public testing::Test {
 protected:
  GitOpsTest() {
    world_.apply(linear_config());
    world_.apply(partition("batch", force()));
    world_.run_for(seconds{2});
  }

  // Returns "Current Healthy". Without an interpreter the first word alone.
  std::string read(const json& object) const {
    return has_lua_ ? kstatus(object) + " " + argo_health(object) : kstatus(object);
  }
  std::string said(const std::string& current, const std::string& healthy) const {
    return has_lua_ ? current + " " + healthy : current;
  }
  std::string job(const std::string& name) { return read(kube::encode(world_.job(name))); }
  std::string partition_says() {
    const auto object = world_.client().get<kube::Partition>({"", "batch"});
    return object.ok() ? read(kube::encode(*object)) : object.error().message;
  }

  const bool has_lua_ = has_lua();
  World world_{{}};
};

TEST_F(GitOpsTest, LuaIsThere) {
  if (!has_lua_) GTEST_SKIP() << "lua5.4 is not installed: scripts for Argo CD are not tried";
}

TEST_F(GitOpsTest, AJobIsInProgressUntilItRunsAndCurrentWhenItHasCompleted) {
  world_.apply(gang_job("held", 1, "5s", {{"control", {{"hold", true}}}}));
  world_.apply(gang_job("one", 2, "20s"));
  world_.run_for(seconds{1});
  EXPECT_EQ(job("held"), said("InProgress", "Progressing")) << world_.job("held").status.reason;
  EXPECT_EQ(job("one"), said("InProgress", "Progressing")) << "its pods start";
  world_.run_for(seconds{10});
  EXPECT_EQ(job("one"), said("Current", "Healthy"));
  ASSERT_TRUE(world_.run_until([&] { return world_.state("one") == "Completed"; }, minutes{1}));
  EXPECT_EQ(job("one"), said("Current", "Healthy"));
}

TEST_F(GitOpsTest, AJobThatFailsOrIsCanceledHasFailed) {
  world_.apply(gang_job("bad", 1, "5s", nullptr, {{"test/exit-code", "3"}}));
  world_.apply(gang_job("gone", 1, "10m"));
  world_.run_for(seconds{20});
  world_.patch_job("gone", {{"control", {{"cancel", true}}}});
  ASSERT_TRUE(world_.run_until(
      [&] { return world_.state("bad") == "Failed" && world_.state("gone") == "Cancelled"; },
      minutes{1}));
  EXPECT_EQ(job("bad"), said("Failed", "Degraded"));
  EXPECT_EQ(job("gone"), said("Failed", "Degraded"));
}

// A refused job that is mended goes on as any other; so does one whose change was refused, and its
// completion counts for more than the refusal.
TEST_F(GitOpsTest, ARefusedJobHasFailedUntilItIsMended) {
  world_.apply(gang_job("wrong", 1, "20s", {{"partitions", {"nowhere"}}}));
  world_.run_for(seconds{1});
  EXPECT_EQ(job("wrong"), said("Failed", "Degraded"));
  world_.patch_job("wrong", {{"partitions", {"batch"}}});
  world_.run_for(seconds{1});
  EXPECT_EQ(job("wrong"), said("InProgress", "Progressing"));
  world_.run_for(seconds{10});
  EXPECT_EQ(job("wrong"), said("Current", "Healthy"));
  world_.patch_job("wrong", {{"partitions", {"nowhere"}}});
  world_.run_for(seconds{1});
  EXPECT_EQ(job("wrong"), said("Failed", "Degraded")) << "the change is refused";
  ASSERT_TRUE(world_.run_until([&] { return world_.state("wrong") == "Completed"; }, minutes{1}));
  EXPECT_EQ(job("wrong"), said("Current", "Healthy"));
}

TEST_F(GitOpsTest, ARefusedPartitionHasFailedUntilItIsMended) {
  EXPECT_EQ(partition_says(), said("Current", "Healthy"));
  const auto select = [&](const json& selector) {
    const json patch = {{"spec", {{"nodes", {{"selector", selector}}}}}};
    ASSERT_TRUE(world_.client().patch<kube::Partition>({"", "batch"}, patch).ok());
  };
  select({{"matchLabels", {{"pool", "batch"}}}});  // beside a hostlist
  world_.run_for(seconds{2});
  EXPECT_EQ(partition_says(), said("Failed", "Degraded"));
  select(nullptr);
  world_.run_for(seconds{2});
  EXPECT_EQ(partition_says(), said("Current", "Healthy"));
}

// Nothing has a status before an operator has looked.
TEST(GitOps, ArgoWaitsForTheOperator) {
  if (!has_lua()) GTEST_SKIP() << "lua5.4 is not installed: scripts for Argo CD are not tried";
  for (const char* kind : {"Job", "Partition", "QOS", "Account", "SchedulerConfig"}) {
    json object = {{"kind", kind}, {"metadata", {{"name", "x"}, {"generation", 1}}}};
    EXPECT_EQ(argo_health(object), "Progressing") << kind;
    object["metadata"]["generation"] = 2;
    object["status"] = {{"observedGeneration", 1},
                        {"conditions", {{{"type", "Accepted"}, {"status", "True"}}}}};
    EXPECT_EQ(argo_health(object), "Progressing") << kind << " whose change was not seen";
  }
}

}  // namespace
}  // namespace control
