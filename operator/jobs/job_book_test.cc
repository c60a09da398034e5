#include "operator/jobs/job_book.h"

#include <gtest/gtest.h>

#include <functional>

#include <nlohmann/json.hpp>

#include "api/wellknown.h"
#include "operator/testing/edit_owned.h"

namespace control {
namespace {

using std::chrono::seconds;

constexpr base::Instant kStart{seconds{1'000}};

// Returns a Job as its user has just created it; `version` is its resourceVersion.
kube::Job job_object(const std::string& name, const std::string& version) {
  kube::Job job;
  job.metadata.name = name;
  job.metadata.ns = "team-a";
  job.metadata.uid = "uid-" + name;
  job.metadata.resource_version = version;
  job.metadata.generation = 1;
  return job;
}

// Returns a Job that has completed as number `id`.
kube::Job ended_job(const std::string& name, const std::string& version, std::int64_t id) {
  kube::Job job = job_object(name, version);
  job.status.state = kube::JobState::kCompleted;
  job.status.job_id = id;
  return job;
}

// The book alone: no scheduler, no API server. Objects are shown as a watch would show them.
struct JobBookTest : testing::Test {
  JobBook::Seen see(const std::vector<kube::Job>& objects) {
    Changes<kube::Job> changes;
    for (const kube::Job& object : objects) {
      changes[kube::key_of(object.metadata)] = std::make_shared<const kube::Job>(object);
    }
    return book.observe(changes);
  }
  // The watch shows that the Job was deleted.
  JobBook::Seen see_gone(const std::string& name) {
    Changes<kube::Job> changes;
    changes[{"team-a", name}] = nullptr;
    return book.observe(changes);
  }

  base::Instant now = kStart;
  TemplateBook templates;
  PodIndex pods;
  JobBook book{now, templates, pods};
};

// The time of creation first; within one second what was stored first. Numbers are given in
// this order, and users expect a file's jobs to be numbered as they stand there.
TEST_F(JobBookTest, JobsComeInTheOrderInWhichTheyWereMade) {
  book.restored();
  kube::Job late = job_object("a", "10");
  late.metadata.creation_timestamp = kStart + seconds{1};
  kube::Job second = job_object("b", "9");
  second.metadata.creation_timestamp = kStart;
  kube::Job first = job_object("c", "8");
  first.metadata.creation_timestamp = kStart;
  see({late, second, first});
  // c was stored before b in the same second; a was made a second later. The names say the
  // opposite.
  EXPECT_EQ(book.take_touched(), (std::vector<std::string>{"uid-c", "uid-b", "uid-a"}));
  EXPECT_TRUE(book.take_touched().empty());
}

// A number in a status counts only while a leader restores. Afterwards a Job that comes with one (a
// copy, a restored backup) may not take a number that another job has.
TEST_F(JobBookTest, FindsJobsByNumberAndByUid) {
  kube::Job known = job_object("known", "1");
  known.status.job_id = 7;
  see({known});
  ASSERT_NE(book.find(sched::JobId{7}), nullptr);
  EXPECT_EQ(book.find(sched::JobId{7}), book.find("uid-known"));
  EXPECT_EQ(book.highest_id(), 7);
  book.restored();
  kube::Job claims = job_object("claims", "2");
  claims.status.job_id = 8;
  see({claims});
  EXPECT_EQ(book.find(sched::JobId{8}), nullptr) << "we did not give that number";
}

// An operator of a lower term has stored something since this one has listed: a reason is written
// over, a start's number is used up, and a final state must not be.
TEST_F(JobBookTest, WhatALeaderThatWasReplacedStoresLate) {
  kube::Job listed = job_object("one", "5");
  listed.status.term = 3;
  listed.status.state = kube::JobState::kPending;
  const auto late = [&](const std::function<void(kube::JobStatus&)>& change) {
    JobBook fresh{now, templates, pods};
    Changes<kube::Job> changes;
    changes[kube::key_of(listed.metadata)] = std::make_shared<const kube::Job>(listed);
    (void)fresh.observe(changes);
    fresh.restored(4);
    kube::Job stored = listed;
    stored.metadata.resource_version = "6";
    change(stored.status);
    changes[kube::key_of(listed.metadata)] = std::make_shared<const kube::Job>(stored);
    const bool lists_again = fresh.observe(changes).late == "uid-one";
    return std::pair{lists_again, fresh.find("uid-one")->wanted().starts.value_or(0)};
  };
  const auto is = [](bool lists_again, std::int64_t starts) {
    return std::pair{lists_again, starts};
  };
  EXPECT_EQ(late([](auto& status) { status.reason = "Resources"; }), is(false, 0));
  const auto start = [](kube::JobStatus& status) {
    status.state = kube::JobState::kRunning;
    status.starts = 1;
    status.allocation.emplace().hostlist = "n1";
  };
  EXPECT_EQ(late(start), is(false, 1));
  const auto with_ending = [&](kube::JobStatus& status) {
    start(status);
    status.ending.emplace();
  };
  EXPECT_EQ(late(with_ending).first, true) << "a start and its end may be one write";
  EXPECT_EQ(late([](auto& status) { status.state = kube::JobState::kCancelled; }).first, true);

  start(listed.status);
  EXPECT_EQ(late([](auto& status) { status.state = kube::JobState::kSuspended; }), is(false, 1))
      << "a turn is over";
  EXPECT_EQ(late([](auto& status) { status.state = kube::JobState::kCompleted; }).first, true);
  EXPECT_EQ(late([](auto& status) { status.succeeded_indexes = "0"; }).first, true);
  EXPECT_EQ(late([](auto& status) { status.member_indexes = "0,2"; }).first, true);
  EXPECT_EQ(late([](auto& status) { status.restarts = 1; }).first, true);

  listed.status = {.state = kube::JobState::kPending, .term = 3};
  listed.status.array.emplace();
  listed.spec.array.emplace().tasks = "0-3";
  const auto task_starts = [](kube::JobStatus& status) {
    status.array->tasks.push_back({.task = 1,
                                   .state = kube::JobState::kRunning,
                                   .starts = 1,
                                   .allocation = kube::Allocation{}});
  };
  EXPECT_EQ(late(task_starts).first, false);
  EXPECT_EQ(late([](auto& status) { status.array->succeeded = "2"; }).first, true);
  task_starts(listed.status);
  EXPECT_EQ(late([](auto& status) { status.array->tasks[0].ending.emplace(); }).first, true);
}

// Pods and timetables wait for a commit point, so the job is looked at again; a reason concerns
// nothing else. "Touched" jobs are looked at in the next step of the loop, "marked" ones have a
// status to write.
TEST_F(JobBookTest, MarksAreTakenOnceAndCommitPointsTouch) {
  see({job_object("one", "1")});
  (void)book.take_touched();
  JobRecord& job = *book.find("uid-one");
  book.mark(job, WriteUrgency::kInforms);
  EXPECT_EQ(book.take_marked(), std::set<std::string>{"uid-one"});
  EXPECT_TRUE(book.marked().empty());
  EXPECT_TRUE(book.take_touched().empty());
  book.mark(job, WriteUrgency::kCommit);
  EXPECT_EQ(book.take_touched().size(), 1U);
  EXPECT_EQ(job.status.urgency(), WriteUrgency::kCommit);
}

// Nothing says a second time what is wanted already, nor is that written.
TEST_F(JobBookTest, AChangeIsMarkedAndAConditionOnlyIfItIsOne) {
  see({job_object("one", "1")});
  JobRecord& job = *book.find("uid-one");
  const auto says_ready = [&] {
    return book.set_condition(job, WriteUrgency::kUrgent, kube::kReady,
                              kube::ConditionStatus::kTrue, "Settled", "all its pods run");
  };
  EXPECT_TRUE(says_ready());
  EXPECT_EQ(job.status.urgency(), WriteUrgency::kUrgent);
  EXPECT_EQ(book.take_marked(), std::set<std::string>{"uid-one"});
  now += seconds{1};
  EXPECT_FALSE(says_ready());
  EXPECT_TRUE(book.marked().empty());
  const std::string text(2 * kube::kStatusMessageBytesMax, 'x');
  book.change(job, WriteUrgency::kInforms, [&](auto& wanted) { wanted.message = text; });
  EXPECT_EQ(job.wanted().message.size(), kube::kStatusMessageBytesMax);
  EXPECT_EQ(book.take_marked(), std::set<std::string>{"uid-one"});
}

// The status is the operator's alone, and the next leader restores the queue from it. A hand that
// edits it, or a leader that has not noticed its end, must not decide about jobs.
TEST_F(JobBookTest, AStatusThatAnotherWriterChangedIsWrittenAgain) {
  see({job_object("one", "1")});
  kube::Job stolen = job_object("one", "2");
  stolen.status.message = "not ours";
  // A status that another leader has written carries its term; the loop compares it with its own.
  stolen.status.term = 5;
  EXPECT_EQ(see({stolen}).term, 5);
  EXPECT_EQ(book.find("uid-one")->status.urgency(), WriteUrgency::kUrgent);
  EXPECT_EQ(book.find("uid-one")->wanted().message, "");
}

// A job has one timer for all its reasons to be looked at: coming too early costs one look, coming
// too late could leave a pod running.
TEST_F(JobBookTest, TheEarlierTimerCounts) {
  see({job_object("one", "1")});
  (void)book.take_touched();
  JobRecord& job = *book.find("uid-one");
  book.set_timer(job, kStart + seconds{5});
  // Later than what is set, so it changes nothing; the one after it is earlier and replaces it.
  book.set_timer(job, kStart + seconds{9});
  EXPECT_EQ(book.next_due(), kStart + seconds{5});
  book.set_timer(job, kStart + seconds{2});
  EXPECT_EQ(book.next_due(), kStart + seconds{2});
  now = kStart + seconds{2};
  book.fire_timers();
  EXPECT_EQ(book.take_touched().size(), 1U);
  EXPECT_EQ(book.next_due(), base::kNever);
}

// The spec was edited without a leader: a tool that waits for observedGeneration waits forever
// otherwise.
TEST_F(JobBookTest, AFinishedJobThatWasEditedWhileNobodyLedIsLookedAtAgain) {
  kube::Job edited = ended_job("edited", "1", 3), same = ended_job("same", "2", 4);
  edited.metadata.generation = 2;
  edited.status.observed_generation = 1;
  same.metadata.generation = 1;
  same.status.observed_generation = 1;
  see({edited, same});
  EXPECT_EQ(book.put_away_count(), 2);
  book.restored();
  book.touch_all();
  EXPECT_EQ(book.put_away_count(), 1);
  EXPECT_NE(book.peek("uid-edited"), nullptr);
  EXPECT_EQ(book.take_touched().size(), 1U);
  // The same for one that comes later, from a backup.
  kube::Job late = ended_job("late", "3", 5);
  late.metadata.generation = 2;
  late.status.observed_generation = 1;
  see({late});
  EXPECT_NE(book.peek("uid-late"), nullptr);
  EXPECT_EQ(book.take_touched().size(), 1U);
}

// Clusters keep tens of thousands of finished Jobs; a record for each would be most of the
// operator's memory. A pod that still exists brings the record back until it is done with.
TEST_F(JobBookTest, OfAJobThatHasEndedOnlyTheObjectIsKept) {
  EXPECT_EQ(see({ended_job("done", "1", 3)}).ended.size(), 1U);
  EXPECT_EQ(book.put_away_count(), 1);
  EXPECT_EQ(book.peek("uid-done"), nullptr);
  EXPECT_EQ(book.highest_id(), 3);

  // Taken out, with its pods, and put away again.
  kube::Pod pod;
  pod.metadata.name = "done-x-0";
  pod.metadata.ns = "team-a";
  pod.metadata.owner_references.push_back({.api_version = "kubegang.io/v1alpha1",
                                           .kind = "Job",
                                           .name = "done",
                                           .uid = "uid-done",
                                           .controller = true});
  pod.spec.node_name = "n1";
  pod.status.phase = kube::PodPhase::kSucceeded;
  const kube::ObjectKey key{"team-a", "done-x-0"};
  const auto change = pods.observe(key, std::make_shared<const kube::Pod>(pod));
  EXPECT_TRUE(book.put_pod(key, *change.after)) << "it is not an orphan";
  EXPECT_EQ(book.put_away_count(), 1);
  JobRecord* job = book.find("uid-done");
  ASSERT_NE(job, nullptr);
  EXPECT_EQ(job->pods->size(), 1U);
  EXPECT_EQ(book.put_away_count(), 0);
  EXPECT_EQ(book.take_touched().size(), 1U);
  book.end(*job);
  EXPECT_TRUE(book.put_away(*job));
  EXPECT_EQ(book.put_away_count(), 1);
}

// Whatever of the record does not follow from its object: it would be lost. Each case changes one
// thing in a record that could be put away otherwise.
TEST_F(JobBookTest, AJobWithSomethingLeftToSayIsNotPutAway) {
  const std::vector<std::pair<std::string, std::function<void(JobRecord&)>>> cases{
      {"unwritten", [&](JobRecord& job) { book.mark(job, WriteUrgency::kInforms); }},
      // A write under way may fail, and its answer must find the record.
      {"being written",
       [&](JobRecord& job) {
         book.mark(job, WriteUrgency::kUrgent);
         job.status.begin(now);
       }},
      {"deleted", [](JobRecord& job) { job.status.saw_gone(); }},
      {"unjudged", [&](JobRecord& job) { book.judge_again(job); }},
      {"template under way", [](JobRecord& job) { edit(job.launch).launching = true; }},
      {"pods under way", [](JobRecord& job) { edit(job.launch).creating = {0}; }},
      {"spec refused",
       [&](JobRecord& job) {
         kube::Job before = *job.object;
         before.spec.partitions = {"before"};
         book.accept(job, std::make_shared<const kube::Job>(before));
       }},
      // The watch lags behind the answer to a write: what it shows is not yet what is stored.
      {"older version seen",
       [](JobRecord& job) {
         kube::Job object = *job.object;
         object.metadata.resource_version = "0";
         job.object = std::make_shared<const kube::Job>(object);
       }},
      {"another status seen", [](JobRecord& job) {
         kube::Job object = *job.object;
         object.status.message = "not ours";
         job.object = std::make_shared<const kube::Job>(object);
       }}};
  for (const auto& [name, change] : cases) {
    see({ended_job(name, "1", 3)});
    JobRecord& job = *book.find("uid-" + name);
    change(job);
    EXPECT_FALSE(book.put_away(job)) << name;
    EXPECT_EQ(book.peek("uid-" + name), &job);
  }
}

// Nothing is left of its record: no timer, no mark, no number. A timer that stayed would look for a
// record that is gone.
TEST_F(JobBookTest, AJobThatIsPutAwayLeavesNothingButItsObject) {
  see({ended_job("done", "1", 3)});
  JobRecord& job = *book.find("uid-done");
  book.set_timer(job, kStart + seconds{5});
  book.mark(job, WriteUrgency::kInforms);
  job.status.unmark();
  ASSERT_TRUE(book.put_away(job));
  EXPECT_EQ(book.next_due(), base::kNever);
  EXPECT_TRUE(book.marked().empty());
  EXPECT_EQ(book.find(sched::JobId{3}), nullptr);
  EXPECT_EQ(book.peek("uid-done"), nullptr);
}

// A watch that lags behind shows an older spec: it does not count. A newer one is judged. The job
// may run by the newer spec already; judged by the older one it would be taken back.
TEST_F(JobBookTest, OnlyANewerSpecIsJudged) {
  kube::Job first = job_object("one", "2");
  first.metadata.generation = 2;
  see({first});
  JobRecord& job = *book.find("uid-one");
  (void)book.take_judge_again(job);
  (void)book.take_touched();
  kube::Job older = job_object("one", "1");
  older.spec.partitions = {"older"};
  see({older});
  EXPECT_TRUE(job.object->spec.partitions.empty());
  EXPECT_FALSE(*job.judge_again);
  kube::Job newer = job_object("one", "3");
  newer.metadata.generation = 3;
  newer.spec.partitions = {"newer"};
  see({newer});
  EXPECT_EQ(job.object->spec.partitions, std::vector<std::string>{"newer"});
  EXPECT_TRUE(*job.judge_again);
  EXPECT_EQ(book.take_touched(), std::vector<std::string>{"uid-one"});
  // A restore of etcd has taken the edit back.
  (void)book.take_judge_again(job);
  kube::Job restored = job_object("one", "4");
  restored.metadata.generation = 2;
  see({restored});
  EXPECT_TRUE(job.object->spec.partitions.empty());
  EXPECT_TRUE(*job.judge_again);
}

// The informer has a change of its template, which no job may change. The Job's own
// object comes without its template, so a change shows only beside it.
TEST_F(JobBookTest, ATemplateThatChangedIsJudged) {
  templates.learn("uid-one", kube::RawJson{nlohmann::json{{"spec", 1}}});
  see({job_object("one", "1")});
  JobRecord& job = *book.find("uid-one");
  ASSERT_EQ(job.pod_template, templates.find("uid-one"));
  (void)book.take_judge_again(job);
  see({job_object("one", "2")});
  EXPECT_FALSE(*job.judge_again);
  templates.learn("uid-one", kube::RawJson{nlohmann::json{{"spec", 2}}});
  see({job_object("one", "3")});
  EXPECT_TRUE(*job.judge_again);
  EXPECT_EQ(job.pod_template, templates.find("uid-one"));
}

TEST_F(JobBookTest, APodOfItsJobIsIndexedAndTouchesIt) {
  see({job_object("one", "1")});
  (void)book.take_touched();
  JobRecord& job = *book.find("uid-one");
  kube::Pod pod;
  pod.metadata.uid = "first";
  const auto shown = std::make_shared<const kube::Pod>(pod);
  const PodPlace place{.node = "n1", .job_uid = "uid-one", .pod = shown};
  EXPECT_FALSE(book.put_pod({"team-b", "one-0"}, place)) << "of another namespace";
  EXPECT_TRUE(book.put_pod({"team-a", "one-0"}, place));
  EXPECT_EQ(job.pods->size(), 1U);
  EXPECT_EQ(book.take_touched(), std::vector<std::string>{"uid-one"});
  book.erase_pod({"team-a", "one-0"}, place);
  EXPECT_TRUE(job.pods->empty());
  EXPECT_EQ(book.take_touched(), std::vector<std::string>{"uid-one"});
}

// A pod of another namespace that names this UID as its owner lies: owner references do not cross
// namespaces. It is an orphan like any other.
TEST_F(JobBookTest, APodOfAJobThatHasEndedIsNotAnOrphanInItsNamespaceOnly) {
  see({ended_job("done", "1", 3)});
  kube::Pod pod;
  pod.status.phase = kube::PodPhase::kSucceeded;
  const PodPlace place{"n1", "uid-done", std::make_shared<const kube::Pod>(pod)};
  EXPECT_TRUE(book.put_pod({"team-a", "done-0"}, place));
  EXPECT_FALSE(book.put_pod({"team-b", "done-0"}, place));
  EXPECT_EQ(book.put_away_count(), 1);
}

// No other part would end it: the job, whose record may be there still, is done with its pods. Only
// that of a job that was deleted waits for them.
TEST_F(JobBookTest, APodThatRunsThoughItsJobHasEndedIsAnOrphan) {
  see({ended_job("done", "1", 3)});
  const PodPlace place{"n1", "uid-done", std::make_shared<const kube::Pod>()};
  const kube::ObjectKey key{"team-a", "done-0"};
  EXPECT_FALSE(book.put_pod(key, place));
  ASSERT_NE(book.find("uid-done"), nullptr) << "it is taken out";
  EXPECT_FALSE(book.put_pod(key, place));
  (void)see_gone("done");
  EXPECT_TRUE(book.put_pod(key, place));
}

// The job's pods may still run, and its nodes are not free before they are gone. A new Job of the
// same name may come meanwhile, and the two must not be mixed up.
TEST_F(JobBookTest, ADeletedJobStaysUntilItIsForgotten) {
  see({job_object("one", "1")});
  (void)book.take_touched();
  EXPECT_EQ(see_gone("one").deleted, std::vector<std::string>{"uid-one"});
  EXPECT_EQ(book.take_touched(), std::vector<std::string>{"uid-one"});
  EXPECT_TRUE(see_gone("one").deleted.empty()) << "once";
  JobRecord* job = book.find("uid-one");
  ASSERT_NE(job, nullptr);
  EXPECT_TRUE(job->deleted);
  // Another one of that name is another one.
  kube::Job again = job_object("one", "2");
  again.metadata.uid = "uid-again";
  see({again});
  EXPECT_EQ(book.size(), 2);
  book.set_timer(*job, kStart);
  book.set_id(*job, sched::JobId{7});
  book.mark(*job, WriteUrgency::kUrgent);
  book.forget(*job);
  EXPECT_EQ(book.size(), 1);
  EXPECT_EQ(book.find("uid-one"), nullptr);
  EXPECT_EQ(book.find(sched::JobId{7}), nullptr);
  EXPECT_TRUE(book.marked().empty());
  book.for_each_unfinished([](const JobRecord& left) { EXPECT_EQ(left.uid, "uid-again"); });
  EXPECT_EQ(book.next_due(), base::kNever);
}

// After a restore of etcd the task waits, and a pod is there of the start that was lost. The next
// start has that name, so its record knows the pod.
TEST_F(JobBookTest, ATaskThatStartsTakesThePodsThatHaveItsNames) {
  kube::Job array = job_object("sweep", "1");
  array.spec.array = kube::JobArray{.tasks = "1-20"};
  array.status.job_id = 7;
  see({array});
  book.restored();
  JobRecord& record = *book.find("uid-sweep");
  for (const int task : {1, 15}) {
    auto pod = std::make_shared<kube::Pod>();
    pod->metadata.name = "sweep-" + std::to_string(task) + "-abcde-0";
    pod->metadata.ns = "team-a";
    pod->metadata.uid = pod->metadata.name;
    pod->metadata.labels[std::string{kube::kLabelArrayTask}] = std::to_string(task);
    pod->metadata.owner_references = {{.api_version = "kubegang.io/v1alpha1",
                                       .kind = "Job",
                                       .name = "sweep",
                                       .uid = "uid-sweep",
                                       .controller = true}};
    pod->spec.node_name = "n1";
    pod->status.phase = kube::PodPhase::kSucceeded;
    const auto change = pods.observe(kube::key_of(pod->metadata), pod);
    ASSERT_TRUE(change.after.has_value());
    EXPECT_TRUE(book.put_pod(kube::key_of(pod->metadata), *change.after));
  }
  const JobRecord& task = book.make_task(record, 1, nullptr);
  ASSERT_EQ(task.pods->size(), 1U);
  EXPECT_EQ(task.pods->begin()->first, "sweep-1-abcde-0");
}

// The caller then keeps its node free of jobs, since the pod is in no gang's turn.
TEST_F(JobBookTest, APodOfAJobThatIsNotKnownIsAnOrphan) {
  EXPECT_FALSE(
      book.put_pod({"team-a", "p"}, {"n1", "uid-gone", std::make_shared<const kube::Pod>()}));
}

}  // namespace
}  // namespace control
