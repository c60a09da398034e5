#include "kube/exec_plugin.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>
#include <string_view>
#include <vector>

#include "kube/api/json_text.h"
#include "kube/api/time_format.h"
#include "kube/base64.h"

extern char** environ;

// Runs a credential plugin as kubectl does. SOURCE: Kubernetes, "Authenticating", client-go
// credential plugins.
// 1. give it, in $KUBERNETES_EXEC_INFO, the cluster, the version, and whether it may ask a person
// 2. read its standard output to the end, then wait for the program
// 3. an exit code of 0 and an ExecCredential of the version that the kubeconfig names are a
//    success; anything else is kUnauthenticated with the reason
namespace kube {
namespace {

using base::Code;
using base::Error;
using base::Result;
using nlohmann::json;

// A certificate with its chain and key is a few KiB.
constexpr std::size_t kOutputBytesMax = 1U << 20U;

Error failed(const ExecPlugin& plugin, const std::string& what) {
  return {Code::kUnauthenticated, "exec plugin " + plugin.command + ": " + what};
}

// A plugin may ask a person only if there is one: the kubeconfig allows it and standard input is a
// terminal. The operator's and the agent's are none.
bool may_ask(const ExecPlugin& plugin) {
  return plugin.interactive != ExecPlugin::Interactive::kNever && isatty(STDIN_FILENO) == 1;
}

// $KUBERNETES_EXEC_INFO: what the plugin may know of us and of the cluster.
std::string exec_info(const TransportConfig& config) {
  const ExecPlugin& plugin = *config.exec;
  json spec{{"interactive", may_ask(plugin)}};
  if (plugin.provide_cluster_info) {
    json cluster{{"server", config.server}};
    if (!config.tls_server_name.empty()) cluster["tls-server-name"] = config.tls_server_name;
    if (config.insecure_skip_tls_verify) cluster["insecure-skip-tls-verify"] = true;
    if (!config.ca_pem.empty()) {
      cluster["certificate-authority-data"] = encode_base64(config.ca_pem);
    }
    if (!config.proxy_url.empty()) cluster["proxy-url"] = config.proxy_url;
    if (!plugin.cluster_config_json.empty()) {
      cluster["config"] = json::parse(plugin.cluster_config_json, nullptr, false);
    }
    spec["cluster"] = std::move(cluster);
  }
  // The text of a file need not be UTF-8, and the library would throw at it.
  return json{{"apiVersion", plugin.api_version}, {"kind", "ExecCredential"}, {"spec", spec}}.dump(
      -1, ' ', false, json::error_handler_t::replace);
}

// Returns our environment with the plugin's additions, which win: a name occurs once.
std::vector<std::string> environment_for(const TransportConfig& config) {
  std::vector<std::pair<std::string, std::string>> added = config.exec->environment;
  added.emplace_back("KUBERNETES_EXEC_INFO", exec_info(config));
  std::vector<std::string> all;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text{*entry};
    const auto names_it = [&](const auto& one) { return text.starts_with(one.first + "="); };
    if (std::none_of(added.begin(), added.end(), names_it)) all.emplace_back(text);
  }
  for (const auto& [name, value] : added) all.push_back(name + "=" + value);
  return all;
}

// argv and envp as posix_spawn(3) wants them. Valid as long as `words` is not changed.
std::vector<char*> pointers_to(std::vector<std::string>& words) {
  std::vector<char*> out;
  for (std::string& word : words) out.push_back(word.data());
  out.push_back(nullptr);
  return out;
}

// Closes its end of a pipe when it goes.
class Descriptor {
 public:
  explicit Descriptor(int number) : number_{number} {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() { reset(); }
  void reset() {
    if (number_ >= 0) close(number_);
    number_ = -1;
  }
  int get() const { return number_; }

 private:
  int number_;
};

// Starts the program with `output` as its standard output. The error of a missing program ends with
// the hint of the kubeconfig, as kubectl shows it.
// The program is searched in PATH if its name has no slash (posix_spawnp).
Result<pid_t> start(const TransportConfig& config, int output) {
  const ExecPlugin& plugin = *config.exec;
  std::vector<std::string> words = plugin.arguments;
  words.insert(words.begin(), plugin.command);
  std::vector<std::string> environment = environment_for(config);
  // posix_spawn and not fork: this process may have many threads, and between fork and exec a child
  // of such a process must not even allocate.
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  // Only its output is read. Its standard error is for the person at the terminal.
  posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO);
  // A plugin that reads its standard input without a terminal would wait forever.
  if (!may_ask(plugin)) {
    posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  }
  pid_t pid = 0;
  const int error = posix_spawnp(&pid, plugin.command.c_str(), &actions, nullptr,
                                 pointers_to(words).data(), pointers_to(environment).data());
  posix_spawn_file_actions_destroy(&actions);
  if (error == 0) return pid;
  const std::string hint = plugin.install_hint.empty() ? "" : "\n" + plugin.install_hint;
  return failed(plugin, "cannot start it: " + std::string{std::strerror(error)} + hint);
}

// Reads until the program closes its output, or has written too much. One read of a pipe returns
// what is there, which is seldom the whole.
std::string read_all(int descriptor) {
  std::string text;
  std::array<char, 4096> buffer{};
  while (text.size() <= kOutputBytesMax) {
    const ssize_t count = read(descriptor, buffer.data(), buffer.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) break;
    text.append(buffer.data(), static_cast<std::size_t>(count));
  }
  return text;
}

}  // namespace

