// Fair share with real processes: with a half-life of seconds two namespaces come to have run as
// their shares are, also under a new leader, which goes on with what its predecessor counted.
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>

#include "api/usage_record.h"
#include "e2e/scenarios/harness.h"

namespace scenarios {
namespace {

class FairShareScenario : public Scenario {
 protected:
  void make_account(const std::string& ns, int shares) {
    apply({{"apiVersion", "v1"}, {"kind", "Namespace"}, {"metadata", {{"name", ns}}}});
    apply({{"apiVersion", "kubegang.io/v1alpha1"},
           {"kind", "Account"},
           {"metadata", {{"name", "of-" + ns}}},
           {"spec", {{"shares", shares}, {"namespaces", {{{"name", ns}}}}}}});
  }
  // A whole node for three seconds each.
  void submit_to(const std::string& ns, int jobs_count) {
    for (int i = 0; i < jobs_count; ++i) {
      ASSERT_NO_FATAL_FAILURE(submit({.name = "j" + std::to_string(i),
                                      .nodes_count = 1,
                                      .command = {"sleep", "3"},
                                      .patch = {{"metadata", {{"namespace", ns}}}}}));
    }
  }
  // Returns the run time of the namespace's jobs that have ended.
  double seconds_run(const std::string& ns) {
    Duration sum{0};
    for (const json& object : list("/apis/kubegang.io/v1alpha1/namespaces/" + ns + "/jobs")) {
      const auto job = kube::decode<kube::Job>(object);
      if (!job.ok() || job->status.state != kube::JobState::kCompleted) continue;
      if (job->status.run_time) sum += job->status.run_time->elapsed;
    }
    return std::chrono::duration<double>(sum).count();
  }
  // Returns the part of `ns` in the run time of both from now on. It waits until both have run for
  // `least` seconds together.
  double part_from_now_on(const std::string& ns, const std::string& other, double least) {
    const double before = seconds_run(ns);
    const double others_before = seconds_run(other);
    double ran = 0, all = 0;
    wait_until(
        "enough jobs have ended",
        [&] {
          ran = seconds_run(ns) - before;
          all = ran + seconds_run(other) - others_before;
          return all >= least;
        },
        seconds{90});
    return all > 0 ? ran / all : 0;
  }
  // Returns the recorded usage by namespace; empty if none is recorded yet.
  std::map<std::string, double> billed() {
    std::map<std::string, double> all;
    const json object = get("/apis/kubegang.io/v1alpha1/usagerecords/default");
    if (object.is_null()) return all;
    const auto record = kube::decode<kube::UsageRecord>(object);
    EXPECT_TRUE(record.ok());
    if (!record.ok()) return all;
    for (const kube::NamespaceUsage& each : record->spec.namespaces) {
      all[each.ns] = static_cast<double>(each.billed);
    }
    return all;
  }
};

// Four nodes, jobs of one node and 3 s. `large` has three of four shares: it should run 3/4 of the
// time, and between 60 % and 90 % in 60 s of run time, which are 20 jobs. Jobs of `small` are first
// in the queue, so without fair share its part would be far more than a quarter.
//
// For the new leader: usage decays by half in 20 s, and 1.5 is slack for the decay since the last
// record.
TEST_F(FairShareScenario, TwoNamespacesConvergeToTheirSharesAlsoUnderANewLeader) {
  ASSERT_NO_FATAL_FAILURE(start(
      {.nodes_count = 4, .with_partition = false, .config = R"({"priority": {"type": "Multifactor",
           "weights": {"fairShare": 10000}, "decayHalfLife": "20s", "calcPeriod": "1s"}})"}));
  if (IsSkipped()) return;
  make_partition("batch",
                 {{"nodes", {{"hostlist", "n[12-15]"}}}, {"overSubscribe", {{"policy", "Never"}}}});
  ASSERT_NO_FATAL_FAILURE(make_account("small", 1));
  ASSERT_NO_FATAL_FAILURE(make_account("large", 3));
  ASSERT_NO_FATAL_FAILURE(submit_to("small", 60));  // first in the queue
  ASSERT_NO_FATAL_FAILURE(submit_to("large", 60));

  (void)part_from_now_on("large", "small", 16);  // until usage tells
  const double first = part_from_now_on("large", "small", 60);
  EXPECT_GT(first, 0.6);
  EXPECT_LT(first, 0.9);

  cluster_->components().kill(std::string{devcluster::kOperator});
  const auto before = billed();
  ASSERT_EQ(before.size(), 2U);
  start_operator();
  const Instant from = now();
  ASSERT_NO_FATAL_FAILURE(
      wait_until("the new leader has written usage", [&] { return billed() != before; }));
  const double lost = std::exp2(-std::chrono::duration<double>(now() - from).count() / 20) / 1.5;
  for (const auto& [ns, used] : billed()) {
    EXPECT_GT(used, before.at(ns) * lost) << ns << " is not forgotten";
  }
  const double second = part_from_now_on("large", "small", 60);
  EXPECT_GT(second, 0.6);
  EXPECT_LT(second, 0.9);
}

}  // namespace
}  // namespace scenarios
