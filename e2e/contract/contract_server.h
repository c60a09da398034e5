// The API servers that the contract suite runs against: the in-memory one without a network, the
// same over HTTPS, and a real kube-apiserver whose kubeconfig the environment names.
#pragma once

#include <memory>
#include <string>

#include "base/result.h"
#include "kube/transport.h"

namespace contract {

// Names a kubeconfig with which the suite may create and delete namespaces and CRDs.
inline constexpr const char* kKubeconfigVariable = "KUBEGANG_CONTRACT_KUBECONFIG";

enum class ServerKind { kInProcess, kHttps, kReal };

class ContractServer {
 public:
  virtual ~ContractServer() = default;
  virtual kube::Transport& transport() = 0;
  // Forgets the history of changes; false where that cannot be asked for.
  virtual bool compact() = 0;
};

// kNotFound: kReal, and the variable is not set.
base::Result<std::unique_ptr<ContractServer>> start_server(ServerKind kind);

}  // namespace contract
