// import: the operator's own translation accepts the objects, which mean what the files say; keys
// that it cannot translate are reported with their lines.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cli/import/importer.h"
#include "kube/testing/api_server/yaml_json.h"
#include "slurm/conf.h"
#include "translation/config_acceptance.h"

namespace cli {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Pair;
using testing::StartsWith;

// The configuration that the operator makes of the YAML; every object is legal. A field that the
// kind does not have is a failure: the API server would drop it in silence.
struct Applied {
  explicit Applied(const std::string& yaml) {
    const auto documents = devcluster::yaml_documents(yaml);
    EXPECT_TRUE(documents.ok()) << documents.error().message;
    if (!documents.ok()) return;
    for (const std::string& text : *documents) {
      const nlohmann::json object = nlohmann::json::parse(text);
      const std::string kind = object["kind"];
      if (kind == "SchedulerConfig") take(object, configs, control::check_config);
      if (kind == "Partition") take(object, partitions, control::check_partition);
      if (kind == "QOS") take(object, qos, control::check_qos);
      if (kind == "Account") take(object, accounts, control::check_account);
    }
  }
  template <typename T, typename Check>
  void take(const nlohmann::json& source, std::vector<T>& objects, const Check& check) {
    base::Result<T> object = kube::decode<T>(source);
    ASSERT_TRUE(object.ok()) << object.error().message << source;
    EXPECT_THAT(check(*object), IsEmpty()) << source;
    const auto spec_of = [](const nlohmann::json& one) {
      return one.value("spec", nlohmann::json::object());
    };
    EXPECT_EQ(spec_of(kube::encode(*object)), spec_of(source)) << "a field that the kind has not";
    objects.push_back(std::move(*object));
  }
  const kube::Partition* partition(const std::string& name) const {
    for (const kube::Partition& each : partitions) {
      if (each.metadata.name == name) return &each;
    }
    return nullptr;
  }

  std::vector<kube::SchedulerConfig> configs;
  std::vector<kube::Partition> partitions;
  std::vector<kube::Qos> qos;
  std::vector<kube::Account> accounts;
};

// One line for each rule of the translation: what has a counterpart, what has another name or unit,
// what has none, a DEFAULT line, a continued line, names that are not legal here.
constexpr const char* kConf = R"(# a cluster
ClusterName=deep
SlurmctldHost=head
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory,CR_LLN
TaskPlugin=task/affinity
PreemptType=preempt/partition_prio
PreemptMode=SUSPEND,GANG
PreemptExemptTime=00:05:00
SchedulerParameters=bf_interval=60,bf_continue,preempt_youngest_first,default_queue_depth=50
SchedulerTimeSlice=60
KillWait=20
PriorityType=priority/multifactor
PriorityWeightAge=1000
PriorityWeightFairshare=10000
PriorityWeightTRES=CPU=100,Mem=50,GRES/gpu=70
PriorityDecayHalfLife=0
PriorityMaxAge=14-0
PriorityFlags=ACCRUE_ALWAYS,NO_FAIR_TREE,DEPTH_OBLIVIOUS
GresTypes=gpu
NodeName=n[1-4] CPUs=16 RealMemory=64000
NodeName=gpu[1-2] CPUs=16 Gres=gpu:4
PartitionName=DEFAULT DefMemPerCPU=2000 \
  AllowGroups=staff
PartitionName=batch Nodes=n[1-4] Default=YES MaxTime=2-0 DefaultTime=60 OverSubscribe=FORCE:4
PartitionName=Debug_Q Nodes=ALL PriorityTier=10 OverSubscribe=FORCE:1 QOS=high \
  TRESBillingWeights=CPU=1,Mem=0.25G,gres/gpu=2.5 DefCpuPerGPU=4 DefMemPerGPU=2048
PartitionName=none Nodes=
CompleteWait=32
)";

// No file but those that are given.
base::Result<std::string> none(const std::string& path) {
  return base::Error{base::Code::kNotFound, "read " + path + ": No such file or directory"};
}

// Returns one file of this text.
Imported import_text(const std::string& name, const std::string& text) {
  return import_slurm({{name, text}}, none);
}

// A site's files come with passwords in them, and remarks end in logs and bug reports. A password
// may have a blank, or a quote that is not closed.
TEST(Import, NoRemarkRepeatsAPassword) {
  const Imported imported = import_text("slurm.conf",
                                        "ClusterName=c\n"
                                        "StoragePass=hidden1\n"
                                        "storagepass=hidden2 hidden3\n"
                                        "StoragePass=\"hidden4\n"
                                        "JobCompPass=hidden5\n"
                                        "AuthAltParameters=jwt_key=hidden6\n"
                                        "NodeName=n1 CPUs=1 SecretThing=hidden7\n"
                                        "NoSuchKey=shown\n");
  std::string all = imported.yaml;
  for (const std::string& remark : imported.remarks) all += remark + "\n";
  EXPECT_EQ(all.find("hidden"), std::string::npos) << all;
  EXPECT_THAT(all, HasSubstr("slurm.conf:2: StoragePass: kubegang has no such parameter\n"));
  EXPECT_THAT(all, HasSubstr("slurm.conf:3: the text behind storagepass: not key=value\n"));
  EXPECT_THAT(all, HasSubstr("slurm.conf:8: NoSuchKey=shown: kubegang has no such parameter\n"));
}

