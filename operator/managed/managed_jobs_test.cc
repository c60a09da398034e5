// One batch Job, step by step: which kubegang Jobs are made and deleted for it, and what its status
// says. (Whole lives against an API server: world_tests/managed_jobs_test.cc.)
#include "operator/managed/managed_jobs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "api/wellknown.h"
#include "kube/testing/manual_clock.h"

namespace control {
namespace {

using std::chrono::minutes;
using std::chrono::seconds;
using ::testing::IsEmpty;
using ::testing::SizeIs;

// Goal: a batch Job has one kubegang Job at a time, follows it to its end, and says so in a status
// that the API server takes. Method: ManagedJobs alone in virtual time; the test is the watch
// (show), the writer (due, answer) and the scheduler's part (runs, ends). "one" and "two" are UIDs
// of the kubegang Jobs.
class ManagedJobsTest : public testing::Test {
 protected:
  ManagedJobsTest() {
    batch_.metadata.name = "train";
    batch_.metadata.ns = "team-a";
    batch_.metadata.uid = "batch";
    batch_.metadata.creation_timestamp = now_;
    batch_.spec.managed_by = std::string{kube::kManagedBy};
    batch_.spec.completion_mode = "Indexed";
    batch_.spec.parallelism = batch_.spec.completions = 2;
    const nlohmann::json container{{"name", "main"}, {"image", "none"}};
    batch_.spec.pod_template = kube::RawJson{
        nlohmann::json{{"spec", {{"restartPolicy", "Never"}, {"containers", {container}}}}}};
    budget_.restore(now_);
  }
  // Shows the object as the informer would.
  void show(const kube::BatchJob& object) {
    Changes<kube::BatchJob> changes;
    changes[kube::key_of(object.metadata)] = std::make_shared<const kube::BatchJob>(object);
    managed_.observe(changes);
  }
  // Each look of the watch is a newer version.
  void show() {
    batch_.metadata.resource_version = std::to_string(++version_);
    show(batch_);
  }
  // Returns the writes that are due; those of its status are answered as stored.
  std::vector<Effect> due() {
    budget_.refill(now_, is_busy_);
    std::vector<Effect> others;
    for (Effect& effect : managed_.due(budget_, room_, now_)) {
      if (const auto* patch = std::get_if<PatchStatus<kube::BatchJob>>(&effect)) {
        ++writes_;
        kube::BatchJob stored = *patch->to;
        stored.metadata.resource_version = std::to_string(++version_);
        batch_.status = stored.status;
        auto* mirror = managed_.find_status("batch");
        (void)mirror->answered(stored, base::Result<kube::BatchJob>{stored}, now_);
        managed_.look_again("batch");
      } else {
        others.push_back(std::move(effect));
      }
    }
    return others;
  }
  // Does the same until nothing but the time brings more.
  std::vector<Effect> all_due() {
    std::vector<Effect> all;
    // Ten rounds are 30 s, enough for every wait of a test but a back-off.
    for (int i = 0; i < 10; ++i) {
      for (Effect& effect : due()) all.push_back(std::move(effect));
      now_ += seconds{3};  // what only informs is gathered
    }
    return all;
  }
  // Returns the Job that was asked for, as the API server answers.
  kube::Job made(const std::vector<Effect>& effects, const std::string& uid) {
    EXPECT_THAT(effects, SizeIs(1));
    const auto* create = effects.empty() ? nullptr : std::get_if<CreateJob>(&effects.front());
    EXPECT_NE(create, nullptr);
    kube::Job job = create == nullptr ? kube::Job{} : *create->job;
    job.metadata.uid = uid;
    job.metadata.resource_version = std::to_string(++version_);
    return job;
  }
  // The creation succeeded.
  void answer(const kube::Job& job) {
    managed_.answered(JobCreated{.owner_uid = "batch", .result = job}, now_);
  }
  // It has nodes, and one pod.
  void runs(kube::Job job, bool is_ready) {
    job.status.state = kube::JobState::kRunning;
    job.status.allocation = kube::Allocation{};
    job.status.conditions = {{.type = std::string{kube::kReady},
                              .status = kube::ConditionStatus::kFalse,
                              .last_transition_time = kube::ManualClock::kStart}};
    JobRecord record;
    record.key = kube::key_of(job.metadata);
    record.uid = job.metadata.uid;
    record.status = JobMirror{job};
    record.object = std::make_shared<const kube::Job>(job);
    PodSlot slot;
    slot.name = "train-0";
    slot.node = "n1";
    record.take_slots({slot});
    kube::Pod pod;
    pod.metadata.name = slot.name;
    pod.status.phase = kube::PodPhase::kRunning;
    if (is_ready) {
      pod.status.conditions = {{.type = "Ready", .status = kube::ConditionStatus::kTrue}};
    }
    record.put_pod(slot.name, std::make_shared<const kube::Pod>(pod));
    managed_.observe_job(record);
  }
  // Returns how many writes of its status there are after that much more time.
  int writes_after(base::Duration time) {
    now_ += time;
    (void)due();
    return writes_;
  }
  // It ends now, with the given state, after it has run for 10 s.
  void ends(kube::Job& job, kube::JobState state) {
    job.status.state = state;
    job.status.end_time = now_;
    job.status.run_time = kube::RunTime{seconds{10}, now_};
    managed_.observe_ended(job);
  }
  // Shows the end by another leader, which has seen more: etcd was restored since.
  void another_leader_completes() {
    batch_.status = batch_status_after(batch_.spec, batch_.status,
                                       {.phase = BatchView::Phase::kComplete, .since = now_}, now_);
    show();
  }
  // Returns "True Reason" of the batch Job's condition; "" if it has none.
  std::string says(std::string_view type) const {
    const auto* found = kube::find_condition(batch_.status.conditions, type);
    if (found == nullptr) return "";
    return std::string{kube::to_string(found->status)} + " " + found->reason;
  }

