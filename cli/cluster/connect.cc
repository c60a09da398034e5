#include "cli/cluster/connect.h"

#include "kube/transport_config.h"

namespace cli {

base::Result<std::unique_ptr<Connection>> Connection::open(const ConnectOptions& options) {
  const std::optional<std::string> context =
      options.context.empty() ? std::nullopt : std::optional{options.context};
  const base::Result<kube::TransportConfig> config =
      kube::default_config(options.kubeconfig, context);
  if (!config) return config.error();
  std::unique_ptr<Connection> connection{new Connection};
  base::Result<std::unique_ptr<kube::HttpTransport>> transport =
      kube::HttpTransport::create(*config, connection->clock_);
  if (!transport) return transport.error();
  connection->transport_ = std::move(transport).value();
  // A person waits for the answer: fail soon rather than try for minutes.
  kube::ClientOptions client;
  client.call.timeout = std::chrono::seconds{15};
  client.call.attempts_max = 3;
  client.field_manager = "kubectl-gang";
  connection->session_.emplace(Session{
      .client =
          kube::Client{*connection->transport_, connection->clock_, connection->sleeper_, client},
      .clock = connection->clock_,
      .sleeper = connection->sleeper_,
      .ns = options.ns.empty() ? config->ns : options.ns});
  return connection;
}

}  // namespace cli