TEST(Import, TakesLicenses) {
  const Imported imported =
      import_text("slurm.conf",
                  "ClusterName=c\nLicenses=matlab:4,comsol\nSchedulerParameters=bf_licenses\n"
                  "NodeName=n1 CPUs=1\nPartitionName=p Nodes=n1 Default=YES\n");
  const Applied applied{imported.yaml};
  ASSERT_EQ(applied.configs.size(), 1U) << imported.yaml;
  const sched::ClusterParameters c = control::translate_config(applied.configs[0].spec);
  EXPECT_EQ(c.licenses, (sched::Licenses{{"comsol", 1}, {"matlab", 4}}));
  EXPECT_TRUE(c.backfill.licenses);
}

// Compared after the operator's translation: kubegang's scheduler must get what Slurm's
// gets.
TEST(Import, MakesASlurmConfIntoObjectsThatMeanTheSame) {
  const Imported imported = import_text("slurm.conf", kConf);
  const Applied applied{imported.yaml};
  ASSERT_EQ(applied.configs.size(), 1U) << imported.yaml;
  const sched::ClusterParameters c = control::translate_config(applied.configs[0].spec);
  EXPECT_EQ(c.select, sched::SelectType::kConsTres);
  EXPECT_TRUE(c.memory && c.least_loaded && c.task_affinity && c.gang);
  EXPECT_EQ(c.preempt_type, sched::PreemptType::kPartitionPriority);
  EXPECT_EQ(c.preempt_mode, sched::PreemptMode::kSuspend);
  EXPECT_EQ(c.preempt_exempt_time, std::chrono::minutes{5});
  EXPECT_TRUE(c.preempt.youngest_first && c.backfill.continues);
  EXPECT_EQ(c.backfill.interval, std::chrono::seconds{60});
  EXPECT_EQ(c.time_slice, std::chrono::seconds{60});
  EXPECT_EQ(c.kill_wait, std::chrono::seconds{20});
  EXPECT_EQ(c.queue.complete_wait, std::chrono::seconds{32});
  EXPECT_EQ(c.priority.type, sched::PriorityType::kMultifactor);
  EXPECT_EQ(c.priority.weight_fair_share, 10'000U);
  EXPECT_EQ(c.priority.weight_tres[sched::Tres::kMemory], 50);
  EXPECT_EQ(c.priority.weight_tres[sched::Tres::kGpu], 70);
  EXPECT_EQ(c.priority.max_age, std::chrono::hours{14 * 24});
  EXPECT_EQ(c.priority.decay_half_life, base::Duration{0});  // usageDecay: Never
  EXPECT_TRUE(c.priority.accrue_always);
  EXPECT_FALSE(c.priority.fair_tree);

  ASSERT_EQ(applied.partitions.size(), 2U) << imported.yaml;
  ASSERT_NE(applied.partition("batch"), nullptr);
  const sched::PartitionConfig batch =
      control::translate_partition("batch", applied.partition("batch")->spec, {});
  EXPECT_THAT(batch.nodes, ElementsAre("n1", "n2", "n3", "n4"));
  EXPECT_TRUE(batch.is_default);
  // `2-0` is two days and no hours; a bare 60 is minutes.
  EXPECT_EQ(batch.max_time, std::chrono::hours{48});
  EXPECT_EQ(batch.default_time, std::chrono::hours{1});
  EXPECT_EQ(batch.over_subscribe, sched::OverSubscribe::kForce);
  EXPECT_EQ(batch.default_memory.per_cpu, sched::MemoryMiB{2000});
  ASSERT_NE(applied.partition("debug-q"), nullptr);
  EXPECT_EQ(applied.partition("debug-q")->metadata.annotations.at("kubegang.io/slurm-name"),
            "Debug_Q");
  const kube::PartitionSpec& debug = applied.partition("debug-q")->spec;
  // ALL are the nodes of all NodeName lines.
  EXPECT_EQ(debug.nodes.hostlist, "gpu[1-2],n[1-4]");
  EXPECT_EQ(debug.priority_tier, 10);
  EXPECT_EQ(debug.qos, "high");
  // Mem=0.25G is a quarter for each GiB.
  EXPECT_EQ(debug.billing_weights->milli_per_gibibyte, 250);
  EXPECT_EQ(debug.billing_weights->milli_per_gpu, 2500);
  EXPECT_EQ(debug.default_cpus_per_gpu, 4);
  EXPECT_EQ(debug.memory->default_per_gpu, kube::Bytes{std::int64_t{2048} << 20});
  EXPECT_THAT(imported.yaml, StartsWith("# Nodes, by Slurm's names: gpu[1-2],n[1-4]\n"));
}

// Nothing is dropped in silence: each key that is left out has a remark, those that lose most come
// first. Keys that are not about scheduling are counted. For a line that is continued the first one
// is named: an administrator goes through the file with these remarks.
TEST(Import, TellsWhatItCannotTranslateWorstFirst) {
  const Imported imported = import_text("slurm.conf", kConf);
  EXPECT_THAT(
      imported.remarks,
      ElementsAre("slurm.conf:26: QOS=high: no file has this QOS; it is made without limits",
                  "slurm.conf:28: PartitionName=none: is left out: it has no nodes",
                  HasSubstr("slurm.conf:23: AllowGroups=staff: becomes allow.namespaces (staff)"),
                  "slurm.conf:19: PriorityFlags DEPTH_OBLIVIOUS: not supported yet; leave it out",
                  HasSubstr("slurm.conf:10: SchedulerParameters=default_queue_depth=50: after a"),
                  HasSubstr("slurm.conf:22: Gres=gpu:4: the node's GPUs are what its device"),
                  HasSubstr("slurm.conf:26: \"Debug_Q\": is named \"debug-q\" here"),
                  "slurm.conf: 2 parameters are not about scheduling",
                  "slurm.conf: 2 of 3 partitions are imported; 2 left out; 1 about access; 1 "
                  "parameter without effect"));
  EXPECT_TRUE(imported.object_lost && imported.setting_lost);
}

// Words of SchedulerParameters that many sites have, and that say nothing of which job starts when.
// Each has a remark, and none of them is a loss.
TEST(Import, WordsThatSayNothingHereAreNoLoss) {
  const std::string words =
      "assoc_limit_continue,defer,default_queue_depth=256,enable_hetjob_steps,max_script_size=9,"
      "max_switch_wait=300,nohold_on_prolog_fail";
  const Imported imported =
      import_text("s", "SchedulerParameters=" + words + "\nNodeName=n1\nPartitionName=p\n");
  EXPECT_FALSE(imported.setting_lost);
  EXPECT_EQ(imported.remarks.size(), 8U);
  EXPECT_EQ(imported.remarks.front(),
            "s:1: SchedulerParameters=assoc_limit_continue: a job over a limit stops no others "
            "here");
  EXPECT_TRUE(import_text("s", "SchedulerParameters=enable_user_top\nNodeName=n1\n").setting_lost);
}

// A site's own plugins may change every job; one that does nothing loses nothing.
TEST(Import, SaysThatASitesOwnPluginsAreLost) {
  const std::string rest = "\nNodeName=n1\nPartitionName=p\n";
  EXPECT_THAT(import_text("s", "JobSubmitPlugins=lua" + rest).remarks,
              ElementsAre(HasSubstr("s:1: JobSubmitPlugins=lua: the site's own rules for jobs"),
                          "s: 1 of 1 partition is imported; 1 parameter without effect"));
  EXPECT_THAT(
      import_text("s", "PowerAllocatorType=power_allocator/none" + rest).remarks,
      ElementsAre("s: 1 parameter is not about scheduling", "s: 1 of 1 partition is imported"));
}

// Lines of files as people have them, each with the Partition's spec that the operator reads, and
// the only remark besides the summary, if there is one.
struct RealLine {
  const char* conf;
  const char* spec;
  const char* remark = "";
};
TEST(Import, ReadsRealFilesAsSlurmDoes) {
  const std::vector<RealLine> lines = {
      // Blanks around "="; a value that goes on in the next line, without a blank between.
      {"NodeName = n1\nPartitionName = p Nodes = n1 Default= YES\n",
       R"({"nodes":{"hostlist":"n1"},"default":true})"},
      {"NodeName=n[1-2]\nPartitionName=p \\\n  Nodes=\\\nn1,\\  \nn2,\n",
       R"({"nodes":{"hostlist":"n[1-2]"}})"},
      {"NodeName=n1\nPartitionName=p Nodes=n1 TRESBillingWeights=\"CPU=1.0,Mem=1.0G\"\n",
       R"({"nodes":{"hostlist":"n1"},"billingWeights":{"milliPerCPU":1000,"milliPerGiB":1000}})"},
      {"NodeName=n1\nPartitionName=p TRESBillingWeights=Mem=0.1G\n",
       R"({"nodes":{"hostlist":"n1"},"billingWeights":{"milliPerGiB":100}})"},
      // Sets of nodes, by feature and by name; the lines may stand behind those that use them.
      {"PartitionName=p Nodes=big,n4\nNodeSet=big Feature=ib\nNodeName=n[1-2] Feature=a,ib\n"
       "NodeName=n[3-4]\n",
       R"({"nodes":{"hostlist":"n[1-2,4]"}})"},
      {"NodeName=q-[1-2]\nNodeSet=q_all Nodes=q-1,q-2\nPartitionName=p Nodes=q_all\n",
       R"({"nodes":{"hostlist":"q-[1-2]"}})"},
      {"NodeName=n1\nPartitionName=default MaxTime=10\nPartitionName=p MaxNodes=INFINITE\n",
       R"({"nodes":{"hostlist":"n1"},"limits":{"maxTime":"10m"}})"},
      {"SelectType=select/cons_res\nPriorityFlags=FAIR_TREE\nNodeName=n1\nPartitionName=p\n",
       R"({"nodes":{"hostlist":"n1"}})"},
      {"NodeName=n1\nPartitionName=p MaxTime=60 DefaultTime=24:00:00\n",
       R"({"nodes":{"hostlist":"n1"},"limits":{"maxTime":"1h"}})",
       "s:2: DefaultTime: is above MaxTime and is dropped, as Slurm does"},
      {"NodeName=n1\nPartitionName=a Default=YES\nPartitionName=p Default=YES\n",
       R"({"nodes":{"hostlist":"n1"},"default":true})",
       "s:2: Default=YES: a later line makes \"p\" the default, as in Slurm"},
      {"PriorityWeightTRES=Mem=.03\nNodeName=n1\nPartitionName=p\n",
       R"({"nodes":{"hostlist":"n1"}})",
       "s:1: PriorityWeightTRES \".03\": must be a whole number; the fraction adds less than 1 to "
       "a priority"}};
  for (const RealLine& line : lines) {
    const Imported imported = import_text("s", line.conf);
    const Applied applied{imported.yaml};
    ASSERT_NE(applied.partition("p"), nullptr) << line.conf << imported.yaml;
    EXPECT_EQ(kube::encode(*applied.partition("p"))["spec"], nlohmann::json::parse(line.spec))
        << line.conf;
    if (*line.remark == 0) {
      EXPECT_EQ(imported.remarks.size(), 1U) << line.conf << imported.remarks.front();
    } else {
      EXPECT_THAT(imported.remarks, ElementsAre(line.remark, HasSubstr(" imported")));
    }
    EXPECT_FALSE(imported.object_lost) << line.conf;
  }
}

// The default kind of MPI is a variable of the pods of each partition, wherever its line stands.
TEST(Import, MpiDefaultBecomesAVariableOfThePods) {
  const std::string nodes = "NodeName=n1\nPartitionName=p Nodes=n1\nPartitionName=q Nodes=n1\n";
  const Imported imported = import_text("s", nodes + "MpiDefault=pmix\nMpiDefault=pmi2\n");
  const Applied applied{imported.yaml};
  for (const char* name : {"p", "q"}) {
    ASSERT_NE(applied.partition(name), nullptr) << imported.yaml;
    EXPECT_EQ(kube::encode(*applied.partition(name))["spec"]["podDefaults"],
              nlohmann::json::parse(R"({"env":[{"name":"SLURM_MPI_TYPE","value":"pmi2"}]})"));
  }
  EXPECT_FALSE(imported.setting_lost);
  for (const char* kind : {"none", "openmpi"}) {
    const Applied without{import_text("s", nodes + "MpiDefault=" + kind + "\n").yaml};
    EXPECT_FALSE(without.partition("p")->spec.pod_defaults) << kind;
  }
  const Imported wrong = import_text("s", nodes + "MpiDefault=pmi1\n");
  EXPECT_THAT(wrong.remarks, Contains("s:4: MpiDefault=pmi1: must be none, pmi2 or pmix"));
}

// A rule that a Partition cannot have closes it. The last value of a key counts, and so do those of
// a DEFAULT line.
TEST(Import, NeverOpensAPartitionThatWasClosed) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"AllowGroups=ml,Vision_Lab", R"({"allow":{"namespaces":["ml","vision-lab"]}})"},
      {"AllowGroups=ml AllowGroups=ALL", "{}"},
      {"AllowAccounts=phys", R"({"state":"Down"})"},
      {"AllowAccounts=all RootOnly=NO DenyAccounts= ", "{}"},
      {"DenyAccounts=guests", R"({"state":"Down"})"},
      {"AllocNodes=head", R"({"state":"Down"})"},
      {"RootOnly=YES", R"({"state":"Down"})"},
      {"RootOnly=YES State=INACTIVE", R"({"state":"Inactive"})"},
      {"ReqResv=YES State=DRAIN", R"({"state":"Down"})"},
      {"State=CLOSED", R"({"state":"Down"})"}};
  for (const auto& [keys, want] : cases) {
    for (const bool by_default : {false, true}) {
      const Imported imported = import_text(
          "s", "NodeName=n1\nPartitionName=" +
                   (by_default ? "DEFAULT " + keys + "\nPartitionName=p" : "p " + keys) + "\n");
      const Applied applied{imported.yaml};
      ASSERT_NE(applied.partition("p"), nullptr) << keys;
      nlohmann::json spec = kube::encode(*applied.partition("p"))["spec"];
      spec.erase("nodes");
      EXPECT_EQ(spec, nlohmann::json::parse(want)) << keys;
      EXPECT_EQ(imported.setting_lost, want != "{}") << keys;
    }
  }
}

