// Login: the ways to an API server that a person's command line needs beside those of a program in
// a pod: programs that print credentials, SOCKS proxies, and acting as another user. It is a
// library of its own (kube_login), so that the agent, which is root on each node, has none of it.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "base/result.h"

namespace kube {

struct ExecCredential;
struct Impersonation;
struct TransportConfig;
struct Url;
class ProxyEnd;

struct Login {
  base::Result<ExecCredential> (*run_exec_plugin)(const TransportConfig& config);
  base::Status (*connect_by_socks)(ProxyEnd& proxy_end, const Url& proxy, const Url& target);
  std::vector<std::pair<std::string, std::string>> (*impersonation_headers)(
      const Impersonation& as);
};

// Returns those of a command line, for TransportConfig::login. In kube_login alone.
const Login* personal_login();

}  // namespace kube
