#include "cli/cluster/connect.h"

#include "kube/api/time_format.h"
#include "kube/login.h"
#include "kube/own_name.h"
#include "kube/transport_config.h"

namespace cli {
namespace {

// The client always has a time-out; a day is none for a person at a terminal.
constexpr base::Duration kNoTimeout = std::chrono::hours{24};

}  // namespace

// Reads a time-out as kubectl does: a number alone is seconds, and 0 means none.
base::Result<base::Duration> parse_request_timeout(const std::string& text) {
  const bool number = !text.empty() && text.find_first_not_of("0123456789") == std::string::npos;
  const base::Result<base::Duration> duration = kube::parse_duration(number ? text + "s" : text);
  if (duration && duration->count() >= 0) return duration;
  return base::invalid_argument("invalid duration \"" + text + "\" (examples: 5s, 2m)");
}

// Goes from the outside in: the kubeconfig, the transport that it describes, the client with its
// patience, and the session that commands get. The order is also that of the members, since each
// stands on the one before it.
base::Result<std::unique_ptr<Connection>> Connection::open(const ConnectOptions& options) {
  const base::Result<kube::TransportConfig> config =
      kube::default_config(options.kubeconfig, options.overrides);
  if (!config) return config.error();
  return open(*config, options);
}

base::Result<std::unique_ptr<Connection>> Connection::open_as(const std::string& token,
                                                              const ConnectOptions& options) {
  CHECK(!token.empty(), "a reader without a token");
  const auto own = kube::default_config(options.kubeconfig, options.overrides);
  if (!own) return own.error();
  kube::TransportConfig config;
  config.server = own->server;
  config.ca_pem = own->ca_pem;
  config.ca_file = own->ca_file;
  config.insecure_skip_tls_verify = own->insecure_skip_tls_verify;
  config.tls_server_name = own->tls_server_name;
  config.proxy_url = own->proxy_url;
  config.origin = own->origin;
  config.bearer_token = token;
  return open(config, options);
}

base::Result<std::unique_ptr<Connection>> Connection::open(kube::TransportConfig config,
                                                           const ConnectOptions& options) {
  config.login = kube::personal_login();
  std::unique_ptr<Connection> connection{new Connection};
  base::Result<std::unique_ptr<kube::HttpTransport>> transport =
      kube::HttpTransport::create(config, connection->clock_);
  if (!transport) return transport.error();
  connection->transport_ = std::move(transport).value();
  connection->telling_.emplace(*connection->transport_, config.origin);
  // A person waits for the answer: fail soon rather than try for minutes.
  kube::ClientOptions client;
  client.call.timeout = options.request_timeout.value_or(std::chrono::seconds{15});
  if (client.call.timeout.count() == 0) client.call.timeout = kNoTimeout;
  client.call.attempts_max = 3;
  client.field_manager = "kubectl-gang";
  connection->session_.emplace(Session{
      .client =
          kube::Client{*connection->telling_, connection->clock_, connection->sleeper_, client},
      .clock = connection->clock_,
      .sleeper = connection->sleeper_,
      .ns = options.ns.empty() ? config.ns : options.ns,
      .upgrader = connection->transport_.get(),
      .user = kube::own_name(config)});
  return connection;
}

}  // namespace cli