// Nodes that cannot be read must not become all nodes.
TEST(Import, APartitionWhoseNodesCannotBeReadIsLeftOut) {
  const Imported imported = import_text("s", "NodeName=n1\nPartitionName=p Nodes=n[1-\n");
  EXPECT_TRUE(Applied{imported.yaml}.partitions.empty());
  EXPECT_TRUE(imported.object_lost);
  EXPECT_THAT(imported.remarks.front(), StartsWith("s:2: PartitionName=p: is left out: Nodes: "));
}

// Nodes are not kubegang's objects. Their features and weights are labels, and a drained one is
// cordoned: the commands stand above the YAML.
TEST(Import, SaysWhatNodeLinesBecome) {
  const Imported imported = import_text(
      "s",
      "NodeName=DEFAULT Weight=10\n"
      "NodeName=n[01-03,5] Gres=gpu:a100:4 Feature=ib,fast MemSpecLimit=1024 CoreSpecCount=2\n"
      "NodeName=m1 Weight=1 State=DRAIN\nNodeName=c1 Weight=1 State=CLOUD Features=a=b\n"
      "DownNodes=n5 State=DOWN\nPartitionName=p\n");
  EXPECT_THAT(imported.yaml,
              HasSubstr("# kubectl get node n{{01..03},5} -L "
                        "nvidia.com/gpu.product,amd.com/gpu.product-name\n"
                        "# kubectl label node n{{01..03},5} kubegang.io/weight=10 ib= fast=\n"
                        "# kubectl cordon m1 n5\n"));
  EXPECT_THAT(imported.remarks,
              ElementsAre(StartsWith("s:2: CoreSpecCount=2: set kubelet's systemReserved"),
                          StartsWith("s:2: MemSpecLimit=1024: set kubelet's systemReserved"),
                          StartsWith("s:4: Feature=a=b: is not a label of Kubernetes"),
                          StartsWith("s:2: Gres=gpu:a100:4: the node's GPUs"),
                          StartsWith("s:4: State=CLOUD: nodes that come and go"),
                          HasSubstr("1 of 1 partition is imported")));
}

