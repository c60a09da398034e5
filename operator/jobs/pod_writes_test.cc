#include "operator/jobs/pod_writes.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "api/wellknown.h"
#include "operator/testing/edit_owned.h"

namespace control {
namespace {

using std::chrono::seconds;

// Takes effects and carries none out: a test answers them itself, in the order that it wants.
struct CollectingWriter final : Writer {
  void submit(Effect effect) override { effects.push_back(std::move(effect)); }
  int at_once() const override { return 16; }
  std::vector<Effect> effects;
};

// A job that has n1 and n2, of which n2 is gone.
struct PodWritesTest : testing::Test {
  PodWritesTest() {
    kube::Node node;
    node.metadata.name = "n1";
    (void)nodes.observe("n1", std::make_shared<const kube::Node>(node));
    kube::Job object;
    object.metadata.name = "train";
    object.metadata.ns = "team-a";
    object.metadata.uid = "uid";
    object.metadata.resource_version = "1";
    object.spec.network = kube::JobNetwork::kNone;
    object.status.starts = 1;
    object.status.allocation.emplace();
    Changes<kube::Job> changes;
    changes[{"team-a", "train"}] = std::make_shared<const kube::Job>(object);
    (void)jobs.observe(changes);
    job = jobs.find("uid");
    job->take_slots({{.name = "train-x-0", .node = "n1", .index = 0},
                     {.name = "train-x-1", .node = "n2", .index = 1}});
    (void)jobs.take_touched();
  }
  // The names of the writes since the last call.
  std::string asked(std::size_t room = 100) {
    counted.submit_all(pods.due(room));
    std::string text;
    for (const Effect& effect : std::exchange(writer.effects, {})) {
      text += (text.empty() ? "" : " ") + std::string{to_string(point_of(effect))};
    }
    return text;
  }
  // The API server's answer to a read of the job's template.
  void read_template() {
    kube::Job answer = *job->object;
    answer.spec.pod_template = kube::RawJson{nlohmann::json{{"spec", {{"containers", {}}}}}};
    pods.answered(TemplateRead{"uid", answer});
  }
  // Returns the answer to the creation of the pod of this slot, in the first start.
  PodCreated refused(int index, base::Code code) {
    return {.job_uid = "uid",
            .starts = 1,
            .slot = job->start->slots[static_cast<std::size_t>(index)],
            .result = base::Error{code, "no"}};
  }
  // Returns a pod that is bound to that node, with a UID after it.
  kube::Pod pod(const std::string& node) {
    kube::Pod pod;
    pod.metadata.uid = "pod-on-" + node;
    pod.spec.node_name = node;
    return pod;
  }

