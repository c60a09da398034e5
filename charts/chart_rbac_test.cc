// The chart's roles, and docs/reference/rights.md, which has a reason for each verb.
#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>
#include <regex>
#include <sstream>
#include <string>
#include <utility>

#include "charts/chart_fixture.h"

namespace charts {
namespace {

using Rules = std::map<std::string, Strings>;  // "jobs.kubegang.io/status" → its verbs

// Returns "jobs.kubegang.io/status", as kubectl and the document write it; the group goes before
// the subresource.
std::string kubectl_name(const std::string& group, const std::string& resource) {
  if (group.empty()) return resource;
  const std::size_t slash = resource.find('/');
  return resource.substr(0, slash) + "." + group +
         (slash == std::string::npos ? "" : resource.substr(slash));
}

// Rules may be split and joined as one likes; what counts is the verbs of each resource. A rule for
// named objects alone has their names behind the resource, as in the document.
Rules rules_of(const json& role) {
  Rules rules;
  for (const json& rule : role["rules"]) {
    std::string names;
    for (const std::string name : rule.value("resourceNames", json::array())) {
      names += " \"" + name + "\"";
    }
    for (const std::string group : rule["apiGroups"]) {
      for (const std::string resource : rule["resources"]) {
        for (const std::string verb : rule["verbs"]) {
          rules[kubectl_name(group, resource) + names].insert(verb);
        }
      }
    }
  }
  return rules;
}

// Returns the tables under headings such as "### `ClusterRole/kubegang-agent`".
std::map<std::string, Rules> documented_rules() {
  std::map<std::string, Rules> roles;
  std::string role;
  std::istringstream lines{read(KUBEGANG_SOURCE_DIR "/docs/reference/rights.md")};
  const std::regex heading{"### `((Cluster)?Role/[a-z-]+)`"};
  const std::regex row{R"(\| (`.*) \| ([a-z, ]+) \| .+ \|)"};
  const std::regex resource{R"re(`([^`]+)`( "[^"]+")?)re"};
  const std::regex word{"[a-z]+"};
  for (std::string line; std::getline(lines, line);) {
    std::smatch found;
    // A heading ends the table of the role before it, whatever the heading is.
    if (line.starts_with("#")) role = std::regex_match(line, found, heading) ? found[1].str() : "";
    if (role.empty() || !std::regex_match(line, found, row)) continue;
    const std::string resources = found[1];
    const std::string verbs = found[2];
    for (std::sregex_iterator at{resources.begin(), resources.end(), resource}, end; at != end;
         ++at) {
      Strings& listed = roles[role][(*at)[1].str() + (*at)[2].str()];
      for (std::sregex_iterator verb{verbs.begin(), verbs.end(), word}; verb != end; ++verb) {
        EXPECT_TRUE(listed.insert(verb->str()).second) << role << ": twice in the table";
      }
    }
  }
  return roles;
}

// Goal: an administrator who reads docs/reference/rights.md knows all that the programs may do.
// Roles grow one verb at a time, and each must be argued for.
TEST_F(Chart, EveryVerbIsInRightsMdWithAReason) {
  std::map<std::string, Rules> rendered;
  for (const json& object : render(set({"adoption.pods=true", "adoption.podGroups=true",
                                        "records.enabled=true", "records.api.enabled=true",
                                        "dashboard.enabled=true", "dashboard.readNodes=true"}))) {
    if (object["kind"] == "Role" || object["kind"] == "ClusterRole") {
      rendered[id_of(object)] = rules_of(object);
    }
  }
  // In both directions: a verb without a reason in the document, and a documented verb that the
  // chart no longer grants.
  EXPECT_EQ(rendered, documented_rules());
}

// Sites that do not ask for them get no right, no argument and no policy for them.
TEST_F(Chart, PodGroupsAreReadOnlyWithTheirSwitch) {
  const std::string group = "scheduling.x-k8s.io";
  for (const char* value : {"false", "true"}) {
    const bool is_on = std::string{value} == "true";
    const Objects objects =
        render(set({"adoption.pods=true", "adoption.podGroups=" + std::string{value}}));
    Rules rules = rules_of(find(objects, "ClusterRole/kubegang-operator"));
    EXPECT_EQ(rules["podgroups." + group], is_on ? (Strings{"get", "list", "watch"}) : Strings{});
    EXPECT_EQ(json(objects).dump().find(group) != std::string::npos, is_on);
    const json args =
        find(objects,
             "Deployment/kubegang-operator")["/spec/template/spec/containers/0/args"_json_pointer];
    EXPECT_EQ(args.dump().find("--adopt-pod-groups") != std::string::npos, is_on);
  }
  const HelmRun alone = run_template(set({"adoption.podGroups=true"}));
  EXPECT_NE(alone.exit_code, 0);
  EXPECT_NE(alone.output.find("adoption.podGroups needs adoption.pods"), std::string::npos);
}

// A wildcard would grant whatever a later version adds. Statuses are written by the two programs
// only: a user who could write one could give a job nodes.
TEST_F(Chart, RolesHaveNoWildcardAndPeopleNoStatus) {
  for (const json& object : render(set(all_switches()))) {
    if (object["kind"] != "Role" && object["kind"] != "ClusterRole") continue;
    const bool of_a_program = id_of(object).find("kubegang-operator") != std::string::npos ||
                              id_of(object).find("kubegang-agent") != std::string::npos;
    for (const auto& [resource, verbs] : rules_of(object)) {
      EXPECT_EQ(resource.find('*'), std::string::npos) << id_of(object);
      EXPECT_FALSE(verbs.contains("*")) << id_of(object);
      EXPECT_TRUE(of_a_program || resource.find("/status") == std::string::npos)
          << id_of(object) << " " << resource;
    }
  }
}

// Kubernetes adds rules with these labels to its roles edit, admin and view, so users with those
// need no binding of the chart.
TEST_F(Chart, RolesForPeopleAreAggregated) {
  const Objects objects = render();
  for (const auto& [role, to] :
       {std::pair{"user", "edit"}, std::pair{"admin", "admin"}, std::pair{"viewer", "view"}}) {
    const json labels =
        find(objects, std::string{"ClusterRole/kubegang-"} + role)["metadata"]["labels"];
    EXPECT_EQ(labels.value(std::string{"rbac.authorization.k8s.io/aggregate-to-"} + to, ""),
              "true");
  }
}

}  // namespace
}  // namespace charts
