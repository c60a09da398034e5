// The page for all users: off by default, without a right to write, reached by its names alone.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "charts/chart_fixture.h"

namespace charts {
namespace {

using testing::HasSubstr;
using testing::Not;

TEST_F(Chart, TheSharedPageIsNotInstalledUnasked) {
  EXPECT_THAT(json(render()).dump(), Not(HasSubstr("kubegang-dashboard")));
}

TEST_F(Chart, TheSharedPageLooksAndWritesNothing) {
  const Objects objects =
      render(set({"dashboard.enabled=true", "dashboard.hosts[0]=gang.example.org"}));
  const json role = find(objects, "ClusterRole/kubegang-dashboard");
  for (const json& rule : role["rules"]) {
    const bool is_review = rule["resources"][0].get<std::string>().ends_with("reviews");
    EXPECT_EQ(rule["verbs"], is_review ? json{"create"} : (json{"list", "watch"}));
  }
  EXPECT_THAT(role.dump(), Not(HasSubstr("\"nodes\"")));
  const json container = find(
      objects, "Deployment/kubegang-dashboard")["/spec/template/spec/containers/0"_json_pointer];
  EXPECT_EQ(container["command"], json{"/kubectl-gang"});
  EXPECT_EQ(container["args"],
            (json{"dashboard", "--shared", "--port=8080", "--host=gang.example.org"}));
  EXPECT_EQ(container["ports"][0]["containerPort"], 8080);
  EXPECT_EQ(find(objects, "Service/kubegang-dashboard")["spec"]["ports"][0]["targetPort"], "page");
}

TEST_F(Chart, ThePolicyLetsReadersIn) {
  const auto policy = [&](const std::string& enabled) {
    return find(render(set({"networkPolicy.enabled=true", "dashboard.enabled=" + enabled})),
                "NetworkPolicy/kubegang")
        .dump();
  };
  EXPECT_THAT(policy("true"), HasSubstr(R"("port":"page")"));
  EXPECT_THAT(policy("false"), Not(HasSubstr(R"("port":"page")")));
}

}  // namespace
}  // namespace charts
