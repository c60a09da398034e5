#include "kube/transport_config.h"

#include <yaml-cpp/yaml.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "kube/base64.h"

namespace kube {
namespace {

using base::Code;
using base::Error;
using base::Result;

// A kubeconfig or a certificate; more is a mistake in the path.
constexpr std::streamsize kFileBytesMax = 4 << 20;

Result<std::string> read_file(const std::string& path) {
  std::ifstream file{path, std::ios::binary};
  if (!file) {
    const Code code = errno == ENOENT ? Code::kNotFound : Code::kPermissionDenied;
    return Error{code, "cannot read " + path + ": " + std::strerror(errno)};
  }
  std::string text(static_cast<std::size_t>(kFileBytesMax) + 1, '\0');
  file.read(text.data(), kFileBytesMax + 1);
  if (file.gcount() > kFileBytesMax) return Error{Code::kTooLarge, path + " is above 4 MiB"};
  text.resize(static_cast<std::size_t>(file.gcount()));
  return text;
}

// Reads one kubeconfig. Throws only YAML's exceptions.
class Reader {
 public:
  Reader(const YAML::Node& root, const std::string& path, const std::string& directory)
      : root_{root}, path_{path}, directory_{directory} {}

  Result<TransportConfig> read(const std::optional<std::string>& wanted) const {
    if (!root_.IsMap()) return bad("it is not a map");
    const std::string name = wanted ? *wanted : text(root_, "current-context");
    if (name.empty()) return bad("it has no current-context: set one, or name a context");
    const YAML::Node context = named("contexts", name, "context");
    if (!context) return bad("context \"" + name + "\" is not in contexts");
    TransportConfig config;
    config.origin = "kubeconfig " + path_ + ", context " + name;
    if (const std::string ns = text(context, "namespace"); !ns.empty()) config.ns = ns;
    const std::string cluster_name = text(context, "cluster");
    const YAML::Node cluster = named("clusters", cluster_name, "cluster");
    if (!cluster) return bad("cluster \"" + cluster_name + "\" is not in clusters");
    if (auto status = read_cluster(cluster, cluster_name, config); !status.ok()) {
      return status.error();
    }
    const std::string user_name = text(context, "user");
    if (user_name.empty()) return config;
    const YAML::Node user = named("users", user_name, "user");
    if (!user) return bad("user \"" + user_name + "\" is not in users");
    if (auto status = read_user(user, user_name, config); !status.ok()) return status.error();
    return config;
  }

 private:
  Error bad(const std::string& what) const {
    return base::invalid_argument("kubeconfig " + path_ + ": " + what);
  }

  static std::string text(const YAML::Node& node, const char* field) {
    const YAML::Node value = node.IsMap() ? node[field] : YAML::Node{};
    return value && value.IsScalar() ? value.Scalar() : std::string{};
  }

  // The entry of a list of {name, <field>}.
  YAML::Node named(const char* list, const std::string& name, const char* field) const {
    for (const YAML::Node& entry : root_[list]) {
      if (text(entry, "name") == name && entry[field].IsMap()) return entry[field];
    }
    return YAML::Node{YAML::NodeType::Undefined};
  }

  base::Status refuse(const YAML::Node& node, const std::string& owner,
                      std::initializer_list<const char*> fields, const char* advice) const {
    for (const char* field : fields) {
      if (node[field] && !node[field].IsNull()) {
        return bad(owner + " has " + field + ", which is not supported: " + advice);
      }
    }
    return {};
  }

  base::Status read_cluster(const YAML::Node& cluster, const std::string& name,
                            TransportConfig& config) const {
    const std::string owner = "cluster \"" + name + "\"";
    config.server = text(cluster, "server");
    if (config.server.empty()) return bad(owner + " has no server");
    if (auto status = refuse(cluster, owner, {"proxy-url", "tls-server-name"},
                             "use an address that the certificate names and that is reached "
                             "directly");
        !status.ok()) {
      return status;
    }
    config.insecure_skip_tls_verify = text(cluster, "insecure-skip-tls-verify") == "true";
    return read_data(cluster, owner, "certificate-authority", config.ca_pem);
  }

