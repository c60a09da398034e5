// Tables: refusals of a job, fields that may change, and what the scheduler gets.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>

#include "translation/job_check.h"
#include "translation/job_translation.h"
#include "translation/template_check.h"
#include "translation/testing/job_of_spec.h"

namespace control {
namespace {

using nlohmann::json;
using std::chrono::seconds;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// Partition batch (default) of five nodes of 8 CPUs, QOS high. Namespace team-a belongs to account
// "ours" and may not use "theirs".
struct Cluster {
  sched::Configuration configuration;
  std::map<std::string, PartitionCapacity> capacity{{"batch", {5, 8}}};
  OperatorParameters parameters;
  // One partition, one QOS and two accounts, one of which lists the namespace of the jobs.
  Cluster() {
    configuration.partitions.push_back({.name = "batch", .is_default = true});
    configuration.qos.push_back({.name = "high"});
    configuration.accounts = {{.name = "ours"}, {.name = "theirs"}};
    configuration.users = {{.name = "team-a", .account = "ours"},
                           {.name = "team-b", .account = "theirs"}};
  }
  // Everything that is checked at a submission.
  JobVerdict judge(const kube::Job& job) const {
    return translate_job(job, check_template(job.spec.pod_template), sched::JobId{7},
                         base::Instant{}, {configuration, capacity, {}, parameters});
  }
};

// One row: a name for the test, and a spec with a single mistake.
struct BadJob {
  const char* name;
  json spec;
  const char* says;  // a part of the sentence
};

class BadJobs : public testing::TestWithParam<BadJob> {};

// The table is the list of what is refused: one row for each check, with the part of the sentence
// by which a user finds the field.
TEST_P(BadJobs, AreRefusedWithASentenceThatNamesTheField) {
  const JobVerdict verdict = Cluster{}.judge(job_of_spec(GetParam().spec));
  ASSERT_FALSE(verdict.problems.empty());
  EXPECT_FALSE(verdict.request.has_value());
  EXPECT_NE(verdict.problems.front().find(GetParam().says), std::string::npos)
      << verdict.problems.front();
}

// Returns a spec whose template has one container with these fields, or a pod with these fields.
json container(const json& more) {
  json one{{"name", "main"}};
  one.update(more);
  return {{"template", {{"spec", {{"containers", json::array({one})}}}}}};
}
// Returns a template whose pods ask for `count` GPUs.
json gpu_template(int count) {
  return {{"spec",
           {{"containers",
             json::array({{{"name", "main"},
                           {"resources", {{"limits", {{"nvidia.com/gpu", count}}}}}}})}}}};
}
// Returns the spec of a job with this in its pod template.
json pod(const json& more) {
  json spec{{"containers", json::array({{{"name", "main"}}})}};
  spec.update(more);
  return {{"template", {{"spec", spec}}}};
}

json claim(const char* volume, const char* name) {
  return {{"name", volume}, {"persistentVolumeClaim", {{"claimName", name}}}};
}

INSTANTIATE_TEST_SUITE_P(
    Table, BadJobs,
    testing::Values(
        BadJob{"partition", {{"partitions", {"nowhere"}}}, "no partition \"nowhere\""},
        BadJob{"account", {{"schedule", {{"account", "nosuch"}}}}, "no account \"nosuch\""},
        BadJob{"foreign",
               {{"schedule", {{"account", "theirs"}}}},
               "account \"theirs\" does not list namespace \"team-a\""},
        BadJob{"nodes", {{"resources", {{"nodes", {{"min", 6}}}}}}, "has 5"},
        BadJob{"max",
               {{"resources", {{"nodes", {{"min", 3}, {"max", 2}}}}}},
               "spec.resources.nodes.max: 2"},
        // 2 nodes of 8 CPUs hold 16 tasks.
        BadJob{"tasks",
               {{"resources", {{"nodes", {{"min", 2}}}, {"tasks", 17}}}},
               "spec.resources.tasks: 17"},
        BadJob{"few",
               {{"resources", {{"nodes", {{"min", 3}}}, {"tasks", 2}}}},
               "each node runs one task"},
        BadJob{"list",
               {{"placement", {{"hostlist", "n[1-"}}}},
               "spec.placement.hostlist: hostlist \"n[1-\": a number is missing at character 5 "
               "(example: n[12-16,20])"},
        BadJob{"excluded",
               {{"placement", {{"hostlist", "n[1-3]"}, {"excludeHostlist", "n2"}}}},
               "node \"n2\" is excluded by spec.placement.excludeHostlist; leave it out"},
        // As many names as two lists can have: each is named once, or not at all.
        BadJob{"all_excluded",
               {{"placement", {{"hostlist", "n[1-65536]"}, {"excludeHostlist", "n[1-65536]"}}}},
               "node \"n1\" and 65535 more are excluded by spec.placement.excludeHostlist"},
        BadJob{"constraint", {{"placement", {{"constraint", "a&"}}}}, "spec.placement.constraint"},
        BadJob{"time", {{"schedule", {{"timeLimit", "0s"}}}}, "spec.schedule.timeLimit: 0s"},
        BadJob{"memory",
               {{"resources", {{"memoryPerCPU", "1Gi"}, {"memoryPerNode", "1Gi"}}}},
               "memoryPerCPU"},
        BadJob{"devices",
               {{"resources", {{"devices", json::array({{{"name", "gpu"}, {"count", 0}}})}}}},
               "spec.resources.devices[0].count: 0"},
        BadJob{
            "devices_unknown",
            {{"resources", {{"devices", json::array({{{"name", "nic"}, {"count", 1}}})}}}},
            "spec.resources.devices[0].name: no node has devices of the name \"nic\"; write gpu"},
        BadJob{"devices_of_pods_unknown",
               pod({{"containers",
                     json::array({{{"name", "main"},
                                   {"resources", {{"limits", {{"google.com/tpu", 1}}}}}}})}}),
               "spec.template.spec.containers: \"google.com/tpu\": devices of this kind are not "
               "counted, so two gangs would share them; remove it, or ask an administrator for an "
               "entry in devices.resources of the SchedulerConfig (it has gpu)"},
        BadJob{"runtime_class",
               pod({{"runtimeClassName", "gvisor"},
                    {"containers", json::array({{{"name", "main"}}})}}),
               "spec.template.spec.runtimeClassName: \"gvisor\": is not allowed, the freezer needs "
               "a runtime that is runc underneath; remove it, or ask an administrator to add it to "
               "runtimeClasses of the SchedulerConfig (it allows none)"},
        BadJob{"devices_of_tasks",
               {{"resources",
                 {{"tasks", 4}, {"devices", json::array({{{"name", "gpu"}, {"count", 4}}})}}},
                {"podPolicy", "PerTask"}},
               "spec.resources.devices: 4 cannot be shared out"},
        BadJob{"devices_of_a_class",
               {{"resources", {{"devices", json::array({{{"name", "gpu"}, {"count", 1}}})}}},
                {"template",
                 {{"spec",
                   {{"containers", json::array({{{"name", "main"}}})},
                    {"priorityClassName", "high"}}}}}},
               "spec.template.spec.priorityClassName"},
        BadJob{"devices_of_pods_of_a_class",
               pod({{"priorityClassName", "high"},
                    {"containers",
                     json::array({{{"name", "main"},
                                   {"resources", {{"limits", {{"nvidia.com/gpu", 1}}}}}}})}}),
               "spec.template.spec.priorityClassName"},
        BadJob{"devices_twice",
               {{"resources", {{"devices", json::array({{{"name", "gpu"}, {"count", 2}}})}}},
                {"template", gpu_template(1)}},
               "spec.resources.devices: gpu:2 on each node contradict the template, whose pods ask "
               "for gpu:nvidia:1 there"},
        BadJob{"devices_of_a_range",
               {{"resources", {{"nodes", {{"min", 1}, {"max", 2}}}, {"tasks", 4}}},
                {"podPolicy", "PerTask"},
                {"template", gpu_template(1)}},
               "spec.resources.nodes: pods that ask for devices need one number"},
        BadJob{"devices_uneven",
               {{"resources", {{"nodes", {{"min", 2}}}, {"tasks", 3}}},
                {"podPolicy", "PerTask"},
                {"template", gpu_template(1)}},
               "one number of nodes that divides"},
        BadJob{"devices_fewer_than_nodes",
               {{"resources",
                 {{"nodes", {{"min", 3}}},
                  {"devicesOfJob", json::array({{{"name", "gpu"}, {"count", 2}}})}}}},
               "spec.resources: in the words of sbatch, --gpus 2: less than --nodes 3"},
        BadJob{
            "devices_of_tasks_without_tasks",
            {{"resources", {{"devicesPerTask", json::array({{{"name", "gpu"}, {"count", 2}}})}}}},
            "spec.resources.tasks: is missing; devicesPerTask and tasksPerGPU need it"},
        BadJob{"tasks_of_gpus",
               {{"resources",
                 {{"tasks", 3},
                  {"tasksPerGPU", 2},
                  {"devices", json::array({{{"name", "gpu"}, {"count", 1}}})}}}},
               "spec.resources.tasksPerGPU: comes to 2 tasks, and not to 3"},
        BadJob{"cpus_of_gpus_and_tasks",
               {{"resources",
                 {{"cpusPerGPU", 2},
                  {"cpusPerTask", 2},
                  {"devices", json::array({{{"name", "gpu"}, {"count", 1}}})}}}},
               "spec.resources.cpusPerGPU: excludes cpusPerTask"},
        BadJob{"memory_of_gpus",
               {{"resources",
                 {{"memoryPerGPU", "1Gi"},
                  {"allMemory", true},
                  {"devices", json::array({{{"name", "gpu"}, {"count", 1}}})}}}},
               "spec.resources.memoryPerGPU: excludes memoryPerCPU"},
        BadJob{"devices_of_the_job_for_pods",
               {{"resources",
                 {{"tasks", 4}, {"devicesOfJob", json::array({{{"name", "gpu"}, {"count", 4}}})}}},
                {"podPolicy", "PerTask"}},
               "spec.resources.devicesOfJob: cannot be shared out to the pods"},
        BadJob{"devices_of_the_job_and_of_pods",
               {{"resources", {{"devicesOfJob", json::array({{{"name", "gpu"}, {"count", 4}}})}}},
                {"template", gpu_template(1)}},
               "spec.template.spec.containers: ask for devices, and the job for devicesOfJob"},
        BadJob{"unsorted",
               {{"resources", {{"nodes", {{"min", 1}}}, {"tasks", 2}}},
                {"podPolicy", "PerTask"},
                {"adopted", {{{"name", "b"}, {"uid", "u-b"}}, {{"name", "a"}, {"uid", "u-a"}}}}},
               "spec.adopted[1]: pod \"a\" must come before \"b\""},
        BadJob{"twice",
               {{"resources", {{"nodes", {{"min", 1}}}, {"tasks", 2}}},
                {"podPolicy", "PerTask"},
                {"adopted", {{{"name", "a"}, {"uid", "u-a"}}, {{"name", "a"}, {"uid", "u-b"}}}}},
               "spec.adopted[1]: pod \"a\" is listed twice"},
        BadJob{"batch",
               {{"resources", {{"tasks", 2}}},
                {"podPolicy", "PerTask"},
                {"batch", {{"script", "#!/bin/sh\n"}}}},
               "spec.batch: excludes podPolicy PerTask"},
        BadJob{"qos", {{"schedule", {{"qos", "low"}}}}, "no QOS \"low\""},
        BadJob{"liveness", container({{"livenessProbe", {{"httpGet", json::object()}}}}),
               "containers[0].livenessProbe"},
        BadJob{"hook", container({{"lifecycle", {{"preStop", {{"exec", {{"command", {"x"}}}}}}}}}),
               "preStop.exec"},
        BadJob{"srun", container({{"command", {"sh", "-c", "exec srun ./a"}}}), "calls srun"},
        BadJob{"mpirun",
               {{"resources", {{"nodes", {{"min", 2}}}}},
                {"template",
                 {{"spec",
                   {{"containers",
                     json::array({{{"name", "main"}, {"command", {"mpirun", "./a"}}}})}}}}}},
               "calls mpirun"},
        BadJob{"restart", pod({{"restartPolicy", "Always"}}), "restartPolicy: \"Always\""},
        BadJob{"deadline", pod({{"activeDeadlineSeconds", 600}}), "use spec.schedule.timeLimit"},
        BadJob{"node", pod({{"nodeName", "n12"}}), "use spec.placement.hostlist"},
        BadJob{"affinity", pod({{"affinity", {{"nodeAffinity", json::object()}}}}), "affinity"},
        BadJob{"pid", pod({{"hostPID", true}}), "hostPID"},
        // kubelet waits forever for such pods.
        BadJob{"claim_twice", pod({{"volumes", {claim("in", "data"), claim("out", "data")}}}),
               "template.spec.volumes: \"in\" and \"out\" are both claim \"data\", which a pod may "
               "have once; mount one of them in both places"},
        // killWait is 30 s, and no partition or QOS has a grace time.
        BadJob{"grace", pod({{"terminationGracePeriodSeconds", 31}}), "31 is above"},
        // More microseconds than 64 bits hold; wrapped round they would be negative.
        BadJob{"grace_beyond_durations",
               pod({{"terminationGracePeriodSeconds", std::numeric_limits<std::int64_t>::max()}}),
               "9223372036854775807 is above"},
        BadJob{"limit", container({{"resources", {{"limits", {{"memory", "1Gi"}}}}}}),
               "asks for no memory"}),
    [](const auto& one) { return std::string{one.param.name}; });

// Scripts of other sites name their accounts; on a cluster without any they mean nothing.
TEST(JobTranslation, WithoutAccountsEveryNameIsTaken) {
  const kube::Job job = job_of_spec({{"schedule", {{"account", "nosuch"}}}});
  Cluster cluster;
  EXPECT_THAT(cluster.judge(job).problems, ElementsAre(testing::HasSubstr("no account")));
  cluster.configuration.accounts.clear();
  cluster.configuration.users.clear();
  EXPECT_THAT(cluster.judge(job).problems, IsEmpty());
}

// One pod: a node for all tasks, or one task. As many nodes as the tasks need may be several.
TEST(JobSize, MpirunWorksInAJobOfOnePod) {
  const auto accepted = [](json spec) {
    spec.update(container({{"command", {"bash", "-c", "# mpirun\nmpirun -np 4 ./a"}}}));
    return Cluster{}.judge(job_of_spec(spec)).problems.empty();
  };
  EXPECT_TRUE(accepted(json::object()));
  EXPECT_TRUE(accepted({{"resources", {{"nodes", {{"min", 1}}}, {"tasks", 4}}}}));
  EXPECT_TRUE(accepted({{"resources", {{"tasks", 1}}}, {"podPolicy", "PerTask"}}));
  EXPECT_FALSE(accepted({{"resources", {{"tasks", 4}}}}));
  EXPECT_FALSE(
      accepted({{"resources", {{"nodes", {{"min", 1}}}, {"tasks", 4}}}, {"podPolicy", "PerTask"}}));
}

// Compared as a whole, so a field that the translation forgets, or sets for no reason, is seen.
// This one has the fields of every day; the next but one those of the nodes' hardware.
TEST(JobTranslation, TellsTheSchedulerWhatIsAskedFor) {
  // Each field differs from its default.
  const JobVerdict verdict = Cluster{}.judge(job_of_spec(
      {{"partitions", {"batch"}},
       {"resources",
        {{"nodes", {{"min", 3}}}, {"tasks", 6}, {"cpusPerTask", 2}, {"memoryPerCPU", "512Mi"}}},
       {"placement", {{"sharing", "OverSubscribe"}, {"excludeHostlist", "n[1-2]"}}},
       {"schedule", {{"timeLimit", "5m"}, {"qos", "high"}, {"account", "ours"}, {"priority", 100}}},
       {"lifecycle", {{"requeue", false}}}}));
  ASSERT_TRUE(verdict.problems.empty()) << verdict.problems.front();
  sched::JobRequest want;
  want.id = sched::JobId{7};
  want.name = "myload";
  want.user = "team-a";
  want.partitions = {"batch"};
  want.min_nodes = 3;
  want.nodes_given = true;
  want.max_nodes = 3;
  want.tasks = 6;
  want.cpus_per_task = 2;
  want.memory = sched::MemoryPerCpu{sched::MemoryMiB{512}};
  want.time_limit = std::chrono::minutes{5};
  want.sharing = sched::Sharing::kOverSubscribe;
  want.excluded_nodes = {"n1", "n2"};
  want.qos = "high";
  want.priority = sched::Priority{100};
  want.account = "ours";
  want.requeue = false;
  EXPECT_EQ(*verdict.request, want);
}

// sbatch --mem=0. The API has a word for it, because a 0 that was not meant would take a whole
// node.
// The scheduler counts devices by node: those of a pod times the pods that a node may have. Without
// a number of nodes each pod has one to itself.
TEST(JobTranslation, DevicesOfTheTemplateAreAskedForOnEachNode) {
  const auto asked = [](const json& resources, const char* policy) {
    const JobVerdict verdict = Cluster{}.judge(job_of_spec(
        {{"resources", resources}, {"podPolicy", policy}, {"template", gpu_template(2)}}));
    EXPECT_THAT(verdict.problems, ElementsAre());
    return verdict.request.value_or(sched::JobRequest{});
  };
  const json two_nodes{{"min", 2}};
  EXPECT_EQ(to_string(asked({{"nodes", two_nodes}, {"tasks", 4}}, "PerNode").devices),
            "gpu:nvidia:2");
  const sched::JobRequest packed = asked({{"nodes", two_nodes}, {"tasks", 4}}, "PerTask");
  EXPECT_EQ(to_string(packed.devices), "gpu:nvidia:4");
  EXPECT_EQ(packed.tasks_per_node, 2);
  const sched::JobRequest spread = asked({{"tasks", 4}}, "PerTask");
  EXPECT_EQ(to_string(spread.devices), "gpu:nvidia:2");
  EXPECT_EQ(spread.min_nodes, 4);
  EXPECT_EQ(spread.tasks_per_node, 1);
  EXPECT_EQ(to_string(asked({{"tasks", 1}}, "PerTask").devices), "gpu:nvidia:2");
  EXPECT_EQ(to_string(asked({{"tasks", 8}, {"tasksPerNode", 3}}, "PerTask").devices),
            "gpu:nvidia:6");
}

// As sbatch's --gpus and its kind; what one number says about another is filled in there, too.
TEST(JobTranslation, DevicesOfTheJobAndOfTasks) {
  Cluster cluster;
  const json gpus = json::array({{{"name", "gpu"}, {"type", "A100"}, {"count", 4}}});
  const auto asked = [&](const json& resources) {
    const JobVerdict verdict = cluster.judge(job_of_spec({{"resources", resources}}));
    EXPECT_THAT(verdict.problems, ElementsAre());
    return verdict.request.value_or(sched::JobRequest{});
  };
  const sched::JobRequest of_job =
      asked({{"devicesOfJob", gpus}, {"cpusPerGPU", 2}, {"memoryPerGPU", "1Gi"}});
  EXPECT_EQ(to_string(of_job.devices_of_job), "gpu:a100:4");
  EXPECT_EQ(of_job.per_gpu, (sched::PerGpu{.cpus = 2, .memory = sched::MemoryMiB{1024}}));
  EXPECT_FALSE(of_job.nodes_given);
  EXPECT_EQ(to_string(asked({{"tasks", 2}, {"devicesPerTask", gpus}}).devices_per_task),
            "gpu:a100:4");
  const json one = json::array({{{"name", "gpu"}, {"type", "a100"}, {"count", 1}}});
  EXPECT_EQ(asked({{"devicesOfJob", gpus}, {"devices", one}}).min_nodes, 4);
  // select/linear counts devices of each node alone.
  cluster.configuration.cluster.select = sched::SelectType::kLinear;
  EXPECT_THAT(cluster.judge(job_of_spec({{"resources", {{"devicesOfJob", gpus}}}})).problems,
              ElementsAre(HasSubstr("with select.type Linear devices are counted on each node")));
  EXPECT_THAT(cluster.judge(job_of_spec({{"resources", {{"devices", gpus}}}})).problems,
              ElementsAre());
}

// kube-scheduler allocates what such claims ask for, so no other job may be on their nodes.
TEST(JobTranslation, ResourceClaimsNeedWholeNodes) {
  Cluster cluster;
  json of_pod = pod({{"resourceClaims", json::array({{{"name", "gpu"}}})},
                     {"containers", json::array({{{"name", "main"}}})}});
  of_pod["placement"] = {{"sharing", "OverSubscribe"}};
  const JobVerdict verdict = cluster.judge(job_of_spec(of_pod));
  EXPECT_THAT(verdict.problems, ElementsAre());
  ASSERT_TRUE(verdict.request.has_value());
  EXPECT_EQ(verdict.request->sharing, sched::Sharing::kNode);
  of_pod["template"]["spec"]["priorityClassName"] = "high";
  EXPECT_THAT(cluster.judge(job_of_spec(of_pod)).problems,
              ElementsAre(HasSubstr("spec.template.spec.priorityClassName")));
  of_pod["template"]["spec"].erase("priorityClassName");
  cluster.configuration.partitions[0].over_subscribe = sched::OverSubscribe::kForce;
  EXPECT_THAT(cluster.judge(job_of_spec(of_pod)).problems,
              ElementsAre(HasSubstr("all jobs of partition \"batch\" take turns")));
  cluster.configuration.partitions[0].max_share = 1;
  EXPECT_THAT(cluster.judge(job_of_spec(of_pod)).problems, ElementsAre());
}

// SchedulerConfig says what is counted beside GPUs, and which runtimes are runc underneath.
TEST(JobTranslation, AsTheAdministratorAllows) {
  Cluster cluster;
  cluster.parameters = operator_parameters(
      {.devices = kube::DevicesConfig{.resources = {{"google.com/tpu", "tpu", "v5e"}}},
       .runtime_classes = {"nvidia"}});
  json of_pod = pod(
      {{"runtimeClassName", "nvidia"},
       {"containers",
        json::array({{{"name", "main"}, {"resources", {{"limits", {{"google.com/tpu", 4}}}}}}})}});
  EXPECT_THAT(cluster.judge(job_of_spec(of_pod)).problems, ElementsAre());
  of_pod["resources"] = {{"devices", json::array({{{"name", "tpu"}, {"count", 4}}})}};
  const JobVerdict verdict = cluster.judge(job_of_spec(of_pod));
  ASSERT_TRUE(verdict.request.has_value());
  EXPECT_EQ(to_string(verdict.request->devices), "tpu:v5e:4");
  of_pod["template"]["spec"]["runtimeClassName"] = "kata";
  EXPECT_THAT(cluster.judge(job_of_spec(of_pod)).problems,
              ElementsAre(testing::EndsWith("(it allows nvidia)")));
}

// tasksPerNode is a maximum: a node has no more pods than the job, and the other nodes have some.
TEST(JobTranslation, DevicesOfTheTemplateAreThoseOfThePodsThatThereAre) {
  const auto asked = [](const json& resources) {
    const JobVerdict verdict = Cluster{}.judge(job_of_spec(
        {{"resources", resources}, {"podPolicy", "PerTask"}, {"template", gpu_template(1)}}));
    EXPECT_THAT(verdict.problems, ElementsAre());
    return to_string(verdict.request.value_or(sched::JobRequest{}).devices);
  };
  EXPECT_EQ(asked({{"tasks", 2}, {"tasksPerNode", 4}}), "gpu:nvidia:2");
  EXPECT_EQ(asked({{"tasks", 4}, {"tasksPerNode", 4}}), "gpu:nvidia:4");
  EXPECT_EQ(asked({{"nodes", {{"min", 2}}}, {"tasks", 4}, {"tasksPerNode", 3}}), "gpu:nvidia:2");
  EXPECT_EQ(asked({{"nodes", {{"min", 2}}}, {"tasks", 3}, {"tasksPerNode", 4}}), "gpu:nvidia:2");
  EXPECT_EQ(asked({{"nodes", {{"min", 2}, {"max", 3}}}, {"tasks", 4}, {"tasksPerNode", 2}}),
            "gpu:nvidia:2");
  EXPECT_EQ(asked({{"nodes", {{"min", 2}}}, {"tasksPerNode", 3}}), "gpu:nvidia:3");
}

TEST(JobTranslation, AllMemoryIsSlurmsZero) {
  const JobVerdict verdict = Cluster{}.judge(job_of_spec({{"resources", {{"allMemory", true}}}}));
  ASSERT_TRUE(verdict.request.has_value());
  EXPECT_EQ(verdict.request->memory,
            sched::MemoryRequest{sched::MemoryPerNode{sched::MemoryMiB{0}}});
}

// min and max nodes differ, so max_nodes is not simply min_nodes. Each field of the hardware has a
// value of its own.
TEST(JobTranslation, TellsTheSchedulerWhatItsNodesMustBeLike) {
  const JobVerdict verdict = Cluster{}.judge(job_of_spec({{"resources",
                                                           {{"nodes", {{"min", 1}, {"max", 3}}},
                                                            {"tasks", 99},
                                                            {"tasksPerSocket", 2},
                                                            {"tasksPerCore", 1},
                                                            {"overcommit", true},
                                                            {"useMinNodes", true}}},
                                                          {"placement",
                                                           {{"minCPUsPerNode", 4},
                                                            {"socketsPerNode", 2},
                                                            {"coresPerSocket", 3},
                                                            {"threadsPerCore", 5},
                                                            {"tmpDisk", "1Gi"}}}}));
  ASSERT_TRUE(verdict.problems.empty()) << verdict.problems.front();
  sched::JobRequest want;
  want.id = sched::JobId{7};
  want.name = "myload";
  want.user = "team-a";
  want.nodes_given = true;
  want.max_nodes = 3;
  want.tasks = 99;  // more than there are CPUs: overcommit
  want.tasks_per_socket = 2;
  want.tasks_per_core = 1;
  want.min_cpus_per_node = 4;
  want.sockets_per_node = 2;
  want.cores_per_socket = 3;
  want.threads_per_core = 5;
  want.overcommit = true;
  want.use_min_nodes = true;
  want.tmp_disk = sched::MemoryMiB{1024};
  EXPECT_EQ(*verdict.request, want);
}

// n2 lacks the label, n3 has a taint that is not tolerated; PreferNoSchedule only prefers.
// kube-scheduler would refuse the pod on such a node, after the gang had been given it: a start in
// vain, again and again.
TEST(JobTranslation, LeavesOutNodesThatTheTemplateCannotUse) {
  const kube::Labels fast{{"disk", "ssd"}};
  const kube::Labels slow{{"disk", "hdd"}};
  const auto node = [](const kube::Labels& labels, std::vector<kube::Taint> taints) {
    kube::Node made;
    made.metadata.labels = labels;
    made.spec.taints = std::move(taints);
    return made;
  };
  const std::vector<kube::Node> nodes{node(fast, {}), node(slow, {}),
                                      node(fast, {{.key = "gpu", .effect = "NoSchedule"}}),
                                      node(fast, {{.key = "x", .effect = "PreferNoSchedule"}})};
  const auto usable = [&](const std::vector<kube::Toleration>& tolerations) {
    std::vector<bool> can;
    for (const kube::Node& each : nodes) can.push_back(can_use(fast, tolerations, each));
    return can;
  };
  EXPECT_THAT(usable({}), ElementsAre(true, false, false, true));
  EXPECT_THAT(usable({{.key = "gpu", .op = "Exists"}}), ElementsAre(true, false, true, true));
}

// Goal: while a job has nodes exactly the same fields may change for the operator and for the CRD.
// Method: a spec with every field against an empty one; the CRD's rule compares each refused field,
// or its group as a whole, and none of the others. If they differed, a user would see an edit taken
// and then ignored, or refused without need. The difference of the two counts is written down, so
// that a new field must be decided about.
TEST(CheckChange, RefusesTheSameFieldsAsTheRuleOfTheCrd) {
  const kube::JobSpec full = job_of_spec(json::parse(R"({
        "partitions": ["a"], "podPolicy": "PerTask", "network": "None",
        "resources": {"nodes": {"min": 1}, "tasks": 1, "tasksPerNode": 1, "tasksPerSocket": 1,
                      "tasksPerCore": 1, "cpusPerTask": 1, "memoryPerCPU": "1Gi",
                      "memoryPerNode": "1Gi", "allMemory": true, "overcommit": true,
                      "useMinNodes": true},
        "placement": {"hostlist": "n1", "excludeHostlist": "n2", "contiguous": true,
                      "constraint": "a", "sharing": "Node", "minCPUsPerNode": 1,
                      "socketsPerNode": 1, "coresPerSocket": 1, "threadsPerCore": 1,
                      "tmpDisk": "1Gi"},
        "schedule": {"timeLimit": "5m", "timeMin": "1m", "beginTime": "2026-01-01T00:00:00Z",
                     "deadline": "2026-01-02T00:00:00Z", "qos": "q", "account": "a",
                     "priority": 1, "nice": 1},
        "lifecycle": {"requeue": true, "startTimeout": "1m", "ttlAfterFinished": "1m"},
        "control": {"hold": true, "suspend": true, "cancel": true, "requeueRequest": 1,
                    "releaseRequest": 1}})"))
                                 .spec;
  std::ifstream file{KUBEGANG_SOURCE_DIR "/crds/kubegang.io_jobs.yaml"};
  const std::string crd{std::istreambuf_iterator<char>{file}, {}};
  // The CRD's rules say the same in CEL; whichever is changed alone makes an edit pass in one place
  // only.
  const auto compares = [&](const std::string& field) {
    return crd.find("self." + field + " == oldSelf." + field) != std::string::npos;
  };
  std::set<std::string> refused;
  for (const std::string& problem : check_change({}, full, true)) {
    refused.insert(problem.substr(0, problem.find(':')));
  }
  for (const std::string& field : kube::changed_fields({}, full)) {
    // A rule of its own: it never changes.
    if (field == "spec.podPolicy") continue;
    const bool by_rule = compares(field) || compares(field.substr(0, field.rfind('.')));
    EXPECT_EQ(by_rule, refused.contains(field)) << field;
  }
  EXPECT_EQ(kube::changed_fields({}, full).size() - refused.size(), 7U);
  // Fields that are not refused are taken all the same.
  const kube::JobSpec allowed = allowed_change({}, full, true);
  EXPECT_TRUE(check_change({}, allowed, true).empty());
  EXPECT_EQ(kube::changed_fields({}, allowed).size(), 7U);
  kube::JobSpec back = full;
  back.control = {};
  EXPECT_TRUE(check_change(full, allowed_change(full, back, true), true).empty());
}

// 42 tasks are more than the 40 CPUs of the five nodes of "batch", but fit on the one node of
// "fat", which has 64. The message names the partition with the most nodes. One partition that
// could run the job is enough to let it wait for it.
TEST(JobTranslation, AJobIsRefusedForItsSizeOnlyIfNoneOfItsPartitionsCanHoldIt) {
  Cluster cluster;
  cluster.configuration.partitions.push_back({.name = "fat"});
  cluster.capacity["fat"] = {1, 64};
  const auto judge = [&](int tasks) {
    return cluster.judge(
        job_of_spec({{"partitions", {"batch", "fat"}}, {"resources", {{"tasks", tasks}}}}));
  };
  EXPECT_TRUE(judge(42).request.has_value());
  const JobVerdict none = judge(65);
  ASSERT_EQ(none.problems.size(), 1U);
  EXPECT_NE(none.problems[0].find("5 nodes of partition \"batch\" have at most 40"),
            std::string::npos)
      << none.problems[0];
}

// In the order in which they are named. Without a default partition there is none to show.
TEST(PartitionNames, AreThoseThatItNamesOrTheDefault) {
  const Cluster cluster;
  const auto names = [&](const kube::JobSpec& spec) {
    return partition_names(spec, cluster.configuration);
  };
  EXPECT_EQ(names({}), "batch");
  EXPECT_EQ(names({.partitions = {"spare"}}), "spare");
  EXPECT_EQ(names({.partitions = {"spare", "batch"}}), "spare,batch");
  EXPECT_EQ(partition_names({}, {}), "");
}

}  // namespace
}  // namespace control
