#include "translation/batch_job_translation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <nlohmann/json.hpp>

#include "api/wellknown.h"
#include "translation/judged_spec.h"

namespace control {
namespace {

using nlohmann::json;
using std::chrono::minutes;
using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using Phase = BatchView::Phase;

// 2026-01-01T00:00:00Z.
constexpr base::Instant kNow{base::Duration{seconds{1'767'225'600}}};

// As the API server stores it: with the defaults that it writes into each template.
json pod_spec() {
  return {{"restartPolicy", "Never"},
          {"schedulerName", "default-scheduler"},
          {"terminationGracePeriodSeconds", 30},
          {"containers",
           json::array({{{"name", "main"},
                         {"image", "busybox"},
                         {"resources", {{"requests", {{"cpu", "1500m"}, {"memory", "1Gi"}}}}}}})}};
}

// Four pods, all at once, each with 1.5 CPUs and 1 GiB. `more` is merged into the object,
// `more_of_pod` into the spec of its template; a null takes a field out.
kube::BatchJob batch(const json& more = nullptr, const json& more_of_pod = nullptr) {
  json object{{"apiVersion", "batch/v1"},
              {"kind", "Job"},
              {"metadata",
               {{"name", "train"},
                {"namespace", "team-a"},
                {"uid", "u-1"},
                {"annotations", {{"kubegang.io/partition", "a,b"}, {"kubegang.io/qos", "high"}}}}},
              {"spec",
               {{"managedBy", "kubegang.io/job"},
                {"completionMode", "Indexed"},
                {"parallelism", 4},
                {"completions", 4},
                {"template", {{"metadata", {{"labels", {{"app", "x"}}}}}, {"spec", pod_spec()}}}}}};
  if (more.is_object()) object.merge_patch(more);
  if (more_of_pod.is_object()) object["spec"]["template"]["spec"].merge_patch(more_of_pod);
  return kube::decode<kube::BatchJob>(object).value();
}

// 1500m are rounded up to 2 CPUs, so 1 GiB is 512 MiB for each. The defaults that the API server
// writes into every template (schedulerName, a grace period of 30 s) are taken out again.
TEST(BatchJobTranslation, APodIsATask) {
  json raw = kube::encode(batch({{"spec", {{"activeDeadlineSeconds", 90}}}}));
  const BatchVerdict verdict =
      translate_batch_job(kube::decode<kube::BatchJob>(raw).value(), {.number = 0});
  ASSERT_THAT(verdict.problems, IsEmpty());
  const kube::Job& job = verdict.job;
  EXPECT_EQ(job.metadata.name, "train");
  EXPECT_EQ(job.metadata.labels.at("kubegang.io/attempt"), "0");
  ASSERT_EQ(job.metadata.owner_references.size(), 1U);
  EXPECT_EQ(job.metadata.owner_references[0], (kube::OwnerReference{.api_version = "batch/v1",
                                                                    .kind = "Job",
                                                                    .name = "train",
                                                                    .uid = "u-1",
                                                                    .controller = true,
                                                                    .block_owner_deletion = true}));
  EXPECT_THAT(job.spec.partitions, ElementsAre("a", "b"));
  EXPECT_EQ(job.spec.schedule.qos, "high");
  EXPECT_EQ(job.spec.schedule.time_limit, seconds{90});
  EXPECT_EQ(job.spec.resources.tasks, 4);
  EXPECT_EQ(job.spec.resources.cpus_per_task, 2);
  EXPECT_EQ(job.spec.resources.memory_per_cpu, kube::Bytes{512LL << 20});
  EXPECT_FALSE(job.spec.resources.nodes.has_value()) << "as few as hold them";
  EXPECT_EQ(job.spec.pod_policy, kube::PodPolicy::kPerTask);
  EXPECT_EQ(job.spec.network, kube::JobNetwork::kNone);
  const json pod = job.spec.pod_template.json();
  EXPECT_EQ(pod["metadata"]["labels"]["app"], "x");
  EXPECT_EQ(pod["metadata"]["labels"]["batch.kubernetes.io/job-name"], "train");
  EXPECT_FALSE(pod["spec"].contains("schedulerName"));
  EXPECT_FALSE(pod["spec"].contains("terminationGracePeriodSeconds"));
  EXPECT_EQ(pod["spec"]["containers"][0]["env"][0]["name"], "JOB_COMPLETION_INDEX");
}

// A number or a range, as sbatch --nodes has it. The batch API has no field for it.
TEST(BatchJobTranslation, AnAnnotationSaysOnHowManyNodes) {
  for (const auto& [text, nodes] : {std::pair{"2", kube::JobNodes{2, 2}}, {"2-4", {2, 4}}}) {
    const json more{{"metadata", {{"annotations", {{"kubegang.io/nodes", text}}}}}};
    EXPECT_EQ(translate_batch_job(batch(more), {}).job.spec.resources.nodes, nodes);
  }
}

// Devices are counted by node, so pods with devices are even: three that are left of four on two
// nodes are one on each of three.
TEST(BatchJobTranslation, PodsWithDevicesThatAreLeftStayEven) {
  const auto nodes_of_attempt = [](const char* limit) {
    json object{{"metadata", {{"annotations", {{"kubegang.io/nodes", "2"}}}}},
                {"spec", {{"parallelism", 4}, {"completions", 8}}}};
    object["spec"]["template"]["spec"]["containers"] = json::array(
        {{{"name", "main"}, {"image", "x"}, {"resources", {{"limits", {{limit, 1}}}}}}});
    const BatchVerdict verdict =
        translate_batch_job(batch(object), {.number = 1, .succeeded = {0, 1, 2, 3, 4}});
    EXPECT_THAT(verdict.problems, IsEmpty());
    return verdict.job.spec.resources.nodes.value_or(kube::JobNodes{});
  };
  EXPECT_EQ(nodes_of_attempt("nvidia.com/gpu"), (kube::JobNodes{3, 3}));
  EXPECT_EQ(nodes_of_attempt("cpu"), (kube::JobNodes{2, 2}));
}

// The attempts before have used 30 s of the deadline of 90 s. The number is part of the name, so
// the objects of two attempts exist side by side. The back-off becomes a begin time.
TEST(BatchJobTranslation, AnotherAttemptIsAnotherJobWithWhatIsLeftOfTheTime) {
  const kube::BatchJob object = batch({{"spec", {{"activeDeadlineSeconds", 90}}}});
  const kube::Job again =
      translate_batch_job(object,
                          {.number = 2, .failures = 1, .ran = seconds{30}, .not_before = kNow})
          .job;
  EXPECT_THAT(again.metadata.name, HasSubstr("train-"));
  EXPECT_EQ(again.metadata.labels.at("kubegang.io/attempt"), "2");
  EXPECT_EQ(again.metadata.labels.at("kubegang.io/failures"), "1");
  EXPECT_EQ(again.spec.schedule.time_limit, seconds{60});
  EXPECT_EQ(again.spec.schedule.begin_time, kNow);
  EXPECT_NE(translate_batch_job(object, {.number = 1}).job.metadata.name, again.metadata.name);
}

// Two at a time of what is left. Those that have succeeded are not run again, and the last attempt
// needs no more nodes than it has pods.
TEST(BatchJobTranslation, MorePodsThanRunAtOnceFollowOneAnother) {
  const kube::BatchJob object =
      batch({{"metadata", {{"annotations", {{"kubegang.io/nodes", "2-4"}}}}},
             {"spec", {{"parallelism", 2}, {"completions", 6}}}});
  const kube::JobSpec first = translate_batch_job(object, {}).job.spec;
  EXPECT_EQ(first.resources.tasks, 2);
  EXPECT_EQ(first.completions, 6);
  EXPECT_EQ(first.completed_indexes, "");
  EXPECT_EQ(first.resources.nodes, (kube::JobNodes{.min = 2, .max = 4}));
  const kube::JobSpec last =
      translate_batch_job(object, {.number = 1, .succeeded = {0, 1, 2, 4, 5}}).job.spec;
  EXPECT_EQ(last.resources.tasks, 1);
  EXPECT_EQ(last.completions, 6);
  EXPECT_EQ(last.completed_indexes, "0-2,4-5");
  EXPECT_EQ(last.resources.nodes, (kube::JobNodes{.min = 1, .max = 1}));
}

// Nine at once, but four to succeed: a gang of nine would wait for nodes on which five pods have no
// work.
TEST(BatchJobTranslation, NoMorePodsRunThanHaveToSucceed) {
  const kube::JobSpec spec =
      translate_batch_job(batch({{"spec", {{"parallelism", 9}}}}), {}).job.spec;
  EXPECT_EQ(spec.resources.tasks, 4);
  EXPECT_FALSE(spec.completions.has_value());
}

// A work queue: the pods share out the work among themselves, and all of them end when it is done.
TEST(BatchJobTranslation, WithoutCompletionsAllPodsHaveToSucceed) {
  const json queue{{"completions", nullptr}, {"parallelism", 3}, {"completionMode", "NonIndexed"}};
  const kube::BatchJobSpec spec = batch({{"spec", queue}}).spec;
  EXPECT_EQ(translate_batch_job(batch({{"spec", queue}}), {}).job.spec.resources.tasks, 3);
  EXPECT_EQ(batch_status_after(spec, {}, {.phase = Phase::kComplete}, kNow).succeeded, 3);
}

// Names of kubegang Jobs become names of hosts: DNS labels that begin with a letter. 52 characters
// leave room for what is added for pods. The last line is for a name that a kubegang Job has
// already, which is not of this batch Job.
TEST(BatchJobTranslation, NamesThatOursMayNotHaveGetAnother) {
  for (const char* name : {"0digit", "with.dots",
                           "a-name-of-sixty-three-characters-which-is-the-longest-that-there"}) {
    const std::string made =
        translate_batch_job(batch({{"metadata", {{"name", name}}}}), {}).job.metadata.name;
    EXPECT_NE(made, name);
    EXPECT_LE(made.size(), 52U) << made;
    EXPECT_TRUE(made[0] >= 'a' && made[0] <= 'z') << made;
    EXPECT_EQ(made.find('.'), std::string::npos) << made;
  }
  EXPECT_NE(translate_batch_job(batch(), {.plain_name = false}).job.metadata.name, "train");
}

// Returns a container for each amount, which it requests.
json containers(const char* resource, const std::vector<std::string>& amounts) {
  json list = json::array();
  for (const std::string& amount : amounts) {
    list.push_back({{"name", "c" + std::to_string(list.size())},
                    {"image", "busybox"},
                    {"resources", {{"requests", {{resource, amount}}}}}});
  }
  return {{"containers", list}};
}

// The bounds themselves are legal: 65,535 CPUs as the sum of two containers, and 8Pi, which is 2^53
// bytes. Amounts above them are in the table of refusals below.
TEST(BatchJobTranslation, APodMayHaveAsManyCpusAsAJobCanSay) {
  const auto cpus = translate_batch_job(batch(nullptr, containers("cpu", {"65534", "1"})), {});
  ASSERT_THAT(cpus.problems, IsEmpty());
  EXPECT_EQ(cpus.job.spec.resources.cpus_per_task, 65'535);
  const auto memory = translate_batch_job(batch(nullptr, containers("memory", {"8Pi"})), {});
  ASSERT_THAT(memory.problems, IsEmpty());
  EXPECT_EQ(memory.job.spec.resources.memory_per_cpu, kube::Bytes{std::int64_t{1} << 53U});
}

// The API server takes any deadline that is not negative; times count microseconds.
TEST(BatchJobTranslation, ADeadlineBeyondAllTimeIsALongOne) {
  const json spec{{"activeDeadlineSeconds", std::numeric_limits<std::int64_t>::max()}};
  const BatchVerdict verdict = translate_batch_job(batch({{"spec", spec}}), {.ran = seconds{30}});
  ASSERT_THAT(verdict.problems, IsEmpty());
  EXPECT_GT(verdict.job.spec.schedule.time_limit, std::chrono::hours{24 * 365});
}

// Each case has exactly one problem, so no check answers for another. Sums are the danger: 9P and
// 9P are above 64 bits, and 4,294,967,297 is 1 in 32 bits.
TEST(BatchJobTranslation, WhatCannotBeRunIsSaidInASentence) {
  struct Case {
    json more, more_of_pod;
    const char* sentence;
  };
  const Case cases[] = {
      {{{"spec", {{"completions", 100'001}}}}, nullptr, "use at most 100000"},
      {{{"spec", {{"completions", 0}}}}, nullptr, "spec.completions: a gang has at least 1 pod"},
      {{{"spec", {{"completions", 0}, {"parallelism", 0}}}}, nullptr, "spec.suspend"},
      {{{"spec", {{"backoffLimitPerIndex", 1}}}}, nullptr, "spec.backoffLimitPerIndex"},
      {{{"spec", {{"podFailurePolicy", {{"rules", json::array({{{"action", "FailJob"}}})}}}}}},
       nullptr,
       "spec.podFailurePolicy"},
      {{{"metadata", {{"annotations", {{"kubegang.io/nodes", "5"}}}}}}, nullptr, "1 to 4"},
      {{{"metadata", {{"annotations", {{"kubegang.io/nodes", "two"}}}}}}, nullptr, "2-4"},
      {nullptr, containers("cpu", {"4294967297"}), "4294967297 CPUs"},
      {nullptr, containers("cpu", {"9P", "9P"}), "more than 65535"},
      {nullptr, containers("cpu", {"9223372036854775807m"}), "9223372036854776 CPUs"},
      {nullptr, containers("memory", {"8Pi", "1"}), "8Pi of memory"},
      {nullptr, {{"restartPolicy", "Always"}}, "restartPolicy"},
      {nullptr, {{"affinity", {{"podAffinity", json::object({{"x", 1}})}}}}, "affinity"},
      {nullptr, {{"hostPID", true}}, "hostPID"},
      {nullptr, {{"schedulerName", "other"}}, "schedulerName"},
  };
  for (const Case& each : cases) {
    const BatchVerdict verdict = translate_batch_job(batch(each.more, each.more_of_pod), {});
    ASSERT_EQ(verdict.problems.size(), 1U) << each.sentence;
    EXPECT_THAT(verdict.problems[0], HasSubstr(each.sentence));
  }
}

// A batch Job has no spec.placement, spec.schedule or spec.control.
TEST(BatchJobTranslation, SentencesNameFieldsThatABatchJobHas) {
  const json more{{"affinity", {{"podAffinity", json::object({{"x", 1}})}}},
                  {"nodeName", "n1"},
                  {"activeDeadlineSeconds", 60},
                  {"schedulingGates", json::array({{{"name", "x"}}})}};
  EXPECT_THAT(
      translate_batch_job(batch(nullptr, more), {}).problems,
      testing::UnorderedElementsAre(
          "spec.template.spec.affinity: is not supported; use the template's nodeSelector",
          "spec.template.spec.nodeName: \"n1\": the scheduler chooses the nodes; use the "
          "template's nodeSelector",
          "spec.template.spec.activeDeadlineSeconds: goes on while a pod is frozen; use "
          "spec.activeDeadlineSeconds of the Job",
          "spec.template.spec.schedulingGates: are not supported: a gang starts as a whole; use "
          "spec.suspend of the Job"));
}

// JobSet's webhook and the MPI operator write OnFailure where the author wrote nothing. A container
// that kubelet restarted would come back without its gang, so the gang is tried again instead, with
// a note to the author. The pods are made of the whole template once more, which must say the same.
TEST(BatchJobTranslation, OnFailureIsRunAsNeverAndTold) {
  const kube::BatchJob on_failure = batch(nullptr, {{"restartPolicy", "OnFailure"}});
  const BatchVerdict verdict = translate_batch_job(on_failure, {});
  ASSERT_THAT(verdict.problems, IsEmpty());
  EXPECT_EQ(verdict.job, translate_batch_job(batch(), {}).job);
  EXPECT_THAT(run_otherwise(on_failure), HasSubstr("OnFailure is run as Never"));
  EXPECT_EQ(run_otherwise(batch()), "");
  const auto made = pod_template_of(on_failure, judged_template(on_failure.spec.pod_template));
  ASSERT_TRUE(made.ok()) << made.error().message;
  EXPECT_EQ(made->json()["spec"]["restartPolicy"], "Never");
}

// A pod that is alone may start MPI's processes beside itself, in which it is a task all the same.
TEST(BatchJobTranslation, MpirunIsForOnePodOnly) {
  const json mpirun{{"command", {"/bin/sh", "-c"}}, {"args", {"# srun\nmpirun -np 4 ./a"}}};
  const auto problems = [&](int pods) {
    kube::BatchJob object = batch({{"spec", {{"parallelism", pods}, {"completions", pods}}}});
    json pod_template = object.spec.pod_template.json();
    pod_template["spec"]["containers"][0].update(mpirun);
    object.spec.pod_template = kube::RawJson{pod_template};
    return translate_batch_job(object, {}).problems;
  };
  EXPECT_THAT(problems(1), IsEmpty());
  EXPECT_THAT(problems(2), ElementsAre(HasSubstr("the command calls mpirun")));
}

// A gang that loses a member to a disruption is requeued and has not failed, with or without this
// rule. Many Jobs that were written for other clusters have this rule; refused, they would have to
// be edited.
TEST(BatchJobTranslation, RulesAboutDisruptionsChangeNothing) {
  const json rule{{"action", "Ignore"},
                  {"onPodConditions", json::array({{{"type", "DisruptionTarget"}}})}};
  const json more{{"spec", {{"podFailurePolicy", {{"rules", json::array({rule})}}}}}};
  EXPECT_THAT(translate_batch_job(batch(more), {}).problems, IsEmpty());
}

// --- the status ---

// Returns the types of all conditions that are true, in their order, each with a space after it.
std::string said(const kube::BatchJobStatus& status) {
  std::string text;
  for (const kube::Condition& condition : status.conditions) {
    if (condition.status == kube::ConditionStatus::kTrue) text += condition.type + " ";
  }
  return text;
}

// A whole life: it waits, runs, is preempted and requeued, runs again and completes. All steps
// together must be changes that the API server takes.
TEST(BatchJobStatus, FollowsTheGang) {
  const kube::BatchJobSpec spec = batch().spec;
  kube::BatchJobStatus status;
  const auto step = [&](const BatchView& view, base::Duration at) {
    status = batch_status_after(spec, status, view, kNow + at);
    EXPECT_EQ(batch_status_after(spec, status, view, kNow + at + seconds{5}), status)
        << "nothing new";
  };
  // Each view is applied twice, 5 s apart: a status that differs only by the time would be written
  // forever.
  step({.phase = Phase::kWaiting, .reason = "Resources", .message = "no nodes"}, seconds{0});
  EXPECT_EQ(said(status), "kubegang.io/Waiting ");
  EXPECT_FALSE(status.start_time.has_value());
  step({.phase = Phase::kRunning, .since = kNow + seconds{7}, .active = 4, .ready = 3}, seconds{9});
  EXPECT_EQ(said(status), "");
  EXPECT_EQ(status.active, 4);
  EXPECT_EQ(status.ready, 3);
  EXPECT_EQ(status.start_time, kNow + seconds{7});
  // Requeued after a preemption.
  step({.phase = Phase::kWaiting, .reason = "Priority", .message = "x"}, seconds{20});
  EXPECT_EQ(status.active, 0);
  EXPECT_EQ(status.ready, 0);
  EXPECT_EQ(status.failed, 0);
  EXPECT_EQ(status.start_time, kNow + seconds{7});
  step({.phase = Phase::kRunning, .since = kNow + seconds{30}, .active = 4, .ready = 4},
       seconds{31});
  EXPECT_EQ(status.start_time, kNow + seconds{7});
  // startTime is set once: the API server refuses a change while the Job is not suspended, so a
  // requeue does not show in it.
  step({.phase = Phase::kComplete, .since = kNow + seconds{60}}, seconds{61});
  EXPECT_EQ(said(status), "SuccessCriteriaMet Complete ");
  EXPECT_EQ(status.succeeded, 4);
  EXPECT_EQ(status.completed_indexes, "0-3");
  EXPECT_EQ(status.completion_time, kNow + seconds{60});
  EXPECT_EQ(status.active, 0);
  step({.phase = Phase::kFailed, .reason = "x"}, seconds{70});
  EXPECT_EQ(said(status), "SuccessCriteriaMet Complete ") << "never changes again";
}

// In the order of the rules: the batch group takes the first one that is met.
TEST(BatchJobTranslation, ASuccessPolicyIsThatOfTheGang) {
  const json rules = json::array({{{"succeededIndexes", "0,2-3"}}, {{"succeededCount", 2}}});
  const BatchVerdict verdict =
      translate_batch_job(batch({{"spec", {{"successPolicy", {{"rules", rules}}}}}}), {});
  ASSERT_THAT(verdict.problems, IsEmpty());
  EXPECT_EQ(verdict.job.spec.lifecycle.success_policy,
            (kube::SuccessPolicy{{{"0,2-3", {}}, {"", 2}}}));
}

// Counts of pods that follow one another. A new leader may know of fewer for a moment. The API
// server refuses a count that goes back, and with it the whole status. Only an Indexed Job reports
// indexes.
TEST(BatchJobStatus, CountsSuccessesWhileItsPodsFollowOneAnother) {
  kube::BatchJobSpec spec = batch({{"spec", {{"parallelism", 2}, {"completions", 6}}}}).spec;
  kube::BatchJobStatus status;
  const auto see = [&](Phase phase, const std::string& succeeded) {
    status = batch_status_after(
        spec, status, {.phase = phase, .since = kNow, .succeeded_indexes = succeeded}, kNow);
  };
  see(Phase::kRunning, "0-1,3");
  EXPECT_EQ(status.succeeded, 3);
  EXPECT_EQ(status.completed_indexes, "0,1,3");
  see(Phase::kWaiting, "0");
  EXPECT_EQ(status.succeeded, 3);
  EXPECT_EQ(status.completed_indexes, "0,1,3");
  see(Phase::kComplete, "0-5");
  EXPECT_EQ(status.succeeded, 6);
  EXPECT_EQ(status.completed_indexes, "0-5");
  status = {};
  spec.completion_mode = "NonIndexed";
  see(Phase::kRunning, "0-1,3");
  EXPECT_EQ(status.succeeded, 3);
  EXPECT_EQ(status.completed_indexes, "");
}

// Index 0 alone was asked for; the two others that had succeeded by then are reported as well.
TEST(BatchJobStatus, ByASuccessPolicyCountsThosePodsThatSucceeded) {
  const json rules = json::array({{{"succeededIndexes", "0"}}});
  const kube::BatchJobSpec spec = batch({{"spec", {{"successPolicy", {{"rules", rules}}}}}}).spec;
  const auto status = batch_status_after(
      spec, {}, {.phase = Phase::kComplete, .since = kNow, .succeeded_indexes = "0,2-3"}, kNow);
  EXPECT_EQ(said(status), "SuccessCriteriaMet Complete ");
  EXPECT_EQ(status.conditions[0].reason, "SuccessPolicy");
  EXPECT_EQ(status.succeeded, 3);
  EXPECT_EQ(status.completed_indexes, "0,2,3") << "as the batch group writes two in a row";
}

// It never ran, so the start time is that of the end. A completion time would call it a success.
TEST(BatchJobStatus, OfAFailureIsTerminalWithItsTarget) {
  kube::BatchJobStatus status = batch_status_after(
      batch().spec, {},
      {.phase = Phase::kFailed, .reason = "BackoffLimitExceeded", .message = "m", .failed = 1},
      kNow);
  EXPECT_EQ(said(status), "FailureTarget Failed ");
  EXPECT_EQ(status.failed, 1);
  EXPECT_EQ(status.start_time, kNow) << "demanded of whatever has ended";
  EXPECT_FALSE(status.completion_time.has_value());
}

// Only the end of a short life is written.
TEST(BatchJobStatus, OfAnEndHasTheStartThatWasNotTold) {
  const auto ended = [](const kube::BatchJobStatus& stored, base::Instant start) {
    return batch_status_after(batch().spec, stored,
                              {.phase = Phase::kComplete, .since = kNow, .start = start}, kNow);
  };
  EXPECT_EQ(ended({}, kNow - seconds{7}).start_time, kNow - seconds{7});
  EXPECT_EQ(ended({}, kNow - seconds{7}).completion_time, kNow);
  EXPECT_EQ(ended({.start_time = kNow - seconds{9}}, kNow - seconds{7}).start_time,
            kNow - seconds{9})
      << "as it was told";
  EXPECT_EQ(ended({}, kNow + seconds{1}).start_time, kNow);
}

// While pods are left (kStopping) the Job is not called suspended yet.
TEST(BatchJobStatus, OfASuspendedJobHasNoStartTimeOnceItsPodsAreGone) {
  const kube::BatchJobSpec spec = batch({{"spec", {{"suspend", true}}}}).spec;
  kube::BatchJobStatus status = batch_status_after(
      spec, {}, {.phase = Phase::kRunning, .since = kNow, .active = 4, .ready = 4}, kNow);
  status = batch_status_after(spec, status, {.phase = Phase::kStopping, .active = 2}, kNow);
  EXPECT_EQ(status.active, 2);
  EXPECT_EQ(status.start_time, kNow);
  EXPECT_EQ(said(status), "");
  status = batch_status_after(spec, status, {.phase = Phase::kSuspended}, kNow);
  EXPECT_EQ(status.active, 0);
  EXPECT_FALSE(status.start_time.has_value());
  EXPECT_EQ(said(status), "Suspended ");
  status = batch_status_after(batch().spec, status,
                              {.phase = Phase::kRunning, .since = kNow + minutes{1}, .active = 4},
                              kNow + minutes{1});
  EXPECT_EQ(status.start_time, kNow + minutes{1});
  EXPECT_EQ(said(status), "");
}

// As the batch group's controller, which people and Kubernetes' own tests rely on.
TEST(BatchJobStatus, CountsReadyAndTerminatingPodsFromTheBeginning) {
  const kube::BatchJobSpec spec = batch().spec;
  for (const Phase phase : {Phase::kWaiting, Phase::kSuspended, Phase::kFailed}) {
    const kube::BatchJobStatus status =
        batch_status_after(spec, {}, {.phase = phase, .reason = "r", .message = "m"}, kNow);
    EXPECT_EQ(status.ready, 0);
    EXPECT_EQ(status.terminating, 0);
  }
  const kube::BatchJobStatus status = batch_status_after(
      spec, {},
      {.phase = Phase::kStopping, .since = kNow, .active = 1, .ready = 1, .terminating = 3}, kNow);
  EXPECT_EQ(status.active, 1);
  EXPECT_EQ(status.ready, 1);
  EXPECT_EQ(status.terminating, 3);
}

// The sentence is at a place where the user looks: the object that the user has written. It is
// taken back once a kubegang Job runs.
TEST(BatchJobStatus, SaysWhyNoJobCanBeMade) {
  kube::BatchJobStatus status = batch_status_after(
      batch().spec, {},
      {.phase = Phase::kRefused, .reason = "NotSupported", .message = "spec.x: no"}, kNow);
  const auto* accepted = kube::find_condition(status.conditions, kube::kBatchAccepted);
  ASSERT_NE(accepted, nullptr);
  EXPECT_EQ(accepted->status, kube::ConditionStatus::kFalse);
  EXPECT_EQ(accepted->message, "spec.x: no");
  status =
      batch_status_after(batch().spec, status, {.phase = Phase::kRunning, .since = kNow}, kNow);
  EXPECT_EQ(said(status), "kubegang.io/Accepted ");
}

}  // namespace
}  // namespace control