// Kubernetes' name of a device is in no file of Slurm's. Its name and types come over, so that one
// word must be written.
TEST(Import, SaysWhichDevicesNodesHave) {
  const Imported imported = import_text(
      "s",
      "GresTypes=gpu,fpga,nic\nSelectType=select/cons_tres\n"
      "NodeName=n1 Gres=gpu:2,fpga:u250:1,nic:4\nNodeName=n2 Gres=fpga:u280:2,fpga:u250:1\n"
      "NodeName=n3 Gres=none\nNodeName=n4 Gres=gpu:x:y:1\nPartitionName=p Nodes=ALL\n");
  EXPECT_THAT(imported.yaml, HasSubstr("  devices:\n    resources:\n"));
  for (const char* entry :
       {"name: fpga\n        resource: example.com/fpga-u250\n        type: u250\n",
        "name: fpga\n        resource: example.com/fpga-u280\n        type: u280\n",
        "name: nic\n        resource: example.com/nic\n"}) {
    EXPECT_THAT(imported.yaml, HasSubstr(entry));
  }
  EXPECT_THAT(
      imported.remarks,
      testing::IsSupersetOf(
          {StartsWith("s:3: Gres=fpga:u250:1: nodes have fpga under the name of an extended "
                      "resource, for which example.com/fpga-u250 stands"),
           StartsWith("s:3: Gres=gpu:2,fpga:u250:1,nic:4: the node's GPUs are"),
           StartsWith("s:6: Gres \"gpu:x:y:1\": write name[:type][:count]")}));
}

