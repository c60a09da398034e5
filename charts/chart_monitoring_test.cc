// The chart's alerts and dashboard: about metrics that exist, and docs/alerts.md helps.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <regex>
#include <string>

#include "charts/chart_fixture.h"

namespace charts {
namespace {

// Reads every metric of the programs by its reference, which a test of its own compares with them.
Strings metric_names() {
  Strings names;
  const std::string text = read(KUBEGANG_SOURCE_DIR "/docs/reference/metrics.md");
  const std::regex row{"\\n\\| `(kubegang_[a-z_]+)` \\| ([a-z]+)"};
  for (std::sregex_iterator at{text.begin(), text.end(), row}, end; at != end; ++at) {
    const std::string name = at->str(1);
    names.insert(name);
    if (at->str(2) != "histogram") continue;
    for (const char* part : {"_bucket", "_sum", "_count"}) names.insert(name + part);
  }
  return names;
}

// Returns the metrics that are named in text in PromQL or JSON.
Strings names_used(const std::string& text) {
  Strings names;
  const std::regex name{"kubegang_(operator|agent)_[a-z_]+"};
  for (std::sregex_iterator at{text.begin(), text.end(), name}, end; at != end; ++at) {
    names.insert(at->str());
  }
  return names;
}

// An alert about a metric that is not there never fires, and nothing says so.
TEST_F(Chart, AlertsAndDashboardUseMetricsThatExist) {
  const Strings exist = metric_names();
  // Guards against a test that passes since it found nothing; so do the other two numbers.
  EXPECT_GT(exist.size(), 20U);
  Strings used;
  const Objects objects = render(set(all_switches()));
  const json alerts = find(objects, "PrometheusRule/kubegang");
  for (const json& rule : alerts["spec"]["groups"][0]["rules"]) {
    used.merge(names_used(rule["expr"]));
    EXPECT_TRUE(rule["annotations"].contains("summary")) << rule["alert"];
    EXPECT_TRUE(rule["annotations"].contains("description")) << rule["alert"];
  }
  EXPECT_GT(used.size(), 10U);
  const json config_map = find(objects, "ConfigMap/kubegang-dashboard");
  const json dashboard = json::parse(config_map["data"]["kubegang.json"].get<std::string>());
  for (const json& panel : dashboard["panels"]) {
    for (const json& target : panel["targets"]) used.merge(names_used(target["expr"]));
  }
  EXPECT_GT(used.size(), 20U);
  for (const std::string& name : used) EXPECT_TRUE(exist.contains(name)) << name;
}

// By promtool, of Debian's package prometheus: testdata/alerts_test.yaml says what is to happen.
TEST_F(Chart, AlertsFireWhenTheyShould) {
  if (std::system("command -v promtool >/dev/null") != 0) {
    GTEST_SKIP() << "promtool is not installed (make alerts-test)";
  }
  json groups =
      find(render("--set metrics.prometheusRule.enabled=true"), "PrometheusRule/kubegang")["spec"];
  const std::string tests = read(KUBEGANG_SOURCE_DIR "/charts/testdata/alerts_test.yaml");
  for (json& rule : groups["groups"][0]["rules"]) {
    rule.erase("annotations");  // promtool compares texts, too
    const std::string fires =
        "alertname: " + rule["alert"].get<std::string>() + "\n    exp_alerts: [{";
    EXPECT_NE(tests.find(fires), std::string::npos) << rule["alert"] << " is not tested";
  }
  const std::filesystem::path folder = testing::TempDir() + "/alerts" + std::to_string(::getpid());
  std::filesystem::create_directories(folder);
  std::ofstream{folder / "rules.yaml"} << groups.dump();
  std::ofstream{folder / "alerts_test.yaml"} << tests;
  const std::string command = "promtool test rules " + (folder / "alerts_test.yaml").string();
  EXPECT_EQ(std::system(command.c_str()), 0);
  std::filesystem::remove_all(folder);
}

TEST_F(Chart, EachAlertNamesItsPlaceOnTheSitesPage) {
  const json groups = find(render(set({"metrics.prometheusRule.enabled=true",
                                       "metrics.prometheusRule.runbookURL=https://w.example/a"})),
                           "PrometheusRule/kubegang")["spec"]["groups"];
  EXPECT_EQ(groups[0]["rules"][0]["annotations"]["runbook_url"],
            "https://w.example/a#kubegangagentdown");
}

// Both ways: no alert without advice, no advice about an alert that has gone.
TEST_F(Chart, AlertsMdSaysWhatToDoAboutEveryAlert) {
  const json rules = find(render(set(all_switches())), "PrometheusRule/kubegang");
  Strings alerts;
  for (const json& rule : rules["spec"]["groups"][0]["rules"]) alerts.insert(rule["alert"]);
  Strings documented;
  const std::string text = read(KUBEGANG_SOURCE_DIR "/docs/alerts.md");
  const std::regex name{"`(Kubegang[A-Za-z]+)`"};
  for (std::sregex_iterator at{text.begin(), text.end(), name}, end; at != end; ++at) {
    documented.insert((*at)[1]);
  }
  EXPECT_EQ(alerts, documented);
}

// Three steps that fail silently if a name differs: the monitor selects the service, the service
// the pods, and the port goes by name.
TEST_F(Chart, ServiceMonitorFindsTheMetricsPortsOfBothPrograms) {
  const Objects objects = render(set(all_switches()));
  const json service = find(objects, "Service/kubegang-metrics");
  for (const char* id : {"Deployment/kubegang-operator", "DaemonSet/kubegang-agent"}) {
    const json pod = find(objects, id)["spec"]["template"];
    EXPECT_EQ(pod["spec"]["containers"][0]["ports"][0]["name"],
              service["spec"]["ports"][0]["targetPort"]);
    for (const auto& [key, value] : service["spec"]["selector"].items()) {
      EXPECT_EQ(pod["metadata"]["labels"].value(key, ""), value);
    }
  }
  const json monitor = find(objects, "ServiceMonitor/kubegang");
  for (const auto& [key, value] : monitor["spec"]["selector"]["matchLabels"].items()) {
    EXPECT_EQ(service["metadata"]["labels"].value(key, ""), value);
  }
}

}  // namespace
}  // namespace charts
