// Credentials that a program prints, as the API group client.authentication.k8s.io defines them.
#pragma once

#include <optional>
#include <string>

#include "base/result.h"
#include "base/time.h"
#include "kube/transport_config.h"

namespace kube {

struct ExecCredential {
  std::string token{};
  std::string client_certificate_pem{};  // with client_key_pem, or neither
  std::string client_key_pem{};
  std::optional<base::Instant> expires{};  // none: for as long as this process runs
};

// Runs the plugin and waits for its end, however long a person takes to log in. It gets our
// environment, its own and $KUBERNETES_EXEC_INFO, writes to our standard error, and reads our
// standard input where it may and that is a terminal.
// kUnauthenticated: a sentence that says what failed, with the install hint when the program is
// missing. REQUIRES: config.exec
base::Result<ExecCredential> run_exec_plugin(const TransportConfig& config);

// Reads a plugin's output. Checks kind and version against what was asked.
base::Result<ExecCredential> parse_exec_credential(const std::string& text,
                                                   const ExecPlugin& plugin);

}  // namespace kube
