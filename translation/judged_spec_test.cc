// The part that is kept of a spec is judged as the whole is, and is small.
#include "translation/judged_spec.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "translation/batch_job_translation.h"
#include "translation/pod_shape.h"
#include "translation/template_check.h"

namespace control {
namespace {

using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

const std::string kLong(40'000, 'x');

// Returns a template of one container, with these fields of the pod's spec and of the container.
kube::RawJson template_with(const json& spec, const json& container = nullptr) {
  json main{{"name", "main"}, {"image", "busybox"}};
  if (container.is_object()) main.update(container);
  json object{{"spec", {{"containers", json::array({main})}}}};
  if (spec.is_object()) object["spec"].update(spec);
  return kube::RawJson{object};
}

// Lists of `count` entries, each of them as large or as small as the case needs it.
json numbered_containers(std::size_t count) {
  json all = json::array();
  for (std::size_t i = 0; i < count; ++i) {
    all.push_back({{"name", "c" + std::to_string(i)}, {"image", std::string(2'000, 'x')}});
  }
  return all;
}

json tolerations(std::size_t count, const std::string& key) {
  json all = json::array();
  for (std::size_t i = 0; i < count; ++i) all.push_back({{"key", key}, {"operator", "Exists"}});
  return all;
}

json selector(std::size_t count, const std::string& value) {
  json all = json::object();
  for (std::size_t i = 0; i < count; ++i) all["example.com/" + std::to_string(i)] = value;
  return all;
}

// More kinds of devices than a container may ask for.
json many_profiles() {
  json all;
  for (int i = 1; i < 50; ++i) all["nvidia.com/mig-" + std::to_string(i) + "g"] = 1;
  return all;
}

json many_resources() {
  json all = json::object();
  for (int i = 0; i < 3'000; ++i) all["example.com/d" + std::to_string(i)] = "1";
  return all;
}

// Those from `first` on are ports of the node; 0 = none is.
json many_ports(int first) {
  json all = json::array();
  for (int i = 1; i < 3'000; ++i) {
    all.push_back({{"containerPort", i}, {"hostPort", first > 0 && i >= first ? i : 0}});
  }
  return all;
}

void expect_same_facts(const TemplateFacts& of_judged, const TemplateFacts& of_whole,
                       const std::string& shown) {
  EXPECT_EQ(of_judged.problems, of_whole.problems) << shown;
  EXPECT_EQ(of_judged.launchers, of_whole.launchers) << shown;
  EXPECT_EQ(of_judged.node_selector, of_whole.node_selector) << shown;
  EXPECT_EQ(of_judged.tolerations, of_whole.tolerations) << shown;
  EXPECT_EQ(of_judged.grace_seconds, of_whole.grace_seconds) << shown;
  if (!of_whole.problems.empty()) return;
  EXPECT_EQ(of_judged.devices, of_whole.devices) << shown;
  EXPECT_EQ(of_judged.has_resource_claims, of_whole.has_resource_claims) << shown;
}

// The operator keeps the judged part only. A template that is refused as a whole and legal in its
// part would start pods that cannot be frozen; the other way round, a legal job would be refused.
// Each template is near some check, with texts that are far too long wherever one may stand.
TEST(JudgedSpec, IsJudgedAsTheWhole) {
  const json probe{{"exec", {{"command", {kLong}}}}};
  const std::vector<kube::RawJson> templates{
      template_with({}),
      template_with({},
                    {{"command", {"sh", "-c"}}, {"args", json::array({"exec mpirun " + kLong})}}),
      template_with({}, {{"args", {"srun.log", kLong}}}),
      template_with({}, {{"livenessProbe", probe}, {"startupProbe", probe}}),
      template_with({}, {{"lifecycle", {{"preStop", probe}, {"postStart", probe}}}}),
      template_with({}, {{"lifecycle", {{"preStop", {{"httpGet", {{"path", kLong}}}}}}}}),
      template_with({}, {{"lifecycle", {{"postStart", {{"httpGet", {{"path", kLong}}}}}}}}),
      template_with({}, {{"lifecycle", {{"postStart", {{"sleep", {{"seconds", 9}}}}}}}}),
      template_with({}, {{"restartPolicy", "Always"}}),
      template_with({{"initContainers", json::array({{{"name", "main"}, {"image", kLong}}})}}),
      template_with({{"containers", numbered_containers(32)}}),
      template_with({{"containers", numbered_containers(50)}}),
      template_with({{"initContainers", numbered_containers(33)}}),
      template_with({{"containers", json::array()}}),
      template_with({{"nodeSelector", selector(64, "x")}, {"tolerations", tolerations(64, "x")}}),
      template_with({{"nodeSelector", selector(65, "x")}}),
      template_with({{"nodeSelector", selector(2, kLong)}}),
      template_with({{"tolerations", tolerations(65, "x")}}),
      template_with({{"tolerations", tolerations(1, kLong)}}),
      template_with({{"affinity", {{"nodeAffinity", kLong}}}}),
      template_with({{"topologySpreadConstraints", json::array({{{"topologyKey", kLong}}})}}),
      template_with({{"restartPolicy", "OnFailure"}, {"activeDeadlineSeconds", 5}}),
      template_with({{"nodeName", "n1"}, {"schedulerName", "other"}, {"hostPID", true}}),
      template_with({{"runtimeClassName", "gvisor"}, {"priorityClassName", "system-node"}}),
      template_with({{"schedulingGates", json::array({{{"name", "x"}}})}}),
      template_with({{"terminationGracePeriodSeconds", 600}}),
      template_with({}, {{"resources",
                          {{"requests", {{"cpu", "1500m"}, {"memory", "1Gi"}, {"x/y", "1"}}},
                           {"limits", {{"cpu", "3"}, {"memory", "2Gi"}}}}}}),
      template_with({}, {{"resources", {{"limits", many_resources()}}}}),
      template_with({{"resources", {{"requests", {{"cpu", "3"}}}}}}),
      template_with({{"resourceClaims", json::array({{{"name", kLong}}})}}),
      template_with({{"hostNetwork", true}}, {{"ports", many_ports(0)}}),
      template_with({}, {{"ports", many_ports(0)}}),
      template_with({}, {{"ports", many_ports(70)}}),
      template_with({}, {{"resources", {{"limits", {{"ephemeral-storage", "5Gi"}}}}}}),
      template_with({}, {{"resources", {{"limits", {{"nvidia.com/gpu", 4}, {"x/y", 0}}}}}}),
      template_with({}, {{"resources", {{"limits", many_profiles()}}}}),
      template_with(
          {{"initContainers",
            json::array({{{"name", "init"}, {"resources", {{"limits", {{"amd.com/gpu", 2}}}}}}})}}),
  };
  int refused = 0;
  for (const kube::RawJson& whole : templates) {
    const kube::RawJson judged = judged_template(whole);
    const std::string shown = whole.text().substr(0, 400);
    const TemplateFacts of_whole = check_template(whole), of_judged = check_template(judged);
    expect_same_facts(of_judged, of_whole, shown);
    if (!of_whole.problems.empty() || !of_whole.launchers.empty()) ++refused;
    EXPECT_LE(judged.text().size(), 65'536U) << shown;
    for (const PodCpus from : {PodCpus::kRequestsFirst, PodCpus::kLimits}) {
      std::vector<std::string> problems;
      const PodShape a = shape_of(kube::decode_template(whole).value().spec, from, problems);
      const PodShape b = shape_of(kube::decode_template(judged).value().spec, from, problems);
      EXPECT_EQ(a.cpus, b.cpus) << shown;
      EXPECT_EQ(a.memory, b.memory) << shown;
      EXPECT_EQ(a.disk, b.disk) << shown;
    }
    EXPECT_EQ(judged_template(judged), judged) << "judging what was judged: " << shown;
  }
  // 26 of 37. The rest are near misses: nothing special, a file called srun.log, a preStop hook by
  // HTTP, 32 containers, 64 entries of each list, a long grace period (it depends on KillWait and
  // is judged elsewhere), ports of the pod's own network, ephemeral storage, claims of devices, and
  // GPUs of a container or an init container. If all were refused, this would show less.
  EXPECT_EQ(refused, 26);
}

// The facts of its template are kept of each job of a partition.
TEST(JudgedSpec, LongListsAreRefusedAndNotKept) {
  const TemplateFacts facts = check_template(template_with(
      {{"nodeSelector", selector(3'000, "x")}, {"tolerations", tolerations(3'000, "x")}}));
  EXPECT_THAT(facts.problems, ElementsAre(HasSubstr("spec.nodeSelector: more than 64 entries"),
                                          HasSubstr("spec.tolerations: more than 64 entries")));
  EXPECT_THAT(facts.node_selector, IsEmpty());
  EXPECT_THAT(facts.tolerations, IsEmpty());
}

// Returns a batch Job of two pods with that template.
kube::BatchJob batch_job(const kube::RawJson& pod_template) {
  kube::BatchJob batch;
  batch.metadata.name = "train";
  batch.spec.parallelism = batch.spec.completions = 2;
  batch.spec.pod_template = pod_template;
  return batch;
}

// The judged part has lost the long argument. The kubegang Job is made from the whole template,
// which is read once more; all its other fields are the same as if it had never been cut.
TEST(JudgedSpec, AJobGetsTheWholeTemplate) {
  const kube::RawJson whole = template_with(
      {}, {{"args", json::array({kLong})}, {"resources", {{"requests", {{"cpu", "2"}}}}}});
  const kube::BatchJob stored = batch_job(whole);
  const kube::RawJson judged = judged_template(whole);
  const BatchVerdict of_whole = translate_batch_job(stored, {});
  BatchVerdict of_judged = translate_batch_job(batch_job(judged), {});
  ASSERT_THAT(of_judged.problems, IsEmpty());
  EXPECT_NE(of_judged.job.spec.pod_template, of_whole.job.spec.pod_template);
  const auto read = pod_template_of(stored, judged);
  ASSERT_TRUE(read.ok()) << read.error().message;
  of_judged.job.spec.pod_template = *read;
  EXPECT_EQ(of_judged.job, of_whole.job);
}

// As long as a batch Job is suspended its author may change its template. Its pods would need 2
// CPUs each, and the tasks of the kubegang Job were computed from less.
TEST(JudgedSpec, AChangedTemplateIsNotTaken) {
  const json two{{"resources", {{"requests", {{"cpu", "2"}}}}}};
  const kube::RawJson judged = judged_template(template_with({}));
  EXPECT_EQ(pod_template_of(batch_job(template_with({}, two)), judged).error().code,
            base::Code::kConflict);
}

}  // namespace
}  // namespace control
