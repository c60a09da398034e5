// Pods that others have made, behind the scheduling gate kubegang.io/gang: grouped, placed, pinned,
// bound by kube-scheduler, and in turns with other gangs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "api/wellknown.h"
#include "operator/gang/pod_pin.h"
#include "operator/testing/world.h"

namespace control {
namespace {

using nlohmann::json;
using std::chrono::minutes;
using std::chrono::seconds;
using ::testing::HasSubstr;
using ::testing::SizeIs;

constexpr const char* kGangNamespace = "team-a";

// As its author writes it. `notes`: annotations.
json gated_pod(const std::string& name, const std::string& gang, int pods, const std::string& work,
               const json& notes = nullptr, const json& spec = nullptr) {
  json annotations{{"kubegang.io/pods", std::to_string(pods)}, {"kubegang.io/cpus", "8"}};
  if (!work.empty()) annotations["test/work"] = work;
  if (notes.is_object()) annotations.merge_patch(notes);
  json pod{{"apiVersion", "v1"},
           {"kind", "Pod"},
           {"metadata",
            {{"name", name},
             {"namespace", kGangNamespace},
             {"labels", {{"kubegang.io/job-name", gang}, {"app", "theirs"}}},
             {"annotations", annotations}}},
           {"spec",
            {{"restartPolicy", "Never"},
             {"schedulerName", "default-scheduler"},
             {"schedulingGates", json::array({{{"name", "kubegang.io/gang"}}})},
             {"tolerations", json::array({{{"key", "theirs"}, {"operator", "Exists"}}})},
             {"containers", json::array({{{"name", "main"},
                                          {"image", "busybox"},
                                          {"command", json::array({"mpirun", "./a.out"})},
                                          {"resources", {{"requests", {{"cpu", "8m"}}}}}}})}}}};
  if (spec.is_object()) pod["spec"].merge_patch(spec);
  return pod;
}

// Goal: pods that others make behind our scheduling gate run as a gang, and their owner keeps every
// say over them. Method: pods are created one by one, as a controller of another project would; a
// model of kube-scheduler binds pods that are pinned to a node. The Job that the operator makes for
// a gang is read to see what became of it.
class GatedPodsTest : public ::testing::Test {
 protected:
  GatedPodsTest() : world_{{.kube_scheduler = true}} { furnish(world_); }

  // Five nodes of 8 CPUs, slices of 4 s; killWait is short, so that endings do not take minutes.
  static void furnish(World& world) {
    json config = linear_config("4s");
    config["spec"]["killWait"] = "2s";
    world.apply(config);
    world.apply(partition("batch", force("n[12-16]")));
  }
  // As their controller creates them.
  static void create(World& world, const json& pod) {
    const auto made = world.client().create_json<kube::Pod>(kGangNamespace, pod);
    ASSERT_TRUE(made.ok()) << made.error().message;
  }
  static void create_gang(World& world, const std::string& gang, int pods, const std::string& work,
                          const json& notes = nullptr) {
    for (int i = 0; i < pods; ++i) {
      create(world, gated_pod(gang + "-" + std::to_string(i), gang, pods, work, notes));
    }
  }
  void create(const json& pod) { create(world_, pod); }
  void create_gang(const std::string& gang, int pods, const std::string& work,
                   const json& notes = nullptr) {
    create_gang(world_, gang, pods, work, notes);
  }
  // Returns the Jobs that the operator has made for gangs, and others.
  static std::vector<kube::Job> jobs(World& world) {
    auto list = world.client().list<kube::Job>();
    return list.ok() ? std::move(list->items) : std::vector<kube::Job>{};
  }
  // Returns the only Job that stands for the gang.
  static kube::Job job_of(World& world, const std::string& gang) {
    std::vector<kube::Job> found;
    for (kube::Job& job : jobs(world)) {
      if (job.metadata.labels["kubegang.io/job-name"] == gang) found.push_back(std::move(job));
    }
    EXPECT_LE(found.size(), 1U) << gang;
    return found.empty() ? kube::Job{} : found.front();
  }
  // Returns "" without a Job.
  static std::string state(World& world, const std::string& gang) {
    const kube::Job job = job_of(world, gang);
    return job.status.state ? std::string{kube::to_string(*job.status.state)} : "";
  }
  std::string state(const std::string& gang) { return state(world_, gang); }
  bool becomes(const std::string& gang, const std::string& wanted, base::Duration limit) {
    return world_.run_until([&] { return state(gang) == wanted; }, limit);
  }
  // All pods of the gang have settled.
  bool is_ready(const std::string& gang) {
    return kube::is_true(job_of(world_, gang).status.conditions, kube::kReady);
  }
  kube::Pod pod(const std::string& name) {
    const auto found = world_.client().get<kube::Pod>({kGangNamespace, name});
    EXPECT_TRUE(found.ok()) << name;
    return found.ok() ? *found : kube::Pod{};
  }
  // Returns what the operator says on the pod, "" if nothing.
  std::string note(const std::string& name) {
    const kube::Pod found = pod(name);
    const kube::Condition* note = kube::find_condition(found.status.conditions, kube::kPodWaiting);
    return note == nullptr ? "" : note->reason + ": " + note->message;
  }
  // As its author deletes it.
  void remove(const std::string& name) {
    EXPECT_TRUE(world_.client().remove<kube::Pod>({kGangNamespace, name}).ok());
  }
  inline static const json kAlone{{"kubegang.io/partition", "alone"}};
  // The nodes of that partition are taken until the Job "before" goes.
  void wait_behind_another() {
    world_.apply(partition("alone", {{"nodes", {{"hostlist", "n[12-16]"}}},
                                     {"overSubscribe", {{"policy", "Exclusive"}}}}));
    world_.apply(gang_job("before", 5, "", {{"partitions", json::array({"alone"})}}));
    world_.run_for(seconds{5});
  }
  // The name of the Job has a hash in it, so it is looked up.
  void patch_job_of(const std::string& gang, const json& spec) {
    world_.patch_job(job_of(world_, gang).metadata.name, spec);
  }

