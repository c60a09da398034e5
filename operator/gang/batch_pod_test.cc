// The launcher's part of the pods of a batch script.
#include "operator/gang/batch_pod.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>

#include "operator/gang/pod_builder.h"
#include "translation/testing/job_of_spec.h"

namespace control {
namespace {

using nlohmann::json;
using testing::HasSubstr;
using testing::Not;

const PodLauncher kOfImage{.image = "registry/launcher:1"};

// Returns a script on two nodes with two CPUs each, of a template with this.
kube::Job script_job(const json& batch, const json& of_template = json::object()) {
  json spec{{"containers", json::array({{{"name", "main"}}})}};
  spec.update(of_template);
  kube::Job job = job_of_spec(
      {{"resources", {{"nodes", {{"min", 2}}}, {"cpusPerTask", 2}, {"memoryPerCPU", "50Mi"}}},
       {"batch", batch},
       {"template", {{"spec", spec}}}});
  job.status.job_id = 1001;
  job.status.starts = 1;
  job.status.partition = "main";
  job.status.allocation = kube::Allocation{.hostlist = "n[1-2]", .nodes = 2, .cpus = 4};
  job.status.allocation->shares = {
      {.hostlist = "n[1-2]", .cpus = 2, .tasks = 1, .memory = kube::Bytes{100 << 20}}};
  return job;
}

json pod_of(const kube::Job& job, std::size_t index, const PodLauncher& launcher = kOfImage,
            const PodOptions& options = {}) {
  const auto slots =
      pod_slots({"load", "u", 1}, *job.status.allocation, kube::PodPolicy::kPerNode).value();
  const auto built = build_pod(job, slots[index], gang_layout(slots), options, launcher);
  EXPECT_TRUE(built.ok()) << built.error().message;
  return built.ok() ? *built : json{};
}

std::map<std::string, std::string> variables(const json& pod) {
  std::map<std::string, std::string> all;
  for (const json& variable : pod["spec"]["containers"][0]["env"]) {
    if (variable.contains("value")) all[variable["name"]] = variable["value"];
  }
  return all;
}

// The script is in the first pod alone; the others only wait.
TEST(BatchPod, RunsTheScriptInTheFirstPod) {
  const kube::Job job = script_job({{"script", "#!/bin/sh\nsrun hostname\n"},
                                    {"arguments", {"a", "$(B)"}},
                                    {"output", "%x.out"}});
  const json first = pod_of(job, 0);
  const json& container = first["spec"]["containers"][0];
  EXPECT_EQ(container["command"], json::array({"/kubegang/kubegang-launcher"}));
  // kubelet would take $(B) for a reference.
  EXPECT_EQ(container["args"],
            json::array({"batch", "--key=/run/kubegang-steps/key", "--port=6818", "--output=%x.out",
                         "--open-mode=truncate", "--installed", "--", "a", "$$(B)"}));
  EXPECT_EQ(variables(first).at("KUBEGANG_SCRIPT_0"), "#!/bin/sh\nsrun hostname\n");
  const json second = pod_of(job, 1);
  EXPECT_EQ(second["spec"]["containers"][0]["args"][0], "wait");
  EXPECT_FALSE(variables(second).contains("KUBEGANG_SCRIPT_0"));
}

TEST(BatchPod, TheLauncherIsToldWhereTheTemplateHasItsTerminationMessage) {
  kube::Job job = script_job({{"script", "#!/bin/sh\n"}});
  const auto arguments = [&] { return pod_of(job, 0)["spec"]["containers"][0]["args"].dump(); };
  EXPECT_THAT(arguments(), Not(HasSubstr("termination-log")));
  job.spec.pod_template = kube::RawJson{
      json{{"spec",
            {{"containers",
              json::array({{{"name", "main"}, {"terminationMessagePath", "/tmp/end $(A)"}}})}}}}};
  EXPECT_THAT(arguments(), HasSubstr("--termination-log=/tmp/end $$(A)"));
}

// Without the word its launcher refuses `scontrol requeue`.
TEST(BatchPod, TheLauncherKnowsIfItsJobMayBeRequeued) {
  const kube::Job job = script_job({{"script", "#!/bin/sh\n"}});
  EXPECT_THAT(pod_of(job, 0).dump(), Not(HasSubstr("requeue")));
  EXPECT_THAT(pod_of(job, 0, kOfImage, {.may_requeue = true})["spec"]["containers"][0]["args"],
              testing::Contains("--may-requeue"));
}

TEST(BatchPod, ARequeuedScriptAppendsToItsFiles) {
  kube::Job job = script_job({{"script", "#!/bin/sh\n"}});
  job.status.restarts = 1;
  EXPECT_THAT(pod_of(job, 0)["spec"]["containers"][0]["args"].dump(),
              HasSubstr("--open-mode=append"));
}

// Linux takes 128 KiB for a variable; a character of several bytes stays whole.
TEST(BatchPod, ALongScriptIsInParts) {
  std::string script = "#!/bin/sh\n";
  while (script.size() < 300'000) script += "# \xC3\xA9 $X\n";
  const auto all = variables(pod_of(script_job({{"script", script}}), 0));
  std::string joined;
  for (int part = 0; all.contains("KUBEGANG_SCRIPT_" + std::to_string(part)); ++part) {
    const std::string& text = all.at("KUBEGANG_SCRIPT_" + std::to_string(part));
    EXPECT_LT(text.size(), 128U << 10U);
    EXPECT_NO_THROW((void)json(text).dump()) << "not whole characters";
    joined += text;
  }
  // "$$" is kubelet's way to write a dollar sign.
  for (std::size_t at = 0; (at = joined.find("$$", at)) != std::string::npos; ++at) {
    joined.erase(at, 1);
  }
  EXPECT_EQ(joined, script);
}

TEST(BatchPod, VariablesOfTheUserAreLines) {
  const json environment = json::array(
      {{{"name", "A"}, {"value", "x\ny"}}, {{"name", "B"}, {"value", "c:\\n"}}, {{"name", "C"}}});
  const auto all =
      variables(pod_of(script_job({{"script", "#!/bin/sh\n"}, {"environment", environment}}), 0));
  EXPECT_EQ(all.at("KUBEGANG_ENVIRONMENT_0"), "A=x\\ny\nB=c:\\\\n\nC=\n");
}

// SOURCE: recorded (session names_empty); the annotation is how a name is changed, too.
TEST(BatchPod, AJobMayHaveAnEmptyName) {
  kube::Job job = script_job({{"script", "#!/bin/sh\n"}, {"name", "run.sh"}});
  job.metadata.annotations["kubegang.io/name"] = "";
  EXPECT_EQ(variables(pod_of(job, 0)).at("SLURM_JOB_NAME"), "");
}

// SOURCE: what sbatch 22.05 gives a script (recorded).
TEST(BatchPod, HasTheVariablesOfSbatch) {
  const auto all = variables(pod_of(
      script_job(
          {{"script", "#!/bin/sh\n"}, {"name", "My Job"}, {"workingDirectory", "/home/ann"}}),
      0, kOfImage, {.memory = sched::MemoryPerCpu{sched::MemoryMiB{50}}}));
  EXPECT_EQ(all.at("SLURM_JOB_NAME"), "My Job");
  EXPECT_EQ(all.at("SLURM_SUBMIT_DIR"), "/home/ann");
  EXPECT_EQ(all.at("SLURM_MEM_PER_CPU"), "50");
  EXPECT_EQ(all.at("SLURM_GTIDS"), "0");
  for (const char* name : {"SLURM_MEM_PER_NODE", "SLURM_NTASKS", "SLURM_RESTART_COUNT"}) {
    EXPECT_FALSE(all.contains(name)) << name << ": nobody asked for it";
  }
}

// SOURCE: recorded: the default counts, too; all memory of the nodes is not a number.
TEST(BatchPod, SaysWhatMemoryIsAskedFor) {
  const auto asked = [](const sched::MemoryRequest& memory) {
    const auto all =
        variables(pod_of(script_job({{"script", "#!/bin/sh\n"}}), 0, kOfImage, {.memory = memory}));
    std::string text;
    for (const char* name : {"SLURM_MEM_PER_CPU", "SLURM_MEM_PER_NODE"}) {
      if (all.contains(name)) text += std::string{name} + "=" + all.at(name);
    }
    return text;
  };
  EXPECT_EQ(asked(sched::MemoryPerCpu{sched::MemoryMiB{50}}), "SLURM_MEM_PER_CPU=50");
  EXPECT_EQ(asked(sched::MemoryPerNode{sched::MemoryMiB{100}}), "SLURM_MEM_PER_NODE=100");
  EXPECT_EQ(asked(sched::MemoryPerNode{sched::MemoryMiB{0}}), "");
  EXPECT_EQ(asked({}), "");
}

// SOURCE: recorded: without -n there are as many as the CPUs are enough for.
TEST(BatchPod, WithoutTasksTheCpusSayHowManyANodeHas) {
  kube::Job job = script_job({{"script", "#!/bin/sh\n"}});
  for (kube::NodeShare& share : job.status.allocation->shares) share.cpus = 4;
  EXPECT_EQ(variables(pod_of(job, 0)).at("SLURM_TASKS_PER_NODE"), "2(x2)");
  job.spec.resources.overcommit = true;
  EXPECT_EQ(variables(pod_of(job, 0)).at("SLURM_TASKS_PER_NODE"), "1(x2)");
}

// SOURCE: recorded (session sbatch_overcommit).
TEST(BatchPod, TasksThatOvercommitAreSharedOutEqually) {
  kube::Job job = script_job({{"script", "#!/bin/sh\n"}});
  job.spec.resources.overcommit = true;
  job.spec.resources.tasks = 5;
  EXPECT_EQ(variables(pod_of(job, 0)).at("SLURM_TASKS_PER_NODE"), "3,2");
  job.spec.resources.tasks_per_node = 4;
  EXPECT_EQ(variables(pod_of(job, 0)).at("SLURM_TASKS_PER_NODE"), "4(x2)");
}

// SOURCE: sbatch.1, --signal: 60 s before the end unless it says otherwise.
TEST(BatchPod, TheLauncherIsToldWhenToSendTheSignal) {
  const auto arguments = [](const json& signal, std::optional<base::Duration> limit) {
    const kube::Job job = script_job({{"script", "#!/bin/sh\n"}, {"signal", signal}});
    return pod_of(job, 0, kOfImage, {.time_limit = limit})["spec"]["containers"][0]["args"].dump();
  };
  EXPECT_THAT(arguments({{"name", "SIGUSR1"}}, std::chrono::seconds{90}),
              HasSubstr(R"("--installed","--signal=SIGUSR1","--signal-after-ms=30000","--"])"));
  EXPECT_THAT(arguments({{"name", "SIGTERM"}, {"before", "2m"}, {"target", "Script"}},
                        std::chrono::seconds{90}),
              HasSubstr(R"("--signal=SIGTERM","--signal-after-ms=0","--signal-to-script","--"])"));
  EXPECT_THAT(arguments({{"name", "SIGUSR1"}}, std::nullopt), Not(HasSubstr("signal")));
}

// 64 MiB, a container's own, end MPI and data loaders. Files there count as memory.
TEST(BatchPod, SharedMemoryIsAsLargeAsTheMemoryOfTheJob) {
  kube::Job job = script_job({{"script", "#!/bin/sh\n"}});
  const json spec = pod_of(job, 1)["spec"];
  const json volume{{"name", "kubegang-shm"},
                    {"emptyDir", {{"medium", "Memory"}, {"sizeLimit", "100Mi"}}}};
  const json mount{{"name", "kubegang-shm"}, {"mountPath", "/dev/shm"}};
  EXPECT_THAT(spec["volumes"].get<std::vector<json>>(), testing::Contains(volume));
  EXPECT_THAT(spec["containers"][0]["volumeMounts"].get<std::vector<json>>(),
              testing::Contains(mount));
  json own = job.spec.pod_template.json();
  own["spec"]["volumes"] = {{{"name", "a"}, {"emptyDir", json::object()}}};
  own["spec"]["containers"][0]["volumeMounts"] = {{{"name", "a"}, {"mountPath", "/dev/shm/"}}};
  job.spec.pod_template = kube::RawJson{own};
  EXPECT_THAT(pod_of(job, 0).dump(), Not(HasSubstr("kubegang-shm")));
}

// As Debian's /etc/profile with Lmod: PATH and BASH_ENV are both set again.
TEST(BatchPod, AProfileFindsTheCommandsAgain) {
  kube::Job job = script_job({{"script", "#!/bin/sh\n"}});
  const json pod = pod_of(job, 1);
  const json item{{"path", "zz-kubegang.sh"},
                  {"fieldRef", {{"fieldPath", "metadata.annotations['kubegang.io/profile']"}}}};
  const json volume{{"name", "kubegang-profile"},
                    {"downwardAPI", {{"items", json::array({item})}}}};
  const json mount{{"name", "kubegang-profile"},
                   {"mountPath", "/etc/profile.d/zz-kubegang.sh"},
                   {"subPath", "zz-kubegang.sh"},
                   {"readOnly", true}};
  EXPECT_THAT(pod["spec"]["volumes"].get<std::vector<json>>(), testing::Contains(volume));
  EXPECT_THAT(pod["spec"]["containers"][0]["volumeMounts"].get<std::vector<json>>(),
              testing::Contains(mount));
  EXPECT_EQ(pod["metadata"]["annotations"]["kubegang.io/profile"],
            "{ case \":$PATH:\" in *\":/kubegang:\"*) ;; *) PATH=\"/kubegang:$PATH\" ;; esac; } "
            "2>/dev/null\n");
  for (const char* place : {"/etc", "/etc/profile.d/", "/etc/profile.d/zz-kubegang.sh"}) {
    json own = job.spec.pod_template.json();
    own["spec"]["volumes"] = {{{"name", "a"}, {"configMap", {{"name", "a"}}}}};
    own["spec"]["containers"][0]["volumeMounts"] = {{{"name", "a"}, {"mountPath", place}}};
    kube::Job with = job;
    with.spec.pod_template = kube::RawJson{own};
    EXPECT_THAT(pod_of(with, 0).dump(), Not(HasSubstr("kubegang-profile"))) << place;
  }
}

// The Pod Security profile `restricted`, whatever the template's own containers are like.
TEST(BatchPod, TheInitContainerPassesRestricted) {
  const json pod = pod_of(script_job({{"script", "#!/bin/sh\n"}}), 0);
  const json& init = pod["spec"]["initContainers"][0];
  EXPECT_EQ(init["image"], kOfImage.image);
  const json& context = init["securityContext"];
  EXPECT_EQ(context["runAsNonRoot"], true);
  EXPECT_EQ(context["allowPrivilegeEscalation"], false);
  EXPECT_EQ(context["capabilities"]["drop"], json::array({"ALL"}));
  EXPECT_EQ(context["seccompProfile"]["type"], "RuntimeDefault");
  EXPECT_EQ(init["resources"]["limits"]["memory"], "100Mi") << "quotas ask for limits";
  EXPECT_EQ(pod["spec"]["volumes"][0]["emptyDir"], json::object());
  EXPECT_EQ(pod["spec"]["containers"][0]["volumeMounts"][0]["readOnly"], true);
}

TEST(BatchPod, CommandsAreCopiedWhereTheyHaveAToken) {
  const auto command = [](const json& of_template) {
    const json pod = pod_of(script_job({{"script", "#!/bin/sh\n"}}, of_template), 0);
    return pod["spec"]["initContainers"][0]["command"];
  };
  const json without = json::array({"/kubegang-launcher", "install", "/kubegang"});
  const json with = json::array({"/kubegang-launcher", "install", "/kubegang", "--commands"});
  EXPECT_EQ(command({{"automountServiceAccountToken", false}}), without);
  EXPECT_EQ(command({{"automountServiceAccountToken", true}}), with);
  EXPECT_EQ(command(json::object()), with) << "the account decides";
}

// SOURCE: core/v1, Volume.image.
TEST(BatchPod, MountsTheImageWhereTheNodeCan) {
  const kube::Job job = script_job({{"script", "#!/bin/sh\n"}});
  const auto built = [&](ImageVolume volume, bool can) {
    return pod_of(job, 0, {.image = "registry/launcher:1", .volume = volume},
                  {.mounts_images = can});
  };
  for (const json& pod : {built(ImageVolume::kAuto, true), built(ImageVolume::kTrue, false)}) {
    const json& spec = pod["spec"];
    EXPECT_FALSE(spec.contains("initContainers"));
    EXPECT_EQ(spec["volumes"][0]["image"], (json{{"reference", "registry/launcher:1"}}));
    const json& container = spec["containers"][0];
    EXPECT_EQ(container["volumeMounts"][0]["mountPath"], "/kubegang");
    EXPECT_EQ(container["volumeMounts"][0]["readOnly"], true);
    EXPECT_EQ(container["volumeMounts"][1]["mountPath"], "/dev/shm");
    EXPECT_THAT(container["args"].dump(), Not(HasSubstr("--installed")));
  }
  for (const json& pod : {built(ImageVolume::kAuto, false), built(ImageVolume::kFalse, true)}) {
    EXPECT_TRUE(pod["spec"].contains("initContainers"));
    EXPECT_TRUE(pod["spec"]["volumes"][0].contains("emptyDir"));
  }
}

TEST(BatchPod, ADirectoryOfTheNodesNeedsNoImage) {
  const json pod =
      pod_of(script_job({{"script", "#!/bin/sh\n"}}), 0, {.directory = "/opt/kubegang"});
  EXPECT_FALSE(pod["spec"].contains("initContainers"));
  EXPECT_EQ(pod["spec"]["containers"][0]["command"],
            json::array({"/opt/kubegang/kubegang-launcher"}));
}

TEST(BatchPod, WithoutALauncherASentenceSaysSo) {
  const kube::Job job = script_job({{"script", "#!/bin/sh\n"}});
  const auto slots =
      pod_slots({"load", "u", 1}, *job.status.allocation, kube::PodPolicy::kPerNode).value();
  const auto built = build_pod(job, slots[0], gang_layout(slots), {});
  ASSERT_FALSE(built.ok());
  EXPECT_THAT(built.error().message, HasSubstr("--launcher-image"));
}

}  // namespace
}  // namespace control
