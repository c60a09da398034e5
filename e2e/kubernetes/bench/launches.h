// How fast gangs come to life, beside the same pods without us. Each shape is measured five times,
// one after the other on the same API server:
//   gang        our Jobs, our operator, and fake agents; no two gangs may share a core
//   turns       the same where any two may take turns: the partition's policy is Force
//   limit       the very pods that the operator made, with their nodeName, by a plain client
//   limit-jobs  the same client, which also creates the Job of each gang, as the Jobs' users do
//   batch       batch/v1 Jobs of the same pods, placed by kube-scheduler
// And Jobs of the batch group that our operator runs, `adopted`, beside gang and batch; and our
// Jobs whose pods have a claim that is Bound to a volume without node affinity, `claim`, beside
// gang.
#pragma once

#include <functional>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "e2e/kubernetes/bench/bench_api.h"
#include "e2e/kubernetes/bench/fake_agents.h"
#include "e2e/kubernetes/bench/pod_watch.h"
#include "e2e/kubernetes/bench/shape.h"

namespace kubernetes_bench {

class Launches {
 public:
  Launches(const Options& options, const kube::Clock& clock, BenchApi& api, FakeAgents& agents)
      : options_{options}, clock_{clock}, api_{api}, agents_{agents} {}

  // Runs pods that are not measured: the first ones find a cold API server.
  base::Status warm_up();
  // All write into `row`, as far as they come.
  base::Status measure(const Shape& shape, nlohmann::json& row);
  base::Status measure_adopted(const Shape& shape, nlohmann::json& row);
  base::Status measure_claims(const Shape& shape, nlohmann::json& row);

 private:
  using Counts = std::map<std::string, double>;
  // Only gang and limit-jobs are measured.
  bool is_pair() const { return options_.only == "pair"; }
  // Figures of one of the ways into `row`, and a line of output.
  base::Status keep(const Shape& shape, const char* name, base::Result<nlohmann::json> figures,
                    nlohmann::json& row) const;
  // Parts of a row: Jobs of the built-in controller, and the plain client's two ways.
  base::Status measure_batch(const Shape& shape, nlohmann::json& row);
  base::Status measure_limits(const Shape& shape, std::vector<nlohmann::json> pods,
                              nlohmann::json& row);
  static void compare(const std::vector<std::string>& ways, const std::vector<std::string>& bases,
                      nlohmann::json& row);
  // A claim `home` in kClaim, as one of NFS is.
  base::Status make_claim();
  // Until the control plane has done what is left of the last measurement.
  base::Status settle();
  // With our operator, which ends afterwards; the pods stay.
  base::Result<nlohmann::json> by_operator(const std::string& ns, const std::string& path,
                                           const std::vector<nlohmann::json>& jobs,
                                           std::size_t pods_count);
  std::vector<nlohmann::json> gang_jobs(const Shape& shape, const char* ns) const;
  // `create` makes what the pods come from.
  base::Result<nlohmann::json> submission(const std::string& ns,
                                          const std::function<base::Status()>& create,
                                          std::size_t pods_count, pid_t operator_pid);
  std::function<base::Status()> creation_of(const std::string& path,
                                            const std::vector<nlohmann::json>& objects);
  // `managed_by` empty: Kubernetes' own controller.
  static std::vector<nlohmann::json> batch_jobs(const Shape& shape, const char* ns,
                                                const std::string& managed_by);
  // As the operator made them in kGang, for another namespace.
  base::Result<std::vector<nlohmann::json>> made_pods();
  Counts cpu_by_process(pid_t operator_pid) const;

  const Options& options_;
  const kube::Clock& clock_;
  BenchApi& api_;
  FakeAgents& agents_;
};

}  // namespace kubernetes_bench
