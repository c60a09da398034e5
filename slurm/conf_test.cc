#include "slurm/conf.h"

#include <gtest/gtest.h>

#include "slurm/conf_actions.h"

namespace slurm {
namespace {

using std::chrono::minutes;
using std::chrono::seconds;

using Keys = std::vector<KeyValue>;

// Returns the message with which these keys of the cluster are refused; "" and a failure if they
// are not.
std::string cluster_refusal(const Keys& keys) {
  const base::Result<sched::ClusterParameters> read = read_cluster_keys(keys);
  EXPECT_FALSE(read.ok()) << keys.front().key;
  return read.ok() ? "" : read.error().message;
}

// One of our fields has a default that differs from that of slurm.conf. A file that leaves a key
// out means Slurm's value and not that of our API.
TEST(ClusterKeys, AbsentOnesHaveSlurmsDefaults) {
  sched::ClusterParameters want;
  want.task_affinity = false;  // TaskPlugin defaults to task/none
  const base::Result<sched::ClusterParameters> read = read_cluster_keys({});
  ASSERT_TRUE(read.ok());
  EXPECT_EQ(*read, want);
}

// Real files have empty words, a second "=" and names of older versions.
TEST(ClusterKeys, ReadsListsAsRealFilesHaveThem) {
  const auto read = read_cluster_keys(Keys{{"SchedulerParameters", "=bf_interval=2,,max_job_bf=9,"},
                                           {"PreemptParameters", ",strict_order,"}});
  ASSERT_TRUE(read.ok()) << read.error().message;
  EXPECT_EQ(read->backfill.interval, seconds{2});
  EXPECT_EQ(read->backfill.max_job_test, 9);
  EXPECT_TRUE(read->preempt.strict_order);
  EXPECT_TRUE(is_foreign_key("DefaultStoragePort"));
}

// Goal: no key is forgotten and none writes another's field. Method: every field differs from its
// default. The throttles of Slurm's threads (batch_sched_delay, bf_yield_sleep) are read and change
// nothing.
TEST(ClusterKeys, ReadsEachKey) {
  const Keys keys = {
      {"selecttype", "select/cons_tres"},
      {"SelectTypeParameters", "CR_CPU_Memory,CR_LLN"},
      {"PreemptType", "preempt/qos"},
      {"PreemptMode", "suspend,gang"},
      {"PreemptParameters", "reorder_count=3,min_exempt_priority=9,reclaim_licenses"},
      {"PreemptExemptTime", "00:00:20"},
      {"SchedulerType", "sched/builtin"},
      // The options that begin with preempt_ are old spellings of PreemptParameters (1.1.1).
      {"SchedulerParameters",
       "sched_interval=3,batch_sched_delay=1,requeue_delay=5,preempt_strict_order,"
       "preempt_youngest_first,default_queue_depth=7,partition_job_depth=2,defer,bf_interval=2,"
       "sched_max_job_start=8,bf_resolution=5,bf_window=10,bf_max_job_test=9,bf_max_job_user=2,"
       "bf_min_age_reserve=30,bf_min_prio_reserve=4,bf_continue,bf_yield_sleep=1,"
       "bf_licenses"},
      {"SchedulerTimeSlice", "7"},
      {"TaskPlugin", "task/affinity,task/cgroup"},
      {"KillWait", "3"},
      {"MessageTimeout", "4"},
      {"JobRequeue", "0"},
      {"DependencyParameters", "kill_invalid_depend"},
      {"MaxBatchRequeue", "2"},
      {"OverTimeLimit", "UNLIMITED"},
      {"EnforcePartLimits", "ALL"},
      {"DefMemPerCPU", "100"},
      {"MaxMemPerNode", "2G"},
      {"PriorityType", "priority/basic"},
  };
  sched::ClusterParameters want;
  want.unit = sched::SelectUnit::kCpu;
  want.least_loaded = true;
  want.preempt_type = sched::PreemptType::kQos;
  want.preempt_mode = sched::PreemptMode::kSuspend;
  want.gang = true;
  want.preempt = {.reorder_count = 3,
                  .strict_order = true,
                  .youngest_first = true,
                  .min_exempt_priority = sched::Priority{9},
                  .reclaim_licenses = true};
  want.preempt_exempt_time = seconds{20};
  want.scheduler = sched::SchedulerType::kBuiltin;
  want.queue = {.default_queue_depth = 7,
                .partition_job_depth = 2,
                .max_job_start = 8,
                .sched_interval = seconds{3},
                .requeue_delay = seconds{5},
                .max_batch_requeue = 2,
                .defer = true};
  want.backfill.interval = seconds{2};
  want.backfill.resolution = seconds{5};
  want.backfill.window = seconds{600};
  want.backfill.max_job_test = 9;
  want.backfill.max_job_user = 2;
  want.backfill.min_age_reserve = seconds{30};
  want.backfill.min_prio_reserve = sched::Priority{4};
  want.backfill.continues = want.backfill.licenses = true;
  want.time_slice = seconds{7};
  want.kill_wait = seconds{3};
  want.message_timeout = seconds{4};
  want.requeue_default = false;
  want.kill_invalid_depend = true;
  want.over_time_limit = std::nullopt;
  want.enforce_part_limits = sched::EnforcePartLimits::kAll;
  want.default_memory.per_cpu = sched::MemoryMiB{100};
  want.max_memory.per_node = sched::MemoryMiB{2'048};
  const base::Result<sched::ClusterParameters> read = read_cluster_keys(keys);
  ASSERT_TRUE(read.ok()) << read.error().message;
  EXPECT_EQ(*read, want);
}

TEST(ClusterKeys, ReadsLimitsOfArrays) {
  const auto read = read_cluster_keys(
      Keys{{"MaxArraySize", "1001"}, {"SchedulerParameters", "bf_max_job_array_resv=11"}});
  ASSERT_TRUE(read.ok()) << read.error().message;
  EXPECT_EQ(read->max_array_size, 1'001);
  EXPECT_EQ(read->backfill.max_job_array_resv, 11);
  EXPECT_FALSE(read_cluster_keys(Keys{{"MaxArraySize", "100002"}}).ok());
}

TEST(ClusterKeys, ReadsLicenses) {
  const auto read = read_cluster_keys(Keys{{"Licenses", "foo:2,bar"}});
  ASSERT_TRUE(read.ok()) << read.error().message;
  EXPECT_EQ(read->licenses, (sched::Licenses{{"bar", 1}, {"foo", 2}}));
}

// select/cons_tres manages memory unless its unit is one without _Memory; its default is
// CR_Core_Memory. Managed by mistake, memory would keep jobs waiting that Slurm starts.
TEST(ClusterKeys, LinearManagesMemoryOnlyWithCrMemory) {
  EXPECT_FALSE(read_cluster_keys(Keys{{"SelectType", "select/linear"}})->memory);
  EXPECT_TRUE(read_cluster_keys(
                  Keys{{"SelectType", "select/linear"}, {"SelectTypeParameters", "CR_Memory"}})
                  ->memory);
  EXPECT_FALSE(read_cluster_keys(Keys{{"SelectTypeParameters", "CR_Core"}})->memory);
}

// Each message names the key, the value and what is allowed. The rule that forbids it stands behind
// the line; the last case is a key that does not exist, with the list of those that do. A mistake
// that is accepted runs a cluster by other rules than its administrator wrote.
TEST(ClusterKeys, RefusesWithASentence) {
  const std::vector<std::pair<Keys, std::string>> cases = {
      // Selectors: one that does not exist; cons_tres with two units or none; linear with any.
      {{{"SelectType", "select/cray"}},
       "SelectType \"select/cray\": unknown; allowed are select/linear, select/cons_tres and "
       "select/cons_res"},
      {{{"SelectTypeParameters", "CR_Core,CR_CPU"}},
       "SelectTypeParameters \"CR_Core,CR_CPU\": say one of CR_CPU, CR_Core and CR_Socket"},
      {{{"SelectTypeParameters", "CR_LLN"}},
       "SelectTypeParameters \"CR_LLN\": select/cons_tres needs one of CR_CPU, CR_Core and "
       "CR_Socket"},
      {{{"SelectType", "select/linear"}, {"SelectTypeParameters", "CR_Core"}},
       "SelectTypeParameters \"CR_Core\": select/linear gives whole nodes; it knows CR_Memory "
       "alone"},
      // Modes of preemption: combinations that contradict themselves, and words that do not exist.
      {{{"PreemptMode", "CANCEL,REQUEUE"}},
       "PreemptMode \"CANCEL,REQUEUE\": say one of OFF, CANCEL, REQUEUE and SUSPEND"},  // C4
      {{{"PreemptMode", "OFF,GANG"}},
       "PreemptMode \"OFF,GANG\": OFF and GANG exclude each other; GANG alone only slices"},
      // C20
      {{{"PreemptMode", "CHECKPOINT"}},
       "PreemptMode \"CHECKPOINT\": CHECKPOINT was removed from Slurm; say CANCEL or REQUEUE"},
      {{{"PreemptMode", "STOP"}},
       "PreemptMode \"STOP\": unknown; allowed are OFF, CANCEL, REQUEUE, SUSPEND, GANG, WITHIN and "
       "PRIORITY"},  // C19
      {{{"PreemptMode", "CANCEL,GANG,WITHIN"}},
       "PreemptMode \"CANCEL,GANG,WITHIN\": GANG excludes WITHIN; leave one out"},  // C5
      {{{"PreemptMode", "SUSPEND,GANG,PRIORITY"}},
       "PreemptMode \"SUSPEND,GANG,PRIORITY\": GANG excludes PRIORITY; leave one out"},  // C5
      {{{"SchedulerTimeSlice", "4"}},
       "SchedulerTimeSlice \"4\": must be from 5 to 65533 seconds"},  // C18
      {{{"DefMemPerCPU", "1"}, {"DefMemPerNode", "1"}},
       "DefMemPerNode: the same limit is given per CPU and per node; say one"},  // C16
      // Slurm has these and kubegang does not. Ignored in silence, they would change which job
      // starts.
      {{{"PriorityFlags", "DEPTH_OBLIVIOUS"}},
       "PriorityFlags DEPTH_OBLIVIOUS: not supported yet; leave it out"},
      {{{"PriorityUsageResetPeriod", "NOW"}},
       "PriorityUsageResetPeriod NOW: is a command, not a period; say NONE"},
      {{{"PriorityWeightTRES", "CPU=10,gres/fpga=5"}},
       "PriorityWeightTRES gres/fpga: not supported yet; leave it out"},
      {{{"TopologyPlugin", "topology/tree"}},
       "TopologyPlugin=topology/tree: not supported yet; leave it out"},
      {{{"Licenses", "foo:x"}}, "Licenses \"x\": not a whole number"},
      {{{"Licenses", "foo|bar"}},
       "Licenses \"foo|bar\": one license or another is not supported; name those it needs"},
      // Values that are out of range or of the wrong kind.
      {{{"SchedulerParameters", "bf_window=0"}},
       "SchedulerParameters bf_window \"0\": must be from 1 to 43200"},
      {{{"JobRequeue", "perhaps"}}, "JobRequeue \"perhaps\": say YES or NO"},
  };
  for (const auto& [keys, want] : cases) EXPECT_EQ(cluster_refusal(keys), want);
  EXPECT_EQ(cluster_refusal({{"SchedulerTimeslices", "5"}})
                .find("key of slurm.conf \"SchedulerTimeslices\": unknown; allowed are SelectType"),
            0U);
}

// As for the cluster: every field differs from its default. UNLIMITED means no limit, ALL no list.
// Values are in each field's own unit: DefaultTime in minutes, memory in MiB, GraceTime in
// seconds.
TEST(PartitionKeys, ReadsEachKey) {
  const Keys keys = {
      {"PartitionName", "low"},
      {"Nodes", "n[1-2]"},
      {"Default", "YES"},
      {"State", "DRAIN"},
      {"PriorityTier", "3"},
      {"PriorityJobFactor", "5"},
      {"OverSubscribe", "FORCE:2"},
      {"ExclusiveUser", "YES"},
      {"PreemptMode", "requeue"},
      {"GraceTime", "10"},
      {"DefMemPerNode", "3000"},
      {"MaxMemPerCPU", "50"},
      {"MinNodes", "1"},
      {"MaxNodes", "2"},
      {"MaxCPUsPerNode", "UNLIMITED"},
      {"DefaultTime", "1"},
      {"MaxTime", "2"},
      {"OverTimeLimit", "3"},
      {"LLN", "yes"},
      {"QOS", "part"},
      {"AllowQos", "a,b"},
      {"DenyQos", "ALL"},
  };
  sched::PartitionConfig want;
  want.name = "low";
  want.nodes = {"n1", "n2"};
  want.is_default = true;
  want.state = sched::PartitionState::kDrain;
  want.priority_tier = 3;
  want.priority_job_factor = 5;
  want.over_subscribe = sched::OverSubscribe::kForce;
  want.max_share = 2;
  want.exclusive_user = true;
  want.preempt_mode = sched::PreemptMode::kRequeue;
  want.grace_time = seconds{10};
  want.default_memory.per_node = sched::MemoryMiB{3'000};
  want.max_memory.per_cpu = sched::MemoryMiB{50};
  want.min_nodes = 1;
  want.max_nodes = 2;
  want.default_time = minutes{1};
  want.max_time = minutes{2};
  want.over_time_limit = minutes{3};
  want.least_loaded = true;
  want.qos = "part";
  want.allow_qos = {{"a", "b"}};
  const base::Result<sched::PartitionConfig> read = read_partition_keys(keys, {});
  ASSERT_TRUE(read.ok()) << read.error().message;
  EXPECT_EQ(*read, want);
}

// Pairs of the policy and the number of jobs on one resource. YES:1 shares with no job, so it must
// come out as NO, or jobs would be offered rows that do not exist. FORCE:1 stays apart from NO,
// because jobs may be stacked on it by preemption.
TEST(PartitionKeys, SharingDefaultsToFourAndYesOfOneIsNo) {  // 1.2.2
  const auto share = [](const char* value) {
    const Keys keys = {{"PartitionName", "p"}, {"OverSubscribe", value}};
    const base::Result<sched::PartitionConfig> read = read_partition_keys(keys, {});
    EXPECT_TRUE(read.ok()) << value;
    return std::pair{read->over_subscribe, read->max_share};
  };
  EXPECT_EQ(share("FORCE"), std::pair(sched::OverSubscribe::kForce, 4));
  EXPECT_EQ(share("FORCE:1"), std::pair(sched::OverSubscribe::kForce, 1));
  EXPECT_EQ(share("YES:3"), std::pair(sched::OverSubscribe::kYes, 3));
  EXPECT_EQ(share("YES:1"), std::pair(sched::OverSubscribe::kNo, 4));
  EXPECT_EQ(share("EXCLUSIVE"), std::pair(sched::OverSubscribe::kExclusive, 4));
}

// Keys are applied in order, as a line's own come behind those of DEFAULT lines. Each pair: for one
// user, for one job. If the first one counted, no partition could take back what its DEFAULT line
// says.
TEST(PartitionKeys, TheLastExclusiveCounts) {
  const auto read = [](std::vector<std::string> values) {
    Keys keys = {{"PartitionName", "p"}};
    for (const std::string& value : values) keys.push_back({"Exclusive", value});
    const base::Result<sched::PartitionConfig> partition = read_partition_keys(keys, {});
    EXPECT_TRUE(partition.ok());
    return std::pair{partition->exclusive_user,
                     partition->over_subscribe == sched::OverSubscribe::kExclusive};
  };
  EXPECT_EQ(read({"USER"}), std::pair(true, false));
  EXPECT_EQ(read({"USER", "NO"}), std::pair(false, false));
  EXPECT_EQ(read({"USER", "NODE"}), std::pair(false, true));
  EXPECT_EQ(read({"NODE", "NO"}), std::pair(false, false));
}

// One wrong key each, beside a name. Two of them are legal for the cluster and wrong for a
// partition only: GANG and WITHIN. A sentence about a hostlist names the partition, since the list
// may stand in any of its lines.
TEST(PartitionKeys, RefusesWithASentence) {
  const std::vector<std::pair<KeyValue, std::string>> cases = {
      {{"OverSubscribe", "FORCE:0"}, "OverSubscribe \"0\": must be from 1 to 65533"},
      {{"OverSubscribe", "NO:2"},
       "OverSubscribe \"NO:2\": only YES and FORCE take a number of jobs"},
      {{"PreemptMode", "suspend,gang"},
       "PreemptMode \"suspend,gang\": GANG is for the whole cluster, not for a "
       "partition"},  // C6
      {{"PreemptMode", "CANCEL,WITHIN"},
       "PreemptMode \"CANCEL,WITHIN\": WITHIN is for the whole cluster or a QOS"},
      {{"Exclusive", "USER,TOPO"},
       "Exclusive \"USER,TOPO\": USER and TOPO exclude each other, and TOPO is not "
       "supported"},  // C15
      {{"Nodes", "n[1"}, "partition p: Nodes: hostlist \"n[1\": no ']' for the '[' at character 2"},
      {{"PriorityTier", "70000"}, "PriorityTier \"70000\": must be from 0 to 65533"},
  };
  for (const auto& [key, want] : cases) {
    const Keys keys = {{"PartitionName", "p"}, key};
    const base::Result<sched::PartitionConfig> read = read_partition_keys(keys, {});
    ASSERT_FALSE(read.ok()) << key.key;
    EXPECT_EQ(read.error().message, want);
  }
}

// Slurm tests a partition's jobs by the cluster's unit though the partition has one of its own.
// Here the cluster's is the only one, and a partition that says otherwise is refused.
TEST(P8, APartitionHasNoUnitOfItsOwn) {
  const Keys keys = {{"PartitionName", "p"}, {"SelectTypeParameters", "CR_Socket"}};
  const base::Result<sched::PartitionConfig> read = read_partition_keys(keys, {});
  ASSERT_FALSE(read.ok());
  EXPECT_NE(read.error().message.find("SelectTypeParameters"), std::string::npos)
      << read.error().message;
}

// 2 × 4 cores of 2 threads are 16 CPUs; 16000 − 1000 MiB are left for jobs. MemSpecLimit is what
// Slurm keeps for its own daemons.
TEST(NodeKeys, MakesOneNodePerName) {
  const Keys keys = {{"NodeName", "n[1-2]"},  {"Sockets", "2"},        {"CoresPerSocket", "4"},
                     {"ThreadsPerCore", "2"}, {"RealMemory", "16000"}, {"MemSpecLimit", "1000"},
                     {"Weight", "5"},         {"Features", "gpu,fast"}};
  const base::Result<std::vector<sched::NodeSpec>> read = read_node_keys(keys);
  ASSERT_TRUE(read.ok()) << read.error().message;
  ASSERT_EQ(read->size(), 2U);
  sched::NodeSpec want;
  want.name = "n2";
  want.sockets = 2;
  want.cores_per_socket = 4;
  want.threads_per_core = 2;
  want.cpus = 16;
  want.memory = sched::MemoryMiB{15'000};
  want.weight = 5;
  want.features = {"gpu", "fast"};
  EXPECT_EQ(read->back(), want);
}

// 1.3. Without Sockets the CPUs say how many there are: six CPUs of one core each. Any other number
// leaves open whether a CPU is a core or a thread, and jobs would be charged by guess.
TEST(NodeKeys, CpusAreCoresOrThreads) {
  const auto read = [](const char* cpus) {
    // One socket of 4 cores with 2 threads each: 4 cores, 8 threads.
    return read_node_keys(Keys{{"NodeName", "n1"},
                               {"Sockets", "1"},
                               {"CoresPerSocket", "4"},
                               {"ThreadsPerCore", "2"},
                               {"CPUs", cpus}});
  };
  EXPECT_EQ(read("4")->front().cpus, 4);
  EXPECT_EQ(read("8")->front().cpus, 8);
  EXPECT_EQ(read("5").error().message, "node n1: CPUs=5 is neither its 4 cores nor its 8 threads");
  EXPECT_EQ(read_node_keys(Keys{{"NodeName", "n1"}, {"CPUs", "6"}})->front().sockets, 6);
}

// Names as sacctmgr takes them; the limits share their readers with accounts. Every field differs
// from its default. A QOS comes from sacctmgr and not from slurm.conf, so its keys have other names
// for the same things.
TEST(QosKeys, ReadsEachKey) {
  const Keys keys = {{"name", "high"},
                     {"Priority", "100"},
                     {"Preempt", "normal,low"},
                     {"PreemptMode", "requeue"},
                     {"PreemptExemptTime", "00:00:20"},
                     {"GraceTime", "5"},
                     {"Flags", "DenyOnLimit,NoReserve"},
                     {"MaxTRESPerUser", "cpu=8"},
                     {"MaxWall", "10"}};
  sched::QosConfig want;
  want.name = "high";
  want.priority = 100;
  want.preempt = {"normal", "low"};
  want.preempt_mode = sched::PreemptMode::kRequeue;
  want.preempt_exempt_time = seconds{20};
  want.grace_time = seconds{5};
  want.deny_on_limit = true;
  want.no_reserve = true;
  want.limits.user_tres[sched::Tres::kCpu] = 8;
  want.limits.job_wall = minutes{10};
  const base::Result<sched::QosConfig> read = read_qos_keys(keys);
  ASSERT_TRUE(read.ok()) << read.error().message;
  EXPECT_EQ(*read, want);
}

// A half-life of 0 means no decay, and a calculation period of "2" is two minutes (1.7). The flags
// that begin with NO_ switch something off, and NO_NORMAL_ALL is four of them.
TEST(ClusterKeys, ReadsPriorities) {
  const base::Result<sched::ClusterParameters> read =
      read_cluster_keys(Keys{{"PriorityType", "priority/multifactor"},
                             {"PriorityWeightFairshare", "1000"},
                             {"PriorityWeightTRES", "CPU=10,Mem=5"},
                             {"PriorityMaxAge", "1-0"},
                             {"PriorityDecayHalfLife", "0"},
                             {"PriorityCalcPeriod", "2"},
                             {"PriorityUsageResetPeriod", "WEEKLY"},
                             {"PriorityFavorSmall", "YES"},
                             {"FairShareDampeningFactor", "3"},
                             {"PriorityFlags", "NO_FAIR_TREE,NO_NORMAL_ALL,ACCRUE_ALWAYS"}});
  ASSERT_TRUE(read.ok()) << read.error().message;
  sched::PriorityParameters want;
  want.type = sched::PriorityType::kMultifactor;
  want.weight_fair_share = 1000;
  want.weight_tres[sched::Tres::kCpu] = 10;
  want.weight_tres[sched::Tres::kMemory] = 5;
  want.max_age = std::chrono::hours{24};
  want.decay_half_life = base::Duration{0};
  want.calc_period = minutes{2};
  want.usage_reset = sched::UsageReset::kWeekly;
  want.favor_small = want.accrue_always = true;
  want.dampening = 3;
  want.fair_tree = false;
  want.normal_assoc = want.normal_partition = want.normal_qos = want.normal_tres = false;
  EXPECT_TRUE(read->priority == want);
}

// mem is in MiB, -1 sets no limit, and MaxWall of a minute and a half rounds up to two (1.7). A
// user whose Fairshare is "parent" has no shares of its own.
TEST(AccountKeys, ReadSharesAndLimits) {
  const base::Result<sched::AccountConfig> account =
      read_account_keys(Keys{{"name", "lab"},
                             {"parent", "university"},
                             {"fairshare", "50"},
                             {"GrpTRES", "cpu=8,mem=2G,node=-1"},
                             {"MaxJobs", "3"},
                             {"MaxWall", "1:30"}});
  ASSERT_TRUE(account.ok()) << account.error().message;
  EXPECT_EQ(account->parent, "university");
  EXPECT_EQ(account->shares.count, 50);
  EXPECT_EQ(account->limits.group_tres[sched::Tres::kCpu], 8);
  EXPECT_EQ(account->limits.group_tres[sched::Tres::kMemory], 2048);
  EXPECT_EQ(account->limits.group_tres[sched::Tres::kNode], std::nullopt);
  EXPECT_EQ(account->limits.user_jobs, 3);
  EXPECT_EQ(account->limits.job_wall, base::Duration{minutes{2}});
  const base::Result<sched::UserConfig> user =
      read_user_keys(Keys{{"name", "ada"}, {"account", "lab"}, {"Fairshare", "parent"}});
  ASSERT_TRUE(user.ok()) << user.error().message;
  EXPECT_TRUE(user->shares.of_parent);
  const auto gpus = read_user_keys(Keys{{"name", "ada"}, {"GrpTRES", "gres/gpu=1"}});
  ASSERT_TRUE(gpus.ok()) << gpus.error().message;
  EXPECT_EQ(gpus->limits.group_tres[sched::Tres::kGpu], 1);
  const auto typed =
      read_user_keys(Keys{{"name", "ada"}, {"GrpTRES", "gres/gpu:a100=2,GRES/gpu:v100=-1"}});
  ASSERT_TRUE(typed.ok()) << typed.error().message;
  EXPECT_EQ(typed->limits.group_tres[sched::Tres::kGpu], std::nullopt);
  EXPECT_THAT(typed->limits.group_tres.of_gpu_type, testing::ElementsAre(testing::Pair("a100", 2)));
  const auto unknown = read_user_keys(Keys{{"name", "ada"}, {"GrpTRES", "gres/fpga=1"}});
  EXPECT_EQ(unknown.error().message, "GrpTRES gres/fpga: not supported yet; leave it out");
}

// n3 overrides the memory of the DEFAULT line and keeps its CPUs. Partition a has no Nodes, which
// means all of them. A line that is continued counts as one, and text behind a # is not a key.
TEST(SlurmConf, ReadsAFileWithDefaultsCommentsAndContinuations) {
  const base::Result<SlurmConf> conf = read_slurm_conf(
      "ClusterName=test  # not ours\n"
      "SelectType=select/linear\n"
      "PreemptMode=GANG\n"
      "NodeName=DEFAULT CPUs=4 RealMemory=8000\n"
      "NodeName=n[1-2]\n"
      "NodeName=n3 \\\n  RealMemory=9000\n"
      "PartitionName=DEFAULT OverSubscribe=FORCE\n"
      "PartitionName=a Default=YES\n"
      "PartitionName=b Nodes=n3 PriorityTier=2\n");
  ASSERT_TRUE(conf.ok()) << conf.error().message;
  EXPECT_TRUE(conf->configuration.cluster.gang);
  ASSERT_EQ(conf->nodes.size(), 3U);
  EXPECT_EQ(conf->nodes[2].memory, sched::MemoryMiB{9'000});
  EXPECT_EQ(conf->nodes[2].cpus, 4);
  ASSERT_EQ(conf->configuration.partitions.size(), 2U);
  EXPECT_EQ(conf->configuration.partitions[0].nodes, (std::vector<std::string>{"n1", "n2", "n3"}));
  EXPECT_EQ(conf->configuration.partitions[1].over_subscribe, sched::OverSubscribe::kForce);
}

// The line after the backslash does not exist. The keys before it must not be lost with it.
TEST(SlurmConf, ABackslashMayEndTheLastLine) {
  const base::Result<SlurmConf> conf = read_slurm_conf("NodeName=n1 \\\nCPUs=4 \\");
  ASSERT_TRUE(conf.ok()) << conf.error().message;
  ASSERT_EQ(conf->nodes.size(), 1U);
  EXPECT_EQ(conf->nodes[0].cpus, 4);
}

// The integer part of -0.5 is 0, which has no sign: read by parts, the weight would become +0.5.
TEST(SlurmConf, AWeightBelowZeroIsRefusedAlsoWithoutAWholePart) {
  EXPECT_EQ(
      read_slurm_conf("NodeName=n1\nPartitionName=p TRESBillingWeights=CPU=-0.5\n").error().message,
      "line 2: TRESBillingWeights \"-0.5\": must not be negative");
}

// Callers know one code for a file that is wrong.
TEST(SlurmConf, AnUnknownKeyIsAWrongInput) {
  for (const char* text : {"NoSuchKey=1\n", "NodeName=n1 NoSuchKey=1\n",
                           "NodeName=n1\nPartitionName=p NoSuchKey=1\n"}) {
    const auto read = read_slurm_conf(text);
    ASSERT_FALSE(read.ok()) << text;
    EXPECT_EQ(read.error().code, base::Code::kInvalidArgument) << read.error().message;
  }
}

// Blank lines count. Include cannot be followed, as the text comes without a directory. Without the
// line a mistake in a file of a thousand lines would have to be searched.
TEST(SlurmConf, NamesTheLine) {
  EXPECT_EQ(read_slurm_conf("\n\nSchedulerTimeSlice=x\n").error().message,
            "line 3: SchedulerTimeSlice \"x\": not a whole number");
  EXPECT_EQ(read_slurm_conf("NodeName=n1\nPartitionName=p State=OPEN\n").error().message,
            "line 2: State \"OPEN\": unknown; allowed are UP, DOWN, DRAIN and INACTIVE");
  EXPECT_EQ(read_slurm_conf("Include other.conf\n").error().message,
            "line 1: include other.conf: is not followed here; write its lines in its place");
}

}  // namespace
}  // namespace slurm
