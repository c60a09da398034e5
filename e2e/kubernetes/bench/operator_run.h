// One run of the operator for a measurement, and what it says of itself.
#pragma once

#include <map>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "base/result.h"
#include "e2e/kubernetes/bench/processes.h"
#include "e2e/kubernetes/bench/shape.h"
#include "kube/clock.h"
#include "kube/http_transport.h"

namespace kubernetes_bench {

class OperatorRun {
 public:
  // Not ready yet. Ends the operator with this object.
  static base::Result<OperatorRun> start(const Options& options, const kube::Clock& clock);

  pid_t pid() const { return process_.pid(); }
  bool is_ready();
  base::Result<std::map<std::string, double>> metrics();
  // Returns the growth of its counters.
  static nlohmann::json growth(const std::map<std::string, double>& before,
                               const std::map<std::string, double>& after);

 private:
  OperatorRun(ChildProcess process, std::unique_ptr<kube::HttpTransport> transport)
      : process_{std::move(process)}, transport_{std::move(transport)} {}

  ChildProcess process_;
  std::unique_ptr<kube::HttpTransport> transport_;
};

}  // namespace kubernetes_bench
