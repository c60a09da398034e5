// Limits of QOS, accounts and users (1.4, 2.4): each of them makes a job wait with its own reason,
// and lets it start when it no longer stands in the way.
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "scheduler/model/reason_names.h"
#include "scheduler/testing/rule_test.h"

namespace sched::testing {
namespace {

// Four nodes of four CPUs and 1000 MiB; users ada and bob in account lab, which is below
// university, cyd in account lab2; all jobs are of QOS gold.
class LimitsTest : public RuleTest {
 protected:
  LimitsTest() {
    for (NodeSpec& spec : four_) spec.memory = MemoryMiB{1000};
    c_ = gang_linear({partition("p", four_, OverSubscribe::kNo)});
    c_.cluster.gang = false;
    c_.cluster.select = SelectType::kConsTres;
    c_.cluster.unit = SelectUnit::kCore;
    c_.cluster.memory = true;
    c_.cluster.default_memory.per_cpu = MemoryMiB{100};
    c_.accounts = {
        {.name = "university"}, {.name = "lab", .parent = "university"}, {.name = "lab2"}};
    c_.users = {{.name = "ada", .account = "lab"},
                {.name = "bob", .account = "lab"},
                {.name = "cyd", .account = "lab2"}};
    c_.qos = {QosConfig{.name = "gold"}};
  }
  Limits& gold() { return c_.qos[0].limits; }
  Limits& university() { return c_.accounts[0].limits; }
  Limits& lab() { return c_.accounts[1].limits; }
  Limits& ada() { return c_.users[0].limits; }

  // Returns a job of tasks_count tasks. Any number of nodes may hold them: limits on CPUs and
  // memory then decide alone.
  JobRequest tasks(std::int64_t id, int tasks_count, const std::string& user = "ada") {
    JobRequest request = with_tasks(job(id, 1), tasks_count);
    request.nodes_given = false;
    request.max_nodes.reset();
    request.user = user;
    request.qos = "gold";
    return request;
  }
  JobRequest on_nodes(std::int64_t id, int nodes_count, const std::string& user = "ada") {
    JobRequest request = job(id, nodes_count);
    request.user = user;
    request.qos = "gold";
    return request;
  }
  void submit(const JobRequest& request) {
    if (!driver_) driver_ = std::make_unique<Driver>(c_, four_, make_replay());
    submit_and_pass(*driver_, ++clock_, request);
  }
  // Why it waits, or that it does not.
  std::string word(std::int64_t id) {
    const auto view = driver_->scheduler().job(JobId{id}, at(clock_));
    if (!view) return "refused";
    if (view->state != JobState::kPending) return "started";
    return std::string{name_of(view->reason)};
  }
  void end(std::int64_t id) {
    driver_->step(at(++clock_), JobGone{JobId{id}});
    driver_->step(at(++clock_), Pass{});
  }

