// A session over HTTPS, made from kubectl's options.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "cli/cluster/missing_kubegang.h"
#include "cli/cluster/session.h"
#include "kube/http_transport.h"
#include "kube/sleeper.h"

namespace cli {

// kubectl's --request-timeout: "30s", "2m", seconds without a unit, "0" for none.
base::Result<base::Duration> parse_request_timeout(const std::string& text);

// Keeps what a session stands on.
class Connection {
 public:
  // Reads the kubeconfig; connects to nothing yet. The error names the file and what is wrong.
  static base::Result<std::unique_ptr<Connection>> open(const ConnectOptions& options);

  // Opens the same cluster as the user who has this token: no other way to log in is taken from the
  // kubeconfig. REQUIRES: the token is not empty.
  static base::Result<std::unique_ptr<Connection>> open_as(const std::string& token,
                                                           const ConnectOptions& options);

  const Session& session() const { return *session_; }

 private:
  Connection() = default;
  static base::Result<std::unique_ptr<Connection>> open(kube::TransportConfig config,
                                                        const ConnectOptions& options);

  kube::SystemClock clock_;
  kube::ThreadSleeper sleeper_;
  std::unique_ptr<kube::HttpTransport> transport_;
  std::optional<TellsMissingKubegang> telling_;  // on transport_
  std::optional<Session> session_;
};

}  // namespace cli
