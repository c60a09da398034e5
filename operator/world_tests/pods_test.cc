// Pods that are refused, do not start, lose their node, or are not what the template says.
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "api/wellknown.h"
#include "kube/api/service.h"
#include "operator/testing/world.h"

namespace control {
namespace {

using nlohmann::json;
using std::chrono::minutes;
using std::chrono::seconds;

// A refusal (here OutOfcpu) is the node's doing: no restart is counted and the job keeps its place.
TEST(Operator, AStartThatKubeletRefusesIsUndoneAndTriedElsewhere) {
  World world{{}};
  world.apply(linear_config());
  world.apply(partition("batch", {{"nodes", {{"hostlist", "n[12-16]"}}}, {"default", true}}));
  world.apply(
      gang_job("moved", 2, "5s", {}, {{"test/refuse", "OutOfcpu"}, {"test/refusals", "1"}}));
  ASSERT_TRUE(world.run_until([&] { return world.state("moved") == "Completed"; }, minutes{3}))
      << world.log_tail();
  // Each node refuses the first pod that it gets; the nodes that had the blame are avoided for a
  // while.
  EXPECT_EQ(world.job("moved").status.allocation->hostlist, "n[13,16]") << world.log_tail();
  EXPECT_EQ(world.job("moved").status.restarts.value_or(0), 0);
  expect_no_violations(world);
}

// The same, and the operator dies when the start is stored: the job is not older to the next
// leader, to which the time in which it was held must not count as age.
TEST(Operator, AStartThatIsRefusedUnderANewLeaderMakesTheJobNoOlder) {
  World world{{}};
  world.apply(linear_config());
  world.apply(partition("batch", {{"nodes", {{"hostlist", "n[12-13]"}}}, {"default", true}}));
  json job = gang_job("moved", 1, "", {}, {{"test/refuse", "OutOfcpu"}, {"test/refusals", "1"}});
  job["spec"]["control"]["hold"] = true;
  world.apply(job);
  world.run_for(minutes{2});
  world.crash_after(WritePoint::kStart, 1);
  world.patch_job("moved", {{"control", {{"hold", false}}}});
  ASSERT_TRUE(world.run_until([&] { return world.job("moved").status.starts == 2; }, minutes{3}))
      << world.log_tail();
  EXPECT_EQ(world.crashes(), 1);
  const kube::JobStatus status = world.job("moved").status;
  EXPECT_GE(status.eligible_time, *status.submit_time + minutes{2});
  expect_no_violations(world);
}

// The tests' kubelet names a container as the template does, also when it has ended. Verdicts are
// read from the states of containers by name, so a World that named them otherwise would test
// nothing.
TEST(Operator, AContainerEndsUnderItsName) {
  World world{{}};
  world.apply(linear_config());
  world.apply(partition("batch", {{"nodes", {{"hostlist", "n12"}}}, {"default", true}}));
  json job = gang_job("solve", 1, "5s");
  job["spec"]["template"]["spec"]["containers"][0]["name"] = "solver";
  world.apply(job);
  ASSERT_TRUE(world.run_until([&] { return world.state("solve") == "Completed"; }, minutes{1}))
      << world.log_tail();
  const std::vector<kube::Pod> pods = world.pods_of("solve");
  ASSERT_EQ(pods.size(), 1U);
  ASSERT_EQ(pods[0].status.container_statuses.size(), 1U);
  EXPECT_EQ(pods[0].status.container_statuses[0].name, "solver");
}

// R2.1: a pod that cannot end holds its own node, and not those of the whole gang. A new leader
// sees the same.
TEST(Operator, ANodeIsOfUseAsSoonAsThePodsThereAreGone) {
  World world{{}};
  world.apply(linear_config());
  world.apply(partition("batch", {{"nodes", {{"hostlist", "n[12-13]"}}}, {"default", true}}));
  world.apply(gang_job("wide", 2, ""));
  ASSERT_TRUE(world.run_until([&] { return world.state("wide") == "Running"; }, minutes{1}));
  world.apply(gang_job("next", 1, ""));
  world.apply(gang_job("last", 1, ""));
  world.node("n13").power_off();
  world.patch_job("wide", {{"control", {{"cancel", true}}}});
  ASSERT_TRUE(world.run_until([&] { return world.state("next") == "Running"; }, minutes{2}))
      << world.log_tail();
  EXPECT_EQ(world.job("next").status.allocation->hostlist, "n12");
  EXPECT_EQ(world.pods_of("wide").size(), 1U);
  EXPECT_NE(world.state("last"), "Running");
  world.restart_operator();
  world.patch_job("next", {{"control", {{"cancel", true}}}});
  ASSERT_TRUE(world.run_until([&] { return world.state("last") == "Running"; }, minutes{2}))
      << world.log_tail();
  EXPECT_EQ(world.job("last").status.allocation->hostlist, "n12");
  expect_no_violations(world);
}

// The pods of a start have names of their own. Expects that each pod of the job stands in its
// node's timetable, unless that lists none: a pod that is not listed is never frozen, and would run
// in the turns of the other job.
void expect_listed_pods(World& world, const std::string& job) {
  for (const kube::Pod& pod : world.pods_of(job)) {
    const kube::NodeTimetableSpec spec = world.timetable(*pod.spec.node_name).spec;
    if (spec.pods.empty()) continue;
    EXPECT_TRUE(std::any_of(spec.pods.begin(), spec.pods.end(),
                            [&](const auto& one) { return one.name == pod.metadata.name; }))
        << pod.metadata.name << " on " << *pod.spec.node_name << "\n"
        << world.log_tail();
  }
}

// "moved" is submitted beside "stays", on n[12-14]; n13 refuses its first pod, so that its second
// start has n[12,14-15].
void submit_to_be_refused_once(World& world) {
  world.apply(linear_config("4s"));
  world.apply(partition("batch", force("n[12-15]")));
  world.apply(gang_job("stays", 3, ""));
  world.run_for(seconds{6});
  world.apply(
      gang_job("moved", 3, "", {},
               {{"test/refuse", "OutOfcpu"}, {"test/refusals", "1"}, {"test/refuse-on", "n13"}}));
}

// Directly after the second start, and again when the turns have gone round.
void expect_second_start_is_listed(World& world) {
  ASSERT_TRUE(world.run_until([&] { return world.job("moved").status.starts == 2; }, seconds{9}));
  ASSERT_EQ(world.job("moved").status.allocation->hostlist, "n[12,14-15]") << world.log_tail();
  world.run_for(seconds{1});
  expect_listed_pods(world, "moved");
  world.run_for(seconds{20});
  expect_listed_pods(world, "moved");
  expect_no_violations(world);
}

// The next start is decided in the step that undoes the first, and has two of its nodes again,
// where the same job takes turns as before: to the scheduler nothing has changed there. But the
// pods are others, and the timetable names pods.
TEST(Operator, AStartAfterARefusedOneIsPublishedThoughItLooksTheSame) {
  World world{{.nodes = {"n12", "n13", "n14", "n15"}}};
  submit_to_be_refused_once(world);
  expect_second_start_is_listed(world);
}

// The same, and the operator dies when the second start is stored: what the next leader finds
// published belongs to the first.
TEST(Operator, ANewLeaderTakesNoTimetableOfAnEarlierStartForThePresentOne) {
  World world{{.nodes = {"n12", "n13", "n14", "n15"}}};
  submit_to_be_refused_once(world);
  world.crash_after(WritePoint::kStart, 2);
  expect_second_start_is_listed(world);
  EXPECT_EQ(world.crashes(), 1);
}

// kLaunchPatience is 60 s: after 50 s nothing has happened, after 90 s the job is held. Trying
// again elsewhere would be in vain, because the name is wrong everywhere. The user finds kubelet's
// own words in the Job and need not search for them in pods, which are gone by then.
TEST(Operator, AnImageThatCannotBePulledIsHeld) {
  World world{{}};
  world.apply(linear_config());
  world.apply(partition("batch", force()));
  world.apply(gang_job("typo", 2, "", {}, {{"test/waiting", "ErrImagePull"}}));
  world.run_for(seconds{50});
  EXPECT_EQ(world.state("typo"), "Running");  // it may be a passing fault
  world.run_for(seconds{40});
  const kube::JobStatus status = world.job("typo").status;
  EXPECT_EQ(kube::to_string(*status.state), "Pending");
  EXPECT_EQ(status.reason, "LaunchFailedRequeuedHeld") << world.log_tail();
  ASSERT_TRUE(status.held.has_value());
  EXPECT_NE(status.message.find("ErrImagePull"), std::string::npos) << status.message;
  EXPECT_TRUE(world.pods_of("typo").empty());
}

// A node's part of the memory is known only when the job is allocated. So it is found when the pods
// are built, and would be found again at each start.
TEST(Operator, ATemplateWhoseMemoryLimitsExceedTheNodesPartIsHeld) {
  World world{{}};
  json config = linear_config();
  config["spec"]["select"]["memory"] = true;
  world.apply(config);
  world.apply(partition("batch", force()));
  json job = gang_job("greedy", 2, "20s", {{"resources", {{"memoryPerCPU", "1Mi"}}}});
  job["spec"]["template"]["spec"]["containers"][0]["resources"]["limits"]["memory"] = "64Gi";
  world.apply(job);
  const auto is_held = [&] { return world.job("greedy").status.held.has_value(); };
  ASSERT_TRUE(world.run_until(is_held, seconds{20})) << world.log_tail();
  const kube::JobStatus status = world.job("greedy").status;
  EXPECT_EQ(status.reason, "LaunchFailedRequeuedHeld");
  EXPECT_NE(status.message.find("exceed the job's memory of"), std::string::npos) << status.message;
  EXPECT_TRUE(world.pods_of("greedy").empty());
  expect_no_violations(world);
}

// A node that is merely not ready may still run the pods: only when its object is deleted are they
// gone for certain, and the job may start elsewhere. Started a second time too early, the program
// would run twice and might write the same files.
TEST(Operator, AJobWhoseNodeVanishesIsRequeued) {
  World world{{}};
  json config = linear_config();
  config["spec"]["requeue"] = {{"delay", "1s"}};
  world.apply(config);
  world.apply(partition("batch", force()));
  world.apply(gang_job("survivor", 2, "20s"));
  world.run_for(seconds{10});
  world.node("n12").power_off();
  world.node("n12").set_ready(false);
  world.run_for(seconds{30});
  EXPECT_EQ(world.state("survivor"), "Running");  // the node may come back
  ASSERT_TRUE(world.client().remove<kube::Node>({"", "n12"}).ok());
  ASSERT_TRUE(world.run_until([&] { return world.state("survivor") == "Completed"; }, minutes{5}))
      << world.log_tail();
  EXPECT_EQ(world.job("survivor").status.restarts, 1);
  expect_no_violations(world);
}

// Makes a user's pod on n12 that names that kubegang Job as its controller, ignores SIGTERM, and
// asks for ten years to end.
json lying_pod(const std::string& job_uid) {
  return {{"apiVersion", "v1"},
          {"kind", "Pod"},
          {"metadata",
           {{"name", "liar"},
            {"namespace", "team-a"},
            {"ownerReferences", json::array({{{"apiVersion", "kubegang.io/v9"},
                                              {"kind", "Job"},
                                              {"name", "x"},
                                              {"uid", job_uid},
                                              {"controller", true}}})}}},
          {"spec",
           {{"nodeName", "n12"},
            {"terminationGracePeriodSeconds", 315'360'000},
            {"containers", json::array({{{"name", "main"}, {"image", "busybox"}}})}}}};
}

// Where no policy keeps such a pod out (charts/), the node takes no job until it is gone. The
// garbage collector deletes it at once, with its own grace period; the operator shortens that to
// killWait, 30 s.
TEST(Operator, APodThatLiesAboutItsJobKeepsItsNodeNoLongerThanAJobsPod) {
  World world{{.nodes = {"n12"}}};
  world.apply(linear_config());
  world.apply(partition("batch", force("n12")));
  world.run_for(seconds{5});
  world.node("n12").power_off();  // the pod does not end by itself
  ASSERT_TRUE(world.client().create_json<kube::Pod>("team-a", lying_pod("x")).ok());
  world.apply(gang_job("waits", 1, ""));
  world.run_for(seconds{10});
  EXPECT_EQ(world.state("waits"), "Pending");
  const kube::ObjectKey key{"team-a", "liar"};
  const auto ends = world.client().get<kube::Pod>(key);
  ASSERT_TRUE(ends.ok());
  EXPECT_EQ(ends->metadata.deletion_grace_period_seconds, 30) << world.log_tail();
  // As kubelet does when that is over.
  ASSERT_TRUE(world.client().remove<kube::Pod>(key, {.grace_period = seconds{0}}).ok());
  EXPECT_TRUE(world.run_until([&] { return world.state("waits") == "Running"; }, seconds{10}))
      << world.log_tail();
}

// The names of a gang's pods: a broken connection must not cost them.
TEST(Operator, AServiceWhoseCreationFailedIsTriedAgain) {
  World world{{}};
  world.apply(linear_config());
  world.apply(partition("batch", force()));
  world.server().inject({.kind = devcluster::Fault::Kind::kResetBefore,
                         .verb = "create",
                         .resource = "services",
                         .count = 2});
  world.apply(gang_job("gang", 2, ""));
  world.run_for(seconds{10});
  EXPECT_EQ(world.state("gang"), "Running") << world.log_tail();
  EXPECT_TRUE(world.client().get<kube::Service>({"team-a", "gang"}).ok()) << world.log_tail();
}

// Nothing stores that the Service exists, so each leader makes sure once.
TEST(Operator, ANewLeaderMakesTheServiceThatItsPredecessorDidNot) {
  World world{{}};
  world.apply(linear_config());
  world.apply(partition("batch", force()));
  world.apply(gang_job("gang", 2, ""));
  world.run_for(seconds{10});
  ASSERT_TRUE(world.client().remove<kube::Service>({"team-a", "gang"}).ok());
  world.restart_operator();
  world.run_for(seconds{5});
  EXPECT_TRUE(world.client().get<kube::Service>({"team-a", "gang"}).ok()) << world.log_tail();
}

// With autoscaling node names come and go forever; pods of a DaemonSet outlive their Node. The
// node is forgotten with the last pod on it, and not before: the pod still takes its memory if the
// node comes back.
TEST(Operator, NothingIsRememberedOfANodeThatIsGone) {
  World world{{}};
  world.apply(linear_config());
  world.apply(partition("batch", force()));
  world.run_for(seconds{5});
  // World's default nodes, n12 to n16.
  ASSERT_EQ(world.process().loop().counters().nodes_known, 5);
  kube::Pod daemon;
  daemon.metadata.name = "daemon";
  daemon.metadata.ns = "team-a";
  daemon.spec.node_name = "n12";
  daemon.spec.containers.push_back({.name = "main", .image = "busybox"});
  ASSERT_TRUE(world.client().create(daemon).ok());
  world.run_for(seconds{2});
  world.node("n12").power_off();
  ASSERT_TRUE(world.client().remove<kube::Node>({"", "n12"}).ok());
  world.run_for(seconds{2});
  EXPECT_EQ(world.process().loop().counters().nodes_known, 5) << "its pod is still there";
  ASSERT_TRUE(
      world.client()
          .remove<kube::Pod>({"team-a", "daemon"}, {.grace_period = std::chrono::seconds{0}})
          .ok());
  world.run_for(seconds{2});
  EXPECT_EQ(world.process().loop().counters().nodes_known, 4) << world.log_tail();
}

// architecture.md 5: what refuses its pods is said while the job waits. It stays in the queue: the
// quota may be free by then, and its warning goes when it runs.
TEST(Operator, AJobThatWaitsSaysThatItsPodsWouldBeRefused) {
  World world{{}};
  world.apply(linear_config());
  world.apply(partition("batch", force("n[12-16]", {{"overSubscribe", {{"policy", "Never"}}}})));
  world.apply(gang_job("runs", 5, ""));
  world.run_for(seconds{5});
  world.apply(gang_job("welcome", 1, ""));
  world.run_for(seconds{5});
  EXPECT_EQ(world.condition("Job", "welcome", "Accepted"),
            "True: Accepted: the job is in the queue");
  // Only the trial is refused: the fault is used up by it, so the real pods are taken later.
  world.server().inject({.verb = "create", .resource = "pods", .code = 403});
  world.apply(gang_job("unwelcome", 1, ""));
  world.run_for(minutes{2});
  EXPECT_EQ(world.state("unwelcome"), "Pending");
  const std::string accepted = world.condition("Job", "unwelcome", "Accepted");
  EXPECT_TRUE(
      accepted.starts_with("True: AcceptedWithWarning: the job is in the queue; the API "
                           "server would refuse its pods now: "))
      << accepted << world.log_tail();
  world.patch_job("runs", {{"control", {{"cancel", true}}}});
  ASSERT_TRUE(world.run_until([&] { return world.state("unwelcome") == "Running"; }, minutes{2}))
      << world.log_tail();
  world.run_for(minutes{2});
  EXPECT_EQ(world.condition("Job", "unwelcome", "Accepted"),
            "True: Accepted: the job is in the queue");
  expect_no_violations(world);
}

// The start is tried again after a while; meanwhile it says why, whatever else happens.
TEST(Operator, AJobWhosePodsAreRefusedSaysWhyUntilItsNextStart) {
  World world{{}};
  world.apply(linear_config());
  world.apply(partition("batch", force()));
  world.server().inject({.verb = "create", .resource = "pods", .code = 403, .count = 100});
  world.apply(gang_job("unwelcome", 1, ""));
  ASSERT_TRUE(world.run_until([&] { return world.job("unwelcome").status.reason == "BeginTime"; },
                              minutes{2}))
      << world.log_tail();
  // A change of the configuration, after which all waiting jobs are looked at.
  world.apply(partition("other", {{"nodes", {{"hostlist", "n[12-16]"}}}}));
  // Five minutes: more than the first two back-offs (1 and 2 min), each followed by a refused
  // start.
  for (int looks = 0; looks < 30; ++looks) {
    world.run_for(seconds{10});
    const std::string says = world.job("unwelcome").status.message;
    EXPECT_NE(says.find("injected failure"), std::string::npos) << says << world.log_tail();
  }
  expect_no_violations(world);
}

// As when a webhook of the namespace is down, whose failurePolicy is Fail. Two minutes are too
// short to lose the nodes, and ten too long to keep them.
TEST(Operator, AJobWhosePodsCannotBeMadeSaysSoAndGivesItsNodesBack) {
  World world{{}};
  world.apply(linear_config());
  world.apply(partition("batch", force()));
  world.server().inject({.verb = "create", .resource = "pods", .code = 500, .count = 1'000});
  world.apply(gang_job("stuck", 1, ""));
  world.run_for(minutes{2});
  EXPECT_EQ(world.state("stuck"), "Running");
  const std::string ready = world.condition("Job", "stuck", "Ready");
  EXPECT_TRUE(ready.starts_with("False: PodsNotMade: its pods cannot be created: ")) << ready;
  const auto has_left = [&] { return world.state("stuck") == "Pending"; };
  ASSERT_TRUE(world.run_until(has_left, minutes{8})) << world.log_tail();
  EXPECT_EQ(world.job("stuck").status.reason, "BeginTime");
  EXPECT_NE(world.job("stuck").status.message.find("injected failure"), std::string::npos);
  expect_no_violations(world);
}

// The pod is made and the answer is lost; the quota, which this pod has filled, is judged before
// its name when it is tried again. The watch is too late to tell that it is there.
TEST(Operator, APodThatWasMadeIsNotTakenForRefusedByTheQuotaThatItFilled) {
  using devcluster::Fault;
  World world{{}};
  world.apply(linear_config());
  world.apply(partition("batch", force()));
  world.server().inject({.kind = Fault::Kind::kResetAfter, .verb = "create", .resource = "pods"});
  world.server().inject({.verb = "create", .resource = "pods", .code = 403});
  world.server().inject({.verb = "watch", .resource = "pods", .code = 500, .count = 20});
  world.apply(gang_job("fills", 1, ""));
  const auto is_ready = [&] {
    return world.condition("Job", "fills", "Ready").starts_with("True");
  };
  ASSERT_TRUE(world.run_until(is_ready, minutes{5})) << world.log_tail();
  EXPECT_EQ(world.job("fills").status.starts, 1) << world.log_tail();
  expect_no_violations(world);
}

// kubelet would refuse it with OutOfpods (architecture.md 4, "Pod count likewise"). Each node takes
// one pod. Another pod has the place on n12, and its end alone must start the job that waits.
TEST(Operator, AJobIsNotPlacedWhereNoPodFits) {
  World world{{.nodes = {"n12", "n13"}, .pods_per_node = 1}};
  world.apply(linear_config());
  world.apply(partition("batch", force("n[12-13]")));
  const json foreign{
      {"apiVersion", "v1"},
      {"kind", "Pod"},
      {"metadata", {{"name", "foreign"}}},
      {"spec", {{"nodeName", "n12"}, {"containers", {{{"name", "main"}, {"image", "none"}}}}}}};
  ASSERT_TRUE(world.client().create_json<kube::Pod>("default", foreign).ok());
  world.run_for(seconds{5});
  world.apply(gang_job("fits", 1, ""));
  world.run_for(seconds{5});
  world.apply(gang_job("waits", 1, ""));
  world.run_for(minutes{2});
  EXPECT_EQ(world.state("fits"), "Running") << world.log_tail();
  EXPECT_EQ(world.job("fits").status.allocation->hostlist, "n13");
  EXPECT_EQ(world.state("waits"), "Pending") << world.log_tail();
  EXPECT_EQ(world.job("waits").status.reason, "Resources");
  EXPECT_NE(world.job("waits").status.message.find("2 have no room for another pod"),
            std::string::npos)
      << world.job("waits").status.message;
  ASSERT_TRUE(world.client().remove<kube::Pod>({"default", "foreign"}).ok());
  ASSERT_TRUE(world.run_until([&] { return world.state("waits") == "Running"; }, minutes{1}))
      << world.log_tail();
  EXPECT_EQ(world.job("waits").status.allocation->hostlist, "n12");
  expect_no_violations(world);
}

// architecture.md 4: a mutating webhook gives its pods what a template may not have. A frozen pod
// answers no probe, and kubelet would kill it. So "probed" runs all the time, "plain" takes its
// turns beside it, and the condition says why two gangs are on the nodes at once.
TEST(Operator, AJobWhosePodsAWebhookGaveAProbeIsNeverFrozenAndSaysSo) {
  World world{{}};
  bool injects = true;
  world.server().set_pod_webhook([&](json& pod) {
    if (!injects || pod["metadata"]["labels"].value(std::string{kube::kLabelJob}, "") != "probed")
      return;
    pod["spec"]["containers"][0]["livenessProbe"] = {{"tcpSocket", {{"port", 80}}}};
  });
  world.apply(linear_config("4s"));
  world.apply(partition("batch", force()));
  world.apply(gang_job("plain", 5, ""));
  world.run_for(seconds{6});
  world.apply(gang_job("probed", 5, ""));
  const auto is_alone_in_the_list = [&](const std::string& job) {
    const auto pods = world.timetable("n14").spec.pods;
    return std::all_of(pods.begin(), pods.end(), [&](const kube::TimetablePod& pod) {
      return pod.name.starts_with(job + "-");
    });
  };
  const auto expect_runs_always = [&] {
    const auto probed_before = world.ran("probed");
    const auto plain_before = world.ran("plain");
    world.run_for(seconds{40});  // ten slices
    EXPECT_NEAR(std::chrono::duration<double>(world.ran("probed") - probed_before).count(), 40, 1);
    EXPECT_NEAR(std::chrono::duration<double>(world.ran("plain") - plain_before).count(), 20, 4);
    EXPECT_FALSE(world.timetable("n14").spec.pods.empty());
    EXPECT_TRUE(is_alone_in_the_list("plain")) << world.log_tail();
    const std::string said = world.condition("Job", "probed", "NeverFrozen");
    EXPECT_TRUE(said.starts_with("True: ChangedByWebhook: pod probed-")) << said;
    EXPECT_NE(said.find("container main has a livenessProbe (a frozen pod"), std::string::npos)
        << said;
    EXPECT_EQ(world.condition("Job", "plain", "NeverFrozen"), "");
  };
  world.run_for(seconds{20});
  expect_runs_always();
  world.restart_operator();
  world.run_for(seconds{10});
  expect_runs_always();

  // The next start is judged by its own pods.
  injects = false;
  world.patch_job("probed", {{"control", {{"requeueRequest", 1}}}});
  ASSERT_TRUE(world.run_until([&] { return world.job("probed").status.starts == 2; }, minutes{5}))
      << world.log_tail();
  world.run_for(seconds{20});
  EXPECT_EQ(world.condition("Job", "probed", "NeverFrozen"),
            "False: NotStarted: it was about an earlier start");
  EXPECT_FALSE(is_alone_in_the_list("plain")) << world.log_tail();
  // This is meant to be: the two on the same nodes at the same time.
  for (const std::string& violation : world.violations()) {
    EXPECT_NE(violation.find("ran together"), std::string::npos) << violation;
  }
}

}  // namespace
}  // namespace control
