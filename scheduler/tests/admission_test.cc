// The rules that keep a job from the queue or turn it away (chapters 1, 9 and 13).
#include "scheduler/testing/rule_test.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

namespace sched::testing {
namespace {

using Admission = RuleTest;

// Three nodes are one more than the partition's QOS allows each job; two are just enough. There is
// room for both jobs.
TEST_F(Admission, R1_2_ThePartitionsQosLimitsNodes) {
  const auto four = nodes("n", 1, 4);
  Configuration c = whole_nodes({closed("p", four)});
  c.qos.resize(1);
  c.qos[0].name = "of_p";
  c.qos[0].limits.job_tres[Tres::kNode] = 2;
  c.partitions[0].qos = "of_p";
  Driver driver{c, four, make_replay()};
  submit_and_pass(driver, 0, job(1, 3, "p"));
  submit_and_pass(driver, 1, job(2, 2, "p"));
  EXPECT_EQ(state(driver, 1), JobState::kPending);
  EXPECT_EQ(state(driver, 2), JobState::kRunning);
}

// 1.2: a partition's QOS limits its jobs, before their own QOS unless that has OverPartQOS.
TEST_F(Admission, R1_2_ThePartitionsQosComesBeforeTheJobs) {
  const auto four = nodes("n", 1, 4);
  for (const bool over : {false, true}) {
    Configuration c = whole_nodes({closed("p", four), closed("q", four)});
    c.qos.resize(2);
    c.qos[0].name = "of_p";
    c.qos[0].limits.user_jobs = 1;
    c.qos[0].limits.job_wall = seconds(60);
    c.qos[1].name = "own";
    c.qos[1].limits.user_jobs = 2;
    c.qos[1].over_part_qos = over;
    c.partitions[0].qos = "of_p";
    Driver driver{c, four, make_replay()};
    JobRequest request = job(1, 1, "p");
    request.qos = "own";
    submit_and_pass(driver, 0, request);
    request.id = JobId{2};
    submit_and_pass(driver, 1, request);
    // The partition's QOS allows one job of a user, the job's own allows two.
    EXPECT_EQ(state(driver, 2) == JobState::kRunning, over);
    request.id = JobId{3};
    request.partitions = {"q"};
    submit_and_pass(driver, 2, request);
    EXPECT_EQ(state(driver, 3) == JobState::kRunning, !over) << "two jobs of its own QOS run";
    // The job's own QOS sets no MaxWall, so that of the partition's counts in either order.
    request = job(4, 1, "p");
    request.time_limit = seconds(120);
    submit_and_pass(driver, 3, request);
    EXPECT_EQ(driver.view(4).reason, Reason::kQosMaxWallDurationPerJobLimit);
  }
}

// 1.4: DenyOnLimit turns away what a QOS never allows; without it the job waits.
TEST_F(Admission, R1_4_DenyOnLimitRefusesTheSubmission) {
  const auto four = nodes("n", 1, 4);
  for (const bool denies : {false, true}) {
    Configuration c = whole_nodes({closed("p", four)});
    c.qos.resize(1);
    c.qos[0].name = "small";
    c.qos[0].deny_on_limit = denies;
    c.qos[0].limits.job_wall = seconds(60);
    c.qos[0].limits.group_tres[Tres::kCpu] = 2;
    Driver driver{c, four, make_replay()};
    JobRequest request = job(1, 1);
    request.qos = "small";
    request.time_limit = seconds(120);
    driver.step(at(0), Submit{request});
    // Job 1 exceeds the time of each job, job 2 the CPUs of the group by itself, job 3 neither.
    request = with_tasks(job(2, 1), 3);
    request.qos = "small";
    driver.step(at(0), Submit{request});
    request = with_tasks(job(3, 1), 2);
    request.qos = "small";
    request.time_limit = seconds(60);
    driver.step(at(0), Submit{request});
    EXPECT_EQ(driver.scheduler().job(JobId{1}, at(0)).has_value(), !denies);
    EXPECT_EQ(driver.scheduler().job(JobId{2}, at(0)).has_value(), !denies);
    EXPECT_TRUE(driver.scheduler().job(JobId{3}, at(0)).has_value());
  }
}

// 1.8 items 2, 5 and 6: a default is a request like any other.
TEST_F(Admission, R1_8_ADefaultAboveTheMaximumWaits) {
  const auto one = nodes("n", 1, 1);
  Configuration c = whole_nodes({closed("p", one), closed("q", one)});
  c.cluster.default_memory.per_node = MemoryMiB{2000};
  c.cluster.max_memory.per_node = MemoryMiB{1000};
  // In p the cluster's default of 2000 MiB applies, which is above the maximum; q has a default of
  // its own.
  c.partitions[1].default_memory.per_node = MemoryMiB{500};
  Driver driver{c, one, make_replay()};
  submit_and_pass(driver, 0, job(1, 1, "p"));
  EXPECT_EQ(driver.view(1).reason, Reason::kMaxMemPerLimit);
  submit_and_pass(driver, 1, job(2, 1, "q"));
  EXPECT_EQ(state(driver, 2), JobState::kRunning);
}

// 1.5: more than any cluster has stays more than any cluster has: products of what a job may ask
// for exceed an int, and one that wrapped around would be a small number, negative or zero.
TEST_F(Admission, R1_5_ProductsBeyondAnIntAreNoSmallNumbers) {
  const auto one = nodes("n", 1, 1, 128);
  JobRequest per_node = job(1, 1);  // 65,535 × 65,535 = 2^32 - 131,071
  per_node.tasks_per_node = per_node.cpus_per_task = 65'535;
  JobRequest in_all = with_tasks(job(1, 1), 16'777'216);  // × 128 = 2^31
  in_all.cpus_per_task = 128;
  JobRequest memory = job(1, 1);  // 2^32 times the limit of 1 GiB per CPU
  memory.memory = MemoryPerCpu{MemoryMiB{std::int64_t{1} << 42U}};
  for (const SelectType select : {SelectType::kLinear, SelectType::kConsTres}) {
    for (const JobRequest& request : {per_node, in_all, memory}) {
      Configuration c = whole_nodes({closed("p", one)});
      c.cluster.select = select;
      c.cluster.memory = true;
      c.cluster.max_memory.per_cpu = MemoryMiB{1024};
      Driver driver{c, one, make_replay()};
      submit_and_pass(driver, 0, request);
      EXPECT_EQ(state(driver, 1), JobState::kPending) << static_cast<int>(select);
    }
  }
}

// 1.8: 2^42 MiB for each of 2^22 CPUs are 2^64 MiB, which 64 bits would hold as 0.
TEST_F(Admission, R1_8_MemoryBeyondAllNumbersIsAboveTheMaximum) {
  const auto one = nodes("n", 1, 1, 128);
  Configuration c = whole_nodes({closed("p", one)});
  c.cluster.max_memory.per_node = MemoryMiB{1000};
  Driver driver{c, one, make_replay()};
  JobRequest request = job(1, 1);
  request.tasks_per_node = request.cpus_per_task = 2048;
  request.memory = MemoryPerCpu{MemoryMiB{std::int64_t{1} << 42U}};
  submit_and_pass(driver, 0, request);
  EXPECT_EQ(driver.view(1).reason, Reason::kMaxMemPerLimit);
}

// 1.2.1: DRAIN and INACTIVE take no new jobs; DRAIN starts what is queued.
TEST_F(Admission, R1_2_1_PartitionsThatDrainTakeNoNewJobs) {
  const auto one = nodes("n", 1, 1);
  add("p", one);
  add("q", one);
  begin(one);
  tell(0, Submit{job(1, 1, "p")});
  tell(1, Submit{job(2, 1, "p")});
  // Job 1 runs and job 2 waits in p while it is closed in both ways.
  for (const PartitionState closed : {PartitionState::kInactive, PartitionState::kDrain}) {
    c_.partitions[0].state = closed;
    tell(2, Configure{std::make_shared<const Configuration>(c_)});
    driver_->take_log();
    tell(2, Submit{job(3, 1, "p")});
    const std::vector<Decision> log = driver_->take_log();
    EXPECT_TRUE(std::ranges::any_of(log, [](const Decision& decision) {
      return std::holds_alternative<SubmitRefused>(decision);
    }));
    EXPECT_FALSE(driver_->scheduler().job(JobId{3}, at(2)).has_value());
  }
  // Only a job that no partition takes is refused.
  JobRequest both = job(4, 1, "p");
  both.partitions = {"p", "q"};
  tell(4, Submit{both});
  EXPECT_EQ(state(4), JobState::kPending);  // q takes it
  // p is in DRAIN: job 2, which was there before, starts when job 1 has gone.
  tell(6, JobGone{.job = JobId{1}, .verdict = JobState::kCompleted});
  EXPECT_EQ(state(2), JobState::kRunning);
}

// R9.1: a job with a priority other than zero is not held.
TEST_F(Admission, R9_1_APriorityReleases) {
  const auto one = nodes("n", 1, 1);
  Driver driver{whole_nodes({closed("p", one)}), one, make_replay()};
  JobRequest request = job(1, 1);
  driver.step(at(0), Submit{request});
  driver.step(at(0), Hold{.job = JobId{1}, .by_admin = true});
  // An update that says nothing of the priority leaves the hold alone.
  request.time_limit = seconds(60);
  driver.step(at(1), Update{request});
  EXPECT_EQ(driver.view(1).priority, Priority{0});
  request.priority = Priority{7};
  driver.step(at(2), Update{request});
  EXPECT_EQ(driver.view(1).priority, Priority{7});
  driver.step(at(2), Pass{});
  EXPECT_EQ(state(driver, 1), JobState::kRunning);
}

// 13.2: the resume of a job that its user suspended while it waited gives it a priority again, also
// if it cannot run anywhere: that is not a wish, and a new leader does not know it yet.
TEST_F(Admission, R13_2_AResumedJobThatFitsNowhereGoesBehindTheOthers) {
  const auto one = nodes("n", 1, 1);
  Driver driver{whole_nodes({closed("p", one)}), one};
  submit(driver, 0, job(1, 2));
  ASSERT_EQ(driver.view(1).reason, Reason::kBadConstraints);
  driver.step(at(1), UserSuspend{JobId{1}});
  submit(driver, 2, job(2, 1));
  driver.step(at(3), UserResume{JobId{1}});
  EXPECT_LT(driver.view(1).priority, driver.view(2).priority);
  EXPECT_EQ(driver.view(1).eligible_time, at(3));
}

// As recorded, to release a job that is not held gives it a priority again: under `basic` it goes
// behind all others, and its nice value is gone. Otherwise nothing happens.
TEST_F(Admission, R13_2_AsRecordedAReleasedJobGoesBehindTheOthers) {
  const auto one = nodes("n", 1, 1);
  for (const bool as_recorded : {false, true}) {
    Configuration c = whole_nodes({closed("p", one), closed("q", one, 2)});
    c.cluster.quirks = only(&Quirks::release_reorders, as_recorded);
    Driver driver{c, one, make_replay()};
    JobRequest nice = job(1, 1, "p");
    nice.nice = 1;
    driver.step(at(0), Submit{nice});
    driver.step(at(0), Submit{job(2, 1, "p")});
    const Priority first = driver.view(1).priority;
    const Priority second = driver.view(2).priority;
    driver.step(at(1), Release{JobId{1}});
    EXPECT_EQ(driver.view(1).priority, as_recorded ? Priority{second.value() - 1} : first);
    driver.step(at(2), Pass{});
    EXPECT_EQ(state(driver, 1), as_recorded ? JobState::kPending : JobState::kRunning);
  }
}

// 13.2: a resume takes back what a suspend did, and no hold.
TEST_F(Admission, R13_2_AResumeReleasesNoHold) {
  const auto one = nodes("n", 1, 1);
  for (const bool by_admin : {false, true}) {
    Driver driver{whole_nodes({closed("p", one)}), one, make_replay()};
    driver.step(at(0), Submit{job(1, 1)});
    driver.step(at(0), Hold{.job = JobId{1}, .by_admin = by_admin});
    driver.step(at(1), UserSuspend{JobId{1}});
    driver.step(at(2), UserResume{JobId{1}});
    driver.step(at(2), Pass{});
    EXPECT_EQ(driver.view(1).reason, by_admin ? Reason::kJobHeldAdmin : Reason::kJobHeldUser);
    EXPECT_EQ(state(driver, 1), JobState::kPending);
    // Without a hold, the suspend of a waiting job is one itself, and the resume takes it back.
    driver.step(at(3), Release{JobId{1}});
    driver.step(at(4), UserSuspend{JobId{1}});
    driver.step(at(4), Pass{});
    EXPECT_EQ(driver.view(1).reason, Reason::kJobHeldUser);
    driver.step(at(5), UserResume{JobId{1}});
    driver.step(at(5), Pass{});
    EXPECT_EQ(state(driver, 1), JobState::kRunning);
  }
}

// 13.2: a hold and a suspend of a waiting job are two wishes; a release ends the one, a resume the
// other, in any order, and a new leader finds what is left.
TEST_F(Admission, R13_2_AReleaseEndsNoSuspend) {
  const auto one = nodes("n", 1, 1);
  for (const bool resumes_first : {false, true}) {
    const Configuration c = whole_nodes({closed("p", one)});
    Driver driver{c, one};
    JobRequest request = job(1, 1);
    request.hold = request.suspend = true;
    submit(driver, 0, request);
    const Event first = resumes_first ? Event{UserResume{JobId{1}}} : Event{Release{JobId{1}}};
    const Event second = resumes_first ? Event{Release{JobId{1}}} : Event{UserResume{JobId{1}}};
    driver.step(at(1), first);
    driver.run_until(at(2));
    EXPECT_EQ(state(driver, 1), JobState::kPending);
    EXPECT_EQ(driver.view(1).reason, Reason::kJobHeldUser);

    Driver next{c, one};
    (resumes_first ? request.suspend : request.hold) = false;
    next.scheduler().restore_from_published(at(2), {JobFacts::of(request)}, {});
    for (Driver* leader : {&driver, &next}) {
      leader->run_until(at(3));
      EXPECT_EQ(state(*leader, 1), JobState::kPending);
      leader->step(at(4), second);
      leader->run_until(at(4));
      EXPECT_EQ(state(*leader, 1), JobState::kRunning);
    }
  }
}

// The hold by the system shows, and its user's stays when it ends: both are stored, each where it
// is.
TEST_F(Admission, R13_2_AHoldByTheSystemShowsBeforeAnother) {
  const auto one = nodes("n", 1, 1);
  Driver driver{whole_nodes({closed("p", one)}), one};
  driver.ready_after.reset();
  submit(driver, 0, job(1, 1));
  driver.step(at(1), UserSuspend{JobId{1}});
  driver.step(at(2), StartRefused{.job = JobId{1}, .hold = true});
  EXPECT_EQ(driver.view(1).reason, Reason::kLaunchFailedRequeuedHeld);
  driver.step(at(3), Release{JobId{1}});
  EXPECT_EQ(driver.view(1).reason, Reason::kJobHeldUser);
  driver.run_until(at(4));
  EXPECT_EQ(state(driver, 1), JobState::kPending);
}

// R9.3: age is time in which the job could have started. A hold is not, and neither is the time
// before its begin; a start that was refused does not count against the job.
TEST_F(Admission, R9_3_AgeCountsFromWhenTheJobIsEligible) {
  const auto one = nodes("n", 1, 1);
  Driver driver{whole_nodes({closed("p", one)}), one};
  JobRequest held = job(1, 1);
  held.hold = true;
  submit(driver, 1, held);
  driver.step(at(1500), Release{JobId{1}});
  EXPECT_EQ(driver.view(1).eligible_time, at(1500));
  JobRequest later = job(2, 1);
  later.begin_time = at(2000);
  submit(driver, 1501, later);
  EXPECT_EQ(driver.view(2).eligible_time, at(2000));
  driver.ready_after.reset();
  submit(driver, 1502, job(3, 1));
  driver.step(at(1510), JobGone{JobId{1}});
  driver.run_until(at(1510));
  ASSERT_EQ(state(driver, 3), JobState::kRunning);
  driver.step(at(1511), StartRefused{.job = JobId{3}, .avoid_for = seconds(60)});
  driver.run_until(at(1520));
  EXPECT_EQ(driver.view(3).reason, Reason::kBeginTime);
  EXPECT_EQ(driver.view(3).eligible_time, at(1502));
  driver.run_until(at(1571));
  EXPECT_EQ(state(driver, 3), JobState::kRunning);
  EXPECT_EQ(driver.view(3).eligible_time, at(1502));
}

// The next new node has the index of one that was removed, and has refused no job.
TEST_F(Admission, ANodeThatIsGoneRefusesNothing) {
  const auto two = nodes("n", 1, 2);
  Configuration c = whole_nodes({closed("p", nodes("n", 1, 3))});
  Driver driver{c, two};
  driver.ready_after.reset();
  submit(driver, 0, job(1, 1));
  submit(driver, 0, job(2, 1));
  const std::string refuses = driver.nodes_of(2).front();
  driver.step(at(1),
              StartRefused{.job = JobId{2}, .avoid_nodes = {refuses}, .avoid_for = seconds(1000)});
  driver.run_until(at(2));
  ASSERT_EQ(state(driver, 2), JobState::kPending);
  driver.step(at(3), NodeRemove{refuses});
  driver.step(at(4), NodeUpdate{node("n3")});
  driver.run_until(at(4));
  driver.step(at(4), Wake{});
  EXPECT_EQ(driver.nodes_of(2), (std::vector<std::string>{"n3"}));
}

}  // namespace
}  // namespace sched::testing