// Relative to the file that includes; else a file of that name that was given; each file once.
// DEFAULT lines hold beyond the files' ends, and remarks name the included file.
TEST(Import, FollowsIncludes) {
  const ReadInclude disk = [](const std::string& path) -> base::Result<std::string> {
    if (path == "etc/parts/a.conf") {
      return std::string{
          "PartitionName=a Nodes=n1\nTopologyPlugin=topology/tree\ninclude ../slurm.conf\n"};
    }
    return none(path);
  };
  const Imported imported = import_slurm(
      {{"etc/slurm.conf",
        "PartitionName=DEFAULT MaxTime=5\ninclude parts/a.conf\nInclude /etc/slurm/nodes.conf\n"
        "Include missing.conf # a comment\n"},
       {"copy/nodes.conf", "NodeName=n1\nPartitionName=b\n"}},
      disk);
  const Applied applied{imported.yaml};
  ASSERT_EQ(applied.partitions.size(), 2U) << imported.yaml;
  for (const kube::Partition& each : applied.partitions) {
    EXPECT_EQ(each.spec.limits->max_time, std::chrono::minutes{5});
  }
  EXPECT_THAT(imported.remarks,
              ElementsAre("etc/slurm.conf:4: include missing.conf: read etc/missing.conf: No such "
                          "file or directory; name the file on the command line, too",
                          HasSubstr("etc/parts/a.conf:2: TopologyPlugin=topology/tree: not "),
                          HasSubstr("2 of 2 partitions are imported; 1 left out")));
  EXPECT_TRUE(imported.object_lost);
}

