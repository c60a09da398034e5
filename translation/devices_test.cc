// Devices: what nodes have, what jobs may ask for, and what their pods ask for.
#include "translation/devices.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "translation/allocation.h"
#include "translation/job_translation.h"
#include "translation/node_translation.h"

namespace control {
namespace {

using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;

kube::Node node_with(const json& allocatable, const json& labels) {
  return kube::decode<kube::Node>({{"metadata", {{"name", "g1"}, {"labels", labels}}},
                                   {"status", {{"allocatable", allocatable}}}})
      .value();
}

kube::Node a100() {
  return node_with({{"cpu", "8"}, {"nvidia.com/gpu", "4"}, {"example.com/other", "3"}},
                   {{"nvidia.com/gpu.product", "NVIDIA-A100-SXM4-80GB"}});
}

TEST(Devices, AreTheExtendedResourcesOfANode) {
  EXPECT_EQ(to_string(devices_of(a100(), {}, {})), "gpu:nvidia-a100-sxm4-80gb:4");
  EXPECT_EQ(to_string(devices_of(a100(), {{"nvidia.com/gpu", 3}}, {})),
            "gpu:nvidia-a100-sxm4-80gb:1");
  EXPECT_EQ(to_string(devices_of(a100(), {{"nvidia.com/gpu", 4}}, {})), "");
  EXPECT_EQ(to_string(devices_of(node_with({{"nvidia.com/gpu", "2"}}, json::object()), {}, {})),
            "gpu:nvidia:2");
  EXPECT_EQ(to_string(devices_of(node_with({{"amd.com/gpu", "8"}},
                                           {{"amd.com/gpu.product-name", "AMD_Instinct_MI250X"}}),
                                 {}, {})),
            "gpu:amd_instinct_mi250x:8");
  EXPECT_EQ(
      to_string(devices_of(node_with({{"nvidia.com/mig-1g.5gb", "7"}, {"nvidia.com/gpu", "1"}},
                                     {{"nvidia.com/gpu.product", "NVIDIA-A100-PCIE-40GB"}}),
                           {}, {})),
      "gpu:nvidia-a100-pcie-40gb:1,gpu:1g.5gb:7");
}

// A label tells one product of several: jobs that name a type could get the other.
TEST(Devices, OfSeveralProductsHaveNoType) {
  const auto devices = [](const json& there, const json& labels) {
    return to_string(devices_of(node_with(there, labels), {}, {}));
  };
  json labels{{"nvidia.com/gpu.product", "Tesla-V100"}, {"nvidia.com/gpu.count", "1"}};
  EXPECT_EQ(devices({{"nvidia.com/gpu", "3"}}, labels), "gpu:nvidia:3");
  EXPECT_EQ(devices({{"nvidia.com/gpu", "1"}}, labels), "gpu:nvidia-tesla-v100:1");
  // Time slicing makes several devices of one.
  labels["nvidia.com/gpu.replicas"] = "4";
  EXPECT_EQ(devices({{"nvidia.com/gpu", "4"}}, labels), "gpu:nvidia-tesla-v100:4");
  labels["nvidia.com/gpu.count"] = "many";
  EXPECT_EQ(devices({{"nvidia.com/gpu", "9"}}, labels), "gpu:nvidia-tesla-v100:9");
  json amd{{"amd.com/gpu.product-name", "AMD_Instinct_MI210"},
           {"beta.amd.com/gpu.product-name.AMD_Instinct_MI210", "1"}};
  EXPECT_EQ(devices({{"amd.com/gpu", "2"}}, amd), "gpu:amd_instinct_mi210:2");
  amd["beta.amd.com/gpu.product-name.AMD_Instinct_MI250X"] = "1";
  EXPECT_EQ(devices({{"amd.com/gpu", "2"}}, amd), "gpu:amd:2");
}

// kube-scheduler gave them away; a kubegang job would wait forever in Pending.
TEST(Devices, OfForeignPodsAreNotForJobs) {
  const auto pod =
      kube::decode<kube::Pod>(
          {{"metadata", {{"name", "p"}}},
           {"spec",
            {{"initContainers",
              json::array(
                  {{{"name", "i"}, {"resources", {{"limits", {{"nvidia.com/gpu", "1"}}}}}}})},
             {"containers",
              json::array(
                  {{{"name", "a"},
                    {"resources",
                     {{"requests", {{"nvidia.com/gpu", "2"}}},
                      {"limits", {{"nvidia.com/gpu", "2"}}}}}},
                   {{"name", "b"}, {"resources", {{"limits", {{"nvidia.com/gpu", "1"}}}}}}})}}}})
          .value();
  EXPECT_THAT(device_requests(pod.spec), ElementsAre(Pair("nvidia.com/gpu", 3)));
  kube::Node node = a100();
  const NodeVerdict verdict =
      translate_node({.node = &node, .foreign_devices = device_requests(pod.spec)});
  EXPECT_EQ(to_string(verdict.spec.devices), "gpu:nvidia-a100-sxm4-80gb:1");
}

// Sidecars run beside the init containers that come after them, and beside all containers: 2 + 1
// against 2 + 2 while the last init container runs; of the profile 3 + 0 before there is a sidecar.
TEST(Devices, OfAPodAreCountedAsKubernetesDoes) {
  const auto with = [](const char* name, const json& limits, const json& more = json::object()) {
    json one{{"name", name}, {"resources", {{"limits", limits}}}};
    one.update(more);
    return one;
  };
  const auto pod =
      kube::decode<kube::Pod>(
          {{"metadata", {{"name", "p"}}},
           {"spec",
            {{"initContainers",
              json::array({with("a", {{"nvidia.com/mig-1g.5gb", 3}}),
                           with("s", {{"nvidia.com/gpu", 2}}, {{"restartPolicy", "Always"}}),
                           with("b", {{"nvidia.com/gpu", 2}})})},
             {"containers", json::array({with("c", {{"nvidia.com/gpu", 1}}),
                                         with("d", {{"cpu", 1}, {"google.com/tpu", 1}})})}}}})
          .value();
  EXPECT_THAT(device_requests(pod.spec),
              ElementsAre(Pair("google.com/tpu", 1), Pair("nvidia.com/gpu", 4),
                          Pair("nvidia.com/mig-1g.5gb", 3)));
}

// A pod names a resource and no product, so any product of that maker will do, and no other's.
TEST(Devices, OfAPodAreOfAnyProductOfTheirMaker) {
  const kube::Node rtx = node_with({{"nvidia.com/gpu", "4"}, {"nvidia.com/mig-1g.5gb", "7"}},
                                   {{"nvidia.com/gpu.product", "Quadro-RTX-8000"}});
  const kube::Node amd =
      node_with({{"amd.com/gpu", "8"}}, {{"amd.com/gpu.product-name", "Instinct_MI250X"}});
  const auto fits = [](const kube::Node& node, const DeviceResources& pod, int pods) {
    return sched::have_devices(devices_of(node, {}, {}),
                               devices_from(devices_asked(pod, pods, {})));
  };
  EXPECT_TRUE(fits(rtx, {{"nvidia.com/gpu", 2}}, 2));
  EXPECT_FALSE(fits(rtx, {{"nvidia.com/gpu", 5}}, 1)) << "a profile is no GPU";
  EXPECT_TRUE(fits(rtx, {{"nvidia.com/mig-1g.5gb", 7}, {"nvidia.com/gpu", 1}}, 1));
  EXPECT_FALSE(fits(rtx, {{"amd.com/gpu", 1}}, 1));
  EXPECT_TRUE(fits(amd, {{"amd.com/gpu", 8}}, 1));
  EXPECT_FALSE(fits(amd, {{"nvidia.com/gpu", 1}}, 1));
  EXPECT_TRUE(sched::have_devices(devices_of(rtx, {}, {}), devices_from({{"gpu", "rtx8000", 1}})));
}

TEST(Devices, OfAJobAndOfItsTemplateMustBeTheSame) {
  const auto same = [](const std::vector<kube::JobDevice>& job, const DeviceResources& pod) {
    const auto devices = same_devices(job, devices_asked(pod, 1, {}));
    return devices ? device_text(*devices) : "contradiction";
  };
  EXPECT_EQ(same({}, {{"nvidia.com/gpu", 2}}), "gpu:nvidia:2");
  EXPECT_EQ(same({{"gpu", "", 2}}, {{"nvidia.com/gpu", 2}}), "gpu:nvidia:2");
  EXPECT_EQ(same({{"gpu", "A100", 2}}, {{"nvidia.com/gpu", 2}}), "gpu:a100:2");
  EXPECT_EQ(same({{"gpu", "1g.5gb", 1}}, {{"nvidia.com/mig-1g.5gb", 1}}), "gpu:1g.5gb:1");
  EXPECT_EQ(same({{"gpu", "", 1}}, {{"nvidia.com/gpu", 2}}), "contradiction");
  EXPECT_EQ(same({{"gpu", "1g.5gb", 2}}, {{"nvidia.com/gpu", 2}}), "contradiction");
  EXPECT_EQ(same({{"gpu", "a100", 1}}, {{"nvidia.com/mig-1g.5gb", 1}}), "contradiction");
  EXPECT_EQ(same({{"gpu", "a", 1}, {"gpu", "b", 1}}, {{"nvidia.com/gpu", 2}}), "contradiction");
}

TEST(Devices, OfAPodAreResourcesOfItsNode) {
  const kube::Node node = a100();
  EXPECT_THAT(resources_of({{"gpu", "nvidia-a100-sxm4-80gb", 2}}, &node, {}),
              ElementsAre(Pair("nvidia.com/gpu", 2)));
  const kube::Node amd = node_with({{"amd.com/gpu", "8"}}, json::object());
  EXPECT_THAT(resources_of({{"gpu", "amd", 1}}, &amd, {}), ElementsAre(Pair("amd.com/gpu", 1)));
  // The node has lost them: the pod must not run without.
  EXPECT_THAT(resources_of({{"gpu", "a100", 1}}, nullptr, {}),
              ElementsAre(Pair("nvidia.com/gpu", 1)));
  EXPECT_THAT(resources_of({{"gpu", "amd", 1}}, nullptr, {}), ElementsAre(Pair("amd.com/gpu", 1)));
  EXPECT_THAT(resources_of({{"gpu", "1g.5gb", 1}}, nullptr, {}),
              ElementsAre(Pair("nvidia.com/mig-1g.5gb", 1)));
}

// A start that was stored before the node's devices had the name that they have now.
TEST(Devices, OfAPodAreResourcesOfItsNodeUnderAnOlderName) {
  const kube::Node amd = node_with({{"amd.com/gpu", "8"}, {"nvidia.com/gpu", "0"}},
                                   {{"amd.com/gpu.product-name", "Instinct_MI300X"}});
  EXPECT_THAT(resources_of({{"gpu", "instinct_mi300x", 2}}, &amd, {}),
              ElementsAre(Pair("amd.com/gpu", 2)));
  EXPECT_THAT(resources_of({{"gpu", "amd", 2}}, &amd, {}), ElementsAre(Pair("amd.com/gpu", 2)));
  const kube::Node unlabeled = node_with({{"amd.com/gpu", "8"}}, json::object());
  EXPECT_THAT(resources_of({{"gpu", "instinct_mi300x", 2}}, &unlabeled, {}),
              ElementsAre(Pair("amd.com/gpu", 2)));
}

// A new leader must not give a device away that a running job has.
TEST(Devices, OfAnAllocationComeBackExactly) {
  sched::Allocation allocation;
  for (const int node : {0, 1, 2}) {
    allocation.nodes.push_back(
        {.node = sched::NodeIndex{node}, .cores = sched::CoreSet::first(2), .cpus = 2, .tasks = 1});
  }
  allocation.devices = {{sched::NodeIndex{0}, {"gpu", "a"}, 2},
                        {sched::NodeIndex{1}, {"gpu", "a"}, 2},
                        {sched::NodeIndex{2}, {"gpu", "a"}, 1},
                        {sched::NodeIndex{2}, {"gpu", "b"}, 1}};
  const std::vector<std::string> names{"n1", "n2", "n3"};
  const kube::Allocation encoded = encode_allocation(
      allocation, [&](sched::NodeIndex n) -> const std::string& { return names[n.index()]; });
  ASSERT_EQ(encoded.shares.size(), 2U);
  EXPECT_EQ(encoded.shares[0].hostlist, "n[1-2]");
  EXPECT_EQ(encoded.shares[0].devices, (std::vector<kube::JobDevice>{{"gpu", "a", 2}}));
  const auto decoded = decode_allocation(encoded, [&](const std::string& name) {
    return std::optional{KnownNode{sched::NodeIndex{name.back() - '1'}, 8, 8}};
  });
  ASSERT_TRUE(decoded.ok());
  EXPECT_EQ(decoded->allocation, allocation);
}

TEST(Devices, OfAJobAreCheckedOneByOne) {
  EXPECT_THAT(device_problems({{"gpu", "A100", 2}, {"gpu", "v100", 1}}, "d"), ElementsAre());
  EXPECT_THAT(unknown_devices({{"gpu", "", 1}, {"nic", "", 1}}, "d", {}),
              ElementsAre("d[1].name: no node has devices of the name \"nic\"; write gpu"));
  EXPECT_THAT(device_problems({{"", "", 1}}, "d"), ElementsAre("d[0].name: is missing; write gpu"));
  EXPECT_THAT(device_problems({{"gpu", "", 0}}, "d"),
              ElementsAre("d[0].count: 0 is not possible; use 1 to 65535"));
  EXPECT_THAT(device_problems({{"gpu", "a", 1}, {"gpu", "", 1}}, "d"),
              ElementsAre(HasSubstr("d[1]: \"gpu\" stands twice")));
  EXPECT_EQ(to_string(devices_from({{"gpu", "A100", 2}})), "gpu:a100:2");
}

// The taint that keeps others off nodes with GPUs is named after the resource.
TEST(Devices, TolerateTheTaintOfTheirNodes) {
  kube::Node node = a100();
  node.spec.taints = {{.key = "nvidia.com/gpu", .value = "present", .effect = "NoSchedule"}};
  EXPECT_FALSE(can_use({}, {}, node));
  const auto can_be_used = [&](const std::vector<kube::JobDevice>& devices,
                               const DeviceResources& resources) {
    return can_use({}, with_device_tolerations({}, devices, resources, {}), node);
  };
  EXPECT_TRUE(can_be_used({{"gpu", "", 1}}, {}));
  EXPECT_TRUE(can_be_used({}, {{"nvidia.com/gpu", 1}}));
  EXPECT_TRUE(can_be_used({}, {{"nvidia.com/mig-1g.5gb", 1}}));
  EXPECT_FALSE(can_be_used({{"fpga", "", 1}}, {{"example.com/fpga", 1}}));
}

}  // namespace
}  // namespace control
