// Uncounted resources are refused on each of the three ways to a gang, with one sentence; the rest
// is in the Job that is made.
#include "translation/uncounted.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "translation/batch_job_translation.h"
#include "translation/pod_gang_translation.h"
#include "translation/pod_shape.h"
#include "translation/template_check.h"

namespace control {
namespace {

using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// Returns the spec of a pod of one container, with these fields of the container and of the spec.
json spec_with(const json& container, const json& more = json::object()) {
  json main{{"name", "main"}, {"image", "busybox"}};
  if (container.is_object()) main.update(container);
  json spec{{"restartPolicy", "Never"}, {"containers", json::array({main})}};
  spec.update(more);
  return spec;
}

json limits_of(const json& amounts) {
  return {{"resources", {{"limits", amounts}}}};
}

std::vector<std::string> problems_of_job(const json& spec) {
  return check_template(kube::RawJson{json{{"spec", spec}}}).problems;
}

BatchVerdict verdict_of_batch_job(const json& spec) {
  return translate_batch_job(
      kube::decode<kube::BatchJob>({{"apiVersion", "batch/v1"},
                                    {"kind", "Job"},
                                    {"metadata", {{"name", "train"}, {"uid", "u"}}},
                                    {"spec", {{"template", {{"spec", spec}}}}}})
          .value(),
      {});
}

PodGangVerdict verdict_of_pod(const json& spec) {
  const json object{
      {"apiVersion", "v1"},
      {"kind", "Pod"},
      {"metadata", {{"name", "p"}, {"uid", "u"}, {"labels", {{"kubegang.io/job-name", "train"}}}}},
      {"spec", spec}};
  return translate_pod_gang(
      std::vector{std::make_shared<const kube::Pod>(kube::decode<kube::Pod>(object).value())},
      {GangName::By::kJobName, "train"});
}

struct Case {
  const char* names;  // field and value
  json spec;
};

// As the API server stores them: it writes hostPort into each port of a pod in the node's network,
// and the request of an extended resource, which must equal the limit, into a pod.
std::vector<Case> uncounted() {
  return {
      {"containers[0].resources: \"nvidia.com/gpu\": a part of a device",
       spec_with(limits_of({{"nvidia.com/gpu", "500m"}}))},
      {"containers[0].resources: \"amd.com/gpu\": devices need a limit that is equal",
       spec_with({{"resources", {{"requests", {{"amd.com/gpu", "1"}}}}}})},
      {"containers[0].resources: more than 2 kinds of devices",
       spec_with(limits_of(
           {{"nvidia.com/mig-1g.5gb", 1}, {"nvidia.com/mig-2g.10gb", 1}, {"nvidia.com/gpu", 1}}))},
      {"containers[0].resources: \"hugepages-2Mi\": huge pages are not counted yet",
       spec_with(limits_of({{"hugepages-2Mi", "1Gi"}, {"memory", "1Gi"}}))},
      {"containers[0].ports: port 8080 of the node is not counted",
       spec_with({{"ports", json::array({{{"containerPort", 9}},
                                         {{"containerPort", 80}, {"hostPort", 8080}}})}})},
      {"containers[0].ports: port 2222 of the node is not counted",
       spec_with({{"ports", json::array({{{"containerPort", 2222}}})}}, {{"hostNetwork", true}})},
      {"resources: those of a pod as a whole are not counted",
       spec_with({}, {{"resources", {{"requests", {{"cpu", "3"}, {"memory", "1Gi"}}}}}})},
  };
}

TEST(Uncounted, IsRefusedWithOneSentenceForAllThreeKinds) {
  for (const auto& [names, spec] : uncounted()) {
    const auto of_job = problems_of_job(spec);
    ASSERT_THAT(of_job, ElementsAre(HasSubstr("spec.template.spec." + std::string{names})));
    EXPECT_EQ(verdict_of_batch_job(spec).problems, of_job) << names;
    const PodGangVerdict of_pod = verdict_of_pod(spec);
    EXPECT_EQ(of_pod.kind, PodGangVerdict::Kind::kRefused) << names;
    const std::string in_pod = of_job[0].substr(std::string{"spec.template."}.size());
    EXPECT_THAT(of_pod.message, HasSubstr("pod p: " + in_pod));
  }
}

// Devices, also such as kube-scheduler allocates, an amount of 0, ports of the pod's own network,
// and the node's network without a list of ports.
TEST(Uncounted, WhatIsCountedOrTakesNothingOfANodeIsAccepted) {
  for (const json& spec :
       {spec_with(limits_of({{"nvidia.com/gpu", "8"}, {"google.com/tpu", "0"}})),
        spec_with({{"ports", json::array({{{"containerPort", 80}, {"hostPort", 0}}})}}),
        spec_with({{"resources", {{"claims", json::array({{{"name", "gpu"}}})}}}},
                  {{"resourceClaims",
                    json::array({{{"name", "gpu"}, {"resourceClaimTemplateName", "one-gpu"}}})}}),
        spec_with({}, {{"hostNetwork", true}})}) {
    EXPECT_THAT(problems_of_job(spec), IsEmpty()) << spec.dump();
    EXPECT_THAT(verdict_of_batch_job(spec).problems, IsEmpty()) << spec.dump();
    EXPECT_EQ(verdict_of_pod(spec).kind, PodGangVerdict::Kind::kComplete) << spec.dump();
  }
}

// The limit of CPUs is that of batch Jobs without requests and of gated pods alike. 4 GiB of the
// init container against 200 + 100 MiB of the two that run together, 1 CPU against 2; of disk the
// request counts, 5 GiB against the init container's 1 GiB.
TEST(PodShape, AnInitContainerCountsIfItNeedsMoreThanTheOthersTogether) {
  const auto container = [](const char* name, const json& limits) {
    return json{{"name", name}, {"image", "x"}, {"resources", {{"limits", limits}}}};
  };
  json disk = container("disk", {{"cpu", 1}, {"memory", "100Mi"}, {"ephemeral-storage", "9Gi"}});
  disk["resources"]["requests"] = {{"ephemeral-storage", "5Gi"}};
  const json spec{
      {"restartPolicy", "Never"},
      {"initContainers",
       json::array(
           {container("small", {{"cpu", "100m"}}),
            container("stage", {{"cpu", 1}, {"memory", "4Gi"}, {"ephemeral-storage", "1Gi"}})})},
      {"containers", json::array({container("main", {{"cpu", 1}, {"memory", "200Mi"}}), disk})}};
  std::vector<std::string> problems;
  const auto pod = kube::decode_template(kube::RawJson{json{{"spec", spec}}}).value();
  for (const PodCpus from : {PodCpus::kLimits, PodCpus::kRequestsFirst}) {
    const PodShape shape = shape_of(pod.spec, from, problems);
    EXPECT_EQ(shape.cpus, 2);
    EXPECT_EQ(shape.memory, std::int64_t{4} << 30);
    EXPECT_EQ(shape.disk, std::int64_t{5} << 30);
  }
  EXPECT_THAT(problems, IsEmpty());
  const kube::JobSpec job = verdict_of_batch_job(spec).job.spec;
  EXPECT_EQ(job.resources.cpus_per_task, 2);
  EXPECT_EQ(job.resources.memory_per_cpu, kube::Bytes{std::int64_t{2} << 30});
  EXPECT_EQ(job.placement.tmp_disk, kube::Bytes{std::int64_t{5} << 30});
}

}  // namespace
}  // namespace control
