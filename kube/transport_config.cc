#include "kube/transport_config.h"

#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>
#include <vector>

#include "kube/base64.h"
#include "kube/proxy.h"
#include "kube/url.h"

namespace kube {
namespace {

using base::Code;
using base::Error;
using base::Result;

// A kubeconfig or a certificate; more is a mistake in the path.
constexpr std::streamsize kFileBytesMax = 4 << 20;

}  // namespace

// Reads one byte more than is allowed, which distinguishes a file of exactly the limit from a
// larger one (or from one without an end, such as /dev/zero).
Result<std::string> read_config_file(const std::string& path) {
  std::ifstream file{path, std::ios::binary};
  // A missing file is told apart: a list of kubeconfigs may have entries that do not exist.
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

namespace {

// Returns a scalar of YAML's core schema; what is quoted is a string.
nlohmann::json json_of_scalar(const YAML::Node& node) {
  // yaml-cpp tags a quoted scalar with "!": "007" must stay a string and not become a number.
  if (node.Tag() != "!") {
    // The order is that of the core schema: a word is tried as a flag, then as a whole number, then
    // as any number.
    if (bool flag = false; YAML::convert<bool>::decode(node, flag)) return flag;
    if (std::int64_t number = 0; YAML::convert<std::int64_t>::decode(node, number)) return number;
    if (double number = 0; YAML::convert<double>::decode(node, number)) return number;
  }
  return node.Scalar();
}

// The most values that an extension may hold, and the deepest. Aliases make it necessary: a few
// lines can stand for billions of values, and `&a [*a]` for one without an end.
constexpr int kExtensionValuesMax = 10'000;
constexpr int kExtensionDepthMax = 100;

// Returns the tree of YAML as JSON. `left` is how many values may still be made; below 0 what is
// returned is incomplete.
nlohmann::json json_of(const YAML::Node& node, int depth, int& left) {
  if (depth > kExtensionDepthMax) left = -1;
  if (left < 0 || --left < 0) return nullptr;
  switch (node.Type()) {
    case YAML::NodeType::Scalar:
      return json_of_scalar(node);
    case YAML::NodeType::Sequence: {
      auto list = nlohmann::json::array();
      // Once `left` is below 0 each further value costs nothing, so the recursion ends soon.
      for (const YAML::Node& item : node) list.push_back(json_of(item, depth + 1, left));
      return list;
    }
    case YAML::NodeType::Map: {
      auto map = nlohmann::json::object();
      for (const auto& entry : node) {
        map[entry.first.Scalar()] = json_of(entry.second, depth + 1, left);
      }
      return map;
    }
    case YAML::NodeType::Undefined:
    case YAML::NodeType::Null:
      break;
  }
  return nullptr;
}

// Returns one line of JSON; nullopt if the node holds too much.
std::optional<std::string> json_text_of(const YAML::Node& node) {
  int left = kExtensionValuesMax;
  const nlohmann::json value = json_of(node, 1, left);
  if (left < 0) return std::nullopt;
  // yaml-cpp takes bytes that are not UTF-8 as they are, and the library would throw at them.
  return value.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

// The command line's token replaces all that the file would put into the same header, or a program
// would: a token beside the file's user name would leave it to chance which of them logs in. A
// client certificate stays; it is shown in TLS and not in a header. Impersonation is replaced field
// by field.
void apply(const ConfigOverrides& overrides, TransportConfig& config) {
  if (!overrides.token.empty()) {
    config.bearer_token = overrides.token;
    config.token_file.clear();
    config.username.clear();
    config.password.clear();
  }
  const Impersonation& as = overrides.impersonate;
  if (!as.user.empty()) config.impersonate.user = as.user;
  if (!as.uid.empty()) config.impersonate.uid = as.uid;
  if (!as.groups.empty()) config.impersonate.groups = as.groups;
  // A login without a program takes its place, as in client-go.
  if (!config.bearer_token.empty() || !config.token_file.empty()) config.exec.reset();
}

// One kubeconfig; relative paths in it are relative to `directory`.
struct Kubeconfig {
  YAML::Node root;
  std::string path;  // for messages
  std::string directory;
};

// Reads what one or more say together: of entries of one name the first one counts, as a whole.
// Throws only YAML's exceptions.
class Reader {
 public:
  // REQUIRES: `files` is not empty and outlives this.
  explicit Reader(const std::vector<Kubeconfig>& files) : files_{files} {}

  // Throws YAML::Exception for nodes that are not what they are read as.
  Result<TransportConfig> read(const ConfigOverrides& overrides) const {
    // The order in which kubectl resolves a configuration: context, then its cluster, then its
    // user, then what the command line says.
    for (const Kubeconfig& file : files_) {
      if (!file.root.IsMap() && !file.root.IsNull()) return bad(file.path, "it is not a map");
    }
    const std::string name = first_of(overrides.context, current_context());
    if (name.empty()) return bad(paths(), "it has no current-context: set one, or name a context");
    const std::optional<Entry> context = named("context", name);
    if (!context) return bad(paths(), "context \"" + name + "\" is not in contexts");
    TransportConfig config;
    config.origin = "kubeconfig " + paths() + ", context " + name;
    if (const std::string ns = text(context->node, "namespace"); !ns.empty()) config.ns = ns;
    const std::string cluster_name = first_of(overrides.cluster, text(context->node, "cluster"));
    const std::optional<Entry> cluster = named("cluster", cluster_name);
    if (!cluster) return bad(paths(), "cluster \"" + cluster_name + "\" is not in clusters");
    if (auto status = read_cluster(*cluster, overrides, config); !status.ok()) {
      return status.error();
    }
    const std::string user_name = first_of(overrides.user, text(context->node, "user"));
    // A context without a user is legal: some servers ask for no identity (such as kubectl proxy).
    if (!user_name.empty()) {
      const std::optional<Entry> user = named("user", user_name);
      if (!user) return bad(paths(), "user \"" + user_name + "\" is not in users");
      if (auto status = read_user(*user, *cluster, config); !status.ok()) return status.error();
    }
    apply(overrides, config);
    return config;
  }

  // Returns the files as $KUBECONFIG lists them.
  std::string paths() const {
    std::string all;
    for (const Kubeconfig& file : files_) all += (all.empty() ? "" : ":") + file.path;
    return all;
  }

 private:
  // An entry of a list by its name, and the file that it is from.
  struct Entry {
    YAML::Node node;
    const Kubeconfig* file = nullptr;
    std::string title;  // "cluster \"dev\""
  };

  // The path first: users often have several files.
  static Error bad(const std::string& path, const std::string& what) {
    return base::invalid_argument("kubeconfig " + path + ": " + what);
  }
  static Error bad(const Entry& entry, const std::string& what) {
    return bad(entry.file->path, entry.title + what);
  }

  // "" if the field is absent, or is not a scalar. operator[] throws if a node is not a map.
  static std::string text(const YAML::Node& node, const char* field) {
    const YAML::Node value = node.IsMap() ? node[field] : YAML::Node{};
    return value && value.IsScalar() ? value.Scalar() : std::string{};
  }

  // Returns the first file that names one.
  std::string current_context() const {
    for (const Kubeconfig& file : files_) {
      if (std::string name = text(file.root, "current-context"); !name.empty()) return name;
    }
    return {};
  }

  // Returns the entry of a list "<kind>s" of {name, <kind>}.
  std::optional<Entry> named(const std::string& kind, const std::string& name) const {
    for (const Kubeconfig& file : files_) {
      if (!file.root.IsMap()) continue;
      // Entries that are not maps, or have the name but no content, are passed over.
      for (const YAML::Node& entry : file.root[kind + "s"]) {
        if (text(entry, "name") != name) continue;
        const YAML::Node node = entry[kind];
        if (node && node.IsMap()) return Entry{node, &file, kind + " \"" + name + "\""};
      }
    }
    return std::nullopt;
  }

  // Returns the first that is not empty.
  static const std::string& first_of(const std::string& a, const std::string& b) {
    return a.empty() ? b : a;
  }

  // False also for `exec: null`, as tools write it.
  static bool has(const YAML::Node& node, const char* field) {
    return node.IsMap() && node[field] && !node[field].IsNull();
  }

  // Returns the server and how to trust it. A server of the command line keeps the certificate
  // authority of the file, as with kubectl.
  static base::Status read_cluster(const Entry& cluster, const ConfigOverrides& overrides,
                                   TransportConfig& config) {
    config.server = first_of(overrides.server, text(cluster.node, "server"));
    if (config.server.empty()) return bad(cluster, " has no server");
    config.insecure_skip_tls_verify = text(cluster.node, "insecure-skip-tls-verify") == "true";
    config.tls_server_name = text(cluster.node, "tls-server-name");
    if (auto status = read_proxy(cluster, config); !status.ok()) return status;
    const std::string ca_file = text(cluster.node, "certificate-authority");
    if (!ca_file.empty() && !has(cluster.node, "certificate-authority-data")) {
      config.ca_file = resolved(cluster, ca_file);
    }
    return read_data(cluster, "certificate-authority", config.ca_pem);
  }

  // A proxy that cannot be used is an error: a connection around it would reveal more than its user
  // wants.
  static base::Status read_proxy(const Entry& cluster, TransportConfig& config) {
    config.proxy_url = text(cluster.node, "proxy-url");
    std::string of = "proxy-url";
    // The kubeconfig's proxy comes before that of the environment, as in client-go.
    if (config.proxy_url.empty()) {
      const auto server = parse_url(config.server);
      if (server.ok()) config.proxy_url = proxy_from_environment(*server);
      of = "the environment's proxy";
    }
    if (config.proxy_url.empty()) return {};
    const auto proxy = parse_url(config.proxy_url);
    if (!proxy.ok()) return bad(cluster, ": " + of + ": " + proxy.error().message);
    if (proxy->scheme != "https") return {};
    return bad(cluster, ": " + of +
                            // TLS to the proxy and TLS to the server through it would be two layers
                            // of TLS in one connection.
                            " is an https proxy, which is not supported: use http:// or "
                            "socks5://");
  }

  // Reads every way to log in that the entry has; HttpTransport and Credentials decide which of
  // them is used.
  static base::Status read_user(const Entry& user, const Entry& cluster, TransportConfig& config) {
    // Ignoring it would connect without any credential.
    if (has(user.node, "auth-provider")) {
      return bad(user,
                 " has auth-provider, which is not supported: use an exec plugin, a client "
                 "certificate or a token");
    }
    if (auto status = read_data(user, "client-certificate", config.client_certificate_pem);
        !status.ok()) {
      return status;
    }
    if (auto status = read_data(user, "client-key", config.client_key_pem); !status.ok()) {
      return status;
    }
    if (config.client_certificate_pem.empty() != config.client_key_pem.empty()) {
      return bad(user, " has only one of client-certificate and client-key");
    }
    config.bearer_token = text(user.node, "token");
    config.username = text(user.node, "username");
    config.password = text(user.node, "password");
    const std::string token_file = text(user.node, "tokenFile");
    if (!token_file.empty()) config.token_file = resolved(user, token_file);
    read_impersonation(user.node, config.impersonate);
    return has(user.node, "exec") ? read_exec(user, cluster, config) : base::Status{};
  }

  // A key of as-user-extra may have several values, each of which becomes a header of its own.
  static void read_impersonation(const YAML::Node& user, Impersonation& as) {
    as.user = text(user, "as");
    as.uid = text(user, "as-uid");
    for (const YAML::Node& group : user["as-groups"]) as.groups.push_back(group.Scalar());
    for (const auto& entry : user["as-user-extra"]) {
      for (const YAML::Node& value : entry.second) {
        as.extra.emplace_back(entry.first.Scalar(), value.Scalar());
      }
    }
  }

  // The plugin is not run here, only described: Credentials runs it when a request needs it.
  // Its environment is added to this process's.
  static base::Status read_exec(const Entry& user, const Entry& cluster, TransportConfig& config) {
    const YAML::Node exec = user.node["exec"];
    ExecPlugin plugin;
    plugin.api_version = text(exec, "apiVersion");
    if (plugin.api_version != "client.authentication.k8s.io/v1" &&
        plugin.api_version != "client.authentication.k8s.io/v1beta1") {
      return bad(user, ": exec.apiVersion \"" + plugin.api_version +
                           "\" is not client.authentication.k8s.io/v1 or v1beta1");
    }
    plugin.command = text(exec, "command");
    if (plugin.command.empty()) return bad(user, ": exec has no command");
    // A plain name is searched in PATH; a path is relative to the kubeconfig.
    if (plugin.command.find('/') != std::string::npos) {
      plugin.command = resolved(user, plugin.command);
    }
    for (const YAML::Node& argument : exec["args"]) plugin.arguments.push_back(argument.Scalar());
    for (const YAML::Node& entry : exec["env"]) {
      plugin.environment.emplace_back(text(entry, "name"), text(entry, "value"));
    }
    plugin.install_hint = text(exec, "installHint");
    plugin.provide_cluster_info = text(exec, "provideClusterInfo") == "true";
    // "IfAvailable" is the default, as in kubectl.
    const std::string mode = text(exec, "interactiveMode");
    if (mode == "Never") plugin.interactive = ExecPlugin::Interactive::kNever;
    if (mode == "Always") plugin.interactive = ExecPlugin::Interactive::kAlways;
    // `provideClusterInfo` hands this to the plugin beside the cluster itself.
    for (const YAML::Node& extension : cluster.node["extensions"]) {
      if (text(extension, "name") != "client.authentication.k8s.io/exec") continue;
      auto cluster_config = json_text_of(extension["extension"]);
      if (!cluster_config) return bad(cluster, ": its extension for plugins is too large or deep");
      plugin.cluster_config_json = *std::move(cluster_config);
    }
    config.exec = std::move(plugin);
    return {};
  }

  // `<field>-data` in base64, or the file that `<field>` names; the data wins, as in kubectl.
  static base::Status read_data(const Entry& entry, const std::string& field, std::string& out) {
    const std::string data_field = field + "-data";
    if (const std::string data = text(entry.node, data_field.c_str()); !data.empty()) {
      const auto decoded = decode_base64(data);
      if (!decoded) return bad(entry, ": " + data_field + " is not base64");
      out = *decoded;
      return {};
    }
    const std::string file = text(entry.node, field.c_str());
    if (file.empty()) return {};
    auto content = read_config_file(resolved(entry, file));
    if (!content.ok()) return bad(entry, ": " + field + ": " + content.error().message);
    out = *content;
    return {};
  }

  // An absolute path stays as it is: operator/ of std::filesystem::path replaces the left side
  // then.
  static std::string resolved(const Entry& entry, const std::string& file) {
    return (std::filesystem::path{entry.file->directory} / file).lexically_normal().string();
  }

  const std::vector<Kubeconfig>& files_;
};

// yaml-cpp counts lines from 0.
Error bad_yaml(const std::string& path, const YAML::Exception& error) {
  return base::invalid_argument("kubeconfig " + path + ": not valid YAML: line " +
                                std::to_string(error.mark.line + 1) + ", column " +
                                std::to_string(error.mark.column + 1) + ": " + error.msg);
}

// yaml-cpp throws; this is the function that calls it (style.md, 24).
Result<Kubeconfig> parse_one(std::string_view text, const std::string& path,
                             const std::string& directory) {
  try {
    return Kubeconfig{YAML::Load(std::string{text}), path, directory};
  } catch (const YAML::Exception& error) {
    return bad_yaml(path, error);
  }
}

// Relative paths in it begin at its own folder.
Result<Kubeconfig> load_one(const std::string& path) {
  const auto text = read_config_file(path);
  if (!text.ok()) return text.error().with_context("kubeconfig");
  return parse_one(*text, path, std::filesystem::path{path}.parent_path().string());
}

// yaml-cpp also throws while nodes are read, so the whole of reading is guarded.
Result<TransportConfig> read_all(const std::vector<Kubeconfig>& files,
                                 const ConfigOverrides& overrides) {
  const Reader reader{files};
  try {
    return reader.read(overrides);
  } catch (const YAML::Exception& error) {
    return bad_yaml(reader.paths(), error);
  }
}

// Returns "" for a variable that is not set, like one that is empty.
std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? std::string{} : std::string{value};
}

// Without the blanks and line ends that editors leave behind.
std::string trimmed(std::string text) {
  const std::size_t end = text.find_last_not_of(" \t\r\n");
  text.resize(end == std::string::npos ? 0 : end + 1);
  return text;
}

}  // namespace

// `path` is only for messages.
Result<TransportConfig> parse_kubeconfig(std::string_view text, const std::string& path,
                                         const std::string& directory,
                                         const ConfigOverrides& overrides) {
  auto file = parse_one(text, path, directory);
  if (!file.ok()) return file.error();
  return read_all({*std::move(file)}, overrides);
}

Result<TransportConfig> load_kubeconfig(const std::string& path, const ConfigOverrides& overrides) {
  auto file = load_one(path);
  if (!file.ok()) return file.error();
  return read_all({*std::move(file)}, overrides);
}

// kubectl's rule for $KUBECONFIG. One file that is broken is an error, even if another has the
// context: the user would get a cluster without a hint that half of the configuration was not read.
Result<TransportConfig> load_kubeconfigs(std::string_view list, const ConfigOverrides& overrides) {
  std::vector<Kubeconfig> files;
  Error missing{Code::kNotFound, "kubeconfig: the list names no file"};
  while (!list.empty()) {
    const std::string path{list.substr(0, list.find(':'))};
    list.remove_prefix(std::min(path.size() + 1, list.size()));
    if (path.empty()) continue;
    auto file = load_one(path);
    // A file of the list that does not exist is skipped, as kubectl does; one that cannot be read
    // is an error.
    if (!file.ok() && file.error().code != Code::kNotFound) return file.error();
    if (file.ok()) {
      files.push_back(*std::move(file));
    } else {
      missing = file.error();
    }
  }
  if (files.empty()) return missing;
  return read_all(files, overrides);
}

// SOURCE: Kubernetes, "Accessing the Kubernetes API from a Pod". The two variables come from the
// service "kubernetes" in every pod; an IPv6 address in them has no brackets.
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
  // Read here only for its error: requests read the token again, since kubelet rotates it.
  if (const auto token = read_config_file(config.token_file); !token.ok()) {
    return token.error().with_context("service account");
  }
  config.ca_file = directory + "/ca.crt";
  const auto authority = read_config_file(config.ca_file);
  if (!authority.ok()) return authority.error().with_context("service account");
  config.ca_pem = *authority;
  // The namespace is a convenience: without the file the default stays.
  if (const auto ns = read_config_file(directory + "/namespace"); ns.ok()) config.ns = trimmed(*ns);
  return config;
}

// A file that is named wins; the variable wins over the pod's own account, so that a person in a
// pod can reach another cluster. The last error names all places that were searched.
Result<TransportConfig> default_config(const std::string& path, const ConfigOverrides& overrides) {
  if (!path.empty()) return load_kubeconfig(path, overrides);
  const std::string variable = environment("KUBECONFIG");
  if (!variable.empty()) return load_kubeconfigs(variable, overrides);
  auto in_cluster = in_cluster_config();
  if (in_cluster.ok()) {
    apply(overrides, *in_cluster);
    return in_cluster;
  }
  const std::string home = environment("HOME");
  if (home.empty()) return in_cluster.error();
  auto of_home = load_kubeconfig(home + "/.kube/config", overrides);
  if (!of_home.ok() && of_home.error().code == Code::kNotFound) {
    return Error{Code::kNotFound, "no cluster to talk to: " + in_cluster.error().message + "; " +
                                      of_home.error().message +
                                      "; name one by --kubeconfig or $KUBECONFIG"};
  }
  return of_home;
}

}  // namespace kube