// Five wrong lines among good ones: an Include that is not there, a hostlist, and three values.
// Everything else must still be imported.
TEST(Import, ALineThatCannotBeReadCostsNoOther) {
  const Imported imported = import_text("s", R"(include other.conf
NodeName=n[1-
NodeName=n[1-2]
KillWait=soon
SchedulerTimeSlice=1
PartitionName=a Nodes=n[1-2] MaxTime=never
)");
  const Applied applied{imported.yaml};
  EXPECT_EQ(applied.partitions.size(), 1U) << imported.yaml;
  EXPECT_EQ(applied.configs.size(), 1U);
  ASSERT_EQ(imported.remarks.size(), 6U);
  for (const char* begin :
       {"s:1: include other.conf: ", "s:2: NodeName: ", "s:4: KillWait \"soon\"",
        "s:5: SchedulerTimeSlice \"1\"", "s:6: MaxTime \"never\""}) {
    EXPECT_THAT(imported.remarks, Contains(StartsWith(begin)));
  }
}

// The operator would refuse the combination. SUSPEND without GANG, for the cluster and for a
// partition. Each is legal as an object by itself.
TEST(Import, LeavesOutWhatTheOperatorWouldRefuse) {
  const Imported imported = import_text("s",
                                        "PreemptMode=SUSPEND\nNodeName=n1\n"
                                        "PartitionName=a Nodes=n1 PreemptMode=SUSPEND\n");
  EXPECT_THAT(imported.remarks, Contains(HasSubstr("is left out: ")));
  // The importer chooses which of the two is left out; together they must be legal.
  const Applied applied{imported.yaml};
  EXPECT_LT(applied.configs.size() + applied.partitions.size(), 2U);
}

// `sacctmgr dump`: accounts below each other, users in several accounts, limits of both.
constexpr const char* kDump = R"(# To edit this file start with a cluster line for the new cluster
Cluster - 'deep':Fairshare=1:QOS='normal':GrpTRES='cpu=1000'
Parent - 'root'
User - 'root':DefaultAccount='root':AdminLevel='Administrator':Fairshare=1
Account - 'physics':Description='physics: all of it':Organization='uni':Fairshare=3:GrpJobs=20
Account - 'chem_lab':Fairshare=parent:GrpTRESMins='cpu=100'
Parent - 'physics'
User - 'ada':DefaultAccount='physics':Fairshare=2:MaxJobs=5:MaxWallDurationPerJob=90
User - 'bob_x':DefaultAccount='chem_lab':Fairshare=1
Account - 'optics':Fairshare=1
Parent - 'chem_lab'
User - 'bob_x':DefaultAccount='chem_lab'
)";

// Four accounts: root for the limits of the cluster, and three below. Users become namespaces of
// the accounts that list them, and DefaultAccount marks one of these.
TEST(Import, MakesADumpOfSacctmgrIntoAccounts) {
  const Imported imported = import_text("qos.cfg", kDump);
  const Applied applied{imported.yaml};
  ASSERT_EQ(applied.accounts.size(), 4U) << imported.yaml;
  EXPECT_EQ(applied.accounts[0].metadata.name, "root");
  EXPECT_EQ(applied.accounts[0].spec.limits->group->resources->cpus, 1000);
  const kube::Account& physics = applied.accounts[1];
  EXPECT_EQ(physics.metadata.name, "physics");
  EXPECT_EQ(physics.spec.shares, 3);
  EXPECT_EQ(physics.spec.limits->group->jobs, 20);
  EXPECT_EQ(physics.spec.parent, std::nullopt);
  ASSERT_EQ(physics.spec.namespaces.size(), 2U);
  const kube::AccountNamespace& ada = physics.spec.namespaces[0];
  EXPECT_EQ(ada.name, "ada");
  EXPECT_EQ(ada.is_default, true);
  EXPECT_EQ(ada.shares, 2);
  EXPECT_EQ(ada.limits->per_namespace->jobs, 5);
  // A bare number of MaxWall is minutes.
  EXPECT_EQ(ada.limits->per_job->time, std::chrono::minutes{90});
  // bob_x is listed here too, and has another default account.
  EXPECT_EQ(physics.spec.namespaces[1].is_default, std::nullopt);
  EXPECT_EQ(applied.accounts[2].metadata.name, "chem-lab");
  EXPECT_EQ(applied.accounts[2].spec.shares_of_parent, true);
  EXPECT_EQ(applied.accounts[2].spec.namespaces.at(0).is_default, true);
  EXPECT_EQ(applied.accounts[3].spec.parent, "physics");
  for (const char* begin : {"qos.cfg:2: QOS=normal: kubegang has no such parameter",
                            "qos.cfg:6: GrpTRESMins=cpu=100: kubegang has no such parameter",
                            "qos.cfg:9: \"bob_x\": is named \"bob-x\" here"}) {
    EXPECT_THAT(imported.remarks, Contains(StartsWith(begin)));
  }
}