// The pipe is made here and not in start(), so that this function sees which end is whose.
Result<ExecCredential> run_exec_plugin(const TransportConfig& config) {
  const ExecPlugin& plugin = *config.exec;
  if (plugin.interactive == ExecPlugin::Interactive::kAlways && !may_ask(plugin)) {
    return failed(plugin, "it needs a terminal, and standard input is none");
  }
  std::array<int, 2> ends{-1, -1};
  if (pipe2(ends.data(), O_CLOEXEC) != 0) return failed(plugin, std::strerror(errno));
  Descriptor reading{ends[0]};
  Descriptor writing{ends[1]};
  const auto pid = start(config, writing.get());
  if (!pid.ok()) return pid.error();
  // Otherwise the pipe would keep a writer, and reading would not end with the program.
  writing.reset();
  // No time limit: a plugin may wait for a person who logs in with a browser.
  const std::string text = read_all(reading.get());
  // Before the wait: a plugin that has still more to write fails to, instead of waiting for us.
  reading.reset();
  int status = 0;
  while (waitpid(*pid, &status, 0) < 0 && errno == EINTR) {
  }
  if (text.size() > kOutputBytesMax) return failed(plugin, "it wrote more than 1 MiB");
  if (WIFSIGNALED(status)) {
    return failed(plugin, "it was ended by signal " + std::to_string(WTERMSIG(status)));
  }
  if (WEXITSTATUS(status) != 0) {
    return failed(plugin, "it ended with exit code " + std::to_string(WEXITSTATUS(status)));
  }
  return parse_exec_credential(text, plugin);
}

Result<ExecCredential> parse_exec_credential(const std::string& text, const ExecPlugin& plugin) {
  const json object = json::parse(text, nullptr, false);
  if (!object.is_object() || text_at(object, "kind") != "ExecCredential") {
    return failed(plugin, "it did not print an ExecCredential");
  }
  if (text_at(object, "apiVersion") != plugin.api_version) {
    return failed(plugin, "it printed version \"" + text_at(object, "apiVersion") +
                              "\", the kubeconfig says " + plugin.api_version);
  }
  const auto status = object.find("status");
  if (status == object.end() || !status->is_object()) {
    return failed(plugin, "what it printed has no status");
  }
  ExecCredential credential{.token = text_at(*status, "token"),
                            .client_certificate_pem = text_at(*status, "clientCertificateData"),
                            .client_key_pem = text_at(*status, "clientKeyData")};
  // client-go refuses the same two: half a key pair, and a credential with nothing in it.
  if (credential.client_certificate_pem.empty() != credential.client_key_pem.empty()) {
    return failed(plugin, "it printed only one of clientCertificateData and clientKeyData");
  }
  if (credential.token.empty() && credential.client_key_pem.empty()) {
    return failed(plugin, "it printed neither a token nor a client certificate");
  }
  // An instant that cannot be read is an error: taken as "never", a token would be used until the
  // server refuses it.
  if (const std::string expires = text_at(*status, "expirationTimestamp"); !expires.empty()) {
    const auto instant = parse_instant(expires);
    if (!instant.ok()) return failed(plugin, "expirationTimestamp: " + instant.error().message);
    credential.expires = *instant;
  }
  return credential;
}

}  // namespace kube
