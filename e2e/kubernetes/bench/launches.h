// How fast gangs come to life, beside the same pods without us. Each shape is measured three times,
// one after the other on the same API server:
//   gang   our Jobs, our operator, and fake agents
//   limit  the very pods that the operator made, with their nodeName, by a plain client
//   batch  batch/v1 Jobs of the same pods, placed by kube-scheduler
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

 private:
  using Counts = std::map<std::string, double>;
  // Until the control plane has done what is left of the last measurement.
  base::Status settle();
  base::Result<nlohmann::json> gang(const Shape& shape, std::vector<nlohmann::json>& pods);
  base::Result<nlohmann::json> submission(const std::string& ns, const std::string& path,
                                          const std::vector<nlohmann::json>& objects,
                                          std::size_t pods_count, pid_t operator_pid);
  std::vector<nlohmann::json> batch_jobs(const Shape& shape) const;
  base::Result<std::vector<nlohmann::json>> made_pods();
  Counts cpu_by_process(pid_t operator_pid) const;

  const Options& options_;
  const kube::Clock& clock_;
  BenchApi& api_;
  FakeAgents& agents_;
};

}  // namespace kubernetes_bench