  World world_;
};

// The author's own fields stay (the label app, the toleration); added are our label, our toleration
// and the node.
TEST_F(GatedPodsTest, AGangRunsAndEndsWithItsPods) {
  create_gang("train", 3, "20s", {{"kubegang.io/time-limit", "5m"}});
  ASSERT_TRUE(becomes("train", "Completed", minutes{2})) << world_.log_tail();
  const kube::Job job = job_of(world_, "train");
  EXPECT_EQ(job.status.partition, "batch");
  EXPECT_EQ(job.status.starts, 1);
  EXPECT_EQ(job.spec.schedule.time_limit, minutes{5});
  ASSERT_TRUE(job.status.run_time.has_value());
  EXPECT_GE(job.status.run_time->elapsed, seconds{15});
  for (const char* name : {"train-0", "train-1", "train-2"}) {
    const kube::Pod done = pod(name);
    EXPECT_EQ(done.status.phase, kube::PodPhase::kSucceeded);
    EXPECT_EQ(done.spec.node_name, node_of(done));
    EXPECT_EQ(done.metadata.labels.at("app"), "theirs");
    EXPECT_EQ(done.metadata.labels.at("kubegang.io/job"), job.metadata.name);
    EXPECT_THAT(done.spec.tolerations, SizeIs(2));
    EXPECT_EQ(note(name), "");
  }
  expect_no_violations(world_);
}

// Without the annotation kubegang.io/pods a gang has one pod.
TEST_F(GatedPodsTest, APodByItselfIsAGangOfOne) {
  create(gated_pod("lone", "lone", 1, "5s", {{"kubegang.io/pods", nullptr}}));
  EXPECT_TRUE(becomes("lone", "Completed", minutes{1})) << world_.log_tail();
}

// Both have 30 s of work on the same five nodes. In turns they end within some slices of each
// other; one after the other they would end 30 s apart.
TEST_F(GatedPodsTest, TakesTurnsWithAGangOfOurs) {
  world_.apply(gang_job("ours", 5, "30s"));
  create_gang("train", 5, "30s");
  ASSERT_TRUE(becomes("train", "Completed", minutes{3})) << world_.log_tail();
  ASSERT_TRUE(world_.run_until([&] { return world_.state("ours") == "Completed"; }, minutes{1}));
  const auto end = [&](const kube::Job& job) { return job.status.end_time.value(); };
  const auto apart = end(job_of(world_, "train")) - end(world_.job("ours"));
  EXPECT_LT(std::chrono::abs(apart), seconds{15}) << "they ran side by side";
  expect_no_violations(world_);
}

// 10 s are longer than the 5 s for which the pods of a gang are gathered before anything is said.
TEST_F(GatedPodsTest, AnIncompleteGangSaysWhatItWaitsFor) {
  create(gated_pod("train-0", "train", 2, "5s"));
  world_.run_for(seconds{10});
  EXPECT_THAT(note("train-0"), HasSubstr("WaitingForPods: waits for pods: 1 of 2"));
  EXPECT_THAT(jobs(world_), SizeIs(0));
  create(gated_pod("train-1", "train", 2, "5s"));
  ASSERT_TRUE(becomes("train", "Completed", minutes{1})) << world_.log_tail();
  world_.run_for(seconds{15});
  EXPECT_EQ(note("train-0"), "");
}

// The annotation decides which CPUs an agent binds a pod to. An author who could write it would
// choose the CPUs of other jobs.
TEST_F(GatedPodsTest, GetTheCpuSetsOfTheirCoresInsteadOfTheirAuthors) {
  json config = linear_config("4s");
  config["spec"]["select"] = {{"type", "ConsTres"}};
  world_.apply(config);
  for (int i = 0; i < 5; ++i) {  // half a node each
    // The pod's CPUs are annotated, its requests follow (1m per CPU), and the author names a CPU
    // set without the right to.
    json half = gated_pod(
        "train-" + std::to_string(i), "train", 5, "",
        {{"kubegang.io/cpus", "4"}, {"kubegang.io/nodes", "5"}, {"kubegang.io/cpuset", "0-7"}});
    half["spec"]["containers"][0]["resources"]["requests"]["cpu"] = "4m";
    create(half);
  }
  ASSERT_TRUE(world_.run_until([&] { return is_ready("train"); }, minutes{1})) << world_.log_tail();
  for (int i = 0; i < 5; ++i) {
    EXPECT_EQ(pod("train-" + std::to_string(i)).metadata.annotations["kubegang.io/cpuset"], "0-3");
  }
  expect_no_violations(world_);
}

// Linear selection gives whole nodes and binds nothing: no CPU set is right.
TEST_F(GatedPodsTest, AnAuthorsCpuSetIsRemovedWhereCoresAreNotBound) {
  create_gang("train", 2, "5s", {{"kubegang.io/cpuset", "0-7"}});
  ASSERT_TRUE(becomes("train", "Completed", minutes{1})) << world_.log_tail();
  EXPECT_FALSE(pod("train-0").metadata.annotations.contains("kubegang.io/cpuset"));
}

// Once the gang has a Job its pods say nothing: the Job's status tells why it waits.
TEST_F(GatedPodsTest, WaitsInTheQueueForNodes) {
  wait_behind_another();
  create_gang("train", 5, "5s", kAlone);
  world_.run_for(minutes{2});
  EXPECT_EQ(state("train"), "Pending");
  EXPECT_EQ(job_of(world_, "train").status.reason, "Resources");
  EXPECT_TRUE(has_gang_gate(pod("train-0")));
  EXPECT_EQ(note("train-0"), "");
  world_.remove_job("before");
  EXPECT_TRUE(becomes("train", "Completed", minutes{1})) << world_.log_tail();
}

// Each pod or gang is wrong in one way: requests too large for gangs that take turns, a template
// that no job may have, no label, one pod too many, and annotations that contradict each other.
TEST_F(GatedPodsTest, WhatCannotBeRunSaysSoAndStaysAsItIs) {
  create(gated_pod("greedy", "greedy", 1, "5s", {{"kubegang.io/cpus", "4"}}));
  create(gated_pod("probed", "probed", 1, "5s", nullptr, {{"restartPolicy", "OnFailure"}}));
  json nameless = gated_pod("nameless", "x", 1, "5s");
  nameless["metadata"]["labels"].erase("kubegang.io/job-name");
  create(nameless);
  create(gated_pod("many-0", "many", 1, ""));
  world_.run_for(seconds{1});
  create(gated_pod("many-1", "many", 1, "5s"));
  create(gated_pod("odd-0", "odd", 2, "5s"));
  create(gated_pod("odd-1", "odd", 2, "5s", {{"kubegang.io/partition", "batch"}}));
  world_.run_for(seconds{10});
  EXPECT_THAT(note("greedy"), HasSubstr("NotSupported: pod greedy: spec.containers: the CPU "
                                        "requests are 8m"));
  EXPECT_THAT(note("probed"), HasSubstr("spec.restartPolicy"));
  create(gated_pod("two-0", "two", 1, "5s"));
  create(gated_pod("two-1", "two", 1, "5s"));
  world_.run_for(seconds{10});
  EXPECT_THAT(note("two-0"), HasSubstr("2 pods name gang \"two\", which has 1"));
  EXPECT_THAT(note("nameless"), HasSubstr("NotInGang"));
  EXPECT_THAT(note("odd-1"), HasSubstr("say different things"));
  EXPECT_THAT(jobs(world_), SizeIs(1)) << "many-0 was first";
  EXPECT_THAT(note("many-1"), HasSubstr("NotInGang: gang \"many\" has all its pods already"));
  for (const char* name : {"greedy", "probed", "nameless", "many-1", "odd-0", "odd-1"}) {
    EXPECT_TRUE(has_gang_gate(pod(name))) << name;
  }
}

// A pin and the removal of our gate are one write; with a second gate the pod would stay
// unscheduled while its job already had its nodes.
TEST_F(GatedPodsTest, OtherGatesComeFirst) {
  const json both = json::array({{{"name", "example.com/quota"}}, {{"name", "kubegang.io/gang"}}});
  create(gated_pod("late", "late", 1, "5s", nullptr, {{"schedulingGates", both}}));
  world_.run_for(seconds{10});
  EXPECT_THAT(jobs(world_), SizeIs(0));
  const json ours = json::array({{{"name", "kubegang.io/gang"}}});
  EXPECT_TRUE(
      world_.client()
          .patch<kube::Pod>({kGangNamespace, "late"}, {{"spec", {{"schedulingGates", ours}}}})
          .ok());
  EXPECT_TRUE(becomes("late", "Completed", minutes{1})) << world_.log_tail();
}

// spec.adopted names pods by UID, so the old Job cannot take the replacement: it is deleted, and
// the new gang gets a Job of another name.
TEST_F(GatedPodsTest, AMemberThatIsReplacedWhileTheGangWaits) {
  wait_behind_another();
  create_gang("train", 2, "5s", kAlone);
  ASSERT_TRUE(becomes("train", "Pending", seconds{10}));
  const std::string first = job_of(world_, "train").metadata.name;
  remove("train-1");
  world_.run_for(seconds{15});
  EXPECT_EQ(job_of(world_, "train").metadata.name, "") << world_.log_tail();
  EXPECT_THAT(note("train-0"), HasSubstr("WaitingForPods"));
  create(gated_pod("train-1", "train", 2, "5s", kAlone));
  ASSERT_TRUE(becomes("train", "Pending", seconds{10}));
  EXPECT_NE(job_of(world_, "train").metadata.name, first);
  world_.remove_job("before");
  EXPECT_TRUE(becomes("train", "Completed", minutes{1})) << world_.log_tail();
}

// A Job's author may write its labels.
TEST_F(GatedPodsTest, AJobThatIsGivenToAnotherGangHarmsNothing) {
  wait_behind_another();
  create_gang("train", 2, "5s", kAlone);
  ASSERT_TRUE(becomes("train", "Pending", seconds{10}));
  const std::string name = job_of(world_, "train").metadata.name;
  ASSERT_TRUE(
      world_.client()
          .patch<kube::Job>({kGangNamespace, name},
                            {{"metadata", {{"labels", {{"kubegang.io/job-name", "other"}}}}}})
          .ok());
  world_.run_for(seconds{20});
  EXPECT_THAT(jobs(world_), SizeIs(2)) << "a whole gang has a Job" << world_.log_tail();
  world_.remove_job("before");
  EXPECT_TRUE(becomes("train", "Completed", minutes{1})) << world_.log_tail();
}

// For gated pods their owner decides what the loss of one means. A new leader must
// not take the hole for a pod that is still to be pinned.
TEST_F(GatedPodsTest, AMemberThatIsDeletedDoesNotEndTheGang) {
  create_gang("train", 3, "20s");
  ASSERT_TRUE(world_.run_until([&] { return is_ready("train"); }, minutes{1}));
  remove("train-1");
  world_.run_for(seconds{5});
  EXPECT_EQ(state("train"), "Running") << world_.log_tail();
  world_.restart_operator();
  EXPECT_TRUE(becomes("train", "Completed", minutes{1})) << world_.log_tail();
  EXPECT_EQ(pod("train-0").status.phase, kube::PodPhase::kSucceeded);
}

// As an MPIJob ends: its launcher is done, and its workers are deleted. SIGTERM makes them fail.
TEST_F(GatedPodsTest, MembersThatAreDeletedWhenTheFirstHasSucceededAreNoFailure) {
  create(gated_pod("launcher", "mpi", 3, "5s"));
  create(gated_pod("worker-0", "mpi", 3, ""));
  create(gated_pod("worker-1", "mpi", 3, ""));
  ASSERT_TRUE(world_.run_until(
      [&] { return pod("launcher").status.phase == kube::PodPhase::kSucceeded; }, minutes{1}));
  remove("worker-0");
  remove("worker-1");
  ASSERT_TRUE(becomes("mpi", "Completed", minutes{1})) << world_.log_tail();
  EXPECT_EQ(job_of(world_, "mpi").status.exit_code, 0);
}

// A kubegang Job would be requeued as a whole. For gated pods only their owner knows what the loss
// of one means.
TEST_F(GatedPodsTest, TheLossOfANodeDoesNotEndTheOthers) {
  create_gang("train", 2, "60s");
  ASSERT_TRUE(world_.run_until([&] { return is_ready("train"); }, minutes{1}));
  const std::string node = *pod("train-0").spec.node_name;
  world_.node(node).power_off();
  ASSERT_TRUE(world_.client().remove<kube::Node>({"", node}).ok());
  world_.run_for(seconds{10});
  EXPECT_EQ(state("train"), "Running") << world_.log_tail();
  EXPECT_TRUE(becomes("train", "Completed", minutes{5})) << world_.log_tail();
  EXPECT_EQ(pod("train-1").status.phase, kube::PodPhase::kSucceeded);
}

// The pods are pinned, but kube-scheduler binds none of them.
TEST_F(GatedPodsTest, AGangThatIsNotBoundFailsAndHoldsItsNodesUntilItsPodsAreDeleted) {
  World world{{}};
  furnish(world);
  create_gang(world, "train", 2, "5s");
  world.run_for(seconds{10});
  for (const char* name : {"train-0", "train-1"}) {
    const json no_room{{"type", "PodScheduled"},
                       {"status", "False"},
                       {"reason", "Unschedulable"},
                       {"message", "a port is taken"}};
    ASSERT_TRUE(world.client()
                    .patch_status<kube::Pod>({kGangNamespace, name},
                                             {{"status", {{"conditions", json::array({no_room})}}}})
                    .ok());
  }
  world.run_for(seconds{65});
  const kube::Job job = job_of(world, "train");
  // After 60 s the launch counts as failed. The pods cannot be ended by kubelet, which has never
  // heard of them, and the operator does not delete them: the nodes stay taken until they are
  // gone.
  EXPECT_TRUE(job.status.allocation.has_value()) << world.log_tail();
  ASSERT_TRUE(job.status.ending.has_value()) << world.log_tail();
  EXPECT_THAT(job.status.message, HasSubstr("a port is taken"));
  EXPECT_TRUE(world.client().remove<kube::Pod>({kGangNamespace, "train-0"}).ok());
  world.run_for(seconds{5});
  EXPECT_TRUE(job_of(world, "train").status.allocation.has_value()) << "train-1 is left";
  EXPECT_TRUE(world.client().remove<kube::Pod>({kGangNamespace, "train-1"}).ok());
  world.run_for(seconds{20});
  EXPECT_THAT(jobs(world), SizeIs(0)) << world.log_tail();
}

// As when a webhook of their namespace refuses each change. The start is undone before a pod has
// lost its gate; the next one is a minute later, and until then other gangs have the nodes.
TEST_F(GatedPodsTest, AGangWhosePodsMayNotBePinnedGivesItsNodesBackAndIsTriedAgain) {
  world_.server().inject({.verb = "patch", .resource = "pods", .code = 403, .count = 10'000});
  create_gang("train", 2, "5s");
  world_.run_for(seconds{20});
  EXPECT_EQ(state("train"), "Pending") << world_.log_tail();
  const kube::Job job = job_of(world_, "train");
  EXPECT_EQ(job.status.reason, "BeginTime");
  EXPECT_THAT(job.status.message, HasSubstr("injected failure"));
  EXPECT_TRUE(has_gang_gate(pod("train-0")) && has_gang_gate(pod("train-1")));
  world_.server().clear_faults();
  create_gang("next", 5, "5s");
  EXPECT_TRUE(becomes("next", "Completed", seconds{20})) << "the nodes are free";
  ASSERT_TRUE(becomes("train", "Completed", minutes{2})) << world_.log_tail();
  EXPECT_EQ(job_of(world_, "train").status.starts, 2);
  expect_no_violations(world_);
}

// A pod without its gate can never be queued again: the start cannot be undone.
TEST_F(GatedPodsTest, AGangOfWhichOnePodCannotBePinnedEnds) {
  world_.server().inject(
      {.verb = "patch", .resource = "pods", .name = "train-1", .code = 500, .count = 10'000});
  create_gang("train", 2, "");
  world_.run_for(minutes{2});
  const kube::Job job = job_of(world_, "train");
  EXPECT_EQ(state("train"), "Running") << "it may be over soon";
  const kube::Condition* ready = kube::find_condition(job.status.conditions, kube::kReady);
  ASSERT_NE(ready, nullptr);
  EXPECT_EQ(ready->reason, "PodsNotPinned");
  EXPECT_THAT(ready->message, HasSubstr("its pods cannot be pinned to their nodes: "));
  ASSERT_TRUE(becomes("train", "Failed", minutes{8})) << world_.log_tail();
  EXPECT_THAT(job_of(world_, "train").status.message, HasSubstr("injected failure"));
  EXPECT_EQ(pod("train-0").status.reason, "DeadlineExceeded");
  EXPECT_TRUE(has_gang_gate(pod("train-1")));
  create_gang("next", 5, "5s");
  EXPECT_TRUE(becomes("next", "Completed", minutes{1})) << "the nodes are free";
  expect_no_violations(world_);
}

// The owner of the pods decides what a failure means, so the other member runs to its end first.
TEST_F(GatedPodsTest, AFailedMemberFailsTheGangWhenTheOthersHaveEnded) {
  create(gated_pod("train-0", "train", 2, "5s", {{"test/exit-code", "3"}}));
  create(gated_pod("train-1", "train", 2, "20s"));
  ASSERT_TRUE(becomes("train", "Failed", minutes{2})) << world_.log_tail();
  EXPECT_EQ(job_of(world_, "train").status.exit_code, 3);
  EXPECT_EQ(pod("train-1").status.phase, kube::PodPhase::kSucceeded);
}

// By garbage collection: all its pods own the Job, and it goes with the last of them.
TEST_F(GatedPodsTest, WithAllItsPodsTheJobGoes) {
  create_gang("train", 2, "");
  ASSERT_TRUE(world_.run_until([&] { return is_ready("train"); }, minutes{1}));
  remove("train-0");
  remove("train-1");
  world_.run_for(minutes{1});
  EXPECT_THAT(jobs(world_), SizeIs(0)) << world_.log_tail();
  create_gang("next", 5, "5s");
  EXPECT_TRUE(becomes("next", "Completed", minutes{1})) << "the nodes are free again";
}

// The operator does not delete gated pods. It lowers activeDeadlineSeconds, and kubelet ends the
// pods.
TEST_F(GatedPodsTest, CancelledWhileItRunsItsPodsFailAndStay) {
  create_gang("train", 3, "");
  ASSERT_TRUE(world_.run_until([&] { return is_ready("train"); }, minutes{1}));
  patch_job_of("train", {{"control", {{"cancel", true}}}});
  ASSERT_TRUE(becomes("train", "Cancelled", minutes{1})) << world_.log_tail();
  for (const char* name : {"train-0", "train-1", "train-2"}) {
    EXPECT_EQ(pod(name).status.phase, kube::PodPhase::kFailed);
    EXPECT_EQ(pod(name).status.reason, "DeadlineExceeded");
  }
}

// The Job that has ended stands for the gang, so a new leader makes no other one, and its pods say
// why they wait. Deleting that Job is the way to try the gang once more.
TEST_F(GatedPodsTest, CancelledWhileItWaitsItsPodsStayGated) {
  wait_behind_another();
  create_gang("train", 2, "5s", kAlone);
  ASSERT_TRUE(becomes("train", "Pending", seconds{10}));
  patch_job_of("train", {{"control", {{"cancel", true}}}});
  ASSERT_TRUE(becomes("train", "Cancelled", seconds{10}));
  world_.restart_operator();
  world_.run_for(seconds{10});
  EXPECT_THAT(note("train-0"), HasSubstr("JobEnded: its Job"));
  world_.remove_job("before");
  world_.run_for(seconds{20});
  EXPECT_TRUE(has_gang_gate(pod("train-0")));
  world_.remove_job(job_of(world_, "train").metadata.name);  // once more
  EXPECT_TRUE(becomes("train", "Completed", minutes{1})) << world_.log_tail();
}

// The operator cannot end gated pods itself: it lowers activeDeadlineSeconds and kubelet ends
// them.
TEST_F(GatedPodsTest, TheTimeLimitHolds) {
  create_gang("long", 2, "", {{"kubegang.io/time-limit", "10s"}});
  ASSERT_TRUE(becomes("long", "Timeout", minutes{2})) << world_.log_tail();
  EXPECT_EQ(pod("long-0").status.phase, kube::PodPhase::kFailed);
}

// A suspension needs no new pods. A requeue would, and only the owner of the pods could make them.
TEST_F(GatedPodsTest, IsPreemptedBySuspension) {
  world_.apply(partition("high", {{"nodes", {{"hostlist", "n[12-16]"}}}, {"priorityTier", 2}}));
  json config = linear_config("4s");
  config["spec"]["preemptMode"] = "Suspend";
  world_.apply(config);
  create_gang("train", 5, "20s");
  ASSERT_TRUE(world_.run_until([&] { return is_ready("train"); }, minutes{1}));
  world_.apply(gang_job("above", 5, "10s", {{"partitions", json::array({"high"})}}));
  world_.run_for(seconds{8});
  EXPECT_EQ(state("train"), "Suspended") << world_.log_tail();
  EXPECT_TRUE(becomes("train", "Completed", minutes{2}));
}

// A requeue would need new pods, which only their owner can make.
TEST_F(GatedPodsTest, IsNotRequeued) {
  create_gang("train", 2, "20s");
  ASSERT_TRUE(world_.run_until([&] { return is_ready("train"); }, minutes{1}));
  patch_job_of("train", {{"control", {{"requeueRequest", 1}}}});
  world_.run_for(seconds{5});
  EXPECT_EQ(state("train"), "Running");
  EXPECT_THAT(job_of(world_, "train").status.message, HasSubstr("may not be requeued"));
}

// Whatever the operator was about to write when it crashed: each gang has one Job, which starts
// once, no pod leaves its gate before its start is stored, and the gangs end as they would have.
TEST(GatedPodsCrashes, AtAnyWriteChangeNothing) {
  struct Rounds : GatedPodsTest {
    using GatedPodsTest::create_gang;
    using GatedPodsTest::furnish;
    using GatedPodsTest::job_of;
    using GatedPodsTest::jobs;
    using GatedPodsTest::state;
    void TestBody() override {}
  };
  int crashes = 0;
  for (std::uint64_t seed = 1; seed <= 4; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    World world{{.seed = seed, .crash_per_mille = 80, .kube_scheduler = true}};
    Rounds::furnish(world);
    world.apply(gang_job("ours", 5, "15s"));
    Rounds::create_gang(world, "good", 3, "12s");
    Rounds::create_gang(world, "wide", 5, "9s");
    Rounds::create_gang(world, "late", 2, "", {{"kubegang.io/time-limit", "10s"}});
    world.run_for(seconds{90});
    crashes += world.crashes();
    world.set_crash_per_mille(0);
    const auto ends = [&](const char* gang, const char* as) {
      return world.run_until([&] { return Rounds::state(world, gang) == as; }, minutes{10});
    };
    EXPECT_TRUE(ends("good", "Completed")) << world.log_tail();
    EXPECT_TRUE(ends("wide", "Completed")) << world.log_tail();
    EXPECT_TRUE(ends("late", "Timeout")) << world.log_tail();
    EXPECT_THAT(Rounds::jobs(world), SizeIs(4));
    for (const char* gang : {"good", "wide", "late"}) {
      EXPECT_EQ(Rounds::job_of(world, gang).status.starts, 1) << gang;
    }
    expect_no_violations(world);
    if (testing::Test::HasFailure()) return;
  }
  EXPECT_GT(crashes, 0);
}

}  // namespace
}  // namespace control