  std::vector<NodeSpec> four_ = nodes("n", 1, 4);
  double clock_ = 0;
};

// --- what jobs hold together ---

// 5 CPUs: 3 + 3 are too many, 3 + 2 just enough; after job 1 has gone, 2 + 3.
TEST_F(LimitsTest, GroupsOfAQos) {
  gold().group_tres[Tres::kCpu] = 5;
  submit(tasks(1, 3));
  submit(tasks(2, 3, "cyd"));
  EXPECT_EQ(word(2), "QOSGrpCpuLimit");
  submit(tasks(3, 2, "bob"));
  EXPECT_EQ(word(3), "started") << "a job that is over a limit blocks no other";
  end(1);
  EXPECT_EQ(word(2), "started");
}

// Two tasks hold 2 CPUs, 200 MiB and 2 billing units; one more is too much of each.
TEST_F(LimitsTest, GroupsOfAQosInOtherResources) {
  gold().group_tres[Tres::kMemory] = 250;
  submit(tasks(1, 2));
  submit(tasks(2, 1, "cyd"));
  EXPECT_EQ(word(2), "QOSGrpMemLimit");
  gold().group_tres = {};
  gold().group_tres[Tres::kBilling] = 2;
  driver_.reset();
  submit(tasks(1, 2));
  submit(tasks(2, 1, "cyd"));
  EXPECT_EQ(word(2), "QOSGrpBilling");
  gold().group_tres = {};
  gold().group_jobs = 1;
  driver_.reset();
  submit(tasks(1, 2));
  submit(tasks(2, 1, "cyd"));
  EXPECT_EQ(word(2), "QOSGrpJobsLimit");
}

// A group's limit of nodes counts nodes and not jobs (R9.10): job 2 fits beside job 1 on n1, and
// job 3 would need a second node because n1's four CPUs are taken.
TEST_F(LimitsTest, ANodeCountsOnceForAGroup) {
  gold().group_tres[Tres::kNode] = 1;
  submit(tasks(1, 2));
  submit(tasks(2, 2, "cyd"));
  EXPECT_EQ(word(2), "started") << "on the same node";
  submit(tasks(3, 1));
  EXPECT_EQ(word(3), "QOSGrpNodeLimit");
}

// 3 + 2 CPUs fit university's 5 and not lab's 4. cyd's account is below neither.
TEST_F(LimitsTest, GroupsOfAnAccountAndOfThoseAboveIt) {
  university().group_tres[Tres::kCpu] = 5;
  lab().group_tres[Tres::kCpu] = 4;
  submit(tasks(1, 3));
  submit(tasks(2, 2, "bob"));
  EXPECT_EQ(word(2), "AssocGrpCpuLimit");
  submit(tasks(3, 4, "cyd"));
  EXPECT_EQ(word(3), "started") << "another account";
}

// The same limits on an account, with the reasons of associations. ada's two tasks use each of them
// up, and bob is of the same account.
TEST_F(LimitsTest, GroupsOfAnAccountInOtherResources) {
  const std::vector<std::pair<std::function<void(Limits&)>, std::string>> rows = {
      {[](Limits& l) { l.group_tres[Tres::kMemory] = 250; }, "AssocGrpMemLimit"},
      {[](Limits& l) { l.group_tres[Tres::kBilling] = 2; }, "AssocGrpBilling"},
      {[](Limits& l) { l.group_jobs = 1; }, "AssocGrpJobsLimit"}};
  for (const auto& [set, reason] : rows) {
    lab() = {};
    set(lab());
    driver_.reset();
    submit(tasks(1, 2));
    submit(tasks(2, 1, "bob"));
    EXPECT_EQ(word(2), reason);
    end(1);
    EXPECT_EQ(word(2), "started") << reason;
  }
  lab() = {};
  lab().group_tres[Tres::kNode] = 1;
  driver_.reset();
  submit(tasks(1, 4));
  submit(tasks(2, 1, "bob"));
  EXPECT_EQ(word(2), "AssocGrpNodeLimit");
}

// 9.1: that of the first QOS that sets one counts, or else those of all associations on the way up.
TEST_F(LimitsTest, AQosThatSetsALimitOnGroupsReplacesThoseOfAccounts) {
  // By itself, lab's limit would keep job 2 waiting.
  lab().group_jobs = 1;
  gold().group_jobs = 2;
  submit(tasks(1, 1));
  submit(tasks(2, 1, "bob"));
  EXPECT_EQ(word(2), "started");
}

// --- users and accounts in a QOS ---

// Job 1 of four tasks uses each limit up. Another user of the QOS is not concerned.
TEST_F(LimitsTest, UsersInAQos) {
  const std::vector<std::pair<std::function<void(Limits&)>, std::string>> rows = {
      {[](Limits& l) { l.user_tres[Tres::kCpu] = 4; }, "QOSMaxCpuPerUserLimit"},
      {[](Limits& l) { l.user_tres[Tres::kMemory] = 400; }, "QOSMaxMemoryPerUser"},
      {[](Limits& l) { l.user_tres[Tres::kNode] = 1; }, "QOSMaxNodePerUserLimit"},
      {[](Limits& l) { l.user_tres[Tres::kBilling] = 4; }, "QOSMaxBillingPerUser"},
      {[](Limits& l) { l.user_jobs = 1; }, "QOSMaxJobsPerUserLimit"}};
  for (const auto& [set, reason] : rows) {
    gold() = {};
    set(gold());
    driver_.reset();
    submit(tasks(1, 4));
    submit(tasks(2, 1));
    EXPECT_EQ(word(2), reason);
    submit(tasks(3, 1, "bob"));
    EXPECT_EQ(word(3), "started") << reason;
    end(1);
    EXPECT_EQ(word(2), "started") << reason;
  }
}

// ada and bob are of one account, cyd of another.
TEST_F(LimitsTest, AccountsInAQos) {
  const std::vector<std::pair<std::function<void(Limits&)>, std::string>> rows = {
      {[](Limits& l) { l.account_tres[Tres::kCpu] = 4; }, "MaxCpuPerAccount"},
      {[](Limits& l) { l.account_tres[Tres::kMemory] = 400; }, "MaxMemoryPerAccount"},
      {[](Limits& l) { l.account_tres[Tres::kNode] = 1; }, "MaxNodePerAccount"},
      {[](Limits& l) { l.account_tres[Tres::kBilling] = 4; }, "MaxBillingPerAccount"},
      {[](Limits& l) { l.account_jobs = 1; }, "MaxJobsPerAccount"}};
  for (const auto& [set, reason] : rows) {
    gold() = {};
    set(gold());
    driver_.reset();
    submit(tasks(1, 4));
    submit(tasks(2, 1, "bob"));
    EXPECT_EQ(word(2), reason);
    submit(tasks(3, 1, "cyd"));
    EXPECT_EQ(word(3), "started") << reason;
  }
}

// MaxJobs of an account is inherited by its users; it is not a sum over them.
TEST_F(LimitsTest, MaxJobsOfAnAccountIsForEachOfItsUsers) {
  lab().user_jobs = 1;
  submit(tasks(1, 1));
  submit(tasks(2, 1, "bob"));
  EXPECT_EQ(word(2), "started");
  submit(tasks(3, 1));
  EXPECT_EQ(word(3), "AssocMaxJobsLimit");
}

// --- each job ---

// A job of three tasks and two minutes: 3 CPUs, 300 MiB, 3 billing units, one node. Each limit is
// just below that (MinTRES above it), first of the QOS and then of the user.
TEST_F(LimitsTest, EachJob) {
  struct Row {
    std::function<void(Limits&)> set;
    std::string of_qos;
    std::string of_association;  // empty: associations have no such limit
  };
  const std::vector<Row> rows = {
      {[](Limits& l) { l.job_tres[Tres::kCpu] = 2; }, "QOSMaxCpuPerJobLimit",
       "AssocMaxCpuPerJobLimit"},
      {[](Limits& l) { l.job_tres[Tres::kMemory] = 200; }, "QOSMaxMemoryPerJob",
       "AssocMaxMemPerJob"},
      {[](Limits& l) { l.job_tres[Tres::kBilling] = 2; }, "QOSMaxBillingPerJob",
       "AssocMaxBillingPerJob"},
      {[](Limits& l) { l.node_tres[Tres::kCpu] = 2; }, "QOSMaxCpuPerNode", "AssocMaxCpuPerNode"},
      {[](Limits& l) { l.node_tres[Tres::kMemory] = 200; }, "QOSMaxMemoryPerNode",
       "AssocMaxMemPerNode"},
      {[](Limits& l) { l.node_tres[Tres::kBilling] = 2; }, "QOSMaxBillingPerNode",
       "AssocMaxBillingPerNode"},
      {[](Limits& l) { l.job_wall = seconds(60); }, "QOSMaxWallDurationPerJobLimit",
       "AssocMaxWallDurationPerJobLimit"},
      {[](Limits& l) { l.min_tres[Tres::kCpu] = 4; }, "QOSMinCpuNotSatisfied", ""},
      {[](Limits& l) { l.min_tres[Tres::kMemory] = 400; }, "QOSMinMemory", ""},
      {[](Limits& l) { l.min_tres[Tres::kNode] = 2; }, "QOSMinNode", ""},
      {[](Limits& l) { l.min_tres[Tres::kBilling] = 4; }, "QOSMinBilling", ""}};
  JobRequest request = tasks(1, 3);
  request.time_limit = seconds(120);
  for (const Row& row : rows) {
    gold() = ada() = {};
    row.set(gold());
    driver_.reset();
    submit(request);
    EXPECT_EQ(word(1), row.of_qos);
    submit(tasks(2, 1));  // with MinTRES it waits too, but it blocks no other
    if (row.of_association.empty()) continue;
    EXPECT_EQ(word(2), "started") << row.of_qos;
    std::swap(gold(), ada());
    driver_.reset();
    submit(request);
    EXPECT_EQ(word(1), row.of_association);
  }
}

// The limit of the account above is inherited, and one of the user's own replaces it even if it is
// higher: the nearest counts.
TEST_F(LimitsTest, NodesOfEachJob) {
  gold().job_tres[Tres::kNode] = 1;
  submit(on_nodes(1, 2));
  EXPECT_EQ(word(1), "QOSMaxNodePerJobLimit");
  gold() = {};
  university().job_tres[Tres::kNode] = 1;
  driver_.reset();
  submit(on_nodes(1, 2));
  EXPECT_EQ(word(1), "AssocMaxNodePerJobLimit") << "inherited";
  ada().job_tres[Tres::kNode] = 2;
  driver_.reset();
  submit(on_nodes(1, 2));
  EXPECT_EQ(word(1), "started") << "the nearest limit counts";
}

// --- wall time that a group has used ---

// Job 1 runs from 1 to 60. Any part of the minute that is left is enough for job 2 to start
// (R9.11); when that has run there is none.
TEST_F(LimitsTest, WallTimeOfAGroup) {
  // Only with priority/multifactor is usage counted at all.
  c_.cluster.priority.type = PriorityType::kMultifactor;
  for (const bool of_qos : {true, false}) {
    gold() = lab() = {};
    (of_qos ? gold() : lab()).group_wall = seconds(60);
    driver_.reset();
    clock_ = 0;
    submit(tasks(1, 1));
    clock_ = 59;
    end(1);
    submit(tasks(2, 1));
    EXPECT_EQ(word(2), "started") << "59 s are used";
    // Job 2 runs for longer than the one second that is left.
    clock_ += 10;
    end(2);
    submit(tasks(3, 1, "bob"));
    EXPECT_EQ(word(3), of_qos ? "QOSGrpWallLimit" : "AssocGrpWallLimit");
  }
}

// --- at the submission ---

// Two jobs may be submitted, whether they run or wait. The end of one makes room for another.
TEST_F(LimitsTest, SubmittedJobs) {
  using Set = std::function<void(Limits&, Limits&)>;  // of the QOS, of the account
  const std::vector<Set> rows = {[](Limits& qos, Limits&) { qos.group_submit = 2; },
                                 [](Limits& qos, Limits&) { qos.user_submit = 2; },
                                 [](Limits& qos, Limits&) { qos.account_submit = 2; },
                                 [](Limits&, Limits& account) { account.group_submit = 2; },
                                 [](Limits&, Limits& account) { account.user_submit = 2; }};
  for (const auto& set : rows) {
    gold() = lab() = {};
    set(gold(), lab());
    driver_.reset();
    // Both jobs run; running jobs count as submitted, too.
    submit(tasks(1, 4));
    submit(tasks(2, 4));
    submit(tasks(3, 1));
    EXPECT_EQ(word(3), "refused");
    end(1);
    submit(tasks(4, 1));
    EXPECT_EQ(word(4), "started");
  }
}

// R9.8: three CPUs are above the group's two, whatever others hold.
TEST_F(LimitsTest, DenyOnLimitRefusesWhatAccountsNeverAllowToo) {
  lab().group_tres[Tres::kCpu] = 2;
  for (const bool denies : {false, true}) {
    c_.qos[0].deny_on_limit = denies;
    driver_.reset();
    submit(tasks(1, 3));
    EXPECT_EQ(word(1), denies ? "refused" : "AssocGrpCpuLimit");
  }
}

// A change of the configuration, or of the request, does not lose count.
TEST_F(LimitsTest, AJobThatChangesItsQosCountsThere) {
  c_.qos.push_back(QosConfig{.name = "silver"});
  gold().user_submit = 1;
  submit(tasks(1, 4));
  JobRequest request = tasks(2, 1);
  request.qos = "silver";
  // Held, so that it is submitted and does not start: MaxSubmitJobs counts it all the same.
  request.hold = true;
  submit(request);
  submit(tasks(3, 1));
  EXPECT_EQ(word(3), "refused");
  end(1);
  request.qos = "gold";
  driver_->step(at(++clock_), Update{request});
  submit(tasks(4, 1));
  EXPECT_EQ(word(4), "refused");
  // Jobs 2 and 5: the count of gold survives the new configuration, in which everything is counted
  // again.
  gold().user_submit = 2;
  driver_->step(at(++clock_), Configure{std::make_shared<const Configuration>(c_)});
  submit(tasks(5, 1));
  EXPECT_EQ(word(5), "started");
}

// MaxWall is the limit of a job without a limit of time.
TEST_F(LimitsTest, MaxWallIsTheLimitOfAJobWithoutOne) {
  gold().job_wall = seconds(60);
  driver_ = std::make_unique<Driver>(c_, four_);
  driver_->step(at(1), Submit{tasks(1, 1)});
  driver_->run_until(at(30));
  EXPECT_EQ(driver_->view(1).state, JobState::kRunning);
  // The job's 60 s are over at 61.
  driver_->run_until(at(90));
  EXPECT_EQ(driver_->view(1).state, JobState::kTimeout);
}

// --- GPUs ---

// A job of two GPUs uses each limit up, whether it asks for them on each node, for each task or in
// all; one of a CPU alone is not concerned.
TEST_F(LimitsTest, Gpus) {
  for (NodeSpec& spec : four_) spec.devices = {{.kind = {.name = "gpu", .type = "a"}, .count = 4}};
  const Devices one = {{.kind = {.name = "gpu", .type = {}}, .count = 1}};
  const Devices two = {{.kind = {.name = "gpu", .type = {}}, .count = 2}};
  const std::vector<std::pair<std::function<void(Limits&)>, std::string>> rows = {
      {[](Limits& l) { l.group_tres[Tres::kGpu] = 3; }, "QOSGrpGRES"},
      {[](Limits& l) { l.user_tres[Tres::kGpu] = 3; }, "QOSMaxGRESPerUser"},
      {[](Limits& l) { l.account_tres[Tres::kGpu] = 3; }, "MaxGRESPerAccount"}};
  const std::vector<std::function<void(JobRequest&)>> ways = {
      [&](JobRequest& request) { request.devices = two; },
      [&](JobRequest& request) { request.devices_of_job = two; },
      [&](JobRequest& request) { request.devices_per_task = one; }};
  for (const auto& [set, reason] : rows) {
    for (const auto& ask : ways) {
      gold() = {};
      set(gold());
      driver_.reset();
      JobRequest first = tasks(1, 2), second = tasks(2, 2);
      ask(first);
      ask(second);
      submit(first);
      submit(second);
      submit(tasks(3, 1));
      EXPECT_EQ(word(1), "started") << reason;
      EXPECT_EQ(word(2), reason);
      EXPECT_EQ(word(3), "started") << reason;
    }
  }
  // GPUs of one type alone. A job that does not name it is not asked, and what it got counts for
  // others.
  for (NodeSpec& spec : four_) {
    spec.devices = {{.kind = {.name = "gpu", .type = "X-A100-80GB"}, .count = 4},
                    {.kind = {.name = "gpu", .type = "X-V100"}, .count = 4}};
  }
  gold() = {};
  gold().group_tres.of_gpu_type["a100"] = 3;
  driver_.reset();
  const auto with = [&](std::int64_t id, const std::string& type) {
    JobRequest request = tasks(id, 1);
    request.devices = {{.kind = {.name = "gpu", .type = type}, .count = 2}};
    return request;
  };
  submit(with(1, "80gb"));
  submit(with(2, "a100"));
  submit(with(3, "v100"));
  submit(with(4, ""));
  EXPECT_EQ(word(1), "started");
  EXPECT_EQ(word(2), "QOSGrpGRES");
  EXPECT_EQ(word(3), "started");
  EXPECT_EQ(word(4), "started");
  gold() = {};
  gold().job_tres[Tres::kGpu] = 1;
  driver_.reset();
  JobRequest request = tasks(1, 2);
  request.devices_of_job = two;
  submit(request);
  EXPECT_EQ(word(1), "QOSMaxGRESPerJob");
}

}  // namespace
}  // namespace sched::testing
