// Gangs of gated pods that a PodGroup of the coscheduling plugin names, instead of our own label.
// (What holds for every gang of gated pods: gated_pods_test.cc.)
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "api/wellknown.h"
#include "kube/api/pod_group.h"
#include "operator/gang/pod_pin.h"
#include "operator/testing/world.h"

namespace control {
namespace {

using nlohmann::json;
using std::chrono::minutes;
using std::chrono::seconds;
using ::testing::HasSubstr;
using ::testing::SizeIs;

constexpr const char* kTeam = "team-a";
// The pods of a group are gathered for 5 s, and any verdict has stood for 5 s before it is said.
constexpr seconds kTold{12};

// Goal: pods that a PodGroup names are one gang as soon as it is certain which pods it has.
// minMember only says how many there are at least, so the operator waits until no more come.
class PodGroupsTest : public ::testing::Test {
 protected:
  PodGroupsTest() : PodGroupsTest({.kube_scheduler = true, .pod_groups = true}) {}
  explicit PodGroupsTest(World::Options options) : world_{std::move(options)} {
    json config = linear_config("4s");
    config["spec"]["killWait"] = "2s";
    world_.apply(config);
    world_.apply(partition("batch", force("n[12-16]")));
  }

  // The plugin's CRD is installed.
  void serve() {
    const auto loaded = world_.server().load_crds(KUBEGANG_SOURCE_DIR "/kube/testing/crds");
    ASSERT_TRUE(loaded.ok()) << loaded.error().message;
  }
  void create_group(const std::string& name, std::optional<std::int32_t> min_member) {
    kube::PodGroup group;
    group.metadata.name = name;
    group.metadata.ns = kTeam;
    group.spec.min_member = min_member;
    const auto made = world_.client().create(group);
    ASSERT_TRUE(made.ok()) << made.error().message;
  }
  // With the gate, eight CPUs (a whole node) and 8 s of work.
  void create_pod(const std::string& name, const json& labels, const json& notes = nullptr) {
    json annotations{{"kubegang.io/cpus", "8"}, {"test/work", "8s"}};
    if (notes.is_object()) annotations.merge_patch(notes);
    const json pod{
        {"apiVersion", "v1"},
        {"kind", "Pod"},
        {"metadata",
         {{"name", name}, {"namespace", kTeam}, {"labels", labels}, {"annotations", annotations}}},
        {"spec",
         {{"restartPolicy", "Never"},
          {"schedulingGates", json::array({{{"name", "kubegang.io/gang"}}})},
          {"containers", json::array({{{"name", "main"},
                                       {"image", "busybox"},
                                       {"resources", {{"requests", {{"cpu", "8m"}}}}}}})}}}};
    const auto made = world_.client().create_json<kube::Pod>(kTeam, pod);
    ASSERT_TRUE(made.ok()) << made.error().message;
  }
  // Returns the label of the plugin's present versions.
  static json in_group(const std::string& name) {
    return {{"scheduling.x-k8s.io/pod-group", name}};
  }
  // Pods GROUP-FIRST to GROUP-LAST.
  void create_pods(const std::string& group, int first, int last, const json& notes = nullptr) {
    for (int i = first; i <= last; ++i) {
      create_pod(group + "-" + std::to_string(i), in_group(group), notes);
    }
  }
  // Returns the Jobs that stand for the group.
  std::vector<kube::Job> jobs_of(const std::string& group) {
    std::vector<kube::Job> found;
    const auto list = world_.client().list<kube::Job>();
    for (const kube::Job& job : list.value().items) {
      const auto label = job.metadata.labels.find("scheduling.x-k8s.io/pod-group");
      if (label != job.metadata.labels.end() && label->second == group) found.push_back(job);
    }
    return found;
  }
  std::string state(const std::string& group) {
    const auto jobs = jobs_of(group);
    if (jobs.size() != 1 || !jobs[0].status.state) return "";
    return std::string{kube::to_string(*jobs[0].status.state)};
  }
  // Within a minute of virtual time.
  bool becomes(const std::string& group, const std::string& wanted) {
    return world_.run_until([&] { return state(group) == wanted; }, minutes{1});
  }
  kube::Pod pod(const std::string& name) {
    return world_.client().get<kube::Pod>({kTeam, name}).value();
  }
  // Returns "Reason: message" of the operator's condition on the pod, which users see with kubectl
  // describe.
  std::string note(const std::string& name) {
    const kube::Pod found = pod(name);
    const kube::Condition* note = kube::find_condition(found.status.conditions, kube::kPodWaiting);
    return note == nullptr ? "" : note->reason + ": " + note->message;
  }

