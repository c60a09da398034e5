// The times in a job's status, and when they are written.
#include "operator/jobs/run_times.h"

#include <gtest/gtest.h>

#include <utility>

#include "api/wellknown.h"
#include "operator/testing/job_parts_fixture.h"

namespace control {
namespace {

using std::chrono::minutes;
using std::chrono::seconds;

// A job of two pods, and the scheduler that keeps its clock. "Marked" means that a status is to be
// written.
class RunTimesTest : public JobPartsFixture {
 protected:
  RunTimesTest() { times_.restore(now); }
  // Makes all its pods run, which the scheduler knows.
  JobRecord& ready() {
    JobRecord& job = started();
    scheduler.tell(sched::JobReady{job.id});
    (void)events();
    job.status.unmark();
    (void)jobs.take_marked();
    times_.observe_job(job);
    return job;
  }
  // Lets time pass and shows the times that are due.
  void pass(base::Duration time) {
    now += time;
    times_.refresh(jobs, scheduler, now, [this](const JobRecord&) { return is_listed; });
  }
  bool is_marked() { return !jobs.take_marked().empty(); }

  bool is_listed = false;
  RunTimes times_;
};

// A write for each running job and second would be most of the load on the API server. With the
// elapsed time stands the instant that it is as of, so readers can add the rest.
TEST_F(RunTimesTest, AreShownOnceAMinuteOfAJobThatRuns) {
  JobRecord& job = ready();
  EXPECT_EQ(times_.next_due(), now + seconds{60});
  const base::Instant began = now;
  pass(seconds{59});
  EXPECT_FALSE(is_marked());
  EXPECT_FALSE(job.wanted().run_time.has_value());
  pass(seconds{1});
  EXPECT_TRUE(is_marked());
  EXPECT_EQ(job.wanted().start_time, began);
  EXPECT_EQ(job.wanted().run_time, (kube::RunTime{seconds{60}, now}));
  EXPECT_EQ(job.wanted().suspend_time, (kube::RunTime{seconds{0}, now}));
  EXPECT_EQ(job.status.urgency(), WriteUrgency::kInforms);
  EXPECT_EQ(times_.next_due(), now + seconds{60});
}

// Readers work it out, and so does a new leader: thousands of jobs without a pause need no write.
TEST_F(RunTimesTest, AreNotShownAgainOfAJobThatGoesOn) {
  JobRecord& job = ready();
  pass(seconds{60});
  ASSERT_TRUE(is_marked());
  const auto store = [&] { job.status.know_stored(job.wanted()); };
  store();
  for (int minute = 0; minute < 10; ++minute) {
    pass(seconds{60});
    EXPECT_FALSE(is_marked());
  }
  // Something else to be said takes the time along.
  job.wanted_unmarked().succeeded_indexes = "1";
  pass(seconds{60});
  EXPECT_TRUE(is_marked());
  EXPECT_EQ(job.wanted().run_time, (kube::RunTime{minutes{12}, now}));
  store();
  // By what is stored it has run longer than the scheduler says: it stood still meanwhile.
  job.wanted_unmarked().run_time->elapsed += seconds{2};
  store();
  pass(seconds{60});
  EXPECT_TRUE(is_marked());
  store();
  // The node may have let it run although it was not its turn, which a new leader would not know.
  is_listed = true;
  pass(seconds{60});
  EXPECT_TRUE(is_marked());
}

// From then on a new leader counts by that timetable, from the stored time on.
TEST_F(RunTimesTest, AreStoredBeforeATimetableListsTheJob) {
  JobRecord& job = ready();
  pass(seconds{60});
  job.status.know_stored(job.wanted());
  job.status.unmark();
  (void)jobs.take_marked();
  times_.before_timetable(job, jobs, scheduler, now);
  EXPECT_FALSE(is_marked()) << "it is new";
  pass(minutes{5});
  now += seconds{20};
  times_.before_timetable(job, jobs, scheduler, now);
  EXPECT_EQ(job.status.urgency(), WriteUrgency::kCommit);
  EXPECT_EQ(job.wanted().run_time, (kube::RunTime{minutes{6} + seconds{20}, now}));
  EXPECT_TRUE(is_marked());
  times_.before_timetable(job, jobs, scheduler, now);
  EXPECT_FALSE(is_marked());
}

// A new leader finds such a time.
TEST_F(RunTimesTest, AreStoredBeforeATimetableThoughAnotherLeaderHasLeftThemOut) {
  JobRecord& job = ready();
  pass(seconds{60});
  job.status.know_stored(job.wanted());
  times_.drop_job(job.uid);
  times_.restore(now += minutes{10});
  times_.observe_job(job);
  (void)jobs.take_marked();
  times_.before_timetable(job, jobs, scheduler, now);
  EXPECT_TRUE(is_marked());
}

// Nothing has run of a job that waits for its pods.
TEST_F(RunTimesTest, AreNotShownOfAJobThatIsNotReady) {
  JobRecord& job = started();
  (void)jobs.take_marked();
  times_.observe_job(job);
  pass(seconds{60});
  EXPECT_FALSE(is_marked());
  EXPECT_FALSE(job.wanted().run_time.has_value());
}

// A status that would say the same is not written. The suspension is written by its own decision
// and must not be followed by a write each minute.
TEST_F(RunTimesTest, AreLeftAsTheyAreWhileTheJobStandsStill) {
  JobRecord& job = ready();
  pass(seconds{60});
  ASSERT_TRUE(is_marked());
  scheduler.tell(sched::UserSuspend{job.id});
  (void)jobs.take_marked();
  const auto shown = job.wanted().run_time;
  pass(seconds{60});
  EXPECT_FALSE(is_marked());
  EXPECT_EQ(job.wanted().run_time, shown);
}

// The ending writes the final times. A later refresh would count on while the pods stop.
TEST_F(RunTimesTest, AreNotShownOfAJobThatEndsOrIsForgotten) {
  JobRecord& job = ready();
  job.wanted_unmarked().ending = kube::JobEnding{};
  pass(seconds{60});
  EXPECT_FALSE(is_marked()) << "its end says its times";
  job.wanted_unmarked().ending.reset();
  times_.drop_job(job.uid);
  pass(seconds{60});
  EXPECT_FALSE(is_marked());
}

// A job that left its nodes is no longer looked at, though it may be known for days.
TEST_F(RunTimesTest, FollowTheAllocation) {
  JobRecord& job = ready();
  job.deleted = true;
  times_.observe_job(job);
  pass(seconds{60});
  EXPECT_FALSE(is_marked());
  job.deleted = false;
  times_.observe_job(job);
  pass(seconds{60});
  EXPECT_TRUE(is_marked());
}

// The clock of its node is 20 s behind, so what ended after 9 s seems to have ended before its pod
// was created.
TEST_F(RunTimesTest, OfAPodThatEndedCountThoughTheClockOfItsNodeIsBehind) {
  JobRecord& job = started(object("train", 1));
  now += seconds{12};
  kube::Pod pod = pod_of(job, 0, now);
  pod.metadata.creation_timestamp = now - seconds{10};
  pod.status.phase = kube::PodPhase::kSucceeded;
  pod.status.container_statuses[0].state = {
      .terminated = kube::ContainerTerminated{
          .exit_code = 0, .started_at = now - seconds{30}, .finished_at = now - seconds{21}}};
  show(job, pod);
  note_life_before_ready(job, scheduler, now);
  EXPECT_EQ(job.wanted().run_time, (kube::RunTime{seconds{9}, now - seconds{1}}));
}

// Their nodes' clocks, or those of all other machines, are 22 s ahead of this one: a container
// seems to begin in the future.
TEST_F(RunTimesTest, CountFromWhenAPodWasSeenToRunIfTheClockOfItsNodeIsAhead) {
  JobRecord& job = started();
  show(job, pod_of(job, 0, now + seconds{22}));
  gangs.run(job);
  now += seconds{5};
  tell_life_before_ready(job, scheduler, now);
  EXPECT_EQ(scheduler.view(job.id)->run_time, seconds{5});
}

// A leader whose clock is an hour off finds a pod that ran for 9 s and has ended, and another one
// that runs. What its node says of the first is sure; of the second only that it has begun.
TEST_F(RunTimesTest, OfPodsThatHaveEndedCountThoughTheClockCannotBeTrusted) {
  JobRecord& job = started();
  const base::Instant by_node = now - std::chrono::hours{1};
  kube::Pod first = pod_of(job, 0, by_node);
  kube::ContainerState& state = first.status.container_statuses[0].state;
  state = {.terminated = kube::ContainerTerminated{
               .exit_code = 0, .started_at = by_node, .finished_at = by_node + seconds{9}}};
  first.status.phase = kube::PodPhase::kSucceeded;
  show(job, pod_of(job, 1, by_node - minutes{5}));
  scheduler.end_nothing_by_time();
  note_life_before_ready(job, scheduler, now);
  EXPECT_FALSE(job.wanted().run_time.has_value()) << "none has ended";
  show(job, first);
  note_life_before_ready(job, scheduler, now);
  EXPECT_EQ(job.wanted().run_time, (kube::RunTime{seconds{9}, now}));
  EXPECT_EQ(job.wanted().start_time, now - seconds{9});
  EXPECT_EQ(scheduler.view(job.id)->run_time, seconds{9});
}

// Times shown at a commit point mark nothing by themselves: the caller writes them with the rest.
TEST_F(RunTimesTest, ShowTimesMarksNothing) {
  JobRecord& job = ready();
  now += seconds{5};
  show_times_unmarked(job, scheduler, now);
  EXPECT_FALSE(is_marked());
  EXPECT_EQ(job.wanted().run_time, (kube::RunTime{seconds{5}, now}));
  EXPECT_TRUE(job.wanted().priority.has_value());
}

}  // namespace
}  // namespace control
