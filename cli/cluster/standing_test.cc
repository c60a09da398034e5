// prio and share, against the in-memory API server.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "api/account.h"
#include "api/scheduler_config.h"
#include "api/usage_record.h"
#include "cli/testing/program_fixture.h"
#include "kube/api/node.h"

namespace cli {
namespace {

using testing::HasSubstr;

// Returns the lines, with one blank between words.
std::string squeezed(const std::string& text) {
  std::istringstream lines{text};
  std::string out;
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words{line};
    std::string joined;
    for (std::string word; words >> word;) joined += (joined.empty() ? "" : " ") + word;
    out += joined + "\n";
  }
  return out;
}

// physics has three of four shares and a quarter of the usage: 2,000 of 8,000 billed seconds.
// chemistry has one share and the rest. Both have one user, so within its account each user has all
// of the usage. The cluster has four nodes; `wide` asks for two of them, `small` for one.
class StandingTest : public ProgramTest {
 protected:
  // An object whose spec is in force.
  template <typename T>
  void accept(const std::string& name, const nlohmann::json& spec) {
    const auto created = client_.create_json<T>("", {{"apiVersion", "kubegang.io/v1alpha1"},
                                                     {"kind", T::kResource.kind},
                                                     {"metadata", {{"name", name}}},
                                                     {"spec", spec}});
    ASSERT_TRUE(created.ok()) << created.error().message;
    T said = *created;
    said.status.accepted = created->spec;
    ASSERT_TRUE(client_.patch_status_from(*created, said).ok());
  }
  void SetUp() override {
    accept<kube::SchedulerConfig>(
        "default",
        {{"priority",
          {{"type", "Multifactor"}, {"weights", {{"fairShare", 1000}, {"jobSize", 100}}}}}});
    accept<kube::Partition>("batch", {{"nodes", {{"hostlist", "n[1-4]"}}}, {"default", true}});
    accept<kube::Account>("physics", {{"shares", 3}, {"namespaces", {{{"name", "team-a"}}}}});
    accept<kube::Account>("chemistry", {{"namespaces", {{{"name", "team-b"}}}}});
    kube::UsageRecord record;
    record.metadata.name = std::string{kube::kUsageRecordName};
    record.spec.as_of = now();
    record.spec.namespaces = {{"physics", "team-a", 2'000'000, 250'000},
                              {"chemistry", "team-b", 6'000'000, 750'000}};
    ASSERT_TRUE(client_.create(record).ok());
    add_nodes("n[1-4]");
    add_waiting("team-b", "wide", 1, 2);
    add_waiting("team-a", "small", 2, 1);
  }
  void add_waiting(const std::string& ns, const std::string& name, int id, int nodes,
                   std::vector<kube::JobDevice> devices = {}) {
    add_job(ns, name,
            {.resources = {.nodes = kube::JobNodes{.min = nodes},
                           .devices_of_job = std::move(devices)}},
            {.state = kube::JobState::kPending,
             .job_id = id,
             .submit_time = now(),
             .conditions = {{.type = "Accepted",
                             .status = kube::ConditionStatus::kTrue,
                             .last_transition_time = now(),
                             .reason = "Accepted"}}});
  }
};

// Normalized shares: 1/4 and 3/4. Effective usage of accounts: 6,000 and 2,000 of 8,000. Fair share
// is by rank (Fair Tree): of two users the better one has 2/2, the other 1/2, and team-a is better
// since physics has used less than its shares promise.
TEST_F(StandingTest, ShareShowsTheTreeWithWhatWasUsed) {
  const Ran ran = run({"share"});
  EXPECT_EQ(ran.code, kExitOk) << ran.err;
  EXPECT_EQ(squeezed(ran.out),
            "Account User RawShares NormShares RawUsage EffectvUsage FairShare\n"
            "root 8000\n"
            "chemistry 1 0.250000 6000 0.750000\n"
            "chemistry team-b 1 0.250000 6000 1.000000 0.500000\n"
            "physics 3 0.750000 2000 0.250000\n"
            "physics team-a 1 0.750000 2000 1.000000 1.000000\n");
  const nlohmann::json all = nlohmann::json::parse(run({"share", "-o", "json"}).out);
  ASSERT_EQ(all.size(), 5U);
  EXPECT_EQ(all[2]["namespace"], "team-b");
  EXPECT_EQ(all[2]["usageSeconds"], 6000);
}

// Points of fair share: 1000 for the first of two ranks, half of it for the second. The factor of
// the size is the mean of the job's part of all nodes and its part of all CPUs, rounded down to
// points: `small` has (1/4 + 1/32) ÷ 2 of 100, which are 14, `wide` twice that. With -w there are
// weights and no jobs.
TEST_F(StandingTest, PrioShowsWhatEachFactorCounts) {
  const Ran ran = run({"prio", "-A"});
  EXPECT_EQ(ran.code, kExitOk) << ran.err;
  EXPECT_EQ(squeezed(ran.out),
            "JOBID PARTITION USER PRIORITY FAIRSHARE JOBSIZE NICE\n"
            "2 batch team-a 1014 1000 14 0\n"
            "1 batch team-b 528 500 28 0\n");
  EXPECT_EQ(squeezed(run({"prio", "-n", "team-b"}).out),
            "JOBID PARTITION USER PRIORITY FAIRSHARE JOBSIZE NICE\n"
            "1 batch team-b 528 500 28 0\n");
  EXPECT_EQ(squeezed(run({"prio", "-w"}).out),
            "JOBID PARTITION USER PRIORITY FAIRSHARE JOBSIZE NICE\n"
            "Weights 1000 100\n");
  EXPECT_EQ(nlohmann::json::parse(run({"prio", "-w", "-o", "json"}).out),
            nlohmann::json::parse(R"({"weights": {"fairShare": 1000, "jobSize": 100}})"));
  const nlohmann::json all = nlohmann::json::parse(run({"prio", "-A", "-o", "json"}).out);
  ASSERT_EQ(all.size(), 2U);
  EXPECT_EQ(all[0]["factors"]["fairShare"], 1000);
}

// Two of the four GPUs of the partition are half of the points.
TEST_F(StandingTest, PrioShowsWhatGpusCount) {
  ASSERT_TRUE(client_.remove<kube::SchedulerConfig>({"", "default"}, {}).ok());
  accept<kube::SchedulerConfig>(
      "default", {{"priority", {{"type", "Multifactor"}, {"weights", {{"gpus", 100}}}}}});
  const nlohmann::json gpus{{"status", {{"allocatable", {{"nvidia.com/gpu", "4"}}}}}};
  ASSERT_TRUE(client_.patch_status<kube::Node>({.ns = "", .name = "n1"}, gpus).ok());
  add_waiting("team-a", "gpus", 3, 1, {{"gpu", "", 2}});
  const std::string shown = squeezed(run({"prio", "-n", "team-a"}).out);
  EXPECT_THAT(shown, HasSubstr("JOBID PARTITION USER PRIORITY GPUS NICE\n"));
  EXPECT_THAT(shown, HasSubstr("3 batch team-a 50 50 0\n"));
}

// Users of a namespace mostly may not list nodes.
TEST_F(StandingTest, PrioNeedsNodesOnlyForWeightsOfSizes) {
  server_.fail_next("list", "nodes", 403);
  const Ran refused = run({"prio", "-n", "team-a"});
  EXPECT_EQ(refused.code, kExitFailed);
  EXPECT_THAT(refused.err, HasSubstr("the weights jobSize, cpus, memory, nodes and gpus: "));
  ASSERT_TRUE(client_.remove<kube::SchedulerConfig>({"", "default"}, {}).ok());
  accept<kube::SchedulerConfig>(
      "default", {{"priority", {{"type", "Multifactor"}, {"weights", {{"fairShare", 1000}}}}}});
  server_.fail_next("list", "nodes", 403);
  const Ran ran = run({"prio", "-n", "team-a"});
  EXPECT_EQ(ran.code, kExitOk) << ran.err;
  EXPECT_EQ(squeezed(ran.out),
            "JOBID PARTITION USER PRIORITY FAIRSHARE NICE\n"
            "2 batch team-a 1000 1000 0\n");
}

TEST_F(StandingTest, PrioSaysThatThereIsNothingToShowUnderBasic) {
  ASSERT_TRUE(client_.remove<kube::SchedulerConfig>({"", "default"}, {}).ok());
  const Ran ran = run({"prio"});
  EXPECT_EQ(ran.code, kExitFailed);
  EXPECT_THAT(ran.err, HasSubstr("priority.type Basic"));
}

}  // namespace
}  // namespace cli
