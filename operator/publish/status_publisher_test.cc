#include "operator/publish/status_publisher.h"

#include <gtest/gtest.h>

#include "api/wellknown.h"
#include "operator/testing/edit_owned.h"

namespace control {
namespace {

using std::chrono::seconds;

constexpr base::Instant kAtFirst{seconds{1'000}};
constexpr std::int64_t kTerm = 3;
constexpr std::size_t kRoom = 100;

// No API server: effects are looked at, and a test answers them with stored() in the order that it
// wants.
struct StatusPublisherTest : testing::Test {
  // Returns a job of that number and priority that waits, as a watch would show it.
  JobRecord& job(const std::string& name, std::int64_t id, std::int64_t priority) {
    kube::Job object;
    object.metadata.name = name;
    object.metadata.ns = "team-a";
    object.metadata.uid = name;
    object.metadata.resource_version = "1";
    if (id != 0) object.status.job_id = id;
    object.status.priority = priority;
    Changes<kube::Job> changes;
    changes[{"team-a", name}] = std::make_shared<const kube::Job>(object);
    (void)jobs.observe(changes);
    return *jobs.find(name);
  }
  // Changes the wanted status of the job, and says how urgent that is.
  void mark(JobRecord& job, WriteUrgency how, const std::string& message) {
    jobs.change(job, how, [&](auto& wanted) { wanted.message = message; });
  }
  // Returns "a:status b:ending": which statuses are written, as what.
  static std::string text(const std::vector<Effect>& effects) {
    std::string text;
    for (const Effect& effect : effects) {
      const auto& patch = std::get<PatchStatus<kube::Job>>(effect);
      text += (text.empty() ? "" : " ") + patch.to->metadata.name + ":" +
              std::string{to_string(patch.point)};
    }
    return text;
  }
  // Returns all statuses that are written now, if `room` writes may be handed over.
  std::string due(std::size_t room = kRoom) {
    auto effects = statuses.due(now, kTerm, room);
    for (Effect& effect : statuses.due_rest(now, kTerm, room - effects.size())) {
      effects.push_back(std::move(effect));
    }
    return text(effects);
  }
  std::string due_informing() {
    budget.refill(now, true);  // two in a second
    return text(statuses.due_informing_jobs(now, kTerm));
  }
  // The API server has stored the wanted status, and answers with the object.
  void stored(JobRecord& job) {
    kube::Job object = job.status.object_with(job.wanted());
    // A newer version: ten times the number before.
    object.metadata.resource_version += "0";
    EXPECT_EQ(job.status.answered(object, base::Error{}, now), WriteEnd::kStored);
    statuses.look_again(job.uid);
  }

  base::Instant now = kAtFirst;
  TemplateBook templates;
  PodIndex pods;
  JobBook jobs{now, templates, pods};
  PolicyBook policy;
  const CommitGate gate{
      {.is_stored =
           [this](const std::string& uid) { return !jobs.find(uid)->status.is_uncommitted(); },
       .is_published = [](const std::string&) { return true; }}};
  InformBudget budget;
  const Recorded recorded{};
  TaskEnds ends{recorded};
  StatusPublisher statuses{{jobs, policy, gate, budget, ends}};
};

// The term is part of each status: a leader that was replaced without knowing it is recognized by
// its lower one. One write of an object at a time, or an older state could arrive last.
TEST_F(StatusPublisherTest, WritesWhatIsUrgentAtOnceUnderItsTerm) {
  JobRecord& a = job("a", 1, 0);
  mark(a, WriteUrgency::kUrgent, "say this");
  EXPECT_EQ(statuses.next_due(now), now);
  const auto effects = statuses.due(now, kTerm, kRoom);
  ASSERT_EQ(text(effects), "a:status");
  const auto& patch = std::get<PatchStatus<kube::Job>>(effects[0]);
  EXPECT_EQ(patch.to->status.term, kTerm);
  EXPECT_EQ(patch.to->status.message, "say this");
  EXPECT_EQ(patch.from->status.message, "");
  EXPECT_EQ(due(), "") << "it is under way";
  // Marked while the first write is under way: it must wait for the answer, and must not be lost.
  mark(a, WriteUrgency::kUrgent, "and this");
  EXPECT_EQ(due(), "");
  stored(a);
  EXPECT_EQ(due(), "a:status");
}

// Each write of an array has the entries of all its tasks, and the API server keeps each version of
// an object for minutes.
TEST_F(StatusPublisherTest, ALargeArrayIsWrittenAsSeldomAsItsSizeAllows) {
  kube::Job object;
  object.metadata = {.name = "sweep", .ns = "team-a", .uid = "sweep", .resource_version = "1"};
  object.spec.array.emplace().tasks = "0-399";
  object.status.job_id = 1;
  object.status.state = kube::JobState::kRunning;
  object.status.array.emplace();
  for (int i = 0; i < 400; ++i) {
    kube::ArrayTask& task = object.status.array->tasks.emplace_back();
    task.task = i;
    task.job_id = 2 + i;
    task.starts = 1;
    task.allocation.emplace();
  }
  (void)jobs.observe({{{"team-a", "sweep"}, std::make_shared<const kube::Job>(object)}});
  JobRecord& array = *jobs.find("sweep");
  const auto answer = [&] {
    stored(array);
    for (const auto& [uid, said] : statuses.take_in_flight(array, true)) {
      stored(*jobs.find(uid));
    }
  };
  mark(*jobs.find("sweep/7"), WriteUrgency::kCommit, "one has ended");
  EXPECT_EQ(due(), "sweep:start");
  answer();
  mark(*jobs.find("sweep/8"), WriteUrgency::kCommit, "another one has ended");
  EXPECT_EQ(due(), "");
  EXPECT_EQ(statuses.next_due(now), now + seconds{5});
  now = statuses.next_due(now);
  EXPECT_EQ(due(), "sweep:start");
  answer();
  // Enough of them need not wait: some 21 KiB, of which each has half of what a task may take.
  const auto end_up_to = [&](int last) {
    for (int i = 10; i <= last; ++i) {
      mark(*jobs.find("sweep/" + std::to_string(i)), WriteUrgency::kCommit, "has ended");
    }
  };
  end_up_to(17);
  EXPECT_EQ(due(), "");
  end_up_to(20);
  EXPECT_EQ(due(), "sweep:start");
  answer();
  // The whole array has something to say.
  mark(array, WriteUrgency::kCommit, "canceled");
  EXPECT_EQ(due(), "sweep:requeued");
}

// If the ending were stored first and the operator crashed, the next leader would end the victim
// and know of no job that needed its nodes: a preemption for nothing.
TEST_F(StatusPublisherTest, AnEndingWaitsForTheClaimOfItsPreemptor) {
  JobRecord& victim = job("a-victim", 1, 0);
  JobRecord& preemptor = job("b-preemptor", 2, 0);
  victim.wanted_unmarked().allocation.emplace();
  victim.wanted_unmarked().ending.emplace();
  // As Decisions::on(End) sets it. The victim comes first by name, so the order of the lines is due
  // to the rule alone.
  statuses.write_after(victim, preemptor.id);
  mark(victim, WriteUrgency::kCommit, "");
  preemptor.wanted_unmarked().claim.emplace();
  mark(preemptor, WriteUrgency::kCommit, "");
  EXPECT_EQ(due(), "b-preemptor:claim");
  EXPECT_EQ(due(), "");
  stored(preemptor);
  EXPECT_EQ(due(), "a-victim:ending");
}

// A leader that came in between would give the job another number, and the one that waits for it by
// its name would wait for a job that is gone.
TEST_F(StatusPublisherTest, ANumberIsWrittenBeforeWhatNamesIt) {
  JobRecord& named = job("named", 0, 0);
  jobs.set_id(named, sched::JobId{7});
  JobRecord& waits = job("awaits", 1, 0);
  kube::DependencyStatus& term = waits.wanted_unmarked().dependency.emplace_back();
  term.job_name = "named";
  term.job_id = 7;
  statuses.write_after_end(waits, named.id);
  mark(waits, WriteUrgency::kUrgent, "");
  EXPECT_EQ(due(), "");
  named.wanted_unmarked().job_id = 7;
  mark(named, WriteUrgency::kUrgent, "");
  EXPECT_EQ(due(), "named:status");
  EXPECT_EQ(due(), "");
  stored(named);
  EXPECT_EQ(due(), "awaits:status");
}

// A task has ended for a preemptor, and the next one starts in its place, since one may run.
struct ThrottledArrayTest : StatusPublisherTest {
  ThrottledArrayTest() {
    kube::Job object;
    object.metadata = {.name = "sweep", .ns = "team-a", .uid = "sweep", .resource_version = "1"};
    object.spec.array.emplace().tasks = "0-1";
    object.status.job_id = 1;
    object.status.state = kube::JobState::kRunning;
    kube::ArrayTask& first = object.status.array.emplace().tasks.emplace_back();
    first.job_id = 1;
    first.starts = 1;
    first.allocation.emplace();
    (void)jobs.observe({{{"team-a", "sweep"}, std::make_shared<const kube::Job>(object)}});
    JobRecord& array = *jobs.find("sweep");
    sched::JobRequest request;
    request.array.emplace().at_once = 1;
    edit(array.wishes).request = std::make_shared<const sched::JobRequest>(request);
    // As Decisions does it.
    JobRecord& preempted = *jobs.find("sweep/0");
    preempted.wanted_unmarked().ending.emplace();
    statuses.write_after(preempted, preemptor.id);
    mark(preempted, WriteUrgency::kCommit, "");
    JobRecord& next = jobs.make_task(array, 1, nullptr);
    next.wanted_unmarked().starts = 1;
    next.wanted_unmarked().job_id = 2;
    next.wanted_unmarked().allocation.emplace();
    mark(next, WriteUrgency::kCommit, "");
    preemptor.wanted_unmarked().claim.emplace();
    mark(preemptor, WriteUrgency::kCommit, "");
  }
  // Returns which tasks have nodes in the status of the array that is wanted.
  std::string tasks_with_nodes() {
    std::string text;
    for (const kube::ArrayTask& task : jobs.find("sweep")->wanted().array->tasks) {
      if (task.allocation && !task.ending) text += std::to_string(task.task);
    }
    return text;
  }
  JobRecord& preemptor = job("urgent", 9, 0);
};

// Stored in between, both tasks would run for the next leader.
TEST_F(ThrottledArrayTest, WhatStartsInThePlaceOfAPreemptedTaskIsWrittenWithItsEnd) {
  EXPECT_EQ(due(), "urgent:claim");
  EXPECT_EQ(due(), "");
  EXPECT_EQ(statuses.next_due(now), base::kNever) << "the answer will tell";
  stored(preemptor);
  EXPECT_EQ(statuses.next_due(now), now);
  EXPECT_EQ(due(), "sweep:ending");
  EXPECT_EQ(tasks_with_nodes(), "1");
}

// Each of the two writes would wait for the other one.
TEST_F(ThrottledArrayTest, TheStartComesFirstIfThePreemptorWaitsForIt) {
  preemptor.wanted_unmarked().dependency.push_back(
      {.type = kube::DependencyType::kAfter, .job_id = 1});
  statuses.write_after_end(preemptor, sched::JobId{1});
  EXPECT_EQ(due(), "sweep:start");
  EXPECT_EQ(tasks_with_nodes(), "01");
  JobRecord& array = *jobs.find("sweep");
  stored(array);
  stored(*jobs.find("sweep/1"));
  EXPECT_EQ(due(), "urgent:claim");
  stored(preemptor);
  now += seconds{1};  // the status of an array rests
  EXPECT_EQ(due(), "sweep:ending");
  EXPECT_EQ(tasks_with_nodes(), "1");
}

// The same over others: the preemptor waits for the start of a task of another array, that one for
// the claim of another preemptor, and that for the start here.
TEST_F(ThrottledArrayTest, TheStartComesFirstIfThePreemptorWaitsForItByWayOfOthers) {
  JobRecord& between = job("between", 10, 0);
  between.wanted_unmarked().starts = 1;
  between.wanted_unmarked().allocation.emplace();
  between.wanted_unmarked().ending.emplace();
  mark(between, WriteUrgency::kCommit, "");
  JobRecord& other = job("urgent-too", 11, 0);
  other.wanted_unmarked().claim.emplace();
  mark(other, WriteUrgency::kCommit, "");
  statuses.write_after(between, other.id);
  preemptor.wanted_unmarked().dependency.push_back(
      {.type = kube::DependencyType::kAfter, .job_id = 10});
  statuses.write_after_end(preemptor, between.id);
  other.wanted_unmarked().dependency.push_back({.type = kube::DependencyType::kAfter, .job_id = 1});
  statuses.write_after_end(other, sched::JobId{1});
  // Two of the circle may go first.
  EXPECT_EQ(due(), "between:ending");
  stored(between);
  EXPECT_EQ(due(), "urgent:claim");
  stored(preemptor);
  EXPECT_EQ(due(), "sweep:ending");
  stored(*jobs.find("sweep"));
  stored(*jobs.find("sweep/1"));
  EXPECT_EQ(due(), "urgent-too:claim");
}

// Two tokens in a second, as while more important writes wait: the two of highest priority first.
// "high" may be written again a minute after its last time, and not at 51 s.
TEST_F(StatusPublisherTest, WhatInformsGoesByPriorityWithinItsBudgetAndOnceAMinute) {
  budget.restore(now);
  JobRecord& low = job("low", 1, 10);
  JobRecord& high = job("high", 2, 30);
  JobRecord& middle = job("middle", 3, 20);
  for (JobRecord* each : {&low, &high, &middle}) mark(*each, WriteUrgency::kInforms, "waits");
  EXPECT_EQ(due(), "");
  EXPECT_EQ(due_informing(), "");
  now += seconds{1};
  EXPECT_EQ(due_informing(), "high:status middle:status");
  now += seconds{1};
  EXPECT_EQ(due_informing(), "low:status");
  stored(high);
  mark(high, WriteUrgency::kInforms, "still waits");
  EXPECT_EQ(due(), "");
  now += seconds{50};
  EXPECT_EQ(due_informing(), "");
  now += seconds{10};
  EXPECT_EQ(due_informing(), "high:status");
}

// A new leader computes the reasons of all jobs; most are what its predecessor has written.
// Thousands of writes without content at each change of leaders would hold up those that start
// jobs.
TEST_F(StatusPublisherTest, WhatIsStoredAlreadyIsNotWrittenAgain) {
  budget.restore(now);
  JobRecord& a = job("a", 1, 0);
  mark(a, WriteUrgency::kInforms, a.status.stored().message);
  EXPECT_EQ(due(), "");
  now += seconds{5};
  EXPECT_EQ(due_informing(), "");
  EXPECT_EQ(a.status.urgency(), WriteUrgency::kClean);
  EXPECT_EQ(statuses.next_due(now), base::kNever);
  mark(a, WriteUrgency::kUrgent, "");  // what is asked for at once is not questioned
  EXPECT_EQ(due(), "a:status");
}

// The name of a commit point follows from the state that it writes. Tests and the crash points of
// the operator select writes by these names.
TEST_F(StatusPublisherTest, NamesTheCommitPointByWhatItWrites) {
  JobRecord& a = job("a", 1, 0);
  const auto written = [&](const char* what) {
    mark(a, WriteUrgency::kCommit, what);
    const std::string text = due();
    stored(a);
    return text;
  };
  EXPECT_EQ(written("waits again"), "a:requeued");
  a.wanted_unmarked().claim.emplace();
  EXPECT_EQ(written("preempts"), "a:claim");
  a.wanted_unmarked().claim.reset();
  a.wanted_unmarked().allocation.emplace();
  EXPECT_EQ(written("starts"), "a:start");
  (void)jobs.set_condition(a, WriteUrgency::kCommit, kube::kReady, kube::ConditionStatus::kTrue,
                           "Settled", "");
  EXPECT_EQ(written("runs"), "a:ready");
  a.wanted_unmarked().ending.emplace();
  EXPECT_EQ(written("ends"), "a:ending");
  a.wanted_unmarked().state = kube::JobState::kCompleted;
  EXPECT_EQ(written("has ended"), "a:final");
}

// An ending whose preemptor is no longer known waits for nothing. It would wait forever, and
// its nodes with it.
TEST_F(StatusPublisherTest, AnEndingDoesNotWaitForAJobThatIsGone) {
  JobRecord& victim = job("victim", 1, 0);
  victim.wanted_unmarked().allocation.emplace();
  victim.wanted_unmarked().ending.emplace();
  // No job has that number.
  statuses.write_after(victim, sched::JobId{99});
  mark(victim, WriteUrgency::kCommit, "");
  EXPECT_EQ(due(), "victim:ending");
  EXPECT_FALSE(victim.commit_after->has_value());
}

// Nothing else marks the job again, so the failure alone must bring it back into the line.
TEST_F(StatusPublisherTest, AFailedWriteIsDueAgainAfterItsBackOff) {
  JobRecord& a = job("a", 1, 0);
  mark(a, WriteUrgency::kUrgent, "say this");
  EXPECT_EQ(due(), "a:status");
  EXPECT_EQ(statuses.next_due(now), base::kNever) << "its outcome will tell";
  const base::Error away{base::Code::kUnavailable, "away"};
  EXPECT_EQ(a.status.answered(away, away, now), WriteEnd::kFailed);
  statuses.look_again(a.uid);
  EXPECT_EQ(due(), "");
  now = statuses.next_due(now);
  ASSERT_GT(now, kAtFirst);
  EXPECT_EQ(due(), "a:status");
}

// In turn: there is no room, the API server takes its time, a write has failed, and it is stored.
TEST_F(StatusPublisherTest, SaysHowLongTheOldestHasWaitedAndForWhat) {
  const auto expect = [&](int time, WriteWaitsFor what) {
    EXPECT_EQ(statuses.oldest(now).time, seconds{time});
    EXPECT_EQ(statuses.oldest(now).waits_for, what);
  };
  JobRecord& a = job("a", 1, 0);
  expect(0, {});
  mark(a, WriteUrgency::kCommit, "say this");
  EXPECT_EQ(due(0), "");
  now += seconds{1};
  JobRecord& b = job("b", 2, 0);
  mark(b, WriteUrgency::kUrgent, "and this");
  EXPECT_EQ(due(0), "");
  expect(1, WriteWaitsFor::kRoom);
  now += seconds{1};
  EXPECT_EQ(due(), "a:requeued b:status");
  expect(2, WriteWaitsFor::kAnswer);
  const base::Error unavailable{base::Code::kUnavailable, "busy"};
  EXPECT_EQ(a.status.answered(unavailable, base::Error{}, now), WriteEnd::kFailed);
  statuses.look_again("a");
  stored(b);
  EXPECT_EQ(due(), "");
  expect(2, WriteWaitsFor::kBackOff);
  now += seconds{60};
  EXPECT_EQ(due(), "a:requeued");
  stored(a);
  expect(0, {});
}

// Policies: what a verdict says at once, what it only adds within the budget. Counts of jobs change
// with each start, so a QOS is written once in 5 s at most, and out of the same budget as the
// reasons of jobs.
TEST_F(StatusPublisherTest, WritesTheStatusesOfPoliciesToo) {
  budget.restore(now);
  kube::Qos gold;
  gold.metadata.name = gold.metadata.uid = "gold";
  gold.metadata.resource_version = "1";
  Changes<kube::Qos> changes;
  changes[{"", "gold"}] = std::make_shared<const kube::Qos>(gold);
  policy.observe(changes);
  (void)policy.decide({}, now);
  EXPECT_EQ(statuses.next_due(now), now);
  const auto effects = statuses.due(now, kTerm, kRoom);
  ASSERT_EQ(effects.size(), 1U);
  const auto& patch = std::get<PatchStatus<kube::Qos>>(effects[0]);
  EXPECT_EQ(patch.point, WritePoint::kQosStatus);
  EXPECT_TRUE(patch.to->status.accepted.has_value());
  EXPECT_FALSE(patch.from->status.accepted.has_value());
  EXPECT_EQ(statuses.next_due(now), base::kNever);
  auto& mirror = *policy.find_status<kube::Qos>("gold");
  kube::Qos answer = mirror.object_with(mirror.wanted());
  answer.metadata.resource_version = "2";
  EXPECT_EQ(mirror.answered(answer, base::Error{}, now), WriteEnd::kStored);

  mirror.change(WriteUrgency::kInforms).running = 1;
  EXPECT_TRUE(statuses.due(now, kTerm, kRoom).empty());
  EXPECT_TRUE(statuses.due_informing_policies(now).empty()) << "there is no budget yet";
  now += seconds{1};
  budget.refill(now, true);
  EXPECT_GT(statuses.next_due(now), now);
  EXPECT_EQ(statuses.due_informing_policies(now).size(), 1U);
  EXPECT_EQ(budget.tokens(), 1);
  EXPECT_EQ(mirror.answered(answer, base::Error{}, now), WriteEnd::kStored);
  mirror.mark(WriteUrgency::kInforms);
  now += seconds{4};
  budget.refill(now, true);
  EXPECT_TRUE(statuses.due_informing_policies(now).empty()) << "once in 5 s";
  EXPECT_EQ(statuses.next_due(now), now + seconds{1});
  now += seconds{1};
  EXPECT_EQ(statuses.due_informing_policies(now).size(), 1U);
}

// A status that finds no room is written when its turn comes, as it is then.
TEST_F(StatusPublisherTest, WritesNoMoreThanThereIsRoomFor) {
  JobRecord& a = job("a", 1, 0);
  JobRecord& b = job("b", 2, 0);
  for (JobRecord* each : {&a, &b}) mark(*each, WriteUrgency::kCommit, "first");
  EXPECT_EQ(due(0), "");
  EXPECT_TRUE(a.status.is_uncommitted());
  EXPECT_EQ(due(1), "a:requeued");
  EXPECT_EQ(due(0), "");
  EXPECT_EQ(statuses.next_due(now), base::kNever) << "an answer makes room";
  mark(b, WriteUrgency::kCommit, "second");
  const auto effects = statuses.due(now, kTerm, 1);
  ASSERT_EQ(text(effects), "b:requeued");
  EXPECT_EQ(std::get<PatchStatus<kube::Job>>(effects[0]).to->status.message, "second");
}

// Ten jobs, five with a state to tell and five with a commit point. Commit points free nodes and
// start pods; but if they had all of the room, users would see no states while the load lasts.
TEST_F(StatusPublisherTest, CommitPointsGoFirstAndStatesHaveAQuarterOfTheRoom) {
  for (const char* name : {"a", "b", "c", "d", "e"}) {
    mark(job(name, 1, 0), WriteUrgency::kUrgent, "waits");
  }
  EXPECT_EQ(due(0), "");
  for (const char* name : {"v", "w", "x", "y", "z"}) {
    mark(job(name, 2, 0), WriteUrgency::kCommit, "starts");
  }
  mark(*jobs.find("b"), WriteUrgency::kCommit, "starts, too");
  // Room for four: one of them is kept for states. b stood in the line of states and has become a
  // commit point, so it goes first and is not written twice.
  EXPECT_EQ(due(4), "b:requeued v:requeued w:requeued a:status");
  EXPECT_EQ(due(1), "c:status");
  EXPECT_EQ(due(100), "x:requeued y:requeued z:requeued d:status e:status");
  EXPECT_EQ(due(100), "");
}

// Jobs have become ready. On nodes whose jobs take turns the timetables wait for that. Where they
// do not it is said as what informs is, of which there are two writes a second here; but at once,
// also of a job that has just said why it waits.
TEST_F(StatusPublisherTest, ReadinessForWhichNothingWaitsInforms) {
  budget.restore(now);
  const auto ready = [this](const char* name, bool late) {
    JobRecord& one = *jobs.find(name);
    one.wanted_unmarked().allocation.emplace();
    one.wanted_unmarked().conditions.push_back(
        {.type = std::string{kube::kReady}, .status = kube::ConditionStatus::kTrue});
    if (late) edit(one.gang).late_readiness = now;
    jobs.mark(one, late ? WriteUrgency::kInforms : WriteUrgency::kCommit);
  };
  mark(job("a", 1, 30), WriteUrgency::kInforms, "waits");
  EXPECT_EQ(due(), "");
  now += seconds{1};
  EXPECT_EQ(due_informing(), "a:status");
  stored(*jobs.find("a"));
  int number = 2;
  for (const char* name : {"b", "c", "d", "z"}) (void)job(name, number++, 20);
  for (const char* name : {"a", "b", "c", "d"}) ready(name, true);
  ready("z", false);
  EXPECT_EQ(due(), "z:ready");
  now += seconds{1};
  EXPECT_EQ(due_informing(), "a:ready b:ready");
  // One ends before it is its turn: that is one write.
  JobRecord& ending = *jobs.find("c");
  ending.wanted_unmarked().ending.emplace();
  mark(ending, WriteUrgency::kCommit, "it ends");
  EXPECT_EQ(due(), "c:ending");
  // It has waited for long (GangRunner).
  jobs.mark(*jobs.find("d"), WriteUrgency::kUrgent);
  EXPECT_EQ(due(), "d:ready");
  now += seconds{1};
  EXPECT_EQ(due_informing(), "");
}

// It is in the line when its preemptor's claim becomes what it must wait for.
TEST_F(StatusPublisherTest, WhatMayNotBeWrittenWhenItsTurnComesIsLookedAtAgain) {
  JobRecord& victim = job("a-victim", 1, 0);
  JobRecord& preemptor = job("b-preemptor", 2, 0);
  mark(victim, WriteUrgency::kCommit, "");
  EXPECT_EQ(due(0), "");
  statuses.write_after(victim, preemptor.id);
  mark(preemptor, WriteUrgency::kCommit, "");
  EXPECT_EQ(due(), "b-preemptor:requeued");
  stored(preemptor);
  EXPECT_EQ(due(), "a-victim:requeued");
}

// A write has met no object, and no watch has shown that yet. A time for the next try would be over
// now, and the loop would ask for it without a rest.
TEST_F(ThrottledArrayTest, TasksOfAnArrayThatIsGoneHaveNoTimeToBeWritten) {
  EXPECT_EQ(due(), "urgent:claim");
  stored(preemptor);
  jobs.find("sweep")->status.saw_gone();
  EXPECT_EQ(due(), "");
  EXPECT_EQ(statuses.next_due(now), base::kNever);
}

// The write would only fail, and its failure would be tried again.
TEST_F(StatusPublisherTest, AJobThatIsGoneIsNotWritten) {
  JobRecord& a = job("a", 1, 0);
  mark(a, WriteUrgency::kUrgent, "too late");
  Changes<kube::Job> gone;
  gone[{"team-a", "a"}] = nullptr;
  (void)jobs.observe(gone);
  EXPECT_EQ(due(), "");
  EXPECT_EQ(statuses.next_due(now), base::kNever);
}

}  // namespace
}  // namespace control
