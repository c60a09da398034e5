// Accounts, limits and priorities: what is legal, and what the scheduler gets.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "api/account.h"
#include "translation/account_translation.h"
#include "translation/config_acceptance.h"
#include "translation/config_translation.h"
#include "translation/partition_translation.h"
#include "translation/qos_translation.h"

namespace control {
namespace {

using nlohmann::json;
using sched::Tres;
using std::chrono::hours;
using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;

// An object as the API server would have it, from the JSON of its spec.
template <typename T>
// Returns an object as a user writes it.
T object_of(const std::string& name, const json& spec) {
  return kube::decode<T>({{"metadata", {{"name", name}}}, {"spec", spec}}).value();
}
kube::AccountSpec account_spec(const json& spec) {
  return object_of<kube::Account>("x", spec).spec;
}

// Each limit has a value of its own, so two that are mixed up are seen. A limit of 0
// (perAccount.jobs) is a limit and not the absence of one. Namespaces are the scheduler's users.
// Memory is in MiB there: 1Gi is 1024.
TEST(LimitsTranslation, EveryLimitOfAQosReachesTheScheduler) {
  // Each limit has a number of its own, so that two that are mixed up show.
  const auto object = object_of<kube::Qos>("gold", json::parse(R"({
      "limits": {"group": {"resources": {"cpus": 8, "memory": "1Gi", "nodes": 2, "billing": 9,
                                         "gpus": 7},
                           "jobs": 3, "submittedJobs": 4, "runTime": "100h"},
                 "perJob": {"resources": {"nodes": 3}, "resourcesPerNode": {"cpus": 5, "gpus": 4},
                            "time": "1h"},
                 "minPerJob": {"cpus": 2, "gpus": 1, "gpusOfType": {"v100": 2}},
                 "perNamespace": {"resources": {"cpus": 6, "gpus": 3}, "jobs": 1,
                                  "submittedJobs": 2},
                 "perAccount": {"resources": {"memory": "2Gi", "gpus": 0}, "jobs": 0,
                                "submittedJobs": 5}},
      "usageFactorPercent": 150})"));
  EXPECT_THAT(check_qos(object), IsEmpty());
  const sched::QosConfig qos = translate_qos("gold", object.spec);
  sched::Limits wanted;
  wanted.group_tres.values = {8, 1024, 2, 9, 7};
  wanted.group_jobs = 3;
  wanted.group_submit = 4;
  wanted.group_wall = hours{100};
  wanted.job_tres[Tres::kNode] = 3;
  wanted.node_tres[Tres::kCpu] = 5;
  wanted.node_tres[Tres::kGpu] = 4;
  wanted.job_wall = hours{1};
  wanted.min_tres[Tres::kCpu] = 2;
  wanted.min_tres[Tres::kGpu] = 1;
  wanted.min_tres.of_gpu_type["v100"] = 2;
  wanted.user_tres[Tres::kCpu] = 6;
  wanted.user_tres[Tres::kGpu] = 3;
  wanted.user_jobs = 1;
  wanted.user_submit = 2;
  wanted.account_tres[Tres::kMemory] = 2048;
  wanted.account_tres[Tres::kGpu] = 0;
  wanted.account_jobs = 0;
  wanted.account_submit = 5;
  EXPECT_EQ(qos.limits, wanted);
  EXPECT_EQ(qos.usage_factor_milli, 1500);
}

// Each flag alone: it sets its field and no other. A flag that is lost here would show as a limit
// that does not hold, much later.
TEST(LimitsTranslation, EveryFlagOfAQosReachesTheScheduler) {
  using sched::QosConfig;
  const std::vector<std::pair<std::string, bool QosConfig::*>> flags{
      {"DenyOnLimit", &QosConfig::deny_on_limit},
      {"PartitionMinNodes", &QosConfig::partition_min_nodes},
      {"PartitionMaxNodes", &QosConfig::partition_max_nodes},
      {"PartitionTimeLimit", &QosConfig::partition_time_limit},
      {"OverPartQOS", &QosConfig::over_part_qos},
      {"NoReserve", &QosConfig::no_reserve}};
  // Each flag alone sets its own field and no other.
  for (const auto& [flag, field] : flags) {
    const auto object = object_of<kube::Qos>("gold", {{"flags", {flag}}});
    EXPECT_THAT(check_qos(object), IsEmpty()) << flag;
    const QosConfig qos = translate_qos("gold", object.spec);
    for (const auto& [other, its_field] : flags) {
      EXPECT_EQ(qos.*its_field, other == flag) << flag << ", " << other;
    }
  }
}

// Physics below science, guests beside them. team-b is in two accounts, and its jobs are of guests
// unless they name another one. Limits per namespace are the scheduler's limits per user.
TEST(AccountTranslation, ATreeOfAccountsAndTheirNamespaces) {
  const auto science = account_spec({{"shares", 10}});
  // team-b is in two accounts, and guests is its default.
  const auto physics = account_spec(json::parse(R"({
      "parent": "science", "sharesOfParent": true, "priority": 7,
      "limits": {"group": {"resources": {"cpus": 8}}, "perNamespace": {"jobs": 2}},
      "namespaces": [{"name": "team-a"},
                     {"name": "team-b", "shares": 3, "limits": {"group": {"jobs": 1}}}]})"));
  const auto guests = account_spec(
      {{"namespaces", {{{"name", "team-b"}, {"default", true}, {"sharesOfAccount", true}}}}});
  AcceptanceInput input;
  input.accounts = {{.name = "science", .newest = &science},
                    {.name = "physics", .newest = &physics},
                    {.name = "guests", .newest = &guests}};
  const Acceptance out = accept(input);
  for (const SpecVerdict& verdict : out.accounts) {
    EXPECT_TRUE(verdict.newest_in_force);
    EXPECT_THAT(verdict.warnings, IsEmpty());
  }
  sched::AccountConfig of_physics{.name = "physics",
                                  .parent = "science",
                                  .shares = {.count = 1, .of_parent = true},
                                  .priority = 7,
                                  .limits = {}};
  of_physics.limits.group_tres[Tres::kCpu] = 8;
  of_physics.limits.user_jobs = 2;
  ASSERT_EQ(out.configuration.accounts.size(), 3U);
  EXPECT_EQ(out.configuration.accounts[0].shares.count, 10);
  EXPECT_EQ(out.configuration.accounts[1], of_physics);
  // Default accounts come first: the first of a user is that of its jobs.
  const auto& users = out.configuration.users;
  ASSERT_EQ(users.size(), 3U);
  EXPECT_EQ(users[0].account + "/" + users[0].name, "guests/team-b");
  EXPECT_TRUE(users[0].shares.of_parent);
  EXPECT_EQ(users[1].account + "/" + users[1].name, "physics/team-a");
  EXPECT_EQ(users[2].account + "/" + users[2].name, "physics/team-b");
  EXPECT_EQ(users[2].shares.count, 3);
  EXPECT_EQ(users[2].limits.group_jobs, 1);
}

// Each case has one problem, and the sentence begins with the field. Limits of root hold for the
// whole cluster and are legal; shares are of a parent, which root does not have.
TEST(AccountTranslation, AnAccountSaysWhatIsWrongWithIt) {
  const auto problems = [](const std::string& name, const json& spec) {
    return check_account(object_of<kube::Account>(name, spec));
  };
  EXPECT_THAT(problems("a", {{"parent", "a"}}), ElementsAre(HasSubstr("spec.parent")));
  EXPECT_THAT(problems("a", {{"shares", 1}, {"sharesOfParent", true}}),
              ElementsAre(HasSubstr("spec.shares: excludes sharesOfParent")));
  EXPECT_THAT(problems("a", {{"namespaces", {{{"name", "x"}}, {{"name", "x"}}}}}),
              ElementsAre(HasSubstr("spec.namespaces[1].name: \"x\" is listed twice")));
  EXPECT_THAT(problems("a", {{"limits", {{"perJob", {{"time", "0s"}}}}}}),
              ElementsAre(HasSubstr("spec.limits.perJob.time")));
  EXPECT_THAT(problems("root", {{"limits", {{"group", {{"jobs", 5}}}}}}), IsEmpty());
  EXPECT_THAT(problems("root", {{"shares", 2}}), ElementsAre(HasSubstr("account root")));
}

// A parent may be created later, so its absence is a warning. If two form a ring, the one that is
// in force stays, and the new one is refused. A ring in force would send each walk up the tree
// round forever.
TEST(AccountTranslation, AnAccountBelowItselfIsRefusedAndAMissingParentIsNot) {
  const auto below_b = account_spec({{"parent", "b"}});
  const auto below_a = account_spec({{"parent", "a"}});
  AcceptanceInput input;
  input.accounts = {{.name = "a", .newest = &below_b}};
  Acceptance out = accept(input);
  EXPECT_TRUE(out.accounts[0].newest_in_force);
  EXPECT_THAT(out.accounts[0].warnings, ElementsAre(HasSubstr("there is no account b")));
  input.accounts[0].accepted = &below_b;
  input.accounts.push_back({.name = "b", .newest = &below_a});
  out = accept(input);
  EXPECT_TRUE(out.accounts[0].newest_in_force);
  EXPECT_FALSE(out.accounts[1].any_in_force);
  EXPECT_THAT(out.accounts[1].problems, ElementsAre(HasSubstr("spec.parent: account")));
}

// By age and not by name, so that a new account cannot take over the jobs of a namespace: "a" comes
// before "b", but was made later.
TEST(AccountTranslation, TheOlderOfTwoDefaultAccountsOfANamespaceWins) {
  const auto spec = account_spec({{"namespaces", {{{"name", "team-a"}, {"default", true}}}}});
  AcceptanceInput input;
  input.accounts = {{.name = "b", .created = base::Instant{seconds{1}}, .newest = &spec},
                    {.name = "a", .created = base::Instant{seconds{2}}, .newest = &spec}};
  const Acceptance out = accept(input);
  EXPECT_TRUE(out.accounts[0].newest_in_force);
  EXPECT_FALSE(out.accounts[1].any_in_force);
  EXPECT_THAT(out.accounts[1].problems,
              ElementsAre(HasSubstr("account \"b\" is the default of namespace \"team-a\"")));
}

// Two accounts may list a namespace; whose files its pods may read must not depend on which of them
// a job names.
TEST(AccountTranslation, TheOlderOfTwoIdentitiesOfANamespaceWins) {
  const auto with_uid = [](int uid) {
    return account_spec(
        {{"namespaces", {{{"name", "team-a"}, {"identity", {{"uid", uid}, {"gid", 100}}}}}}});
  };
  const auto first = with_uid(1000);
  const auto equal = with_uid(1000);
  const auto other = with_uid(1001);
  AcceptanceInput input;
  input.accounts = {{.name = "b", .created = base::Instant{seconds{1}}, .newest = &first},
                    {.name = "a", .created = base::Instant{seconds{2}}, .newest = &other},
                    {.name = "c", .created = base::Instant{seconds{3}}, .newest = &equal}};
  const Acceptance out = accept(input);
  EXPECT_TRUE(out.accounts[0].newest_in_force);
  EXPECT_FALSE(out.accounts[1].any_in_force);
  EXPECT_TRUE(out.accounts[2].newest_in_force);
  EXPECT_THAT(out.accounts[1].problems,
              ElementsAre(HasSubstr("account \"b\" has another identity of namespace")));
}

TEST(AccountTranslation, AnIdentityIsNeverRoot) {
  const auto account = object_of<kube::Account>(
      "a",
      {{"namespaces",
        {{{"name", "team-a"}, {"identity", {{"uid", 0}, {"gid", 100}, {"home", "home/ann"}}}}}}});
  EXPECT_THAT(check_account(account),
              ElementsAre(HasSubstr("identity.uid: 0 is out of range"),
                          HasSubstr("identity.home: \"home/ann\" must begin with /")));
}

// Each number is another one, and no value is the default's, so a field that is left out or mixed
// up with its neighbor is seen. The flags NoNormal... are the scheduler's normal_... turned round.
TEST(PriorityTranslation, BasicIsTheDefaultAndEveryFieldReachesTheScheduler) {
  const auto translated = [](const json& spec) {
    const auto config = object_of<kube::SchedulerConfig>("default", spec);
    EXPECT_THAT(check_config(config), IsEmpty());
    return translate_config(config.spec).priority;
  };
  EXPECT_EQ(translated(json::object()), sched::PriorityParameters{});
  // Each parameter differs from its default and from all others.
  const auto all = translated({{"priority", json::parse(R"({
      "type": "Multifactor",
      "weights": {"age": 1, "account": 2, "fairShare": 3, "jobSize": 4, "partition": 5, "qos": 6,
                  "cpus": 7, "memory": 8, "nodes": 9, "gpus": 10,
                  "gpusOfType": {"a100": 11}},
      "maxAge": "1h", "favorSmall": true, "fairShare": "Classic", "dampeningFactor": 2,
      "decayHalfLife": "30s", "usageResetPeriod": "Weekly", "calcPeriod": "10s",
      "flags": ["AccrueAlways", "CalculateRunning", "IncreaseOnly", "MaxTRES", "NoNormalAccount",
                "NoNormalPartition", "NoNormalQOS", "NoNormalTRES", "SmallRelativeToTime"]})")}});
  sched::PriorityParameters wanted;
  wanted.type = sched::PriorityType::kMultifactor;
  wanted.weight_age = 1;
  wanted.weight_assoc = 2;
  wanted.weight_fair_share = 3;
  wanted.weight_job_size = 4;
  wanted.weight_partition = 5;
  wanted.weight_qos = 6;
  wanted.weight_tres[Tres::kCpu] = 7;
  wanted.weight_tres[Tres::kMemory] = 8;
  wanted.weight_tres[Tres::kNode] = 9;
  wanted.weight_tres[Tres::kGpu] = 10;
  wanted.weight_tres.of_gpu_type["a100"] = 11;
  wanted.max_age = hours{1};
  wanted.favor_small = true;
  wanted.fair_tree = false;
  wanted.dampening = 2;
  wanted.decay_half_life = seconds{30};
  wanted.usage_reset = sched::UsageReset::kWeekly;
  wanted.calc_period = seconds{10};
  wanted.accrue_always = wanted.calculate_running = wanted.increase_only = true;
  wanted.max_tres = wanted.small_relative_to_time = true;
  wanted.normal_assoc = wanted.normal_partition = wanted.normal_qos = wanted.normal_tres = false;
  EXPECT_EQ(all, wanted);
}

// The API has a word for what is a half-life of 0 in Slurm and in the scheduler: a 0 that was not
// meant would let usage count forever.
TEST(PriorityTranslation, UsageThatNeverDecaysIsAWordAndNotAHalfLifeOfZero) {
  const auto config_with = [](const json& priority) {
    return object_of<kube::SchedulerConfig>("default", {{"priority", priority}});
  };
  const auto never = config_with({{"usageDecay", "Never"}, {"decayHalfLife", "168h"}});
  EXPECT_THAT(check_config(never), IsEmpty());
  EXPECT_EQ(translate_config(never.spec).priority.decay_half_life, base::Duration{0});
  const auto halves = config_with({{"usageDecay", "HalfLife"}, {"decayHalfLife", "2h"}});
  EXPECT_THAT(check_config(halves), IsEmpty());
  EXPECT_EQ(translate_config(halves.spec).priority.decay_half_life, hours{2});
  EXPECT_THAT(
      check_config(config_with({{"decayHalfLife", "0s"}})),
      ElementsAre("spec.priority.decayHalfLife: must be at least 1s; for usage that never decays "
                  "set spec.priority.usageDecay to Never"));
}

// 512 thousandths per GiB are 512,000 millionths per 1,024 MiB. The scheduler bills whole MiB,
// users think in GiB.
TEST(PriorityTranslation, APartitionSaysWhatItCountsAndWhatItBills) {
  const auto object = object_of<kube::Partition>("p", {{"nodes", {{"hostlist", "n1"}}},
                                                       {"priorityJobFactor", 5},
                                                       {"billingWeights",
                                                        {{"milliPerCPU", 1000},
                                                         {"milliPerGiB", 512},
                                                         {"milliPerGPU", 2500},
                                                         {"milliPerGPUOfType", {{"a100", 500}}}}}});
  EXPECT_THAT(check_partition(object), IsEmpty());
  const sched::PartitionConfig partition = translate_partition("p", object.spec, {});
  EXPECT_EQ(partition.priority_job_factor, 5);
  ASSERT_TRUE(partition.billing_weights_micro);
  EXPECT_EQ((*partition.billing_weights_micro)[Tres::kCpu], 1'000'000);
  EXPECT_EQ((*partition.billing_weights_micro)[Tres::kMemory], 500);  // of each MiB
  EXPECT_EQ((*partition.billing_weights_micro)[Tres::kNode], 0);
  EXPECT_EQ((*partition.billing_weights_micro)[Tres::kGpu], 2'500'000);
  EXPECT_THAT(partition.billing_weights_micro->of_gpu_type, ElementsAre(Pair("a100", 500'000)));
}

// 1,000/1,024 millionths are 1, and 5,000/1,024 are 5: no weight vanishes.
TEST(PriorityTranslation, AWeightOfMemoryIsRoundedToTheNearest) {
  // Small weights must not be rounded away: 1 thousandth per GiB is 0.98 millionths per MiB.
  for (const int milli : {0, 1, 5}) {
    const auto object = object_of<kube::Partition>(
        "p", {{"nodes", {{"hostlist", "n1"}}}, {"billingWeights", {{"milliPerGiB", milli}}}});
    const sched::PartitionConfig partition = translate_partition("p", object.spec, {});
    EXPECT_EQ((*partition.billing_weights_micro)[Tres::kMemory], milli);
  }
}

}  // namespace
}  // namespace control
