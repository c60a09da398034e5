// SchedulerConfig, Partitions and QOS: what is legal, by itself and together, and what the
// scheduler gets.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "translation/config_acceptance.h"
#include "translation/config_translation.h"
#include "translation/partition_translation.h"
#include "translation/qos_translation.h"

namespace control {
namespace {

using nlohmann::json;
using std::chrono::seconds;

// Specs from JSON, with the defaults that decoding fills in. A partition has n[1-2] unless `spec`
// says otherwise.
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

// Without any object: what the CRD's defaults would say. A cluster whose administrator has written
// nothing yet must schedule as one with an empty object.
TEST(Acceptance, DefaultsAreTheApisOwn) {
  const Acceptance out = accept({});
  const sched::ClusterParameters& cluster = out.configuration.cluster;
  EXPECT_EQ(cluster.select, sched::SelectType::kConsTres);
  EXPECT_EQ(cluster.preempt_type, sched::PreemptType::kPartitionPriority);
  EXPECT_EQ(cluster.preempt_mode, sched::PreemptMode::kSuspend);
  EXPECT_TRUE(cluster.gang && cluster.memory && cluster.task_affinity);
  EXPECT_EQ(out.parameters.settle, seconds{2});
}

// A job that names no partition needs exactly one. By age, so that a new partition cannot draw the
// jobs of a cluster to itself.
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

// Only n1 exists. The partition is in force all the same: nodes may join later. The warning goes
// into a status, so its length has a bound whatever the list is.
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
  // A few names are shown whole, however long they are: these have no numbers to join.
  std::string few;
  for (char c = 'a'; c < 'a' + 19; ++c) few += (few.empty() ? "" : ",") + std::string(60, c);
  EXPECT_EQ(warnings(few), Sentences{"spec.nodes.hostlist: there is no node " + few +
                                     " (19 of the 19 that it names)"});
  std::string odd = "m[1";
  for (int i = 3; i < 2'000; i += 2) odd += "," + std::to_string(i);
  EXPECT_EQ(warnings(odd + "]"),
            Sentences{"spec.nodes.hostlist: there is no node "
                      "m[1,3,5,7,9,11,13,15,17,19,21,23,25,27,29,31,33,35,37,39],... (1000 of the "
                      "1000 that it names)"});
}

// Suspended victims are resumed by gang scheduling, so preemptMode Suspend needs it. The partition
// runs with that mode, so the new configuration is refused and not the partition, which has not
// changed.
TEST(Acceptance, AConfigurationThatIsIllegalWithWhatRunsChangesNothing) {
  const auto good = config_spec({{"gang", true}});
  const auto bad = config_spec({{"gang", false}, {"preemptMode", "Cancel"}});
  const auto suspend = partition_spec({{"preemptMode", "Suspend"}});
  AcceptanceInput input;
  input.config = {.name = "default", .newest = &bad, .accepted = &good};
  input.partitions = {{.name = "p", .newest = &suspend, .accepted = &suspend}};
  const Acceptance out = accept(input);
  EXPECT_FALSE(out.config.newest_in_force);
  EXPECT_TRUE(out.config.any_in_force);
  EXPECT_FALSE(out.config.problems.empty());
  EXPECT_TRUE(out.partitions[0].newest_in_force);
  EXPECT_TRUE(out.configuration.cluster.gang);
}

// One administrator's mistake must not stop the partitions of the others: "good" is in force.
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
  // Users do not know the numbers of our rules: none is in the sentence.
  EXPECT_EQ(out.partitions[1].problems,
            std::vector<std::string>{
                "partition \"bad\": spec.preemptMode: SUSPEND needs GANG in the cluster's "
                "PreemptMode, which resumes the victims"});
}

// In Slurm's natural order: n2 before n10. n8 lacks the label.
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

// At a switch the pods that come on wait that long for those that are slow to freeze, while the
// node stands idle. 0s is legal (no wait); the first value above the bound is refused.
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

// Each of the three kinds of objects can set them, and the scheduler combines them; here they only
// must arrive, and no flag that was not set.
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

// Every parameter with a number of its own, compared as a whole: two that are mixed up are seen.
TEST(ConfigTranslation, BackfillIsOnWithSlurmsDefaultsAndCanBeToldApart) {
  const auto defaults = translate_config({});
  EXPECT_EQ(defaults.scheduler, sched::SchedulerType::kBackfill);
  EXPECT_EQ(defaults.backfill, sched::BackfillParameters{});
  EXPECT_EQ(translate_config(config_spec({{"schedulerType", "Builtin"}})).scheduler,
            sched::SchedulerType::kBuiltin);
  const auto told = translate_config(config_spec({{"backfill",
                                                   {{"interval", "5s"},
                                                    {"window", "48h"},
                                                    {"resolution", "1s"},
                                                    {"windowLinear", "10s"},
                                                    {"maxJobTest", 1},
                                                    {"maxJobStart", 2},
                                                    {"maxJobPart", 3},
                                                    {"maxJobUser", 4},
                                                    {"maxJobUserPart", 5},
                                                    {"minAgeReserve", "6s"},
                                                    {"minPrioReserve", 7},
                                                    {"jobPartCountReserve", 8},
                                                    {"nodeSpaceSize", 9},
                                                    {"maxJobArrayResv", 10},
                                                    {"continue", true},
                                                    {"busyNodes", true},
                                                    {"oneResvPerJob", true},
                                                    {"runningJobReserve", true},
                                                    {"licenses", true}}}}));
  const sched::BackfillParameters expected{.interval = seconds{5},
                                           .resolution = seconds{1},
                                           .window = std::chrono::hours{48},
                                           .max_job_test = 1,
                                           .max_job_start = 2,
                                           .max_job_part = 3,
                                           .max_job_user = 4,
                                           .max_job_user_part = 5,
                                           .min_age_reserve = seconds{6},
                                           .min_prio_reserve = sched::Priority{7},
                                           .job_part_count_reserve = 8,
                                           .max_job_array_resv = 10,
                                           .node_space_size = 9,
                                           .window_linear = seconds{10},
                                           .continues = true,
                                           .busy_nodes = true,
                                           .one_resv_per_job = true,
                                           .running_job_reserve = true,
                                           .licenses = true};
  EXPECT_EQ(told.backfill, expected);
}

TEST(ConfigTranslation, Licenses) {
  const auto told = translate_config(config_spec(
      {{"licenses", {{"matlab", 4}}}, {"preemptParameters", {{"reclaimLicenses", true}}}}));
  EXPECT_EQ(told.licenses, (sched::Licenses{{"matlab", 4}}));
  EXPECT_TRUE(told.preempt.reclaim_licenses);
}

// First three values at a bound, then for each field one beyond it. Each case has one problem, and
// it names the field.
// DefCpuPerGPU and DefMemPerGPU, of the cluster and of a partition.
TEST(ConfigTranslation, DefaultsOfJobsWithGpus) {
  const auto config = [](const json& spec) {
    return kube::decode<kube::SchedulerConfig>(
               {{"metadata", {{"name", "default"}}}, {"spec", spec}})
        .value();
  };
  const auto both = config({{"defaultCPUsPerGPU", 4}, {"memory", {{"defaultPerGPU", "2Gi"}}}});
  EXPECT_THAT(check_config(both), IsEmpty());
  const sched::PerGpu wanted{.cpus = 4, .memory = sched::MemoryMiB{2048}};
  EXPECT_EQ(translate_config(both.spec).default_per_gpu, wanted);
  const auto partition = kube::decode<kube::Partition>({{"metadata", {{"name", "p"}}},
                                                        {"spec",
                                                         {{"nodes", {{"hostlist", "n1"}}},
                                                          {"defaultCPUsPerGPU", 4},
                                                          {"memory", {{"defaultPerGPU", "2Gi"}}}}}})
                             .value();
  EXPECT_THAT(check_partition(partition), IsEmpty());
  EXPECT_EQ(translate_partition("p", partition.spec, {}).default_per_gpu, wanted);
  EXPECT_THAT(check_config(config({{"defaultCPUsPerGPU", 0}})),
              ElementsAre("spec.defaultCPUsPerGPU: 0 is out of range; use 1 to 65535"));
}

TEST(ConfigTranslation, BackfillHasSlurmsBounds) {
  const auto problems_of = [](const json& backfill) {
    kube::SchedulerConfig config;
    config.metadata.name = std::string{kube::kSchedulerConfigName};
    config.spec = config_spec({{"backfill", backfill}});
    return check_config(config);
  };
  EXPECT_THAT(problems_of({{"interval", "1s"}, {"window", "720h"}, {"maxJobTest", 1}}),
              ::testing::IsEmpty());
  for (const json& wrong :
       {json{{"interval", "0s"}}, json{{"interval", "3h1s"}}, json{{"window", "59s"}},
        json{{"window", "721h"}}, json{{"resolution", "500ms"}}, json{{"maxJobTest", 0}},
        json{{"maxJobStart", 10'001}}, json{{"minPrioReserve", -1}},
        // "Any number" is an absent field, not a 0.
        json{{"maxJobStart", 0}}, json{{"maxJobPart", 0}}, json{{"maxJobUser", 0}},
        json{{"maxJobUserPart", 0}}, json{{"jobPartCountReserve", 0}}, json{{"nodeSpaceSize", 1}},
        json{{"windowLinear", "0s"}}, json{{"maxJobArrayResv", 1'001}}}) {
    EXPECT_THAT(
        problems_of(wrong),
        ::testing::ElementsAre(::testing::HasSubstr("spec.backfill." + wrong.begin().key())));
  }
}

// The last accepted spec is read from a status, which no schema checks: another version of the
// operator, or a hand, may have written it. A crash here would come again at each restart.
TEST(TranslatePartition, AnAcceptedHostlistThatCannotBeExpandedHasNoNodes) {
  kube::PartitionSpec spec;
  spec.nodes.hostlist = "n[1-";
  EXPECT_TRUE(translate_partition("batch", spec, {}).nodes.empty());
}

}  // namespace
}  // namespace control