  base::Instant now{seconds{1'000}};
  int warnings = 0;
  const Report report{{.warn = [this](const std::string&, const std::string&) { ++warnings; }}};
  LoopCounters counters;
  TemplateBook templates;
  PodIndex places;
  JobBook jobs{now, templates, places};
  const AgentPods agents;
  NodeBook nodes{agents, report};
  PolicyBook policy;
  bool is_stored = true;
  const CommitGate gate{{.is_stored = [this](const std::string&) { return is_stored; },
                         .is_published = [](const std::string&) { return true; }}};
  CollectingWriter writer;
  CountedWriter counted{writer, counters};
  bool ends_by_time = true;
  PodWrites pods{{now, jobs, nodes, policy, report, ends_by_time}, places, gate, counted, counters};
  JobRecord* job = nullptr;
};

// 1. before the commit nothing is asked for; 2. then the template is read, once; 3. then the pods.
//
// A pod that existed before its start is stored would be an orphan after a crash: the next leader
// would give its node to another job.
TEST_F(PodWritesTest, PodsAreMadeAfterTheCommitAndOnce) {
  is_stored = false;
  pods.launch(*job, {0, 1});
  EXPECT_EQ(asked(), "");
  is_stored = true;
  pods.launch(*job, {0, 1});
  EXPECT_EQ(asked(), "template-read");
  pods.launch(*job, {0, 1});
  EXPECT_EQ(asked(), "") << "it is being read";
  read_template();
  EXPECT_EQ(jobs.take_touched().size(), 1U);
  pods.launch(*job, {0, 1});
  EXPECT_EQ(asked(), "pod-create pod-create");
  EXPECT_EQ(counters.pod_creates, 2);
  pods.launch(*job, {0, 1});
  EXPECT_EQ(asked(), "") << "they are under way";
}

// Pods of a script on several nodes mount the Secret of their start, so it is there before them,
// and the next start has another one.
TEST_F(PodWritesTest, PodsOfAScriptWaitForTheirSecret) {
  const auto read = [this] {
    kube::Job answer = *job->object;
    answer.spec.pod_template = kube::RawJson{nlohmann::json{{"spec", {{"containers", {}}}}}};
    answer.spec.batch.emplace();
    pods.answered(TemplateRead{"uid", answer});
  };
  pods.launch(*job, {0, 1});
  read();
  (void)asked();
  pods.launch(*job, {0, 1});
  EXPECT_EQ(asked(), "step-secret-create");
  pods.launch(*job, {0, 1});
  EXPECT_EQ(asked(), "") << "it is under way";
  EXPECT_FALSE(
      pods.answered(StepSecretCreated{"uid", 1, base::Error{base::Code::kUnavailable, "away"}}));
  pods.launch(*job, {0, 1});
  EXPECT_EQ(asked(), "");
  now = jobs.next_due();
  pods.launch(*job, {0, 1});
  EXPECT_EQ(asked(), "step-secret-create");
  EXPECT_FALSE(pods.answered(StepSecretCreated{"uid", 0, {}}));
  pods.launch(*job, {0, 1});
  EXPECT_EQ(asked(), "") << "that was of an earlier start";
  EXPECT_FALSE(pods.answered(StepSecretCreated{"uid", 1, {}}));
  pods.launch(*job, {0, 1});
  EXPECT_EQ(asked(), "pod-create pod-create");
}

// A right or a quota that is missing is given by people: the job gives its nodes back, as if its
// pods had been refused, and says why. An API server that is away is waited for, for five minutes.
TEST_F(PodWritesTest, ASecretThatIsRefusedUndoesTheStart) {
  const auto answer = [this](base::Code code) {
    return pods.answered(StepSecretCreated{"uid", 1, base::Error{code, "no"}});
  };
  const auto refused = answer(base::Code::kPermissionDenied);
  ASSERT_TRUE(refused);
  EXPECT_TRUE(refused->api_refused);
  EXPECT_EQ(refused->message, "the Secret for its steps: no");
  EXPECT_FALSE(answer(base::Code::kUnavailable));
  now += seconds{20};
  EXPECT_FALSE(answer(base::Code::kUnavailable));
  EXPECT_EQ(warnings, 1) << "it says why after a while";
  now += std::chrono::minutes{5};
  EXPECT_TRUE(answer(base::Code::kUnavailable));
  job->wanted_unmarked().ending.emplace();
  EXPECT_FALSE(answer(base::Code::kPermissionDenied)) << "it ends already";
}

// `room` is how many writes may be handed over now; the rest waits for the next step. With none
// nothing is asked for, with one a single pod, and a pod whose creation failed comes back into the
// same line.
TEST_F(PodWritesTest, PodsAreMadeAsFarAsThereIsRoom) {
  pods.launch(*job, {0, 1});
  read_template();
  (void)asked();
  pods.launch(*job, {0, 1});
  EXPECT_EQ(asked(0), "");
  pods.launch(*job, {0, 1});
  EXPECT_EQ(asked(1), "pod-create");
  // One that is to be made again joins those that wait.
  EXPECT_FALSE(pods.answered(refused(0, base::Code::kUnavailable)));
  now = job->launch->pod_tries.due();
  pods.launch(*job, {0, 1});
  read_template();
  (void)asked(0);
  pods.launch(*job, {0, 1});
  EXPECT_EQ(asked(), "pod-create pod-create");
  EXPECT_EQ(job->launch->creating, (std::set<int>{0, 1}));
  EXPECT_EQ(asked(), "");
}

// Three ways in which a start can end while its pods wait for room: its ending is decided, its pods
// are ended, the start is forgotten. In none may a pod be made.
TEST_F(PodWritesTest, PodsThatWaitForRoomAreNotMadeOnceTheJobEnds) {
  const auto wait = [this] {
    pods.launch(*job, {0, 1});
    read_template();
    pods.launch(*job, {0, 1});
    (void)asked(0);
    EXPECT_EQ(job->launch->creating.size(), 2U);
  };
  wait();
  job->wanted_unmarked().ending.emplace();  // its write is under way
  EXPECT_EQ(asked(), "");
  EXPECT_TRUE(job->launch->creating.empty());
  job->wanted_unmarked().ending.reset();
  wait();
  pods.end_pods(*job, std::nullopt);
  EXPECT_TRUE(job->launch->creating.empty());
  EXPECT_EQ(asked(), "");
  wait();
  job->clear_start();
  EXPECT_EQ(asked(), "");
}

// The pods exist already, behind the gate, and are pinned instead of created. Those that are not
// pinned when the job ends must keep their gate, because a pin cannot be taken back.
TEST_F(PodWritesTest, PodsOfOthersArePinnedAsFarAsThereIsRoomAndNotOnceTheJobEnds) {
  kube::Job object = *job->object;
  object.spec.adopted = {{.name = "mpi-0", .uid = "u0"}, {.name = "mpi-1", .uid = "u1"}};
  job->object = std::make_shared<const kube::Job>(object);
  pods.launch(*job, {0, 1});
  EXPECT_EQ(asked(0), "");
  counted.submit_all(pods.due(1));
  ASSERT_EQ(writer.effects.size(), 1U);
  // In the order of the slots, which is that of the names in spec.adopted.
  EXPECT_EQ(std::get<PinPod>(writer.effects[0]).pod_uid, "u0");
  writer.effects.clear();
  job->wanted_unmarked()
      .ending.emplace();  // its write is under way, and the second pod keeps its gate
  EXPECT_EQ(asked(), "");
  EXPECT_EQ(job->launch->creating, std::set<int>{0}) << "the first pin is still on its way";
}

// The first pod meets an API server that is away: a back-off. The second is refused for good (403),
// and so would be any other: the start is undone. An answer to an earlier start says nothing about
// this one.
TEST_F(PodWritesTest, ARefusalUndoesTheStartAndAFailureIsTriedAgain) {
  edit(job->launch).creating = {0, 1};
  EXPECT_FALSE(pods.answered(refused(0, base::Code::kUnavailable)));
  EXPECT_EQ(job->launch->creating, std::set<int>{1});
  const base::Instant again = job->launch->pod_tries.due();
  EXPECT_GT(again, now);
  pods.launch(*job, {0});
  EXPECT_EQ(asked(), "");
  EXPECT_EQ(jobs.next_due(), again);

  const auto undo = pods.answered(refused(1, base::Code::kPermissionDenied));
  ASSERT_TRUE(undo);
  EXPECT_TRUE(undo->api_refused);
  EXPECT_EQ(undo->message, "no");
  job->wanted_unmarked().starts = 2;
  EXPECT_FALSE(pods.answered(refused(1, base::Code::kPermissionDenied))) << "of another start";
}

// A pin that is under way decides whether a pod has lost its gate, and so how the start fails.
// While it is, none is asked for: two slots that are refused in turn would wait for each other
// forever.
TEST_F(PodWritesTest, RefusedPinsUndoTheStartOnceNoneIsUnderWay) {
  kube::Job object = *job->object;
  object.spec.adopted = {{.name = "mpi-0", .uid = "u0"}, {.name = "mpi-1", .uid = "u1"}};
  job->object = std::make_shared<const kube::Job>(object);
  pods.launch(*job, {0, 1});
  EXPECT_EQ(asked(), "pod-pin pod-pin");
  const auto refused_pin = [&](int index) {
    return PodPinned{.job_uid = "uid",
                     .starts = 1,
                     .slot = job->start->slots[static_cast<std::size_t>(index)],
                     .result = base::Error{base::Code::kPermissionDenied, "no"}};
  };
  EXPECT_FALSE(pods.answered(refused_pin(0))) << "the other may succeed";
  pods.launch(*job, {0, 1});
  EXPECT_EQ(asked(), "");
  const auto undo = pods.answered(refused_pin(1));
  ASSERT_TRUE(undo);
  EXPECT_TRUE(undo->api_refused);
  EXPECT_EQ(undo->message, "no");
}

// The limits are kFailuresTold and kFailuresPatience. A pod that is made shows that pods can be
// made: the next failure is the first one again.
TEST_F(PodWritesTest, FailuresThatLastAreToldAndThenUndoTheStart) {
  const auto shown = [this] {
    const auto* ready = kube::find_condition(job->wanted().conditions, kube::kReady);
    return ready->reason + ": " + ready->message;
  };
  const std::string starting = "Starting: its pods are being started";
  (void)jobs.set_condition(*job, WriteUrgency::kInforms, kube::kReady,
                           kube::ConditionStatus::kFalse, "Starting", "its pods are being started");
  const PodCreated failed = refused(0, base::Code::kUnavailable);
  EXPECT_FALSE(pods.answered(failed));
  now += seconds{14};
  EXPECT_FALSE(pods.answered(failed));
  EXPECT_EQ(shown(), starting) << "it may be over in a moment";
  now += seconds{1};
  (void)jobs.take_marked();
  for (int i = 0; i < 2; ++i) EXPECT_FALSE(pods.answered(failed));
  EXPECT_EQ(shown(), "PodsNotMade: its pods cannot be created: no");
  EXPECT_EQ(jobs.take_marked().size(), 1U);
  EXPECT_EQ(warnings, 1) << "once";
  PodCreated made = refused(1, base::Code::kInternal);
  made.result = pod("n2");
  made.result->metadata.labels[std::string{kube::kLabelJobUid}] = "uid";
  EXPECT_FALSE(pods.answered(made));
  EXPECT_EQ(shown(), starting);
  now += seconds{600};
  EXPECT_FALSE(pods.answered(failed));
  now += seconds{299};
  EXPECT_FALSE(pods.answered(failed));
  now += seconds{1};
  const auto undo = pods.answered(failed);
  ASSERT_TRUE(undo);
  EXPECT_TRUE(undo->api_refused);
  EXPECT_EQ(undo->message, "no");
}

// The answer to the start's commit has it, so that it need not be read. It is large, so it is kept
// only as long as pods can be made of it: not while they are being made, not when the job ends, and
// not longer than one launch.
TEST_F(PodWritesTest, TheTemplateOfTheCommitsAnswerIsKeptForALaunch) {
  kube::Job answer = *job->object;
  answer.spec.pod_template = kube::RawJson{nlohmann::json{{"spec", {{"containers", {}}}}}};
  edit(job->launch).creating = {0};
  pods.keep_template(answer, "uid");
  EXPECT_TRUE(job->launch->launch_template.empty()) << "pods are being made";
  edit(job->launch).creating.clear();
  job->wanted_unmarked().ending.emplace();
  pods.keep_template(answer, "uid");
  EXPECT_TRUE(job->launch->launch_template.empty()) << "it is ending";
  job->wanted_unmarked().ending.reset();
  job->put_pod("train-x-0", std::make_shared<const kube::Pod>(pod("n1")));
  pods.keep_template(answer, "uid");
  EXPECT_TRUE(job->launch->launch_template.empty()) << "a pod is there";
  job->erase_pod("train-x-0");
  pods.keep_template(answer, "uid");
  job->deleted = true;
  pods.launch(*job, {0, 1});
  EXPECT_EQ(asked(), "") << "its object is gone";
  job->deleted = false;
  pods.launch(*job, {0, 1});
  EXPECT_EQ(asked(), "pod-create pod-create");
  EXPECT_TRUE(job->launch->launch_template.empty());
}

// A template that comes too late (the job ends), or of another job under the same name, is not
// used. Its pods would run a program that the scheduler has not judged.
TEST_F(PodWritesTest, ATemplateThatCannotBeReadIsReadAgainLater) {
  pods.launch(*job, {0, 1});
  EXPECT_EQ(asked(), "template-read");
  pods.answered(TemplateRead{"uid", base::Error{base::Code::kUnavailable, "away"}});
  EXPECT_EQ(jobs.take_touched().size(), 1U);
  pods.launch(*job, {0, 1});
  EXPECT_EQ(asked(), "");
  now = jobs.next_due();
  pods.launch(*job, {0, 1});
  EXPECT_EQ(asked(), "template-read");
  job->wanted_unmarked().ending.emplace();
  read_template();
  EXPECT_TRUE(job->launch->launch_template.empty()) << "it ends by now";
  job->wanted_unmarked().ending.reset();
  kube::Job other = *job->object;
  other.metadata.uid = "of another job with this name";
  other.spec.pod_template = kube::RawJson{nlohmann::json{{"spec", {{"containers", {}}}}}};
  pods.answered(TemplateRead{"uid", other});
  EXPECT_TRUE(job->launch->launch_template.empty());
}

// Whatever has its name, or cannot be built, would be in the way of the next start too. Without a
// hold the job would be started and undone forever. The sentence says which pod a person must
// delete.
TEST_F(PodWritesTest, AStartThatWouldFailAgainIsHeld) {
  PodCreated taken = refused(0, base::Code::kInternal);
  taken.result = pod("n1");  // of no job
  const auto undo = pods.answered(taken);
  ASSERT_TRUE(undo);
  EXPECT_TRUE(undo->hold);
  EXPECT_EQ(undo->message, "a pod named train-x-0 exists and is not this job's; delete it");
  PodCreated unbuilt = refused(1, base::Code::kInvalidArgument);
  unbuilt.was_built = false;
  const auto unbuildable = pods.answered(unbuilt);
  ASSERT_TRUE(unbuildable);
  EXPECT_TRUE(unbuildable->hold);
  EXPECT_FALSE(unbuildable->api_refused);
  job->wanted_unmarked().ending.emplace();
  EXPECT_FALSE(pods.answered(unbuilt)) << "it ends already";
}

// A namespace that was made a moment ago gets its service account soon. Undoing the start at once
// would cost the job its place for a delay of a second; a refusal for another reason, or one that
// lasts, undoes it.
TEST_F(PodWritesTest, AMissingServiceAccountIsWaitedForAtFirst) {
  (void)jobs.set_condition(*job, WriteUrgency::kInforms, kube::kReady,
                           kube::ConditionStatus::kFalse, "Starting", "");
  PodCreated early = refused(0, base::Code::kPermissionDenied);
  early.result = base::Error{base::Code::kPermissionDenied,
                             "error looking up service account team-a/default: not found"};
  EXPECT_FALSE(pods.answered(early));
  EXPECT_TRUE(pods.answered(refused(0, base::Code::kPermissionDenied))) << "for another reason";
  // As long as kAccountPatience.
  now += seconds{15};
  EXPECT_TRUE(pods.answered(early));
}

// A failed creation is tried again after a back-off, and only the first failure is reported: the
// Service is needed for names, and the gang runs without it.
TEST_F(PodWritesTest, TheGangsServiceIsMadeOnceAndSaysOnceWhyItIsNot) {
  kube::Job object = *job->object;
  object.spec.network = kube::JobNetwork::kService;
  job->object = std::make_shared<const kube::Job>(object);
  pods.ensure_service(*job);
  pods.ensure_service(*job);
  EXPECT_EQ(asked(), "service-create") << "it is under way";
  pods.answered(ServiceCreated{"uid", base::Error{base::Code::kUnavailable, "away"}});
  EXPECT_EQ(warnings, 1);
  pods.ensure_service(*job);
  EXPECT_EQ(asked(), "");
  now = jobs.next_due();
  pods.ensure_service(*job);
  EXPECT_EQ(asked(), "service-create");
  pods.answered(ServiceCreated{"uid", base::Error{base::Code::kUnavailable, "away"}});
  EXPECT_EQ(warnings, 1) << "that was said";
  now = jobs.next_due();
  pods.ensure_service(*job);
  (void)asked();
  pods.answered(ServiceCreated{"uid", {}});
  // Long after any back-off: a Service that exists is not asked for again.
  now += seconds{3600};
  pods.ensure_service(*job);
  EXPECT_EQ(asked(), "");
}

// While its job ends, a finished pod stays for its log; the next start removes it. A job that waits
// has no nodes to clear, so its old pods are left, and their logs with them.
TEST_F(PodWritesTest, FinishedPodsStayUntilTheNextStart) {
  kube::Pod done = pod("n1");
  done.status.phase = kube::PodPhase::kSucceeded;
  job->wanted_unmarked().ending.emplace();
  pods.end_pod(*job, done, std::nullopt);
  EXPECT_EQ(asked(), "");
  job->wanted_unmarked().ending.reset();
  // A name of no slot of the present start: a pod of an earlier one.
  job->put_pod("train-before-0", std::make_shared<const kube::Pod>(done));
  job->wanted_unmarked().allocation.reset();
  pods.end_stale_pods(*job);
  EXPECT_EQ(asked(), "") << "it waits";
  job->wanted_unmarked().allocation.emplace();
  pods.end_stale_pods(*job);
  EXPECT_EQ(asked(), "pod-delete");
}

// A deletion that is under way is remembered by the pod's UID, so that it is not asked for twice;
// another pod under the same name is one that was not asked to end.
TEST_F(PodWritesTest, ADeletionIsRememberedUntilItsPodIsGone) {
  const auto shown = std::make_shared<const kube::Pod>(pod("n1"));
  const PodPlace place{.node = "n1", .job_uid = job->uid, .pod = shown};
  pods.end_pod(*job, *shown, std::nullopt);
  EXPECT_EQ(asked(), "pod-delete");
  // Changed: it is the same pod.
  pods.observe(place, shown.get());
  pods.end_pod(*job, *shown, std::nullopt);
  EXPECT_EQ(asked(), "");
  EXPECT_EQ(job->deleting->size(), 1U);
  kube::Pod again = *shown;
  again.metadata.uid = "made again";
  pods.observe(place, &again);
  EXPECT_TRUE(job->deleting->empty());
  pods.end_pod(*job, again, std::nullopt);
  EXPECT_EQ(asked(), "pod-delete");
  // It may need to end sooner.
  pods.end_again(*job);
  pods.end_pod(*job, again, std::nullopt);
  EXPECT_EQ(asked(), "pod-delete");
}

// A user's pod that says it belongs to the job, or was deleted by its user, with a grace period of
// ten years: the job would hold its node beyond its time limit. killWait is 30 s, which is also the
// most that a template may ask for.
TEST_F(PodWritesTest, NoPodTakesLongerToEndThanATemplateMayAskFor) {
  constexpr std::int64_t kTenYears = 315'360'000;
  struct Case {
    const char* what;
    std::int64_t own;
    std::optional<std::int64_t> under_way;
    std::optional<std::chrono::seconds> want;
  };
  for (const Case& each : {Case{"its own", 10, std::nullopt, std::nullopt},
                           Case{"too long", kTenYears, std::nullopt, seconds{30}},
                           Case{"under way, too long", 10, kTenYears, seconds{30}}}) {
    kube::Pod stale = pod("n1");
    stale.metadata.uid = each.what;
    stale.spec.termination_grace_period_seconds = each.own;
    stale.metadata.deletion_grace_period_seconds = each.under_way;
    if (each.under_way) stale.metadata.deletion_timestamp = now + seconds{*each.under_way};
    job->put_pod("train-before-0", std::make_shared<const kube::Pod>(stale));
    pods.end_stale_pods(*job);
    pods.end_stale_pods(*job);
    ASSERT_EQ(writer.effects.size(), 1U) << each.what;
    EXPECT_EQ(std::get<DeletePod>(writer.effects[0]).grace_period, each.want) << each.what;
    writer.effects.clear();
  }
  kube::Pod going = pod("n1");
  going.metadata.deletion_timestamp = now;
  going.metadata.deletion_grace_period_seconds = 30;
  pods.end_pod(*job, going, std::nullopt);
  EXPECT_EQ(asked(), "") << "it ends in time";
}

// The job was canceled in its grace time, so the end of that is not waited for.
TEST_F(PodWritesTest, ADeletionThatIsUnderWayIsShortened) {
  kube::Pod going = pod("n1");
  going.metadata.deletion_timestamp = now + seconds{25};
  going.metadata.deletion_grace_period_seconds = 25;
  pods.end_pod(*job, going, now + seconds{25});
  EXPECT_EQ(asked(), "");
  pods.end_pod(*job, going, now + seconds{5});
  ASSERT_EQ(writer.effects.size(), 1U);
  EXPECT_EQ(std::get<DeletePod>(writer.effects[0]).grace_period, seconds{5});
  EXPECT_EQ(asked(), "pod-delete");
}

// Nodes of a job are given away when this says that nothing of it is left. Said too early, it would
// give the nodes to another gang beside the old pods; never said, it would let a lost node keep the
// job alive forever.
TEST_F(PodWritesTest, APodIsLeftUntilItIsFinishedOrItsNodeIsGone) {
  EXPECT_FALSE(pods.has_pods_left(*job));
  kube::Pod done = pod("n1");
  done.status.phase = kube::PodPhase::kFailed;
  job->put_pod("train-x-0", std::make_shared<const kube::Pod>(done));
  job->put_pod("train-x-1", std::make_shared<const kube::Pod>(pod("n2")));
  EXPECT_FALSE(pods.has_pods_left(*job)) << "n2 is gone";
  job->put_pod("train-x-0", std::make_shared<const kube::Pod>(pod("n1")));
  EXPECT_TRUE(pods.has_pods_left(*job));
}

// The end was due 5 s ago, so the grace period would be negative. The pod may be deleted meanwhile
// by another client, or replaced (the UID of the request does not match): neither answer is a
// failure.
TEST_F(PodWritesTest, APodThatIsGoneIsNotDeletedAgain) {
  kube::Pod going = pod("n1");
  going.metadata.deletion_timestamp = now;
  pods.end_pod(*job, going, now);
  EXPECT_EQ(asked(), "") << "its deletion is under way";
  pods.end_pod(*job, pod("n1"), now - seconds{5});
  ASSERT_EQ(writer.effects.size(), 1U);
  EXPECT_EQ(std::get<DeletePod>(writer.effects[0]).grace_period, seconds{1})
      << "0 would remove the record of a process that may run";
  for (const base::Code code : {base::Code::kNotFound, base::Code::kConflict}) {
    pods.answered(PodDeleted{"pod-on-n1", "uid", base::Error{code, "no"}});
  }
  EXPECT_EQ(jobs.next_due(), base::kNever);
  EXPECT_EQ(counters.write_failures, 0);
}

// On n2, which is gone, no kubelet will ever confirm the end, so its pod is deleted with grace
// period 0.
TEST_F(PodWritesTest, APodIsEndedOnceAndAtOnceWhereItsNodeIsLost) {
  pods.end_pod(*job, pod("n1"), now + seconds{5});
  pods.end_pod(*job, pod("n1"), now + seconds{5});
  ASSERT_EQ(writer.effects.size(), 1U);
  EXPECT_EQ(std::get<DeletePod>(writer.effects[0]).grace_period, seconds{5});
  EXPECT_EQ(asked(), "pod-delete");
  pods.end_pod(*job, pod("n2"), now + seconds{5});
  ASSERT_EQ(writer.effects.size(), 1U);
  EXPECT_EQ(std::get<DeletePod>(writer.effects[0]).grace_period, seconds{0});
  EXPECT_EQ(asked(), "pod-delete");
  pods.answered(PodDeleted{"pod-on-n1", "uid", base::Error{base::Code::kUnavailable, "away"}});
  EXPECT_GT(jobs.next_due(), now);
  pods.end_pod(*job, pod("n1"), std::nullopt);
  EXPECT_EQ(asked(), "pod-delete") << "it failed, so it is tried again";
}

}  // namespace
}  // namespace control
