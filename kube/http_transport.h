// Transport over HTTPS (or plain HTTP, for tests): keep-alive connections that calls share, one
// connection of its own for each stream. The only file that knows the HTTP library.
//
// Cost: a call on a warm connection takes one round trip; a new connection a TLS handshake
// (some milliseconds). At most kIdleConnectionsMax connections are kept.
#pragma once

#include <memory>

#include "kube/clock.h"
#include "kube/credentials.h"
#include "kube/transport.h"
#include "kube/transport_config.h"
#include "kube/upgrade.h"

namespace kube {

class HttpTransport final : public Transport, public Upgrader {
 public:
  static constexpr std::size_t kIdleConnectionsMax = 16;
  // Far more than a page of a list usually has. A program holds an answer as text, with a table of
  // its values and the objects that are made of it, in a container of 512 MiB.
  static constexpr std::size_t kResponseBytesMax = 16U << 20U;

  // Connects to nothing yet, but runs the exec plugin if there is one. kInvalidArgument: a
  // malformed URL, certificate, key or token file; kUnauthenticated: our own certificate has
  // expired, or the plugin failed. Ignores SIGPIPE in the whole process, which TLS over a broken
  // connection would raise.
  static base::Result<std::unique_ptr<HttpTransport>> create(const TransportConfig& config,
                                                             const Clock& clock);
  ~HttpTransport() override;

  base::Result<Response> send(const Request& request) override;
  base::Status stream(const Request& request, const std::function<bool(std::string_view)>& on_line,
                      std::stop_token stop) override;
  // Over https alone. Each takes a connection of its own.
  base::Status upgrade(
      const Request& request, const std::vector<std::pair<std::string, std::string>>& headers,
      const std::function<void(const Response& head, Duplex& connection)>& use) override;

 private:
  class Connections;

  explicit HttpTransport(std::unique_ptr<Connections> connections);
  base::Result<Response> send_once(const Request& request, const Credential& credential);
  // Returns the status of a stream that the server has refused.
  base::Status refused(const Request& request, const Response& head, const Credential& credential,
                       std::stop_token stop);

  std::unique_ptr<Connections> connections_;
};

}  // namespace kube
