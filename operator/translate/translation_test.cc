// Objects to the scheduler's data and back, as tables.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <set>

#include <nlohmann/json.hpp>

#include "operator/gang/pod_builder.h"
#include "operator/gang/pod_slots.h"
#include "operator/translate/allocation.h"
#include "operator/translate/config_acceptance.h"
#include "operator/translate/freeze_hazards.h"
#include "operator/translate/job_check.h"
#include "operator/translate/job_translation.h"
#include "operator/translate/node_translation.h"
#include "operator/translate/reason_names.h"
#include "operator/translate/timetable_translation.h"

namespace control {
namespace {

using nlohmann::json;
using std::chrono::seconds;

kube::Job job_of(const json& spec) {
  json all{{"template", {{"spec", {{"containers", json::array({{{"name", "main"}}})}}}}}};
  all.update(spec);
  const auto job = kube::decode<kube::Job>(
      {{"apiVersion", "kubegang.io/v1alpha1"},
       {"kind", "Job"},
       {"metadata", {{"name", "myload"}, {"namespace", "team-a"}, {"uid", "u-1"}}},
       {"spec", all}});
  EXPECT_TRUE(job.ok()) << (job.ok() ? "" : job.error().message);
  return job.ok() ? *job : kube::Job{};
}

// Partition batch (default) of five nodes of 8 CPUs, QOS high.
struct Cluster {
  sched::Configuration configuration;
  std::map<std::string, PartitionCapacity> capacity{{"batch", {5, 8}}};
  Cluster() {
    configuration.partitions.push_back({.name = "batch", .is_default = true});
    configuration.qos.push_back({.name = "high"});
  }
  JobVerdict judge(const kube::Job& job) const {
    return translate_job(job, check_template(job.spec.pod_template), sched::JobId{7},
                         base::Instant{}, {configuration, capacity, {}});
  }
};

struct BadJob {
  const char* name;
  json spec;
  const char* says;  // a part of the sentence
};

class BadJobs : public testing::TestWithParam<BadJob> {};

TEST_P(BadJobs, AreRefusedWithASentenceThatNamesTheField) {
  const JobVerdict verdict = Cluster{}.judge(job_of(GetParam().spec));
  ASSERT_FALSE(verdict.problems.empty());
  EXPECT_FALSE(verdict.request.has_value());
  EXPECT_NE(verdict.problems.front().find(GetParam().says), std::string::npos)
      << verdict.problems.front();
}

json container(const json& more) {
  json one{{"name", "main"}};
  one.update(more);
  return {{"template", {{"spec", {{"containers", json::array({one})}}}}}};
}
json pod(const json& more) {
  json spec{{"containers", json::array({{{"name", "main"}}})}};
  spec.update(more);
  return {{"template", {{"spec", spec}}}};
}

INSTANTIATE_TEST_SUITE_P(
    Table, BadJobs,
    testing::Values(
        BadJob{"partition", {{"partitions", {"nowhere"}}}, "no partition \"nowhere\""},
        BadJob{"nodes", {{"resources", {{"nodes", {{"min", 6}}}}}}, "has 5"},
        BadJob{"max",
               {{"resources", {{"nodes", {{"min", 3}, {"max", 2}}}}}},
               "spec.resources.nodes.max: 2"},
        BadJob{"tasks",
               {{"resources", {{"nodes", {{"min", 2}}}, {"tasks", 17}}}},
               "spec.resources.tasks: 17"},
        BadJob{"few",
               {{"resources", {{"nodes", {{"min", 3}}}, {"tasks", 2}}}},
               "each node runs one task"},
        BadJob{
            "list", {{"placement", {{"hostlist", "n[1-"}}}}, "spec.placement.hostlist: \"n[1-\""},
        BadJob{"constraint", {{"placement", {{"constraint", "a&"}}}}, "spec.placement.constraint"},
        BadJob{"time", {{"schedule", {{"timeLimit", "0s"}}}}, "spec.schedule.timeLimit: 0s"},
        BadJob{"memory",
               {{"resources", {{"memoryPerCPU", "1Gi"}, {"memoryPerNode", "1Gi"}}}},
               "memoryPerCPU"},
        BadJob{"qos", {{"schedule", {{"qos", "low"}}}}, "no QOS \"low\""},
        BadJob{"liveness", container({{"livenessProbe", {{"httpGet", json::object()}}}}),
               "containers[0].livenessProbe"},
        BadJob{"hook", container({{"lifecycle", {{"preStop", {{"exec", {{"command", {"x"}}}}}}}}}),
               "preStop.exec"},
        BadJob{"srun", container({{"command", {"sh", "-c", "exec srun ./a"}}}), "calls srun"},
        BadJob{"restart", pod({{"restartPolicy", "Always"}}), "restartPolicy: \"Always\""},
        BadJob{"deadline", pod({{"activeDeadlineSeconds", 600}}), "use spec.schedule.timeLimit"},
        BadJob{"node", pod({{"nodeName", "n12"}}), "use spec.placement.hostlist"},
        BadJob{"affinity", pod({{"affinity", {{"nodeAffinity", json::object()}}}}), "affinity"},
        BadJob{"pid", pod({{"hostPID", true}}), "hostPID"},
        BadJob{"grace", pod({{"terminationGracePeriodSeconds", 31}}), "31 is above"},
        BadJob{"limit", container({{"resources", {{"limits", {{"memory", "1Gi"}}}}}}),
               "asks for no memory"}),
    [](const auto& one) { return std::string{one.param.name}; });

TEST(JobTranslation, TellsTheSchedulerWhatIsAskedFor) {
  const JobVerdict verdict = Cluster{}.judge(job_of(
      {{"partitions", {"batch"}},
       {"resources",
        {{"nodes", {{"min", 3}}}, {"tasks", 6}, {"cpusPerTask", 2}, {"memoryPerCPU", "512Mi"}}},
       {"placement", {{"sharing", "OverSubscribe"}, {"excludeHostlist", "n[1-2]"}}},
       {"schedule", {{"timeLimit", "5m"}, {"qos", "high"}, {"priority", 100}}},
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
  want.requeue = false;
  EXPECT_EQ(*verdict.request, want);
}

TEST(JobTranslation, AllMemoryIsSlurmsZero) {
  const JobVerdict verdict = Cluster{}.judge(job_of({{"resources", {{"allMemory", true}}}}));
  ASSERT_TRUE(verdict.request.has_value());
  EXPECT_EQ(verdict.request->memory,
            sched::MemoryRequest{sched::MemoryPerNode{sched::MemoryMiB{0}}});
}

TEST(JobTranslation, TellsTheSchedulerWhatItsNodesMustBeLike) {
  const JobVerdict verdict = Cluster{}.judge(job_of({{"resources",
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

TEST(JobTranslation, LeavesOutNodesThatTheTemplateCannotUse) {
  const kube::Labels fast{{"disk", "ssd"}};
  const kube::Labels slow{{"disk", "hdd"}};
  const std::vector<kube::Taint> none;
  const std::vector<kube::Taint> gpu{{.key = "gpu", .effect = "NoSchedule"}};
  const std::vector<kube::Taint> soft{{.key = "x", .effect = "PreferNoSchedule"}};
  const std::vector<NodeSelectorFacts> nodes{
      {"n1", &fast, &none}, {"n2", &slow, &none}, {"n3", &fast, &gpu}, {"n4", &fast, &soft}};
  TemplateFacts facts;
  facts.node_selector = fast;
  EXPECT_EQ(unusable_nodes(facts, nodes), (std::vector<std::string>{"n2", "n3"}));
  facts.tolerations = {{.key = "gpu", .op = "Exists"}};
  EXPECT_EQ(unusable_nodes(facts, nodes), (std::vector<std::string>{"n2"}));
}

// Goal: while a job has nodes exactly the same fields may change for the operator and for the CRD.
// Method: a spec with every field against an empty one; the CRD's rule compares each refused field,
// or its group as a whole, and none of the others.
TEST(CheckChange, RefusesTheSameFieldsAsTheRuleOfTheCrd) {
  const kube::JobSpec full = job_of(json::parse(R"({
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
                     "deadline": "2026-01-02T00:00:00Z", "qos": "q", "priority": 1, "nice": 1},
        "lifecycle": {"requeue": true, "startTimeout": "1m", "ttlAfterFinished": "1m"},
        "control": {"hold": true, "suspend": true, "cancel": true, "requeueRequest": 1,
                    "releaseRequest": 1}})"))
                                 .spec;
  std::ifstream file{KUBEGANG_SOURCE_DIR "/crds/kubegang.io_jobs.yaml"};
  const std::string crd{std::istreambuf_iterator<char>{file}, {}};
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
}

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

// --- configuration ---

kube::SchedulerConfigSpec config_spec(const json& spec) {
  return kube::decode<kube::SchedulerConfig>({{"metadata", {{"name", "default"}}}, {"spec", spec}})
      .value()
      .spec;
}
kube::PartitionSpec partition_spec(const json& spec) {
  json all{{"nodes", {{"hostlist", "n[1-2]"}}}};
  all.update(spec);
  return kube::decode<kube::Partition>({{"metadata", {{"name", "x"}}}, {"spec", all}}).value().spec;
}

TEST(Acceptance, DefaultsAreTheApisOwn) {
  const Acceptance out = accept({});
  const sched::ClusterParameters& cluster = out.configuration.cluster;
  EXPECT_EQ(cluster.select, sched::SelectType::kConsTres);
  EXPECT_EQ(cluster.preempt_type, sched::PreemptType::kPartitionPriority);
  EXPECT_EQ(cluster.preempt_mode, sched::PreemptMode::kSuspend);
  EXPECT_TRUE(cluster.gang && cluster.memory && cluster.task_affinity);
  EXPECT_EQ(out.parameters.settle, seconds{2});
}

TEST(Acceptance, TheOlderOfTwoDefaultPartitionsWins) {
  const auto spec = partition_spec({{"default", true}});
  AcceptanceInput input;
  input.partitions = {{.name = "b", .created = base::Instant{seconds{1}}, .newest = &spec},
                      {.name = "a", .created = base::Instant{seconds{2}}, .newest = &spec}};
  const Acceptance out = accept(input);
  EXPECT_TRUE(out.partitions[0].newest_in_force);
  EXPECT_FALSE(out.partitions[1].any_in_force);
  ASSERT_EQ(out.partitions[1].problems.size(), 1U);
  EXPECT_NE(out.partitions[1].problems[0].find("spec.default: partition \"b\""), std::string::npos);
  // Ties go by name.
  input.partitions[1].created = base::Instant{seconds{1}};
  EXPECT_TRUE(accept(input).partitions[1].newest_in_force);
}

TEST(Acceptance, APartitionNamesTheNodesThatDoNotExist) {
  const auto warnings = [](const std::string& hostlist) {
    const auto spec = partition_spec({{"nodes", {{"hostlist", hostlist}}},
                                      {"overSubscribe", {{"policy", "Force"}, {"maxShare", 1}}}});
    kube::Node one;
    one.metadata.name = "n1";
    const std::vector<const kube::Node*> nodes{&one};
    AcceptanceInput input;
    input.partitions = {{.name = "p", .newest = &spec}};
    input.nodes = nodes;
    const Acceptance out = accept(input);
    EXPECT_TRUE(out.partitions[0].newest_in_force);
    return out.partitions[0].warnings;
  };
  using Sentences = std::vector<std::string>;
  EXPECT_EQ(warnings("n1"), Sentences{});
  EXPECT_EQ(warnings("n[1-4]"),
            Sentences{"spec.nodes.hostlist: there is no node n[2-4] (3 of the 4 that it names)"});
  // A long list in few words is written out, another one is cut.
  EXPECT_EQ(
      warnings("m[1-50000]"),
      Sentences{
          "spec.nodes.hostlist: there is no node m[1-50000] (50000 of the 50000 that it names)"});
  std::string odd = "m[1";
  for (int i = 3; i < 2'000; i += 2) odd += "," + std::to_string(i);
  EXPECT_EQ(warnings(odd + "]"),
            Sentences{"spec.nodes.hostlist: there is no node "
                      "m[1,3,5,7,9,11,13,15,17,19,21,23,25,27,29,31,33,35,37,39],... (1000 of the "
                      "1000 that it names)"});
}

TEST(Acceptance, AConfigurationThatIsIllegalWithWhatRunsChangesNothing) {
  const auto good = config_spec({{"gang", true}});
  const auto bad = config_spec({{"gang", false}, {"preemptMode", "Cancel"}});
  const auto suspend = partition_spec({{"preemptMode", "Suspend"}});
  AcceptanceInput input;
  input.config = {.name = "default", .newest = &bad, .accepted = &good};
  input.partitions = {{.name = "p", .newest = &suspend, .accepted = &suspend}};
  const Acceptance out = accept(input);  // C8
  EXPECT_FALSE(out.config.newest_in_force);
  EXPECT_TRUE(out.config.any_in_force);
  EXPECT_FALSE(out.config.problems.empty());
  EXPECT_TRUE(out.partitions[0].newest_in_force);
  EXPECT_TRUE(out.configuration.cluster.gang);
}

TEST(Acceptance, APartitionThatIsIllegalIsLeftOutAloneAndSaysWhy) {
  const auto config = config_spec({{"gang", false}});
  const auto plain = partition_spec(json::object());
  const auto suspend = partition_spec({{"preemptMode", "Suspend"}});
  AcceptanceInput input;
  input.config = {.name = "default", .newest = &config};
  input.partitions = {{.name = "good", .newest = &plain}, {.name = "bad", .newest = &suspend}};
  const Acceptance out = accept(input);
  EXPECT_TRUE(out.config.newest_in_force);
  EXPECT_TRUE(out.partitions[0].newest_in_force);
  EXPECT_FALSE(out.partitions[1].any_in_force);
  ASSERT_FALSE(out.partitions[1].problems.empty());
  EXPECT_NE(out.partitions[1].problems[0].find("spec.preemptMode"), std::string::npos)
      << out.partitions[1].problems[0];
}

TEST(ConfigTranslation, PartitionsTakeTheirNodesFromAHostlistOrFromLabels) {
  EXPECT_EQ(
      translate_partition("p", partition_spec({{"nodes", {{"hostlist", "n[2,1],n10"}}}}), {}).nodes,
      (std::vector<std::string>{"n1", "n2", "n10"}));
  kube::Node in, out;
  in.metadata.name = "n9";
  in.metadata.labels = {{"pool", "batch"}};
  out.metadata.name = "n8";
  const std::vector<const kube::Node*> nodes{&in, &out};
  const auto spec =
      partition_spec({{"nodes", {{"selector", {{"matchLabels", {{"pool", "batch"}}}}}}}});
  EXPECT_EQ(translate_partition("p", spec, nodes).nodes, (std::vector<std::string>{"n9"}));
}

TEST(ConfigTranslation, ABarrierHoldsUpAnAgentForASecondAtMost) {
  const auto problems_of = [](const char* barrier) {
    kube::SchedulerConfig config;
    config.metadata.name = std::string{kube::kSchedulerConfigName};
    config.spec = config_spec({{"timetable", {{"barrier", barrier}}}});
    return check_config(config);
  };
  EXPECT_THAT(problems_of("1s"), ::testing::IsEmpty());
  EXPECT_THAT(problems_of("0s"), ::testing::IsEmpty());
  EXPECT_THAT(problems_of("1001ms"),
              ::testing::ElementsAre(::testing::HasSubstr("spec.timetable.barrier")));
}

TEST(ConfigTranslation, ConditionsOfPreemptionAreToldToTheScheduler) {
  const auto cluster = translate_config(config_spec(
      {{"gang", false},
       {"preemptType", "QOS"},
       {"preemptWithin", true},
       {"preemptPriority", true},
       {"select",
        {{"leastLoaded", true}, {"oneTaskPerCore", true}, {"blockDistribution", true}}}}));
  EXPECT_EQ(cluster.preempt_mode, sched::PreemptMode::kCancel);  // without gang
  EXPECT_TRUE(cluster.preempt_within && cluster.preempt_priority);
  EXPECT_TRUE(cluster.least_loaded && cluster.one_task_per_core && cluster.core_default_dist_block);
  const auto partition = translate_partition(
      "p", partition_spec({{"preemptPriority", true}, {"overTimeLimit", "1m"}}), {});
  EXPECT_TRUE(partition.preempt_priority);
  EXPECT_EQ(partition.over_time_limit, std::chrono::minutes{1});
  const auto object =
      kube::decode<kube::Qos>({{"metadata", {{"name", "q"}}}, {"spec", {{"preemptWithin", true}}}});
  const auto qos = translate_qos("q", object.value().spec);
  EXPECT_TRUE(qos.preempt_within);
  EXPECT_FALSE(qos.preempt_priority);
}

// --- nodes ---

kube::Node ready_node(const json& more = json::object()) {
  json node{{"metadata", {{"name", "n12"}, {"labels", {{"gpu", "true"}, {"disk", "ssd"}}}}},
            {"status",
             {{"allocatable", {{"cpu", "8"}, {"memory", "1000Mi"}, {"ephemeral-storage", "2Gi"}}},
              {"conditions", json::array({{{"type", "Ready"}, {"status", "True"}}})}}}};
  node.merge_patch(more);
  return kube::decode<kube::Node>(node).value();
}
kube::NodeTimetableStatus ready_agent() {
  kube::NodeTimetableStatus status;
  status.conditions = {{.type = "Ready", .status = kube::ConditionStatus::kTrue}};
  return status;
}

TEST(NodeTranslation, MemoryIsWhatForeignPodsAndTheReserveLeave) {
  const kube::Node node = ready_node();
  const auto agent = ready_agent();
  const NodeVerdict verdict =
      translate_node({.node = &node, .agent = &agent, .foreign_memory = kube::Bytes{100LL << 20U}});
  EXPECT_EQ(verdict.spec.memory, sched::MemoryMiB{850});  // 1000 - 100 - 5 %
  EXPECT_EQ(verdict.spec.tmp_disk, sched::MemoryMiB{2048});
  EXPECT_EQ(verdict.spec.cpus, 8);
  EXPECT_EQ(verdict.spec.state, sched::NodeState::kUp);
  EXPECT_EQ(verdict.spec.features, (std::vector<std::string>{"disk", "disk=ssd", "gpu"}));
}

TEST(NodeTranslation, PodsAreWhatForeignPodsLeaveOfKubeletsLimit) {
  const auto agent = ready_agent();
  const kube::Node limited = ready_node({{"status", {{"allocatable", {{"pods", "110"}}}}}});
  EXPECT_EQ(
      translate_node({.node = &limited, .agent = &agent, .foreign_pods = 8}).spec.pods_max.value(),
      102);
  EXPECT_EQ(translate_node({.node = &limited, .agent = &agent, .foreign_pods = 200})
                .spec.pods_max.value(),
            0);
}

// A pod that no timetable has room for would never be frozen.
TEST(NodeTranslation, PodsAreNoMoreThanATimetableLists) {
  const auto agent = ready_agent();
  const kube::Node roomy = ready_node({{"status", {{"allocatable", {{"pods", "5000"}}}}}});
  EXPECT_EQ(translate_node({.node = &roomy, .agent = &agent}).spec.pods_max.value(), 1024);
  const kube::Node unlimited = ready_node();
  EXPECT_EQ(translate_node({.node = &unlimited, .agent = &agent, .foreign_pods = 8})
                .spec.pods_max.value(),
            1024);
}

TEST(NodeTranslation, TopologyAndWeightComeFromAgentAndLabel) {
  const kube::Node node = ready_node({{"metadata", {{"labels", {{"kubegang.io/weight", "5"}}}}}});
  auto agent = ready_agent();
  agent.topology = kube::NodeTopology{2, 4, 2, "0-15"};
  const NodeVerdict verdict = translate_node({.node = &node, .agent = &agent});
  EXPECT_EQ(verdict.spec.cores(), 8);
  EXPECT_EQ(verdict.spec.cpus, 16);
  EXPECT_EQ(verdict.spec.weight, 5U);
}

TEST(NodeTranslation, TakesNothingNewWithoutAgentCordonedOrTainted) {
  const auto agent = ready_agent();
  const kube::Node plain = ready_node();
  const kube::Node cordoned = ready_node({{"spec", {{"unschedulable", true}}}});
  const kube::Node tainted =
      ready_node({{"spec",
                   {{"taints", json::array({{{"key", "node.kubernetes.io/memory-pressure"},
                                             {"effect", "NoSchedule"}}})}}}});
  const kube::Node down = ready_node(
      {{"status", {{"conditions", json::array({{{"type", "Ready"}, {"status", "Unknown"}}})}}}});
  using sched::NodeState;
  EXPECT_EQ(translate_node({.node = &plain}).spec.state, NodeState::kDrain);
  EXPECT_EQ(translate_node({.node = &plain, .gang = false}).spec.state, NodeState::kUp);
  EXPECT_EQ(translate_node({.node = &cordoned, .agent = &agent}).spec.state, NodeState::kDrain);
  EXPECT_EQ(translate_node({.node = &tainted, .agent = &agent}).spec.state, NodeState::kDrain);
  EXPECT_EQ(translate_node({.node = &down, .agent = &agent}).spec.state, NodeState::kDown);
  EXPECT_EQ(translate_node({.node = &plain, .agent = &agent, .has_orphans = true}).spec.state,
            NodeState::kDrain);
  EXPECT_EQ(translate_node({.node = &plain, .agent = &agent, .clock = kube::ClockPolicy::kRequire})
                .spec.state,
            NodeState::kDrain);
}

// --- allocations, pods, timetables ---

TEST(Allocation, ComesBackExactly) {
  sched::Allocation allocation;
  for (const int node : {0, 1, 2}) {
    auto& share = allocation.nodes.emplace_back();
    share.node = sched::NodeIndex{node};
    share.cores = sched::CoreSet::first(node == 2 ? 3 : 2);
    share.cpus = node == 2 ? 3 : 2;
    share.tasks = node == 2 ? 1 : 2;
    share.memory = sched::MemoryMiB{512};
  }
  const std::vector<std::string> names{"n12", "n13", "n14"};
  const kube::Allocation encoded = encode_allocation(
      allocation, [&](sched::NodeIndex n) -> const std::string& { return names[n.index()]; });
  EXPECT_EQ(encoded.hostlist, "n[12-14]");
  EXPECT_EQ(encoded.cpus, 7);
  EXPECT_EQ(encoded.nodes, 3);
  ASSERT_EQ(encoded.shares.size(), 2U);
  EXPECT_EQ(encoded.shares[0].hostlist, "n[12-13]");
  EXPECT_EQ(encoded.shares[0].cores, "0-1");
  const auto decoded = decode_allocation(encoded, [&](const std::string& name) {
    const auto found = std::find(names.begin(), names.end(), name);
    return std::optional{
        KnownNode{sched::NodeIndex{static_cast<std::int32_t>(found - names.begin())}, 8, 8}};
  });
  ASSERT_TRUE(decoded.ok());
  EXPECT_EQ(decoded->allocation, allocation);
}

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

TEST(Pods, CarryWhatTheOperatorDecided) {
  kube::Job job = job_of(
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

TEST(Pods, AreToldOfEachOther) {
  kube::Job job = job_of(json::object());
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
  auto last = environment(3);
  EXPECT_EQ(last["SLURM_NODEID"], "2");
  EXPECT_EQ(last["SLURM_CPUS_ON_NODE"], "2");
  EXPECT_EQ(last["SLURM_PROCID"], "3");
  EXPECT_EQ(last["SLURM_LOCALID"], "0");
}

TEST(Timetables, ComeBackAndNamePods) {
  sched::NodePlan plan;
  plan.node = sched::NodeIndex{0};
  plan.as_of = base::Instant{seconds{100}};
  plan.entries = {{sched::JobId{1}, sched::Row::kActive, seconds{41}},
                  {sched::JobId{2}, sched::Row::kWaiting, seconds{0}}};
  plan.timetable = {.slice = seconds{30},
                    .pods_count = 2,
                    .plan = {{base::Instant{seconds{120}}, {0}}},
                    .cycle = {{1}, {0}}};
  const std::vector<PodSlot> one{{.name = "a-0", .node = "n1"}};
  // Job 2 has two pods here (PerTask): both have its turns.
  const std::vector<PodSlot> two{
      {.name = "b-0", .node = "n1"}, {.name = "b-1", .node = "n1"}, {.name = "b-2", .node = "n2"}};
  const auto find = [&](sched::JobId id) -> std::optional<ListedJob> {
    if (id == sched::JobId{1}) return ListedJob{"ns", "u1", one};
    return ListedJob{"ns", "u2", two};
  };
  const auto spec = encode_plan(plan, "n1", find, std::nullopt);
  ASSERT_EQ(spec.pods.size(), 3U);
  EXPECT_EQ(spec.pods[2].name, "b-1");
  EXPECT_EQ(spec.timetable.cycle, (std::vector<timetable::PodSet>{{1, 2}, {0}}));
  EXPECT_TRUE(timetable::validate(spec.timetable).ok());
  const auto back = decode_plan(spec, plan.node, [](const std::string& uid) {
    return std::optional{sched::JobId{uid == "u1" ? 1 : 2}};
  });
  ASSERT_TRUE(back.has_value());
  EXPECT_EQ(*back, plan);
  // A job that is not known any more is left out, with its turns.
  const auto without = decode_plan(spec, plan.node, [](const std::string& uid) {
    return uid == "u1" ? std::optional{sched::JobId{1}} : std::nullopt;
  });
  EXPECT_EQ(without->entries.size(), 1U);
  EXPECT_EQ(without->timetable.cycle, (std::vector<timetable::PodSet>{{}, {0}}));
}

TEST(Timetables, CpuSetsFollowTheTopologysOrder) {
  EXPECT_EQ(cpuset_of("0-1", kube::NodeTopology{1, 4, 1, "0-3"}), "0-1");
  // Threads of a core stand together in cpuIDs.
  EXPECT_EQ(cpuset_of("0,3", kube::NodeTopology{1, 4, 2, "0,4,1,5,2,6,3,7"}), "0,3-4,7");
  EXPECT_EQ(cpuset_of("", kube::NodeTopology{1, 4, 1, "0-3"}), "");
  EXPECT_EQ(cpuset_of("0", std::nullopt), "");
}

// What webhooks add to a pod that the template may not have.
TEST(FreezeHazards, ADeadlineAndASidecarThatIsRestartedForbidFreezing) {
  kube::PodSpec spec;
  spec.containers = {{.name = "main"}};
  spec.init_containers = {{.name = "prepare"}};
  EXPECT_EQ(why_never_frozen(spec), std::nullopt);
  spec.init_containers.push_back({.name = "mesh", .restart_policy = "Always"});
  EXPECT_THAT(why_never_frozen(spec).value(),
              testing::StartsWith("container mesh has the restartPolicy Always ("));
  spec.active_deadline_seconds = 600;
  EXPECT_THAT(why_never_frozen(spec).value(),
              testing::StartsWith("activeDeadlineSeconds is set ("));
}

TEST(Names, EveryReasonComesBack) {
  for (int i = 1; i <= static_cast<int>(sched::Reason::kUser); ++i) {
    const auto reason = static_cast<sched::Reason>(i);
    EXPECT_EQ(parse_reason(reason_name(reason)), reason) << i;
  }
}

}  // namespace
}  // namespace control
