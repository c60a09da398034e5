// Tests of what partitions and identities add to pods, and what a template may not say; also of
// pod_identity.h.
#include "translation/pod_defaults.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "translation/pod_identity.h"

namespace control {
namespace {

using nlohmann::json;
using testing::HasSubstr;

const kube::PodIdentity kAnn{
    .user = "ann", .uid = 1000, .gid = 100, .groups = {100, 200}, .home = "/home/ann"};

// Returns a home that belongs to the administrator.
DefaultsInForce home() {
  DefaultsInForce in_force{.partition = "main", .defaults = kube::PodDefaults{}, .identity = kAnn};
  kube::PodDefaults& defaults = *in_force.defaults;
  defaults.volumes =
      kube::RawJson{json::array({{{"name", "home"}, {"nfs", {{"server", "s"}, {"path", "/h"}}}}})};
  defaults.volume_mounts = kube::RawJson{json::array({{{"name", "home"}, {"mountPath", "/home"}}})};
  return in_force;
}

kube::JobSpec script() {
  kube::JobSpec spec;
  spec.batch = kube::JobBatch{.script = "#!/bin/sh\n"};
  return spec;
}

json pod_with(const json& container_patch = json::object(),
              const json& spec_patch = json::object()) {
  json spec{{"containers", json::array({{{"name", "main"}}})}};
  spec["containers"][0].merge_patch(container_patch);
  spec.merge_patch(spec_patch);
  return spec;
}

std::string refusal(json spec, const DefaultsInForce& in_force) {
  const base::Status status = apply_pod_defaults(spec, script(), in_force);
  return status ? "" : status.error().message;
}

std::string variable(const json& container, const std::string& name) {
  std::string value = "(none)";
  for (const json& each : container["env"]) {
    if (each["name"] == name) value = each["value"];
  }
  return value;
}

TEST(PodDefaults, AnAdministratorsVolumeComesWithTheIdentity) {
  json spec = pod_with({{"env", {{{"name", "HOME"}, {"value", "/home/bob"}}}}},
                       {{"initContainers", {{{"name", "first"}}}}});
  ASSERT_TRUE(apply_pod_defaults(spec, script(), home()).ok());
  EXPECT_EQ(spec["volumes"][0]["name"], "home");
  EXPECT_EQ(spec["containers"][0]["volumeMounts"][0]["mountPath"], "/home");
  EXPECT_EQ(spec["securityContext"], (json{{"runAsUser", 1000},
                                           {"runAsGroup", 100},
                                           {"runAsNonRoot", true},
                                           {"supplementalGroups", {100, 200}}}));
  for (const char* list : {"containers", "initContainers"}) {
    EXPECT_EQ(spec[list][0]["securityContext"],
              (json{{"allowPrivilegeEscalation", false}, {"capabilities", {{"drop", {"ALL"}}}}}));
  }
  // Where the administrator's folders are is not for the template to say.
  EXPECT_EQ(variable(spec["containers"][0], "HOME"), "/home/ann");
  EXPECT_EQ(variable(spec["containers"][0], "SLURM_JOB_USER"), "ann");
}

// Every way that a pod spec must run as another user, or to reach the volume by itself.
TEST(PodDefaults, ATemplateThatContradictsIsRefused) {
  const auto in_container = [](const json& context) {
    return pod_with({{"securityContext", context}});
  };
  const auto in_pod = [](const json& context) {
    return pod_with({}, {{"securityContext", context}});
  };
  const json own_mount = json::array({{{"name", "home"}, {"mountPath", "/x"}}});
  const std::vector<std::pair<json, std::string>> cases = {
      {in_pod({{"runAsUser", 0}}), "securityContext.runAsUser: 1000"},
      {in_pod({{"runAsGroup", 5}}), "securityContext.runAsGroup: 100"},
      {in_pod({{"supplementalGroups", {100, 5}}}), "5 is not a group"},
      {in_pod({{"fsGroup", 100}}), "fsGroup"},
      {in_container({{"runAsUser", 1001}}), "container main: securityContext.runAsUser: 1000"},
      {in_container({{"privileged", true}}), "privileged"},
      {in_container({{"allowPrivilegeEscalation", true}}), "allowPrivilegeEscalation"},
      {in_container({{"capabilities", {{"add", {"DAC_OVERRIDE"}}}}}), "capabilities.add"},
      {pod_with({}, {{"initContainers",
                      {{{"name", "first"}, {"securityContext", {{"runAsUser", 0}}}}}}}),
       "container first"},
      {pod_with({{"volumeMounts", own_mount}}), "volumeMounts \"home\" is a volume of partition"},
      {pod_with({{"volumeDevices", {{{"name", "home"}, {"devicePath", "/dev/x"}}}}}),
       "volumeDevices \"home\""},
      {pod_with({}, {{"volumes", {{{"name", "home"}, {"emptyDir", json::object()}}}}}),
       "volume \"home\""},
  };
  for (const auto& [spec, sentence] : cases) {
    EXPECT_THAT(refusal(spec, home()), HasSubstr(sentence)) << spec.dump();
  }
  EXPECT_EQ(refusal(in_pod({{"runAsUser", 1000}, {"supplementalGroups", {200}}}), home()), "");
}

// kubelet waits forever for a pod that has a claim twice.
TEST(PodDefaults, AClaimOfThePartitionIsHadOnce) {
  const auto claim = [](const char* volume, const char* name) {
    return json{{"name", volume}, {"persistentVolumeClaim", {{"claimName", name}}}};
  };
  DefaultsInForce in_force = home();
  in_force.defaults->volumes = kube::RawJson{json::array({claim("home", "files")})};
  EXPECT_EQ(refusal(pod_with({}, {{"volumes", {claim("mine", "files")}}}), in_force),
            "template: claim \"files\" is one of partition main (podDefaults), which mounts it; a "
            "pod cannot have it twice: leave it out");
  EXPECT_EQ(refusal(pod_with({}, {{"volumes", {claim("mine", "others")}}}), in_force), "");
}

TEST(PodDefaults, WithoutAnIdentityTheJobIsRefusedUnlessTheDefaultsSayOtherwise) {
  DefaultsInForce in_force = home();
  in_force.identity.reset();
  EXPECT_THAT(refusal(pod_with(), in_force), HasSubstr("ask your administrator for an identity"));
  in_force.defaults->identity = kube::IdentityPolicy::kIfKnown;
  EXPECT_EQ(refusal(pod_with(), in_force), "");
}

// An image and variables are harmless: the job's own word counts.
TEST(PodDefaults, TheJobsOwnStandsAboveWhatIsNotTrusted) {
  DefaultsInForce in_force{.partition = "main", .defaults = kube::PodDefaults{}, .identity = kAnn};
  in_force.defaults->image = "registry/site:1";
  in_force.defaults->env = kube::RawJson{
      json::array({{{"name", "A"}, {"value", "site"}}, {{"name", "B"}, {"value", "site"}}})};
  in_force.defaults->security_context = kube::RawJson{json{{"runAsNonRoot", true}}};
  json spec = pod_with({{"env", {{{"name", "A"}, {"value", "own"}}}}},
                       {{"securityContext", {{"runAsUser", 0}, {"runAsNonRoot", false}}}});
  ASSERT_TRUE(apply_pod_defaults(spec, script(), in_force).ok());
  EXPECT_EQ(spec["containers"][0]["image"], "registry/site:1");
  EXPECT_EQ(variable(spec["containers"][0], "A"), "own");
  EXPECT_EQ(variable(spec["containers"][0], "B"), "site");
  EXPECT_EQ(spec["securityContext"], (json{{"runAsUser", 0}, {"runAsNonRoot", false}}));
  json silent = pod_with({{"image", "own:1"}});
  ASSERT_TRUE(apply_pod_defaults(silent, script(), in_force).ok());
  EXPECT_EQ(silent["containers"][0]["image"], "own:1");
  EXPECT_EQ(silent["securityContext"]["runAsUser"], 1000);
}

TEST(PodDefaults, OtherJobsGetThemIfTheyAsk) {
  kube::JobSpec command;
  json spec = pod_with();
  ASSERT_TRUE(apply_pod_defaults(spec, command, home()).ok());
  EXPECT_EQ(spec, pod_with());
  command.pod_defaults = kube::PodDefaultsUse::kUse;
  ASSERT_TRUE(apply_pod_defaults(spec, command, home()).ok());
  EXPECT_EQ(spec["volumes"][0]["name"], "home");
  kube::JobSpec without = script();
  without.pod_defaults = kube::PodDefaultsUse::kIgnore;
  json other = pod_with();
  ASSERT_TRUE(apply_pod_defaults(other, without, home()).ok());
  EXPECT_EQ(other, pod_with());
}

// Problems that the API server would only report when a job starts.
TEST(PodDefaults, TheAdministratorsMistakesAreTold) {
  kube::PodDefaults defaults;
  defaults.volumes = kube::RawJson{
      json::array({{{"name", "a"}, {"nfs", {{"path", "/$(HOMES)"}}}}, {{"name", "kubegang-x"}}})};
  defaults.volume_mounts = kube::RawJson{
      json::array({{{"name", "b"}, {"mountPath", "/b"}}, {{"name", "a"}, {"mountPath", "/b"}}})};
  defaults.env = kube::RawJson{json::array({{{"value", "x"}}})};
  defaults.security_context = kube::RawJson{json{{"runAsUser", 5}}};
  EXPECT_THAT(
      pod_defaults_problems(defaults),
      testing::ElementsAre(HasSubstr("volumeMounts: \"/b\" is listed twice"),
                           HasSubstr("env: an entry has no name"),
                           HasSubstr("volumes: $(HOMES) is not known; there are NAMESPACE, USER"),
                           HasSubstr("\"kubegang-x\" may not begin with kubegang-"),
                           HasSubstr("\"b\" is not one of the volumes"),
                           HasSubstr("securityContext.runAsUser: users and groups come from")));
  EXPECT_THAT(pod_defaults_problems(*home().defaults), testing::IsEmpty());
}

// Returns a script of namespace team-a.
kube::Job job_of_team_a() {
  kube::Job job;
  job.metadata.ns = "team-a";
  job.spec = script();
  return job;
}

std::string refusal(const kube::Job& job, const DefaultsInForce& in_force) {
  json spec = pod_with();
  const base::Status status = add_pod_defaults(spec, job, in_force);
  return status ? "" : status.error().message;
}

TEST(PodIdentity, IsTheAccountsAndHasANameOfItsOwn) {
  kube::AccountSpec account;
  account.namespaces = {{.name = "team-a", .identity = kube::PodIdentity{.uid = 1000, .gid = 100}},
                        {.name = "team-b"}};
  EXPECT_EQ(identity_of(account, "team-a")->user, "team-a");
  EXPECT_FALSE(identity_of(account, "team-b"));
  account.namespaces[0].identity->user = "ann";
  EXPECT_EQ(identity_of(account, "team-a")->user, "ann");
}

// One partition serves all homes.
TEST(PodIdentity, VariablesAreThoseOfTheJobsNamespace) {
  DefaultsInForce in_force = home();
  in_force.defaults->volumes = kube::RawJson{json::array(
      {{{"name", "home"}, {"nfs", {{"server", "s"}, {"path", "/h/$(NAMESPACE)/$$(UID)"}}}}})};
  in_force.defaults->volume_mounts =
      kube::RawJson{json::array({{{"name", "home"},
                                  {"mountPath", "$(HOME)/of-$(UID)-$(GID)"},
                                  {"subPathExpr", "$(USER)/$(SLURM_JOB_ID)/$$(UID)"}}})};
  in_force.defaults->env = kube::RawJson{
      json::array({{{"name", "A"}, {"value", "$(USER) $(OTHER) $$(USER) $$$(UID) $5 $("}}})};
  EXPECT_THAT(pod_defaults_problems(*in_force.defaults), testing::IsEmpty());
  json spec = pod_with();
  ASSERT_TRUE(add_pod_defaults(spec, job_of_team_a(), in_force).ok());
  EXPECT_EQ(spec["volumes"][0]["nfs"]["path"], "/h/team-a/$(UID)");
  EXPECT_EQ(spec["containers"][0]["volumeMounts"][0],
            (json{{"name", "home"},
                  {"mountPath", "/home/ann/of-1000-100"},
                  {"subPathExpr", "ann/$(SLURM_JOB_ID)/$$(UID)"}}));
  EXPECT_EQ(variable(spec["containers"][0], "A"), "ann $(OTHER) $$(USER) $$1000 $5 $(")
      << "the kubelet reads the rest";
}

TEST(PodIdentity, AVariableWithoutAValueRefusesTheJob) {
  DefaultsInForce in_force = home();
  in_force.defaults->identity = kube::IdentityPolicy::kIfKnown;
  in_force.defaults->volume_mounts =
      kube::RawJson{json::array({{{"name", "home"}, {"mountPath", "$(HOME)"}}})};
  in_force.identity->home.clear();
  EXPECT_THAT(refusal(job_of_team_a(), in_force),
              HasSubstr("partition main puts $(HOME) into the pods, and no account says where the "
                        "home of the namespace's user is"));
  in_force.identity.reset();
  in_force.defaults->volume_mounts =
      kube::RawJson{json::array({{{"name", "home"}, {"mountPath", "/home/$(NAMESPACE)"}}})};
  EXPECT_EQ(refusal(job_of_team_a(), in_force), "");
  in_force.defaults->env = kube::RawJson{json::array({{{"name", "A"}, {"value", "$(UID)"}}})};
  EXPECT_THAT(refusal(job_of_team_a(), in_force),
              HasSubstr("no account says under which user the namespace's pods run"));
  kube::Job without = job_of_team_a();
  without.spec.pod_defaults = kube::PodDefaultsUse::kIgnore;
  EXPECT_EQ(refusal(without, in_force), "");
}

}  // namespace
}  // namespace control
