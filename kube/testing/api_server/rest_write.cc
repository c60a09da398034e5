#include <algorithm>
#include <cstdio>
#include <utility>

#include <nlohmann/json.hpp>

#include "kube/api/time_format.h"
#include "kube/testing/api_server/json_text.h"
#include "kube/testing/api_server/object_rules.h"
#include "kube/testing/api_server/rest.h"
#include "kube/testing/api_server/wire_types.h"

// Writes. Every write goes through the same gates, in the order of a real server, which decides
// which of several errors a client sees. A create: JSON and types (400), identity (400, 422),
// unknown fields (by fieldValidation), defaults, validation (422), namespace (403, 404), existence
// (409). A change: existence (404) first, and preconditions (409) before the defaults. Only then is
// anything stored, so a refused write leaves no trace.
namespace devcluster {
namespace {

using nlohmann::json;

constexpr std::size_t kBodyBytesMax = 3U << 20U;  // as kube-apiserver
constexpr const char* kModified =
    "the object has been modified; please apply your changes to the latest version and try again";

ApiError too_large() {
  ApiError error;
  error.code = 413;
  error.reason = "RequestEntityTooLarge";
  error.message = "Request entity too large: limit is " + std::to_string(kBodyBytesMax);
  return error;
}

Outcome<bool> dry_run_of(const RestRequest& request) {
  const std::string text = request.info.query.get("dryRun");
  if (text.empty()) return false;
  if (text == "All") return true;
  return invalid("meta.k8s.io", "CreateOptions", "",
                 {{"FieldValueNotSupported", "dryRun",
                   "Unsupported value: [\"" + text + "\"]: supported values: \"All\""}});
}

// apiVersion, kind, name and namespace must be as the path says; absent ones are filled in, except
// for the kind, without which the body may be another kind's. managedFields are not
// kept by this server.
std::optional<ApiError> adopt_identity(const RestRequest& request, json& object) {
  const ResourceType& type = *request.type;
  const std::string kind = object.value("kind", ""), version = object.value("apiVersion", "");
  if (kind.empty()) {
    return bad_request("the object provided is unrecognized (must be of type " + type.kind +
                       "): Object 'Kind' is missing");
  }
  if (kind != type.kind && type.custom) {
    return invalid(
        type.group, kind, object.value("metadata", json::object()).value("name", ""),
        {{"FieldValueInvalid", "kind", "Invalid value: \"" + kind + "\": must be " + type.kind}});
  }
  if (kind != type.kind) {
    return bad_request(kind + " in version \"" + type.version + "\" cannot be handled as a " +
                       type.kind);
  }
  if (version != type.api_version()) {
    return bad_request("the API version in the data (" + version +
                       ") does not match the expected API version (" + type.api_version() + ")");
  }
  json& metadata = object["metadata"];
  if (metadata.is_null()) metadata = json::object();
  if (!request.info.name.empty()) {
    const std::string name = metadata.value("name", "");
    if (!name.empty() && name != request.info.name) {
      return bad_request("the name of the object (" + name +
                         ") does not match the name on the URL (" + request.info.name + ")");
    }
    metadata["name"] = request.info.name;
  }
  const std::string ns = metadata.value("namespace", "");
  if (!type.namespaced) {
    metadata.erase("namespace");
  } else if (!ns.empty() && ns != request.info.ns) {
    return bad_request(
        "the namespace of the provided object does not match the namespace sent on the request");
  } else {
    metadata["namespace"] = request.info.ns;
  }
  for (const char* field : {"managedFields", "selfLink"}) metadata.erase(field);
  return std::nullopt;
}

// Prunes unknown fields; refuses or warns of them as fieldValidation says.
std::optional<ApiError> admit_fields(const RestRequest& request, json& object,
                                     const std::vector<std::string>& duplicates,
                                     std::vector<std::string>& warnings) {
  const std::string mode = request.info.query.get("fieldValidation");
  std::vector<std::string> complaints;
  for (const std::string& path : duplicates)
    complaints.push_back("duplicate field \"" + path + "\"");
  if (request.type->schema) {
    for (const std::string& path : request.type->schema->prune(object)) {
      complaints.push_back("unknown field \"" + path + "\"");
    }
  }
  if (mode == "Strict" && !complaints.empty()) {
    std::string list;
    for (const std::string& complaint : complaints) list += (list.empty() ? "" : ", ") + complaint;
    if (request.info.verb == "patch") {
      return invalid("", "", "",
                     {{"FieldValueInvalid", "patch",
                       "Invalid value: the patched object: strict decoding error: " + list}});
    }
    return bad_request(request.type->kind + " in version \"" + request.type->version +
                       "\" cannot be handled as a " + request.type->kind +
                       ": strict decoding error: " + list);
  }
  if (mode != "Ignore") warnings.insert(warnings.end(), complaints.begin(), complaints.end());
  return std::nullopt;
}

// Returns the errors of the status alone, as a write of the status subresource is judged.
std::optional<ApiError> validate_status(const ResourceType& type, const json& object) {
  std::vector<Cause> causes = type.schema->validate_field("status", object);
  if (causes.empty()) return std::nullopt;
  return invalid(type.group, type.kind, object["metadata"].value("name", ""), std::move(causes));
}

// Reports all errors at once, so that a user mends them in one go.
std::optional<ApiError> validate(const ResourceType& type, const json& object,
                                 const json* previous) {
  std::vector<Cause> causes = validate_metadata(type, object);
  const auto append = [&](std::vector<Cause> more) {
    causes.insert(causes.end(), more.begin(), more.end());
  };
  if (type.schema) append(type.schema->validate(object));
  append(validate_builtin(type, object, previous));
  if (causes.empty()) return std::nullopt;
  return invalid(type.group, type.kind, object["metadata"].value("name", ""), std::move(causes));
}

// Everything but metadata and status: what raises the generation.
bool same_spec(json a, json b) {
  for (json* object : {&a, &b}) {
    object->erase("metadata");
    object->erase("status");
  }
  return a == b;
}

// Takes over the metadata that only the server may set; what the client sent for it is ignored.
void keep_system_metadata(const json& current, json& wanted) {
  for (const char* field : {"uid", "creationTimestamp", "generation", "deletionTimestamp",
                            "deletionGracePeriodSeconds", "resourceVersion"}) {
    const json& have = current["metadata"];
    if (have.contains(field))
      wanted["metadata"][field] = have[field];
    else
      wanted["metadata"].erase(field);
  }
}

void take_status(const json& from, json& to) {
  if (from.contains("status"))
    to["status"] = from["status"];
  else
    to.erase("status");
}

// Returns `current` with what a write through this (sub)resource may change. A write of the object
// keeps the stored status; a write of the status keeps everything else.
json isolated(const ResourceType& type, bool status_write, const json& current, json wanted) {
  if (!type.has_status) return wanted;
  if (!status_write) {
    take_status(current, wanted);
    return wanted;
  }
  json result = current;
  take_status(wanted, result);
  // Kubernetes lets a status write of a built-in kind change labels and annotations; for custom
  // kinds the whole of metadata is ignored but for managedFields.
  if (!type.custom) {
    for (const char* field : {"labels", "annotations"}) {
      if (wanted["metadata"].contains(field))
        result["metadata"][field] = wanted["metadata"][field];
      else
        result["metadata"].erase(field);
    }
  }
  return result;
}

ObjectPtr share(json object) {
  return std::make_shared<const json>(std::move(object));
}

}  // namespace

// Makes a version 4 UUID from the seeded generator: the same run of a test has the same UIDs.
std::string Rest::new_uid() {
  const std::uint64_t high = prng_.next(), low = prng_.next();
  char text[40];
  std::snprintf(text, sizeof text, "%08x-%04x-4%03x-%04x-%012llx",
                static_cast<unsigned>(high >> 32U), static_cast<unsigned>((high >> 16U) & 0xffffU),
                static_cast<unsigned>(high & 0xfffU),
                static_cast<unsigned>(0x8000U | ((low >> 48U) & 0x3fffU)),
                static_cast<unsigned long long>(low & 0xffffffffffffULL));
  return text;
}

// Makes five characters without vowels, as apiserver's names.SimpleNameGenerator.
std::string Rest::new_name_suffix() {
  static constexpr std::string_view kAlphabet = "bcdfghjklmnpqrstvwxz2456789";
  std::string suffix;
  for (int i = 0; i < 5; ++i) suffix += kAlphabet[prng_.below(kAlphabet.size())];
  return suffix;
}

std::optional<ApiError> Rest::check_namespace(const RestRequest& request) const {
  if (!request.type->namespaced) return std::nullopt;
  const GroupResource namespaces{"", "namespaces"};
  const ObjectPtr ns = store_.find(namespaces, {"", request.info.ns});
  if (!ns) return not_found(namespaces, request.info.ns);
  if ((*ns)["metadata"].contains("deletionTimestamp")) {
    ApiError error = forbidden(request.type->group_resource(), request.info.name,
                               "unable to create new content in namespace " + request.info.ns +
                                   " because it is being terminated");
    error.causes = {{"NamespaceTerminating", "metadata.namespace",
                     "namespace " + request.info.ns + " is being terminated"}};
    return error;
  }
  return std::nullopt;
}

// The only place where the store changes besides erase(): a change is published in the order of its
// version.
ObjectPtr Rest::commit(const ObjectAddress& address, json object) {
  const ChangePtr change = store_.put(address.resource, address.key, std::move(object));
  watches_.publish(change);
  return change->object;
}

// 1. Parse and check identity. 2. Fields. 3. Metadata. 4. Defaults, validation. 5. Store.
Outcome<RestResult> Rest::create(const RestRequest& request) {
  const ResourceType& type = *request.type;
  if (type.namespaced && request.info.ns.empty()) return method_not_allowed();
  if (request.api.http.body.size() > kBodyBytesMax) return too_large();
  const auto dry_run = dry_run_of(request);
  if (!dry_run.ok()) return dry_run.error();
  RestResult result;
  result.code = 201;
  std::vector<std::string> duplicates;
  // 1. parse, identity
  auto parsed = parse_object(request.api.http.body, request.api.http.content_type, duplicates);
  if (!parsed.ok()) return parsed.error();
  json object = std::move(*parsed);
  if (auto error = check_types(type, object)) return *error;
  if (auto error = adopt_identity(request, object)) return *error;
  if (type.plural == "events" && type.group == "events.k8s.io") event_to_core(object);
  // 2. fields
  if (auto error = admit_fields(request, object, duplicates, result.warnings)) return *error;

  // 3. metadata
  json& metadata = object["metadata"];
  if (!metadata.value("resourceVersion", "").empty()) {
    ApiError error = error_of_code(500, 0);
    error.message = "resourceVersion should not be set on objects to be created";
    return error;
  }
  if (metadata.value("name", "").empty() && !metadata.value("generateName", "").empty()) {
    metadata["name"] = metadata["generateName"].get<std::string>() + new_name_suffix();
  }
  for (const char* field : {"deletionTimestamp", "deletionGracePeriodSeconds", "generation"}) {
    metadata.erase(field);
  }
  // The server's own; whatever a client sent for it is overwritten, as a real server does.
  metadata["uid"] = new_uid();
  metadata["creationTimestamp"] = kube::format_time(clock_.wall());
  if (type.custom || type.plural == "customresourcedefinitions") metadata["generation"] = 1;
  // A kubelet registers its Node with status; everywhere else it is the status subresource's.
  if (type.has_status && type.plural != "nodes") object.erase("status");

  // 4. defaults come before the validation: a required field may have one
  if (type.schema) type.schema->apply_defaults(object);
  default_builtin(type, object);
  // Validation comes before the look at the namespace and the name: an invalid object that exists
  // already is answered with 422, not with 409.
  if (auto error = validate(type, object, nullptr)) return *error;
  if (auto error = check_namespace(request)) return *error;
  const ObjectKey key{type.namespaced ? request.info.ns : "", metadata["name"]};
  if (store_.find(type.storage(), key)) return already_exists(type.group_resource(), key.name);
  if (type.plural == "customresourcedefinitions")
    accept_crd(object, kube::format_time(clock_.wall()));
  // A dry run ends here: everything has been checked, and nothing is stored.
  if (*dry_run) {
    result.object = share(std::move(object));
    return result;
  }
  // 5. store
  result.object = commit({type.storage(), key}, std::move(object));
  after_write(type, key);
  return result;
}

// The consequences of a stored object: new resources are served, children of the dead are
// collected.
void Rest::after_write(const ResourceType& type, const ObjectKey& key) {
  const ObjectPtr object = store_.find(type.storage(), key);
  if (!object) return;
  if (type.plural == "customresourcedefinitions") {
    auto types = types_of_crd(*object);
    if (!types.ok()) return;  // Validation has refused it before.
    registry_.remove({(*object)["spec"]["group"], (*object)["spec"]["names"]["plural"]});
    for (ResourceType& served : *types) registry_.add(std::move(served));
  }
  // The garbage collector deletes an object whose owners are all gone also if it was created after
  // them: that is what happens to a pod of a Job which was deleted a moment ago.
  if (!has_living_owner(*object)) remove_object(type, key, {});
  collect_garbage();
}

// Does the write of kube-scheduler: the pod gets its node.
Outcome<RestResult> Rest::bind(const RestRequest& request) {
  const ResourceType& type = *request.type;
  const ObjectKey key = key_of(request);
  const ObjectPtr current = store_.find(type.storage(), key);
  if (!current) return not_found(type.group_resource(), key.name);
  std::vector<std::string> duplicates;
  const auto binding =
      parse_object(request.api.http.body, request.api.http.content_type, duplicates);
  if (!binding.ok()) return binding.error();
  const std::string node = binding->value("target", json::object()).value("name", "");
  if (node.empty()) return bad_request("target.name: Required value");
  json pod = *current;
  if (pod["metadata"].contains("deletionTimestamp")) {
    return conflict(type.group_resource(), key.name,
                    "pod " + key.name + " is being deleted, cannot be assigned to a host");
  }
  if (const std::string before = pod["spec"].value("nodeName", ""); !before.empty()) {
    return conflict(type.group_resource(), key.name,
                    "pod " + key.name + " is already assigned to node \"" + before + "\"");
  }
  pod["spec"]["nodeName"] = node;
  json conditions = json::array();
  for (const json& condition : pod["status"].value("conditions", json::array())) {
    if (condition.value("type", "") != "PodScheduled") conditions.push_back(condition);
  }
  conditions.push_back({{"type", "PodScheduled"},
                        {"status", "True"},
                        {"lastProbeTime", nullptr},
                        {"lastTransitionTime", kube::format_time(clock_.wall())}});
  pod["status"]["conditions"] = std::move(conditions);
  commit({type.storage(), key}, std::move(pod));
  return created_by_subresource();
}

// Custom resources must name the version that they replace; built-in kinds may be written blindly.
Outcome<RestResult> Rest::replace(const RestRequest& request) {
  if (request.api.http.body.size() > kBodyBytesMax) return too_large();
  const ObjectPtr current = store_.find(request.type->storage(), key_of(request));
  if (!current) return not_found(request.type->group_resource(), request.info.name);
  std::vector<std::string> duplicates;
  auto wanted = parse_object(request.api.http.body, request.api.http.content_type, duplicates);
  if (!wanted.ok()) return wanted.error();
  if (auto error = check_types(*request.type, *wanted)) return *error;
  if (request.type->custom &&
      wanted->value("metadata", json::object()).value("resourceVersion", "").empty()) {
    return invalid(request.type->group, request.type->plural, request.info.name,
                   {{"FieldValueInvalid", "metadata.resourceVersion",
                     "Invalid value: 0: must be specified for an update"}});
  }
  return write_existing(request, current, std::move(*wanted), std::move(duplicates));
}

// The patch is applied to the object as the request's API version shows it. A patch of a missing
// object is parsed first: 415 comes before 404.
Outcome<RestResult> Rest::patch(const RestRequest& request) {
  if (request.api.http.body.size() > kBodyBytesMax) return too_large();
  const ObjectPtr current = store_.find(request.type->storage(), key_of(request));
  std::vector<std::string> duplicates;
  auto wanted = apply_patch(current ? encode_plain(*request.type, *current) : json::object(),
                            request.type->custom, request.api.http.body,
                            request.api.http.content_type, duplicates);
  if (!wanted.ok() && (current || wanted.error().code == 415)) return wanted.error();
  if (!current) return not_found(request.type->group_resource(), request.info.name);
  if (auto error = check_types(*request.type, *wanted)) return *error;
  return write_existing(request, current, std::move(*wanted), std::move(duplicates));
}

// 1. Identity, fields, preconditions. 2. Keep what this write may not change. 3. Defaults,
// validation. 4. Nothing changed: no new version. 5. Generation, store.
Outcome<RestResult> Rest::write_existing(const RestRequest& request, const ObjectPtr& current,
                                         json wanted, std::vector<std::string> duplicates) {
  const ResourceType& type = *request.type;
  const auto dry_run = dry_run_of(request);
  if (!dry_run.ok()) return dry_run.error();
  RestResult result;
  // 1. identity, fields, preconditions. A patch that names another UID tries to change an immutable
  //    field (422); a replacement has it as a precondition (409)
  if (auto error = adopt_identity(request, wanted)) return *error;
  if (type.plural == "events" && type.group == "events.k8s.io") event_to_core(wanted);
  if (auto error = admit_fields(request, wanted, duplicates, result.warnings)) return *error;
  const json& have = (*current)["metadata"];
  const std::string uid = wanted["metadata"].value("uid", "");
  if (!uid.empty() && uid != have["uid"]) {
    if (request.info.verb == "patch") {
      return invalid(type.group, type.kind, request.info.name,
                     {{"FieldValueInvalid", "metadata.uid",
                       "Invalid value: \"" + uid + "\": field is immutable"}});
    }
    return conflict(type.group_resource(), request.info.name,
                    "Precondition failed: UID in precondition: " + uid +
                        ", UID in object meta: " + have["uid"].get<std::string>());
  }
  // Optimistic locking, for writes that name a version; others write over whatever is stored.
  const std::string rv = wanted["metadata"].value("resourceVersion", "");
  if (!rv.empty() && rv != have["resourceVersion"]) {
    return conflict(type.group_resource(), request.info.name, kModified);
  }
  // 2. what this write may not change
  const bool status_write = request.info.subresource == "status";
  json next = isolated(type, status_write, *current, std::move(wanted));
  keep_system_metadata(*current, next);
  next["apiVersion"] = (*current)["apiVersion"];
  // 3. defaults, validation. A write of the status is judged by the schema of the status alone: an
  //    object whose spec has become illegal (a CRD got stricter) can still get a status
  if (type.schema) type.schema->apply_defaults(next);
  default_builtin(type, next);
  if (auto error = status_write && type.schema ? validate_status(type, next)
                                               : validate(type, next, current.get())) {
    return *error;
  }
  if (type.plural == "customresourcedefinitions" && !status_write) {
    next["status"] = (*current)["status"];
    accept_crd(next, (*current)["status"]["conditions"][0]["lastTransitionTime"]);
  }
  // 4. nothing changed, so no new version and no watch event
  result.object = current;
  if (next == *current) return result;
  // 5. generation, store
  if (have.contains("generation") && !same_spec(*current, next)) {
    next["metadata"]["generation"] = have["generation"].get<std::int64_t>() + 1;
  }
  if (*dry_run) {
    result.object = share(std::move(next));
    return result;
  }
  const ObjectKey key = key_of(request);
  result.object = commit({type.storage(), key}, std::move(next));
  // The last finalizer of an object that is being deleted was removed.
  const bool released = (*result.object)["metadata"].contains("deletionTimestamp") &&
                        (*result.object)["metadata"].value("finalizers", json::array()).empty() &&
                        !have.value("finalizers", json::array()).empty();
  if (released && type.plural != "pods") {
    erase({type.storage(), key}, Propagation::kBackground);
    collect_garbage();
    return result;
  }
  after_write(type, key);
  return result;
}

}  // namespace devcluster
