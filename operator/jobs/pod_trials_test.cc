#include "operator/jobs/pod_trials.h"

#include <gtest/gtest.h>

#include "operator/testing/edit_owned.h"

namespace control {
namespace {

using std::chrono::seconds;

constexpr base::Instant kTrialsAt{seconds{1'000}};

// Makes "big" with two nodes, the default; "empty" without any.
sched::Configuration two_partitions() {
  sched::Configuration configuration;
  configuration.cluster.kill_wait = seconds{7};
  configuration.partitions = {{.name = "big", .nodes = {"n1", "n2"}, .is_default = true},
                              {.name = "empty"}};
  return configuration;
}

// Returns a job in the queue that asks for 1 MiB on each node.
JobRecord waiting(const std::string& uid) {
  JobRecord job;
  job.key = {"team-a", "job-" + uid};
  job.uid = uid;
  edit(job.wishes).submitted = true;
  kube::Job object;
  object.spec.resources.memory_per_node = kube::Bytes{1 << 20};
  job.object = std::make_shared<const kube::Job>(object);
  return job;
}

// A trial is a dry run: the API server says whether it would take a pod of the job (quota,
// admission), long before the job starts. Three jobs wait for a trial, in the order a, b, c.
struct PodTrialsTest : testing::Test {
  PodTrialsTest() {
    for (const char* uid : {"a", "b", "c"}) {
      jobs[uid] = waiting(uid);
      jobs[uid].key.ns = std::string{"alone-"} + uid;  // so that none is like another
      trials.add(uid);
    }
  }
  // UIDs of the jobs of which a pod is tried at that instant.
  std::string due(base::Instant now) {
    budget.refill(now, true);  // two in a second
    std::string uids;
    for (const TryPod& effect : trials.due(budget, find, configuration)) uids += effect.uid;
    return uids;
  }

  const sched::Configuration configuration = two_partitions();
  std::map<std::string, JobRecord> jobs;
  PodTrials::FindJob find = [this](const std::string& uid) {
    const auto found = jobs.find(uid);
    return found == jobs.end() ? nullptr : &found->second;
  };
  InformBudget budget;
  PodTrials trials;
};

// The three jobs differ in their namespace, so each needs a trial of its own; the budget has two in
// a second.
TEST_F(PodTrialsTest, TriesInTheOrderOfSubmissionAsFarAsTheBudgetGoes) {
  budget.restore(kTrialsAt);
  EXPECT_EQ(due(kTrialsAt), "");
  EXPECT_EQ(trials.next_due(kTrialsAt), kTrialsAt + InformBudget::kLookAgain);
  EXPECT_EQ(due(kTrialsAt + seconds{1}), "ab");
  EXPECT_EQ(due(kTrialsAt + seconds{2}), "c");
  EXPECT_EQ(trials.next_due(kTrialsAt), base::kNever);
}

// a has nodes, b is forgotten, c is deleted. A trial costs the API server as much as a creation, so
// none is spent on an answer without use.
TEST_F(PodTrialsTest, LeavesOutWhatWaitsNoMore) {
  jobs["a"].wanted_unmarked().allocation.emplace();
  jobs.erase("b");
  jobs["c"].deleted = true;
  jobs["d"] = waiting("d");
  trials.add("d");
  EXPECT_EQ(due(kTrialsAt), "d") << "the others cost nothing";
}

// One of 20 jobs of one template is tried. An array of thousands of jobs would otherwise keep the
// budget for an hour.
TEST_F(PodTrialsTest, JobsThatAreAlikeShareATrial) {
  const auto add_alike = [this] {
    for (int i = 0; i < 20; ++i) {
      const std::string uid = "alike-" + std::to_string(i);
      jobs[uid] = waiting(uid);
      trials.add(uid);
    }
  };
  budget.restore(kTrialsAt);
  EXPECT_EQ(due(kTrialsAt + seconds{1}), "ab");
  add_alike();
  EXPECT_EQ(due(kTrialsAt + seconds{2}), "calike-0");
  EXPECT_EQ(trials.next_due(kTrialsAt), base::kNever) << "the others wait for that answer";
  const auto told = trials.answered({"alike-0", base::Error{base::Code::kPermissionDenied, "no"}});
  ASSERT_EQ(told.size(), 20U);
  EXPECT_EQ(told.front(), "alike-0");
  EXPECT_EQ(told.back(), "alike-19");
  EXPECT_EQ(trials.answered({"a", {}}), std::vector<std::string>{"a"});

  // One that comes later is tried again, and what could not be said is tried with the next of them.
  add_alike();
  EXPECT_EQ(due(kTrialsAt + seconds{4}), "alike-0");
  EXPECT_EQ(trials.answered({"alike-0", base::Error{base::Code::kUnavailable, "later"}}).size(),
            1U);
  EXPECT_EQ(due(kTrialsAt + seconds{5}), "alike-1");
  EXPECT_EQ(trials.answered({"alike-1", {}}).size(), 19U);
  EXPECT_EQ(trials.next_due(kTrialsAt), base::kNever);
}

// One CPU: a quota that refuses the smallest pod refuses each pod of the job, while a larger one
// might be refused without need. Admission may depend on the node, so one is named.
TEST_F(PodTrialsTest, TheSmallestPodOnANodeOfTheFirstPartition) {
  JobRecord& job = jobs["a"];
  auto effect = trial_of(job, configuration);
  ASSERT_TRUE(effect);
  EXPECT_EQ(effect->job, job.key);
  EXPECT_EQ(effect->partition, "big");
  EXPECT_EQ(effect->slot.node, "n1");
  EXPECT_EQ(effect->slot.cpus, 1);
  EXPECT_EQ(effect->slot.memory, kube::Bytes{1 << 20});
  EXPECT_EQ(effect->options.kill_wait, seconds{7});
  const auto asks_for = [&](const std::string& partition) {
    auto request = std::make_shared<sched::JobRequest>(job.request());
    request->partitions = {partition};
    edit(job.wishes).request = std::move(request);
  };
  asks_for("empty");
  EXPECT_FALSE(trial_of(job, configuration)) << "there is no node to name";
  asks_for("gone");
  EXPECT_FALSE(trial_of(job, configuration));
}

// An API server that is away says nothing about the pods. A warning on its account would send the
// user to look for a mistake that does not exist.
TEST(PodTrials, OnlyARefusalSaysSomething) {
  const auto said = [](base::Status status) { return refusal_of({"a", std::move(status)}); };
  EXPECT_EQ(said({}), "");
  EXPECT_EQ(said(base::Error{base::Code::kPermissionDenied, "exceeded quota"}), "exceeded quota");
  EXPECT_EQ(said(base::Error{base::Code::kInvalidArgument, "no such field"}), "no such field");
  EXPECT_EQ(said(base::Error{base::Code::kUnavailable, "try later"}), "");
}

}  // namespace
}  // namespace control
