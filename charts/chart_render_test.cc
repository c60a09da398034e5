// Properties of every rendering of the chart; and wrong values are refused.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "charts/chart_fixture.h"

namespace charts {
namespace {

// Helm's own checks of a chart, warnings included.
TEST_F(Chart, LintIsClean) {
  const HelmRun run = run_helm("lint --strict --kube-version 1.34.4 " + std::string{kChart});
  EXPECT_EQ(run.exit_code, 0) << run.output;
  for (const char* word : {"[WARNING]", "[ERROR]"}) {
    EXPECT_EQ(run.output.find(word), std::string::npos) << run.output;
  }
}

// A template that uses a value of another switch breaks only if that one is off, or only if it is
// on.
TEST_F(Chart, RendersWithEverySwitchAloneAndWithAllButOne) {
  const std::vector<std::string> switches = all_switches();
  check_whole(render(), "defaults");
  check_whole(render(set(switches)), "all switches");
  for (std::size_t i = 0; i < switches.size(); ++i) {
    // Alone, each switch meets templates that are otherwise at their defaults; all but one finds a
    // template that needs two of them.
    check_whole(render(set({switches[i]})), switches[i]);
    std::vector<std::string> others = switches;
    others.erase(others.begin() + static_cast<std::ptrdiff_t>(i));
    check_whole(render(set(others)), "all but " + switches[i]);
  }
}

// Without the schema, Helm ignores a misspelled value and renders what the user did not want.
TEST_F(Chart, SchemaRefusesWrongValues) {
  for (const char* wrong : {"operator.replicas=-1",
                            "operator.replicas=two",
                            "operator.replica=2",
                            "agent.realtime=maybe",
                            "agent.maxUnavailable=0",
                            "agent.maxUnavailable=120%",
                            "agent.cgroupRoot=relative",
                            "agent.cgroupDriver=none",
                            "agent.kubeletCgroupRoot=../..",
                            "image.pullPolicy=Sometimes",
                            "image.registry=without-slash",
                            "crds.enabled=perhaps",
                            "metrics.serviceMonitor.interval=often",
                            "metrics.prometheusRule.switchLatenessSeconds=0",
                            "test.nodes=0",
                            "unknown=1",
                            "operator.digest=sha256:12",
                            "agent.digest=latest",
                            "agent.seLinuxOptions.typ=spc_t",
                            "metrics.address=::",
                            "resourceQuota.pods=0",
                            "networkPolicy.apiServerPorts[0]=70000",
                            "admissionPolicies.jobNamespaceLabels.tier=it's"}) {
    const HelmRun run = run_template("--set \"" + std::string{wrong} + "\"");
    EXPECT_NE(run.exit_code, 0) << wrong << " is accepted";
    EXPECT_THAT(run.output, testing::HasSubstr("don't meet the specifications of the schema"))
        << wrong;
  }
}

}  // namespace
}  // namespace charts
