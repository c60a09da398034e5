// The operator's cost by the number of jobs that have ended, or that wait: CPU time to start beside
// them, CPU time while nothing happens, CPU time of other jobs' lives, and memory.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "e2e/kubernetes/bench/bench_api.h"
#include "e2e/kubernetes/bench/shape.h"

namespace kubernetes_bench {

class ManyJobs {
 public:
  ManyJobs(const Options& options, const kube::Clock& clock, BenchApi& api)
      : options_{options}, clock_{clock}, api_{api} {}

  // Appends a row for each number of jobs; cleans up.
  base::Status measure(nlohmann::json& rows);

 private:
  enum class Kind { kFinished, kWaiting };
  base::Status measure(Kind kind, nlohmann::json& rows);
  base::Status make(Kind kind, int first, int last);
  base::Status block_the_narrow_partition();
  base::Result<nlohmann::json> run_beside();
  base::Status lives_of_others(int run);

  const Options& options_;
  const kube::Clock& clock_;
  BenchApi& api_;
  BenchApi as_operator_{clock_};  // policies keep all others off statuses
  int lives_ = 0;
};

}  // namespace kubernetes_bench
