#include "kube/testing/api_server/builtin_table.h"

#include <functional>
#include <map>
#include <string>

#include <nlohmann/json.hpp>

#include "kube/api/time_format.h"
#include "kube/testing/api_server/age_text.h"
#include "kube/testing/api_server/json_path.h"

// The tables that kubectl shows of built-in kinds: a real server makes them, kubectl only prints
// cells. So a cluster of tests looks like a real one in `kubectl get`. SOURCE:
// pkg/printers/internalversion/printers.go of Kubernetes 1.33.
namespace devcluster {
namespace {

using nlohmann::json;

using Cells = std::function<json(const json& object, base::Instant now)>;

// The columns of a kind, and the function that makes the cells of one object, in the same order.
struct Table {
  std::vector<PrinterColumn> columns;
  Cells cells;
};

// priority > 0: only with -o wide.
PrinterColumn column(std::string name, std::string type = "string", int priority = 0) {
  const std::string format = name == "Name" ? "name" : "";
  return {.name = std::move(name),
          .type = std::move(type),
          .format = format,
          .description = "",
          .priority = priority,
          .json_path = ""};
}

// Returns the text at a path, or `absent` if there is none or it is empty.
std::string text_at(const json& object, std::string_view path, const char* absent) {
  const json* value = find_path(object, path);
  if (value == nullptr || !value->is_string() || value->get_ref<const std::string&>().empty()) {
    return absent;
  }
  return value->get<std::string>();
}

// Returns "5m", as kubectl prints ages; "<unknown>" if there is no such time.
std::string age_at(const json& object, std::string_view path, base::Instant now) {
  const auto instant = kube::parse_instant(text_at(object, path, ""));
  return instant.ok() ? age_text(now - *instant) : "<unknown>";
}

// Since the creation, as all kinds but events have it.
std::string age_of(const json& object, base::Instant now) {
  return age_at(object, ".metadata.creationTimestamp", now);
}

// Returns the list at a path; an empty one if there is none, so that no caller must look before.
json list_at(const json& object, std::string_view path) {
  const json* value = find_path(object, path);
  return value != nullptr && value->is_array() ? *value : json::array();
}

// Returns the reason of the first container that does not simply run.
std::string container_reason(const json& statuses, std::string reason) {
  for (const json& status : statuses) {
    const std::string waiting = text_at(status, ".state.waiting.reason", "");
    const std::string terminated = text_at(status, ".state.terminated.reason", "");
    if (!waiting.empty()) return waiting;
    if (!terminated.empty()) return terminated;
    if (const json* code = find_path(status, ".state.terminated.exitCode")) {
      return "ExitCode:" + code->dump();
    }
  }
  return reason;
}

// Makes the STATUS column: the reason or the phase; the first init container that has not succeeded
// wins, and after it the first container that does not simply run. A deletion wins over all.
std::string pod_status(const json& pod) {
  std::string reason = text_at(pod, ".status.reason", "");
  if (reason.empty()) reason = text_at(pod, ".status.phase", "Unknown");
  // Kept, since an init container at work replaces the text, and the other containers, which wait
  // for it, then have nothing to add.
  const std::string phase = reason;
  const json inits = list_at(pod, ".status.initContainerStatuses");
  for (std::size_t i = 0; i < inits.size(); ++i) {
    const json* code = find_path(inits[i], ".state.terminated.exitCode");
    // It has done its work; "Init:1/2" of the next one counts those before it.
    if (code != nullptr && *code == 0) continue;
    const std::string special = container_reason(json::array({inits[i]}), "");
    reason = "Init:" + (special.empty() || special == "PodInitializing"
                            ? std::to_string(i) + "/" + std::to_string(inits.size())
                            : special);
    break;
  }
  if (reason == phase) {
    reason = container_reason(list_at(pod, ".status.containerStatuses"), reason);
  }
  if (pod["metadata"].contains("deletionTimestamp")) return "Terminating";
  return reason;
}

// READY counts containers that are ready against those of the spec; init containers are in neither.
// A real server puts the time of the last restart behind RESTARTS ("3 (5m ago)"); it is left out.
json pod_cells(const json& pod, base::Instant now) {
  int ready = 0;
  std::int64_t restarts = 0;
  for (const json& status : list_at(pod, ".status.containerStatuses")) {
    if (status.value("ready", false)) ++ready;
    restarts += status.value("restartCount", 0);
  }
  const std::size_t total = list_at(pod, ".spec.containers").size();
  return {pod["metadata"]["name"],
          std::to_string(ready) + "/" + std::to_string(total),
          pod_status(pod),
          std::to_string(restarts),
          age_of(pod, now),
          text_at(pod, ".status.podIP", "<none>"),
          text_at(pod, ".spec.nodeName", "<none>"),
          text_at(pod, ".status.nominatedNodeName", "<none>"),
          "<none>"};
}

// Returns the node's first address of that type.
std::string address(const json& node, const char* type) {
  for (const json& entry : list_at(node, ".status.addresses")) {
    if (entry.value("type", "") == type) return entry.value("address", "<none>");
  }
  return "<none>";
}

// Ready comes from the condition and not from the phase; roles are the labels
// node-role.kubernetes.io/ROLE.
json node_cells(const json& node, base::Instant now) {
  std::string state = "Unknown";
  for (const json& condition : list_at(node, ".status.conditions")) {
    if (condition.value("type", "") == "Ready") {
      state = condition.value("status", "") == "True" ? "Ready" : "NotReady";
    }
  }
  const json* cordoned = find_path(node, ".spec.unschedulable");
  if (cordoned != nullptr && *cordoned == true) state += ",SchedulingDisabled";
  std::string roles;
  const json labels = node["metadata"].value("labels", json::object());
  for (const auto& [key, value] : labels.items()) {
    const std::string prefix = "node-role.kubernetes.io/";
    if (key.starts_with(prefix)) roles += (roles.empty() ? "" : ",") + key.substr(prefix.size());
  }
  return {node["metadata"]["name"],
          state,
          roles.empty() ? "<none>" : roles,
          age_of(node, now),
          text_at(node, ".status.nodeInfo.kubeletVersion", ""),
          address(node, "InternalIP"),
          address(node, "ExternalIP"),
          text_at(node, ".status.nodeInfo.osImage", "<unknown>"),
          text_at(node, ".status.nodeInfo.kernelVersion", "<unknown>"),
          text_at(node, ".status.nodeInfo.containerRuntimeVersion", "<unknown>")};
}

// PORT(S) without node ports, and no external IP: such Services are not made here.
json service_cells(const json& service, base::Instant now) {
  std::string ports;
  for (const json& port : list_at(service, ".spec.ports")) {
    ports += (ports.empty() ? "" : ",") + port.value("port", json(0)).dump() + "/" +
             port.value("protocol", "TCP");
  }
  std::string selector;
  if (const json* labels = find_path(service, ".spec.selector")) {
    for (const auto& [key, value] : labels->items()) {
      selector += (selector.empty() ? "" : ",") + key + "=" + value.get<std::string>();
    }
  }
  return {service["metadata"]["name"],
          text_at(service, ".spec.type", "ClusterIP"),
          text_at(service, ".spec.clusterIP", "<none>"),
          "<none>",
          ports.empty() ? "<none>" : ports,
          age_of(service, now),
          selector.empty() ? "<none>" : selector};
}

// Events of the two APIs (core, events.k8s.io) fill different fields; the first that is there
// counts.
json event_cells(const json& event, base::Instant now) {
  std::string last = "<unknown>";
  for (const char* path : {".series.lastObservedTime", ".lastTimestamp", ".eventTime",
                           ".metadata.creationTimestamp"}) {
    last = age_at(event, path, now);
    if (last != "<unknown>") break;
  }
  std::string first = age_at(event, ".firstTimestamp", now);
  if (first == "<unknown>") first = age_at(event, ".eventTime", now);
  std::string kind = text_at(event, ".involvedObject.kind", "");
  // "pod/main-0", which users paste behind `kubectl get`.
  for (char& c : kind) c = static_cast<char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
  std::string source = text_at(event, ".source.component", "");
  if (source.empty()) source = text_at(event, ".reportingComponent", "");
  const std::string host = text_at(event, ".source.host", "");
  if (!host.empty()) source += ", " + host;
  const json* count = find_path(event, ".series.count");
  if (count == nullptr) count = find_path(event, ".count");
  return {last,
          text_at(event, ".type", ""),
          text_at(event, ".reason", ""),
          kind + "/" + text_at(event, ".involvedObject.name", ""),
          text_at(event, ".involvedObject.fieldPath", ""),
          source,
          text_at(event, ".message", ""),
          first,
          count == nullptr ? json(1) : *count,
          event["metadata"]["name"]};
}

// Returns the number of entries of a field; 0 without it.
json size_at(const json& object, const char* field) {
  return object.contains(field) ? object[field].size() : 0;
}

// Headers are written as kubectl capitalizes them itself: "Nominated Node" becomes NOMINATED NODE.
std::map<std::string, Table> make_tables() {
  std::map<std::string, Table> tables;
  tables["pods"] = {{column("Name"), column("Ready"), column("Status"), column("Restarts"),
                     column("Age"), column("IP", "string", 1), column("Node", "string", 1),
                     column("Nominated Node", "string", 1), column("Readiness Gates", "string", 1)},
                    pod_cells};
  tables["nodes"] = {
      {column("Name"), column("Status"), column("Roles"), column("Age"), column("Version"),
       column("Internal-IP", "string", 1), column("External-IP", "string", 1),
       column("OS-Image", "string", 1), column("Kernel-Version", "string", 1),
       column("Container-Runtime", "string", 1)},
      node_cells};
  tables["services"] = {
      {column("Name"), column("Type"), column("Cluster-IP"), column("External-IP"),
       column("Port(s)"), column("Age"), column("Selector", "string", 1)},
      service_cells};
  tables["events"] = {{column("Last Seen"), column("Type"), column("Reason"), column("Object"),
                       column("Subobject", "string", 1), column("Source", "string", 1),
                       column("Message"), column("First Seen", "string", 1),
                       column("Count", "integer", 1), column("Name", "string", 1)},
                      event_cells};
  tables["namespaces"] = {{column("Name"), column("Status"), column("Age")},
                          [](const json& object, base::Instant now) -> json {
                            return {object["metadata"]["name"],
                                    text_at(object, ".status.phase", ""), age_of(object, now)};
                          }};
  tables["configmaps"] = {
      {column("Name"), column("Data", "integer"), column("Age")},
      [](const json& object, base::Instant now) -> json {
        return {object["metadata"]["name"], size_at(object, "data"), age_of(object, now)};
      }};
  tables["secrets"] = {{column("Name"), column("Type"), column("Data", "integer"), column("Age")},
                       [](const json& object, base::Instant now) -> json {
                         return {object["metadata"]["name"], text_at(object, ".type", ""),
                                 size_at(object, "data"), age_of(object, now)};
                       }};
  tables["serviceaccounts"] = {
      {column("Name"), column("Secrets", "integer"), column("Age")},
      [](const json& object, base::Instant now) -> json {
        return {object["metadata"]["name"], size_at(object, "secrets"), age_of(object, now)};
      }};
  tables["leases"] = {{column("Name"), column("Holder"), column("Age")},
                      [](const json& object, base::Instant now) -> json {
                        return {object["metadata"]["name"],
                                text_at(object, ".spec.holderIdentity", ""), age_of(object, now)};
                      }};
  tables["customresourcedefinitions"] = {
      {column("Name"), column("Created At", "date")},
      [](const json& object, base::Instant) -> json {
        return {object["metadata"]["name"], text_at(object, ".metadata.creationTimestamp", "")};
      }};
  return tables;
}

// Finds it by the plural alone: the two kinds of events share one table.
const Table& table_of(const ResourceType& type) {
  static const std::map<std::string, Table> kTables = make_tables();
  static const Table kOther = {{column("Name"), column("Age")},
                               [](const json& object, base::Instant now) -> json {
                                 return {object["metadata"]["name"], age_of(object, now)};
                               }};
  const auto found = kTables.find(type.plural);
  return found == kTables.end() ? kOther : found->second;
}

}  // namespace

const std::vector<PrinterColumn>& builtin_columns(const ResourceType& type) {
  return table_of(type).columns;
}

json builtin_cells(const ResourceType& type, const json& object, base::Instant now) {
  return table_of(type).cells(object, now);
}

}  // namespace devcluster
