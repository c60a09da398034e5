// The resources that pods of other makers use, by their limits. (The other sentences and whole
// lives: world_tests/gated_pods_test.cc.)
#include "translation/pod_gang_translation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace control {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using Kind = PodGangVerdict::Kind;

// Returns a gang of one pod, of which each container has such limits and requests. `more` is added
// to its spec.
PodGangVerdict verdict_of(const std::vector<json>& limits, const json& requests,
                          const json& annotations = json::object(),
                          const json& more = json::object()) {
  json containers = json::array();
  for (const json& each : limits) {
    containers.push_back({{"name", "c" + std::to_string(containers.size())},
                          {"image", "busybox"},
                          {"resources", {{"limits", each}, {"requests", requests}}}});
  }
  json object{{"apiVersion", "v1"},
              {"kind", "Pod"},
              {"metadata",
               {{"name", "p"},
                {"namespace", "team-a"},
                {"uid", "u"},
                {"labels", {{"kubegang.io/job-name", "train"}}},
                {"annotations", annotations}}},
              {"spec", {{"restartPolicy", "Never"}, {"containers", containers}}}};
  object["spec"].update(more);
  const std::vector pods{
      std::make_shared<const kube::Pod>(kube::decode<kube::Pod>(object).value())};
  return translate_pod_gang(pods, {GangName::By::kJobName, "train"});
}

// Goal: a pod that its author made gets CPUs by its limits, as the kernel enforces them. Rounded up
// to whole CPUs, since the scheduler has no parts of one; a container without a limit of memory
// counts by its request.
TEST(PodGangTranslation, CpusAndMemoryAreThoseOfAllContainers) {
  const auto verdict = verdict_of({{{"cpu", "1500m"}, {"memory", "1Gi"}}, {{"cpu", "1"}}},
                                  {{"cpu", "1m"}, {"memory", "1Gi"}});
  ASSERT_EQ(verdict.kind, Kind::kComplete) << verdict.message;
  EXPECT_EQ(verdict.job.spec.resources.cpus_per_task, 3);
  // 2 GiB for 3 CPUs are 682.67 MiB for each, rounded up.
  EXPECT_EQ(verdict.job.spec.resources.memory_per_cpu, kube::Bytes{683LL << 20});
}

// Sums and conversions at the ends of 64 bits: without the checks they would overflow, and a pod
// that asks for more than there is would be taken for a small one.
TEST(PodGangTranslation, LimitsThatNoNodeHasAreRefused) {
  const json little{{"cpu", "1m"}};
  struct Case {
    std::vector<json> limits;
    json requests;
    const char* sentence;
  };
  const Case cases[] = {
      {{{{"cpu", "4294967297"}}}, little, "4294967297 CPUs"},
      {{{{"cpu", "9P"}}, {{"cpu", "9P"}}}, little, "more than 65535"},
      {{{{"cpu", "9223372036854775807m"}}}, little, "9223372036854776 CPUs"},
      {{{{"memory", "9P"}}, {{"memory", "9P"}}}, little, "8Pi of memory"},
      {{{{"cpu", "1"}}, {{"cpu", "1"}}}, {{"cpu", "9P"}}, "the CPU requests are"},
  };
  for (const Case& each : cases) {
    const PodGangVerdict verdict = verdict_of(each.limits, each.requests);
    EXPECT_EQ(verdict.kind, Kind::kRefused) << each.sentence;
    EXPECT_THAT(verdict.message, HasSubstr(each.sentence));
  }
}

// Pods have no spec.placement, and no template.
TEST(PodGangTranslation, SentencesNameFieldsThatPodsHave) {
  const json affinity{{"podAffinity", json::object({{"x", 1}})}};
  const PodGangVerdict verdict = verdict_of({{{"cpu", "1"}}}, {{"cpu", "1m"}}, json::object(),
                                            {{"affinity", affinity}, {"nodeName", "n1"}});
  EXPECT_THAT(verdict.message,
              HasSubstr("pod p: spec.affinity: is not supported; use nodeSelector"));
  EXPECT_THAT(verdict.message, HasSubstr("the scheduler chooses the nodes; use nodeSelector"));
}

}  // namespace
}  // namespace control
