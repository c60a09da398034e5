// How fast gangs come to life, beside the same pods without us. Each shape is measured three times,
// one after the other on the same API server:
//   gang   our Jobs, our operator, and fake agents
//   limit  the very pods that the operator made, with their nodeName, by a plain client
//   batch  batch/v1 Jobs of the same pods, placed by kube-scheduler
// And Jobs of the batch group that our operator runs, `adopted`, beside gang and batch.
#pragma once

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

  // Pods that are not measured: the first ones find a cold API server.
  base::Status warm_up();
  // Into `row`, as far as it came.
  base::Status measure(const Shape& shape, nlohmann::json& row);
  base::Status measure_adopted(const Shape& shape, nlohmann::json& row);

 private:
  using Counts = std::map<std::string, double>;
  // Figures of one of the ways into `row`, and a line of output.
  base::Status keep(const Shape& shape, const char* name, base::Result<nlohmann::json> figures,
                    nlohmann::json& row) const;
  // The last part of a row: Jobs of the built-in controller, and what `of` took in relation to
  // `other` and to them. REQUIRES: these two are in `row`.
  base::Status compare_with_batch(const Shape& shape, const char* of, const char* other,
                                  nlohmann::json& row);
  // Until the control plane has done what is left of the last measurement.
  base::Status settle();
  // With our operator, which ends afterwards; the pods stay.
  base::Result<nlohmann::json> by_operator(const std::string& ns, const std::string& path,
                                           const std::vector<nlohmann::json>& jobs,
                                           std::size_t pods_count);
  std::vector<nlohmann::json> gang_jobs(const Shape& shape) const;
  base::Result<nlohmann::json> submission(const std::string& ns, const std::string& path,
                                          const std::vector<nlohmann::json>& objects,
                                          std::size_t pods_count, pid_t operator_pid);
  // `managed_by` empty: Kubernetes' own controller.
  static std::vector<nlohmann::json> batch_jobs(const Shape& shape, const char* ns,
                                                const std::string& managed_by);
  base::Result<std::vector<nlohmann::json>> made_pods();
  Counts cpu_by_process(pid_t operator_pid) const;

  const Options& options_;
  const kube::Clock& clock_;
  BenchApi& api_;
  FakeAgents& agents_;
};

}  // namespace kubernetes_bench
