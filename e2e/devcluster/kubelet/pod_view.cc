#include "e2e/devcluster/kubelet/pod_view.h"

#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "kube/base64.h"

namespace devcluster {
namespace {

namespace fs = std::filesystem;
using base::Code;
using base::Error;
using nlohmann::json;

constexpr const char* kResolvConf = "/etc/resolv.conf";
constexpr mode_t kSecretMode = 0644;  // Kubernetes' default

base::Status write_file(const fs::path& path, const std::string& text, mode_t mode) {
  std::ofstream file{path, std::ios::binary | std::ios::trunc};
  file << text;
  file.close();
  if (!file || ::chmod(path.c_str(), mode) != 0) {
    return Error{Code::kUnavailable, "write " + path.string()};
  }
  return {};
}

base::Status write_secret(const kube::Client& client, const std::string& ns, const json& volume,
                          const fs::path& folder) {
  const std::string name = volume.value("secretName", "");
  const auto secret =
      client.call_json(kube::Method::kGet, "/api/v1/namespaces/" + ns + "/secrets/" + name);
  if (!secret.ok() && secret.error().code == Code::kNotFound) {
    return Error{Code::kNotFound, "secret \"" + name + "\" not found"};
  }
  if (!secret.ok()) return secret.error();
  fs::create_directories(folder);
  const json data = secret->value("data", json::object());
  for (const auto& [key, value] : data.items()) {
    const auto bytes = kube::decode_base64(value.get<std::string>());
    const mode_t mode = volume.value("defaultMode", kSecretMode);
    if (const auto status = write_file(folder / key, bytes.value_or(""), mode); !status) {
      return status;
    }
  }
  return {};
}

std::string resolv_conf(const json& config) {
  std::string text;
  for (const json& server : config.value("nameservers", json::array())) {
    text += "nameserver " + server.get<std::string>() + "\n";
  }
  std::string searches;
  for (const json& search : config.value("searches", json::array())) {
    searches += " " + search.get<std::string>();
  }
  if (!searches.empty()) text += "search" + searches + "\n";
  for (const json& option : config.value("options", json::array())) {
    text += "options " + option.value("name", "") + ":" + option.value("value", "") + "\n";
  }
  return text;
}

base::Status add_mounts(const kube::Client& client, const json& pod, const std::string& container,
                        const fs::path& directory, SpawnSpec& spec) {
  const json& of_pod = pod["spec"];
  json mounts = json::array();
  for (const json& one : of_pod["containers"]) {
    if (one.value("name", "") == container) mounts = one.value("volumeMounts", json::array());
  }
  for (const json& mount : mounts) {
    for (const json& volume : of_pod.value("volumes", json::array())) {
      if (volume.value("name", "") != mount.value("name", "") || !volume.contains("secret")) {
        continue;
      }
      const fs::path folder = directory / volume.value("name", "");
      const std::string ns = pod["metadata"].value("namespace", "");
      if (const auto status = write_secret(client, ns, volume["secret"], folder); !status) {
        return status;
      }
      // The root is the machine's, so a folder to mount at must be there; it stays empty.
      const std::string target = mount.value("mountPath", "");
      fs::create_directories(target);
      spec.mounts.push_back({folder.string(), target});
    }
  }
  return {};
}

}  // namespace

base::Status add_view(const kube::Client& client, const kube::Pod& pod,
                      const kube::Container& container, const std::string& directory,
                      SpawnSpec& spec) {
  // Nothing of it is asked for, or it cannot be given.
  if (!pod.spec.subdomain || ::geteuid() != 0) return {};
  const auto whole = client.call_json(
      kube::Method::kGet, "/api/v1/namespaces/" + pod.metadata.ns + "/pods/" + pod.metadata.name);
  if (!whole.ok()) return whole.error();
  try {
    fs::create_directories(directory);
    spec.hostname = pod.spec.hostname.value_or("");
    const auto mounted = add_mounts(client, *whole, container.name, directory, spec);
    if (!mounted) return mounted;
    const json& of_pod = (*whole)["spec"];
    if (of_pod.value("dnsPolicy", "") != "None") return {};
    const fs::path file = fs::path{directory} / "resolv.conf";
    const auto written = write_file(file, resolv_conf(of_pod.value("dnsConfig", json::object())),
                                    S_IRUSR | S_IWUSR | S_IRGRP | S_IROTH);
    if (written) spec.mounts.push_back({file.string(), kResolvConf});
    return written;
  } catch (const std::exception& error) {
    return Error{Code::kInvalidArgument, error.what()};
  }
}

}  // namespace devcluster
