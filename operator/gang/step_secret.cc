#include "operator/gang/step_secret.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "api/wellknown.h"

namespace control {
namespace {

using Json = nlohmann::json;

constexpr const char* kStepVolume = "kubegang-steps";
constexpr const char* kStepDirectory = "/run/kubegang-steps";
constexpr const char* kKey = "key";
// Any user of the container reads it.
constexpr int kMode = 0444;
// The name of the first pod's port, of 15 characters at most.
constexpr const char* kFirstPort = "kubegang-first";
constexpr int kFirstPorts = 30;
// Kubernetes' limits.
constexpr std::size_t kNameServersMax = 3;
constexpr std::size_t kSearchesMax = 32;

void append(Json& list, const Json& more, std::size_t max) {
  if (!more.is_array()) return;
  for (const Json& entry : more) {
    if (list.size() < max && std::ranges::find(list, entry) == list.end()) list.push_back(entry);
  }
}

// The names of the job's pods come first, then what kubelet would have set, then the template's.
void set_names(Json& spec, const std::string& service, const std::string& ns,
               const ClusterDns& dns) {
  const std::string services = "svc." + dns.domain;
  const std::string own = ns + "." + services;
  const std::string of_job = service + "." + services;
  const Json given = spec.value("dnsConfig", Json::object());
  Json config = given;
  if (dns.name_servers.empty() || spec.value("dnsPolicy", "") == "None") {
    config["searches"] = Json::array({of_job});
    append(config["searches"], given.value("searches", Json::array()), kSearchesMax);
    spec["dnsConfig"] = std::move(config);
    return;
  }
  config["nameservers"] = dns.name_servers;
  append(config["nameservers"], given.value("nameservers", Json::array()), kNameServersMax);
  config["searches"] = Json::array({of_job, own, services, dns.domain});
  append(config["searches"], given.value("searches", Json::array()), kSearchesMax);
  config["options"] = Json::array({{{"name", "ndots"}, {"value", "5"}}});
  const Json options = given.value("options", Json::array());
  if (options.is_array()) {
    // The last of a name wins.
    for (const Json& option : options) config["options"].push_back(option);
  }
  spec["dnsPolicy"] = "None";
  spec["dnsConfig"] = std::move(config);
}

// A port of a pod that shares its node's network would be one of the node's, which no other pod
// there may name.
bool has_first_port(const Json& spec) {
  return !spec.value("hostNetwork", false);
}

std::string name_of_start(const JobIdentity& job) {
  const std::string first = pod_name(job, 0);
  return first.substr(0, first.rfind('-'));
}

}  // namespace

// Reads "search team-a.svc.cluster.local svc.cluster.local cluster.local": the domain is what
// stands behind "svc.".
ClusterDns read_cluster_dns(std::string_view resolv_conf) {
  ClusterDns dns;
  std::vector<std::string> servers;
  bool is_of_cluster = false;
  std::istringstream lines{std::string{resolv_conf}};
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words{line};
    std::string word;
    words >> word;
    const bool is_search = word == "search";
    if (word == "nameserver" && words >> word && servers.size() < kNameServersMax) {
      servers.push_back(word);
    }
    constexpr std::string_view kServices = "svc.";
    while (is_search && words >> word) {
      if (!word.starts_with(kServices) || word.size() == kServices.size()) continue;
      dns.domain = word.substr(kServices.size());
      if (dns.domain.ends_with('.')) dns.domain.pop_back();
      is_of_cluster = true;
    }
  }
  if (is_of_cluster) dns.name_servers = std::move(servers);
  return dns;
}

std::vector<std::string> host_names(const std::vector<std::string>& nodes) {
  std::vector<std::string> names;
  for (const std::string& node : nodes) names.push_back(node.substr(0, node.find('.')));
  if (std::set(names.begin(), names.end()).size() == names.size()) return names;
  names = nodes;
  for (std::string& name : names) std::ranges::replace(name, '.', '-');
  return names;
}

std::string service_name(const JobIdentity& job, bool is_batch) {
  return is_batch && job.task ? name_of_start(job) : std::string{job.name};
}

std::string step_secret_name(const JobIdentity& job) {
  return name_of_start(job) + "-steps";
}

Json build_step_secret(const std::string& ns, const JobIdentity& job, std::string_view key) {
  return {{"apiVersion", "v1"},
          {"kind", "Secret"},
          {"metadata",
           {{"name", step_secret_name(job)},
            {"namespace", ns},
            {"labels", {{kube::kLabelJob, job.name}}},
            {"ownerReferences", Json::array({{{"apiVersion", "kubegang.io/v1alpha1"},
                                              {"kind", "Job"},
                                              {"name", job.name},
                                              {"uid", job.uid},
                                              {"controller", true}}})}}},
          {"type", "Opaque"},
          {"immutable", true},
          {"data", {{kKey, key}}}};
}

std::vector<kube::ServicePort> ports_of_first_pod() {
  std::vector<kube::ServicePort> ports;
  for (int i = 0; i < kFirstPorts; ++i) {
    // The number is only the Service's: no program connects to it.
    ports.push_back({.name = "first-" + std::to_string(i),
                     .port = i + 1,
                     .target_port = kube::RawJson{Json(kFirstPort)}});
  }
  return ports;
}

void join_pods(Json& spec, const kube::Job& job, const PodSlot& slot, const StepNetwork& network) {
  const JobIdentity identity{job.metadata.name, job.metadata.uid, job.status.starts.value_or(0),
                             network.task};
  const std::string service = service_name(identity, true);
  spec["subdomain"] = service;
  set_names(spec, service + "." + job.metadata.ns, job.metadata.ns, network.dns);
  Json& volumes = spec["volumes"];
  if (!volumes.is_array()) volumes = Json::array();
  volumes.push_back(
      {{"name", kStepVolume},
       {"secret", {{"secretName", step_secret_name(identity)}, {"defaultMode", kMode}}}});
  Json& container = spec["containers"][0];
  Json& mounts = container["volumeMounts"];
  if (!mounts.is_array()) mounts = Json::array();
  mounts.push_back({{"name", kStepVolume}, {"mountPath", kStepDirectory}, {"readOnly", true}});
  container["env"].push_back({{"name", "KUBEGANG_POD_IP"},
                              {"valueFrom", {{"fieldRef", {{"fieldPath", "status.podIP"}}}}}});
  Json words = Json::array();
  words.push_back(container["args"][0]);
  words.push_back(std::string{"--key="} + kStepDirectory + "/" + kKey);
  words.push_back("--port=" + std::to_string(network.port));
  if (slot.pod_index == 0 && has_first_port(spec)) {
    Json& ports = container["ports"];
    if (!ports.is_array()) ports = Json::array();
    ports.push_back({{"name", kFirstPort}, {"containerPort", network.port}});
  }
  if (slot.pod_index != 0) {
    // Whole, so that one question is enough.
    const std::string of_job = service + "." + job.metadata.ns + ".svc." + network.dns.domain + ".";
    words.push_back("--first=" + network.hosts[0] + "." + of_job);
    if (has_first_port(spec)) {
      words.push_back("--ask=_first-%._tcp." + of_job);
      words.push_back("--asks=" + std::to_string(kFirstPorts));
    }
  }
  for (std::size_t i = 1; i < container["args"].size(); ++i) {
    words.push_back(container["args"][i]);
  }
  container["args"] = std::move(words);
}

}  // namespace control
