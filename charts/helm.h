// Runs Helm on our chart, for tests.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace charts {

inline constexpr char kChart[] = KUBEGANG_SOURCE_DIR "/charts/kubegang";
// Where it is rendered for.
inline constexpr char kNamespace[] = "kubegang-system";

// Returns the helm program: $KUBEGANG_HELM, what e2e/kubernetes/build-tools has built, or one in
// $PATH; "" when there is none.
std::string helm_program();

struct HelmRun {
  int exit_code = 0;
  std::string output;  // both streams
};
// `helm ARGUMENTS`, through a shell: the arguments are of our tests.
HelmRun run_helm(const std::string& arguments);

// `helm template` of the chart with these options, such as "--set operator.replicas=2".
HelmRun run_template(const std::string& options, const std::string& ns = kNamespace);

// Returns the objects of `helm template` with these options. Fails the running test, and returns
// nothing, when Helm refuses.
std::vector<nlohmann::json> render(const std::string& options = "");

// Returns "kind/name", the way that tests name objects.
std::string id_of(const nlohmann::json& object);

// Returns the one with that id; fails the running test, and returns null, when there is none.
nlohmann::json find(const std::vector<nlohmann::json>& objects, const std::string& id);

}  // namespace charts
