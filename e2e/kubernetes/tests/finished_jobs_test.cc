// Ten thousand jobs that have ended and were not cleaned up do not slow down the jobs after them.
// With KUBEGANG_LONG only, because making them takes minutes. operator/world_tests/requests_test.cc
// counts what one job asks of the API server beside thousands of them, bench/many_jobs.cc the
// operator's CPU time.
#include <algorithm>
#include <chrono>

#include "e2e/devcluster/apply.h"
#include "e2e/kubernetes/tests/harness.h"

namespace kubernetes {
namespace {

class FinishedJobs : public Alone<Cluster> {
 protected:
  static constexpr int kJobsCount = 10'000;
  static constexpr int kLives = 5;
  static constexpr std::int64_t kOperatorKibMax = 256 << 10;

  // Also after a failure in the middle: the operators are shared with all other tests.
  void TearDown() override {
    if (!pod_of_its_token_.empty()) remove(pod_of_its_token_);
    if (operators_are_away_) scale_operators(2);
    Alone<Cluster>::TearDown();
  }
  void scale_operators(int count) {
    operators_are_away_ = count == 0;
    ASSERT_EQ(
        run_shell(kubectl("scale deployment/kubegang-operator -n kubegang-system --replicas=" +
                          std::to_string(count)))
            .exit_code,
        0);
    ASSERT_NO_FATAL_FAILURE(wait_until(std::to_string(count) + " operators run", [&] {
      const auto all = operators();
      return std::ssize(all) == count && std::all_of(all.begin(), all.end(), [](const json& pod) {
               return pod["status"].value("phase", "") == "Running";
             });
    }));
  }
  // Only a pod's own token may write as the operator, and the operators' pods are gone: one that
  // is never scheduled will do.
  std::string operators_token() {
    const std::string pods = std::string{"/api/v1/namespaces/"} + kSystemNamespace + "/pods";
    const json pod{{"apiVersion", "v1"},
                   {"kind", "Pod"},
                   {"metadata", {{"name", ns_}}},
                   {"spec",
                    {{"serviceAccountName", "kubegang-operator"},
                     {"schedulerName", "nobody"},
                     {"containers", {{{"name", "main"}, {"image", kBusyboxImage}}}}}}};
    const auto made = call(kube::Method::kPost, pods, pod);
    EXPECT_TRUE(made.ok()) << made.error().message;
    if (!made.ok()) return "";
    pod_of_its_token_ = pods + "/" + ns_;
    return token_of(kSystemNamespace, "kubegang-operator", ns_);
  }
  // As the operator leaves them; it is away, so that it does not start them.
  void make_finished_jobs() {
    const auto as_operator = as(operators_token());
    const std::string path = "/apis/kubegang.io/v1alpha1/namespaces/" + ns_ + "/jobs";
    for (int i = 0; i < kJobsCount; ++i) {
      const std::string name = "old-" + std::to_string(i);
      const auto made = call(kube::Method::kPost, path, job_object({.name = name}));
      ASSERT_TRUE(made.ok()) << made.error().message;
      const auto ended =
          devcluster::call_api(*as_operator, kube::Method::kPatch, path + "/" + name + "/status",
                               {{"status",
                                 {{"state", "Completed"},
                                  {"term", 0},
                                  {"jobID", i + 1},
                                  {"exitCode", 0},
                                  {"starts", 1}}}});
      ASSERT_TRUE(ended.ok()) << ended.error().message;
    }
  }
  // In steps of 500, each a request that ends soon.
  void remove_finished_jobs() {
    const std::string path = "/apis/kubegang.io/v1alpha1/namespaces/" + ns_ + "/jobs";
    wait_until(
        "the finished jobs are gone",
        [&] {
          (void)call(kube::Method::kDelete, path + "?limit=500");
          return list(path + "?limit=1").empty();
        },
        std::chrono::minutes{5});
  }
  // Returns the shortest of some times from the submission of a gang until it is ready.
  std::chrono::milliseconds time_to_ready() {
    auto best = milliseconds::max();
    for (int life = 0; life < kLives; ++life) {
      const auto begin = std::chrono::steady_clock::now();
      submit({.name = "new"});
      wait_ready("new");
      best = std::min(
          best, std::chrono::duration_cast<milliseconds>(std::chrono::steady_clock::now() - begin));
      remove(job_path("new"));
      wait_until("its pods are gone", [&] { return pods("new").empty(); });
    }
    return best;
  }

  bool operators_are_away_ = false;
  std::string pod_of_its_token_;  // its path; "": there is none
};

// 1. the time of a gang's start without them
// 2. ten thousand jobs in their final state, made while the operator is away
// 3. the same time beside them, with operators that have seen them all; and the operators' memory
TEST_F(FinishedJobs, TenThousandSlowNothing) {
  if (!takes_its_time()) GTEST_SKIP() << "takes minutes: KUBEGANG_LONG=1\n";
  const milliseconds alone = time_to_ready();
  ASSERT_NO_FATAL_FAILURE(scale_operators(0));
  ASSERT_NO_FATAL_FAILURE(make_finished_jobs());
  ASSERT_NO_FATAL_FAILURE(scale_operators(2));
  // The first one waits for a leader that has looked at all of them; it does not count.
  ASSERT_NO_FATAL_FAILURE(submit({.name = "first"}));
  ASSERT_NO_FATAL_FAILURE(wait_ready("first"));
  ASSERT_NO_FATAL_FAILURE(remove(job_path("first")));
  ASSERT_NO_FATAL_FAILURE(wait_until("its pods are gone", [&] { return pods("first").empty(); }));
  const milliseconds beside = time_to_ready();
  std::printf("ready in %lld ms, beside %d finished jobs in %lld ms\n",
              static_cast<long long>(alone.count()), kJobsCount,
              static_cast<long long>(beside.count()));
  // Most of the time is kubelet's and the settling's; our part of it is small.
  EXPECT_LT(beside, alone + alone / 4);
  for (const json& pod : operators()) {
    const std::int64_t resident = resident_kib(pod);
    std::printf("an operator has %lld KiB\n", static_cast<long long>(resident));
    EXPECT_GT(resident, 0);
    EXPECT_LT(resident, kOperatorKibMax) << pod["metadata"]["name"];
  }
  remove_finished_jobs();
}

}  // namespace
}  // namespace kubernetes
