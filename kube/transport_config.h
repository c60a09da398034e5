// How to reach an API server and who we are there: from a kubeconfig, or from the files that
// Kubernetes puts into each pod.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace kube {

struct TransportConfig {
  std::string server{};  // "https://10.0.0.1:6443", "http://127.0.0.1:8080/prefix"
  std::string ca_pem{};  // "" = the machine's own certificate authorities
  bool insecure_skip_tls_verify = false;
  std::string client_certificate_pem{};  // with its chain
  std::string client_key_pem{};
  std::string bearer_token{};
  std::string token_file{};    // read again when it is a minute old, and after a 401
  std::string ns = "default";  // the context's namespace
  std::string origin{};        // for messages: "kubeconfig /home/a/.kube/config, context dev"

  friend bool operator==(const TransportConfig&, const TransportConfig&) = default;
};

// Reads the file's current-context, or the context that is named. Relative paths in it are relative
// to the file. kNotFound: no such file; kInvalidArgument: a sentence that names the file, the field
// and what is wrong. What we cannot do is refused, never ignored: exec and auth-provider plugins,
// proxies, passwords, impersonation, tls-server-name.
base::Result<TransportConfig> load_kubeconfig(const std::string& path,
                                              const std::optional<std::string>& context = {});

// The same of several files together, "a:b" as $KUBECONFIG names them, and as kubectl merges them:
// of contexts, clusters and users of one name, and of current-context, the first file that has one
// counts; paths are relative to the file that they are in. Files that do not exist are left out.
// kNotFound: none exists.
base::Result<TransportConfig> load_kubeconfigs(std::string_view list,
                                               const std::optional<std::string>& context = {});

// The same from text; `directory` is what relative paths are relative to, `path` is for messages.
base::Result<TransportConfig> parse_kubeconfig(std::string_view text, const std::string& path,
                                               const std::string& directory,
                                               const std::optional<std::string>& context = {});

// In a pod: $KUBERNETES_SERVICE_HOST and _PORT, and token, ca.crt and namespace in `directory`.
// kNotFound when the variables or the files are not there.
base::Result<TransportConfig> in_cluster_config(
    const std::string& directory = "/var/run/secrets/kubernetes.io/serviceaccount");

// What kubectl does: `path` if it is not empty, else $KUBECONFIG (load_kubeconfigs), else
// in-cluster, else ~/.kube/config.
base::Result<TransportConfig> default_config(const std::string& path = {},
                                             const std::optional<std::string>& context = {});

}  // namespace kube
