// Measures what `kubectl gang queue --watch` costs the API server: its CPU time while ten of them
// follow the same jobs, beside its CPU time without. Once while nothing changes but turns, which
// cause no request, and once while jobs end and others start.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <vector>

#include "e2e/kubernetes/bench/bench_api.h"
#include "e2e/kubernetes/bench/operator_run.h"
#include "e2e/kubernetes/bench/processes.h"
#include "e2e/kubernetes/bench/shape.h"

namespace kubernetes_bench {

class QueueWatch {
 public:
  // The nodes' agents must answer.
  QueueWatch(const Options& options, const kube::Clock& clock, BenchApi& api)
      : options_{options}, clock_{clock}, api_{api} {}

  // A row without and one with changes. Its jobs stay: it is the last measurement.
  base::Status measure(nlohmann::json& rows);

 private:
  base::Status fill(OperatorRun& run, int jobs);
  base::Result<nlohmann::json> row(bool jobs_end);
  double server_seconds() const;
  // Returns the server's CPU time in one window, per second.
  base::Result<double> window(bool jobs_end);
  base::Result<std::vector<ChildProcess>> start_watchers();
  base::Status replace_one();

  const Options& options_;
  const kube::Clock& clock_;
  BenchApi& api_;
  int ended_ = 0;  // the jobs are r0, r1, …; those below have been deleted
  int made_ = 0;
};

}  // namespace kubernetes_bench