// Found by the fuzzer: it ended the program. A YAML object without a name cannot be applied.
// Unbalanced quotes are part of it: files are edited by hand.
TEST(Import, WhatHasNoNameIsLeftOut) {
  for (const char* line : {"Account - '':Fairshare=1\n", "Account - :x':Fairshare=1\n",
                           "User - '':Fairshare=1\n", "QOS - '':Priority=1\n"}) {
    const Imported imported = import_text("s", std::string{"Parent - 'root'\n"} + line);
    EXPECT_EQ(imported.yaml, "") << line;
    EXPECT_THAT(imported.remarks, Contains(StartsWith("s:2: "))) << line;
  }
  EXPECT_THAT(import_text("s", "NodeName=n1\nPartitionName=\"\" Nodes=n1\n").remarks,
              Contains(StartsWith("s:2: is left out: ")));
}

// A SchedulerConfig of Slurm's defaults has gangs off. So a text becomes one only if Slurm knows a
// key of it; a key that kubegang lacks, or one that is not about scheduling, is enough.
TEST(Import, OnlyASlurmConfBecomesASchedulerConfig) {
  for (const char* text : {"hello world\n", "colour=blue\n", "x=1 y=2\n",
                           "      Name   Priority  GraceTime\n---------- ---------- ----------\n"
                           "    normal          0   00:00:00\n"}) {
    const Imported imported = import_text("notes.txt", text);
    EXPECT_EQ(imported.yaml, "") << text;
    EXPECT_THAT(imported.remarks, Contains(StartsWith("notes.txt:1: "))) << text;
  }
  for (const char* text : {"ClusterName=c\n", "SchedulerTimeSlice=10\n", "preempttype=nonsense\n",
                           "NodeName=n1\n", "Foo=1\nDebugFlags=Gang\n"}) {
    EXPECT_EQ(Applied{import_text("slurm.conf", text).yaml}.configs.size(), 1U) << text;
  }
}