  World world_;
};

// The plain case, from the first pod to the end.
TEST_F(PodGroupsTest, AGangRunsWhenMinMemberPodsExist) {
  serve();
  create_group("train", 3);
  create_pods("train", 0, 1);
  world_.run_for(kTold);
  EXPECT_EQ(note("train-0"),
            "WaitingForPods: waits for pods: 2 of at least 3 pods of PodGroup \"train\" exist");
  EXPECT_THAT(jobs_of("train"), SizeIs(0));
  create_pods("train", 2, 2);
  ASSERT_TRUE(becomes("train", "Completed")) << world_.log_tail();
  // All three pods, though the first two were there long before.
  EXPECT_THAT(jobs_of("train")[0].spec.adopted, SizeIs(3));
  EXPECT_EQ(jobs_of("train")[0].status.starts, 1);
  for (const char* name : {"train-0", "train-1", "train-2"}) {
    EXPECT_EQ(pod(name).status.phase, kube::PodPhase::kSucceeded);
    EXPECT_EQ(pod(name).metadata.labels.at("scheduling.x-k8s.io/pod-group"), "train");
    EXPECT_EQ(note(name), "");
  }
  expect_no_violations(world_);
}

// A controller may make the pods first.
TEST_F(PodGroupsTest, WithoutItsPodGroupAGangWaitsAndSaysSo) {
  serve();
  create_pods("train", 0, 1);
  world_.run_for(kTold);
  EXPECT_THAT(note("train-1"),
              HasSubstr("WaitingForPodGroup: waits for PodGroup \"train\", which does not exist"));
  // kube-scheduler must not get it meanwhile.
  EXPECT_TRUE(has_gang_gate(pod("train-1")));
  create_group("train", 2);
  EXPECT_TRUE(becomes("train", "Completed")) << world_.log_tail();
}

// minMember is the least number. The pods come 3 s apart, and none is left out because the first
// two were enough; one that comes when the Job exists is not in its list.
TEST_F(PodGroupsTest, PodsThatComeWithinSecondsBelongToItAndLaterOnesDoNot) {
  serve();
  create_group("train", 2);
  for (int i = 0; i < 4; ++i) {
    create_pods("train", i, i);
    world_.run_for(seconds{3});
  }
  EXPECT_THAT(jobs_of("train"), SizeIs(0)) << "the last one came 3 s ago";
  world_.run_for(seconds{3});
  ASSERT_THAT(jobs_of("train"), SizeIs(1)) << world_.log_tail();
  EXPECT_THAT(jobs_of("train")[0].spec.adopted, SizeIs(4));
  create_pods("train", 4, 4);
  world_.run_for(seconds{6});
  EXPECT_THAT(note("train-4"), HasSubstr("NotInGang: gang \"train\" has all its pods already"));
  EXPECT_TRUE(becomes("train", "Completed")) << world_.log_tail();
  // A pod that came too late waits; its author must decide what it is for.
  EXPECT_TRUE(has_gang_gate(pod("train-4")));
}

// With the exact number there is nothing to gather: the Job is there at once.
TEST_F(PodGroupsTest, TheAnnotationSaysHowManyPodsItHas) {
  serve();
  create_group("exact", 2);
  create_pods("exact", 0, 1, {{"kubegang.io/pods", "3"}});
  world_.run_for(kTold);
  EXPECT_THAT(note("exact-0"), HasSubstr("2 of 3 pods of PodGroup \"exact\" exist"));
  create_pods("exact", 2, 2, {{"kubegang.io/pods", "3"}});
  // Without the 5 s in which pods of a group are gathered.
  world_.run_for(seconds{1});
  ASSERT_THAT(jobs_of("exact"), SizeIs(1));
  EXPECT_THAT(jobs_of("exact")[0].spec.adopted, SizeIs(3));
  create_group("less", 3);
  create_pods("less", 0, 1, {{"kubegang.io/pods", "2"}});
  world_.run_for(kTold);
  EXPECT_EQ(note("less-0"),
            "NotSupported: annotation kubegang.io/pods: \"2\" is less than spec.minMember of "
            "PodGroup \"less\", 3");
}

// 0 is what the plugin's CRD lets pass, and asks for nothing.
TEST_F(PodGroupsTest, WithoutMinMemberOnePodIsEnoughAndAHugeOneIsRefused) {
  serve();
  create_group("none", std::nullopt);
  create_pods("none", 0, 0);
  create_group("zero", 0);
  create_pods("zero", 0, 0);
  create_group("huge", 1025);
  create_pods("huge", 0, 0);
  EXPECT_TRUE(becomes("none", "Completed")) << world_.log_tail();
  EXPECT_TRUE(becomes("zero", "Completed")) << world_.log_tail();
  EXPECT_EQ(note("huge-0"),
            "NotSupported: PodGroup \"huge\": spec.minMember: 1025 is more than the 1024 pods that "
            "a gang may have");
}

// The name is that of a PodGroup of today's API group all the same.
TEST_F(PodGroupsTest, TheLabelOfEarlierVersionsCountsToo) {
  serve();
  create_group("train", 2);
  create_pod("a", {{"pod-group.scheduling.sigs.k8s.io", "train"}});
  create_pod("b", in_group("train"));
  EXPECT_TRUE(becomes("train", "Completed")) << world_.log_tail();
}

// kubegang's label comes first, so pods with both are counted as usual; and there are two gangs of
// one name.
TEST_F(PodGroupsTest, GangsOfOurLabelAreOthers) {
  serve();
  create_group("train", 2);
  create_pods("train", 0, 1);
  json both = in_group("train");
  both["kubegang.io/job-name"] = "train";
  create_pod("ours", both, {{"kubegang.io/pods", "1"}});
  world_.run_for(kTold);
  // One for the group, and one for the gang of our label.
  const auto jobs = world_.client().list<kube::Job>().value().items;
  ASSERT_THAT(jobs, SizeIs(2)) << world_.log_tail();
  ASSERT_THAT(jobs_of("train"), SizeIs(1));
  EXPECT_THAT(jobs_of("train")[0].spec.adopted, SizeIs(2));
  EXPECT_TRUE(becomes("train", "Completed")) << world_.log_tail();
}

// Everything else runs; and a CRD that is installed later is found.
TEST_F(PodGroupsTest, WhereTheApiIsNotServedTheyWait) {
  create_pods("train", 0, 1);
  create_pod("ours", {{"kubegang.io/job-name", "ours"}});
  world_.run_for(seconds{30});
  EXPECT_EQ(pod("ours").status.phase, kube::PodPhase::kSucceeded) << world_.log_tail();
  EXPECT_THAT(note("train-0"), HasSubstr("WaitingForPodGroup"));
  // A kind that is not there is not worth a warning every 30 s.
  EXPECT_THAT(world_.log_tail(), ::testing::Not(HasSubstr("watch failed")));
  serve();
  create_group("train", 2);
  EXPECT_TRUE(becomes("train", "Completed")) << world_.log_tail();
}

// The CRD goes with all its objects, as when the plugin is uninstalled. Gangs that have a Job keep
// it.
TEST_F(PodGroupsTest, AGangThatHasItsJobNeedsNoPodGroup) {
  serve();
  create_group("train", 5);
  // The nodes are busy for 20 s, so the group's Job exists and waits when the CRD goes.
  world_.apply(gang_job("before", 5, "20s"));
  world_.run_for(seconds{2});
  create_pods("train", 0, 4);
  ASSERT_TRUE(world_.run_until([&] { return jobs_of("train").size() == 1; }, seconds{30}));
  const std::string name = jobs_of("train")[0].metadata.name;
  const auto gone = world_.client().call_json(
      kube::Method::kDelete,
      "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/podgroups.scheduling.x-k8s.io");
  ASSERT_TRUE(gone.ok()) << gone.error().message;
  create_pods("late", 0, 0);
  world_.run_for(kTold);
  EXPECT_THAT(note("late-0"), HasSubstr("WaitingForPodGroup"));
  // A new leader, which never saw the PodGroup.
  world_.restart_operator();
  ASSERT_TRUE(becomes("train", "Completed")) << world_.log_tail();
  EXPECT_EQ(jobs_of("train")[0].metadata.name, name);
}

// A deleted pod breaks the gang that waits; those that are left are enough for another one, and a
// replacement that comes within seconds is of it.
TEST_F(PodGroupsTest, AReplacementJoinsTheNextGang) {
  serve();
  create_group("train", 2);
  world_.apply(partition("alone", {{"nodes", {{"hostlist", "n[12-16]"}}},
                                   {"overSubscribe", {{"policy", "Exclusive"}}}}));
  world_.apply(gang_job("before", 5, "", {{"partitions", json::array({"alone"})}}));
  world_.run_for(seconds{5});
  const json notes{{"kubegang.io/partition", "alone"}};
  create_pods("train", 0, 2, notes);
  ASSERT_TRUE(becomes("train", "Pending")) << world_.log_tail();
  const std::string first = jobs_of("train")[0].metadata.name;
  // A pod of the gang that waits: the Job in which it is listed can no longer be carried out.
  ASSERT_TRUE(world_.client().remove<kube::Pod>({kTeam, "train-1"}).ok());
  world_.run_for(seconds{2});
  create_pods("train", 3, 3, notes);
  world_.run_for(kTold);
  ASSERT_THAT(jobs_of("train"), SizeIs(1)) << world_.log_tail();
  EXPECT_NE(jobs_of("train")[0].metadata.name, first);
  EXPECT_THAT(jobs_of("train")[0].spec.adopted, SizeIs(3));
  world_.remove_job("before");
  EXPECT_TRUE(becomes("train", "Completed")) << world_.log_tail();
}

// The operator's flag --adopt-pod-groups is off, as by default.
class PodGroupsSwitchedOffTest : public PodGroupsTest {
 protected:
  PodGroupsSwitchedOffTest() : PodGroupsTest{{.kube_scheduler = true}} {}
};

TEST_F(PodGroupsSwitchedOffTest, TheirPodsNameNoGang) {
  serve();
  create_group("train", 1);
  create_pods("train", 0, 0);
  world_.run_for(kTold);
  EXPECT_EQ(note("train-0"),
            "NotInGang: the scheduling gate kubegang.io/gang is there, but no label "
            "kubegang.io/job-name that names the pod's gang");
  EXPECT_THAT(jobs_of("train"), SizeIs(0));
}

// Whatever the operator was about to write when it crashed: each group has one Job, which starts
// once.
TEST(PodGroupsCrashes, AtAnyWriteChangeNothing) {
  // A fixture that is made once for each seed.
  struct Rounds : PodGroupsTest {
    explicit Rounds(std::uint64_t seed)
        : PodGroupsTest{{.seed = seed,
                         .crash_per_mille = 80,
                         .kube_scheduler = true,
                         .pod_groups = true}} {}
    using PodGroupsTest::becomes;
    using PodGroupsTest::create_group;
    using PodGroupsTest::create_pods;
    using PodGroupsTest::jobs_of;
    using PodGroupsTest::serve;
    using PodGroupsTest::world_;
    void TestBody() override {}
  };
  int crashes = 0;
  for (std::uint64_t seed = 1; seed <= 3; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Rounds round{seed};
    round.serve();
    round.create_group("good", 3);
    round.create_group("wide", 5);
    // Four pods for a minMember of three.
    round.create_pods("good", 0, 3);
    round.create_pods("wide", 0, 4);
    round.world_.run_for(seconds{60});
    crashes += round.world_.crashes();
    // Then it may come to rest.
    round.world_.set_crash_per_mille(0);
    for (const char* group : {"good", "wide"}) {
      EXPECT_TRUE(round.becomes(group, "Completed")) << round.world_.log_tail();
      ASSERT_THAT(round.jobs_of(group), SizeIs(1));
      EXPECT_EQ(round.jobs_of(group)[0].status.starts, 1) << group;
    }
    expect_no_violations(round.world_);
  }
  // Without a crash nothing would have been shown.
  EXPECT_GT(crashes, 0);
}

}  // namespace
}  // namespace control
