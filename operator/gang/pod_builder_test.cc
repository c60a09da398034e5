// The pods of a start: which, and what they are given.
#include "operator/gang/pod_builder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "translation/pod_slots.h"
#include "translation/testing/job_of_spec.h"

namespace control {
namespace {

using nlohmann::json;
using std::chrono::seconds;

// Twelve slots, so that indexes have one and two digits. A name of another start has the same index
// and another hash. The name is the only link from an answer of the API server to the slot.
TEST(Pods, AreFoundByTheirNames) {
  const kube::Allocation allocation{.hostlist = "n[1-12]", .shares = {{.hostlist = "n[1-12]"}}};
  const auto slots = pod_slots({"load", "uid", 2}, allocation, kube::PodPolicy::kPerNode).value();
  ASSERT_EQ(slots.size(), 12U);
  for (const PodSlot& slot : slots) EXPECT_EQ(find_slot(slots, slot.name), &slot);
  const std::string first = slots[0].name.substr(0, slots[0].name.size() - 1);
  EXPECT_EQ(find_slot(slots, first + "12"), nullptr) << "no such pod";
  EXPECT_EQ(find_slot(slots, pod_name("load", "uid", 1, 3)), nullptr) << "of another start";
  for (const char* other : {"", "load", "load-", "-3", "3"}) {
    EXPECT_EQ(find_slot(slots, other), nullptr) << other;
  }
}

// Two nodes with 4 CPUs, 2 KiB and two tasks each: per node a pod has all of that, per task a half.
// Names are short, since they become host names.
TEST(Pods, OnePerNodeOrOnePerTask) {
  kube::Allocation allocation{.hostlist = "n[1-2]", .cpus = 8};
  allocation.shares = {
      {.hostlist = "n[1-2]", .cores = "0-3", .cpus = 4, .tasks = 2, .memory = kube::Bytes{2048}}};
  const auto per_node = pod_slots({"j", "u", 1}, allocation, kube::PodPolicy::kPerNode).value();
  ASSERT_EQ(per_node.size(), 2U);
  EXPECT_EQ(per_node[1].node, "n2");
  EXPECT_EQ(per_node[1].first_task, 2);
  EXPECT_EQ(per_node[1].cpus, 4);
  const auto per_task = pod_slots({"j", "u", 1}, allocation, kube::PodPolicy::kPerTask).value();
  ASSERT_EQ(per_task.size(), 4U);
  EXPECT_EQ(per_task[3].node, "n2");
  EXPECT_EQ(per_task[3].cpus, 2);
  EXPECT_EQ(per_task[3].memory, kube::Bytes{1024});
  // Another start, another name.
  EXPECT_NE(pod_name("j", "u", 1, 0), pod_name("j", "u", 2, 0));
  EXPECT_EQ(pod_name("j", "u", 1, 0).size(), std::string{"j-xxxxx-0"}.size());
}

// 2 CPUs are a request of 2m and a limit of 2: the request is only a token, so that kubelet takes
// the pods of several gangs.
TEST(Pods, CarryWhatTheOperatorDecided) {
  kube::Job job = job_of_spec(
      {{"resources", {{"cpusPerTask", 2}}},
       {"template",
        {{"metadata", {{"labels", {{"app", "x"}}}}},
         {"spec",
          {{"containers",
            json::array({{{"name", "main"},
                          {"env", json::array({{{"name", "SLURM_JOB_NAME"}, {"value", "mine"}}})},
                          {"workingDir", "/x"}}})}}}}}});
  job.status.job_id = 42;
  job.status.starts = 1;
  job.status.partition = "batch";
  job.status.allocation = kube::Allocation{.hostlist = "n[1-2]", .cpus = 4};
  job.status.allocation->shares = {{.hostlist = "n[1-2]",
                                    .cores = "0-1",
                                    .cpus = 2,
                                    .tasks = 1,
                                    .memory = kube::Bytes{1 << 30}}};
  const auto slots =
      pod_slots({"myload", "u-1", 1}, *job.status.allocation, kube::PodPolicy::kPerNode).value();
  const auto built = build_pod(job, slots[1], gang_layout(slots), {.kill_wait = seconds{30}});
  ASSERT_TRUE(built.ok()) << built.error().message;
  const json& pod_json = *built;
  EXPECT_EQ(pod_json["metadata"]["name"], slots[1].name);
  EXPECT_EQ(pod_json["metadata"]["labels"]["app"], "x");
  EXPECT_EQ(pod_json["metadata"]["labels"]["kubegang.io/job-id"], "42");
  EXPECT_EQ(pod_json["metadata"]["ownerReferences"][0]["uid"], "u-1");
  const json& spec = pod_json["spec"];
  EXPECT_EQ(spec["nodeName"], "n2");
  EXPECT_EQ(spec["restartPolicy"], "Never");
  EXPECT_EQ(spec["terminationGracePeriodSeconds"], 30);
  EXPECT_EQ(spec["hostname"], "myload-1");
  const json& main = spec["containers"][0];
  EXPECT_EQ(main["workingDir"], "/x");  // what we do not know is kept
  EXPECT_EQ(main["resources"]["requests"]["cpu"], "2m");
  EXPECT_EQ(main["resources"]["limits"]["cpu"], "2");
  EXPECT_EQ(main["resources"]["limits"]["memory"], "1Gi");
  std::map<std::string, std::string> env;
  for (const json& one : main["env"]) env[one["name"]] = one["value"];
  EXPECT_EQ(env["SLURM_JOB_ID"], "42");
  EXPECT_EQ(env["SLURM_JOB_NAME"], "mine");  // the template's own wins
  EXPECT_EQ(env["SLURM_NODEID"], "1");
  EXPECT_EQ(env["SLURM_PROCID"], "1");
  EXPECT_EQ(env["SLURM_NNODES"], "2");
  EXPECT_EQ(env["SLURM_TASKS_PER_NODE"], "1(x2)");
  EXPECT_EQ(env["SLURM_JOB_NODELIST"], "n[1-2]");
}

// Two tasks of one array never share the name of a pod, a host or a Service.
TEST(Pods, OfATaskOfAnArrayKnowIt) {
  kube::Job job =
      job_of_spec({{"template", {{"spec", {{"containers", json::array({{{"name", "main"}}})}}}}}});
  job.metadata.name = "sweep";
  job.metadata.uid = "u-1";
  job.status.job_id = 43;
  job.status.starts = 1;
  job.status.allocation = kube::Allocation{.hostlist = "n[1-2]", .cpus = 2};
  job.status.allocation->shares = {{.hostlist = "n[1-2]", .cpus = 1, .tasks = 1}};
  const JobIdentity identity{"sweep", "u-1", 1, 7};
  const auto slots = pod_slots(identity, *job.status.allocation, kube::PodPolicy::kPerNode).value();
  EXPECT_TRUE(slots[1].name.starts_with("sweep-7-")) << slots[1].name;
  EXPECT_NE(pod_name({"sweep", "u-1", 1, 7}, 0), pod_name({"sweep", "u-1", 2, 7}, 0));
  EXPECT_NE(pod_name({"sweep", "u-1", 1, 7}, 0), pod_name({"sweep", "u-1", 1, 8}, 0));
  GangLayout gang = gang_layout(slots);
  gang.array = ArrayPlace{.job_id = 42, .task = 7, .count = 3, .min = 1, .max = 7, .step = 3};
  const auto built = build_pod(job, slots[1], gang, {.kill_wait = seconds{30}});
  ASSERT_TRUE(built.ok()) << built.error().message;
  const json& pod_json = *built;
  EXPECT_EQ(pod_json["metadata"]["labels"]["kubegang.io/array-task"], "7");
  EXPECT_EQ(pod_json["metadata"]["labels"]["kubegang.io/job-id"], "43");
  EXPECT_EQ(pod_json["metadata"]["ownerReferences"][0]["uid"], "u-1");
  EXPECT_EQ(pod_json["spec"]["hostname"], "sweep-7-1");
  EXPECT_EQ(pod_json["spec"]["subdomain"], "sweep");
  EXPECT_EQ(build_service(job, identity).metadata.name, "sweep") << "one for all tasks";
  EXPECT_EQ(build_service(job, identity).spec.selector.size(), 1U);
  kube::Job script = job;
  script.spec.batch.emplace();
  const kube::Service own = build_service(script, identity);
  EXPECT_EQ(own.metadata.name + "-steps", step_secret_name(identity)) << "of this start alone";
  EXPECT_EQ(own.spec.selector.at("kubegang.io/array-task"), "7");
  std::map<std::string, std::string> env;
  for (const json& one : pod_json["spec"]["containers"][0]["env"]) env[one["name"]] = one["value"];
  EXPECT_EQ(env["SLURM_JOB_ID"], "43");
  EXPECT_EQ(env["SLURM_ARRAY_JOB_ID"], "42");
  EXPECT_EQ(env["SLURM_ARRAY_TASK_ID"], "7");
  EXPECT_EQ(env["SLURM_ARRAY_TASK_COUNT"], "3");
  EXPECT_EQ(env["SLURM_ARRAY_TASK_MIN"], "1");
  EXPECT_EQ(env["SLURM_ARRAY_TASK_MAX"], "7");
  EXPECT_EQ(env["SLURM_ARRAY_TASK_STEP"], "3");
}

// kubelet starts a pod without the devices that its node does not have at that moment, so its pods
// are bound by kube-scheduler, which counts them, too.
TEST(Pods, WithDevicesArePinnedAndAskForThem) {
  kube::Job job =
      job_of_spec({{"resources", {{"devices", json::array({{{"name", "gpu"}, {"count", 2}}})}}},
                   {"template",
                    {{"spec",
                      {{"containers", json::array({{{"name", "main"}}, {{"name", "logs"}}})},
                       {"schedulerName", "kubegang"},
                       {"tolerations", json::array({{{"key", "mine"}}})}}}}}});
  job.status.allocation = kube::Allocation{.hostlist = "n1", .cpus = 2};
  job.status.allocation->shares = {
      {.hostlist = "n1", .cpus = 2, .tasks = 2, .devices = {{"gpu", "nvidia", 2}}}};
  const auto slots =
      pod_slots({"j", "u", 1}, *job.status.allocation, kube::PodPolicy::kPerNode).value();
  EXPECT_EQ(slots[0].devices, (std::vector<kube::JobDevice>{{"gpu", "nvidia", 2}}));
  const auto halves =
      pod_slots({"j", "u", 1}, *job.status.allocation, kube::PodPolicy::kPerTask).value();
  EXPECT_EQ(halves[1].devices, (std::vector<kube::JobDevice>{{"gpu", "nvidia", 1}}));
  // With two types, each pod has as many GPUs.
  kube::Allocation mixed = *job.status.allocation;
  mixed.shares[0].devices = {{"gpu", "a100", 3}, {"fpga", "", 2}, {"gpu", "v100", 1}};
  const auto of_types = pod_slots({"j", "u", 1}, mixed, kube::PodPolicy::kPerTask).value();
  EXPECT_EQ(of_types[0].devices,
            (std::vector<kube::JobDevice>{{"gpu", "a100", 2}, {"fpga", "", 1}}));
  EXPECT_EQ(of_types[1].devices, (std::vector<kube::JobDevice>{
                                     {"gpu", "a100", 1}, {"fpga", "", 1}, {"gpu", "v100", 1}}));
  const auto built =
      build_pod(job, slots[0], gang_layout(slots), {.devices = {{"nvidia.com/gpu", 2}}});
  ASSERT_TRUE(built.ok()) << built.error().message;
  const json& spec = (*built)["spec"];
  EXPECT_FALSE(spec.contains("nodeName"));
  EXPECT_FALSE(spec.contains("schedulerName")) << "kube-scheduler binds it";
  EXPECT_TRUE(spec["affinity"].contains("nodeAffinity"));
  EXPECT_EQ(spec["tolerations"].back(), (json{{"key", "nvidia.com/gpu"}, {"operator", "Exists"}}));
  EXPECT_EQ(spec["containers"][0]["resources"]["requests"]["nvidia.com/gpu"], "2");
  EXPECT_EQ(spec["containers"][0]["resources"]["limits"]["nvidia.com/gpu"], "2");
  EXPECT_FALSE(spec["containers"][1]["resources"]["limits"].contains("nvidia.com/gpu"));
  std::map<std::string, std::string> env;
  for (const json& one : spec["containers"][0]["env"]) env[one["name"]] = one["value"];
  EXPECT_EQ(env["SLURM_JOB_GPUS"], "0,1");
  EXPECT_EQ(env["SLURM_GPUS_ON_NODE"], "2");
  EXPECT_EQ(env["CUDA_VISIBLE_DEVICES"], "0,1");
  EXPECT_FALSE(env.contains("ROCR_VISIBLE_DEVICES"));
}

// Among the devices of the table, only those that it calls gpu are GPUs. A profile is part of a
// GPU, after which the taint is named.
TEST(Pods, WithOtherDevicesHaveTheVariablesOfTheirGpusAlone) {
  kube::Job job = job_of_spec(json::object());
  job.status.allocation = kube::Allocation{.hostlist = "n1", .cpus = 2};
  job.status.allocation->shares = {{.hostlist = "n1", .cpus = 2, .tasks = 1}};
  const auto slots =
      pod_slots({"j", "u", 1}, *job.status.allocation, kube::PodPolicy::kPerNode).value();
  const auto build = [&](const DeviceResources& devices) {
    const PodOptions options{
        .devices = devices,
        .devices_config = {
            .resources = {{"example.com/fpga", "fpga"}, {"habana.ai/gaudi", "gpu", "gaudi"}}}};
    return build_pod(job, slots[0], gang_layout(slots), options).value()["spec"];
  };
  const json spec =
      build({{"example.com/fpga", 4}, {"habana.ai/gaudi", 2}, {"nvidia.com/mig-1g.5gb", 1}});
  std::map<std::string, std::string> env;
  for (const json& one : spec["containers"][0]["env"]) env[one["name"]] = one["value"];
  EXPECT_EQ(env["SLURM_JOB_GPUS"], "0,1,2");
  EXPECT_EQ(env["CUDA_VISIBLE_DEVICES"], "0");
  EXPECT_EQ(spec["containers"][0]["resources"]["limits"]["example.com/fpga"], "4");
  EXPECT_EQ(spec["tolerations"].back(), (json{{"key", "nvidia.com/gpu"}, {"operator", "Exists"}}));
  const json fpga = build({{"example.com/fpga", 4}});
  EXPECT_EQ(fpga["containers"][0]["env"].dump().find("GPUS"), std::string::npos);
  EXPECT_TRUE(fpga["affinity"].contains("nodeAffinity"));
}

// The author has said which container has which devices; none is asked for a second time.
TEST(Pods, WithDevicesOfTheirTemplateKeepThemWhereTheyAre) {
  const auto gpus = [](const char* name, const char* resource, int count) {
    return json{{"name", name}, {"resources", {{"limits", {{resource, count}}}}}};
  };
  kube::Job job =
      job_of_spec({{"resources", {{"devices", json::array({{{"name", "gpu"}, {"count", 3}}})}}},
                   {"template",
                    {{"spec",
                      {{"containers", json::array({{{"name", "logs"}},
                                                   gpus("main", "nvidia.com/gpu", 2),
                                                   gpus("eval", "nvidia.com/gpu", 1)})}}}}}});
  job.status.allocation = kube::Allocation{.hostlist = "n1", .cpus = 2};
  job.status.allocation->shares = {
      {.hostlist = "n1", .cpus = 2, .tasks = 1, .devices = {{"gpu", "nvidia", 3}}}};
  const auto slots =
      pod_slots({"j", "u", 1}, *job.status.allocation, kube::PodPolicy::kPerNode).value();
  const auto built =
      build_pod(job, slots[0], gang_layout(slots), {.devices = {{"nvidia.com/gpu", 3}}});
  ASSERT_TRUE(built.ok()) << built.error().message;
  const json& spec = (*built)["spec"];
  EXPECT_FALSE(spec.contains("nodeName"));
  EXPECT_TRUE(spec["affinity"].contains("nodeAffinity"));
  EXPECT_EQ(spec["tolerations"].back(), (json{{"key", "nvidia.com/gpu"}, {"operator", "Exists"}}));
  const json& containers = spec["containers"];
  EXPECT_FALSE(containers[0]["resources"]["limits"].contains("nvidia.com/gpu"));
  EXPECT_EQ(containers[1]["resources"]["limits"]["nvidia.com/gpu"], 2);
  EXPECT_EQ(containers[2]["resources"]["limits"]["nvidia.com/gpu"], 1);
  const auto visible = [](const json& container) {
    for (const json& one : container["env"]) {
      if (one["name"] == "CUDA_VISIBLE_DEVICES") return one["value"].get<std::string>();
    }
    return std::string{"-"};
  };
  EXPECT_EQ(visible(containers[0]), "-");
  EXPECT_EQ(visible(containers[1]), "0,1");
  EXPECT_EQ(visible(containers[2]), "0");
}

// kubelet refuses a pod that it has no room for, so a pod's requests never say what its gang needs.
// Limits are the author's where there are some: the init container keeps its 2 GiB of the pod's 4,
// and the one without a limit has all of them.
TEST(Pods, KeepTheLimitsOfInitContainersAndOfDisk) {
  kube::Job job = job_of_spec(
      {{"template",
        {{"spec",
          {{"initContainers",
            json::array({{{"name", "stage"}, {"resources", {{"limits", {{"memory", "2Gi"}}}}}},
                         {{"name", "plain"}}})},
           {"containers",
            json::array({{{"name", "main"},
                          {"resources",
                           {{"requests", {{"ephemeral-storage", "5Gi"}}},
                            {"limits", {{"memory", "200Mi"}, {"ephemeral-storage", "9Gi"}}}}}},
                         {{"name", "logs"},
                          {"resources", {{"limits", {{"ephemeral-storage", "1Gi"}}}}}}})}}}}}});
  const auto built_with = [&](std::int64_t memory) {
    job.status.allocation = kube::Allocation{.hostlist = "n1", .cpus = 2};
    job.status.allocation->shares = {
        {.hostlist = "n1", .cpus = 2, .tasks = 1, .memory = kube::Bytes{memory}}};
    const auto slots =
        pod_slots({"j", "u", 1}, *job.status.allocation, kube::PodPolicy::kPerNode).value();
    return build_pod(job, slots[0], gang_layout(slots), {});
  };
  const auto built = built_with(std::int64_t{4} << 30);
  ASSERT_TRUE(built.ok()) << built.error().message;
  const auto resources_of = [&](const char* list, std::size_t at) {
    return (*built)["spec"][list][at]["resources"];
  };
  EXPECT_EQ(resources_of("initContainers", 0)["limits"]["memory"], "2Gi");
  EXPECT_EQ(resources_of("initContainers", 1)["limits"]["memory"], "4Gi");
  EXPECT_EQ(resources_of("containers", 0)["limits"]["memory"], "200Mi");
  for (const auto& [at, limit] : {std::pair{0, "9Gi"}, {1, "1Gi"}}) {
    const json of = resources_of("containers", static_cast<std::size_t>(at));
    EXPECT_EQ(of["limits"]["ephemeral-storage"], limit);
    EXPECT_EQ(of["requests"]["ephemeral-storage"], "0") << "absent, it would be the limit";
  }
  EXPECT_EQ(built_with(std::int64_t{1} << 30).error().message,
            "the memory limit of init container stage exceeds the job's memory of 1Gi per node");
}

// The variables that srun would set, in Slurm's notation: "2,1(x2)" is 2 on the first node and 1 on
// each of the two others. Programs compute their rank and the size of the job from them.
TEST(Pods, AreToldOfEachOther) {
  kube::Job job = job_of_spec(json::object());
  job.status.allocation = kube::Allocation{.hostlist = "n[1-3]", .cpus = 8};
  job.status.allocation->shares = {{.hostlist = "n1", .cores = "0-3", .cpus = 4, .tasks = 2},
                                   {.hostlist = "n[2-3]", .cores = "0-1", .cpus = 2, .tasks = 1}};
  const auto slots =
      pod_slots({"j", "u", 1}, *job.status.allocation, kube::PodPolicy::kPerTask).value();
  const GangLayout gang = gang_layout(slots);
  const auto environment = [&](std::size_t pod) {
    const auto built = build_pod(job, slots[pod], gang, {});
    EXPECT_TRUE(built.ok()) << built.error().message;
    std::map<std::string, std::string> env;
    for (const json& one : (*built)["spec"]["containers"][0]["env"])
      env[one["name"]] = one["value"];
    return env;
  };
  // Two pods on n1, then one each on n2 and n3.
  auto second = environment(1);
  EXPECT_EQ(second["SLURM_NTASKS"], "4");
  EXPECT_EQ(second["SLURM_NNODES"], "3");
  EXPECT_EQ(second["SLURM_TASKS_PER_NODE"], "2,1(x2)");
  EXPECT_EQ(second["SLURM_JOB_CPUS_PER_NODE"], "4,2(x2)");
  EXPECT_EQ(second["SLURM_CPUS_ON_NODE"], "4");
  EXPECT_EQ(second["SLURM_PROCID"], "1");
  EXPECT_EQ(second["SLURM_LOCALID"], "1");
  // Task 3 of the job is the only one on the third node, so its local number is 0.
  auto last = environment(3);
  EXPECT_EQ(last["SLURM_NODEID"], "2");
  EXPECT_EQ(last["SLURM_CPUS_ON_NODE"], "2");
  EXPECT_EQ(last["SLURM_PROCID"], "3");
  EXPECT_EQ(last["SLURM_LOCALID"], "0");
}

}  // namespace
}  // namespace control
