// How to reach an API server and who we are there: from a kubeconfig, or from the files that
// Kubernetes puts into each pod.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "kube/login.h"

namespace kube {

// A program that prints credentials (client.authentication.k8s.io), as the kubeconfigs of managed
// clusters name one: aws, gke-gcloud-auth-plugin, kubelogin.
struct ExecPlugin {
  enum class Interactive { kNever, kIfAvailable, kAlways };  // whether it may read standard input

  std::string api_version{};  // "client.authentication.k8s.io/v1" or ".../v1beta1"
  std::string command{};      // found by $PATH unless it has a slash
  std::vector<std::string> arguments{};
  std::vector<std::pair<std::string, std::string>> environment{};  // added to this process's
  std::string install_hint{};  // says how to get the program; may have several lines
  Interactive interactive = Interactive::kIfAvailable;
  bool provide_cluster_info = false;
  std::string cluster_config_json{};  // of the cluster's extension; "" = none

  friend bool operator==(const ExecPlugin&, const ExecPlugin&) = default;
};

// The identity whose rights the API server checks (--as); all empty: the caller's own.
struct Impersonation {
  std::string user{};
  std::string uid{};
  std::vector<std::string> groups{};
  std::vector<std::pair<std::string, std::string>> extra{};  // a key may come several times

  friend bool operator==(const Impersonation&, const Impersonation&) = default;
};

struct TransportConfig {
  std::string server{};   // "https://10.0.0.1:6443", "http://127.0.0.1:8080/prefix"
  std::string ca_pem{};   // "" = the machine's own certificate authorities
  std::string ca_file{};  // where ca_pem is from; read again when a server is not trusted
  bool insecure_skip_tls_verify = false;
  std::string tls_server_name{};  // that the certificate has; "" = the host of `server`
  // "http://user:password@10.0.0.9:3128", "socks5://127.0.0.1:1080"; "" = none.
  std::string proxy_url{};
  std::string client_certificate_pem{};  // with its chain
  std::string client_key_pem{};
  std::string bearer_token{};
  std::string token_file{};  // read again when it is a minute old, and after a 401
  std::string username{};    // basic authentication
  std::string password{};
  std::optional<ExecPlugin> exec{};  // used when there is neither token nor token file
  Impersonation impersonate{};
  // For exec, SOCKS and impersonate (kube/login.h); null: HttpTransport::create refuses these.
  const Login* login = nullptr;
  std::string ns = "default";  // the context's namespace
  std::string origin{};        // for messages: "kubeconfig /home/a/.kube/config, context dev"

  friend bool operator==(const TransportConfig&, const TransportConfig&) = default;
};

// Options of a command line that replace those of the kubeconfig; empty = what the kubeconfig says.
struct ConfigOverrides {
  std::string context{};
  std::string cluster{};  // the name of an entry in clusters
  std::string user{};     // the name of an entry in users
  std::string server{};
  std::string token{};  // wins over all other ways to log in but a client certificate
  Impersonation impersonate{};
};

// Reads the file's current-context, or the context that is named. Relative paths in it are relative
// to the file. kNotFound: no such file; kInvalidArgument: a sentence that names the file, the field
// and what is wrong. Without proxy-url the proxy is the environment's (kube/proxy.h). Refused,
// never ignored: auth-provider (which kubectl has no more either), and proxies that speak TLS.
base::Result<TransportConfig> load_kubeconfig(const std::string& path,
                                              const ConfigOverrides& overrides = {});

// Does the same for several files together, "a:b" as $KUBECONFIG names them, and as kubectl merges
// them: of contexts, clusters and users of one name, and of current-context, the first file that
// has one counts; paths are relative to the file that they are in. Files that do not exist are left
// out. kNotFound: none exists.
base::Result<TransportConfig> load_kubeconfigs(std::string_view list,
                                               const ConfigOverrides& overrides = {});

// Does the same from text; relative paths are relative to `directory`, `path` is for messages.
base::Result<TransportConfig> parse_kubeconfig(std::string_view text, const std::string& path,
                                               const std::string& directory,
                                               const ConfigOverrides& overrides = {});

// Reads the configuration of a pod: $KUBERNETES_SERVICE_HOST and _PORT, and token, ca.crt and
// namespace in `directory`. kNotFound when the variables or the files are not there.
base::Result<TransportConfig> in_cluster_config(
    const std::string& directory = "/var/run/secrets/kubernetes.io/serviceaccount");

// Reads what kubectl would: `path` if it is not empty, else $KUBECONFIG (load_kubeconfigs), else
// in-cluster, else ~/.kube/config.
base::Result<TransportConfig> default_config(const std::string& path = {},
                                             const ConfigOverrides& overrides = {});

// Reads the text of a kubeconfig or of a certificate, at most 4 MiB. kNotFound: no such file.
base::Result<std::string> read_config_file(const std::string& path);

}  // namespace kube
