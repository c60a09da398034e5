#include "e2e/kubernetes/bench/operator_run.h"

#include <nlohmann/json.hpp>
#include <sstream>

#include "kube/transport_config.h"

namespace kubernetes_bench {
namespace {

// A fixed port, since the address must be known before the program says anything. One operator runs
// at a time.
constexpr const char* kMetricsAddress = "127.0.0.1:18080";

}  // namespace

// Without an election: nothing else leads, and a Lease would be one more write in the figures.
// As many writers as the plain client has connections, so that neither is ahead by parallel
// requests.
base::Result<OperatorRun> OperatorRun::start(const Options& options, const kube::Clock& clock) {
  auto transport = kube::HttpTransport::create(
      kube::TransportConfig{.server = std::string{"http://"} + kMetricsAddress}, clock);
  if (!transport.ok()) return transport.error();
  auto child = ChildProcess::start(
      {options.operator_program, "--kubeconfig", options.operator_kubeconfig, "--no-leader-elect",
       "--metrics-address", kMetricsAddress, "--writers", std::to_string(kConnections)},
      options.state + "/logs/kubegang-operator.log");
  if (!child.ok()) return child.error();
  return OperatorRun{std::move(*child), std::move(*transport)};
}

// False as long as nothing listens there, too.
bool OperatorRun::is_ready() {
  const auto answer = transport_->send({.path = "/readyz"});
  return answer.ok() && answer->status == 200;
}

// By name with labels, as in the text: `name{label="x"}`.
base::Result<std::map<std::string, double>> OperatorRun::metrics() {
  const auto answer = transport_->send({.path = "/metrics", .accept = "text/plain"});
  if (!answer.ok()) return answer.error();
  std::map<std::string, double> out;
  std::istringstream lines{answer->body};
  for (std::string line; std::getline(lines, line);) {
    const std::size_t space = line.rfind(' ');
    if (line.starts_with("kubegang_operator_") && space != std::string::npos) {
      out[line.substr(0, space)] = std::stod(line.substr(space + 1));
    }
  }
  return out;
}

// Returns the growth of counters and sums only; differences of gauges mean nothing.
nlohmann::json OperatorRun::growth(const std::map<std::string, double>& before,
                                   const std::map<std::string, double>& after) {
  nlohmann::json out = nlohmann::json::object();
  for (const auto& [name, value] : after) {
    const bool counts =
        name.ends_with("_total") || name.ends_with("_sum") || name.ends_with("_count");
    const auto start = before.find(name);
    if (counts) out[name] = value - (start == before.end() ? 0 : start->second);
  }
  return out;
}

}  // namespace kubernetes_bench
