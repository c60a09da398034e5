#include "kube/testing/api_server/object_rules.h"

#include <algorithm>
#include <set>
#include <utility>

#include <nlohmann/json.hpp>

#include "kube/testing/api_server/batch_job_rules.h"

// The validation and the defaults of a real server, as far as our programs, kubectl and the tests
// can notice them. Sentences and field paths are those of Kubernetes 1.33
// (pkg/apis/core/validation, k8s.io/apimachinery validation), because users read them and tests
// compare them. The contract suite (e2e/contract) checks the rules against a real server.
namespace devcluster {
namespace {

using nlohmann::json;

// The sentences of a real server, for the two kinds of names.
constexpr const char* kSubdomainRule =
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or "
    "'.', "
    "and must start and end with an alphanumeric character";
constexpr const char* kLabelRule =
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and "
    "must "
    "start and end with an alphanumeric character";
// TotalAnnotationSizeLimitB of k8s.io/apimachinery.
constexpr std::size_t kAnnotationBytesMax = 256 * 1024;

bool is_lower_alnum(char c) {
  return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
}

// SOURCE: IsValidLabelValue of k8s.io/apimachinery: at most 63 characters.
bool is_label_value(std::string_view text) {
  const auto alnum = [](char c) { return is_lower_alnum(c) || (c >= 'A' && c <= 'Z'); };
  if (text.empty()) return true;
  if (text.size() > 63 || !alnum(text.front()) || !alnum(text.back())) return false;
  return std::all_of(text.begin(), text.end(),
                     [&](char c) { return alnum(c) || c == '-' || c == '_' || c == '.'; });
}

// Adds a cause, which names one field; an answer has all causes of an object.
void add(std::vector<Cause>& causes, const char* reason, std::string field, std::string message) {
  causes.push_back({reason, std::move(field), std::move(message)});
}

// Labels and annotations: both map names to strings, and only labels restrict the strings.
void check_string_map(const json& map, const std::string& path, bool label_values,
                      std::vector<Cause>& causes) {
  if (!map.is_object()) {
    add(causes, "FieldValueTypeInvalid", path, "Invalid value: must be an object of strings");
    return;
  }
  // Keys count, too.
  std::size_t bytes = 0;
  for (const auto& [key, value] : map.items()) {
    if (!value.is_string()) {
      add(causes, "FieldValueTypeInvalid", path,
          "Invalid value: " + value.dump() + ": must be a string");
      continue;
    }
    bytes += key.size() + value.get_ref<const std::string&>().size();
    if (label_values && !is_label_value(value.get_ref<const std::string&>())) {
      add(causes, "FieldValueInvalid", path,
          "Invalid value: " + value.dump() +
              ": a valid label must be an empty string or consist of alphanumeric characters, '-', "
              "'_' or '.', and must start and end with an alphanumeric character");
    }
  }
  if (!label_values && bytes > kAnnotationBytesMax) {
    add(causes, "FieldValueTooLong", path,
        "Too long: may not be more than " + std::to_string(kAnnotationBytesMax) + " bytes");
  }
}

// Only the form: whether the owner exists is the garbage collector's matter.
void check_owners(const json& owners, std::vector<Cause>& causes) {
  if (!owners.is_array()) return;
  int controllers = 0;
  for (std::size_t i = 0; i < owners.size(); ++i) {
    const std::string path = "metadata.ownerReferences[" + std::to_string(i) + "].";
    for (const char* field : {"apiVersion", "kind", "name", "uid"}) {
      if (!owners[i].is_object() || owners[i].value(field, "").empty()) {
        add(causes, "FieldValueInvalid", path + field, "Invalid value: \"\": must not be empty");
      }
    }
    // Two controllers would each make what the other deletes.
    if (owners[i].is_object() && owners[i].value("controller", false)) ++controllers;
  }
  if (controllers > 1) {
    add(causes, "FieldValueInvalid", "metadata.ownerReferences",
        "Invalid value: Only one reference can have Controller set to true");
  }
}

// `names` goes across both lists: init containers and containers share their names.
void check_containers(const json& containers, const std::string& path, std::set<std::string>& names,
                      std::vector<Cause>& causes) {
  for (std::size_t i = 0; i < containers.size(); ++i) {
    const std::string at = path + "[" + std::to_string(i) + "]";
    const std::string name = containers[i].value("name", "");
    if (name.empty()) {
      add(causes, "FieldValueRequired", at + ".name", "Required value");
    } else if (!is_dns_label(name)) {
      add(causes, "FieldValueInvalid", at + ".name",
          "Invalid value: \"" + name + "\": " + kLabelRule);
    } else if (!names.insert(name).second) {
      add(causes, "FieldValueDuplicate", at + ".name", "Duplicate value: \"" + name + "\"");
    }
    if (containers[i].value("image", "").empty()) {
      add(causes, "FieldValueRequired", at + ".image", "Required value");
    }
  }
}

// A pod needs a container with a name and an image, and a restart policy that exists.
void check_pod(const json& pod, std::vector<Cause>& causes) {
  const json spec = pod.value("spec", json::object());
  std::set<std::string> names;
  if (spec.value("containers", json::array()).empty()) {
    add(causes, "FieldValueRequired", "spec.containers", "Required value");
  } else {
    check_containers(spec["containers"], "spec.containers", names, causes);
  }
  check_containers(spec.value("initContainers", json::array()), "spec.initContainers", names,
                   causes);
  const std::string restart = spec.value("restartPolicy", "Always");
  if (restart != "Always" && restart != "OnFailure" && restart != "Never") {
    add(causes, "FieldValueNotSupported", "spec.restartPolicy",
        "Unsupported value: \"" + restart +
            "\": supported values: \"Always\", \"OnFailure\", \"Never\"");
  }
}

// Returns a pod's spec without the fields that may change: images, activeDeadlineSeconds,
// tolerations and the grace period.
json without_mutable_fields(json spec) {
  for (const char* list : {"containers", "initContainers"}) {
    if (!spec.contains(list)) continue;
    for (json& container : spec[list]) container.erase("image");
  }
  for (const char* field :
       {"activeDeadlineSeconds", "tolerations", "terminationGracePeriodSeconds"}) {
    spec.erase(field);
  }
  return spec;
}

// Scheduling gates go and never come; while one was there, a pod without affinity may get some.
// SOURCE: ValidatePodUpdate of pkg/apis/core/validation, of which this is the part that we need.
void forgive_ungating(json& spec, const json& previous) {
  const json gates = spec.value("schedulingGates", json::array());
  const json before = previous.value("schedulingGates", json::array());
  const bool only_fewer = std::all_of(gates.begin(), gates.end(), [&](const json& gate) {
    return std::find(before.begin(), before.end(), gate) != before.end();
  });
  // A gate that is added, or one that was never there: the comparison finds it as a change.
  if (before.empty() || !only_fewer) return;
  // The allowed changes are undone in the copy, so that the comparison below sees only forbidden
  // ones.
  spec["schedulingGates"] = before;
  if (!previous.contains("affinity")) spec.erase("affinity");
}

// Compares with the mutable fields taken out on both sides: any other difference, of whatever
// field, is forbidden.
void check_pod_change(const json& pod, const json& previous, std::vector<Cause>& causes) {
  const json before = previous.value("spec", json::object());
  // The new spec, in which every change that is allowed is undone before the two are compared.
  json spec = pod.value("spec", json::object());
  forgive_ungating(spec, before);
  if (without_mutable_fields(spec) == without_mutable_fields(before)) return;
  add(causes, "FieldValueForbidden", "spec",
      "Forbidden: pod updates may not change fields other than `spec.containers[*].image`,"
      "`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only "
      "additions to existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set "
      "to 1 if it was previously negative)");
}

// An event is stored in the namespace of its object; events of cluster objects in "default".
void check_event(const json& event, std::vector<Cause>& causes) {
  const json involved = event.value("involvedObject", json::object());
  const std::string ns = event["metadata"].value("namespace", "");
  const std::string about = involved.value("namespace", "");
  if (about != ns && !(about.empty() && ns == "default")) {
    add(causes, "FieldValueInvalid", "involvedObject.namespace",
        "Invalid value: \"" + about + "\": does not match event.namespace");
  }
}

// A headless Service may do without ports, which is how a job's Service is made.
void check_service(const json& service, std::vector<Cause>& causes) {
  const json spec = service.value("spec", json::object());
  const bool headless = spec.value("clusterIP", "") == "None";
  if (!headless && spec.value("ports", json::array()).empty()) {
    add(causes, "FieldValueRequired", "spec.ports", "Required value");
  }
}

// SOURCE: SetDefaults_Container of pkg/apis/core/v1/defaults.go. Without a tag or with :latest the
// image is pulled each time.
void default_container(json& container) {
  const auto defaults = {std::pair{"terminationMessagePath", "/dev/termination-log"},
                         std::pair{"terminationMessagePolicy", "File"}};
  for (const auto& [key, value] : defaults) {
    if (!container.contains(key)) container[key] = value;
  }
  if (!container.contains("resources")) container["resources"] = json::object();
  if (!container.contains("imagePullPolicy")) {
    const std::string image = container.value("image", "");
    // The colon of a registry's port ("host:5000/image") is not that of a tag.
    const std::size_t colon = image.rfind(':');
    const bool tagged = colon != std::string::npos && image.find('/', colon) == std::string::npos;
    const bool latest = !tagged || image.ends_with(":latest");
    container["imagePullPolicy"] = latest ? "Always" : "IfNotPresent";
  }
}

// Guaranteed if each container has limits for CPU and memory and its requests equal them;
// BestEffort if none has any.
// SOURCE: Kubernetes, "Pod Quality of Service Classes". Compared as texts: "1" and "1000m" count as
// different here.
std::string qos_class(const json& spec) {
  bool any = false, guaranteed = true;
  for (const json& container : spec.value("containers", json::array())) {
    const json resources = container.value("resources", json::object());
    const json limits = resources.value("limits", json::object());
    const json requests = resources.value("requests", json::object());
    for (const char* name : {"cpu", "memory"}) {
      if (limits.contains(name) || requests.contains(name)) any = true;
      if (!limits.contains(name) || (requests.contains(name) && requests[name] != limits[name])) {
        guaranteed = false;
      }
    }
  }
  if (!any) return "BestEffort";
  return guaranteed ? "Guaranteed" : "Burstable";
}

// Only the defaults that the operator or kubectl read. SOURCE: pkg/apis/core/v1/defaults.go.
void default_pod(json& pod) {
  json& spec = pod["spec"];
  if (!spec.is_object()) spec = json::object();
  const json defaults = {{"restartPolicy", "Always"},
                         {"dnsPolicy", "ClusterFirst"},
                         {"schedulerName", "default-scheduler"},
                         {"terminationGracePeriodSeconds", 30},
                         {"enableServiceLinks", true},
                         {"securityContext", json::object()},
                         {"serviceAccountName", "default"},
                         {"serviceAccount", "default"},
                         {"preemptionPolicy", "PreemptLowerPriority"},
                         {"priority", 0}};
  for (const auto& [key, value] : defaults.items()) {
    if (!spec.contains(key)) spec[key] = value;
  }
  for (const char* list : {"containers", "initContainers"}) {
    if (!spec.contains(list) || !spec[list].is_array()) continue;
    for (json& container : spec[list]) {
      if (container.is_object()) default_container(container);
    }
  }
  json& status = pod["status"];
  if (!status.contains("phase")) status["phase"] = "Pending";
  if (!status.contains("qosClass")) status["qosClass"] = qos_class(spec);
}

// SOURCE: SetDefaults_Service of pkg/apis/core/v1/defaults.go.
void default_service(json& service) {
  json& spec = service["spec"];
  if (!spec.is_object()) spec = json::object();
  if (!spec.contains("type")) spec["type"] = "ClusterIP";
  if (!spec.contains("sessionAffinity")) spec["sessionAffinity"] = "None";
  if (!service.contains("status")) service["status"] = {{"loadBalancer", json::object()}};
  for (json& port : spec.contains("ports") ? spec["ports"] : spec["ports"] = json::array()) {
    if (!port.contains("protocol")) port["protocol"] = "TCP";
    // A port leads to the same port of the pods.
    if (!port.contains("targetPort") && port.contains("port")) port["targetPort"] = port["port"];
  }
  if (spec["ports"].empty()) spec.erase("ports");
}

// Has no effect if the field is absent.
void rename(json& object, const char* from, const char* to) {
  if (!object.contains(from)) return;
  object[to] = std::move(object[from]);
  object.erase(from);
}

// The fields of one event in the two APIs: core name, events.k8s.io name.
constexpr std::pair<const char*, const char*> kEventFields[] = {
    {"involvedObject", "regarding"},
    {"message", "note"},
    {"reportingComponent", "reportingController"},
    {"count", "deprecatedCount"},
    {"source", "deprecatedSource"},
    {"firstTimestamp", "deprecatedFirstTimestamp"},
    {"lastTimestamp", "deprecatedLastTimestamp"}};

}  // namespace

// RFC 1123, at most 63 characters.
bool is_dns_label(std::string_view text) {
  if (text.empty() || text.size() > 63) return false;
  if (!is_lower_alnum(text.front()) || !is_lower_alnum(text.back())) return false;
  return std::all_of(text.begin(), text.end(),
                     [](char c) { return is_lower_alnum(c) || c == '-'; });
}

// RFC 1123: labels with dots between them, at most 253 characters in all.
bool is_dns_subdomain(std::string_view text) {
  if (text.empty() || text.size() > 253) return false;
  while (true) {
    const std::size_t dot = text.find('.');
    const std::string_view part = text.substr(0, dot);
    if (part.empty() || !is_lower_alnum(part.front()) || !is_lower_alnum(part.back())) return false;
    if (!std::all_of(part.begin(), part.end(),
                     [](char c) { return is_lower_alnum(c) || c == '-'; })) {
      return false;
    }
    if (dot == std::string_view::npos) return true;
    text = text.substr(dot + 1);
  }
}

// Namespaces and Services have names of DNS labels, all other kinds of subdomains.
std::vector<Cause> validate_metadata(const ResourceType& type, const json& object) {
  std::vector<Cause> causes;
  // REQUIRES: the object has metadata, which the caller has made sure of.
  const json& metadata = object["metadata"];
  const std::string name = metadata.value("name", "");
  const bool label = type.plural == "namespaces" || type.plural == "services";
  if (name.empty()) {
    add(causes, "FieldValueRequired", "metadata.name",
        "Required value: name or generateName is required");
  } else if (label ? !is_dns_label(name) : !is_dns_subdomain(name)) {
    add(causes, "FieldValueInvalid", "metadata.name",
        "Invalid value: \"" + name + "\": " + (label ? kLabelRule : kSubdomainRule));
  }
  if (metadata.contains("labels")) {
    check_string_map(metadata["labels"], "metadata.labels", true, causes);
  }
  if (metadata.contains("annotations")) {
    check_string_map(metadata["annotations"], "metadata.annotations", false, causes);
  }
  if (metadata.contains("ownerReferences")) check_owners(metadata["ownerReferences"], causes);
  return causes;
}

// The namespace's label is for the namespaceSelector of webhooks and network policies.
void default_builtin(const ResourceType& type, json& object) {
  // Custom kinds have their defaults in their schema.
  if (type.custom) return;
  if (type.plural == "pods") default_pod(object);
  if (type.plural == "services") default_service(object);
  if (type.plural == "jobs") default_batch_job(object);
  if (type.plural == "namespaces") {
    if (!object.contains("spec")) object["spec"] = json::object();
    if (!object["status"].contains("phase")) object["status"]["phase"] = "Active";
    object["metadata"]["labels"]["kubernetes.io/metadata.name"] =
        object["metadata"].value("name", "");
  }
  if (type.plural == "secrets" && !object.contains("type")) object["type"] = "Opaque";
  if (type.plural == "nodes" && !object.contains("spec")) object["spec"] = json::object();
}

// `previous`: the stored object of an update, null for a creation.
std::vector<Cause> validate_builtin(const ResourceType& type, const json& object,
                                    const json* previous) {
  std::vector<Cause> causes;
  if (type.custom) return causes;
  if (type.plural == "pods") {
    check_pod(object, causes);
    if (previous != nullptr) check_pod_change(object, *previous, causes);
  } else if (type.plural == "services") {
    check_service(object, causes);
  } else if (type.plural == "events") {
    check_event(object, causes);
  } else if (type.plural == "jobs") {
    causes = check_batch_job(object, previous);
  } else if (type.plural == "customresourcedefinitions") {
    causes = validate_crd(object);
  }
  return causes;
}

// Events are stored in the spelling of the core group; these two translate at the border.
void event_to_core(json& event) {
  for (const auto& [core, other] : kEventFields) rename(event, other, core);
  event["apiVersion"] = "v1";
}

void event_from_core(json& event) {
  for (const auto& [core, other] : kEventFields) rename(event, core, other);
  event["apiVersion"] = "events.k8s.io/v1";
}

}  // namespace devcluster
