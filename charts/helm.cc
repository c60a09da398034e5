#include "charts/helm.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>

#include "kube/testing/api_server/yaml_json.h"
#include "linux/testing/shell.h"

namespace charts {
namespace {

// A folder of that name, or a file without the right, would fail only later and with a message that
// says less.
bool is_program(const std::filesystem::path& path) {
  return std::filesystem::is_regular_file(path) && ::access(path.c_str(), X_OK) == 0;
}

std::string variable(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? "" : value;
}

// As in e2e/kubernetes/lib.sh.
std::string tools_cache() {
  if (std::string given = variable("KUBEGANG_TOOLS_CACHE"); !given.empty()) return given;
  const std::string cache = variable("XDG_CACHE_HOME");
  return (cache.empty() ? variable("HOME") + "/.cache" : cache) + "/kubegang";
}

}  // namespace

// In order: a program named by the caller, one that e2e/kubernetes/build-tools built, one in PATH.
std::string helm_program() {
  if (const std::string given = variable("KUBEGANG_HELM"); is_program(given)) return given;
  std::error_code none;
  for (const auto& entry : std::filesystem::directory_iterator{tools_cache(), none}) {
    // A build that broke off leaves a folder without this file.
    const bool complete = std::filesystem::exists(entry.path() / "complete");
    if (complete && is_program(entry.path() / "helm")) return entry.path() / "helm";
  }
  std::istringstream path{variable("PATH")};
  for (std::string folder; std::getline(path, folder, ':');) {
    if (is_program(folder + "/helm")) return folder + "/helm";
  }
  return "";
}

// Runs helm; its output and its errors are one text, in the order in which they came.
HelmRun run_helm(const std::string& arguments) {
  os::testing::Output run = os::testing::run_shell("'" + helm_program() + "' " + arguments);
  return {.exit_code = run.exit_code, .output = std::move(run.text)};
}

// Rendering without a cluster needs the version and the groups that a cluster would
// name.
HelmRun run_template(const std::string& options, const std::string& ns) {
  return run_helm(
      "template kubegang " + std::string{kChart} + " --kube-version 1.34.4 --namespace " + ns +
      // As the tests' API server is configured (e2e/kubernetes/apiserver-up).
      " --api-versions admissionregistration.k8s.io/v1beta1/MutatingAdmissionPolicy " + options);
}

// Returns the objects of a rendering that must succeed; none if it fails, as the test then has.
std::vector<nlohmann::json> render(const std::string& options) {
  const HelmRun run = run_template(options);
  EXPECT_EQ(run.exit_code, 0) << options << "\n" << run.output;
  if (run.exit_code != 0) return {};
  const auto documents = devcluster::yaml_documents(run.output);
  EXPECT_TRUE(documents.ok()) << options << "\n" << documents.error().message;
  if (!documents.ok()) return {};
  std::vector<nlohmann::json> objects;
  for (const std::string& document : *documents) {
    nlohmann::json object = nlohmann::json::parse(document);
    // A template whose switch is off leaves an empty document.
    if (!object.is_null()) objects.push_back(std::move(object));
  }
  return objects;
}

// Returns "Deployment/kubegang-operator". The namespace is not in it; check_whole() adds it.
std::string id_of(const nlohmann::json& object) {
  return object.value("kind", "") + "/" +
         object.value("/metadata/name"_json_pointer, std::string{});
}

nlohmann::json find(const std::vector<nlohmann::json>& objects, const std::string& id) {
  for (const nlohmann::json& object : objects) {
    if (id_of(object) == id) return object;
  }
  ADD_FAILURE() << "the chart renders no " << id;
  return nullptr;
}

}  // namespace charts
