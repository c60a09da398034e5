// Tests of devices in SchedulerConfig: resources beside GPUs, and types of products.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "api/device_resources.h"
#include "translation/devices.h"

namespace control {
namespace {

using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;

kube::Node node_that_has(const json& allocatable, const json& labels = json::object()) {
  return kube::decode<kube::Node>({{"metadata", {{"name", "g1"}, {"labels", labels}}},
                                   {"status", {{"allocatable", allocatable}}}})
      .value();
}

// Returns a node with one GPU of the product.
kube::Node gpu_node(const std::string& product) {
  const bool is_amd = product.starts_with("AMD");
  return is_amd ? node_that_has({{"amd.com/gpu", "1"}}, {{"amd.com/gpu.product-name", product}})
                : node_that_has({{"nvidia.com/gpu", "1"}}, {{"nvidia.com/gpu.product", product}});
}

bool has(const kube::Node& node, const std::string& type, const kube::DevicesConfig& config = {}) {
  return sched::have_devices(devices_of(node, {}, config), devices_from({{"gpu", type, 1}}));
}

// The spellings of public scripts, most of which name a short form of the product.
TEST(DeviceTypes, ThatScriptsSpellAreWordsOfTheirProductsLabel) {
  struct Spelling {
    const char* type;
    const char* product;
  };
  const Spelling all[] = {
      {"a100", "NVIDIA-A100-SXM4-80GB"},
      {"a100", "A100-PCIE-40GB"},
      {"A100", "NVIDIA-A100-PCIE-40GB"},
      {"v100", "Tesla-V100-SXM2-32GB"},
      {"V100", "Tesla-V100-PCIE-16GB"},
      {"tesla", "Tesla-V100-PCIE-16GB"},
      {"p100", "Tesla-P100-PCIE-16GB"},
      {"k80", "Tesla-K80"},
      {"t4", "Tesla-T4"},
      {"h100", "NVIDIA-H100-80GB-HBM3"},
      {"h100", "NVIDIA-H100-PCIe"},
      {"h200", "NVIDIA-H200"},
      {"a40", "NVIDIA-A40"},
      {"a30", "NVIDIA-A30"},
      {"a10", "NVIDIA-A10"},
      {"l4", "NVIDIA-L4"},
      {"l40", "NVIDIA-L40"},
      {"l40s", "NVIDIA-L40S"},
      {"a6000", "NVIDIA-RTX-A6000"},
      {"rtxa6000", "NVIDIA-RTX-A6000"},
      {"a5000", "NVIDIA-RTX-A5000"},
      {"rtx8000", "Quadro-RTX-8000"},
      {"rtx_8000", "Quadro-RTX-8000"},
      {"rtx6000", "Quadro-RTX-6000"},
      {"rtx2080ti", "NVIDIA-GeForce-RTX-2080-Ti"},
      {"2080ti", "NVIDIA-GeForce-RTX-2080-Ti"},
      {"geforce_rtx_2080_ti", "GeForce-RTX-2080-Ti"},
      {"gtx1080ti", "NVIDIA-GeForce-GTX-1080-Ti"},
      {"1080ti", "GeForce-GTX-1080-Ti"},
      {"rtx3090", "NVIDIA-GeForce-RTX-3090"},
      {"3090", "NVIDIA-GeForce-RTX-3090"},
      {"rtx4090", "NVIDIA-GeForce-RTX-4090"},
      {"titanrtx", "NVIDIA-TITAN-RTX"},
      {"mi100", "AMD_Instinct_MI100"},
      {"mi210", "AMD_Instinct_MI210"},
      {"mi250x", "AMD_Instinct_MI250X"},
      {"mi300x", "AMD_Instinct_MI300X_OAM"},
  };
  for (const auto& [type, product] : all) {
    EXPECT_TRUE(has(gpu_node(product), type)) << type << " of " << product;
  }
  // A longer word is another product.
  EXPECT_FALSE(has(gpu_node("NVIDIA-L40S"), "l40"));
  EXPECT_FALSE(has(gpu_node("NVIDIA-A100-SXM4-80GB"), "a10"));
  EXPECT_FALSE(has(gpu_node("NVIDIA-RTX-A6000"), "rtx6000"));
  EXPECT_FALSE(has(gpu_node("NVIDIA-GeForce-RTX-2080"), "rtx2080ti"));
}

// Words that do not stand together, and a word that is longer than what scripts say.
TEST(DeviceTypes, OfTheTableReplaceTheWordsOfTheLabel) {
  const kube::DevicesConfig config{
      .types = {{"NVIDIA-A100-SXM4-80GB", "A100_80"}, {"mi250x", "mi250"}, {"A100", "a100_40"}}};
  EXPECT_THAT(kube::devices_config_problems(config), IsEmpty());
  const kube::Node large = gpu_node("NVIDIA-A100-SXM4-80GB");
  EXPECT_EQ(to_string(devices_of(large, {}, config)), "gpu:nvidia-a100_80:1");
  EXPECT_TRUE(has(large, "a100_80", config));
  EXPECT_TRUE(has(large, "nvidia", config)) << "by what a pod asks for";
  EXPECT_FALSE(has(large, "sxm4", config));
  const kube::Node small = gpu_node("A100-PCIE-40GB");
  EXPECT_TRUE(has(small, "a100_40", config));
  EXPECT_FALSE(has(small, "a100_80", config));
  EXPECT_FALSE(has(gpu_node("AMD_Instinct_MI250X"), "mi250"));
  EXPECT_TRUE(has(gpu_node("AMD_Instinct_MI250X"), "mi250", config));
}

kube::DevicesConfig with_fpgas() {
  return {.resources = {{"example.com/fpga", "fpga"},
                        {"habana.ai/gaudi", "gpu", "gaudi2"},
                        {"xilinx.com/u250", "card", "U250"},
                        {"xilinx.com/u280", "card", "u280"}}};
}

TEST(DeviceResources, OfTheTableAreCountedUnderTheirNames) {
  const kube::DevicesConfig config = with_fpgas();
  ASSERT_THAT(kube::devices_config_problems(config), IsEmpty());
  const kube::Node node = node_that_has({{"example.com/fpga", "2"},
                                         {"habana.ai/gaudi", "8"},
                                         {"xilinx.com/u250", "3"},
                                         {"xilinx.com/u280", "4"},
                                         {"example.com/other", "5"}});
  EXPECT_EQ(to_string(devices_of(node, {{"xilinx.com/u280", 1}}, config)),
            "fpga:2,gpu:gaudi2:8,card:u250:3,card:u280:3");
  EXPECT_EQ(to_string(devices_of(node, {}, {})), "");
  // A pod's request by the resource and a job's by the name are the same.
  const auto asked = [&](const DeviceResources& resources) {
    return device_text(devices_asked(resources, 2, config));
  };
  EXPECT_EQ(asked({{"example.com/fpga", 1}}), "fpga:2");
  EXPECT_EQ(asked({{"xilinx.com/u250", 1}, {"habana.ai/gaudi", 1}}), "gpu:gaudi2:2,card:u250:2");
  EXPECT_EQ(asked({{"example.com/other", 1}}), "");
  const auto resources = [&](const std::vector<kube::JobDevice>& devices, const kube::Node* on) {
    return resources_of(devices, on, config);
  };
  EXPECT_THAT(resources({{"fpga", "", 2}, {"card", "u280", 1}}, &node),
              ElementsAre(Pair("example.com/fpga", 2), Pair("xilinx.com/u280", 1)));
  // The node has lost them all.
  EXPECT_THAT(resources({{"card", "u280", 1}, {"gpu", "gaudi2", 1}, {"fpga", "", 1}}, nullptr),
              ElementsAre(Pair("example.com/fpga", 1), Pair("habana.ai/gaudi", 1),
                          Pair("xilinx.com/u280", 1)));
  const kube::Node gpus_alone = gpu_node("Tesla-T4");
  EXPECT_THAT(resources({{"fpga", "", 1}}, &gpus_alone), ElementsAre(Pair("example.com/fpga", 1)));
  EXPECT_TRUE(kube::is_gpu("habana.ai/gaudi", config));
  EXPECT_FALSE(kube::is_gpu("example.com/fpga", config));
  EXPECT_THAT(unknown_devices({{"nic", "", 1}}, "d", config),
              ElementsAre("d[0].name: no node has devices of the name \"nic\"; write card, fpga or "
                          "gpu"));
}

TEST(DeviceResources, OfAJobAndOfItsTemplateAreComparedByName) {
  const kube::DevicesConfig config = with_fpgas();
  const auto same = [&](const std::vector<kube::JobDevice>& job, const DeviceResources& pod) {
    const auto devices = same_devices(job, devices_asked(pod, 1, config));
    return devices ? device_text(*devices) : "contradiction";
  };
  EXPECT_EQ(
      same({{"gpu", "a100", 2}, {"fpga", "", 1}}, {{"example.com/fpga", 1}, {"nvidia.com/gpu", 2}}),
      "fpga:1,gpu:a100:2");
  EXPECT_EQ(same({{"gpu", "", 1}}, {{"example.com/fpga", 1}}), "contradiction");
  EXPECT_EQ(same({{"card", "", 1}}, {{"xilinx.com/u250", 1}}), "card:u250:1");
  EXPECT_EQ(same({{"card", "u280", 1}}, {{"xilinx.com/u250", 1}}), "contradiction");
}

TEST(DeviceConfig, IsRefusedWithAWordAboutTheEntry) {
  const auto of_resources = [](std::vector<kube::DeviceResource> resources) {
    return kube::devices_config_problems({.resources = std::move(resources)});
  };
  const std::string field = "spec.devices.resources[0]";
  EXPECT_THAT(of_resources({{"fpga", "fpga"}}),
              ElementsAre(HasSubstr(field + ".resource: \"fpga\" is not an extended resource")));
  EXPECT_THAT(of_resources({{"kubernetes.io/batch", "b"}}),
              ElementsAre(HasSubstr("is not an extended resource")));
  EXPECT_THAT(of_resources({{"nvidia.com/mig-1g.5gb", "gpu", "small"}}),
              ElementsAre(HasSubstr("is counted as gpu without an entry")));
  EXPECT_THAT(of_resources({{"a.b/c", "fp ga"}}), ElementsAre(HasSubstr(".name: invalid name")));
  EXPECT_THAT(of_resources({{"a.b/c", "GPU", "x"}}), ElementsAre(HasSubstr("write gpu")));
  EXPECT_THAT(of_resources({{"a.b/c", "none"}}), ElementsAre(HasSubstr("means something else")));
  EXPECT_THAT(of_resources({{"a.b/c", "fpga", "2"}}), ElementsAre(HasSubstr("invalid type \"2\"")));
  EXPECT_THAT(of_resources({{"a.b/c", "gpu"}}), ElementsAre(HasSubstr(".type: is missing")));
  EXPECT_THAT(of_resources({{"a.b/c", "gpu", "nvidia-t4"}}),
              ElementsAre(HasSubstr("has the word nvidia")));
  EXPECT_THAT(of_resources({{"a.b/c", "x"}, {"a.b/c", "y"}}),
              ElementsAre(HasSubstr("resources[1].resource: \"a.b/c\" stands twice")));
  EXPECT_THAT(of_resources({{"a.b/c", "x", "t"}, {"a.b/d", "x"}}),
              ElementsAre(HasSubstr("a.b/c and a.b/d are both x; give each a type")));
  EXPECT_THAT(of_resources({{"a.b/c", "x", "u250"}, {"a.b/d", "x", "U250-dd"}}),
              ElementsAre(HasSubstr("fits both")));
  EXPECT_THAT(kube::devices_config_problems({.types = {{"", "a"}, {"T4", "t 4"}, {"t4", "b"}}}),
              ElementsAre(HasSubstr("types[0].product: is missing"),
                          HasSubstr("types[1].type: invalid type"),
                          HasSubstr("types[2].product: \"t4\" stands twice")));
}

}  // namespace
}  // namespace control