  base::Status read_user(const YAML::Node& user, const std::string& name,
                         TransportConfig& config) const {
    const std::string owner = "user \"" + name + "\"";
    if (auto status = refuse(user, owner,
                             {"exec", "auth-provider", "username", "password", "as", "as-groups",
                              "as-uid", "as-user-extra"},
                             "use a client certificate or a token (kubectl create token)");
        !status.ok()) {
      return status;
    }
    if (auto status = read_data(user, owner, "client-certificate", config.client_certificate_pem);
        !status.ok()) {
      return status;
    }
    if (auto status = read_data(user, owner, "client-key", config.client_key_pem); !status.ok()) {
      return status;
    }
    if (config.client_certificate_pem.empty() != config.client_key_pem.empty()) {
      return bad(owner + " has only one of client-certificate and client-key");
    }
    config.bearer_token = text(user, "token");
    const std::string token_file = text(user, "tokenFile");
    if (!token_file.empty()) config.token_file = resolved(token_file);
    return {};
  }

  // `<field>-data` in base64, or the file that `<field>` names; the data wins, as in kubectl.
  base::Status read_data(const YAML::Node& node, const std::string& owner, const std::string& field,
                         std::string& out) const {
    const std::string data_field = field + "-data";
    if (const std::string data = text(node, data_field.c_str()); !data.empty()) {
      const auto decoded = decode_base64(data);
      if (!decoded) return bad(owner + ": " + data_field + " is not base64");
      out = *decoded;
      return {};
    }
    const std::string file = text(node, field.c_str());
    if (file.empty()) return {};
    auto content = read_file(resolved(file));
    if (!content.ok()) return bad(owner + ": " + field + ": " + content.error().message);
    out = *content;
    return {};
  }

  std::string resolved(const std::string& file) const {
    return (std::filesystem::path{directory_} / file).lexically_normal().string();
  }

  const YAML::Node& root_;
  const std::string& path_;
  const std::string& directory_;
};

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? std::string{} : std::string{value};
}

std::string trimmed(std::string text) {
  const std::size_t end = text.find_last_not_of(" \t\r\n");
  text.resize(end == std::string::npos ? 0 : end + 1);
  return text;
}

}  // namespace

Result<TransportConfig> parse_kubeconfig(std::string_view text, const std::string& path,
                                         const std::string& directory,
                                         const std::optional<std::string>& context) {
  try {
    const YAML::Node root = YAML::Load(std::string{text});
    return Reader{root, path, directory}.read(context);
  } catch (const YAML::Exception& error) {
    return base::invalid_argument("kubeconfig " + path + ": not valid YAML: line " +
                                  std::to_string(error.mark.line + 1) + ", column " +
                                  std::to_string(error.mark.column + 1) + ": " + error.msg);
  }
}

Result<TransportConfig> load_kubeconfig(const std::string& path,
                                        const std::optional<std::string>& context) {
  const auto text = read_file(path);
  if (!text.ok()) return text.error().with_context("kubeconfig");
  const std::string directory = std::filesystem::path{path}.parent_path().string();
  return parse_kubeconfig(*text, path, directory, context);
}

Result<TransportConfig> in_cluster_config(const std::string& directory) {
  const std::string host = environment("KUBERNETES_SERVICE_HOST");
  const std::string port = environment("KUBERNETES_SERVICE_PORT");
  if (host.empty() || port.empty()) {
    return Error{Code::kNotFound,
                 "not in a pod: KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT are not set"};
  }
  TransportConfig config;
  const bool v6 = host.find(':') != std::string::npos;
  config.server = "https://" + (v6 ? "[" + host + "]" : host) + ":" + port;
  config.origin = "the pod's service account";
  config.token_file = directory + "/token";
  if (const auto token = read_file(config.token_file); !token.ok()) {
    return token.error().with_context("service account");
  }
  const auto authority = read_file(directory + "/ca.crt");
  if (!authority.ok()) return authority.error().with_context("service account");
  config.ca_pem = *authority;
  if (const auto ns = read_file(directory + "/namespace"); ns.ok()) config.ns = trimmed(*ns);
  return config;
}

Result<TransportConfig> default_config(const std::string& path,
                                       const std::optional<std::string>& context) {
  if (!path.empty()) return load_kubeconfig(path, context);
  const std::string variable = environment("KUBECONFIG");
  if (!variable.empty()) return load_kubeconfig(variable.substr(0, variable.find(':')), context);
  auto in_cluster = in_cluster_config();
  if (in_cluster.ok()) return in_cluster;
  const std::string home = environment("HOME");
  if (home.empty()) return in_cluster.error();
  auto of_home = load_kubeconfig(home + "/.kube/config", context);
  if (!of_home.ok() && of_home.error().code == Code::kNotFound) {
    return Error{Code::kNotFound, "no cluster to talk to: " + in_cluster.error().message + "; " +
                                      of_home.error().message +
                                      "; name one by --kubeconfig or $KUBECONFIG"};
  }
  return of_home;
}

}  // namespace kube