  base::Instant now_ = kube::ManualClock::kStart;
  int version_ = 0;
  kube::BatchJob batch_;
  std::vector<std::string> events_;
  const Report report_{{.event = [this](const kube::ObjectReference&, bool, const std::string& why,
                                        const std::string&) { events_.push_back(why); }}};
  InformBudget budget_;
  bool is_busy_ = false;  // more important writes wait
  std::size_t room_ = 64;
  int writes_ = 0;  // of its status
  WholeTemplates templates_;
  ManagedJobs managed_{report_, templates_};
};

// Two Jobs for one batch Job would run its program twice.
TEST_F(ManagedJobsTest, MakesOneJobAndNotASecondWhileTheWatchLags) {
  show();
  const kube::Job job = made(due(), "one");
  EXPECT_EQ(job.metadata.name, "train");
  EXPECT_EQ(kube::controller_of(job.metadata)->uid, "batch");
  EXPECT_EQ(job.metadata.labels.at(std::string{kube::kLabelAttempt}), "0");
  show();
  EXPECT_THAT(due(), IsEmpty()) << "the creation is under way";
  answer(job);
  EXPECT_THAT(due(), IsEmpty()) << "it was made, though no watch has shown it";
}

// Made and deleted again before any watch showed it.
TEST_F(ManagedJobsTest, AJobThatIsNeverSeenIsMadeAgain) {
  show();
  answer(made(due(), "one"));
  (void)due();
  // A creation that was answered and that no watch has shown counts as undone after 30 s.
  now_ += seconds{31};
  show();
  EXPECT_THAT(due(), SizeIs(1));
}

// A gang that starts in seconds is reported once, when its pods are ready, and not at each step on
// the way: with thousands of Jobs each write counts.
TEST_F(ManagedJobsTest, AStartIsToldOnceItsPodsAreReady) {
  show();
  const kube::Job job = made(due(), "one");
  answer(job);
  EXPECT_EQ(writes_after(seconds{5}), 0) << "it is on its way into the queue";
  runs(job, false);
  EXPECT_EQ(writes_after(seconds{4}), 0);
  runs(job, true);
  EXPECT_EQ(writes_after(seconds{0}), 1);
  EXPECT_EQ(batch_.status.active, 1);
  EXPECT_EQ(batch_.status.ready, 1);
  EXPECT_EQ(batch_.status.start_time, kube::ManualClock::kStart);
  EXPECT_EQ(says(kube::kBatchWaiting), "") << "it never was there";
}

// For example, an image is pulled.
TEST_F(ManagedJobsTest, APodThatIsNotReadyForLongIsTold) {
  show();
  const kube::Job job = made(due(), "one");
  answer(job);
  runs(job, false);
  EXPECT_EQ(writes_after(seconds{9}), 0);
  EXPECT_EQ(writes_after(seconds{1}), 1);
  EXPECT_EQ(batch_.status.active, 1);
  EXPECT_EQ(batch_.status.ready, 0);
  // The change to ready comes right after a write, so it waits until the next may follow.
  runs(job, true);
  EXPECT_EQ(writes_after(seconds{0}), 1);
  EXPECT_EQ(writes_after(seconds{3}), 2);
}

// It then waits more likely for the API server.
TEST_F(ManagedJobsTest, APodThatIsNotReadyIsToldLaterWhileOtherWritesWait) {
  show();
  const kube::Job job = made(due(), "one");
  answer(job);
  is_busy_ = true;
  runs(job, false);
  // Ten seconds were enough in the test above; now it is a minute.
  EXPECT_EQ(writes_after(seconds{10}), 0);
  EXPECT_EQ(writes_after(seconds{49}), 0);
  EXPECT_EQ(writes_after(seconds{1}), 1);
}

// Under load the budget is empty: what only informs takes a place that is free, if there is one.
TEST_F(ManagedJobsTest, AStartGivesWayToWritesForWhichPodsWait) {
  show();
  const kube::Job job = made(due(), "one");
  answer(job);
  now_ += seconds{5};
  runs(job, true);
  const auto write_with = [&](std::size_t room) {
    while (budget_.has_one()) budget_.spend_one();
    return managed_.due(budget_, room, now_);
  };
  EXPECT_THAT(write_with(0), IsEmpty());
  // It looks again by itself, since nothing else would bring it back.
  EXPECT_EQ(managed_.next_due(now_), now_ + InformBudget::kLookAgain);
  EXPECT_THAT(write_with(0), IsEmpty());
  EXPECT_THAT(write_with(1), SizeIs(1));
  EXPECT_THAT(write_with(1), IsEmpty()) << "it is under way";
}

// Thousands of batch Jobs were made while the operator was away. Each creation of a kubegang Job is
// a write like any other, in the order in which they were found to be missing. One that has been
// suspended meanwhile gets none.
TEST_F(ManagedJobsTest, JobsAreMadeAsFarAsThereIsRoom) {
  const auto made_with = [&](std::size_t room) {
    std::string names;
    for (const Effect& effect : managed_.due(budget_, room, now_)) {
      if (const auto* create = std::get_if<CreateJob>(&effect)) {
        names += create->job->metadata.name;
      }
    }
    return names;
  };
  const auto show_another = [&](const std::string& name, bool is_suspended) {
    kube::BatchJob other = batch_;
    other.metadata.name = other.metadata.uid = name;
    other.metadata.resource_version = std::to_string(++version_);
    other.spec.suspend = is_suspended;
    show(other);
  };
  show_another("b", false);
  show_another("c", false);
  show_another("d", false);
  EXPECT_EQ(made_with(1), "b");
  EXPECT_EQ(made_with(0), "");
  show_another("a", false);
  show_another("c", true);
  EXPECT_EQ(made_with(1), "d") << "it came before a";
  EXPECT_EQ(made_with(5), "a");
  EXPECT_EQ(made_with(5), "") << "they are under way";
}

// Users and other controllers wait for the end of a Job: it is written even if nothing else may
// be.
TEST_F(ManagedJobsTest, AnEndNeedsNeitherTimeNorRoom) {
  show();
  kube::Job job = made(due(), "one");
  answer(job);
  room_ = 0;
  is_busy_ = true;
  job.status.start_time = now_;
  now_ += seconds{1};
  ends(job, kube::JobState::kCompleted);
  EXPECT_EQ(writes_after(seconds{0}), 1);
  EXPECT_EQ(batch_.status.start_time, job.status.start_time) << "though no write told the start";
  EXPECT_EQ(batch_.status.completion_time, now_);
}

// The informer has just seen the Job, so its template need not be read again for the first attempt.
// A later attempt may come hours after, and the template is not kept so long.
TEST_F(ManagedJobsTest, ItsTemplateGoesWithItsFirstJob) {
  batch_.spec.backoff_limit = 1;
  templates_.see(batch_);
  show();
  const auto template_of = [](const std::vector<Effect>& effects) {
    return std::get<CreateJob>(effects.at(0)).template_of;
  };
  auto effects = due();
  ASSERT_THAT(effects, SizeIs(1));
  EXPECT_EQ((*template_of(effects)->whole)->spec.pod_template, batch_.spec.pod_template);
  kube::Job job = made(effects, "one");
  answer(job);
  ends(job, kube::JobState::kFailed);
  effects = all_due();
  ASSERT_THAT(effects, SizeIs(1));
  EXPECT_FALSE(template_of(effects)->whole.has_value()) << "it is read";
}

// A controller that made another Job after the first one's time to live would run the program
// again.
TEST_F(ManagedJobsTest, ASuccessIsTheEnd) {
  show();
  kube::Job job = made(due(), "one");
  answer(job);
  ends(job, kube::JobState::kCompleted);
  EXPECT_THAT(all_due(), IsEmpty());
  EXPECT_EQ(says(kube::kBatchComplete).substr(0, 4), "True");
  EXPECT_EQ(batch_.status.succeeded, 2);
  managed_.forget_job("one");  // deleted by its time to live
  EXPECT_THAT(all_due(), IsEmpty()) << "nothing follows it";
}

// The attempts are numbered in their label, so a new leader counts the same.
TEST_F(ManagedJobsTest, AFailureIsFollowedByAnAttemptAfterABackOff) {
  show();
  kube::Job first = made(due(), "one");
  answer(first);
  const base::Instant end = now_;
  ends(first, kube::JobState::kFailed);
  kube::Job second = made(all_due(), "two");
  EXPECT_EQ(second.metadata.labels.at(std::string{kube::kLabelAttempt}), "1");
  EXPECT_EQ(second.spec.schedule.begin_time, end + seconds{10});
  EXPECT_EQ(batch_.status.failed, 1);
  answer(second);
  const base::Instant again = now_;
  ends(second, kube::JobState::kOutOfMemory);
  const kube::Job third = made(all_due(), "three");
  EXPECT_EQ(third.spec.schedule.begin_time, again + seconds{20}) << "twice as long each time";
}

// Pods follow one another, and a failure ended the gang when those that count had succeeded.
TEST_F(ManagedJobsTest, NothingIsTriedAgainWhenItsSuccessPolicyIsMet) {
  batch_.spec.completions = 5;
  batch_.spec.success_policy = kube::BatchSuccessPolicy{{{.succeeded_indexes = "0,2"}}};
  show();
  kube::Job first = made(due(), "one");
  answer(first);
  first.status.start_time = now_;
  first.status.succeeded_indexes = "0-1";
  ends(first, kube::JobState::kFailed);
  kube::Job second = made(all_due(), "two");
  EXPECT_EQ(second.spec.completed_indexes, "0-1") << "of two that are asked for";
  answer(second);
  second.status.succeeded_indexes = "0-2";
  ends(second, kube::JobState::kFailed);
  EXPECT_THAT(all_due(), IsEmpty());
  EXPECT_EQ(says(kube::kBatchComplete), "True SuccessPolicy");
  EXPECT_EQ(batch_.status.completed_indexes, "0-2");
  EXPECT_EQ(batch_.status.start_time, first.status.start_time);
  EXPECT_EQ(batch_.status.failed, 2);
}

// The limit of failures comes first, as with the batch group's controller.
TEST_F(ManagedJobsTest, ItsSuccessPolicyDoesNotUndoTooManyFailures) {
  batch_.spec.completions = 5;
  batch_.spec.backoff_limit = 0;
  batch_.spec.success_policy = kube::BatchSuccessPolicy{{{.succeeded_indexes = "0"}}};
  show();
  kube::Job job = made(due(), "one");
  answer(job);
  job.status.succeeded_indexes = "0";
  ends(job, kube::JobState::kFailed);
  EXPECT_THAT(all_due(), IsEmpty());
  EXPECT_EQ(says(kube::kBatchFailed), "True BackoffLimitExceeded");
}

class EditedLabels : public ManagedJobsTest, public testing::WithParamInterface<const char*> {};

// Users can edit the labels of the attempts. A number that no attempt can have says nothing: the
// Job counts as the first attempt.
TEST_P(EditedLabels, WithImpossibleNumbersAreIgnored) {
  show();
  kube::Job first = made(due(), "one");
  answer(first);
  first.metadata.labels[std::string{kube::kLabelAttempt}] = GetParam();
  first.metadata.labels[std::string{kube::kLabelFailures}] = GetParam();
  const base::Instant end = now_;
  ends(first, kube::JobState::kFailed);
  const kube::Job second = made(all_due(), "two");
  EXPECT_EQ(second.metadata.labels.at(std::string{kube::kLabelAttempt}), "1");
  EXPECT_EQ(second.metadata.labels.at(std::string{kube::kLabelFailures}), "1");
  EXPECT_EQ(second.spec.schedule.begin_time, end + seconds{10});
  EXPECT_EQ(batch_.status.failed, 1);
}

// A possible number on an attempt that runs: it stays the present one, no other is made beside it,
// and its end is the batch Job's.
TEST_F(ManagedJobsTest, AnEditedLabelMakesNoOtherAttempt) {
  show();
  kube::Job first = made(due(), "one");
  answer(first);
  first.metadata.labels[std::string{kube::kLabelAttempt}] = "5";
  runs(first, true);
  EXPECT_THAT(all_due(), IsEmpty());
  ends(first, kube::JobState::kCompleted);
  EXPECT_THAT(all_due(), IsEmpty());
  EXPECT_EQ(says(kube::kBatchComplete), "True CompletionsReached");
}

// A lower number on one that has failed: the next attempt would have its name. That is not tried
// over and over.
TEST_F(ManagedJobsTest, AFailedAttemptWithALowerNumberIsTold) {
  kube::BatchFailureRule ignored{.action = "Ignore"};
  ignored.on_exit_codes = kube::BatchExitCodes{.op = "NotIn", .values = {9}};
  batch_.spec.pod_failure_policy = kube::BatchFailurePolicy{{ignored}};
  show();
  kube::Job first = made(due(), "one");
  answer(first);
  ends(first, kube::JobState::kFailed);
  kube::Job second = made(all_due(), "two");
  answer(second);
  second.metadata.labels[std::string{kube::kLabelAttempt}] = "0";
  ends(second, kube::JobState::kFailed);
  (void)made(all_due(), "two");  // which the API server answers with the one that is there
  answer(second);
  EXPECT_THAT(due(), IsEmpty());
}

INSTANTIATE_TEST_SUITE_P(Numbers, EditedLabels,
                         testing::Values("2147483647", "-1", "1000000000", "5th"));

// backoffLimit 0 means one try.
TEST_F(ManagedJobsTest, SoManyFailuresAreTooMany) {
  batch_.spec.backoff_limit = 0;
  show();
  kube::Job job = made(due(), "one");
  answer(job);
  ends(job, kube::JobState::kFailed);
  EXPECT_THAT(all_due(), IsEmpty());
  EXPECT_EQ(says(kube::kBatchFailed), "True BackoffLimitExceeded");
}

// Two leaders may see the same end at different times.
// The API server refuses every status that takes an end back.
TEST_F(ManagedJobsTest, AnEndThatAnotherLeaderHasToldStands) {
  show();
  kube::Job job = made(due(), "one");
  answer(job);
  (void)due();
  another_leader_completes();
  const kube::BatchJobStatus ended = batch_.status;
  ends(job, kube::JobState::kCompleted);
  EXPECT_THAT(all_due(), IsEmpty());
  EXPECT_EQ(batch_.status, ended) << "nothing was written";
  // Nothing is tried over and over either.
  EXPECT_EQ(managed_.next_due(now_ + minutes{1}), base::kNever);
}

// As above: another leader has stored the end while a kubegang Job exists, that must not run.
TEST_F(ManagedJobsTest, WhatHasEndedDoesNotStartAgain) {
  show();
  answer(made(due(), "one"));
  another_leader_completes();
  const auto deleted = due();
  ASSERT_THAT(deleted, SizeIs(1));
  EXPECT_EQ(std::get<DeleteJob>(deleted.front()).uid, "one");
  EXPECT_THAT(due(), IsEmpty()) << "that was asked for a moment ago";
  now_ += seconds{10};
  EXPECT_THAT(due(), SizeIs(1)) << "again, until it is gone";
  managed_.forget_job("one");
  now_ += minutes{1};
  EXPECT_THAT(due(), IsEmpty());
  EXPECT_EQ(managed_.next_due(now_), base::kNever);
}

// Running containers have the time to end by themselves: most have ended, and kubelet tells so
// again.
TEST_F(ManagedJobsTest, WhatHasEndedDoesNotRunOn) {
  show();
  kube::Job job = made(due(), "one");
  answer(job);
  // It has nodes, so its program may be at its last lines.
  job.status.state = kube::JobState::kRunning;
  job.status.allocation = kube::Allocation{};
  managed_.observe_ended(job);
  another_leader_completes();
  EXPECT_THAT(due(), IsEmpty());
  // 30 s are the patience.
  now_ += seconds{29};
  EXPECT_THAT(due(), IsEmpty());
  now_ += seconds{1};
  const auto deleted = due();
  ASSERT_THAT(deleted, SizeIs(1));
  EXPECT_EQ(std::get<DeleteJob>(deleted.front()).uid, "one");
}

// etcd was restored: the first attempt had failed, and the leader of before made the second one
// once more. The first one runs again, and the second would run beside it.
TEST_F(ManagedJobsTest, OfTwoUnfinishedAttemptsTheSecondIsDeleted) {
  show();
  kube::Job first = made(due(), "one");
  answer(first);
  kube::Job second = first;
  second.metadata.uid = "two";
  second.metadata.name += "-again";
  second.metadata.labels[std::string{kube::kLabelAttempt}] = "1";
  for (kube::Job* job : {&first, &second}) {
    job->status.state = kube::JobState::kRunning;
    job->status.allocation = kube::Allocation{};
    managed_.observe_ended(*job);
  }
  const auto deleted = due();
  ASSERT_THAT(deleted, SizeIs(1));
  EXPECT_EQ(std::get<DeleteJob>(deleted.front()).uid, "two");
  managed_.forget_job("two");
  now_ += minutes{1};
  EXPECT_THAT(due(), IsEmpty());
}

// It was canceled, or ran out of time: the same would happen again, or its user wants it so.
TEST_F(ManagedJobsTest, AnEndThatIsNoFailureOfTheProgramIsNotTriedAgain) {
  show();
  kube::Job job = made(due(), "one");
  answer(job);
  // activeDeadlineSeconds is over for the whole Job, whatever attempt it is.
  ends(job, kube::JobState::kTimeout);
  EXPECT_THAT(all_due(), IsEmpty());
  EXPECT_EQ(says(kube::kBatchFailed), "True DeadlineExceeded");
}

// Kubernetes' suspension has no pods, so the gang goes, and a new one comes when it is resumed.
TEST_F(ManagedJobsTest, ASuspendedJobIsDeletedAndMadeAgainAfterwards) {
  show();
  kube::Job job = made(due(), "one");
  answer(job);
  batch_.spec.suspend = true;
  show();
  const auto deleted = due();
  ASSERT_THAT(deleted, SizeIs(1));
  EXPECT_EQ(std::get<DeleteJob>(deleted.front()).uid, "one");
  now_ += seconds{9};
  show();
  EXPECT_THAT(due(), IsEmpty()) << "that was asked for a moment ago";
  now_ += seconds{1};
  EXPECT_THAT(due(), SizeIs(1)) << "again, until it is gone";
  managed_.forget_job("one");
  EXPECT_THAT(all_due(), IsEmpty());
  EXPECT_EQ(says(kube::kBatchSuspended).substr(0, 4), "True");
  batch_.spec.suspend = false;
  show();
  EXPECT_THAT(all_due(), SizeIs(1));
}

// The deletion names the version on which it was decided.
// It may have ended since it was last seen, and its end would be lost.
TEST_F(ManagedJobsTest, ItsJobIsDeletedOnlyAsItWas) {
  show();
  kube::Job job = made(due(), "one");
  answer(job);
  batch_.spec.suspend = true;
  show();
  const auto first = due();
  ASSERT_THAT(first, SizeIs(1));
  EXPECT_EQ(std::get<DeleteJob>(first.front()).version, job.metadata.resource_version);
  job.metadata.resource_version = std::to_string(++version_);
  // It was written meanwhile, so the first deletion can no longer succeed.
  managed_.observe_ended(job);
  const auto again = due();
  ASSERT_THAT(again, SizeIs(1)) << "at once: the one before is refused";
  EXPECT_EQ(std::get<DeleteJob>(again.front()).version, job.metadata.resource_version);
  job.metadata.resource_version = std::to_string(++version_);
  ends(job, kube::JobState::kCompleted);
  EXPECT_THAT(all_due(), IsEmpty());
  EXPECT_EQ(says(kube::kBatchComplete).substr(0, 4), "True");
}

// The deletion is asked for every 10 s; silence of the watch for 30 s counts all the same.
TEST_F(ManagedJobsTest, ASuspensionDoesNotWaitForAJobThatIsNeverSeen) {
  show();
  answer(made(due(), "one"));
  batch_.spec.suspend = true;
  show();
  (void)all_due();
  // The first 30 s are just over now; the second call of all_due() sees it.
  EXPECT_EQ(says(kube::kBatchSuspended), "");
  (void)all_due();
  EXPECT_EQ(says(kube::kBatchSuspended), "True JobSuspended");
}

// Another finalizer keeps the Job, and its gang is canceled because of its deletion.
TEST_F(ManagedJobsTest, ASuspensionDoesNotFailTheBatchJob) {
  show();
  kube::Job job = made(due(), "one");
  answer(job);
  batch_.spec.suspend = true;
  show();
  EXPECT_THAT(due(), SizeIs(1));
  job.metadata.deletion_timestamp = now_;
  ends(job, kube::JobState::kCancelled);
  EXPECT_THAT(all_due(), IsEmpty()) << "it is being deleted already";
  // A cancellation that only follows from the suspension is not a failure of the batch Job.
  EXPECT_EQ(says(kube::kBatchFailed), "");
  EXPECT_EQ(says(kube::kBatchSuspended), "True JobSuspended") << "no pod is left";
  batch_.spec.suspend = false;
  show();
  EXPECT_THAT(all_due(), IsEmpty());
  EXPECT_EQ(says(kube::kBatchWaiting), "True BeingDeleted");
  managed_.forget_job("one");
  // The attempt that was suspended does not count.
  EXPECT_EQ(made(all_due(), "two").metadata.labels.at(std::string{kube::kLabelAttempt}), "0");
}

// By a user, in the foreground. Deleted in the background it would be made again too.
TEST_F(ManagedJobsTest, AJobThatIsDeletedIsMadeAgain) {
  show();
  kube::Job job = made(due(), "one");
  answer(job);
  job.metadata.deletion_timestamp = now_;
  ends(job, kube::JobState::kCancelled);
  EXPECT_THAT(all_due(), IsEmpty());
  EXPECT_EQ(says(kube::kBatchFailed), "");
  managed_.forget_job("one");
  EXPECT_THAT(all_due(), SizeIs(1));
}

// Canceled first and then deleted: the cancel was the user's wish for the whole batch Job.
TEST_F(ManagedJobsTest, ACancelledJobThatIsDeletedStaysCancelled) {
  show();
  kube::Job job = made(due(), "one");
  answer(job);
  job.spec.control.cancel = true;
  job.metadata.deletion_timestamp = now_;
  ends(job, kube::JobState::kCancelled);
  EXPECT_THAT(all_due(), IsEmpty());
  EXPECT_EQ(says(kube::kBatchFailed), "True kubegang.io/Cancelled");
}

// With the first attempt, since the others are run likewise.
TEST_F(ManagedJobsTest, WhatIsRunOtherwiseIsToldOnce) {
  nlohmann::json pod_template = batch_.spec.pod_template.json();
  pod_template["spec"]["restartPolicy"] = "OnFailure";
  batch_.spec.pod_template = kube::RawJson{pod_template};
  show();
  const kube::Job job = made(due(), "one");
  answer(job);
  answer(job);
  EXPECT_EQ(events_, (std::vector<std::string>{"RunOtherwise"}));
}

// For example a quota: it may be raised, so the operator tries again, but an event at each try
// would only be noise.
TEST_F(ManagedJobsTest, ARefusalIsToldOnceAndTriedAgainLater) {
  show();
  (void)made(due(), "one");
  managed_.answered(JobCreated{.owner_uid = "batch",
                               .result = base::Error{base::Code::kPermissionDenied, "quota"}},
                    now_);
  (void)due();
  EXPECT_EQ(events_, (std::vector<std::string>{"Refused"}));
  (void)due();
  EXPECT_EQ(events_.size(), 1U);
  EXPECT_EQ(says(kube::kBatchAccepted), "False NotMade");
  // Longer than the longest back-off.
  now_ += minutes{6};
  EXPECT_THAT(due(), SizeIs(1));
}

// It stays too large until its author makes it smaller, so he has to hear of it.
TEST_F(ManagedJobsTest, AJobThatIsTooLargeIsARefusal) {
  show();
  (void)made(due(), "one");
  managed_.answered(
      JobCreated{.owner_uid = "batch",
                 .result = base::Error{base::Code::kTooLarge, "Request entity too large"}},
      now_);
  (void)due();
  EXPECT_EQ(events_, (std::vector<std::string>{"Refused"}));
  EXPECT_EQ(says(kube::kBatchAccepted), "False NotMade");
}

// That Job is a user's: it must be left alone, and the batch Job must run all the same.
// The name of the batch Job is taken by a Job of a user's own.
TEST_F(ManagedJobsTest, ATakenNameIsNotARefusal) {
  show();
  EXPECT_EQ(made(due(), "one").metadata.name, "train");
  managed_.answered(
      JobCreated{.owner_uid = "batch", .result = base::Error{base::Code::kAlreadyExists, "exists"}},
      now_);
  const kube::Job other = made(due(), "one");
  EXPECT_NE(other.metadata.name, "train");
  EXPECT_THAT(events_, IsEmpty());
}

// The Job goes by garbage collection.
TEST_F(ManagedJobsTest, OfADeletedBatchJobNothingIsMade) {
  show();
  answer(made(due(), "one"));
  Changes<kube::BatchJob> changes;
  changes[kube::key_of(batch_.metadata)] = nullptr;
  managed_.observe(changes);
  EXPECT_THAT(due(), IsEmpty());
  EXPECT_EQ(managed_.find_status("batch"), nullptr);
  managed_.forget_job("one");
  EXPECT_THAT(due(), IsEmpty());
  EXPECT_EQ(managed_.next_due(now_), base::kNever);
}

// Jobs that users made themselves have no batch Job.
TEST_F(ManagedJobsTest, JobsOfOthersArePassedOver) {
  kube::Job foreign;
  foreign.metadata.uid = "foreign";
  foreign.status.state = kube::JobState::kFailed;
  managed_.observe_ended(foreign);
  EXPECT_EQ(managed_.next_due(now_), base::kNever);
}

}  // namespace
}  // namespace control