// Prose, or a file of another program, may have a key of Slurm's by accident. A remark for each of
// its lines would hide that.
TEST(Import, AFileThatIsMostlyAnotherOneIsSaidToBeIt) {
  std::string text = "DebugFlags=Gang\n";
  for (int i = 0; i < 1'000; ++i) text += i % 2 == 0 ? "colour=blue\n" : "hello world\n";
  const Imported imported = import_text("notes.txt", text);
  EXPECT_EQ(imported.remarks.front(),
            "notes.txt:1: does not look like a slurm.conf: 1000 of 1001 lines have no parameter of "
            "Slurm and are left out");
  EXPECT_LE(imported.remarks.size(), 3U);
  EXPECT_TRUE(imported.object_lost);
  // A slurm.conf with some lines that are not Slurm's says which.
  const Imported real = import_text("slurm.conf", "Foo=1\nNodeName=n1\nBar=2\nhello world\n");
  for (const char* place : {"slurm.conf:1: ", "slurm.conf:3: ", "slurm.conf:4: "}) {
    EXPECT_THAT(real.remarks, Contains(StartsWith(place)));
  }
}

// An escape sequence in a key, a value or a name would be obeyed by the terminal.
TEST(Import, RemarksHaveNoControlCharacters) {
  for (const char* text : {"Fo\033[2Jo=1\n", "PreemptType=\033[2J\n", "PartitionName=p\033[2J\n",
                           "\033[2J\n", "Parent - 'root'\nAcc\033[2J - 'x'\n"}) {
    const Imported imported = import_text("s", text);
    EXPECT_FALSE(imported.remarks.empty()) << text;
    for (const std::string& remark : imported.remarks) {
      EXPECT_EQ(remark.find('\033'), std::string::npos) << remark;
    }
  }
}

// The API server would refuse such a Partition, and with it the file in which it stands. The limits
// are those of the CRD.
TEST(Import, PartitionsWithNodesThatTheApiCannotNameAreLeftOut) {
  std::string many = "n";  // names without numbers cannot be joined to a range
  for (std::size_t length = 2; length < 150; ++length) many += "," + std::string(length, 'n');
  const Imported imported =
      import_text("s", "NodeName=n_[1-2],n3," + many +
                           "\nPartitionName=a Nodes=n_1\nPartitionName=b Nodes=n3\n"
                           "PartitionName=c Nodes=" +
                           many + "\n");
  const Applied applied{imported.yaml};
  ASSERT_EQ(applied.partitions.size(), 1U);
  EXPECT_EQ(applied.partitions[0].metadata.name, "b");
  EXPECT_THAT(imported.remarks,
              Contains("s:2: PartitionName=a: is left out: Nodes: '_' in a name; nodes of "
                       "Kubernetes have letters, digits, '-' and '.' only"));
  EXPECT_THAT(imported.remarks, Contains("s:4: PartitionName=c: is left out: Nodes: longer than "
                                         "8192 characters as a hostlist"));
}

// `sacctmgr -P show qos`. Times and factors have other forms there than in a dump, PreemptMode
// "cluster" means that nothing is set, and a GRES limit is reported. Columns go by their names in
// the first line, since sacctmgr prints those that were asked for.
TEST(Import, MakesATableOfQosIntoQos) {
  const Imported imported = import_text(
      "qos.txt",
      "Name|Priority|GraceTime|Preempt|PreemptExemptTime|PreemptMode|Flags|UsageThres|UsageFactor|"
      "GrpTRES|GrpJobs|GrpWall|MaxTRES|MaxWall|MaxTRESPU|MaxJobsPU|MinTRES\n"
      "normal|0|00:00:00|||cluster|||1.000000||||||||\n"
      "high|100|00:01:00|normal|00:10:00|requeue|DenyOnLimit,NoReserve||0.500000|cpu=64,gres/"
      "gpu=4,gres/gpu:a100=2,gres/fpga=1|7|1-00:00:00|node=4|12:00:00|gres/"
      "gpu=3,mem=100G|3|cpu=2\n");
  const Applied applied{imported.yaml};
  ASSERT_EQ(applied.qos.size(), 2U) << imported.yaml;
  const sched::QosConfig high = control::translate_qos("high", applied.qos[1].spec);
  EXPECT_EQ(high.priority, 100U);
  EXPECT_EQ(high.grace_time, std::chrono::minutes{1});
  EXPECT_THAT(high.preempt, ElementsAre("normal"));
  EXPECT_EQ(high.preempt_mode, sched::PreemptMode::kRequeue);
  EXPECT_TRUE(high.deny_on_limit);
  // A half, in thousandths.
  EXPECT_EQ(high.usage_factor_milli, 500);
  EXPECT_EQ(high.limits.group_tres[sched::Tres::kCpu], 64);
  EXPECT_EQ(high.limits.group_wall, std::chrono::hours{24});
  EXPECT_EQ(high.limits.user_tres[sched::Tres::kMemory], 100 * 1024);
  EXPECT_EQ(high.limits.user_jobs, 3);
  EXPECT_TRUE(high.no_reserve);
  EXPECT_EQ(high.limits.group_tres[sched::Tres::kGpu], 4);
  EXPECT_EQ(high.limits.user_tres[sched::Tres::kGpu], 3);
  EXPECT_THAT(high.limits.group_tres.of_gpu_type, ElementsAre(Pair("a100", 2)));
  EXPECT_THAT(imported.remarks, ElementsAre(StartsWith("qos.txt:3: GrpTRES gres/fpga: ")));
}

// gres.conf says types and names; how many, which files and which cores are not the import's
// matter.
TEST(Import, TakesNamesAndTypesOfGresConf) {
  const Imported imported =
      import_slurm({{"slurm.conf",
                     "SelectType=select/cons_tres\nGresTypes=gpu,fpga,shard\n"
                     "NodeName=n[1-4] Gres=gpu:4,fpga:1\nPartitionName=p Nodes=ALL\n"},
                    {"gres.conf",
                     "# GPUs\nAutoDetect=nvml\nNodeName=n[1-2] Name=gpu Type=a100 "
                     "File=/dev/nvidia[0-3] Cores=0-15\n"
                     "Name=gpu NodeName=n[3-4] File=/dev/nvidia[0-3]\nName=fpga Type=u250 Count=1\n"
                     "Name=shard Count=8\nNodeName=n[ Name=gpu\n"}},
                   none);
  const Applied applied{imported.yaml};
  ASSERT_EQ(applied.configs.size(), 1U) << imported.yaml;
  EXPECT_THAT(applied.configs[0].spec.devices->resources,
              ElementsAre(kube::DeviceResource{
                  .resource = "example.com/fpga-u250", .name = "fpga", .type = "u250"}));
  EXPECT_THAT(imported.yaml, HasSubstr("kubectl get node n{1..2} -L nvidia.com/gpu.product"));
  EXPECT_THAT(imported.remarks,
              testing::IsSupersetOf(
                  {StartsWith("gres.conf:6: Name=shard: jobs get whole GPUs"),
                   StartsWith("gres.conf:7: Name=gpu: NodeName: "),
                   StartsWith("gres.conf:3: Name=gpu Type=a100: if a100 is not a word of"),
                   StartsWith("gres.conf:5: Name=fpga Type=u250: nodes have fpga under"),
                   StartsWith("gres.conf:2: AutoDetect=nvml: the device plugin finds")}));
  EXPECT_THAT(imported.remarks, testing::Not(Contains(StartsWith("gres.conf:4"))));
}

// Both files at once: a partition's QOS is there. Remarks name their file.
TEST(Import, TakesSeveralFiles) {
  const Imported imported = import_slurm({{"slurm.conf", kConf}, {"qos.cfg", kDump}}, none);
  const Applied applied{imported.yaml};
  // Two partitions and four accounts.
  EXPECT_EQ(applied.partitions.size() + applied.accounts.size(), 6U);
  EXPECT_THAT(imported.remarks, Contains(StartsWith("qos.cfg:2: ")));
}

}  // namespace
}  // namespace cli
