// Counts the requests for a Job of the batch group in its life, compared with a kubegang Job.
#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "api/wellknown.h"
#include "operator/testing/batch_job_fixture.h"
#include "operator/testing/world.h"

namespace control {
namespace {

using nlohmann::json;
using std::chrono::minutes;
using std::chrono::seconds;

// How many, by "patch jobs.batch/status"; watches and lists are not of one job.
using Requests = std::map<std::string, std::int64_t>;

// In one text, so that a difference shows all requests at once.
std::string text_of(const Requests& requests) {
  std::string text;
  for (const auto& [kind, count] : requests) {
    text += (text.empty() ? "" : ", ") + kind + " " + std::to_string(count);
  }
  return text;
}

std::int64_t total(const Requests& requests) {
  std::int64_t sum = 0;
  for (const auto& [kind, count] : requests) sum += count;
  return sum;
}

// Goal: the second Job that an adopted one is costs three requests: its creation, and two statuses
// of the batch Job. Method: the same pods as kubegang Jobs and as batch Jobs, 96 cores on 12 nodes,
// one pod of one core each, no turns; and the operator's requests from creation to end.
class ManagedRequests : public testing::Test {
 protected:
  static constexpr int kCores = 96;

  // Ticks of 100 ms: what the operator gathers for seconds is then gathered as by the program.
  ManagedRequests() : world_{{.nodes = node_names()}} {
    world_.tick = std::chrono::milliseconds{100};
    world_.apply(partition("batch", {{"nodes", {{"hostlist", "n[1-12]"}}}, {"default", true}}));
    world_.run_for(seconds{5});
  }

  // Counts requests from the creation of `count` kubegang Jobs until all have ended.
  Requests of_ours(int count, const std::string& work) {
    world_.server().clear_request_log();
    const json core{{"tasksPerNode", 1}, {"cpusPerTask", 1}, {"memoryPerNode", "16Mi"}};
    for (int i = 0; i < count; ++i) {
      world_.apply(gang_job(job_name("ours-", i), 1, work, {{"resources", core}}));
    }
    EXPECT_TRUE(world_.run_until(
        [&] {
          return all_of(count,
                        [&](int i) { return world_.state(job_name("ours-", i)) == "Completed"; });
        },
        minutes{20}))
        << world_.log_tail();
    world_.run_for(seconds{20});
    return requests_of_operator();
  }
  // Does the same for batch Jobs. The 20 s at the end let it write what only informs.
  Requests of_batch(int count, const std::string& work) {
    world_.server().clear_request_log();
    create(count, work);
    EXPECT_TRUE(world_.run_until(
        [&] { return all_of(count, [&](int i) { return kube::is_finished(status(i)); }); },
        minutes{20}))
        << world_.log_tail();
    world_.run_for(seconds{20});
    return requests_of_operator();
  }
  // One pod each, of one CPU.
  void create(int count, const std::string& work) {
    const json container{{"name", "main"},
                         {"image", "busybox"},
                         {"resources", {{"requests", {{"cpu", "1"}, {"memory", "16Mi"}}}}}};
    const json more{{"template", {{"spec", {{"containers", json::array({container})}}}}}};
    for (int i = 0; i < count; ++i) {
      const auto made = world_.client().create_json<kube::BatchJob>(
          kTeam, make_batch_job(job_name("batch-", i), {}, work, more, nullptr));
      ASSERT_TRUE(made.ok()) << made.error().message;
    }
  }
  kube::BatchJobStatus status(int i) {
    const auto job = world_.client().get<kube::BatchJob>({kTeam, job_name("batch-", i)});
    EXPECT_TRUE(job.ok()) << job.error().message;
    return job.ok() ? job->status : kube::BatchJobStatus{};
  }

  World world_;

 private:
  static std::vector<std::string> node_names() {
    std::vector<std::string> names;
    for (int i = 1; i <= 12; ++i) names.push_back(job_name("n", i));
    return names;
  }
  static std::string job_name(const char* kind, int i) { return kind + std::to_string(i); }
  template <typename Predicate>
  // For each of the jobs, by its number.
  static bool all_of(int count, const Predicate& holds) {
    for (int i = 0; i < count; ++i) {
      if (!holds(i)) return false;
    }
    return true;
  }
  // By verb, resource and subresource. Lists and watches are not counted: they do not grow with the
  // jobs.
  Requests requests_of_operator() {
    Requests requests;
    for (const auto& [kind, count] : world_.server().request_counts()) {
      const bool is_of_jobs = kind.resource == "jobs" || kind.resource == "pods";
      if (kind.user_agent != "operator" || !is_of_jobs) continue;
      if (kind.verb == "list" || kind.verb == "watch") continue;
      const std::string group = kind.group.empty() ? "" : "." + kind.group;
      const std::string part = kind.subresource.empty() ? "" : "/" + kind.subresource;
      requests[kind.verb + " " + kind.resource + group + part] += count;
    }
    return requests;
  }
};

// A batch Job costs its own two statuses and the Job that is made for it. A write that is added to
// a life shows here.
TEST_F(ManagedRequests, ALifeTakesThreeMoreThanThatOfAJobOfOurs) {
  // Without the first and the third it is that of a kubegang Job (requests_test.cc).
  EXPECT_EQ(text_of(of_batch(1, "20s")),
            "create jobs.kubegang.io 1, create pods 1, patch jobs.batch/status 2, "
            "patch jobs.kubegang.io/status 3");
}

// The start is not written before its end.
TEST_F(ManagedRequests, AShortLifeTakesTwoMore) {
  EXPECT_EQ(total(of_batch(1, "1s")) - total(of_ours(1, "1s")), 2);
  const kube::BatchJobStatus done = status(0);
  EXPECT_EQ(done.succeeded, 1);
  EXPECT_GE(done.completion_time, done.start_time);
}

// An API server that takes half a second for each request. Pods are made and become ready long
// after their Jobs have started, and each step of that would be worth a write.
TEST_F(ManagedRequests, ManyAtOnceTakeNoMoreEach) {
  const Requests ours = of_ours(kCores, "60s");
  world_.process().writer().be_slow(world_.clock(), std::chrono::milliseconds{500});
  const Requests batch = of_batch(kCores, "60s");
  EXPECT_LE(total(batch) - total(ours), 3 * kCores) << text_of(batch) << "; ours " << text_of(ours);
  EXPECT_EQ(batch.count("get jobs.batch"), 0U);
}

// Writes that gave way to those for which pods wait are made when these are done.
TEST_F(ManagedRequests, WhatIsToldLateIsExact) {
  world_.process().writer().be_slow(world_.clock(), std::chrono::milliseconds{500});
  create(kCores, "");
  world_.run_for(minutes{1});
  for (int i = 0; i < kCores; ++i) {
    const kube::BatchJobStatus told = status(i);
    EXPECT_EQ(told.active, 1) << i;
    EXPECT_EQ(told.ready, 1) << i;
    EXPECT_TRUE(told.start_time.has_value()) << i;
    EXPECT_EQ(kube::find_condition(told.conditions, kube::kBatchWaiting), nullptr) << i;
  }
}

// Users hear why it waits.
TEST_F(ManagedRequests, OneThatWaitsForNodesTakesOneMore) {
  const Requests ours = of_ours(kCores + 1, "60s");
  const Requests batch = of_batch(kCores + 1, "60s");
  EXPECT_EQ(total(batch) - total(ours), 3 * (kCores + 1) + 1)
      << text_of(batch) << "; ours " << text_of(ours);
}

}  // namespace
}  // namespace control
